"""Which nodes a pool's names and patterns mean."""

from __future__ import annotations

from gpuplan.compiler.planning.node_patterns import NodePattern, parse
from gpuplan.compiler.planning.plan import Nodes


def has_node(nodes: Nodes, name: str) -> bool:
    """Whether a node belongs to a pool, or a part of one, by its name."""
    if nodes.names:
        return name in nodes.names
    pattern = find_pattern(nodes.name_pattern)
    return pattern is not None and name not in nodes.moved and pattern.matches(name)


def find_pattern(text: str | None) -> NodePattern | None:
    """The pattern that a text spells; None of what is none that we can read."""
    found = parse(text) if text else None
    return found if isinstance(found, NodePattern) else None
