"""Checks: what can be wrong with a plan, each rule one function."""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.checks import (
    admission,
    argocd,
    dashboards,
    dra,
    flux,
    guard,
    handwritten,
    kai,
    kueue,
    mig,
    monitoring,
    names,
    openshift,
    operator,
    pools,
    preemption,
    priorities,
    quotas,
    retained,
    rollout,
    runai,
    schedulers,
    sharing,
    splits,
    tenants,
    workload_sums,
    workloads,
)
from gpuplan.checks.registry import Check
from gpuplan.diagnostics import Diagnostic
from gpuplan.planning.plan import Plan

CHECKS: tuple[Check, ...] = (
    *names.CHECKS,
    *pools.CHECKS,
    *mig.CHECKS,
    *sharing.CHECKS,
    *rollout.CHECKS,
    *guard.CHECKS,
    *tenants.CHECKS,
    *quotas.CHECKS,
    *splits.CHECKS,
    *priorities.CHECKS,
    *schedulers.CHECKS,
    *kai.CHECKS,
    *kueue.CHECKS,
    *runai.CHECKS,
    *dra.CHECKS,
    *preemption.CHECKS,
    *admission.CHECKS,
    *workload_sums.CHECKS,
    *workloads.CHECKS,
    *operator.CHECKS,
    *openshift.CHECKS,
    *argocd.CHECKS,
    *flux.CHECKS,
    *monitoring.CHECKS,
    *dashboards.CHECKS,
    *retained.CHECKS,
    *handwritten.CHECKS,
)


def run(plan: Plan, checks: Iterable[Check] = CHECKS) -> tuple[Diagnostic, ...]:
    """Every finding of every check on one cluster's plan, in the checks' order."""
    return tuple(diagnostic for check in checks for diagnostic in check.run(plan))
