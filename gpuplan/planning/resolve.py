"""Resolve the policies of one cluster into its plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpuplan.catalog import Catalog
from gpuplan.diagnostics import Diagnostic, Origin
from gpuplan.planning.clusters import resolve_cluster
from gpuplan.planning.context import Context
from gpuplan.planning.layouts import make_layout
from gpuplan.planning.plan import (
    UNREAD,
    Broken,
    Component,
    HandWritten,
    Layout,
    Plan,
    Pool,
    PriorityClass,
    Retained,
    Tenant,
    Workload,
)
from gpuplan.planning.pools import resolve_pool
from gpuplan.planning.retained import resolve_retained
from gpuplan.planning.schedulers import SchedulerTraits, traits_of
from gpuplan.planning.tenants import limit_depth, resolve_tenant
from gpuplan.planning.totals import add_up
from gpuplan.planning.workloads import resolve_workload
from gpuplan.policy import Parsed, models
from gpuplan.policy.models import Cap
from gpuplan.values import Value


class HandWork(Value):
    """What a cluster's overlay holds beside policies: its kustomize Components and their documents."""

    components: tuple[Component, ...] = ()
    documents: tuple[HandWritten, ...] = ()


def resolve(
    cluster: Parsed,
    parsed: Sequence[Parsed],
    catalog: Catalog,
    hand_work: HandWork | None = None,
    removed: Mapping[tuple[str, str], Origin] | None = None,
    *,
    is_partial: bool = False,
) -> tuple[Plan | None, tuple[Diagnostic, ...]]:
    """The plan of one cluster, or None when its Cluster document cannot be read.

    Documents that cannot be resolved are left out, in whole or in part, and named in `Plan.broken`. ``is_partial`` says
    that there may be more of them than could be read.
    """
    if not isinstance(cluster.policy, models.Cluster):
        return None, ()
    context = Context(catalog, _names(parsed), removed or {}, is_partial)
    by_kind = _by_kind(parsed)
    layouts = _layouts(context, by_kind.get("MigLayout", ()))
    pools = _pools(context, by_kind.get("Pool", ()), layouts, traits_of(cluster.policy.spec.scheduler.kind))
    settings = resolve_cluster(cluster.origin / "spec", cluster.policy, pools.values())
    classes = _priority_classes(by_kind.get("PriorityClass", ()))
    _check_fallbacks(context, pools)
    tenants, incomplete = _tenants(context, by_kind.get("Tenant", ()), pools, classes, settings.scheduler.spec.cap)
    workloads = _workloads(context, by_kind.get("Workload", ()), tenants, pools, classes)
    resolved: dict[str, Iterable[str]] = {
        "Pool": pools,
        "MigLayout": layouts,
        "PriorityClass": classes,
        "Tenant": [tenant.name for tenant in tenants],
        "Workload": [workload.name for workload in workloads],
    }
    hand_work = hand_work or HandWork()
    plan = Plan(
        cluster=settings,
        pools=tuple(pools.values()),
        layouts=tuple(layouts.values()),
        priority_classes=tuple(classes.values()),
        tenants=tenants,
        totals=add_up(tuple(pools.values()), tenants),
        workloads=workloads,
        hand_written=hand_work.documents,
        components=hand_work.components,
        broken=_broken(context, resolved, incomplete),
        retained=_retained(context, by_kind.get("Retained", ()), tenants),
        removed=context.removed,
    )
    return plan, tuple(context.diagnostics)


def _names(parsed: Iterable[Parsed]) -> dict[str, frozenset[str]]:
    names: dict[str, set[str]] = {}
    for item in parsed:
        names.setdefault(item.document.kind, set()).add(item.document.name)
    return {kind: frozenset(found) for kind, found in names.items()}


def _by_kind(parsed: Iterable[Parsed]) -> dict[str, list[Parsed]]:
    """The readable documents of each kind, sorted by name: file order has no meaning."""
    found: dict[str, list[Parsed]] = {}
    for item in parsed:
        if item.policy is not None:
            found.setdefault(item.policy.kind, []).append(item)
    for items in found.values():
        items.sort(key=lambda item: item.document.name)
    return found


def _layouts(context: Context, parsed: Iterable[Parsed]) -> dict[str, Layout]:
    layouts: dict[str, Layout] = {}
    for item in parsed:
        if isinstance(item.policy, models.MigLayout):
            at, spec, name = item.origin / "spec", item.policy.spec, item.policy.metadata.name
            gpu = context.find_gpu(spec.gpu, at / "gpu")
            if gpu is not None:
                layouts[name] = make_layout(at, name, gpu, spec.instances, spec.devices)
    return layouts


def _pools(
    context: Context, parsed: Iterable[Parsed], layouts: dict[str, Layout], scheduler: SchedulerTraits
) -> dict[str, Pool]:
    pools: dict[str, Pool] = {}
    for item in parsed:
        if isinstance(item.policy, models.Pool):
            pool = resolve_pool(context, item.origin / "spec", item.policy, layouts, scheduler)
            if pool is not None:
                pools[pool.name] = pool
    return pools


def _check_fallbacks(context: Context, pools: dict[str, Pool]) -> None:
    for pool in pools.values():
        if pool.spec.fallback is not None:
            context.refer("Pool", pool.spec.fallback, pool.at / "fallback", pools)


def _priority_classes(parsed: Iterable[Parsed]) -> dict[str, PriorityClass]:
    classes: dict[str, PriorityClass] = {}
    for item in parsed:
        if isinstance(item.policy, models.PriorityClass):
            name = item.policy.metadata.name
            classes[name] = PriorityClass(item.origin / "spec", name, item.policy.spec)
    return classes


def _tenants(
    context: Context, parsed: Iterable[Parsed], pools: dict[str, Pool], classes: dict[str, PriorityClass], cap: Cap
) -> tuple[tuple[Tenant, ...], frozenset[str]]:
    """The tenants, and the names of those of which something had to be left out."""
    tenants: dict[str, Tenant] = {}
    incomplete: set[str] = set()
    for item in parsed:
        if isinstance(item.policy, models.Tenant):
            tenant = resolve_tenant(context, item.origin / "spec", item.policy, pools, classes, cap)
            tenants[tenant.name] = tenant
            if item.diagnostics or _lacks_something(tenant, item.policy):
                incomplete.add(tenant.name)
    for tenant in tenants.values():
        if tenant.parent is not None:
            context.refer("Tenant", tenant.parent, tenant.at / "parent", tenants)
    limit_depth(context, tenants)
    return tuple(tenants.values()), frozenset(incomplete)


def _workloads(
    context: Context,
    parsed: Iterable[Parsed],
    tenants: Iterable[Tenant],
    pools: dict[str, Pool],
    classes: dict[str, PriorityClass],
) -> tuple[Workload, ...]:
    by_name = {tenant.name: tenant for tenant in tenants}
    found = [
        resolve_workload(context, item.origin / "spec", item.policy, by_name, pools, classes)
        for item in parsed
        if isinstance(item.policy, models.Workload)
    ]
    return tuple(workload for workload in found if workload)


def _retained(context: Context, parsed: Iterable[Parsed], tenants: Iterable[Tenant]) -> tuple[Retained, ...]:
    found = [
        resolve_retained(context, item.origin / "spec", item.policy, tenants)
        for item in parsed
        if isinstance(item.policy, models.Retained)
    ]
    return tuple(item for item in found if item)


def _lacks_something(tenant: Tenant, policy: models.Tenant) -> bool:
    wanted = policy.spec
    return len(tenant.quotas) < len(wanted.quotas) or len(tenant.priority_classes) < len(wanted.priority_classes)


def _broken(context: Context, resolved: Mapping[str, Iterable[str]], incomplete_tenants: frozenset[str]) -> Broken:
    unread = {UNREAD} if context.is_partial else set()
    lost = {kind: context.names.get(kind, frozenset()) - frozenset(found) | unread for kind, found in resolved.items()}
    return Broken(
        lost["Pool"], lost["MigLayout"], lost["PriorityClass"], lost["Tenant"], lost["Workload"], incomplete_tenants
    )
