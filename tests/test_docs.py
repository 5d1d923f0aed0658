"""What the documentation says is so: its links lead somewhere, what it names exists, the README's commands run.

Pages below docs/ are followed from top to bottom by tests/docs/.
"""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from gpuplan.cli.main import main
from gpuplan.compiler.base.diagnostics import Severity
from gpuplan.compiler.checks import run as run_checks
from tests.cli.runs import run, scrub
from tests.docs.pages import by_hand
from tests.every import every
from tests.plans import resolve_text

REPOSITORY = Path(__file__).parents[1]
ROOT = sorted(REPOSITORY.glob("*.md"))
BY_HAND = [*ROOT, *by_hand()]
PAGES = sorted([*ROOT, *REPOSITORY.glob("docs/**/*.md")])

_BLOCK = re.compile(r"^```(\w+)[^\n`]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_PATH = re.compile(r"`((?:docs|gpuplan|overlays|policies|tests|tools)/[\w./-]*)`")
_CODE = re.compile(r"`(gpuplan [^`\n]+)`")


def name_of(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(pages: list[Path], language: str) -> list[Block]:
    found = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for match in _BLOCK.finditer(text):
            line = text[: match.start()].count("\n") + 1
            found.append(Block(name_of(page), line, match[1], match[2]))
    return [block for block in found if block.language == language]


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example platform, to be changed."""
    scrub(monkeypatch)
    for folder in ("policies", "overlays", "out"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    return tmp_path


# --- Links -------------------------------------------------------------------------------------------------------


def broken_links(page: Path) -> list[str]:
    """The links to files that do not exist and to headings that the page does not have."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    broken = []
    for link in _LINK.findall(text):
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        is_dead = not target.exists() or (heading and heading not in anchors(target))
        if "://" not in link and is_dead:
            broken.append(link)
    return broken


def anchors(page: Path) -> set[str]:
    """What GitHub calls the headings: lower case, words joined by `-`, signs left out."""
    headings = _HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every(PAGES, name_of)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_a_link_that_leads_nowhere_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n[a](page.md) [b](#a-page) [c](#another) [d](gone.md) [e](https://example.com)\n")
    assert broken_links(page) == ["#another", "gone.md"]


@every(ROOT, name_of)
def test_paths_named_in_prose_exist(page: Path) -> None:
    named = _PATH.findall(_BLOCK.sub("", page.read_text(encoding="utf-8")))
    assert [path for path in named if not (REPOSITORY / path).exists() and "GPU249" not in path] == []


# --- Commands ----------------------------------------------------------------------------------------------------


def commands(block: Block) -> list[list[str]]:
    """The words of each line that changes the folder or runs gpuplan, without comments."""
    text = block.text.replace("\\\n", " ")
    lines = [shlex.split(line, comments=True) for line in text.splitlines() if not line.startswith("$")]
    return [words for words in lines if words and words[0] in ("gpuplan", "cd")]


@pytest.mark.parametrize(
    "block", [block for block in blocks(ROOT, "console") if "$ " not in block.text and commands(block)], ids=str
)
def test_commands_run(block: Block, example: Path) -> None:
    here = example
    for command, *arguments in commands(block):
        if command == "cd":
            here = here / arguments[0]
        else:
            done = run(*arguments, cwd=here)
            assert done.code == 0, (arguments, done.err)


@every(BY_HAND, name_of)
def test_commands_named_in_prose_exist(page: Path) -> None:
    words = {text.split()[1] for text in _CODE.findall(page.read_text(encoding="utf-8"))}
    named = {word for word in words if not word.startswith("-")}
    assert named <= set(main.list_commands(click.Context(main)))


def test_the_finding_shown_first_is_what_gpuplan_says(example: Path) -> None:
    [sample] = [block for block in blocks(ROOT, "console") if block.text.startswith("$ ")]
    invocation, _, shown = sample.text.partition("\n")
    layouts = example / "policies/layouts.yaml"
    two_large = "    3g.40gb: 2\n"
    text = layouts.read_text(encoding="utf-8")
    assert text.count(two_large) == 1
    layouts.write_text(text.replace(two_large, f"{two_large}    1g.10gb: 1\n"), encoding="utf-8")

    done = run(*shlex.split(invocation)[2:], cwd=example)

    assert (done.code, done.out.strip()) == (1, shown.strip())


# --- Policies and programs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", blocks(ROOT, "yaml"), ids=str)
def test_policies_are_valid(block: Block) -> None:
    plan, diagnostics = resolve_text(block.text)
    assert plan is not None
    found = (*diagnostics, *run_checks(plan))
    assert [item.finding.message for item in found if item.severity is not Severity.NOTE] == []


@pytest.mark.parametrize("block", blocks(BY_HAND, "python"), ids=str)
def test_programs_run(
    block: Block, example: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = example / "overlays" / "prod" / "cluster.yaml"
    text = cluster.read_text(encoding="utf-8")
    old = re.sub(r"(?m)^( +)kind: kueue.*\n", r"\g<0>\g<1>version: v0.16.0\n", text)
    assert old != text
    cluster.write_text(old, encoding="utf-8")
    monkeypatch.chdir(example)
    exec(compile(block.text, str(block), "exec"), {})  # the reader's program
    assert "overlays/prod/cluster.yaml" in capsys.readouterr().out
