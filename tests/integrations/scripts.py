"""Runs the shell scripts that plug gpuplan in elsewhere, and checks files against the schemas of who reads them."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cli.runs import REPOSITORY, Run

_SCRIPT = "#!{python}\nfrom gpuplan.cli import entry\n\nentry()\n"
"""The command as pip writes it."""


def put_gpuplan(folder: Path) -> Path:
    """Install gpuplan, so that this is the folder with the commands `gpuplan` and `python`."""
    command = folder / "gpuplan"
    if command.exists():
        return folder
    venv.create(folder.parent, symlinks=True)
    [packages] = folder.parent.glob("lib/python*/site-packages")
    (packages / "gpuplan.pth").write_text(f"{REPOSITORY}\n{sysconfig.get_path('purelib')}\n")
    command.write_text(_SCRIPT.format(python=folder / "python"))
    command.chmod(0o755)
    return folder


def shell(command: Sequence[str], cwd: Path, variables: Mapping[str, str], *, path: Path | None = None) -> Run:
    """Run a command with these variables and no others; ``path`` is searched first."""
    search = os.pathsep.join([*([str(path)] if path else []), os.environ["PATH"]])
    done = subprocess.run(
        [*command], cwd=cwd, env={"PATH": search, **variables}, capture_output=True, text=True, check=False, timeout=60
    )
    return Run(done.returncode, done.stdout, done.stderr)


def fits_schema(file: Path, schema: str) -> Run:
    """Whether a file is what its readers publish a schema of; the schemas come with check-jsonschema."""
    return shell([sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)], REPOSITORY, {})
