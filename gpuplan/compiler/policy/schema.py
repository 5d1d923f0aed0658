"""JSON Schemas of the policy language, for editors: one per kind and one for any document."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from gpuplan.compiler.policy.fields import beside_platforms, document, document_models
from gpuplan.compiler.policy.models import KINDS, parts_of_language

DIALECT = "http://json-schema.org/draft-07/schema#"
"""The dialect that the YAML language server understands best."""


class _EditorSchema(GenerateJsonSchema):
    """Pydantic's schema without the noise of generated titles, which editors show instead of the description."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401, ARG002 - pydantic's signature
        return False


def schema_of(kind: str | None = None) -> dict[str, Any]:
    """The JSON Schema (draft 7) of one kind, or of a file that may hold documents of any kind.

    It holds for whole documents; `overlay_schema` holds for files that also change documents of the bases.
    """
    _complete()
    if kind is not None:
        model = document_models()[kind]
        return _finish(model.model_json_schema(schema_generator=_EditorSchema), f"gpuplan.dev/v1 {kind}")
    models: list[tuple[type[BaseModel], Any]] = [(model, "validation") for model in KINDS.values()]
    _, schema = models_json_schema(models, schema_generator=_EditorSchema)
    schema["type"] = "object"
    schema["required"] = ["apiVersion", "kind", "metadata"]
    schema["properties"] = {"kind": {"enum": list(KINDS)}}
    # if/then instead of anyOf: an editor then complains about the kind that was meant, not about all five.
    schema["allOf"] = [
        {
            "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
            "then": {"$ref": f"#/definitions/{name}"},
        }
        for name in KINDS
    ]
    return _finish(schema, "gpuplan.dev/v1 policy")


@cache
def _complete() -> None:
    """Build what `defer_build` puts off, with the descriptions that are read only now; of all kinds that there are."""
    beside_platforms()
    for part in parts_of_language():
        document(part)
    for part in parts_of_language():
        part.model_rebuild(force=True)


def overlay_schema() -> dict[str, Any]:
    """As `schema_of()`, for overlays: there any field may be missing, and null removes one."""
    schema = schema_of()
    for definition in schema["definitions"].values():
        if "properties" in definition:
            definition.pop("required", None)
            definition["properties"] = {name: _or_null(field) for name, field in definition["properties"].items()}
    schema["definitions"]["Metadata"]["properties"]["$patch"] = {
        "const": "delete",
        "description": "Removes the document of this kind and name that the bases hold.",
    }
    return {**schema, "title": "gpuplan.dev/v1 overlay"}


def _or_null(field: Any) -> Any:  # noqa: ANN401 - JSON
    """A field, or a mapping's item, that an overlay may remove."""
    return {"anyOf": [_items_or_null(field), {"type": "null"}]}


def _items_or_null(field: dict[str, Any]) -> dict[str, Any]:
    if isinstance(field.get("additionalProperties"), dict):
        return {**field, "additionalProperties": _or_null(field["additionalProperties"])}
    if "anyOf" in field:
        return {**field, "anyOf": [_items_or_null(one) for one in field["anyOf"]]}
    return field


def _finish(schema: dict[str, Any], title: str) -> dict[str, Any]:
    definitions = schema.pop("$defs", {})
    body: dict[str, Any] = _draft_7({**schema, "definitions": definitions})
    return {"$schema": DIALECT, "title": title, **body}


def _draft_7(node: Any) -> Any:  # noqa: ANN401 - JSON
    """Spell in draft 7 what draft 2020-12 spells differently, and drop the titles that are class names."""
    if isinstance(node, dict):
        is_class = "properties" in node and isinstance(node.get("title"), str)
        renamed = {key: _draft_7(value) for key, value in node.items() if not (is_class and key == "title")}
        reference = renamed.get("$ref")
        if isinstance(reference, str):
            renamed["$ref"] = reference.replace("#/$defs/", "#/definitions/")
            if len(renamed) > 1:  # draft 7 ignores what stands beside a $ref
                return {"allOf": [{"$ref": renamed.pop("$ref")}], **renamed}
        return renamed
    if isinstance(node, list):
        return [_draft_7(item) for item in node]
    return node
