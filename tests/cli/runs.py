"""Run the command line: in this process for its words, in one of its own for what only a process has."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpuplan.cli.main import main

REPOSITORY = Path(__file__).resolve().parents[2]
_SCRUBBED = ("CI", "GPUPLAN_", "GITHUB_", "GITLAB_", "NO_COLOR", "FORCE_COLOR", "TERM")


def scrub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no variable of this machine or of a CI server reach what is run."""
    for name in os.environ:
        if name.startswith(_SCRUBBED):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "100")


@dataclass(frozen=True)
class Run:
    """How a command ended."""

    code: int
    out: str
    err: str


def run(*arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None, stdin: str | None = None) -> Run:
    """Run `gpuplan` in a folder."""
    before = Path.cwd()
    os.chdir(cwd or before)
    try:
        result = CliRunner().invoke(main, arguments, input=stdin, prog_name="gpuplan", env=env)
    finally:
        os.chdir(before)
    return Run(result.exit_code, result.stdout, result.stderr)


def spawn(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> Run:
    """Run `gpuplan` as a process."""
    done = subprocess.run(
        [sys.executable, "-m", "gpuplan.cli", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return Run(done.returncode, done.stdout, done.stderr)
