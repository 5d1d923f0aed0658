"""Prices in an answer: what a search for the lowest one needs, and prices of single pools when pools come and go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.wording import joined, listing
from gpuplan.compiler.documents import Document
from gpuplan.compiler.planning.plan import Plan, Pool
from gpuplan.compiler.planning.prices import node_price, rates_for
from gpuplan.features.packing.assigning import Place
from gpuplan.features.packing.fleet import Fleet
from gpuplan.features.packing.patching import Wanted


def insist_on_prices(plan: Plan, fleet: Fleet) -> None:
    """Trouble where a pool in scope has no price: no sum says then which answer costs least."""
    unpriced = [pool for pool in fleet.pools if node_price(plan, pool) is None]
    if not unpriced:
        return
    if plan.prices is None:
        rates = ", ".join(f"{model}: {{perGpuHour: ...}}" for model in _models(unpriced))
        raise GpuplanError(
            "the lowest price cannot be found: no `Prices` document says what nodes cost",
            f"add one with `spec: {{currency: EUR, gpus: {{{rates}}}}}`, with your currency and numbers",
        )
    have = "has" if len(unpriced) == 1 else "have"
    raise GpuplanError(
        f"the lowest price cannot be found: {listing([pool.name for pool in unpriced])} {have} no price "
        f"in `{plan.prices.name}`",
        f"add to the `Prices` document `{plan.prices.name}`: {_missing(plan, unpriced)}; or choose pools with `--pool`",
    )


def _missing(plan: Plan, pools: Iterable[Pool]) -> str:
    """What a list of prices lacks: rates of models, or of terms where it has rates."""
    rated = [pool for pool in pools if plan.prices and any(rates_for(plan.prices, pool))]
    terms = sorted({f"`{pool.spec.billing.term.value}` to its prices of {pool.gpu.id}" for pool in rated})
    models = _models(pool for pool in pools if pool not in rated)
    return joined([*terms, *(f"`gpus: {{{model}: {{perGpuHour: ...}}}}`" for model in models)])


def _models(pools: Iterable[Pool]) -> list[str]:
    return sorted({pool.gpu.id for pool in pools})


def prices_with(plan: Plan, places: Iterable[Place], gone: Collection[str]) -> Iterator[Wanted]:
    """The list of prices in which new pools cost what the pools do that they are made like, and none that goes is."""
    if plan.prices is None or not isinstance(plan.prices.at.source, Document):
        return
    spec: dict[str, Any] = dict(plan.prices.at.source.data["spec"])
    own = dict(spec.get("pools") or {})
    new = {place.pool: own[place.source.name] for place in places if place.is_new and place.source.name in own}
    pools = {name: rate for name, rate in {**own, **new}.items() if name not in gone}
    if pools != own:
        yield Wanted("Prices", plan.prices.name, {**spec, "pools": pools})
