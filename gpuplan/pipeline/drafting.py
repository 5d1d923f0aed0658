"""Drafts of policies as files: where each stands, and its text below comments on what it is from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from textwrap import wrap
from typing import Final

from gpuplan.adoption import Draft
from gpuplan.documents import Entry, FileTree, Kind, Target
from gpuplan.manifests import to_yaml
from gpuplan.patterns import regex
from gpuplan.pipeline.loading import DEFAULT_BASES, OVERLAYS
from gpuplan.pipeline.writing import document
from gpuplan.policy.models import API_VERSION
from gpuplan.wording import joined

_SHARED: Final = {"Gpu": "gpus", "MigLayout": "layouts", "PriorityClass": "priority-classes"}
"""What clusters may have in common, with the folder that it stands in."""
_OWN: Final = {"Pool": "pools", "Tenant": "tenants", "Workload": "workloads", "Retained": "retained"}
_WIDTH: Final = 118


def files_of(drafts: Iterable[Draft], cluster: str, *, shares: bool) -> dict[str, str]:
    """The text of each draft by the path of its file; with ``shares`` what clusters may share is in `policies/`."""
    found: dict[str, str] = {}
    for draft in drafts:
        is_shared = shares and draft.kind in _SHARED
        top = DEFAULT_BASES[0] if is_shared else f"{OVERLAYS}/{cluster}"
        folder = {**_SHARED, **_OWN}.get(draft.kind)
        name = _UNFIT.sub("-", draft.name).strip(".") or "unnamed"
        path = f"{top}/{folder}/{name}.yaml" if folder else f"{top}/cluster.yaml"
        found[path] = f"{found[path]}---\n{text_of(draft)}" if path in found else text_of(draft)
    return found


_UNFIT: Final = regex(r"[^-_.A-Za-z0-9]")
"""What no file is called by: the names of a dump are whatever somebody wrote."""


def text_of(draft: Draft) -> str:
    """A document below comments on where it is from and what it does not say."""
    return "".join(_comments(draft)) + to_yaml(document(draft.kind, draft.name, draft.spec))


_MOST_SOURCES: Final = 8


def _comments(draft: Draft) -> Iterator[str]:
    """A line for each file that it came from, with the objects there, and one for each remark.

    Of a file that the user named from the root of the disk only the name is told: policies are committed.
    """
    by_file: dict[str, list[str]] = {}
    for source in dict.fromkeys(draft.sources):
        title, _, file = source.rpartition(" (")
        file = file.removesuffix(")")
        by_file.setdefault(file.rpartition("/")[2] if file.startswith("/") else file, []).append(title)
    for file, titles in by_file.items():
        more = [f"{len(titles) - _MOST_SOURCES} more"] if len(titles) > _MOST_SOURCES else []
        told = joined([*filter(None, titles[:_MOST_SOURCES]), *more])
        yield from _comment(f"From {file}: {told}." if told else f"From {file}.", "  ")
    for remark in dict.fromkeys(draft.remarks):
        yield from _comment(f"- {remark}", "  ")


_INSTRUCTIONS: Final = ("gpuplan:", "$schema=")
"""What makes a comment an instruction, to gpuplan or to an editor: a dump gives none."""


def _comment(text: str, indent: str) -> Iterator[str]:
    printable = "".join(char if char.isprintable() else " " for char in text)
    for mark in _INSTRUCTIONS:
        printable = printable.replace(mark, f"{mark[:-1]} {mark[-1]}")
    for line in wrap(printable, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False):
        yield f"# {line}\n"


def text_of_deletions(documents: Sequence[tuple[str, str]]) -> str:
    """What takes documents of the bases away from a cluster that has none of them."""
    head = "# What the bases have and this cluster has not.\n"
    texts = [
        to_yaml({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, "$patch": "delete"}})
        for kind, name in documents
    ]
    return head + "---\n".join(texts)


class Written:
    """Files, above those of another tree if there is one; a `gpuplan.documents.FileTree`."""

    def __init__(self, below: FileTree | None, files: Mapping[str, bytes]) -> None:
        self._below = below
        self._files = files
        self._folders: dict[str, dict[str, Kind]] = {".": {}}
        for path in files:
            above, kind = path, Kind.FILE
            while above:
                folder, _, name = above.rpartition("/")
                self._folders.setdefault(folder or ".", {})[name] = kind
                above, kind = folder, Kind.FOLDER

    def expect(self, folder: str, skip: AbstractSet[str]) -> None:
        if self._below is not None and self._below.target(folder).kind is Kind.FOLDER:
            self._below.expect(folder, skip)

    def entries(self, folder: str) -> Sequence[Entry]:
        added = self._folders.get(folder, {})
        below = self._below
        there = below.entries(folder) if below is not None and below.target(folder).kind is Kind.FOLDER else ()
        known = [entry for entry in there if entry.name not in added]
        return [*known, *(Entry(name, kind) for name, kind in added.items())]

    def target(self, path: str) -> Target:
        kind = Kind.FILE if path in self._files else Kind.FOLDER if path in self._folders else None
        return Target(kind) if kind or self._below is None else self._below.target(path)

    def read(self, path: str, most: int) -> bytes:
        if path in self._files or self._below is None:
            return self._files[path][:most]
        return self._below.read(path, most)
