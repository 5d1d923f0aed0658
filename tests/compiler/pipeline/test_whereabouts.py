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


def test_a_base_that_was_renamed_is_the_one_mistake(platform: Path) -> None:
    (platform / "policies").rename(platform / "policy")
    found = {(item.code, item.finding.help) for item in validate(platform, ("prod",)).diagnostics if item.is_error}
    assert found == {("GPU111", "rename `policy` to `policies`, or write `bases: [policy]`")}


def test_a_file_beside_the_clusters_is_sent_to_a_folder_that_is_read(platform: Path) -> None:
    shutil.copy(platform / "overlays/dev/policies.yaml", platform / "overlays/common.yaml")
    (found,) = [item.finding for item in validate(platform).diagnostics if item.code == "GPU110"]
    assert found.message == "overlays/common.yaml is in no cluster's folder, and not read"
    (platform / "overlays/common.yaml").write_text("# nothing yet\n")
    assert not [item for item in validate(platform).diagnostics if item.code == "GPU110"]


def test_a_copied_cluster_gets_a_destination_of_its_own(platform: Path) -> None:
    shutil.copytree(platform / "overlays/prod", platform / "overlays/staging")
    file = platform / "overlays/staging/cluster.yaml"
    file.write_text(file.read_text().replace("name: prod", "name: staging", 1))
    messages = [item.finding.message for item in validate(platform).diagnostics if item.code == "GPU659"]
    assert "clusters `prod` and `staging` are synced to one cluster, `prod`" in messages
    file.write_text(file.read_text().replace("name: prod", "name: staging"))
    messages = [item.finding.message for item in validate(platform).diagnostics if item.code == "GPU659"]
    assert not [message for message in messages if "synced to one" in message]


def test_a_renamed_document_is_renamed_in_the_overlay_as_well(platform: Path) -> None:
    file = platform / "policies/tenants/science.yaml"
    file.write_text(file.read_text().replace("name: batch-inference", "name: batch"))
    found = [item for item in validate(platform, ("dev",)).diagnostics if item.is_error]
    assert [(item.code, item.finding.help) for item in found if item.code in ("GPU018", "GPU400")] == [
        ("GPU018", "write `name: batch`, as the bases have it")
    ]
