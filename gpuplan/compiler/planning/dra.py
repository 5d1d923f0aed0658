"""Dynamic Resource Allocation: the names of its objects, and the partitions that can be counted on.

A pool's devices are published either by the device plugin, as resources, or by NVIDIA's driver for Dynamic Resource
Allocation (https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu), which is installed beside the GPU Operator. Both
on one node would each hand out the same GPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import ceil
from typing import Final

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog import Gpu, resource_suffix
from gpuplan.compiler.planning.placement.blocking import Blockade, find_blockade
from gpuplan.compiler.planning.placement.placing import fits
from gpuplan.compiler.planning.plan import Amount, DynamicMig, Plan, Pool, Quota, Tenant, Unit
from gpuplan.compiler.policy.models import Allocation, Cap

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


CountOf = Callable[[Quota], Amount | None]
"""What is counted of a quota; None where it has no bound."""


class Promise(NamedTuple):
    """Guarantees on a unit of which only so many are ``certain``: ``blockades`` leave no place for one more."""

    pool: Pool
    unit: Unit
    quotas: tuple[tuple[Tenant, Quota], ...]
    guaranteed: int
    certain: int
    blockades: tuple[Blockade, ...]


def dynamic_pools(plan: Plan) -> tuple[Pool, ...]:
    """Pools, or parts of them, whose partitions are made on demand."""
    return tuple(part for part in plan.parts if isinstance(part.sharing, DynamicMig))


def guarantee_of(quota: Quota) -> Amount:
    return quota.guaranteed


def cap_in(plan: Plan) -> CountOf:
    """What the tenant of a quota may use at most: its caps are what it is granted beyond its guarantee, too."""
    if plan.cluster.cap is Cap.GUARANTEED:
        return guarantee_of
    return lambda quota: quota.limit


def certain_units(plan: Plan, pool: Pool, away: int = 0) -> Mapping[str, int]:
    """How many of each unit are had in any order, beside all that tenants may use of the others.

    ``away`` is how many of the pool's GPUs are not there.
    """
    used, gpus = _in_use(plan, pool, cap_in(plan)), max(pool.gpu_count - away, 0)
    return {unit.name: _certain(pool, unit, used, unit.capacity, gpus=gpus) for unit in pool.units}


def broken_promises(plan: Plan, count: CountOf) -> Iterator[Promise]:
    """The units whose guarantees may find no place when all tenants use as much as is counted."""
    for pool in dynamic_pools(plan):
        used, promised = _in_use(plan, pool, count), _in_use(plan, pool, guarantee_of)
        for unit in pool.units:
            guaranteed, others = promised[unit.name], _beyond_guarantee(plan, pool, unit, count)
            if not guaranteed or guaranteed > unit.capacity:  # more than there is, which is reported for itself
                continue
            certain = _certain(pool, unit, used, guaranteed, others)
            if certain < guaranteed:
                blockades = _blockade(pool, unit, used, certain + others) or ()
                yield Promise(pool, unit, tuple(_quotas(plan, pool, unit.name)), guaranteed, certain, blockades)


def static_instances(plan: Plan, pool: Pool) -> Mapping[str, int]:
    """Instances of one layout for all GPUs of a pool that keep its guarantees; none where no one layout does."""
    promised = _in_use(plan, pool, guarantee_of)
    needed = {name: ceil(amount / pool.gpu_count) for name, amount in promised.items() if amount and pool.gpu_count}
    return needed if fits(pool.gpu, needed) else {}


def _certain(
    pool: Pool, unit: Unit, used: Mapping[str, int], most: int, others: int = 0, gpus: int | None = None
) -> int:
    """The most of a unit that are had beside what else is in use, ``others`` of the same unit among it."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if _blockade(pool, unit, used, middle - 1 + others, gpus) is None:
            low = middle
        else:
            high = middle - 1
    return low


def _blockade(
    pool: Pool, unit: Unit, used: Mapping[str, int], own: int, gpus: int | None = None
) -> tuple[Blockade, ...] | None:
    there = pool.gpu_count if gpus is None else gpus
    return find_blockade(pool.gpu, unit.name, there, {**used, unit.name: own})


def _in_use(plan: Plan, pool: Pool, count: CountOf) -> Mapping[str, int]:
    """How much of each unit tenants have together: never more than there can be."""
    return {unit.name: _sum(_quotas(plan, pool, unit.name), count, unit.capacity) for unit in pool.units}


def _beyond_guarantee(plan: Plan, pool: Pool, unit: Unit, count: CountOf) -> int:
    """What others have of the unit beside the guarantees, at most: the one who waits has none of its own beyond."""
    own = [*_quotas(plan, pool, unit.name)]
    beyond = [
        _sum([item for item in own if item is not waiting], lambda quota: _beyond(quota, count), unit.capacity)
        for waiting in own
        if waiting[1].guaranteed
    ]
    return max(beyond, default=0)


def _beyond(quota: Quota, count: CountOf) -> Amount | None:
    counted = count(quota)
    return None if counted is None else max(counted - quota.guaranteed, 0)


def _sum(quotas: Iterator[tuple[Tenant, Quota]] | list[tuple[Tenant, Quota]], count: CountOf, most: int) -> int:
    total = 0
    for _, quota in quotas:
        counted = count(quota)
        total += most if counted is None else int(counted)
    return min(total, most)


def _quotas(plan: Plan, pool: Pool, unit: str) -> Iterator[tuple[Tenant, Quota]]:
    """The quotas that pods can use: a tenant without namespaces has no pods."""
    for tenant in plan.tenants:
        for quota in tenant.quotas if tenant.has_work else ():
            if quota.key == (pool.name, unit):
                yield tenant, quota
