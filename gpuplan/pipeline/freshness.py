"""Whether `out/` is what the policies make."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha1, sha256
from pathlib import Path
from typing import NamedTuple

from gpuplan.delivery import TOOLS
from gpuplan.diagnostics import Diagnostic, Finding, GpuplanError, Origin, SourceFile, WholeFile
from gpuplan.outtree import INCOMPLETE, INVENTORY, UNBUILT, Disk, Inventory, read_inventory, titles
from gpuplan.pipeline.loading import Repository
from gpuplan.wording import listing

_as_text = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode
_SHA1_DIGITS = 40
_DIGITS = 16
"""Enough to tell two texts of one document apart; nobody gains by making them look the same."""


class Staleness(NamedTuple):
    """How an output differs from what the policies beside it make: numbers of files, or why nobody can say."""

    differing: int = 0
    missing: int = 0
    trouble: str = ""

    def __bool__(self) -> bool:
        return bool(self.differing or self.missing or self.trouble)


def policy_digests(repository: Repository) -> dict[str, str]:
    """A digest of what every document says, by cluster, kind and name: ``dev/Pool/a100``.

    It is of the merged data, so that neither comments nor layout count. Most documents are shared by all clusters.
    """
    known: dict[int, str] = {}
    found: dict[str, str] = {}
    for cluster, documents in repository.documents.items():
        for document in documents:
            digest = known.get(id(document))
            if digest is None:
                digest = known[id(document)] = sha256(_as_text(document.data).encode()).hexdigest()[:_DIGITS]
            found[f"{cluster}/{document.kind}/{document.name}"] = digest
    return found


def judge_output(repository: Repository, root: Path, out: str) -> Iterator[Diagnostic]:
    """Say in a line that the output was not built of these policies, and in another that it lacks files.

    Nothing is rendered: the inventory says of what the files were made, and the disk only which of them are there.
    """
    at = Origin(WholeFile(SourceFile(f"{out}/{INVENTORY}", "")))
    clusters = () if repository.is_whole else repository.clusters
    try:
        inventory = read_inventory(root / out)
        files = inventory.files if inventory else {}
        missing = _missing(Disk(root / out, files), files, clusters)
    except GpuplanError as error:
        yield INCOMPLETE.report(Finding(at, error.message, help=error.hint))
        return
    if inventory is None:
        return
    if missing:
        some = listing([f"{out}/{path}" for path in missing], 1)
        help_ = f"run `git add {out}` where it was built, or `gpuplan build`"
        yield INCOMPLETE.report(Finding(at, f"`{out}/` lacks what `gpuplan build` wrote: {some}", help=help_))
    if stale := _changed(inventory, repository, clusters):
        message = f"`{out}/` was built before these changed: {listing(titles(stale))}"
        yield UNBUILT.report(Finding(at, message, help=f"run `gpuplan build` and commit `{out}/` with the policies"))


def _changed(inventory: Inventory, repository: Repository, clusters: Collection[str]) -> tuple[str, ...]:
    changed = inventory.changed(policy_digests(repository))
    return tuple(name for name in changed if not clusters or name.partition("/")[0] in clusters)


def _missing(disk: Disk, files: Iterable[str], clusters: Collection[str]) -> list[str]:
    """Nothing is looked for behind links: an inventory that came with them could ask about any file of the machine."""
    return [path for path in files if not disk.has(path) and (not clusters or cluster_of(path) in clusters)]


def cluster_of(path: str) -> str:
    """The cluster that a file of the output is for; empty where it is for all of them."""
    return owner(path).rpartition("/")[2]


def owner(path: str) -> str:
    """The folder that holds all of what is written for a cluster, or all that a tool syncs it by: ``argocd/dev``."""
    first, _, rest = path.partition("/")
    if first not in TOOLS:
        return first
    name, slash, _ = rest.partition("/")
    return f"{first}/{name}" if slash else ""


def compare_written(root: Path, out: str, tree: Mapping[str, bytes], folders: Collection[str]) -> Staleness | None:
    """How an output on the disk differs from a tree that was rendered for these folders; None without an output."""
    from gpuplan.outtree import Action, compare

    if not os.path.lexists(root / out / INVENTORY):
        return None
    try:
        changes = compare(root / out, tree, scope=folders).changes
    except GpuplanError as error:
        return Staleness(trouble=error.message)
    missing = sum(change.action is Action.CREATE for change in changes)
    return Staleness(len(changes) - missing, missing)


def compare_committed(blobs: Mapping[str, str], tree: Mapping[str, bytes]) -> Staleness:
    """How an output in a commit differs from a tree: ``blobs`` are Git's names of the files' contents, by path."""
    found = {path: blobs.get(path) for path in tree}
    missing = sum(name is None for name in found.values())
    return Staleness(sum(name != _blob(tree[path], name) for path, name in found.items() if name), missing)


def _blob(data: bytes, like: str) -> str:
    """What Git calls this content, in a repository of SHA-1 or of SHA-256."""
    algorithm = sha1 if len(like) == _SHA1_DIGITS else sha256
    return algorithm(b"blob %d\0" % len(data) + data).hexdigest()
