"""The values that an answer is made of: nodes that may be used, and how their GPUs are cut in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.planning.placement.placing import InstanceCounts, Key, as_key
from gpuplan.features.packing.sizing.needs import Need


class Objective(StrEnum):
    """The goal of an answer."""

    GPUS = "gpus"
    """The fewest GPUs, in whole nodes; then the fewest layouts."""
    PRICE = "price"
    """The lowest price."""
    CHANGES = "changes"
    """The fewest nodes that are cut in another way than today, then the fewest GPUs."""


class Way(StrEnum):
    """A way to share a GPU."""

    WHOLE = "exclusive"
    MIG = "mig"
    TIME_SLICING = "timeSlicing"
    MPS = "mps"


class Cut(Value):
    """A division of the GPUs of one node, in the order of their indices.

    ``per_gpu`` holds instances by profile for each GPU, none for a GPU that stays whole. Under time-slicing or MPS
    ``replicas`` is the number of shares of a GPU, else 1.
    """

    way: Way
    per_gpu: tuple[InstanceCounts, ...]
    replicas: int = 1

    @property
    def key(self) -> tuple[Way, tuple[Key, ...], int]:
        """A value that two cuts share if they differ only in which GPU of the node is which."""
        return self.way, tuple(sorted(as_key(counts) for counts in self.per_gpu)), self.replicas


class NodeType(Value):
    """Equal nodes that may be used: ``nodes`` at most, None for as many as it takes.

    ``pools`` are the pools that have such nodes today. ``price`` is that of a node for an hour, in one currency for all
    types. ``profiles`` are the MIG profiles that the driver and the strategy allow, and ``ways`` those of sharing that
    the cluster allows.
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
    """Whether all GPUs of a node are cut alike, as the strategy `single` wants for all nodes of a cluster."""
    nodes_of_model: int | None = None
    """The most nodes that all types of its model may have together, None for as many as each may have."""


class Today(Value):
    """A pool as it is. It ``is_kept`` if the answer must leave it as it is."""

    pool: str
    nodes: int
    cut: Cut
    is_kept: bool = False


Gangs = tuple[int, ...]
"""The pods with several GPUs for which one node has room: how many GPUs each of them has."""


class Group(Value):
    """Nodes that an answer cuts alike; ``pool`` is the one of today that has them then, empty for a new pool.

    ``gangs`` is how many of the nodes have room for the same pods with several GPUs.
    """

    node_type: NodeType
    cut: Cut
    nodes: int
    pool: str = ""
    gangs: Mapping[Gangs, int] = field(default_factory=dict)


class Grant(Value):
    """Units of a group for a need; the unit is a profile, `gpu` or `shared`."""

    need: Need
    group: Group
    unit: str
    units: int


class Proof(StrEnum):
    """The reason why there cannot be fewer."""

    SOLVER = "solver"
    """HiGHS closed the gap."""
    NONE = "none"
    """The bound is below the answer; the gap is what is not proven."""


class Bound(Value):
    """A lower limit of all answers: ``least`` is in the unit of the objective (GPUs, money, nodes cut again)."""

    least: Fraction
    proof: Proof


class Answer(Value):
    """Nodes as they are cut, the units that needs get, what is ``unmet`` (need and pods), and how good it can be.

    If it ``is_exhaustive``, all possible answers were considered before a pod was left out.
    """

    groups: tuple[Group, ...]
    grants: tuple[Grant, ...]
    unmet: tuple[tuple[Need, int], ...]
    objective: Objective
    bound: Bound
    is_exhaustive: bool = True

    @property
    def nodes(self) -> int:
        return sum(group.nodes for group in self.groups)

    @property
    def gpus(self) -> int:
        return sum(group.nodes * group.node_type.gpus_per_node for group in self.groups)
