"""Quotas: the numbers that findings prove, against sums done by hand."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gpuplan.checks import quotas
from gpuplan.checks.registry import Check
from gpuplan.diagnostics import Finding
from gpuplan.planning.plan import Broken
from tests.plans import a_plan, resolve_text

POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: a100}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 4}
  sharing: {timeSlicing: {replicas: 2}}
"""


def a_tenant(name: str, quota: str, *, namespaces: str | None = None, more: str = "") -> str:
    return f"""\
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {{name: {name}}}
spec:
  namespaces: [{name if namespaces is None else namespaces}]
  quotas: [{{pool: a100, {quota}}}]
{more}"""


def find(check: Check, *tenants: str) -> list[Finding]:
    return list(check.find(a_plan(POOL + "".join(tenants))))


def only(findings: list[Finding]) -> Finding:
    [finding] = findings
    return finding


def lines(*findings: Finding) -> list[str]:
    """The text of the lines that findings point at."""
    places = [finding.at.locate() for finding in findings]
    return [place.file.lines[place.span.start.line - 1].strip() for place in places]


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
    assert finding.label == "too much by 2 with that of `c`"
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


@given(AMOUNTS.filter(lambda limits: len(limits) > 1))
def test_caps_endanger_guarantees_exactly_when_they_do_not_fit(limits: list[int]) -> None:
    tenants = [
        a_tenant(f"t{index}", f"guaranteed: {1 if index == 0 else 0}, limit: {max(limit, 1)}")
        for index, limit in enumerate(limits)
    ]
    assert len(find(quotas.caps_over_capacity, *tenants)) == (sum(max(limit, 1) for limit in limits) > 16)


def test_a_split_counts_as_it_is_written() -> None:
    over = a_tenant("research", "guaranteed: 4, limit: 12, split: {a: 2, b: 2}", namespaces="a, b")
    assert find(quotas.caps_over_capacity, over, a_tenant("training", "guaranteed: 12")) == []
    assert only(find(quotas.split_below_cap, over)).label == "8 can be used nowhere"


def test_namespaces_that_a_split_leaves_out_are_named() -> None:
    finding = only(
        find(quotas.split_below_cap, a_tenant("research", "guaranteed: 4, split: {a: 3}", namespaces="a, b, c"))
    )
    assert finding.notes == ("`a` 3 of 4", "`b` and `c` not named: 0")


def test_an_even_split_is_proposed() -> None:
    finding = only(find(quotas.split_missing, a_tenant("research", "guaranteed: 8", namespaces="a, b, c")))
    assert finding.help == "add `split: {a: 3, b: 3, c: 2}`"
    assert finding.notes == ("a ResourceQuota counts one namespace: together they may use 3 x 8 = 24",)


def test_the_split_is_judged_by_what_the_cluster_caps() -> None:
    cluster = """\
---
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: test}
spec:
  kubernetes: "1.34"
  gpuOperator: {install: helm, version: v26.7.0}
  scheduler: {cap: guaranteed}
"""
    tenant = a_tenant("research", "guaranteed: 4, limit: 8, split: {a: 4, b: 4}", namespaces="a, b")
    assert only(find(quotas.split_over_cap, tenant, cluster)).related[0].text == "the cap on this cluster: 4"
    assert find(quotas.split_over_cap, tenant) == []


def test_amounts_that_were_left_out_are_not_reported_again() -> None:
    finding = only(find(quotas.part_of_a_unit, a_tenant("research", "guaranteed: 1.5")))
    assert finding.help == "write `guaranteed: 1` or `guaranteed: 2`"


def test_a_child_that_cannot_be_read_may_be_what_a_tenant_is_for() -> None:
    plan = a_plan(POOL + a_tenant("top", "guaranteed: 8", namespaces=""))
    with_unread_child = replace(plan, broken=Broken(tenants=frozenset({"child"})))
    assert len(list(quotas.tenant_without_namespace.find(plan))) == 1
    assert list(quotas.tenant_without_namespace.find(with_unread_child)) == []


def test_an_unknown_parent_holds_nothing() -> None:
    plan, unresolved = resolve_text(POOL + a_tenant("child", "guaranteed: 4, limit: 8", more="  parent: nobody\n"))
    assert [found.code for found in unresolved] == ["GPU101"]
    assert plan is not None
    assert [found.code for check in quotas.CHECKS for found in check.run(plan)] == []


def test_a_circle_is_reported_once_and_not_for_those_that_hang_on_it() -> None:
    tenants = [
        a_tenant(name, "guaranteed: 1", more=f"  parent: {parent}\n")
        for name, parent in (("a", "c"), ("b", "c"), ("c", "d"), ("d", "b"), ("e", "a"))
    ]
    assert only(find(quotas.parent_cycle, *tenants)).message == "parents of `b` form a circle: `b` -> `c` -> `d` -> `b`"


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


def test_pools_of_one_tenant_alone_need_no_telling_apart() -> None:
    assert find(quotas.pools_share_a_resource, SLICES, BOTH) == []
