"""The script that writes the generated part of docs/."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import jsonschema_rs
import pytest
import yaml

from gpuplan.terminal.options import GIVEN, KINDS

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", REPOSITORY / "tools/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_writing_makes_everything_current(generate: ModuleType, tmp_path: Path) -> None:
    wanted = {"cli.md": "a\n", "rules/GPU001.md": "b\n"}
    assert generate.stale(tmp_path, wanted) == ["cli.md", "rules/GPU001.md"]

    generate.write(tmp_path, wanted)

    assert generate.stale(tmp_path, wanted) == []
    assert (tmp_path / "rules/GPU001.md").read_text() == "b\n"


def test_pages_of_rules_that_are_gone_go_and_hand_written_ones_stay(generate: ModuleType, tmp_path: Path) -> None:
    generate.write(tmp_path, {"rules/GPU001.md": "b\n"})
    (tmp_path / "tutorial.md").write_text("by hand\n")

    assert generate.stale(tmp_path, {}) == ["rules/GPU001.md"]
    generate.write(tmp_path, {})

    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["tutorial.md"]


def test_the_example_of_a_rule_is_its_first_case(generate: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "fail-b.yaml").write_text("second: 1\n")
    (tmp_path / "fail-a.yaml").write_text("first: 1 # error: GPU001 no\n")
    (tmp_path / "ok-a.yaml").write_text("fine: 1\n")

    example = generate.find_example(tmp_path)

    assert example == ("first: 1 # error: GPU001 no\n", "fine: 1\n")


def test_an_example_shows_messages_and_not_what_else_a_case_states(generate: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "fail-a.yaml").write_text(
        "a: 1 # related: GPU001 there; error: GPU001 no | help: write 2; note: GPU002 so\n"
        "# | label: a | b\n"
        "  # | help: write 3\n"
        "b: 2 # related: GPU001 here\n"
        "c: 3 # text\n"
    )

    assert generate.find_example(tmp_path)[0] == "a: 1 # error: GPU001 no; note: GPU002 so\nb: 2\nc: 3 # text\n"


def test_a_case_of_several_files_names_them(generate: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "fail-a/policies").mkdir(parents=True)
    (tmp_path / "fail-a/policies/a.yaml").write_text("a: 1\n")
    (tmp_path / "fail-a/policies/b.yaml").write_text("b: 1\n")

    assert generate.find_example(tmp_path)[0] == "# policies/a.yaml\na: 1\n---\n# policies/b.yaml\nb: 1\n"


def test_a_case_that_is_no_text_is_shown_as_far_as_it_goes(generate: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "fail-a.yaml").write_bytes(b"a: caf\xe9\x00\n")

    assert generate.find_example(tmp_path)[0] == "a: caf\ufffd\u2400\n"


def test_there_is_a_page_for_everything(generate: ModuleType) -> None:
    documents = generate.documents()

    assert {"catalog.md", "cli.md", "fields/Pool.md", "rules/index.md", "rules/GPU101.md"} <= documents.keys()
    assert "schema/policy.json" in documents
    assert all(text.endswith("\n") and not text.endswith("\n\n") for text in documents.values())


# --- How vulnerabilities are reported ------------------------------------------------------------------------------

PAGE = "Above.\n<!-- contact -->\nas it was\n<!-- /contact -->\nBelow.\n"


@pytest.mark.parametrize("contact", ["security@example.com", "https://example.com/security"])
def test_the_contact_is_named(generate: ModuleType, contact: str) -> None:
    page = f"Above.\n<!-- contact -->\nWrite to <{contact}>.\n<!-- /contact -->\nBelow.\n"

    assert generate.with_contact(PAGE, contact) == page


def test_without_a_contact_the_host_is_named(generate: ModuleType) -> None:
    page = generate.with_contact(PAGE, "")

    assert "Use the private vulnerability reporting of the place that hosts this repository" in page
    assert "<>" not in page
    assert page.endswith("<!-- /contact -->\nBelow.\n")


def test_the_security_page_says_what_the_project_says(generate: ModuleType) -> None:
    page = (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8")

    assert generate.documents()["../SECURITY.md"] == page
    assert generate.with_contact(page, "security@example.com") != page


@pytest.mark.parametrize("kind", [*KINDS, *GIVEN])
def test_the_example_of_a_kind_is_what_its_schema_says(generate: ModuleType, kind: str) -> None:
    schema = json.loads((REPOSITORY / f"docs/schema/{kind}.json").read_text(encoding="utf-8"))

    jsonschema_rs.validator_for(schema).validate(yaml.safe_load(generate.find_document(kind)))


def test_each_heading_of_the_rules_has_some(generate: ModuleType) -> None:
    page = generate.documents()["rules/index.md"]
    headings = yaml.safe_load((REPOSITORY / "tools/rules.yaml").read_text(encoding="utf-8"))

    assert re.findall("^## (.*)\n\n.*\n.*\n", page, re.MULTILINE) == list(headings.values())
    assert set(re.findall(r"^\| \[(GPU\d+)\]", page, re.MULTILINE)) == {
        path.stem for path in (REPOSITORY / "docs/rules").glob("GPU*")
    }
