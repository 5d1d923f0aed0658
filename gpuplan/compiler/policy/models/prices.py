"""The fields of a Prices."""

# No `from __future__ import annotations` here: pydantic would have to compile and evaluate each annotation again.

from typing import Annotated

from pydantic import Field

from gpuplan.compiler.policy import texts
from gpuplan.compiler.policy.marks import ESSENTIAL, MAIN, AnyText, Judged, Words
from gpuplan.compiler.policy.models.shared import Model, exactly_one


class Terms(Model):
    """Prices by how nodes are paid for. One for a pool's own `billing.term` comes before `any`."""

    any: Annotated[texts.Price | None, Words("price of any term")] = None
    """The price for every term that has none of its own; a single number in place of this mapping says the same."""
    on_demand: texts.Price | None = None
    """The price of nodes that are paid by the hour."""
    reserved_1_year: Annotated[texts.Price | None, Words("price when reserved for a year")] = None
    """The price of nodes that are reserved for a year."""
    reserved_3_years: Annotated[texts.Price | None, Words("price when reserved for three years")] = None
    """The price of nodes that are reserved for three years."""
    spot: Annotated[texts.Price | None, Words("spot price")] = None
    """The price of nodes that may be taken away at any time: the one that you count with."""
    owned: Annotated[texts.Price | None, Words("price of nodes of your own")] = None
    """The price of nodes of your own: their depreciation and power in an hour, a number of yours."""


class Rate(Model):
    """The price of nodes for an hour: by GPU or by node."""

    per_gpu_hour: Annotated[texts.Price | Terms | None, Words("price per GPU and hour"), ESSENTIAL, MAIN] = None
    """The price of one GPU of a node for an hour, the rest of the node included, such as `2.50`; or prices by term."""
    per_node_hour: Annotated[texts.Price | Terms | None, Words("price per node and hour"), ESSENTIAL] = None
    """The price of a whole node for an hour, such as `20.00`; or prices by term."""

    _one_rate = exactly_one("per_gpu_hour", "per_node_hour", "a price")


class PricesSpec(Model):
    """The prices of nodes with GPUs; at most one such document for a cluster. All numbers are yours: gpuplan has none.

    The most specific price holds for a pool: the one under its own name, else the one for its node type, else the one
    for its GPU model. What says nothing of the pool's term is passed over.
    """

    currency: texts.Currency
    """The currency of all prices."""
    gpus: Annotated[dict[str, Rate], Words("GPU models"), Judged("GPU102"), ESSENTIAL] = Field(default_factory=dict)
    """Prices by GPU model, as pools name it: they hold where neither the pool nor its node type has one."""
    node_types: Annotated[dict[str, Rate], AnyText("the seller of nodes names their types"), ESSENTIAL] = Field(
        default_factory=dict
    )
    """Prices by node type, such as `p4d.24xlarge`: for pools that have it in `billing.nodeType`, or choose nodes by it
    with `node.kubernetes.io/instance-type` in `nodes.selector`. They come before those of the model.
    """
    pools: Annotated[dict[str, Rate], Judged("GPU101"), ESSENTIAL] = Field(default_factory=dict)
    """Prices by pool: they come before all others."""
