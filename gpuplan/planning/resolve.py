"""Resolve the policies of one cluster into its plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

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
    Quota,
    Retained,
    RetainedDevicePluginConfig,
    RetainedLayout,
    RetainedObject,
    Stage,
    Tenant,
    Total,
    Unit,
    UnitKey,
)
from gpuplan.planning.pools import resolve_pool
from gpuplan.planning.tenants import limit_depth, resolve_tenant
from gpuplan.planning.tree import Tree
from gpuplan.planning.workloads import resolve_workload
from gpuplan.policy import Parsed, models
from gpuplan.values import Value

Policy = TypeVar("Policy", bound=models.Document)
Part = TypeVar("Part")


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
    parsed = sorted(parsed, key=lambda item: item.document.name)  # file order has no meaning
    context = Context(catalog, _names(parsed), removed or {}, is_partial, cluster.policy.spec.scheduler)
    context.layouts = _resolved(parsed, models.MigLayout, partial(_layout, context))
    context.pools = _resolved(parsed, models.Pool, partial(resolve_pool, context))
    settings = resolve_cluster(cluster.origin / "spec", cluster.policy, context.pools.values())
    context.classes = _resolved(parsed, models.PriorityClass, _priority_class)
    for pool in context.pools.values():
        if pool.spec.fallback is not None:
            context.refer("Pool", pool.spec.fallback, pool.at / "fallback", context.pools)
    tenants = _resolved(parsed, models.Tenant, partial(resolve_tenant, context))
    for tenant in tenants.values():
        if tenant.parent is not None:
            context.refer("Tenant", tenant.parent, tenant.at / "parent", tenants)
    limit_depth(context, tenants)
    context.tenants = tenants
    workloads = _resolved(parsed, models.Workload, partial(resolve_workload, context))
    hand_work = hand_work or HandWork()
    plan = Plan(
        cluster=settings,
        pools=tuple(context.pools.values()),
        layouts=tuple(context.layouts.values()),
        priority_classes=tuple(context.classes.values()),
        tenants=tuple(tenants.values()),
        totals=_add_up(context.pools.values(), tuple(tenants.values())),
        workloads=tuple(workloads.values()),
        hand_written=hand_work.documents,
        components=hand_work.components,
        broken=Broken(
            pools=_lost(context, "Pool", context.pools),
            layouts=_lost(context, "MigLayout", context.layouts),
            priority_classes=_lost(context, "PriorityClass", context.classes),
            tenants=_lost(context, "Tenant", tenants),
            workloads=_lost(context, "Workload", workloads),
            incomplete_tenants=_incomplete(parsed, tenants),
        ),
        retained=tuple(_resolved(parsed, models.Retained, partial(_retained, context)).values()),
        removed=context.removed,
    )
    return plan, tuple(context.diagnostics)


def _names(parsed: Iterable[Parsed]) -> dict[str, dict[str, None]]:
    names: dict[str, dict[str, None]] = {}
    for kind, name in sorted((item.document.kind, item.document.name) for item in parsed):
        names.setdefault(kind, {})[name] = None
    return names


def _resolved(
    parsed: Iterable[Parsed], kind: type[Policy], resolve_one: Callable[[Origin, Policy], Part | None]
) -> dict[str, Part]:
    """What could be resolved of a kind, by name."""
    found: dict[str, Part] = {}
    for item in parsed:
        policy = item.policy
        if isinstance(policy, kind):
            part = resolve_one(item.origin / "spec", policy)
            if part is not None:
                found[item.document.name] = part
    return found


def _lost(context: Context, kind: str, found: Iterable[str]) -> frozenset[str]:
    unread = {UNREAD} if context.is_partial else set()
    return frozenset(context.names.get(kind, ())) - frozenset(found) | unread


def _incomplete(parsed: Iterable[Parsed], tenants: Mapping[str, Tenant]) -> frozenset[str]:
    """The names of the tenants of which something had to be left out."""
    return frozenset(
        tenant.name
        for item in parsed
        if isinstance(item.policy, models.Tenant) and (tenant := tenants[item.document.name])
        if item.diagnostics
        or len(tenant.quotas) < len(tenant.spec.quotas)
        or len(tenant.priority_classes) < len(tenant.spec.priority_classes)
    )


def _layout(context: Context, at: Origin, policy: models.MigLayout) -> Layout | None:
    gpu, spec = context.find_gpu(policy.spec.gpu, at / "gpu"), policy.spec
    return make_layout(at, policy.metadata.name, gpu, spec.instances, spec.devices) if gpu else None


def _priority_class(at: Origin, policy: models.PriorityClass) -> PriorityClass:
    return PriorityClass(at, policy.metadata.name, policy.spec)


# --- Retained ----------------------------------------------------------------------------------------------------


def _retained(context: Context, at: Origin, policy: models.Retained) -> Retained | None:
    """What a document retains, or None when its GPU model cannot be found."""
    spec = policy.spec
    what: RetainedLayout | RetainedDevicePluginConfig | RetainedObject | None = None
    if spec.mig_layout is not None:
        what = _retained_layout(context, at / "migLayout", spec.mig_layout)
    elif spec.device_plugin_config is not None:
        plugin = spec.device_plugin_config
        config = plugin.config.model_dump(mode="json", by_alias=True, exclude_none=True)
        what = RetainedDevicePluginConfig(at / "devicePluginConfig", plugin, config)
    elif spec.object is not None:
        folder = spec.object.folder or _folder(spec.object.manifest, context.tenants.values())
        what = RetainedObject(at / "object", spec.object, folder)
    return None if what is None else Retained(at, policy.metadata.name, spec, what)


def _retained_layout(context: Context, at: Origin, spec: models.RetainedLayout) -> RetainedLayout | None:
    gpu = context.find_gpu(spec.gpu, at / "gpu")
    if gpu is None:
        return None
    name = spec.config_name.rpartition("-")[0] or spec.config_name
    return RetainedLayout(at, spec, make_layout(at, name, gpu, spec.instances, spec.devices))


def _folder(manifest: Mapping[str, object], tenants: Iterable[Tenant]) -> str:
    """The folder of the object's namespace where a tenant has it, else that of what the whole cluster shares."""
    metadata = manifest.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, Mapping) else None
    if any(namespace in tenant.spec.namespaces for tenant in tenants):
        return f"{Stage.NAMESPACES.value}/{namespace}"
    return Stage.SCHEDULING.value


# --- Totals ------------------------------------------------------------------------------------------------------


def _add_up(pools: Iterable[Pool], tenants: Sequence[Tenant]) -> tuple[Total, ...]:
    """One total per unit, pools and units in their order.

    A tenant counts within the nearest ancestor that states a quota of its own for the unit: its guarantee is then a
    part of the ancestor's, and must not be counted again.
    """
    counted: dict[UnitKey, list[tuple[Tenant, Quota]]] = {}
    for tenant, quota in Tree(tenants).outermost:
        counted.setdefault(quota.key, []).append((tenant, quota))
    return tuple(_total(pool, unit, counted.get((pool.name, unit.name), [])) for pool in pools for unit in pool.units)


def _total(pool: Pool, unit: Unit, counted: Sequence[tuple[Tenant, Quota]]) -> Total:
    limits = [quota.limit for _, quota in counted if quota.limit is not None]
    guaranteed = sum((quota.guaranteed for _, quota in counted), start=0)
    limit = sum(limits, start=0) if len(limits) == len(counted) else None
    return Total(pool, unit, guaranteed, limit, tuple(counted))
