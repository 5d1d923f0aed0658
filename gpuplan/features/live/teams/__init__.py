"""Read tenants: whose a namespace is, what it may use of which pool, and what people and pods may do there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gpuplan.compiler.base.plain import mapping, text
from gpuplan.compiler.planning.grants import SYSTEM_NAMESPACE
from gpuplan.compiler.planning.plan import TENANT_LABEL, Plan
from gpuplan.features.live import queues
from gpuplan.features.live.drafts import Draft, Found
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.queues.model import Queue
from gpuplan.features.live.queues.placing import Placing
from gpuplan.features.live.teams.access import allowed, containers_of, enforcement_of, members_of, network_resources
from gpuplan.features.live.teams.caps import Offers, Space, Team, bans_gpus, counts_gpus, judge_quotas, offers_of
from gpuplan.features.live.teams.projects import queues_of, read_orgs
from gpuplan.features.live.teams.quotas import quotas_of


def read(dump: Dump, plan: Plan) -> Found:
    """Return a tenant for each team.

    Queues say what a tenant has and what it is part of, and its namespaces say the rest.
    """
    queued, diagnostics = queues.read(dump, plan)
    reports = Reports()
    offers, spaces = offers_of(plan), find_spaces(dump)
    projects = queues_of(read_orgs(dump), offers, spaces, reports) if plan.scheduler.has_projects else ()
    _tell_runai(dump, plan, reports, has_projects=bool(projects))
    order = tuple(namespace for queue in projects for namespace in queue.namespaces)
    placing = Placing(dump, plan)
    teams = find_teams(plan, spaces, offers, (*queued, *projects), order, placing, reports)
    judge_quotas(dump, plan, teams, offers, reports)
    granted = quotas_of(teams, plan, offers, placing, reports)
    network = network_resources(teams, frozenset(offers))
    known = [found.name for found in sorted(plan.priority_classes, key=lambda found: -found.spec.value)]
    drafts = []
    for team in teams:
        queue, quotas = team.queue, granted[team.name]
        # gpuplan's parameters name the classes, and all are meant if nobody bounds them.
        parameters = [*(space.parameters for space in team.spaces), team.labelled]
        stated = [text(mapping(item.body.get("data")).get("priorityClasses")).split() for item in parameters if item]
        names = stated[0] if stated else known if not team.is_own else []
        classes = (*names, *(name for quota in quotas for name in quota.get("classLimits", ())))
        fields = {
            "namespaces": list(team.namespaces),
            "labelledNamespaces": team.labelled is not None,
            "parent": queue.parent if queue else "",
            "priorityClasses": list(dict.fromkeys(classes)),
            "quotas": list(quotas),
            **(queue.spec if queue else {}),
            "members": members_of(team, reports),
            "allow": allowed(team, plan, network, reports),
            "admission": enforcement_of(team, dump, plan),
            "containers": containers_of(team, reports),
        }
        spec = {field: value for field, value in fields.items() if value} or {"namespaces": []}
        remarks = (*(team.queue.remarks if team.queue else ()), *reports.remarks(team.name))
        drafts.append(Draft("Tenant", team.name, spec, team.sources, tuple(dict.fromkeys(remarks))))
    reports.say_gathered()
    return Found(tuple(drafts), (*diagnostics, *reports.diagnostics))


def _tell_runai(dump: Dump, plan: Plan, reports: Reports, *, has_projects: bool) -> None:
    """Name objects of Run:ai that show nothing of what a team has, or nothing that its projects do not show."""
    if not plan.scheduler.has_projects:
        return
    for item in dump.of_kind("run.ai", "Project", "Department"):
        if not has_projects:
            reports.gather("projects-in-runai", item.at / "metadata" / "name", item.name, kind=item.kind)
    for item in dump.of_kind("scheduling.run.ai", "Queue"):
        reports.gather("queues-of-runai", item.at / "metadata" / "name", item.name)


# --- Whose a namespace is -----------------------------------------------------------------------------------------

RBAC: Final = "rbac.authorization.k8s.io"
_LISTED: Final = "grants-"
"""The beginning of the name of gpuplan's parameters for a namespace that a tenant lists."""
_LABELLED: Final = "grants."
"""The same for all that are a tenant's by their label; the tenant follows."""


def find_spaces(dump: Dump) -> Mapping[str, Space]:
    """Return the namespaces of which a dump says something, each with its owner where gpuplan's own objects say it."""
    labelled = labelled_parameters(dump)
    of_labels = {item.name: item.labels.get(TENANT_LABEL, "") for item in dump.of_kind("", "Namespace")}
    own = {name: team for name, team in of_labels.items() if team and team not in labelled}
    listed = {item.name.removeprefix(_LISTED): text(_data(item).get("tenant")) for item in _parameters(dump, _LISTED)}
    own |= {name: team for name, team in listed.items() if team}
    by_namespace: dict[str, list[Item]] = {name: [] for name in own}
    for item in (*dump.of_kind("", "ResourceQuota", "LimitRange"), *dump.of_kind(RBAC, "RoleBinding")):
        if item.namespace:
            by_namespace.setdefault(item.namespace, []).append(item)
    return {name: _space(dump, name, own.get(name, ""), items) for name, items in sorted(by_namespace.items())}


def find_teams(
    plan: Plan,
    spaces: Mapping[str, Space],
    offers: Offers,
    queues: Sequence[Queue],
    order: Sequence[str],
    placing: Placing,
    reports: Reports,
) -> tuple[Team, ...]:
    """Return the teams by name, and report namespaces that are left alone.

    A namespace belongs to the tenant of its label, or of its queue. Any other with a quota is a team of its own. If the
    scheduler counts tenants, a namespace without a queue is left alone. So are those of the cluster, those whose quotas
    ban GPUs, and those all of whose work runs on nodes that are in no pool. Namespaces of a team are in ``order`` as
    far as that names them.
    """
    labelled = labelled_parameters(placing.dump)
    queued = {namespace: queue.tenant for queue in queues for namespace in queue.namespaces}
    own = {name: space.owner for name, space in spaces.items() if space.owner}
    alone = (name for name, space in spaces.items() if name not in own and name not in queued)
    capped = {name: name for name in alone if _is_team(plan, spaces[name], offers, placing, reports)}
    found: dict[str, list[Space]] = {}
    for namespace, team in sorted({**capped, **queued, **own}.items()):
        found.setdefault(team, []).append(spaces.get(namespace) or _space(placing.dump, namespace, "", ()))
        for asking in placing.by_namespace.get(namespace, ()) if namespace not in own else ():
            if node := asking.node:
                reports.say("work-outside-pools", asking.work.at, team, item=asking.work, node=node, team=team)
    by_tenant = {queue.tenant: queue for queue in queues}
    ranks = {namespace: index for index, namespace in reversed([*enumerate(order)])}
    teams = (
        Team(
            name,
            tuple(sorted(found.get(name, ()), key=lambda space: (ranks.get(space.name, len(ranks)), space.name))),
            labelled.get(name),
            by_tenant.get(name),
        )
        for name in sorted({*found, *labelled, *by_tenant} - {""})
    )
    return tuple(teams)


def _is_team(plan: Plan, space: Space, offers: Offers, placing: Placing, reports: Reports) -> bool:
    """Whether a namespace that is no tenant's is made one."""
    quota = next((item for item in space.quotas if counts_gpus(item, offers)), None)
    if quota is None:
        for item in space.quotas:
            if bans_gpus(item, offers):
                reports.gather("banned-namespaces", item.at / "spec" / "hard", space.name)
        return False
    label, note, places = "", "", placing.by_namespace.get(space.name, ())
    if space.name.startswith("kube-") or space.name == plan.cluster.gpu_operator.namespace:
        label, note = "the cluster's own namespace", "in a tenant's namespace pods are held to its quotas"
    elif plan.scheduler.counts_tenants:
        label = "no queue takes its work"
        note = f"pods of a tenant that ask for GPUs go through a queue of {plan.scheduler.title}"
    elif any(asking.node for asking in places) and not any(asking.pools for asking in places):
        label, note = "its work runs on nodes that are in no pool", "admission holds pods of a tenant to pools"
    if label:
        reports.say("quota-of-no-tenant", quota.at / "spec" / "hard", "", notes=(note,), label=label, quota=quota)
    return not label


def labelled_parameters(dump: Dump) -> Mapping[str, Item]:
    """gpuplan's parameters for the namespaces that are a tenant's by their label, by tenant."""
    return {text(_data(item).get("tenant")): item for item in _parameters(dump, _LABELLED)}


def _parameters(dump: Dump, prefix: str) -> Iterable[Item]:
    for item in dump.of_kind("", "ConfigMap"):
        if item.namespace == SYSTEM_NAMESPACE and item.name.startswith(prefix):
            yield item


def _data(parameters: Item) -> Mapping[str, object]:
    return mapping(parameters.body.get("data"))


def _space(dump: Dump, name: str, owner: str, items: Sequence[Item]) -> Space:
    by_kind = {kind: tuple(item for item in items if item.kind == kind) for kind in _KINDS}
    return Space(
        name,
        owner,
        dump.find("", "Namespace", name),
        dump.find("", "ConfigMap", f"{_LISTED}{name}", SYSTEM_NAMESPACE),
        by_kind["ResourceQuota"],
        by_kind["LimitRange"],
        by_kind["RoleBinding"],
    )


_KINDS: Final = ("ResourceQuota", "LimitRange", "RoleBinding")
