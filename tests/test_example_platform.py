"""The platform in `policies/` and `overlays/` is valid, built, committed, and buildable by kustomize."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.pipeline import Build, build
from tests.compiler.backends.crds import crds
from tests.kustomizing import kustomize

REPOSITORY = Path(__file__).parents[1]
OUT = REPOSITORY / "out"
FOLDERS = sorted(path.parent for path in OUT.glob("**/kustomization.yaml"))


@pytest.fixture(scope="module")
def built() -> Build:
    return build(REPOSITORY)


def test_there_is_no_finding_not_even_a_note(built: Build) -> None:
    assert built.report.diagnostics == ()


def test_committed_output_is_what_the_policies_make(built: Build) -> None:
    found = {path.relative_to(OUT).as_posix(): path.read_bytes() for path in OUT.rglob("*") if path.is_file()}
    found = {name: data for name, data in found.items() if not name.startswith(".gpuplan/")}
    assert sorted(found) == sorted(built.tree)
    assert [name for name, data in found.items() if data != built.tree[name]] == []


def test_clusters_are_the_overlays(built: Build) -> None:
    assert built.report.clusters == ("dev", "openshift", "prod")


def test_every_object_fits_its_definition() -> None:
    """Those that GPUPLAN_CRDS has, besides those that come with gpuplan."""
    assert build(REPOSITORY, crds=crds()).report.is_valid


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.relative_to(OUT).as_posix())
def test_folder_builds_with_kustomize(folder: Path) -> None:
    kustomize(folder)


@pytest.mark.parametrize("cluster", ["dev", "openshift", "prod"])
def test_root_of_a_cluster_holds_the_objects_of_all_its_folders(cluster: str) -> None:
    whole = {identity(body) for body in yaml.safe_load_all(kustomize(OUT / cluster))}
    parts = {
        identity(body)
        for folder in FOLDERS
        if folder.relative_to(OUT).parts[0] == cluster and folder != OUT / cluster
        for body in yaml.safe_load_all(kustomize(folder))
        if body
    }
    assert whole == parts


def test_every_folder_of_the_output_has_a_kustomization() -> None:
    folders = {path.parent for path in OUT.rglob("*") if path.is_file() and ".gpuplan" not in path.parts}
    assert folders - set(FOLDERS) == set()


def identity(body: dict[str, Any]) -> tuple[str, str, str, str]:
    metadata = body["metadata"]
    return body["apiVersion"], body["kind"], metadata.get("namespace", ""), metadata["name"]
