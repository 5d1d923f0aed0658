"""What a build would take away as a whole."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from typing import Final

from gpuplan.diagnostics import Diagnostic, Finding, Origin, SourceFile, WholeFile
from gpuplan.outtree import INVENTORY, PRUNED, ChangeSet
from gpuplan.pipeline.freshness import cluster_of, owner
from gpuplan.wording import count, listing

_MANY: Final = 20
"""Files: fewer are soon looked through, and a small cluster loses half of its files by losing a tenant."""


def judge_pruning(changes: ChangeSet, clusters: Collection[str], *, out: str) -> Iterator[Diagnostic]:
    """A finding for each cluster of which a build would delete a whole folder, or most of the files of one.

    ``clusters`` are those that there are. Files that somebody has deleted already do not count.
    """
    lost = Counter(owner(change.path) for change in changes.changes if change.path not in changes.desired)
    lost.pop("", None)
    if not lost:
        return
    before, after = (Counter(map(owner, files)) for files in (changes.recorded.files, changes.planned.files))
    gone = [folder for folder in lost if not after[folder]]
    reduced = [folder for folder in lost if 0 < 2 * after[folder] < before[folder]]
    if sum(lost[folder] for folder in reduced) < _MANY:
        reduced = []
    new = sorted({cluster_of(path) for path in changes.planned.files} - {cluster_of(path) for path in before} - {""})
    by_cluster: defaultdict[str, list[str]] = defaultdict(list)
    for folder in sorted(gone):
        by_cluster[folder.rpartition("/")[2]].append(folder)
    for cluster, folders in sorted(by_cluster.items()):
        yield _gone(cluster, folders, sum(lost[folder] for folder in folders), out, clusters, new)
    for folder in sorted(reduced):
        message = f"this build would delete {lost[folder]} of the {before[folder]} files of `{out}/{folder}/`"
        yield _report(message, out, help_=f"`gpuplan build --diff` shows them; {_MEANT}")


_MEANT: Final = "if it is meant, run `gpuplan build --prune-clusters`"


def _gone(
    cluster: str, folders: list[str], number: int, out: str, clusters: Collection[str], new: list[str]
) -> Diagnostic:
    where = listing([f"{out}/{folder}/" for folder in folders], None)
    message = f"this build would delete all of {where} ({count(number, 'file')})"
    if cluster in clusters:
        return _report(message, out, help_=f"`gpuplan build --diff` shows them; {_MEANT}")
    notes = (f"{listing(new)} is new: for what syncs it, a renamed cluster is another one",) if new else ()
    return _report(message, out, notes, help_=f"bring back `overlays/{cluster}/`; {_MEANT}")


def _report(message: str, out: str, notes: tuple[str, ...] = (), *, help_: str) -> Diagnostic:
    at = Origin(WholeFile(SourceFile(f"{out}/{INVENTORY}", "")))
    return PRUNED.report(Finding(at, message, notes=notes, help=help_))
