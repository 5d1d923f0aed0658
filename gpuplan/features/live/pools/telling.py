"""What is said of a dump while its pools are read: findings at their places, and remarks on drafts."""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Origin, Rule, Severity


class Told:
    """Collects findings, and a remark for each by the title of a draft."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._remarks: dict[str, list[str]] = {}

    def say(
        self,
        rule: Rule,
        at: Origin,
        message: str,
        *,
        label: str = "",
        notes: tuple[str, ...] = (),
        help: str = "",  # noqa: A002 - as a finding calls it
        severity: Severity | None = None,
        drafts: Iterable[str] = (),
    ) -> None:
        """A finding; and its message as a remark on each of the drafts, by their titles."""
        self.diagnostics.append(rule.report(Finding(at, message, label, (), notes, help, severity)))
        for title in drafts:
            self.remark(title, message)

    def remark(self, title: str, message: str) -> None:
        found = self._remarks.setdefault(title, [])
        if message not in found:
            found.append(message)

    def remarks(self, title: str) -> tuple[str, ...]:
        return tuple(self._remarks.get(title, ()))
