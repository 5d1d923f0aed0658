"""The JSON Schemas accept what gpuplan accepts and point at what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from gpuplan.compiler.policy.models import KINDS
from gpuplan.compiler.policy.schema import overlay_schema, schema_of
from gpuplan.terminal.schemas import editor_settings

REPOSITORY = Path(__file__).parents[3]
POOL: dict[str, Any] = {
    "apiVersion": "gpuplan.dev/v1",
    "kind": "Pool",
    "metadata": {"name": "a100"},
    "spec": {"gpu": "A100-80GB", "nodes": {"count": 1, "gpusPerNode": 8}, "sharing": {"exclusive": {}}},
}


def errors(schema: dict[str, Any], document: object) -> list[str]:
    return [error.json_path for error in Draft7Validator(schema).iter_errors(document)]


@pytest.mark.parametrize("kind", [*KINDS, None])
def test_schema_is_a_draft_7_schema(kind: str | None) -> None:
    Draft7Validator.check_schema(schema_of(kind))


POLICIES = sorted(REPOSITORY.glob("policies/**/*.yaml"))
OVERLAYS = sorted(REPOSITORY.glob("overlays/*/*.yaml"))


def from_root(file: Path) -> str:
    return file.relative_to(REPOSITORY).as_posix()


@pytest.mark.parametrize("file", POLICIES, ids=from_root)
def test_every_example_policy_fits_the_schema(file: Path) -> None:
    assert [error for document in yaml.safe_load_all(file.read_text()) for error in errors(schema_of(), document)] == []


@pytest.mark.parametrize("file", OVERLAYS, ids=from_root)
def test_every_example_overlay_fits_the_overlay_schema(file: Path) -> None:
    documents = yaml.safe_load_all(file.read_text())
    assert [error for document in documents for error in errors(overlay_schema(), document)] == []


@pytest.mark.parametrize("file", [*POLICIES, *OVERLAYS], ids=from_root)
def test_example_files_name_their_schema_on_the_first_line(file: Path) -> None:
    first = file.read_text().split("\n", 1)[0]
    assert first.startswith("# yaml-language-server: $schema=")
    assert (file.parent / first.partition("=")[2]).is_file()


def test_editors_are_told_the_schema_of_every_document() -> None:
    settings = json.loads((REPOSITORY / ".vscode/settings.json").read_text(encoding="utf-8"))
    wanted = editor_settings({"policy": "docs/schema/policy.json", "overlay": "docs/schema/overlay.json"})

    assert settings == json.loads(wanted)
    assert all((REPOSITORY / schema).is_file() for schema in settings["yaml.schemas"])


def test_misspelt_field_is_an_error_of_the_meant_kind_only() -> None:
    wrong = {**POOL, "spec": {**POOL["spec"], "workloadTypez": []}}
    assert errors(schema_of(), wrong) == ["$.spec"]


@pytest.mark.parametrize(
    ("kind", "name", "expected"), [("Pool", "a.b", 1), ("Pool", "a-b", 0), ("PriorityClass", "a.b", 0)]
)
def test_name_of_a_document_is_what_its_objects_may_be_called(kind: str, name: str, expected: int) -> None:
    metadata = {"metadata": {"name": name}}
    found = errors(schema_of(kind), {**POOL, "kind": kind, **metadata})
    assert found.count("$.metadata.name") == expected


def test_name_is_judged_alike_where_it_is_given_and_where_it_is_named() -> None:
    workload = schema_of("Workload")["definitions"]["WorkloadSpec"]["properties"]
    tenant = schema_of("Tenant")["definitions"]["TenantSpec"]["properties"]
    assert workload["priorityClass"]["anyOf"][0]["pattern"] == tenant["priorityClasses"]["items"]["pattern"]
    assert workload["namespace"]["anyOf"][0]["pattern"] == tenant["namespaces"]["items"]["pattern"]


def test_unknown_kind_is_an_error() -> None:
    assert errors(schema_of(), {**POOL, "kind": "Poool"}) == ["$.kind"]


def test_partial_document_fits_an_overlay_only() -> None:
    patch = {**POOL, "spec": {"nodes": {"count": 2}, "fallback": None}}
    assert errors(schema_of(), patch) != []
    assert errors(overlay_schema(), patch) == []


def test_removal_fits_an_overlay_only() -> None:
    removal = {"apiVersion": "gpuplan.dev/v1", "kind": "Pool", "metadata": {"name": "a100", "$patch": "delete"}}
    assert errors(schema_of(), removal) != []
    assert errors(overlay_schema(), removal) == []


def test_fields_carry_their_documentation() -> None:
    sharing = schema_of("Pool")["definitions"]["PoolSpec"]["properties"]["sharing"]
    assert sharing["description"] == "The way in which the GPUs are shared: exactly one kind."
