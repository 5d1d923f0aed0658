"""Which requests one route takes from another."""

from __future__ import annotations

import pytest

from gpuplan.compiler.planning.serving import _above, _longer
from gpuplan.compiler.policy.models import RouteKind


@pytest.mark.parametrize(
    ("kind", "host", "wildcards"),
    [
        (RouteKind.HTTP_ROUTE, "a.example.com", ["*.example.com", "*.com"]),
        (RouteKind.HTTP_ROUTE, "*.example.com", ["*.com"]),
        (RouteKind.INGRESS, "b.a.example.com", ["*.a.example.com"]),
        (RouteKind.INGRESS, "*.example.com", []),
    ],
)
def test_a_star_of_an_ingress_is_one_part_of_a_name(kind: RouteKind, host: str, wildcards: list[str]) -> None:
    assert [*_above(host, kind)] == wildcards


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [("/v1", "/", "/v1"), ("/", "/v1", "/v1"), ("/v1", "/v1", "/v1"), ("/v1", "/v10", None), ("/v1/a", "/v1", "/v1/a")],
)
def test_paths_meet_by_whole_parts(one: str, other: str, both: str | None) -> None:
    assert _longer(one, other) == both
