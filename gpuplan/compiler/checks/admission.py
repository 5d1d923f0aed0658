"""Checks on what admission cannot stop, or stops by surprise, and on RDMA (GPU420-425, GPU466-469, GPU520-558)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gpuplan.compiler.admission.policies import known_rules, left_out, rules_of_queues
from gpuplan.compiler.base.diagnostics import Finding, Label, Severity
from gpuplan.compiler.base.wording import closest, listing
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import mistyped, name_of
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, MIG_RESOURCES
from gpuplan.compiler.planning.grants import (
    enforcements,
    gpu_resources,
    has_admission_policies,
    is_held_by_rules,
    place_of_enforcement,
    warned_namespaces,
)
from gpuplan.compiler.planning.hand_files import read
from gpuplan.compiler.planning.plan import POOL_LABEL, Plan, Pool
from gpuplan.compiler.policy.models import Cap, Enforcement, NodeLabels, Platform, PodSecurity
from gpuplan.compiler.policy.parse import is_whole

# --- Rules that are left out -------------------------------------------------------------------------------------


@check("GPU420", "rule-cannot-be-left-out")
def rule_cannot_be_left_out(plan: Plan) -> Iterator[Finding]:
    """`admission.without` names a rule that there is not, or that other rules rely on.

    ## Why
    What keeps tenants to their quotas is written on every cluster. Some rules go further, or are younger than policies
    that people have already: those are optional. A misspelt name leaves nothing out.

    ## Instead
    Write the name of an optional rule, as docs/admission-rules.md lists them, or remove the line.
    """
    known = known_rules() if plan.cluster.spec.admission.without else {}
    optional = [name for name, sentence in known.items() if sentence]
    for index, name in enumerate(plan.cluster.spec.admission.without):
        at, note = plan.cluster.at / "admission" / "without" / index, _WHERE
        if name not in known:
            message, meant = f"gpuplan has no admission rule `{name}`", closest(name, optional)
            yield mistyped(at, message, meant, "leaves nothing out", "remove it", note)
        elif name not in optional:
            message = f"the admission rule `{name}` is on every cluster"
            yield Finding(at, message, label="leaves nothing out", notes=(note,), help="remove it")


_ONLY_CAP: Final = "the queue is the only cap: `scheduler.cap: limit` has a ResourceQuota beside it"
_WHERE: Final = "docs/admission-rules.md lists the optional rules"


@check("GPU421", "rule-left-out", Severity.WARNING)
def rule_left_out(plan: Plan) -> Iterator[Finding]:
    """An optional admission rule is left out, so that tenants may do what it refuses.

    ## Why
    `admission.without` keeps a platform as it was under an earlier gpuplan, or lets tenants do what a rule is too
    strict about. What is possible then should be said wherever the policy is read.

    ## Instead
    Remove the name once no tenant needs it. Where it stays, ignore this finding with a comment that says why.
    """
    without = {rule.name: rule for rule in left_out(plan)}
    for index, name in enumerate(plan.cluster.spec.admission.without):
        if name in without:
            yield Finding(
                plan.cluster.at / "admission" / "without" / index,
                f"without the admission rule `{name}` {without[name].optional}",
                label="left out",
                notes=(
                    f"it says: {without[name].message}",
                    *((_ONLY_CAP,) if plan.cluster.cap is Cap.QUEUE and name in rules_of_queues() else ()),
                ),
                help=f"remove `{name}`, or ignore this finding with the reason",
            )


# --- Admission that warns ----------------------------------------------------------------------------------------


@check("GPU885", "admission-only-warns", Severity.NOTE)
def admission_only_warns(plan: Plan) -> Iterator[Finding]:
    """In some namespaces of tenants, admission accepts what its rules refuse, and warns of it.

    ## Why
    `enforcement: warn` is for work that runs already: nobody's pods are refused at their next start. The API server
    sends a warning to whoever makes an object that breaks a rule, `kubectl` prints it, and the audit log has it as
    `validation.policy.admission.k8s.io/validation_failure`. Pods of Deployments and Jobs are made by controllers, whose
    warnings nobody reads.

    As long as it lasts, nothing keeps pods there to their tenant's pools, priority classes and units for each
    container. A pod can reach GPUs that it did not ask for. ResourceQuotas and queues count as ever. A Namespace keeps
    the level of Pod Security that it has; gpuplan writes the level of the policy as a warning.

    ## Instead
    Change what `gpuplan drift` names on a new dump, or what the audit log has. Then write `enforcement: deny`, by
    namespace, by tenant, and at last in the Cluster; docs/how-to/adopt-an-existing-cluster.md has the steps.
    """
    warned = warned_namespaces(plan)
    if not warned:
        return
    names = [name for _, name in warned]
    where = f"namespace{'s' if len(names) > 1 else ''} {listing(names, 8)}"
    where = where if Enforcement.DENY in enforcements(plan) else "all namespaces of tenants"
    what = "admission" if has_admission_policies(plan.cluster) else "Pod Security"
    at, *others = dict.fromkeys(place_of_enforcement(plan.cluster, tenant, name) for tenant, name in warned)
    yield Finding(
        at,
        f"{what} only warns in {where}",
        label="nothing is refused there",
        related=tuple(Label(other, "and there") for other in others[:3]),
        notes=("there, no rule keeps pods to their tenant's pools, priority classes and GPUs",),
        help="write `deny` there when `gpuplan drift` names no work that will be refused",
    )


@check("GPU424", "namespace-without-own-enforcement")
def namespace_without_own_enforcement(plan: Plan) -> Iterator[Finding]:
    """A tenant's `admission.namespaces` names a namespace that cannot have an enforcement of its own.

    ## Why
    A namespace of nobody, or of another tenant, is held to that tenant's enforcement: the line does nothing. Where a
    tenant has `labelledNamespaces`, its namespaces are selected by its label, and there may be any number of them. No
    selector takes some namespaces out of these and leaves the others in, so that all have the same enforcement.

    ## Instead
    Name one of the tenant's namespaces. Of a tenant with `labelledNamespaces`, write `enforcement` for all.
    """
    for tenant in plan.tenants:
        own = tenant.spec.admission
        usual = own.enforcement or plan.cluster.spec.admission.enforcement
        for namespace, enforcement in own.namespaces.items():
            at = (tenant.at / "admission" / "namespaces" / namespace).key
            if namespace not in tenant.spec.namespaces:
                yield Finding(
                    at,
                    f"namespace `{namespace}` is not one of tenant `{tenant.name}`",
                    label="decides nothing",
                    related=(Label((tenant.at / "namespaces").key, f"`{tenant.name}` has these"),),
                    help="write one of the tenant's namespaces, or remove the line",
                )
            elif tenant.spec.labelled_namespaces and enforcement is not usual:
                yield Finding(
                    at,
                    f"namespace `{namespace}` of tenant `{tenant.name}` cannot be on `{enforcement}` alone",
                    label=f"the others are on `{usual}`",
                    related=(Label(tenant.at / "labelledNamespaces", "any number of others, by their label"),),
                    help=f"remove the line, and write `enforcement: {enforcement}` beside `namespaces` for all of them",
                )


# --- Nodes that keep nobody off ----------------------------------------------------------------------------------


@check("GPU425", "pool-without-taint", Severity.NOTE)
def pool_without_taint(plan: Plan) -> Iterator[Finding]:
    """gpuplan sets no taint on nodes of a pool, so that pods without GPUs of any namespace may fill them.

    ## Why
    Quotas and admission rules hold pods that ask for GPUs. Any other pod goes wherever no taint keeps it off, from
    namespaces of no tenant, too; one that asks for all CPUs of a node keeps its GPUs idle. With a taint, tenants' pods
    come to a pool by a grant alone.

    `taintPools: true` gives a taint to each pool that has none which keeps pods off (`PreferNoSchedule` does not). Node
    Feature Discovery puts it on the nodes. With `nodeLabels: external` gpuplan sets no taints at all:
    `partitions/node-groups.yaml` says which ones a node needs, and the program that makes the nodes sets them. The same
    applies to `nodeLabels: node`, and GPU611 lists the taints.

    ## Instead
    Write `taintPools: true`; before the merge, `gpuplan diff --pods` lists the pods that do not tolerate the taint.
    Where others set taints, have them do so, and ignore this finding with the reason.
    """
    granted = {quota.pool.name for tenant in plan.tenants for quota in tenant.quotas}
    pools = [pool for pool in plan.pools if pool.name in granted]
    untainted = [pool for pool in pools if not pool.barrier and is_whole(pool.at / "taints")]
    how = plan.cluster.spec.node_labels
    if untainted:
        yield Finding(
            plan.cluster.at / "taintPools",
            f"pods without GPUs of any namespace may fill the nodes of {_named(untainted)}",
            label="no taint keeps them off",
            related=tuple(Label(pool.at / "taints", f"nothing keeps pods off `{pool.name}`") for pool in untainted[:3]),
            help="write `taintPools: true`" + ("" if how is NodeLabels.NFD else f", and {_tainting(untainted[0])}"),
        )
    elif pools and how is NodeLabels.EXTERNAL:
        yield Finding(
            plan.cluster.at / "nodeLabels",
            f"gpuplan sets no taints on the nodes of {_named(pools)}",
            label="the program that makes the nodes sets them",
            notes=("without them pods without GPUs of any namespace may fill the nodes",),
            help=f"{_tainting(pools[0])}, and ignore this finding with the reason",
        )


def _named(pools: Sequence[Pool]) -> str:
    return f"pool{'s' if len(pools) > 1 else ''} {listing([pool.name for pool in pools])}"


def _tainting(pool: Pool) -> str:
    """Return what to type for one pool, with its own taint or the usual one."""
    taint = next(iter(pool.barrier), None)
    text = f"{taint.key}={taint.value}:{taint.effect.value}" if taint else f"{GPU_RESOURCE}=present:NoSchedule"
    command = f"kubectl taint nodes -l {POOL_LABEL}={pool.name} {text}"
    return f"set what `partitions/node-groups.yaml` says, by node groups or as in `{command}`"


# --- What policies do not see ------------------------------------------------------------------------------------


@check("GPU520", "privileged-tenant", Severity.WARNING)
def privileged_tenant(plan: Plan) -> Iterator[Finding]:
    """A tenant's pods may be privileged, so that no quota and no policy keeps them from a GPU.

    ## Why
    A privileged container sees every device of its node, whatever it asked for; so does one that mounts `/dev` from the
    node, which the level `privileged` allows too. Such pods use the GPUs of all tenants on the nodes where they run,
    and can change how those are partitioned. With `external`, labels of others on the namespaces decide it, or the
    default of the API server, which no policy tells.

    ## Instead
    Leave `podSecurity` at `baseline`, or write `restricted`. Pods that need no more than RDMA, and with it the
    capability IPC_LOCK, need no `privileged`: name their network resources in `allow.rdma`. Give the few pods that need
    more a namespace of their own, run by the platform team.
    """
    fact = "a privileged container sees all devices of its node, whatever it asked for"
    way = "write `podSecurity: baseline`, with network resources in `rdma` where pods need RDMA"
    for tenant in plan.tenants:
        if tenant.spec.allow.pod_security is PodSecurity.PRIVILEGED and tenant.has_work:
            yield Finding(
                tenant.at / "allow" / "podSecurity",
                f"privileged pods of tenant `{tenant.name}` reach every GPU",
                label="no quota holds for them",
                notes=(fact,),
                help=way,
            )
    # Whoever writes it does so for all tenants of an import.
    left = [one for one in plan.tenants if one.spec.allow.pod_security is PodSecurity.EXTERNAL and one.has_work]
    if left:
        yield Finding(
            left[0].at / "allow" / "podSecurity",
            f"no policy keeps privileged pods of {listing([tenant.name for tenant in left])} from any GPU",
            label="others decide whether pods may be privileged",
            related=tuple(Label(one.at / "allow" / "podSecurity", f"so for `{one.name}`") for one in left[1:3]),
            notes=(fact,),
            help=way,
        )


@check("GPU521", "gpus-without-class", Severity.WARNING)
def gpus_without_class(plan: Plan) -> Iterator[Finding]:
    """On plain Kubernetes, a tenant uses GPUs but may name no priority class, so that others' pods evict its own.

    ## Why
    Pods without a class have the default class's priority, or 0. kube-scheduler evicts by priority alone and knows no
    tenants: where a pod of a higher class does not fit, it takes the place of one without, however far the tenant of
    that one is within its guarantee.

    ## Instead
    Name the classes that the tenant's pods may have in `priorityClasses`.
    """
    if plan.scheduler.reclaims:
        return
    without = max((priority.spec.value for priority in plan.priority_classes if priority.spec.default), default=0)
    evicting = [each for each in plan.priority_classes if each.spec.preempts and each.spec.value > without]
    evicting.sort(key=lambda priority: priority.spec.value)
    for tenant in plan.tenants if evicting else ():
        uses_gpus = tenant.has_work and tenant.quotas
        if uses_gpus and not tenant.priority_classes and tenant.name not in plan.broken.incomplete_tenants:
            yield Finding(
                name_of(tenant.at),
                f"pods of tenant `{tenant.name}` can be evicted by pods of {listing([each.name for each in evicting])}",
                label="may name no priority class",
                related=tuple(
                    Label(each.at / "value", f"evicts any lower value than {each.spec.value}") for each in evicting
                ),
                notes=(f"pods that name no class have the priority {without}",),
                help=f"add `priorityClasses: [{evicting[0].name}]`",
            )


@check("GPU522", "default-class-not-in-policy")
def default_class_not_in_policy(plan: Plan) -> Iterator[Finding]:
    """A hand-written PriorityClass is the default, so that admission refuses tenants' pods that name no class.

    ## Why
    The API server gives every pod without a class the default one before policies judge it. A policy cannot tell that
    from a pod that names the class itself, and lets tenants name no class above their own.

    ## Instead
    Write the class as a PriorityClass document with `default: true`: tenants' pods may then have its value.
    """
    has_default = any(written.spec.default for written in plan.priority_classes)
    is_judged = plan.tenants and has_admission_policies(plan.cluster) and not has_default
    for written in read(plan).of_kind("PriorityClass") if is_judged else ():
        value = written.body.get("value")
        if written.body.get("globalDefault") is True and isinstance(value, int) and value > 0:
            yield Finding(
                written.place("globalDefault"),
                f"pods of tenants that name no class get `{written.name}` and are refused",
                label=f"raises them from 0 to {value}",
                notes=("tenants' pods may have the classes of their tenant, or none that gives priority",),
                severity=None if Enforcement.DENY in enforcements(plan) else Severity.WARNING,
                help=f"write a PriorityClass document `{written.name}` with `default: true` in the policy",
            )


@check("GPU466", "rdma-needs-admission-policies")
def rdma_needs_admission_policies(plan: Plan) -> Iterator[Finding]:
    """A tenant may use RDMA on a cluster whose API server cannot hold its pods to anything else.

    ## Why
    RDMA needs the capability IPC_LOCK, and Pod Security knows no level with it but `privileged`, which forbids nothing
    and opens every GPU of a node. So gpuplan gives the tenant's namespaces that level, and an admission policy holds
    their pods to all else of `baseline`. Kubernetes has such policies from 1.30 on.

    ## Instead
    Upgrade the cluster to 1.30 or later, or remove `rdma`.
    """
    for tenant in plan.tenants:
        if is_held_by_rules(tenant) and not has_admission_policies(plan.cluster):
            yield Finding(
                (tenant.at / "allow" / "rdma").key,
                f"Kubernetes {plan.cluster.spec.kubernetes} cannot let pods of tenant `{tenant.name}` use RDMA alone",
                label="needs the level `privileged`, and rules in its place",
                related=(Label(plan.cluster.at / "kubernetes", "admission policies came with 1.30"),),
                help="upgrade the cluster to 1.30 or later, or remove `rdma`",
            )


@check("GPU467", "rdma-beside-restricted")
def rdma_beside_restricted(plan: Plan) -> Iterator[Finding]:
    """A tenant may use RDMA and is held to a level of Pod Security that refuses it.

    ## Why
    The level `restricted` lets pods add no capability but NET_BIND_SERVICE. `rdma` gives them IPC_LOCK, and holds them
    to all else of `baseline`; gpuplan has no rules for `restricted`.

    ## Instead
    Write `podSecurity: baseline`, or give the pods with RDMA a tenant of their own.
    """
    for tenant in plan.tenants:
        if tenant.spec.allow.rdma and tenant.spec.allow.pod_security is PodSecurity.RESTRICTED:
            yield Finding(
                tenant.at / "allow" / "podSecurity",
                f"pods of tenant `{tenant.name}` cannot use RDMA at the level `restricted`",
                label="refuses the capability IPC_LOCK",
                related=(Label((tenant.at / "allow" / "rdma").key, "needs it"),),
                help="write `podSecurity: baseline`, or remove `rdma`",
            )


@check("GPU468", "not-a-network-resource")
def not_a_network_resource(plan: Plan) -> Iterator[Finding]:
    """A tenant is granted as a network card what is none.

    ## Why
    What `rdma` names is for network cards: admission does not take it for a GPU, no quota caps it, and Kueue does not
    count it, nor any resource whose name begins with it.

    Names with `nvidia.com/` belong to GPUs and their connections. `gpu` and `mig-*` are GPUs, partitions and shares.
    `pgpu`, `nvswitch` and names in capitals come from device plugins for virtual machines. GPUs read each other's
    memory by `imex-channel`. Names that you give to cards in NVIDIA's network operator, such as `nvidia.com/hostdev`,
    are an exception.

    The kubelet accepts no name of a device plugin with `kubernetes.io/` in it, or with `requests.` at its beginning
    (`IsExtendedResourceName` in `pkg/apis/core/v1/helper/helpers.go` of kubernetes/kubernetes). Keys of quotas begin
    with `requests.`, so a quota would count another resource.

    ## Instead
    Name the resource of the network's device plugin, such as `rdma/hca_shared_devices_a`. GPUs are granted by `quotas`.
    """
    gpus = gpu_resources(plan)
    for tenant in plan.tenants:
        for index, resource in enumerate(tenant.spec.allow.rdma):
            if flaw := _flaw(resource, gpus):
                yield Finding(
                    tenant.at / "allow" / "rdma" / index,
                    f"`{resource}` is no network resource",
                    label=flaw,
                    help="name the resource of the network's device plugin, and grant GPUs by `quotas`",
                )


_RESERVED: Final = "kubernetes.io/"
_OF_QUOTAS: Final = "requests."
_DEVICES: Final = (
    "amd.com/gpu",
    GPU_RESOURCE,
    "nvidia.com/imex-channel",
    MIG_RESOURCES,
    "nvidia.com/nvswitch",
    "nvidia.com/pgpu",
)
"""The beginnings of names that device plugins of NVIDIA and AMD give to GPUs, their parts and what connects them."""


def _flaw(resource: str, gpus: Iterable[str]) -> str:
    """Return why a name is that of no network card, or an empty text.

    Names in capitals are boards and their shares for virtual machines (`getDeviceName` and `formatDeviceName` in
    `pkg/device_plugin/device_plugin.go` of NVIDIA/kubevirt-gpu-device-plugin v1.6.0 and NVIDIA/sandbox-device-plugin
    v0.0.5).
    """
    if _RESERVED in resource:
        return "Kubernetes has this domain for itself"
    if resource.startswith(_OF_QUOTAS):
        return "how quotas begin"
    if any(name.startswith(resource) or resource.startswith(name) for name in (*gpus, *_DEVICES)):
        return "GPUs, or what connects them, are asked for by it"
    domain, _, name = resource.partition("/")
    is_of_virtual_machines = domain == "nvidia.com" and name.isupper()
    return "how GPUs for virtual machines are called" if is_of_virtual_machines else ""


@check("GPU469", "rdma-needs-a-security-context-constraint", Severity.NOTE)
def rdma_needs_a_security_context_constraint(plan: Plan) -> Iterator[Finding]:
    """On OpenShift a tenant's pods may use RDMA as far as gpuplan has a say, and need the cluster's word as well.

    ## Why
    OpenShift also holds pods to a SecurityContextConstraints. The one that everybody has, `restricted-v2`, refuses
    IPC_LOCK, and gpuplan writes none: its own would have to fit what the cluster's owner allows.

    ## Instead
    Have a SecurityContextConstraints with IPC_LOCK among its `allowedCapabilities`, give the tenant's groups or service
    accounts the right to `use` it, and ignore the note.
    """
    for tenant in plan.tenants:
        if plan.cluster.spec.platform is Platform.OPENSHIFT and tenant.spec.allow.rdma and tenant.spec.namespaces:
            yield Finding(
                (tenant.at / "allow" / "rdma").key,
                f"pods of tenant `{tenant.name}` with IPC_LOCK also need a SecurityContextConstraints that allows it",
                label="gpuplan writes none",
                help="write one with `allowedCapabilities: [IPC_LOCK]`, and ignore the note",
            )
