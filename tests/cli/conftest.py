"""The surroundings of every command-line test: no variable of this machine or of a CI server reaches it."""

from __future__ import annotations

import os

import pytest

_SCRUBBED = ("CI", "GPUPLAN_", "GITHUB_", "GITLAB_", "NO_COLOR", "FORCE_COLOR", "TERM")


@pytest.fixture(autouse=True)
def scrubbed_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(_SCRUBBED):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "100")
