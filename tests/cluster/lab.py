"""A cluster of the example that a real Argo CD syncs, from an empty control plane on, and the world around it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

import yaml

from tests.cli.runs import run
from tests.cluster import nodes
from tests.cluster.api import Api, Refused
from tests.cluster.argo_cd import ArgoCd, Repository, running, teach
from tests.cluster.control_plane import ControlPlane
from tests.cluster.definitions import define
from tests.cluster.delivery import deliveries
from tests.cluster.example import REPOSITORY, Beside, make_foreign_namespaces, provide_volume, show
from tests.cluster.kubelet import Kubelet
from tests.cluster.parsers import rule_labels
from tests.cluster.processes import until
from tests.cluster.programs import need_go, source
from tests.cluster.served import publish_chart, serving

OPERATOR: Final = "github.com/NVIDIA/gpu-operator"
RELEASE: Final = "v25.3.4"
"""The release of the GPU Operator that the module is, whose chart lies in it."""
CHART: Final = "deployments/gpu-operator"

Edit: TypeAlias = tuple[str, str, str]
"""A file of the platform, what stands in it, and what is to stand there."""

SCALED: Final = {"gpu-workloads-dev-model-services": "Synced"}
"""What is scaled by a HorizontalPodAutoscaler, which is not well without the metrics that nothing here measures."""

_OF_THE_CHART: Final = ("nvidia.com/", "nfd.k8s-sigs.io/")
"""The groups whose definitions come with the GPU Operator's chart."""
_OF_ARGO_CD: Final = "argoproj.io/"


@dataclass(frozen=True, slots=True)
class Lab:
    """A cluster with an Argo CD in it, and the repository that it reads."""

    name: str
    argocd: ArgoCd
    repository: Repository
    plane: ControlPlane

    @property
    def root(self) -> Path:
        return self.repository.tree

    @property
    def api(self) -> Api:
        return self.plane.api

    def edit(self, *edits: Edit) -> None:
        for path, before, after in edits:
            text = (self.root / path).read_text(encoding="utf-8") if before else ""
            assert before in text, f"{path} has no {before}"
            (self.root / path).write_text(text.replace(before, after, 1) if before else after, encoding="utf-8")

    def push(self, subject: str) -> str:
        """Build, commit and push; Argo CD is told to look."""
        built = run("build", cwd=self.root)
        assert built.code == 0, built.err
        revision = self.repository.commit(subject)
        self.argocd.refresh()
        return revision

    def start(self) -> None:
        """Apply the only object that a person applies: an Application of what is in out/argocd for the cluster."""
        parent = _PARENT.format(name=self.name, url=self.repository.url)
        self.api.apply(yaml.safe_load(parent), manager="tests")

    def settle_wholly(self, also: Mapping[str, str] = {}) -> None:
        """Wait for the first sync, start what a person starts as soon as all else is there, and wait for that too."""
        manual = until(self._manual, "there are Applications for pools", seconds=120)
        waiting = dict.fromkeys(manual, "OutOfSync Missing")
        work = dict.fromkeys(self._names("workloads"), "")  # which needs nodes of pools
        self.argocd.settle({**also, **work, **waiting})
        for name in waiting:
            self.argocd.sync(name)
        self.argocd.settle(also)

    def _names(self, stage: str) -> Iterator[str]:
        folder = self.root / "out" / self.name / stage
        yield from (f"gpu-{stage}-{self.name}-{path.name}" for path in folder.iterdir() if path.is_dir())

    def _manual(self) -> tuple[str, ...]:
        """The Applications that a person starts, as soon as those of all pools are there."""
        found = self.argocd.applications()
        if not all(name in found for name in self._names("partitions")):
            return ()
        return tuple(name for name, body in found.items() if "automated" not in body["spec"]["syncPolicy"])


_PARENT: Final = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: gpuplan-{name}, namespace: argocd}}
spec:
  project: default
  source: {{repoURL: {url}, targetRevision: main, path: out/argocd/{name}}}
  destination: {{server: "https://kubernetes.default.svc", namespace: argocd}}
  syncPolicy:
    automated: {{selfHeal: true}}
    retry: {{limit: 5, refresh: true}}
"""
"""What the tutorial has `argocd app create` make."""


@contextmanager
def syncing(
    scratch: Path, name: str, *edits: Edit, platform: Path = REPOSITORY, beside: Beside | None = None
) -> Iterator[Lab]:
    """A lab of a cluster of a platform, with these edits made before it is first built; nothing is synced yet."""
    need_go()
    served, tree = scratch / "served", scratch / "platform"
    publish_chart(served / "charts", source("gpu-operator", OPERATOR) / CHART, RELEASE)
    with ExitStack() as stack:
        url = stack.enter_context(serving(served))
        tree.mkdir()
        repository = Repository.make(tree, served, url)
        shutil.copytree(platform / "policies", tree / "policies")
        shutil.copytree(platform / "overlays" / name, tree / "overlays" / name)
        _point_at(tree / "overlays" / name / "cluster.yaml", repository.url, f"{url}/charts")
        plane = stack.enter_context(ControlPlane.start(show(name, tree)["kubernetes"]))
        stack.enter_context(beside(plane) if beside else nullcontext())
        argocd = stack.enter_context(running(plane))
        lab = Lab(name, argocd, repository, plane)
        lab.edit(*edits)
        lab.push("A platform")
        bodies = [body for folder in deliveries(plane, tree, name) for body in folder.objects]
        is_from_chart = (tree / "out" / name / "gpu-operator/values.yaml").exists()
        foreign = (_OF_ARGO_CD, *(_OF_THE_CHART if is_from_chart else ()))
        define(plane.api, [body for body in bodies if not body["apiVersion"].startswith(foreign)])
        make_foreign_namespaces(plane.api, [*bodies, *_OPERATORS_NAMESPACE])
        nodes.make_nodes(plane.api, show(name, tree)["pools"])
        stack.enter_context(Kubelet(plane.api, ends_jobs=True))
        stack.enter_context(World(plane, tree, name))
        teach(plane, tree / f"out/argocd/{name}")
        yield lab


_OPERATORS_NAMESPACE: Final = ({"kind": "Namespace", "metadata": {"name": "argocd"}},)


def _point_at(path: Path, repository: str, charts: str) -> None:
    """Have a cluster's document name what is served here, and the only release whose chart is."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    spec = document["spec"]
    spec["argocd"] |= {"repoURL": repository, "destination": {"name": "in-cluster"}}
    if spec["gpuOperator"]["install"] == "helm":
        spec["gpuOperator"] |= {"version": RELEASE, "chartRepoURL": charts}
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


class World:
    """Plays the GPU Operator, Node Feature Discovery and storage, as far as Argo CD sees them.

    The first says that its ClusterPolicy is ready, the second gives nodes labels and taints by the rules that are
    there, the third makes a volume for each claim.
    """

    def __init__(self, plane: ControlPlane, platform: Path, cluster: str) -> None:
        self._api, self._platform, self._cluster = plane.api, platform, cluster
        self._said: dict[str, int] = {}
        self._rules: object = ()
        self._labels: dict[str, Mapping[str, str]] = {}
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="world", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_stopped.wait(1):
            for step in (self._operate, self._label, self._provide):
                try:
                    step()
                except (Refused, OSError):  # there is no such kind yet
                    continue

    def _operate(self) -> None:
        for policy in self._api.list("/apis/nvidia.com/v1/clusterpolicies"):
            uid, generation = policy["metadata"]["uid"], policy["metadata"]["generation"]
            if self._said.get(uid) != generation:
                self._say_ready(policy)
                self._said[uid] = generation

    def _label(self) -> None:
        """By the rules that are in the cluster; where others label nodes, by the files for them."""
        plan, out = show(self._cluster, self._platform), self._platform / "out" / self._cluster
        if plan["node_labels"] != "nfd":
            if not self._rules:
                self._rules = plan["node_labels"]
                nodes.publish(self._api, plan, out)
            return
        rules = self._api.list("/apis/nfd.k8s-sigs.io/v1alpha1/nodefeaturerules")
        seen = [(body["metadata"]["uid"], body["metadata"]["generation"]) for body in rules]
        if self._rules == seen:
            return
        for pool in plan["pools"]:
            for name in nodes.names(pool):
                labels, taints = rule_labels(rules, name)
                if not labels and name not in self._labels:  # its rule is not there yet
                    continue
                gone = dict.fromkeys(self._labels.get(name, {}))
                labelling = {"metadata": {"labels": {**gone, **labels}}, "spec": {"taints": taints}}
                nodes.bring(self._api, plan, out, pool, name, labelling)
                self._labels[name] = labels
        self._rules = seen

    def _provide(self) -> None:
        for claim in self._api.list("/api/v1/persistentvolumeclaims"):
            if claim["status"].get("phase") == "Pending" and not claim["spec"].get("volumeName"):
                provide_volume(self._api, claim)

    def _say_ready(self, policy: Mapping[str, Any]) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions = [
            {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": now}
            for kind, status, reason in (("Ready", "True", "Reconciled"), ("Error", "False", "Ready"))
        ]
        status = {"namespace": "gpu-operator", "state": "ready", "conditions": conditions}
        path = f"/apis/nvidia.com/v1/clusterpolicies/{policy['metadata']['name']}/status"
        self._api.patch(path, {"status": status})
