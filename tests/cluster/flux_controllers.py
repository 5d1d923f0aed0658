"""Flux itself, on loopback beside a control plane: what it does with the objects of `out/flux`.

Its source-controller and kustomize-controller are the real ones; `helm_releases` plays the third.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.helm_releases import HelmReleases
from tests.cluster.processes import NotReadyError, Process, free_port, until
from tests.cluster.programs import program, source

NAMESPACE: Final = "flux-system"
SOURCES: Final = f"/apis/source.toolkit.fluxcd.io/v1/namespaces/{NAMESPACE}"
KUSTOMIZATIONS: Final = f"/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/{NAMESPACE}/kustomizations"
RELEASES: Final = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{NAMESPACE}/helmreleases"
_CONTROLLERS: Final = ("source-controller", "kustomize-controller")


@dataclass(frozen=True, slots=True)
class Flux:
    """A running Flux, and the control plane that it runs beside."""

    plane: ControlPlane
    processes: tuple[Process, ...]

    @property
    def api(self) -> Api:
        return self.plane.api

    def kustomizations(self) -> dict[str, dict[str, Any]]:
        return {body["metadata"]["name"]: body for body in self.api.list(KUSTOMIZATIONS)}

    def kustomization(self, name: str) -> dict[str, Any]:
        return self.api.get(f"{KUSTOMIZATIONS}/{name}")

    def refresh(self) -> None:
        """What `flux reconcile source git flux-system` asks for."""
        self._ask(f"{SOURCES}/gitrepositories/{NAMESPACE}")

    def reconcile(self, name: str) -> None:
        """What `flux reconcile kustomization` asks for."""
        self._ask(f"{KUSTOMIZATIONS}/{name}")

    def resume(self, name: str) -> None:
        """What `flux resume kustomization` does."""
        self.api.patch(f"{KUSTOMIZATIONS}/{name}", {"spec": {"suspend": False}})

    def _ask(self, path: str) -> None:
        asked = {"reconcile.fluxcd.io/requestedAt": datetime.now(UTC).isoformat()}
        self.api.patch(path, {"metadata": {"annotations": asked}})

    def settle(self, revision: str, *, but: Sequence[str] = (), seconds: float = 120) -> None:
        """Wait until each Kustomization that is not suspended is ready at a commit, ``but`` these; the rest has why."""

        def unsettled() -> list[str]:
            found = [body for body in self.api.list(KUSTOMIZATIONS) if not body["spec"].get("suspend")]
            waiting = [body for body in found if body["metadata"]["name"] not in but and not is_ready(body, revision)]
            releases = self.api.list(RELEASES) if waiting else ()
            return [f"{body['kind']} {body['metadata']['name']}: {state_of(body)}" for body in (*waiting, *releases)]

        try:
            until(lambda: not unsettled(), "it settles", seconds=seconds, processes=self.processes)
        except NotReadyError as error:
            raise AssertionError(json.dumps(unsettled(), indent=1)) from error


def is_ready(body: Mapping[str, Any], revision: str) -> bool:
    """Whether a Kustomization has applied a commit, and found it healthy."""
    status = body.get("status", {})
    is_current = status.get("observedGeneration") == body["metadata"]["generation"]
    is_applied = status.get("lastAppliedRevision", "").endswith(revision)
    return is_current and is_applied and state_of(body).startswith("True")


def state_of(body: Mapping[str, Any]) -> str:
    """The status, reason and message of what a Kustomization or a HelmRelease says of being ready."""
    conditions = body.get("status", {}).get("conditions", ())
    found = (f"{item['status']} {item['reason']}: {item['message']}" for item in conditions if item["type"] == "Ready")
    return next(found, "it says nothing")


@contextmanager
def running(plane: ControlPlane, arguments: Sequence[str] = ()) -> Iterator[Flux]:
    """Install it and start its programs, kustomize-controller with these arguments beside what it needs."""
    folder = Path(tempfile.mkdtemp(prefix="flux-", dir=plane.folder))
    _install(plane)
    storage = f"127.0.0.1:{free_port()}"
    environment = {
        **{name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
        "HOME": str(folder),
        "KUBECONFIG": str(plane.kubeconfig),
        "RUNTIME_NAMESPACE": NAMESPACE,
        "TMPDIR": str(folder),
    }
    own = {
        "source-controller": [
            *(f"--storage-path={folder}", f"--storage-addr={storage}", f"--storage-adv-addr={storage}")
        ],
        "kustomize-controller": ["--concurrent=20", *arguments],
    }
    with ExitStack() as stack:
        started = []
        for name in _CONTROLLERS:
            ports = (f"--{kind}-addr=127.0.0.1:{free_port()}" for kind in ("metrics", "health"))
            command: list[str | Path] = [program("flux", name), *ports, "--requeue-dependency=1s", *own[name]]
            started.append(Process(command, folder / f"{name}.log", environment))
            stack.callback(started[-1].stop)
        stack.enter_context(HelmReleases(plane, NAMESPACE))
        yield Flux(plane, tuple(started))


def _install(plane: ControlPlane) -> None:
    """What its own manifests install, but for what runs: there are no kubelets here to run it."""
    for name in _CONTROLLERS:
        definitions = source("flux", f"github.com/fluxcd/{name}") / "config/crd/bases"
        plane.kubectl("apply", "--server-side", "-f", definitions)
    plane.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}, manager="tests")
    for group, kind in (("source", "GitRepository"), ("kustomize", "Kustomization")):
        until(lambda: plane.api.find_kind(f"{group}.toolkit.fluxcd.io/v1", kind), "its kinds are served")  # noqa: B023
