"""What Flux deletes from a cluster when something leaves the policy: never what GPUs, nodes or limits hang on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.compiler.delivery.flux.rendered import Built, Objects, Platform, build_cluster


@pytest.fixture
def platform(tmp_path: Path) -> Platform:
    return Platform(tmp_path)


# --- A model of Flux ---------------------------------------------------------------------------------------------


def deleted(before: Built, after: Built) -> list[str]:
    """What is deleted from the cluster, after every suspended Kustomization was resumed.

    This is `prune`, `finalizerShouldDeleteResources` and `deleteObjects` of kustomize-controller's
    `kustomization_controller.go` (v1.10), for the Kustomization that applies Flux's own objects as for those.
    """
    return sorted((*_pruned(before.flux, after.flux), *_deleted_by_kustomizations(before, after)))


def _deleted_by_kustomizations(before: Built, after: Built) -> Iterator[str]:
    for name, body in before.kustomizations.items():
        applied = before.applied(body)
        if name in after.kustomizations:
            assert after.kustomizations[name]["spec"]["prune"] is True
            yield from _pruned(applied, after.applied(after.kustomizations[name]))
        elif body["spec"]["deletionPolicy"] != "Orphan":
            yield from _pruned(applied, {})


def _pruned(before: Objects, after: Objects) -> Iterator[str]:
    yield from (name for name in before.keys() - after.keys() if not _is_kept(before[name]))


def _is_kept(body: Mapping[str, Any]) -> bool:
    return bool(body["metadata"].get("annotations", {}).get("kustomize.toolkit.fluxcd.io/prune") == "disabled")


# --- What leaves the policy --------------------------------------------------------------------------------------


def test_a_pool(platform: Platform) -> None:
    """Its rule stays, and with it the label by which mig-manager keeps the partitions. So do the tenant's limits."""
    before = platform.build()
    platform.remove("prod", "Pool/a100-mixed", "Tenant/model-services", "Workload/chat")
    partitions = before.kustomizations["gpu-partitions-prod-a100-mixed"]
    assert list(before.applied(partitions)) == ["NodeFeatureRule/gpuplan-pool-a100-mixed"]
    assert deleted(before, platform.build()) == [
        "Kustomization/gpu-namespace-prod-model-services",
        "Kustomization/gpu-partitions-prod-a100-mixed",
        "Kustomization/gpu-workloads-prod-model-services",
    ]


def test_a_tenant(platform: Platform) -> None:
    before = platform.build()
    platform.remove("prod", "Tenant/research", "Workload/evaluation")
    assert deleted(before, platform.build()) == [
        "Kustomization/gpu-namespace-prod-research",
        "Kustomization/gpu-workloads-prod-research",
    ]


def test_a_layout(platform: Platform) -> None:
    """The file that the operator still mounts stays."""
    before = platform.build()
    platform.write("policies/layouts-more.yaml", LAYOUT)
    after = platform.build()
    assert operators_files(before) != operators_files(after)
    assert deleted(before, after) == deleted(after, before) == []


LAYOUT = """\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: seven}
spec: {gpu: H100-80GB, instances: {1g.10gb: 7}}
"""


def operators_files(built: Built) -> list[str]:
    applied = built.applied(built.kustomizations["gpu-operator-prod"])
    return [name for name in applied if name.startswith("ConfigMap/")]


def test_a_member(platform: Platform) -> None:
    """What is harmless does go."""
    before = platform.build()
    tenant = "apiVersion: gpuplan.dev/v1\nkind: Tenant\nmetadata: {name: research}\nspec: {members: []}\n"
    platform.write("overlays/prod/members.yaml", tenant)
    assert deleted(before, platform.build()) == ["RoleBinding/research/gpuplan-edit"]


def test_who_installs_the_operator(platform: Platform) -> None:
    """A HelmRelease that is deleted uninstalls the operator, drivers and all."""
    before = platform.build()
    platform.change("prod", gpuOperator={"install": "external", "version": "v26.7.0"})
    after = platform.build()
    assert "HelmRelease/gpu-operator-prod" in before.flux.keys() - after.flux.keys()
    assert deleted(before, after) == []


@pytest.mark.parametrize("cluster", ["dev", "openshift", "prod"])
def test_flux(platform: Platform, cluster: str) -> None:
    """Whoever syncs the cluster from then on finds all that there was, but for alerts."""
    before = platform.build(cluster)
    platform.change(cluster, flux=None)
    after = platform.build(cluster)
    assert not after.flux
    alerts = before.kustomizations.get(f"gpu-monitoring-{cluster}")
    gone = [name for name in deleted(before, after) if not name.startswith("Kustomization/")]
    assert gone == sorted(before.applied(alerts) if alerts else ())


NODES = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: prod}}
spec:
  kubernetes: "1.34"
  nodeLabels: {labels}
  gpuOperator: {{install: helm, version: v26.7.0}}
  flux: {{}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: slices}}
spec:
  gpu: A100-80GB
  nodes: {{count: 2, gpusPerNode: 8, names: [{nodes}]}}
  sharing: {{mig: {{instances: {{1g.10gb: 7}}}}}}
"""


def nodes(tmp_path: Path, names: str, labels: str = "node") -> Built:
    file = tmp_path / "overlays/prod/cluster.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(NODES.format(nodes=names, labels=labels))
    return build_cluster(tmp_path, "prod")


def test_a_node(tmp_path: Path) -> None:
    before = nodes(tmp_path, "a, b")
    partitions = before.kustomizations["gpu-partitions-prod-slices"]
    assert list(before.applied(partitions)) == ["Node/a", "Node/b"]
    assert deleted(before, nodes(tmp_path, "a, c")) == []


def test_nodes_as_such(tmp_path: Path) -> None:
    before = nodes(tmp_path, "a, b")
    assert deleted(before, nodes(tmp_path, "a, b", "nfd")) == []
    assert deleted(before, nodes(tmp_path, "a, b", "external")) == ["Kustomization/gpu-partitions-prod-slices"]
