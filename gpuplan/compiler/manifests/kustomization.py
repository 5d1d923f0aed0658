"""The ``kustomization.yaml`` of every folder, so that an Application may point at any of them.

Each folder lists its own files and the folders right below it. There is no ``namespace:`` transformer, which would also
write a namespace onto cluster-wide custom resources, and no generator. A folder with nothing to apply says
``resources: []``: kustomize refuses a kustomization without any field as empty, and builds this one to nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from posixpath import relpath
from typing import Final

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests.yamltext import scalar

FILE_NAME: Final = "kustomization.yaml"
_TOP: Final = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"


class Apart(NamedTuple):
    """A folder right below the top one that does not list it: something that the top one applies, applies it.

    ``replacements`` are its files that copy values from one object to others.
    """

    folder: str
    replacements: tuple[str, ...] = ()


def list_folders(
    applied: Iterable[str], others: Iterable[str] = (), apart: Apart | None = None
) -> dict[str, list[str]]:
    """Return the entries of each folder's kustomization: its files and sub-folders, sorted.

    ``applied`` are paths of files that hold objects; ``others`` are folders that need a kustomization all the same.
    The empty path is the top folder, which is always there.
    """
    folders: defaultdict[str, list[str]] = defaultdict(list, {"": []})
    for path in applied:
        folder, _, name = path.rpartition("/")
        folders[folder].append(name)
    for folder in others:
        folders[folder]
    waiting = [folder for folder in folders if folder]
    while waiting:
        folder = waiting.pop()
        parent, _, name = folder.rpartition("/")
        if parent not in folders:
            waiting.append(parent)
        folders[parent].append(name)
    if apart and apart.folder in folders:
        folders[""].remove(apart.folder)
    for entries in folders.values():
        entries.sort()
    return dict(sorted(folders.items()))


def kustomization_text(
    resources: Sequence[str], components: Sequence[str] = (), replacements: Sequence[str] = ()
) -> str:
    """The text of one kustomization; ``components`` and ``replacements`` are paths relative to its folder."""
    copied = "replacements:\n" + "".join([f"- path: {scalar(path)}\n" for path in replacements])
    listed = _list("components", components) if components else ""
    return _TOP + _list("resources", resources) + listed + (copied if replacements else "")


def component_paths(folder: str, components: Iterable[str], root: str = "/") -> tuple[str, ...]:
    """Paths from a folder to component folders, all of them relative to the repository's root.

    Where the root itself is matters only to a folder outside of it, whose path starts with ``..``.
    """
    return tuple(relpath(f"{root}/{component}", f"{root}/{folder}") for component in components)


def _list(key: str, entries: Sequence[str]) -> str:
    if not entries:
        return f"{key}: []\n"
    return f"{key}:\n" + "".join([f"- {scalar(entry)}\n" for entry in entries])
