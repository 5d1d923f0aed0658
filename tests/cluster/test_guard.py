"""The guard's Jobs may do what they must and no more, and judge a real cluster's nodes and pods."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from tests.cluster.api import Api, Refused
from tests.cluster.conftest import NEWEST
from tests.cluster.control_plane import ControlPlane
from tests.cluster.delivery import MANAGER, read_folder
from tests.cluster.example import REPOSITORY
from tests.cluster.processes import until
from tests.cluster.programs import need_go

Record = Callable[[str, object, object], None]

POOL = "a100-production"
NODE = f"gpu-{POOL}-1"
OTHER = "gpu-a100-mixed-1"
NAMESPACE = "gpu-operator"
GUARD = f"gpuplan-guard-{POOL}"
CONFIG, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"


@dataclass(frozen=True, slots=True)
class Guarded:
    """A control plane with what a pool's guard needs, as Argo CD applies it before the Jobs."""

    api: Api
    account: Path
    """What a pod of the guard's ServiceAccount finds in its folder of that name."""
    script: ModuleType
    settings: Path
    wanted: str
    """The configuration that the pool's rule gives to its nodes."""
    jobs: tuple[dict[str, Any], ...]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    need_go()
    folder = tmp_path_factory.mktemp("guard")
    with ControlPlane.start(NEWEST) as control_plane:
        api = control_plane.api
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        until(lambda: api.find(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"), "pods have an account")
        objects = read_folder(control_plane, REPOSITORY, f"out/prod/partitions/{POOL}").objects
        support = [body for body in objects if body["kind"] not in ("Job", "NodeFeatureRule")]
        for body in support:
            api.apply(body, manager=MANAGER)
        [files] = [body["data"] for body in support if body["kind"] == "ConfigMap"]
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        (folder / "token").write_text(_token(api, GUARD), encoding="utf-8")
        (folder / "ca.crt").write_bytes((control_plane.folder / "ca.crt").read_bytes())
        [wanted] = {part["config"] for part in yaml.safe_load(files["settings.json"])["targets"]}
        for name in (NODE, OTHER):
            api.create(_node(name))
        jobs = tuple(body for body in objects if body["kind"] == "Job")
        yield Guarded(api, folder, _module(folder / "guard.py"), folder / "settings.json", wanted, jobs)


@pytest.fixture
def run(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Runs the script as in the Job's pod, but for time: what happens meanwhile is done by the second wait."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(guarded.api.port))

    def run(verb: str, meanwhile: Callable[[], object] = lambda: None) -> tuple[int, str]:
        clock = Clock(meanwhile)
        server = guarded.script.in_cluster(guarded.account)
        server.now, server.sleep = clock.now, clock.sleep
        code: int = guarded.script.main([verb, str(guarded.settings)], server)
        return code, capsys.readouterr().out

    return run


class Clock:
    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._time = 0.0
        self._waits = 0
        self._meanwhile = meanwhile

    def now(self) -> float:
        return self._time

    def sleep(self, seconds: float) -> None:
        self._time += seconds
        self._waits += 1
        if self._waits == 2:
            self._meanwhile()


def test_a_sync_waits_for_the_pod_that_holds_a_unit(
    guarded: Guarded, run: Callable[..., tuple[int, str]], record: Record
) -> None:
    _label(guarded, {CONFIG: "three-medium", STATE: "success"})
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    for name, node in (("serving", NODE), ("elsewhere", OTHER)):
        guarded.api.create(_pod(name, node))
    code, said = run("before")
    record("guard: a pod holds a unit: the Job ends with", 1, code)
    assert f"{NODE}: {NAMESPACE}/serving holds nvidia.com/mig-3g.40gb" in said
    assert "elsewhere" not in said
    guarded.api.delete(f"{pods}/serving", grace_seconds=0)
    until(lambda: guarded.api.find(f"{pods}/serving") is None, "the pod is gone")
    code, said = run("before")
    record("guard: the pod is gone: the Job ends with", 0, code)
    assert f"{NODE}: from three-medium to {guarded.wanted}" in said


def test_a_sync_ends_with_the_success_of_its_own_configuration(
    guarded: Guarded, run: Callable[..., tuple[int, str]], record: Record
) -> None:
    _label(guarded, {CONFIG: "three-medium", STATE: "success"})
    code, said = run("after")
    record("guard: nothing happens: the Job ends with", 1, code)
    assert f"{NODE}: three-medium is success, and not yet {guarded.wanted}" in said
    code, said = run("after", lambda: _label(guarded, {CONFIG: guarded.wanted, STATE: "success"}))
    record("guard: mig-manager succeeds: the Job ends with", 0, code)
    _label(guarded, {STATE: "failed"})
    code, said = run("after")
    record("guard: mig-manager fails: the Job ends with", 1, code)
    assert f"{NODE}: mig-manager has failed to apply {guarded.wanted}" in said


def test_an_account_may_list_and_nothing_else(guarded: Guarded, record: Record) -> None:
    planned = {("list", "nodes"), ("list", "pods"), ("list", "resourceclaims")}
    observed = _allowed(guarded.api, GUARD) - _allowed(guarded.api, "default")
    record("guard: what its account may beyond any other", planned, observed)
    own = Api(guarded.api.port, _token(guarded.api, GUARD), guarded.api.tls)
    with pytest.raises(Refused, match="cannot patch resource"):
        own.patch(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {CONFIG: "all-disabled"}}})


def test_jobs_are_admitted_where_pods_are_restricted(guarded: Guarded, record: Record) -> None:
    """The level that the strictest clusters enforce; a Job is taken anyway, its pod is not."""
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    guarded.api.patch(f"/api/v1/namespaces/{NAMESPACE}", {"metadata": {"labels": restricted}})
    try:
        bodies = [body for job in guarded.jobs for body in (job, _pod_of(job))]
        admitted = [guarded.api.create(body, dry_run=True)["kind"] for body in bodies]
        with pytest.raises(Refused, match="violates PodSecurity"):
            guarded.api.create(_pod("loose", NODE), dry_run=True)
    finally:
        guarded.api.patch(f"/api/v1/namespaces/{NAMESPACE}", {"metadata": {"labels": dict.fromkeys(restricted)}})
    record("guard: Jobs and their pods, admitted as restricted", ["Job", "Pod"] * 2, admitted)


def _allowed(api: Api, account: str) -> set[tuple[str, str]]:
    """Verbs and resources, as the API server's authorizer tells the account itself."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": NAMESPACE},
    }
    own = Api(api.port, _token(api, account), api.tls)
    rules = own.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review)["status"]
    return {
        (verb, resource) for rule in rules["resourceRules"] for verb in rule["verbs"] for resource in rule["resources"]
    }


def _token(api: Api, account: str) -> str:
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token: str = api.request("POST", path, request)["status"]["token"]
    return token


def _label(guarded: Guarded, labels: Mapping[str, str]) -> None:
    guarded.api.patch(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": labels}})


def _node(name: str) -> dict[str, Any]:
    labels = {"nvidia.com/gpu.present": "true"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def _pod(name: str, node: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "registry.example.com/test:1",
        "resources": {"limits": {"nvidia.com/mig-3g.40gb": "1"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"nodeName": node, "containers": [container]},
    }


def _pod_of(job: Mapping[str, Any]) -> dict[str, Any]:
    template = job["spec"]["template"]
    metadata = {**template["metadata"], "name": job["metadata"]["name"], "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("delivered_guard", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
