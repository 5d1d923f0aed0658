"""A copy of the example platform, and what Argo CD's Applications of it apply."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import yaml

from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.pipeline import build

REPOSITORY = Path(__file__).parents[4]

Body = dict[str, Any]


class Application(NamedTuple):
    """An Application with all that it applies; ``is_generated`` says that an ApplicationSet made it."""

    name: str
    body: Body
    paths: tuple[str, ...]
    objects: Mapping[Identity, Body]
    is_generated: bool


class Delivered(NamedTuple):
    """What Argo CD has for a cluster."""

    project: Body
    application_sets: Mapping[str, Body]
    applications: Mapping[str, Application]


class Platform:
    """The copy; documents of its policy can be taken out or put in."""

    def __init__(self, root: Path) -> None:
        self._root = root
        for name in ("policies", "overlays"):
            shutil.copytree(REPOSITORY / name, root / name)

    def write(self, path: str, text: str) -> None:
        (self._root / path).write_text(text, encoding="utf-8")

    def change(self, cluster: str, **fields: Any) -> None:
        """Set fields of a cluster's spec."""
        file = self._root / "overlays" / cluster / "cluster.yaml"
        document = yaml.safe_load(file.read_text())
        document["spec"] |= fields
        file.write_text(yaml.safe_dump(document))

    def remove(self, cluster: str, *documents: str) -> None:
        """Take documents, such as `Pool/a100`, out of a cluster's policy."""
        named = (document.partition("/") for document in documents)
        bodies = ({"kind": kind, "metadata": {"name": name, "$patch": "delete"}} for kind, _, name in named)
        text = yaml.safe_dump_all({"apiVersion": "gpuplan.dev/v1"} | body for body in bodies)
        self.write(f"overlays/{cluster}/removed.yaml", text)

    def deliver(self, cluster: str) -> Delivered:
        result = build(self._root, [cluster])
        assert result.report.is_valid, [item.finding.message for item in result.report.diagnostics]
        return delivered(result.tree, cluster)


def delivered(tree: Mapping[str, bytes], cluster: str) -> Delivered:
    """Everything below `out/`, as Argo CD sees it once the cluster's own folder of `out/argocd/` is applied."""
    bodies = [body for _, body in _resources(tree, f"argocd/{cluster}")]
    (project,) = (body for body in bodies if body["kind"] == "AppProject")
    sets = {body["metadata"]["name"]: body for body in bodies if body["kind"] == "ApplicationSet"}
    written = [(body, False) for body in bodies if body["kind"] == "Application"]
    generated = [(body, True) for item in sets.values() for body in _generate(item, tree)]
    applications = [_application(body, tree, is_generated=flag) for body, flag in written + generated]
    return Delivered(project, sets, {application.name: application for application in applications})


def _generate(application_set: Body, tree: Mapping[str, bytes]) -> list[Body]:
    """What the git generator makes: one Application for each folder that matches, `*` being a name."""
    (generator,) = application_set["spec"]["generators"]
    (directory,) = generator["git"]["directories"]
    folders = {f"out/{PurePosixPath(path).parent}" for path in tree}
    found = []
    for folder in sorted(folders):
        same_depth = folder.count("/") == directory["path"].count("/")
        if same_depth and fnmatchcase(folder, directory["path"]):
            text = yaml.safe_dump(application_set["spec"]["template"])
            text = text.replace("{{.path.basename}}", PurePosixPath(folder).name).replace("{{.path.path}}", folder)
            assert "{{" not in text
            found.append(yaml.safe_load(text))
    return found


def _application(body: Body, tree: Mapping[str, bytes], *, is_generated: bool) -> Application:
    spec = body["spec"]
    paths = tuple(source["path"] for source in spec.get("sources", [spec.get("source")]) if "path" in source)
    found = {}
    for path in paths:
        for _, item in _resources(tree, path.removeprefix("out/")):
            found[identity(item)] = item
    return Application(body["metadata"]["name"], body, paths, found, is_generated)


def _resources(tree: Mapping[str, bytes], folder: str) -> list[tuple[str, Body]]:
    """What the kustomization of a folder applies, those of the folders below included."""
    kustomization = yaml.safe_load(tree[f"{folder}/kustomization.yaml"])
    found: list[tuple[str, Body]] = []
    for name in kustomization["resources"]:
        path = f"{folder}/{name}"
        found += [(path, yaml.safe_load(tree[path]))] if path in tree else _resources(tree, path)
    return found


def identity(body: Body) -> Identity:
    metadata = body["metadata"]
    group = body["apiVersion"].rpartition("/")[0]
    return Identity(group, body["kind"], metadata.get("namespace", ""), metadata["name"])


def options(body: Body) -> Sequence[str]:
    """The sync options on an object."""
    text: str = body["metadata"].get("annotations", {}).get("argocd.argoproj.io/sync-options", "")
    return text.split(",")


def is_permitted(project: Body, item: Identity) -> bool:
    """Whether a project lets its Applications touch an object (`IsResourcePermitted` in `app_project_types.go`)."""
    spec = project["spec"]
    scope = "namespaceResourceWhitelist" if item.namespace else "clusterResourceWhitelist"

    def names(field: str) -> bool:
        entries = [entry for entry in spec.get(field, ()) if (entry["group"], entry["kind"]) == (item.group, item.kind)]
        return any(entry.get("name", item.name) == item.name for entry in entries)

    if not names(scope) or names(scope.replace("White", "Black")):
        return False
    return not item.namespace or item.namespace in {entry["namespace"] for entry in spec["destinations"]}
