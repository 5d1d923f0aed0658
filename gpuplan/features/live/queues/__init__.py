"""Read the queues that tenants have with Kueue and KAI-Scheduler."""

from __future__ import annotations

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.base.plain import inside, text
from gpuplan.compiler.planning.grants import SYSTEM_NAMESPACE
from gpuplan.compiler.planning.plan import TENANT_LABEL, Plan
from gpuplan.compiler.planning.schedulers.kai import KAI
from gpuplan.compiler.planning.schedulers.runai import RUNAI
from gpuplan.features.live.dump import Dump
from gpuplan.features.live.queues import kai, kueue
from gpuplan.features.live.queues.model import KUEUE_GROUP, Queue, root_cohort
from gpuplan.features.live.queues.versions import in_version

__all__ = ["Queue", "in_version", "read", "root_cohort"]


def read(dump: Dump, plan: Plan) -> tuple[tuple[Queue, ...], tuple[Diagnostic, ...]]:
    """Return a `Queue` for each tenant that has queues, each after the one that it is part of.

    Run:ai makes queues of KAI-Scheduler's group by itself: its projects say what they are of.
    """
    if plan.scheduler is RUNAI:
        return (), ()
    is_of_kueue = dump.of_kind(KUEUE_GROUP, "ClusterQueue") and plan.scheduler is not KAI
    reader = kueue.Reader(dump, plan) if is_of_kueue else kai.Reader(dump, plan)
    found, reports = tuple(reader.queues()), reader.reports
    # Namespaces name tenants, and so do the parameters of gpuplan's admission.
    labelled = {item.labels.get(TENANT_LABEL, "") for item in dump.of_kind("", "Namespace")}
    parameters = [item for item in dump.of_kind("", "ConfigMap") if item.namespace == SYSTEM_NAMESPACE]
    labelled |= {text(inside(item.body, "data").get("tenant")) for item in parameters}
    above = {queue.tenant: queue.parent for queue, _ in found}
    used: set[str] = set()
    for queue, _ in found:
        tenant = queue.tenant if queue.namespaces or queue.tenant in labelled else ""
        while tenant and tenant not in used:
            used.add(tenant)
            tenant = above[tenant]
    for queue, item in found:
        if queue.tenant not in used and item is not None:
            reports.about("unused-queue", item)
    reports.say_gathered()
    return tuple(queue for queue, _ in found if queue.tenant in used), tuple(reports.diagnostics)
