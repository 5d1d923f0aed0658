"""Whoever reads the README, the documentation's home or the tutorial finds every guide and every kind from there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from click import Context

from gpuplan.cli.main import main
from gpuplan.compiler.policy import KINDS
from tests.docs.pages import DOCS, REPOSITORY, anchors, blocks_of, by_hand, prose_of

README = REPOSITORY / "README.md"
HOME = DOCS / "index.md"
STARTS = (README, HOME, DOCS / "tutorial.md")
CLICKS = 2
GUIDES = {
    *(DOCS / "how-to").glob("*.md"),
    *(DOCS / "explanation").glob("*.md"),
    DOCS / "admission-rules.md",
    DOCS / "catalog.md",
    DOCS / "fixed-fields.md",
    DOCS / "from-red-hat-overlays.md",
    DOCS / "rules/index.md",
    DOCS / "schedulers.md",
}
LONGEST = 12
"""The most entries of a list that is still read as a whole."""
_LINK = re.compile(r"\[[^\]]*\]\(([^)#:\s]+\.md)(?:#[^)]*)?\)")
_ANCHOR = re.compile(r"\[[^\]]*\]\(([^)#:\s]*)#([^)\s]+)\)")

_NAMED = re.compile(r"(?<![\w/])docs/(?:how-to|explanation)/[\w-]+\.md")


def linked(page: Path) -> set[Path]:
    """The pages that a page's text leads to."""
    return {(page.parent / link).resolve() for link in _LINK.findall(prose_of(page))}


def reached(start: Path, clicks: int) -> set[Path]:
    """The pages that can be read after so many clicks."""
    pages = {start}
    for _ in range(clicks):
        pages |= {there for page in pages if page.is_file() for there in linked(page)}
    return pages


@pytest.mark.parametrize("start", STARTS, ids=lambda path: path.name)
def test_every_guide_is_two_clicks_away(start: Path) -> None:
    missed = GUIDES - reached(start, CLICKS)

    assert {page.relative_to(DOCS).as_posix() for page in missed} == set()


def test_the_home_leads_to_every_guide_at_once() -> None:
    assert {page.relative_to(DOCS).as_posix() for page in GUIDES - linked(HOME)} == set()


@pytest.mark.parametrize("page", [*by_hand(), *REPOSITORY.glob("*.md")], ids=lambda path: path.name)
def test_no_link_leads_nowhere(page: Path) -> None:
    missing = {there.name for there in linked(page) if not there.is_file()}
    targets = [
        ((page.parent / there).resolve() if there else page, part) for there, part in _ANCHOR.findall(prose_of(page))
    ]
    lost = {f"{there.name}#{part}" for there, part in targets if there.is_file() and part not in anchors(there)}

    assert missing | lost == set()


def lists_of(entry: object) -> list[list[object]]:
    """The lists of the navigation, one for each group."""
    match entry:
        case list():
            return [entry, *(inner for item in entry for inner in lists_of(item))]
        case dict():
            return [inner for item in entry.values() for inner in lists_of(item)]
        case _:
            return []


def test_the_navigation_names_every_guide_once_in_short_groups() -> None:
    groups = lists_of(yaml.safe_load((DOCS / ".nav.yml").read_text(encoding="utf-8"))["nav"])
    named = [item for group in groups for item in group if isinstance(item, str)]
    guides = {page.relative_to(DOCS).as_posix() for page in by_hand() if page.parent.name not in ("adr", "proof")}

    assert [group for group in groups if len(group) > LONGEST] == []
    assert sorted(
        name for name in named if "*" not in name and name not in ("cli.md", "rules/index.md", "catalog.md")
    ) == sorted(guides)


@pytest.mark.parametrize("page", [README, HOME, DOCS / "schemas.md"], ids=lambda path: path.name)
def test_every_kind_is_named(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert {kind for kind in KINDS if not re.search(rf"[`\[]{kind}[`\]]", text)} == set()


def test_the_readme_shows_the_commands_of_a_week() -> None:
    commands = "\n".join(block.text for block in blocks_of(README))
    shown = set(re.findall(r"^gpuplan ([a-z]+)", commands, re.MULTILINE))

    assert (
        {"init", "validate", "show", "build", "diff", "rollout", "report"}
        <= shown
        <= {*main.list_commands(Context(main))}
    )


def test_the_home_leads_to_the_fields_of_every_kind() -> None:
    assert {DOCS / f"fields/{kind}.md" for kind in KINDS} <= linked(HOME)


def test_links_are_told_from_other_text(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "[a](a.md), [b\nc](b/c.md#part), [d](https://example.com/d.md) and [`e`]\n```text\n[f](f.md)\n```\n"
    )

    assert linked(page) == {tmp_path / "a.md", tmp_path / "b/c.md"}


def test_the_site_has_the_files_that_its_pages_load() -> None:
    site = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))
    loaded = [DOCS / name for name in (*site["extra_css"], *site["extra_javascript"])]

    assert loaded
    assert [path.name for path in loaded if not path.is_file()] == []


def test_pages_that_findings_and_help_name_are_there() -> None:
    sources = [path for path in (REPOSITORY / "gpuplan").rglob("*") if path.suffix in (".py", ".md", ".yaml", ".j2")]
    named = {name for path in sources for name in _NAMED.findall(path.read_text(encoding="utf-8"))}

    assert len(named) > 10
    assert {name for name in named if not (REPOSITORY / name).is_file()} == set()
