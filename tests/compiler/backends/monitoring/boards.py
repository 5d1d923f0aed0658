"""Dashboards of a small watched cluster, as those who show them read them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gpuplan.compiler.backends.monitoring import dashboards, rule_groups
from gpuplan.compiler.backends.monitoring.rules import recorded_series
from gpuplan.compiler.manifests import Manifest
from tests.compiler.backends.monitoring.watched import a_cluster
from tests.plans import a_plan

Json = dict[str, Any]

OPENSHIFT = "  platform: openshift\n"


def manifest(text: str) -> Manifest:
    """The one object that holds the dashboard."""
    plan = a_plan(text)
    assert plan.cluster.monitoring is not None
    (found,) = dashboards.render(plan, recorded_series(rule_groups(plan, plan.cluster.monitoring)), "")
    return found


def metadata(text: str) -> Json:
    return dict(manifest(text).body["metadata"])


def text_of(text: str) -> str:
    """The dashboard as text: the only file of its ConfigMap."""
    (found,) = manifest(text).body["data"].values()
    return str(found)


def for_grafana(text: str | None = None) -> Json:
    found: Json = json.loads(text_of(text or a_cluster()))
    return found


def for_console(text: str | None = None) -> Json:
    found: Json = json.loads(text_of(text or a_cluster(OPENSHIFT)))
    return found


def queries(board: Json) -> Iterator[tuple[str, str]]:
    """The title of a panel and, one by one, its expressions; of either form."""
    for panel in [*board.get("panels", ()), *(panel for row in board.get("rows", ()) for panel in row["panels"])]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def expressions(board: Json, title: str, variables: Mapping[str, str] | None = None) -> list[str]:
    """The expressions of a panel as they are asked; a variable that is not given has the value All."""
    values = {"pool": ".+", "tenant": ".+", **(variables or {})}
    found = [expr for panel, expr in queries(board) if panel == title]
    for name, value in values.items():
        found = [expr.replace(f"${name}", value) for expr in found]
    assert found
    return found
