"""The rows that say what the change of a field does: each is well formed, and some edit reaches it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.planning.plan import Plan, Stage
from gpuplan.compiler.policy import models
from gpuplan.features.changes.fields import CONDITIONS, EXTRAS, VALUES, WAYS, Part, Row, changes_by_row, rows
from gpuplan.features.changes.step import Step
from tests.features.changes import edits
from tests.features.changes.platform import Edit, Platform, between, original, state

_SPECS: dict[str, type[BaseModel]] = {
    "Cluster": models.ClusterSpec,
    "GpuOperator": models.GpuOperator,
    "Pool": models.PoolSpec,
    "Scheduler": models.Scheduler,
    "Tenant": models.TenantSpec,
}
_KEYS = {
    "field",
    "differs",
    "if",
    "class",
    "what",
    "effect",
    "undo",
    "stages",
    "folders",
    "with",
    "texts",
    "else",
    *WAYS,
}
_KEYS_OF_A_WAY = {"field", "class", "what", "way", "effect"}


def _texts(row: Row) -> Iterator[Row]:
    return ({**row, **text} for text in row.get("texts", (row,)))


def _all_texts() -> Iterator[tuple[str, Row]]:
    return ((kind, text) for kind, found in rows().items() for row in found for text in _texts(row))


def _parts(plan: Plan) -> dict[str, Part]:
    cluster = plan.cluster
    parts = cluster, cluster.gpu_operator, cluster.scheduler, plan.pools[0], plan.tenants[0]
    return {type(part).__name__: part for part in parts}


def _ways(text: Row) -> list[Row]:
    """The text as each way of differing has it."""
    return [{**text, **text[way]} for way in sorted(WAYS & text.keys())] or [text]


def test_each_key_of_a_row_is_known() -> None:
    unknown = [(kind, key) for kind, text in _all_texts() for key in text.keys() - _KEYS]
    unknown += [
        (way, key)
        for _, text in _all_texts()
        for way in WAYS & text.keys()
        for key in text[way].keys() - _KEYS_OF_A_WAY
    ]
    assert unknown == []


def test_each_field_is_one_of_the_policy() -> None:
    named = {(kind, one["field"]) for kind, text in _all_texts() for one in _ways(text) if "field" in one}
    assert sorted(name for name in named if not _has(_SPECS[name[0]], name[1].split("."))) == []


def _has(model: type[BaseModel], path: list[str]) -> bool:
    fields = {field.alias or to_camel(name): field.annotation for name, field in model.model_fields.items()}
    if path[0] not in fields:
        return False
    inner = [one for one in (fields[path[0]], *get_args(fields[path[0]])) if isinstance(one, type)]
    return len(path) == 1 or any(_has(one, path[1:]) for one in inner if issubclass(one, BaseModel))


def test_each_value_and_each_condition_is_known() -> None:
    plan = state(original).plans[0]
    parts = _parts(plan)
    for kind, text in _all_texts():
        if text["differs"] not in VALUES:
            attrgetter(text["differs"])(parts[kind])
        conditions = text.get("if", [])
        for condition in [conditions] if isinstance(conditions, str) else conditions:
            verb, _, concept = condition.removeprefix("not ").partition(" ")
            if verb == "supports":
                plan.scheduler.supports(concept)
            elif condition not in CONDITIONS:
                attrgetter(verb)(plan)


def test_each_class_stage_and_extra_is_known() -> None:
    for _, text in _all_texts():
        assert all(ChangeClass(one["class"]) for one in _ways(text))
        assert all(Stage(stage) for stage in (*text.get("stages", ()), *text.get("folders", ())))
        assert EXTRAS.keys() >= {*text.get("with", ())}


def test_nothing_is_registered_that_no_row_names() -> None:
    values = {text["differs"] for _, text in _all_texts()}
    lists = [text.get("if", []) for _, text in _all_texts()]
    conditions = {name for found in lists for name in ([found] if isinstance(found, str) else found)}
    assert (VALUES.keys() - values, CONDITIONS.keys() - conditions) == (set(), set())


# --- Each row is reached -----------------------------------------------------------------------------------------


def _kai(platform: Platform) -> None:
    edits.go_from_kueue_to_kai(platform)


def _spread_pods(platform: Platform) -> None:
    platform.spec("Pool", "h100-training")["placement"] = "spread"


def _rank_the_surplus(platform: Platform) -> None:
    platform.spec("Tenant", "research")["surplus"] = {"rank": 2}


def _protect_pods(platform: Platform) -> None:
    platform.spec("Tenant", "research")["protect"] = {"reclaim": "1h"}


def _runai(platform: Platform) -> None:
    platform.cluster("prod")["scheduler"] = {"kind": "runai"}


def _known_to_runai(platform: Platform) -> None:
    platform.cluster("prod")["scheduler"]["runai"] = {"clusterId": "0d9f7a52-0000-4000-8000-000000000000"}
    edits.state_a_topology(platform)


def _another_runtime_class(platform: Platform) -> None:
    platform.cluster("prod")["gpuOperator"]["values"] = {"operator": {"runtimeClass": "gpus"}}


def _classes_in_another_order(platform: Platform) -> None:
    for name in ("agents", "training", "research", "model-services"):
        platform.spec("Tenant", name)["priorityClasses"].reverse()


_STEPS: tuple[tuple[tuple[Edit, ...], tuple[Edit, ...]], ...] = (
    (
        (),
        (
            edits.use_kubernetes_without_admission_policies,
            edits.guard_a_pool,
            edits.change_an_approval,
            edits.change_a_window,
            edits.add_a_node_label,
            edits.take_another_catalog,
            edits.let_work_of_a_tenant_evict_its_own,
            edits.change_members,
            edits.grant_rdma,
            edits.take_namespaces_by_label,
            edits.change_a_weight,
            edits.change_units_per_container,
        ),
    ),
    ((), (edits.change_pod_security, edits.open_a_class_to_a_tenant, edits.add_parents)),
    ((), (edits.bound_the_time_to_end,)),
    ((), (_classes_in_another_order, _another_runtime_class, edits.install_kueue, edits.state_a_topology)),
    ((edits.add_a_node_label,), (edits.change_a_node_label,)),
    ((edits.add_parents,), (edits.move_a_tenant_to_another_parent,)),
    ((edits.hand_out_whole_gpus_on_dev,), (edits.claim_devices,)),
    ((edits.install_kueue, edits.state_a_topology), (edits.upgrade_kueue, edits.change_a_topology)),
    ((edits.queue_by_kueue,), (edits.keep_the_cohort,)),
    ((edits.allow_more_than_is_guaranteed,), (edits.cap_what_is_guaranteed,)),
    ((edits.operated_by_others,), (edits.leave_the_cluster_policy_to_its_owner,)),
    ((_kai,), (_spread_pods,)),
    ((_kai,), (_rank_the_surplus,)),
    ((_kai,), (_protect_pods,)),
    ((_runai,), (_known_to_runai,)),
)


def test_an_edit_reaches_each_way_of_each_row() -> None:
    seen: set[tuple[str, str, str]] = set()
    for before, after in _STEPS:
        sides = [{plan.cluster.name: plan for plan in state(*each).plans} for each in (before, (*before, *after))]
        for name in sides[0].keys() & sides[1].keys():
            seen |= {*_reached(sides[0][name], sides[1][name]), *_reached(sides[1][name], sides[0][name])}
    known = {(kind, text["differs"], _template(one)) for kind, text in _all_texts() for one in _ways(text)}
    assert sorted(known - seen) == []


def test_rows_say_all_that_differs_in_the_output() -> None:
    """A row that is missing leaves what differs to the list of objects, which says no more than that it differs."""
    for before, after in _STEPS[:-1]:  # the files of Run:ai are listed one by one
        old, new = state(*before), state(*before, *after)
        assert between(old, new).objects == (), after
        if edits.leave_the_cluster_policy_to_its_owner not in after:  # its fields come back, and are listed
            assert between(new, old).objects == (), after


def test_the_id_of_a_cluster_in_runai_changes_only_while_runai_stays() -> None:
    known, unknown, other = state(_runai, _known_to_runai), state(_runai), state(original)
    texts = [[change.what for change in between(known, after).changes] for after in (unknown, other)]
    assert ["the cluster's id in Run:ai changes" in each for each in texts] == [True, False]


def _reached(before: Plan, after: Plan) -> Iterator[tuple[str, str, str]]:
    """The texts whose words a change of the two plans has."""
    step = Step.of(before, after)
    parts: list[tuple[Any, Any]] = [*step.kept_pools, *((old, new) for old, new in step.tenants if old and new)]
    parts += zip(_parts(before).values(), _parts(after).values(), strict=True)
    for old, new in parts:
        said = {words for change in changes_by_row(step, old, new) for words in change.what.split("; ")}
        for kind, text in _all_texts():
            yield from (
                (kind, text["differs"], _template(one))
                for one in _ways(text)
                if kind == type(new).__name__ and any(_is_of(words, one) for words in said)
            )


def _template(text: Row) -> str:
    return str(text["what"].replace("{way}", text.get("way", "")))


def _is_of(words: str, text: Row) -> bool:
    """Whether the words are those of the text, with anything filled in."""
    parts = re.split(r"{[^}]*}", _template(text))
    return re.fullmatch(".*".join(map(re.escape, parts)), words) is not None
