"""Judge the work that is written for Workloads before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuplan.admission import known_rules
from gpuplan.backends import workloads
from gpuplan.checks.generated import ASKED, GENERATED_CHECKS, Generated, GeneratedWork
from gpuplan.checks.registry import run_all
from gpuplan.diagnostics import Diagnostic
from gpuplan.planning.plan import Plan


def judge_asked(plan: Plan, found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """What the cluster's own rules refuse for a field of a Workload; ``found`` is what is known to be wrong."""
    yield from _judge(plan, ASKED, found)


def judge_rest(plan: Plan) -> Iterator[Diagnostic]:
    """What its other rules refuse, of a plan that nothing is known to be wrong with."""
    if plan.workloads:
        yield from _judge(plan, frozenset(known_rules()) - ASKED, ())


def _judge(plan: Plan, rules: frozenset[str], found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    if plan.broken.pools:
        return
    errors = {item.finding.at.source for item in found if item.is_error}
    by_name = {workload.name: workload for workload in plan.workloads}
    work = tuple(GeneratedWork(by_name[manifest.about[0].name], manifest) for manifest in workloads.render(plan))
    faulty = frozenset(name for name, workload in by_name.items() if workload.at.source in errors)
    yield from run_all(GENERATED_CHECKS, Generated(plan, work, rules, faulty))
