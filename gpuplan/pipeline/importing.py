"""Make policies of what runs: the stages of `gpuplan.adoption` in order, with a plan between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from gpuplan.adoption import Draft, Found, platform, read_dump, tenants, workloads
from gpuplan.documents import DiskTree, Entry, FileTree, Kind, Target, find_folders
from gpuplan.manifests import to_yaml
from gpuplan.pipeline import Report
from gpuplan.pipeline.findings import tidy
from gpuplan.pipeline.loading import DEFAULT_BASES, OVERLAYS, Repository, load_tree
from gpuplan.pipeline.writing import document
from gpuplan.values import Value


class Import(Value):
    """The files to write, by path, and what is said of the dump and of the policies that were made of it."""

    report: Report
    files: Mapping[str, str]
    drafts: tuple[Draft, ...] = ()


def adopt(root: Path, dumps: Mapping[str, bytes], cluster: str) -> Import:
    """Make policies of dumps, contents by name, for a cluster of a repository; nothing is written."""
    dump, unread = read_dump(dumps)
    is_first = not set(find_folders(root, OVERLAYS)) - {cluster}
    found = Found(diagnostics=unread) + platform(dump, cluster)
    for stage in (tenants, workloads):
        repository = _planned(root, cluster, files_of(found.drafts, cluster, is_first=is_first))
        for plan in repository.plans:
            found += stage(dump, plan)
    files = files_of(found.drafts, cluster, is_first=is_first)
    repository = _planned(root, cluster, files)
    diagnostics = (*found.diagnostics, *repository.diagnostics)
    report = Report(tidy(diagnostics, (), needed=()), repository.plans, (cluster,), len(dumps))
    return Import(report, files, found.drafts)


def _planned(root: Path, cluster: str, files: Mapping[str, str]) -> Repository:
    tree = Written(DiskTree(root), {path: text.encode() for path, text in files.items()})
    return load_tree(tree, (*find_folders(root, OVERLAYS), cluster), (cluster,))


# --- Files -------------------------------------------------------------------------------------------------------

_SHARED: Final = {"Gpu": "gpus", "MigLayout": "layouts", "PriorityClass": "priority-classes"}
_OWN: Final = {"Pool": "pools", "Tenant": "tenants", "Workload": "workloads", "Retained": "retained"}


def files_of(drafts: Iterable[Draft], cluster: str, *, is_first: bool) -> dict[str, str]:
    """The text of each draft by the path of its file; what clusters may share is in `policies/` of the first one."""
    found: dict[str, str] = {}
    for draft in drafts:
        shared = _SHARED.get(draft.kind)
        top = DEFAULT_BASES[0] if shared and is_first else f"{OVERLAYS}/{cluster}"
        folder = shared or _OWN.get(draft.kind)
        path = f"{top}/{folder}/{draft.name}.yaml" if folder else f"{top}/cluster.yaml"
        found[path] = text_of(draft)
    return found


def text_of(draft: Draft) -> str:
    """A document below comments on where it is from and what it does not say."""
    comments = [f"From {source}." for source in draft.sources] + [f"Not said here: {item}" for item in draft.remarks]
    head = "".join(f"# {line}\n" for comment in comments for line in comment.splitlines())
    return head + to_yaml(document(draft.kind, draft.name, draft.spec))


class Written:
    """A tree with more files than it has; a `gpuplan.documents.FileTree`."""

    def __init__(self, below: FileTree, files: Mapping[str, bytes]) -> None:
        self._below = below
        self._files = files
        self._folders: dict[str, dict[str, Kind]] = {".": {}}
        for path in files:
            above, kind = path, Kind.FILE
            while above:
                folder, _, name = above.rpartition("/")
                self._folders.setdefault(folder or ".", {})[name] = kind
                above, kind = folder, Kind.FOLDER

    def entries(self, folder: str) -> Sequence[Entry]:
        added = self._folders.get(folder, {})
        there = self._below.entries(folder) if self._below.target(folder).kind is Kind.FOLDER else ()
        known = [entry for entry in there if entry.name not in added]
        return [*known, *(Entry(name, kind) for name, kind in added.items())]

    def target(self, path: str) -> Target:
        kind = Kind.FILE if path in self._files else Kind.FOLDER if path in self._folders else None
        return Target(kind) if kind else self._below.target(path)

    def read(self, path: str, most: int) -> bytes:
        return self._files[path][:most] if path in self._files else self._below.read(path, most)
