"""The oracle of `pack` beside brute force, which tries all layouts, all owners of units and all places of pods."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, groupby, product
from typing import Final

import pytest

from tests.laws.packing.oracle import (
    BOARDS,
    WHOLE,
    Moves,
    Need,
    Policies,
    Pool,
    Question,
    compute_of,
    faults,
    is_layout,
    memory_of,
    moves,
    unserved,
)

QUESTIONS: Final = 400 if os.environ.get("GPUPLAN_TEST_PROOF") else 60

Unit = tuple[str, str, int]
"""A unit of a node: its model, its name, and the number of the node."""

# --- Brute force -------------------------------------------------------------------------------------------------


@cache
def _contents(model: str) -> tuple[tuple[str, ...], ...]:
    """Return all that one GPU can hold to which nothing can be added."""
    fitting: set[tuple[str, ...]] = set()
    names = [*BOARDS[model].profiles]
    for number in range(1, 8):
        for some in combinations_with_replacement(names, number):
            if is_layout(model, {name: some.count(name) for name in some}):
                fitting.add(some)
    more = {tuple(sorted((*some, name), key=names.index)) for some in fitting for name in names} & fitting
    below = {tuple(one for at, one in enumerate(some) if at != left) for some in more for left in range(len(some))}
    return ((WHOLE,), *sorted(fitting - below))


def _least_by_force(question: Question) -> int | None:
    """Try fleets from the smallest, each cut in all ways."""
    (model, limit), *others = question.limits.items()
    fleets = [[(model, nodes)] for nodes in range(limit.nodes + 1)]
    for other, most in others:
        fleets = [[*fleet, (other, nodes)] for fleet in fleets for nodes in range(most.nodes + 1)]

    def gpus(fleet: Iterable[tuple[str, int]]) -> int:
        return sum(question.limits[model].gpus_per_node * nodes for model, nodes in fleet)

    for fleet in sorted(fleets, key=gpus):
        if any(_is_enough(question, units) for units in _cut(question, fleet)):
            return gpus(fleet)
    return None


def _cut(question: Question, fleet: Sequence[tuple[str, int]]) -> Iterator[list[Unit]]:
    ways = []
    for model, number in fleet:
        each = [*combinations_with_replacement(_contents(model), question.limits[model].gpus_per_node)]
        ways.append([(model, cut) for cut in combinations_with_replacement(each, number)])
    for choice in product(*ways):
        nodes = [(model, node) for model, contents in choice for node in contents]
        yield [(model, unit, at) for at, (model, node) in enumerate(nodes) for gpu in node for unit in gpu]


def _is_enough(question: Question, units: Sequence[Unit]) -> bool:
    teams = sorted({need.team for need in (*question.needs, *question.guarantees)})
    if not all(_serve(_pods(needs), units) for needs in (question.needs, question.guarantees)):
        return False
    alike = [[*same] for _, same in groupby(sorted(units))]
    owners = [[*combinations_with_replacement(teams, len(same))] for same in alike]
    for choice in product(*owners):
        held: dict[str, list[Unit]] = {team: [] for team in teams}
        for same, named in zip(alike, choice, strict=True):
            for unit, team in zip(same, named, strict=True):
                held[team].append(unit)
        if all(
            _serve(_pods(need for need in needs if need.team == team), held[team])
            for needs in (question.needs, question.guarantees)
            for team in teams
        ):
            return True
    return False


def _pods(needs: Iterable[Need]) -> list[Need]:
    return sorted((need for need in needs for _ in range(need.pods)), key=lambda need: (-need.gpus, need))


def _serve(pods: Sequence[Need], units: Sequence[Unit]) -> bool:
    if not pods:
        return True
    pod, *others = pods
    number = max(pod.gpus, 1)
    for same in {unit for unit in units if pod.takes(*unit[:2])}:
        if units.count(same) >= number:
            rest = list(units)
            for _ in range(number):
                rest.remove(same)
            if _serve(others, rest):
                return True
    return False


# --- Tiny questions ----------------------------------------------------------------------------------------------


def _question(seed: int) -> Question:
    rng = random.Random(seed)
    fleet = rng.choice(
        (
            {"A30-24GB": (3, 2)},
            {"A30-24GB": (2, 3)},
            {"A100-80GB": (2, 1)},
            {"A30-24GB": (2, 1), "L40S-48GB": (2, 2)},
            {"L40S-48GB": (3, 3)},
            {"A30-24GB": (1, 2), "A100-80GB": (1, 1)},
        )
    )
    pools = {model: Pool(model, nodes, ((),) * gpus, "") for model, (nodes, gpus) in fleet.items()}
    needs = [_need(rng, pools) for _ in range(rng.randint(1, 3))]
    promised = [_promise(rng, [*fleet]) for _ in range(rng.choice((0, 1, 1)))]
    return Question(Policies(pools, {}), needs, promised)


def _need(rng: random.Random, pools: dict[str, Pool]) -> Need:
    pool = rng.choice([*pools.values()])
    models = (pool.model,) if rng.random() < 0.3 else ()
    pods, team = rng.choice((1, 1, 2, 3)), rng.choice("ab")
    if rng.random() < 0.4:
        return Need(team, "w", min(pods, 2), gpus=rng.randint(1, len(pool.cut)), models=models)
    compute = rng.choice((Fraction(0), Fraction(1, 4), Fraction(1, 2)))
    return Need(team, "w", pods, rng.choice((2, 9, 20, 30)) * 1024, compute, models=models)


def _promise(rng: random.Random, models: Sequence[str]) -> Need:
    model = rng.choice(models)
    unit = rng.choice([*BOARDS[model].profiles, WHOLE])
    least = memory_of(model, unit), compute_of(model, unit)
    return Need(rng.choice("ab"), unit, rng.choice((1, 2)), *least, int(unit == WHOLE), (model,))


@pytest.mark.parametrize("seed", range(QUESTIONS))
def test_the_oracle_takes_as_many_gpus_as_brute_force(seed: int) -> None:
    question = _question(seed)
    assert question.least_gpus == _least_by_force(question)


def test_what_a_team_is_guaranteed_and_what_it_asks_for_may_have_the_same_unit() -> None:
    pools = {"p": Pool("L40S-48GB", 2, ((),), "")}
    asked, promised = Need("a", "w", 1, 30 * 1024), Need("a", WHOLE, 1, 30 * 1024, gpus=1)
    assert Question(Policies(pools, {}), [asked], [promised]).least_gpus == 1
    assert Question(Policies(pools, {}), [asked], [promised._replace(team="b")]).least_gpus == 2


def test_a_kept_pool_counts_with_all_its_nodes_and_serves_first() -> None:
    pools = {"p": Pool("A30-24GB", 2, ((("1g.6gb", 4),),), ""), "q": Pool("A30-24GB", 1, ((),), "")}
    few, many = Need("a", "w", 8, 2048), Need("a", "w", 9, 2048)
    assert Question(Policies(pools, {}), [few], keep=["p"]).least_gpus == 2
    assert Question(Policies(pools, {}), [many], keep=["p"]).least_gpus == 3
    assert Question(Policies(pools, {}), [many], nodes_at_most={"A30-24GB": 2}, keep=["p"]).least_gpus is None


def test_pods_with_several_gpus_leave_a_rest_of_a_node_to_others() -> None:
    pools = {"p": Pool("L40S-48GB", 4, ((),) * 3, "")}
    pairs, singles = Need("a", "w0", 3, gpus=2), Need("a", "w1", 3, gpus=1)
    assert Question(Policies(pools, {}), [pairs]).least_gpus == 9
    assert Question(Policies(pools, {}), [pairs, singles]).least_gpus == 9
    assert Question(Policies(pools, {}), [pairs, singles._replace(pods=4)]).least_gpus == 12


@pytest.mark.parametrize(
    ("need", "units"),
    [
        (Need("a", "w", 1), 7),
        (Need("a", "w", 1, 19968), 6),
        (Need("a", "w", 1, 19969), 4),
        (Need("a", "w", 1, compute=Fraction(1, 7)), 7),
        (Need("a", "w", 1, compute=Fraction(15, 100)), 5),
        (Need("a", "w", 1, gpus=1), 1),
        (Need("a", "w", 1, models=("H100-80GB",)), 0),
    ],
)
def test_a_unit_is_enough_by_memory_compute_and_model(need: Need, units: int) -> None:
    """Of an A100: `1g.10gb`, `1g.20gb`, `2g.20gb`, `3g.40gb`, `4g.40gb`, `7g.80gb` and the whole GPU."""
    names = (*BOARDS["A100-80GB"].profiles, WHOLE)
    assert sum(need.takes("A100-80GB", name) for name in names) == units


def test_an_earlier_need_has_all_that_it_can_before_a_later_one_has_any() -> None:
    pools = {"p": Pool("L40S-48GB", 2, ((),) * 4, "")}
    needs = [Need("a", "w0", 3, gpus=3), Need("b", "w1", 9)]
    assert Question(Policies(pools, {}), needs).most_served() == (2, 2)
    assert Question(Policies(pools, {}), needs, [Need("a", WHOLE, 9, gpus=1)]).most_served() is None


# --- Policies that were written ----------------------------------------------------------------------------------


def test_a_pod_with_several_gpus_has_them_on_one_node() -> None:
    pools = {"p": Pool("L40S-48GB", 2, ((),) * 4, "")}
    needs = [Need("a", "w", 2, gpus=3), Need("b", "w", 1, gpus=2)]
    granted = {("a", "p", WHOLE): 6, ("b", "p", WHOLE): 2}
    assert unserved(Policies(pools, granted), needs) == 1
    assert unserved(Policies(pools, granted), [needs[0], Need("b", "w", 2, gpus=1)]) == 0


def test_a_pod_with_several_gpus_has_them_in_one_pool() -> None:
    pools = {"p": Pool("L40S-48GB", 1, ((),) * 4, ""), "q": Pool("L40S-48GB", 1, ((),) * 4, "")}
    need = Need("a", "w", 1, gpus=4)
    assert unserved(Policies(pools, {("a", "p", WHOLE): 3, ("a", "q", WHOLE): 1}), [need]) == 1
    assert unserved(Policies(pools, {("a", "p", WHOLE): 4}), [need]) == 0


def test_units_of_another_team_or_of_too_little_memory_serve_nobody() -> None:
    pools = {"p": Pool("A30-24GB", 1, ((("1g.6gb", 2), ("2g.12gb", 1)),), "mixed")}
    granted = {("a", "p", "1g.6gb"): 2, ("b", "p", "2g.12gb"): 1}
    assert unserved(Policies(pools, granted), [Need("a", "w", 1, 9 * 1024)]) == 1
    assert unserved(Policies(pools, granted), [Need("a", "w", 2, 2048), Need("b", "w", 1, 9 * 1024)]) == 0


def test_a_layout_that_no_gpu_holds_and_a_grant_beyond_capacity_are_faults() -> None:
    fits = Pool("A100-80GB", 1, ((("3g.40gb", 2),),), "mixed")
    assert [*faults(Policies({"p": fits}, {("a", "p", "3g.40gb"): 2}))] == []
    assert len([*faults(Policies({"p": fits}, {("a", "p", "3g.40gb"): 3}))]) == 1
    assert len([*faults(Policies({"p": fits._replace(cut=((("4g.40gb", 2),),))}, {}))]) == 1


# --- Moves -------------------------------------------------------------------------------------------------------

HALVES = Pool("A100-80GB", 2, ((("3g.40gb", 2),),) * 4, "mixed")
WHOLES = HALVES._replace(cut=((),) * 4, strategy="")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"p": HALVES}, {"p": HALVES}, Moves(0, 0, 0)),
        ({"p": HALVES}, {"p": HALVES._replace(nodes=1)}, Moves(0, 1, 0)),
        ({"p": HALVES}, {"p": HALVES, "q": HALVES._replace(nodes=1)}, Moves(0, 0, 1)),
        ({"p": HALVES}, {"p": WHOLES}, Moves(2, 0, 0)),
        ({"p": HALVES}, {"p": HALVES._replace(strategy="single")}, Moves(2, 0, 0)),
        ({"p": HALVES}, {"p": HALVES._replace(nodes=1), "q": WHOLES}, Moves(1, 0, 1)),
        ({"p": HALVES, "q": WHOLES}, {"q": WHOLES._replace(nodes=3)}, Moves(1, 1, 0)),
        ({"p": HALVES}, {"p": HALVES._replace(model="H100-80GB")}, Moves(0, 2, 2)),
    ],
)
def test_nodes_stay_are_cut_again_are_taken_away_or_are_new(
    before: dict[str, Pool], after: dict[str, Pool], expected: Moves
) -> None:
    assert moves(Policies(before, {}), Policies(after, {})) == expected
