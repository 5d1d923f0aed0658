"""Find documents in folders that nothing reads, so that a finding on an unknown name says where its document lies."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace

from gpuplan.compiler.base.diagnostics import Diagnostic, GpuplanError
from gpuplan.compiler.documents import FileTree, find_folders, read_manifests
from gpuplan.compiler.planning.rules import UNKNOWN_REFERENCE


@dataclass(slots=True)
class UnreadFolders:
    """The folders at the root of a repository that are no part of the platform; each is read once, when asked."""

    tree: FileTree
    base: str
    """The folder that policies belong into."""
    paths: dict[str, dict[str, str]] = field(default_factory=dict)
    """The path of each document by what a finding says of it when it is unknown, for each folder."""

    def locate(self, diagnostic: Diagnostic, read: Collection[str]) -> Diagnostic:
        """Return a finding on an unknown document with its folder, if the folder exists and nothing reads it."""
        if diagnostic.rule is not UNKNOWN_REFERENCE:
            return diagnostic
        for folder in find_folders(self.tree, "."):
            if folder in read or folder.startswith("."):
                continue
            if folder not in self.paths:
                self.paths[folder] = {}
                with suppress(GpuplanError):  # such a folder may hold anything
                    documents, _ = read_manifests(self.tree, folder)
                    self.paths[folder] = {f"unknown {item.kind} `{item.name}`": item.file.path for item in documents}
            if path := self.paths[folder].get(diagnostic.finding.message):
                bases_help = f"add `{folder}` to `bases` of the Cluster"
                help_ = f"move {path}, which nothing reads, into {self.base}/, or {bases_help}"
                return diagnostic.rule.report(replace(diagnostic.finding, help=help_))
        return diagnostic
