"""The example platform, synced by Flux: everything is in one Kustomization, and everything is what Flux takes."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.pipeline import build
from tests.compiler.backends import crds
from tests.compiler.delivery.flux.rendered import Built, Platform, identify
from tests.kustomizing import kustomize
from tests.subjects import A_CLUSTER

CLUSTERS = ["dev", "openshift", "prod"]


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Platform:
    return Platform(tmp_path_factory.mktemp("platform"))


@pytest.fixture(scope="module", params=CLUSTERS)
def built(platform: Platform, request: pytest.FixtureRequest) -> Built:
    return platform.build(request.param)


def test_every_object_is_in_one_kustomization(built: Built) -> None:
    applied = Counter(name for body in built.kustomizations.values() for name in built.applied(body))
    assert [name for name, count in applied.items() if count > 1] == []
    files = {name for name in built.tree if name.startswith(f"{built.cluster}/") and name.endswith(".yaml")}
    objects = [yaml.safe_load(built.tree[name]) for name in files if not name.endswith("/kustomization.yaml")]
    assert applied.keys() == {identify(body) for body in objects if "metadata" in body}


def test_no_kustomization_is_for_a_folder_that_is_not_there(built: Built) -> None:
    for body in built.kustomizations.values():
        assert built.applied(body), body["spec"]["path"]


def test_namespaces_are_written_on_objects_and_never_by_flux(built: Built) -> None:
    assert not [name for name, body in built.kustomizations.items() if "targetNamespace" in body["spec"]]


def test_objects_carry_flux_annotations_and_of_argo_cds_those_that_keep_it_from_deleting(built: Built) -> None:
    own = [data for name, data in built.tree.items() if name.startswith(f"{built.cluster}/")]
    told = {line.strip() for data in own for line in data.splitlines() if b"argocd.argoproj.io" in line}
    assert told
    assert all(re.fullmatch(rb'[^:]+/sync-options: "Prune=\w+(,Delete=\w+)?"', line) for line in told)
    assert [data for data in own if b"kustomize.toolkit.fluxcd.io/prune: disabled" in data]


def test_kustomize_builds_what_a_parent_points_to(built: Built, tmp_path: Path) -> None:
    for name, data in built.tree.items():
        file = tmp_path / "out" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    found = {identify(body) for body in yaml.safe_load_all(kustomize(tmp_path / "out/flux" / built.cluster))}
    assert found == built.flux.keys()


def test_the_same_policy_makes_the_same_bytes(platform: Platform, tmp_path: Path) -> None:
    again = Platform(tmp_path)
    assert build(platform.root).tree == build(again.root).tree


def test_every_kind_fits_its_definition(built: Built) -> None:
    assert crds.problems([Manifest("", body, about=A_CLUSTER, trace=None) for body in built.flux.values()]) == []
