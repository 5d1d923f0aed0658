"""Schemas of custom resources, from a folder of CustomResourceDefinitions.

A CRD's schema says what the API server keeps: it drops what the schema does not name, without a word. Here, as with the
strict field validation of the API server, a field that would be dropped is an error. Rules in CEL
(``x-kubernetes-validations``) are not evaluated, nor that the items of a list differ in their
``x-kubernetes-list-map-keys``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from os.path import relpath, sep
from pathlib import Path
from typing import Any, Final

from gpuplan.diagnostics import Diagnostic, Finding, GpuplanError, Origin, SourceFile, WholeFile, field_path
from gpuplan.manifests.builtin_schemas import OBJECT_META, Schema
from gpuplan.manifests.crd_shapes import Misfit, misfits_of_definition, misfits_of_schema
from gpuplan.manifests.crd_texts import UnreadableCrdError, parse, read
from gpuplan.manifests.rules import UNUSABLE_DEFINITION
from gpuplan.values import Value
from gpuplan.wording import listing

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
_HELP: Final = "take the file again from its release; without it these objects are not checked"


class Definition(Value):
    """A definition that can be used: its served versions, with their schemas as the CRD has them."""

    file: Path
    title: str
    versions: Mapping[str, Schema]
    routes: Mapping[str, tuple[str | int, ...]]
    """Where in the file each version's schema stands."""


class Refusal(Value):
    """A file, or a definition in it, that cannot be used, and all that is wrong with it."""

    file: Path
    title: str
    misfits: tuple[Misfit, ...]

    def report(self, root: Path) -> Diagnostic:
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

    def __init__(self, folder: Path) -> None:
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
        self._refuse(definition.file, definition.title, Misfit((*definition.routes[version], *place), words))

    def _read(self, folder: Path) -> dict[Path, str]:
        texts: dict[Path, str] = {}
        try:
            for file in sorted(file for file in folder.iterdir() if file.suffix in _SUFFIXES and file.is_file()):
                try:
                    texts[file] = read(file)
                except UnreadableCrdError as error:
                    self._refuse(file, "file", Misfit((), str(error)))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise GpuplanError(f"cannot read CRDs from `{error.filename or folder}`: {reason}", _HINT) from error
        if not self.refusals and not any("CustomResourceDefinition" in text for text in texts.values()):
            raise GpuplanError(f"there is no CustomResourceDefinition in `{folder}`", _HINT)
        return texts

    def _add(self, file: Path, text: str) -> None:
        try:
            documents = parse(text)
        except UnreadableCrdError as error:
            self._refuse(file, "file", Misfit((), str(error)))
            return
        for document in _without_lists(documents):
            if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
                self._add_definition(file, document)

    def _add_definition(self, file: Path, document: Mapping[Any, Any]) -> None:
        wrong = misfits_of_definition(document)
        spec: Any = document.get("spec")
        if not wrong:
            schemas, routes = dict(_served(spec["versions"])), dict(_routes(spec["versions"]))
            wrong = [misfit for name, schema in schemas.items() for misfit in misfits_of_schema(schema, routes[name])]
        if wrong:
            self._refuse(file, _title(spec), *wrong)
        else:
            self._definitions[spec["group"], spec["names"]["kind"]] = Definition(file, _title(spec), schemas, routes)

    def _refuse(self, file: Path, title: str, *misfits: Misfit) -> None:
        self.refusals.append(Refusal(file, title, misfits))


def _without_lists(documents: Iterable[object]) -> Iterator[object]:
    """The objects, those of a `List` one by one: so kubectl prints several of them."""
    for document in documents:
        match document:
            case {"kind": "List", "items": [*items]}:
                yield from items
            case _:
                yield document


def _title(spec: object) -> str:
    match spec:
        case {"group": str(group), "names": {"kind": str(kind)}}:
            return f"definition of `{kind}.{group}`"
        case _:
            return "definition"


def _served(versions: list[Any]) -> Iterator[tuple[str, Schema]]:
    for version in versions:
        if version.get("served", True):
            yield version["name"], version.get("schema", {}).get("openAPIV3Schema", {})


def _routes(versions: list[Any]) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    for index, version in enumerate(versions):
        yield version["name"], ("spec", "versions", index, "schema", "openAPIV3Schema")


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
    if is_closed and _drops_unknown_fields(schema):
        strict |= {"properties": strict.get("properties", {}), "additionalProperties": False}
    strict["required"] = _required(schema)
    return strict | _value_rules(schema) | _bounds(schema) | _kubernetes_types(schema)


def _value_rules(schema: Schema) -> dict[str, Any]:
    """What combined rules say about values; they never say which fields there are."""
    rules: dict[str, Any] = {
        keyword: [_strict(part, is_closed=False) for part in schema[keyword]]
        for keyword in ("allOf", "anyOf", "oneOf")
        if keyword in schema and schema[keyword] != _INT_OR_STRING
    }
    if "not" in schema:
        rules["not"] = _strict(schema["not"], is_closed=False)
    return rules


def _bounds(schema: Schema) -> dict[str, Any]:
    """Bounds that do not belong to the range: a flag beside the bound in a CRD, the bound itself in JSON Schema."""
    pairs = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
    return {flag: schema[bound] for bound, flag in pairs if schema.get(flag) is True and bound in schema}


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


def _drops_unknown_fields(schema: Schema) -> bool:
    if schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema:
        return False
    return schema.get("type") == "object"


def _required(schema: Schema) -> list[str]:
    """The fields that must be there, but for those that the API server fills in before it looks."""
    properties = schema.get("properties", {})
    required = [name for name in schema.get("required", ()) if "default" not in properties.get(name, {})]
    return [*required, *_TYPE_META] if schema.get("x-kubernetes-embedded-resource") else required
