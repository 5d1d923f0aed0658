"""Resolve the policies of one cluster into its plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction as Ratio
from functools import partial
from math import ceil
from posixpath import normpath
from typing import TypeVar

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Origin
from gpuplan.compiler.base.plain import value_of
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.catalog import Catalog, Gpu
from gpuplan.compiler.catalog.openshift import CONSOLE_NAMESPACE, DASHBOARD_LABEL, OF_CONSOLE
from gpuplan.compiler.catalog.operators import CHARTS_POLICY
from gpuplan.compiler.manifests import exact_quantity
from gpuplan.compiler.planning.context import Context
from gpuplan.compiler.planning.gpus import resolve_gpu
from gpuplan.compiler.planning.layouts import make_layout
from gpuplan.compiler.planning.plan import (
    UNREAD,
    Argocd,
    Broken,
    Cluster,
    Component,
    Dashboards,
    Flux,
    FractionRequest,
    GpuOperator,
    HandWritten,
    Layout,
    Monitoring,
    Nodes,
    Plan,
    Pool,
    Prices,
    PriorityClass,
    Retained,
    RetainedDevicePluginConfig,
    RetainedLayout,
    RetainedNodes,
    RetainedObject,
    Scheduler,
    Stage,
    Tenant,
    Total,
    Workload,
)
from gpuplan.compiler.planning.pools import divisible_mib, resolve_pool
from gpuplan.compiler.planning.rules import NAMESPACE_NEEDED
from gpuplan.compiler.planning.schedulers import chosen_cap
from gpuplan.compiler.planning.tenants import limit_depth, resolve_tenant, resolve_unit
from gpuplan.compiler.planning.tree import Tree
from gpuplan.compiler.policy import Parsed, models, names

Policy = TypeVar("Policy", bound=models.Document)
Part = TypeVar("Part")


class HandWork(Value):
    """The kustomize Components of a cluster's overlay, and their documents."""

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
    """Return the plan of one cluster, or None if its Cluster document cannot be read.

    Documents that cannot be resolved are left out, in whole or in part, and named in `Plan.broken`. ``is_partial`` says
    that there may be more of them than could be read.
    """
    if not isinstance(cluster.policy, models.Cluster):
        return None, ()
    parsed = sorted(parsed, key=lambda policy: policy.document.name)  # file order has no meaning
    spec = cluster.policy.spec
    names: dict[str, dict[str, None]] = {}
    for kind, name in sorted((item.document.kind, item.document.name) for item in parsed):
        names.setdefault(kind, {})[name] = None
    context = Context(
        catalog,
        names,
        removed or {},
        is_partial,
        spec.scheduler,
        chosen_cap(spec.scheduler, spec.kubernetes),
        spec.gpu_operator.mig_strategy,
        spec.gpu_operator.device_plugin_config,
        _retained_configs(parsed),
        cluster.origin / "spec" / "taintPools" if spec.taint_pools else None,
    )
    gpus = _resolved(parsed, models.Gpu, resolve_gpu)
    context.catalog = catalog.extended({name: own.gpu for name, own in gpus.items() if catalog.find(name) is None})
    context.layouts = _resolved(parsed, models.MigLayout, partial(_layout, context))
    context.pools = _resolved(parsed, models.Pool, partial(resolve_pool, context))
    settings = _cluster(cluster.origin / "spec", cluster.policy, context.pools.values())
    context.classes = _resolved(
        parsed, models.PriorityClass, lambda at, policy: PriorityClass(at, policy.metadata.name, policy.spec)
    )
    for pool in context.pools.values():
        if pool.spec.fallback is not None:
            context.refer("Pool", pool.spec.fallback, pool.at / "fallback", context.pools)
    tenants = _resolved(parsed, models.Tenant, partial(resolve_tenant, context))
    for tenant in tenants.values():
        if tenant.parent is not None:
            context.refer("Tenant", tenant.parent, tenant.at / "parent", tenants, optional="parent")
    limit_depth(context, tenants)
    context.tenants = tenants
    workloads = _resolved(parsed, models.Workload, partial(_workload, context))
    price_lists = _resolved(parsed, models.Prices, partial(_prices, context))
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
        broken=_broken(context, parsed, gpus, tenants, workloads, price_lists),
        retained=tuple(_resolved(parsed, models.Retained, partial(_retained, context)).values()),
        removed=context.removed,
        gpus=tuple(gpus.values()),
        price_lists=tuple(price_lists.values()),
    )
    return plan, context.all_findings()


def _broken(
    context: Context,
    parsed: Iterable[Parsed],
    gpus: Iterable[str],
    tenants: Mapping[str, Tenant],
    workloads: Iterable[str],
    price_lists: Iterable[str],
) -> Broken:
    """Return the names of documents that could not be resolved in whole, and of tenants that lack a part."""
    unread = {UNREAD} if context.is_partial else set()

    def lost(kind: str, resolved: Iterable[str]) -> frozenset[str]:
        return frozenset(context.names.get(kind, ())) - frozenset(resolved) | unread

    incomplete = (
        tenant.name
        for item in parsed
        if isinstance(item.policy, models.Tenant) and (tenant := tenants[item.document.name])
        if item.diagnostics
        or len(tenant.quotas) < len(tenant.spec.quotas)
        or len(tenant.priority_classes) < len(tenant.spec.priority_classes)
    )
    return Broken(
        pools=lost("Pool", context.pools),
        gpus=lost("Gpu", gpus),
        layouts=lost("MigLayout", context.layouts),
        priority_classes=lost("PriorityClass", context.classes),
        tenants=lost("Tenant", tenants),
        workloads=lost("Workload", workloads),
        price_lists=lost("Prices", price_lists),
        incomplete_tenants=frozenset(incomplete),
    )


def resolve_workload(plan: Plan, at: Origin, policy: models.Workload) -> tuple[Workload | None, tuple[Diagnostic, ...]]:
    """Resolve one more Workload on a cluster. ``at`` is the place of its `spec`."""
    cluster = plan.cluster.spec
    context = Context(
        Catalog({}),
        {
            "Tenant": {tenant.name: None for tenant in plan.tenants},
            "Pool": {pool.name: None for pool in plan.pools},
            "PriorityClass": {item.name: None for item in plan.priority_classes},
        },
        plan.removed,
        bool(plan.broken.tenants or plan.broken.pools),
        cluster.scheduler,
        plan.cluster.cap,
        cluster.gpu_operator.mig_strategy,
        cluster.gpu_operator.device_plugin_config,
        {},
        None,
        pools={pool.name: pool for pool in plan.pools},
        classes={item.name: item for item in plan.priority_classes},
        tenants={tenant.name: tenant for tenant in plan.tenants},
    )
    return _workload(context, at, policy), tuple(context.diagnostics)


def _resolved(
    parsed: Iterable[Parsed], kind: type[Policy], resolve_one: Callable[[Origin, Policy], Part | None]
) -> dict[str, Part]:
    """Return the documents of a kind that could be resolved, by name."""
    found: dict[str, Part] = {}
    for item in parsed:
        policy = item.policy
        if isinstance(policy, kind):
            part = resolve_one(item.origin / "spec", policy)
            if part is not None:
                found[item.document.name] = part
    return found


def _layout(context: Context, at: Origin, policy: models.MigLayout) -> Layout | None:
    gpu, spec = context.find_gpu(policy.spec.gpu, at / "gpu"), policy.spec
    if gpu is None:
        return None
    return make_layout(at, policy.metadata.name, gpu, spec.instances, spec.devices, config_name=spec.config_name)


# --- The cluster -------------------------------------------------------------------------------------------------


def _cluster(at: Origin, cluster: models.Cluster, pools: Iterable[Pool]) -> Cluster:
    """Return the settings of a cluster. ``at`` is the place of its `spec`."""
    spec, name = cluster.spec, cluster.metadata.name
    flux, release = spec.flux, (spec.scheduler.version or "").removeprefix("v")
    # With MPS a sync of the GPU Operator ends running work. There is one ConfigMap for the device plugins of a cluster.
    # Its name changes with any pool's part of it, and stands in the pod template of the MPS control daemon
    # (`TransformMPSControlDaemon` and `handleDevicePluginConfig` in `controllers/object_controls.go` of
    # NVIDIA/gpu-operator). A daemon that is told to end quits the MPS server that all CUDA processes of its GPUs go
    # through (`Stop` in `cmd/mps-control-daemon/mps/daemon.go` of NVIDIA/k8s-device-plugin).
    approval = models.Approval.MANUAL if any(pool.runs_mps for pool in pools) else models.Approval.AUTOMATIC
    operator = _gpu_operator(at / "gpuOperator", spec)
    return Cluster(
        at=at,
        name=name,
        spec=spec,
        gpu_operator=operator,
        scheduler=Scheduler(at / "scheduler", spec.scheduler, f"v{release}" if release else ""),
        argocd=_argocd(at / "argocd", name, spec, approval),
        flux=Flux(at / "flux", flux, normpath(flux.path), flux.operator_approval or approval) if flux else None,
        monitoring=_monitoring(at / "monitoring", spec, operator),
    )


def _gpu_operator(at: Origin, spec: models.ClusterSpec) -> GpuOperator:
    operator = spec.gpu_operator
    # NVIDIA's OpenShift documentation and bundle use these names; the Helm chart's CR is `cluster-policy`.
    is_openshift = spec.platform is models.Platform.OPENSHIFT or operator.install is models.Install.OLM
    return GpuOperator(
        at=at,
        spec=operator,
        version=f"v{operator.version.removeprefix('v')}",
        namespace=operator.namespace or ("nvidia-gpu-operator" if is_openshift else "gpu-operator"),
        cluster_policy=operator.cluster_policy or ("gpu-cluster-policy" if is_openshift else CHARTS_POLICY),
    )


def _argocd(at: Origin, cluster: str, spec: models.ClusterSpec, approval: models.Approval) -> Argocd | None:
    # OpenShift GitOps runs its default instance in `openshift-gitops`.
    usual = "openshift-gitops" if spec.platform is models.Platform.OPENSHIFT else "argocd"
    argocd = spec.argocd
    if argocd is None:
        return None
    return Argocd(
        at=at,
        spec=argocd,
        path=normpath(argocd.path),
        namespace=argocd.namespace or usual,
        project=argocd.project or f"gpuplan-{cluster}",
        operator_approval=argocd.operator_approval or approval,
    )


# OpenShift's console shows dashboards with these labels; its Prometheus reads the rules of namespaces that have the
# label `openshift.io/cluster-monitoring`, as the GPU Operator's has.
_CONSOLE_LABELS = {DASHBOARD_LABEL: "true", f"{OF_CONSOLE}odc-dashboard": "true"}


def _monitoring(at: Origin, spec: models.ClusterSpec, operator: GpuOperator) -> Monitoring | None:
    monitoring, is_openshift = spec.monitoring, spec.platform is models.Platform.OPENSHIFT
    if monitoring is None:
        return None
    namespace = monitoring.namespace or (operator.namespace if is_openshift else "monitoring")
    dashboards = monitoring.dashboards
    labels = _CONSOLE_LABELS if is_openshift else {"grafana_dashboard": "1"}
    return Monitoring(
        at=at,
        spec=monitoring,
        namespace=namespace,
        dashboards=Dashboards(
            at=at / "dashboards",
            spec=dashboards,
            namespace=dashboards.namespace or (CONSOLE_NAMESPACE if is_openshift else namespace),
            labels=labels if dashboards.labels is None else dashboards.labels,
        ),
    )


# --- Prices ------------------------------------------------------------------------------------------------------


def _prices(context: Context, at: Origin, policy: models.Prices) -> Prices:
    spec = policy.spec
    pools = [context.refer("Pool", name, (at / "pools" / name).key, context.pools) for name in spec.pools]
    gpus = [context.find_gpu(name, (at / "gpus" / name).key) for name in spec.gpus]
    return Prices(at, policy.metadata.name, spec, None not in (*pools, *gpus))


# --- Retained ----------------------------------------------------------------------------------------------------


def _retained(context: Context, at: Origin, policy: models.Retained) -> Retained | None:
    """Return a retained thing, or None if its GPU model is unknown."""
    spec = policy.spec
    what: RetainedLayout | RetainedDevicePluginConfig | RetainedNodes | RetainedObject | None = None
    if spec.mig_layout is not None:
        what = _retained_layout(context, at / "migLayout", spec.mig_layout)
    elif spec.device_plugin_config is not None:
        plugin = spec.device_plugin_config
        what = RetainedDevicePluginConfig(at / "devicePluginConfig", plugin, _config(plugin))
    elif spec.nodes is not None:
        what = _retained_nodes(at / "nodes", spec.nodes)
    elif spec.object is not None:
        folder = spec.object.folder or _folder(spec.object.manifest, context.tenants.values())
        what = RetainedObject(at / "object", spec.object, folder)
    return None if what is None else Retained(at, policy.metadata.name, spec, what)


def _retained_configs(parsed: Iterable[Parsed]) -> dict[str, Mapping[str, object]]:
    """Return the retained files of the device plugin by key, which resolving pools needs."""
    specs = (item.policy.spec for item in parsed if isinstance(item.policy, models.Retained))
    found = (spec.device_plugin_config for spec in specs)
    return {item.key: _config(item) for item in found if item is not None}


def _config(retained: models.RetainedDevicePluginConfig) -> dict[str, object]:
    return retained.config.model_dump(mode="json", by_alias=True, exclude_none=True)


def _retained_nodes(at: Origin, spec: models.RetainedNodes) -> RetainedNodes:
    """Return the nodes. Names count as nodes, and a pattern counts none, since the document has no number."""
    listed = tuple(spec.names or ())
    nodes = Nodes(at, len(listed), 0, listed, spec.name_pattern, tuple(spec.except_names))
    folder = f"{Stage.PARTITIONS.value}/{spec.pool}" if names.POOL.is_spelt(spec.pool) else ""
    return RetainedNodes(at, spec, nodes, folder)


def _retained_layout(context: Context, at: Origin, spec: models.RetainedLayout) -> RetainedLayout | None:
    gpu = context.find_gpu(spec.gpu, at / "gpu")
    if gpu is None:
        return None
    name = spec.config_name.rpartition("-")[0] or spec.config_name
    return RetainedLayout(at, spec, make_layout(at, name, gpu, spec.instances, spec.devices))


def _folder(manifest: Mapping[str, object], tenants: Iterable[Tenant]) -> str:
    """Return the folder of the object's namespace if a tenant has it, else the folder of cluster-wide objects."""
    namespace = value_of(manifest, ("metadata", "namespace"))
    if any(namespace in tenant.spec.namespaces for tenant in tenants):
        return f"{Stage.NAMESPACES.value}/{namespace}"
    return Stage.SCHEDULING.value


# --- Workloads ---------------------------------------------------------------------------------------------------


def _workload(context: Context, at: Origin, workload: models.Workload) -> Workload | None:
    """Return the workload, or None if a document that it names is unknown. Each unknown name is a finding."""
    spec = workload.spec
    tenant = context.refer("Tenant", spec.tenant, at / "tenant", context.tenants, other=", or delete this Workload")
    pool = context.refer("Pool", spec.pool, at / "pool", context.pools)
    priority = _class_of(context, at, spec, tenant)
    namespace = _namespace(context, at, spec, tenant) if tenant else None
    unit = resolve_unit(context, at, spec.unit, pool, "workload") if pool else None
    if tenant is None or pool is None or unit is None or namespace is None:
        return None
    if priority is None and spec.priority_class is not None:
        return None
    return Workload(
        at=at,
        name=workload.metadata.name,
        spec=spec,
        tenant=tenant,
        namespace=namespace,
        pool=pool,
        unit=unit,
        fraction=_fraction(at / "fraction", spec.fraction, pool.gpu),
        priority_class=priority,
    )


def _namespace(context: Context, at: Origin, spec: models.WorkloadSpec, tenant: Tenant) -> str | None:
    """Return the named namespace, or the tenant's only one. A check judges whether it is the tenant's."""
    if spec.namespace is not None:
        return spec.namespace
    if len(tenant.spec.namespaces) == 1:
        return tenant.spec.namespaces[0]
    if tenant.spec.namespaces:
        names = listing(tenant.spec.namespaces, 8)
        finding = Finding(
            at / "tenant",
            f"tenant `{tenant.name}` has several namespaces",
            label="which one does it run in",
            notes=(f"it has {names}",),
            help=f"add `namespace: {tenant.spec.namespaces[0]}`",
        )
    else:
        finding = Finding(
            at / "tenant",
            f"tenant `{tenant.name}` has no namespace to run in",
            label="is only a parent of others",
            help="name a tenant that has namespaces",
        )
    context.report(NAMESPACE_NEEDED, finding)
    return None


def _class_of(context: Context, at: Origin, spec: models.WorkloadSpec, tenant: Tenant | None) -> PriorityClass | None:
    """Return the named class, or the tenant's only one."""
    if spec.priority_class is not None:
        return context.refer("PriorityClass", spec.priority_class, at / "priorityClass", context.classes)
    return tenant.priority_classes[0] if tenant and len(tenant.priority_classes) == 1 else None


def _fraction(at: Origin, fraction: float | models.PartOfGpu | None, gpu: Gpu) -> FractionRequest | None:
    if fraction is None:
        return None
    whole = divisible_mib(gpu)
    if not isinstance(fraction, models.PartOfGpu):
        return FractionRequest(at, Decimal(str(fraction)), Decimal(str(fraction)), None, whole)
    if fraction.memory is not None:
        memory_mib = ceil((exact_quantity(fraction.memory) or 0) / 2**20)
        part = Decimal(ceil(Ratio(100 * memory_mib, whole))) / 100
        return FractionRequest(at, part, part, memory_mib, whole)
    most = fraction.min if fraction.max is None else fraction.max
    return FractionRequest(at, Decimal(str(fraction.min)), Decimal(str(most)), None, whole)


# --- Totals ------------------------------------------------------------------------------------------------------


def _add_up(pools: Iterable[Pool], tenants: Sequence[Tenant]) -> tuple[Total, ...]:
    """Return one total per unit, in the order of pools and units.

    A tenant counts within the nearest ancestor that states a quota of its own for the unit: its guarantee is then a
    part of the ancestor's, and must not be counted again.
    """
    counted = Tree(tenants).outermost_by_unit
    totals = []
    for pool in pools:
        for unit in pool.units:
            quotas = counted.get((pool.name, unit.name), [])
            guaranteed = sum((quota.guaranteed for _, quota in quotas), start=0)
            limits = [quota.limit for _, quota in quotas if quota.limit is not None]
            limit = sum(limits, start=0) if len(limits) == len(quotas) else None
            totals.append(Total(pool, unit, guaranteed, limit, tuple(quotas)))
    return tuple(totals)
