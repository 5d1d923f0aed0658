"""Read tenants: whose a namespace is, what it may use of which pool, and what people and pods may do there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpuplan.compiler.base.plain import mapping, text
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.live import queues
from gpuplan.features.live.drafts import Draft, Found
from gpuplan.features.live.dump import Dump
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.teams.access import allowed, containers_of, members_of, network_resources
from gpuplan.features.live.teams.caps import asked_by, judge_quotas, offers_of
from gpuplan.features.live.teams.model import Team
from gpuplan.features.live.teams.owners import find_spaces, find_teams
from gpuplan.features.live.teams.projects import queues_of, read_orgs
from gpuplan.features.live.teams.quotas import quotas_of


def read(dump: Dump, plan: Plan) -> Found:
    """Return a tenant for each team.

    Queues say what a tenant has and what it is part of, and its namespaces say the rest.
    """
    queued, diagnostics = queues.read(dump, plan)
    reports = Reports(in_full=True)
    offers, spaces = offers_of(plan), find_spaces(dump)
    projects = queues_of(read_orgs(dump), offers, spaces, reports) if plan.scheduler.has_projects else ()
    order = tuple(namespace for queue in projects for namespace in queue.namespaces)
    teams = find_teams(dump, plan, spaces, offers, (*queued, *projects), order, reports)
    judge_quotas(dump, teams, offers, reports)
    granted = quotas_of(teams, plan, offers, asked_by(dump, teams, offers), reports)
    network = network_resources(teams, frozenset(offers))
    drafts = []
    for team in teams:
        spec = _spec(team, plan, granted[team.name], network, reports)
        remarks = (*(team.queue.remarks if team.queue else ()), *reports.remarks(team.name))
        drafts.append(Draft("Tenant", team.name, spec, team.sources, tuple(dict.fromkeys(remarks))))
    return Found(tuple(drafts), (*diagnostics, *reports.diagnostics))


def _spec(
    team: Team, plan: Plan, quotas: Sequence[Mapping[str, Any]], network: Mapping[str, frozenset[str]], reports: Reports
) -> dict[str, Any]:
    """Return a tenant's fields in the order of `explain`, without those that say nothing."""
    queue = team.queue
    fields = {
        "namespaces": list(team.namespaces),
        "labelledNamespaces": team.labelled is not None,
        "parent": queue.parent if queue else "",
        "priorityClasses": _priority_classes(team, plan, quotas),
        "quotas": list(quotas),
        **(queue.spec if queue else {}),
        "members": members_of(team, reports),
        "allow": allowed(team, plan, network, reports),
        "containers": containers_of(team, reports),
    }
    return {field: value for field, value in fields.items() if value} or {"namespaces": []}


def _priority_classes(team: Team, plan: Plan, quotas: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the classes that gpuplan's parameters name, or all if nobody bounds them."""
    parameters = [*(space.parameters for space in team.spaces), team.labelled]
    stated = [text(mapping(item.body.get("data")).get("priorityClasses")).split() for item in parameters if item]
    known = [found.name for found in sorted(plan.priority_classes, key=lambda found: -found.spec.value)]
    names = stated[0] if stated else known if not team.is_own else []
    return list(dict.fromkeys((*names, *(name for quota in quotas for name in quota.get("classLimits", ())))))
