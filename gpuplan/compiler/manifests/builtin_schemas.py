"""Schemas of Kubernetes' own kinds, by the minor version of a cluster.

They are the files of the package kubernetes-validate in their strict form, without unknown fields. Its own interface
reads and compiles them again for each object, which takes 8 ms, and looks up a group by its first label, so that
``apps.example.com/v1`` is judged as ``apps/v1``. Here they are read once, without importing that package.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.manifests.crds import Served
from gpuplan.compiler.manifests.model import Gvk
from gpuplan.compiler.manifests.validators import Schema, compile_schema, registry

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, Registry

_FOLDER: Final = regex(r"v(\d+)\.(\d+)\.\d+-local-strict")
_DEFINITIONS: Final = "https://kubernetes.io/api/_definitions.json"
_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
OBJECT_META: Final[Schema] = {"$ref": f"{_DEFINITIONS}#/$defs/{_OBJECT_META}"}
"""The schema of ``metadata``; takes the registry of `BuiltinSchemas` to resolve."""


@cache
def builtin_schemas(kubernetes: str) -> BuiltinSchemas:
    """The schemas of a version, such as ``1.32``; of the newest one before it if there are none of itself."""
    wanted = _parse_version(kubernetes)
    folders = _folders()
    fitting = [version for version in folders if version <= wanted]
    if not fitting or wanted > max(folders):
        oldest, newest = kubernetes_versions()
        raise GpuplanError(
            f"there are no schemas for Kubernetes {kubernetes}",
            f"versions {oldest} to {newest} can be checked; a newer kubernetes-validate may know more",
        )
    return BuiltinSchemas(folders[max(fitting)])


def kubernetes_versions() -> tuple[str, str]:
    """The oldest and the newest version of which there are schemas; all between them can be checked."""
    folders = _folders()
    oldest, newest = ("{}.{}".format(*version) for version in (min(folders), max(folders)))
    return oldest, newest


def has_schemas(kubernetes: str) -> bool:
    folders = _folders()
    return min(folders) <= _parse_version(kubernetes) <= max(folders)


class BuiltinSchemas:
    """The schemas in one folder of kubernetes-validate."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._validators: dict[Gvk, Draft202012Validator | None] = {}
        self._kept: dict[str, Draft202012Validator] = {}

    def has_group(self, group: str) -> bool:
        """Whether a group is Kubernetes' own, so that a kind in it is not a custom resource."""
        return group in self._groups

    def find_validator(self, gvk: Gvk) -> Draft202012Validator | None:
        """The validator of a kind, or None when this Kubernetes has no such kind in this version of its group."""
        if gvk not in self._validators:
            schema = self.find_schema(gvk)
            self._validators[gvk] = self.compile(schema) if schema is not None else None
        return self._validators[gvk]

    def compile(self, schema: Schema) -> Draft202012Validator:
        """Compile a schema, with the definitions that it refers to and no others; ValueError where it is none."""
        return compile_schema(schema, self._registry(schema))

    def compile_kept(self, served: Served, version: str) -> Draft202012Validator:
        """The validator of a definition that comes with gpuplan; alike ones of several releases are one."""
        name = served.versions[version]
        if name not in self._kept:
            self._kept[name] = compile_schema(served.schema(version), self._metadata)
        return self._kept[name]

    @cached_property
    def _metadata(self) -> Registry:
        return self._registry(OBJECT_META)

    def _registry(self, schema: Schema) -> Registry:
        """The definitions that a schema refers to."""
        return registry(_DEFINITIONS, {name: self.definitions[name] for name in self._closure(schema)})

    def find_schema(self, gvk: Gvk) -> Schema | None:
        """The schema of a kind, which refers to `definitions`; None as with `find_validator`."""
        prefix = f"{gvk.group.partition('.')[0]}-" if gvk.group else ""
        name = f"{gvk.kind.lower()}-{prefix}{gvk.version}.json"
        if name not in self._files:
            return None
        schema: Schema = json.loads((self._folder / name).read_bytes())
        api_version = f"{gvk.group}/{gvk.version}" if gvk.group else gvk.version
        properties = schema.get("properties", {})
        is_it = properties.get("apiVersion", {}).get("enum") == [api_version]
        return schema if is_it and properties.get("kind", {}).get("enum") == [gvk.kind] else None

    @cached_property
    def _files(self) -> frozenset[str]:
        """The files that there are: what an object says of itself is looked up here before it is a part of a path."""
        return frozenset(os.listdir(self._folder))  # noqa: PTH208 - a `Path` for each takes longer

    def _closure(self, schema: Schema) -> list[str]:
        names = dict.fromkeys(name for name in _references(schema) if name in self.definitions)
        waiting = list(names)
        while waiting:
            for name in _references(self.definitions[waiting.pop()]):
                if name not in names and name in self.definitions:
                    names[name] = None
                    waiting.append(name)
        return list(names)

    @cached_property
    def definitions(self) -> Mapping[str, Schema]:
        """The parts that other schemas refer to, by name."""
        definitions: Mapping[str, Schema] = json.loads((self._folder / "_definitions.json").read_bytes())["$defs"]
        return definitions

    @cached_property
    def _groups(self) -> frozenset[str]:
        kinds = (
            kind for schema in self.definitions.values() for kind in schema.get("x-kubernetes-group-version-kind", ())
        )
        return frozenset(kind["group"] for kind in kinds)


def _references(schema: object) -> Iterator[str]:
    """The names of the definitions that a schema refers to right away."""
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            yield reference.rpartition("/")[2]
        for part in schema.values():
            if isinstance(part, dict | list):
                yield from _references(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _references(part)


def _parse_version(kubernetes: str) -> tuple[int, int]:
    match = re.fullmatch(r"v?(\d+)\.(\d+)(\..*)?", kubernetes)
    if match is None:
        raise GpuplanError(f"`{kubernetes}` is not a version of Kubernetes", "write its minor version, such as 1.32")
    return int(match[1]), int(match[2])


@cache
def _folders() -> Mapping[tuple[int, int], Path]:
    package = find_spec("kubernetes_validate")
    places = package.submodule_search_locations if package else None
    folders = {
        (int(match[1]), int(match[2])): folder
        for place in places or ()
        for folder in Path(place, "kubernetes-json-schema").iterdir()
        if (match := _FOLDER.fullmatch(folder.name))
    }
    if not folders:
        raise GpuplanError("the schemas of Kubernetes are missing", "pip install 'kubernetes-validate>=1.37'")
    return folders
