"""Read what a team's people and pods may do in its namespaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction as Ratio
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Finding, Severity
from gpuplan.compiler.base.plain import mapping, sequence, text
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.manifests import exact_quantity
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, MIG_RESOURCES
from gpuplan.compiler.planning.grants import RDMA_LABEL, refuses_more_than_one
from gpuplan.compiler.planning.plan import Counted, Plan
from gpuplan.compiler.planning.pods import DEFAULT_REQUESTS
from gpuplan.compiler.policy.models import Allow, PodSecurity, Role
from gpuplan.features.live.dump import Item
from gpuplan.features.live.rules import TEAM_SAID_IN_PART
from gpuplan.features.live.teams.caps import grants_in, read_caps
from gpuplan.features.live.teams.model import Space, Team, Told, told

# --- Members -----------------------------------------------------------------------------------------------------


class _Member(NamedTuple):
    field: str
    name: str
    role: str


def members_of(team: Team) -> tuple[list[Any], tuple[Told, ...]]:
    """Those that RoleBindings give a ClusterRole in every namespace of the team.

    A RoleBinding to a Role is about one namespace, and stays there; so do those of Kubernetes and OpenShift.
    """
    by_space: list[dict[_Member, Item]] = []
    unsaid: list[Told] = []
    for space in team.spaces:
        found: dict[_Member, Item] = {}
        for item in space.bindings:
            role_ref = mapping(item.body.get("roleRef"))
            role = text(role_ref.get("name"))
            if role.startswith(_SYSTEM):
                continue
            if role_ref.get("kind") != "ClusterRole" or not role:
                unsaid.append(_unsaid(team, item, f"gives a Role of namespace `{space.name}`", "roleRef"))
                continue
            for index, subject in enumerate(map(mapping, sequence(item.body.get("subjects")))):
                if member := _member(subject, space.name, role):
                    found[member] = item
                else:
                    what = f"names a {text(subject.get('kind')) or 'subject'} that is neither a group nor a user"
                    unsaid.append(_unsaid(team, item, what, "subjects", index))
        by_space.append(found)
    everywhere = set(by_space[0]).intersection(*by_space) if by_space else set()
    for found in by_space:
        some = {id(item): item for member, item in found.items() if member not in everywhere}
        unsaid += [
            _unsaid(team, item, "does not hold in all of the tenant's namespaces", "subjects") for item in some.values()
        ]
    return [_said(member) for member in sorted(everywhere)], tuple(unsaid)


_SYSTEM: Final = "system:"
_USUAL_ROLES: Final = frozenset(Role)


def _member(subject: Mapping[str, object], namespace: str, role: str) -> _Member | None:
    name = text(subject.get("name"))
    match subject.get("kind"):
        case "Group" if name:
            return _Member("group", name, role)
        case "User" if name:
            return _Member("user", name, role)
        case "ServiceAccount" if name:
            home = text(subject.get("namespace")) or namespace
            return _Member("user", f"system:serviceaccount:{home}:{name}", role)
        case _:
            return None


def _said(member: _Member) -> Any:  # noqa: ANN401 - a name, or a mapping
    if member.role == Role.EDIT and member.field == "group":
        return member.name
    role = {} if member.role == Role.EDIT else {"role" if member.role in _USUAL_ROLES else "clusterRole": member.role}
    return {member.field: member.name, **role}


def _unsaid(team: Team, item: Item, what: str, *route: str | int) -> Told:
    at = item.at / route
    finding = Finding(
        at.key if isinstance(route[-1], str) else at,
        f"{item.title} {what}",
        label="not imported",
        help="leave it in the namespace: it holds beside what gpuplan writes",
        severity=Severity.NOTE,
    )
    return told(team.name, TEAM_SAID_IN_PART, finding)


# --- Pods --------------------------------------------------------------------------------------------------------

_ENFORCE: Final = "pod-security.kubernetes.io/enforce"


def allowed(team: Team, plan: Plan, network: Mapping[str, frozenset[str]]) -> tuple[dict[str, Any], tuple[Told, ...]]:
    """The fields of `allow` that are not as usual; ``network`` are resources for RDMA by team."""
    found: dict[str, Any] = {}
    unsaid: list[Told] = []
    level, unclear = _pod_security(team)
    unsaid += unclear
    if level is not Allow.model_fields["pod_security"].default:
        found["podSecurity"] = level.value
    if rdma := sorted(network.get(team.name, ())):
        found["rdma"] = rdma
    most = {
        number
        for parameters in _parameters(team)
        for pool, resource, number in grants_in(parameters)
        if number != "any" and not _refuses_more(plan, pool, resource)
    }
    if len(most) == 1 and (number := next(iter(most))).isdecimal():
        found["unitsPerContainer"] = int(number)
    if period := _grace_period(team):
        found["gracePeriod"] = period
    return found, tuple(unsaid)


def _refuses_more(plan: Plan, name: str, resource: str) -> bool:
    return any(
        refuses_more_than_one(pool, unit)
        for pool in plan.pools
        if pool.name == name
        for unit in pool.units
        if unit.asked_as == resource
    )


def _parameters(team: Team) -> list[Item]:
    """What gpuplan wrote for its admission policies."""
    return [item for item in (*(space.parameters for space in team.spaces), team.labelled) if item]


def _grace_period(team: Team) -> str:
    stated = {text(mapping(item.body.get("data")).get("gracePeriod")) for item in _parameters(team)}
    number = next(iter(stated)) if len(stated) == 1 else ""
    return f"{number}s" if number.isdecimal() else ""


def _pod_security(team: Team) -> tuple[PodSecurity, tuple[Told, ...]]:
    """The level of its namespaces, the least strict where they differ: what runs today must start again.

    A namespace without the label is held to nothing.
    """
    unclear = [_unseen(team, space) for space in team.spaces if space.namespace is None and not team.is_own]
    stated = {space.name: _level(space) for space in team.spaces if space.namespace}
    if not stated:
        return PodSecurity.BASELINE, tuple(filter(None, unclear))
    level = min(stated.values(), key=[*PodSecurity].index)
    for space in team.spaces:
        if space.namespace and RDMA_LABEL not in space.namespace.labels:
            if space.namespace.labels.get(_ENFORCE) not in _LEVELS:
                unclear.append(_unheld(team, space.namespace))
            elif stated[space.name] is not level:
                unclear.append(_loosened(team, space.namespace, level))
            if space.namespace.labels.get(_VERSION, _NEWEST) != _NEWEST:
                unclear.append(_dated(team, space.namespace))
    return level, tuple(filter(None, unclear))


_LEVELS: Final = frozenset(PodSecurity)


def _level(space: Space) -> PodSecurity:
    labels = space.namespace.labels if space.namespace else {}
    if RDMA_LABEL in labels:
        return PodSecurity.BASELINE
    level = labels.get(_ENFORCE, "")
    return PodSecurity(level) if level in _LEVELS else PodSecurity.PRIVILEGED


_VERSION: Final = f"{_ENFORCE}-version"
_NEWEST: Final = "latest"


def _unseen(team: Team, space: Space) -> Told | None:
    """A namespace that the dump lacks may be stricter than what a tenant is held to by default."""
    if not space.items:
        return None
    finding = Finding(
        space.items[0].at,
        f"the dump does not have Namespace `{space.name}`, so its level of Pod Security is not known",
        label=f"tenant `{team.name}` is held to `{PodSecurity.BASELINE.value}` from the first sync on",
        notes=("it may be held to less today, and then pods are refused, or to more, and then they may do more",),
        help="import what `kubectl get namespaces -o yaml` prints, too, or write `podSecurity`",
    )
    return told(team.name, TEAM_SAID_IN_PART, finding)


def _dated(team: Team, namespace: Item) -> Told:
    finding = Finding(
        namespace.at / "metadata" / "labels" / _VERSION,
        f"{namespace.title} enforces Pod Security as of `{namespace.labels[_VERSION]}`, which no policy says",
        label="not imported",
        help="remove the label, so that the checks of the release that runs hold; else it goes on to hold",
        severity=Severity.NOTE,
    )
    return told(team.name, TEAM_SAID_IN_PART, finding)


def _unheld(team: Team, namespace: Item) -> Told:
    finding = Finding(
        namespace.at / "metadata" / "labels",
        f"{namespace.title} enforces no level of Pod Security",
        label="pods may be privileged",
        notes=(f"tenant `{team.name}` was allowed what its pods may do today: `podSecurity: privileged`",),
        help="remove `podSecurity: privileged` once its pods pass the level `baseline`",
    )
    return told(team.name, TEAM_SAID_IN_PART, finding)


def _loosened(team: Team, namespace: Item, level: PodSecurity) -> Told:
    stated = namespace.labels[_ENFORCE]
    finding = Finding(
        namespace.at / "metadata" / "labels" / _ENFORCE,
        f"{namespace.title} is stricter than others of tenant `{team.name}`",
        label=f"`{stated}` here, `{level.value}` in all of them from now on",
        help="make a Tenant of its own for the namespace that needs the looser level",
    )
    return told(team.name, TEAM_SAID_IN_PART, finding)


def network_resources(teams: Iterable[Team], gpu_keys: frozenset[str]) -> Mapping[str, frozenset[str]]:
    """By team, what its pods may ask for to reach the network: gpuplan's quotas let no other team have it."""
    quotas = {team.name: _counted(team) for team in teams if team.is_own}
    known = {key for keys in quotas.values() for key in keys if _is_network(key, gpu_keys)}
    listed = {team.name: _others(team) for team in teams}
    return {
        name: frozenset(key.removeprefix("requests.") for key in known - keys) | listed[name]
        for name, keys in quotas.items()
    }


def _counted(team: Team) -> frozenset[str]:
    return frozenset(key for space in team.spaces for key in read_caps(space.quotas).plain)


def _is_network(key: str, gpu_keys: frozenset[str]) -> bool:
    resource = key.removeprefix("requests.")
    is_gpu = resource == GPU_RESOURCE or resource.startswith((f"{GPU_RESOURCE}.", MIG_RESOURCES))
    return key.startswith("requests.") and "/" in resource and not is_gpu and key not in gpu_keys


def _others(team: Team) -> frozenset[str]:
    return frozenset(
        line
        for item in _parameters(team)
        for line in text(mapping(item.body.get("data")).get("otherResources")).split()
    )


# --- Containers --------------------------------------------------------------------------------------------------

_FIELDS: Final = {"defaultRequest": "request", "default": "limit", "maxLimitRequestRatio": "maxRatio"}
_COUNTED: Final = (Counted.CPU, Counted.MEMORY)


def containers_of(team: Team) -> tuple[dict[str, Any], tuple[Told, ...]]:
    """What LimitRanges give containers, where it is the same in each namespace."""
    by_space = [_defaults(space) for space in team.spaces]
    said = by_space[0] if by_space and all(found == by_space[0] for found in by_space) else {}
    unsaid = [
        _unsaid_limits(team, item, rest)
        for space, found in zip(team.spaces, by_space, strict=True)
        for item in space.limits
        if (
            rest := ["other defaults than in the tenant's other namespaces"]
            if found != said
            else [*_other_fields(item)]
        )
    ]
    return said, tuple(unsaid)


def _defaults(space: Space) -> dict[str, Any]:
    found: dict[str, dict[str, Any]] = {}
    for item in space.limits:
        for limits in _of_containers(item):
            for field, name in _FIELDS.items():
                for counted in _COUNTED:
                    value = mapping(limits.get(field)).get(counted.value)
                    amount = exact_quantity(str(value)) if isinstance(value, str | int | float) else None
                    if amount is not None:
                        into = found.setdefault(counted.value, {})
                        into.setdefault(name, _ratio(amount) if name == "maxRatio" else str(value))
    capped = read_caps(space.quotas).plain if space.owner else {}
    for name, amounts in found.items():
        is_usual = f"requests.{name}" in capped and amounts.get("request") == DEFAULT_REQUESTS[Counted(name)]
        if amounts.get("request") == amounts.get("limit") or (is_usual and "limit" not in amounts):
            amounts.pop("request", None)
    return {name: amounts for name, amounts in found.items() if amounts}


def _ratio(amount: Ratio) -> int | float:
    return int(amount) if amount.denominator == 1 else float(amount)


def _of_containers(item: Item) -> Iterator[Mapping[str, object]]:
    for limits in map(mapping, sequence(mapping(item.body.get("spec")).get("limits"))):
        if limits.get("type") == "Container":
            yield limits


def _other_fields(item: Item) -> Iterator[str]:
    for limits in map(mapping, sequence(mapping(item.body.get("spec")).get("limits"))):
        kind = text(limits.get("type"))
        if kind != "Container":
            yield f"limits of a {kind or 'thing without a type'}"
            continue
        for field, amounts in limits.items():
            names = [name for name in mapping(amounts) if field not in _FIELDS or name not in ("cpu", "memory")]
            if names:
                yield f"`{field}` of {listing(names)}"


def _unsaid_limits(team: Team, item: Item, what: list[str]) -> Told:
    finding = Finding(
        (item.at / "spec" / "limits").key,
        f"{item.title} has {listing_of(what)}, which no policy says",
        label="not imported",
        help="leave it in the namespace: it holds beside what gpuplan writes",
        severity=Severity.NOTE,
    )
    return told(team.name, TEAM_SAID_IN_PART, finding)


def listing_of(parts: list[str]) -> str:
    return " and ".join(parts[:3])
