"""Policies in memory, whose values are changed one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path as Folder
from typing import Any, NamedTuple

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.documents import DiskTree, Entry, Kind, Target, find_folders, read_folder, read_text
from tests.plans import with_cluster

BASES = "policies"
OVERLAYS = "overlays"
HAND_WRITTEN = "kustomize"


class Place(NamedTuple):
    """A value as a file says it: the file, the how manieth document in it, and the route in the document."""

    file: str
    document: int
    path: Path

    def __str__(self) -> str:
        return f"{self.file}#{self.document}:{'.'.join(map(str, self.path))}"


class Edit(NamedTuple):
    """Another value at a place; with ``is_key`` the key there is called so from then on."""

    place: Place
    value: Any
    is_key: bool = False

    @property
    def becomes(self) -> Place:
        """Where the value is afterwards."""
        file, document, path = self.place
        return Place(file, document, (*path[:-1], self.value)) if self.is_key else self.place


class Files:
    """Files by path; a `gpuplan.compiler.documents.FileTree`."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self._folders: dict[str, dict[str, Kind]] = {".": {}}
        for path in files:
            above, kind = path, Kind.FILE
            while above:
                folder, _, name = above.rpartition("/")
                self._folders.setdefault(folder or ".", {})[name] = kind
                above, kind = folder, Kind.FOLDER

    def expect(self, folder: str, skip: AbstractSet[str]) -> None:
        """Nothing is too much."""

    def entries(self, folder: str) -> Sequence[Entry]:
        return [Entry(name, kind) for name, kind in self._folders[folder].items()]

    def target(self, path: str) -> Target:
        return Target(Kind.FILE if path in self._files else Kind.FOLDER if path in self._folders else None)

    def read(self, path: str, most: int) -> bytes:
        return self._files[path][:most]


@dataclass(frozen=True)
class Policies:
    """The documents of each file, and hand-written files as they are."""

    documents: Mapping[str, tuple[Any, ...]]
    others: Mapping[str, bytes] = field(default_factory=dict)
    _texts: dict[int, bytes] = field(default_factory=dict)

    @property
    def clusters(self) -> tuple[str, ...]:
        return tuple(sorted({path.split("/")[1] for path in self.documents if path.startswith(f"{OVERLAYS}/")}))

    @property
    def files(self) -> dict[str, bytes]:
        return {path: self._text(documents) for path, documents in self.documents.items()} | dict(self.others)

    @property
    def tree(self) -> Files:
        return Files(self.files)

    def _text(self, documents: tuple[Any, ...]) -> bytes:
        """One line for each document, below a line that starts it."""
        if id(documents) not in self._texts:
            self._texts[id(documents)] = b"".join(
                b"---\n%s\n" % json.dumps(item, ensure_ascii=False).encode() for item in documents
            )
        return self._texts[id(documents)]

    def scalars(self) -> Iterator[tuple[Place, Any]]:
        """Each value that is no mapping and no list, with its place."""
        for file, documents in self.documents.items():
            for number, document in enumerate(documents):
                yield from ((Place(file, number, path), value) for path, value in _scalars(document, ()))

    def get(self, place: Place) -> Any:
        value = self.documents[place.file][place.document]
        for part in place.path:
            value = value[part]
        return value

    def edited(self, edits: Iterable[Edit]) -> Policies:
        """With other values; keys are changed after values, so that places are those of the policies as they were."""
        changed: dict[str, list[Any]] = {}
        for edit in sorted(edits, key=lambda edit: (edit.is_key, -len(edit.place.path))):
            file, number, path = edit.place
            documents = changed.setdefault(file, list(deepcopy(self.documents[file])))
            part = documents[number]
            for key in path[:-1]:
                part = part[key]
            if edit.is_key:
                items = [(edit.value if key == path[-1] else key, value) for key, value in part.items()]
                part.clear()
                part.update(items)
            else:
                part[path[-1]] = edit.value
        return Policies(
            {file: tuple(changed[file]) if file in changed else found for file, found in self.documents.items()},
            self.others,
            {key: self._texts[key] for file, found in self.documents.items() if (key := id(found)) in self._texts},
        )

    def with_cluster(self, old: str, new: str) -> Policies:
        """With the folder of a cluster called otherwise."""

        def moved(path: str) -> str:
            start = f"{OVERLAYS}/{old}/"
            return f"{OVERLAYS}/{new}/{path.removeprefix(start)}" if path.startswith(start) else path

        return Policies(
            {moved(path): found for path, found in self.documents.items()},
            {moved(path): data for path, data in self.others.items()},
        )


def read_policies(root: Folder) -> Policies:
    """Those of a platform on the disk; a file is all that a cluster `test` has."""
    if root.is_file():
        path = f"{OVERLAYS}/test/{root.name}"
        documents, _ = read_text(path, with_cluster(root.read_text()))
        return Policies({path: tuple(document.data for document in documents)})
    found: dict[str, list[Any]] = {}
    others: dict[str, bytes] = {}
    tree = DiskTree(root)
    overlays = [f"{OVERLAYS}/{name}" for name in find_folders(tree, OVERLAYS)]
    for folder in (BASES, *overlays):
        for document in read_folder(tree, folder, skip=frozenset((HAND_WRITTEN,)))[0]:
            found.setdefault(document.file.path, []).append(document.data)
    for folder in overlays:
        below = root / folder / HAND_WRITTEN
        others |= {str(path.relative_to(root)): path.read_bytes() for path in below.rglob("*") if path.is_file()}
    return Policies({path: tuple(documents) for path, documents in found.items()}, others)


def _scalars(value: object, path: Path) -> Iterator[tuple[Path, object]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _scalars(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _scalars(item, (*path, index))
    else:
        yield path, value
