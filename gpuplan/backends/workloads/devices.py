"""How a pod asks for its units: by a resource, by claims, or by nothing that Kubernetes knows."""

from __future__ import annotations

from typing import Any

from gpuplan.planning.dra import device_class_name
from gpuplan.planning.plan import Workload
from gpuplan.policy.models import Allocation


def resources(workload: Workload) -> dict[str, Any]:
    """The container's resources. Limits equal requests, so that a pod has what it asks for and no more."""
    amounts = {"cpu": workload.spec.cpu, "memory": workload.spec.memory, **_units(workload)}
    asked = {name: amount for name, amount in amounts.items() if amount}
    claims = [{"name": claim["name"]} for claim in resource_claims(workload)]
    return {
        **({"limits": asked, "requests": dict(asked)} if asked else {}),
        **({"claims": claims} if claims else {}),
    }


def _units(workload: Workload) -> dict[str, str]:
    if workload.fraction or workload.unit.resource is None or workload.pool.spec.allocation is Allocation.DRA:
        return {}
    return {workload.unit.resource: str(workload.spec.count)}


def resource_claims(workload: Workload) -> list[dict[str, str]]:
    """The pod's claims, one for each device."""
    if workload.pool.spec.allocation is not Allocation.DRA:
        return []
    template = device_class_name(workload.pool, workload.unit)
    return [{"name": f"unit-{number}", "resourceClaimTemplateName": template} for number in range(workload.spec.count)]
