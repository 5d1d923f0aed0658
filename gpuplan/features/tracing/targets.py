"""Reads the subject of a question: a file that is written, an object, or a line or document of the policies."""

from __future__ import annotations

import os
from enum import Enum, auto
from pathlib import Path
from posixpath import normpath
from typing import Final

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.outtree.disk import STATE
from gpuplan.compiler.pipeline.loading import KUSTOMIZE, OUT, OVERLAYS
from gpuplan.compiler.policy.models import KINDS

FORMS: Final = (
    "name a file and a line (`out/prod/kustomization.yaml:4`, `policies/pools.yaml:17`), an object"
    " (`ResourceQuota/research/gpuplan`), a document (`Pool/a100`), or - for objects on stdin"
)
POLICY_GROUP: Final = "gpuplan.dev"

_PLACE: Final = regex(r"(?P<file>.+?)(?::(?P<line>[0-9]{1,9}))?(?::(?P<column>[0-9]{1,9}))?")
_ENDINGS: Final = (".yaml", ".yml", ".json", ".md")


class TargetKind(Enum):
    """A kind of subject."""

    OUTPUT = auto()
    OBJECT = auto()
    POLICY_FILE = auto()
    DOCUMENT = auto()
    HAND_WRITTEN = auto()


class Target(NamedTuple):
    """A ``file`` of the repository and its ``line``, 0 for all lines, or an object or document by its names.

    ``kind`` is the kind as it was typed, with its group if that was typed.
    """

    subject: TargetKind
    file: str = ""
    line: int = 0
    kind: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def cluster(self) -> str:
        """The one cluster that a path belongs to; empty where there may be several."""
        parts = self.file.split("/")
        if self.subject is TargetKind.OUTPUT:
            from gpuplan.compiler.pipeline.output import cluster_of

            return "" if parts[1:2] == [STATE] else cluster_of("/".join(parts[1:]))
        return parts[1] if parts[0] == OVERLAYS and len(parts) > 1 else ""


def read_target(root: Path, text: str) -> Target:
    """Return the subject that a text names; trouble if it names none."""
    match = _PLACE.fullmatch(text)
    if match is None:
        raise GpuplanError(f"`{text}` names nothing", FORMS)
    line = None if match["line"] is None else int(match["line"])
    if line == 0:
        raise GpuplanError(f"there is no line 0 in `{match['file']}`", "lines count from 1")
    names = match["file"].split("/")
    if _is_path(root, match["file"], has_line=line is not None):
        return _file(root, match["file"], line or 0)
    if text.partition(":")[0].endswith(_ENDINGS):
        raise GpuplanError(f"`{text}` names no line", "a line is a number, such as in `policies/pools.yaml:17`")
    if not all(names) or not 2 <= len(names) <= _MOST_NAMES:
        raise GpuplanError(f"`{text}` names nothing", FORMS)
    return _named(*names)


_MOST_NAMES: Final = 3


def _is_path(root: Path, text: str, *, has_line: bool) -> bool:
    first = text.split("/", maxsplit=1)[0]
    is_there = os.path.lexists(text) or os.path.lexists(root / text)
    return has_line or first in ("", ".", "..", OUT, OVERLAYS) or text.endswith(_ENDINGS) or is_there


def _file(root: Path, text: str, line: int) -> Target:
    """Return a file below the root; the path begins in the current folder, or at the root."""
    path = _relative(root, text)
    parts = path.split("/")
    if os.path.isdir(root / path):  # noqa: PTH112 - as it was typed
        files = sorted(file.relative_to(root).as_posix() for file in (root / path).rglob("*.yaml"))
        example = listing(files[:1], 1) if files else "`kustomization.yaml`"
        raise GpuplanError(f"`{text}` is a folder", f"name a file in it, such as {example}")
    if parts[0] == OUT:
        return Target(TargetKind.OUTPUT, path, line)
    if parts[0] == OVERLAYS and parts[2:3] == [KUSTOMIZE]:
        return Target(TargetKind.HAND_WRITTEN, path, line)
    return Target(TargetKind.POLICY_FILE, path, line)


def _relative(root: Path, text: str) -> str:
    """Return a path from the root: a text is read from the current folder if a file is there, else from the root."""
    top = os.path.realpath(root)
    here = os.path.relpath(os.path.join(os.path.realpath("."), text), top)  # noqa: PTH118 - links stay as typed
    is_inside = here.split("/", 1)[0] != ".."
    is_from_root = not os.path.isabs(text) and normpath(text).split("/", 1)[0] != ".."  # noqa: PTH117
    if is_from_root and not (is_inside and os.path.lexists(text)):
        return normpath(text)
    if not is_inside:
        raise GpuplanError(
            f"`{text}` is not in this repository", "name a file below its root, or say where it is with `-C DIR`"
        )
    return Path(here).as_posix()


def _named(kind: str, *names: str) -> Target:
    """Return a document of the policy if the kind is one of the policy, else an object; a group tells them apart."""
    plain, _, group = kind.partition(".")
    known = {name.lower(): name for name in KINDS}
    is_of_policy = group in ("", POLICY_GROUP) and plain.lower() in known and len(names) == 1
    if is_of_policy:
        return Target(TargetKind.DOCUMENT, kind=known[plain.lower()], name=names[0])
    return Target(TargetKind.OBJECT, kind=kind, namespace=names[0] if len(names) > 1 else "", name=names[-1])
