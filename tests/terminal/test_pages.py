"""Pages that explain: rules, fields, GPU models, schemas."""

from __future__ import annotations

import json

import jsonschema
import pytest
from syrupy.assertion import SnapshotAssertion

from gpuplan.cli.views.explain import explain, rule_page, rules_json, rules_table
from gpuplan.compiler.base.diagnostics import GpuplanError, Rule
from gpuplan.compiler.catalog import load
from gpuplan.compiler.pipeline import rules
from gpuplan.compiler.policy.fields import field_paths
from gpuplan.compiler.policy.models import KINDS as MODELS
from gpuplan.terminal import catalog, options, schemas
from gpuplan.terminal.text import PLAIN, Theme
from tests.every import every
from tests.terminal.builders import DOES_NOT_FIT, LIMIT, SHORT_LIMIT, UNREADABLE

# --- Rules -------------------------------------------------------------------------------------------------------


def test_a_rule_has_a_page(snapshot: SnapshotAssertion) -> None:
    assert rule_page(DOES_NOT_FIT, PLAIN) == snapshot


def test_a_rule_that_cannot_be_ignored_says_so() -> None:
    assert "ignore[GPU203]" in rule_page(DOES_NOT_FIT, PLAIN)
    assert "cannot be ignored" in rule_page(UNREADABLE, PLAIN)


def test_headings_and_code_stand_out_in_colour() -> None:
    page = rule_page(DOES_NOT_FIT, Theme(color=True))

    assert "\x1b[1mWhy\x1b[0m" in page
    assert "\x1b[1;36mgpuplan catalog\x1b[0m" in page


def test_rules_are_listed_for_people_and_for_programs() -> None:
    assert rules_table((SHORT_LIMIT,), PLAIN).splitlines() == [
        "CODE    SEVERITY  NAME                   MEANING",
        "GPU401  warning   limit-below-guarantee  A limit is below the guarantee.",
    ]
    assert json.loads(rules_json((SHORT_LIMIT,)))["rules"] == [
        {
            "code": "GPU401",
            "name": "limit-below-guarantee",
            "severity": "warning",
            "ignorable": True,
            "summary": "A limit is below the guarantee.",
            "docs": "A limit is below the guarantee.",
        }
    ]


@pytest.mark.parametrize("subject", ["GPU101", "gpu101", "unknown-reference"])
def test_a_rule_is_explained_by_code_and_by_name(subject: str) -> None:
    assert explain(subject, PLAIN).startswith("error[GPU101] unknown-reference\n")


@every(rules(), lambda rule: rule.code)
def test_every_rule_can_be_explained(rule: Rule) -> None:
    assert explain(rule.code, PLAIN)


# --- Fields ------------------------------------------------------------------------------------------------------


def test_a_field_is_explained_with_the_fields_in_it(snapshot: SnapshotAssertion) -> None:
    assert explain("Pool.spec.sharing.timeSlicing", PLAIN) == snapshot


def test_the_values_of_a_field_are_listed() -> None:
    assert "One of single, mixed." in explain("Pool.spec.sharing.mig.strategy", PLAIN)


def test_prose_is_wrapped_to_the_terminal() -> None:
    page = explain("Tenant.spec.quotas", Theme(width=60))

    assert max(map(len, page.splitlines())) <= 60


@every(field_paths())
def test_every_field_can_be_explained(path: str) -> None:
    assert explain(path, PLAIN).startswith(path)


# --- What there is not -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subject", "near"),
    [("Pool.spec.shering", "Pool.spec.sharing"), ("A100", "A100-40GB"), ("unknown-referense", "unknown-reference")],
)
def test_a_misspelt_word_gets_the_nearest(subject: str, near: str) -> None:
    with pytest.raises(GpuplanError, match=f"nothing is called `{subject}`") as caught:
        explain(subject, PLAIN)

    assert f"`{near}`" in caught.value.hint


def test_a_word_like_no_other_gets_the_lists() -> None:
    with pytest.raises(GpuplanError) as caught:
        explain("日本", PLAIN)

    assert caught.value.hint.startswith("`gpuplan explain rules` and `gpuplan explain gpus` list rules and GPU models")


# --- Catalog -----------------------------------------------------------------------------------------------------


def test_a_model_has_a_page(snapshot: SnapshotAssertion) -> None:
    assert catalog.gpu_page(load().get("A30-24GB"), PLAIN) == snapshot


def test_a_model_is_explained_however_it_is_spelt() -> None:
    assert explain("a30-24gb", PLAIN) == catalog.gpu_page(load().get("A30-24GB"), PLAIN)


def test_a_model_without_mig_says_what_works_instead() -> None:
    assert "time-sliced, or shared through MPS" in catalog.gpu_page(load().get("L4-24GB"), PLAIN)


def test_a_model_whose_profiles_are_not_known_says_why() -> None:
    gpu = next(gpu for gpu in load().all() if gpu.incomplete_reason)

    assert f"its layouts cannot be judged: {gpu.incomplete_reason}" in catalog.gpu_page(gpu, PLAIN)


def test_all_models_are_listed() -> None:
    lines = catalog.gpu_table(load().all(), PLAIN).splitlines()

    assert [line.split()[0] for line in lines[1:]] == list(load().ids())


def test_the_catalog_is_there_for_programs_too() -> None:
    (gpu,) = json.loads(catalog.gpus_json([load().get("A30-24GB")]))["gpus"]

    assert (gpu["id"], gpu["memory_gib"], gpu["mig"]["memory_slices"]) == ("A30-24GB", 24, 4)
    assert gpu["mig"]["profiles"][0]["starts"] == [0, 1, 2, 3]
    assert json.loads(catalog.gpus_json([load().get("L4-24GB")]))["gpus"][0]["mig"] is None


# --- Schemas -----------------------------------------------------------------------------------------------------


def test_there_is_a_schema_for_every_kind() -> None:
    assert tuple(MODELS) == options.KINDS


@pytest.mark.parametrize("name", options.SCHEMAS)
def test_every_schema_is_one(name: str) -> None:
    jsonschema.Draft7Validator.check_schema(json.loads(schemas.schema_text(name)))


def test_a_schema_that_is_not_there_is_trouble() -> None:
    with pytest.raises(GpuplanError, match="no schema `Node`"):
        schemas.schema("Node")


def test_a_report_is_not_a_policy() -> None:
    """The schemas tell apart what they are for."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"findings": [LIMIT.code]}, schemas.schema("policy"))
