"""Run every command of the gpuplan beside this Python, to see that it works with the packages that are there."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from gpuplan.terminal.options import FORMATS, SCHEMAS

ROOT = Path(__file__).resolve().parents[1]
GPUPLAN = Path(sys.executable).with_name("gpuplan")
GIT = ("git", "-c", "user.name=gpuplan", "-c", "user.email=gpuplan@example.com", "-c", "commit.gpgsign=false")

READING = (
    "validate",
    "build --check",
    "build --cluster dev --stdout",
    "show",
    "show --output-format json",
    "show --cluster prod --scheduler kai",
    "report",
    "explain GPU101",
    "explain Pool.spec.sharing",
    "explain scheduler/kueue",
    "explain gpus",
    "explain GPU2",
    "explain schema/Pool",
    "check out/prod/gpu-operator",
    "validate out/prod/gpu-operator",
    "import --commands",
    "import out/prod -c copy --dry-run --quiet",
    "drift out/prod --cluster prod",
    "pack --cluster dev --output-format diff",
    "catalog A100-80GB",
    "rules",
    "trace policies/layouts.yaml --output-format json",
    *(f"schema {name}" for name in SCHEMAS),
    "version",
    "completion bash",
)
"""What is run on the example."""
WRITING = (
    f"validate --warnings-as-errors {' '.join(f'--output-format={name}=findings.{name}' for name in FORMATS)}",
    "build",
    "build --check",
)
"""What is run on a starter, in this order."""
ROLLOUT = "rollout inference --to mps=4 --nodes nodes.txt"
"""Ends with 1: the pool's only node cannot be away."""
CHANGE = ("policies/pools.yaml", "replicas: 3", "replicas: 4")
ON_A_CHANGE = (
    "diff --fail-on destructive --output-format=json=diff.json --output-format=table",
    "validate --against HEAD",
    "retain --write",
    ROLLOUT,
)


def unexpected_versions() -> Iterator[str]:
    """The packages that are not at the lowest version that gpuplan says it runs with; a bound may be short."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for requirement in project["dependencies"]:
        name, lowest = requirement.split(">=")
        if not f"{version(name)}.".startswith(f"{lowest}."):
            yield f"{name} is {version(name)}, not {lowest}"


def failures(folder: Path) -> Iterator[str]:
    """The commands that did not end as they should, run on the example and on a starter below ``folder``."""
    with ThreadPoolExecutor() as pool:
        for found in pool.map(lambda command: [*_run([command], ROOT)], READING):
            yield from found
    starter = folder / "starter"
    yield from _run([f"init {starter.name}"], folder)
    yield from _run(WRITING, starter)
    _change(starter)
    yield from _run(ON_A_CHANGE, starter)


def _run(commands: Iterable[str], folder: Path) -> Iterator[str]:
    for command in commands:
        done = subprocess.run([GPUPLAN, *command.split()], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode != (1 if command == ROLLOUT else 0):
            yield f"gpuplan {command} ended with {done.returncode}:\n{done.stderr or done.stdout}"


def _change(starter: Path) -> None:
    """Commit a starter, and change it."""
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "starter"]):
        subprocess.run([*GIT, *command], cwd=starter, check=True)  # noqa: S603
    path, before, after = CHANGE
    text = (starter / path).read_text(encoding="utf-8")
    (starter / path).write_text(text.replace(before, after), encoding="utf-8")
    (starter / "nodes.txt").write_text("inference-1\n", encoding="utf-8")


def main() -> int:
    found = [*unexpected_versions()]
    if not found:
        with TemporaryDirectory() as folder:
            found = [*failures(Path(folder))]
    sys.stderr.writelines(f"{failure}\n" for failure in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
