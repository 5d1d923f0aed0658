"""The schemas that editors read: the catalog's words are in them, and they refuse nothing that gpuplan accepts."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from gpuplan.compiler.base.diagnostics import SourceFile
from gpuplan.compiler.catalog import load
from gpuplan.compiler.documents.parse import parse
from gpuplan.terminal.options import GIVEN
from gpuplan.terminal.schemas import schema
from tests.every import every

REPOSITORY = Path(__file__).parents[2]


@cache
def validator(name: str) -> Draft7Validator:
    return Draft7Validator(schema(name))


def refused(name: str, text: str) -> list[str]:
    """Where a schema refuses a document."""
    return [error.json_path for error in validator(name).iter_errors(yaml.safe_load(text))]


def a_layout(gpu: str = "A100-80GB", instances: str = "{3g.40gb: 2}") -> str:
    return f"""\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {{name: x}}
spec: {{gpu: {gpu}, instances: {instances}}}
"""


@pytest.mark.parametrize("name", [*GIVEN, "Tenant", "policy"])
def test_a_schema_is_the_same_where_nothing_else_was_read(name: str) -> None:
    """What features hand in is imported when somebody asks for it, and no question may depend on an earlier one."""
    code = f"from gpuplan.terminal.schemas import schema_text; print(schema_text({name!r}), end='')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == (REPOSITORY / "docs/schema" / f"{name}.json").read_text(encoding="utf-8")


CASES = REPOSITORY / "tests/checks"
ACCEPTED = [
    file.relative_to(CASES).as_posix()
    for file in sorted(CASES.rglob("*.yaml"))
    if "ok-" in file.relative_to(CASES).as_posix() and "# error: " not in file.read_text()
]
"""What the rules take, and no other rule refuses."""


def test_an_editor_offers_the_models_of_the_catalog() -> None:
    definitions = schema("policy")["definitions"]

    for part in ("PoolSpec", "MigLayoutSpec", "RetainedLayout"):
        models, _ = definitions[part]["properties"]["gpu"]["anyOf"]
        assert models == {"enum": [*load().ids()]}


def test_a_model_keeps_its_description() -> None:
    assert schema("Pool")["definitions"]["PoolSpec"]["properties"]["gpu"]["description"].startswith("The GPU model as ")


@pytest.mark.parametrize("name", ["policy", "overlay", "MigLayout"])
def test_a_model_that_there_is_not_is_refused(name: str) -> None:
    assert refused(name, a_layout()) == []
    assert refused(name, a_layout(gpu="A100-81GB")) != []


def test_an_editor_offers_the_profiles_of_all_models() -> None:
    names = schema("MigLayout")["definitions"]["MigLayoutSpec"]["properties"]["instances"]["anyOf"][0]["propertyNames"]

    assert {profile.name for gpu in load().all() for profile in gpu.profiles} == {*names["anyOf"][0]["enum"]}


@pytest.mark.parametrize("profile", ["1g.31gb+me", "7c.7g.80gb", "2g.48gb-me", "9g.999gb"])
def test_a_name_that_some_driver_may_report_is_taken(profile: str) -> None:
    assert refused("policy", a_layout(instances=f"{{{profile}: 1}}")) == []


@pytest.mark.parametrize("profile", ["3g40gb", "3g.40gb.me", "mig-3g.40gb", "3G.40GB", "x3g.40gb"])
def test_a_name_that_is_no_profiles_is_refused(profile: str) -> None:
    assert refused("policy", a_layout(instances=f"{{{profile}: 1}}")) != []


def test_an_overlay_may_remove_an_instance() -> None:
    assert refused("overlay", a_layout(instances="{3g.40gb: null, 1g.10gb: 7}")) == []
    assert refused("policy", a_layout(instances="{3g.40gb: null, 1g.10gb: 7}")) != []


def test_units_are_offered_and_none_is_refused() -> None:
    unit = schema("Tenant")["definitions"]["Quota"]["properties"]["unit"]["anyOf"][0]

    assert unit["type"] == "string"
    assert unit["examples"][:3] == ["gpu", "shared", "fraction"]
    assert "3g.40gb" in unit["examples"]
    assert "enum" not in unit


def test_no_word_is_left_to_the_reader() -> None:
    assert "'format'" not in str(schema("policy")) + str(schema("overlay"))


@every(ACCEPTED)
def test_an_editor_refuses_nothing_that_is_accepted(case: str) -> None:
    documents, _ = parse(SourceFile(case, (CASES / case).read_text()), strict=False)
    policies = [item.data for item in documents if str(item.data.get("apiVersion")).startswith("gpuplan.dev/")]

    assert [error.message for policy in policies for error in validator("overlay").iter_errors(policy)] == []
