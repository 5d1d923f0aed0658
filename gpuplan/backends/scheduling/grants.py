"""The admission policy `gpuplan-grants`: pods ask for their tenant's own units, pools and priority classes alone.

One policy for all tenants; each namespace has a binding with its own parameters (`gpuplan.planning.grants.parameters`).
Pods are judged when they are created. Nothing that is judged can change later: the API server keeps resources, class,
scheduler and node selector as they are, lets pods with scheduling gates only add to the selector, and resizes only cpu
and memory (`ValidatePodUpdate`, `ValidatePodResize` in `pkg/apis/core/validation/validation.go` of
kubernetes/kubernetes). So updates are let through, and a grant that is withdrawn does not keep controllers from
removing the finalizers of running pods.

A node selector and the node affinity must both hold, so that an affinity can narrow the pool and never widen it.
Tolerations are free: they open no pool that the selector does not name.

Four keys of the parameters are not gpuplan's: `otherResources`, for resources of `nvidia.com/` that are no GPUs (the
network operator's `nvidia.com/hostdev`), `otherSchedulers`, for further profiles of kube-scheduler, with Kueue
`otherOwners`, for kinds beside Jobs that it admits as a whole (`ray.io/v1 RayCluster`), and with claims
`otherClaimTemplates`, for templates of claims of what is no GPU. A hand-written kustomize Component of the stage
`namespaces` may patch them into the ConfigMaps, one a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpuplan.backends.scheduling.claims import CLAIM_RULES, CLAIM_RULES_IN_POOL, CLAIM_VARIABLES
from gpuplan.backends.scheduling.fractions import ASKS_FRACTION
from gpuplan.backends.scheduling.schedulers import rules_of
from gpuplan.manifests import AdmissionRule, admission_policy
from gpuplan.planning.dra import uses_claims
from gpuplan.planning.grants import FRACTION, GRANTS_POLICY, SYSTEM_NAMESPACE
from gpuplan.planning.plan import POOL_LABEL, Plan

_VARIABLES = {
    "tenant": "params.data.tenant",
    # Each grant as [pool, resource, most per container].
    "grants": r"params.data.grants.split('\n').filter(line, line != '').map(line, line.split(' '))",
    "pools": r"params.data.pools.split('\n').filter(line, line != '')",
    "priorityClasses": r"params.data.priorityClasses.split('\n').filter(line, line != '')",
    "otherResources": r"has(params.data.otherResources) ? params.data.otherResources.split('\n') : []",
    "containers": "object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])",
    # For each container the GPU resources it asks for. Charts like to write `nvidia.com/gpu: 0`; that asks for nothing.
    "asks": """
        variables.containers.map(c, has(c.resources) && has(c.resources.limits)
          ? c.resources.limits.filter(r,
              r.startsWith('nvidia.com/') && c.resources.limits[r] != '0' && !(r in variables.otherResources))
          : [])
        """,
    "usesGpus": "variables.asks.exists(ask, size(ask) > 0)",
    "pool": f"""
        has(object.spec.nodeSelector) && '{POOL_LABEL}' in object.spec.nodeSelector
        ? object.spec.nodeSelector['{POOL_LABEL}'] : ''
        """,
    "here": "variables.grants.filter(grant, variables.pool == '' || grant[0] == variables.pool)",
    "priorityClass": "has(object.spec.priorityClassName) ? object.spec.priorityClassName : ''",
}


_FRACTION_VARIABLES = {
    "asksFraction": ASKS_FRACTION,
    **_VARIABLES,
    "usesGpus": "variables.asksFraction || variables.asks.exists(ask, size(ask) > 0)",
}


def grants_policy(plan: Plan) -> dict[str, Any]:
    variables = _FRACTION_VARIABLES if plan.scheduler.has_fractions else _VARIABLES
    if uses_claims(plan):
        uses_gpus = f"size(variables.claims) > 0 || {variables['usesGpus']}"
        variables = CLAIM_VARIABLES | variables | {"usesGpus": uses_gpus}
    variables = {**variables, **rules_of(plan.scheduler).variables}
    match = {("", "v1"): {"pods": ["CREATE"]}}
    return admission_policy(GRANTS_POLICY, match, variables, tuple(_rules(plan)), has_parameters=True)


def grants_binding() -> dict[str, Any]:
    """A binding in no namespace, so that there is one while no tenant has a namespace.

    An API server that finds no binding with parameters of a kind stops to read that kind, for good: parameters that
    come later do not exist for it, and those that it has seen stay in force until it is started anew
    (https://github.com/kubernetes/kubernetes/issues/130887). The kind is ConfigMap for all policies of gpuplan.
    """
    nowhere = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "DoesNotExist"}]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": GRANTS_POLICY},
        "spec": {
            "policyName": GRANTS_POLICY,
            "paramRef": {"name": "grants", "namespace": SYSTEM_NAMESPACE, "parameterNotFoundAction": "Deny"},
            "matchResources": {"namespaceSelector": nowhere},
            "validationActions": ["Deny", "Audit"],
        },
    }


def _rules(plan: Plan) -> Iterator[AdmissionRule]:
    yield _ASKED_IN_LIMITS
    yield _RESOURCE_GRANTED
    if uses_claims(plan):
        yield from CLAIM_RULES
    if not plan.scheduler.finds_pools:  # Kueue adds the flavor's selector when it admits a pod, by an update
        yield _POOL_CHOSEN
    yield _POOL_GRANTED
    yield _RESOURCE_GRANTED_IN_POOL
    if uses_claims(plan):
        yield from CLAIM_RULES_IN_POOL
    if plan.scheduler.has_fractions:
        yield _FRACTION_GRANTED
    yield from rules_of(plan.scheduler).rules
    yield _ONE_KIND_PER_CONTAINER
    yield _MOST_PER_CONTAINER
    yield _PRIORITY_CLASS_NAMED
    yield _no_higher_priority(plan)
    yield _scheduler(plan.scheduler.pod_schedulers)


# --- Resources ---------------------------------------------------------------------------------------------------

# The API server refuses both today: requests of extended resources need equal limits, and the resources of a pod as a
# whole take cpu, memory and hugepages alone. The other rules read the limits of containers and rely on it.
_ASKED_IN_LIMITS = AdmissionRule(
    """
    variables.containers.all(c, !has(c.resources) || !has(c.resources.requests) ||
      c.resources.requests.all(r, !r.startsWith('nvidia.com/') ||
        (has(c.resources.limits) && r in c.resources.limits))) &&
    (!has(object.spec.resources) || (
      (!has(object.spec.resources.limits) ||
        object.spec.resources.limits.all(r, !r.startsWith('nvidia.com/'))) &&
      (!has(object.spec.resources.requests) ||
        object.spec.resources.requests.all(r, !r.startsWith('nvidia.com/')))))
    """,
    "GPUs are asked for in the resources.limits of a container",
)

_RESOURCE_GRANTED = AdmissionRule(
    "variables.asks.all(ask, ask.all(r, variables.grants.exists(grant, grant[1] == r)))",
    "the pod asks for a GPU resource that its tenant has no quota on",
    """
    'tenant ' + variables.tenant + ' has no quota on ' +
    variables.asks.map(ask, ask.filter(r, !variables.grants.exists(grant, grant[1] == r)).join(' and '))
      .filter(names, names != '').join(' and ') +
    '; it may ask for ' + (size(variables.grants) == 0
      ? 'no GPUs' : variables.grants.map(grant, grant[1] + ' in pool ' + grant[0]).join(', '))
    """,
)

_RESOURCE_GRANTED_IN_POOL = AdmissionRule(
    "variables.asks.all(ask, ask.all(r, variables.here.exists(grant, grant[1] == r)))",
    "the pod asks for a GPU resource that its tenant has a quota on, but not in this pool",
    """
    'in pool ' + variables.pool + ' tenant ' + variables.tenant + ' may ask for ' +
    variables.here.map(grant, grant[1]).join(' or ') + ', not for ' +
    variables.asks.map(ask, ask.filter(r, !variables.here.exists(grant, grant[1] == r)).join(' and '))
      .filter(names, names != '').join(' and ')
    """,
)

_FRACTION_GRANTED = AdmissionRule(
    f"!variables.asksFraction || variables.here.exists(grant, grant[1] == '{FRACTION}')",
    "the pod asks for a fraction of a GPU that its tenant has no quota on",
    f"""
    'tenant ' + variables.tenant + ' has no quota on fractions of GPUs' +
    (variables.pool == '' ? '' : ' in pool ' + variables.pool) + '; it may ask for ' +
    (!variables.grants.exists(grant, grant[1] == '{FRACTION}') ? 'none' : 'fractions in pool ' +
      variables.grants.filter(grant, grant[1] == '{FRACTION}').map(grant, grant[0]).join(' or '))
    """,
)

# The device plugin answers each resource with NVIDIA_VISIBLE_DEVICES, and the last answer wins
# (https://github.com/NVIDIA/k8s-device-plugin/issues/728).
_ONE_KIND_PER_CONTAINER = AdmissionRule(
    "variables.asks.all(ask, size(ask) <= 1)",
    "a container may ask for one kind of GPU resource only; put the others into further containers",
    """
    'a container may ask for one kind of GPU resource only, not for ' +
    variables.asks.filter(ask, size(ask) > 1).map(ask, ask.join(' and ')).join(', ') +
    '; put the others into further containers'
    """,
)

_MOST_PER_CONTAINER = AdmissionRule(
    """
    variables.containers.all(c, !has(c.resources) || !has(c.resources.limits) ||
      c.resources.limits.all(r,
        !r.startsWith('nvidia.com/') || c.resources.limits[r] == '0' || r in variables.otherResources ||
        variables.here.exists(grant, grant[1] == r && (grant[2] == 'any' ||
          !quantity(c.resources.limits[r]).isGreaterThan(quantity(grant[2]))))))
    """,
    "a container asks for more units than its tenant may ask for in one container",
    """
    'a container of tenant ' + variables.tenant + ' may ask for at most ' +
    variables.here.filter(grant, grant[2] != 'any').map(grant, grant[2] + ' of ' + grant[1]).join(', ')
    """,
)


# --- Pools -------------------------------------------------------------------------------------------------------

_POOL_CHOSEN = AdmissionRule(
    "!variables.usesGpus || variables.pool != ''",
    f"pods that ask for GPUs must choose a pool by the nodeSelector {POOL_LABEL}",
    f"'pods that ask for GPUs must choose a pool: set the nodeSelector {POOL_LABEL} to ' + "
    "variables.pools.join(' or ')",
)

# Pods without GPUs too: an image may ask for GPUs in an environment variable that no policy can see.
_POOL_GRANTED = AdmissionRule(
    "variables.pool == '' || variables.pool in variables.pools",
    f"the nodeSelector {POOL_LABEL} names a pool that the tenant has no quota in",
    """
    'tenant ' + variables.tenant + ' has no quota in pool ' + variables.pool + '; it may use ' +
    (size(variables.pools) == 0 ? 'no pool' : variables.pools.join(' or '))
    """,
)


# --- Priority and scheduler --------------------------------------------------------------------------------------

_PRIORITY_CLASS_NAMED = AdmissionRule(
    """
    !variables.usesGpus || size(variables.priorityClasses) == 0 ||
    variables.priorityClass in variables.priorityClasses
    """,
    "pods that ask for GPUs must name one of their tenant's priority classes",
    """
    'pods that ask for GPUs must name a priority class of tenant ' + variables.tenant +
    ': set priorityClassName to ' + variables.priorityClasses.join(' or ')
    """,
)


def _no_higher_priority(plan: Plan) -> AdmissionRule:
    """Pods without GPUs too: one of a high class evicts pods with GPUs from the nodes where it fits.

    The API server resolves the class to `spec.priority` before policies run, gives pods that name no class the default
    one, and lets nobody write another number by hand (`plugin/pkg/admission/priority/admission.go`). A class that is
    not the tenant's is let through up to the priority that a pod without a class has: it gives no power over others.
    """
    default = max((priority.spec.value for priority in plan.priority_classes if priority.spec.default), default=0)
    return AdmissionRule(
        f"""
        variables.priorityClass == '' || variables.priorityClass in variables.priorityClasses ||
        (has(object.spec.priority) && object.spec.priority <= {default})
        """,
        "the pod names a priority class that is not its tenant's",
        """
        'priority class ' + variables.priorityClass + ' is not open to tenant ' + variables.tenant +
        '; pods may name ' + (size(variables.priorityClasses) == 0
          ? 'none' : variables.priorityClasses.join(' or '))
        """,
    )


# Another scheduler on the cluster may hand out GPUs by its own rules, unseen by quotas: KAI-Scheduler lends parts of a
# GPU to pods that ask for no resource at all.
def _scheduler(names: Sequence[str]) -> AdmissionRule:
    return AdmissionRule(
        rf"""
        !has(object.spec.schedulerName) || object.spec.schedulerName in {list(names)} ||
        (has(params.data.otherSchedulers) &&
          object.spec.schedulerName in params.data.otherSchedulers.split('\n'))
        """,
        f"schedulerName must be {' or '.join(names)}",
    )
