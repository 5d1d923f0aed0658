"""Read work: what gpuplan wrote becomes Workloads again, and of other work it is told whether it goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuplan.adoption.draft import Draft, Found, joined
from gpuplan.adoption.dump import Dump, Item
from gpuplan.adoption.rules import WORK_LEFT_ALONE
from gpuplan.adoption.work.ending import ending
from gpuplan.adoption.work.groups import JOB, JOB_SET, TRAINING_RUNTIME, Group, groups_of, kind_of, template_of
from gpuplan.adoption.work.judging import Judged, Spec, judge
from gpuplan.adoption.work.others import others
from gpuplan.adoption.work.pods import common
from gpuplan.adoption.work.serving import serving
from gpuplan.credentials import holds_credential
from gpuplan.diagnostics import Diagnostic, Finding, Path, field_path
from gpuplan.planning.plan import Plan, Tenant

_MOST_GUESSES = 32
"""How many readings of one workload are tried."""


def read(dump: Dump, plan: Plan) -> Found:
    """The Workloads of what gpuplan wrote, and a finding for each other object whose pods ask for GPUs."""
    groups = groups_of(dump)
    names = [group.name for group in groups]
    found = [_twice(group) if names.count(group.name) > 1 else _read(plan, group) for group in groups]
    return joined(found) + Found(diagnostics=(*others(dump, plan),))


def _twice(group: Group) -> Found:
    finding = Finding(
        group.items[0].at,
        f"workloads in several namespaces are called `{group.name}`",
        label="not taken over",
        notes=("a Workload's name is its own in the whole cluster",),
        help="write them by hand, under names of their own",
    )
    return Found(diagnostics=(WORK_LEFT_ALONE.report(finding),))


def _read(plan: Plan, group: Group) -> Found:
    tenant = _tenant_of(plan, group)
    if tenant is None:
        return _left(group, group.items[0].at.path, f"no tenant has the namespace `{group.namespace}`")
    best: Judged | None = None
    for maker, guess in _guesses(plan, group, tenant):
        found = judge(plan, group, maker, guess)
        if found.is_right:
            return _taken(group, found)
        if best is None or found.rank > best.rank:
            best = found
    return _not_right(group, best)


def _tenant_of(plan: Plan, group: Group) -> Tenant | None:
    """The tenant that its label names, or whose the namespace is."""
    named = (tenant for tenant in plan.tenants if tenant.name == group.tenant)
    owning = (tenant for tenant in plan.tenants if group.namespace in tenant.spec.namespaces)
    return next(named, None) or next(owning, None)


def _guesses(plan: Plan, group: Group, tenant: Tenant) -> Iterator[tuple[Item, Spec]]:
    left = _MOST_GUESSES
    for maker in group.makers:
        is_ending = kind_of(maker) in (JOB, JOB_SET, TRAINING_RUNTIME)
        for shared in common(plan, group, tenant, template_of(maker)):
            for work in ending(plan, group, tenant, maker) if is_ending else _served(group, maker):
                if not left:
                    return
                left -= 1
                yield maker, {**shared, **work}


def _served(group: Group, maker: Item) -> Iterator[Spec]:
    return ({"inference": spec} for spec in serving(group, maker))


# --- What comes of it ------------------------------------------------------------------------------------------------


def _taken(group: Group, found: Judged) -> Found:
    """The Workload, unless it says a secret; what has its labels and would not be written is told."""
    if secret := next(_secrets(found.spec, ()), None):
        return _secret(group, secret)
    sources = tuple(item.source for item in group.items if item.identity in found.written)
    stale = [item for item in group.items if item.identity not in found.written]
    remarks = tuple(f"{item.title}, which has the workload's labels." for item in stale)
    draft = Draft("Workload", group.name, found.spec, sources, remarks)
    return Found((draft,), tuple(_stale(group, item) for item in stale))


def _stale(group: Group, item: Item) -> Diagnostic:
    finding = Finding(
        item.at,
        f"{item.title} has the labels of workload `{group.name}`, and is no part of it",
        label="not written",
        notes=("a Job that has become another one leaves the one before, until somebody removes it",),
        help="delete it when nothing needs it",
    )
    return WORK_LEFT_ALONE.report(finding)


def _secrets(value: object, route: Path) -> Iterator[Path]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _secrets(item, (*route, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _secrets(item, (*route, index))
    elif isinstance(value, str) and holds_credential(value):
        yield route


def _secret(group: Group, route: Path) -> Found:
    what = f"variable `{route[-1]}`" if route[-2:-1] == ("env",) else f"`{field_path(route)}`"
    return _left(
        group,
        (),
        f"{what} has what looks like a secret",
        "revoke it, put the new one into a Secret, and write the Workload with a `secretKeyRef`",
    )


def _not_right(group: Group, found: Judged | None) -> Found:
    if found is None:
        return _left(group, (), "its pods name no pool and no unit of the policies")
    if found.problem:
        return _left(group, (), found.problem)
    if found.item is None or found.route is None:
        return _left(group, (), f"{found.lacking} is not in the dump, and gpuplan writes it")
    if found.lacking:
        return _left(group, found.route, f"gpuplan would call it `{found.lacking.name}`", item=found.item)
    return _left(group, found.route, f"gpuplan would write `{field_path(found.route)}` in another way", item=found.item)


def _left(group: Group, route: Path, reason: str, instead: str = "", item: Item | None = None) -> Found:
    chosen = item or group.items[0]
    finding = Finding(
        chosen.at / route,
        f"workload `{group.name}` in namespace `{group.namespace}` is left as it is",
        label=reason,
        help=instead or "write its Workload by hand, and compare what it builds with what is there",
    )
    return Found(diagnostics=(WORK_LEFT_ALONE.report(finding),))
