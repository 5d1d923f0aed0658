"""Resolve workloads: the pool, unit, namespace and priority class of what teams run."""

from __future__ import annotations

from decimal import Decimal

from gpuplan.diagnostics import Finding, Origin
from gpuplan.planning.context import Context
from gpuplan.planning.plan import FractionRequest, PriorityClass, Tenant, Workload
from gpuplan.planning.rules import NAMESPACE_NEEDED
from gpuplan.planning.tenants import resolve_unit
from gpuplan.policy import models
from gpuplan.wording import listing


def resolve_workload(context: Context, at: Origin, workload: models.Workload) -> Workload | None:
    """The workload, or None when what it refers to cannot be found; each that cannot is a finding."""
    spec = workload.spec
    tenant = context.refer("Tenant", spec.tenant, at / "tenant", context.tenants)
    pool = context.refer("Pool", spec.pool, at / "pool", context.pools)
    priority = _priority_class(context, at, spec, tenant)
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
        fraction=_fraction(at / "fraction", spec.fraction),
        priority_class=priority,
    )


def _namespace(context: Context, at: Origin, spec: models.WorkloadSpec, tenant: Tenant) -> str | None:
    """The namespace that is named, or the tenant's only one; whether it is the tenant's is a check's business."""
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


def _priority_class(
    context: Context, at: Origin, spec: models.WorkloadSpec, tenant: Tenant | None
) -> PriorityClass | None:
    """The class that is named, or the tenant's only one."""
    if spec.priority_class is not None:
        return context.refer("PriorityClass", spec.priority_class, at / "priorityClass", context.classes)
    return tenant.priority_classes[0] if tenant and len(tenant.priority_classes) == 1 else None


def _fraction(at: Origin, fraction: float | models.FractionRange | None) -> FractionRequest | None:
    if fraction is None:
        return None
    least, most = (fraction.min, fraction.max) if isinstance(fraction, models.FractionRange) else (fraction, fraction)
    return FractionRequest(at, Decimal(str(least)), Decimal(str(most)))
