"""Runs promtool: Prometheus' own judgement of rules."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def promtool(*arguments: str | Path) -> str:
    """What promtool says; the test fails where it finds fault, and is skipped where promtool is missing and may be."""
    if shutil.which("promtool") is None:
        if os.environ.get("GPUPLAN_TEST_REQUIRE_PROMTOOL"):
            pytest.fail("promtool is not on PATH")
        pytest.skip("promtool is not on PATH")
    result = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
