"""The back end of Run:ai: what to tell its control plane, as the requests to send.

Run:ai keeps node pools, departments and projects itself and writes them into the cluster, where nothing else may. So
these are files that nothing applies, each the body of one request, and a page that says where to send it and in which
order. Field names were read in its API reference of release 3.0
(https://docs.nvidia.com/run-ai/self-hosted/reference/rest-api) and in its Python client
(https://github.com/runai-professional-services/runapy, `runai/models`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction as Ratio
from typing import Any, Final

from gpuplan.backends.base import text_of
from gpuplan.manifests import File, Subject
from gpuplan.manifests.bodies import given
from gpuplan.planning.plan import POOL_LABEL, Plan, Pool, Stage, Tenant
from gpuplan.planning.projects import Department, Grant, Project, departments, minimum_run_time, projects, ranks
from gpuplan.planning.schedulers.runai import RUNAI
from gpuplan.planning.subjects import about, families
from gpuplan.values import NamedTuple
from gpuplan.wording import markdown_code

FOLDER: Final = f"{Stage.SCHEDULING.value}/runai"


class Request(NamedTuple):
    """``missing`` are the ids that only Run:ai knows, which whoever sends it must add to the body."""

    kind: str
    name: str
    method: str
    path: str
    body: Mapping[str, Any]
    missing: tuple[str, ...]
    about: tuple[Subject, ...]

    @property
    def file(self) -> str:
        """The file with the body, relative to `FOLDER`."""
        return f"{self.kind}/{self.name}.json"


def render(plan: Plan) -> Iterator[File]:
    """Nothing, unless the cluster's scheduler is Run:ai."""
    if plan.scheduler is not RUNAI:
        return
    found = tuple(_requests(plan))
    for request in {request.file: request for request in found}.values():
        data = (json.dumps(request.body, indent=2) + "\n").encode()
        yield File(f"{FOLDER}/{request.file}", data, about=request.about)
    everything = about(plan.cluster, *plan.pools, *plan.tenants)
    yield File(f"{FOLDER}/README.md", _guide(plan, found).encode(), about=everything)


def _requests(plan: Plan) -> Iterator[Request]:
    """In the order in which they must be sent: what a request names has to be there.

    Where the policy leaves the cluster's id out, whoever sends the request adds it.
    """
    cluster = given(clusterId=plan.cluster.scheduler.runai_cluster_id)
    rank_of = ranks(plan.tenants)
    pools = about(plan.cluster, *plan.pools)
    related = {name: (*pools, *about(*family)) for name, family in families(plan.tree).items()}
    for pool in plan.pools:
        body = cluster | _node_pool(plan, pool)
        yield Request("node-pools", pool.name, "POST", "/api/v1/node-pools", body, (), about(pool))
    for whole in departments(plan):
        name, body = whole.tenant.name, cluster | _department(whole, rank_of)
        yield Request(
            "departments", name, "POST", "/api/v1/org-unit/departments", body, ("nodePool.id",), related[name]
        )
    for part in projects(plan):
        name, body = part.namespace, cluster | _project(part, rank_of)
        missing = ("nodePool.id", f"parentId of `{part.department}`")
        yield Request("projects", name, "POST", "/api/v1/org-unit/projects", body, missing, related[part.tenant.name])
    for part in projects(plan):
        if body := _policy(part):
            yield from _policies(part, body)


_POLICY_KINDS = ("workspaces", "trainings", "inferences")


def _policies(part: Project, body: dict[str, Any]) -> Iterator[Request]:
    """The same for every kind of workload that has one container."""
    for kind in _POLICY_KINDS:
        missing = (f"meta.projectId of `{part.namespace}`",)
        path = f"/api/v2/policy/{kind}"
        yield Request("policies", part.namespace, "PUT", path, body, missing, about(part.tenant))


# --- Bodies ------------------------------------------------------------------------------------------------------


def _node_pool(plan: Plan, pool: Pool) -> dict[str, Any]:
    """The nodes with the pool's label (`NodepoolCreateFields` of the client)."""
    placement = pool.spec.placement
    return given(
        name=pool.name,
        labelKey=POOL_LABEL,
        labelValue=pool.name,
        schedulingConfiguration=given(
            placementStrategy={"cpu": placement.value, "gpu": placement.value} if placement else None,
            minGuaranteedRuntime=minimum_run_time(plan, pool),
        ),
    )


def _department(item: Department, ranks: Mapping[int, str]) -> dict[str, Any]:
    """What a tenant has together with all that are part of it (`DepartmentCreationRequest`)."""
    return {"name": item.tenant.name, "resources": _resources(item.tenant, item.grants, ranks)}


def _project(item: Project, ranks: Mapping[int, str]) -> dict[str, Any]:
    """What a namespace has (`ProjectCreationRequest`); pools in the order in which the policy names them."""
    return {
        "name": item.namespace,
        "requestedNamespace": item.namespace,
        "defaultNodePools": list(dict.fromkeys(quota.pool.name for quota in item.tenant.quotas)),
        "resources": _resources(item.tenant, item.grants, ranks),
    }


def _policy(item: Project) -> dict[str, Any]:
    """What workloads may ask for (`TrainingPolicyOverwriteRequestV2`); empty where the tenant says nothing of it.

    Fractions are of one GPU, so that nothing is to be bounded where there is nothing else.
    """
    most = item.tenant.spec.allow.units_per_container
    if most is None or not any(quota.unit.resource for quota in item.tenant.quotas):
        return {}
    rules = {"compute": {"gpuDevicesRequest": {"max": most}}}
    return {"meta": {"name": item.namespace, "scope": "project"}, "policy": {"rules": rules}}


def _resources(tenant: Tenant, grants: Mapping[str, Grant], ranks: Mapping[int, str]) -> list[dict[str, Any]]:
    """Every pool is named: Run:ai lets a project use what is idle in those that it is told nothing about."""
    return [
        {"nodePool": {"name": pool}, "gpu": _gpu(tenant, grant), "rank": ranks[tenant.spec.surplus.rank]}
        for pool, grant in grants.items()
    ]


def _gpu(tenant: Tenant, grant: Grant) -> dict[str, Any]:
    """Who has no weight gets no surplus, and so no more than its guarantee."""
    weight = tenant.surplus_weight
    if weight == 0:
        return {"deserved": _number(grant.deserved), "limit": _number(grant.deserved)}
    limit = None if grant.limit is None else _number(grant.limit)
    return {"deserved": _number(grant.deserved), "limit": limit, "overQuotaWeight": _number(Ratio(weight))}


def _number(amount: Ratio) -> int | float:
    return int(amount) if amount.denominator == 1 else float(amount)


# --- Guide -------------------------------------------------------------------------------------------------------

_HEADER: Final = "<!-- Written by gpuplan; edit policies/ and overlays/, then run gpuplan build. -->\n"


def _guide(plan: Plan, requests: Sequence[Request]) -> str:
    parts = (
        _HEADER,
        f"# Run:ai of cluster {plan.cluster.name}\n",
        "Nothing applies these files: each is the body of a request to Run:ai's API, to be sent from top to bottom.\n",
        _table(requests),
        *_notes(plan, requests),
        text_of("runai-uncertain"),
    )
    return "\n".join(parts)


def _table(requests: Iterable[Request]) -> str:
    rows = (
        f"| {markdown_code(request.file)} | {markdown_code(f'{request.method} {request.path}')} "
        f"| {', '.join(_missing(request)) or '-'} |\n"
        for request in requests
    )
    return "".join(("| body | request | to be added |\n|---|---|---|\n", *rows))


def _missing(request: Request) -> Iterator[str]:
    if request.kind != "policies" and "clusterId" not in request.body:
        yield "clusterId"
    yield from request.missing


def _notes(plan: Plan, requests: Sequence[Request]) -> Iterator[str]:
    if any(request.missing for request in requests):
        yield "Run:ai gives the ids when it makes what they belong to: look them up by name.\n"
    namespaces = [namespace for tenant in plan.tenants for namespace in tenant.spec.namespaces]
    if namespaces:
        yield (
            "The namespaces are gpuplan's and carry `runai/queue`, by which Run:ai finds them: its cluster must not "
            "make them itself (`createNamespaces: false`).\n"
        )
    for pool in plan.pools:
        if pool.spec.topology:
            labels = ", ".join(map(markdown_code, pool.spec.topology))
            name = markdown_code(pool.name)
            yield f"Node pool {name} needs a network topology of {labels}, and its id as `networkTopologyId`.\n"
