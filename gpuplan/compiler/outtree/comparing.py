"""The comparison of the disk with the desired files: what it takes, and what stands in the way."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from pathlib import Path

from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.outtree.disk import IGNORE, IGNORED, LEFTOVERS, Disk, check_apart, check_paths
from gpuplan.compiler.outtree.inventory import INVENTORY, Inventory, digest, parse_inventory


class Action(StrEnum):
    """The kinds of what happens to a file. A conflict stops everything, unless it is forced."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    CONFLICT = "conflict"


class Reason(StrEnum):
    """The reason why something happens to a file."""

    MISSING = "is not there yet"
    CHANGED = "is not what the policies say now"
    TORN = "was cut short by an interrupted run"
    LINE_ENDS = "has other line ends than gpuplan wrote"
    UNWANTED = "is no longer part of the output"
    EDITED = "was edited by hand since gpuplan wrote it"
    FOREIGN = "exists, and gpuplan did not write it"


class FileChange(NamedTuple):
    """The action on one file; ``path`` is relative to the output's root."""

    path: str
    action: Action
    reason: Reason


class ChangeSet(Value):
    """All that differs between the disk and the desired files, sorted by path.

    ``found`` is what the files that change hold now. ``unwanted`` are the files of ours that must not be there, of
    which some may be gone already. ``recorded`` is the inventory as it was read, ``planned`` as it will be in the end.
    ``leftovers`` are what killed builds have left, ``mounts`` the folders on another file system than the root's.
    """

    changes: tuple[FileChange, ...]
    desired: Mapping[str, bytes]
    found: Mapping[str, bytes]
    unwanted: tuple[str, ...]
    recorded: Inventory
    planned: Inventory
    is_recorded: bool
    """A sign that the inventory on the disk is as planned."""
    leftovers: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    is_ignoring: bool = True
    """A sign that Git is told to leave alone what a build that is killed may leave."""

    @property
    def conflicts(self) -> tuple[FileChange, ...]:
        return tuple(change for change in self.changes if change.action is Action.CONFLICT)

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to do, neither to a file nor to the inventory."""
        return not self.changes and self.is_recorded and not self.leftovers

    @property
    def is_current(self) -> bool:
        """Whether files and records are as they should be; an earlier release may have recorded less."""
        return (
            not self.changes
            and not self.leftovers
            and self.recorded.files == self.planned.files
            and self.recorded.replaced == self.planned.replaced
            and not self.changed_documents
        )

    @property
    def changed_documents(self) -> tuple[str, ...]:
        """The documents that are not those of which the files on the disk were made."""
        return self.recorded.changed(self.planned.policies)


def compare(
    root: Path,
    desired: Mapping[str, bytes],
    *,
    scope: Collection[str] | None = None,
    policies: Mapping[str, str] | None = None,
) -> ChangeSet:
    """Return what `apply` would do to bring ``root`` to the desired files. Reads the disk and writes nothing.

    ``scope`` names the folders that ``desired`` speaks for; files of ours elsewhere stay as they are. Without it
    ``desired`` is all that should be there. ``policies`` are the digests of the documents that it was made of; without
    them those that are recorded stay.
    """
    check_paths(desired)
    prefixes = ("",) if scope is None else tuple(f"{folder}/" for folder in scope)

    def is_elsewhere(path: str) -> bool:
        return not path.startswith(prefixes)

    if strays := [path for path in desired if is_elsewhere(path)]:
        raise ValueError(f"{strays[0]} is outside of {scope}")
    digests = {path: digest(data) for path, data in desired.items()}
    state = Disk(root)
    text, ignore = state.read(INVENTORY), state.read(IGNORE)
    expected, recorded = Inventory(digests), Inventory()
    if text is not None:  # parsing takes longer than comparing
        recorded = expected if text == expected.text else parse_inventory(text, root / INVENTORY)
    planned = Inventory(
        {path: known for path, known in recorded.files.items() if is_elsewhere(path)} | digests,
        {path: known for path, known in recorded.replaced.items() if is_elsewhere(path)},
        recorded.policies
        if policies is None
        else {name: known for name, known in recorded.policies.items() if is_elsewhere(name)} | dict(policies),
    )
    check_apart(planned.files)
    unwanted = tuple(sorted(path for path in recorded.paths - digests.keys() if not is_elsewhere(path)))
    disk = Disk(root, recorded.paths | digests.keys())
    changes, found = _compare_files(disk, desired, unwanted, recorded)
    return ChangeSet(
        changes,
        desired,
        found,
        unwanted,
        recorded,
        planned,
        is_recorded=text == planned.text,
        leftovers=tuple(path for path in LEFTOVERS if os.path.lexists(root / path)),
        mounts=(*state.mounts, *disk.mounts),
        is_ignoring=ignore is not None and not _is_torn(ignore) and ignore != IGNORED.replace(b"\n", b"\r\n"),
    )


def _compare_files(
    disk: Disk, desired: Mapping[str, bytes], unwanted: Iterable[str], recorded: Inventory
) -> tuple[tuple[FileChange, ...], dict[str, bytes]]:
    changes: list[FileChange] = []
    found: dict[str, bytes] = {}
    for path in (*desired, *unwanted):
        data = disk.read(path)
        if data == desired.get(path):
            continue
        changes.append(_judge(path, data, recorded.digests(path), desired.get(path)))
        if data is not None:
            found[path] = data
    return tuple(sorted(changes)), found


def _judge(path: str, held: bytes | None, digests: tuple[str, ...], wanted: bytes | None) -> FileChange:
    """Return what to do about a file that is not as desired.

    ``digests`` are those of what gpuplan may have written to it.
    """
    if held is None:
        return FileChange(path, Action.CREATE, Reason.MISSING)
    if not digests:
        return FileChange(path, Action.CONFLICT, Reason.FOREIGN)
    is_torn, folded = _is_torn(held, wanted or b""), held.replace(b"\r\n", b"\n")
    if not is_torn and digest(held) not in digests and digest(folded) not in digests:
        return FileChange(path, Action.CONFLICT, Reason.EDITED)
    if wanted is None:
        return FileChange(path, Action.DELETE, Reason.UNWANTED)
    reason = Reason.TORN if is_torn else Reason.LINE_ENDS if folded == wanted else Reason.CHANGED
    return FileChange(path, Action.UPDATE, reason)


def _is_torn(data: bytes, wanted: bytes = b"") -> bool:
    """Whether a crash left this, and nobody typed it: see `gpuplan.compiler.outtree.writing`.

    Of what was to be written it is nothing, zeros, or a beginning that ends within a line: people cut off whole lines.
    """
    if not data.strip(b"\0"):
        return True
    return wanted.startswith(data) and b"\n" not in (data[-1:], wanted[len(data) : len(data) + 1])
