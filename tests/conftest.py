"""Settings of all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.browsers import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# A property is not false for being slow on a busy machine. More examples: GPUPLAN_TEST_EXAMPLES=1000.
EXAMPLES = int(os.environ.get("GPUPLAN_TEST_EXAMPLES", "40"))
settings.register_profile("gpuplan", deadline=None, print_blob=True, max_examples=EXAMPLES)
settings.load_profile("gpuplan")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One for all: it takes a second to start."""
    with chromium() as started:
        yield started
