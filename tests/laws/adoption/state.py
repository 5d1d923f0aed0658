"""The objects of a cluster before the first sync and after it, and how Kubernetes reads some of their parts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import yaml

Body = Mapping[str, Any]
Key = tuple[str, str, str]
"""Kind, namespace and name."""

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(folder: Path) -> dict[str, Sequence[Body]]:
    """The documents of each YAML file below a folder, by path."""
    return {
        path.relative_to(folder).as_posix(): [
            body for body in yaml.load_all(path.read_text(encoding="utf-8"), Loader=_LOADER) if isinstance(body, dict)
        ]
        for path in sorted(folder.rglob("*.yaml"))
    }


def objects_in(documents: Iterator[Body] | Sequence[Body]) -> dict[Key, Body]:
    """All objects, those of Lists too; what has no name is none, such as a kustomization."""
    found: dict[Key, Body] = {}
    for body in documents:
        for item in body.get("items", [body]):
            metadata = item.get("metadata") or {}
            if "kind" in item and "name" in metadata:
                found[item["kind"], metadata.get("namespace", ""), metadata["name"]] = item
    return found


@dataclass(frozen=True)
class State:
    """All objects of a cluster at one time."""

    objects: Mapping[Key, Body]

    def of(self, kind: str) -> Iterator[tuple[str, str, Body]]:
        """Namespace, name and body of the objects of a kind."""
        for (found, namespace, name), body in self.objects.items():
            if found == kind:
                yield namespace, name, body

    def find(self, kind: str, name: str, namespace: str = "") -> Body:
        return self.objects.get((kind, namespace, name), {})

    @cached_property
    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of each, with the one that the API server sets."""
        return {name: {**labels(body), "kubernetes.io/metadata.name": name} for _, name, body in self.of("Namespace")}


def synced(before: State, written: Mapping[Key, Body]) -> State:
    """The cluster when all that is written was applied: what is there besides stays, and so do further fields."""
    after = dict(before.objects)
    for key, body in written.items():
        after[key] = merged(before.objects.get(key, {}), body)
    return State(after)


def merged(one: Any, other: Any) -> Any:
    """A map keeps the keys that another has not; a list is replaced as a whole."""
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return other
    return {**one, **{key: merged(one.get(key), value) for key, value in other.items()}}


def labels(body: Body) -> dict[str, str]:
    return dict((body.get("metadata") or {}).get("labels") or {})


def inside(body: Any, *route: str) -> Any:
    """What is at a route of keys, or an empty map."""
    for key in route:
        body = body.get(key) if isinstance(body, Mapping) else None
    return {} if body is None else body


_FACTORS: Final = {
    "m": Fraction(1, 1000),
    **{letter: Fraction(1000 ** (index + 1)) for index, letter in enumerate("kMGTPE")},
    **{f"{letter}i": Fraction(1024 ** (index + 1)) for index, letter in enumerate("KMGTPE")},
}


def quantity(value: object) -> Fraction:
    """An amount as the API server counts it."""
    text = str(value)
    for suffix in sorted(_FACTORS, key=len, reverse=True):
        if text.endswith(suffix):
            return Fraction(text.removesuffix(suffix)) * _FACTORS[suffix]
    return Fraction(text)


def selects(selector: Body, found: Mapping[str, str]) -> bool:
    """Whether a selector, as namespaceSelector is one, takes what has these labels."""
    wanted = selector.get("matchLabels") or {}
    return all(found.get(key) == value for key, value in wanted.items()) and all(
        holds(term, found) for term in selector.get("matchExpressions") or ()
    )


def holds(term: Body, found: Mapping[str, str]) -> bool:
    """Whether a requirement of a selector holds for labels."""
    value, values = found.get(term["key"]), [str(value) for value in term.get("values") or ()]
    match term["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case "Lt":
            return value is not None and int(value) < int(values[0])
        case other:
            raise NotImplementedError(f"the operator {other}")


def spelt(value: object) -> str:
    """A value in a loss."""
    if isinstance(value, Fraction):
        return str(int(value)) if value.denominator == 1 else str(float(value))
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
