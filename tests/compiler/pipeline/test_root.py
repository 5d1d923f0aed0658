"""A root is told which Applications have something new to apply: their digests change with their folders."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gpuplan.compiler.pipeline import build
from tests.compiler.pipeline.test_delivery import COMPONENT, REPOSITORY, write

OPERATOR, MIXED = "application-gpu-operator-dev.yaml", "application-gpu-partitions-dev-a100-mixed.yaml"


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    """The example platform with a root for `dev`, where one pool is synced by itself and the other by a person."""
    for folder in ("policies", "overlays"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    edit(tmp_path / "overlays/dev/cluster.yaml", "  argocd:\n", "  argocd:\n    root: true\n")
    return tmp_path


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def in_order(platform: Path) -> dict[str, bytes]:
    """The files of the Applications that the root syncs in order."""
    result = build(platform, ["dev"])
    assert result.report.is_valid, [item.finding.message for item in result.report.diagnostics]
    folder = "argocd/dev/applications/"
    found = {path.removeprefix(folder): data for path, data in result.tree.items() if path.startswith(folder)}
    return {name: data for name, data in found.items() if b"gpuplan.dev/content: " in data}


def changed(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    assert before.keys() == after.keys()
    return sorted(name for name, data in before.items() if data != after[name])


def test_the_operator_and_each_automatic_pool_have_a_digest(platform: Path) -> None:
    found = in_order(platform)
    assert set(found) == {OPERATOR, MIXED}
    assert changed(found, in_order(platform)) == []


def test_labels_of_a_pool_change_its_application(platform: Path) -> None:
    before = in_order(platform)
    edit(platform / "policies/pools/partitioned.yaml", "value: a100-mixed", "value: mixed")
    assert changed(before, in_order(platform)) == [MIXED]


def test_files_that_labels_name_change_the_operators_application(platform: Path) -> None:
    before = in_order(platform)
    edit(platform / "policies/pools/shared.yaml", "replicas: 3", "replicas: 4")
    assert changed(before, in_order(platform)) == [OPERATOR]


def test_values_of_the_chart_change_the_operators_application(platform: Path) -> None:
    before = in_order(platform)
    file = platform / "overlays/dev/cluster.yaml"
    edit(file, "install: helm\n", "install: helm\n    values: {toolkit: {enabled: false}}\n")
    assert changed(before, in_order(platform)) == [OPERATOR]


def test_what_a_tenant_gets_changes_none(platform: Path) -> None:
    before = in_order(platform)
    edit(platform / "overlays/dev/policies.yaml", "a100-shared, guaranteed: 2", "a100-shared, guaranteed: 1")
    assert changed(before, in_order(platform)) == []


def test_what_a_hand_written_component_says_changes_the_application_that_includes_it(platform: Path) -> None:
    file = platform / "overlays/dev/kustomize/partitions/a100-mixed/kustomization.yaml"
    component = f"{COMPONENT}commonLabels: {{example.com/owner: a}}\n"
    write(file, component)
    before = in_order(platform)
    write(file, f"# As agreed.\n{component}")
    assert changed(before, in_order(platform)) == []
    write(file, component.replace("owner: a", "owner: b"))
    assert changed(before, in_order(platform)) == [MIXED]
