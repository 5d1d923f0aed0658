"""Nodes as kubectl lists them: their names, labels and taints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from gpuplan.changes.bodies import Body, mappings, section
from gpuplan.diagnostics import GpuplanError
from gpuplan.documents import MAX_BYTES, read_text
from gpuplan.patterns import regex
from gpuplan.planning.node_patterns import LONGEST_NAME
from gpuplan.policy.names import DNS_SUBDOMAIN
from gpuplan.values import NamedTuple

LIST_NODES: Final = "kubectl get nodes -o json"


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
    items = _items(text, name)
    listed = [item for item in items if item.get("kind") == "Node"]
    if items and not listed:
        kind = items[0].get("kind")
        what = _short(kind) if isinstance(kind, str) and kind else "objects without a kind"
        raise _no_list(name, f"it lists {what}, and no Node")
    found: dict[str, Node] = {}
    for node in (_node(item, name) for item in listed):
        if found.setdefault(node.name, node) is not node:
            raise _no_list(name, f"it lists node `{node.name}` twice, as two lists in one do")
    return tuple(found[known] for known in sorted(found))


def is_list_of_objects(text: str) -> bool:
    """Whether a text is to be read as kubectl's JSON or YAML; otherwise it may hold a name a line."""
    return bool(_OBJECTS.match(text))


_OBJECTS: Final = regex(r"\s*(?:#[^\n]*\n\s*)*(?:\{|\[|---|apiVersion:|items:|kind:|metadata:)")


# --- Texts -------------------------------------------------------------------------------------------------------


def _no_list(name: str, why: str, instead: str = f"write it with `{LIST_NODES}`") -> GpuplanError:
    return GpuplanError(f"{f'`{name}`' if name else 'this'} is no list of nodes: {why}", instead)


def _items(text: str, name: str) -> Sequence[Body]:
    """The objects of a list, or the only object that there is."""
    body = _from_json(text, name) if text.lstrip().startswith(("{", "[")) else _from_yaml(text, name)
    if not isinstance(body, dict):
        raise _no_list(name, "it is no object and no list of objects")
    if "items" not in body:
        return (body,)
    items, kind = body["items"], body.get("kind")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise _no_list(name, "its `items` is no list of objects")
    if not isinstance(kind, str):  # the last lines of a list say it
        raise _no_list(name, "it has no `kind` beside `items`, as one that was cut off")
    return [{"kind": "Node", **item} for item in items] if kind == "NodeList" else items


def _from_json(text: str, name: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _no_list(name, f"it is not JSON: {_short(str(error))}") from error


def _from_yaml(text: str, name: str) -> object:
    if not text.strip():
        raise _no_list(name, "it is empty")
    if not is_list_of_objects(text):
        raise _no_list(name, "it is neither JSON nor YAML of kubectl; a table or names alone show no labels")
    if len(text) > MAX_BYTES:
        raise _no_list(name, f"as YAML it may have {MAX_BYTES // 2**20} MiB", f"pass JSON: `{LIST_NODES}`")
    documents, found = read_text(name, text, strict=False)
    if trouble := next((item for item in found if item.is_error), None):
        line = trouble.finding.at.locate().span.start.line
        raise _no_list(name, f"line {line} is no YAML: {_short(trouble.finding.message)}")
    if len(documents) != 1:
        raise _no_list(name, f"it holds {len(documents)} documents")
    return documents[0].data


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_WHY else f"{text[:_LONGEST_WHY]}..."


_LONGEST_WHY: Final = 160


# --- Objects -----------------------------------------------------------------------------------------------------


def _node(item: Body, name: str) -> Node:
    metadata = section(item, "metadata")
    known = metadata.get("name")
    if not isinstance(known, str) or len(known) > LONGEST_NAME or not _SUBDOMAIN.fullmatch(known):
        raise _no_list(name, "a node in it has no name that a node can have")
    labels = metadata.get("labels") or {}
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise _no_list(name, f"labels of node `{known}` are no texts")
    return Node(known, labels, tuple(map(_taint, mappings(section(item, "spec").get("taints")))))


_SUBDOMAIN: Final = regex(DNS_SUBDOMAIN)


def _taint(taint: Body) -> NodeTaint:
    return NodeTaint(*(str(taint.get(key) or "") for key in NodeTaint._fields))
