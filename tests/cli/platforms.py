"""A platform that is valid and small, to be broken on purpose."""

from __future__ import annotations

from pathlib import Path

CLUSTER = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: NAME}
spec:
  kubernetes: "1.34"
  gpuOperator: {install: helm, version: v26.7.0}
  taintPools: true
"""
POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata:
  name: research
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8, namePattern: "research-[0-9]+"}
  sharing:
    timeSlicing: {replicas: 3}
  workloadTypes: [training]
"""
TENANT = """\
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata:
  name: research
spec:
  namespaces: [research]
  priorityClasses: [research]
  workloadTypes: [training]
  quotas:
  - {pool: research, guaranteed: 16}
"""
PRIORITY = """\
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: research}
spec: {value: 100, preempts: false}
"""


def a_platform(root: Path, *clusters: str) -> Path:
    """Write a platform with clusters of these names, or one called `dev`."""
    write(root / "policies/pool.yaml", POOL)
    write(root / "policies/tenant.yaml", TENANT)
    write(root / "policies/priority.yaml", PRIORITY)
    for name in clusters or ("dev",):
        write(root / f"overlays/{name}/cluster.yaml", CLUSTER.replace("NAME", name))
    return root


def a_broken_platform(root: Path, *clusters: str) -> Path:
    """The same with one error: a pool that does not exist, in line 10 of the tenant's file."""
    a_platform(root, *clusters)
    write(root / "policies/tenant.yaml", TENANT.replace("pool: research", "pool: reserch"))
    return root


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
