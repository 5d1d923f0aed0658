"""A platform in the middle of a rollout is valid and builds with every scheduler, and with claims."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gpuplan.compiler.pipeline import build
from tests.plans import a_cluster

POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: p}
spec:
  gpu: A100-80GB
  nodes: {count: 3, gpusPerNode: 8, namePattern: "n[0-9]+"}
  sharing: {mig: {instances: {3g.40gb: 2}}}
  rollout: {sharing: {mig: {instances: {3g.40gb: 1, 2g.20gb: 2}}}, nodes: [n1]}
  ALLOCATION
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: t}
spec:
  namespaces: [t]
  quotas:
  - {pool: p, unit: 3g.40gb, guaranteed: 40}
  - {pool: p, unit: 2g.20gb, guaranteed: 16}
"""


@pytest.mark.parametrize(
    ("scheduler", "allocation"),
    [
        ("kind: kubernetes", ""),
        ("kind: kueue", ""),
        ("kind: kai", ""),
        ("kind: runai", ""),
        ("kind: kubernetes", "allocation: dra"),
        ("kind: kueue", "allocation: dra"),
    ],
)
def test_units_of_both_halves_can_be_granted(tmp_path: Path, scheduler: str, allocation: str) -> None:
    text = f"{a_cluster(scheduler)}---\n{POOL.replace('ALLOCATION', allocation)}"
    (tmp_path / "overlays/test").mkdir(parents=True)
    (tmp_path / "overlays/test/all.yaml").write_text(text, encoding="utf-8")

    built = build(tmp_path)

    assert [item.finding.message for item in built.report.diagnostics if item.is_error] == []
    (rules,) = (yaml.safe_load(data) for path, data in built.tree.items() if "nodefeaturerule" in path)
    assert [rule["name"] for rule in rules["spec"]["rules"]] == ["p", "p.rollout"]


def test_more_than_both_halves_have_is_refused(tmp_path: Path) -> None:
    """Two nodes with 16 large partitions, one with 8."""
    (tmp_path / "overlays/test").mkdir(parents=True)
    text = (
        f"{a_cluster('kind: kueue')}---\n{POOL.replace('ALLOCATION', '').replace('guaranteed: 40', 'guaranteed: 41')}"
    )
    (tmp_path / "overlays/test/all.yaml").write_text(text, encoding="utf-8")
    (error,) = (item.finding for item in build(tmp_path).report.diagnostics if item.is_error)
    assert error.message == "guarantees on `3g.40gb` of pool `p` add up to 41 of 40"
    assert error.help == "lower the guarantees by 1, or move fewer nodes"
