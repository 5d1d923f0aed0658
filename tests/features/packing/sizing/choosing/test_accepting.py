"""Choices that turn the fewest pods away as they come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.planning.placement.layouts import maximal_layouts
from gpuplan.features.packing.sizing.answers import Answer, NodeType, Objective, Proof
from gpuplan.features.packing.sizing.choosing import choose, highs
from gpuplan.features.packing.sizing.choosing.accepting import OWN
from gpuplan.features.packing.sizing.holding import hold
from gpuplan.features.packing.sizing.needs import Need
from gpuplan.features.packing.sizing.overflow import Law, Overflow, off_by
from tests.features.packing.sizing.choosing.building import A100, a_need, a_pool, nodes, units, unmet
from tests.features.packing.sizing.choosing.verifying import verify

LAW = Law.BY_CHANCE
PROFILES = ("1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb")


def accepted(needs: Sequence[Need], *types: NodeType, tolerance: float = 0, most_layouts: int | None = None) -> Answer:
    answer = choose(needs, types, Objective.ACCEPTED, tolerance=tolerance, most_layouts=most_layouts)
    assert verify(answer, needs, types) == []
    return answer


def sizes(*pods: int) -> list[Need]:
    """Pods that need a seventh, two, three and seven sevenths of a GPU."""
    each = zip(pods, ("1/7", "2/7", "3/7", "1"), PROFILES, strict=True)
    return [a_need(count, name, compute=part) for count, part, name in each if count]


def test_all_nodes_are_used_and_what_is_asked_for_has_room() -> None:
    answer = accepted(sizes(5, 3, 2, 1), nodes(count=9))
    assert (answer.nodes, unmet(answer)) == (9, {})
    assert units(answer) == {(name, name): count for name, count in zip(PROFILES, (5, 3, 2, 1), strict=True)}


def test_nothing_is_claimed_to_be_the_best() -> None:
    assert accepted(sizes(5, 3, 2, 1), nodes(count=6)).bound.proof is Proof.NONE


def test_what_is_beyond_the_demand_goes_where_most_would_be_turned_away() -> None:
    """Ten small pods and a large one on three GPUs: the third is for small ones, of which more come beyond ten."""
    answer = accepted(sizes(10, 0, 0, 1), nodes(count=3))
    assert room(answer) == {"1g.10gb": 14, "7g.80gb": 1}


def test_where_nodes_run_out_earlier_needs_come_first() -> None:
    answer = accepted([a_need(1, "first", compute="1"), a_need(9, "second", compute="1/7")], nodes(count=2))
    assert unmet(answer) == {"second": 2}


@pytest.mark.parametrize("tolerance", [0, 0.4])
@pytest.mark.parametrize(
    "pods", [(6, 3, 2, 1), (12, 1, 1, 0), (3, 3, 3, 1), (9, 0, 0, 2), (1, 5, 3, 0), (4, 4, 0, 1), (0, 3, 4, 1)]
)
def test_no_other_way_to_cut_five_gpus_turns_clearly_fewer_pods_away(pods: tuple[int, ...], tolerance: float) -> None:
    """Beside all ways: it climbs to an answer, and may stop a little below the top."""
    needs = sizes(*pods)
    answer = accepted(needs, nodes(count=5), tolerance=tolerance)
    best = min(away(held, needs, tolerance) for held in all_rooms(5, needs))
    assert away(room(answer), needs, tolerance) <= best + 0.02


def all_rooms(gpus: int, needs: Sequence[Need]) -> Iterator[Counter[str]]:
    """What GPUs can be cut into so that the needs have room."""
    layouts = maximal_layouts(A100, [need.name for need in needs])
    for chosen in combinations_with_replacement(layouts, gpus):
        held: Counter[str] = Counter()
        for layout in chosen:
            held.update(layout)
        if all(held[need.name] >= need.pods for need in needs):
            yield held


def away(held: Counter[str], needs: Sequence[Need], tolerance: float) -> float:
    names = [need.name for need in needs]
    larger = Overflow([range(at, len(names)) for at in range(len(names))])
    own = Overflow([[at] for at in range(len(names))])
    demands = [*off_by(len(names), tolerance)]
    counts = [held[name] for name in names]
    found = [
        weight * sum(one.turned_away([need.pods * by for need, by in zip(needs, each, strict=True)], counts, LAW))
        for each in demands
        for one, weight in ((larger, 1), (own, OWN))
    ]
    return sum(found) / len(demands)


def room(answer: Answer) -> Counter[str]:
    found: Counter[str] = Counter()
    for group in answer.groups:
        for counts in group.cut.per_gpu:
            found.update({name: count * group.nodes for name, count in (counts or {"7g.80gb": 1}).items()})
    return found


def test_it_turns_fewer_pods_away_than_the_answer_with_the_fewest_gpus() -> None:
    needs = sizes(20, 10, 6, 4)
    plain = choose(needs, [nodes(count=20)], Objective.GPUS)
    answer = accepted(needs, nodes(count=20), tolerance=0.3)
    before, after = (hold(one, needs, 0.3, Law.BY_CHANCE).larger.off for one in (plain, answer))
    assert before < 0.93 < 0.98 < after


def test_a_pool_that_is_kept_stays() -> None:
    small = {"1g.10gb": 7}
    kept = a_pool("old", 2, small, is_kept=True)
    answer = accepted(sizes(3, 0, 2, 0), nodes(count=4, pools=(kept, a_pool("new", 2, small))))
    assert sum(group.nodes for group in answer.groups if group.pool == "old") == 2


def test_of_answers_as_good_it_takes_the_one_that_is_there() -> None:
    today = a_pool("halves", 3, {"3g.40gb": 2})
    answer = accepted(sizes(0, 0, 4, 0), nodes(count=3, pools=(today,)))
    assert [(group.pool, group.nodes) for group in answer.groups] == [("halves", 3)]


def test_no_more_layouts_than_are_allowed() -> None:
    answer = accepted(sizes(9, 4, 2, 0), nodes(gpus=4, count=3), most_layouts=1)
    assert len(answer.groups) == 1


def test_no_more_layouts_than_are_allowed_on_more_nodes_than_pods() -> None:
    answer = accepted(sizes(1, 0, 0, 0), nodes(gpus=2, count=9), most_layouts=1)
    assert (answer.nodes, len(answer.groups)) == (9, 1)


def test_several_kinds_of_nodes() -> None:
    answer = accepted(
        [a_need(4, "whole", gpus=1), a_need(6, "small", compute="1/7")],
        nodes(count=3),
        nodes(gpus=2, count=2, name="pairs"),
    )
    assert (answer.nodes, unmet(answer)) == (5, {})


def test_the_number_of_nodes_must_be_known() -> None:
    with pytest.raises(GpuplanError, match="nobody says how many nodes of `A100-80GB` there are"):
        accepted(sizes(1, 0, 0, 0), nodes())


def test_without_the_solver_it_is_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "is_there", lambda: False)
    with pytest.raises(GpuplanError, match="cannot find what turns the fewest pods away without the solver HiGHS"):
        accepted(sizes(1, 0, 0, 0), nodes(count=1))


def test_the_same_question_has_the_same_answer() -> None:
    needs = [*sizes(7, 5, 3, 2), a_need(3, "big", memory=30)]
    first, second = (accepted(needs, nodes(gpus=2, count=8), tolerance=0.2) for _ in range(2))
    assert first.groups == second.groups
    assert first.bound.least == Fraction(0)


def test_pods_have_room_in_their_own_units_where_that_turns_hardly_others_away() -> None:
    """Six `1g` with seven `7g` would turn as few away, if all pods knew how to ask for larger ones."""
    needs = sizes(5, 5, 2, 2)
    held = hold(accepted(needs, nodes(count=12)), needs, 0, Law.BY_CHANCE)
    assert held.own.planned > 0.95
    assert held.larger.planned > 0.997
