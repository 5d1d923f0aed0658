"""Every leaf of what is written has a source, on each platform of this folder."""

from __future__ import annotations

import pytest

from tests.laws.tracing.policies import read_policies
from tests.laws.tracing.rendered import render, spelt
from tests.laws.tracing.test_traces import EXAMPLE, PLATFORMS


@pytest.mark.parametrize("platform", sorted(PLATFORMS.keys() - {EXAMPLE}))
def test_every_leaf_has_a_source(platform: str) -> None:
    objects = render(read_policies(PLATFORMS[platform])).objects.values()
    assert {
        f"{item} {spelt(leaf.path)}" for item in objects for leaf in item.leaves.values() if not item.sources(leaf)
    } == set()
