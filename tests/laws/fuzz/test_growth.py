"""Four times the input takes about four times the time, and memory in proportion."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import pytest

TIMES: Final = 4
"""By how much the inputs differ: what is quadratic takes sixteen times as long, and no noise looks like it."""
LARGEST_GROWTH: Final = 6.5
MOST_TRIES: Final = 8
HEAD: Final = "apiVersion: gpuplan.dev/v1\n"
POOL: Final = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: a}
spec:
  gpu: A100-80GB
  nodes: {count: 1000000, gpusPerNode: 1, namePattern: "a-.*"}
  sharing: {exclusive: {}}
"""
CLUSTER: Final = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: dev}
spec:
  kubernetes: "1.34"
  gpuOperator: {install: helm, version: v26.3.0}
"""
PROGRAM: Final = """\
import resource, sys, time
from pathlib import Path
from gpuplan.compiler import pipeline
from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.terminal.formats import Format, findings
from gpuplan.terminal.text import Theme
verb, root = sys.argv[1], Path(sys.argv[2])
pipeline.validate(Path(sys.argv[3]), kustomize="off")  # what is imported once is not the input's
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
if verb == "build":
    report = pipeline.build(root, kustomize="off").report
else:
    report = pipeline.validate(root, kustomize="off")
sizes = [len(findings(report, Format(name), Theme())) for name in sys.argv[4:]]
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, *sizes)
"""


class Cost(NamedTuple):
    """What a run took; ``sizes`` are of what it printed."""

    seconds: float
    memory_kib: int
    sizes: tuple[int, ...]


def priority_classes(number: int) -> str:
    documents = (f"{HEAD}kind: PriorityClass\nmetadata: {{name: p{i}}}\nspec: {{value: {i}}}\n" for i in range(number))
    return "---\n".join(documents)


def equal_classes(number: int) -> str:
    documents = (f"{HEAD}kind: PriorityClass\nmetadata: {{name: p{i}}}\nspec: {{value: 1}}\n" for i in range(number))
    return "---\n".join(documents)


def unknown_fields(number: int) -> str:
    return POOL + "".join(f"  x{i}: 1\n" for i in range(number))


def wrong_labels(number: int) -> str:
    return POOL + "  nodeLabels:\n" + "".join(f"    x{i}: 1\n" for i in range(number))


def long_name(number: int) -> str:
    return f"{HEAD}kind: PriorityClass\nmetadata: {{name: {'x' * number}}}\nspec: {{value: 1, y: {'x' * number}}}\n"


def documents(number: int) -> str:
    return "---\n".join(f"{HEAD}kind: Nothing\nmetadata: {{name: p{i}}}\n" for i in range(number))


def broken_documents(number: int) -> str:
    """Every second one has a stray space, and is read around."""
    documents = (
        f"{HEAD}kind: PriorityClass\n{' ' * (i % 2)}metadata: {{name: p{i}}}\nspec: {{value: {i}}}\n"
        for i in range(number)
    )
    return "---\n".join(documents)


def tenants(number: int) -> str:
    each = (
        f"---\n{HEAD}kind: Tenant\nmetadata: {{name: t{i}}}\n"
        f"spec: {{namespaces: [ns{i}], quotas: [{{pool: a, guaranteed: 1}}]}}\n"
        for i in range(number)
    )
    return POOL + "".join(each)


CASES = [
    pytest.param(priority_classes, 1_500, "build", (), id="priority classes"),
    pytest.param(equal_classes, 1_000, "validate", ("full", "json"), id="priority classes of one value"),
    pytest.param(unknown_fields, 10_000, "validate", ("full", "json"), id="unknown fields"),
    pytest.param(wrong_labels, 1_000, "validate", ("full", "concise", "json", "sarif"), id="wrong labels"),
    pytest.param(long_name, 750_000, "validate", ("full", "github", "junit"), id="a long name"),
    pytest.param(documents, 2_500, "validate", ("full", "json"), id="documents"),
    pytest.param(broken_documents, 2_500, "validate", ("full", "json"), id="broken documents"),
    pytest.param(tenants, 500, "validate", (), id="tenants"),
]


@pytest.mark.parametrize(("write", "number", "verb", "formats"), CASES)
def test_growth_is_linear(
    write: Callable[[int], str], number: int, verb: str, formats: tuple[str, ...], tmp_path: Path
) -> None:
    """Judged by the best of several runs: other programs can only add to the time of this one."""
    small, large = (platform(tmp_path / str(count), write(count)) for count in (number, TIMES * number))
    costs: list[tuple[Cost, Cost]] = []
    while len(costs) < 2 or (growth(costs) > LARGEST_GROWTH and len(costs) < MOST_TRIES):
        costs.append((cost(verb, small, formats), cost(verb, large, formats)))
    assert growth(costs) <= LARGEST_GROWTH
    size = len(write(TIMES * number))
    assert min(large.memory_kib for _, large in costs) * 1024 <= 60 * size + 64 * 2**20


def test_a_long_name_is_not_said_in_full(tmp_path: Path) -> None:
    formats = ("full", "concise", "json", "github", "junit", "sarif", "markdown")
    short, long = (cost("validate", platform(tmp_path / str(n), long_name(n)), formats) for n in (1_000, 1_000_000))
    assert max(after - before for before, after in zip(short.sizes, long.sizes, strict=True)) < 10_000


def growth(costs: list[tuple[Cost, Cost]]) -> float:
    return min(large.seconds for _, large in costs) / min(small.seconds for small, _ in costs)


def platform(root: Path, policies: str) -> Path:
    (root / "overlays/dev").mkdir(parents=True)
    (root / "overlays/dev/cluster.yaml").write_text(CLUSTER)
    (root / "policies").mkdir()
    (root / "policies/all.yaml").write_text(policies)
    return root


def cost(verb: str, root: Path, formats: tuple[str, ...]) -> Cost:
    warm = root.parent / "warm"
    if not warm.exists():
        platform(warm, POOL)
    command = [sys.executable, "-c", PROGRAM, verb, str(root), str(warm), *formats]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "0"}
    )
    seconds, memory, *sizes = done.stdout.split()
    return Cost(float(seconds), int(memory), tuple(map(int, sizes)))
