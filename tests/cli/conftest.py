"""The surroundings of every command-line test."""

from __future__ import annotations

import pytest

from tests.cli.runs import scrub


@pytest.fixture(autouse=True)
def scrubbed_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    scrub(monkeypatch)
