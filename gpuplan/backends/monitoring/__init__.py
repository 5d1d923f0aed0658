"""The back end of the stage `monitoring`: alerts, recording rules and dashboards that know the plan."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.manifests import File, Manifest
from gpuplan.planning.plan import Plan


def render(plan: Plan) -> Iterator[Manifest | File]:
    """Nothing, unless the cluster is watched."""
    if plan.cluster.monitoring is None:
        return
    yield from ()
