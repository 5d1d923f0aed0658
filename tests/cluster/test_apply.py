"""An API server takes everything that gpuplan writes, and has nothing to change when it is applied again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.api import Api
from tests.cluster.comparisons import (
    Record,
    applied,
    changed_by_second_apply,
    compare_grants,
    compare_units,
    objects_in,
    rewritten,
)
from tests.cluster.definitions import has_definitions
from tests.cluster.delivery import MANAGER, deliveries, identity, leaving
from tests.cluster.example import ExampleCluster, apply_all
from tests.cluster.held import delivered_early
from tests.cluster.processes import until
from tests.cluster.variants import FLUX, VARIANT, make_variant, rebuild
from tests.compiler.backends.dra.platform import POLICIES as CLAIMED
from tests.platforms.test_four_schedulers import IN_FRACTIONS

_OF_OPENSHIFT = ("nfd.openshift.io", "operators.coreos.com")
"""Groups whose definitions only a cluster of OpenShift has."""

_EXTRA_POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: extra}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8, names: [gpu-extra-1, gpu-extra-2]}
  sharing: {mig: {instances: {1g.10gb: 7}}}
"""
_EXTRA_NODES = ("gpu-extra-1", "gpu-extra-2")

_NAMED = "\n---\n".join(
    f"""\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: {name}}}
spec: {{nodes: {{names: [{", ".join(f"gpu-{name}-{number}" for number in range(1, count + 1))}], namePattern: null}}}}
"""
    for name, count in {
        "a100-agents": 1,
        "a100-mixed": 2,
        "a100-production": 2,
        "a100-shared": 4,
        "a100-small": 1,
        "h100-training": 2,
    }.items()
)
"""Node objects need names."""

_VARIANTS: Mapping[str, tuple[str, str]] = {
    "node objects": ("nodeLabels: node", _NAMED),
    "KAI-Scheduler": ("scheduler: {kind: kai}", IN_FRACTIONS),
    "Run:ai": ("scheduler: {kind: runai}", IN_FRACTIONS),
}


def test_every_object_in_the_files_is_delivered(example: ExampleCluster, record: Record) -> None:
    out = example.repository / "out"
    written = {*objects_in(out / example.name), *objects_in(out / "argocd" / example.name)}
    found = applied(example)
    assert written - found == set()
    record(f"{example.name}: objects applied", len(written), len(found))


def test_tenants_are_held_before_they_have_anything(example: ExampleCluster, record: Record) -> None:
    record(f"{example.name}: what tenants have before it is held", [], delivered_early(example.folders))


def test_only_kinds_of_openshift_lack_a_definition(example: ExampleCluster, record: Record) -> None:
    if not has_definitions():
        pytest.skip("GPUPLAN_CRDS names no folder of CustomResourceDefinitions")
    kinds = {identity(body).partition(" ")[0] for folder in example.folders for body in folder.objects}
    planned = sorted(kind for kind in kinds if kind.startswith(_OF_OPENSHIFT))
    record(f"{example.name}: kinds applied without a schema", planned, list(example.undefined_kinds))


def test_nodes_publish_what_is_planned(example: ExampleCluster, record: Record) -> None:
    compare_units(record, example.name, example.plan, example.api)


def test_what_is_granted_is_published(example: ExampleCluster, record: Record) -> None:
    compare_grants(record, example.name, example.api)


def test_a_second_time_nothing_changes(example: ExampleCluster, record: Record) -> None:
    record(f"{example.name}: objects changed by a second apply", [], changed_by_second_apply(example))


def test_what_is_written_is_what_is_kept(example: ExampleCluster, record: Record) -> None:
    """Nothing is written in a way that the server writes differently, which Argo CD would show as out of sync."""
    record(f"{example.name}: fields kept in another form", [], rewritten(example))


def test_kubectl_shows_no_difference(example: ExampleCluster, record: Record) -> None:
    found = [
        folder.path
        for folder in example.folders
        if example.control_plane.kubectl(
            "diff", "--server-side", f"--field-manager={MANAGER}", "--kustomize", example.repository / folder.path
        )
    ]
    record(f"{example.name}: folders in which kubectl diff finds something", [], found)


@pytest.fixture(params=list(_VARIANTS))
def variant(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, ExampleCluster]]:
    """The example's policies on a cluster of another kind, by what it shows."""
    settings, changes = _VARIANTS[request.param]
    with ExampleCluster.start(VARIANT, make_variant(tmp_path, settings, changes)) as started:
        yield request.param, started


def test_other_ways_are_applied_as_well(variant: tuple[str, ExampleCluster], record: Record) -> None:
    name, cluster = variant
    compare_units(record, name, cluster.plan, cluster.api)
    record(f"{name}: objects changed by a second apply", [], changed_by_second_apply(cluster))
    record(f"{name}: fields kept in another form", [], rewritten(cluster))


def test_device_classes_and_claims_are_applied(tmp_path: Path, record: Record) -> None:
    root = make_variant(tmp_path, "nodeLabels: external", "".join(CLAIMED), policies=None)
    with ExampleCluster.start(VARIANT, root) as cluster:
        record("DRA: objects changed by a second apply", [], changed_by_second_apply(cluster))
        record("DRA: fields kept in another form", [], rewritten(cluster))


def test_flux_is_applied_as_well(tmp_path: Path, record: Record) -> None:
    root = make_variant(tmp_path, "scheduler: {kind: kubernetes}", delivery=FLUX)
    with ExampleCluster.start(VARIANT, root) as cluster:
        written = {*objects_in(cluster.out), *objects_in(root / "out" / "flux" / VARIANT)}
        record("Flux: objects applied", len(written), len(applied(cluster)))
        record("Flux: objects changed by a second apply", [], changed_by_second_apply(cluster))


@pytest.mark.parametrize(
    ("way", "kinds"), [("nfd", ["Application", "ConfigMap", "NodeFeatureRule"]), ("node", ["Application", "ConfigMap"])]
)
def test_a_removed_pool_leaves_its_nodes(way: str, kinds: list[str], tmp_path: Path, record: Record) -> None:
    root = make_variant(tmp_path, f"nodeLabels: {way}", f"{_NAMED}---\n{_EXTRA_POOL}")
    with ExampleCluster.start(VARIANT, root) as cluster:
        before = {node["metadata"]["name"] for node in cluster.api.list("/api/v1/nodes")}
        assert set(_EXTRA_NODES) < before
        (root / "overlays" / VARIANT / "policies.yaml").write_text(_NAMED, encoding="utf-8")
        rebuild(root)
        after = tuple(deliveries(cluster.control_plane, root, VARIANT))
        pruned = tuple(leaving(cluster.folders, after))
        remove(cluster.api, pruned)
        apply_all(cluster.api, after)
        left = {node["metadata"]["name"] for node in cluster.api.list("/api/v1/nodes")}
    record(f"labels by {way}: kinds pruned with a pool", kinds, sorted({body["kind"] for body in pruned}))
    record(f"labels by {way}: nodes deleted with a pool", [], sorted(before - left))


def remove(api: Api, objects: Sequence[Mapping[str, Any]]) -> None:
    """Delete the objects, as Argo CD's controller would, whose own finalizers no other takes off."""
    paths = [api.path_of(body) for body in objects]
    for path in paths:
        api.patch(path, {"metadata": {"finalizers": None}})
        api.delete(path)
    until(lambda: not any(api.find(path) for path in paths), "what was pruned is gone")
