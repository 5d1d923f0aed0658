"""What an expression of PromQL reads, and whether it can have a value."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import promql_parser


def nodes(expr: str) -> list[Any]:
    """All parts of an expression."""
    found: list[Any] = []

    def visit(node: Any) -> bool:
        found.append(node)
        return True

    promql_parser.walk(promql_parser.parse(expr), visit)
    return found


def selectors(expr: str) -> Iterator[Any]:
    """The vector selectors of an expression, wherever they are in it."""
    return (node for node in nodes(expr) if isinstance(node, promql_parser.VectorSelector))


def able(node: Any, known: Collection[str]) -> bool:
    """Whether an expression can have a value, where these series are there."""
    match node:
        case promql_parser.VectorSelector():
            if any("mig_config" in matcher.name for matcher in node.matchers.matchers):
                return "pool:gpuplan_mig_config:info" in known
            return node.name in known or ":" not in str(node.name)
        case promql_parser.BinaryExpr():
            sides = able(node.lhs, known), able(node.rhs, known)
            return any(sides) if str(node.op) == "or" else sides[0] if str(node.op) == "unless" else all(sides)
        case promql_parser.Call():
            return node.func.name != "vector" and all(able(item, known) for item in node.args)
        case promql_parser.AggregateExpr() | promql_parser.ParenExpr() | promql_parser.UnaryExpr():
            return able(node.expr, known)
        case _:
            return True
