"""What Python programs may import from `gpuplan`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gpuplan
from tests.cli.platforms import a_broken_platform, a_platform


@pytest.mark.parametrize("name", gpuplan.__all__)
def test_all_that_is_promised_is_there(name: str) -> None:
    assert getattr(gpuplan, name) is not None
    assert name in dir(gpuplan)


def test_nothing_else_is_there() -> None:
    with pytest.raises(AttributeError, match="module 'gpuplan' has no attribute 'validat'"):
        gpuplan.validat  # noqa: B018 - asked for on purpose


def test_importing_gpuplan_imports_no_other_part_of_it() -> None:
    code = "import sys, gpuplan; print(*[name for name in sys.modules if name.startswith('gpuplan')])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "gpuplan\n"
    )


def test_a_valid_platform_has_a_plan_and_a_tree(tmp_path: Path) -> None:
    build = gpuplan.build(a_platform(tmp_path))

    assert build.report.is_valid
    assert [plan.cluster.name for plan in build.report.plans] == ["dev"]
    assert "dev/kustomization.yaml" in build.tree
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("overlays", "policies")] == []


def test_a_broken_platform_has_findings_with_places(tmp_path: Path) -> None:
    report = gpuplan.validate(a_broken_platform(tmp_path))

    [error] = [item for item in report.diagnostics if item.severity is gpuplan.Severity.ERROR]
    place = error.finding.at.locate()
    assert (error.code, place.file.path, place.span.start.line) == ("GPU101", "policies/tenant.yaml", 10)
    assert not report.is_valid


def test_trouble_is_raised(tmp_path: Path) -> None:
    with pytest.raises(gpuplan.GpuplanError, match="no cluster found"):
        gpuplan.validate(tmp_path)


def test_folders_may_be_named_in_text(tmp_path: Path) -> None:
    (a_platform(tmp_path) / "crds").mkdir()

    assert gpuplan.validate(str(tmp_path)).is_valid
    assert gpuplan.build(str(tmp_path)).tree == gpuplan.build(tmp_path).tree
    with pytest.raises(gpuplan.GpuplanError, match="there is no CustomResourceDefinition in"):
        gpuplan.build(str(tmp_path), crds=str(tmp_path / "crds"))
