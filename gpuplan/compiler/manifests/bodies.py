"""Objects as back ends make them: what every object has comes first, and what is empty is left out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

_EMPTY: Final[tuple[object, ...]] = (None, "", (), [], {})


def new_object(
    api_version: str,
    kind: str,
    name: str,
    namespace: str = "",
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **body: object,
) -> dict[str, Any]:
    """An object with what its kind has, in order; an object of the cluster has no namespace."""
    metadata = given(name=name, namespace=namespace, labels=labels, annotations=annotations)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}


def given(**fields: object) -> dict[str, Any]:
    """The fields that say something: none that is None or empty."""
    return {key: value for key, value in fields.items() if value or value not in _EMPTY}


def config_map(
    name: str, namespace: str, data: Mapping[str, str], labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A ConfigMap that is never changed, since its name has a digest of its content."""
    named = f"{name}-{digest(data)}"
    return new_object("v1", "ConfigMap", named, namespace, labels=labels, immutable=True, data=dict(data))


def changing_config_map(name: str, namespace: str, data: Mapping[str, str]) -> dict[str, Any]:
    """A ConfigMap that keeps its name: kubelets bring what it holds to pods that run, unless it is immutable."""
    return new_object("v1", "ConfigMap", name, namespace, data=dict(data))


def digest(content: Mapping[str, Any]) -> str:
    """Eight hex digits that change when the content does, and only then."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:8]


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings merge, all else is replaced, as Helm does with several files of values."""
    found = dict(under)
    for key, value in over.items():
        below = found.get(key)
        found[key] = merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return found
