"""Findings of an import, whose texts are rows of `findings.yaml`, and remarks on the drafts of policies."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Label, Origin, Severity
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.manifests.templates import read_rows
from gpuplan.features.live.rules import RULES

if TYPE_CHECKING:
    from gpuplan.features.live.dump import Item

ROWS: Final = Path(__file__).with_name("findings.yaml")
_BY_CODE: Final = {rule.code: rule for rule in RULES}


@cache
def rows() -> Mapping[str, Mapping[str, Any]]:
    """Return the rows of `findings.yaml` by name, each with its rule; ``notes`` are always a sequence."""
    found = {}
    for code, named in read_rows(ROWS).items():
        for name, row in named.items():
            notes = row.get("notes", ())
            found[name] = {**row, "rule": code, "notes": (notes,) if isinstance(notes, str) else notes}
    return found


def report(
    row: str,
    at: Origin,
    *,
    related: tuple[Label, ...] = (),
    notes: Sequence[str] = (),
    severity: Severity | None = None,
    rule: str = "",
    **values: Any,  # noqa: ANN401 - whatever a text names
) -> Diagnostic:
    """Return the finding of a row at a place, with values for the names in its texts and further notes.

    A ``label`` or a ``help`` is given for a row that has none.
    """
    texts = rows()[row]
    given = {field: values.get(field, "") for field in ("label", "help")}
    fields = given | {field: texts[field].format_map(values) for field in ("message", *given) if field in texts}
    filled = (note.format_map(values) for note in texts["notes"])
    severity = severity or (Severity(texts["severity"]) if "severity" in texts else None)
    finding = Finding(at, related=related, notes=tuple(filter(None, (*filled, *notes))), severity=severity, **fields)
    return _BY_CODE[rule or texts["rule"]].report(finding)


_MOST_PLACES: Final = 2
"""The number of further places that a finding on many points at."""


class Reports:
    """The findings of a reader in their order, and remarks by subject: a draft, an object or a team.

    A remark is the message of a finding.
    """

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._remarks: dict[Hashable, dict[str, None]] = {}
        self._gathered: dict[tuple[str, tuple[tuple[str, str], ...]], dict[str, Origin]] = {}

    def say(self, row: str, at: Origin | None, *subjects: Hashable, **values: Any) -> None:  # noqa: ANN401 - as above
        """Report a row of `findings.yaml`, with a remark on each subject; without a place there are remarks alone."""
        texts = rows()[row]
        if at is None or "remark" in texts:
            for subject in subjects:
                self.remark(subject, texts.get("remark", texts["message"]).format_map(values))
        if at is not None:
            self.add(report(row, at, **values), *(() if "remark" in texts else subjects))

    def about(
        self,
        row: str,
        item: Item,
        *route: str | int,
        at: Origin | None = None,
        also: Iterable[Item] = (),
        **values: Any,  # noqa: ANN401 - as above
    ) -> None:
        """Report a row about an object, at a place in it unless ``at`` is given, with remarks on it and on others."""
        identities = (item.identity, *(other.identity for other in also))
        self.say(row, at or item.at / route, *identities, item=item, **values)

    def add(self, diagnostic: Diagnostic, *subjects: Hashable) -> None:
        self.diagnostics.append(diagnostic)
        finding = diagnostic.shown
        for subject in subjects:
            self.remark(subject, finding.message)

    def gather(self, row: str, at: Origin, name: str, **values: str) -> None:
        """Gather the places of one matter by name, for one finding on all of them."""
        self._gathered.setdefault((row, tuple(values.items())), {}).setdefault(name, at)

    def say_gathered(self) -> None:
        """Report what was gathered, a finding for each row and its values; ``names`` are those of the places."""
        for (row, values), places in self._gathered.items():
            (_, first), *others = sorted(places.items(), key=lambda pair: pair[0])
            related = tuple(Label(at, f"and `{name}`") for name, at in others[:_MOST_PLACES])
            more: dict[str, Any] = dict(values)
            self.add(report(row, first, related=related, names=listing(sorted(places)), **more))
        self._gathered.clear()

    def remark(self, subject: Hashable, text: str) -> None:
        self._remarks.setdefault(subject, {})[text] = None

    def remarks(self, *subjects: Hashable) -> tuple[str, ...]:
        """Return the remarks on some subjects, each once."""
        return tuple(dict.fromkeys(text for subject in subjects for text in self._remarks.get(subject, ())))
