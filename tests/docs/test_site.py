"""The site can be built, has every page, and loads nothing from elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browsers import grave_findings
from tests.docs.pages import DOCS, REPOSITORY, by_hand

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.skipif(find_spec("zensical") is None, reason="`make docs` installs what builds the site")

_LOADED = re.compile(r"""<(?:script|img|iframe|link)[^>]*(?:src|href)=["'](https?://[^"']+)""")
_IN_NAVIGATION = re.compile(r'<a href="([^"]*)"[^>]*class="md-nav__link')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(REPOSITORY / "mkdocs.yml", folder)
    shutil.copytree(DOCS, folder / "docs")
    done = build(folder)
    assert done.returncode == 0, done.stdout
    return folder / "build/site"


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )


def test_every_page_that_people_write_is_in_the_navigation(site: Path) -> None:
    start = (site / "index.html").read_text(encoding="utf-8")
    shown = {link.removeprefix("./").strip("/") for link in _IN_NAVIGATION.findall(start)}
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in by_hand()} - {"index"}
    assert pages - shown == set()


def test_every_rule_has_a_page_that_the_search_finds(site: Path) -> None:
    found = (site / "search.json").read_text(encoding="utf-8")
    codes = {page.stem for page in (DOCS / "rules").glob("GPU*.md")}
    assert {code for code in codes if f"rules/{code}/" not in found} == set()


def test_blocks_are_shown_as_blocks(site: Path) -> None:
    pages = [page.relative_to(site).as_posix() for page in site.rglob("*.html") if "```" in page.read_text("utf-8")]
    assert pages == []


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    loaded = {url for page in site.rglob("*.html") for url in _LOADED.findall(page.read_text(encoding="utf-8"))}
    assert loaded == set()


def test_a_link_that_leads_nowhere_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "mkdocs.yml").write_text("site_name: test\nvalidation: {not_found: warn}\n")
    (tmp_path / "docs/index.md").write_text("[gone](gone.md)\n")
    assert build(tmp_path).returncode != 0


SHOWN = [
    "",
    "start",
    "tutorial",
    "how-to/import-a-cluster",
    "fields/Pool",
    "rules",
    "rules/GPU203",
    "cli",
    "schedulers",
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_can_be_read_by_everybody(browser: Browser, site: Path, width: int, scheme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    found = {}
    for name in SHOWN:
        page.goto((site / name / "index.html").as_uri())
        too_wide = page.evaluate("document.documentElement.scrollWidth") > width
        found[name] = [*grave_findings(page), *(["too wide"] if too_wide else [])]
    page.close()
    assert found == {name: [] for name in SHOWN}


def test_the_list_of_rules_shows_those_with_the_typed_words(browser: Browser, site: Path) -> None:
    page = browser.new_page()
    page.goto(f"{(site / 'rules/index.html').as_uri()}?q=kueue")
    rows = page.locator(".md-content tbody tr")
    assert 0 < rows.filter(visible=True).count() < rows.count()

    page.get_by_label("Show rules with").fill("GPU203")
    shown = rows.filter(visible=True)
    assert shown.count() == 1
    headings = page.locator(".md-content h2").filter(visible=True)
    assert headings.count() == 1
    assert shown.bounding_box()["y"] - headings.bounding_box()["y"] < 200  # type: ignore[index]

    page.get_by_label("Show rules with").fill("no-such-word")
    assert page.locator(".rows-filter [role=status]").inner_text() == "No rule has all of these words."
    page.close()
