"""Policies from what runs: readers of dumps, one for each kind of thing, which make drafts of policy documents.

Nothing here reads a disk or prints. `pipeline.importing` calls the stages in order, and makes a plan of what each wrote
for the next one.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.live.draft import Draft, Found, joined
from gpuplan.features.live.dump import Dump, Item, read_dump

__all__ = [
    "Draft",
    "Dump",
    "Found",
    "Item",
    "has_known",
    "name_of",
    "platform",
    "read_dump",
    "tenants",
    "unread",
    "workloads",
]


def name_of(dump: Dump) -> str:
    """What the cluster is called, where objects that gpuplan wrote say it; else empty."""
    from gpuplan.features.live import clusters

    return clusters.name_of(dump)


def has_known(dump: Dump) -> bool:
    """Whether there is anything in it that a reader reads."""
    from gpuplan.features.live import kinds

    return kinds.has_known(dump)


def unread(dump: Dump) -> Iterator[Diagnostic]:
    """Notes of what no reader reads."""
    from gpuplan.features.live import kinds

    return kinds.unread(dump)


def platform(dump: Dump, cluster: str) -> Found:
    """The cluster, its pools, and what these name: layouts, models, priority classes, what is retained."""
    from gpuplan.features.live import clusters, pools, priorities

    return joined((clusters.read(dump, cluster), pools.read(dump, cluster), priorities.read(dump)))


def tenants(dump: Dump, plan: Plan) -> Found:
    """The tenants, with the quotas that objects give their namespaces on what the plan's pools hand out."""
    from gpuplan.features.live import teams

    return teams.read(dump, plan)


def workloads(dump: Dump, plan: Plan) -> Found:
    """The work of the plan's tenants, where it is plain."""
    from gpuplan.features.live import work

    return work.read(dump, plan)
