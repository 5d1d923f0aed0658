"""Find documents in folders that nothing reads, so that a finding on an unknown name says where its document lies."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from gpuplan.compiler.base.diagnostics import Diagnostic, GpuplanError
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.documents import MAX_BYTES, FileTree, Kind, find_folders, read_bytes, read_manifests
from gpuplan.compiler.planning.rules import UNKNOWN_REFERENCE


@dataclass(slots=True)
class UnreadFolders:
    """The folders at the root of a repository that are no part of the platform; each is read once, when asked."""

    tree: FileTree
    base: str
    """The folder that policies belong into."""
    paths: dict[str, dict[str, str]] = field(default_factory=dict)
    """The path of each document by what a finding says of it when it is unknown, for each folder."""
    misnamed: list[str] | None = None

    def locate(self, diagnostic: Diagnostic, read: Collection[str]) -> Diagnostic:
        """Return a finding on an unknown document with its folder, if the folder exists and nothing reads it."""
        if diagnostic.rule is not UNKNOWN_REFERENCE:
            return diagnostic
        for path in self._misnamed(read):
            if diagnostic.finding.message in self._documents_of(path):
                right = f"{path[: path.lower().index('.y')]}.yaml"
                help_ = f"rename {path} to {right}: gpuplan reads `*.yaml` and `*.yml` alone"
                return diagnostic.rule.report(replace(diagnostic.finding, help=help_))
        for folder in find_folders(self.tree, "."):
            if folder in read or folder.startswith("."):
                continue
            if folder not in self.paths:
                self.paths[folder] = {}
                with suppress(GpuplanError):  # such a folder may hold anything
                    documents, _ = read_manifests(self.tree, folder)
                    self.paths[folder] = {f"unknown {item.kind} `{item.name}`": item.file.path for item in documents}
            if known := self.paths[folder].get(diagnostic.finding.message):
                bases_help = f"add `{folder}` to `bases` of the Cluster"
                help_ = f"move {known}, which nothing reads, into {self.base}/, or {bases_help}"
                return diagnostic.rule.report(replace(diagnostic.finding, help=help_))
        return diagnostic

    def _misnamed(self, read: Collection[str]) -> Sequence[str]:
        """Return the files of folders that are read whose names go on behind `.yaml`, such as `pools.yaml.bak`."""
        if self.misnamed is None:
            pending, self.misnamed = sorted(read), []
            while pending:
                folder = pending.pop()
                for entry in self.tree.entries(folder) if self.tree.target(folder).kind is Kind.FOLDER else ():
                    path = f"{folder}/{entry.name}"
                    if entry.kind is Kind.FOLDER:
                        pending.append(path)
                    elif entry.kind is Kind.FILE and _GOES_ON.search(entry.name):
                        self.misnamed.append(path)
            self.misnamed.sort()
        return self.misnamed[:_MOST]

    def _documents_of(self, path: str) -> dict[str, str]:
        if path not in self.paths:
            documents, _ = read_bytes(path, self.tree.read(path, MAX_BYTES))
            self.paths[path] = {f"unknown {item.kind} `{item.name}`": path for item in documents}
        return self.paths[path]


_GOES_ON = regex(r"^[^.].*\.ya?ml[.~_-]", re.IGNORECASE)
_MOST = 20
"""The files that are looked into; there are few, most often one."""
