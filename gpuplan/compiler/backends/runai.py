"""The back end of Run:ai: the requests to send to its control plane.

Run:ai keeps node pools, departments and projects itself and writes them into the cluster, where nothing else may. So
these are files that nothing applies, each the body of one request, and a page that says where to send it and in which
order. Field names were read in its API reference of release 3.0
(https://docs.nvidia.com/run-ai/self-hosted/reference/rest-api) and in its Python client
(https://github.com/runai-professional-services/runapy, `runai/models`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction as Ratio
from functools import partial
from typing import Any, Final

from gpuplan.compiler.backends.base import text_of
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import markdown_code
from gpuplan.compiler.manifests import File, Subject
from gpuplan.compiler.manifests.bodies import given
from gpuplan.compiler.manifests.provenance import (
    ANY,
    Links,
    Routes,
    Trace,
    adding,
    below,
    choosing,
    chosen,
    copied,
    multiplied,
    multiplying,
    ordered,
)
from gpuplan.compiler.planning import sources
from gpuplan.compiler.planning.amounts import ComputeShare, as_number, shares_in_pool
from gpuplan.compiler.planning.fallbacks import in_order, ordering_fallbacks
from gpuplan.compiler.planning.plan import POOL_LABEL, Counted, Plan, Pool, Quota, Stage, Tenant
from gpuplan.compiler.planning.projects import (
    Department,
    Grant,
    Project,
    departments,
    minimum_run_time,
    projects,
    ranks,
    seconds,
    times_of,
)
from gpuplan.compiler.planning.schedulers.runai import RUNAI
from gpuplan.compiler.planning.subjects import about, families

FOLDER: Final = f"{Stage.SCHEDULING.value}/runai"


class Request(NamedTuple):
    """A request to Run:ai's API. ``missing`` are the ids that only Run:ai knows, which whoever sends it must add."""

    kind: str
    name: str
    method: str
    path: str
    body: Mapping[str, Any]
    missing: tuple[str, ...]
    about: tuple[Subject, ...]
    trace: Trace

    @property
    def file(self) -> str:
        """The file with the body, relative to `FOLDER`."""
        return f"{self.kind}/{self.name}.json"


def render(plan: Plan) -> Iterator[File]:
    """Yield the requests as files, if the cluster's scheduler is Run:ai."""
    if plan.scheduler is not RUNAI:
        return
    requests = tuple(_requests(plan))
    for request in {request.file: request for request in requests}.values():
        data = (json.dumps(request.body, indent=2) + "\n").encode()
        yield File(f"{FOLDER}/{request.file}", data, about=request.about, trace=request.trace)
    everything = about(plan.cluster, *plan.pools, *plan.tenants)
    trace = partial(_trace_guide, plan, requests)
    yield File(f"{FOLDER}/README.md", _guide(plan, requests).encode(), about=everything, trace=trace)


def _requests(plan: Plan) -> Iterator[Request]:
    """Yield the requests in the order in which they must be sent: what one names has to be there.

    Where the policy leaves the cluster's id out, whoever sends the request adds it.
    """
    cluster = given(clusterId=plan.cluster.scheduler.runai_cluster_id)
    rank_of = ranks(plan.tenants)
    pools = about(plan.cluster, *plan.pools)
    related = {name: (*pools, *about(*family)) for name, family in families(plan.tree).items()}
    for pool in plan.pools:
        body = cluster | _node_pool(plan, pool)
        trace = partial(_trace_node_pool, plan, pool)
        yield Request("node-pools", pool.name, "POST", "/api/v1/node-pools", body, (), about(pool), trace)
    for whole in departments(plan):
        name, body = whole.tenant.name, cluster | _department(plan, whole, rank_of)
        path, trace = "/api/v1/org-unit/departments", partial(_trace_department, plan, whole)
        yield Request("departments", name, "POST", path, body, ("nodePool.id",), related[name], trace)
    for part in projects(plan):
        name, body = part.namespace, cluster | _project(plan, part, rank_of)
        missing = ("nodePool.id", f"parentId of `{part.department}`")
        path, subjects = "/api/v1/org-unit/projects", related[part.tenant.name]
        trace = partial(_trace_project, plan, part)
        yield Request("projects", name, "POST", path, body, missing, subjects, trace)
    for part in projects(plan):
        body, project = _policy(part), (f"meta.projectId of `{part.namespace}`",)
        for kind in _POLICY_KINDS if body else ():
            path, trace = f"/api/v2/policy/{kind}", partial(_trace_limits, plan, part)
            yield Request("policies", part.namespace, "PUT", path, body, project, about(part.tenant), trace)


_POLICY_KINDS: Final = ("workspaces", "trainings", "inferences")
"""Every kind of workload that has one container."""


# --- Bodies ------------------------------------------------------------------------------------------------------


def _node_pool(plan: Plan, pool: Pool) -> dict[str, Any]:
    """Return the nodes with the pool's label (`NodepoolCreateFields` of the client)."""
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


def _department(plan: Plan, whole: Department, ranks: Mapping[int, str]) -> dict[str, Any]:
    """Return what a tenant has together with all that are part of it (`DepartmentCreationRequest`)."""
    compute = {pool.name: shares_in_pool(plan, whole.tenant, pool) for pool in plan.pools}
    return {
        "name": whole.tenant.name,
        **_scheduling_rules(whole.tenant),
        "resources": _resources(whole.tenant, whole.grants, compute, ranks),
    }


def _project(plan: Plan, part: Project, ranks: Mapping[int, str]) -> dict[str, Any]:
    """Return what a namespace has (`ProjectCreationRequest`).

    Work that names no node pool is sent to the first that has room: in the order in which the policy names them, but
    for a pool that another one falls back to, which comes after that.
    """
    tenant, name = part.tenant, part.namespace
    compute = {pool.name: shares_in_pool(plan, tenant, pool, is_rest=True, namespace=name) for pool in plan.pools}
    return {
        "name": part.namespace,
        "requestedNamespace": part.namespace,
        "defaultNodePools": _default_pools(plan, tenant),
        **_scheduling_rules(tenant),
        "resources": _resources(part.tenant, part.grants, compute, ranks),
    }


def _default_pools(plan: Plan, tenant: Tenant) -> list[str]:
    return in_order(plan.pools, (quota.pool.name for quota in tenant.quotas))


SCHEDULING_RULES: Final = {
    ("workspaces", "run"): "interactiveJobTimeLimitSeconds",
    ("workspaces", "idle"): "interactiveJobMaxIdleDurationSeconds",
    ("workspaces", "preemptibleIdle"): "interactiveJobPreemptIdleDurationSeconds",
    ("trainings", "run"): "trainingJobTimeLimitSeconds",
    ("trainings", "idle"): "trainingJobMaxIdleDurationSeconds",
}
"""The names of a tenant's `timeLimits` in `SchedulingRules` of the client."""


def _rule(at: Origin) -> str:
    work, field = map(str, at.path[-2:])
    return SCHEDULING_RULES[work, field]


def _scheduling_rules(tenant: Tenant) -> dict[str, Any]:
    """Return the rules that say something. A department's hold for its projects as well."""
    return given(schedulingRules={_rule(at): seconds(time) for at, time in times_of(tenant)})


def _trace_rules(tenant: Tenant) -> Routes:
    for at, _ in times_of(tenant):
        yield ("schedulingRules", _rule(at)), copied(at)


def _policy(part: Project) -> dict[str, Any]:
    """Return what workloads may ask for (`TrainingPolicyOverwriteRequestV2`), or nothing if the tenant bounds nothing.

    Fractions are of one GPU, so that nothing is to be bounded where there is nothing else.
    """
    most = part.tenant.spec.allow.units_per_container
    if most is None or not any(quota.unit.resource for quota in part.tenant.quotas):
        return {}
    rules = {"compute": {"gpuDevicesRequest": {"max": most}}}
    return {"meta": {"name": part.namespace, "scope": "project"}, "policy": {"rules": rules}}


def _resources(
    tenant: Tenant,
    grants: Mapping[str, Grant],
    compute: Mapping[str, Mapping[Counted, ComputeShare]],
    ranks: Mapping[int, str],
) -> list[dict[str, Any]]:
    """Return what is had of every pool.

    Run:ai lets a project use what is idle in pools that it is told nothing about.
    """
    resources = []
    for pool, grant in grants.items():
        row = {"nodePool": {"name": pool}, "gpu": _gpu(tenant, grant)}
        for counted, share in compute[pool].items():
            one = 1 if counted is Counted.CPU else 1_000_000  # thousandths of a CPU and millions of bytes, as with KAI
            limit = None if share.limit is None else Ratio(share.limit, one)
            row[counted.value] = _gpu(tenant, Grant(Ratio(share.guaranteed, one), limit))
        resources.append({**row, "rank": ranks[tenant.spec.surplus.rank]})
    return resources


def _gpu(tenant: Tenant, grant: Grant) -> dict[str, Any]:
    """Return the numbers of a grant. Without a weight there is no surplus, and so no more than the guarantee."""
    weight = tenant.surplus_weight
    if weight == 0:
        return {"deserved": as_number(grant.deserved), "limit": as_number(grant.deserved)}
    limit = None if grant.limit is None else as_number(grant.limit)
    return {"deserved": as_number(grant.deserved), "limit": limit, "overQuotaWeight": as_number(Ratio(weight))}


# --- Guide -------------------------------------------------------------------------------------------------------

_HEADER: Final = "<!-- Written by gpuplan; edit policies/ and overlays/, then run gpuplan build. -->\n"


_TOPOLOGY_NOTE: Final = "Node pool"


def _guide(plan: Plan, requests: Sequence[Request]) -> str:
    table = "| body | request | to be added |\n|---|---|---|\n"
    for request in requests:
        call = markdown_code(f"{request.method} {request.path}")
        lacks_cluster = request.kind != "policies" and "clusterId" not in request.body
        added = ", ".join((*(("clusterId",) if lacks_cluster else ()), *request.missing))
        table += f"| {markdown_code(request.file)} | {call} | {added or '-'} |\n"
    notes = []
    if any(request.missing for request in requests):
        notes.append("Run:ai gives the ids when it makes what they belong to: look them up by name.\n")
    if any(tenant.spec.namespaces for tenant in plan.tenants):
        notes.append(
            "The namespaces are gpuplan's and carry `runai/queue`, by which Run:ai finds them: its cluster must not "
            "make them itself (`createNamespaces: false`).\n"
        )
    for pool in plan.pools:
        if pool.spec.topology:
            labels, name = ", ".join(map(markdown_code, pool.spec.topology)), markdown_code(pool.name)
            need = f"{name} needs a network topology of {labels}, and its id as `networkTopologyId`.\n"
            notes.append(f"{_TOPOLOGY_NOTE} {need}")
    parts = (
        _HEADER,
        f"# Run:ai of cluster {plan.cluster.name}\n",
        "Nothing applies these files: each is the body of a request to Run:ai's API, to be sent from top to bottom.\n",
        table,
        *notes,
        text_of("runai-uncertain") + (text_of("runai-uncertain-compute") if plan.compute_trees else ""),
    )
    return "\n".join(parts)


# --- Where it comes from -----------------------------------------------------------------------------------------


def _trace_request(plan: Plan) -> Routes:
    yield (), sources.scheduler_of(plan)
    yield ("clusterId",), copied(plan.cluster.scheduler.at / "runai" / "clusterId")


def _trace_node_pool(plan: Plan, pool: Pool) -> Routes:
    """Yield the routes of a node pool. Whoever protects work longest in a pool does so for everybody."""
    yield from _trace_request(plan)
    yield (), sources.because_of(pool)
    yield ("name",), sources.named(pool)
    yield ("labelValue",), sources.named(pool)
    configuration = "schedulingConfiguration"
    yield (configuration, "placementStrategy"), copied(pool.at / "placement")
    of_pool = [tenant for tenant in plan.tenants if any(quota.pool.name == pool.name for quota in tenant.quotas)]
    places = (tenant.at / "protect" / field for tenant in of_pool for field in ("preempt", "reclaim"))
    yield (configuration, "minGuaranteedRuntime"), chosen(*places)


def _trace_department(plan: Plan, whole: Department) -> Routes:
    yield from _trace_request(plan)
    yield (), sources.because_of(whole.tenant)
    yield ("name",), sources.named(whole.tenant)
    yield from _trace_rules(whole.tenant)
    quotas = plan.tree.together[whole.tenant.name]
    # Quotas of others are there by their parents.
    holders = {quota.at: holder for holder in plan.tenants for quota in holder.quotas}
    numbers = []
    for quota in quotas:
        path = plan.tree.path(holders[quota.at])
        below_it = chosen(*(part.at / "parent" for part in path if part is not whole.tenant))
        guaranteed = (*copied(quota.at / "guaranteed"), *below_it)
        numbers.append((quota, (guaranteed, (*copied(sources.limit_of(quota)), *below_it))))
    yield from below(("resources",), _trace_resources(plan, whole.tenant, numbers))


def _trace_project(plan: Plan, part: Project) -> Routes:
    name = copied(sources.namespace_of(part.tenant, part.namespace))
    yield from _trace_request(plan)
    yield (), choosing(name)
    yield ("name",), name
    yield ("requestedNamespace",), name
    yield from _trace_rules(part.tenant)
    for index, pool in enumerate(_default_pools(plan, part.tenant)):
        first = next(quota for quota in part.tenant.quotas if quota.pool.name == pool)
        yield ("defaultNodePools", index), (*copied(first.at / "pool"), *sources.named(first.pool))
    named_pools = list(dict.fromkeys(quota.pool.name for quota in part.tenant.quotas))
    yield ("defaultNodePools", ANY), ordered(*ordering_fallbacks(plan.pools, named_pools))
    numbers: list[tuple[Quota, _Numbers]] = []
    for quota in part.tenant.quotas:  # a namespace has its part of what its tenant leaves to none of its own parts
        rest, limit = sources.left_of(plan.tree, part.tenant, quota), copied(sources.limit_of(quota))
        if len(part.tenant.spec.namespaces) > 1:
            split = multiplied(*(quota.at / "split" / each for each in quota.split))
            rest, limit = (*multiplying(rest), *split), (*multiplying(limit), *split)
        numbers.append((quota, (rest, limit)))
    yield from below(("resources",), _trace_resources(plan, part.tenant, numbers, part.namespace))


_Numbers = tuple[Links, Links]
"""The links of the units of a quota that are guaranteed, and those of its limit."""


def _trace_resources(
    plan: Plan, tenant: Tenant, numbers: Sequence[tuple[Quota, _Numbers]], namespace: str | None = None
) -> Routes:
    """Yield the routes of every pool, in the order of names; with a weight of zero the limit is what is guaranteed."""
    weight = copied(tenant.at / "surplus" / "weight")
    for index, pool in enumerate(plan.pools):
        yield (index, "nodePool", "name"), sources.named(pool)
        found = [(quota, made) for quota, made in numbers if quota.pool.name == pool.name]
        guaranteed, limit = (_in_pool([(quota, made[side]) for quota, made in found]) for side in (0, 1))
        unbounded = [quota for quota, _ in found if quota.limit is None]
        if unbounded:
            places = chosen(*(quota.at / "pool" for quota in unbounded))
            limit = (*(copied(unbounded[0].at / "limit") if len(unbounded) == 1 else ()), *places)
        yield (index, "gpu", "deserved"), guaranteed
        yield (index, "gpu", "limit"), (*(guaranteed if tenant.surplus_weight == 0 else limit), *choosing(weight))
        yield (index, "gpu", "overQuotaWeight"), weight
        for counted in (Counted.CPU, Counted.MEMORY):
            yield from below((index, counted.value), _trace_compute(plan, tenant, pool, counted, namespace))
    # Ranks are counted from zero, so that those nearer to it on the same side decide as well.
    rank = tenant.spec.surplus.rank
    nearer = [other for other in plan.tenants if min(rank, 0) <= other.spec.surplus.rank <= max(rank, 0)]
    yield (ANY, "rank"), chosen(*(other.at / "surplus" / "rank" for other in nearer if rank))
    moved = ordered(*map(sources.name_of, plan.pools)) if len(plan.pools) > 1 else ()
    for route in (("nodePool", "name"), ("gpu", "deserved"), ("gpu", "limit"), ("cpu",), ("memory",)):
        yield (ANY, *route), moved


def _trace_compute(plan: Plan, tenant: Tenant, pool: Pool, counted: Counted, namespace: str | None) -> Routes:
    """Yield what a department's tenant says, with those below it, or a namespace's part of what that leaves."""
    tree = plan.compute_trees.get(counted)
    held = [quota for quota in tree.together[tenant.name] if quota.pool.name == pool.name] if tree else []
    own = [quota for quota in held if any(quota.at == item.at for item in tenant.quotas)]
    if tree is None or not own:
        return
    quotas, weight = own if namespace else held, chosen(tenant.at / "surplus" / "weight")
    lefts = [sources.compute_left_of(tree, tenant, quota, counted) for quota in quotas]
    wholes = [sources.compute_of(quota, counted, "guaranteed") for quota in quotas]
    limits = [sources.compute_of(quota, counted, "limit") for quota in quotas]
    splits = multiplied(*(quota.at / "split" / name for quota in quotas for name in quota.split)) if namespace else ()
    places = chosen(*(quota.at / "pool" for quota in quotas))
    for field, parts in (("deserved", lefts if namespace else wholes), ("limit", limits)):
        links = tuple(link for part in parts for link in (adding(part) if len(parts) > 1 else part))
        amount = (*multiplying(links), *splits) if splits else links
        guaranteed = tuple(link for part in wholes for link in part) if tenant.surplus_weight == 0 else ()
        yield (field,), (*amount, *places, *(guaranteed if field == "limit" else ()), *weight)
    yield ("overQuotaWeight",), copied(tenant.at / "surplus" / "weight")


def _in_pool(quotas: Sequence[tuple[Quota, Links]]) -> Links:
    """Return what the quotas in one pool come to, in GPUs."""
    parts = ((quota, adding(made) if len(quotas) > 1 else made) for quota, made in quotas)
    links = (link for quota, made in parts for link in sources.in_gpus(quota, made))
    return (*links, *chosen(*(quota.at / "pool" for quota, _ in quotas)))


def _trace_limits(plan: Plan, part: Project) -> Routes:
    name = copied(sources.namespace_of(part.tenant, part.namespace))
    yield (), (*sources.scheduler_of(plan), *choosing(name))
    yield ("meta", "name"), name
    yield ("policy", "rules"), copied(part.tenant.at / "allow" / "unitsPerContainer")


def _trace_guide(plan: Plan, requests: Sequence[Request]) -> Routes:
    """Yield the rows of the table, by line, in the order of names, and the notes on pools."""
    yield (), sources.scheduler_of(plan)
    lines = _guide(plan, requests).splitlines()
    yield (lines.index(f"# Run:ai of cluster {plan.cluster.name}"),), sources.named(plan.cluster)
    start = next(number for number, line in enumerate(lines) if line.startswith("|---")) + 1
    orders: dict[str, Sequence[Pool] | Sequence[Tenant]] = {"node-pools": plan.pools, "departments": plan.tree.roots}
    for number, request in enumerate(requests, start):
        yield (number,), tuple(link for route, links in request.trace() if route == () for link in links)
        yield (number,), ordered(*map(sources.name_of, orders.get(request.kind, plan.tenants)))
    for number, part in enumerate(projects(plan), start + len(plan.pools) + len(plan.tree.roots)):
        path = plan.tree.path(part.tenant)
        yield (number,), (*sources.named(path[-1]), *chosen(*(tenant.at / "parent" for tenant in path)))
    notes = (number for number, line in enumerate(lines) if line.startswith(_TOPOLOGY_NOTE))
    for number, pool in zip(notes, (pool for pool in plan.pools if pool.spec.topology), strict=True):
        levels = copied(*(pool.at / "topology" / index for index in range(len(pool.spec.topology))))
        yield (number,), (*sources.named(pool), *levels)
