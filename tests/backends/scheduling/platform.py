"""The platform that the admission tests judge pods on."""

from __future__ import annotations

from functools import cache
from typing import Any

from gpuplan.backends import scheduling
from gpuplan.planning.grants import parameters
from gpuplan.planning.plan import Plan
from tests.plans import CLUSTER, a_plan

POLICIES = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: shared}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8}
  sharing: {timeSlicing: {replicas: 4}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: split}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8}
  sharing: {mig: {instances: {2g.20gb: 2, 3g.40gb: 1}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: whole}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8}
  sharing: {exclusive: {}}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: research}
spec: {value: 100}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: training}
spec: {value: 500}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: production}
spec: {value: 1000}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: research}
spec:
  namespaces: [research]
  priorityClasses: [research, training]
  quotas:
    - {pool: shared, guaranteed: 8}
    - {pool: split, unit: 2g.20gb, guaranteed: 8}
    - {pool: split, unit: 3g.40gb, guaranteed: 4}
  allow: {unitsPerContainer: 4}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: serving}
spec:
  namespaces: [serving]
  quotas:
    - {pool: whole, guaranteed: 16}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: web}
spec:
  namespaces: [web]
"""


@cache
def platform(scheduler: str = "kubernetes") -> Plan:
    return a_plan(f"{CLUSTER}  scheduler: {{kind: {scheduler}}}\n---\n{POLICIES}")


def policy(name: str, plan: Plan) -> Any:
    manifests = scheduling.render(plan)
    return next(
        manifest.body for manifest in manifests if (manifest.kind, manifest.name) == ("ValidatingAdmissionPolicy", name)
    )


def parameters_of(tenant: str, plan: Plan) -> dict[str, str]:
    """The parameters of the tenant's namespace of the same name."""
    found = next(item for item in plan.tenants if item.name == tenant)
    return dict(parameters(found, tenant, plan.scheduler))
