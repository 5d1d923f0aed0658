"""Dynamic Resource Allocation: what its objects are called."""

from __future__ import annotations

from gpuplan.catalog import resource_suffix
from gpuplan.planning.plan import Pool, Unit


def device_class_name(pool: Pool, unit: Unit) -> str:
    """The DeviceClass of a unit of the pool's GPU model; a namespace's ResourceClaimTemplate for it has the same name.

    Claims of a template are for one device.
    """
    return f"gpuplan-{pool.gpu.id.lower()}-{resource_suffix(unit.name)}"
