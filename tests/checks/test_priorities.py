"""Priority classes: who can evict whom, as the schedulers see it."""

from __future__ import annotations

from hypothesis import given, strategies as st

from gpuplan.compiler.base.diagnostics import Severity
from gpuplan.compiler.checks import priorities
from tests.checks.found import only
from tests.plans import a_cluster, a_plan


def a_class(name: str, value: int, more: str = "") -> str:
    heading = f"---\napiVersion: gpuplan.dev/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\n"
    return f"{heading}spec: {{value: {value}{more}}}\n"


def test_every_class_that_may_evict_is_named_lowest_first() -> None:
    classes = a_class("mid", 5, ", preemptible: false") + a_class("top", 9) + a_class("calm", 7, ", preempts: false")
    finding = only(list(priorities.evictable_class.find(a_plan(classes + a_class("low", 1) + a_class("next", 6)))))
    assert finding.message == "pods of class `mid` can be evicted by pods of `next` and `top`"
    assert finding.help == "raise `mid` above 9, or write `preempts: false` on `next` and `top`"


def test_a_cluster_that_refuses_losses_makes_an_evictable_class_an_error() -> None:
    classes = a_class("mid", 5, ", preemptible: false") + a_class("top", 9)
    kept, refused = a_cluster("kind: kubernetes"), a_cluster("kind: kubernetes, onLoss: refuse")
    assert only(list(priorities.evictable_class.find(a_plan(kept + classes)))).severity is Severity.WARNING
    assert only(list(priorities.evictable_class.find(a_plan(refused + classes)))).severity is Severity.ERROR


def test_kai_scheduler_evicts_by_its_own_rules() -> None:
    plan = a_plan(a_cluster("kind: kai") + a_class("mid", 500, ", preemptible: false") + a_class("top", 900))
    assert list(priorities.evictable_class.find(plan)) == []


def test_where_no_class_preempts_that_is_taken_to_be_meant() -> None:
    classes = [a_class(name, value, ", preempts: false") for name, value in (("low", 1), ("mid", 2), ("top", 3))]
    assert list(priorities.never_evicted.find(a_plan("".join(classes)))) == []


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=5))
def test_each_value_that_comes_again_is_reported(values: list[int]) -> None:
    classes = [a_class(f"c{index}", value) for index, value in enumerate(values)]
    found = list(priorities.equal_priorities.find(a_plan("".join(classes))))
    assert len(found) == len(values) - len(set(values))


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=5))
def test_a_default_is_reported_exactly_when_it_is_not_the_lowest(values: list[int]) -> None:
    default, *others = [a_class(f"c{i}", value, ", default: true" if i == 0 else "") for i, value in enumerate(values)]
    found = list(priorities.default_class_outranks.find(a_plan(default + "".join(others))))
    assert len(found) == (values[0] > min(values))
