"""What there is to cut, and how it is cut in the end: the values that an answer is made of."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.planning.placement.placing import InstanceCounts
from gpuplan.features.packing.sizing.needs import Need


class Objective(StrEnum):
    """What an answer is best in."""

    GPUS = "gpus"
    """The fewest GPUs, in whole nodes; then the fewest layouts."""
    PRICE = "price"
    """The lowest price."""
    ACCEPTED = "accepted"
    """The fewest pods turned away as they come and go, on all nodes that there are; what is asked for has room."""
    CHANGES = "changes"
    """The fewest nodes that are cut in another way than today, then the fewest GPUs."""


class Way(StrEnum):
    """How a GPU is shared."""

    WHOLE = "exclusive"
    MIG = "mig"
    TIME_SLICING = "timeSlicing"
    MPS = "mps"


class Cut(Value):
    """How the GPUs of one node are cut, in the order of their indices.

    ``per_gpu`` holds instances by profile for each of them, empty where it stays whole; ``replicas`` is how many shares
    a GPU has under time-slicing or MPS, else 1.
    """

    way: Way
    per_gpu: tuple[InstanceCounts, ...]
    replicas: int = 1


class NodeType(Value):
    """Equal nodes that may be used: ``nodes`` of them at most, None for as many as it takes.

    ``pools`` are the pools that such nodes are in today, with how many of them each has and how they are cut; ``price``
    is that of a node for an hour, in the currency of all of them. ``profiles`` are the MIG profiles that may be made
    there: what the driver or the strategy rules out is not among them. ``ways`` are those that the cluster allows.
    """

    name: str
    gpu: Gpu
    gpus_per_node: int
    nodes: int | None
    price: Decimal | None = None
    profiles: tuple[str, ...] = ()
    ways: tuple[Way, ...] = (Way.WHOLE, Way.MIG)
    pools: tuple[Today, ...] = ()
    is_equal_within_node: bool = False
    """Whether all GPUs of a node are cut alike, as the strategy `single` wants."""


class Today(Value):
    """A pool as it is: so many nodes, cut so. It ``is_kept`` where the answer must leave it as it is."""

    pool: str
    nodes: int
    cut: Cut
    is_kept: bool = False


class Group(Value):
    """Nodes that an answer cuts alike; ``pool`` is the pool that becomes or stays so, empty for a new one."""

    node_type: NodeType
    cut: Cut
    nodes: int
    pool: str = ""


class Grant(Value):
    """Units of a group for a need; the unit is a profile, or `gpu` or `shared` as a pool of that way has them."""

    need: Need
    group: Group
    unit: str
    units: int


class Proof(StrEnum):
    """Why there cannot be fewer."""

    PRICES = "prices"
    """Prices by profile that no GPU can hold more than 1 of: what is asked for costs more than one GPU less."""
    SEARCH = "search"
    """All that is smaller was tried."""
    SOLVER = "solver"
    """HiGHS closed the gap."""
    NONE = "none"
    """The bound is below the answer; the gap is what is not proven."""


class Bound(Value):
    """What no answer can do with less than: ``least`` in the unit of the objective (GPUs, money, nodes changed).

    ``prices`` are by profile where they prove it.
    """

    least: Fraction
    proof: Proof
    prices: Mapping[str, Fraction] | None = None


class Answer(Value):
    """How nodes are cut, who gets what of them, what remains ``unmet`` (need and pods), and how good that can be."""

    groups: tuple[Group, ...]
    grants: tuple[Grant, ...]
    unmet: tuple[tuple[Need, int], ...]
    objective: Objective
    bound: Bound

    @property
    def nodes(self) -> int:
        return sum(group.nodes for group in self.groups)

    @property
    def gpus(self) -> int:
        return sum(group.nodes * group.node_type.gpus_per_node for group in self.groups)
