"""Find documents in files that nothing reads, so that a finding on an unknown name says where its document lies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from gpuplan.compiler.base.diagnostics import Diagnostic, GpuplanError
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.documents import (
    MAX_BYTES,
    NOTHING_TO_DELETE,
    Document,
    FileTree,
    Kind,
    find_folders,
    read_bytes,
    read_manifests,
)
from gpuplan.compiler.planning.rules import UNKNOWN_REFERENCE, unknown_document


@dataclass(slots=True)
class UnreadFiles:
    """The files of a repository that are no part of the platform; they are read once, when asked."""

    tree: FileTree
    base: str
    """The folder that policies belong into."""
    helps: dict[frozenset[str], dict[str, str]] = field(default_factory=dict)
    """The help by the message that calls a document unknown, for each set of folders that are read."""

    def locate(self, diagnostic: Diagnostic, read: frozenset[str]) -> Diagnostic:
        """Return a finding on an unknown document with its file, if the file exists and nothing reads it."""
        source, message = diagnostic.finding.at.source, diagnostic.finding.message
        if diagnostic.rule is NOTHING_TO_DELETE and isinstance(source, Document):
            message = unknown_document(source.kind, source.name)
        elif diagnostic.rule is not UNKNOWN_REFERENCE:
            return diagnostic
        if read not in self.helps:
            self.helps[read] = {**dict(self._in_folders(read)), **dict(self._in_misnamed(read))}
        help_ = self.helps[read].get(message)
        return diagnostic.rule.report(replace(diagnostic.finding, help=help_)) if help_ else diagnostic

    def _in_folders(self, read: frozenset[str]) -> Iterator[tuple[str, str]]:
        """Yield messages and help for the documents of folders at the root, the nearest folder last."""
        for folder in reversed([name for name in find_folders(self.tree, ".") if name not in read]):
            with suppress(GpuplanError):  # such a folder may hold anything
                documents = () if folder.startswith(".") else read_manifests(self.tree, folder)[0]
                for item in documents:
                    way = f"into {self.base}/, or add `{folder}` to `bases` of the Cluster"
                    help_ = f"move {item.file.path}, which nothing reads, {way}"
                    yield unknown_document(item.kind, item.name), help_

    def _in_misnamed(self, read: frozenset[str]) -> Iterator[tuple[str, str]]:
        """Yield messages and help for the files whose names go on behind `.yaml`, such as `pools.yaml.bak`."""
        paths: list[str] = []
        pending = sorted(read)
        while pending:
            folder = pending.pop()
            for entry in self.tree.entries(folder) if self.tree.target(folder).kind is Kind.FOLDER else ():
                path = f"{folder}/{entry.name}"
                if entry.kind is Kind.FOLDER:
                    pending.append(path)
                elif entry.kind is Kind.FILE and _GOES_ON.search(entry.name):
                    paths.append(path)
        for path in sorted(paths)[:_MOST][::-1]:
            right = f"{path[: path.lower().index('.y')]}.yaml"
            for item in read_bytes(path, self.tree.read(path, MAX_BYTES))[0]:
                help_ = f"rename {path} to {right}: gpuplan reads `*.yaml` and `*.yml` alone"
                yield unknown_document(item.kind, item.name), help_


_GOES_ON = regex(r"^[^.].*\.ya?ml[.~_-]", re.IGNORECASE)
_MOST = 20
"""The files that are looked into; there are few, most often one."""
