"""Each metric that a rule or a panel reads is one that a program has, with the labels that it has there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from tests.compiler.backends.monitoring.boards import for_grafana, queries
from tests.compiler.backends.monitoring.promql import able, nodes, selectors
from tests.compiler.backends.monitoring.watched import ARGOCD, CLAIMS, FRACTIONS, KUEUE, a_cluster, rules
from tests.plans import a_plan

TABLE = Path(__file__).with_name("upstream_metrics.yaml")
PLATFORMS = {
    "plain": a_cluster(ARGOCD),
    "honoring": a_cluster(monitoring="{honorLabels: true}"),
    "kueue": a_cluster(KUEUE),
    "kueue-claims": CLAIMS,
    "claims": CLAIMS.replace("  scheduler: {kind: kueue}\n", ""),
    "kai": FRACTIONS,
    "runai": FRACTIONS.replace("kind: kai", "kind: runai"),
}
OF_TARGETS = {"instance", "job", "le", "namespace", "node", "pod"}
"""Labels that Prometheus adds, or a histogram has."""


@cache
def table() -> Mapping[str, Mapping[str, Any]]:
    """The rows by metric, with what its program says for all."""
    programs = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return {
        name: {"repository": program["repository"], "tag": program["tag"], "also": program["also"], **row}
        for program in programs.values()
        for name, row in program["metrics"].items()
    }


def expressions(text: str) -> Iterator[str]:
    yield from (rule["expr"] for rule in rules(a_plan(text)))
    yield from (expr.replace("$pool", ".+").replace("$tenant", ".+") for _, expr in queries(for_grafana(text)))


def is_upstream(name: str) -> bool:
    return ":" not in name and name != "ALERTS" and not name.startswith("DCGM_")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_metric_is_recorded_or_in_a_table(platform: str) -> None:
    """Those of the DCGM exporter are held against tables of its own."""
    asked = {selector.name for expr in expressions(PLATFORMS[platform]) for selector in selectors(expr)}
    assert {name for name in asked if is_upstream(name)} <= set(table())


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_rule_can_have_a_value(platform: str) -> None:
    """Which panels can is held against the dashboard itself."""
    found = rules(a_plan(PLATFORMS[platform]))
    recorded = {rule["record"] for rule in found if "record" in rule}

    unable = [rule for rule in found if not able(promql_parser.parse(rule["expr"]), recorded)]
    assert [rule.get("record") or rule["alert"] for rule in unable if not rule["expr"].startswith("vector(")] == []


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_label_is_one_that_the_metric_has(platform: str) -> None:
    wrong = {
        (name, label)
        for expr in expressions(PLATFORMS[platform])
        for name, label in asked_labels(expr)
        if is_upstream(name) and not has(table()[name], label)
    }
    assert wrong == set()


def has(row: Mapping[str, Any], label: str) -> bool:
    return label in {*row["labels"], *OF_TARGETS} or label.startswith(row.get("prefix", "\0"))


def asked_labels(expr: str) -> Iterator[tuple[str, str]]:
    """Of a metric: what is matched, and by what it is aggregated where nothing comes between."""
    for node in nodes(expr):
        if isinstance(node, promql_parser.VectorSelector):
            yield from ((str(node.name), matcher.name) for matcher in node.matchers.matchers)
        elif isinstance(node, promql_parser.AggregateExpr) and node.modifier:
            name = summed(node.expr)
            yield from ((name, label) for label in node.modifier.labels if name)


def summed(node: Any) -> str | None:
    """The metric that an aggregation is of; None where it is of several."""
    match node:
        case promql_parser.VectorSelector():
            return str(node.name)
        case promql_parser.ParenExpr():
            return summed(node.expr)
        case promql_parser.BinaryExpr() if isinstance(node.rhs, promql_parser.NumberLiteral):
            return summed(node.lhs)
        case _:
            return None


def test_no_row_of_the_table_is_stale() -> None:
    asked = {selector.name for text in PLATFORMS.values() for expr in expressions(text) for selector in selectors(expr)}
    assert set(table()) - asked == set()


# --- The source --------------------------------------------------------------------------------------------------


def text_at(row: Mapping[str, Any], tag: str) -> str:
    """A file of a program at a tag, from a folder of bare copies such as `kubernetes-sigs+kueue/repo`."""
    folder = os.environ.get("GPUPLAN_UPSTREAM", "")
    copy = Path(folder) / row["repository"].replace("/", "+") / "repo"
    if not folder or not copy.is_dir():
        pytest.skip(f"GPUPLAN_UPSTREAM names no folder with a copy of {row['repository']}")
    command = ["git", f"--git-dir={copy}", "show", f"{tag}:{row['file']}"]
    shown = subprocess.run(command, check=False, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


@pytest.mark.parametrize("name", table())
def test_a_row_says_what_the_source_says(name: str) -> None:
    row = table()[name]
    literal, text = f'"{row.get("literal", name)}"', text_at(row, row["tag"])

    assert literal in text.splitlines()[row["line"] - 1]
    assert [label for label in row["labels"] if f'"{label}"' not in text] == []
    assert [tag for tag in row["also"] if literal not in text_at(row, tag)] == []
    assert [tag for tag in row.get("not_in", ()) if literal in text_at(row, tag)] == []
