"""Plays Flux's helm-controller, which the module proxy does not serve."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
import threading
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

import yaml

from tests.cluster.api import Object, Refused
from tests.cluster.charts import rendered
from tests.cluster.control_plane import ControlPlane
from tests.cluster.processes import NotReadyError, until
from tests.cluster.programs import program

MANAGER: Final = "helm-controller"


class HelmReleases:
    """A thread that installs releases of charts, and upgrades them when their HelmRelease changes.

    It has source-controller fetch the chart, renders it, has kustomize patch what is rendered, and applies all of it on
    the server, by force, as helm-controller does since 1.5 (`internal/action/install.go` there). What fails is tried
    again. It neither corrects drift nor uninstalls.
    """

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane, self._api = plane, plane.api
        self._path = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{namespace}/helmreleases"
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="helm-releases", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopped.set()
        self._thread.join()

    def _run(self) -> None:
        done: dict[str, int] = {}
        while not self._is_stopped.wait(0.5):
            try:
                releases = self._api.list(self._path)
            except Refused:  # there is no such kind yet
                continue
            for body in releases:
                name, generation = body["metadata"]["name"], body["metadata"]["generation"]
                if done.get(name) == generation or body["spec"].get("suspend"):
                    continue
                try:
                    self._install(body)
                except (Refused, NotReadyError, OSError) as error:
                    self._say(body, "False", "InstallFailed", str(error))
                else:
                    done[name] = generation
                    self._say(body, "True", "InstallSucceeded", "")

    def _install(self, release: Mapping[str, Any]) -> None:
        spec, namespace = release["spec"], release["spec"]["targetNamespace"]
        if spec["install"]["createNamespace"]:
            self._apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        with tempfile.TemporaryDirectory(prefix="chart-") as scratch:
            with tarfile.open(fileobj=io.BytesIO(self._fetch(release))) as files:
                files.extractall(scratch, filter="data")
            [chart] = Path(scratch).iterdir()
            objects = [
                body
                for body in rendered(chart, spec["releaseName"], namespace, spec["values"])
                if "helm.sh/hook" not in body["metadata"].get("annotations", {})
            ]
        definitions = [body for body in objects if body["kind"] == "CustomResourceDefinition"]
        for body in definitions:
            self._apply(body)
        until(lambda: all(map(self._is_served, definitions)), "its kinds are served")
        for body in _patched([body for body in objects if body not in definitions], spec):
            self._apply(_of_release(body, release))

    def _fetch(self, release: Mapping[str, Any]) -> bytes:
        """The chart, by a HelmChart that source-controller makes an archive of."""
        metadata, spec = release["metadata"], release["spec"]
        chart = {
            "apiVersion": "source.toolkit.fluxcd.io/v1",
            "kind": "HelmChart",
            "metadata": {"name": f"{metadata['namespace']}-{metadata['name']}", "namespace": metadata["namespace"]},
            "spec": {**spec["chart"]["spec"], "interval": spec["interval"]},
        }
        generation = self._apply(chart)["metadata"]["generation"]

        def artifact() -> dict[str, Any]:
            found = self._api.get(self._api.path_of(chart)).get("status", {})
            return found.get("artifact", {}) if found.get("observedGeneration") == generation else {}

        url = until(artifact, "the chart is fetched")["url"]
        with urllib.request.urlopen(url) as answer:
            found: bytes = answer.read()
            return found

    def _is_served(self, definition: Object) -> bool:
        """Whether a kind is served in all of its versions."""
        spec = definition["spec"]
        versions = [f"{spec['group']}/{version['name']}" for version in spec["versions"] if version["served"]]
        return all(self._api.find_kind(version, spec["names"]["kind"]) for version in versions)

    def _apply(self, body: Object) -> dict[str, Any]:
        return self._api.apply(body, manager=MANAGER, force=True)

    def _say(self, release: Mapping[str, Any], status: str, reason: str, message: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": now}
        self._api.patch(f"{self._path}/{release['metadata']['name']}", {"status": {"conditions": [ready]}})


def _patched(objects: Iterable[Object], spec: Mapping[str, Any]) -> Iterator[Object]:
    """What the post-renderers make of objects (`internal/postrender/kustomize.go` of helm-controller)."""
    text = yaml.safe_dump_all(objects)
    for renderer in spec.get("postRenderers", ()):
        with tempfile.TemporaryDirectory(prefix="post-") as scratch:
            Path(scratch, "all.yaml").write_text(text, encoding="utf-8")
            kustomization = {"resources": ["all.yaml"], **renderer["kustomize"]}
            Path(scratch, "kustomization.yaml").write_text(yaml.safe_dump(kustomization), encoding="utf-8")
            command: list[str | Path] = [program("argo-cd-tools", "kustomize"), "build", scratch]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    yield from yaml.safe_load_all(text)


def _of_release(body: Object, release: Mapping[str, Any]) -> Object:
    """An object with the marks of Helm and of helm-controller on it."""
    metadata, spec = release["metadata"], release["spec"]
    labels = {
        "app.kubernetes.io/managed-by": "Helm",
        "helm.toolkit.fluxcd.io/name": metadata["name"],
        "helm.toolkit.fluxcd.io/namespace": metadata["namespace"],
    }
    annotations = {
        "meta.helm.sh/release-name": spec["releaseName"],
        "meta.helm.sh/release-namespace": spec["targetNamespace"],
    }
    own = body["metadata"]
    marks = {"labels": (own.get("labels") or {}) | labels, "annotations": (own.get("annotations") or {}) | annotations}
    return {**body, "metadata": {**own, **marks}}
