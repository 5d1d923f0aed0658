"""What a CustomResourceDefinition looks like, as far as its schemas are used here.

Values of single keywords, such as a bound that is a text, are found when the schema is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from gpuplan.diagnostics import Path
from gpuplan.values import NamedTuple

MAX_DEPTH: Final = 80
"""Levels of schemas within schemas; the deepest that is known, of pods in pods, has about thirty."""
MAX_PARTS: Final = 400_000
"""Schemas and values in one definition, aliases followed; the largest that is known has some ten thousand."""
_SHOWN: Final = 100


class Misfit(NamedTuple):
    """What is wrong at a place, in words that go on from its name."""

    place: Path
    words: str


def misfits_of_definition(document: Mapping[Any, Any]) -> list[Misfit]:
    """What is wrong with a definition around its schemas."""
    return list(islice(_around(document), _SHOWN))


def misfits_of_schema(schema: object, place: Path) -> list[Misfit]:
    """What is wrong with a schema's own form; none, and it is small enough to be gone through again."""
    return list(islice(_Walk().walk(schema, place, 1), _SHOWN))


def _around(document: Mapping[Any, Any]) -> Iterator[Misfit]:
    spec = document.get("spec")
    if not isinstance(spec, dict):
        yield _wrong(("spec",), "a mapping", spec)
        return
    names = spec.get("names")
    kind = names.get("kind") if isinstance(names, dict) else None
    if not isinstance(spec.get("group"), str):
        yield _wrong(("spec", "group"), "text", spec.get("group"))
    if not isinstance(kind, str):
        yield _wrong(("spec", "names", "kind"), "text", kind)
    versions = spec.get("versions")
    if not isinstance(versions, list) or not versions:
        yield _wrong(("spec", "versions"), "a list of versions", versions)
        return
    for index, version in enumerate(versions):
        yield from _of_version(version, ("spec", "versions", index))


def _of_version(version: object, place: Path) -> Iterator[Misfit]:
    if not isinstance(version, dict):
        yield _wrong(place, "a mapping", version)
        return
    if not isinstance(version.get("name"), str):
        yield _wrong((*place, "name"), "text", version.get("name"))
    schema = version.get("schema", {})
    if not isinstance(schema, dict):
        yield _wrong((*place, "schema"), "a mapping", schema)


class _Walk:
    """Goes through a schema once, and stops where it is too large to be one."""

    def __init__(self) -> None:
        self._left = MAX_PARTS

    def walk(self, schema: object, place: Path, depth: int) -> Iterator[Misfit]:
        self._left -= 1
        if not isinstance(schema, dict):
            yield _wrong(place, "a schema", schema)
        elif depth > MAX_DEPTH:
            yield Misfit(place, f"is nested more than {MAX_DEPTH} levels deep")
            self._left = 0
        elif self._left < 0:
            yield Misfit(place, f"is beyond the first {MAX_PARTS:,} parts of its schema")
        else:
            yield from self._in_schema(schema, place, depth)

    def _in_schema(self, schema: Mapping[Any, Any], place: Path, depth: int) -> Iterator[Misfit]:
        for keyword, value in schema.items():
            if self._left < 0:
                return
            here = (*place, keyword if isinstance(keyword, str) else str(keyword))
            match keyword:
                case "properties":
                    yield from self._in_properties(value, here, depth)
                case "items" | "not":
                    yield from self.walk(value, here, depth + 1)
                case "additionalProperties" if not isinstance(value, bool):
                    yield from self.walk(value, here, depth + 1)
                case "allOf" | "anyOf" | "oneOf":
                    yield from self._in_list(value, here, depth)
                case "required":
                    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
                        yield _wrong(here, "a list of names", value)
                case "type" if not isinstance(value, str):
                    yield _wrong(here, "text", value)
                case "enum":
                    yield from self._in_values(value, here)
                case _:
                    pass

    def _in_properties(self, properties: object, place: Path, depth: int) -> Iterator[Misfit]:
        if not isinstance(properties, dict):
            yield _wrong(place, "a mapping", properties)
            return
        for name, schema in properties.items():
            if self._left < 0:
                return
            if isinstance(name, str):
                yield from self.walk(schema, (*place, name), depth + 1)
            else:
                yield Misfit(place, f"has a field `{name}` whose name is not text")

    def _in_list(self, schemas: object, place: Path, depth: int) -> Iterator[Misfit]:
        if not isinstance(schemas, list) or not schemas:
            yield _wrong(place, "a list of schemas", schemas)
            return
        for index, schema in enumerate(schemas):
            if self._left < 0:
                return
            yield from self.walk(schema, (*place, index), depth + 1)

    def _in_values(self, values: object, place: Path) -> Iterator[Misfit]:
        """Values of an enumeration may be anything that JSON has, though hardly anything but text is there."""
        if not isinstance(values, list):
            yield _wrong(place, "a list of values", values)
            return
        waiting = [(value, 1) for value in values]
        while waiting:
            value, depth = waiting.pop()
            self._left -= 1
            if self._left < 0 or depth > MAX_DEPTH:
                yield Misfit(place, "has values that are too large")
                return
            if isinstance(value, list | dict):
                parts = value.values() if isinstance(value, dict) else value
                waiting += ((part, depth + 1) for part in parts)


def _wrong(place: Path, expected: str, value: object) -> Misfit:
    match value:
        case None:
            found = "nothing"
        case bool():
            found = "`true` or `false`"
        case int() | float():
            found = "a number"
        case str():
            found = "text"
        case list() | dict():
            found = ("a " if value else "an empty ") + ("list" if isinstance(value, list) else "mapping")
        case _:
            found = "something that JSON does not have"
    return Misfit(place, f"should be {expected}, not {found}")
