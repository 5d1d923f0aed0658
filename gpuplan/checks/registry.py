"""How a check is declared: one function, whose docstring is its page."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator

from gpuplan.diagnostics import Diagnostic, Family, Finding, Rule, RulePage, Severity
from gpuplan.planning.plan import Plan
from gpuplan.values import Value

CheckFunction = Callable[[Plan], Iterable[Finding]]


class Check(Value):
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
