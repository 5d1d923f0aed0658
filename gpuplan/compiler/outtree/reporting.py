"""A change set in the forms that people read: findings, and a unified diff."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from gpuplan.compiler.base.confidential import confidential_in
from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Origin, Rule, Severity, SourceFile, WholeFile
from gpuplan.compiler.base.wording import count, listing
from gpuplan.compiler.outtree.comparing import Action, ChangeSet, FileChange, Reason
from gpuplan.compiler.outtree.inventory import INVENTORY, titles
from gpuplan.compiler.outtree.rules import EDITED, FOREIGN, LINE_ENDS, STALE

Policies = Callable[[str], str]

_RULES: Final = {Reason.EDITED: EDITED, Reason.FOREIGN: FOREIGN}
_HELP: Final = {
    EDITED.code: "say it in the policy or in a kustomize Component, then run `gpuplan build --force`",
    FOREIGN.code: "move the file away, or let `gpuplan build --force` overwrite it",
    STALE.code: "run `gpuplan build` and commit the output with the policy",
}


def findings(
    changes: ChangeSet, *, out: str = "out", check: bool = False, policies: Policies | None = None
) -> Iterator[Diagnostic]:
    """Yield the conflicts; with ``check`` also every other difference, since the output is then stale.

    ``out`` is the output's path as people know it. ``policies`` returns the lines of the policies that a place of the
    output, ``FILE:LINE``, has its value from; empty if it does not know any. Without it the output is not traced.
    """
    ends = [change for change in changes.changes if change.reason is Reason.LINE_ENDS]
    if ends:
        # One cause has changed all of them: one finding is enough.
        more = f" and {len(ends) - 1} more files have" if len(ends) > 1 else " has"
        finding = Finding(
            Origin(WholeFile(SourceFile(f"{out}/{ends[0].path}", ""))),
            f"`{out}/{ends[0].path}`{more} CRLF line ends, where gpuplan wrote LF",
            notes=("git changes line ends where `core.autocrlf` or an attribute `text` or `eol` says so",),
            help=f"write `{out}/** -text` into .gitattributes, run `gpuplan build`, and commit both",
            severity=None if check else Severity.WARNING,
        )
        yield LINE_ENDS.report(finding)
    foreign = [change.path for change in changes.changes if change.reason is Reason.FOREIGN]
    lost = {path for path in foreign if not changes.recorded.paths and _WRITTEN in changes.found[path]}
    if lost:
        at = Origin(WholeFile(SourceFile(f"{out}/{INVENTORY}", "")))
        message = f"{missing_inventory(out)}: {count(len(lost), 'file')} would change"
        yield FOREIGN.report(Finding(at, message, help=without_inventory(out)))
    for change in changes.changes:
        if change.path in lost:
            continue
        if change.action is Action.CONFLICT or (check and change.reason is not Reason.LINE_ENDS):
            yield _report(changes, change, out, policies)
    if check:
        for path in changes.leftovers:
            at = Origin(WholeFile(SourceFile(f"{out}/{path}", "")))
            message = f"`{out}/{path}` was left behind by a build that was killed"
            yield STALE.report(Finding(at, message, help="run `gpuplan build`, which removes it"))
        yield from _unrecorded(changes, out)


_WRITTEN: Final = b"Written by gpuplan; "
"""A part of the first line of every file that gpuplan writes: `HEADER` in `manifests`, which is a layer further out."""


def missing_inventory(out: str) -> str:
    return f"`{out}/{INVENTORY}` is missing, which lists the files that gpuplan wrote"


def without_inventory(out: str) -> str:
    return f"bring it back: `git checkout HEAD -- {out}/{INVENTORY}`, or run `gpuplan build --force`"


def has_conflict(data: bytes) -> bool:
    """Whether a merge has left its markers in a file."""
    text, at = b"\n" + data.replace(b"\r\n", b"\n"), 0
    for mark in (b"\n<<<<<<< ", b"\n=======\n", b"\n>>>>>>> "):
        at = text.find(mark, at)
        if at < 0:
            return False
    return True


def _unrecorded(changes: ChangeSet, out: str) -> Iterator[Diagnostic]:
    """Yield what is wrong with the inventory, if nothing is wrong with a file."""
    if changes.changes or changes.leftovers or changes.is_current:
        return
    names = titles(changes.changed_documents)
    message = f"`{out}/{INVENTORY}` does not list the files that are there"
    if names and changes.recorded.files == changes.planned.files:
        message = f"`{out}/{INVENTORY}` is of policies that changed since: {listing(names)}"
    at = Origin(WholeFile(SourceFile(f"{out}/{INVENTORY}", "")))
    yield STALE.report(Finding(at, message, help=_HELP[STALE.code]))


def diff(changes: ChangeSet, *, out: str = "out") -> Iterator[str]:
    """Yield a unified diff of all that would change, line by line without line ends, without the inventory."""
    from difflib import unified_diff

    for change in changes.changes:
        before, after = changes.found.get(change.path), changes.desired.get(change.path)
        old = "/dev/null" if before is None else f"a/{out}/{change.path}"
        new = "/dev/null" if after is None else f"b/{out}/{change.path}"
        for line in unified_diff(_lines(before), _lines(after), old, new, lineterm=""):
            yield from line.split("\n")


def _report(changes: ChangeSet, change: FileChange, out: str, policies: Policies | None) -> Diagnostic:
    path = f"{out}/{change.path}"
    rule: Rule = _RULES.get(change.reason, STALE)
    text = changes.found.get(change.path, b"").decode(errors="replace")
    is_leftover = rule is EDITED and change.path not in changes.desired
    is_torn = rule is EDITED and has_conflict(changes.found[change.path])
    help_ = _HELP[rule.code]
    notes: tuple[str, ...] = ("it is no longer part of the output, and would be deleted",) if is_leftover else ()
    if rule is EDITED and not is_leftover and not is_torn:
        notes, help_ = _edit(text, changes.desired[change.path].decode(errors="replace"), path, policies)
    finding = Finding(
        Origin(WholeFile(SourceFile(path, text))),
        f"`{path}` {'has conflict markers' if is_torn else change.reason}",
        notes=notes,
        help="run `gpuplan build --force`" if is_torn else help_,
    )
    return rule.report(finding)


_OTHER: Final = ", or write a kustomize Component for what no policy says"
_BUILD: Final = "then run `gpuplan build --force`, which alone drops the edit"


def _edit(held: str, wanted: str, path: str, policies: Policies | None) -> tuple[tuple[str, ...], str]:
    """Return the first line that an edit has changed, and how the policies say the same."""
    old, new = wanted.splitlines(), held.splitlines()
    start = _alike(old, new)
    same = _alike(old[start:][::-1], new[start:][::-1])
    lost, added = len(old) - start - same, len(new) - start - same
    if not lost and not added:
        return ("the line ends differ",), _HELP[EDITED.code]
    before, after = confidential_in(wanted).line(start + 1).strip(), confidential_in(held).line(start + 1).strip()
    written = f"gpuplan writes `{before}`" if lost else "gpuplan writes no such line"
    edited = f"line {start + 1} is `{after}`" if added else f"a line before line {start + 1} is gone"
    more = "; `gpuplan build --diff` shows all that differs" if max(lost, added) > 1 else ""
    if policies is None:
        return (f"{edited}, where {written}{more}",), _HELP[EDITED.code]
    place = f"{path}:{start + 1}" if lost else path
    said = policies(place) if lost else ""
    where = f"{said}, where the policy says it" if said else f"the policy that `gpuplan trace {place}` names{_OTHER}"
    return (f"{edited}, where {written}{more}",), f"to keep the edit, change {where}; {_BUILD}"


def _alike(lines: Sequence[str], others: Sequence[str]) -> int:
    """Return how many lines are the same from the first on."""
    pairs = enumerate(zip(lines, others, strict=False))
    return next((at for at, (line, other) in pairs if line != other), min(len(lines), len(others)))


def _lines(data: bytes | None) -> list[str]:
    """Return lines without their ends; a last line without one says so, as in other diffs."""
    text = (data or b"").decode(errors="replace")
    lines = text.split("\n")
    if lines[-1]:
        return [*lines[:-1], lines[-1] + "\n\\ No newline at end of file"]
    return lines[:-1]
