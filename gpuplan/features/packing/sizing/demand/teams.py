"""Makes a `Need` of what a team asks for, whether a document or a table says it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Origin
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import listing, misspelling
from gpuplan.compiler.catalog import Catalog, load
from gpuplan.compiler.manifests import exact_quantity
from gpuplan.compiler.planning.gpus import unknown_gpu
from gpuplan.compiler.planning.plan import Isolation, Plan, Tenant
from gpuplan.compiler.planning.rules import UNKNOWN_GPU
from gpuplan.features.packing.document import DemandedIsolation, DemandedService, DemandedWork
from gpuplan.features.packing.rules import DEMAND_UNCLEAR, TEAM_NOT_ON_PLATFORM
from gpuplan.features.packing.sizing.demand.profiles import Measured, milliseconds, throughput_of
from gpuplan.features.packing.sizing.needs import Need, Service

_STRENGTH: Final = tuple(Isolation)


class Platform(Value):
    """Whom demand may be of, where there is a plan, and which GPU models there are."""

    plan: Plan | None
    catalog: Catalog

    def find_tenant(self, name: str) -> Tenant | None:
        return self.plan.tree.find(name) if self.plan else None


def platform_of(plan: Plan | None) -> Platform:
    own = {gpu.name: gpu.gpu for gpu in plan.gpus} if plan else {}
    return Platform(plan, load().extended(own))


def need_of(
    work: DemandedWork,
    at: Origin,
    platform: Platform,
    tables: Mapping[str, Measured],
    growth: float | str | None = None,
) -> tuple[Need | None, tuple[Diagnostic, ...]]:
    """The need, or None where it cannot be counted. ``growth`` is that of all; ``tables`` hold throughput by file."""
    found = [*_contradictions(work, at), *_unknown_models(work, at, platform)]
    tenant, unknown = _tenant(work, at, platform)
    found += _without_namespaces(tenant, at / ("tenant" if work.tenant else "team"), platform)
    service, unusable = _service(work.service, at / "service", tables, factor_of(work.growth or growth))
    found += unusable
    if found:
        return None, (*found, *unknown)
    gpus = work.gpus or (1 if work.isolation is DemandedIsolation.WHOLE_GPU else 0)
    need = Need(
        at=at,
        team=tenant,
        name=work.name or work.team,
        pods=0 if service else ceil(max(work.pods or 0, work.burst or 0) * factor_of(work.growth or growth)),
        memory_mib=mib_of(work.memory) if work.memory else 0,
        compute=Fraction(1) if gpus else share_of(work.compute),
        gpus=gpus,
        isolation=Isolation.WHOLE_GPU if gpus else Isolation[(work.isolation or DemandedIsolation.HARDWARE).name],
        models=tuple(dict.fromkeys(work.models or ([work.compute_of] if work.compute_of else []))),
        engines={name: number for name, number in work.engines if number} if work.engines else {},
        service=service,
    )
    return with_today(need, platform.find_tenant(tenant)), tuple(unknown)


# --- Amounts -----------------------------------------------------------------------------------------------------


def mib_of(quantity: str) -> int:
    """Rounded up."""
    return ceil((exact_quantity(quantity) or 0) / 2**20)


def share_of(part: float | str | None) -> Fraction:
    """A part of a whole, said as a number or in percent; nothing where nothing is part."""
    if isinstance(part, str):
        return Fraction(part.removesuffix("%")) / 100
    return Fraction(str(part or 0))


def factor_of(growth: float | str | None) -> Fraction:
    """Return the factor for a growth: `20%` comes on top."""
    if growth is None:
        return Fraction(1)
    return 1 + share_of(growth) if isinstance(growth, str) else Fraction(str(growth))


# --- What cannot be ----------------------------------------------------------------------------------------------


def _contradictions(work: DemandedWork, at: Origin) -> Iterator[Diagnostic]:
    team = f"team `{work.team}`"
    wants_whole = work.gpus or work.isolation is DemandedIsolation.WHOLE_GPU
    if work.memory is None and not wants_whole and work.service is None:
        yield _unclear(
            at, f"nothing says how much memory a pod of {team} uses", "no `memory`", "add `memory: 12Gi`, or `gpus: 1`"
        )
    if work.memory is not None and (exact_quantity(work.memory) or 0) < _LEAST_MEMORY:
        bare = work.memory if work.memory.isdigit() else "12"
        yield _unclear(
            at / "memory",
            f"`{work.memory}` of memory is less than 1 MiB",
            "bytes, for it has no unit" if work.memory.isdigit() else "too small for any program",
            f"write `{bare}Gi` or `{bare}Mi`",
        )
    if work.gpus and work.isolation not in (None, DemandedIsolation.WHOLE_GPU):
        yield _unclear(
            at / "isolation",
            f"pods of {team} have whole GPUs, which nobody shares",
            f"beside `gpus: {work.gpus}`",
            "remove `isolation`, or `gpus`",
        )
    if wants_whole and work.compute is not None and share_of(work.compute) != 1:
        yield _unclear(
            at / "compute",
            f"pods of {team} have whole GPUs, and ask for a part of one",
            f"beside `gpus: {work.gpus}`" if work.gpus else "beside `isolation: wholeGpu`",
            "remove `compute`",
        )
    if work.compute_of is not None and work.compute is None:
        yield _unclear(
            at / "computeOf",
            "`computeOf` says of which GPU, and nothing says how much",
            "no `compute`",
            "add `compute: 25%`, or say `models` for the models that will do",
        )
    if work.compute is not None and not share_of(work.compute):
        yield _unclear(at / "compute", "no part of a GPU is asked for", "nothing", "remove `compute`: any part will do")
    if work.burst is not None and work.service is not None:
        yield _unclear(
            at / "burst",
            f"{team} asks for requests to be answered, not for pods",
            "counts pods",
            "remove `burst`; `requestsPerSecond` is that of the busiest time",
        )
    if work.burst is not None and work.pods is not None and work.burst < work.pods:
        yield _unclear(
            at / "burst",
            f"a burst of {work.burst} pods is fewer than the {work.pods} that always run",
            "the most at once",
            f"write the number of all pods at the worst time, such as {work.pods + work.burst}",
        )


_LEAST_MEMORY: Final = 2**20


def _unclear(at: Origin, message: str, label: str, help_: str) -> Diagnostic:
    return DEMAND_UNCLEAR.report(Finding(at, message, label=label, help=help_))


def _unknown_models(work: DemandedWork, at: Origin, platform: Platform) -> Iterator[Diagnostic]:
    named = [(at / "models" / index, name) for index, name in enumerate(work.models)]
    if work.compute_of is not None:
        named.append((at / "computeOf", work.compute_of))
    for place, name in named:
        if platform.catalog.find(name) is None:
            yield UNKNOWN_GPU.report(unknown_gpu(name, place, platform.catalog.suggest(name)))


# --- Tenants -----------------------------------------------------------------------------------------------------


def _tenant(work: DemandedWork, at: Origin, platform: Platform) -> tuple[str, list[Diagnostic]]:
    """The tenant's name, or where no tenant is meant the team's as one may be called."""
    name = work.tenant or work.team
    if platform.plan is None or platform.find_tenant(name):
        return name, []
    known = [tenant.name for tenant in platform.plan.tenants]
    # `ML Research` may be called `ml-research` as a tenant
    slug = name if work.tenant else re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or name
    if slug in known:
        return slug, []
    return slug, [unknown_team(at / ("tenant" if work.tenant else "team"), name, known, platform.plan)]


def _without_namespaces(name: str, at: Origin, platform: Platform) -> Iterator[Diagnostic]:
    tenant = platform.find_tenant(name)
    if tenant is not None and platform.plan is not None and not tenant.spec.namespaces:
        below = [one.name for one in platform.plan.tenants if one.parent == name]
        yield _unclear(
            at,
            f"tenant `{name}` has no namespace, so that no pod can use what it asks for",
            "asks for itself",
            f"write {listing(below, last='or')}, whose parent it is, or give it `namespaces`"
            if below
            else "give it `namespaces`",
        )


def unknown_team(at: Origin, name: str, known: Sequence[str], plan: Plan) -> Diagnostic:
    near = misspelling(name, known)
    finding = Finding(
        at,
        f"cluster `{plan.cluster.name}` has no tenant `{name}`",
        label=f"did you mean `{near}`" if near else "counted all the same",
        notes=(f"its tenants are {listing(known)}" if known else "it has no tenants",),
        help=f"write `tenant: {near}`"
        if near
        else "write `tenant:` with the one that is meant, or add a `Tenant` of that name",
    )
    return TEAM_NOT_ON_PLATFORM.report(finding)


def with_today(need: Need, tenant: Tenant | None) -> Need:
    """The need with the smallest unit among its tenant's quotas that would hold one of its pods."""
    if tenant is None:
        return need
    fitting = [
        (quota.unit.memory_mib or 0, quota.key)
        for quota in tenant.quotas
        if (quota.unit.memory_mib or 0) >= need.memory_mib
        and _STRENGTH.index(quota.unit.isolation) <= _STRENGTH.index(need.isolation)
        and (not need.models or quota.pool.gpu.id in need.models)
    ]
    return replace(need, today=min(fitting)[1]) if fitting else need


# --- Services ----------------------------------------------------------------------------------------------------


def _service(
    service: DemandedService | None, at: Origin, tables: Mapping[str, Measured], growth: Fraction
) -> tuple[Service | None, tuple[Diagnostic, ...]]:
    if service is None:
        return None, ()
    measured, found = throughput_of(service, at, tables)
    latency = milliseconds(service.latency) if service.latency else None
    rate = float(Fraction(str(service.requests_per_second)) * growth)
    return Service(rate, latency, measured, service.max_processes), found
