"""The back end of Run:ai: what to tell its control plane, as the requests to send.

Run:ai keeps node pools, departments and projects itself and writes them into the cluster, where nothing else may. So
these are files that nothing applies, each the body of one request, and a page that says where to send it and in which
order. Field names were read in its API reference of release 3.0
(https://docs.nvidia.com/run-ai/self-hosted/reference/rest-api) and in its Python client
(https://github.com/runai-professional-services/runapy, `runai/models`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuplan.backends.runai.bodies import department, node_pool, policy, project
from gpuplan.backends.runai.guide import guide
from gpuplan.backends.runai.requests import FOLDER, Request, body_file
from gpuplan.manifests import File
from gpuplan.planning.plan import Plan
from gpuplan.planning.projects import departments, projects, ranks
from gpuplan.planning.schedulers.runai import RUNAI


def render(plan: Plan) -> Iterator[File]:
    """Nothing, unless the cluster's scheduler is Run:ai."""
    if plan.scheduler is not RUNAI:
        return
    found = tuple(requests(plan))
    for request in {request.file: request for request in found}.values():
        yield body_file(request)
    yield File(f"{FOLDER}/README.md", guide(plan, found).encode())


def requests(plan: Plan) -> Iterator[Request]:
    """In the order in which they must be sent: what a request names has to be there."""
    cluster = _cluster(plan)
    rank_of = ranks(plan.tenants)
    for pool in plan.pools:
        yield Request("node-pools", pool.name, "POST", "/api/v1/node-pools", cluster | node_pool(plan, pool), ())
    for whole in departments(plan):
        name, body = whole.tenant.name, cluster | department(whole, rank_of)
        yield Request("departments", name, "POST", "/api/v1/org-unit/departments", body, ("nodePool.id",))
    for part in projects(plan):
        name, body = part.namespace, cluster | project(part, rank_of)
        missing = ("nodePool.id", f"parentId of `{part.department}`")
        yield Request("projects", name, "POST", "/api/v1/org-unit/projects", body, missing)
    for part in projects(plan):
        if body := policy(part):
            yield from _policies(part.namespace, body)


_POLICY_KINDS = ("workspaces", "trainings", "inferences")


def _policies(name: str, body: dict[str, Any]) -> Iterator[Request]:
    """The same for every kind of workload that has one container."""
    for kind in _POLICY_KINDS:
        yield Request("policies", name, "PUT", f"/api/v2/policy/{kind}", body, (f"meta.projectId of `{name}`",))


def _cluster(plan: Plan) -> dict[str, str]:
    """The cluster's id; where the policy leaves it out, whoever sends the request adds it."""
    cluster_id = plan.cluster.scheduler.runai_cluster_id
    return {"clusterId": cluster_id} if cluster_id else {}
