"""What Argo CD deletes when something leaves the policy: no Node, and no rule that holds partitions, unasked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import pytest

from gpuplan.compiler.manifests import Identity
from tests.compiler.delivery.argocd.platform import Application, Delivered, Platform, is_permitted, options

FINALIZER = "resources-finalizer.argocd.argoproj.io"


class Fate(StrEnum):
    """What becomes of an object that is no longer in Git."""

    DELETED = "deleted"
    ASKED = "deleted when a person agrees"
    STAYS = "stays"


@pytest.fixture
def platform(tmp_path: Path) -> Platform:
    return Platform(tmp_path)


# --- A model of Argo CD ------------------------------------------------------------------------------------------


def fates(before: Delivered, after: Delivered) -> dict[Identity, Fate]:
    """The fate of each object that an Application no longer applies, where Argo CD may prune all that it manages."""
    return {item: fate for app in before.applications.values() for item, fate in _fates(app, after)}


def _fates(app: Application, after: Delivered) -> Iterator[tuple[Identity, Fate]]:
    """Rules of `controller/appcontroller.go` and `gitops-engine/pkg/sync/sync_context.go` of Argo CD v3."""
    now = after.applications.get(app.name)
    gone = {item: body for item, body in app.objects.items() if now is None or item not in now.objects}
    for item, body in gone.items():
        if not is_permitted(after.project, item):
            yield item, Fate.STAYS  # objects that the project does not allow are not seen
        elif now is not None:
            yield item, _when_pruned(now, options(body))
        else:
            yield item, _when_removed(app, [options(other) for other in gone.values()], options(body))


def _when_pruned(app: Application, sync_options: Sequence[str]) -> Fate:
    """Automated or not, a sync may prune; only `automated` without `prune` is sure not to."""
    automated = app.body["spec"]["syncPolicy"].get("automated", {"prune": True})
    is_emptied = not app.objects and not automated.get("allowEmpty")
    if "Prune=false" in sync_options or not automated.get("prune") or is_emptied:
        return Fate.STAYS
    return Fate.ASKED if "Prune=confirm" in sync_options else Fate.DELETED


def _when_removed(app: Application, all_options: Sequence[Sequence[str]], sync_options: Sequence[str]) -> Fate:
    """Applications of an ApplicationSet stay (`create-update`); of others the finalizer says if objects go too."""
    has_finalizer = FINALIZER in app.body["metadata"].get("finalizers", ())
    if app.is_generated or not has_finalizer or "Delete=false" in sync_options:
        return Fate.STAYS
    waits = any("Delete=confirm" in listed for listed in all_options)
    return Fate.ASKED if waits else Fate.DELETED


def test_application_sets_keep_applications_and_those_keep_objects(platform: Platform) -> None:
    for application_set in platform.deliver("prod").application_sets.values():
        policy = application_set["spec"]["syncPolicy"]
        assert policy == {"applicationsSync": "create-update", "preserveResourcesOnDeletion": True}


def asked_about(found: Mapping[Identity, Fate]) -> set[str]:
    """The kinds of what is deleted when a person agrees."""
    return {item.kind for item, fate in found.items() if fate is Fate.ASKED}


# --- What leaves the policy --------------------------------------------------------------------------------------


def test_a_pool(platform: Platform) -> None:
    """Its Application is removed with it, and waits for a person before it removes the rule."""
    before = platform.deliver("prod")
    platform.remove("prod", "Pool/a100-mixed", "Tenant/model-services", "Workload/chat")
    after = platform.deliver("prod")
    assert "gpu-partitions-prod-a100-mixed" in before.applications.keys() - after.applications.keys()
    found = fates(before, after)
    rule = Identity("nfd.k8s-sigs.io", "NodeFeatureRule", "", "gpuplan-pool-a100-mixed")
    assert found.pop(rule) is Fate.ASKED
    assert asked_about(found) == {"ClusterQueue", "ResourceFlavor"}
    assert set(found.values()) == {Fate.ASKED, Fate.STAYS}


@pytest.mark.parametrize("cluster", ["openshift", "prod"])
def test_a_tenant(platform: Platform, cluster: str) -> None:
    """Its namespaces stay with all that is in them, and their Applications say that their path is gone."""
    before = platform.deliver(cluster)
    platform.remove(cluster, "Tenant/research", "Workload/evaluation")
    found = fates(before, platform.deliver(cluster))
    assert found.pop(Identity("", "Namespace", "", "research")) is Fate.STAYS
    assert asked_about(found) == ({"ClusterQueue"} if cluster == "prod" else set())
    assert set(found.values()) <= {Fate.ASKED, Fate.STAYS}


def test_a_workload_beside_another(platform: Platform) -> None:
    """It gives its units back. What would be lost with it is for a person to let go."""
    platform.write("policies/workloads/more.yaml", MORE)
    before = platform.deliver("prod")
    platform.remove("prod", "Workload/chat")
    found = {item.kind: fate for item, fate in fates(before, platform.deliver("prod")).items()}
    assert found == {
        "ConfigMap": Fate.STAYS,
        "Deployment": Fate.DELETED,
        "HorizontalPodAutoscaler": Fate.DELETED,
        "Job": Fate.DELETED,
        "PersistentVolumeClaim": Fate.ASKED,
        "Service": Fate.DELETED,
    }


def test_the_last_workload_of_a_namespace(platform: Platform) -> None:
    """Its Application stays with all that it applied, and says that its path is gone."""
    before = platform.deliver("prod")
    platform.remove("prod", "Workload/embeddings")
    found = fates(before, platform.deliver("prod"))
    assert {item.kind: fate for item, fate in found.items()} == {"Deployment": Fate.STAYS, "Service": Fate.STAYS}


MORE = """\
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {name: summaries}
spec:
  tenant: model-services
  inference: {}
  pool: a100-mixed
  unit: 2g.20gb
  priorityClass: training
  image: registry.example.com/summaries:1
"""


def test_a_layout(platform: Platform) -> None:
    """The file that mig-manager still mounts stays, since nothing of the operator is pruned unasked."""
    platform.write("policies/layouts-more.yaml", LAYOUT)
    before = platform.deliver("prod")
    platform.write("policies/layouts-more.yaml", "")
    found = fates(before, platform.deliver("prod"))
    assert [(item.kind, fate) for item, fate in found.items()] == [("ConfigMap", Fate.STAYS)]


LAYOUT = """\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: seven}
spec: {gpu: H100-80GB, instances: {1g.10gb: 7}}
"""


def test_a_pools_layout_is_a_change_of_its_rule_and_not_a_removal(platform: Platform) -> None:
    before = platform.deliver("prod")
    changed = "spec: {sharing: {mig: {layout: two-large}}}"
    platform.write(
        "overlays/prod/changed.yaml",
        f"apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {{name: a100-agents}}\n{changed}\n---\n"
        "apiVersion: gpuplan.dev/v1\nkind: Tenant\nmetadata: {name: agents, $patch: delete}\n",
    )
    after = platform.deliver("prod")
    name = "gpu-partitions-prod-a100-agents"
    assert before.applications[name].objects.keys() == after.applications[name].objects.keys()
    assert before.applications[name].objects != after.applications[name].objects
    assert "automated" not in after.applications[name].body["spec"]["syncPolicy"]


def test_what_comes_with_the_operator(platform: Platform) -> None:
    """Whoever installs the operator or NFD from now on: Argo CD prunes nothing of theirs by itself."""
    platform.change("dev", gpuOperator={"install": "external", "version": "v26.7.0"})
    operator = platform.deliver("dev").applications["gpu-operator-dev"]
    assert operator.body["spec"]["syncPolicy"]["automated"] == {"selfHeal": True}
    assert "finalizers" not in operator.body["metadata"]


NODES = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: prod}}
spec:
  kubernetes: "1.34"
  nodeLabels: {labels}
  bases: []
  gpuOperator: {{install: external, version: v26.7.0}}
  argocd: {{repoURL: "https://git.example.com/platform/gpu.git"}}
"""
SLICES = """\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: slices}}
spec:
  gpu: A100-80GB
  nodes: {{count: {count}, gpusPerNode: 8, names: [{nodes}]}}
  sharing: {{mig: {{instances: {{1g.10gb: 7}}}}}}
  disruption: {{approval: automatic}}
"""


RULE = Identity("nfd.k8s-sigs.io", "NodeFeatureRule", "", "gpuplan-pool-slices")


def test_the_last_pool(platform: Platform) -> None:
    """The project still allows rules: Argo CD would not see one that it does not allow, and would not ask."""
    cluster = NODES.format(labels="nfd")
    platform.write("overlays/prod/cluster.yaml", cluster + SLICES.format(count=1, nodes="gpu-1"))
    before = platform.deliver("prod")
    platform.write("overlays/prod/cluster.yaml", cluster)
    assert fates(before, platform.deliver("prod"))[RULE] is Fate.ASKED


def test_no_node_is_ever_deleted(platform: Platform) -> None:
    """Neither with its pool, nor when it leaves its pool, nor when something else labels nodes."""
    cluster = NODES.format(labels="node")
    platform.write("overlays/prod/cluster.yaml", cluster + SLICES.format(count=2, nodes="gpu-1, gpu-2"))
    before = platform.deliver("prod")
    nodes = {Identity("", "Node", "", name) for name in ("gpu-1", "gpu-2")}
    for then in (
        cluster,
        cluster + SLICES.format(count=1, nodes="gpu-1"),
        NODES.format(labels="external") + SLICES.format(count=2, nodes="gpu-1, gpu-2"),
    ):
        platform.write("overlays/prod/cluster.yaml", then)
        found = fates(before, platform.deliver("prod"))
        assert nodes & found.keys()
        assert {found[node] for node in nodes & found.keys()} == {Fate.STAYS}


@pytest.mark.parametrize("labels", ["node", "external"])
def test_rules_ask_when_something_else_labels_nodes(platform: Platform, labels: str) -> None:
    pool = SLICES.format(count=1, nodes="gpu-1")
    platform.write("overlays/prod/cluster.yaml", NODES.format(labels="nfd") + pool)
    before = platform.deliver("prod")
    platform.write("overlays/prod/cluster.yaml", NODES.format(labels=labels) + pool)
    assert fates(before, platform.deliver("prod"))[RULE] is Fate.ASKED
