"""What runs beside what hand-written Components make of what is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import gpuplan
from gpuplan.compiler.pipeline.loading import load
from gpuplan.features.live.drifting import Differs, Drift, Drifting, NextSync
from tests.cli.platforms import a_platform, write
from tests.features.live.dumps import listed, synced as applied
from tests.kustomizing import kustomize, need

FOLDER = "overlays/dev/kustomize/namespaces/research"
COMPONENT = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
resources:
- limits.yaml
patches:
- path: quota.yaml
"""
QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpuplan, namespace: research}
spec:
  hard:
    pods: "50"
"""
LIMITS = """\
apiVersion: v1
kind: LimitRange
metadata: {name: theirs, namespace: research}
spec:
  limits:
  - {type: Container, default: {cpu: "1"}}
"""

Body = dict[str, Any]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A platform with a Component, and its `out/`."""
    need()
    root = a_platform(tmp_path_factory.mktemp("patched"))
    for name, text in (("kustomization.yaml", COMPONENT), ("quota.yaml", QUOTA), ("limits.yaml", LIMITS)):
        write(root / FOLDER / name, text)
    built = gpuplan.build(root)
    assert built.report.is_valid
    for path, data in built.tree.items():
        write(root / "out" / path, data.decode())
    return root


@pytest.fixture(scope="module")
def synced(root: Path) -> str:
    """What runs after a sync."""
    return json.dumps(list(yaml.safe_load_all(kustomize(root / "out/dev"))))


@pytest.fixture
def bodies(synced: str) -> list[Body]:
    found: list[Body] = json.loads(synced)
    return found


def drifting(root: Path, bodies: list[Body], **options: str) -> Drifting:
    return gpuplan.drift(listed(bodies), root, "dev", **options)


def of_kind(bodies: list[Body], kind: str) -> Body:
    return next(body for body in bodies if body["kind"] == kind)


def told(found: Drift) -> tuple[str, str, list[str]]:
    return found.title, found.path, [f"{source.file}:{source.line}" for source in found.sources[:1]]


def test_what_components_say_is_written(root: Path, bodies: list[Body]) -> None:
    found = drifting(root, bodies)

    assert found.drifts == ()
    assert {"LimitRange", "ResourceQuota"} <= {body["kind"] for body in bodies}


def test_a_field_of_a_patch_comes_from_the_component(root: Path, bodies: list[Body]) -> None:
    hard = of_kind(bodies, "ResourceQuota")["spec"]["hard"]
    hard["pods"] = "70"

    [found] = drifting(root, bodies).drifts

    assert told(found) == ("ResourceQuota research/gpuplan", "spec.hard.pods", [f"{FOLDER}/quota.yaml:6"])
    assert (found.written, found.live) == ("50", "70")


def test_a_field_that_no_patch_has_comes_from_the_policy(root: Path, bodies: list[Body]) -> None:
    of_kind(bodies, "ResourceQuota")["spec"]["hard"]["requests.nvidia.com/gpu.shared"] = "70"

    [found] = drifting(root, bodies).drifts

    assert found.sources[0].file == "policies/tenant.yaml"


def test_an_object_of_a_component_that_is_missing(root: Path, bodies: list[Body]) -> None:
    of_kind(bodies, "LimitRange")["metadata"]["name"] = "another"

    [found] = drifting(root, bodies).drifts

    assert told(found) == ("LimitRange research/theirs", "", [f"{FOLDER}/limits.yaml:3"])
    assert (found.differs, found.next_sync) == (Differs.MISSING, NextSync.NOTHING)


def test_without_kustomize_what_components_touch_is_not_compared(root: Path, bodies: list[Body]) -> None:
    of_kind(bodies, "LimitRange")["spec"]["limits"][0]["default"]["cpu"] = "2"

    found = drifting(root, bodies, kustomize="off")

    assert found.drifts == ()
    assert ("LimitRange", 1, "the Components of its folder were not built") in found.unjudged


# --- What syncs ----------------------------------------------------------------------------------------------------

ROOT = "  argocd:\n    repoURL: https://git.example.com/gpu.git\n    root: true\n"
FLUX = "  flux: {source: {name: gpu}}\n"


def delivered(root: Path, settings: str) -> list[Body]:
    """A platform that something syncs, and what it applies."""
    a_platform(root)
    cluster = root / "overlays/dev/cluster.yaml"
    cluster.write_text(f"{cluster.read_text()}{settings}")
    [plan] = load(root, ("dev",)).plans
    return applied(plan)


def test_what_argo_cd_is_told_to_ignore_is_left_alone(tmp_path: Path) -> None:
    bodies = delivered(tmp_path, ROOT)
    ordered = [body for body in bodies if "operation" in body]
    for body in ordered:
        del body["operation"]  # Argo CD takes it when it begins

    found = drifting(tmp_path, bodies)

    assert ordered
    assert found.drifts == ()
    assert {(item.path, item.next_sync) for item in found.left_alone} == {("operation", NextSync.LEAVES)}


def test_a_change_of_an_application_is_told_all_the_same(tmp_path: Path) -> None:
    bodies = delivered(tmp_path, ROOT)
    next(body for body in bodies if body["kind"] == "Application")["spec"]["project"] = "default"

    [found] = drifting(tmp_path, bodies).drifts

    assert (found.path, found.live, found.next_sync) == ("spec.project", "default", NextSync.OVERWRITES)


def test_what_flux_adds_is_no_difference_and_what_it_left_is(tmp_path: Path) -> None:
    bodies = delivered(tmp_path, FLUX)
    name = "kustomize.toolkit.fluxcd.io/name"
    for body in bodies:
        labels = {**body["metadata"].get("labels", {}), name: "gpu-namespace-dev-research"}
        fields: Body = {"f:metadata": {"f:labels": {f"f:{name}": {}}}}
        manager = {"manager": "kustomize-controller", "operation": "Apply", "time": "", "fieldsV1": fields}
        body["metadata"] |= {"labels": labels, "managedFields": [manager]}
    old: Body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "old", "namespace": "research"}}

    assert drifting(tmp_path, bodies).drifts == ()

    old["metadata"]["labels"] = {name: "gpu-namespace-dev-research"}
    left = drifting(tmp_path, [*bodies, old]).drifts
    assert [(item.title, item.next_sync) for item in left] == [("ConfigMap research/old", NextSync.PRUNES)]

    old["metadata"]["annotations"] = {"kustomize.toolkit.fluxcd.io/prune": "disabled"}
    assert [item.next_sync for item in drifting(tmp_path, [*bodies, old]).drifts] == [NextSync.NOTHING]


@pytest.mark.parametrize("content", [b"", b"NAME STATUS\nnode-1 Ready\n", b"kind: List\napiVersion: v1\nitems: []\n"])
def test_a_dump_without_objects_is_no_proof(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(gpuplan.GpuplanError, match="no object in the dump"):
        gpuplan.drift({"live.yaml": content}, tmp_path, "dev")
