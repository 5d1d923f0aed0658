"""The site can be built, has every page, and loads nothing from elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, REPOSITORY, by_hand

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
