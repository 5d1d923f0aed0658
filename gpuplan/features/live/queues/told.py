"""Collect what policies cannot say of queues: each a finding, and a remark on the tenants that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Severity
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests import Identity
from gpuplan.features.live.dump import Item
from gpuplan.features.live.queues.model import Queue
from gpuplan.features.live.rules import QUEUE_NOT_SAID, QUEUE_WITHOUT_EFFECT


class Read(NamedTuple):
    """What was read of a queue, and the one that was; None for a cohort that is nowhere written."""

    queue: Queue
    item: Item | None


class Told:
    """Findings in the order in which they came, and remarks by the objects that they are about."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._remarks: dict[Identity, list[str]] = {}

    def lost(self, item: Item, finding: Finding) -> None:
        """Something that changes what a team gets."""
        self.add(item, QUEUE_NOT_SAID.report(finding))

    def otherwise(self, item: Item, finding: Finding) -> None:
        """Something that gpuplan has in a way of its own."""
        self.add(item, QUEUE_NOT_SAID.report(replace(finding, severity=Severity.NOTE)))

    def broken(self, item: Item, finding: Finding) -> None:
        """Something that never worked."""
        self.add(item, QUEUE_WITHOUT_EFFECT.report(finding))

    def unused(self, item: Item) -> None:
        """A queue that no namespace of the dump uses."""
        finding = Finding(
            item.at,
            f"no namespace of the dump uses {item.title}",
            label="no tenant was made of it",
            notes=("a tenant has namespaces, or others are part of it; the queue stays until somebody deletes it",),
            help="add a Tenant for it, with the namespaces that are to use it",
        )
        self.lost(item, finding)

    def add(self, item: Item, diagnostic: Diagnostic) -> None:
        self.diagnostics.append(diagnostic)
        self._remarks.setdefault(item.identity, []).append(diagnostic.shown.message)

    def note_on(self, item: Item, finding: Finding) -> None:
        """A remark on another object, whose tenant it concerns as well."""
        self._remarks.setdefault(item.identity, []).append(finding.message)

    def remarks(self, items: Iterable[Item]) -> tuple[str, ...]:
        """Those on some objects, each once."""
        return tuple(dict.fromkeys(text for item in items for text in self._remarks.get(item.identity, ())))
