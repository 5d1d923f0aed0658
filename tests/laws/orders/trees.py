"""Read an `out/` tree as those read it who apply it: the operator's files, and the folders that label nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final

import yaml

Body = Mapping[str, Any]
Labels = Mapping[str, str]

GROUPS: Final = "node-groups.yaml"
PREFIX: Final = "requests."


@dataclass(frozen=True)
class Operator:
    """What the GPU Operator's programs are given: the MIG manager's entries, the device plugin's files, defaults."""

    entries: Mapping[str, Sequence[Body]]
    configs: Mapping[str, Body]
    default_entry: str
    default_config: str
    strategy: str
    config_name: str = ""
    """The ConfigMap of the device plugin's files: with another name, all that reads them starts again."""


@dataclass(frozen=True)
class Folder:
    """What is applied by itself and labels nodes: NodeFeatureRules by name, Node objects, or one group of a table."""

    rules: Mapping[str, Body] = field(default_factory=dict)
    nodes: Mapping[str, Labels] = field(default_factory=dict)
    groups: Sequence[Body] = ()


@dataclass(frozen=True)
class Tree:
    """One cluster of an `out/` tree."""

    operator: Operator
    folders: Mapping[str, Folder]
    objects: Mapping[tuple[str, str, str], Body]
    """By kind, namespace and name; files that hold no object have the kind `File`, and their path as name."""

    @cached_property
    def guarantees(self) -> Mapping[str, int]:
        """How many of each resource are granted: by Kueue where it queues, else by ResourceQuotas."""
        queued: Counter[str] = Counter()
        granted: Counter[str] = Counter()
        for (kind, _, _), body in self.objects.items():
            if kind == "ClusterQueue" and body["spec"].get("stopPolicy", "None") == "None":
                queued.update(_nominal(body))
            elif kind == "ResourceQuota":
                granted.update(_hard(body))
        return queued or granted


def _nominal(queue: Body) -> Counter[str]:
    found: Counter[str] = Counter()
    for group in queue["spec"].get("resourceGroups", ()):
        for flavor in group["flavors"]:
            for resource in flavor["resources"]:
                found[resource["name"]] += int(resource["nominalQuota"])
    return found


def _hard(quota: Body) -> Counter[str]:
    hard = quota["spec"].get("hard", {})
    return Counter({name.removeprefix(PREFIX): int(amount) for name, amount in hard.items() if name.startswith(PREFIX)})


def read_tree(files: Mapping[str, bytes], cluster: str) -> Tree:
    """``files`` are those below `out/`, by path."""
    objects: dict[tuple[str, str, str], Body] = {}
    by_folder: dict[str, list[tuple[str, Body]]] = {}
    table: Sequence[Body] = ()
    for path, data in files.items():
        folder, _, name = path.rpartition("/")
        if cluster not in path.split("/") or name == "kustomization.yaml":
            continue
        if name == GROUPS:
            table = _parsed(data)[0]["nodeGroups"]
        for index, body in enumerate(_parsed(data) if name.endswith(".yaml") else ()):
            if isinstance(body, Mapping) and "kind" in body and "metadata" in body:
                metadata = body["metadata"]
                objects[body["kind"], metadata.get("namespace", ""), metadata["name"]] = body
                by_folder.setdefault(folder, []).append((path, body))
            else:
                objects["File", "", f"{path}#{index}"] = {"body": body}
    home = f"{cluster}/partitions/"
    folders = {
        folder.removeprefix(home): _folder([body for _, body in found])
        for folder, found in by_folder.items()
        if folder.startswith(home)
    }
    if not any(folder.rules or folder.nodes for folder in folders.values()):
        folders |= {f"group {group['pool']}": _group(table, group["pool"]) for group in table}
    settings = _settings(files, cluster, objects)
    return Tree(
        _operator(settings, [body for _, body in by_folder.get(f"{cluster}/gpu-operator", ())]), folders, objects
    )


def _folder(bodies: Sequence[Body]) -> Folder:
    return Folder(
        {body["metadata"]["name"]: body for body in bodies if body["kind"] == "NodeFeatureRule"},
        {body["metadata"]["name"]: body["metadata"].get("labels", {}) for body in bodies if body["kind"] == "Node"},
    )


def _group(table: Sequence[Body], pool: str) -> Folder:
    return Folder(groups=tuple(group for group in table if group["pool"] == pool))


def _settings(files: Mapping[str, bytes], cluster: str, objects: Mapping[tuple[str, str, str], Body]) -> Body:
    """The Helm values, as a file or in a HelmRelease, or the ClusterPolicy's fields, which have the same names."""
    values = files.get(f"{cluster}/gpu-operator/values.yaml")
    if values is not None:
        found: Body = _parsed(values)[0]
        return found
    specs = {kind: body["spec"] for (kind, _, _), body in objects.items() if kind in ("HelmRelease", "ClusterPolicy")}
    spec: Body = specs["HelmRelease"]["values"] if "HelmRelease" in specs else specs["ClusterPolicy"]
    return spec


def _operator(settings: Body, bodies: Sequence[Body]) -> Operator:
    data = {body["metadata"]["name"]: body["data"] for body in bodies if body["kind"] == "ConfigMap"}
    manager, plugin = settings["migManager"]["config"], settings.get("devicePlugin", {}).get("config", {})
    configs = data.get(plugin.get("name", ""), {})
    return Operator(
        yaml.safe_load(data[manager["name"]]["config.yaml"])["mig-configs"],
        {key: yaml.safe_load(text) or {} for key, text in configs.items()},
        manager.get("default", ""),
        plugin.get("default", ""),
        settings.get("mig", {}).get("strategy", ""),
        plugin.get("name", ""),
    )


def _parsed(data: bytes) -> Sequence[Any]:
    return _loaded(data)


@lru_cache(maxsize=20_000)
def _loaded(data: bytes) -> Sequence[Any]:
    return tuple(body for body in yaml.load_all(data, Loader=yaml.CSafeLoader) if body is not None)


def nodes_of(folder: Folder) -> Iterator[str]:
    """The nodes that a folder names one by one."""
    yield from folder.nodes
