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
from gpuplan.planning.projects import Project, departments, projects, ranks
from gpuplan.planning.schedulers.runai import RUNAI
from gpuplan.planning.subjects import about, families


def render(plan: Plan) -> Iterator[File]:
    """Nothing, unless the cluster's scheduler is Run:ai."""
    if plan.scheduler is not RUNAI:
        return
    found = tuple(requests(plan))
    for request in {request.file: request for request in found}.values():
        yield body_file(request)
    everything = about(plan.cluster, *plan.pools, *plan.tenants)
    yield File(f"{FOLDER}/README.md", guide(plan, found).encode(), about=everything)


def requests(plan: Plan) -> Iterator[Request]:
    """In the order in which they must be sent: what a request names has to be there."""
    cluster = _cluster(plan)
    rank_of = ranks(plan.tenants)
    pools = about(plan.cluster, *plan.pools)
    related = {name: (*pools, *about(*family)) for name, family in families(plan.tree).items()}
    for pool in plan.pools:
        body = cluster | node_pool(plan, pool)
        yield Request("node-pools", pool.name, "POST", "/api/v1/node-pools", body, (), about(pool))
    for whole in departments(plan):
        name, body = whole.tenant.name, cluster | department(whole, rank_of)
        yield Request(
            "departments", name, "POST", "/api/v1/org-unit/departments", body, ("nodePool.id",), related[name]
        )
    for part in projects(plan):
        name, body = part.namespace, cluster | project(part, rank_of)
        missing = ("nodePool.id", f"parentId of `{part.department}`")
        yield Request("projects", name, "POST", "/api/v1/org-unit/projects", body, missing, related[part.tenant.name])
    for part in projects(plan):
        if body := policy(part):
            yield from _policies(part, body)


_POLICY_KINDS = ("workspaces", "trainings", "inferences")


def _policies(part: Project, body: dict[str, Any]) -> Iterator[Request]:
    """The same for every kind of workload that has one container."""
    for kind in _POLICY_KINDS:
        missing = (f"meta.projectId of `{part.namespace}`",)
        path = f"/api/v2/policy/{kind}"
        yield Request("policies", part.namespace, "PUT", path, body, missing, about(part.tenant))


def _cluster(plan: Plan) -> dict[str, str]:
    """The cluster's id; where the policy leaves it out, whoever sends the request adds it."""
    cluster_id = plan.cluster.scheduler.runai_cluster_id
    return {"clusterId": cluster_id} if cluster_id else {}
