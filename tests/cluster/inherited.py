"""A cluster that people have set up, with work that runs on it: what its programs make of each folder that is synced.

Node Feature Discovery's engine, the device plugin's config-manager, Kueue and the scheduler are the real ones. A node
publishes what NVIDIA's parsers make of the files that its pods read, whether gpuplan wrote them or somebody else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from tests.cluster import config_manager, nodes
from tests.cluster.api import Object, Refused
from tests.cluster.control_plane import ControlPlane
from tests.cluster.definitions import define
from tests.cluster.delivery import MANAGER, read_folder
from tests.cluster.dumps import collect
from tests.cluster.kubelet import Kubelet
from tests.cluster.kueue_controller import kueue_controller
from tests.cluster.parsers import Node, Question, judge
from tests.cluster.processes import NotReadyError, until

ENTRY: Final = "nvidia.com/mig.config"
HAND: Final = "kubectl-client-side-apply"
_SYSTEMS: Final = frozenset({"gpu-operator", "gpu-system", "kueue-system"})
WORK: Final = frozenset({"Deployment", "StatefulSet", "Job"})
_DEVICES: Final = {
    "NVIDIA-A100-SXM4-40GB": 0x20B010DE,
    "NVIDIA-A100-SXM4-80GB": 0x20B210DE,
    "NVIDIA-H100-80GB-HBM3": 0x233010DE,
}
"""What filters of the MIG manager's file compare with, by the label of GPU Feature Discovery."""

_STRICT: Final = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What Pod Security lets in everywhere."""

_KUEUE: Final = """\
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
integrations: {frameworks: [batch/job]}
"""


@dataclass
class Inherited:
    """The cluster, and a repository beside it."""

    plane: ControlPlane
    root: Path
    bodies: Sequence[Object]
    _managers: dict[str, tuple[tuple[str, str], config_manager.Node, ExitStack]] = field(default_factory=dict)
    """Of each node the pod of the device plugin: what it was made with, and what ends it."""

    def dump(self) -> dict[str, bytes]:
        """The files that the commands of `gpuplan import --commands` fill."""
        return dict(collect(self.plane, self.root / "cache"))

    def work(self) -> list[Object]:
        """What people run, without what runs the cluster."""
        work = (body for body in self.bodies if body["kind"] in WORK)
        return [body for body in work if body["metadata"]["namespace"] not in _SYSTEMS]

    # --- What runs ---------------------------------------------------------------------------------------------------

    def pods(self) -> dict[str, str]:
        """The uid of each pod that runs, by its name."""
        return {
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod["metadata"]["uid"]
            for pod in self.plane.api.list("/api/v1/pods")
            if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        }

    def restart(self, work: Sequence[Object], *, seconds: float = 20) -> dict[str, str]:
        """Make all pods of some work anew, and the Jobs themselves; those that do not run in the end, and why."""
        api = self.plane.api
        old = {pod["metadata"]["uid"] for body in work for pod in self._pods_of(body)}
        for body in work:
            if body["kind"] == "Job":
                api.delete(api.path_of(body))
                until(partial(self._is_gone, body), f"{called(body)} is gone")
                api.create(body)
            else:
                for pod in self._pods_of(body):
                    api.delete(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}")
        return self.waiting(work, old, seconds=seconds)

    def waiting(self, work: Sequence[Object], old: Collection[str] = (), *, seconds: float = 20) -> dict[str, str]:
        """Work that lacks pods that run, but for old ones, and why, as soon as there is none, or when time is up."""
        with suppress(NotReadyError):
            until(lambda: not any(self._lacks(body, old) for body in work), "all work runs", seconds=seconds)
        return {called(body): self._why(body) for body in work if self._lacks(body, old)}

    def refuses(self, namespace: str) -> bool:
        """Whether the rules of a tenant refuse a pod in its namespace: the API server learns of a binding later."""
        asked = {"limits": {"nvidia.com/gpu-of-nobody": 1}}
        container = {
            "name": "main",
            "image": "registry.example.com/any:1",
            "resources": asked,
            "securityContext": _STRICT,
        }
        metadata = {"name": "asks-for-what-nobody-has", "namespace": namespace}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
        try:
            self.plane.api.create(body, dry_run=True)
        except Refused as refused:
            return f"'gpuplan-grants-{namespace}'" in refused.message
        return False

    def _is_gone(self, body: Object) -> bool:
        return self.plane.api.find(self.plane.api.path_of(body)) is None

    def _pods_of(self, body: Object) -> list[dict[str, Any]]:
        namespace = body["metadata"]["namespace"]
        return [pod for pod in self.plane.api.list(f"/api/v1/namespaces/{namespace}/pods") if _is_of(pod, body)]

    def _lacks(self, body: Object, old: Collection[str]) -> int:
        pods = [pod for pod in self._pods_of(body) if pod["metadata"]["uid"] not in old]
        runs = [pod for pod in pods if pod["status"].get("phase") == "Running" and _is_there(pod)]
        lacking: int = body["spec"].get("replicas", 1) - len(runs)
        return lacking

    def _why(self, body: Object) -> str:
        """What conditions of its pods say, and what events say of it."""
        said = [
            condition.get("message", "")
            for pod in self._pods_of(body)
            for condition in pod["status"].get("conditions", ())
            if condition["status"] == "False"
        ]
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        said += [
            event["message"]
            for event in self.plane.api.list(f"/api/v1/namespaces/{namespace}/events")
            if event["involvedObject"]["name"].startswith(name) and event["type"] == "Warning"
        ]
        return " | ".join(sorted({*said} - {""}))

    # --- What is synced ----------------------------------------------------------------------------------------------

    def sync(self, plan: Mapping[str, Any], cluster: str, folder: str) -> None:
        """Apply a folder on the server's side, and wait for what nodes make of it."""
        api = self.plane.api
        bodies = read_folder(self.plane, self.root, f"out/{cluster}/{folder}").objects
        define(api, bodies)
        for body in bodies:
            api.apply(body, manager=MANAGER, force=True)
        if folder.startswith("partitions"):
            self._label(plan, self.root / "out" / cluster, folder)
        self.settle()

    def _label(self, plan: Mapping[str, Any], out: Path, folder: str) -> None:
        """What Node Feature Discovery makes of the rules that have come, or a person of the table of node groups."""
        rules = [yaml.safe_load(path.read_text()) for path in sorted(out.glob("partitions/*/nodefeaturerule-*.yaml"))]
        for pool in plan["pools"]:
            if folder in {"partitions", f"partitions/{pool['name']}"}:
                for name in self._nodes_of(pool):
                    wanted = nodes.labelling(plan["node_labels"], out, pool["name"], name, rules)
                    self.plane.api.patch(f"/api/v1/nodes/{name}", wanted)

    def _nodes_of(self, pool: Mapping[str, Any]) -> Iterator[str]:
        wanted = pool["nodes"]["selector"].items()
        for node in self.plane.api.list("/api/v1/nodes"):
            name, labels = node["metadata"]["name"], node["metadata"].get("labels", {})
            if name in pool["nodes"]["names"] or (wanted and wanted <= labels.items()):
                yield name

    # --- What nodes make of it ---------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Let the operator's pods follow their ConfigMaps and labels, and publish what comes of it."""
        api = self.plane.api
        policies = api.list("/apis/nvidia.com/v1/clusterpolicies")
        spec = policies[0]["spec"]
        for node in api.list("/api/v1/nodes"):
            labels = node["metadata"].get("labels", {})
            if count := int(labels.get("nvidia.com/gpu.count", 0)):
                device = _DEVICES.get(labels["nvidia.com/gpu.product"].removesuffix("-SHARED"), 0)
                entry = labels.get(ENTRY) or spec["migManager"]["config"]["default"]
                file = self._config_map(spec["migManager"]["config"]["name"])["config.yaml"]
                question = Question(
                    file, self._plugin_file(node, spec), spec["mig"]["strategy"], node=Node(entry, count, device)
                )
                [verdict] = judge([question])
                assert not verdict.error, (node["metadata"]["name"], verdict.error)
                self.publish(node, verdict.resources)

    def publish(self, node: Object, resources: Mapping[str, int]) -> None:
        gone = {key: "0" for key in node["status"].get("capacity", {}) if nodes.is_of_gpus(key)}
        quantities = {**nodes.ROOM, **gone, **{key: str(count) for key, count in resources.items()}}
        status = {**nodes.status(quantities), "nodeInfo": {"kubeletVersion": f"v{self.plane.minor}.0"}}
        self.plane.api.patch(f"/api/v1/nodes/{node['metadata']['name']}/status", {"status": status})

    def _plugin_file(self, node: Object, spec: Mapping[str, Any]) -> str | None:
        """What the device plugin reads on a node; a pod of it begins anew when its ConfigMap has another name."""
        name = node["metadata"]["name"]
        config = spec["devicePlugin"].get("config", {})
        if not config.get("name"):
            return None
        made_with = config["name"], config.get("default", "")
        if name not in self._managers or self._managers[name][0] != made_with:
            self._begin(name, made_with)
        manager = self._managers[name][1]
        manager.bring(self._config_map(config["name"]))
        key = node["metadata"].get("labels", {}).get(config_manager.LABEL) or made_with[1]
        try:
            until(lambda: manager.reads == (key or Path(config_manager.EMPTY).name), f"{name} reads {key}")
        except NotReadyError as error:  # it publishes by what it reads, and work that this stops is seen
            print(error)
        return manager.link.read_text()

    def _begin(self, name: str, made_with: tuple[str, str]) -> None:
        self._end(name)
        stack = ExitStack()
        folder = self.root / "plugins" / f"{name}-{made_with[0]}"
        (folder / "config").mkdir(parents=True)
        within = stack.enter_context(config_manager.pod(folder))
        manager = config_manager.Node(self.plane, name, folder, within, made_with[1])
        manager.bring(self._config_map(made_with[0]))
        manager.begin()
        manager.read()
        manager.start()
        for process in manager.processes:
            stack.callback(process.stop)
        self._managers[name] = made_with, manager, stack

    def _end(self, name: str) -> None:
        if found := self._managers.pop(name, None):
            found[2].close()

    def end(self) -> None:
        for name in [*self._managers]:
            self._end(name)

    def _config_map(self, name: str) -> dict[str, str]:
        """What a file holds, in whatever namespace the operator is."""
        found = (body for body in self.plane.api.list("/api/v1/configmaps") if body["metadata"]["name"] == name)
        data: dict[str, str] = next(found)["data"]
        return data


def called(body: Object) -> str:
    """As gpuplan names it."""
    metadata = body["metadata"]
    return f"{body['kind']} `{metadata['name']}` in namespace `{metadata['namespace']}`"


def _is_of(pod: Object, body: Object) -> bool:
    """By the names that their controllers give pods."""
    metadata, own = pod["metadata"], body["metadata"]
    return bool(metadata["namespace"] == own["namespace"] and metadata["name"].startswith(f"{own['name']}-"))


def _is_there(pod: Object) -> bool:
    return "deletionTimestamp" not in pod["metadata"]


@contextmanager
def inheriting(root: Path, bodies: Sequence[Object], minor: str = "1.34") -> Iterator[Inherited]:
    """A control plane with these objects, on which all work runs that can."""
    with ExitStack() as stack:
        plane = stack.enter_context(ControlPlane.start(minor))
        api = plane.api
        define(api, [body for body in bodies if "kueue" not in body["apiVersion"]])
        is_queued = any("kueue" in body["apiVersion"] for body in bodies)
        if is_queued:
            own = [body["data"] for body in bodies if body["metadata"]["name"] == "kueue-manager-config"]
            (root / "kueue.yaml").write_text(own[0]["controller_manager_config.yaml"] if own else _KUEUE)
        stack.enter_context(kueue_controller(plane, root / "kueue.yaml") if is_queued else nullcontext())
        found = Inherited(plane, root, bodies)
        stack.callback(found.end)
        stack.enter_context(Kubelet(api))
        for body in sorted(bodies, key=lambda body: (body["kind"] in WORK, body["kind"] != "Namespace")):
            if body["kind"] == "Node":
                _join(found, body)
            else:
                api.apply(body, manager=HAND)
        found.settle()
        yield found


def _join(found: Inherited, body: Object) -> None:
    """A node as its kubelet makes it, and ready; it publishes nothing of GPUs yet."""
    api, name = found.plane.api, body["metadata"]["name"]
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **body["metadata"].get("labels", {})}
    api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
    api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": body.get("spec", {}).get("taints")}})
    found.publish(api.get(f"/api/v1/nodes/{name}"), {})
