"""Trees of tenants have a limited depth, so that nobody who walks up and down them gets lost."""

from __future__ import annotations

import pytest

from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.tenants import MOST_LEVELS
from tests.plans import resolve_text


def tenants(parents: dict[int, int]) -> str:
    """Tenants by their numbers, each with that of its parent; 0 is no tenant."""
    return "---\n".join(
        f"apiVersion: gpuplan.dev/v1\nkind: Tenant\nmetadata: {{name: t{number:05}}}\n"
        f"spec: {{{f'parent: t{parent:05}' if parent else ''}}}\n"
        for number, parent in parents.items()
    )


def cut(plan: Plan | None, parents: dict[int, int]) -> list[str]:
    """The tenants that have no parent any more."""
    assert plan is not None
    return [tenant.name for tenant in plan.tenants if tenant.parent is None and parents[int(tenant.name[1:])]]


def test_the_deepest_tree_is_taken_as_it_is() -> None:
    parents = {number: number - 1 for number in range(1, MOST_LEVELS + 1)}

    plan, found = resolve_text(tenants(parents))

    assert (cut(plan, parents), found) == ([], ())


def test_a_deeper_one_is_cut_where_it_gets_too_deep() -> None:
    parents = {number: number - 1 for number in range(1, MOST_LEVELS + 3)}

    plan, (found,) = resolve_text(tenants(parents))

    assert cut(plan, parents) == ["t00065"]
    assert (found.code, found.finding.message) == ("GPU003", "tenant `t00065` is below 64 others")


@pytest.mark.parametrize("order", [1, -1])
def test_whatever_the_order_of_its_names(order: int) -> None:
    numbers = list(range(1, 1_000))[::order]
    parents = dict(zip(numbers, [0, *numbers], strict=False))

    plan, found = resolve_text(tenants(parents))

    assert len(cut(plan, parents)) == len(found) == 998 // MOST_LEVELS


def test_a_short_circle_is_left_to_who_finds_circles_and_a_long_one_is_cut() -> None:
    short, long = {1: 2, 2: 1}, {number: number % 200 + 1 for number in range(1, 201)}

    assert resolve_text(tenants(short))[1] == ()
    assert [item.code for item in resolve_text(tenants(long))[1]] == ["GPU003"] * 3
