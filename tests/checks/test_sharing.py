"""What is said about shared pools, beyond what the cases show."""

from __future__ import annotations

import pytest

from gpuplan.compiler import catalog
from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.checks import sharing
from gpuplan.compiler.checks.registry import checks_in
from gpuplan.compiler.checks.sharing import most_mps_clients
from tests.plans import a_plan


def a_pool(sharing_text: str, memory_mib: int, gpu: str = "A100-80GB") -> str:
    return f"""\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: a}}
spec:
  gpu: {gpu}
  nodes: {{count: 2, gpusPerNode: 8, namePattern: "a-[0-9]+"}}
  sharing: {{{sharing_text}}}
  memoryPerUnitMiB: {memory_mib}
"""


def findings(text: str) -> list[Diagnostic]:
    plan = a_plan(text)
    return [found for check in checks_in(sharing) for found in check.run(plan)]


@pytest.mark.parametrize(("gpu", "most"), [("V100-32GB", 16), ("T4-16GB", 48), ("A100-80GB", 48), ("B200-180GB", 48)])
def test_mps_clients_follow_compute_capability(gpu: str, most: int) -> None:
    assert most_mps_clients(catalog.load().get(gpu)) == most


@pytest.mark.parametrize(
    ("sharing_text", "memory_mib", "way_out"),
    [
        ("timeSlicing: {replicas: 8}", 16000, "write `replicas: 5`"),
        ("mps: {replicas: 8}", 20480, "write `replicas: 4`"),
        ("timeSlicing: {replicas: 2}", 60000, "write `exclusive: {}` in place of `timeSlicing`"),
        ("mig: {instances: {3g.40gb: 2}, timeSlicing: {replicas: 4}}", 20000, "write `replicas: 2`"),
        ("mig: {instances: {3g.40gb: 2}, timeSlicing: {replicas: 4}}", 30000, "leave `timeSlicing` out"),
        ("mig: {instances: {3g.40gb: 2}}", 60000, "profiles with enough memory: `7g.80gb`"),
        ("mig: {instances: {3g.40gb: 2}}", 81000, "write `exclusive: {}`: only the whole GPU has enough"),
        ("exclusive: {}", 90000, "lower `memoryPerUnitMiB`: a whole A100-80GB has 81920 MiB"),
    ],
)
def test_too_little_memory_comes_with_what_is_enough(sharing_text: str, memory_mib: int, way_out: str) -> None:
    found = findings(a_pool(sharing_text, memory_mib))
    assert [(item.code, item.finding.help) for item in found] == [("GPU303", way_out)]


def test_following_the_way_out_is_enough() -> None:
    assert findings(a_pool("timeSlicing: {replicas: 5}", 16000)) == []
    assert findings(a_pool("mig: {instances: {7g.80gb: 1}}", 60000)) == []
