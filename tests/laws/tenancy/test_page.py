"""The page of what tenants cannot do names tests that there are, one at least for each of its rows."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/explanation/what-tenants-cannot-do.md").read_text(encoding="utf-8")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> list[str]:
    _, _, table = PAGE.partition("| a tenant cannot |")
    return [line for line in table.split("\n\n", 1)[0].splitlines()[2:] if line.startswith("| ")]


def test_each_row_names_a_test() -> None:
    assert len(rows()) > 10
    assert [row for row in rows() if not TEST.search(row)] == []


def test_each_test_is_there() -> None:
    missing = [
        f"{path}::{name}"
        for path, name in TEST.findall(PAGE)
        if f"def {name}(" not in (ROOT / path).read_text(encoding="utf-8")
    ]
    assert missing == []
