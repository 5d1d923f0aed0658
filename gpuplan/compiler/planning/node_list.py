"""Nodes as kubectl lists them: their names, labels and taints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import Body, mappings, section
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.documents.listed import Wanted, find_objects
from gpuplan.compiler.planning.node_pattern_syntax import LONGEST_NAME
from gpuplan.compiler.policy.names import DNS_SUBDOMAIN

LIST_NODES: Final = "kubectl get nodes -o json"
NODES: Final = Wanted("Node", "nodes", LIST_NODES)


_SUBDOMAIN: Final = regex(DNS_SUBDOMAIN)


class NodeTaint(NamedTuple):
    """A taint as the API server has it; the value may be empty."""

    key: str
    value: str
    effect: str


class Node(NamedTuple):
    """A node of a cluster as it is now."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[NodeTaint, ...] = ()


def read_nodes(text: str, name: str = "") -> tuple[Node, ...]:
    """The nodes of a cluster, by name, from what kubectl printed as JSON or as YAML.

    Trouble when the text, called ``name``, is anything else: names alone show no labels.
    """
    return nodes_in(find_objects({name: text}, NODES))


def nodes_in(objects: Iterable[tuple[str, Body]]) -> tuple[Node, ...]:
    """The nodes among objects, by name; each may be there twice, if it is the same."""
    found: dict[str, Node] = {}
    for name, item in objects:
        if item.get("kind") == NODES.kind:
            node = _node(item, name)
            if found.setdefault(node.name, node) != node:
                raise NODES.trouble(name, f"it lists node `{node.name}` twice, as two lists in one do")
    return tuple(found[known] for known in sorted(found))


# --- Objects -----------------------------------------------------------------------------------------------------


def _node(body: Body, name: str) -> Node:
    metadata = section(body, "metadata")
    known = metadata.get("name")
    if not isinstance(known, str) or len(known) > LONGEST_NAME or not _SUBDOMAIN.fullmatch(known):
        raise NODES.trouble(name, "a node in it has no name that a node can have")
    labels = metadata.get("labels") or {}
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise NODES.trouble(name, f"labels of node `{known}` are no texts")
    taints = mappings(section(body, "spec").get("taints"))
    return Node(
        known, labels, tuple(NodeTaint(*(str(taint.get(key) or "") for key in NodeTaint._fields)) for taint in taints)
    )
