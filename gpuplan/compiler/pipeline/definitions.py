"""Which releases of the projects that define custom kinds run in a cluster."""

from __future__ import annotations

from gpuplan.compiler.manifests import Releases
from gpuplan.compiler.planning.plan import Plan


def releases(plan: Plan) -> Releases:
    """Those that the policy names."""
    scheduler = plan.cluster.spec.scheduler
    found: dict[str, str | None] = {"gpu-operator": plan.cluster.gpu_operator.spec.version}
    if scheduler.version:
        found[scheduler.kind] = scheduler.version
    return found | dict.fromkeys(plan.scheduler.own_kinds_in)
