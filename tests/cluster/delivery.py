"""The folders of out/ as Argo CD brings them to a cluster: which, in which order, and what leaves with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.control_plane import ControlPlane

MANAGER = "argocd-controller"
"""The field manager of Argo CD's server-side apply."""

_SYNC_WAVE = "argocd.argoproj.io/sync-wave"
_SYNC_OPTIONS = "argocd.argoproj.io/sync-options"


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of the repository with its objects, in the order in which they are applied."""

    path: str
    objects: tuple[dict[str, Any], ...]


def deliveries(control_plane: ControlPlane, repository: Path, cluster: str) -> Iterator[Folder]:
    """The cluster's folder of Argo CD's objects, and then each folder that those deliver, by their sync waves."""
    root = read_folder(control_plane, repository, f"out/argocd/{cluster}")
    yield root
    for body in root.objects:
        for path in _paths(body, repository):
            yield read_folder(control_plane, repository, path)


def read_folder(control_plane: ControlPlane, repository: Path, path: str) -> Folder:
    """What kustomize makes of a folder, in order: https://argo-cd.readthedocs.io/en/stable/user-guide/sync-waves/."""
    text = control_plane.kubectl("kustomize", repository / path)
    objects = [body for body in yaml.load_all(text, Loader=yaml.CSafeLoader) if body]
    return Folder(path, tuple(sorted(objects, key=_order)))


def identity(body: Mapping[str, Any]) -> str:
    """What tells an object from all others of a cluster, whatever version it is written in."""
    group = body["apiVersion"].rpartition("/")[0]
    metadata = body["metadata"]
    return f"{group}/{body['kind']} {metadata.get('namespace', '')}/{metadata['name']}"


def leaving(before: Iterable[Folder], after: Iterable[Folder]) -> Iterator[dict[str, Any]]:
    """The objects that are no longer there, last waves first, without those that Argo CD leaves alone.

    An object whose pruning or deletion a person is to confirm counts as confirmed.
    """
    kept = {identity(body) for folder in after for body in folder.objects}
    for folder in before:
        for body in reversed(folder.objects):
            options = _annotation(body, _SYNC_OPTIONS, "").split(",")
            if identity(body) not in kept and not {"Prune=false", "Delete=false"} & set(options):
                yield body


def _paths(body: Mapping[str, Any], repository: Path) -> Iterator[str]:
    """The folders of this repository that an Application syncs, or those that an ApplicationSet finds."""
    spec = body.get("spec", {})
    match body["kind"]:
        case "Application":
            yield from (source["path"] for source in spec.get("sources", [spec.get("source")]) if "path" in source)
        case "ApplicationSet":
            for generator in spec["generators"]:
                for directory in generator["git"]["directories"]:
                    found = sorted(path for path in repository.glob(directory["path"]) if path.is_dir())
                    yield from (path.relative_to(repository).as_posix() for path in found)
        case _:
            pass


def _order(body: Mapping[str, Any]) -> tuple[int, bool, str, str]:
    """By wave, namespaces first: argoproj/gitops-engine, pkg/sync/sync_tasks.go."""
    kind = body["kind"]
    return int(_annotation(body, _SYNC_WAVE, "0")), kind != "Namespace", kind, body["metadata"]["name"]


def _annotation(body: Mapping[str, Any], name: str, default: str) -> str:
    found: str = body["metadata"].get("annotations", {}).get(name, default)
    return found
