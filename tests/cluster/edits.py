"""Commits to the example's cluster `dev`, each of another kind: what `test_argocd_changes.py` has Argo CD sync."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.lab import replace_in

Edit = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Commit:
    """What is changed in a platform."""

    title: str
    edits: tuple[Edit, ...]

    def __init__(self, title: str, *edits: Edit) -> None:
        object.__setattr__(self, "title", title)
        object.__setattr__(self, "edits", edits)

    def make(self, root: Path) -> None:
        for edit in self.edits:
            edit(root)


def in_dev(before: str, after: str) -> Edit:
    return lambda root: replace_in(root / "overlays/dev/policies.yaml", before, after)


def in_cluster(before: str, after: str) -> Edit:
    return lambda root: replace_in(root / "overlays/dev/cluster.yaml", before, after)


def in_policies(file: str, before: str, after: str) -> Edit:
    return lambda root: replace_in(root / "policies" / file, before, after)


def writing(path: str, text: str) -> Edit:
    def write(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")

    return write


def adding(text: str) -> Edit:
    """Put a document of policy into the cluster's folder."""
    return writing("overlays/dev/added.yaml", text)


def document(kind: str, name: str, spec: str) -> str:
    return f"apiVersion: gpuplan.dev/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n"


def deleting(kind: str, name: str) -> str:
    return f"apiVersion: gpuplan.dev/v1\nkind: {kind}\nmetadata: {{name: {name}, $patch: delete}}\n"


_CHAT: Final = """\
metadata:
  name: chat
spec:
  inference:
    autoscaling:
      minReplicas: 1
      maxReplicas: 2
"""
_WINDOW: Final = '{schedule: "0 2 * * 6", duration: 4h}'
_POOL: Final = """\
{gpu: A100-80GB, nodes: {count: 1, gpusPerNode: 2, namePattern: "gpu-spare-[0-9]+"}, sharing: {exclusive: {}},
  workloadTypes: [research], disruption: {approval: automatic}}"""
_TRAINING: Final = """\
{tenant: research, training: {}, pool: a100-shared, image: "registry.example.com/research/sweep:1.0.0"}"""
_TENANT: Final = """\
{namespaces: [guests], priorityClasses: [research], workloadTypes: [research],
  quotas: [{pool: a100-shared, guaranteed: 1}], members: [guests]}"""
_COMPONENT: Final = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [thing.yaml]\n"
_THING: Final = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes, namespace: research}\ndata: {a: b}\n"
_HAND: Final = "overlays/dev/kustomize/namespaces/research"

_DEVELOPMENT: Final = """\
metadata:
  name: development
spec:
  quotas:
    - {pool: a100-shared, guaranteed: 4}
"""
_CLASSES: Final = "priority-classes.yaml"
_SERVICES: Final = "workloads/services.yaml"

COMMITS: Final = (
    Commit("another description of a priority class", in_policies(_CLASSES, "that can wait.", "that wait.")),
    Commit("a smaller quota", in_dev("{pool: a100-shared, guaranteed: 4}", "{pool: a100-shared, guaranteed: 3}")),
    Commit("one more member", in_policies("tenants/science.yaml", "[ml-research]", "[ml-research, ml-visitors]")),
    Commit("one more priority class", adding(document("PriorityClass", "nightly", "{value: 50}"))),
    Commit("another value of a priority class", in_policies(_CLASSES, "value: 500", "value: 600")),
    Commit("another image of a service", in_policies(_SERVICES, "chat:2.4.1", "chat:2.4.2")),
    Commit("another configuration of a service", in_policies(_SERVICES, "batch_size: 16", "batch_size: 8")),
    Commit("fewer pods of a service", in_dev("maxReplicas: 2", "maxReplicas: 1")),
    Commit("another download of a model", in_policies(_SERVICES, "fetch:1.3.0", "fetch:1.4.0")),
    Commit("one more training", adding(document("Workload", "sweep", _TRAINING))),
    Commit("another image of a training", in_policies("workloads/jobs.yaml", "ation:1.1.0", "ation:1.2.0")),
    Commit("no training", adding(deleting("Workload", "evaluation"))),
    Commit("no service, and no model", in_dev(_CHAT, "metadata: {name: chat, $patch: delete}\n")),
    Commit("a value of the operator", in_cluster("install: helm", "install: helm\n    rebootOnMigChange: true")),
    Commit("another driver", in_cluster("install: helm", 'install: helm\n    driver: {version: "580.95.05"}')),
    Commit("more shares of a GPU", in_policies("pools/shared.yaml", "replicas: 3", "replicas: 4")),
    Commit("another taint of a pool", in_policies("pools/partitioned.yaml", "value: a100-mixed", "value: mixed")),
    Commit(
        "another layout of a pool",
        in_policies("layouts.yaml", "3g.40gb: 1\n    2g.20gb: 2", "3g.40gb: 1\n    2g.20gb: 1\n    1g.10gb: 2"),
        in_dev("unit: 2g.20gb, guaranteed: 4", "unit: 2g.20gb, guaranteed: 2"),
    ),
    Commit("a window of a pool", in_dev("approval: automatic", f"approval: automatic\n    windows: [{_WINDOW}]")),
    Commit("one more pool", adding(document("Pool", "spare", _POOL))),
    Commit(
        "one more tenant",
        in_dev("{pool: a100-shared, guaranteed: 2}", "{pool: a100-shared, guaranteed: 1}"),
        adding(document("Tenant", "guests", _TENANT)),
    ),
    Commit(
        "one more namespace of a tenant",
        in_policies("tenants/science.yaml", "namespaces: [research]", "namespaces: [research, lab]"),
        in_policies("workloads/jobs.yaml", "tenant: research", "tenant: research\n  namespace: research"),
        in_dev(
            "{pool: a100-shared, guaranteed: 2}", "{pool: a100-shared, guaranteed: 2, split: {research: 1, lab: 1}}"
        ),
    ),
    Commit("one tenant less", in_dev(_DEVELOPMENT, "metadata: {name: development, $patch: delete}\n")),
    Commit(
        "an object by hand", writing(f"{_HAND}/kustomization.yaml", _COMPONENT), writing(f"{_HAND}/thing.yaml", _THING)
    ),
    Commit("alerts", in_cluster("  argocd:", "  monitoring: {}\n  argocd:")),
    Commit("Kueue", in_cluster("  argocd:", "  scheduler: {kind: kueue}\n  argocd:")),
)
