"""Find out whose a namespace is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gpuplan.compiler.base.plain import mapping, text
from gpuplan.compiler.planning.grants import SYSTEM_NAMESPACE
from gpuplan.compiler.planning.plan import TENANT_LABEL, Plan
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.queues.model import Queue
from gpuplan.features.live.teams.caps import Offers, counts_gpus
from gpuplan.features.live.teams.model import Space, Team

RBAC: Final = "rbac.authorization.k8s.io"
_LISTED: Final = "grants-"
"""The beginning of the name of gpuplan's parameters for a namespace that a tenant lists."""
_LABELLED: Final = "grants."
"""The same for all that are a tenant's by their label; the tenant follows."""


def find_spaces(dump: Dump) -> Mapping[str, Space]:
    """Return the namespaces of which a dump says something, each with its owner where gpuplan's own objects say it."""
    own = _owners_of(dump, labelled_parameters(dump))
    by_namespace: dict[str, list[Item]] = {name: [] for name in own}
    for item in (*dump.of_kind("", "ResourceQuota", "LimitRange"), *dump.of_kind(RBAC, "RoleBinding")):
        if item.namespace:
            by_namespace.setdefault(item.namespace, []).append(item)
    return {name: _space(dump, name, own.get(name, ""), items) for name, items in sorted(by_namespace.items())}


def find_teams(
    dump: Dump,
    plan: Plan,
    spaces: Mapping[str, Space],
    offers: Offers,
    queues: Sequence[Queue],
    order: Sequence[str],
    reports: Reports,
) -> tuple[Team, ...]:
    """Return the teams by name, and report namespaces that are left alone.

    A namespace belongs to the tenant of its label, or of its queue. Any other with a quota is a team of its own. If the
    scheduler counts tenants, a namespace without a queue is left alone, as are those of the cluster. Namespaces of a
    team are in ``order`` as far as that names them.
    """
    labelled = labelled_parameters(dump)
    queued = {namespace: queue.tenant for queue in queues for namespace in queue.namespaces}
    own = {name: space.owner for name, space in spaces.items() if space.owner}
    capped: dict[str, str] = {}
    for name, space in spaces.items():
        quota = next((item for item in space.quotas if counts_gpus(item, offers)), None)
        if quota is None or name in own or name in queued:
            continue
        if plan.scheduler.counts_tenants or _is_of_cluster(name, plan):
            _leave_alone(quota, plan, reports)
        else:
            capped[name] = name
    found: dict[str, list[Space]] = {}
    for namespace, team in sorted({**capped, **queued, **own}.items()):
        found.setdefault(team, []).append(spaces.get(namespace) or _space(dump, namespace, "", ()))
    by_tenant = {queue.tenant: queue for queue in queues}
    places = {namespace: index for index, namespace in reversed([*enumerate(order)])}
    teams = (
        Team(
            name,
            tuple(sorted(found.get(name, ()), key=lambda space: (places.get(space.name, len(places)), space.name))),
            labelled.get(name),
            by_tenant.get(name),
        )
        for name in sorted({*found, *labelled, *by_tenant} - {""})
    )
    return tuple(teams)


def _is_of_cluster(namespace: str, plan: Plan) -> bool:
    return namespace.startswith("kube-") or namespace == plan.cluster.gpu_operator.namespace


def _leave_alone(quota: Item, plan: Plan, reports: Reports) -> None:
    if _is_of_cluster(quota.namespace, plan):
        label, notes = "the cluster's own namespace", ("in a tenant's namespace pods are held to its quotas",)
    else:
        label = "no queue takes its work"
        notes = (f"pods of a tenant that ask for GPUs go through a queue of {plan.scheduler.title}",)
    reports.say("quota-of-no-tenant", quota.at / "spec" / "hard", "", notes=notes, label=label, quota=quota)


def labelled_parameters(dump: Dump) -> Mapping[str, Item]:
    """gpuplan's parameters for the namespaces that are a tenant's by their label, by tenant."""
    return {text(_data(item).get("tenant")): item for item in _parameters(dump, _LABELLED)}


def _owners_of(dump: Dump, labelled: Mapping[str, Item]) -> dict[str, str]:
    """Namespaces that gpuplan wrote, or that its label gives to a tenant by name."""
    found: dict[str, str] = {}
    for item in dump.of_kind("", "Namespace"):
        team = item.labels.get(TENANT_LABEL, "")
        if team and team not in labelled:
            found[item.name] = team
    for item in _parameters(dump, _LISTED):
        if team := text(_data(item).get("tenant")):
            found[item.name.removeprefix(_LISTED)] = team
    return found


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
