"""Dynamic Resource Allocation: what its objects are called, and who publishes devices.

A pool's devices are published either by the device plugin, as resources, or by NVIDIA's driver for Dynamic Resource
Allocation (https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu), which is installed beside the GPU Operator. Both
on one node would each hand out the same GPUs.
"""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.catalog import Gpu, resource_suffix
from gpuplan.compiler.planning.plan import Plan, Pool, Unit
from gpuplan.compiler.policy.models import Allocation

DRA_PLUGIN_LABEL: Final = "nvidia.com/dra-kubelet-plugin"
"""The node label by which NVIDIA's guide tells the driver's kubelet plugin where to run.

https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/dra-intro-install.html
"""

DRIVER: Final = "gpu.nvidia.com"
"""The driver's name: that of its devices, and the domain of their attributes."""

DRIVER_CLASSES: Final = ("gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com")
"""The DeviceClasses that the driver's chart brings: every GPU of every pool is of one of them."""

CLASS_PREFIX: Final = "gpuplan-"
"""How the names of gpuplan's DeviceClasses and ResourceClaimTemplates begin."""

CLAIMS_QUOTA: Final = "count/resourceclaims.resource.k8s.io"
"""What a ResourceQuota calls the number of claims (`ClaimObjectCountName` in the file below)."""


def quota_key(device_class: str) -> str:
    """What a ResourceQuota calls the devices that claims ask of a class.

    (`V1ResourceByDeviceClass` in `pkg/quota/v1/evaluator/core/resource_claims.go` of kubernetes/kubernetes.)
    """
    return f"{device_class}.deviceclass.resource.k8s.io/devices"


def device_class_name(pool: Pool, unit: Unit) -> str:
    """The DeviceClass of a unit of the pool's GPU model; a namespace's ResourceClaimTemplate for it has the same name.

    Claims of a template are for one device.
    """
    return class_name(pool.gpu, unit.name)


def class_name(gpu: Gpu, unit: str) -> str:
    return f"{CLASS_PREFIX}{gpu.id.lower()}-{resource_suffix(unit)}"


def uses_claims(plan: Plan) -> bool:
    """Whether devices are had by claims. It is one way for all pools of a cluster: GPU566 holds that."""
    return any(pool.spec.allocation is Allocation.DRA for pool in plan.pools)


def device_classes(plan: Plan) -> tuple[str, ...]:
    """The names of the plan's DeviceClasses, sorted."""
    return tuple(sorted({unit.device_class for pool in plan.pools for unit in pool.units if unit.device_class}))
