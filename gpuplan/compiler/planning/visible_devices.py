"""Whether a container may choose its GPUs by a variable, and the settings that close this way.

NVIDIA's container toolkit gives a container that it starts the GPUs that `NVIDIA_VISIBLE_DEVICES` names, and CUDA
images carry `NVIDIA_VISIBLE_DEVICES=all`. It starts all containers where its runtime is the default one, which it is
without CDI (`defaultSetAsDefault` in `cmd/nvidia-ctk-installer/container/runtime/runtime.go` of its v1.20.0), and those
of its RuntimeClasses elsewhere (`transformToolkitCtrForCDI` in `controllers/object_controls.go` of NVIDIA/gpu-operator
v26.7.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gpuplan.compiler.catalog.operators import nearest_line
from gpuplan.compiler.planning.dra import uses_claims
from gpuplan.compiler.planning.plan import Fraction, GpuOperator, Plan
from gpuplan.compiler.policy.models import Install

TOOLKIT: Final = "toolkit"
DEVICE_PLUGIN: Final = "devicePlugin"

_ENVVAR: Final = "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED"
_MOUNTS: Final = "ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS"
_IS_DEFAULT: Final = "NVIDIA_RUNTIME_SET_AS_DEFAULT"
_STRATEGY: Final = "DEVICE_LIST_STRATEGY"
_BY_VARIABLE: Final = "envvar"


def closing_environment(plan: Plan) -> Mapping[str, Mapping[str, str]]:
    """The variables by operand that close the way, none where the policy does not ask for it.

    What the operator itself sets so is not among them.
    """
    found: dict[str, dict[str, str]] = {}
    for (operand, name), value in closed_variables(plan).items():
        if operand == TOOLKIT or not (uses_claims(plan) or value == _device_lists(plan.cluster.gpu_operator)):
            found.setdefault(operand, {})[name] = value
    return found


def closed_variables(plan: Plan) -> Mapping[tuple[str, str], str]:
    """What variables of operands are where the way is closed, empty where the policy does not ask for it.

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
    cdi = _values(operator).get("cdi")
    own = cdi.get("enabled") if isinstance(cdi, Mapping) else None
    return nearest_line(operator.version).cdi["enabled"] if own is None else own is True


def _variable(operator: GpuOperator, operand: str, name: str) -> str | None:
    """What the policy's own values make of a variable; the last of a name counts, as in the operator."""
    if operator.spec.install is not Install.EXTERNAL and operand == TOOLKIT and name in operator.spec.env.toolkit:
        return operator.spec.env.toolkit[name]
    part = _values(operator).get(operand)
    listed = part.get("env") if isinstance(part, Mapping) else None
    items = [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []
    found = [str(item.get("value", "")) for item in items if item.get("name") == name]
    return found[-1] if found else None


def _values(operator: GpuOperator) -> Mapping[str, Any]:
    """The Helm values count where there is a chart."""
    return operator.spec.values if operator.spec.install is Install.HELM else {}
