"""The example platform as documents that tests edit, and what a comparison says of the edits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.pipeline import validate
from gpuplan.compiler.pipeline.rendering import Rendered, render
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.changes.model import Comparison, ObjectChange
from gpuplan.features.changes.objects import compare_objects
from gpuplan.features.changes.states import ClusterState, compare

REPOSITORY = Path(__file__).parents[3]

Body = dict[str, Any]


class Platform:
    """The documents of the example platform by file; ``text`` are whole files that replace them."""

    def __init__(self) -> None:
        self.files: dict[str, list[Body]] = deepcopy(dict(_example()))
        self.text: dict[str, str] = {}

    def spec(self, kind: str, name: str, folder: str = "policies") -> Body:
        spec: Body = self.document(kind, name, folder)["spec"]
        return spec

    def document(self, kind: str, name: str, folder: str = "policies") -> Body:
        return next(
            body
            for path, documents in self.files.items()
            for body in documents
            if path.startswith(f"{folder}/") and (body["kind"], body["metadata"]["name"]) == (kind, name)
        )

    def cluster(self, name: str) -> Body:
        return self.spec("Cluster", name, f"overlays/{name}")

    def add(self, kind: str, name: str, spec: Body, folder: str = "policies") -> None:
        body = {"apiVersion": "gpuplan.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": deepcopy(spec)}
        self.files.setdefault(f"{folder}/more.yaml", []).append(body)

    def remove(self, kind: str, name: str, folder: str = "") -> None:
        """From the policies and from all overlays."""
        for path, documents in self.files.items():
            if path.startswith(folder):
                documents[:] = [body for body in documents if (body["kind"], body["metadata"]["name"]) != (kind, name)]

    def rename(self, kind: str, name: str, new: str) -> None:
        for documents in self.files.values():
            for body in documents:
                if (body["kind"], body["metadata"]["name"]) == (kind, name):
                    body["metadata"]["name"] = new

    def texts(self) -> Mapping[str, str]:
        dumped = {path: _text(path, found) for path, found in self.files.items() if found}
        return {path: self.text.get(path, text) for path, text in dumped.items()} | {
            path: text for path, text in self.text.items() if path not in dumped
        }


def _text(path: str, documents: list[Body]) -> str:
    """What the repository has, unless the documents were edited."""
    if documents == _example().get(path):
        return _written()[path]
    return str(yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=False))


@cache
def _written() -> Mapping[str, str]:
    return {
        path.relative_to(REPOSITORY).as_posix(): path.read_text()
        for folder in ("policies", "overlays")
        for path in sorted((REPOSITORY / folder).rglob("*.yaml"))
    }


@cache
def _example() -> Mapping[str, list[Body]]:
    return {path: list(yaml.load_all(text, Loader=yaml.CSafeLoader)) for path, text in _written().items()}


Edit = Callable[[Platform], None]


def original(_platform: Platform) -> None:
    """The platform as it is in the repository."""


@dataclass(frozen=True)
class State:
    """What the pipeline makes of a platform; what is wrong with it may keep documents from being planned."""

    plans: tuple[Plan, ...]
    errors: tuple[str, ...]

    @cached_property
    def rendered(self) -> Rendered:
        return render(self.plans, Path("/platform"), "out", None, is_whole=True)

    @property
    def tree(self) -> Mapping[str, bytes]:
        return self.rendered.tree

    @cached_property
    def clusters(self) -> tuple[ClusterState, ...]:
        return tuple(ClusterState.of(item.plan, item.artifacts) for item in self.rendered.clusters)


@cache
def state(*edits: Edit) -> State:
    """The platform after these edits."""
    return loaded(*edits)


def loaded(*edits: Edit) -> State:
    """The platform after these edits, read anew."""
    platform = Platform()
    for edit in edits:
        edit(platform)
    return load(platform.texts())


def load(texts: Mapping[str, str]) -> State:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for path, text in texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        report = validate(root, kustomize="off")
        errors = tuple(f"{item.code} {item.finding.message}" for item in report.diagnostics if item.is_error)
        return State(report.plans, errors)


def between(before: State, after: State) -> Comparison:
    return compare(before.clusters, after.clusters)


def between_trees(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[ObjectChange, ...]:
    return compare_objects(*_differing(before, after))


_Objects = dict[str, dict[tuple[str, Identity], Body]]


def _differing(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[_Objects, _Objects]:
    """The objects of files that differ, as `gpuplan diff` reads them."""
    paths = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    old, new = ({path: tree[path] for path in sorted(paths) if path in tree} for tree in (before, after))
    return _objects(old), _objects(new)


def _objects(tree: Mapping[str, bytes]) -> _Objects:
    found: _Objects = {}
    for path, data in tree.items():
        cluster, folder, name = _place(path)
        if name == "kustomization.yaml":
            continue
        for identity, body in _read(name, data):
            found.setdefault(cluster, {})[folder, identity] = body
    return found


def _place(path: str) -> tuple[str, str, str]:
    folder, _, name = path.rpartition("/")
    first, _, rest = folder.partition("/")
    return (rest, first, name) if first in ("argocd", "flux") else (first, rest, name)


@cache
def _read(name: str, data: bytes) -> list[tuple[Identity, Body]]:
    bodies = list(yaml.load_all(data, Loader=yaml.CSafeLoader)) if name.endswith(".yaml") else []
    if not bodies or not all(isinstance(body, dict) and "metadata" in body and "kind" in body for body in bodies):
        return [(Identity("", "File", "", name), {"data": data.decode()})]
    return [(_identity(body), body) for body in bodies]


def _identity(body: Body) -> Identity:
    metadata = body["metadata"]
    group = body["apiVersion"].rpartition("/")[0]
    return Identity(group, body["kind"], metadata.get("namespace", ""), metadata["name"])
