"""Compare plans: every change of meaning between two states of a platform."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.changes.clusters import added, cluster_changes, removed
from gpuplan.changes.hand_written import hand_written_changes, retained_changes
from gpuplan.changes.layouts import layout_changes
from gpuplan.changes.model import Change
from gpuplan.changes.operator import operator_changes
from gpuplan.changes.places import Edits
from gpuplan.changes.pools import pool_changes
from gpuplan.changes.priorities import priority_changes
from gpuplan.changes.tenants import tenant_changes
from gpuplan.changes.workloads import workload_changes
from gpuplan.planning.plan import Plan


def compare(before: Sequence[Plan], after: Sequence[Plan]) -> tuple[Change, ...]:
    """The changes of all clusters, which are known by name: by cluster, worst first.

    What no field of the output follows from, such as how far a pool may be disturbed, is no change.
    """
    old, new = ({plan.cluster.name: plan for plan in plans} for plans in (before, after))
    found: list[Change] = []
    for name in sorted({*old, *new}):
        if name not in new:
            found.append(removed(old[name]))
        elif name not in old:
            found.append(added(new[name]))
        elif old[name] is not new[name]:
            edits = Edits(old[name], new[name])
            found += (change._replace(at=edits.cause(change.at)) for change in _compare(old[name], new[name]))
    return tuple(sorted(found, key=_order))


def _compare(before: Plan, after: Plan) -> Iterator[Change]:
    yield from cluster_changes(before, after)
    yield from operator_changes(before, after)
    yield from pool_changes(before, after)
    yield from layout_changes(before, after)
    yield from priority_changes(before, after)
    yield from tenant_changes(before, after)
    yield from workload_changes(before, after)
    yield from hand_written_changes(before, after)
    yield from retained_changes(before, after)


def _order(change: Change) -> tuple[str, int, str, str, str]:
    return change.cluster, -change.change_class.rank, *change.subject, change.what
