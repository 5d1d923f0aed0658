"""Why folders, kinds and namespaces are among what is delivered: looked up when somebody asks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from posixpath import dirname
from typing import TYPE_CHECKING, Final

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests import File, Identity, Manifest
from gpuplan.compiler.manifests.provenance import Links, Trace, choosing

if TYPE_CHECKING:
    from gpuplan.compiler.delivery import Folder

WHOLE: Final[Path] = ()
NAME: Final[Path] = ("metadata", "name")
NAMESPACE: Final[Path] = ("metadata", "namespace")


_Key = tuple[str, ...]


class Why(NamedTuple):
    """An object of a folder, and where it comes from: that it is there, its name, and its namespace.

    A file has no name. ``trace`` tells where all else of it comes from.
    """

    folder: str
    identity: Identity
    links: tuple[tuple[Path, Links], ...]
    trace: Trace | None

    def of(self, route: Path) -> Links:
        return tuple(link for found, links in self.links if found == route for link in links)


def why(artifact: Manifest | File) -> Why:
    """Return the reason of what a back end writes."""
    if isinstance(artifact, File):
        return Why(dirname(artifact.path), Identity("", "", "", artifact.path), (), artifact.trace)
    traced = artifact.trace() if artifact.trace else ()
    named = tuple(item for item in traced if item[0] in (WHOLE, NAME, NAMESPACE))
    return Why(artifact.folder, artifact.identity, named, artifact.trace)


FindWhys = Callable[[], Iterable[Why]]
"""Looks for why each object of the folders is there."""


class Reasons:
    """The places of the policy that alone decide about some of what a cluster's folders apply.

    One value decides on several objects if it decides on each: what two tenants have is there without either. Nothing
    decides on what a hand-written Component adds.
    """

    def __init__(self, folders: Sequence[Folder], find: FindWhys) -> None:
        self.folders = folders
        self._find = find

    def of_folder(self, path: str) -> Links:
        """Return what decides whether a folder is there."""
        return self._common(WHOLE, (path,))

    def of_stage(self, stage: str) -> Links:
        """Return what decides whether there is a folder in a stage."""
        return self._common(WHOLE, (stage, ""))

    def of_kind(self, group: str, kind: str) -> Links:
        return self._common(WHOLE, (group, kind))

    def of_object(self, group: str, kind: str, name: str) -> Links:
        return self._common(WHOLE, (group, kind, name))

    def of_namespace(self, namespace: str) -> Links:
        """Return what decides whether there are objects in a namespace."""
        return self._common(WHOLE, ("in", namespace))

    def names_of(self, group: str, kind: str, name: str) -> Links:
        """Return what an object's name comes from."""
        return self._common(NAME, (group, kind, name))

    def names_of_namespace(self, namespace: str) -> Links:
        """Return what the namespace of objects comes from."""
        return self._common(NAMESPACE, ("in", namespace))

    def names_of_part(self, path: str) -> Links:
        """Return what the name of a folder for a namespace comes from: that of the objects there."""
        return self._common(NAMESPACE, (path,))

    def of_content(self, path: str) -> Links:
        """Return what decides anything that is in a folder."""
        traces = (item.trace for item in self._whys.values() if item.folder == path and item.trace)
        return tuple(dict.fromkeys(link for trace in traces for _, links in trace() for link in links))

    def has_kind(self, group: str, kind: str) -> bool:
        return (group, kind) in self._by_key

    @cached_property
    def _whys(self) -> dict[tuple[str, Identity], Why]:
        return {(why.folder, why.identity): why for why in self._find()}

    @cached_property
    def _by_key(self) -> Mapping[_Key, list[Why | None]]:
        """The reasons of objects by all that is asked for; None for what a Component adds."""
        found: defaultdict[_Key, list[Why | None]] = defaultdict(list)
        for path, identities, _ in self.folders:
            for item in identities:
                whose = self._whys.get((path, item))
                kind = item.group, item.kind
                for key in ((path,), (path.partition("/")[0], ""), kind, (*kind, item.name), ("in", item.namespace)):
                    found[key].append(whose)
        return dict(found)

    def _common(self, route: Path, key: _Key) -> Links:
        """Return what all of them have; a name that nobody traces is no reason against those of others."""
        found = [why.of(route) if why else () for why in self._by_key.get(key, ())]
        if route != WHOLE:
            found = [links for links in found if links]
        if not found:
            return ()
        places = frozenset.intersection(*(frozenset(link.at for link in links) for links in found))
        common = tuple(dict.fromkeys(link for link in found[0] if link.at in places))
        return choosing(common) if route == WHOLE else common
