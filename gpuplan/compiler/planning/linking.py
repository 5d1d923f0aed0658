"""Find the links of a leaf of an artifact, and those of them that lead to a written value of a policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.manifests.provenance import ANY, Link, Links, Trace
from gpuplan.compiler.policy.parse import document_of


class _Node:
    """The links of one route, and those below it."""

    __slots__ = ("below", "links")

    def __init__(self) -> None:
        self.links: list[Link] = []
        self.below: dict[str | int, _Node] = {}


class Linked:
    """The links of one artifact by route, as a tree: an object may have as many routes as it has leaves."""

    def __init__(self, trace: Trace | None) -> None:
        self._root = _Node()
        for route, links in trace() if trace else ():
            node = self._root
            for part in route:
                node = node.below.setdefault(part, _Node())
            node.links += links

    def of(self, route: Path) -> Links:
        """Return the links of the leaf at a route."""
        return once(link for nodes in self._along(route) for node in nodes for link in node.links)

    def below_top(self, route: Path) -> Links:
        """Return the links of a leaf without those of the whole object, the most exact first."""
        levels = list(self._along(route))[1:]
        return once(link for nodes in reversed(levels) for node in nodes for link in node.links)

    def about(self, route: Path) -> Links:
        """Return the links of all leaves at and below a route, the most exact first, those of the whole object last."""
        levels = list(self._along(route))
        inner = [link for node in levels[-1] for link in _all(node)] if len(levels) > len(route) else []
        return once((*inner, *(link for nodes in reversed(levels) for node in nodes for link in node.links)))

    def leads_below(self, route: Path) -> bool:
        """Whether parts of the value at the route have links."""
        levels = list(self._along(route))
        return len(levels) > len(route) and any(node.below for node in levels[-1])

    def _along(self, route: Path) -> Iterator[list[_Node]]:
        """Yield the nodes at each step of a route, from the top as far as there are any."""
        nodes = [self._root]
        yield nodes
        for part in route:
            nodes = [found for node in nodes for key in (part, ANY) if (found := node.below.get(key)) is not None]
            if not nodes:
                return
            yield nodes


def _all(node: _Node) -> Iterator[Link]:
    for inner in node.below.values():
        yield from _all(inner)
    yield from node.links


def written(links: Iterable[Link]) -> Iterator[Link]:
    """Yield the links whose place is a value in a document. A part of a value that is a text means the whole text."""
    return (found for link in links if (found := find_written(link)) is not None)


def find_written(link: Link) -> Link | None:
    """Return the link at the written value, or None if a default holds."""
    document = document_of(link.at)
    route = link.at.path if document is None else document.find_written(link.at.path)
    return None if route is None else link._replace(at=link.at._replace(path=route))


def once(links: Iterable[Link]) -> Links:
    return tuple(dict.fromkeys(links))
