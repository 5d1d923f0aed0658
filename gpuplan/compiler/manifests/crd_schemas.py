"""Schemas of custom resources, from a folder of CustomResourceDefinitions, in which anybody may have written anything.

A CRD's schema says what the API server keeps: it drops what the schema does not name, without a word. Here, as with the
strict field validation of the API server, a field that would be dropped is an error. `schema_rules` judges the rules in
CEL (``x-kubernetes-validations``), and that the items of a list differ in their ``x-kubernetes-list-map-keys``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from os.path import realpath, relpath, sep
from pathlib import Path as FilePath
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import (
    Diagnostic,
    Finding,
    GpuplanError,
    Origin,
    Path,
    SourceFile,
    WholeFile,
    field_path,
)
from gpuplan.compiler.base.plain import MAX_PARTS, UnreadableTextError, load_documents
from gpuplan.compiler.base.repository import is_kept_inside
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.manifests.builtin_schemas import OBJECT_META
from gpuplan.compiler.manifests.rules import UNUSABLE_DEFINITION
from gpuplan.compiler.manifests.schema_rules import KEYS, RULES
from gpuplan.compiler.manifests.validators import Schema

_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_SAME: Final = frozenset(
    {
        *("type", "enum", "pattern", "multipleOf", "minimum", "maximum", "minLength", "maxLength"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
    }
)
"""The keywords that mean the same in JSON Schema. ``format`` does not: int32 and int64 are nothing that it checks."""

_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_TYPE_META: Final[Mapping[str, Schema]] = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
_HINT: Final = "name a folder with CustomResourceDefinitions in YAML or JSON, such as the crds/ of a chart"
_HELP: Final = "take the file again from its release, or leave it out"


class Definition(Value):
    """A definition that can be used: its served versions, with their schemas as the CRD has them."""

    file: FilePath
    title: str
    versions: Mapping[str, Schema]
    routes: Mapping[str, Path]
    """Where in the file each version's schema stands."""


class Refusal(Value):
    """A file, or a definition in it, that cannot be used, and all that is wrong with it."""

    file: FilePath
    title: str
    misfits: tuple[_Misfit, ...]

    def report(self, root: FilePath) -> Diagnostic:
        """One finding for each definition: who takes the file again corrects all of it."""
        first, *others = self.misfits
        where = f"`{field_path(first.place)}` " if first.place else ""
        file = SourceFile(relpath(self.file, root).replace(sep, "/"), "")
        finding = Finding(
            Origin(WholeFile(file), first.place),
            f"{self.title} cannot be used: {where}{first.words}",
            notes=(f"wrong as well: {listing([field_path(misfit.place) for misfit in others])}",) if others else (),
            help=_HELP,
        )
        return UNUSABLE_DEFINITION.report(finding)


class CrdSchemas:
    """The CRDs of a folder, each file read when it is needed: some take longer to read than a build takes.

    ``refusals`` are of the definitions that were met so far and cannot be used.
    """

    def __init__(self, folder: FilePath) -> None:
        self.refusals: list[Refusal] = []
        self._texts = self._read(folder)
        self._definitions: dict[tuple[str, str], Definition] = {}

    def find(self, group: str, kind: str) -> Definition | None:
        """The definition of a kind; None when there is none that can be used."""
        for file in [file for file, text in self._texts.items() if group in text and kind in text]:
            self._add(file, self._texts.pop(file))
        return self._definitions.get((group, kind))

    def refuse(self, definition: Definition, version: str, error: ValueError) -> None:
        """Report what nobody but the compiler of schemas could know: a pattern that is none, a bound that is a text."""
        place = tuple(getattr(error, "instance_path", ()))
        words = str(getattr(error, "message", error))
        if place[-1:] == ("pattern",):
            words = "is not a regular expression that can be read here, or too large a one"
        self._refuse(definition.file, definition.title, _Misfit((*definition.routes[version], *place), words))

    def _read(self, folder: FilePath) -> dict[FilePath, str]:
        texts: dict[FilePath, str] = {}
        real = realpath(folder)
        try:
            for file in sorted(file for file in folder.iterdir() if file.suffix in _SUFFIXES and file.is_file()):
                if not is_kept_inside(file, real):
                    self._refuse(file, "file", _Misfit((), "is a link out of its folder, and not followed"))
                    continue
                try:
                    texts[file] = _read_text(file)
                except UnreadableTextError as error:
                    self._refuse(file, "file", _Misfit((), str(error)))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise GpuplanError(f"cannot read CRDs from `{error.filename or folder}`: {reason}", _HINT) from error
        if not self.refusals and not any("CustomResourceDefinition" in text for text in texts.values()):
            raise GpuplanError(f"there is no CustomResourceDefinition in `{folder}`", _HINT)
        return texts

    def _add(self, file: FilePath, text: str) -> None:
        try:
            documents = parse_definitions(text)
        except UnreadableTextError as error:
            self._refuse(file, "file", _Misfit((), str(error)))
            return
        for document in documents:
            self._add_definition(file, document)

    def _add_definition(self, file: FilePath, document: Mapping[Any, Any]) -> None:
        wrong = [*islice(_around(document), _SHOWN)]
        spec: Any = document.get("spec")
        if not wrong:
            schemas: dict[str, Schema] = {}
            routes: dict[str, Path] = {}
            for index, version in enumerate(spec["versions"]):
                routes[version["name"]] = ("spec", "versions", index, "schema", "openAPIV3Schema")
                if version.get("served", True):
                    schemas[version["name"]] = version.get("schema", {}).get("openAPIV3Schema", {})
            for name, schema in schemas.items():
                wrong += islice(_Walk().walk(schema, routes[name], 1), _SHOWN)
        if wrong:
            self._refuse(file, _title(spec), *wrong)
        else:
            self._definitions[spec["group"], spec["names"]["kind"]] = Definition(file, _title(spec), schemas, routes)

    def _refuse(self, file: FilePath, title: str, *misfits: _Misfit) -> None:
        self.refusals.append(Refusal(file, title, misfits))


def _title(spec: object) -> str:
    match spec:
        case {"group": str(group), "names": {"kind": str(kind)}}:
            return f"definition of `{kind}.{group}`"
        case _:
            return "definition"


# --- Texts ------------------------------------------------------------------------------------------------------------

MAX_BYTES: Final = 32 * 2**20
"""The largest file of definitions that a chart brings has about 5 MiB."""


def _read_text(file: FilePath) -> str:
    with file.open("rb") as stream:
        raw = stream.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise UnreadableTextError(f"it is larger than {MAX_BYTES // 2**20} MiB")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UnreadableTextError("it is not UTF-8") from error


def parse_definitions(text: str) -> list[Mapping[Any, Any]]:
    """Return the definitions in a file as plain data, those in a `List` too. Aliases repeat values."""
    objects: list[object] = []
    for document in load_documents(text):
        match document:
            case {"kind": "List", "items": [*items]}:
                objects += items
            case _:
                objects.append(document)
    return [body for body in objects if isinstance(body, dict) and body.get("kind") == "CustomResourceDefinition"]


# --- Shapes: values of single keywords, such as a bound that is a text, are found when the schema is compiled ---------

MAX_DEPTH: Final = 80
"""Levels of schemas within schemas; the deepest that is known, of pods in pods, has about thirty."""
_SHOWN: Final = 100


class _Misfit(NamedTuple):
    """A fault at a place, in words that go on from the name of the place."""

    place: Path
    words: str


def _around(document: Mapping[Any, Any]) -> Iterator[_Misfit]:
    """Yield the faults of a definition outside of its schemas."""
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


def _of_version(version: object, place: Path) -> Iterator[_Misfit]:
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

    def walk(self, schema: object, place: Path, depth: int) -> Iterator[_Misfit]:
        self._left -= 1
        if not isinstance(schema, dict):
            yield _wrong(place, "a schema", schema)
        elif depth > MAX_DEPTH:
            yield _Misfit(place, f"is nested more than {MAX_DEPTH} levels deep")
            self._left = 0
        elif self._left < 0:
            yield _Misfit(place, f"is beyond the first {MAX_PARTS:,} parts of its schema")
        else:
            yield from self._in_schema(schema, place, depth)

    def _in_schema(self, schema: Mapping[Any, Any], place: Path, depth: int) -> Iterator[_Misfit]:
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
                case "default":
                    yield from self._in_values([value], here)
                case _:
                    pass

    def _in_properties(self, properties: object, place: Path, depth: int) -> Iterator[_Misfit]:
        if not isinstance(properties, dict):
            yield _wrong(place, "a mapping", properties)
            return
        for name, schema in properties.items():
            if self._left < 0:
                return
            if isinstance(name, str):
                yield from self.walk(schema, (*place, name), depth + 1)
            else:
                yield _Misfit(place, f"has a field `{name}` whose name is not text")

    def _in_list(self, schemas: object, place: Path, depth: int) -> Iterator[_Misfit]:
        if not isinstance(schemas, list) or not schemas:
            yield _wrong(place, "a list of schemas", schemas)
            return
        for index, schema in enumerate(schemas):
            if self._left < 0:
                return
            yield from self.walk(schema, (*place, index), depth + 1)

    def _in_values(self, values: object, place: Path) -> Iterator[_Misfit]:
        """Values of an enumeration may be anything that JSON has, though hardly anything but text is there."""
        if not isinstance(values, list):
            yield _wrong(place, "a list of values", values)
            return
        waiting = [(value, 1) for value in values]
        while waiting:
            value, depth = waiting.pop()
            self._left -= 1
            if self._left < 0 or depth > MAX_DEPTH:
                yield _Misfit(place, "has values that are too large")
                return
            if isinstance(value, list | dict):
                parts = value.values() if isinstance(value, dict) else value
                waiting += ((part, depth + 1) for part in parts)


def _wrong(place: Path, expected: str, value: object) -> _Misfit:
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
    return _Misfit(place, f"should be {expected}, not {found}")


# --- JSON Schema ------------------------------------------------------------------------------------------------------


def strict_schema(schema: Schema) -> Schema:
    """The schema of a whole object in which unknown fields are errors, from that of a CRD.

    Its metadata is the API server's business, whatever else the CRD asks of it; the reference is to the definitions of
    `BuiltinSchemas`.
    """
    rules = _strict(schema.get("properties", {}).get("metadata", {}), is_closed=False)
    strict = _strict(schema)
    strict["properties"] = {**_TYPE_META, **strict.get("properties", {}), "metadata": {"allOf": [OBJECT_META, rules]}}
    return strict


def _strict(schema: Schema, *, is_closed: bool = True) -> dict[str, Any]:
    """A part of a CRD's schema as JSON Schema; where it is closed, a field that it does not name is an error."""
    strict: dict[str, Any] = {keyword: value for keyword, value in schema.items() if keyword in _SAME}
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            strict[keyword] = _strict(schema[keyword], is_closed=is_closed)
    if "properties" in schema:
        strict["properties"] = {name: _strict(part, is_closed=is_closed) for name, part in schema["properties"].items()}
    keeps_others = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    if is_closed and schema.get("type") == "object" and not keeps_others:
        strict |= {"properties": strict.get("properties", {}), "additionalProperties": False}
    # Fields that the API server fills in before it looks need not be there.
    properties = schema.get("properties", {})
    required = [name for name in schema.get("required", ()) if "default" not in properties.get(name, {})]
    strict["required"] = [*required, *_TYPE_META] if schema.get("x-kubernetes-embedded-resource") else required
    strict |= _rules(schema)
    # A bound outside of the range is a flag beside the bound in a definition, and the bound itself in JSON Schema.
    for bound, flag in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if schema.get(flag) is True and bound in schema:
            strict[flag] = schema[bound]
    return strict | _value_rules(schema) | _kubernetes_types(schema)


def _rules(schema: Schema) -> dict[str, Any]:
    """Return defaults and the rules that `SchemaRules` judges, less those of another form. JSON Schema ignores them."""
    rules: dict[str, Any] = {}
    if "default" in schema and _is_json(schema["default"]):
        rules["default"] = schema["default"]
    keys = schema.get(KEYS)
    if isinstance(keys, list) and all(isinstance(key, str) for key in keys):
        rules[KEYS] = keys
    if isinstance(schema.get(RULES), list):
        rules[RULES] = [found for rule in schema[RULES] if (found := _rule(rule))]
    return rules


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _rule(rule: object) -> dict[str, str]:
    """A rule and what it says when it is broken; a message that is an expression itself is not evaluated."""
    match rule:
        case {"rule": str(text), "message": str(message)}:
            return {"rule": text.strip(), "message": message}
        case {"rule": str(text)}:
            return {"rule": text.strip()}
        case _:
            return {}


def _value_rules(schema: Schema) -> dict[str, Any]:
    """Return the combined rules on values. Such rules never say which fields there are."""
    rules: dict[str, Any] = {
        keyword: [_strict(part, is_closed=False) for part in schema[keyword]]
        for keyword in ("allOf", "anyOf", "oneOf")
        if keyword in schema and schema[keyword] != _INT_OR_STRING
    }
    if "not" in schema:
        rules["not"] = _strict(schema["not"], is_closed=False)
    return rules


def _kubernetes_types(schema: Schema) -> dict[str, Any]:
    types: dict[str, Any] = {}
    if schema.get("x-kubernetes-int-or-string"):
        types["type"] = ["integer", "string"]
    if schema.get("x-kubernetes-list-type") == "set":
        types["uniqueItems"] = True
    if schema.get("x-kubernetes-embedded-resource"):
        properties = {name: _strict(part) for name, part in schema.get("properties", {}).items()}
        types["properties"] = {**_TYPE_META, **properties, "metadata": OBJECT_META}
    if schema.get("nullable"):
        types["type"] = [*types.get("type", [schema["type"]] if "type" in schema else []), "null"]
        if "enum" in schema:
            types["enum"] = [None, *schema["enum"]]
    return types
