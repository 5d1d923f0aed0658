"""Tenants of one pool with 16 shares, and what a check finds in them."""

from __future__ import annotations

from gpuplan.checks.registry import Check
from gpuplan.diagnostics import Finding
from gpuplan.planning.plan import Plan
from tests.plans import a_plan

POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: a100}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 4}
  sharing: {timeSlicing: {replicas: 2}}
"""


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
