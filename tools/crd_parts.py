"""Definitions in the form in which `manifests.crds` reads them: each object once, named by its text."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Any, NamedTuple

from gpuplan.compiler.manifests.cel import UnjudgedError, read_rule
from gpuplan.compiler.manifests.crd_schemas import strict_schema
from gpuplan.compiler.manifests.crds import IMMUTABLE, SHARED, references
from gpuplan.compiler.manifests.schema_rules import RULES, is_about_a_step
from gpuplan.compiler.manifests.validators import Schema

_SAME = ("self == oldSelf", "oldSelf == self")


class Verdict(StrEnum):
    """What becomes of a rule in CEL."""

    JUDGED = "judged"
    ABOUT_A_STEP = "about what an object was before"
    UNJUDGED = "not judged"


def verdict(rule: str) -> Verdict:
    if is_about_a_step(rule):
        return Verdict.ABOUT_A_STEP
    try:
        read_rule(rule)
    except UnjudgedError:
        return Verdict.UNJUDGED
    return Verdict.JUDGED


class Defined(NamedTuple):
    """What a release of a project says of a kind: the schemas of its served versions, as the definition has them."""

    project: str
    title: str
    release: str
    group: str
    kind: str
    versions: Mapping[str, Schema]


class Named(NamedTuple):
    """The same, with the names of the schemas."""

    project: str
    title: str
    release: str
    kind: str
    versions: tuple[tuple[str, str], ...]


class Written(NamedTuple):
    """Files by name: one for each group, and one for what they share; and what becomes of the rules."""

    files: Mapping[str, str]
    rules: Mapping[str, Verdict]


def written(found: Iterable[Defined]) -> Written:
    """The definitions of releases that come from the newest on."""
    parts = Parts()
    groups: defaultdict[str, list[Named]] = defaultdict(list)
    for project, title, release, group, kind, versions in found:
        schemas = tuple((version, parts.add(schema)) for version, schema in sorted(versions.items()))
        groups[group].append(Named(project, title, release, kind, schemas))
    needed = {group: parts.closure(_roots(rows)) for group, rows in sorted(groups.items())}
    homes: defaultdict[str, set[str]] = defaultdict(set)
    for group, names in needed.items():
        for name in names:
            homes[name].add(group)
    shared = {name for name, users in homes.items() if len(users) > 1}
    files = {
        f"{group}.txt": _text([*_head(groups[group]), *(parts.line(name) for name in names if name not in shared)])
        for group, names in needed.items()
    }
    return Written({**files, SHARED: _text([parts.line(name) for name in sorted(shared)])}, parts.rules)


def _roots(rows: Sequence[Named]) -> list[str]:
    ordered = sorted(rows, key=lambda row: row.kind)
    return list(dict.fromkeys(name for row in ordered for _, name in row.versions))


def _head(rows: Sequence[Named]) -> list[str]:
    """The projects, and for each kind which releases serve which schemas; alike ones in a row are one line."""
    titles = dict.fromkeys(f"project {row.project} {row.title}" for row in rows)
    lines: dict[tuple[str, str, int], list[Named]] = {}
    last: dict[tuple[str, str], tuple[int, Named]] = {}
    for row in rows:
        number, before = last.get((row.kind, row.project), (0, row))
        number += before.versions != row.versions
        last[row.kind, row.project] = number, row
        lines.setdefault((row.kind, row.project, number), []).append(row)
    return [*titles, *(_line(lines[key]) for key in sorted(lines, key=lambda key: key[0]))]


def _line(rows: Sequence[Named]) -> str:
    first = rows[0]
    versions = " ".join(f"{version}={name}" for version, name in first.versions)
    return f"kind {first.kind} {first.project} {','.join(row.release for row in rows)} {versions}"


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def schema_name(schema: Schema) -> str:
    """What the schema of a version is called in the files: the same for the same schema."""
    return Parts().add(schema)


class Parts:
    """Schemas as texts; every object in them, which has fields, is a part of its own."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self.rules: dict[str, Verdict] = {}

    def add(self, schema: Schema) -> str:
        """The name of a whole schema."""
        return self._keep(self._parted(strict_schema(schema)))

    def line(self, name: str) -> str:
        return f"{name} {self._texts[name]}"

    def closure(self, names: Sequence[str]) -> list[str]:
        """Parts and all that they refer to, each close to what refers to it first."""
        found: dict[str, None] = {}
        waiting = list(reversed(names))
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = None
                waiting += reversed(references(self._texts[name]))
        return list(found)

    def _part(self, schema: Schema) -> dict[str, Any]:
        made = self._parted(schema)
        return {"$ref": f"#/$defs/{self._keep(made)}"} if made.get("properties") else made

    def _parted(self, schema: Schema) -> dict[str, Any]:
        made = {key: self._value(key, value) for key, value in schema.items()}
        if any(rule["rule"] in _SAME for rule in schema.get(RULES, ())):
            made[IMMUTABLE] = True
        return {key: value for key, value in made.items() if value != [] or key not in ("required", RULES)}

    def _value(self, key: str, value: Any) -> Any:  # noqa: ANN401 - of a schema
        match key, value:
            case "properties", _:
                return {name: self._part(part) for name, part in value.items()}
            case "items" | "additionalProperties" | "not", dict():
                return self._part(value)
            case "allOf" | "anyOf" | "oneOf", _:
                return [self._part(part) for part in value]
            case "x-kubernetes-validations", list():
                return self._judged(value)
            case _:
                return value

    def _judged(self, rules: Sequence[Schema]) -> list[Schema]:
        """The rules that can be judged; all are counted."""
        for rule in rules:
            self.rules[rule["rule"]] = verdict(rule["rule"])
        return [rule for rule in rules if self.rules[rule["rule"]] is Verdict.JUDGED]

    def _keep(self, made: Mapping[str, Any]) -> str:
        text = json.dumps(made, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        name = sha256(text.encode()).hexdigest()[:8]
        if self._texts.setdefault(name, text) != text:
            raise ValueError(f"two schemas are called {name}")
        return name
