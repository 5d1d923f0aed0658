"""Rollouts end where they are to, keep what is guaranteed on the way, and are refused only where no order does."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest
from hypothesis import assume, given, settings, strategies as st

from gpuplan.compiler.planning.plan import Plan, Pool, Sharing
from gpuplan.compiler.planning.plugin_configs import configuration
from gpuplan.compiler.planning.pools import is_alike
from gpuplan.features.changes.rollouts import Refusal, RolloutPlan, RolloutStep, StepKind, plan_rollout
from tests.plans import a_plan

PER_GPU: dict[str, dict[str, int]] = {
    "exclusive: {}": {"gpu": 1},
    "timeSlicing: {replicas: 3}": {"shared": 3},
    "mig: {instances: {3g.40gb: 2}}": {"3g.40gb": 2},
    "mig: {instances: {3g.40gb: 1, 2g.20gb: 2}}": {"2g.20gb": 2, "3g.40gb": 1},
    "mig: {instances: {2g.20gb: 3, 1g.10gb: 1}}": {"1g.10gb": 1, "2g.20gb": 3},
}
"""Ways of sharing that can be mixed in one pool, with what a GPU becomes."""
WAYS = sorted(PER_GPU)


RETAINED = """\
---
apiVersion: gpuplan.dev/v1
kind: Retained
metadata: {name: own}
spec:
  devicePluginConfig: {key: p, config: CONFIG}
  until: pool `p` is removed
"""


def config_of(way: str) -> str:
    """What the device plugin reads on nodes that are shared so."""
    pool = a_plan(
        "apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {name: p}\nspec:\n  gpu: A100-80GB\n"
        f"  nodes: {{count: 1, gpusPerNode: 1, names: [a]}}\n  sharing: {{{way}}}\n"
    ).pools[0]
    return json.dumps(configuration(pool, pool.keys.strategy))


class Case(NamedTuple):
    """A pool on its way, what is guaranteed of its units, and where it is to go."""

    nodes: int
    gpus: int
    sharing: str
    under_way: str | None
    moved: int
    target: str
    guaranteed: dict[str, int]
    max_unavailable: int
    is_told: bool = True
    """Whether a rollout under way has the document that says what the pool's own name means; older ones have none."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"node-{index}" for index in range(self.nodes))

    def capacity(self, *groups: tuple[str | None, int]) -> dict[str, int]:
        found: dict[str, int] = {}
        for way, nodes in groups:
            for unit, number in PER_GPU[way].items() if way else ():
                found[unit] = found.get(unit, 0) + number * nodes * self.gpus
        return found

    def keeps(self, *groups: tuple[str | None, int]) -> bool:
        capacity = self.capacity(*groups)
        return all(capacity.get(unit, 0) >= number for unit, number in self.guaranteed.items())

    def plan(self) -> Plan:
        quotas = "".join(f"\n  - {{pool: p, unit: {unit}, guaranteed: {n}}}" for unit, n in self.guaranteed.items())
        names = f"[{', '.join(self.names)}]"
        text = (
            "apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {name: p}\nspec:\n  gpu: A100-80GB\n"
            f"  nodes: {{count: {self.nodes}, gpusPerNode: {self.gpus}, names: {names}}}\n"
            f"  sharing: {{{self.sharing}}}\n"
        )
        if self.under_way:
            there = f"[{', '.join(self.names[: self.moved])}]"
            text += f"  rollout: {{sharing: {{{self.under_way}}}, nodes: {there}}}\n"
            if self.is_told:
                text += RETAINED.replace("CONFIG", config_of(self.sharing))
        if quotas:
            text += (
                "---\napiVersion: gpuplan.dev/v1\nkind: Tenant\nmetadata: {name: t}\n"
                f"spec:\n  namespaces: [t]\n  quotas:{quotas}\n"
            )
        return a_plan(text)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    nodes, gpus, sharing = draw(st.integers(1, 6)), draw(st.integers(1, 3)), draw(st.sampled_from(WAYS))
    under_way = draw(st.none() | st.sampled_from([way for way in WAYS if way != sharing]))
    moved = draw(st.integers(0, nodes)) if under_way else 0
    case = Case(nodes, gpus, sharing, under_way, moved, draw(st.sampled_from(WAYS)), {}, draw(st.integers(1, nodes)))
    now = case.capacity((sharing, nodes - moved), (under_way, moved))
    units = draw(st.lists(st.sampled_from(sorted(now)), unique=True))
    slack = draw(st.sampled_from((1, 2, 4)))
    guaranteed = {unit: number for unit in units if (number := draw(st.integers(0, now[unit] // slack)))}
    return case._replace(guaranteed=guaranteed)


def a_target(case: Case) -> Sharing:
    return case._replace(sharing=case.target, under_way=None, guaranteed={}).plan().pools[0].sharing


def outcome_of(case: Case) -> RolloutPlan | Refusal:
    plan = case.plan()
    return plan_rollout(plan.pools[0], a_target(case), case.names, case.max_unavailable, plan.totals)


def has_an_order(case: Case) -> bool:
    """Whether any sequence of batches keeps the guarantees: every one is tried."""
    legs = []
    if case.under_way and case.under_way != case.target:
        legs.append((case.under_way, case.sharing, case.moved))
    if case.target != case.sharing:
        gone = case.moved if case.under_way == case.target else 0
        legs.append((case.sharing, case.target, case.nodes - gone))
    return all(can_go(case, *leg) for leg in legs)


def can_go(case: Case, source: str, goal: str, left: int) -> bool:
    there = case.nodes - left
    return left == 0 or any(
        case.keeps((source, left - batch), (goal, there)) and can_go(case, source, goal, left - batch)
        for batch in range(1, min(case.max_unavailable, left) + 1)
    )


@given(cases())
def test_a_way_is_found_where_there_is_one_and_only_there(case: Case) -> None:
    assert isinstance(outcome_of(case), RolloutPlan) == has_an_order(case)


@settings(max_examples=400)
@given(cases())
def test_what_others_have_is_never_less_than_what_is_guaranteed(case: Case) -> None:
    outcome = outcome_of(case)
    assume(isinstance(outcome, RolloutPlan))
    ways = dict.fromkeys(case.names, case.sharing) | dict.fromkeys(case.names[: case.moved], case.under_way)
    for step in outcome.steps if isinstance(outcome, RolloutPlan) else ():
        present = [way for name, way in ways.items() if name not in step.nodes]
        during = case.capacity(*((way, 1) for way in present))
        assert case.keeps(*((way, 1) for way in present))
        assert {level.unit: level.during for level in step.levels if level.during} == (during if step.levels else {})
        goal = case.target if step.kind is StepKind.MOVE else case.sharing
        ways |= dict.fromkeys(step.nodes, goal)
    assert set(ways.values()) == {case.target}


@given(cases())
def test_no_more_nodes_are_away_than_allowed_and_each_goes_once_each_way(case: Case) -> None:
    outcome = outcome_of(case)
    assume(isinstance(outcome, RolloutPlan))
    steps = outcome.steps if isinstance(outcome, RolloutPlan) else ()
    assert all(len(step.nodes) <= case.max_unavailable for step in steps)
    for kind in (StepKind.MOVE, StepKind.RETURN):
        nodes = [name for step in steps if step.kind is kind for name in step.nodes]
        assert len(nodes) == len(set(nodes))


@given(cases())
def test_the_end_is_the_target_without_a_rollout(case: Case) -> None:
    outcome = outcome_of(case)
    assume(isinstance(outcome, RolloutPlan))
    steps = outcome.steps if isinstance(outcome, RolloutPlan) else ()
    if not steps:
        assert (case.sharing, case.under_way) == (case.target, None)
        return
    last = steps[-1].state
    assert is_alike(last.sharing, a_target(case))
    assert (last.rollout, last.moved, last.kept) == (None, (), ())


@given(cases())
def test_every_step_is_where_the_next_begins(case: Case) -> None:
    """Whoever plans anew after a step is told the rest of the same steps."""
    outcome = outcome_of(case)
    assume(isinstance(outcome, RolloutPlan) and case.under_way in (None, case.target))
    steps = outcome.steps if isinstance(outcome, RolloutPlan) else ()
    for index, step in enumerate(steps):
        if step.kind in (StepKind.PREPARE, StepKind.MOVE):
            further = case._replace(under_way=case.target, moved=len(step.state.moved))
            rest = outcome_of(further)
            assert isinstance(rest, RolloutPlan)
            assert [(item.kind, item.nodes) for item in rest.steps] == [
                (item.kind, item.nodes) for item in steps[index + 1 :]
            ]


# --- Some by hand ----------------------------------------------------------------------------------------------------

SHARED, LARGE, MEDIUM = (
    "timeSlicing: {replicas: 3}",
    "mig: {instances: {3g.40gb: 2}}",
    "mig: {instances: {2g.20gb: 3, 1g.10gb: 1}}",
)
FOUR = Case(4, 8, SHARED, None, 0, LARGE, {}, 1)


def told(outcome: RolloutPlan | Refusal) -> list[tuple[str, int]]:
    assert isinstance(outcome, RolloutPlan)
    return [(step.kind.value, len(step.nodes)) for step in outcome.steps]


def test_what_has_a_key_of_its_own_is_made_known_before() -> None:
    assert told(outcome_of(FOUR._replace(max_unavailable=2))) == [
        ("prepare", 0),
        ("move", 2),
        ("move", 2),
        ("settle", 0),
    ]


def test_from_one_layout_to_another_nodes_move_at_once() -> None:
    outcome = outcome_of(FOUR._replace(sharing=MEDIUM, max_unavailable=4))
    assert told(outcome) == [("move", 4), ("settle", 0)]


def test_a_rollout_that_began_without_a_meaning_of_the_name_gets_a_key_before_it_settles() -> None:
    """So that labels may go from the one to the other in any order."""
    outcome = outcome_of(FOUR._replace(under_way=LARGE, moved=3, is_told=False))

    assert told(outcome) == [("move", 1), ("prepare", 0), ("settle", 0), ("forget", 0)]
    assert isinstance(outcome, RolloutPlan)
    move, prepare, settle, _ = outcome.steps
    assert becomes(move).labels["nvidia.com/device-plugin.config"] == "p.rollout"
    assert [left.value for left in prepare.state.kept] == ["p.26e351e"]
    assert [left.value for left in settle.state.kept] == ["p.rollout"]
    assert (prepare.state.key, settle.state.key) == (None, "p.26e351e")


def test_from_the_middle_it_goes_on_or_back() -> None:
    middle = FOUR._replace(under_way=LARGE, moved=3)
    assert told(outcome_of(middle)) == [("move", 1), ("settle", 0)]
    assert told(outcome_of(middle._replace(target=SHARED))) == [("return", 1)] * 3 + [("forget", 0)]


def test_to_a_third_sharing_nodes_go_back_first() -> None:
    outcome = outcome_of(FOUR._replace(under_way=LARGE, moved=1, target=MEDIUM, max_unavailable=4))
    assert told(outcome) == [("return", 1), ("move", 4), ("settle", 0)]


def test_a_batch_is_as_large_as_is_safe() -> None:
    """Of 4 nodes with 16 large ones each, 24 are guaranteed; moved ones have 8."""
    case = FOUR._replace(
        sharing=LARGE,
        target="mig: {instances: {3g.40gb: 1, 2g.20gb: 2}}",
        guaranteed={"3g.40gb": 24},
        max_unavailable=4,
    )
    outcome = outcome_of(case)
    assert told(outcome) == [("move", 2), ("move", 1), ("move", 1), ("settle", 0)]
    assert isinstance(outcome, RolloutPlan)
    large = [level for step in outcome.steps for level in step.levels if level.unit == "3g.40gb"]
    assert [level[1:] for level in large] == [(64, 32, 48, 24), (48, 32, 40, 24), (40, 24, 32, 24)]


def test_a_unit_that_vanishes_cannot_be_guaranteed() -> None:
    refusal = outcome_of(FOUR._replace(guaranteed={"shared": 10}))
    assert isinstance(refusal, Refusal)
    assert refusal.shortages == (("shared", 0, 10, 3, (("t", 10),)),)


def test_without_slack_no_node_can_go() -> None:
    refusal = outcome_of(FOUR._replace(nodes=1, sharing=LARGE, target=MEDIUM, guaranteed={"3g.40gb": 1}))
    assert isinstance(refusal, Refusal)
    assert refusal.shortages == (("3g.40gb", 0, 1, 0, (("t", 1),)),)


@pytest.mark.parametrize(
    ("target", "nodes", "missing"), [("mig: {instances: {3g.40gb: 1, 2g.20gb: 2}}", 2, 3), (MEDIUM, 2, None)]
)
def test_how_many_nodes_would_make_up_for_a_shortage(target: str, nodes: int, missing: int | None) -> None:
    """Of 32 guaranteed, a node has 16 before and 8 after: one may be away of five."""
    case = FOUR._replace(nodes=nodes, sharing=LARGE, target=target, guaranteed={"3g.40gb": 32})
    refusal = outcome_of(case)
    assert isinstance(refusal, Refusal)
    assert refusal.find_nodes_missing(refusal.shortages[0]) == missing
    if missing is not None:
        assert isinstance(outcome_of(case._replace(nodes=nodes + missing)), RolloutPlan)
        assert isinstance(outcome_of(case._replace(nodes=nodes + missing - 1)), Refusal)


@pytest.mark.parametrize(
    ("sharing", "target"),
    [
        ("exclusive: {}", "mig: {instances: {3g.40gb: 2}, strategy: single}"),
        ("timeSlicing: {replicas: 3}", "timeSlicing: {replicas: 4}"),
        ("exclusive: {}", "fraction: {}"),
    ],
)
def test_units_of_one_name_cannot_be_mixed(sharing: str, target: str) -> None:
    refusal = outcome_of(FOUR._replace(sharing=sharing, target=target))
    assert isinstance(refusal, Refusal)
    assert refusal.clash is not None


def test_nothing_is_left_to_do_at_the_target() -> None:
    assert told(outcome_of(FOUR._replace(target=SHARED))) == []


def becomes(step: RolloutStep) -> Pool:
    assert step.becomes is not None
    return step.becomes


def test_moved_nodes_have_a_configuration_of_their_own() -> None:
    outcome = outcome_of(FOUR)
    assert isinstance(outcome, RolloutPlan)
    labels = becomes(outcome.steps[1]).labels
    assert labels["nvidia.com/device-plugin.config"] == outcome.target.labels["nvidia.com/device-plugin.config"]
    assert labels["nvidia.com/device-plugin.config"] == "p.26e351e"
    assert labels["gpuplan.dev/pool"] == "p"
