"""A platform in Git, a cluster, and an Argo CD in it that syncs the one to the other."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

import yaml

from gpuplan.compiler.planning.sync_names import CONTENT
from tests.cli.runs import run
from tests.cluster import nodes
from tests.cluster.api import Api, Refused
from tests.cluster.argo_cd import ArgoCd, running, teach
from tests.cluster.control_plane import ControlPlane
from tests.cluster.definitions import define
from tests.cluster.delivery import deliveries
from tests.cluster.example import REPOSITORY, make_foreign_namespaces, provide_volumes, show
from tests.cluster.gpu_operator import CHART, OPERATOR, POLICIES, RELEASE, describe_nodes, joining
from tests.cluster.kubelet import Kubelet
from tests.cluster.parsers import ConfigurationError
from tests.cluster.programs import source
from tests.cluster.served import Repository, publish_chart, serving


class World:
    """Plays the GPU Operator, unless the real one runs, Node Feature Discovery and OLM, as far as Argo CD sees them.

    The first says that its ClusterPolicy is ready, the second gives nodes labels and taints by the rules that are
    there, and the third brings the kinds of what is subscribed to. A volume whose claim went is there for another.
    """

    def __init__(self, api: Api, cluster: Path, plan: Mapping[str, Any], *, plays_operator: bool = True) -> None:
        self._plays_operator = plays_operator
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
                self._install()
                self._free_volumes()
                for policy in self._api.list(POLICIES) if self._plays_operator else ():
                    uid, generation = policy["metadata"]["uid"], policy["metadata"]["generation"]
                    if said.get(uid) != generation:
                        self._say_ready(policy)
                        said[uid] = generation
                self._label()
            except (Refused, OSError, ConfigurationError):  # a kind, a file or an entry that is not there yet
                continue

    def _install(self) -> None:
        if self.plan["gpu_operator"]["install"] != "olm":
            return
        group = "/apis/operators.coreos.com/v1alpha1"
        for subscription in self._api.list(f"{group}/subscriptions"):
            if "status" not in subscription:
                metadata = subscription["metadata"]
                path = f"{group}/namespaces/{metadata['namespace']}/subscriptions/{metadata['name']}"
                folder = self._cluster / "gpu-operator"
                files = [*folder.glob("clusterpolicy-*.yaml"), *folder.glob("nodefeaturediscovery-*.yaml")]
                define(self._api, [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files])
                status = {"state": "AtLatestKnown", "conditions": [], "lastUpdated": _now()}
                self._api.patch(path, {"status": status})  # its definition here has no part for it

    def _free_volumes(self) -> None:
        for volume in self._api.list("/api/v1/persistentvolumes"):
            if volume["status"]["phase"] == "Released":
                claim = {"uid": None, "resourceVersion": None}
                path = f"/api/v1/persistentvolumes/{volume['metadata']['name']}"
                self._api.patch(path, {"spec": {"claimRef": claim}})

    def _say_ready(self, policy: Mapping[str, Any]) -> None:
        conditions = [
            {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": _now()}
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


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


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

    def finish(self, also: Mapping[str, str] = {}, *, work: bool = True) -> None:
        """See the first sync to its end: start what a person starts, once all else is there.

        ``also`` says of Applications what they are in the end instead of synced and healthy; without ``work`` that is
        not waited for.
        """
        works = [f"gpu-workloads-{self.cluster}-{path.name}" for path in (self._out / "workloads").glob("*")]
        asked = self.by_hand()
        self.argocd.settle({**dict.fromkeys(works, ""), **dict.fromkeys(asked, "OutOfSync"), **also})
        for name in {*asked} - {*also}:
            self.argocd.sync(name)
        self.argocd.settle({**self.scaled(), **({} if work else dict.fromkeys(works, "")), **also})

    def by_hand(self) -> tuple[str, ...]:
        """The Applications that a person starts, by the objects of Git: neither they themselves nor a root do."""
        paths = sorted((self.root / "out/argocd" / self.cluster).rglob("application-*.yaml"))
        bodies = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths]
        return tuple(
            body["metadata"]["name"]
            for body in bodies
            if "automated" not in body["spec"]["syncPolicy"] and CONTENT not in body["metadata"]["annotations"]
        )

    def scaled(self) -> dict[str, str]:
        """What a HorizontalPodAutoscaler scales: it is not well without the metrics that nothing here measures."""
        paths = (self._out / "workloads").glob("*/horizontalpodautoscaler-*.yaml")
        return {f"gpu-workloads-{self.cluster}-{path.parent.name}": "Synced" for path in paths}

    @property
    def _out(self) -> Path:
        return self.root / "out" / self.cluster


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


def build(tree: Path) -> None:
    built = run("build", cwd=tree)
    assert built.code == 0, built.out + built.err


Beside = Callable[[ControlPlane, Path], AbstractContextManager[object]]
"""Starts programs beside a control plane; they may read the cluster's folder of `out/`."""


def as_it_is(tree: Path) -> None:
    """Edit nothing."""


def nothing(plane: ControlPlane, out: Path) -> AbstractContextManager[object]:
    """Start nothing."""
    return nullcontext()


@contextmanager
def syncing(
    scratch: Path,
    cluster: str,
    edit: Callable[[Path], None] = as_it_is,
    beside: Beside = nothing,
    built_by: Callable[[Path], None] = build,
    plays_operator: bool = False,
) -> Iterator[Lab]:
    """A cluster of the example, edited and committed, beside an Argo CD that was told of nothing yet.

    Its GPU Operator is of `RELEASE`, and everything else that gpuplan does not install is there. One that is played is
    ready at once, where the operator itself takes minutes to exchange drivers.
    """
    served, tree = scratch / "served", scratch / "platform"
    for folder in (served, tree):
        folder.mkdir()
    publish_chart(served / "charts", source("gpu-operator", OPERATOR) / CHART, RELEASE)
    with ExitStack() as stack:
        url = stack.enter_context(serving(served))
        repository = Repository.make(tree, served, url)
        shutil.copytree(REPOSITORY / "policies", tree / "policies")
        shutil.copytree(REPOSITORY / "overlays" / cluster, tree / "overlays" / cluster)
        edit(tree)
        address(tree / "overlays" / cluster / "cluster.yaml", repository, f"{url}/charts")
        built_by(tree)
        repository.commit("A platform")
        plan = show(cluster, tree)
        plane = stack.enter_context(ControlPlane.start(plan["kubernetes"]))
        own = tree / "out/argocd" / cluster
        [project] = own.glob("appproject-*.yaml")
        namespace = yaml.safe_load(project.read_text(encoding="utf-8"))["metadata"]["namespace"]
        argocd = stack.enter_context(running(plane, namespace))
        stack.enter_context(beside(plane, tree / "out" / cluster))
        bring(plane, tree, cluster, plan)
        stack.enter_context(Kubelet(plane.api, ends_jobs=True))
        is_real = plan["gpu_operator"]["install"] == "helm" and not plays_operator
        if is_real:
            stack.enter_context(joining(plane, plan["gpu_operator"]["namespace"]))
        world = stack.enter_context(World(plane.api, tree / "out" / cluster, plan, plays_operator=not is_real))
        teach(plane, namespace, own)
        yield Lab(cluster, argocd, repository, plane, world)


def address(file: Path, repository: Repository, charts: str) -> None:
    """Have a cluster read this repository, and its operator's chart from here."""
    text = file.read_text(encoding="utf-8")
    body = next(yaml.safe_load_all(text))["spec"]
    text = text.replace(body["argocd"]["repoURL"], repository.url)
    if body["gpuOperator"]["install"] == "helm":
        version = f"version: {body['gpuOperator']['version']}"
        apart = ", " if f"{version}}}" in text else "\n    "
        text = text.replace(version, f"version: {RELEASE}{apart}chartRepoURL: {charts}")
    if named := body["argocd"].get("destination", {}).get("name"):
        text = text.replace(f"destination: {{name: {named}}}", "destination: {name: in-cluster}")
    file.write_text(text, encoding="utf-8")


def bring(plane: ControlPlane, tree: Path, cluster: str, plan: Mapping[str, Any]) -> None:
    """What a platform expects of others: nodes, volumes, and the kinds and namespaces of what it does not install."""
    api = plane.api
    there = {node["metadata"]["name"] for node in api.list("/api/v1/nodes")}
    nodes.make_nodes(api, [pool for pool in plan["pools"] if not there.issuperset(nodes.names(pool))])
    describe_nodes(api)
    folders = tuple(deliveries(plane, tree, cluster))
    bodies = [body for folder in folders for body in folder.objects]
    by_chart, by_olm = ("nvidia.com", "nfd.k8s-sigs.io"), ("nvidia.com", "nfd.openshift.io")
    brought = (*_SYNCING, *{"helm": by_chart, "olm": by_olm}.get(plan["gpu_operator"]["install"], ()))
    define(api, [body for body in bodies if body["apiVersion"].partition("/")[0] not in brought])
    provide_volumes(api, folders)
    make_foreign_namespaces(api, folders)


_SYNCING: Final = ("argoproj.io", "kustomize.toolkit.fluxcd.io", "source.toolkit.fluxcd.io")
"""The groups whose kinds come with Argo CD or Flux."""


def replace_in(file: Path, before: str, after: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert before in text, (before, text)
    file.write_text(text.replace(before, after, 1), encoding="utf-8")
