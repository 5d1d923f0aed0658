"""The tenants of the example platform, built for each of the four schedulers."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from gpuplan.compiler.pipeline import Build, build
from gpuplan.compiler.planning.schedulers import SCHEDULERS as TRAITS
from tests.compiler.backends.crds import crds
from tests.plans import a_cluster

REPOSITORY = Path(__file__).parents[2]
SCHEDULERS = tuple(TRAITS)

# What takes turns on a GPU elsewhere has a fraction of it here, which is what these schedulers share GPUs by.
IN_FRACTIONS = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: a100-shared}
spec: {sharing: {timeSlicing: null, fraction: {}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: h100-training}
spec: {sharing: {timeSlicing: null, fraction: {}}}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: research}
spec: {quotas: [{pool: a100-shared, guaranteed: 12}]}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: development}
spec: {quotas: [{pool: a100-shared, guaranteed: 8}], allow: null}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: batch-inference}
spec: {quotas: [{pool: a100-shared, guaranteed: 4}]}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: training}
spec: {quotas: [{pool: h100-training, guaranteed: 10}]}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: fine-tuning}
spec: {quotas: [{pool: h100-training, guaranteed: 6}]}
---
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {name: support-tuning}
spec: {fraction: 0.5}
---
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {name: evaluation}
spec: {fraction: 0.33}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: training}
spec: {value: 75}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: research}
spec: {value: 50}
"""
CHANGES = {name: IN_FRACTIONS if traits.has_fractions else "" for name, traits in TRAITS.items()}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's policies, with a cluster for each scheduler."""
    root = tmp_path_factory.mktemp("four")
    shutil.copytree(REPOSITORY / "policies", root / "policies")
    for scheduler in SCHEDULERS:
        folder = root / "overlays" / scheduler
        folder.mkdir(parents=True)
        cluster = a_cluster(f"kind: {scheduler}").replace("name: test", f"name: {scheduler}")
        (folder / "cluster.yaml").write_text(cluster)
        (folder / "policies.yaml").write_text(CHANGES[scheduler])
    return root


@pytest.fixture(scope="module")
def built(repository: Path) -> Build:
    return build(repository)


def objects(built: Build, scheduler: str) -> dict[str, Mapping[str, object]]:
    """All manifests of a cluster by path, kustomize's own left out."""
    return {
        path: yaml.safe_load(data)
        for path, data in built.tree.items()
        if path.startswith(f"{scheduler}/") and path.endswith(".yaml") and b"\nkind: Kustomization" not in data
    }


def kinds(built: Build, scheduler: str, folder: str) -> set[object]:
    return {body.get("kind") for path, body in objects(built, scheduler).items() if path.split("/")[1] == folder}


def test_the_same_tenants_are_right_for_all(built: Build) -> None:
    errors = [item for item in built.report.diagnostics if item.is_error]
    assert [(item.code, item.finding.message) for item in errors] == []
    assert built.report.clusters == tuple(sorted(SCHEDULERS))


def test_every_object_fits_its_definition(repository: Path) -> None:
    found = build(repository, crds=crds())
    assert found.report.is_valid


@pytest.mark.parametrize(
    ("scheduler", "own"),
    [
        ("kubernetes", set()),
        ("kueue", {"ClusterQueue", "Cohort", "ResourceFlavor", "WorkloadPriorityClass", "Configuration"}),
        ("kai", {"SchedulingShard"}),
        ("runai", set()),
    ],
)
def test_each_scheduler_has_its_own_objects_and_no_other(built: Build, scheduler: str, own: set[str]) -> None:
    of_all = {"PriorityClass", "Namespace", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    assert kinds(built, scheduler, "scheduling") == of_all | own


def test_runai_is_told_by_requests(built: Build) -> None:
    paths = [path for path in built.tree if path.startswith("runai/scheduling/runai/")]
    assert "runai/scheduling/runai/projects/research.json" in paths
    assert "runai/scheduling/runai/README.md" in paths


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_tenant_has_its_namespace_and_its_workloads(built: Build, scheduler: str) -> None:
    found = objects(built, scheduler)
    assert {path.split("/")[2] for path in found if "/namespaces/" in path} == {
        "agents",
        "batch-inference",
        "development",
        "fine-tuning",
        "model-services",
        "production-inference",
        "research",
        "small-inference",
        "training",
    }
    made = {(path.split("/")[2], body["kind"]) for path, body in found.items() if "/workloads/" in path}
    assert {
        ("model-services", "Deployment"),
        ("small-inference", "Deployment"),
        ("fine-tuning", "Job"),
        ("research", "Job"),
    } <= made
