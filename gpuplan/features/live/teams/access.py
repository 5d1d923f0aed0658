"""Read what a team's people and pods may do in its namespaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, Final

from gpuplan.compiler.base.plain import inside, mapping, sequence, text
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.manifests import exact_quantity
from gpuplan.compiler.planning.amounts import as_number
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, MIG_RESOURCES
from gpuplan.compiler.planning.grants import GRANTS_POLICY, RDMA_LABEL, refuses_more_than_one
from gpuplan.compiler.planning.hand_files import is_zero
from gpuplan.compiler.planning.plan import Counted, Plan
from gpuplan.compiler.planning.pods import DEFAULT_REQUESTS
from gpuplan.compiler.planning.schedulers import knows_admission_policies
from gpuplan.compiler.policy.models import Allow, Enforcement, PodSecurity, Role
from gpuplan.features.live.clusters.kubernetes import ADMISSION, BINDING, enforcement_in
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.teams.caps import Space, Team, grants_in, read_caps

# --- Members -----------------------------------------------------------------------------------------------------


class _Member(NamedTuple):
    field: str
    name: str
    role: str


def members_of(team: Team, reports: Reports) -> list[Any]:
    """Return the members that RoleBindings give a ClusterRole in every namespace of the team.

    A RoleBinding to a Role is about one namespace, and stays there; so do those of Kubernetes and OpenShift.
    """
    by_space: list[dict[_Member, Item]] = []
    for space in team.spaces:
        found: dict[_Member, Item] = {}
        for item in space.bindings:
            role_ref = mapping(item.body.get("roleRef"))
            role = text(role_ref.get("name"))
            if role.startswith(_SYSTEM):
                continue
            if role_ref.get("kind") != "ClusterRole" or not role:
                _tell_member(reports, item, "gives a Role of its namespace", "roleRef")
                continue
            for index, subject in enumerate(map(mapping, sequence(item.body.get("subjects")))):
                name, kind = text(subject.get("name")), text(subject.get("kind"))
                account = f"system:serviceaccount:{text(subject.get('namespace')) or space.name}:{name}"
                members = {"Group": ("group", name), "User": ("user", name), "ServiceAccount": ("user", account)}
                if name and kind in members:
                    found[_Member(*members[kind], role)] = item
                else:
                    what = f"names a {kind or 'subject'} that is neither a group nor a user"
                    _tell_member(reports, item, what, "subjects", index)
        by_space.append(found)
    everywhere = set(by_space[0]).intersection(*by_space) if by_space else set()
    for found in by_space:
        some = {id(item): item for member, item in found.items() if member not in everywhere}
        for item in some.values():
            _tell_member(reports, item, "does not hold in all of the tenant's namespaces", "subjects")
    entries: list[Any] = []
    for field, name, role in sorted(everywhere):
        key = "role" if role in _USUAL_ROLES else "clusterRole"
        entry = {field: name, **({} if role == Role.EDIT else {key: role})}
        entries.append(name if entry == {"group": name} else entry)
    return entries


_SYSTEM: Final = "system:"
_USUAL_ROLES: Final = frozenset(Role)


def _tell_member(reports: Reports, binding: Item, reason: str, *route: str | int) -> None:
    at = binding.at / route
    place = at.key if isinstance(route[-1], str) else at
    reports.gather("member-not-imported", place, f"{binding.namespace}/{binding.name}", what=reason)


# --- Pods --------------------------------------------------------------------------------------------------------

_ENFORCE: Final = "pod-security.kubernetes.io/enforce"
_WARN: Final = "pod-security.kubernetes.io/warn"


def allowed(team: Team, plan: Plan, network: Mapping[str, frozenset[str]], reports: Reports) -> dict[str, Any]:
    """Return the fields of `allow` that are not as usual; ``network`` are resources for RDMA by team."""
    found: dict[str, Any] = {}
    level = _pod_security(team, reports)
    if level is not Allow.model_fields["pod_security"].default:
        found["podSecurity"] = level.value
    if rdma := sorted(network.get(team.name, ())):
        found["rdma"] = rdma
    refusing = {
        (pool.name, unit.asked_as) for pool in plan.pools for unit in pool.units if refuses_more_than_one(pool, unit)
    }
    most = {
        number
        for parameters in _parameters(team)
        for pool, resource, number in grants_in(parameters)
        if number != "any" and (pool, resource) not in refusing
    }
    if len(most) == 1 and (number := next(iter(most))).isdecimal():
        found["unitsPerContainer"] = int(number)
    periods = {text(mapping(item.body.get("data")).get("gracePeriod")) for item in _parameters(team)}
    if len(periods) == 1 and (period := periods.pop()).isdecimal():
        found["gracePeriod"] = f"{period}s"
    return found


def enforcement_of(team: Team, dump: Dump, plan: Plan) -> dict[str, Any]:
    """Return where admission refuses in a team's namespaces and where it warns, if not as in the cluster.

    No rule has judged the work of a team that is no tenant yet, so that admission only warns there.
    """
    usual = plan.cluster.spec.admission.enforcement
    if not team.is_own:
        is_held = team.spaces and knows_admission_policies(plan.cluster.spec.kubernetes)
        return {"enforcement": Enforcement.WARN.value} if is_held and usual is Enforcement.DENY else {}
    modes = {space.name: _enforcement(space, dump) for space in team.spaces}
    labelled = dump.find(ADMISSION, BINDING, f"{GRANTS_POLICY}.{team.name}")
    known = {mode for mode in (*modes.values(), labelled and enforcement_in(labelled)) if mode}
    own = known.pop() if len(known) == 1 else usual
    single = {name: mode.value for name, mode in modes.items() if mode not in (own, None)}
    return {**({} if own is usual else {"enforcement": own.value}), **({"namespaces": single} if single else {})}


def _enforcement(space: Space, dump: Dump) -> Enforcement | None:
    """Return the enforcement of a namespace by its binding, else by its level; None if nothing tells it."""
    if binding := dump.find(ADMISSION, BINDING, f"{GRANTS_POLICY}-{space.name}"):
        return enforcement_in(binding)
    labels = space.namespace.labels if space.namespace and space.owner else {}
    return Enforcement.WARN if _WARN in labels and _ENFORCE not in labels else None


def _parameters(team: Team) -> list[Item]:
    """Return the parameters that gpuplan wrote for its admission policies."""
    return [item for item in (*(space.parameters for space in team.spaces), team.labelled) if item]


def _pod_security(team: Team, reports: Reports) -> PodSecurity:
    """Return the level of Pod Security of a team's namespaces; `external` where they have no label, or not the same.

    Without the label the default of the API server holds, which may be any level (`PodSecurityConfiguration` of its
    admission plugin), and no dump shows it.
    """
    spaces = [space for space in team.spaces if space.namespace or (space.items and not team.is_own)]
    if not spaces:
        return PodSecurity.BASELINE
    levels: set[str] = set()
    for space in spaces:
        labels = space.namespace.labels if space.namespace else {}
        label = labels.get(_ENFORCE) or (labels.get(_WARN, "") if team.is_own else "")
        level = PodSecurity.BASELINE if RDMA_LABEL in labels else label
        levels.add(level if level in _LEVELS else PodSecurity.EXTERNAL)
        if level not in _LEVELS and not team.is_own:
            reports.gather("no-pod-security", (space.namespace or space.items[0]).at / "metadata", space.name)
        if space.namespace and (version := labels.get(_VERSION, _NEWEST)) != _NEWEST:
            at = space.namespace.at / "metadata" / "labels" / _VERSION
            reports.say("dated-pod-security", at, team.name, namespace=space.namespace, version=version)
    return PodSecurity(levels.pop()) if len(levels) == 1 else PodSecurity.EXTERNAL


_LEVELS: Final = frozenset(PodSecurity) - {PodSecurity.EXTERNAL}


_VERSION: Final = f"{_ENFORCE}-version"
_NEWEST: Final = "latest"


def network_resources(teams: Iterable[Team], gpu_keys: frozenset[str]) -> Mapping[str, frozenset[str]]:
    """Return by team the network resources that its pods may ask for: gpuplan's quotas refuse them to others."""
    quotas = {
        team.name: frozenset(key for space in team.spaces for key in read_caps(space.quotas).plain)
        for team in teams
        if team.is_own
    }
    names = {key: key.removeprefix("requests.") for keys in quotas.values() for key in keys}
    gpus = (f"{GPU_RESOURCE}.", MIG_RESOURCES)
    known = {
        key
        for key, name in names.items()
        if key != name and "/" in name and name != GPU_RESOURCE and not name.startswith(gpus) and key not in gpu_keys
    }
    listed = {
        team.name: frozenset(
            line
            for item in _parameters(team)
            for line in text(mapping(item.body.get("data")).get("otherResources")).split()
        )
        for team in teams
    }
    return {
        name: frozenset(key.removeprefix("requests.") for key in known - keys) | listed[name]
        for name, keys in quotas.items()
    }


# --- Containers --------------------------------------------------------------------------------------------------

_FIELDS: Final = {"defaultRequest": "request", "default": "limit", "maxLimitRequestRatio": "maxRatio"}
_COUNTED: Final = (Counted.CPU, Counted.MEMORY)


def containers_of(team: Team, reports: Reports) -> dict[str, Any]:
    """Return the defaults that LimitRanges give containers, if they are the same in each namespace."""
    by_space = [_defaults(space) for space in team.spaces]
    said = by_space[0] if by_space and all(found == by_space[0] for found in by_space) else {}
    for space, found in zip(team.spaces, by_space, strict=True):
        for item in space.limits:
            others = ["other defaults than in the tenant's other namespaces"] if found != said else _other_fields(item)
            at = (item.at / "spec" / "limits").key
            if limits := " and ".join([*others][:3]):
                reports.gather("limits-not-imported", at, space.name, limits=limits)
            # They are for containers that ask for none (`plugin/pkg/admission/limitranger` of kubernetes/kubernetes).
            for part in map(mapping, sequence(inside(item.body, "spec").get("limits"))):
                defaults = {**inside(part, "default"), **inside(part, "defaultRequest")}
                given = [name for name in defaults if name.startswith("nvidia.com/") and not is_zero(defaults[name])]
                if given and part.get("type") == "Container":
                    reports.gather("limits-give-gpus", at, space.name, given=listing(given))
    return said


def _defaults(space: Space) -> dict[str, Any]:
    found: dict[str, dict[str, Any]] = {}
    every = [mapping(one) for item in space.limits for one in sequence(mapping(item.body.get("spec")).get("limits"))]
    limits_of = [limits for limits in every if limits.get("type") == "Container"]
    for limits, (field, name), counted in product(limits_of, _FIELDS.items(), _COUNTED):
        value = mapping(limits.get(field)).get(counted.value)
        amount = exact_quantity(str(value)) if isinstance(value, str | int | float) else None
        if amount is not None:
            said = found.setdefault(counted.value, {})
            said.setdefault(name, as_number(amount) if name == "maxRatio" else str(value))
    capped = read_caps(space.quotas).plain if space.owner else {}
    for name, amounts in found.items():
        is_usual = f"requests.{name}" in capped and amounts.get("request") == DEFAULT_REQUESTS[Counted(name)]
        if amounts.get("request") == amounts.get("limit") or (is_usual and "limit" not in amounts):
            amounts.pop("request", None)
    return {name: amounts for name, amounts in found.items() if amounts}


def _other_fields(limit_range: Item) -> Iterator[str]:
    for limits in map(mapping, sequence(mapping(limit_range.body.get("spec")).get("limits"))):
        kind = text(limits.get("type"))
        if kind != "Container":
            yield f"limits of a {kind or 'thing without a type'}"
            continue
        for field, amounts in limits.items():
            names = [name for name in mapping(amounts) if field not in _FIELDS or name not in ("cpu", "memory")]
            if names:
                yield f"`{field}` of {listing(names)}"
