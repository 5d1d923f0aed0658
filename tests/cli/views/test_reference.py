"""The generated part of the documentation."""

from __future__ import annotations

import re

import click
import pytest

from gpuplan.cli.main import main
from gpuplan.cli.views.reference import catalog_document, cli_document, fields_document, rule_document, rules_document
from gpuplan.compiler.catalog import load
from gpuplan.compiler.policy.fields import find_field
from gpuplan.terminal.options import KINDS
from tests.terminal.builders import DOES_NOT_FIT, SHORT_LIMIT


def test_a_rule_page_holds_its_docs_and_an_example() -> None:
    page = rule_document(DOES_NOT_FIT, "a: 1\n", "a: 2\n")

    assert re.findall("^#+ .*", page, re.MULTILINE) == [
        "# GPU203 layout-does-not-fit",
        "## Why",
        "## Instead",
        "## Example",
        "## Exceptions",
        "## See also",
    ]
    assert "Reported:\n\n```yaml\na: 1\n```\n\nFine:\n\n```yaml\na: 2\n```\n" in page


def test_a_rule_without_cases_has_no_empty_example() -> None:
    assert "## Example" not in rule_document(DOES_NOT_FIT)


def test_an_example_that_holds_a_fence_does_not_end_its_block() -> None:
    assert "````yaml\na: '```'\n````\n" in rule_document(DOES_NOT_FIT, "a: '```'\n")


def test_the_list_of_rules_links_to_their_pages() -> None:
    page = rules_document((DOES_NOT_FIT, SHORT_LIMIT), {"GPU200": "MIG layouts", "GPU400": "Quotas"})

    assert page.splitlines()[-1] == (
        "| [GPU401](GPU401.md) | limit-below-guarantee | warning | A limit is below the guarantee. |"
    )
    assert re.findall("^## (.*)", page, re.MULTILINE) == ["MIG layouts", "Quotas"]


def test_a_rule_leads_to_those_beside_it_and_to_all() -> None:
    page = rule_document(DOES_NOT_FIT, near=[SHORT_LIMIT])

    assert page.endswith("- [GPU401 limit-below-guarantee](GPU401.md)\n- [All rules](index.md)\n")


def test_the_command_line_page_has_every_verb() -> None:
    page = cli_document(main)

    verbs = main.list_commands(click.Context(main))
    assert re.findall("^## gpuplan (.*)", page, re.MULTILINE) == verbs
    assert "-h, --help" in page


def links(page: str) -> set[str]:
    return set(re.findall(r"\]\(#([^)]*)\)", page))


def anchors(page: str) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall("^#+ (.*)", page, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("kind", KINDS)
def test_links_between_fields_lead_somewhere(kind: str) -> None:
    field = find_field(kind)
    assert field is not None
    page = fields_document(field, "")

    assert links(page)
    assert links(page) <= anchors(page)


def test_a_field_leads_to_the_rule_that_checks_it() -> None:
    field = find_field("MigLayout")
    assert field is not None
    page = fields_document(field, "kind: MigLayout\n")

    assert page.index("```yaml\nkind: MigLayout\n```") < page.index("**`apiVersion`**")
    assert "Checked by [GPU102](../rules/GPU102.md)." in page


def test_links_between_models_lead_somewhere() -> None:
    page = catalog_document(load().all())

    assert len(links(page)) == len(load().ids())
    assert links(page) <= anchors(page)


def test_a_bar_in_a_layout_is_no_column() -> None:
    page = catalog_document([load().get("A30-24GB")])

    assert {line.count(" | ") for line in page.splitlines() if line.startswith("| ")} == {4, 7}
