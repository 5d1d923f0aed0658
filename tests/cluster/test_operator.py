"""The GPU Operator itself: what it makes of nodes and of our settings, and which of its pods an edit restarts."""

from __future__ import annotations

import itertools
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from gpuplan.compiler.catalog.operands import Setup, operands, rolls, running
from gpuplan.compiler.delivery.argocd import checks
from tests.cluster import nodes, proof
from tests.cluster.api import Api
from tests.cluster.charts import the
from tests.cluster.control_plane import ControlPlane
from tests.cluster.definitions import define
from tests.cluster.example import REPOSITORY, show
from tests.cluster.gpu_operator import (
    NAMESPACE,
    OPENSHIFT,
    POLICIES,
    RELEASE,
    apply_policy,
    chart_objects,
    describe_nodes,
    images_of_the_bundle,
    install,
    operating,
)
from tests.cluster.kubelet import Kubelet
from tests.cluster.lab import build
from tests.cluster.processes import NotReadyError, Process, until
from tests.cluster.programs import need_go
from tests.compiler.delivery.argocd.health import judged

Record = Callable[[str, object, object], None]
Templates = Mapping[str, Any]
"""Pod templates by the name of their DaemonSet."""

DRIVER: Final = "nvidia-driver-daemonset"
OLM: Final = "olm"
"""Who tells the operator what a ClusterPolicy says, and no chart beside it."""
DAEMON_SETS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets"


@dataclass(frozen=True, slots=True)
class Operated:
    """A cluster whose ClusterPolicy of that name the operator obeys; ``traits`` are as in `Setup`."""

    plane: ControlPlane
    process: Process
    name: str = "cluster-policy"
    traits: frozenset[str] = frozenset()
    _passes: Iterator[str] = field(default_factory=lambda: map(str, itertools.count(2)))

    @property
    def api(self) -> Api:
        return self.plane.api

    @property
    def policy(self) -> dict[str, Any]:
        return self.api.get(f"{POLICIES}/{self.name}")

    @property
    def setup(self) -> Setup:
        return Setup(self.policy["spec"], OLM, self.traits)

    def edit(self, patch: Mapping[str, Any]) -> None:
        """Change the ClusterPolicy's spec by a JSON Merge Patch, and wait until the operator has seen to all of it.

        A number goes along that stands in each DaemonSet and in no pod template; those of the driver are made first.
        The operator goes through all operands, then begins anew: with a second number the first pass has ended, so that
        what it makes last is there, too.
        """
        for number in itertools.islice(self._passes, 2):
            along = {"updateStrategy": "RollingUpdate", "rollingUpdate": {"maxUnavailable": number}}
            daemon_sets = {**patch.get("daemonsets", {}), **along}
            self.api.patch(f"{POLICIES}/{self.name}", {"spec": {**patch, "daemonsets": daemon_sets}})
            is_seen = partial(self._is_at, number)
            until(is_seen, "the operator has seen the edit", seconds=180, processes=[self.process])

    def _is_at(self, number: str) -> bool:
        return self._numbers() == {number}

    def _numbers(self) -> set[str]:
        strategies = (body["spec"]["updateStrategy"] for body in self.api.list(DAEMON_SETS))
        return {str(found["rollingUpdate"]["maxUnavailable"]) for found in strategies if found["type"] != "OnDelete"}

    def templates(self) -> Templates:
        """A driver's DaemonSet may have the name of a kernel."""
        found = {body["metadata"]["name"]: body["spec"]["template"] for body in self.api.list(DAEMON_SETS)}
        return {DRIVER if name.startswith(DRIVER) else name: template for name, template in found.items()}


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    """The example's `dev`, without kubelets at first."""
    need_go()
    scratch = tmp_path_factory.mktemp("platform")
    objects = chart_objects(read(files_of("dev", scratch) / "values.yaml"))
    with ExitStack() as stack:
        plane = stack.enter_context(ControlPlane.start("1.34"))
        nodes.make_nodes(plane.api, show("dev", scratch)["pools"])
        plane.api.patch(f"/api/v1/nodes/{DIVIDED}", {"metadata": {"labels": {MIG: LAYOUT}}})
        plane.api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": PLAIN}})
        describe_nodes(plane.api)
        install(plane, objects)
        for name in FILES:
            file = {"metadata": {"name": name, "namespace": NAMESPACE}, "data": {"a": "b"}}
            plane.api.create({"apiVersion": "v1", "kind": "ConfigMap", **file})
        apply_policy(plane, the("ClusterPolicy", "cluster-policy", objects))
        process = stack.enter_context(operating(plane))
        found = Operated(plane, process)
        until(lambda: found.policy.get("status"), "it has seen the ClusterPolicy", processes=[process])
        yield found


def files_of(cluster: str, scratch: Path) -> Path:
    """What is built for the operator of an example cluster, which is of this release."""
    shutil.copytree(REPOSITORY / "policies", scratch / "policies")
    shutil.copytree(REPOSITORY / "overlays" / cluster, scratch / "overlays" / cluster)
    file = scratch / "overlays" / cluster / "cluster.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("version: v26.7.0", f"version: {RELEASE}"), encoding="utf-8")
    build(scratch)
    return scratch / "out" / cluster / "gpu-operator"


def read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found


# --- What it makes -----------------------------------------------------------------------------------------------


def test_nodes_with_gpus_are_told_what_runs_on_them(operated: Operated, record: Record) -> None:
    """Partitions are said of a node where nobody has said them, and the MIG manager is for boards that have them."""
    labels = nvidia_labels(operated.api, "gpu-a100-mixed-1")
    runs = {key.rpartition(".")[2] for key, value in labels.items() if ".deploy." in key and value == "true"}
    known = {"driver", "container-toolkit", "device-plugin", "operator-validator", "gpu-feature-discovery"}
    known |= {"dcgm", "dcgm-exporter", "node-status-exporter", "mig-manager"}
    record("GPU Operator: what it lets run on a node", sorted(known), sorted(runs))
    record("GPU Operator: the partitions of a node that nobody divides", "all-disabled", labels[MIG])
    divided = nvidia_labels(operated.api, DIVIDED)
    record("GPU Operator: the partitions of a node that somebody divides", LAYOUT, divided[MIG])
    record("GPU Operator: labels of a node without GPUs", {}, nvidia_labels(operated.api, PLAIN))


def nvidia_labels(api: Api, node: str) -> dict[str, str]:
    labels: dict[str, str] = api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"]
    return {key: value for key, value in labels.items() if key.startswith("nvidia.com/")}


MIG: Final = "nvidia.com/mig.config"
DIVIDED: Final = "gpu-a100-shared-1"
LAYOUT: Final = "all-1g.10gb"
PLAIN: Final = "plain-1"


def test_it_is_ready_when_the_pods_of_its_daemon_sets_are(operated: Operated, record: Record) -> None:
    """It says `ready` at first, too, while Kubernetes has counted the pods of no DaemonSet (`isDaemonSetReady`)."""
    until(lambda: verdict(operated.policy) == "Progressing", "it waits for pods", seconds=30)
    with Kubelet(operated.api):
        until(lambda: operated.policy["status"]["state"] == "ready", "it is ready", seconds=180)
        until(lambda: verdict(operated.policy) == "Healthy", "it says so")


def verdict(policy: Mapping[str, Any]) -> str:
    """What our health check for Argo CD makes of it."""
    return judged(checks()["nvidia.com_ClusterPolicy"], policy)[0]


def test_of_a_second_cluster_policy_it_says_nothing(operated: Operated, record: Record) -> None:
    """Which is how `gpuplan import` knows the one that it obeys."""
    second = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "a-second"}}
    operated.api.create({**second, "spec": operated.policy["spec"]})
    operated.edit({})
    operated.edit({})
    record("GPU Operator: its status of a second ClusterPolicy", None, operated.api.get(SECOND).get("status"))
    operated.api.delete(SECOND)


SECOND: Final = f"{POLICIES}/a-second"


@pytest.mark.parametrize("cluster", ["dev", "prod"])
def test_an_example_has_the_daemon_sets_that_are_said_to_run(
    cluster: str, operated: Operated, record: Record, tmp_path: Path
) -> None:
    if cluster != "dev":
        objects = chart_objects(read(files_of(cluster, tmp_path) / "values.yaml"))
        apply_policy(operated.plane, the("ClusterPolicy", "cluster-policy", objects))
    operated.edit({})

    said = {roll.operand.daemon_set for roll in running(RELEASE, operated.setup)}

    record(f"GPU Operator: DaemonSets of {cluster}", sorted(said), sorted(operated.templates()))


# --- What an edit restarts ---------------------------------------------------------------------------------------


def changed(before: Templates, after: Templates) -> set[str]:
    """The DaemonSets whose pod template differs, that come or that go."""
    return {name for name in {*before, *after} if before.get(name) != after.get(name)}


def at(route: str, value: object) -> dict[str, Any]:
    *above, last = route.split(".")
    found = {last: value}
    for key in reversed(above):
        found = {key: found}
    return found


def hold(operated: Operated, record: Record, title: str, patch: Mapping[str, Any]) -> set[str]:
    """Edit the ClusterPolicy, compare what rolls with what `gpuplan diff` would say, and return that."""
    setup, before = operated.setup, operated.templates()
    operated.edit(patch)
    said = {roll.operand.daemon_set for found in rolls(RELEASE, setup, operated.setup).values() for roll in found}
    with suppress(NotReadyError):  # the last one may come after the others have changed
        until(lambda: said <= changed(before, operated.templates()), "all of them roll", seconds=5)
    record(f"GPU Operator: what rolls with {title}", sorted(said), sorted(changed(before, operated.templates())))
    return said


EDITS: Final[Mapping[str, Mapping[str, Any]]] = {
    "another driver": at("driver.version", "580.95.05"),
    "another file of the device plugin": at("devicePlugin.config.name", "another"),
    "an environment of the toolkit": at("toolkit.env", [{"name": "A", "value": "b"}]),
    "another file of the MIG manager": at("migManager.config.name", "another"),
    "an environment of the exporter": at("dcgmExporter.env", [{"name": "A", "value": "b"}]),
}
"""One for each fate of pods, and one that this release does not read."""


@pytest.mark.parametrize("title", EDITS)
def test_an_edit_rolls_what_is_said(title: str, operated: Operated, record: Record) -> None:
    hold(operated, record, title, EDITS[title])


# --- What becomes of other pods ----------------------------------------------------------------------------------


def test_another_driver_evicts_pods_with_gpus_from_a_cordoned_node(operated: Operated) -> None:
    assert_evicts(operated)


def assert_evicts(operated: Operated) -> None:
    api = operated.api
    with Kubelet(api), working(api, {}) as pod:
        until(lambda: upgrades(api) == {"upgrade-done"}, "drivers are up to date", seconds=180)
        operated.edit(at("driver.version", "580.105.08"))
        until(lambda: upgrades(api) and is_cordoned(api), "its node is cordoned", seconds=180)
        until(lambda: upgrades(api) and not api.find(pod), "the pod is evicted", seconds=180)
        until(lambda: upgrades(api) == {"upgrade-done"} and not is_cordoned(api), "drivers are up to date", seconds=180)


@proof.only_in_proof
def test_a_driver_that_nobody_upgrades_keeps_the_operator_from_being_ready(operated: Operated) -> None:
    with Kubelet(operated.api):
        until(lambda: upgrades(operated.api) == {"upgrade-done"}, "drivers are up to date", seconds=180)
        until(lambda: operated.policy["status"]["state"] == "ready", "it is ready", seconds=180)
        operated.edit(at("driver.upgradePolicy.autoUpgrade", value=False))
        operated.edit(at("driver.version", "580.95.03"))
        until(lambda: operated.policy["status"]["state"] == "notReady", "it is not ready", seconds=180)
        assert verdict(operated.policy) == "Progressing"
        operated.api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app%3D{DRIVER}")
        until(lambda: operated.policy["status"]["state"] == "ready", "it is ready again", seconds=180)
        operated.edit(at("driver.upgradePolicy.autoUpgrade", value=True))


def test_a_pod_that_keeps_files_holds_a_driver_up(operated: Operated, record: Record) -> None:
    """So does one without a controller, unless `driver.upgradePolicy.podDeletion` says otherwise."""
    api = operated.api
    with Kubelet(api), working(api, {"volumes": [{"name": "files", "emptyDir": {}}]}) as pod:
        until(lambda: upgrades(api) == {"upgrade-done"}, "drivers are up to date", seconds=180)
        operated.edit(at("driver.version", "580.126.09"))
        until(lambda: "upgrade-failed" in upgrades(api), "it fails", seconds=180)
        record("GPU Operator: a pod with an emptyDir where another driver comes", True, api.find(pod) is not None)
        record("GPU Operator: its node, cordoned", True, is_cordoned(api))


WORKER: Final = "gpu-a100-mixed-1"


@contextmanager
def working(api: Api, more: Mapping[str, Any]) -> Iterator[str]:
    """A pod with a GPU, of a controller, by its path."""
    pods = "/api/v1/namespaces/default/pods"
    container = {"name": "work", "image": "work", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    template = {
        "metadata": {"labels": {"app": "work"}},
        "spec": {"nodeName": WORKER, "containers": [container], **more},
    }
    spec = {"selector": {"matchLabels": {"app": "work"}}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "work", "namespace": "default"}}
    api.create({**body, "spec": spec})
    try:
        [pod] = until(lambda: [pod for pod in api.list(pods) if pod["status"]["phase"] == "Running"], "it runs")
        yield f"{pods}/{pod['metadata']['name']}"
    finally:
        api.delete(api.path_of(body))
        until(lambda: not api.list(pods), "it goes")


def is_cordoned(api: Api) -> bool:
    return bool(api.get(f"/api/v1/nodes/{WORKER}")["spec"].get("unschedulable"))


def upgrades(api: Api) -> set[str]:
    """How far drivers of nodes are; the operator is made to look, which it does by itself every two minutes."""
    found = {node["metadata"]["name"]: node["metadata"]["labels"] for node in api.list("/api/v1/nodes")}
    api.patch(f"/api/v1/nodes/{PLAIN}", {"metadata": {"labels": {"tests": secrets.token_hex(4)}}})
    return {labels.get("nvidia.com/gpu-driver-upgrade-state", "") for name, labels in found.items() if name != PLAIN}


# --- Each setting ------------------------------------------------------------------------------------------------

SETTINGS: Final = tuple(
    dict.fromkeys(key for item in operands(RELEASE, OLM) for key in (item.enabled, *(each.key for each in item.reads)))
)
"""All that makes DaemonSets come and go, or stands in pod templates, by what is said of this release."""


PANICS: Final = ("driver.livenessProbe", "driver.readinessProbe")
"""By either the operator panics: its driver has no such probe to change (`setContainerProbe`)."""


@proof.only_in_proof
@pytest.mark.parametrize("key", [key for key in SETTINGS if key[:1].islower() and key not in PANICS])
def test_each_setting_rolls_what_is_said(key: str, operated: Operated, record: Record) -> None:
    """What counts only where something else is on is tried without it and with it."""
    if operated.setup.value("gds.image") is None:
        operated.edit({"gds": SIDECAR})
    holders = {item: [each for each in item.reads if each.key == key] for item in operands(RELEASE, OLM)}
    reads = [each for found in holders.values() for each in found]
    there = dict.fromkeys((item.enabled for item, found in holders.items() if found and item.enabled), True)
    switches = sorted({each.when for each in reads if "." in each.when})
    for is_on in (False, True) if switches else (True,):
        for name, state in {**there, **dict.fromkeys(switches, is_on)}.items():
            if bool(operated.setup.value(name)) is not state and name != key:
                operated.edit(at(name, value=state))
        now = operated.setup.value(key)
        value = next(value for value in values_for(key) if value != now)
        said = hold(operated, record, key if is_on else f"{key}, {', '.join(switches)} off", at(key, value))
        assert said or not is_on or all(each.when in CLUSTERS for each in reads)
        if isinstance(value, bool):
            operated.edit(at(key, now))


SIDECAR: Final = {"repository": "nvcr.io/nvidia/cloud-native", "image": "nvidia-fs", "version": "2.20.5"}
"""What the chart says of GPUDirect Storage where it is on, and without which the operator has no image for it."""
CLUSTERS: Final = ("openshift", "cri-o")
"""What counts on no cluster such as this one."""


def values_for(key: str) -> tuple[object, ...]:
    """Two values of a setting; a Secret's name counts once, whoever names it."""
    last = key.rpartition(".")[2]
    return ([key], [f"{key}-2"]) if last == "imagePullSecrets" else VALUES.get(key, VALUES.get(last, NAMES))


NAMES: Final = ("another", "third")
FILES: Final = (*NAMES, "modules", "repositories", "certificates")
"""ConfigMaps; a DaemonSet has a volume of the name of each that it mounts."""
SWITCH: Final = (True, False)
PATHS: Final = ("/a", "/b")
PROBES: Final = ({"periodSeconds": 22}, {"periodSeconds": 33})
PAIRS: Final = ({"a": "b"}, {"a": "c"})
VALUES: Final[Mapping[str, tuple[object, object]]] = {
    "annotations": PAIRS,
    "args": (["a"], ["b"]),
    "cdi.default": SWITCH,
    "driver.certConfig.name": ("certificates", "another"),
    "driver.kernelModuleConfig.name": ("modules", "another"),
    "driver.repoConfig.configMapName": ("repositories", "another"),
    "driverInstallDir": PATHS,
    "enabled": SWITCH,
    "env": ([{"name": "A", "value": "c"}], [{"name": "A", "value": "d"}]),
    "imagePullPolicy": ("Always", "Never"),
    "installDir": PATHS,
    "kernelModuleType": ("open", "proprietary"),
    "labels": PAIRS,
    "licensingConfig": ({"configMapName": "another"}, {"configMapName": "third"}),
    "livenessProbe": PROBES,
    "priorityClassName": ("system-cluster-critical", "system-node-critical"),
    "readinessProbe": PROBES,
    "resources": ({"limits": {"cpu": "2"}}, {"limits": {"cpu": "3"}}),
    "root": PATHS,
    "rootFS": PATHS,
    "startupProbe": PROBES,
    "strategy": ("single", "mixed"),
    "tolerations": ([{"key": "a", "operator": "Exists"}], [{"key": "b", "operator": "Exists"}]),
    "useHostMofed": SWITCH,
    "usePrecompiled": SWITCH,
}
"""Two values by a setting, or by the last part of its name; all others are names."""


# --- OpenShift ---------------------------------------------------------------------------------------------------


def test_on_openshift_it_follows_the_policy_that_is_written(operated: Operated, record: Record, tmp_path: Path) -> None:
    """The example's `openshift`: its ClusterPolicy is gpuplan's. Of OpenShift there is what the operator asks for."""
    api = operated.api
    operated.process.stop()
    for path in (f"{POLICIES}/{operated.name}", DAEMON_SETS):
        api.delete(path)
    define(api, OF_OPENSHIFT)
    for body in OF_OPENSHIFT[:2]:
        api.apply(body, manager="tests")
    [file] = files_of("openshift", tmp_path).glob("clusterpolicy-*.yaml")
    policy = read(file)
    api.apply(policy, manager="argocd-controller")
    with operating(operated.plane, system=OPENSHIFT, images=images_of_the_bundle()) as process:
        found = Operated(operated.plane, process, policy["metadata"]["name"], frozenset(("cri-o", "openshift")))
        until(lambda: found.policy.get("status"), "it has seen the ClusterPolicy", processes=[process])
        said = {roll.operand.daemon_set for roll in running(RELEASE, found.setup)}
        record("GPU Operator: DaemonSets of openshift", sorted(said), sorted(found.templates()))
        hold(found, record, "an environment of the exporter, on OpenShift", EDITS["an environment of the exporter"])
        assert_evicts(found)


IN_DEFAULT: Final = {"name": "a", "namespace": "default"}
OF_OPENSHIFT: Final = (
    {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": {"name": "version"},
        "status": {"history": [{"state": "Completed", "version": "4.20.1"}]},
    },
    {"apiVersion": "config.openshift.io/v1", "kind": "Proxy", "metadata": {"name": "cluster"}, "spec": {}},
    {"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": IN_DEFAULT},
    {"apiVersion": "security.openshift.io/v1", "kind": "SecurityContextConstraints", "metadata": {"name": "a"}},
    {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": IN_DEFAULT},
    {"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": IN_DEFAULT},
)
"""What the operator asks OpenShift for, objects first, and then kinds alone."""
