"""The folders of out/ as Argo CD or Flux brings them to a cluster: which, in which order, and what leaves with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.control_plane import ControlPlane

MANAGER = "argocd-controller"
"""The field manager of Argo CD's server-side apply; here it applies what Flux delivers, too."""

_SYNC_WAVE = "argocd.argoproj.io/sync-wave"
_SYNC_OPTIONS = "argocd.argoproj.io/sync-options"


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of the repository with its objects, in the order in which they are applied.

    ``wave`` is that of its Application.
    """

    path: str
    objects: tuple[dict[str, Any], ...]
    is_deleted_with_application: bool = False
    wave: int = 0


def deliveries(control_plane: ControlPlane, repository: Path, cluster: str) -> Iterator[Folder]:
    """The cluster's folder of Argo CD's or Flux's objects, and then each folder that those deliver, in their order."""
    [path] = [path for tool in ("argocd", "flux") if (repository / (path := f"out/{tool}/{cluster}")).is_dir()]
    return _with_delivered(control_plane, repository, read_folder(control_plane, repository, path))


def _with_delivered(control_plane: ControlPlane, repository: Path, folder: Folder) -> Iterator[Folder]:
    """A folder and what its objects deliver; a root delivers what delivers the others."""
    yield folder
    for body in _after_what_they_depend_on(folder.objects):
        for path in _paths(body, repository):
            found = read_folder(control_plane, repository, path)
            found = replace(found, is_deleted_with_application=_deletes_with_itself(body), wave=wave(body))
            yield from _with_delivered(control_plane, repository, found)


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


def wave(body: Mapping[str, Any]) -> int:
    return int(_annotation(body, _SYNC_WAVE, "0"))


def leaving(before: Iterable[Folder], after: Iterable[Folder]) -> Iterator[dict[str, Any]]:
    """The objects that Argo CD prunes or deletes with their Application, last waves first.

    An object whose pruning or deletion a person is to confirm counts as confirmed.
    """
    after = tuple(after)
    synced = {folder.path for folder in after}
    kept = {identity(body) for folder in after for body in folder.objects}
    for folder in before:
        if folder.path not in synced and not folder.is_deleted_with_application:
            continue
        protection = "Prune=false" if folder.path in synced else "Delete=false"
        for body in reversed(folder.objects):
            if identity(body) not in kept and protection not in _annotation(body, _SYNC_OPTIONS, "").split(","):
                yield body


def _paths(body: Mapping[str, Any], repository: Path) -> Iterator[str]:
    """The folders of this repository that an Application or a Kustomization syncs, or an ApplicationSet finds."""
    spec = body.get("spec", {})
    match body["kind"]:
        case "Application":
            yield from (source["path"] for source in spec.get("sources", [spec.get("source")]) if "path" in source)
        case "ApplicationSet":
            for generator in spec["generators"]:
                for directory in generator["git"]["directories"]:
                    found = sorted(path for path in repository.glob(directory["path"]) if path.is_dir())
                    yield from (path.relative_to(repository).as_posix() for path in found)
        case "Kustomization":
            yield spec["path"].removeprefix("./")
        case _:
            pass


def _after_what_they_depend_on(objects: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Flux has no waves: each of its Kustomizations names those that it waits for."""
    named = {body["metadata"]["name"]: body for body in objects if body["kind"] == "Kustomization"}
    others = {name: [other["name"] for other in body["spec"].get("dependsOn", ())] for name, body in named.items()}
    yield from (body for body in objects if body["kind"] != "Kustomization")
    yield from (named[name] for name in TopologicalSorter(others).static_order())


def _deletes_with_itself(body: Mapping[str, Any]) -> bool:
    """Whether what has been synced goes when the object goes that says so."""
    if body["kind"] == "Application":
        return any(name.startswith("resources-finalizer.argocd.argoproj.io") for name in _finalizers(body))
    if body["kind"] == "ApplicationSet":
        return not body["spec"].get("syncPolicy", {}).get("preserveResourcesOnDeletion", False)
    return bool(body["spec"].get("deletionPolicy", "MirrorPrune") != "Orphan")


def _finalizers(body: Mapping[str, Any]) -> Sequence[str]:
    found: Sequence[str] = body["metadata"].get("finalizers", ())
    return found


def _order(body: Mapping[str, Any]) -> tuple[int, bool, str, str]:
    """By wave, namespaces first: argoproj/gitops-engine, pkg/sync/sync_tasks.go."""
    kind = body["kind"]
    return wave(body), kind != "Namespace", kind, body["metadata"]["name"]


def _annotation(body: Mapping[str, Any], name: str, default: str) -> str:
    found: str = body["metadata"].get("annotations", {}).get(name, default)
    return found
