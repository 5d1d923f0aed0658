"""Rows of `findings.yaml` and the readers that report them name the same values."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Formatter
from typing import Any

from gpuplan.features import live
from gpuplan.features.live.findings import rows
from gpuplan.features.live.rules import RULES

FOLDER = Path(str(live.__file__)).parent
REPORTING = {"report", "say", "about", "gather", "_tell_once"}
OPTIONS = {"related", "notes", "severity", "rule", "at", "also"}
GIVEN = {"label", "help"}
"""Texts that a reader gives where a row has none."""
TABLE = rows()


def reported() -> Iterator[tuple[str, set[str]]]:
    """Yield each row that a reader reports, with the names of the values that the reader gives."""
    for module in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _name(node.func) in REPORTING:
                texts = [arg.value for arg in node.args[:2] if isinstance(arg, ast.Constant) and arg.value]
                values = {keyword.arg for keyword in node.keywords if keyword.arg} - OPTIONS
                if _name(node.func) in ("about", "_tell_once"):
                    values |= {"item"}
                if _name(node.func) == "gather":
                    values |= {"names"}
                yield from ((str(text), values) for text in texts)


def _name(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def places_of(row: Mapping[str, Any]) -> set[str]:
    """Return the names of the values that the texts of a row need."""
    texts = [row["message"], row.get("label", ""), row.get("help", ""), row.get("remark", ""), *row.get("notes", ())]
    fields = [field for text in texts for _, field, _, _ in Formatter().parse(text) if field]
    return {field.partition(".")[0].partition("[")[0] for field in fields}


def test_readers_report_rows_that_there_are_and_all_of_them() -> None:
    assert {row for row, _ in reported()} == TABLE.keys()


def test_readers_give_the_values_that_the_texts_name() -> None:
    wrong = {row: (values, places_of(TABLE[row])) for row, values in reported() if not places_of(TABLE[row]) <= values}
    assert wrong == {}


def test_readers_give_no_value_that_no_text_names() -> None:
    needless = {row: values - places_of(TABLE[row]) - (GIVEN - TABLE[row].keys()) for row, values in reported()}
    assert {row: names for row, names in needless.items() if names - {"item"}} == {}


def test_rows_have_a_rule_and_known_fields() -> None:
    codes = {rule.code for rule in RULES}
    assert [name for name, row in TABLE.items() if row["rule"] not in codes] == []
    fields = {"rule", "severity", "message", "remark", "label", "notes", "help"}
    assert [name for name, row in TABLE.items() if not row.keys() <= fields] == []
