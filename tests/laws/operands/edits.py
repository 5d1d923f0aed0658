"""The table of edits, as policies before and after each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Document = Mapping[str, Any]
Platform = Mapping[str, Document]
"""Specs by `Kind/name`."""

NAMES = {
    "driver": "nvidia-driver-daemonset",
    "toolkit": "nvidia-container-toolkit-daemonset",
    "plugin": "nvidia-device-plugin-daemonset",
    "mps": "nvidia-device-plugin-mps-control-daemon",
    "mig": "nvidia-mig-manager",
    "gfd": "gpu-feature-discovery",
    "dcgm": "nvidia-dcgm",
    "exporter": "nvidia-dcgm-exporter",
    "status": "nvidia-node-status-exporter",
    "validator": "nvidia-operator-validator",
    "nfd": "gpu-operator-node-feature-discovery-worker",
}
NODES = {pool: f"{pool}-1" for pool in ("whole", "turns", "shares", "halves")}
CLUSTER = "Cluster/c"
_PARTS = {"cluster": (), "operator": ("gpuOperator",), "values": ("gpuOperator", "values")}
"""Parts of the Cluster's spec that rows name."""


@dataclass(frozen=True)
class Source:
    """Where something stands at a release's tag."""

    path: str
    line: int
    words: str


@dataclass(frozen=True)
class Edit:
    """A row. ``pods`` says by pool what comes of it for running pods; a pool that is not named is not judged."""

    name: str
    release: str
    before: Platform
    after: Platform
    rolls: frozenset[str]
    may: frozenset[str]
    pods: Mapping[str, str]
    sources: tuple[Source, ...]


def edits() -> tuple[Edit, ...]:
    rows = yaml.safe_load((Path(__file__).parent / "edits.yaml").read_text(encoding="utf-8"))
    return tuple(_edit(**row) for row in rows)


def _edit(name: str, edit: Document, rolls: list[str], source: list[str], **more: Any) -> Edit:
    release = more.get("release", "v26.7.0")
    before = _changed(platform(release), more.get("before", {}))
    pods: dict[str, str] = dict(more.get("pods", {}))
    rest = pods.pop("all", "")
    return Edit(
        name,
        release,
        before,
        _changed(before, edit),
        frozenset(NAMES[each] for each in rolls),
        frozenset(NAMES[each] for each in more.get("may", ())),
        {**(dict.fromkeys(NODES, rest) if rest else {}), **pods},
        tuple(map(_source, source)),
    )


def _source(written: str) -> Source:
    place, _, words = written.partition(" ")
    path, _, line = place.rpartition(":")
    return Source(path if "/" in path else f"controllers/{path}", int(line), words)


def platform(release: str) -> Platform:
    pools = {
        "whole": {"exclusive": {}},
        "turns": {"timeSlicing": {"replicas": 2}},
        "shares": {"mps": {"replicas": 2}},
        "halves": {"mig": {"instances": {"3g.40gb": 2}}},
    }
    nodes = {name: {"count": 1, "names": [NODES[name]], "gpusPerNode": 8} for name in pools}
    return {
        CLUSTER: {"kubernetes": "1.32", "gpuOperator": {"install": "helm", "version": release}},
        "Tenant/lab": {"namespaces": ["lab"], "quotas": [{"pool": "whole", "guaranteed": 8}]},
        **{f"Pool/{name}": {"gpu": "A100-80GB", "nodes": nodes[name], "sharing": pools[name]} for name in pools},
    }


def _changed(platform: Platform, patch: Document) -> Platform:
    for key, part in patch.items():
        route = (CLUSTER, *_PARTS[key]) if key in _PARTS else (key,)
        platform = _merged(platform, _at(route, part))
    return platform


def _at(route: tuple[str, ...], part: Any) -> Any:
    return {route[0]: _at(route[1:], part)} if route else part


def _merged(under: Any, patch: Any) -> Any:
    """By JSON Merge Patch."""
    if not isinstance(patch, Mapping):
        return patch
    found = dict(under) if isinstance(under, Mapping) else {}
    for key, part in patch.items():
        if part is None:
            found.pop(key, None)
        else:
            found[key] = _merged(found.get(key), part)
    return found


def write(platform: Platform, folder: Path) -> None:
    for key, spec in platform.items():
        kind, name = key.split("/")
        body = {"apiVersion": "gpuplan.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        file = folder / ("overlays/c/cluster.yaml" if key == CLUSTER else f"policies/{kind}-{name}.yaml".lower())
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(body, sort_keys=False), encoding="utf-8")
