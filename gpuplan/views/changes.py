"""What a build does, or would do, to the files of the output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from gpuplan.views.text import count
from gpuplan.views.theme import Style, Theme

if TYPE_CHECKING:
    from gpuplan.outtree import ChangeSet

_UNBROKEN = "`kubectl get crds -o yaml > DIR/crds.yaml`".replace(" ", "\xa0")
_DONE = {"create": "created", "update": "changed", "delete": "deleted", "conflict": "overwritten"}


def summary(changes: ChangeSet, out: str) -> str:
    """``12 created, 3 changed, 1 deleted in out/ (41 files)``, or that it is current."""
    files = count(len(changes.planned.files), "file")
    if not changes.changes:
        return f"{out}/ is current ({files})\n"
    counts = Counter(_done(changes, change.path, change.action) for change in changes.changes)
    done = ", ".join(f"{counts[word]} {word}" for word in _DONE.values() if counts[word])
    return f"{done} in {out}/ ({files})\n"


def every_change(changes: ChangeSet, out: str) -> str:
    """One line for each file that changes."""
    return "".join(f"{_done(changes, item.path, item.action):<11} {out}/{item.path}\n" for item in changes.changes)


def _done(changes: ChangeSet, path: str, action: str) -> str:
    """What became of a file. A conflict that was forced ends in the file being overwritten, or deleted."""
    return _DONE["delete" if action == "conflict" and path not in changes.desired else action]


def colored_diff(lines: Iterable[str], theme: Theme) -> str:
    """A unified diff, as it came."""
    return "".join(f"{theme.paint(line, style) if (style := _style(line)) else line}\n" for line in lines)


def _style(line: str) -> Style | None:
    if line.startswith(("--- ", "+++ ")):
        return Style.STRONG
    return {"+": Style.ADDED, "-": Style.REMOVED, "@": Style.FRAME}.get(line[:1])


def unchecked(kinds: Sequence[str], theme: Theme, *, named: bool = False) -> str:
    """The custom resources that were written without having been checked, and where their definitions come from."""
    if not kinds:
        return ""
    said = (
        f"{count(len(kinds), 'kind')} of custom resources {'was' if len(kinds) == 1 else 'were'} not checked: "
        "`--crds DIR` takes a folder of their CRDs; "
        f"{_UNBROKEN} writes those of a cluster"
    )
    lines = wrap(said, theme.width, break_long_words=False, break_on_hyphens=False)
    return "".join(f"{line}\n" for line in [*lines, *(f"  {kind}" for kind in kinds if named)]).replace("\xa0", " ")
