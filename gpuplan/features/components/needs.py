"""Find what hand-written Components are built from, wherever it lies, and read it within bounds."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from posixpath import dirname, isabs, join, normpath, relpath
from typing import Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, GpuplanError, Origin, reason_of
from gpuplan.compiler.base.plain import mapping, read_text
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import misspelling
from gpuplan.compiler.documents import MAX_BYTES, read_bytes
from gpuplan.compiler.planning.hand_files import ALL_KUSTOMIZATION_FILES, HandFiles, Kustomization
from gpuplan.features.components.checks.components import remote_references
from gpuplan.features.components.checks.references import Reference, find_doubt, references
from gpuplan.features.components.kustomize import Sources, can_confine
from gpuplan.features.components.rules import COMPONENT_DOES_NOT_BUILD, COMPONENT_FILE_UNUSABLE

MAX_TOTAL: Final = 8 * MAX_BYTES
"""Bytes that all Components of a cluster may be built from."""
MOST_OBSTACLES: Final = 100
"""After so many a Component is looked into no further: it is not built, and nobody reads more."""
_MOST_NAMES: Final = 1_000
"""The entries of a folder in which a misspelt name is looked for."""
_MAX_LINKS: Final = 40  # of one path, as on Linux


class Needs(Value):
    """The files that one Component is built from, and what keeps it from being built.

    ``obstacles`` are what kustomize would stumble on, ``remote`` what it would fetch.
    ``kustomizations`` are those that it is built with, its own first.
    """

    kustomizations: tuple[Kustomization, ...]
    obstacles: tuple[Diagnostic, ...]
    remote: tuple[Finding, ...]
    sources: Sources

    def doubt(self) -> str:
        """Return a text that may name another place if nothing keeps kustomize from a network, else an empty one."""
        return "" if can_confine() else next(filter(None, map(find_doubt, self.kustomizations)), "")


def all_sources(needs: Sequence[Needs]) -> Sources:
    """Return the files that several Components are built from."""
    files = {path: data for item in needs for path, data in item.sources.files.items()}
    links = {path: target for item in needs for path, target in item.sources.links.items()}
    return Sources(files, links, frozenset(path for item in needs for path in item.sources.folders))


# --- The disk ----------------------------------------------------------------------------------------------------


class _UnusableError(GpuplanError):
    """A file that there is, and that is not read: what it is, and what to do."""


class Disk:
    """Reads regular files of bounded size, each once; paths are from the top of the file system.

    ``links`` are those met on the way, with what they lead to.
    """

    def __init__(self) -> None:
        self.links: dict[str, str] = {}
        self._followed: dict[str, tuple[str, int]] = {}
        self._files: dict[str, bytes | _UnusableError] = {}
        self._total = 0

    def resolve(self, path: str) -> tuple[str, int]:
        """The path behind all links, and the mode of what is there; `OSError` where there is nothing."""
        if "\0" in path:
            raise FileNotFoundError(path)
        return self._follow("/", normpath(path).strip("/").split("/"), 0)

    def _follow(self, real: str, parts: Sequence[str], links: int) -> tuple[str, int]:
        mode = os.lstat(real).st_mode
        for part in parts:
            if part in ("", "."):
                continue
            if part == "..":
                real, mode = dirname(real), stat.S_IFDIR
                continue
            here = join(real, part)
            mode = os.lstat(here).st_mode
            if not stat.S_ISLNK(mode):
                real = here
                continue
            if links >= _MAX_LINKS:
                raise FileNotFoundError(here)
            if here not in self._followed:  # else links to links could take for ever
                target = os.readlink(here)  # noqa: PTH115 - a text, to be followed step by step
                self._followed[here] = self._follow("/" if isabs(target) else real, target.split("/"), links + 1)
            real, mode = self._followed[here]
            self.links[here] = real
        return real, mode

    def read(self, real: str, mode: int) -> bytes:
        """The content of what `resolve` found, or `_UnusableError`."""
        known = self._files.get(real)
        if known is None:
            try:
                known = self._read(real, mode)
            except _UnusableError as unusable:
                known = unusable
            self._files[real] = known
        if isinstance(known, _UnusableError):
            raise known
        return known

    def _read(self, real: str, mode: int) -> bytes:
        if not stat.S_ISREG(mode):
            kinds = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISDIR, "a folder"))
            kind = next((kind for is_one, kind in kinds if is_one(mode)), "a device")
            raise _UnusableError(f"is {kind}, not a file", "put a file there, or remove the line")
        try:
            descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
            with open(descriptor, "rb") as stream:  # noqa: PTH123 - what was opened without waiting
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise _UnusableError("is not a file any more", "try again")
                data = stream.read(MAX_BYTES + 1)
        except OSError as error:
            raise _UnusableError(f"cannot be read: {reason_of(error)}", "give yourself read access") from error
        if len(data) > MAX_BYTES:
            raise _UnusableError(f"is larger than {MAX_BYTES // 2**20} MiB", "split it into several files")
        self._total += len(data)
        if self._total > MAX_TOTAL:
            raise _UnusableError(f"is one file too many: together they have more than {MAX_TOTAL // 2**20} MiB", "")
        return data


# --- Kustomizations ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Finder:
    """Finds what Components of a cluster need; ``known`` are the files that were read and judged already."""

    root: Path
    known: HandFiles
    disk: Disk = field(default_factory=Disk)
    _read: dict[str, tuple[Sequence[tuple[Origin, object]], Sequence[Diagnostic]]] = field(default_factory=dict)

    def find(self, folder: str, at: Origin) -> Needs:
        """Return the needs of the Component in a folder. ``at`` is the place that asks for it."""
        return _Search(self, folder, at).needs()

    def absolute(self, path: str) -> str:
        return normpath(join(self.root.as_posix(), path))

    def relative(self, path: str) -> str:
        return relpath(path, self.root.as_posix())

    # What `Files` has.

    def find_documents(self, path: str) -> Sequence[tuple[Origin, object]]:
        return self.known.find_documents(path) or self.read(path)[0]

    def find_kustomization(self, folder: str) -> Kustomization | None:
        known = self.known.find_kustomization(folder)
        if known is not None:
            return known
        for name in ALL_KUSTOMIZATION_FILES:
            for at, body in self.read(f"{folder}/{name}")[0]:
                return Kustomization(at, mapping(body), folder, "")
        return None

    def read(self, path: str) -> tuple[Sequence[tuple[Origin, object]], Sequence[Diagnostic]]:
        """The documents of a file, and why it cannot be read; nothing where there is no file."""
        if path not in self._read:
            try:
                data = self.disk.read(*self.disk.resolve(self.absolute(path)))
            except (OSError, _UnusableError):
                self._read[path] = (), ()
            else:
                documents, problems = read_bytes(path, data)
                self._read[path] = [(item.origin, item.data) for item in documents], problems
        return self._read[path]


class _Search:
    """One walk from a Component to all that it is built from."""

    def __init__(self, finder: Finder, folder: str, at: Origin) -> None:
        self._finder = finder
        self._disk = finder.disk
        self._kustomizations: list[Kustomization] = []
        self._obstacles: list[Diagnostic] = []
        self._files: dict[str, bytes] = {}
        self._folders: set[str] = set()
        self._waiting: list[tuple[str, Reference]] = []
        self._visit(finder.absolute(folder), Reference(at, folder, may_be_folder=True))

    def needs(self) -> Needs:
        seen = set(self._folders)
        while self._waiting and len(self._obstacles) < MOST_OBSTACLES:
            path, reference = self._waiting.pop(0)
            if path not in seen:
                seen.add(path)
                self._visit(path, reference)
        remote = [item for found in self._kustomizations for item in remote_references(found, self._finder)]
        links = self._disk.links  # few, and one too many does no harm
        sources = Sources(self._files, dict(links), frozenset(self._folders))
        return Needs(tuple(self._kustomizations), tuple(self._obstacles), tuple(remote), sources)

    def _visit(self, path: str, reference: Reference) -> None:
        """Take what the kustomization of a folder needs; the folder is behind all links."""
        try:
            real, mode = self._disk.resolve(path)
        except OSError:
            return
        if not stat.S_ISDIR(mode):
            return
        self._folders.add(real)
        for name in ALL_KUSTOMIZATION_FILES:
            file = join(real, name)
            if os.path.lexists(file):
                self._take(file, Reference(reference.at, self._finder.relative(file)))
        known = self._finder.known.find_kustomization(self._finder.relative(path))
        folder = self._finder.relative(real)
        kustomization = known or self._finder.find_kustomization(folder)
        if known is None:
            for name in ALL_KUSTOMIZATION_FILES:
                self._obstacles += self._finder.read(f"{folder}/{name}")[1]
        for reading in _readings(kustomization) if kustomization else ():
            self._kustomizations.append(reading)
            self._take_all(reading, real)

    def _take_all(self, kustomization: Kustomization, real: str) -> None:
        for inner in references(kustomization, self._finder):
            if len(self._obstacles) >= MOST_OBSTACLES:
                return
            if inner.is_remote:
                continue
            if isabs(inner.value) or normpath(join(real.lstrip("/"), inner.value)).startswith(".."):
                self._refuse(inner, _UnusableError("is no way from its folder", "write a path from there"), inner.value)
            else:
                self._take(normpath(join(real, inner.value)), inner)

    def _take(self, path: str, reference: Reference) -> None:
        """Take a file, or remember a folder; what is neither is an obstacle."""
        try:
            real, mode = self._disk.resolve(path)
            if not stat.S_ISDIR(mode):
                self._files[real] = self._disk.read(real, mode)
            elif reference.may_be_folder:
                self._waiting.append((real, reference))
            else:
                self._folders.add(real)  # kustomize says what is wrong with that
        except OSError:
            self._obstacles.append(COMPONENT_DOES_NOT_BUILD.report(self._missing(path, reference)))
        except _UnusableError as unusable:
            self._refuse(reference, unusable, self._finder.relative(path))

    def _refuse(self, reference: Reference, unusable: _UnusableError, path: str) -> None:
        finding = Finding(
            reference.at,
            f"`{reference.name}` {unusable.message}",
            label="not taken",
            notes=(f"kustomize would look for `{path}`",),
            help=unusable.hint,
        )
        self._obstacles.append(COMPONENT_FILE_UNUSABLE.report(finding))

    def _missing(self, path: str, reference: Reference) -> Finding:
        name, written = Path(path).name, reference.name
        is_ours = path.startswith(f"{self._finder.root.as_posix()}/")  # what else lies on the machine is not for all
        try:
            names = os.listdir(dirname(path)) if is_ours else ()  # noqa: PTH208 - names alone
        except (OSError, ValueError):
            names = ()
        close = misspelling(name, names) if len(names) <= _MOST_NAMES else None
        return Finding(
            reference.at,
            f"`{written}` does not exist",
            label=f"did you mean `{close}`" if close else "no such file or folder",
            notes=(f"kustomize looks for `{self._finder.relative(path)}`",),
            help=f"write `{written[: len(written) - len(name)]}{close}`" if close else "add it, or remove it",
        )


def _readings(kustomization: Kustomization) -> Iterator[Kustomization]:
    """The kustomization, and as kustomize may read it: of a key that is there twice, Go takes the last value."""
    yield kustomization
    text = kustomization.at.locate().file.text
    first = next((item for item in read_text(text) if isinstance(item, Mapping)), None)
    if first is not None and first != kustomization.body:
        yield replace(kustomization, body=mapping(first))
