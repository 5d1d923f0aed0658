"""The demand before GPUs are cut for it: pods of teams that run at once, and what each of them needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from fractions import Fraction
from typing import Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.planning.plan import Isolation, UnitKey

PERCENTILE: Final = 95.0
MARGIN: Final = Fraction(1, 5)


class Basis(StrEnum):
    """The part of a platform that counts as demand."""

    GUARANTEED = "guaranteed"
    """The guarantees of each tenant."""
    LIMIT = "limit"
    """The limits of each tenant; a tenant without a limit may use all that there is."""
    WORKLOADS = "workloads"
    """The pods of each workload, when there are most of them, as far as the limits of its tenant let them run."""


class Throughput(NamedTuple):
    """The requests a second that all processes of a partition answer together, each within a latency.

    ``size`` is the number of compute slices of the partition, or a profile's name where that was measured.
    """

    size: int | str
    batch: int
    processes: int
    requests_per_second: float
    latency_ms: float


class Service(Value):
    """Requests that a service answers, how late an answer may be, and what was measured of it."""

    requests_per_second: float
    latency_ms: float | None
    measured: tuple[Throughput, ...]
    max_processes: int = 1
    """The number of processes that may share one partition, by MPS."""


class Link(StrEnum):
    """The side of a need whose team has needs of both: units that it asks for may stand for guaranteed ones."""

    GUARANTEED = "guaranteed"
    ASKED = "asked"


class Need(Value):
    """Equal pods of a team that run at once; growth and bursts are counted in.

    ``memory_mib`` is GPU memory that a pod can use, per GPU; ``compute`` is the part of one GPU's compute that it
    needs, 0 where it needs none for certain. ``gpus`` is how many whole GPUs each pod has, 0 where a part of one is
    enough. ``isolation`` is the weakest that will do. ``models`` are the GPU models that it may have, all where empty.
    ``engines`` are media engines by their name in the catalog. With a ``service``, ``pods`` is 0: the answer says how
    many there are. ``today`` is the unit that its quota counts now, None where it has none. With a ``link``, units of
    its team that are enough for a guaranteed and an asked need are granted once.
    """

    at: Origin | None
    team: str
    name: str
    pods: int
    memory_mib: int = 0
    compute: Fraction = Fraction(0)
    gpus: int = 0
    isolation: Isolation = Isolation.HARDWARE
    models: tuple[str, ...] = ()
    engines: Mapping[str, int] = field(default_factory=dict)
    service: Service | None = None
    today: UnitKey | None = None
    link: Link | None = None
