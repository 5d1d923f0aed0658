"""Tenants and the trees that they form."""

from __future__ import annotations

from dataclasses import replace

from gpuplan.compiler.checks import quotas, tenants
from gpuplan.compiler.checks.registry import checks_in
from gpuplan.compiler.planning.plan import Broken
from tests.checks.found import only
from tests.checks.tenancy import POOL, a_tenant, find
from tests.plans import a_plan, resolve_text


def test_a_child_that_cannot_be_read_may_be_what_a_tenant_is_for() -> None:
    plan = a_plan(POOL + a_tenant("top", "guaranteed: 8", namespaces=""))
    with_unread_child = replace(plan, broken=Broken(tenants=frozenset({"child"})))
    assert len(list(tenants.tenant_without_namespace.find(plan))) == 1
    assert list(tenants.tenant_without_namespace.find(with_unread_child)) == []


def test_an_unknown_parent_holds_nothing() -> None:
    plan, unresolved = resolve_text(POOL + a_tenant("child", "guaranteed: 4, limit: 8", more="  parent: nobody\n"))
    assert [found.code for found in unresolved] == ["GPU101"]
    assert plan is not None
    assert [found.code for check in checks_in(quotas, tenants) for found in check.run(plan)] == []


def test_a_circle_is_reported_once_and_not_for_those_that_hang_on_it() -> None:
    members = [
        a_tenant(name, "guaranteed: 1", more=f"  parent: {parent}\n")
        for name, parent in (("a", "c"), ("b", "c"), ("c", "d"), ("d", "b"), ("e", "a"))
    ]
    assert (
        only(find(tenants.parent_cycle, *members)).message == "parents of `b` form a circle: `b` -> `c` -> `d` -> `b`"
    )
