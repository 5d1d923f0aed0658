"""Schemas of custom resources, from a folder of CustomResourceDefinitions.

A CRD's schema says what the API server keeps: it drops what the schema does not name, without a word. Here, as with the
strict field validation of the API server, a field that would be dropped is an error. Rules in CEL
(``x-kubernetes-validations``) are not evaluated, nor that the items of a list differ in their
``x-kubernetes-list-map-keys``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeGuard

from gpuplan.diagnostics import GpuplanError
from gpuplan.manifests.builtin_schemas import OBJECT_META, Schema

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


class CrdSchemas:
    """The CRDs of a folder, each file read when it is needed: some take longer to read than a build takes."""

    def __init__(self, folder: Path) -> None:
        self._texts = _read_texts(folder)
        self._specs: dict[tuple[str, str], Mapping[str, Any]] = {}

    def find_versions(self, group: str, kind: str) -> Mapping[str, Schema] | None:
        """The served versions of a kind, with their schemas as the CRD has them; None when no CRD defines the kind."""
        for file in [file for file, text in self._texts.items() if group in text and kind in text]:
            for spec in _parse_specs(file, self._texts.pop(file)):
                self._specs[spec["group"], spec["names"]["kind"]] = spec
        found = self._specs.get((group, kind))
        return _served_versions(found) if found else None


def strict_schema(schema: Schema) -> Schema:
    """The schema of a whole object in which unknown fields are errors, from that of a CRD.

    Its metadata is the API server's business, whatever else the CRD asks of it; the reference is to the definitions of
    `BuiltinSchemas`.
    """
    rules = _strict(schema.get("properties", {}).get("metadata", {}), is_closed=False)
    strict = _strict(schema)
    strict["properties"] = {**_TYPE_META, **strict.get("properties", {}), "metadata": {"allOf": [OBJECT_META, rules]}}
    return strict


def _served_versions(spec: Mapping[str, Any]) -> dict[str, Schema]:
    served = (version for version in spec["versions"] if version.get("served", True))
    return {version["name"]: version.get("schema", {}).get("openAPIV3Schema", {}) for version in served}


def _read_texts(folder: Path) -> dict[Path, str]:
    try:
        files = sorted(file for file in folder.iterdir() if file.suffix in _SUFFIXES and file.is_file())
        texts = {file: file.read_text(encoding="utf-8") for file in files}
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise GpuplanError(f"cannot read CRDs from `{error.filename or folder}`: {reason}", _HINT) from error
    except UnicodeDecodeError as error:
        raise GpuplanError(f"cannot read CRDs from `{folder}`: a file in it is not UTF-8", _HINT) from error
    if not any("CustomResourceDefinition" in text for text in texts.values()):
        raise GpuplanError(f"there is no CustomResourceDefinition in `{folder}`", _HINT)
    return texts


def _parse_specs(file: Path, text: str) -> Iterator[Mapping[str, Any]]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        documents = list(yaml.load_all(text, Loader=loader))
    except (yaml.YAMLError, ValueError) as error:
        raise GpuplanError(f"`{file}` is not YAML: {' '.join(str(error).split())}", _HINT) from error
    for document in _without_lists(documents):
        if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
            spec = document.get("spec")
            if not _is_crd_spec(spec):
                raise GpuplanError(
                    f"`{file}` has a CustomResourceDefinition without a group, a kind and versions", _HINT
                )
            yield spec


def _without_lists(documents: Iterable[object]) -> Iterator[object]:
    """The objects, those of a `List` one by one: so kubectl prints several of them."""
    for document in documents:
        match document:
            case {"kind": "List", "items": [*items]}:
                yield from items
            case _:
                yield document


def _is_crd_spec(spec: object) -> TypeGuard[Mapping[str, Any]]:
    match spec:
        case {"group": str(), "names": {"kind": str()}, "versions": [*versions]}:
            return all(isinstance(version, dict) and "name" in version for version in versions)
        case _:
            return False


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
    """What is said about values by combining rules; which fields there are is never said there."""
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
