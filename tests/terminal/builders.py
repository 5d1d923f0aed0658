"""Reports and findings made by hand."""

from __future__ import annotations

from gpuplan.compiler.base.diagnostics import (
    Diagnostic,
    Family,
    Finding,
    Label,
    Location,
    Origin,
    Path,
    Position,
    Rule,
    RulePage,
    Severity,
    SourceFile,
    Span,
    WholeFile,
)
from gpuplan.compiler.pipeline import Report

DOES_NOT_FIT = Rule(
    "GPU203",
    RulePage(
        "layout-does-not-fit",
        Severity.ERROR,
        Family.PLAN,
        "A layout asks for GPU instances that cannot be placed together.\n\n## Why\nThe driver has fixed starts.\n\n"
        "## Instead\nAsk for fewer instances; `gpuplan catalog` draws them.",
    ),
)
SHORT_LIMIT = Rule(
    "GPU401", RulePage("limit-below-guarantee", Severity.WARNING, Family.PLAN, "A limit is below the guarantee.")
)
ODD_NAME = Rule("GPU120", RulePage("odd-name", Severity.NOTE, Family.PLAN, "A name is unusual."))
UNREADABLE = Rule(
    "GPU001", RulePage("unreadable-file", Severity.ERROR, Family.READING, "A file cannot be read.", ignorable=False)
)


class _Place:
    """A source that is one stretch of one file."""

    def __init__(self, location: Location, title: str = "") -> None:
        self._location = location
        self.title = title

    def locate(self, path: Path, *, on_key: bool = False) -> Location:
        return self._location


def at(text: str, *, file: str = "policies/team.yaml", field: Path = ("spec", "layout"), document: str = "") -> Origin:
    """A place in a file's text, marked there as ``«this»``."""
    before, rest = text.split("«")
    marked, after = rest.split("»")
    source = SourceFile(file, before + marked + after)
    span = Span(_position(before), _position(before + marked))
    return Origin(_Place(Location(source, span), document), field)


def whole(file: str) -> Origin:
    """A file as such."""
    return Origin(WholeFile(SourceFile(file, "text\n")))


def a_diagnostic(
    origin: Origin,
    message: str = "layout does not fit on H100",
    *,
    rule: Rule = DOES_NOT_FIT,
    label: str = "",
    related: tuple[Label, ...] = (),
    notes: tuple[str, ...] = (),
    help: str = "",  # noqa: A002 - the field's name
    clusters: tuple[str, ...] = (),
) -> Diagnostic:
    return Diagnostic(rule, Finding(origin, message, label, related, notes, help), clusters)


def a_report(*diagnostics: Diagnostic, clusters: tuple[str, ...] = ("dev",), files: int = 1) -> Report:
    return Report(diagnostics, (), clusters, files)


def _position(text: str) -> Position:
    return Position(text.count("\n") + 1, len(text) - text.rfind("\n"))


LAYOUT = """\
kind: MigLayout
spec:
  gpu: H100-80GB
  instances: {3g.40gb: 2, «1g.10gb»: 2}
"""
GPU = """\
kind: MigLayout
spec:
  gpu: «H100-80GB»
  instances: {3g.40gb: 2, 1g.10gb: 2}
"""
QUOTA = """\
kind: Tenant
spec:
  quotas:
  - {pool: research, guaranteed: 8, limit: «4»}
"""

FIT = a_diagnostic(
    at(LAYOUT, field=("spec", "instances", "1g.10gb")),
    "layout `mixed` does not fit on H100-80GB",
    label="no free placement left",
    related=(Label(at(GPU, field=("spec", "gpu")), "this model has 8 memory slices"),),
    notes=("2x `3g.40gb` take memory slices 0-3 and 4-7",),
    help="write `{3g.40gb: 1, 1g.10gb: 4}`",
    clusters=("dev",),
)
LIMIT = a_diagnostic(
    at(QUOTA, file="policies/tenants.yaml", field=("spec", "quotas", 0, "limit")),
    "limit 4 of tenant `research` is below its guarantee 8",
    rule=SHORT_LIMIT,
    label="below 8",
    clusters=("dev", "prod"),
)
BROKEN = a_diagnostic(whole("policies/notes.yaml"), "`policies/notes.yaml` is not UTF-8", rule=UNREADABLE)
MIXED = a_report(BROKEN, FIT, LIMIT, clusters=("dev", "prod"), files=12)
