"""Pages of rules that are files: each belongs to a rule, and none is read before it is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpuplan.compiler.base.diagnostics import Family, Rule, RulePage, Severity, read_page
from gpuplan.compiler.pipeline import rules
from tests.cli.platforms import a_platform
from tests.every import every

PACKAGE = Path(__file__).resolve().parents[1] / "gpuplan"
FILES = sorted(PACKAGE.glob("*/*/rules/*.md"))
PAGE = """\
---
name: object-written-twice
severity: warning
family: objects
---
The same object comes out twice.

## Why
A line of dashes ends nothing here:

---
"""


def test_a_page_is_fields_above_and_markdown_below(tmp_path: Path) -> None:
    (tmp_path / "GPU911.md").write_text(PAGE)

    assert Rule("GPU911", tmp_path).page == RulePage(
        "object-written-twice",
        Severity.WARNING,
        Family.OBJECTS,
        "The same object comes out twice.\n\n## Why\nA line of dashes ends nothing here:\n\n---\n",
        ignorable=True,
    )


def test_what_is_no_word_of_a_field_is_a_bug(tmp_path: Path) -> None:
    (tmp_path / "GPU911.md").write_text(PAGE.replace("warning", "severe"))

    with pytest.raises(ValueError, match="'severe' is not a valid Severity"):
        read_page(tmp_path / "GPU911.md")


def test_a_rule_that_cannot_be_ignored_says_so(tmp_path: Path) -> None:
    (tmp_path / "GPU911.md").write_text(PAGE.replace("family:", "ignorable: false\nfamily:"))

    assert not Rule("GPU911", tmp_path).ignorable


def test_each_file_is_the_page_of_a_rule_and_each_such_rule_has_one() -> None:
    assert sorted(rule.source / f"{rule.code}.md" for rule in rules() if isinstance(rule.source, Path)) == FILES


@every(FILES, lambda file: file.stem)
def test_a_file_has_the_fields_that_are_read_and_no_others(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").split("---\n")[1].splitlines()
    fields = [line.partition(": ")[0] for line in lines]

    assert fields in (["name", "severity", "family"], ["name", "severity", "family", "ignorable"])
    assert "ignorable: true" not in lines, "leave it out"


def test_a_run_that_finds_nothing_reads_no_page(tmp_path: Path) -> None:
    program = """
import sys
opened = []
sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if event == "open" else None)
import gpuplan
assert gpuplan.build(sys.argv[1]).report.diagnostics == ()
print(*[path for path in opened if path.endswith(".md")])
"""
    command = [sys.executable, "-c", program, str(a_platform(tmp_path))]

    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "\n"
