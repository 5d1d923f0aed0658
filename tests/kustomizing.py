"""Runs kustomize, from `kustomize` or from `kubectl`, whichever there is."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest


@functools.cache
def command() -> tuple[str, ...] | None:
    if shutil.which("kustomize"):
        return ("kustomize", "build")
    if shutil.which("kubectl"):
        probe = subprocess.run(["kubectl", "kustomize", "--help"], capture_output=True, check=False)
        return ("kubectl", "kustomize") if probe.returncode == 0 else None
    return None


def need() -> tuple[str, ...]:
    """The command; the test is skipped where kustomize is missing and may be."""
    found = command()
    if found is None:
        if os.environ.get("GPUPLAN_TEST_REQUIRE_KUSTOMIZE"):
            pytest.fail("neither kustomize nor kubectl is on PATH")
        pytest.skip("neither kustomize nor kubectl is on PATH")
    return found


def kustomize(folder: Path) -> str:
    """The objects of a folder as YAML."""
    found = need()
    result = subprocess.run([*found, str(folder)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{folder}: {result.stderr}"
    return result.stdout
