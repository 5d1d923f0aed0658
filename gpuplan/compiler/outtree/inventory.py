"""The inventory: what gpuplan wrote, as it remembers it in ``out/.gpuplan/inventory``.

The text is JSON with a line for each file, so that Git merges it, under a name that Argo CD does not take for a
manifest. ``files`` holds the digest of every file, ``policies`` one of every document that they were made of, and
``replaced`` those that files had before: it is there only from the start to the end of a run that overwrites or deletes
files. The inventories of earlier releases have no ``policies``, and say nothing about them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeGuard

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.outtree.disk import STATE, Disk, check_paths

INVENTORY: Final = f"{STATE}/inventory"
_HINT: Final = (
    f"restore it with `git checkout -- out/{INVENTORY}`; after a merge take one side's `out/`, then run build"
)

_DIGEST: Final = regex(r"[0-9A-Za-z:]*")
"""The form of a digest, which is written again as it was read; a build of some clusters keeps others' lines."""


class Inventory(Value):
    """Digests by path: what a file has or will have, and what it had before an unfinished run.

    ``policies`` are digests by cluster, kind and name of document: ``dev/Pool/a100``.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> set[str]:
        return self.files.keys() | self.replaced.keys()

    def digests(self, path: str) -> tuple[str, ...]:
        """Return all that the file may hold and still be as gpuplan wrote it, or nothing if it did not write it."""
        known = self.replaced.get(path, ())
        return (*known, self.files[path]) if path in self.files else known

    def has_written(self, path: str, data: bytes) -> bool:
        """Whether gpuplan wrote what a file holds, whatever its line ends, or a power failure left it so."""
        texts = {digest(data), digest(data.replace(b"\r\n", b"\n"))}
        return not data.strip(b"\0") or not texts.isdisjoint(self.digests(path))

    def changed(self, policies: Mapping[str, str]) -> tuple[str, ...]:
        """Return the documents that are not as they were when the files were made, or are new or gone.

        Nothing is known of a cluster that has files, but whose documents nobody recorded. A cluster that is new or gone
        is told by its own document.
        """
        if not self.policies or self.policies == policies:
            return ()
        before, now = (set(map(_first, names)) for names in (self.policies, policies))
        unknown = set(map(_first, self.files)) - before
        both = self.policies.keys() | policies.keys()
        changed = (name for name in both if self.policies.get(name) != policies.get(name))
        is_told = {name: _first(name) in before & now or "/Cluster/" in name for name in both}
        return tuple(sorted(name for name in changed if is_told[name] and _first(name) not in unknown))

    @cached_property
    def text(self) -> bytes:
        text = bytearray(b'{\n  "apiVersion": "gpuplan.dev/v1",\n  "kind": "Inventory"')
        _add(text, "files", (f'"{path}": "{digest}"' for path, digest in sorted(self.files.items())))
        documents = (f"{json.dumps(name)}: {json.dumps(known)}" for name, known in sorted(self.policies.items()))
        replaced = (f'"{path}": {json.dumps(digests)}' for path, digests in sorted(self.replaced.items()))
        for name, lines in (("policies", documents), ("replaced", replaced)):
            if getattr(self, name):
                _add(text, name, lines)
        text += b"\n}\n"
        return bytes(text)


def digest(data: bytes) -> str:
    return "sha256:" + sha256(data).hexdigest()


def titles(documents: Iterable[str]) -> list[str]:
    """Return documents by what people call them: ``Pool a100`` for ``dev/Pool/a100`` and ``prod/Pool/a100``."""
    return list(dict.fromkeys(name.partition("/")[2].replace("/", " ", 1) for name in documents))


def read_inventory(root: Path) -> Inventory | None:
    """Return what is recorded of an output, or None without a record; raise an error if the text is not ours."""
    text = Disk(root).read(INVENTORY)
    return None if text is None else parse_inventory(text, root / INVENTORY)


def parse_inventory(data: bytes, path: Path) -> Inventory:
    """Return the inventory of a text that anybody may have touched; ``path`` is for messages."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise GpuplanError(f"`{path}` is not the JSON that gpuplan wrote: {error}", _HINT) from error
    inventory = _find_inventory(body)
    if inventory is None:
        raise GpuplanError(f"`{path}` is not an inventory: it has no mapping `files` of digests by path", _HINT)
    try:
        check_paths(inventory.paths)
    except GpuplanError as error:
        raise GpuplanError(f"`{path}` lists a path that gpuplan never writes: {error.message}", _HINT) from error
    return inventory


def _first(name: str) -> str:
    """Return the first part of a path, or of a document's name in an inventory: the cluster."""
    return name.partition("/")[0]


def _find_inventory(body: object) -> Inventory | None:
    """Return the inventory in a JSON value, or None if it has another shape."""
    if not isinstance(body, dict):
        return None
    files, replaced, policies = body.get("files"), body.get("replaced", {}), body.get("policies", {})
    if not _maps_to(files, str) or not _maps_to(replaced, list) or not _maps_to(policies, str):
        return None
    if not all(map(_DIGEST.fullmatch, files.values())):
        return None
    return Inventory(files, {path: tuple(map(str, digests)) for path, digests in replaced.items()}, policies)


def _maps_to(value: object, kind: type) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict) and all(isinstance(item, kind) for item in value.values())


def _add(text: bytearray, section: str, lines: Iterable[str]) -> None:
    """Add a section line by line: together they are some megabytes, and more than once."""
    text += f',\n  "{section}": {{'.encode()
    start = len(text)
    for line in lines:
        text += f"{',' if len(text) > start else ''}\n    {line}".encode()
    text += b"\n  }" if len(text) > start else b"}"
