"""Each document as a platform: it is valid, as its objects are, and the page tells of all of it."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import DOCS
from tests.seeds.platforms import CLUSTERS, NAMES, SEEDS, built

PAGE = DOCS / "from-public-guides.md"
TOLD = {"GPU416", "GPU448"}
"""Warnings that the documents deserve; the page names each."""


@pytest.mark.parametrize(("name", "cluster"), CLUSTERS)
def test_it_is_valid(name: str, cluster: str) -> None:
    report = built(name, cluster).report
    assert report.is_valid
    assert {item.code for item in report.diagnostics if item.severity == "warning"} <= TOLD


# --- The page ----------------------------------------------------------------------------------------------------


def places_in_policies(name: str) -> set[str]:
    """What the comments `#: <place>` name."""
    texts = (path.read_text(encoding="utf-8") for path in (SEEDS / name).rglob("*.yaml"))
    return {place for text in texts for place in re.findall(r"#: (.+)$", text, re.MULTILINE)}


def rows(name: str) -> dict[str, str]:
    """The rows of a document's table: the place, and what became of it."""
    section = PAGE.read_text(encoding="utf-8").partition(f"<!-- {name} -->")[2].partition("\n## ")[0]
    lines = (line.strip("| \n").split(" | ") for line in section.splitlines() if line.startswith("| "))
    return {cells[0]: cells[1] for cells in lines if len(cells) > 1 and set(cells[0]) != {"-"}}


NOT_A_POLICY = "not a policy"
LATER = "later"


@pytest.mark.parametrize("name", NAMES)
def test_every_place_in_the_policies_is_a_row(name: str) -> None:
    assert places_in_policies(name) - rows(name).keys() == set()


@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_in_the_policies_or_says_why_not(name: str) -> None:
    found = rows(name)
    said = {place for place, text in found.items() if text.startswith((NOT_A_POLICY, LATER)) or "GPU" in text}
    assert found
    assert found.keys() - {"in the document"} - said - places_in_policies(name) == set()


@pytest.mark.parametrize("name", NAMES)
def test_nothing_stands_in_two_columns(name: str) -> None:
    """What is said by a policy is neither later nor no policy."""
    later = {place for place, text in rows(name).items() if text.startswith((NOT_A_POLICY, LATER))}
    assert later & places_in_policies(name) == set()
