"""The dashboard as OpenShift's console reads it: a part of what Grafana dashboards were at version 5.

The console shows panels of the types `graph`, `singlestat`, `table`, `gauge` and `grafana-piechart-panel` and leaves
all others out, `timeseries` and `stat` included; rows are taken from `rows`; a panel is as wide as its `span` of
twelve (web/src/components/dashboards/legacy/legacy-dashboard.tsx and useLegacyDashboards.ts in
openshift/monitoring-plugin). Variables are of the type `query` or `interval`, hidden unless `hide` is 0, written
`$name`, and `label_values(metric, label)` with that one blank is turned into `count(metric) by (label)`
(legacy-variable-dropdowns.tsx). There is one data source, which nothing names.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from gpuplan.backends.monitoring.dashboards.board import (
    Board,
    Column,
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


def render(board: Board) -> dict[str, Any]:
    """The dashboard as plain data."""
    numbers = count(1)
    return {
        "title": board.title,
        "tags": list(board.tags),
        "templating": {"list": [_variable(variable) for variable in board.variables]},
        "rows": [_row(row, numbers) for row in board.rows],
    }


def _variable(variable: Variable) -> dict[str, Any]:
    return {
        "type": "query",
        "name": variable.name,
        "label": variable.title,
        "query": f"label_values({variable.metric}, {variable.name})",
        "hide": 0,
        "includeAll": True,
        "options": [],
    }


def _row(row: Row, numbers: Iterator[int]) -> dict[str, Any]:
    panels = [{"id": next(numbers), **_panel(panel), "span": width(panel)} for panel in row.panels]
    return {"title": row.title, "showTitle": True, "collapse": False, "panels": panels}


def _panel(panel: Panel) -> dict[str, Any]:
    match panel:
        case Stat():
            return _stat(panel)
        case Graph():
            return _graph(panel)
        case Table():
            return _table(panel)


def _stat(stat: Stat) -> dict[str, Any]:
    """The last threshold below the number gives its colour (`sortedIndexBy` in single-stat.tsx)."""
    colours = {}
    if stat.is_bad_above is not None:
        thresholds = [{"color": "green", "value": -1}, {"color": "red", "value": stat.is_bad_above}]
        colours = {"options": {"fieldOptions": {"thresholds": thresholds}}}
    return {
        "type": "singlestat",
        "title": stat.title,
        "decimals": 0,
        "format": _number_format(Format.COUNT),
        **colours,
        "targets": [{"refId": "A", "expr": stat.expr}],
    }


def _graph(graph: Graph) -> dict[str, Any]:
    return {
        "type": "graph",
        "title": graph.title,
        "legend": {"show": True},
        "stack": graph.is_stacked,
        "yaxes": [{"format": _number_format(graph.format)}, {"show": False}],
        "targets": [{"refId": "A", "expr": graph.expr, "legendFormat": graph.legend}],
    }


def _table(table: Table) -> dict[str, Any]:
    """``styles`` are the columns; one without a name there is not shown. Rows are joined by all labels (table.tsx).

    Consoles before OpenShift 4.15 join rows by their first label alone (openshift/monitoring-plugin#96).
    """
    labels = [{"pattern": label, "alias": title, "type": "string"} for label, title in table.labels]
    targets = list(zip(ref_ids(), table.columns, strict=False))
    return {
        "type": "table",
        "title": table.title,
        "transform": "table",
        "styles": [*labels, *(_style(ref, column) for ref, column in targets)],
        "targets": [{"refId": ref, "expr": column.expr, "format": "table", "instant": True} for ref, column in targets],
    }


def _style(ref: str, column: Column) -> dict[str, Any]:
    return {
        "pattern": f"Value #{ref}",
        "alias": column.title,
        "type": "number",
        "unit": _number_format(column.format),
        "decimals": 0,
    }


def _number_format(number: Format) -> str:
    """What the console knows of Grafana's units (web/src/components/format.tsx)."""
    match number:
        case Format.PART | Format.BYTES:
            return number.value
        case Format.COUNT | Format.CELSIUS | Format.WATTS:
            return "short"
