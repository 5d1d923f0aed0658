"""Bring the cases up to date: ``python -m tests.checks [GPU203 ...]`` after texts of findings have changed on purpose.

A text that a case states becomes what is said now; a text with names or numbers that no case of its rule states is put
into the first case that has it. Place, severity, code and part of the message stay the author's. Read the difference.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from gpuplan.compiler.base.diagnostics import Diagnostic
from tests.checks.marks import RELATED, Mark, Text, computed, places, shape, texts_of, with_marks
from tests.checks.test_cases import CASES, compare, judged, lay_out, read_expected, stated_texts

Wants = Callable[[Diagnostic, Text], bool]
"""Whether a mark is to state a text."""


def update(case: Path, wants: Wants) -> str:
    """Rewrite a case; why it does not hold then, if so."""
    old = {path: path.read_text(encoding="utf-8", errors="surrogateescape") for path in _files(case)}
    found, _, _ = _judge(case)
    left = list(found)
    restate = cache(lambda mark: _related(mark, found) if mark.severity == RELATED else _restated(mark, left, wants))
    for inline in (False, True):
        for path, text in old.items():
            new = with_marks(text, _name(case, path), restate, inline=inline)
            path.write_text(new, encoding="utf-8", errors="surrogateescape", newline="")
        _, unmarked, missing = _judge(case)
        if not (unmarked or missing):
            return ""
    return f"{case.parent.name}/{case.name}: {len(unmarked)} findings are not marked, {len(missing)} marks not found"


def unstated_in(code: str) -> Wants:
    """Wants the texts with names or numbers that no case of the rule states yet."""
    stated = {shape(text) for text in stated_texts(code)}

    def wants(found: Diagnostic, text: Text) -> bool:
        is_new = found.code == code and text in computed(found.finding) and shape(text) not in stated
        if is_new:
            stated.add(shape(text))
        return is_new

    return wants


def _judge(case: Path) -> tuple[tuple[Diagnostic, ...], list[Diagnostic], list[Mark]]:
    with tempfile.TemporaryDirectory() as folder:
        later = lay_out(case, Path(folder))
        found = judged(case, later)
        return found, *compare(read_expected(case, later), found)


def _files(case: Path) -> Iterator[Path]:
    """The files with marks; what is about line ends is left alone."""
    files = sorted(case.rglob("*")) if case.is_dir() else [case]
    listed = [path for path in files if path.name == "expected"]
    marked = [path for path in files if path.suffix in (".yaml", ".yml") and path.is_file() and not path.is_symlink()]
    return (path for path in listed or marked if b"\r" not in path.read_bytes())


def _name(case: Path, path: Path) -> str:
    """How findings call the file."""
    if path in (case, case / "later.yaml"):
        return "overlays/test/case.yaml"
    later = case / "later"
    return path.relative_to(later if path.is_relative_to(later) else case).as_posix()


def _restated(mark: Mark, left: list[Diagnostic], wants: Wants) -> Mark:
    match = next((item for item in left if mark.matches(item)), None)
    if match is None:
        return mark
    left.remove(match)
    message, *texts = texts_of(match.finding)
    keys = {text.key for text in mark.texts if text.key != "note" or text not in texts}
    kept = tuple(text for text in texts if text.key in keys or text in mark.texts or wants(match, text))
    return mark._replace(part=message.text if wants(match, message) else mark.part, texts=kept)


def _related(mark: Mark, found: Iterable[Diagnostic]) -> Mark:
    """The mark with what is said now of its place."""
    said = [
        label.text
        for item in found
        for label in item.finding.related
        if item.code == mark.code and mark.place in places(label.at)
    ]
    return mark if mark.part in ("", *said) else mark._replace(part=said[0] if said else mark.part)


if __name__ == "__main__":
    chosen = [case for case in CASES if case.parent.name in sys.argv[1:] or not sys.argv[1:]]
    wanted = {code: unstated_in(code) for code in {case.parent.name for case in chosen}}
    sys.exit("\n".join(filter(None, (update(case, wanted[case.parent.name]) for case in chosen))))
