"""Workloads as rendered, from a few lines of YAML."""

from __future__ import annotations

from functools import cache
from textwrap import indent
from typing import Any

from gpuplan.compiler.backends import workloads
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.planning.plan import Plan
from tests.plans import a_cluster, a_plan

PLATFORM = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: gpus}}
spec:
  gpu: A100-80GB
  nodes: {{count: 2, gpusPerNode: 8}}
  sharing: {{{sharing}}}
  taints:
    - {{key: nvidia.com/gpu, value: gpus, effect: NoSchedule}}
    - {{key: example.com/maintenance, effect: NoExecute}}
  {pool}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {{name: urgent}}
spec: {{value: 200, preemptible: false}}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {{name: spare}}
spec: {{value: 50}}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {{name: research}}
spec:
  namespaces: [lab]
  priorityClasses: [urgent, spare]
  quotas: [{{pool: gpus, guaranteed: 8}}]
  allow: {{podSecurity: {security}}}
---
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {{name: {name}}}
spec:
  tenant: research
  pool: gpus
  priorityClass: {priority}
  image: registry.example.com/app:1
{spec}
"""

SERVICE = "inference: {port: 8080}"
TRAINING = "training: {pods: 4}"


@cache
def planned(
    spec: str = SERVICE,
    *,
    scheduler: str = "kubernetes",
    sharing: str = "exclusive: {}",
    pool: str = "",
    security: str = "baseline",
    name: str = "app",
    priority: str = "urgent",
    cluster: str = "",
) -> Plan:
    """A plan with one workload in namespace `lab`."""
    text = PLATFORM.format(
        sharing=sharing, pool=pool, security=security, name=name, priority=priority, spec=indent(spec, "  ")
    )
    return a_plan(f"{a_cluster(f'kind: {scheduler}')}{indent(cluster, '  ')}\n---\n{text}")


def manifests(spec: str = SERVICE, **more: str) -> list[Manifest]:
    return list(workloads.render(planned(spec, **more)))


def get(kind: str, spec: str = SERVICE, **more: str) -> Any:
    """The only object of a kind."""
    (found,) = (manifest.body for manifest in manifests(spec, **more) if manifest.kind == kind)
    return found


def template_of(body: Any) -> Any:
    """The pod template of an object, or of the Job in it."""
    match body["kind"]:
        case "TrainingRuntime":
            return template_of({"kind": "JobSet", **body["spec"]["template"]})
        case "JobSet":
            (job,) = body["spec"]["replicatedJobs"]
            return job["template"]["spec"]["template"]
        case _:
            return body["spec"]["template"]


def pod_of(kind: str, spec: str = SERVICE, **more: str) -> Any:
    """The pod template of the only object of a kind."""
    return template_of(get(kind, spec, **more))


def container_of(kind: str, spec: str = SERVICE, **more: str) -> Any:
    (container,) = pod_of(kind, spec, **more)["spec"]["containers"]
    return container
