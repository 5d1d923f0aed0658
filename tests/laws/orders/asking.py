"""Ask gpuplan for trees, and for what it says of the step from one platform to another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import gpuplan
from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.planning.node_list import Node
from gpuplan.features.changes.comparing import Diff, compare
from tests.laws.orders.platforms import CLUSTER, Platform
from tests.laws.orders.trees import Tree, read_tree


@dataclass(frozen=True)
class Built:
    """A platform as gpuplan builds it; without a tree where it is refused."""

    files: Mapping[str, bytes]
    errors: tuple[str, ...]

    @property
    def tree(self) -> Tree:
        return read_tree(self.files, CLUSTER)


@dataclass(frozen=True)
class Said:
    """What is said of a step: findings as one line each, errors among them, and each change with its class."""

    findings: tuple[str, ...]
    errors: tuple[str, ...]
    changes: tuple[tuple[ChangeClass, str], ...]
    worst: ChangeClass

    def warns_of(self, names: Sequence[str]) -> bool:
        """Whether something that stops people names one of these: an error, or a class of two steps or worse."""
        texts = [*self.errors, *(text for found, text in self.changes if found.rank >= ChangeClass.TWO_STEP.rank)]
        return any(name in text for name in names for text in texts)

    def orders(self, names: Sequence[str]) -> bool:
        """Whether a person is told, for one of these, which of two to sync first, and what comes of the other order."""
        texts = [text for _, text in self.changes if "the other way round" in text]
        return any(name in text for name in names for text in texts)


def build(root: Path) -> Built:
    built = gpuplan.build(root, kustomize="off")
    return Built(built.tree, tuple(map(told, (item for item in built.report.diagnostics if item.is_error))))


@contextmanager
def written(*platforms: Platform) -> Iterator[list[Path]]:
    """A folder for each platform."""
    with TemporaryDirectory() as home:
        roots = [Path(home) / str(index) for index, _ in enumerate(platforms)]
        for root, platform in zip(roots, platforms, strict=True):
            root.mkdir()
            platform.write(root)
        yield roots


def ask(before: Path, after: Path, *, listed: Mapping[str, Mapping[str, str]] | None = None) -> Said:
    """`gpuplan validate --against` and `gpuplan diff --against`; ``listed`` are nodes with their labels."""
    nodes = None if listed is None else tuple(Node(name, labels) for name, labels in sorted(listed.items()))
    report = gpuplan.validate(after, against=str(before), kustomize="off", nodes=nodes)
    diff = compare(after, against=str(before), nodes=nodes)
    findings = [*report.diagnostics, *(item for item in diff.findings if item not in report.diagnostics)]
    errors = tuple(map(told, (item for item in findings if item.is_error)))
    return Said(tuple(map(told, findings)), errors, tuple(_changes(diff)), diff.worst)


def told(item: Diagnostic) -> str:
    finding = item.finding
    parts = [item.code, finding.message, finding.label or "", *finding.notes, finding.help or ""]
    source = finding.at.source
    return " | ".join(filter(None, (*parts, str(getattr(source, "title", "")))))


def _changes(diff: Diff) -> Iterator[tuple[ChangeClass, str]]:
    for impact in diff.impacts:
        change = impact.change
        nodes = " ".join(change.nodes.names) if change.nodes else ""
        subjects = " ".join(f"{item.kind}/{item.name}" for item in (change.subject, *change.also))
        yield change.change_class, f"{subjects} {change.what} {change.effect} {nodes}"
    for item in diff.objects:
        about = " ".join(f"{subject.kind}/{subject.name}" for subject in item.about)
        yield item.change_class, f"{item.verb} {item.identity.kind}/{item.identity.name} in {item.folder} {about}"
