"""Tenants of one pool with 16 shares, and what a check finds in them."""

from __future__ import annotations

from gpuplan.compiler.base.diagnostics import Finding
from gpuplan.compiler.checks.registry import Check
from gpuplan.compiler.planning.plan import Plan
from tests.plans import a_plan
from tests.platforms import pool

POOL = pool("a100", "timeSlicing: {replicas: 2}", nodes="count: 2, gpusPerNode: 4")


def a_tenant(name: str, quota: str, *, namespaces: str | None = None, more: str = "") -> str:
    return f"""\
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {{name: {name}}}
spec:
  namespaces: [{name if namespaces is None else namespaces}]
  quotas: [{{pool: a100, {quota}}}]
{more}"""


def find(check: Check[Plan], *tenants: str) -> list[Finding]:
    return list(check.find(a_plan(POOL + "".join(tenants))))
