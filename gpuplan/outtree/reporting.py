"""A change set in the forms that people read: findings, and a unified diff."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from typing import Final

from gpuplan.diagnostics import Diagnostic, Finding, Origin, Rule, SourceFile, WholeFile
from gpuplan.outtree.comparing import Action, Change, ChangeSet, Reason
from gpuplan.outtree.inventory import INVENTORY
from gpuplan.outtree.rules import EDITED, FOREIGN, STALE

_RULES: Final = {Reason.EDITED: EDITED, Reason.FOREIGN: FOREIGN}
_HELP: Final = {
    EDITED.code: "say it in the policy or in a kustomize Component, then run `gpuplan build --force`",
    FOREIGN.code: "move the file away, or let `gpuplan build --force` overwrite it",
    STALE.code: "run `gpuplan build` and commit the output with the policy",
}


def findings(changes: ChangeSet, *, out: str = "out", check: bool = False) -> Iterator[Diagnostic]:
    """The conflicts; with ``check`` also every other difference, since the output is then stale.

    ``out`` is the output's path as people know it.
    """
    for change in changes.changes:
        if check or change.action is Action.CONFLICT:
            yield _report(changes, change, out)
    if check and not changes.changes and not changes.is_recorded:
        at = Origin(WholeFile(SourceFile(f"{out}/{INVENTORY}", "")))
        message = f"`{out}/{INVENTORY}` does not list the files that are there"
        yield STALE.report(Finding(at, message, help=_HELP[STALE.code]))


def diff(changes: ChangeSet, *, out: str = "out") -> Iterator[str]:
    """A unified diff of all that would change, line by line without line ends; the inventory is left out of it."""
    for change in changes.changes:
        before, after = changes.found.get(change.path), changes.desired.get(change.path)
        old = "/dev/null" if before is None else f"a/{out}/{change.path}"
        new = "/dev/null" if after is None else f"b/{out}/{change.path}"
        for line in unified_diff(_lines(before), _lines(after), old, new, lineterm=""):
            yield from line.split("\n")


def _report(changes: ChangeSet, change: Change, out: str) -> Diagnostic:
    path = f"{out}/{change.path}"
    rule: Rule = _RULES.get(change.reason, STALE)
    text = changes.found.get(change.path, b"").decode(errors="replace")
    is_leftover = rule is EDITED and change.path not in changes.desired
    finding = Finding(
        Origin(WholeFile(SourceFile(path, text))),
        f"`{path}` {change.reason}",
        notes=("it is no longer part of the output, and would be deleted",) if is_leftover else (),
        help=_HELP[rule.code],
    )
    return rule.report(finding)


def _lines(data: bytes | None) -> list[str]:
    """Lines without their ends; a last line without one says so, as in other diffs."""
    text = (data or b"").decode(errors="replace")
    lines = text.split("\n")
    if lines[-1]:
        return [*lines[:-1], lines[-1] + "\n\\ No newline at end of file"]
    return lines[:-1]
