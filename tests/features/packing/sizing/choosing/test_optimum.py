"""Answers beside brute force: none is cheaper, and nobody could have more without an earlier need having less."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import ceil

from hypothesis import given, strategies as st

from gpuplan.compiler.catalog import load
from gpuplan.compiler.planning.plan import Isolation
from gpuplan.features.packing.sizing.answers import Answer, NodeType, Objective, Proof, Way
from gpuplan.features.packing.sizing.choosing import choose
from gpuplan.features.packing.sizing.needs import Need
from tests.features.packing.sizing.choosing.brute_force import fleets, is_possible
from tests.features.packing.sizing.choosing.building import A100, L4, a_need, a_pool, a_service, nodes
from tests.features.packing.sizing.choosing.verifying import verify
from tests.features.packing.sizing.price_lists import pack

A30 = load().get("A30-24GB")
WAYS = (Way.WHOLE, Way.MIG), (Way.WHOLE, Way.MIG, Way.TIME_SLICING), (Way.WHOLE, Way.MPS)

some_needs = st.lists(
    st.builds(
        a_need,
        st.integers(0, 2),
        memory=st.sampled_from([0, 5, 8, 11, 20]),
        compute=st.sampled_from(["0", "1/4", "1/2", "3/4"]),
        gpus=st.sampled_from([0, 0, 0, 0, 1, 2]),
        isolation=st.sampled_from([Isolation.HARDWARE, Isolation.HARDWARE, Isolation.NONE]),
        models=st.sampled_from([(), (), ("A30-24GB",)]),
    ),
    max_size=3,
)
some_types = st.lists(
    st.builds(
        nodes,
        st.sampled_from([A30, A30, L4]),
        st.integers(1, 2),
        st.sampled_from([None, 1, 2]),
        price=st.sampled_from(["1.5", "2", "2.25"]),
        ways=st.sampled_from(WAYS),
        is_equal=st.booleans(),
    ),
    min_size=1,
    max_size=2,
)


def cost(objective: Objective, types: list[NodeType], counts: tuple[int, ...]) -> Fraction:
    each = [Fraction(one.price or 0) if objective is Objective.PRICE else one.gpus_per_node for one in types]
    return sum((count * Fraction(price) for count, price in zip(counts, each, strict=True)), Fraction(0))


def paid(answer: Answer) -> Fraction:
    if answer.objective is Objective.GPUS:
        return Fraction(answer.gpus)
    return Fraction(sum((group.nodes * (group.node_type.price or Decimal(0)) for group in answer.groups), Decimal(0)))


@given(some_needs, some_types, st.sampled_from([Objective.GPUS, Objective.PRICE]))
def test_no_cheaper_nodes_would_do(needs: list[Need], types: list[NodeType], objective: Objective) -> None:
    answer = choose(needs, types, objective)
    assert verify(answer, needs, types) == []
    assert paid(answer) == answer.bound.least
    assert answer.bound.proof is not Proof.NONE
    met = served(answer, needs)
    cheaper = [some for some in fleets(types, 2) if cost(objective, types, some) < paid(answer)]
    assert [some for some in cheaper if is_possible(needs, met, types, some)] == []


@given(some_needs, st.lists(st.builds(nodes, st.sampled_from([A30, L4]), st.integers(1, 2), st.just(1)), max_size=2))
def test_earlier_needs_have_all_that_they_can(needs: list[Need], types: list[NodeType]) -> None:
    answer = choose(needs, types, Objective.GPUS)
    assert verify(answer, needs, types) == []
    met = served(answer, needs)
    for at, need in enumerate(needs):
        more = [*met[:at], met[at] + 1, *([0] * (len(needs) - at - 1))]
        assert met[at] == need.pods or not is_possible(needs, more, types, [1] * len(types))


some_cuts = st.sampled_from([{}, {"1g.6gb": 4}, {"2g.12gb": 2}, {"2g.12gb": 1, "1g.6gb": 2}, {"4g.24gb": 1}])


@given(some_needs, st.lists(st.tuples(st.integers(1, 3), some_cuts), max_size=3), st.sampled_from([None, 0, 1]))
def test_nodes_that_are_cut_again_are_counted(
    needs: list[Need], cuts: list[tuple[int, dict[str, int]]], more: int | None
) -> None:
    pools = tuple(a_pool(f"pool-{at}", count, cut) for at, (count, cut) in enumerate(cuts))
    today = sum(pool.nodes for pool in pools)
    types = [nodes(A30, 1, None if more is None else today + more, pools=pools)]
    answer = choose(needs, types, Objective.CHANGES)
    assert verify(answer, needs, types) == []
    known = {pool.pool: pool for pool in pools}
    stay = sum(min(g.nodes, known[g.pool].nodes) for g in answer.groups if g.pool and known[g.pool].cut == g.cut)
    unused = max(answer.nodes - today, 0) if more is None else more
    assert answer.bound.least == max(answer.nodes - stay - unused, 0)


@given(some_needs, some_types, st.integers(1, 2))
def test_what_fewer_layouts_cost_is_not_called_proven(needs: list[Need], types: list[NodeType], most: int) -> None:
    answer = choose(needs, types, Objective.GPUS, most_layouts=most)
    cuts = {
        (group.node_type.gpu.id, str(sorted(sorted(counts.items()) for counts in group.cut.per_gpu)))
        for group in answer.groups
        if group.cut.way is Way.MIG
    }
    assert verify(answer, needs, types) == []
    assert len(cuts) <= most
    assert answer.gpus == answer.bound.least or answer.bound.proof is Proof.NONE


def served(answer: Answer, needs: list[Need]) -> list[int]:
    return [need.pods - sum(pods for other, pods in answer.unmet if other is need) for need in needs]


@given(
    st.lists(
        st.tuples(st.integers(1, 40), st.lists(st.integers(8, 40), min_size=3, max_size=3)), min_size=1, max_size=2
    )
)
def test_no_sizes_of_partitions_reach_requests_on_fewer_gpus(asked: list[tuple[int, list[int]]]) -> None:
    services = [a_service(rate, dict(zip((1, 2, 3), reached, strict=True))) for rate, reached in asked]
    answer = choose(services, [nodes()], Objective.GPUS)
    assert verify(answer, services, [nodes_of(answer)] if answer.groups else []) == []
    names = "1g.10gb", "2g.20gb", "3g.40gb"
    ways = [
        [
            row
            for row in product(*(range(ceil(rate / one) + 1) for one in reached))
            if sum(count * one for count, one in zip(row, reached, strict=True)) >= rate
        ]
        for rate, reached in asked
    ]
    counts = ([sum(column) for column in zip(*rows, strict=True)] for rows in product(*map(least, ways)))
    assert answer.gpus == min(pack(A100, dict(zip(names, row, strict=True))).gpus for row in counts)


def nodes_of(answer: Answer) -> NodeType:
    return answer.groups[0].node_type


def least(rows: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Those with none of which another has less."""
    return [row for row in rows if not any(o != row and all(a <= b for a, b in zip(o, row, strict=True)) for o in rows)]
