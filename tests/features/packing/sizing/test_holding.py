"""How answers hold when demand is not as planned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.features.packing.sizing.answers import Answer, Objective
from gpuplan.features.packing.sizing.choosing import choose
from gpuplan.features.packing.sizing.holding import Holding, hold, law_of
from gpuplan.features.packing.sizing.needs import Need
from gpuplan.features.packing.sizing.overflow import Law
from tests.features.packing.sizing.choosing.building import a_need, a_service, nodes

SMALL, LARGE = a_need(7, "small", memory=9), a_need(1, "large", memory=70)


def held(*needs: Need, tolerance: float = 0.5, law: Law = Law.AT_ONCE, count: int | None = None) -> Holding:
    return hold(answer(*needs, count=count), needs, tolerance, law)


def answer(*needs: Need, count: int | None = None) -> Answer:
    return choose(needs, [nodes(count=count)], Objective.GPUS)


def test_demand_as_planned_has_room() -> None:
    assert held(SMALL, LARGE).own.planned == 1


def test_half_as_much_more_at_once_finds_no_room_beside_what_is_there() -> None:
    """8 pods are to be 12; there are 8 partitions, and the larger one holds no more pods than the small ones do."""
    found = held(SMALL, LARGE)
    assert found.own.most == pytest.approx(8 / 12)
    assert found.larger.most == pytest.approx(8 / 12)


def test_pods_may_take_larger_units_that_are_free() -> None:
    """Seven small pods and two large ones have room; of the large ones one is not there, and one more small one is."""
    small, large = a_need(8, "small", memory=9), a_need(1, "large", memory=70)
    made = answer(SMALL, a_need(2, "large", memory=70))
    meant = {"small": small, "large": large}
    grants = tuple(replace(grant, need=meant[grant.need.name]) for grant in made.grants)
    found = hold(replace(made, grants=grants), [small, large], 0, Law.AT_ONCE)
    assert found.own.planned == pytest.approx(8 / 9)
    assert found.larger.planned == 1


def test_shares_are_those_of_each_team() -> None:
    other = Need(None, "other", "whole", 1, gpus=1)
    found = held(SMALL, other)
    assert found.teams == {"team": pytest.approx(7 / 10.5), "other": pytest.approx(1 / 1.5)}


def test_pods_that_come_and_go_find_less_room_than_pods_that_are_there_at_once() -> None:
    chance = held(SMALL, tolerance=0, law=Law.BY_CHANCE)
    assert 0.7 < chance.own.planned < 1
    assert held(SMALL, tolerance=0).own.planned == 1


def test_a_service_is_counted_as_the_pods_that_it_is_granted() -> None:
    service = a_service(100, {1: 30})
    found = held(service, tolerance=1)
    assert found.own.planned == 1
    assert found.own.most == pytest.approx(7 / 8)


def test_what_is_unmet_finds_no_room() -> None:
    need = a_need(10, "small", memory=9)
    assert held(need, count=1, tolerance=0).own.planned == pytest.approx(0.7)


def test_pods_with_several_gpus_have_those_that_they_are_granted() -> None:
    needs = [a_need(2, "training", gpus=2), a_need(3, "single", gpus=1)]
    found = hold(choose(needs, [nodes(gpus=8)], Objective.GPUS), needs, 0.5, Law.AT_ONCE)
    assert found.own.planned == 1
    assert found.teams == {"team": pytest.approx((2 + 4) / 7.5, abs=0.07)}


def test_pods_come_and_go_where_they_are_to_be_accepted_as_they_come() -> None:
    assert [law_of(objective) is Law.BY_CHANCE for objective in Objective] == [
        objective is Objective.ACCEPTED for objective in Objective
    ]
