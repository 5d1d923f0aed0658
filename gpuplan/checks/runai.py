"""Checks on what Run:ai is told (GPU560-564)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.checks.registry import check, only_if
from gpuplan.checks.wording import name_of
from gpuplan.diagnostics import Finding, Severity
from gpuplan.planning.plan import Plan
from gpuplan.planning.schedulers.runai import DEFAULT_DEPARTMENT, RUNAI


def _is_scheduled(plan: Plan) -> bool:
    return plan.scheduler is RUNAI


@only_if(_is_scheduled)
@check("GPU560", "requests-to-be-sent", Severity.NOTE)
def requests_to_be_sent(plan: Plan) -> Iterator[Finding]:
    """The quotas of a cluster with Run:ai take effect when somebody sends them to Run:ai.

    ## Why
    Run:ai's control plane keeps node pools, departments and projects, and writes them into the cluster itself; what
    others write there it undoes. So `gpuplan build` writes the bodies of requests to its API, which no sync applies.
    Until they are sent, guarantees, lending and surplus are whatever Run:ai was told last.

    ## Instead
    Send what `scheduling/runai/README.md` lists, after each change of it. Admission policies and ResourceQuotas hold
    without that.
    """
    if plan.tenants:
        folder = f"{plan.cluster.name}/scheduling/runai"
        yield Finding(
            plan.cluster.scheduler.at / "kind",
            "nothing sends quotas to Run:ai: that is for whoever has access to its API",
            label=f"requests are written below {folder}",
            help=f"follow {folder}/README.md after each change",
        )


@only_if(_is_scheduled)
@check("GPU561", "default-department")
def default_department(plan: Plan) -> Iterator[Finding]:
    """On a cluster with Run:ai, a tenant that is part of none is called `default`.

    ## Why
    Such a tenant becomes a department, and every cluster of Run:ai has one of that name already. The request to make it
    is refused, and its projects would fall into the one that is there.

    ## Instead
    Give the tenant another name.
    """
    for tenant in plan.tenants:
        if tenant.name == DEFAULT_DEPARTMENT and tenant.parent is None:
            yield Finding(
                name_of(tenant.at),
                f"tenant `{DEFAULT_DEPARTMENT}` has the name of Run:ai's own department",
                label="every cluster has it already",
                help="give the tenant another name, such as that of the team",
            )
