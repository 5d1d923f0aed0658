from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from gpuplan.compiler.planning.plan import Isolation
from gpuplan.features.packing.sizing.answers import Answer, NodeType, Objective, Proof, Way
from gpuplan.features.packing.sizing.choosing import choose
from gpuplan.features.packing.sizing.needs import Need
from tests.features.packing.sizing.choosing.building import (
    A100,
    H100,
    L4,
    a_need,
    a_pool,
    a_service,
    nodes,
    units,
    unmet,
)
from tests.features.packing.sizing.choosing.verifying import verify


def chosen(
    needs: Sequence[Need], *types: NodeType, objective: Objective = Objective.GPUS, most_layouts: int | None = None
) -> Answer:
    answer = choose(needs, types, objective, most_layouts=most_layouts)
    assert verify(answer, needs, types) == []
    return answer


def test_each_need_gets_the_least_profile_that_holds_it() -> None:
    needs = [a_need(7, "small", memory=9), a_need(2, "half", memory=30), a_need(1, "fast", compute="2/7")]
    answer = chosen(needs, nodes())
    assert units(answer) == {("small", "1g.10gb"): 7, ("half", "3g.40gb"): 2, ("fast", "2g.20gb"): 1}
    assert answer.gpus == answer.bound.least == 3
    assert answer.bound.proof is Proof.SOLVER


def test_memory_is_what_a_pod_can_use_and_not_what_the_name_says() -> None:
    answer = chosen([a_need(name="below", memory=9), a_need(name="named", memory=10)], nodes())
    assert units(answer) == {("below", "1g.10gb"): 1, ("named", "1g.20gb"): 1}


def test_compute_is_compared_in_parts_of_a_gpu() -> None:
    answer = chosen([a_need(name="two", compute="2/7"), a_need(name="more", compute="2001/7000")], nodes())
    assert units(answer) == {("two", "2g.20gb"): 1, ("more", "3g.40gb"): 1}


def test_whole_nodes_are_counted() -> None:
    answer = chosen([a_need(3, memory=60)], nodes(gpus=8))
    assert answer.nodes == 1
    assert answer.gpus == answer.bound.least == 8


def test_pods_of_several_gpus_have_them_on_one_node() -> None:
    answer = chosen([a_need(3, "training", gpus=3)], nodes(gpus=4))
    assert (answer.nodes, units(answer)) == (3, {("training", "gpu"): 9})


def test_partitions_share_nodes_with_pods_of_several_gpus() -> None:
    answer = chosen([a_need(2, "training", gpus=3), a_need(14, "small", memory=9)], nodes(gpus=4))
    assert (answer.nodes, len(answer.groups)) == (2, 1)


def test_where_nodes_run_out_earlier_needs_come_first() -> None:
    needs = [a_need(1, "first", memory=60), a_need(9, "second", memory=9), a_need(3, "third", memory=9)]
    answer = chosen(needs, nodes(count=2))
    assert unmet(answer) == {"second": 2, "third": 3}


def test_what_no_node_holds_is_unmet() -> None:
    needs = [a_need(2, "vast", memory=81), a_need(1, "wide", gpus=2), a_need(1, "fits", memory=9)]
    assert unmet(chosen(needs, nodes())) == {"vast": 2, "wide": 1}


def test_a_need_that_a_gpu_without_partitions_holds_has_it_whole() -> None:
    assert units(chosen([a_need(2, memory=9)], nodes(L4))) == {("need", "gpu"): 2}


def test_shares_are_for_needs_that_allow_them() -> None:
    needs = [a_need(4, "lax", memory=5, isolation=Isolation.NONE), a_need(1, "strict", memory=5)]
    answer = chosen(needs, nodes(L4, ways=(Way.WHOLE, Way.TIME_SLICING)))
    assert (units(answer), answer.gpus) == ({("lax", "shared"): 4, ("strict", "gpu"): 1}, 2)
    assert {(group.cut.way, group.cut.replicas) for group in answer.groups} == {(Way.TIME_SLICING, 4), (Way.WHOLE, 1)}


def test_services_take_the_sizes_that_reach_their_requests_together() -> None:
    needs = [a_service(100, {1: 14, 3: 50, 7: 95}, name="a"), a_service(30, {1: 10, 2: 31}, name="b")]
    answer = chosen(needs, nodes())
    assert answer.gpus == answer.bound.least == 2


def test_the_cheapest_nodes_that_hold_all_are_taken() -> None:
    types = nodes(price="3.10"), nodes(H100, price="4.05"), nodes(L4, price="0.81")
    answer = chosen([a_need(1, "big", memory=60), a_need(4, "small", memory=9)], *types, objective=Objective.PRICE)
    assert answer.bound.least == Fraction("6.20")


def test_kept_pools_are_used_first_and_stay() -> None:
    types = nodes(count=4, pools=(a_pool("old", 2, {"3g.40gb": 2}, is_kept=True),))
    answer = chosen([a_need(4, memory=9)], types)
    assert [(group.pool, group.nodes) for group in answer.groups] == [("old", 2)]


def test_changes_leave_alone_what_does() -> None:
    pools = a_pool("ones", 3, {"1g.10gb": 7}), a_pool("halves", 3, {"3g.40gb": 2})
    answer = chosen([a_need(9, memory=30)], nodes(count=6, pools=pools), objective=Objective.CHANGES)
    assert {(group.pool, group.nodes) for group in answer.groups} == {("halves", 5)}
    assert answer.bound.least == 2


def test_the_answer_nearest_to_today_is_taken() -> None:
    today = a_pool("today", 2, {"2g.20gb": 2, "3g.40gb": 1})
    answer = chosen([a_need(4, memory=9, compute="2/7")], nodes(count=9, pools=(today,)))
    assert [(group.pool, group.nodes, dict(group.cut.per_gpu[0])) for group in answer.groups] == [
        ("today", 2, {"2g.20gb": 2, "3g.40gb": 1})
    ]


def test_an_engine_is_had_from_whichever_profile_costs_less_beside_the_others() -> None:
    alone = units(chosen([a_need(1, "video", engines={"dec": 1})], nodes(A100)))
    packed = chosen([a_need(1, "video", engines={"dec": 1}), a_need(6, "small", memory=9)], nodes(A100))
    assert alone[("video", next(iter(alone))[1])] == 1
    assert (packed.gpus, units(packed)[("video", "1g.10gb+me")]) == (1, 1)


def test_nothing_needed_is_nothing_used() -> None:
    assert chosen([], nodes()).gpus == 0


MIXED = [a_need(10, "small", memory=9), a_need(6, "half", memory=30), a_need(2, "large", memory=60)]


def test_fewer_layouts_cost_gpus() -> None:
    counts = {most: chosen(MIXED, nodes(), most_layouts=most) for most in (3, 2)}
    assert [(answer.gpus, len(answer.groups)) for answer in counts.values()] == [(7, 3), (8, 2)]
    assert [answer.bound.least for answer in counts.values()] == [7, 8]


def test_one_layout_for_all_nodes_is_found_where_their_gpus_may_differ() -> None:
    answer = chosen(MIXED, nodes(gpus=4), most_layouts=1)
    assert (answer.gpus, len(answer.groups)) == (8, 1)


def test_of_equal_answers_the_one_with_fewer_layouts_is_taken() -> None:
    answer = chosen([a_need(12, "small", memory=9), a_need(6, "half", memory=30)], nodes(gpus=8))
    assert (answer.nodes, len(answer.groups)) == (1, 1)


def test_one_layout_that_costs_more_than_many_is_not_called_proven() -> None:
    needs = [a_need(28, "small", memory=9), a_need(16, "half", memory=30), a_need(7, "large", memory=60)]
    answer = chosen(needs, nodes(gpus=8), most_layouts=1)
    assert (answer.gpus, answer.bound.least, answer.bound.proof) == (24, Fraction(24), Proof.SOLVER)
    answer = chosen(needs, nodes(gpus=2), most_layouts=1)
    assert (answer.gpus, answer.bound.least, answer.bound.proof) == (32, Fraction(20), Proof.NONE)


def test_ways_that_nodes_do_not_have_are_not_used() -> None:
    needs = [a_need(2, memory=9, isolation=Isolation.NONE)]
    whole = choose(needs, [nodes(ways=(Way.WHOLE,))], Objective.GPUS)
    assert (units(whole), whole.gpus) == ({("need", "gpu"): 2}, 2)
    assert choose(needs, [nodes(L4, ways=(Way.MIG,))], Objective.GPUS).unmet == ((needs[0], 2),)


def test_a_pool_that_names_a_profile_as_older_drivers_do_is_used_under_that_name() -> None:
    old = a_pool("old", 1, {"3g.39gb": 2, "5g.50gb": 1}, is_kept=True)
    answer = choose([a_need(2, memory=30)], [nodes(pools=(old,))], Objective.GPUS)
    assert (units(answer), answer.nodes) == ({("need", "3g.39gb"): 2}, 1)


def test_of_answers_as_good_that_one_is_taken_which_grants_the_smallest_units() -> None:
    """Of nine small pods three could have `2g.20gb`: these would be of use to nobody else then."""
    old = a_pool("old", 1, {"2g.20gb": 2, "3g.40gb": 1})
    needs = [a_need(2, "medium", compute="2/7"), a_need(1, "half", compute="3/7"), a_need(9, "small", memory=9)]
    answer = chosen(needs, nodes(count=3, pools=(old,)))
    assert units(answer) == {("medium", "2g.20gb"): 2, ("half", "3g.40gb"): 1, ("small", "1g.10gb"): 9}
