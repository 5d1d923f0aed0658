"""Why folders, kinds and namespaces are among what is delivered: looked up when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from gpuplan.diagnostics import Path
from gpuplan.manifests import Identity, Manifest
from gpuplan.manifests.provenance import Links, choosing
from gpuplan.values import NamedTuple

if TYPE_CHECKING:
    from gpuplan.delivery import Folder

WHOLE: Final[Path] = ()
NAME: Final[Path] = ("metadata", "name")
NAMESPACE: Final[Path] = ("metadata", "namespace")


class Why(NamedTuple):
    """An object of a folder, and where it comes from: that it is there, its name, and its namespace."""

    folder: str
    identity: Identity
    links: tuple[tuple[Path, Links], ...]

    def of(self, route: Path) -> Links:
        return tuple(link for found, links in self.links if found == route for link in links)


def why(manifest: Manifest) -> Why:
    """That of an object of a back end."""
    traced = manifest.trace() if manifest.trace else ()
    return Why(
        manifest.folder, manifest.identity, tuple(item for item in traced if item[0] in (WHOLE, NAME, NAMESPACE))
    )


FindWhys = Callable[[], Iterable[Why]]
"""Looks for why each object of the folders is there."""


class Reasons:
    """What of the policy alone decides about some of what a cluster's folders apply.

    One value decides on several objects if it decides on each: what two tenants have is there without either. Nothing
    decides on what a hand-written Component adds.
    """

    def __init__(self, folders: Sequence[Folder], find: FindWhys) -> None:
        self.folders = folders
        self._find = find

    @cached_property
    def _whys(self) -> dict[tuple[str, Identity], Why]:
        return {(why.folder, why.identity): why for why in self._find()}

    def of_folder(self, path: str) -> Links:
        """What decides whether a folder, or one below it, is there."""
        return self._common(WHOLE, lambda folder, _: f"{folder}/".startswith(f"{path}/"))

    def of_kind(self, group: str, kind: str) -> Links:
        return self._common(WHOLE, lambda _, item: (item.group, item.kind) == (group, kind))

    def of_object(self, group: str, kind: str, name: str) -> Links:
        return self._common(WHOLE, lambda _, item: (item.group, item.kind, item.name) == (group, kind, name))

    def of_namespace(self, namespace: str) -> Links:
        """What decides whether there are objects in a namespace."""
        return self._common(WHOLE, lambda _, item: item.namespace == namespace)

    def names_of(self, group: str, kind: str, name: str) -> Links:
        """What an object's name comes from."""
        return self._common(NAME, lambda _, item: (item.group, item.kind, item.name) == (group, kind, name))

    def names_of_namespace(self, namespace: str) -> Links:
        """What the namespace of objects comes from."""
        return self._common(NAMESPACE, lambda _, item: item.namespace == namespace)

    def names_of_part(self, path: str) -> Links:
        """What the name of a folder for a namespace comes from: that of the objects there."""
        namespace = path.rpartition("/")[2]
        return self._common(NAMESPACE, lambda folder, item: folder == path and item.namespace == namespace)

    def has_kind(self, group: str, kind: str) -> bool:
        return any((item.group, item.kind) == (group, kind) for folder in self.folders for item in folder.identities)

    def _common(self, route: Path, is_meant: Callable[[str, Identity], bool]) -> Links:
        """What all of them have; a name that nobody traces is no reason against those of others."""
        meant = [(folder.path, item) for folder in self.folders for item in folder.identities]
        whys = (self._whys.get(key) for key in meant if is_meant(*key))
        found = [why.of(route) if why else () for why in whys]
        if route != WHOLE:
            found = [links for links in found if links]
        if not found:
            return ()
        places = frozenset.intersection(*(frozenset(link.at for link in links) for links in found))
        common = tuple(dict.fromkeys(link for link in found[0] if link.at in places))
        return choosing(common) if route == WHOLE else common
