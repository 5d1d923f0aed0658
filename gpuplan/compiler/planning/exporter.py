"""What the DCGM exporter of a watched cluster is told, so that its series name the pods on every kind of pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gpuplan.compiler.catalog.exporters import ExporterTrait, exporter_traits
from gpuplan.compiler.catalog.operands import operands
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, MIG_RESOURCES
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.policy.models import Collect, Install, Platform

RESOURCE_NAMES: Final = "NVIDIA_RESOURCE_NAMES"
"""The resources beside `nvidia.com/gpu` and those of MIG devices whose pods the exporter looks at, with commas.

(`iterateGPUDevices` and `toDeviceToPod` in `internal/pkg/transformation/kubernetes.go` of NVIDIA/dcgm-exporter.)
"""
VIRTUAL_GPUS: Final = "KUBERNETES_VIRTUAL_GPUS"
"""Whether the exporter names all pods on a shared GPU; without it one of them has the GPU's series."""

NAMES_ARGUMENT: Final = "--nvidia-resource-names"
"""The argument that says what `NVIDIA_RESOURCE_NAMES` says (`pkg/cmd/app.go` there)."""


def collects_health(plan: Plan) -> bool:
    """Whether the exporter collects what alerts on hardware read, and looks at pods on shared GPUs."""
    return plan.cluster.monitoring is not None and plan.cluster.monitoring.spec.collect is Collect.HEALTH


def plan_exporter_traits(plan: Plan) -> frozenset[ExporterTrait]:
    """What the cluster's exporter can do: that of the operator's release, or the one that the policy's values name."""
    operator = plan.cluster.gpu_operator
    return exporter_traits(operator.version, str(_own(plan).get("version", "")))


def unnoticed_resources(plan: Plan) -> tuple[str, ...]:
    """Resources of the plan's pools that the exporter passes over unless it is told of them."""
    found = {unit.resource for part in plan.parts for unit in part.units if unit.resource}
    return tuple(sorted(name for name in found if name != GPU_RESOURCE and not name.startswith(MIG_RESOURCES)))


def exporter_environment(plan: Plan) -> dict[str, str]:
    """The variables by which the exporter knows the pods on shared GPUs."""
    names = unnoticed_resources(plan) if collects_health(plan) else ()
    found = {RESOURCE_NAMES: ",".join(names)} if names else {}
    return found | ({VIRTUAL_GPUS: "true"} if names_every_pod(plan) else {})


def gets_environment(plan: Plan) -> bool:
    """Whether the operator hands the exporter the variables of the settings; some releases do so on OpenShift alone."""
    is_openshift = plan.cluster.spec.platform is Platform.OPENSHIFT
    reads = (read for operand in operands(plan.cluster.gpu_operator.version) for read in operand.reads)
    return any(read.key == "dcgmExporter.env" and (is_openshift or not read.when) for read in reads)


def names_by_argument(plan: Plan) -> bool:
    """Whether the policy's own Helm values name all of these resources to the exporter by an argument."""
    found = " ".join(map(str, _own(plan).get("args") or ()))
    return NAMES_ARGUMENT in found and all(name in found for name in unnoticed_resources(plan))


def names_every_pod(plan: Plan) -> bool:
    """Whether all pods on a shared GPU are named, and not one of them.

    The exporter then also says what framebuffer each pod uses, which it knows by the processes of the host and by the
    pods' UIDs. Without `hostPID` and `enablePodUID` that is zero for every pod on every GPU, whole ones too
    (`createPerProcessMetrics` there, and `pidmapper.go`). On OpenShift its SecurityContextConstraints allow no
    `hostPID` (`assets/state-dcgm-exporter/0700_scc.openshift.yaml` of NVIDIA/gpu-operator).
    """
    own = _own(plan)
    refused = {"name": VIRTUAL_GPUS, "value": "false"}
    return (
        collects_health(plan)
        and bool(unnoticed_resources(plan))
        and ExporterTrait.EVERY_POD in plan_exporter_traits(plan)
        and plan.cluster.spec.platform is not Platform.OPENSHIFT
        and plan.cluster.gpu_operator.spec.install is not Install.EXTERNAL
        and all(own.get(name, True) for name in _NEEDED)
        and refused not in (own.get("env") or ())
    )


_NEEDED: Final = ("hostPID", "enablePodUID")


def exporter_fields(plan: Plan) -> dict[str, bool]:
    """The fields of `dcgmExporter` that must be set along with the environment."""
    return dict.fromkeys(_NEEDED, True) if names_every_pod(plan) else {}


def _own(plan: Plan) -> Mapping[str, Any]:
    """What the policy's own Helm values say of the exporter."""
    operator = plan.cluster.gpu_operator.spec
    found = operator.values.get("dcgmExporter") if operator.install is Install.HELM else None
    return found if isinstance(found, Mapping) else {}
