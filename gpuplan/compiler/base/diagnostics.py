"""Messages about a policy: rules, findings, and their places in the files."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path as File
from typing import TYPE_CHECKING, Final, Protocol

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple, Value

if TYPE_CHECKING:
    from gpuplan.compiler.base.confidential import Confidential

Path = tuple[str | int, ...]
"""A route through a document: ``("spec", "quotas", 0, "pool")``."""


LONGEST_VALUE: Final = 300
"""Characters of a value that are quoted whole; the longest name that Kubernetes takes has 253."""
LONGEST_TEXT: Final = 4_000
"""Characters of a message, a label, a note or a help."""
MOST_REMARKS: Final = 50
"""The most second places and notes of a finding."""

_START_OF_VALUE: Final = 100
_LONG_VALUE: Final = regex(rf"`([^`]{{{LONGEST_VALUE + 1},}})`")


def shortened(text: str) -> str:
    """A text in which long values end in a count of their characters, as it does itself.

    A policy may hold a name of some megabytes, and say it ten thousand times.
    """
    if len(text) <= LONGEST_VALUE:
        return text
    short = _LONG_VALUE.sub(lambda match: f"`{match[1][:_START_OF_VALUE]}...` ({len(match[1]):,} characters)", text)
    if len(short) <= LONGEST_TEXT:
        return short
    end = f"... ({len(text):,} characters)"
    return short[: LONGEST_TEXT - len(end)] + end


class Severity(StrEnum):
    """The severity of a finding. Only errors stop a build."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Family(StrEnum):
    """The things that rules judge, in the order in which they are judged."""

    READING = "reading"
    """The text of files: what of it can be read at all, and without a doubt."""
    REPOSITORY = "repository"
    """The layout of files, and the comments that ignore findings."""
    POLICY = "policy"
    """Documents, each by itself, against the policy language."""
    PLANNING = "planning"
    """Names in documents, and what they refer to."""
    PLAN = "plan"
    """The plans of clusters."""
    STEP = "step"
    """The step from one state to another; only some runs judge one."""
    OBJECTS = "objects"
    """The objects that are rendered, with what Components make of them."""
    OUTPUT = "output"
    """The files of the output folder."""


class Position(NamedTuple):
    """A place in a text; both numbers start at 1 and columns count code points."""

    line: int
    column: int


class Span(NamedTuple):
    """A stretch of text; ``end`` is the first position after it."""

    start: Position
    end: Position


class SourceFile(Value):
    """A file that was read; ``path`` is relative to the repository's root and uses ``/``.

    Of a text that is not kept, ``data`` is what was read of it.
    """

    path: str
    text: str
    data: object = field(default=None, compare=False, repr=False)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines as an editor numbers them, without line ends."""
        return tuple(self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))

    @cached_property
    def confidential(self) -> Confidential:
        """The parts of it that nobody may be shown, and its lines with stars."""
        from gpuplan.compiler.base.confidential import confidential_in  # of a file that nothing is said of nobody asks

        return confidential_in(self.text, self.data)


START_OF_FILE: Final = Span(Position(1, 1), Position(1, 1))
"""Stands for all of a file."""


class Location(NamedTuple):
    """A span in a file: what a reader can click on.

    ``part`` is what it is in the terms of a file that is no YAML, such as ``column team`` of a table. With the span
    that stands for the whole file, it is all that is known: nobody counts the lines of what another program printed.
    """

    file: SourceFile
    span: Span = START_OF_FILE
    part: str = ""

    @property
    def is_whole_file(self) -> bool:
        return self.span == START_OF_FILE

    @property
    def sort_key(self) -> tuple[str, Span, str]:
        return self.file.path, self.span, self.part


class Source(Protocol):
    """Something that can say where its parts were written.

    `documents.Document` is one. A cell of a table, a value of a template or what another program printed may
    be one as well: routes into it are whatever its reader takes them for.
    """

    @property
    def title(self) -> str:
        """The document that it is, such as ``Pool research``; empty for what is none."""
        ...  # pragma: no cover

    def locate(self, path: Path, *, on_key: bool = False) -> Location:
        """Where the value at ``path`` (or its key) was written; the nearest existing parent if it was not."""
        ...  # pragma: no cover


class WholeFile(Value):
    """A source for findings about a file as such; all of it is at the start of the first line."""

    file: SourceFile
    title: str = ""

    def locate(self, path: Path, *, on_key: bool = False) -> Location:  # noqa: ARG002 - a `Source`
        return Location(self.file)


class Origin(NamedTuple):
    """Where a value came from, by route. It becomes a line only when somebody reads it.

    A named tuple, because plans hold tens of thousands and a frozen dataclass takes three times as long to make.
    """

    source: Source
    path: Path = ()
    on_key: bool = False

    def __truediv__(self, part: str | int | Path) -> Origin:
        """The place of a part of the value, or of what a route leads to from there."""
        return Origin(self.source, self.path + (part if isinstance(part, tuple) else (part,)))

    @property
    def key(self) -> Origin:
        """The same place, pointing at the key instead of the value."""
        return Origin(self.source, self.path, on_key=True)

    def locate(self) -> Location:
        return self.source.locate(self.path, on_key=self.on_key)

    def __str__(self) -> str:
        return field_path(self.path)


def field_path(path: Path) -> str:
    """Spell a route as Kubernetes does: ``spec.quotas[0].pool``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{_short(part)}" if text else _short(part)
    return text


def _short(field: str) -> str:
    return field if len(field) <= LONGEST_VALUE else f"{field[:_START_OF_VALUE]}..."


class Label(NamedTuple):
    """A second place that a finding talks about, such as the other half of a contradiction."""

    at: Origin
    text: str


class Finding(Value):
    """The result of a check, without the rule's own code, name and severity.

    ``message`` is lower case without a final stop and names the thing; ``label`` is the few words at the caret;
    ``notes`` are the facts that prove it; ``help`` is what to type instead. ``severity`` overrides the rule's. Whatever
    it quotes, its texts are of bounded length.
    """

    at: Origin
    message: str
    label: str = ""
    related: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str = ""
    severity: Severity | None = None

    def __post_init__(self) -> None:
        for name in ("message", "label", "help"):
            object.__setattr__(self, name, shortened(getattr(self, name)))
        related = tuple(Label(at, shortened(text)) for at, text in self.related[:MOST_REMARKS])
        notes = tuple(map(shortened, self.notes[:MOST_REMARKS]))
        if more := len(self.related) - len(related):
            notes = (*notes, f"{more} more places")
        object.__setattr__(self, "related", related)
        object.__setattr__(self, "notes", notes)

    @property
    def headline(self) -> str:
        """Message and label, for readers who do not see the words at a caret."""
        return f"{self.message}: {self.label}" if self.label else self.message


class RulePage(NamedTuple):
    """The description of a rule: a kebab-case name and the page that explains it.

    ``docs`` is Markdown, indented as a docstring: a first line that says what the finding means, then ``## Why`` and
    ``## Instead``.
    A rule that is not ``ignorable`` stands for something that no plan can be made of.
    """

    name: str
    severity: Severity
    family: Family
    docs: str
    ignorable: bool = True


class Rule(Value):
    """A kind of finding: a stable code, and its page, or the folder of the file that is named as the code and holds it.

    The file is read when something of the page is asked for: commands that find nothing read none.
    """

    code: str
    source: RulePage | File = field(compare=False, repr=False)

    @cached_property
    def page(self) -> RulePage:
        return self.source if isinstance(self.source, RulePage) else read_page(self.source / f"{self.code}.md")

    @property
    def name(self) -> str:
        return self.page.name

    @property
    def severity(self) -> Severity:
        return self.page.severity

    @property
    def family(self) -> Family:
        return self.page.family

    @property
    def docs(self) -> str:
        return inspect.cleandoc(self.page.docs)

    @property
    def ignorable(self) -> bool:
        return self.page.ignorable

    @property
    def summary(self) -> str:
        return self.docs.strip().split("\n\n", 1)[0].replace("\n", " ")

    def report(self, finding: Finding) -> Diagnostic:
        return Diagnostic(self, finding)


def read_page(file: File) -> RulePage:
    """The page in a file: between two lines of dashes a `field: value` a line, below them the Markdown."""
    head, _, docs = file.read_text(encoding="utf-8").removeprefix("---\n").partition("---\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    is_ignorable = fields.get("ignorable") != "false"
    return RulePage(fields["name"], Severity(fields["severity"]), Family(fields["family"]), docs, is_ignorable)


def rules_among(names: Mapping[str, object]) -> tuple[Rule, ...]:
    """The rules among the names of a module, so that none is forgotten."""
    return tuple(value for value in names.values() if isinstance(value, Rule))


class RetiredRule(NamedTuple):
    """A rule that is gone, for a ``reason`` that says what there is instead; ``after`` is the last release before."""

    code: str
    name: str
    after: str
    reason: str


class Diagnostic(Value):
    """A finding under its rule; ``clusters`` names the clusters it was met in, empty when it is about a file."""

    rule: Rule
    finding: Finding
    clusters: tuple[str, ...] = ()

    @property
    def code(self) -> str:
        return self.rule.code

    @cached_property
    def shown(self) -> Finding:
        """The finding as anybody may read it: with stars for what its words cite of Secrets and credentials."""
        finding = self.finding
        files = {
            id(file): file for file in (at.locate().file for at in (finding.at, *(item.at for item in finding.related)))
        }

        def hidden(text: str) -> str:
            for file in files.values():
                text = file.confidential.hidden(text)
            return text

        return replace(
            finding,
            message=hidden(finding.message),
            label=hidden(finding.label),
            related=tuple(Label(label.at, hidden(label.text)) for label in finding.related),
            notes=tuple(map(hidden, finding.notes)),
            help=hidden(finding.help),
        )

    @property
    def severity(self) -> Severity:
        return self.finding.severity or self.rule.severity

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    return any(diagnostic.is_error for diagnostic in diagnostics)


def reason_of(error: OSError) -> str:
    """Return the system's message as a part of a message."""
    return (error.strerror or type(error).__name__).lower()


class GpuplanError(Exception):
    """Trouble that is not a finding: an unreadable file, a bad flag. The command ends with exit code 2.

    ``hint`` is what to type instead, or empty.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(shortened(message))
        self.message = shortened(message)
        self.hint = shortened(hint)
