"""Documents in folders that nothing reads, and a platform without overlays, are shown with the way to read them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.pipeline import validate

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    """A copy of the example platform."""
    for folder in ("policies", "overlays"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    return tmp_path


def test_a_pool_in_a_folder_that_nothing_reads_is_shown_there(platform: Path) -> None:
    (platform / "policies/pools").rename(platform / "pools")
    found = {item.finding.help for item in validate(platform, ("prod",)).diagnostics if item.code == "GPU101"}
    bases = "or add `pools` to `bases` of the Cluster"
    assert found == {
        f"move pools/{name}.yaml, which nothing reads, into policies/, {bases}" for name in ("partitioned", "shared")
    }


def test_a_platform_that_lost_its_overlays_is_not_begun_again(platform: Path) -> None:
    shutil.rmtree(platform / "overlays")
    with pytest.raises(GpuplanError) as trouble:
        validate(platform)
    assert trouble.value.hint.startswith("policies/ is here: restore overlays/ by `git checkout HEAD -- overlays`")


@pytest.mark.parametrize("name", ["shared.yaml.txt", "shared.yml.bak", "shared.yaml~"])
def test_a_pool_in_a_file_that_is_named_otherwise_is_shown_there(name: str, platform: Path) -> None:
    (platform / "policies/pools/shared.yaml").rename(platform / "policies/pools" / name)
    found = {item.finding.help for item in validate(platform, ("prod",)).diagnostics if item.code == "GPU101"}
    right = "policies/pools/shared.yaml: gpuplan reads `*.yaml` and `*.yml` alone"
    assert found == {f"rename policies/pools/{name} to {right}"}
