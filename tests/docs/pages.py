"""The pages of the documentation, and the fenced blocks in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
GENERATED = ("catalog.md", "cli.md", "fields/", "rules/")
"""What tools/generate.py writes below docs/; its examples are test cases already."""

_FENCE = re.compile(r"^```(?P<language>\w+)(?P<options>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    ``title`` names a file: what a policy or a diff is written to, or what is shown of ``out/``. ``needs`` says what the
    commands need that a test does not have (a ``cluster``, the ``network``): their form is checked, they are not run.
    ``exit`` is the last command's exit code where it is not 0.
    """

    page: Path
    line: int
    language: str
    options: Mapping[str, str]
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(REPOSITORY).as_posix()}:{self.line}"


def by_hand() -> list[Path]:
    """The pages of docs/ that people write."""
    return sorted(page for page in DOCS.rglob("*.md") if not page.relative_to(DOCS).as_posix().startswith(GENERATED))


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page, text.count("\n", 0, fence.start()) + 1, fence["language"], _options(fence["options"]), fence["text"]
        )
        for fence in _FENCE.finditer(text)
    ]


def prose_of(page: Path) -> str:
    """The page without its blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the site and GitHub spell them."""
    headings = re.findall(r"^#+ (.+)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def _options(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in shlex.split(text))}
