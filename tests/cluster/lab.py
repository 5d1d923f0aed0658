"""A platform in Git, a cluster, and an Argo CD in it that syncs the one to the other."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

import yaml

from tests.cli.runs import run
from tests.cluster import nodes
from tests.cluster.api import Api, Refused
from tests.cluster.argo_cd import ArgoCd, running, teach
from tests.cluster.control_plane import ControlPlane
from tests.cluster.definitions import define
from tests.cluster.delivery import deliveries
from tests.cluster.example import REPOSITORY, make_foreign_namespaces, provide_volumes, show
from tests.cluster.kubelet import Kubelet
from tests.cluster.parsers import ConfigurationError
from tests.cluster.programs import source
from tests.cluster.served import Repository, publish_chart, serving

OPERATOR: Final = "github.com/NVIDIA/gpu-operator"
RELEASE: Final = "v25.3.4"
"""The release of the GPU Operator that the module is, whose chart lies in it."""
CHART: Final = "deployments/gpu-operator"
SCALED: Final = "Synced"
"""What is scaled by a HorizontalPodAutoscaler, which is not well without the metrics that nothing here measures."""


class World:
    """Plays the GPU Operator and Node Feature Discovery, as far as Argo CD sees them.

    The one says that its ClusterPolicy is ready, the other gives nodes labels and taints by the rules that are there.
    """

    def __init__(self, api: Api, cluster: Path, plan: Mapping[str, Any]) -> None:
        self.plan = plan
        self._api, self._cluster = api, cluster
        self._labelled: object = None
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="world", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopped.set()
        self._thread.join()

    def _run(self) -> None:
        said: dict[str, int] = {}
        while not self._is_stopped.wait(1):
            try:
                for policy in self._api.list("/apis/nvidia.com/v1/clusterpolicies"):
                    uid, generation = policy["metadata"]["uid"], policy["metadata"]["generation"]
                    if said.get(uid) != generation:
                        self._say_ready(policy)
                        said[uid] = generation
                self._label()
            except (Refused, OSError, ConfigurationError):  # a kind, a file or an entry that is not there yet
                continue

    def _say_ready(self, policy: Mapping[str, Any]) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions = [
            {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": now}
            for kind, status, reason in (("Ready", "True", "Reconciled"), ("Error", "False", "Ready"))
        ]
        status = {"namespace": "gpu-operator", "state": "ready", "conditions": conditions}
        path = f"/apis/nvidia.com/v1/clusterpolicies/{policy['metadata']['name']}/status"
        self._api.patch(path, {"status": status})

    def _label(self) -> None:
        plan = self.plan
        rules = self._rules() if plan["node_labels"] == "nfd" else ()
        if self._labelled != (seen := (id(plan), [rule["spec"] for rule in rules])):
            nodes.publish(self._api, plan, self._cluster, rules)
            self._labelled = seen

    def _rules(self) -> tuple[dict[str, Any], ...]:
        return self._api.list("/apis/nfd.k8s-sigs.io/v1alpha1/nodefeaturerules")


@dataclass(frozen=True, slots=True)
class Lab:
    """A cluster with an Argo CD in it, and the repository that it reads."""

    cluster: str
    argocd: ArgoCd
    repository: Repository
    plane: ControlPlane
    world: World

    @property
    def root(self) -> Path:
        return self.repository.tree

    @property
    def api(self) -> Api:
        return self.plane.api

    def edit(self, path: str, before: str, after: str) -> None:
        replace_in(self.root / path, before, after)

    def push(self, subject: str) -> str:
        """Build, commit and push; nodes of new pools join, and Argo CD is told to look."""
        build(self.root)
        self.world.plan = show(self.cluster, self.root)
        bring(self.plane, self.root, self.cluster, self.world.plan)
        revision = self.repository.commit(subject)
        self.argocd.refresh()
        return revision

    def adopt(self, path: str = "") -> None:
        """Apply the one Application that a person applies: the parent, or what lies at a path."""
        text = (self.root / path).read_text(encoding="utf-8") if path else _PARENT.replace("CLUSTER", self.cluster)
        text = text.replace("ADDRESS", self.repository.url).replace("NAMESPACE", self.argocd.namespace)
        for body in yaml.safe_load_all(text):
            self.api.apply(body, manager="tests")

    @property
    def by_hand(self) -> tuple[str, ...]:
        """The Applications that no automation syncs."""
        found = self.argocd.applications()
        return tuple(name for name, body in found.items() if "automated" not in body["spec"].get("syncPolicy", {}))


_PARENT: Final = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: gpuplan-CLUSTER, namespace: NAMESPACE}
spec:
  project: default
  source: {repoURL: ADDRESS, targetRevision: main, path: out/argocd/CLUSTER}
  destination: {server: "https://kubernetes.default.svc", namespace: NAMESPACE}
  syncPolicy:
    automated: {selfHeal: true}
    retry: {limit: 5, refresh: true}
"""


def as_it_is(tree: Path) -> None:
    """Edit nothing."""


@contextmanager
def syncing(
    scratch: Path, cluster: str, edit: Callable[[Path], None] = as_it_is, *, platform: Path = REPOSITORY
) -> Iterator[Lab]:
    """A cluster of a platform, edited and committed, beside an Argo CD that was told of nothing yet.

    Its GPU Operator is of `RELEASE`, and everything else that gpuplan does not install is there.
    """
    served, tree = scratch / "served", scratch / "platform"
    for folder in (served, tree):
        folder.mkdir()
    publish_chart(served / "charts", source("gpu-operator", OPERATOR) / CHART, RELEASE)
    with ExitStack() as stack:
        url = stack.enter_context(serving(served))
        repository = Repository.make(tree, served, url)
        shutil.copytree(platform / "policies", tree / "policies")
        shutil.copytree(platform / "overlays" / cluster, tree / "overlays" / cluster)
        address(tree / "overlays" / cluster / "cluster.yaml", repository, f"{url}/charts")
        edit(tree)
        build(tree)
        repository.commit("A platform")
        plan = show(cluster, tree)
        plane = stack.enter_context(ControlPlane.start(plan["kubernetes"]))
        own = tree / "out/argocd" / cluster
        project = yaml.safe_load((own / f"appproject-gpuplan-{cluster}.yaml").read_text(encoding="utf-8"))
        namespace = project["metadata"]["namespace"]
        argocd = stack.enter_context(running(plane, namespace))
        bring(plane, tree, cluster, plan)
        stack.enter_context(Kubelet(plane.api, ends_jobs=True))
        world = stack.enter_context(World(plane.api, tree / "out" / cluster, plan))
        teach(plane, namespace, own)
        yield Lab(cluster, argocd, repository, plane, world)


def address(file: Path, repository: Repository, charts: str) -> None:
    """Have a cluster read this repository, and its operator's chart from here."""
    text = file.read_text(encoding="utf-8")
    body = yaml.safe_load(text)["spec"]
    text = text.replace(body["argocd"]["repoURL"], repository.url)
    if body["gpuOperator"]["install"] == "helm":
        text = text.replace(
            f"version: {body['gpuOperator']['version']}", f"version: {RELEASE}\n    chartRepoURL: {charts}"
        )
    if named := body["argocd"].get("destination", {}).get("name"):
        text = text.replace(f"destination: {{name: {named}}}", "destination: {name: in-cluster}")
    file.write_text(text, encoding="utf-8")


def build(tree: Path) -> None:
    built = run("build", cwd=tree)
    assert built.code == 0, built.out + built.err


def bring(plane: ControlPlane, tree: Path, cluster: str, plan: Mapping[str, Any]) -> None:
    """What a platform expects of others: nodes, volumes, and the kinds and namespaces of what it does not install."""
    api = plane.api
    there = {node["metadata"]["name"] for node in api.list("/api/v1/nodes")}
    nodes.make_nodes(api, [pool for pool in plan["pools"] if not there.issuperset(nodes.names(pool))])
    folders = tuple(deliveries(plane, tree, cluster))
    bodies = [body for folder in folders for body in folder.objects]
    brought = ("argoproj.io", *(("nvidia.com", "nfd.k8s-sigs.io") if plan["gpu_operator"]["install"] == "helm" else ()))
    define(api, [body for body in bodies if body["apiVersion"].partition("/")[0] not in brought])
    provide_volumes(api, folders)
    make_foreign_namespaces(api, folders)


def replace_in(file: Path, before: str, after: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert before in text, (before, text)
    file.write_text(text.replace(before, after, 1), encoding="utf-8")
