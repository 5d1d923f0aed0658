"""Edits by chance, each done as gpuplan says: all end in a clean platform. `make test-orders` tries 300 of them."""

from __future__ import annotations

import os
import random
from functools import cache
from typing import Final

import pytest

from tests.laws.orders.asking import build, written
from tests.laws.orders.edits import EDITS, edited
from tests.laws.orders.platforms import Platform, random_platform
from tests.laws.steps.following import Walk, walked

pytestmark = pytest.mark.no_cover
IS_WHOLE: Final = bool(os.environ.get("GPUPLAN_TEST_ORDERS"))


def an_edit(rng: random.Random) -> tuple[str, Platform, Platform] | None:
    """A platform, and what one to three edits make of it; None where it is refused by itself."""
    before, edits = random_platform(rng), rng.sample(EDITS, rng.choice((1, 2, 3)))
    try:
        after = edited(rng, before, *edits)
    except (IndexError, KeyError):  # an edit has taken away what another one is about
        return None
    if after is None:
        return None
    with written(before, after) as roots:
        if any(build(root).errors for root in roots):
            return None
    return "+".join(edit.__name__ for edit in edits), before, after


@cache
def walks() -> tuple[Walk, ...]:
    return tuple(walked(seed, an_edit) for seed in range(300 if IS_WHOLE else 16))


def test_what_is_printed_ends_in_a_clean_platform() -> None:
    assert {walk.seed: (walk.name, walk.done, walk.problems) for walk in walks() if walk.problems} == {}


def test_something_is_printed_to_do() -> None:
    assert any("gpuplan rollout" in line for walk in walks() for line in walk.done)
    assert any("gpuplan retain --write" in line for walk in walks() for line in walk.done)
