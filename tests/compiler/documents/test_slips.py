"""A slip in YAML is answered with the line as it should be."""

from __future__ import annotations

import pytest

from gpuplan.compiler.base.diagnostics import Finding
from gpuplan.compiler.documents import read_text
from tests.compiler.documents.reading import place


def only(text: str) -> Finding:
    _, (found,) = read_text("policies/a.yaml", text)
    return found.finding


@pytest.mark.parametrize(
    ("item", "help_"),
    [
        ("  -pool: a\n   guaranteed: 1\n", "write `- pool: a`"),
        ("  -pool: a\n    guaranteed: 1\n", "write `- pool: a`"),
        ("  -pool: a\n   guaranteed: 1\n  -pool: b\n   guaranteed: 2\n", "write `- pool: a`"),
    ],
)
def test_an_item_without_a_blank_behind_its_dash(item: str, help_: str) -> None:
    found = only(f"quotas:\n{item}")
    assert (found.message, found.help) == ("`-` has no space behind it", help_)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("a:\n  - b: 1\n\u00a0\u00a0\u00a0\u00a0c: 1\n  - b: 2\n", "3:1"),
        ("a: 1\nb:\u00a02\nc: 3\n", "2:3"),
        ("a:\n  - b: 1\n    c:\u202f1\n", "3:7"),
    ],
)
def test_a_blank_that_was_copied_from_a_page_is_shown_where_it_is(text: str, at: str) -> None:
    found = only(text)
    assert found.message == "a blank that is not a plain one is a letter to YAML"
    assert found.help == "write plain blanks in this line"
    assert place(found.at) == at


@pytest.mark.parametrize(
    "text", ["a: [${TEAM}]\n", "a: {b: ${N}}\n", "a: {{ .Values.a }}\n", "a: [{{ team }}]\n", "a: {b: {{ c }}}\n"]
)
def test_a_variable_is_no_value(text: str) -> None:
    assert only(text).help.startswith("policies have no variables: write the value here")


@pytest.mark.parametrize("codes", ["GPU411", "GPU411, GPU203"])
def test_an_ignore_without_a_reason_is_shown_with_its_own_codes(codes: str) -> None:
    found = only(f"a: 1 # gpuplan: ignore[{codes}]\n")
    assert found.help == f"write `# gpuplan: ignore[{codes}] reason`, with the reason in its place"
