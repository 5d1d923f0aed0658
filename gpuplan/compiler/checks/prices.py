"""Checks on prices (GPU832-836): one list, in a currency that there is, with a price for each pool."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.diagnostics import Finding, Label, Severity
from gpuplan.compiler.base.wording import listing, misspelling
from gpuplan.compiler.catalog.currencies import currencies
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import mistyped, name_of
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.prices import hourly_rate, node_price, node_type


@check("GPU832", "second-list-of-prices")
def second_list_of_prices(plan: Plan) -> Iterator[Finding]:
    """A cluster has two `Prices` documents.

    ## Why
    A pool would have two prices, perhaps in two currencies, and nothing says which one holds. All that is counted with
    prices, such as what a tenant costs, is a sum over pools: it needs one list and one currency.

    ## Instead
    Keep one document. A cluster's overlay changes prices of the bases in a document of the same name; what it does not
    mention stays.
    """
    for prices in plan.price_lists[1:]:
        first = plan.price_lists[0]
        yield Finding(
            name_of(prices.at),
            f"prices are said twice: in `{first.name}` and in `{prices.name}`",
            label="a second list of prices",
            related=(Label(name_of(first.at), "the first one"),),
            help=f"move what it says to `{first.name}`, and remove it",
        )


@check("GPU833", "pool-without-price", Severity.WARNING)
def pool_without_price(plan: Plan) -> Iterator[Finding]:
    """There are prices, and a pool has none.

    ## Why
    What the cluster costs, and what each tenant costs, is then the sum of some pools alone, and looks as if it were
    that of all. No price is guessed.

    ## Instead
    Give a price to the pool's GPU model, to its node type or to the pool itself; `0` where it costs nothing. A price by
    terms needs one for the pool's `billing.term`, or `any`.
    """
    prices = plan.prices
    for pool in plan.pools if prices and prices.is_whole else ():  # else one that is misspelt may be meant
        if prices is not None and node_price(plan, pool) is None:
            has_rate = pool.gpu.id in prices.spec.gpus or node_type(pool) in prices.spec.node_types
            yield Finding(
                name_of(pool.at),
                f"pool `{pool.name}` has no price in `{prices.name}`",
                label=f"no price for `{pool.spec.billing.term}`" if has_rate else "costs nobody knows what",
                related=(Label(name_of(prices.at), "the prices"),),
                help=f"add `{pool.gpu.id}: {{perGpuHour: ...}}` to `gpus` of `{prices.name}`"
                if not has_rate
                else f"add `any`, or a price for `{pool.spec.billing.term}`",
            )


@check("GPU834", "unknown-currency")
def unknown_currency(plan: Plan) -> Iterator[Finding]:
    """The currency of prices is none of ISO 4217.

    ## Why
    Whoever reads a sum takes it for an amount of that currency, and programs that read it refuse a code that they do
    not know. Codes of funds and of metals are left out: nobody pays a bill with them.

    ## Instead
    Write the code of the currency that you are billed in, such as `EUR`, `USD` or `CHF`.
    """
    for prices in plan.price_lists:
        code = prices.spec.currency
        if code not in currencies():
            yield Finding(
                prices.at / "currency",
                f"unknown currency `{code}`",
                label="nobody pays in it by ISO 4217",
                help="write the code of the currency that you pay in, such as `EUR` or `USD`",
            )


@check("GPU835", "node-type-without-price", Severity.WARNING)
def node_type_without_price(plan: Plan) -> Iterator[Finding]:
    """A pool says of which type its nodes are for their price, and no price is for that type.

    ## Why
    The price of the GPU model holds instead, where there is one. Nothing but prices reads `billing.nodeType`, so it was
    written for a price that is not found, most often since one of both is misspelt.

    ## Instead
    Add the type to `nodeTypes` of the `Prices` document, or write it as it stands there.
    """
    prices = plan.prices
    for pool in plan.pools if prices else ():
        named = pool.spec.billing.node_type
        # A price of the pool itself comes before that of any type.
        if prices is None or named is None or pool.name in prices.spec.pools:
            continue
        if named not in (known := [*prices.spec.node_types]):
            yield mistyped(
                pool.at / "billing" / "nodeType",
                f"no price for node type `{named}` of pool `{pool.name}`",
                misspelling(named, known),
                "not among the types with a price",
                f"add it to `nodeTypes` of `{prices.name}`",
                *([f"there are prices for {listing(known, 8)}"] if known else []),
            )


@check("GPU836", "price-for-another-term", Severity.WARNING)
def price_for_another_term(plan: Plan) -> Iterator[Finding]:
    """A pool's own price says nothing of the term by which its nodes are paid.

    ## Why
    A price under the pool's name is for this pool alone, so it was meant to hold. It has prices for other terms only,
    and is passed over: the price of the node type or of the model holds instead, or none.

    ## Instead
    Add the price for the pool's term, or `any`; or say in `billing.term` of the pool how its nodes are paid for.
    """
    prices = plan.prices
    for pool in plan.pools if prices else ():
        rate = prices.spec.pools.get(pool.name) if prices is not None else None
        if prices is not None and rate is not None and hourly_rate(prices.at, rate, pool) is None:
            term, field = pool.spec.billing.term, "perGpuHour" if rate.per_gpu_hour else "perNodeHour"
            yield Finding(
                prices.at / "pools" / pool.name / field,
                f"price of pool `{pool.name}` is none for its term `{term}`",
                label="for other terms",
                related=(Label(pool.at / "billing" / "term", "how its nodes are paid for"),)
                if "term" in pool.spec.billing.model_fields_set
                else (),
                help=f"add `{term}` or `any` here, or change `billing.term` of the pool",
            )
