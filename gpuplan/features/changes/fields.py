"""The effects of changes of fields, by the rows of `fields.yaml`. No row looks at nodes or pods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache, reduce
from operator import attrgetter, truediv
from pathlib import Path
from typing import Any, Final

from gpuplan.compiler.base.disturbance import ChangeClass, worst
from gpuplan.compiler.documents import read_data
from gpuplan.compiler.planning.apis import find_chart
from gpuplan.compiler.planning.appliers import find_applier_to_nodes
from gpuplan.compiler.planning.dra import uses_claims
from gpuplan.compiler.planning.grants import (
    account_of,
    grace_seconds,
    grants,
    has_admission_policies,
    is_held_by_rules,
    role_of,
    runtime_class,
)
from gpuplan.compiler.planning.kueue import root_cohort
from gpuplan.compiler.planning.plan import Cluster, GpuOperator, Plan, Pool, Scheduler, Tenant
from gpuplan.compiler.planning.preemption import evicts_within
from gpuplan.compiler.planning.projects import seconds
from gpuplan.compiler.planning.schedulers import Protects
from gpuplan.compiler.policy.models import Cap, Install
from gpuplan.features.changes.model import NOTHING_RUNS, REVERT, Change, amount, names, of
from gpuplan.features.changes.nodes import impact, pods_of
from gpuplan.features.changes.step import Step

Part = Cluster | GpuOperator | Pool | Scheduler | Tenant
Row = Mapping[str, Any]


@cache
def rows() -> Mapping[str, Sequence[Row]]:
    """The rows by the kind of the part of a plan that they are about."""
    found: Mapping[str, Sequence[Row]] = read_data(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return found


def changes_by_row(step: Step, old: Part, new: Part) -> Iterator[Change]:
    """Yield the changes of all rows that hold of a part of both plans; those of a cluster's parts are the cluster's."""
    whose, is_silent = new if isinstance(new, Pool | Tenant) else step.after.cluster, True
    for row in rows()[type(new).__name__]:
        texts = [text for each in row.get("texts", (row,)) for text in _texts(step, {**row, **each}, old, new)]
        if texts and (is_silent or "else" not in row):
            first, is_silent = texts[0], False
            yield Change(
                *of(step.after, whose, reduce(truediv, filter(None, first.get("field", "").split(".")), new.at)),
                worst(ChangeClass(text["class"]) for text in texts),
                "; ".join(text["what"] for text in texts),
                first.get("effect", NOTHING_RUNS),
                row.get("undo", REVERT),
                stages=tuple(row.get("stages", ())),
                folders=tuple(row.get("folders", ())),
                **{name: EXTRAS[name](old, new) for name in row.get("with", ())},
            )


def _texts(step: Step, row: Row, old: Part, new: Part) -> Iterator[Row]:
    """Yield the row, with its words filled in, for each way in which its value differs if its conditions hold."""
    name = row["differs"]
    before, after = (
        VALUES[name](plan, part) if name in VALUES else attrgetter(name)(part)
        for plan, part in ((step.before, old), (step.after, new))
    )
    if before == after or not _holds(step, row, old, new):
        return
    for way, keys in _ways(before, after):
        said = row.keys() & WAYS
        if not said or way in row or "other" in said:
            text = {**row, **row.get(way, row.get("other", {}))}
            places = {
                "plan": step.after,
                "part": new,
                "names": names(keys),
                "old": _shown(before),
                "new": _shown(after),
            }
            places["way"] = text.get("way", "").format(**places)
            yield {**text, "what": text["what"].format(**places)}


def _ways(before: object, after: object) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the ways in which two values differ, with the keys that do if the values have keys."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        both = [key for key in after if key in before and before[key] != after[key]]
        ways = {"lost": [*(before.keys() - after)], "changed": both, "got": [*(after.keys() - before)]}
        yield from ((way, keys) for way, keys in ways.items() if keys)
    else:
        yield "other" if bool(before) is bool(after) else "comes" if after else "goes", ()


def _shown(value: object) -> object:
    if isinstance(value, Decimal):
        return amount(value)
    return names(value) if isinstance(value, list) and all(isinstance(name, str) for name in value) else value


def _holds(step: Step, row: Row, old: Part, new: Part) -> bool:
    """Whether each condition of a row holds: named, a feature of the scheduler, or an attribute of the later plan."""
    conditions = row.get("if", ())
    for condition in [conditions] if isinstance(conditions, str) else conditions:
        name = condition.removeprefix("not ")
        verb, _, feature = name.partition(" ")
        if name in CONDITIONS:
            holds = CONDITIONS[name](step, old, new)
        else:
            holds = step.after.scheduler.supports(feature) if verb == "supports" else attrgetter(name)(step.after)
        if bool(holds) is (name != condition):
            return False
    return True


def _caps(plan: Plan) -> object:
    return [(tenant.name, quota.caps) for tenant in plan.tenants for quota in tenant.quotas]


def _has_applier(plan: Plan, pool: Pool, trait: str) -> bool:
    applier = find_applier_to_nodes(plan, pool)
    return applier is not None and bool(getattr(applier, trait))


def _limits_containers(old: Tenant, new: Tenant) -> bool:
    """Whether a number of units for each container limits anything: a container may have one share anyway."""
    as_before = new._replace(spec=new.spec.model_copy(update={"allow": old.spec.allow}))
    return any(grants(new, name) != grants(as_before, name) for name in new.spec.namespaces)


_CAPPED: Final[Mapping[Cap, str]] = {
    Cap.LIMIT: "quotas cap at the limit",
    Cap.GUARANTEED: "quotas cap what is guaranteed",
    Cap.QUEUE: "queues cap what is granted, and quotas refuse the rest",
}

WAYS: Final = frozenset(("comes", "other", "goes", "lost", "changed", "got"))
"""The ways in which a value differs."""

VALUES: Final[Mapping[str, Callable[[Plan, Any], object]]] = {
    "admission policies": lambda plan, _: has_admission_policies(plan.cluster),
    "cap": lambda plan, _: _CAPPED[plan.cluster.cap],
    "chart": lambda plan, _: (chart := find_chart(plan.cluster)) and chart.version,
    "claims": lambda plan, _: uses_claims(plan),
    "Cohort": lambda plan, _: root_cohort(plan.cluster),
    "evicts its own work": lambda _, tenant: evicts_within(tenant),
    "guard": lambda _, pool: (guard := pool.spec.disruption.guard) and (guard.image, seconds(guard.timeout)),
    "held by rules": lambda _, tenant: is_held_by_rules(tenant),
    "network resources": lambda _, tenant: dict.fromkeys(tenant.spec.allow.rdma),
    "own grace period": lambda _, tenant: (period := tenant.spec.allow.grace_period) and seconds(period),
    "order of priority classes": lambda _, tenant: [priority.name for priority in tenant.priority_classes],
    "placement": lambda _, pool: pool.spec.placement or "as the scheduler does by itself",
    "priority classes": lambda _, tenant: dict.fromkeys(priority.name for priority in tenant.priority_classes),
    "roles of members": lambda _, tenant: {(account_of(one), role_of(one)) for one in tenant.spec.members},
    "RuntimeClass": lambda plan, _: runtime_class(plan.cluster),
}
"""The values that are no attributes of a part."""

CONDITIONS: Final[Mapping[str, Callable[[Step, Any, Any], bool]]] = {
    "a bound on the time to end": lambda step, _, __: (
        has_admission_policies(step.after.cluster) and grace_seconds(step.after.cluster) is not None
    ),
    "admission policies": lambda step, _, __: has_admission_policies(step.after.cluster),
    "an applier that keeps windows": lambda step, _, pool: _has_applier(step.after, pool, "keeps_windows"),
    "an applier that runs hooks": lambda step, _, pool: _has_applier(step.after, pool, "runs_hooks"),
    "an applier to nodes": lambda step, _, pool: find_applier_to_nodes(step.after, pool) is not None,
    "installed by OLM": lambda _, __, operator: operator.spec.install is Install.OLM,
    "quotas cap otherwise": lambda step, old, new: (
        old.spec.cap is not new.spec.cap and _caps(step.before) != _caps(step.after)
    ),
    "same scheduler": lambda step, _, __: step.before.scheduler is step.after.scheduler,
    "somebody is protected": lambda step, _, __: step.after.scheduler.protects is not Protects.NOBODY,
    "units for each container": lambda _, old, new: _limits_containers(old, new),
}
"""The conditions that are no attributes of the later plan."""

EXTRAS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "nodes": lambda _, pool: impact(pool.nodes),
    "pods": lambda tenant, _: pods_of(tenant),
    "windows": lambda _, pool: pool.windows,
}
"""The further fields of a change that a row may ask for."""
