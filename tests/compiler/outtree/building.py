"""One build of an output, as the pipeline does it, and what is on the disk afterwards."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from gpuplan.compiler.outtree.comparing import ChangeSet, compare
from gpuplan.compiler.outtree.disk import IGNORE
from gpuplan.compiler.outtree.inventory import INVENTORY
from gpuplan.compiler.outtree.writing import Lock, apply

Files = Mapping[str, bytes]


def build(
    root: Path,
    desired: Files,
    *,
    scope: Collection[str] | None = None,
    policies: Mapping[str, str] | None = None,
    force: bool = False,
) -> ChangeSet:
    with Lock(root):
        changes = compare(root, desired, scope=scope, policies=policies)
        apply(root, changes, force=force)
    return changes


def put(root: Path, path: str, data: bytes | str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data.encode() if isinstance(data, str) else data)


def read_all(root: Path) -> dict[str, bytes]:
    """Every file below the root, but for the inventory and what tells Git what not to add."""
    files = {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}
    for path in (INVENTORY, IGNORE):
        files.pop(path, None)
    return files


def folders(root: Path) -> set[str]:
    return {str(folder.relative_to(root)) for folder in root.rglob("*") if folder.is_dir()} - {".gpuplan"}
