"""Checks on hand-written workloads (GPU634, GPU635): what their containers ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuplan.checks.handwritten.reading import HandFiles, Object, mapping, sequence, value_at
from gpuplan.checks.registry import check
from gpuplan.diagnostics import Finding, Label, Origin, Severity
from gpuplan.patterns import regex
from gpuplan.planning.plan import Tenant
from gpuplan.values import Value
from gpuplan.wording import listing

_GPU = regex(r"nvidia\.com/(gpu|gpu\.shared|mig-.+)")

# Where a Pod has its containers, a workload and a CronJob.
_POD_SPECS = (("spec",), ("spec", "template", "spec"), ("spec", "jobTemplate", "spec", "template", "spec"))


class _Ask(Value):
    """A container's GPU resource among its requests or its limits."""

    of: Object
    at: Origin
    resource: str
    amount: object
    limits: Mapping[str, object]
    is_limit: bool


@check("GPU634", "gpu-request-without-limit")
def gpu_request_without_limit(files: HandFiles) -> Iterator[Finding]:
    """A hand-written workload requests GPUs without an equal limit.

    ## Why
    Extended resources cannot be overcommitted, so that requests and limits must be equal. The API server refuses a pod
    with a request alone: `Limit must be set for non overcommitable resources`. A limit alone is enough; the request
    follows from it.

    ## Instead
    Write the resource in `limits`, and leave it out of `requests`.
    """
    for ask in _asks(files):
        if not ask.is_limit and str(ask.limits.get(ask.resource)) != str(ask.amount):
            limit = ask.limits.get(ask.resource)
            yield Finding(
                ask.at,
                f"{ask.of.title} requests `{ask.resource}` without {'a' if limit is None else 'an equal'} limit",
                label="refused by the API server",
                notes=("requests and limits of extended resources are equal",),
                help=f"write `limits: {{{ask.resource}: {ask.amount}}}`, and remove it from `requests`",
            )


@check("GPU635", "resource-not-handed-out", Severity.WARNING)
def resource_not_handed_out(files: HandFiles) -> Iterator[Finding]:
    """A hand-written workload asks for a GPU resource that it cannot get.

    ## Why
    What a pool publishes follows from its sharing: under MIG with the strategy `mixed` there is no `nvidia.com/gpu`,
    and renamed shares are `nvidia.com/gpu.shared`. A pod that asks for a resource of no pool waits for ever. In the
    namespace of a tenant, quota and admission refuse whatever the tenant has no quota on: there it is an error.

    ## Instead
    Ask for one of the resources that the finding names, or grant the tenant the unit.
    """
    plan = files.plan
    if plan is None or plan.broken.pools or plan.broken.incomplete_tenants:
        return
    offered = sorted({unit.resource for pool in plan.pools for unit in pool.units if unit.resource})
    tenants = {namespace: tenant for tenant in plan.tenants for namespace in tenant.spec.namespaces}
    for ask in _asks(files):
        namespace = ask.of.metadata.get("namespace")
        tenant = tenants.get(namespace) if isinstance(namespace, str) else None
        granted = offered if tenant is None else _granted(tenant, str(namespace))
        if ask.is_limit and str(ask.amount) != "0" and ask.resource not in granted:
            yield _not_handed_out(ask, tenant, granted)


def _granted(tenant: Tenant, namespace: str) -> list[str]:
    quotas = [quota for quota in tenant.quotas if quota.caps[namespace] != 0]
    return sorted({quota.unit.resource for quota in quotas if quota.unit.resource})


def _not_handed_out(ask: _Ask, tenant: Tenant | None, granted: list[str]) -> Finding:
    who = "no pool hands out" if tenant is None else f"tenant `{tenant.name}` has no quota on"
    return Finding(
        ask.at,
        f"{ask.of.title} asks for `{ask.resource}`, which {who}",
        label="never scheduled" if tenant is None else "refused by admission",
        related=() if tenant is None else (Label((tenant.at / "quotas").key, "its quotas"),),
        notes=(f"there are {listing(granted, 8)}",) if granted else (),
        help=f"ask for {listing(granted, 3, 'or')}" if granted else "remove it: there are no GPUs for this namespace",
        severity=None if tenant is None else Severity.ERROR,
    )


def _asks(files: HandFiles) -> Iterator[_Ask]:
    for found in files.objects:
        for route in _POD_SPECS:
            yield from _asks_of(found, route, mapping(value_at(found.body, route)))


def _asks_of(found: Object, route: tuple[str, ...], spec: Mapping[str, object]) -> Iterator[_Ask]:
    for field in ("initContainers", "containers"):
        for index, container in enumerate(sequence(spec.get(field))):
            resources = mapping(mapping(container).get("resources"))
            limits = mapping(resources.get("limits"))
            for kind in ("requests", "limits"):
                for resource, amount in mapping(resources.get(kind)).items():
                    if _GPU.fullmatch(resource):
                        at = found.place(*route, field, index, "resources", kind, resource)
                        yield _Ask(found, at.key, resource, amount, limits, is_limit=kind == "limits")
