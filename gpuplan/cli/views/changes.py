"""Words for the changes that a build makes, or would make, to the files of the output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from shlex import quote
from typing import TYPE_CHECKING

from gpuplan.compiler.base.wording import count
from gpuplan.terminal.text import Style, Theme, printable

if TYPE_CHECKING:
    from gpuplan.compiler.outtree.comparing import ChangeSet
    from gpuplan.features.changes.revisions import Unadded

_DONE = {"create": "created", "update": "changed", "delete": "deleted", "conflict": "overwritten"}


def summary(changes: ChangeSet, out: str) -> str:
    """``12 created, 3 changed, 1 deleted in out/ (41 files)``, or that it is current."""
    files = count(len(changes.planned.files), "file")
    if changes.changed_documents and not changes.changes:
        return f"nothing but the inventory changed in {out}/ ({files})\n"
    if not changes.changes:
        return f"{out}/ is current ({files})\n"
    counts = Counter(_done(changes, change.path, change.action) for change in changes.changes)
    done = ", ".join(f"{counts[word]} {word}" for word in _DONE.values() if counts[word])
    return f"{done} in {out}/ ({files})\n"


def unadded(files: Unadded | None, out: str) -> str:
    """Return the files of the output that Git does not know, and what to type; nothing if there are none, or no Git."""
    if files is None:
        return ""
    add = f"git add {quote(out)}"
    new = f"{_are(files.new)} not in Git yet: `{add}`\n" if files.new else ""
    why = f"delete `{printable(files.line)}` from .gitignore" if files.line else "`git check-ignore -v` says why"
    ignored = f"{_are(files.ignored)} ignored by Git, and nobody who clones gets them: {why}\n"
    return new + (ignored if files.ignored else "")


def _are(paths: Sequence[str]) -> str:
    """Return the number of files; gpuplan's files about its state count only where there are no others."""
    number = len([path for path in paths if not path.startswith(".")]) or len(paths)
    return f"{count(number, 'file')} {'is' if number == 1 else 'are'}"


def every_change(changes: ChangeSet, out: str) -> str:
    """One line for each file that changes."""
    return "".join(f"{_done(changes, item.path, item.action):<11} {out}/{item.path}\n" for item in changes.changes)


def _done(changes: ChangeSet, path: str, action: str) -> str:
    """Return what became of a file. A conflict that was forced ends in the file being overwritten, or deleted."""
    return _DONE["delete" if action == "conflict" and path not in changes.desired else action]


def colored_diff(lines: Iterable[str], theme: Theme) -> str:
    """A unified diff; anybody may have written what the files hold that would change."""
    styles = {"+": Style.ADDED, "-": Style.REMOVED, "@": Style.FRAME}
    shown = []
    for line in lines:
        style = Style.STRONG if line.startswith(("--- ", "+++ ")) else styles.get(line[:1])
        shown.append(f"{theme.paint(printable(line), style) if style else printable(line)}\n")
    return "".join(shown)
