"""Argo CD itself, on loopback beside a control plane: what it does with the objects of `out/argocd`."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.processes import NotReadyError, Process, free_port, until
from tests.cluster.programs import program, source

MODULE: Final = "github.com/argoproj/argo-cd/v3"
POLL: Final = 5
"""Seconds between two looks at Git; the default is two minutes."""
PROGRAMS: Final = ("argocd-repo-server", "argocd-application-controller", "argocd-applicationset-controller")


@dataclass(frozen=True, slots=True)
class ArgoCd:
    """A running Argo CD, and the control plane that it runs beside."""

    plane: ControlPlane
    namespace: str
    programs: dict[str, Process]
    """By their names; `redis` is one."""
    _start: Callable[[str], Process]

    @property
    def processes(self) -> tuple[Process, ...]:
        return tuple(self.programs.values())

    def restart(self, name: str) -> None:
        """Kill a program, and start it anew at its old address."""
        self.programs[name].stop()
        self.programs[name] = self._start(name)

    @property
    def api(self) -> Api:
        return self.plane.api

    @property
    def _applications(self) -> str:
        return f"/apis/argoproj.io/v1alpha1/namespaces/{self.namespace}/applications"

    def applications(self) -> dict[str, dict[str, Any]]:
        return {body["metadata"]["name"]: body for body in self.api.list(self._applications)}

    def application(self, name: str) -> dict[str, Any]:
        return self.api.get(f"{self._applications}/{name}")

    def refresh(self) -> None:
        """Have it look at Git now."""
        for name in self.applications():
            self.api.patch(
                f"{self._applications}/{name}", {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}
            )

    def sync(self, name: str) -> None:
        """What `argocd app sync` asks for."""
        options = self.application(name)["spec"]["syncPolicy"]["syncOptions"]
        operation = {"initiatedBy": {"username": "tests"}, "sync": {"prune": True, "syncOptions": options}}
        self.api.patch(f"{self._applications}/{name}", {"operation": operation})

    def terminate(self, name: str) -> None:
        """What `argocd app terminate-op` asks for."""
        self.api.patch(f"{self._applications}/{name}", {"status": {"operationState": {"phase": "Terminating"}}})

    def confirm(self, name: str) -> None:
        """What `argocd app confirm-deletion` asks for."""
        approved = {"argocd.argoproj.io/deletion-approved": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
        self.api.patch(f"{self._applications}/{name}", {"metadata": {"annotations": approved}})

    def delete(self, name: str) -> None:
        """What `argocd app delete` asks for: with all that it applied."""
        finalizers = ["resources-finalizer.argocd.argoproj.io"]
        self.api.patch(f"{self._applications}/{name}", {"metadata": {"finalizers": finalizers}})
        self.api.delete(f"{self._applications}/{name}")

    def settle(self, also: Mapping[str, str] = {}, *, seconds: float = 180) -> None:
        """Wait until each Application is synced and healthy, or what ``also`` says of it, as `OutOfSync Missing`."""

        def unsettled() -> dict[str, list[str]]:
            found = self.applications() or {"no Application": {}}
            return {
                name: explained(body)
                for name, body in found.items()
                if not state_of(body).startswith(also.get(name, "Synced Healthy"))
            }

        try:
            until(lambda: not unsettled(), "it settles", seconds=seconds, processes=self.processes)
        except NotReadyError as error:
            raise AssertionError(json.dumps(unsettled(), indent=1)) from error

    def synced(self) -> dict[str, int]:
        """How often each Application was synced."""
        ends = {name: body["status"].get("history") for name, body in self.applications().items()}
        return {name: history[-1].get("id", 0) + 1 if history else 0 for name, history in ends.items()}


def state_of(body: Mapping[str, Any]) -> str:
    status = body.get("status", {})
    return f"{status.get('sync', {}).get('status')} {status.get('health', {}).get('status')}"


def explained(body: Mapping[str, Any]) -> list[str]:
    """Why an Application is what it is, in its own words."""
    status = body.get("status", {})
    operation = status.get("operationState", {})
    resources = (
        f"{item.get('kind')}/{item.get('name')}: {item.get('status')} {item.get('health', {}).get('status', '')}"
        for item in status.get("resources", [])
        if item.get("status") != "Synced" or item.get("health", {}).get("status", "Healthy") != "Healthy"
    )
    conditions = (f"{item['type']}: {item['message']}" for item in status.get("conditions", []))
    return [state_of(body), f"{operation.get('phase')}: {operation.get('message')}", *conditions, *resources]


@contextmanager
def running(plane: ControlPlane, namespace: str = "argocd") -> Iterator[ArgoCd]:
    """Install it and start its programs; no API server of its own and no Dex, since nobody logs in."""
    folder = Path(tempfile.mkdtemp(prefix="argo-cd-", dir=plane.folder))
    for name in ("bin", "home", "tmp"):
        (folder / name).mkdir()
    binary = program("argo-cd", "cmd")
    for name in PROGRAMS:
        (folder / "bin" / name).symlink_to(binary)
    for name in ("helm", "kustomize"):
        (folder / "bin" / name).symlink_to(program("argo-cd-tools", name))
    verifier = folder / "bin" / "git-verify-wrapper.sh"  # as its image has it; nothing here is signed
    shutil.copy(source("argo-cd", MODULE) / "hack" / verifier.name, verifier)
    verifier.chmod(0o755)
    _install(plane, namespace)
    redis, repository = free_port(), free_port()
    environment = {
        **{name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
        "ARGOCD_APPLICATIONSET_CONTROLLER_REQUEUE_AFTER": f"{POLL}s",
        "ARGOCD_FAKE_IN_CLUSTER": "true",
        "ARGOCD_GPG_ENABLED": "false",
        "ARGOCD_SYNC_WAVE_DELAY": "1",
        "HOME": str(folder / "home"),
        "KUBECONFIG": str(plane.kubeconfig),
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "POD_NAMESPACE": namespace,
        "TMPDIR": str(folder / "tmp"),
    }
    common = ["--loglevel", "info", "--logformat", "text"]
    asks = ["--repo-server", f"127.0.0.1:{repository}", "--repo-server-plaintext", "--redis", f"127.0.0.1:{redis}"]
    arguments: dict[str, list[str | int]] = {
        "argocd-repo-server": [
            *(
                "--disable-tls",
                "--client-ca-path",
                "",
                "--address",
                "127.0.0.1",
                "--port",
                repository,
                "--redis",
                f"127.0.0.1:{redis}",
            ),
            *("--metrics-address", "127.0.0.1", "--metrics-port", free_port()),
        ],
        "argocd-application-controller": [
            *("--namespace", namespace, "--app-resync", POLL, "--app-resync-jitter", 0, "--metrics-port", free_port()),
            *asks,
        ],
        "argocd-applicationset-controller": [
            *("--namespace", namespace, "--argocd-repo-server", f"127.0.0.1:{repository}", "--repo-server-plaintext"),
            *("--metrics-addr", f"127.0.0.1:{free_port()}", "--probe-addr", f"127.0.0.1:{free_port()}"),
            *("--webhook-addr", f"127.0.0.1:{free_port()}"),
        ],
    }
    commands: dict[str, list[str | Path]] = {"redis": [program("argo-cd", "argo-cd"), f"127.0.0.1:{redis}"]}
    for name in PROGRAMS:
        commands[name] = [folder / "bin" / name, *map(str, arguments[name]), *common]
    starts = itertools.count()

    def start(name: str) -> Process:
        return Process(commands[name], folder / f"{name}-{next(starts)}.log", environment)

    argocd = ArgoCd(plane, namespace, {name: start(name) for name in commands}, start)
    try:
        yield argocd
    finally:
        for process in argocd.processes:
            process.stop()


def _install(plane: ControlPlane, namespace: str) -> None:
    """What its own manifests install, but for what runs: there are no kubelets here to run it."""
    module = source("argo-cd", MODULE) / "manifests"
    for name in ("application", "applicationset", "appproject"):
        plane.kubectl("apply", "--server-side", "-f", module / "crds" / f"{name}-crd.yaml")
    plane.kubectl("create", "namespace", namespace)
    plane.kubectl("apply", "-n", namespace, "-k", module / "base/config")
    secret = {"stringData": {"server.secretkey": "tests", "admin.password": "tests"}}
    plane.kubectl("patch", "secret", "argocd-secret", "-n", namespace, "--type", "merge", "-p", json.dumps(secret))
    configure(plane, namespace, {"timeout.reconciliation": f"{POLL}s", "timeout.reconciliation.jitter": "0s"})
    until(lambda: plane.api.find_kind("argoproj.io/v1alpha1", "AppProject"), "its kinds are served")
    everything = {"clusterResourceWhitelist": [{"group": "*", "kind": "*"}], "sourceRepos": ["*"]}
    plane.api.apply(
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "AppProject",
            "metadata": {"name": "default", "namespace": namespace},
            "spec": {**everything, "destinations": [{"namespace": "*", "server": "*"}]},
        },
        manager="tests",
    )


def configure(plane: ControlPlane, namespace: str, data: Mapping[str, str]) -> None:
    plane.api.patch(f"/api/v1/namespaces/{namespace}/configmaps/argocd-cm", {"data": data})


def teach(plane: ControlPlane, namespace: str, folder: Path) -> None:
    """Merge a cluster's `argocd-cm.yaml`, as the file says."""
    configure(plane, namespace, yaml.safe_load((folder / "argocd-cm.yaml").read_text(encoding="utf-8"))["data"])
