"""Declare checks, whatever they judge: a check is one function, whose docstring is its page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any, Generic, Protocol, TypeVar

from gpuplan.compiler.base.diagnostics import Diagnostic, Family, Finding, Rule, RulePage, Severity
from gpuplan.compiler.base.values import Value


class Context(Protocol):
    """The value that a check judges: the plan of a cluster, a step between two plans, or a set of objects."""

    @property
    def cluster_names(self) -> tuple[str, ...]:
        """The clusters that a finding is about."""
        ...  # pragma: no cover


C = TypeVar("C", bound=Context)


class Check(Value, Generic[C]):
    """A rule and the function that finds where a context breaks it."""

    rule: Rule
    find: Callable[[C], Iterable[Finding]]
    applies: Callable[[C], bool] | None = None
    """The condition on a context for the rule to judge it."""

    def run(self, context: C) -> Iterator[Diagnostic]:
        if self.applies is not None and not self.applies(context):
            return
        for finding in self.find(context):
            yield Diagnostic(self.rule, finding, context.cluster_names)


def check(
    code: str, name: str, severity: Severity = Severity.ERROR, *, family: Family = Family.PLAN, ignorable: bool = True
) -> Callable[[Callable[[C], Iterable[Finding]]], Check[C]]:
    """Declare a check; its docstring becomes the rule's documentation."""

    def declare(function: Callable[[C], Iterable[Finding]]) -> Check[C]:
        page = RulePage(name, severity, family, function.__doc__ or "", ignorable)
        return Check(Rule(code, page), function)

    return declare


def same_rule(one: Check[Any]) -> Callable[[Callable[[C], Iterable[Finding]]], Check[C]]:
    """Declare how another context breaks a rule that is declared already. Its page stays the first one's."""
    return lambda function: Check(one.rule, function)


def checks_in(*modules: ModuleType) -> tuple[Check[Any], ...]:
    """Return every check that is defined in one of the modules, in the order in which they are written."""
    return tuple(
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Check) and value.find.__module__ == module.__name__
    )


def run_all(checks: Iterable[Check[C]], context: C) -> tuple[Diagnostic, ...]:
    """Return every finding of every check, in the checks' order."""
    return tuple(diagnostic for one in checks for diagnostic in one.run(context))
