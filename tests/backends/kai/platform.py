"""The platform that the tests of KAI-Scheduler's objects build: a department of two tenants, and one by itself."""

from __future__ import annotations

from functools import cache
from typing import Any

from gpuplan.backends import kai
from gpuplan.manifests import Manifest
from gpuplan.planning.plan import Plan
from tests.plans import a_cluster, a_plan

POLICIES = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: a100-mig}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8, names: [a, b]}
  sharing: {mig: {instances: {2g.20gb: 3, 1g.10gb: 1}}}
  placement: binpack
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: h100}
spec:
  gpu: H100-80GB
  nodes: {count: 2, gpusPerNode: 8, names: [c, d]}
  sharing: {fraction: {}}
  placement: spread
  topology: [example.com/rack, kubernetes.io/hostname]
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: guaranteed}
spec: {value: 125, preemptible: false}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: spot}
spec: {value: 50, preempts: false}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: science}
spec:
  surplus: {weight: 3}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: physics}
spec:
  parent: science
  namespaces: [physics, physics-batch]
  priorityClasses: [guaranteed, spot]
  surplus: {weight: 2.5, rank: 10}
  protect: {preempt: 10m, reclaim: 1h30m}
  quotas:
    - {pool: a100-mig, unit: 2g.20gb, guaranteed: 4, limit: 8}
    - {pool: h100, guaranteed: 1.5, limit: none}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: serving}
spec:
  namespaces: [serving]
  quotas:
    - {pool: h100, guaranteed: 4}
"""


@cache
def platform(kubernetes: str = "1.34") -> Plan:
    return a_plan(f"{a_cluster('kind: kai').replace('1.34', kubernetes)}---\n{POLICIES}")


@cache
def manifests() -> tuple[Manifest, ...]:
    return tuple(kai.render(platform()))


def body(kind: str, name: str) -> Any:
    return next(found.body for found in manifests() if (found.kind, found.name) == (kind, name))
