"""What a case says is found in it, and how that is read and written.

A comment `# error: GPU203 part of the message` marks the line of a finding, and `;` divides two of them. Texts of the
finding follow as ` | label: ...`, ` | note: ...` and ` | help: ...`, there or on comment lines below that begin with
`# |` and go on with the last mark. What is stated of the message is a part of it; a label or help that is stated is the
whole one, and a note one of the notes. What is not stated is not compared. `# related: GPU203 its words` marks a second
place of a finding.

A folder may list its findings in a file `expected` instead, one `path:line:column severity CODE part of the message`
a line, with texts on lines below that begin with `|`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Origin

RELATED = "related"
_KEYS = ("label", "note", "help")
_MARK = re.compile(
    rf"(?:^|\s|;\s)(error|warning|note|{RELATED}): (GPU[0-9]{{3}})(.*?)(?=;\s(?:error|warning|note|related): GPU|$)"
)
_LISTED = re.compile(rf"(\S+) (error|warning|note|{RELATED}) (GPU[0-9]{{3}})(.*)")
_STATED = re.compile(r" \| (\w+): ")
_UNSTATABLE = re.compile(rf"{_MARK.pattern}|`/\S*/earlier`")
_GOES_ON = re.compile(r"\s*#? ?(?=\| \w+: )")


class Text(NamedTuple):
    """A text of a finding: ``key`` is ``message``, ``label``, ``note`` or ``help``."""

    key: str
    text: str

    def __str__(self) -> str:
        return f"| {self.key}: {self.text}"


class Mark(NamedTuple):
    """A finding as a case states it, or a second place of one."""

    place: str
    severity: str
    code: str
    part: str
    texts: tuple[Text, ...] = ()

    def matches(self, found: Diagnostic) -> bool:
        """Whether it is this finding that is meant."""
        if self.severity == RELATED:
            second = found.finding.related
            return found.code == self.code and any(
                self.place in places(label.at) and self.part in ("", label.text) for label in second
            )
        same = (self.severity, self.code) == (found.severity.value, found.code)
        return same and self.place in places(found.finding.at) and self.part in found.finding.message

    def states_truth(self, found: Diagnostic) -> bool:
        return set(self.texts) <= set(texts_of(found.finding))

    def states(self) -> tuple[Text, ...]:
        """Its texts; the message is one, which may be a part."""
        return (Text("message", self.part), *self.texts)

    def __str__(self) -> str:
        head = f"{self.place} {self.severity}" if self.place else f"{self.severity}:"
        return " ".join((head, self.code, *filter(None, (self.part,)), *map(str, self.texts)))


def texts_of(finding: Finding) -> tuple[Text, ...]:
    """Everything that it says at its place."""
    notes = (Text("note", note) for note in finding.notes)
    texts = (Text("message", finding.message), Text("label", finding.label), *notes, Text("help", finding.help))
    return tuple(text for text in texts if text.text)


def places(at: Origin) -> tuple[str, str]:
    location = at.locate()
    line, column = location.span.start
    return f"{location.file.path}:{line}", f"{location.file.path}:{line}:{column}"


def describe(found: Diagnostic) -> str:
    """A finding as a mark states it whole."""
    finding = found.finding
    mark = Mark(places(finding.at)[1], found.severity.value, found.code, finding.message, texts_of(finding)[1:])
    second = (f"{places(label.at)[0]} {RELATED} {found.code} {label.text}" for label in finding.related)
    return "\n".join((str(mark), *second))


def read_marks(path: Path, name: str) -> list[Mark]:
    """The marks of a file that is called so; those of an `expected` bring their places along."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    is_list = path.name == "expected"
    return [
        mark
        for number, line in enumerate(joined(lines), start=1)
        for mark in marks_of(line, f"{name}:{number}", is_list)
    ]


def marks_of(line: str, place: str, is_list: bool) -> list[Mark]:
    """The marks of a line."""
    if is_list:
        return [_mark(*match.groups()) for match in _LISTED.finditer(line)]
    return [_mark(place, *match.groups()) for match in _MARK.finditer(line, line.find("#"))] if "#" in line else []


def joined(lines: Iterable[str]) -> list[str]:
    """The lines, with those that go on with a mark put behind it and empty in their own place."""
    whole: list[str] = []
    last = 0
    for number, line in enumerate(lines):
        begins = _GOES_ON.match(line)
        whole.append("" if begins else line)
        if begins:
            whole[last] += " " + line[begins.end() :]
        else:
            last = number
    return whole


def _mark(place: str, severity: str, code: str, words: str) -> Mark:
    part, *stated = _STATED.split(words)
    texts = tuple(Text(key, text.strip()) for key, text in zip(stated[::2], stated[1::2], strict=True))
    wrong = [text.key for text in texts if text.key not in _KEYS]
    assert not wrong, f"{place}: a mark states {', '.join(_KEYS)}, and not {wrong[0]}"
    return Mark(place, severity, code, part.strip(), texts)


def with_marks(text: str, name: str, restate: Callable[[Mark], Mark], *, inline: bool) -> str:
    """A file with other marks; texts of a line's last mark are on lines below, unless there may be none."""
    written: list[str] = []
    is_list = name == "expected"
    lines = text.split("\n")
    for number, (line, whole) in enumerate(zip(lines, joined(lines), strict=True), start=1):
        marks = marks_of(whole, f"{name}:{number}", is_list)
        if marks:
            head = "" if is_list else line[: line.index(f"{marks[0].severity}: {marks[0].code}", line.index("#"))]
            written += _with_marks(head, [restate(mark) for mark in marks], is_list, inline)
        elif not _GOES_ON.match(line):
            written.append(line)
    return "\n".join(written)


def _with_marks(head: str, marks: list[Mark], is_list: bool, inline: bool) -> Iterator[str]:
    *before, last = (mark if is_list else mark._replace(place="") for mark in marks)
    short = last if inline else last._replace(texts=())
    yield head + "; ".join(map(str, (*before, short)))
    if not inline:
        indent = "  " if is_list else head[: len(head) - len(head.lstrip(" "))] + "# "
        yield from (f"{indent}{text}" for text in last.texts)


def shape(text: Text) -> Text:
    """The text without its names and numbers: what is said by the same words has the same one."""
    named = re.sub(r"`[^`]*`", "`", text.text)
    listed = re.sub(r"`(?:, `)*(?: and `)?", "`", named)
    return Text(text.key, re.sub(r"\d[\d,.]*", "0", listed))


def computed(finding: Finding) -> list[Text]:
    """The texts that hold names or numbers; one that quotes a mark, or says where tests run, cannot be stated."""
    return [text for text in texts_of(finding) if re.search(r"[`\d]", text.text) and not _UNSTATABLE.search(text.text)]
