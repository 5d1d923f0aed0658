"""`tools/prose.py` finds sentences that are hard to read, in pages and in the texts of the code."""

from __future__ import annotations

from pathlib import Path

import prose
import pytest

LONG = "Pods wait " + "and wait " * 14 + "here."


@pytest.mark.parametrize(
    ("text", "offences"),
    [
        ("What runs is kept.", ["opening"]),
        ("Running pods stay.", []),
        ("What runs here?", []),
        ("- [What rolls](what-rolls.md): pods that restart.", []),
        ("- What [rolls](what-rolls.md) is listed.", ["opening"]),
        ("- Whatever Argo CD applies is in Git.", ["opening"]),
        ("| kind | of a pool |\n|---|---|\n| Pool | nodes |\n", ["opening"]),
        ("If it is one that they know, this is no other.", ["pronouns"]),
        ("If it is the pool that they know, gpuplan keeps this.", ["pronouns"]),
        ("If a pool is one that users know, gpuplan keeps it.", []),
        (LONG, ["long"]),
        (LONG.replace("Pods ", "", 1).replace("wait", "Wait", 1), []),
        ("Pods wait. " + LONG[:90] + ".", []),
        (f"```console\n{LONG}\n```\nPods wait.\n", []),
        (f"# {LONG}\n\nPods wait.\n", []),
        ("See `that it is one that they` know.", []),
    ],
)
def test_a_page_has_these_offences(text: str, offences: list[str], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    assert [offence for sentence in prose.sentences_of(page) for offence in sentence.offences] == offences


@pytest.mark.parametrize(
    ("code", "offences"),
    [
        ('label = "what a node has, the reserve included"', ["opening"]),
        ('label = f"what {node} has, the reserve of it included"', ["opening"]),
        ('label = "all of a node, the reserve included"', []),
        ('"""What a module of the product is for."""', []),
        ('names = "what is a name that it has".split()', []),
        ('pattern = regex("that is a pattern and no text")', []),
        ('label = "what is short"', []),
    ],
)
def test_a_module_has_these_offences(code: str, offences: list[str], tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(code, encoding="utf-8")
    assert [offence for sentence in prose.texts_of(module) for offence in sentence.offences] == offences


def test_lines_are_those_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Pods wait.\n\n```\ncode\n```\n\nPods run. What\nruns is kept.\n", encoding="utf-8")
    assert [(sentence.line, sentence.offences) for sentence in prose.sentences_of(page)] == [
        (1, []),
        (7, []),
        (7, ["opening"]),
    ]
