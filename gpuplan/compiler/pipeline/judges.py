"""The judges that features hand in: how they are found, what they are given, and what they give back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gpuplan import handed_in
from gpuplan.compiler.base.diagnostics import Diagnostic, Rule
from gpuplan.compiler.base.faces import imported

if TYPE_CHECKING:
    from gpuplan.compiler.pipeline import Report
    from gpuplan.compiler.pipeline.rendering import Rendered
    from gpuplan.compiler.planning.node_list import Node
    from gpuplan.compiler.planning.plan import Plan


@dataclass(slots=True)
class Judged:
    """The findings on results; ``is_complete`` says that there was a program to get them from, in time."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    is_complete: bool = True


PlanJudge = Callable[["Plan"], Iterable[Diagnostic]]


class ResultJudge(Protocol):
    """A function that judges what comes of rendered folders; ``earlier`` are the findings before."""

    def __call__(
        self,
        rendered: Rendered,
        earlier: Sequence[Diagnostic],
        *,
        root: Path,
        out: str,
        crds: Path | None = None,
        program: str = "",
    ) -> Judged: ...


class StepJudge(Protocol):
    """A function that judges the step to a platform from ``against``, a revision or a folder."""

    def __call__(
        self, root: Path, against: str, clusters: Sequence[str], later: Report, nodes: Sequence[Node] | None = None
    ) -> Iterable[Diagnostic]: ...


def plan_judges() -> Iterator[PlanJudge]:
    return imported(handed_in.PLAN_JUDGES)


def sound_plan_judges() -> Iterator[PlanJudge]:
    return imported(handed_in.SOUND_PLAN_JUDGES)


def result_judges() -> Iterator[ResultJudge]:
    return imported(handed_in.RESULT_JUDGES)


def step_judges() -> Iterator[StepJudge]:
    return imported(handed_in.STEP_JUDGES)


def feature_rules() -> Iterator[Rule]:
    """Yield the rules of features, those of their checks as well; one may come twice."""
    for listed in imported(handed_in.RULES):
        yield from listed
    for checks in imported(handed_in.CHECKS):
        yield from (check.rule for check in checks)
