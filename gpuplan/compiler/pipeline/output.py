"""Judge the output: whether it is what the policies make, and what a build would take away from it."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from hashlib import sha1, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, GpuplanError, Origin, Severity, SourceFile, WholeFile
from gpuplan.compiler.base.repository import OVERLAYS
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import count, listing
from gpuplan.compiler.delivery import TOOLS
from gpuplan.compiler.documents import DiskTree, find_folders
from gpuplan.compiler.manifests.model import HEADER
from gpuplan.compiler.outtree.disk import Disk, find_files
from gpuplan.compiler.outtree.inventory import INVENTORY, read_inventory, titles
from gpuplan.compiler.outtree.reporting import has_conflict, missing_inventory, without_inventory
from gpuplan.compiler.outtree.rules import EDITED, INCOMPLETE, PRUNED, UNBUILT, UNREAD
from gpuplan.compiler.pipeline.loading import Repository
from gpuplan.compiler.pipeline.unread import way_to_component
from gpuplan.compiler.planning.plan import Stage

if TYPE_CHECKING:
    from gpuplan.compiler.outtree.comparing import ChangeSet

_as_text = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode
_SHA1_DIGITS = 40
_DIGITS = 16
"""Enough to tell two texts of one document apart; nobody gains by making them look the same."""


class Staleness(NamedTuple):
    """The difference between an output and what the policies make: numbers of files, or why it is not known."""

    differing: int = 0
    missing: int = 0
    trouble: str = ""

    def __bool__(self) -> bool:
        return bool(self.differing or self.missing or self.trouble)


def policy_digests(repository: Repository) -> dict[str, str]:
    """Return a digest of what every document says, by cluster, kind and name: ``dev/Pool/a100``.

    It is of the merged data, so that neither comments nor layout count. Most documents are shared by all clusters.
    """
    known: dict[int, str] = {}
    digests: dict[str, str] = {}
    for cluster, documents in repository.documents.items():
        for document in documents:
            digest = known.get(id(document))
            if digest is None:
                digest = known[id(document)] = sha256(_as_text(document.data).encode()).hexdigest()[:_DIGITS]
            digests[f"{cluster}/{document.kind}/{document.name}"] = digest
    return digests


def judge_output(repository: Repository, root: Path, out: str) -> Iterator[Diagnostic]:
    """Say in a line each that the output was not built of these policies, lacks files, was edited, or holds others.

    Nothing is rendered: the inventory says of what the files were made, and the disk which of them are there. Only
    files that are newer than the inventory are read: those of a build have no other text, and edits are later.
    """
    at = _inventory(out)
    clusters = () if repository.is_whole else repository.clusters
    try:
        inventory = read_inventory(root / out)
        files = inventory.files if inventory else {}
        disk = Disk(root / out, files)  # looks behind no links: an inventory could ask for any file of the machine
        times = find_files(root / out)
        chosen = [path for path in files if not clusters or cluster_of(path) in clusters]
        missing = [path for path in chosen if path not in times and not disk.has(path)]
        built = os.stat(root / out / INVENTORY).st_mtime_ns if inventory else 0  # noqa: PTH116 - as fast as can be
        newer = [path for path in chosen if times.get(path, 0) > built]
        edited = [path for path in newer if inventory and not inventory.has_written(path, disk.read(path) or b"")]
    except GpuplanError as error:
        yield INCOMPLETE.report(Finding(at, error.message, help=error.hint))
        return
    if inventory is None:
        lists = sorted((path for path in times if path.endswith(_KUSTOMIZATIONS)), key=len)[:_FEW]
        if any((disk.read(path) or b"").startswith(HEADER.encode()) for path in lists):
            yield INCOMPLETE.report(Finding(at, missing_inventory(out), help=without_inventory(out)))
        return
    if missing:
        some = listing([f"{out}/{path}" for path in missing], 1)
        help_ = f"run `git add {out}` where it was built, or `gpuplan build`"
        yield INCOMPLETE.report(Finding(at, f"`{out}/` lacks what `gpuplan build` wrote: {some}", help=help_))
    torn = [path for path in edited if has_conflict(disk.read(path) or b"")]
    if torn:
        first = Origin(WholeFile(SourceFile(f"{out}/{torn[0]}", "")))
        message = f"conflict markers are in {listing([f'{out}/{path}' for path in torn], 1)}"
        yield EDITED.report(Finding(first, message, help="run `gpuplan build --force`", severity=Severity.NOTE))
    if edited := [path for path in edited if path not in torn]:
        help_ = "`gpuplan build --check` shows each; say it in the policies, then run `gpuplan build --force`"
        message = f"edited by hand since `gpuplan build`: {listing([f'{out}/{path}' for path in edited], 1)}"
        first = Origin(WholeFile(SourceFile(f"{out}/{edited[0]}", "")))
        yield EDITED.report(Finding(first, message, help=help_, severity=Severity.NOTE))
    yield from judge_others(times, inventory.files, out, clusters)
    changed = inventory.changed(policy_digests(repository))
    if stale := tuple(name for name in changed if not clusters or name.partition("/")[0] in clusters):
        message = f"`{out}/` was built before these changed: {listing(titles(stale))}"
        help_ = f"run `gpuplan build` and commit `{out}/` with the policies"
        gone = sorted({name.partition("/")[0] for name in stale} - {*find_folders(DiskTree(root), OVERLAYS)})
        help_ = f"{_brought_back(gone[0])}; {_MEANT}" if gone else help_
        yield UNBUILT.report(Finding(at, message, help=help_))


def judge_others(
    paths: Collection[str], ours: Collection[str], out: str, clusters: Collection[str] = ()
) -> Iterator[Diagnostic]:
    """Yield a note for each manifest of somebody else in a folder of gpuplan's, or above them: nothing reads it."""
    lists = {path.rpartition("/")[0] for path in paths if path.endswith(_KUSTOMIZATIONS)}
    own = {path.rpartition("/")[0] for path in ours if path.endswith(_KUSTOMIZATIONS)}
    known = {cluster_of(path) for path in ours if "/" in path}
    for path in sorted(set(paths) - set(ours)):
        folder = path.rpartition("/")[0]
        while folder and folder not in lists:
            folder = folder.rpartition("/")[0]
        is_read = folder in lists - own or (clusters and cluster_of(path) not in clusters)
        if path.endswith((".yaml", ".yml", ".json")) and not is_read:
            parts = path.split("/")
            cluster = next((part for part in parts[:-1] if part in known), "<cluster>")
            stage = "/".join(parts[1:-1]) if parts[0] == cluster and parts[1] in _STAGES else Stage.SCHEDULING
            finding = Finding(
                Origin(WholeFile(SourceFile(f"{out}/{path}", ""))),
                f"`{out}/{path}` is not gpuplan's, and no kustomization lists it",
                help=f"delete it, or {way_to_component(cluster, stage, parts[-1])}",
            )
            yield UNREAD.report(finding)


_FEW: Final = 3
"""The kustomizations that are looked into for the line that gpuplan writes first."""
_STAGES: Final = frozenset(stage.value for stage in Stage)
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml")


def _inventory(out: str) -> Origin:
    return Origin(WholeFile(SourceFile(f"{out}/{INVENTORY}", "")))


def cluster_of(path: str) -> str:
    """Return the cluster that a file of the output is for; it is empty if the file is for all of them."""
    return owner(path).rpartition("/")[2]


def owner(path: str) -> str:
    """Return the folder of all that is written for a cluster, or of all that a tool syncs it by: ``argocd/dev``.

    Empty for what lists several clusters: ``argocd/root.team/kustomization.yaml``. No cluster has a dot in its name.
    """
    first, _, rest = path.partition("/")
    if first not in TOOLS:
        return first
    name, slash, _ = rest.partition("/")
    return f"{first}/{name}" if slash and "." not in name else ""


def compare_written(root: Path, out: str, tree: Mapping[str, bytes], folders: Collection[str]) -> Staleness | None:
    """Compare an output on the disk with a tree that was rendered for these folders; return None without an output."""
    from gpuplan.compiler.outtree.comparing import Action, compare

    if not os.path.lexists(root / out / INVENTORY):
        return None
    try:
        changes = compare(root / out, tree, scope=folders).changes
    except GpuplanError as error:
        return Staleness(trouble=error.message)
    missing = sum(change.action is Action.CREATE for change in changes)
    return Staleness(len(changes) - missing, missing)


def compare_committed(blobs: Mapping[str, str], tree: Mapping[str, bytes]) -> Staleness:
    """Compare an output in a commit with a tree: ``blobs`` are Git's names of the files' contents, by path."""
    differing = missing = 0
    for path, data in tree.items():
        if name := blobs.get(path):
            algorithm = sha1 if len(name) == _SHA1_DIGITS else sha256
            differing += name != algorithm(b"blob %d\0" % len(data) + data).hexdigest()
        else:
            missing += name is None
    return Staleness(differing, missing)


# --- What a build would take away as a whole ----------------------------------------------------------------------

_MANY: Final = 20
"""Files: fewer are soon looked through, and a small cluster loses half of its files by losing a tenant."""


def judge_pruning(changes: ChangeSet, clusters: Collection[str], *, out: str) -> Iterator[Diagnostic]:
    """Yield a finding for each cluster of which a build would delete a whole folder, or most of the files of one.

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
    return _report(message, out, notes, help_=f"{_brought_back(cluster)}; {_MEANT}")


def _brought_back(cluster: str) -> str:
    return f"bring the cluster back: `git checkout HEAD -- {OVERLAYS}/{cluster}`"


def _report(message: str, out: str, notes: tuple[str, ...] = (), *, help_: str) -> Diagnostic:
    return PRUNED.report(Finding(_inventory(out), message, notes=notes, help=help_))
