"""Tell for each value that is written where it comes from, and for each line of a policy what depends on it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from gpuplan.diagnostics import Path
from gpuplan.manifests import File, Manifest, object_path
from gpuplan.manifests.provenance import ANY, Link, Links, choosing, chosen
from gpuplan.pipeline.loading import OUT
from gpuplan.pipeline.rendering import artifacts
from gpuplan.planning.plan import Plan
from gpuplan.planning.sources import name_of
from gpuplan.policy.parse import document_of
from gpuplan.values import NamedTuple, Value

_NAMES: tuple[Path, ...] = (("metadata", "name"), ("metadata", "namespace"))
"""What decides which object it is, and so where each of its leaves is."""


class Leaf(NamedTuple):
    """A value that is no mapping and no list, or an empty one, by its route in the object.

    A route leads on into a text that is YAML or JSON itself, where links are known there, and by the number of a line
    into any other text. ``own`` are the links of this leaf, and not those of all leaves of the object.
    """

    path: Path
    value: object
    own: Links


class Traced(Value):
    """One artifact of a cluster: ``path`` is its file's, below the output folder.

    ``whole`` are the links that hold for all of its leaves: why it is there, and is called what it is called.
    """

    plan: Plan
    path: str
    artifact: Manifest | File
    whole: Links
    leaves: tuple[Leaf, ...]


def trace_plan(plan: Plan, out: str = OUT) -> Iterator[Traced]:
    """Everything that is written of a cluster, with its links."""
    for tool, artifact in artifacts(plan, out):
        path = object_path(artifact) if isinstance(artifact, Manifest) else artifact.path
        yield trace_artifact(plan, posixpath.join(tool, plan.cluster.name, path), artifact)


def trace_artifact(plan: Plan, path: str, artifact: Manifest | File) -> Traced:
    """One artifact with its links."""
    known = _Known((route, tuple(written(links))) for route, links in (artifact.trace() if artifact.trace else ()))
    body: object = artifact.body if isinstance(artifact, Manifest) else _parsed(artifact.data.decode())
    named = (link for route in _NAMES for link in known.of(route)) if isinstance(artifact, Manifest) else ()
    whole = (*known.of(()), *choosing(named), *written(chosen(name_of(plan.cluster))))
    leaves = tuple(Leaf(route, value, known.below_top(route)) for route, value in _leaves(body, (), known))
    return Traced(plan, path, artifact, _once(whole), leaves)


def written(links: Iterable[Link]) -> Iterator[Link]:
    """Those whose place is a value in a document. A part of what is written as a text is all of that text."""
    for link in links:
        document = document_of(link.at)
        route = link.at.path if document is None else document.find_written(link.at.path)
        if route is not None:
            yield link._replace(at=link.at._replace(path=route))


class _Known:
    """The links of one artifact by route."""

    def __init__(self, traced: Iterable[tuple[Path, Links]]) -> None:
        self._found = list(traced)

    def of(self, route: Path) -> Links:
        """Those of the leaf at a route."""
        return _once(link for known, links in self._found if _begins(route, known) for link in links)

    def below_top(self, route: Path) -> Links:
        """Those of the leaf at a route that are not of the whole object; the most exact ones first."""
        found = [(len(known), links) for known, links in self._found if known and _begins(route, known)]
        found.sort(key=lambda item: -item[0])
        return _once(link for _, links in found for link in links)

    def leads_below(self, route: Path) -> bool:
        """Whether there are links of a part of what is at the route."""
        return any(len(known) > len(route) and _begins(known[: len(route)], route) for known, _ in self._found)


def _begins(route: Path, start: Path) -> bool:
    if len(start) > len(route):
        return False
    return all(part in (own, ANY) or own == ANY for part, own in zip(start, route, strict=False))


def _once(links: Iterable[Link]) -> Links:
    return tuple(dict.fromkeys(links))


def _leaves(value: object, route: Path, known: _Known) -> Iterator[tuple[Path, object]]:
    if isinstance(value, str) and known.leads_below(route):
        value = _parsed(value)
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, (*route, key), known)
    elif isinstance(value, Sequence) and value and not isinstance(value, str | bytes):
        for index, item in enumerate(value):
            yield from _leaves(item, (*route, index), known)
    else:
        yield route, value


def _parsed(text: str) -> object:
    """The data of a text that is a document, or else its lines."""
    try:
        found: Any = yaml.load(text, yaml.CSafeLoader)
    except yaml.YAMLError:
        found = None
    return found if isinstance(found, dict | list) else text.splitlines()
