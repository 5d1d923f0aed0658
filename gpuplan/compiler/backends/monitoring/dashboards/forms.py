"""The dashboard in the two forms that it is read in: Grafana's, and that of OpenShift's console."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Final

from gpuplan.compiler.manifests.templates import Row, filled_body, read_rows

Board = dict[str, Any]
"""A dashboard, or a part of one."""

_FORMS: Final = Path(__file__).with_name("forms.yaml")
_COLUMNS: Final = 24
"""The width of Grafana's dashboard; the console's has half as many columns."""
_KNOWN_UNITS: Final = ("percentunit", "bytes")
"""The units that the console knows."""


def for_grafana(rows: Sequence[Row], title: str, uid: str) -> Board:
    """Return the dashboard with its panels placed from left to right, and then below what is there."""
    form = read_rows(_FORMS)["grafana"]
    panels: list[Board] = []
    x = y = height = 0
    for row in rows:
        for shown in (filled_body(form["row"], row), *(_panel(form, panel) for panel in row["panels"])):
            place = shown["gridPos"]
            if x + place["w"] > _COLUMNS:
                x, y, height = 0, y + height, 0
            panels.append({"id": len(panels) + 1, **shown, "gridPos": {**place, "x": x, "y": y}})
            x, height = x + place["w"], max(height, place["h"])
    board: Board = filled_body(form["board"], {"title": title, "uid": uid, "panels": panels})
    return board


def for_console(rows: Sequence[Row], title: str) -> Board:
    form = read_rows(_FORMS)["console"]
    shown = [
        filled_body(form["row"], {**row, "panels": [_panel(form, panel) for panel in row["panels"]]}) for row in rows
    ]
    board: Board = filled_body(form["board"], {"title": title, "rows": shown})
    return board


def _panel(form: Row, panel: Row) -> Board:
    """Return a panel in the shape that a form has for its type."""
    shape = form[panel["type"]]
    queries: Mapping[str, str] = panel.get("queries") or {"": panel["query"]}
    targets = [
        filled_body(shape["targets"], {"letter": letter, "query": query, "legend": panel.get("legend")})
        for letter, query in zip(ascii_uppercase, queries.values(), strict=False)
    ]
    unit = panel.get("unit", "none")
    width = _COLUMNS if "wide" in panel else _COLUMNS // 2
    values = {
        **panel,
        **_columns(panel.get("columns", {}), list(queries), panel.get("decimals", 0)),
        "targets": targets,
        "unit": unit,
        "known_unit": unit if unit in _KNOWN_UNITS else "short",
        "whole": 1 if unit == "percentunit" else None,
        "well": {"color": "green", "value": None},
        "width": width,
        "span": width // 2,
    }
    shown: Board = filled_body({**shape, "targets": "<targets>"}, values)
    return shown


def _columns(labels: Mapping[str, str], headings: Sequence[str], decimals: int) -> Board:
    """Return the columns of a table: its labels, and then its numbers, as either form names, orders and shows them."""
    numbers = {f"Value #{letter}": heading for letter, heading in zip(ascii_uppercase, headings, strict=False)}
    # Grafana calls the number of a single query by no letter.
    merged = numbers if len(numbers) > 1 else {"Value": headings[0]}
    shown = {**labels, **{name: heading for name, heading in merged.items() if heading}}
    strings = [{"pattern": name, "alias": heading, "type": "string"} for name, heading in labels.items()]
    number = {"type": "number", "unit": "short", "decimals": decimals}
    return {
        "excluded": dict.fromkeys(("Time", *(name for name in merged if name not in shown)), True),
        "order": {name: index for index, name in enumerate(shown)},
        "headings": shown,
        "styles": [*strings, *({"pattern": name, "alias": alias, **number} for name, alias in numbers.items())],
    }
