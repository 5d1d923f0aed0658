"""Quotas: the numbers that findings prove, against sums done by hand."""

from __future__ import annotations

from hypothesis import given, strategies as st

from gpuplan.compiler.checks import quotas, tenants
from tests.checks.found import lines, only
from tests.checks.tenancy import a_tenant, find


def test_the_sum_and_the_capacity_are_shown() -> None:
    finding = only(
        find(
            quotas.guarantees_over_capacity,
            a_tenant("research", "guaranteed: 12"),
            a_tenant("training", "guaranteed: 8"),
        )
    )
    assert finding.notes == ("`research` 12 + `training` 8 = 20 of 16",)
    assert finding.related[0].text == "2 nodes of 8 `shared`: 16"
    assert finding.help == "lower the guarantees by 4, or raise `nodes.count` of pool `a100` to 3"


def test_the_finding_stands_at_the_guarantee_that_is_too_much() -> None:
    tenants = [a_tenant(name, f"guaranteed: {amount}") for name, amount in (("a", 7), ("b", 9), ("c", 1), ("d", 1))]
    finding = only(find(quotas.guarantees_over_capacity, *tenants))
    assert finding.label == "`c` makes it 2 too much"
    assert lines(finding) == ["quotas: [{pool: a100, guaranteed: 1}]"]


def test_a_long_sum_shows_its_largest_parts() -> None:
    tenants = [a_tenant(f"t{index}", f"guaranteed: {index}") for index in range(8)]
    finding = only(find(quotas.guarantees_over_capacity, *tenants))
    assert finding.notes == ("`t7` 7 + `t6` 6 + `t5` 5 + `t4` 4 + 4 more 6 = 28 of 16",)


AMOUNTS = st.lists(st.integers(0, 9), min_size=1, max_size=5)


@given(AMOUNTS)
def test_guarantees_are_too_much_exactly_when_their_sum_is(amounts: list[int]) -> None:
    tenants = [a_tenant(f"t{index}", f"guaranteed: {amount}, limit: 9") for index, amount in enumerate(amounts)]
    assert len(find(quotas.guarantees_over_capacity, *tenants)) == (sum(amounts) > 16)


@given(AMOUNTS, st.integers(0, 16))
def test_children_are_too_much_exactly_when_their_sum_is(amounts: list[int], held: int) -> None:
    children = [
        a_tenant(f"t{index}", f"guaranteed: {amount}", more="  parent: top\n") for index, amount in enumerate(amounts)
    ]
    found = find(quotas.children_over_parent, a_tenant("top", f"guaranteed: {held}", namespaces=""), *children)
    assert len(found) == (sum(amounts) > held)


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 12)), min_size=2, max_size=5))
def test_a_guarantee_holds_exactly_when_the_others_leave_room_for_it(quotas_of: list[tuple[int, int]]) -> None:
    caps = [guaranteed + more for guaranteed, more in quotas_of]
    tenants = [
        a_tenant(f"t{index}", f"guaranteed: {guaranteed}, limit: {cap}")
        for index, ((guaranteed, _), cap) in enumerate(zip(quotas_of, caps, strict=True))
    ]
    is_promised = sum(guaranteed for guaranteed, _ in quotas_of) <= 16
    short = [
        guaranteed for (guaranteed, _), cap in zip(quotas_of, caps, strict=True) if 16 - (sum(caps) - cap) < guaranteed
    ]
    assert len(find(quotas.caps_over_capacity, *tenants)) == (is_promised and any(short))


def test_what_is_left_of_a_guarantee_is_said() -> None:
    tenants = (
        a_tenant("research", "guaranteed: 8, limit: 12"),
        a_tenant("training", "guaranteed: 6"),
        a_tenant("idle", "guaranteed: 0, limit: 2"),
    )
    finding = only(find(quotas.caps_over_capacity, *tenants))
    assert finding.message == (
        "caps on `shared` of pool `a100` add up to 20 of 16: the guarantee of `training` does not hold"
    )
    assert finding.notes[1] == "when all others use their caps: `training` has 2 of 6"
    assert [label.text for label in finding.related] == ["`training` can count on 2"]


def test_a_split_counts_as_it_is_written() -> None:
    over = a_tenant("research", "guaranteed: 4, limit: 12, split: {a: 2, b: 2}", namespaces="a, b")
    assert find(quotas.caps_over_capacity, over, a_tenant("training", "guaranteed: 12")) == []
    assert only(find(tenants.split_below_cap, over)).label == "8 can be used nowhere"


def test_amounts_that_were_left_out_are_not_reported_again() -> None:
    finding = only(find(quotas.part_of_a_unit, a_tenant("research", "guaranteed: 1.5")))
    assert finding.help == "write `guaranteed: 1` or `guaranteed: 2`"


SLICES = """\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: b100}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 4}
  sharing: {timeSlicing: {replicas: 4, rename: false}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: whole}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 4}
  sharing: {exclusive: {}}
"""
BOTH = a_tenant("research", "guaranteed: 1}, {pool: b100, guaranteed: 2}, {pool: whole, guaranteed: 3")


def test_shares_under_the_plain_name_are_renamed_to_tell_pools_apart() -> None:
    found = only(
        find(
            quotas.pools_share_a_resource,
            SLICES,
            BOTH,
            a_tenant("other", "guaranteed: 1}, {pool: whole, guaranteed: 1"),
        )
    )
    assert found.help == "write `rename: true` in pool `b100`: its shares are then `nvidia.com/gpu.shared`"
    assert found.notes[0] == "one cap for all: `b100` 2 + `whole` 3 = 5 `nvidia.com/gpu`, in whichever pool"


def test_pools_that_a_tenant_may_use_all_of_need_no_telling_apart() -> None:
    whole_pools = a_tenant("research", "guaranteed: 1}, {pool: b100, guaranteed: 16}, {pool: whole, guaranteed: 4")
    assert find(quotas.pools_share_a_resource, SLICES, whole_pools) == []
