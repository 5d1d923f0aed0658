"""Makes an API server serve the custom resources that gpuplan writes."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.api import Api
from tests.cluster.processes import until

_MANAGER = "definitions"


def define(api: Api, objects: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Serve the kinds of these objects; those that GPUPLAN_CRDS has no definition of are returned.

    These are served by definitions that take any field, so that whatever depends on them can still be applied.
    """
    examples = {(body["apiVersion"], body["kind"]): body for body in objects}
    unserved = {key: body for key, body in examples.items() if api.find_kind(*key) is None}
    folder = os.environ.get("GPUPLAN_CRDS")
    known = {name: definition for definition in _read(folder) for name in _served(definition)}
    missing = sorted(key for key in unserved if key not in known)
    definitions = {known[key]["metadata"]["name"]: known[key] for key in unserved if key in known}
    for definition in [*definitions.values(), *(_permissive(unserved[key]) for key in missing)]:
        api.apply(definition, manager=_MANAGER)
    until(lambda: all(api.find_kind(*key) for key in unserved), "custom resources are served", seconds=120)
    return tuple(f"{version.partition('/')[0]}/{kind}" for version, kind in missing)


def has_definitions() -> bool:
    return bool(os.environ.get("GPUPLAN_CRDS"))


@functools.cache
def _read(folder: str | None) -> tuple[dict[str, Any], ...]:
    files = sorted(Path(folder).glob("*.yaml")) if folder else ()
    return tuple(yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader) for path in files)


def _served(definition: Mapping[str, Any]) -> list[tuple[str, str]]:
    spec = definition["spec"]
    return [(f"{spec['group']}/{version['name']}", spec["names"]["kind"]) for version in spec["versions"]]


def _permissive(example: Mapping[str, Any]) -> dict[str, Any]:
    """A definition of the object's kind that says nothing of its fields."""
    group, _, version = example["apiVersion"].partition("/")
    kind = example["kind"]
    plural = _plural(kind.lower())
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced" if "namespace" in example["metadata"] else "Cluster",
            "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def _plural(name: str) -> str:
    """As Kubernetes takes it to be (`UnsafeGuessKindToResource` in `pkg/api/meta/restmapper.go` of apimachinery)."""
    if name.endswith("s"):
        return name if name.endswith("constraints") else f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
