"""After a document that is no YAML the reader goes on at the next one, at its own lines."""

from __future__ import annotations

import time

import pytest
import yaml

from gpuplan.compiler.base.diagnostics import SourceFile
from gpuplan.compiler.documents import Reading, find_ignores, read_text
from gpuplan.compiler.documents.stretches import start_of_document
from tests.compiler.documents.reading import read

BROKEN = "kind: Pool\nmetadata:\n  name: b\n   x: [\n"


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_lines_are_those_of_the_file(line_end: str) -> None:
    text = f"a: 1\n---\n{BROKEN}--- # next\nkind: A\nmetadata: {{name: c}}\nspec: {{x: yes}}\n".replace("\n", line_end)

    documents, found = read_text("policy.yaml", text)

    assert [(item.code, item.finding.at.locate().span.start.line) for item in found] == [("GPU001", 6), ("GPU015", 10)]
    assert documents[-1].locate(("spec", "x")).span.start == (10, 11)


def test_of_a_broken_document_its_kind_and_name_are_known() -> None:
    (document,), _ = read_text("policy.yaml", BROKEN)

    assert (document.kind, document.name, document.reading) == ("Pool", "b", Reading.LOST)


@pytest.mark.parametrize("text", ["[\n", f"{BROKEN}kind: Tenant\n", "kind: Pool\nmetadata: [\n"])
def test_or_nothing_is(text: str) -> None:
    documents, _ = read_text("policy.yaml", text)

    assert documents == ()


def test_a_directive_belongs_to_the_document_below_it() -> None:
    data, findings = read("a: [\n...\n%YAML 1.2\n---\nb: 2\n")

    assert data == [{"b": 2}]
    assert [finding.split()[1] for finding in findings] == ["GPU001"]


def test_comments_below_a_broken_document_count() -> None:
    text = 'a: "x\n# gpuplan: ignore[GPU203] text\n---\nb: 1 # gpuplan: ignore[GPU301] known\n'

    assert [(found.line, found.codes) for found in find_ignores(SourceFile("policy.yaml", text))] == [(4, ("GPU301",))]


def test_a_key_said_twice_is_no_second_document() -> None:
    _, findings = read("kind: A\nmetadata: {name: a}\nkind: B\n")

    assert [finding.split()[1] for finding in findings] == ["GPU007"]


def test_many_broken_documents_take_no_longer_than_as_many_whole_ones() -> None:
    whole = "---\nkind: A\nmetadata: {name: b}\nspec: {}\n" * 2_000
    broken = ("---\nkind: A\nmetadata: {name: b}\nspec: {}\n" + f"---\n{BROKEN}") * 1_000

    def seconds(text: str) -> float:
        start = time.process_time()
        read_text("policy.yaml", text)
        return time.process_time() - start

    assert seconds(broken * 8) < 20 * seconds(whole * 2)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: 1\n",
        "---\n",
        "---\na: 1\n",
        "a: 1\n---\n",
        "--- {a: 1}\n",
        "---a: 1\n---b: 1\n",
        "a: 1\n...\n",
        " a: 1\n...\n--- {b: 1}\n",
        "a: 1\n...\n---\nb: 1\n",
        "a: 1\n...\n# c\n\n...\n---\nb: 1\n",
        "%YAML 1.2\n---\na: 1\n...\n%YAML 1.2\n---\nb: 1\n",
        "a: |\n  ---\n  ...\n",
        "---\n---\n---\n",
        "a: 1\n---",
        "a: 1\n...",
    ],
)
def test_there_are_as_many_documents_as_the_parser_says(text: str, line_end: str) -> None:
    text = text.replace("\n", line_end)
    number = sum(isinstance(event, yaml.DocumentStartEvent) for event in yaml.parse(text, Loader=yaml.CSafeLoader))

    assert start_of_document(text, number) is None
    assert number == 0 or start_of_document(text, number - 1) is not None
