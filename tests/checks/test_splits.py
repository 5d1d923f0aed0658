"""Divided quotas: who is left out, and what would add up."""

from __future__ import annotations

from gpuplan.compiler.checks import tenants
from tests.checks.found import only
from tests.checks.tenancy import a_tenant, find
from tests.plans import a_cluster


def test_namespaces_that_a_split_leaves_out_are_named() -> None:
    finding = only(
        find(tenants.split_below_cap, a_tenant("research", "guaranteed: 4, split: {a: 3}", namespaces="a, b, c"))
    )
    assert finding.notes == ("`a` 3 of 4", "`b` and `c` not named: 0")


def test_an_even_split_is_proposed() -> None:
    finding = only(find(tenants.split_missing, a_tenant("research", "guaranteed: 8", namespaces="a, b, c")))
    assert finding.help == "add `split: {a: 3, b: 3, c: 2}`"
    assert finding.notes == ("a ResourceQuota counts one namespace: together they may use 3 x 8 = 24",)


def test_the_split_is_judged_by_what_the_cluster_caps() -> None:
    cluster = "---\n" + a_cluster("cap: guaranteed")
    tenant = a_tenant("research", "guaranteed: 4, limit: 8, split: {a: 4, b: 4}", namespaces="a, b")
    assert only(find(tenants.split_over_cap, tenant, cluster)).related[0].text == "the cap on this cluster: 4"
    assert find(tenants.split_over_cap, tenant) == []
