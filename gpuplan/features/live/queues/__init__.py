"""Read the queues that tenants have with Kueue and KAI-Scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.base.plain import inside, text
from gpuplan.compiler.planning.grants import SYSTEM_NAMESPACE
from gpuplan.compiler.planning.plan import TENANT_LABEL, Plan
from gpuplan.compiler.planning.schedulers.kai import KAI
from gpuplan.compiler.planning.schedulers.runai import RUNAI
from gpuplan.features.live.dump import Dump
from gpuplan.features.live.queues import kai, kueue
from gpuplan.features.live.queues.model import KUEUE_GROUP, Queue, root_cohort

__all__ = ["Queue", "read", "root_cohort"]


def read(dump: Dump, plan: Plan) -> tuple[tuple[Queue, ...], tuple[Diagnostic, ...]]:
    """Return a `Queue` for each tenant that has queues, each after the one that it is part of.

    Run:ai makes queues of KAI-Scheduler's group by itself: its projects say what they are of.
    """
    if plan.scheduler is RUNAI:
        return (), ()
    if dump.of_kind(KUEUE_GROUP, "ClusterQueue") and plan.scheduler is not KAI:
        found, reports = kueue.read(dump, plan)
    else:
        found, reports = kai.read(dump, plan)
    used = _used([queue for queue, _ in found], frozenset(_labelled(dump)))
    for queue, item in found:
        if queue.tenant not in used and item is not None:
            reports.about("unused-queue", item)
    return tuple(queue for queue, _ in found if queue.tenant in used), tuple(reports.diagnostics)


def _used(queues: Iterable[Queue], labelled: frozenset[str]) -> set[str]:
    """Return the tenants that have namespaces, and those above them."""
    above = {queue.tenant: queue.parent for queue in queues}
    found: set[str] = set()
    for queue in queues:
        tenant = queue.tenant if queue.namespaces or queue.tenant in labelled else ""
        while tenant and tenant not in found:
            found.add(tenant)
            tenant = above[tenant]
    return found


def _labelled(dump: Dump) -> Iterator[str]:
    """Yield the tenants that namespaces, or the parameters of gpuplan's admission, name."""
    yield from (item.labels.get(TENANT_LABEL, "") for item in dump.of_kind("", "Namespace"))
    for item in dump.of_kind("", "ConfigMap"):
        if item.namespace == SYSTEM_NAMESPACE:
            yield text(inside(item.body, "data").get("tenant"))
