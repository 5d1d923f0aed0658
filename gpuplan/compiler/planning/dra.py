"""Dynamic Resource Allocation: the names of its objects, and the partitions that can be counted on.

A pool's devices are published either by the device plugin, as resources, or by NVIDIA's driver for Dynamic Resource
Allocation (https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu), which is installed beside the GPU Operator. Both
on one node would each hand out the same GPUs.
"""

from __future__ import annotations

from bisect import bisect_left
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
"""The beginning of names of gpuplan's DeviceClasses and ResourceClaimTemplates."""

CLAIMS_QUOTA: Final = "count/resourceclaims.resource.k8s.io"
"""A ResourceQuota's key for the number of claims (`ClaimObjectCountName` in the file below)."""


def quota_key(device_class: str) -> str:
    """Return a ResourceQuota's key for devices of a class that claims ask for.

    (`V1ResourceByDeviceClass` in `pkg/quota/v1/evaluator/core/resource_claims.go` of kubernetes/kubernetes.)
    """
    return f"{device_class}.deviceclass.resource.k8s.io/devices"


def device_class_name(pool: Pool, unit: Unit) -> str:
    """Return the DeviceClass of a unit of the pool's GPU model. A namespace's ResourceClaimTemplate has the same name.

    Claims of a template are for one device.
    """
    return class_name(pool.gpu, unit.name)


def class_name(gpu: Gpu, unit: str) -> str:
    return f"{CLASS_PREFIX}{gpu.id.lower()}-{resource_suffix(unit)}"


def uses_claims(plan: Plan) -> bool:
    """Whether devices are claimed. All pools of a cluster do it alike, by GPU566."""
    return any(pool.spec.allocation is Allocation.DRA for pool in plan.pools)


def device_classes(plan: Plan) -> tuple[str, ...]:
    """Return the names of the plan's DeviceClasses, sorted."""
    return tuple(sorted({unit.device_class for pool in plan.pools for unit in pool.units if unit.device_class}))


CountOf = Callable[[Quota], Amount | None]
"""A function that returns the counted amount of a quota, or None if it has no bound."""


class Promise(NamedTuple):
    """Guarantees on a unit of which only so many are ``certain``: ``blockades`` leave no place for one more."""

    pool: Pool
    unit: Unit
    quotas: tuple[tuple[Tenant, Quota], ...]
    guaranteed: int
    certain: int
    blockades: tuple[Blockade, ...]


def dynamic_pools(plan: Plan) -> tuple[Pool, ...]:
    """Return the pools, or parts of them, whose partitions are made on demand."""
    return tuple(part for part in plan.parts if isinstance(part.sharing, DynamicMig))


def guarantee_of(quota: Quota) -> Amount:
    return quota.guaranteed


def cap_in(plan: Plan) -> CountOf:
    """Return the function that gives the most that the tenant of a quota may use."""
    if plan.cluster.cap is Cap.GUARANTEED:
        return guarantee_of
    return lambda quota: quota.limit


def certain_units(plan: Plan, pool: Pool, away: int = 0) -> Mapping[str, int]:
    """Return how many of each unit can be had in any order, beside all that tenants may use of the others.

    ``away`` is how many of the pool's GPUs are not there.
    """
    used, gpus = _in_use(plan, pool, cap_in(plan)), max(pool.gpu_count - away, 0)
    return {unit.name: _certain(pool, unit, used, unit.capacity, gpus=gpus) for unit in pool.units}


def broken_promises(plan: Plan, count: CountOf) -> Iterator[Promise]:
    """Yield the units whose guarantees may not fit when all tenants use as much as is counted."""
    for pool in dynamic_pools(plan):
        used, promised = _in_use(plan, pool, count), _in_use(plan, pool, guarantee_of)
        for unit in pool.units:
            # The most that other tenants have of the unit beyond their guarantees while one with a
            # guarantee waits.
            own = [*_quotas(plan, pool, unit.name)]
            beyond = [
                _sum([item for item in own if item is not waiting], lambda quota: _beyond(quota, count), unit.capacity)
                for waiting in own
                if waiting[1].guaranteed
            ]
            guaranteed, others = promised[unit.name], max(beyond, default=0)
            if not guaranteed or guaranteed > unit.capacity:  # more than there is, which is reported for itself
                continue
            certain = _certain(pool, unit, used, guaranteed, others)
            if certain < guaranteed:
                blockades = _blockade(pool, unit, used, certain + others) or ()
                yield Promise(pool, unit, tuple(_quotas(plan, pool, unit.name)), guaranteed, certain, blockades)


def static_instances(plan: Plan, pool: Pool) -> Mapping[str, int]:
    """Return instances of one layout for all GPUs of a pool that keeps its guarantees, or none."""
    promised = _in_use(plan, pool, guarantee_of)
    needed = {name: ceil(amount / pool.gpu_count) for name, amount in promised.items() if amount and pool.gpu_count}
    return needed if fits(pool.gpu, needed) else {}


def _certain(
    pool: Pool, unit: Unit, used: Mapping[str, int], most: int, others: int = 0, gpus: int | None = None
) -> int:
    """Return the most of a unit that can be had beside what is in use, ``others`` of the same unit included."""
    return bisect_left(
        range(most), 1, key=lambda before: _blockade(pool, unit, used, before + others, gpus) is not None
    )


def _blockade(
    pool: Pool, unit: Unit, used: Mapping[str, int], of_unit: int, gpus: int | None = None
) -> tuple[Blockade, ...] | None:
    there = pool.gpu_count if gpus is None else gpus
    return find_blockade(pool.gpu, unit.name, there, {**used, unit.name: of_unit})


def _in_use(plan: Plan, pool: Pool, count: CountOf) -> Mapping[str, int]:
    """Return how much of each unit tenants have together, which is never more than there can be."""
    return {unit.name: _sum(_quotas(plan, pool, unit.name), count, unit.capacity) for unit in pool.units}


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
    """Yield the quotas on a unit that pods can use. A tenant without namespaces has no pods."""
    for tenant in plan.tenants:
        for quota in tenant.quotas if tenant.has_work else ():
            if quota.key == (pool.name, unit):
                yield tenant, quota
