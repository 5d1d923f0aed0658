"""How a check is declared: one function, whose docstring is its page."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from gpuplan.diagnostics import Diagnostic, Family, Finding, Rule, RulePage, Severity
from gpuplan.planning.plan import Plan
from gpuplan.planning.schedulers import SchedulerTraits

CheckFunction = Callable[[Plan], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Check:
    """A rule and the function that finds where a plan breaks it."""

    rule: Rule
    find: CheckFunction

    def run(self, plan: Plan) -> Iterator[Diagnostic]:
        for finding in self.find(plan):
            yield Diagnostic(self.rule, finding, clusters=(plan.cluster.name,))


def check(
    code: str, name: str, severity: Severity = Severity.ERROR, *, ignorable: bool = True
) -> Callable[[CheckFunction], Check]:
    """Declare a check; its docstring becomes the rule's documentation."""

    def declare(function: CheckFunction) -> Check:
        docs = inspect.cleandoc(function.__doc__ or "")
        return Check(Rule(code, RulePage(name, severity, Family.PLAN, docs, ignorable)), function)

    return declare


def only_with(scheduler: SchedulerTraits, *checks: Check) -> tuple[Check, ...]:
    """Checks that are about one scheduler, and find nothing on clusters with another."""
    return tuple(replace(item, find=_only_with(scheduler, item.find)) for item in checks)


def _only_with(scheduler: SchedulerTraits, find: CheckFunction) -> CheckFunction:
    return lambda plan: find(plan) if plan.scheduler is scheduler else ()
