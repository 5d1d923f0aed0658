"""Definitions of custom kinds that come with gpuplan, by the releases of the projects that define them.

A file in `data/` is about a group. Its first lines name projects, and say which releases of one serve which versions of
a kind:

    kind ClusterQueue kueue v0.19.2,v0.18.6 v1beta1=1c8f2a90 v1beta2=77ab03de

Each line after them is a schema in JSON after its name, which follows from its text. Schemas refer to others by name,
in the same file or in the one that is shared. `tools/crds.py` writes the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple, Value

SHARED: Final = "shared.txt"
"""The file of the schemas that several groups refer to."""

_DATA: Final = Path(__file__).parent / "data"
_REFERENCE: Final = regex(r'"#/\$defs/([0-9a-f]{8})"')


class Served(Value):
    """A kind as some releases of a project serve it: the names of schemas by version. The newest release is first."""

    group: str
    kind: str
    project: str
    title: str
    releases: tuple[str, ...]
    versions: Mapping[str, str]

    def schema(self, version: str) -> str:
        """The schema of a version as a text in JSON, with all that it refers to."""
        name = self.versions[version]
        parts = ",".join(f'"{part}":{text}' for part, text in _closure(self.group, name).items())
        return f'{{"$ref":"#/$defs/{name}","$defs":{{{parts}}}}}'


class _Group(NamedTuple):
    kinds: Mapping[str, Sequence[Served]]
    schemas: Mapping[str, str]


def served(group: str, kind: str) -> Sequence[Served]:
    """Return the definitions of a kind, from the newest release on. Most kinds have none here."""
    return _group(group).kinds.get(kind, ())


def serving(group: str, kind: str, releases: Mapping[str, str | None]) -> Sequence[Served]:
    """The same of the releases that may be meant: by project, None where what runs is none of its releases.

    Those of the same minor release are alike. Of a project that is not mentioned any release may be meant.
    """

    def is_meant(known: Served) -> bool:
        meant = releases.get(known.project)
        is_of_minor = meant is not None and _minor(meant) in map(_minor, known.releases)
        return known.project not in releases or is_of_minor

    return list(filter(is_meant, served(group, kind)))


def _minor(release: str) -> str:
    return release.removeprefix("v").rpartition(".")[0]


def groups() -> Sequence[str]:
    """The groups of which some kinds are known."""
    return sorted(path.stem for path in _DATA.glob("*.txt") if path.name != SHARED)


def kinds(group: str) -> Sequence[str]:
    """The kinds of a group that are known."""
    return sorted(_group(group).kinds)


IMMUTABLE: Final = "immutable"
"""A keyword of these schemas, for a value that stays what it is while it is there."""


@cache
def fixed_fields(group: str, kind: str) -> Sequence[str]:
    """The fields of a kind that stay what they are while they are there, by the newest release: ``spec.driverType``.

    Those inside of lists are not among them.
    """
    newest = next(iter(served(group, kind)), None)
    texts = [newest.schema(version) for version in newest.versions] if newest else []
    schemas = [json.loads(text) for text in texts if f'"{IMMUTABLE}"' in text]
    return list(dict.fromkeys(".".join(route) for schema in schemas for route in _fixed(schema, schema["$defs"], ())))


def _fixed(schema: Mapping[str, Any], parts: Mapping[str, Any], route: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    schema = parts.get(name, schema)
    if schema.get(IMMUTABLE):
        yield route
    for field, part in schema.get("properties", {}).items():
        yield from _fixed(part, parts, (*route, field))


def references(schema: str) -> Sequence[str]:
    """The names of the schemas that one refers to, each once."""
    return list(dict.fromkeys(_REFERENCE.findall(schema)))


def _closure(group: str, name: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    waiting = [name]
    while waiting:
        part = waiting.pop()
        if part not in found:
            found[part] = _group(group).schemas.get(part) or _shared()[part]
            waiting += references(found[part])
    return found


@cache
def _group(group: str) -> _Group:
    file = _DATA / f"{group}.txt"
    if not re.fullmatch(r"[a-z0-9.-]+", group) or not file.is_file():
        return _Group({}, {})
    titles: dict[str, str] = {}
    kinds: dict[str, list[Served]] = {}
    schemas: dict[str, str] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        word, _, rest = line.partition(" ")
        if word == "project":
            name, _, titles[name] = rest.partition(" ")
        elif word == "kind":
            kind, project, releases, *versions = rest.split(" ")
            pairs = dict(version.split("=") for version in versions)
            known = Served(group, kind, project, titles[project], tuple(releases.split(",")), pairs)
            kinds.setdefault(kind, []).append(known)
        else:
            schemas[word] = rest
    return _Group(kinds, schemas)


@cache
def _shared() -> Mapping[str, str]:
    lines = (_DATA / SHARED).read_text(encoding="utf-8").splitlines()
    return {name: schema for name, _, schema in (line.partition(" ") for line in lines)}
