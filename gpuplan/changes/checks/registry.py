"""How a check on a step is declared: one function of two plans, whose docstring is its page."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence

from gpuplan.changes.pods import Pod
from gpuplan.diagnostics import Diagnostic, Family, Finding, Rule, RulePage, Severity
from gpuplan.planning.plan import Plan
from gpuplan.values import Value


class Step(Value):
    """Two states of one cluster; ``pods`` are those that hold something in it, None where nobody says which."""

    before: Plan
    after: Plan
    pods: Sequence[Pod] | None = None


StepFunction = Callable[[Step], Iterable[Finding]]


class StepCheck(Value):
    """A rule and the function that finds where a step breaks it; its places are in the later plan's policies."""

    rule: Rule
    find: StepFunction

    def run(self, step: Step) -> Iterator[Diagnostic]:
        for finding in self.find(step):
            yield Diagnostic(self.rule, finding, clusters=(step.after.cluster.name,))


def step_check(code: str, name: str, severity: Severity = Severity.ERROR) -> Callable[[StepFunction], StepCheck]:
    """Declare a check on a step; its docstring becomes the rule's documentation."""

    def declare(function: StepFunction) -> StepCheck:
        docs = inspect.cleandoc(function.__doc__ or "")
        return StepCheck(Rule(code, RulePage(name, severity, Family.STEP, docs)), function)

    return declare
