"""The dashboard as Grafana reads it.

The model is that of Grafana 10 and 11 (`schemaVersion` 39, https://grafana.com/docs/grafana/latest/dashboards/
build-dashboards/view-dashboard-json-model/); later releases migrate it when they load it. `id`, `version` and
`iteration` are left to Grafana's database: in a file they would change with nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from gpuplan.backends.monitoring.dashboards.board import (
    COLUMNS,
    Board,
    Format,
    Graph,
    Panel,
    Row,
    Stat,
    Table,
    Variable,
    ref_ids,
    width,
)

_SCHEMA_VERSION: Final = 39
_GRID_COLUMNS: Final = 24
_DATA_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def render(board: Board) -> dict[str, Any]:
    """The dashboard as plain data."""
    return {
        "uid": board.uid,
        "title": board.title,
        "tags": list(board.tags),
        "schemaVersion": _SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,  # one crosshair for all graphs
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "",
        "templating": {"list": [_data_source_variable(), *map(_variable, board.variables)]},
        "annotations": {"list": []},
        "panels": list(_panels(board.rows)),
    }


# --- Variables ---------------------------------------------------------------------------------------------------


def _data_source_variable() -> dict[str, Any]:
    return {
        "type": "datasource",
        "name": "datasource",
        "label": "Data source",
        "query": "prometheus",
        "hide": 0,
        "refresh": 1,
        "includeAll": False,
        "multi": False,
    }


def _variable(variable: Variable) -> dict[str, Any]:
    """All is a pattern of its own: the list of a thousand names would be part of every query."""
    return {
        "type": "query",
        "name": variable.name,
        "label": variable.title,
        "datasource": _DATA_SOURCE,
        "query": f"label_values({variable.metric}, {variable.name})",
        "hide": 0,
        "refresh": 2,  # whenever the time range changes
        "sort": 1,
        "includeAll": True,
        "allValue": ".+",
        "multi": True,
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


# --- The grid ----------------------------------------------------------------------------------------------------


def _panels(rows: tuple[Row, ...]) -> Iterator[dict[str, Any]]:
    """Rows and their panels one after the other, numbered from 1, each where the one before ends."""
    number, y = 0, 0
    for row in rows:
        number += 1
        yield _row(row, number, y)
        y += 1
        x, line_height = 0, 0
        for panel in row.panels:
            number += 1
            panel_width = width(panel) * _GRID_COLUMNS // COLUMNS
            if x + panel_width > _GRID_COLUMNS:
                x, y, line_height = 0, y + line_height, 0
            line_height = max(line_height, _height(panel))
            place = {"h": _height(panel), "w": panel_width, "x": x, "y": y}
            yield {"id": number, **_panel(panel), "gridPos": place}
            x += panel_width
        y += line_height


def _row(row: Row, number: int, y: int) -> dict[str, Any]:
    return {
        "id": number,
        "type": "row",
        "title": row.title,
        "collapsed": False,
        "panels": [],
        "gridPos": {"h": 1, "w": _GRID_COLUMNS, "x": 0, "y": y},
    }


def _height(panel: Panel) -> int:
    match panel:
        case Stat():
            return 4
        case Graph() | Table():
            return 8


# --- Panels ------------------------------------------------------------------------------------------------------


def _panel(panel: Panel) -> dict[str, Any]:
    match panel:
        case Stat():
            return _stat(panel)
        case Graph():
            return _graph(panel)
        case Table():
            return _table(panel)


def _stat(stat: Stat) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if stat.is_bad_above is not None:
        steps.append({"color": "red", "value": stat.is_bad_above + 1})
    return {
        **_head("stat", stat),
        "fieldConfig": {
            "defaults": {"unit": Format.COUNT.value, "thresholds": {"mode": "absolute", "steps": steps}},
            "overrides": [],
        },
        "options": {
            "colorMode": "none" if stat.is_bad_above is None else "value",
            "graphMode": "none",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        },
        "targets": [_target("A", stat.expr, {"format": "time_series", "instant": True, "range": False})],
    }


def _graph(graph: Graph) -> dict[str, Any]:
    """Axes reach from zero, and to the whole for a part of it; further where numbers do."""
    custom: dict[str, Any] = {"axisSoftMin": 0}
    if graph.format is Format.PART:
        custom["axisSoftMax"] = 1
    if graph.is_stacked:
        custom |= {"fillOpacity": 30, "stacking": {"group": "A", "mode": "normal"}}
    query = {"format": "time_series", "instant": False, "range": True, "legendFormat": graph.legend}
    return {
        **_head("timeseries", graph),
        "fieldConfig": {"defaults": {"unit": graph.format.value, "custom": custom}, "overrides": []},
        "options": {
            "legend": {"calcs": ["lastNotNull"], "displayMode": "table", "placement": "right", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [_target("A", graph.expr, query)],
    }


def _table(table: Table) -> dict[str, Any]:
    """Rows of several expressions become one where their labels are equal; the time of all of them is left out."""
    fields = dict(zip(_value_fields(table), table.columns, strict=True))
    names = dict(table.labels) | {field: column.title for field, column in fields.items() if column.title}
    hidden = {"Time": True} | {field: True for field, column in fields.items() if not column.title}
    return {
        **_head("table", table),
        "fieldConfig": {
            "defaults": {"unit": Format.COUNT.value, "custom": {"filterable": True}},
            "overrides": [
                {
                    "matcher": {"id": "byName", "options": column.title},
                    "properties": [{"id": "unit", "value": column.format.value}],
                }
                for column in table.columns
                if column.format is not Format.COUNT
            ],
        },
        "options": {"cellHeight": "sm", "showHeader": True},
        "transformations": [
            {"id": "merge", "options": {}},
            {
                "id": "organize",
                "options": {
                    "excludeByName": hidden,
                    "indexByName": {field: index for index, field in enumerate(names)},
                    "renameByName": names,
                },
            },
        ],
        "targets": [
            _target(ref, column.expr, {"format": "table", "instant": True, "range": False})
            for ref, column in zip(ref_ids(), table.columns, strict=False)
        ],
    }


def _value_fields(table: Table) -> list[str]:
    """Grafana names a table's numbers by their expression only where there are several."""
    if len(table.columns) == 1:
        return ["Value"]
    return [f"Value #{ref}" for ref, _ in zip(ref_ids(), table.columns, strict=False)]


def _head(kind: str, panel: Panel) -> dict[str, Any]:
    return {"type": kind, "title": panel.title, "description": panel.about, "datasource": _DATA_SOURCE}


def _target(ref: str, expr: str, options: dict[str, Any]) -> dict[str, Any]:
    return {"refId": ref, "datasource": _DATA_SOURCE, "editorMode": "code", "expr": expr, **options}
