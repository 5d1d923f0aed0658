"""Checks: what can be wrong with a plan, each rule one function."""

from __future__ import annotations

from gpuplan.checks import (
    admission,
    argocd,
    dashboards,
    dra,
    flux,
    guard,
    handwritten,
    helm_values,
    kai,
    kueue,
    layout_devices,
    mig,
    mig_drivers,
    monitoring,
    names,
    node_labels,
    nodes,
    openshift,
    operator,
    operator_nodes,
    operator_releases,
    pools,
    priorities,
    profiles,
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
from gpuplan.checks.handwritten.reading import read
from gpuplan.checks.registry import Check, checks_in, run_all
from gpuplan.diagnostics import Diagnostic
from gpuplan.planning.plan import Plan

CHECKS: tuple[Check[Plan], ...] = (
    *checks_in(
        admission,
        argocd,
        dashboards,
        dra,
        flux,
        guard,
        helm_values,
        kai,
        kueue,
        layout_devices,
        mig,
        mig_drivers,
        monitoring,
        names,
        node_labels,
        nodes,
        openshift,
        operator,
        operator_nodes,
        operator_releases,
        pools,
        priorities,
        profiles,
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
    ),
    *handwritten.FILE_CHECKS,
)
"""A module of checks that is not named here fails a test."""


def run(plan: Plan) -> tuple[Diagnostic, ...]:
    """Every finding of every check on one cluster's plan, and on the objects that are written by hand for it."""
    return (*run_all(CHECKS, plan), *run_all(handwritten.OBJECT_CHECKS, read(plan)))
