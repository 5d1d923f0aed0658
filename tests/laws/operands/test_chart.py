"""The keys that the catalog says a chart reads are those that its templates name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpuplan.compiler.catalog.operators import Keys, chart_keys
from tests.laws.operands.tables import RELEASES, operator

Route = tuple[str, ...]
SUBCHARTS = ("node-feature-discovery", "nvidia-dra-driver-gpu")
OF_HELM = {("global",), ("global", "imagePullSecrets")}


def _leaves(keys: Keys, route: Route = ()) -> Iterator[Route]:
    for key, below in keys.items():
        if below is None:
            yield (*route, key)
        else:
            yield from _leaves(below, (*route, key))


def _named(release: str) -> set[Route]:
    return {tuple(route.split(".")) for route in operator(release)["chart"]["read"]}


def _is_of(one: Route, other: Route) -> bool:
    """Whether one of them holds the other, or both are the same."""
    count = min(len(one), len(other))
    return one[:count] == other[:count]


@pytest.mark.parametrize("release", RELEASES)
def test_a_key_that_the_catalog_knows_is_named_by_a_template(release: str) -> None:
    known = {route for route in _leaves(chart_keys(release).keys) if route[0] not in SUBCHARTS} - OF_HELM
    assert {".".join(route) for route in known if not any(_is_of(route, named) for named in _named(release))} == set()


@pytest.mark.parametrize("release", RELEASES)
def test_a_key_that_a_template_names_is_known_to_the_catalog(release: str) -> None:
    known = set(_leaves(chart_keys(release).keys))
    assert {".".join(route) for route in _named(release) if not any(_is_of(route, leaf) for leaf in known)} == set()
