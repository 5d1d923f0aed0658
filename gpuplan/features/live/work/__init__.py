"""Read work: what gpuplan wrote becomes Workloads again, and of other work it is told whether it goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from gpuplan.compiler.base.diagnostics import Path, field_path
from gpuplan.compiler.checks.workloads import secret_in_a_policy
from gpuplan.compiler.planning.plan import Plan, Tenant
from gpuplan.features.live.drafts import Draft, Found
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import report
from gpuplan.features.live.work.ending import ending
from gpuplan.features.live.work.judging import Judged, Spec, judge
from gpuplan.features.live.work.others import others
from gpuplan.features.live.work.pods import (
    JOB,
    JOB_SET,
    TRAINING_RUNTIME,
    Group,
    common,
    groups_of,
    kind_of,
    respelled,
    template_of,
)
from gpuplan.features.live.work.serving import serving

_MOST_GUESSES = 32
"""The number of readings of one workload that are tried."""


def read(dump: Dump, plan: Plan) -> Found:
    """Return the Workloads of what gpuplan wrote, and a finding for each other object whose pods ask for GPUs."""
    groups = groups_of(dump)
    times = Counter(group.name for group in groups)
    drafts = Found()
    for group in groups:
        if times[group.name] > 1:
            drafts += Found(diagnostics=(report("work-called-alike", group.items[0].at, group=group),))
        else:
            drafts += _read(plan, group)
    return drafts + Found(diagnostics=tuple(others(dump, plan)))


def _read(plan: Plan, group: Group) -> Found:
    named = (tenant for tenant in plan.tenants if tenant.name == group.tenant)
    owning = (tenant for tenant in plan.tenants if group.namespace in tenant.spec.namespaces)
    tenant = next(named, None) or next(owning, None)
    if tenant is None:
        return _left_alone(group, group.items[0].at.path, f"no tenant has the namespace `{group.namespace}`")
    best: Judged | None = None
    for maker, guess in _guesses(plan, group, tenant):
        found = judge(plan, group, maker, guess)
        if found.is_right:
            if secret := _secret(plan, found):
                instead = "revoke it, put the new one into a Secret, and write the Workload with a `secretKeyRef`"
                return _left_alone(group, (), secret, instead)
            sources = tuple(item.source for item in group.items if item.identity in found.written)
            stale = [item for item in group.items if item.identity not in found.written]
            remarks = tuple(f"{item.title}, which has the workload's labels." for item in stale)
            draft = Draft("Workload", group.name, found.spec, sources, remarks)
            return Found((draft,), tuple(report("stale-object", item.at, group=group, item=item) for item in stale))
        if best is None or found.rank > best.rank:
            best = found
    if best is None:
        return _left_alone(group, (), "its pods name no pool and no unit of the policies")
    if best.problem:
        return _left_alone(group, (), best.problem)
    if best.obj is None or best.route is None:
        return _left_alone(group, (), f"{best.lacking} is not in the dump, and gpuplan writes it")
    if best.lacking:
        return _left_alone(group, best.route, f"gpuplan would call it `{best.lacking.name}`", obj=best.obj)
    return _left_alone(
        group, best.route, f"gpuplan would write `{field_path(best.route)}` in another way", obj=best.obj
    )


def _guesses(plan: Plan, group: Group, tenant: Tenant) -> Iterator[tuple[Item, Spec]]:
    left = _MOST_GUESSES
    for maker in group.makers:
        is_ending = kind_of(maker) in (JOB, JOB_SET, TRAINING_RUNTIME)
        for shared in respelled(common(plan, group, tenant, template_of(maker)), is_named_by_content=is_ending):
            for work in (
                ending(plan, group, tenant, maker)
                if is_ending
                else ({"inference": spec} for spec in serving(group, maker))
            ):
                if not left:
                    return
                left -= 1
                yield maker, {**shared, **work}


# --- What comes of it ------------------------------------------------------------------------------------------------


def _secret(plan: Plan, judged: Judged) -> str:
    """Return a message on what looks like a secret in the work, without the value."""
    work = (judged.workload,) if judged.workload else ()
    told = (item.message for item in secret_in_a_policy.find(replace(plan, workloads=work)))
    return next(iter(told), "")


def _left_alone(group: Group, route: Path, reason: str, instead: str = "", obj: Item | None = None) -> Found:
    chosen = obj or group.items[0]
    return Found(
        diagnostics=(
            report(
                "work-left-alone",
                chosen.at / route,
                group=group,
                help=instead or "write its Workload by hand, and compare what it builds with what is there",
                label=reason,
            ),
        )
    )
