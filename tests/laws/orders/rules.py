"""Node Feature Discovery's rules as its master applies them to a node with NVIDIA GPUs.

`processNodeFeatureRule` in `pkg/nfd-master/nfd-master.go` goes through the objects by name, and a later label wins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

Body = Mapping[str, Any]

_GPU: Final = {"vendor": "10de", "class": "0302"}
_KNOWN: Final = {"name", "labels", "taints", "matchFeatures", "matchAny"}


def labels_of(objects: Mapping[str, Body], node: str, device: str = "") -> dict[str, str]:
    """The labels that rules, by the names of their objects, give to a node; ``device`` is the id of its GPUs."""
    found: dict[str, str] = {}
    for name in sorted(objects):
        for rule in objects[name]["spec"]["rules"]:
            if matches(rule, node, device):
                found |= rule.get("labels", {})
    return found


def matches(rule: Body, node: str, device: str = "") -> bool:
    if unknown := set(rule) - _KNOWN:
        raise NotImplementedError(f"rules with {sorted(unknown)}")
    every = rule.get("matchFeatures", ())
    some = rule.get("matchAny", ())
    return _all_match(every, node, device) and (
        not some or any(_all_match(term["matchFeatures"], node, device) for term in some)
    )


def _all_match(terms: Sequence[Body], node: str, device: str) -> bool:
    return all(_has(term, node, device) for term in terms)


def _has(term: Body, node: str, device: str) -> bool:
    expressions = term["matchExpressions"]
    match term["feature"]:
        case "system.name":
            found: Mapping[str, str] = {"nodename": node}
        case "pci.device":
            found = {**_GPU, **({"device": device} if device else {})}
        case other:
            raise NotImplementedError(f"the feature {other}")
    return all(_holds(expression, found.get(key)) for key, expression in expressions.items())


def _holds(expression: Body, value: str | None) -> bool:
    wanted: Sequence[str] = expression.get("value", ())
    match expression["op"]:
        case "In":
            return value in wanted
        case "NotIn":
            return value is not None and value not in wanted
        case "InRegexp":
            return value is not None and any(re.search(pattern, value) for pattern in wanted)
        case "Exists":
            return value is not None
        case other:
            raise NotImplementedError(f"the operator {other}")
