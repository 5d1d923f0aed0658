"""The admission policy `gpuplan-devices`: pods get devices by asking for resources, not by the ways around them.

The policy needs no parameters, so that one binding holds for all tenants, by the label on their namespaces; the roles
that members get cannot change a Namespace. It looks at new pods, at debug containers that are added to running ones,
and at annotations that are added later.

What no policy can see: variables in the image or from `envFrom`. A CUDA image carries `NVIDIA_VISIBLE_DEVICES=all`, and
where NVIDIA's runtime is the default one its containers see every GPU of the node even if they asked for none. The
container toolkit's `accept-nvidia-visible-devices-envvar-when-unprivileged = false` closes that, on the nodes.
Privileged containers, and `hostPath` volumes such as `/dev`, are the business of Pod Security: `baseline` and
`restricted` refuse them, `privileged` opens every GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuplan.backends.scheduling.controllers import IS_CONTROLLER
from gpuplan.backends.scheduling.fractions import ASKS_FRACTION
from gpuplan.backends.scheduling.schedulers import rules_of
from gpuplan.manifests import AdmissionRule, admission_policy
from gpuplan.planning.dra import uses_claims
from gpuplan.planning.grants import DEVICE_VARIABLES
from gpuplan.planning.plan import TENANT_LABEL, Plan

_POLICY = "gpuplan-devices"

_VARIABLES = {
    "isNew": "request.operation == 'CREATE'",
    # Debug containers may be added to a pod and never changed; they cannot have resources.
    "isDebugged": "has(request.subResource) && request.subResource == 'ephemeralcontainers'",
    "containers": """
        variables.isNew
        ? object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])
        : (variables.isDebugged && has(object.spec.ephemeralContainers) ? object.spec.ephemeralContainers : [])
        """,
    # For each container the variables it must not set. `void` and `none` take GPUs away: good for a CUDA image without.
    "deviceVariables": f"""
        variables.containers.map(c, has(c.env)
          ? c.env.filter(e, e.name == 'NVIDIA_VISIBLE_DEVICES'
              ? !(has(e.value) && e.value in ['void', 'none'])
              : e.name in {list(DEVICE_VARIABLES)}).map(e, e.name)
          : [])
        """,
    "annotations": "has(object.metadata.annotations) ? object.metadata.annotations : {}",
    "oldAnnotations": """
        !variables.isNew && has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}
        """,
    **IS_CONTROLLER,
}


# The webhook of a scheduler that hands out fractions gives their pods the variable from a ConfigMap of its own
# (`AddVisibleDevicesEnvVars` in KAI-Scheduler's `pkg/binder/common`), and NVIDIA's runtime class
# (`pkg/admission/webhook/v1alpha2/runtimeenforcement`). A tenant that may have fractions can do so by hand as well, and
# change the ConfigMap: fractions are no isolation.
_FRACTION_VARIABLES = {
    "asksFraction": ASKS_FRACTION,
    **_VARIABLES,
    "deviceVariables": f"""
        variables.containers.map(c, has(c.env)
          ? c.env.filter(e, e.name == 'NVIDIA_VISIBLE_DEVICES'
              ? !(has(e.value) && e.value in ['void', 'none']) &&
                !(variables.asksFraction && has(e.valueFrom) && has(e.valueFrom.configMapKeyRef))
              : e.name in {list(DEVICE_VARIABLES)}).map(e, e.name)
          : [])
        """,
}


def devices_policy(plan: Plan) -> dict[str, Any]:
    variables = _FRACTION_VARIABLES if plan.scheduler.has_fractions else _VARIABLES
    match = {("", "v1"): {"pods": ["CREATE", "UPDATE"], "pods/ephemeralcontainers": ["UPDATE"]}}
    return admission_policy(_POLICY, match, variables, tuple(_rules(plan)), has_parameters=False)


def devices_binding() -> dict[str, Any]:
    return tenants_binding(_POLICY)


def tenants_binding(policy: str) -> dict[str, Any]:
    """A policy without parameters, in all namespaces of tenants at once."""
    is_tenants = {"matchExpressions": [{"key": TENANT_LABEL, "operator": "Exists"}]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": policy},
        "spec": {
            "policyName": policy,
            "matchResources": {"namespaceSelector": is_tenants},
            "validationActions": ["Deny", "Audit"],
        },
    }


def _rules(plan: Plan) -> Iterator[AdmissionRule]:
    yield _NO_DEVICE_VARIABLES
    yield _NO_DEVICE_ANNOTATIONS
    yield _NO_CHOSEN_DEVICES
    if not uses_claims(plan):  # else `gpuplan-grants` judges them
        yield _NO_CLAIMS
    yield _NO_DEVICE_CLASSES
    yield _NO_NODE_NAME
    if plan.scheduler.has_fractions:
        yield _NO_IDLE_RUNTIME_CLASS_WITHOUT_FRACTION
    else:
        yield _NO_IDLE_RUNTIME_CLASS
        yield _NO_FRACTIONS
    yield from rules_of(plan.scheduler).lasting


_NO_DEVICE_VARIABLES = AdmissionRule(
    "variables.deviceVariables.all(names, size(names) == 0)",
    "environment variables that choose devices must not be set; ask for GPUs in resources.limits",
    """
    variables.deviceVariables.filter(names, size(names) > 0).map(names, names.join(' and ')).join(' and ') +
    ' must not be set: the device plugin chooses devices; ask for GPUs in resources.limits'
    """,
)

# CRI-O hands a pod's annotations to its containers (`SpecAddAnnotations` in `internal/factory/container`), and NVIDIA's
# runtime takes devices from those with this prefix before it looks at anything else (`VisibleDevices` in
# `internal/config/image/cuda_image.go`). Annotations may be added to a pod that waits for its node.
_NO_DEVICE_ANNOTATIONS = AdmissionRule(
    """
    variables.annotations.all(a, !a.startsWith('cdi.k8s.io/') ||
      (a in variables.oldAnnotations && variables.oldAnnotations[a] == variables.annotations[a]))
    """,
    "annotations cdi.k8s.io/* must not be set; ask for GPUs in resources.limits",
)

# A node agent for fractions makes NVIDIA_VISIBLE_DEVICES of `nvidia.com/container.<name>.gpus.devices`, `all` included,
# whoever wrote it (`ParseVisibleDevices` in `fractioning-manager` of kai-scheduler/kai-gpu-fractioning). The prefix is
# a setting of that agent. Schedulers write it when they bind a pod, and never at its creation.
_NO_CHOSEN_DEVICES = AdmissionRule(
    """
    variables.annotations.all(a, !a.endsWith('.gpus.devices') ||
      (a in variables.oldAnnotations && variables.oldAnnotations[a] == variables.annotations[a])) ||
    (!variables.isNew && variables.isController)
    """,
    "annotations nvidia.com/container.*.gpus.devices must not be set: the scheduler chooses devices",
)

# A claim may be of any device class, and a pod names it without saying which; no quota on resources counts it.
_NO_CLAIMS = AdmissionRule(
    "!variables.isNew || !has(object.spec.resourceClaims) || size(object.spec.resourceClaims) == 0",
    "resourceClaims are not open to tenants; ask for GPUs in resources.limits",
)

# How Kubernetes spells a device class as a resource (`ResourceDeviceClassPrefix` in `resource/v1` of kubernetes/api).
_DEVICE_CLASS = "r.startsWith('deviceclass.resource.kubernetes.io/')"
_NO_DEVICE_CLASSES = AdmissionRule(
    f"""
    variables.containers.all(c, !has(c.resources) || (
      (!has(c.resources.limits) || c.resources.limits.all(r, !{_DEVICE_CLASS})) &&
      (!has(c.resources.requests) || c.resources.requests.all(r, !{_DEVICE_CLASS}))))
    """,
    "resources of device classes are not open to tenants; ask for GPUs by their nvidia.com/ names",
)

# A pod with a node is not scheduled: nothing asks for taints or free units. Schedulers bind through `pods/binding`,
# which the roles `edit` and `admin` do not hold; DaemonSets choose nodes by affinity.
_NO_NODE_NAME = AdmissionRule(
    "!variables.isNew || !has(object.spec.nodeName) || object.spec.nodeName == ''",
    "nodeName must not be set: it bypasses the scheduler; choose a pool by nodeSelector",
)


# Under NVIDIA's runtime the variables of a CUDA image give it all GPUs. The operator's runtime classes are `nvidia`,
# `nvidia-cdi` and `nvidia-legacy`.
_IS_NO_IDLE_RUNTIME_CLASS = """
    !variables.isNew || !has(object.spec.runtimeClassName) ||
    !object.spec.runtimeClassName.startsWith('nvidia') ||
    variables.containers.exists(c, has(c.resources) && has(c.resources.limits) &&
      c.resources.limits.exists(r, r.startsWith('nvidia.com/') && c.resources.limits[r] != '0'))
    """
_NO_IDLE_RUNTIME_CLASS = AdmissionRule(
    _IS_NO_IDLE_RUNTIME_CLASS,
    "a runtimeClassName of NVIDIA is for pods that ask for GPUs in resources.limits",
)
_NO_IDLE_RUNTIME_CLASS_WITHOUT_FRACTION = AdmissionRule(
    f"\n    variables.asksFraction ||{_IS_NO_IDLE_RUNTIME_CLASS}",
    "a runtimeClassName of NVIDIA is for pods that ask for GPUs in resources.limits or for a fraction of one",
)

# Without a scheduler that knows them these do nothing: the pod would start, without a GPU.
_NO_FRACTIONS = AdmissionRule(
    "!variables.isNew || !('gpu-fraction' in variables.annotations || 'gpu-memory' in variables.annotations)",
    "annotations gpu-fraction and gpu-memory have no effect on this cluster; ask for GPUs in resources.limits",
)
