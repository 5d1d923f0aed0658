"""Each document as a platform: it is valid, as its objects are, and nothing of the document is forgotten."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.docs.pages import DOCS
from tests.platforms.seeds.platforms import CLUSTERS, NAMES, SEEDS, built

PAGE = DOCS / "from-public-guides.md"
TOLD = {"GPU416", "GPU448"}
"""Warnings that the documents deserve; the page names each."""


@pytest.mark.parametrize(("name", "cluster"), CLUSTERS)
def test_it_is_valid(name: str, cluster: str) -> None:
    report = built(name, cluster).report
    assert report.is_valid
    assert {item.code for item in report.diagnostics if item.severity == "warning"} <= TOLD


# --- What the documents have -------------------------------------------------------------------------------------


PLACES: dict[str, dict[str, list[str]]] = yaml.safe_load((SEEDS / "places.yaml").read_text(encoding="utf-8"))
"""Their places, and the settings of each; the documents themselves are not in this repository."""

NOT_A_POLICY = "not a policy: "


def named(name: str) -> set[str]:
    """What the comments `#: <place or setting>` of a document's platform and of its test name."""
    files = (*(SEEDS / name).rglob("*.yaml"), SEEDS / f"test_{name.replace('-', '_')}.py")
    texts = (path.read_text(encoding="utf-8") for path in files)
    return {said for text in texts for said in re.findall(r"#: (.+)$", text, re.MULTILINE)}


def rows(name: str) -> dict[str, str]:
    """The rows of a document's table: the place, and what became of it."""
    section = PAGE.read_text(encoding="utf-8").partition(f"<!-- {name} -->")[2].partition("\n## ")[0]
    lines = (line.strip("| \n").split(" | ") for line in section.splitlines() if line.startswith("| "))
    cells = [found for found in lines if len(found) > 1 and set(found[0]) != {"-"}]
    assert len({found[0] for found in cells}) == len(cells)
    return {found[0]: found[1] for found in cells[1:]}


def is_left_out(row: str) -> bool:
    """Whether the row is no policy, with the reason."""
    return row.startswith(NOT_A_POLICY) and len(row) > len(NOT_A_POLICY)


def test_all_documents_have_a_list() -> None:
    assert sorted(PLACES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_place_is_a_row(name: str) -> None:
    assert [*rows(name)] == [*PLACES[name]]


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_is_in_a_platform_or_a_test_or_left_out_with_its_reason(name: str) -> None:
    found, left = named(name), {place for place, row in rows(name).items() if is_left_out(row)}
    lacking = {
        place: [said for said in (settings or [place]) if said not in found]
        for place, settings in PLACES[name].items()
        if place not in left
    }
    assert {place: settings for place, settings in lacking.items() if settings} == {}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_named_that_the_document_has_not(name: str) -> None:
    known = {*PLACES[name], *(setting for settings in PLACES[name].values() for setting in settings)}
    assert named(name) - known == set()


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_left_out_that_a_platform_says(name: str) -> None:
    left = {place for place, row in rows(name).items() if is_left_out(row)}
    settings = {setting for place in left for setting in PLACES[name][place]}
    assert (left | settings) & named(name) == set()
