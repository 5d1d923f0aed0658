"""The parts of a GPU that a pod can have, and whether a part is enough for what a need asks."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog import Engines, Gpu, Profile
from gpuplan.compiler.checks.sharing import MANY_SHARES, most_mps_clients
from gpuplan.compiler.planning.plan import Isolation
from gpuplan.compiler.planning.pools import gpu_memory_mib, profile_memory_mib
from gpuplan.features.packing.sizing.answers import Way
from gpuplan.features.packing.sizing.needs import Need, Service, Throughput

WHOLE = "gpu"
SHARE = "shared"

_STRENGTH = {isolation: strength for strength, isolation in enumerate(reversed(Isolation))}


class Part(NamedTuple):
    """A MIG instance, a share of a GPU, or ``gpus`` whole GPUs of one node.

    ``name`` is that of the unit that a pool hands out. ``compute`` is a part of one GPU's compute. Memory and engines
    that the catalog does not know are None, and enough for no need that asks for any.
    """

    gpu: Gpu
    way: Way
    name: str
    memory_mib: int | None
    compute: Fraction
    engines: Engines
    isolation: Isolation
    replicas: int = 1
    gpus: int = 1


def instance(gpu: Gpu, profile: Profile) -> Part:
    compute = Fraction(profile.compute_slices, gpu.compute_slices)
    memory = profile_memory_mib(gpu, profile.name, 1)
    return Part(gpu, Way.MIG, profile.name, memory, compute, profile.engines, Isolation.HARDWARE)


def whole(gpu: Gpu, gpus: int = 1) -> Part:
    isolation = Isolation.WHOLE_GPU
    return Part(gpu, Way.WHOLE, WHOLE, gpu_memory_mib(gpu), Fraction(1), gpu.engines, isolation, gpus=gpus)


def share(gpu: Gpu, way: Way, replicas: int) -> Part:
    """One of the equal shares of a GPU; engines are shared as memory and compute are."""
    isolation = Isolation.MPS if way is Way.MPS else Isolation.NONE
    engines = Engines(*(None if count is None else count // replicas for count in gpu.engines))
    memory = gpu_memory_mib(gpu) // replicas
    return Part(gpu, way, SHARE, memory, Fraction(1, replicas), engines, isolation, replicas)


def _wants_whole(need: Need) -> bool:
    return need.gpus > 0 or need.isolation is Isolation.WHOLE_GPU


def holds(part: Part, need: Need) -> bool:
    """Whether a pod of the need can run there, by the catalog. A service must have been measured there, and in time.

    A whole GPU counts with all memory that the driver reports. The driver keeps about a hundredth of it to itself: CUDA
    has 79.15 GiB of the 80 of an A100. The memory of an instance is what remains.
    """
    return (
        part.gpus == max(need.gpus, 1)
        and (part.way is Way.WHOLE or not _wants_whole(need))
        and _STRENGTH[part.isolation] >= _STRENGTH[need.isolation]
        and (not need.models or part.gpu.id in need.models)
        and (not need.memory_mib or (part.memory_mib is not None and need.memory_mib <= part.memory_mib))
        and need.compute <= part.compute
        and all((getattr(part.engines, engine) or 0) >= count for engine, count in need.engines.items())
        and (need.service is None or find_point(need.service, part) is not None)
        and not (part.name == SHARE and not _is_measured(need))
    )


def _is_measured(need: Need) -> bool:
    """Whether the need says what each of its pods takes: only then is it known how many can share a GPU."""
    return need.memory_mib > 0 or need.compute > 0


def find_point(service: Service, part: Part) -> Throughput | None:
    """Return the measurement there with the most requests, each of them answered in time, or None."""
    if part.name == SHARE or part.gpus > 1:
        return None
    slices = round(part.compute * part.gpu.compute_slices)
    usable = [
        point
        for point in service.measured
        if point.size in {part.name, slices}
        and exact(point.requests_per_second)
        and point.processes <= service.max_processes
        and (service.latency_ms is None or point.latency_ms <= service.latency_ms)
    ]
    return max(usable, key=lambda point: (point.requests_per_second, -point.processes, -point.batch), default=None)


def requests(service: Service, part: Part) -> Fraction:
    """Return the requests a second that the service answers there; measurements are exact to a millionth."""
    point = find_point(service, part)
    return Fraction(0) if point is None else exact(point.requests_per_second)


def exact(requests_per_second: float) -> Fraction:
    return round(Fraction(requests_per_second), 6)


# --- The least ones ----------------------------------------------------------------------------------------------


def smallest_profiles(gpu: Gpu, need: Need, profiles: Iterable[str] | None = None) -> tuple[Profile, ...]:
    """Return the profiles of the model that hold a pod of the need, without those that a smaller one can replace.

    A profile replaces another if it fits on any GPU that held the other, and a service answers as much there. Other
    needs decide among the rest, such as ``1g.10gb+me`` and ``1g.20gb`` for a video decoder. ``profiles`` are those that
    may be made, all if None.
    """
    allowed = None if profiles is None else set(profiles)
    fitting = [
        profile
        for profile in gpu.profiles
        if (allowed is None or profile.name in allowed) and holds(instance(gpu, profile), need)
    ]
    fitting.sort(key=lambda one: (one.memory_slices, one.compute_slices, sum(count or 0 for count in one.engines)))
    reached = {one.name: requests(need.service, instance(gpu, one)) if need.service else 0 for one in fitting}
    kept: list[Profile] = []
    for profile in fitting:
        if not any(is_no_larger(one, profile) and reached[one.name] >= reached[profile.name] for one in kept):
            kept.append(profile)
    return tuple(kept)


def is_no_larger(one: Profile, other: Profile) -> bool:
    """Whether any GPU that holds the other holds this one in its stead, whatever else is on it."""
    is_within = all(any(not place.mask & ~wider.mask for place in one.placements) for wider in other.placements)
    mine, others = one.engines, other.engines
    takes_no_more = all((a or 0) <= (b or 0) for a, b in zip(mine, others, strict=True))
    end = side_by_side = 0
    for place in sorted(one.placements, key=lambda place: place.end):
        if place.start >= end:
            end, side_by_side = place.end, side_by_side + 1
    return is_within and takes_no_more and one.max_instances >= side_by_side


# --- Shares ------------------------------------------------------------------------------------------------------


def most_shares(gpu: Gpu, way: Way, need: Need) -> int:
    """Return the most shares of a GPU of which each is enough for a pod of the need, or 0 if there are none."""
    if need.service is not None or _wants_whole(need) or not _is_measured(need):
        return 0
    limits = [most_mps_clients(gpu) if way is Way.MPS else MANY_SHARES]
    if need.memory_mib:
        limits.append(gpu_memory_mib(gpu) // need.memory_mib)
    if need.compute:
        limits.append(int(1 / need.compute))
    limits += [(getattr(gpu.engines, engine) or 0) // count for engine, count in need.engines.items() if count]
    most = min(limits)
    return most if most > 1 and holds(share(gpu, way, most), need) else 0
