"""The GPU Operator's parts on a cluster: drivers, variables of operands, the DCGM exporter, feature discovery.

NVIDIA's container toolkit gives a container that it starts the GPUs that `NVIDIA_VISIBLE_DEVICES` names, and CUDA
images carry `NVIDIA_VISIBLE_DEVICES=all`. It starts all containers if its runtime is the default one, which it is
without CDI (`defaultSetAsDefault` in `cmd/nvidia-ctk-installer/container/runtime/runtime.go` of its v1.20.0), and else
those of its RuntimeClasses (`transformToolkitCtrForCDI` in `controllers/object_controls.go` of NVIDIA/gpu-operator
v26.7.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.plain import mappings, section, value_of
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog.exporters import ExporterTrait, exporter_traits
from gpuplan.compiler.catalog.openshift import UPSTREAM_RULES, nfd_operator
from gpuplan.compiler.catalog.operands import operands
from gpuplan.compiler.catalog.operators import default_driver, nearest_line
from gpuplan.compiler.manifests.provenance import Routes, chosen, copied
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, MIG_RESOURCES
from gpuplan.compiler.planning.dra import uses_claims
from gpuplan.compiler.planning.plan import Cluster, Fraction, GpuOperator, Plan, Pool
from gpuplan.compiler.planning.sync_names import fit
from gpuplan.compiler.policy.models import Collect, Install, KernelModules, NodeLabels, Platform


class DriverGroup(NamedTuple):
    """Nodes that an NVIDIADriver is for: those of a pool, or with ``pool`` None all that no other one selects."""

    name: str
    pool: Pool | None
    version: str
    kernel_modules: str


_NAME: Final = "gpuplan"


def are_drivers_by_pool(plan: Plan) -> bool:
    """Whether NVIDIADrivers say which driver a node has; the ClusterPolicy's driver is then read by nobody."""
    return installs_drivers(plan.cluster.gpu_operator) and any(pool.spec.driver for pool in plan.pools)


def installs_drivers(operator: GpuOperator) -> bool:
    """Whether the operator installs drivers as gpuplan says."""
    return operator.spec.driver.enabled and operator.spec.install is not Install.EXTERNAL


def driver_groups(plan: Plan) -> tuple[DriverGroup, ...]:
    """Return a group for each pool with a driver of its own and one for the rest, or none if no pool has a driver."""
    if not are_drivers_by_pool(plan):
        return ()
    version, usual = _version(plan), kernel_modules(plan.cluster.gpu_operator)
    groups = []
    for pool in plan.pools:
        if driver := pool.spec.driver:
            modules = driver.kernel_modules.value if driver.kernel_modules else usual
            # The operator writes the name as the value of a node label, and labels no node if it is too long
            # (`nvidia.com/gpu-operator.driver.owner`, in `internal/nvidiadriver/nvidiadriver.go` of v26.7.0).
            groups.append(DriverGroup(fit(f"{_NAME}-{pool.name}"), pool, driver.version or version, modules))
    return (*groups, DriverGroup(_NAME, None, version, usual))


def has_default_driver(operator: GpuOperator) -> bool:
    """Whether an NVIDIADriver can be for all nodes that no other one selects."""
    return nearest_line(operator.version).has_default_driver


WORKLOAD_LABEL: Final = "nvidia.com/gpu.workload.config"
FOR_CONTAINERS: Final = "container"
FOR_MACHINES: Final = ("vm-passthrough", "vm-vgpu")


def default_workload(settings: object) -> str:
    """Return the workload of nodes without the label, or with an unknown value there, by a ClusterPolicy or by values.

    Nodes for virtual machines get no device plugin for containers, no MIG manager and no GPU feature discovery
    (`getWorkloadConfig` and `gpuStateLabels` in `controllers/state_manager.go` of NVIDIA/gpu-operator v26.7.0).
    """
    sandboxes = section(settings, "sandboxWorkloads")
    stated = sandboxes.get("defaultWorkload") if sandboxes.get("enabled") is True else None
    return str(stated) if stated in FOR_MACHINES else FOR_CONTAINERS


def group_of(plan: Plan, pool: Pool | None) -> str:
    """Return the name of the NVIDIADriver for nodes of a pool, or of no pool. It is empty if there is none."""
    found = {group.pool.name if group.pool else "": group.name for group in driver_groups(plan)}
    return found.get(pool.name if pool else "", found.get("", ""))


def kernel_modules(operator: GpuOperator) -> str:
    """Return the kernel modules of nodes whose pool does not choose any, from the values, which may hold any text."""
    stated = value_of(operator.spec.values, ("driver", "kernelModuleType"))
    return str(stated) if stated else KernelModules.AUTO.value


def kernel_modules_at(operator: GpuOperator) -> Origin:
    """Return the place of the kernel modules in the values."""
    return operator.at / "values" / "driver" / "kernelModuleType"


def stated_driver(plan: Plan, pool: Pool) -> tuple[str | None, Origin]:
    """Return the driver version of a pool's nodes and its place: the pool's own, or the cluster's."""
    if pool.spec.driver is not None and pool.spec.driver.version:
        return pool.spec.driver.version, pool.at / "driver" / "version"
    return plan.cluster.gpu_operator.spec.driver.version, plan.cluster.gpu_operator.at / "driver" / "version"


def _version(plan: Plan) -> str:
    """Return the cluster's version, else the release's default. It is empty if the default is not known."""
    operator = plan.cluster.gpu_operator
    return operator.spec.driver.version or default_driver(operator.version)


def operand_environment(plan: Plan) -> Mapping[str, Mapping[str, str]]:
    """Return the variables by operand: those of `gpuOperator.env`, under those that keep images from choosing GPUs.

    There are none with `external`: a list belongs to the ClusterPolicy's owner as a whole.
    """
    operator = plan.cluster.gpu_operator
    stated = {} if operator.spec.install is Install.EXTERNAL else stated_environment(operator)
    closing = closing_environment(plan)
    operands = dict.fromkeys((*stated, *closing))
    return {operand: {**stated.get(operand, {}), **closing.get(operand, {})} for operand in operands}


def stated_environment(operator: GpuOperator) -> Mapping[str, Mapping[str, str]]:
    """Return the variables of `gpuOperator.env` by operand. Operands without a variable are left out."""
    env = operator.spec.env
    return {key: found for key, found in ((TOOLKIT, env.toolkit), (DEVICE_PLUGIN, env.device_plugin)) if found}


def variable_routes(plan: Plan, operand: str, name: str) -> Routes:
    """Yield the links of a variable. Its name is a key of the policy, and its value is the value there."""
    operator = plan.cluster.gpu_operator
    if name in closing_environment(plan).get(operand, {}):
        cdi = operator.at / "values" / "cdi" / "enabled"
        yield (), chosen(operator.at / "closeVisibleDevices", operator.at / "version", cdi)
        return
    place = operator.at / "env" / operand / name
    yield ("name",), chosen(place)
    yield ("value",), copied(place)


TOOLKIT: Final = "toolkit"
DEVICE_PLUGIN: Final = "devicePlugin"

_ENVVAR: Final = "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED"
_MOUNTS: Final = "ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS"
_IS_DEFAULT: Final = "NVIDIA_RUNTIME_SET_AS_DEFAULT"
_STRATEGY: Final = "DEVICE_LIST_STRATEGY"
_BY_VARIABLE: Final = "envvar"


def closing_environment(plan: Plan) -> Mapping[str, Mapping[str, str]]:
    """Return the variables by operand that close the way, or none if the policy does not ask for it.

    What the operator itself sets so is not among them.
    """
    found: dict[str, dict[str, str]] = {}
    for (operand, name), value in closed_variables(plan).items():
        if operand == TOOLKIT or not (uses_claims(plan) or value == _device_lists(plan.cluster.gpu_operator)):
            found.setdefault(operand, {})[name] = value
    return found


def closed_variables(plan: Plan) -> Mapping[tuple[str, str], str]:
    """Return the variables of operands that close the way, or none if the policy does not ask for it.

    The toolkit then reads the variable of privileged containers alone (`VisibleDevices` in
    `internal/config/image/cuda_image.go` of v1.20.0; before v1.18 `getDevices` in
    `cmd/nvidia-container-runtime-hook/container_config.go`). A device plugin that tells it of devices by the variable
    must use mounts in its place. One that names CDI devices alone stays as it is: the kubelet hands these to the
    container runtime, and with mounts a pod without NVIDIA's RuntimeClass would get no GPU (`getAllocateResponse` in
    `internal/plugin/server.go` of NVIDIA/k8s-device-plugin v0.20.0).
    """
    operator = plan.cluster.gpu_operator
    if not operator.spec.close_visible_devices or not is_told(operator):
        return {}
    lists = _device_lists(operator)
    mounts = {(TOOLKIT, _MOUNTS): "true"} if _BY_VARIABLE in lists else {}
    strategy = lists.replace(_BY_VARIABLE, "volume-mounts")
    return {(TOOLKIT, _ENVVAR): "false", **mounts, (DEVICE_PLUGIN, _STRATEGY): strategy}


def is_told(operator: GpuOperator) -> bool:
    """Whether the policy tells a toolkit anything: the operator installs it, and gpuplan writes all that it is told."""
    toolkit = _values(operator).get(TOOLKIT)
    is_off = isinstance(toolkit, Mapping) and toolkit.get("enabled") is False
    return operator.spec.install is not Install.EXTERNAL and not is_off


def starts_all_containers(operator: GpuOperator) -> bool:
    """Whether NVIDIA's runtime is the default one."""
    default = _variable(operator, TOOLKIT, _IS_DEFAULT)
    return not _has_cdi(operator) or nearest_line(operator.version).version < _NATIVE_CDI or default == "true"


_NATIVE_CDI: Final = (25, 10)
"""The line from which on the container runtime itself reads CDI devices, and needs no runtime of NVIDIA's."""


def is_closed(plan: Plan) -> bool:
    """Whether the way is closed, by the policy's field or by a value of its own."""
    operator = plan.cluster.gpu_operator
    return bool(closing_environment(plan)) or _variable(operator, TOOLKIT, _ENVVAR) == "false"


def has_fractions(plan: Plan) -> bool:
    """Whether some pool hands out fractions, which the scheduler tells the toolkit of by the variable.

    (`AddGPUSharingEnvVars` in `pkg/binder/common/gpu_access.go` of NVIDIA/KAI-Scheduler v0.13.0.)
    """
    return any(isinstance(part.sharing, Fraction) for part in plan.parts)


def _device_lists(operator: GpuOperator) -> str:
    return nearest_line(operator.version).device_lists["with_cdi" if _has_cdi(operator) else "without"]


def _has_cdi(operator: GpuOperator) -> bool:
    own = value_of(_values(operator), ("cdi", "enabled"))
    return nearest_line(operator.version).cdi["enabled"] if own is None else own is True


def _variable(operator: GpuOperator, operand: str, name: str) -> str | None:
    """Return the value of a variable by the policy's own settings. The last of a name counts, as in the operator."""
    if operator.spec.install is not Install.EXTERNAL and operand == TOOLKIT and name in operator.spec.env.toolkit:
        return operator.spec.env.toolkit[name]
    listed = mappings(value_of(_values(operator), (operand, "env")))
    found = [str(item.get("value", "")) for item in listed if item.get("name") == name]
    return found[-1] if found else None


def _values(operator: GpuOperator) -> Mapping[str, Any]:
    """Return the Helm values, or none if no chart is installed."""
    return operator.spec.values if operator.spec.install is Install.HELM else {}


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
    """Return the traits of the cluster's exporter, by the operator's release or the version in the policy's values."""
    operator = plan.cluster.gpu_operator
    return exporter_traits(operator.version, str(_exporter_values(plan).get("version", "")))


def unnoticed_resources(plan: Plan) -> tuple[str, ...]:
    """Return the resources of the plan's pools that the exporter ignores unless its settings name them."""
    found = {unit.resource for part in plan.parts for unit in part.units if unit.resource}
    return tuple(sorted(name for name in found if name != GPU_RESOURCE and not name.startswith(MIG_RESOURCES)))


def exporter_environment(plan: Plan) -> dict[str, str]:
    """Return the variables by which the exporter knows the pods on shared GPUs."""
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
    found = " ".join(map(str, _exporter_values(plan).get("args") or ()))
    return NAMES_ARGUMENT in found and all(name in found for name in unnoticed_resources(plan))


def names_every_pod(plan: Plan) -> bool:
    """Whether all pods on a shared GPU are named, and not one of them.

    The exporter then also says what framebuffer each pod uses, which it knows by the processes of the host and by the
    pods' UIDs. Without `hostPID` and `enablePodUID` that is zero for every pod on every GPU, whole ones too
    (`createPerProcessMetrics` there, and `pidmapper.go`). On OpenShift its SecurityContextConstraints allow no
    `hostPID` (`assets/state-dcgm-exporter/0700_scc.openshift.yaml` of NVIDIA/gpu-operator).
    """
    own = _exporter_values(plan)
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
    """Return the fields of `dcgmExporter` that must be set along with the environment."""
    return dict.fromkeys(_NEEDED, True) if names_every_pod(plan) else {}


def _exporter_values(plan: Plan) -> Mapping[str, Any]:
    """Return the policy's own Helm values of the exporter."""
    return section(_values(plan.cluster.gpu_operator), "dcgmExporter")


def writes_nfd(cluster: Cluster) -> bool:
    """Whether gpuplan configures NFD: in the chart's values, or by OLM."""
    return cluster.gpu_operator.spec.nfd and cluster.gpu_operator.spec.install is not Install.EXTERNAL


def has_openshifts_nfd(cluster: Cluster) -> bool:
    """Whether NFD is that of OpenShift's operator: on OpenShift, unless the GPU Operator's chart brings its own."""
    is_charts = cluster.gpu_operator.spec.install is Install.HELM and cluster.gpu_operator.spec.nfd
    return cluster.spec.platform is Platform.OPENSHIFT and not is_charts


def matches_boards(cluster: Cluster, pool: Pool) -> bool:
    """Whether the pool's rules label nodes with a board of its model alone."""
    return (cluster.spec.match_boards or bool(pool.nodes.boards)) and cluster.spec.node_labels is NodeLabels.NFD


def boards_of(plan: Plan, pool: Pool) -> frozenset[str]:
    """Return the PCI ids of which a node of the pool has one, or none if rules accept any board."""
    return frozenset(device.spelt for device in pool.gpu.pci if matches_boards(plan.cluster, pool))


def rules_group(cluster: Cluster) -> str:
    """Return the API group of the NodeFeatureRules that the cluster's NFD reads."""
    return nfd_operator(cluster.spec.kubernetes).rules_group if has_openshifts_nfd(cluster) else UPSTREAM_RULES
