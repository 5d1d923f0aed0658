"""Whoever reads the README, the documentation's home or the tutorial finds every guide and every kind from there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click import Context

from gpuplan.cli.main import main
from gpuplan.compiler.policy import KINDS
from tests.docs.pages import DOCS, REPOSITORY, blocks_of, prose_of

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
_LINK = re.compile(r"\[[^\]]*\]\(([^)#:\s]+\.md)(?:#[^)]*)?\)")


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


@pytest.mark.parametrize("start", STARTS, ids=lambda path: path.name)
def test_no_link_leads_nowhere(start: Path) -> None:
    assert {page.name for page in linked(start) if not page.is_file()} == set()


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
