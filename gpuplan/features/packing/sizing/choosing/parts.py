"""What a pod can have of a GPU, and which of it is enough for what a need asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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

    ``name`` is that of the unit that a pool hands out. ``compute`` is the part of one GPU's; memory and engines that
    nobody has read are None, and enough for no need that asks for any.
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


def size(part: Part) -> tuple[object, ...]:
    """What tells which of two parts is the smaller one."""
    return part.gpus, part.memory_mib or 0, part.compute, part.isolation.value, part.gpu.id, part.name, -part.replicas


def wants_whole(need: Need) -> bool:
    return need.gpus > 0 or need.isolation is Isolation.WHOLE_GPU


def holds(part: Part, need: Need) -> bool:
    """Whether a pod of the need can run there by what the catalog says; of a service, where it was measured in time.

    A whole GPU counts with all memory that the driver reports. The driver keeps about a hundredth of it to itself: CUDA
    has 79.15 GiB of the 80 of an A100. What an instance has is what is left.
    """
    return (
        part.gpus == max(need.gpus, 1)
        and (part.way is Way.WHOLE or not wants_whole(need))
        and _STRENGTH[part.isolation] >= _STRENGTH[need.isolation]
        and (not need.models or part.gpu.id in need.models)
        and (not need.memory_mib or (part.memory_mib is not None and need.memory_mib <= part.memory_mib))
        and need.compute <= part.compute
        and all((getattr(part.engines, engine) or 0) >= count for engine, count in need.engines.items())
        and (need.service is None or find_point(need.service, part) is not None)
        and not (part.name == SHARE and not _is_measured(need))
    )


def _is_measured(need: Need) -> bool:
    """How many pods can share a GPU is known only of those that say what each of them takes."""
    return need.memory_mib > 0 or need.compute > 0


def find_point(service: Service, part: Part) -> Throughput | None:
    """The batch and the number of processes that answer the most requests there, each of them in time."""
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
    return max(usable, key=_by_requests, default=None)


def _by_requests(point: Throughput) -> tuple[float, int, int]:
    return point.requests_per_second, -point.processes, -point.batch


def requests(service: Service, part: Part) -> Fraction:
    """What the service reaches there a second, to a millionth of a request: measurements are no more exact."""
    point = find_point(service, part)
    return Fraction(0) if point is None else exact(point.requests_per_second)


def exact(requests_per_second: float) -> Fraction:
    return round(Fraction(requests_per_second), 6)


# --- The least ones ----------------------------------------------------------------------------------------------


def smallest_profiles(gpu: Gpu, need: Need, profiles: Iterable[str] | None = None) -> tuple[Profile, ...]:
    """The profiles of the model that hold a pod of the need, without those in whose stead a smaller one does.

    One takes the place of another where it fits on any GPU that held the other, and a service reaches as much there.
    What remains cannot be decided for the need alone, such as ``1g.10gb+me`` and ``1g.20gb`` for a video decoder.
    ``profiles`` are those that may be made, all where None.
    """
    allowed = None if profiles is None else set(profiles)
    fitting = [
        profile
        for profile in gpu.profiles
        if (allowed is None or profile.name in allowed) and holds(instance(gpu, profile), need)
    ]
    kept: list[Profile] = []
    for profile in sorted(fitting, key=_by_size):
        if not any(_replaces(gpu, need, smaller, profile) for smaller in kept):
            kept.append(profile)
    return tuple(kept)


def _by_size(profile: Profile) -> tuple[int, int, int]:
    return profile.memory_slices, profile.compute_slices, sum(count or 0 for count in profile.engines)


def _replaces(gpu: Gpu, need: Need, one: Profile, other: Profile) -> bool:
    return is_no_larger(one, other) and (
        need.service is None
        or requests(need.service, instance(gpu, one)) >= requests(need.service, instance(gpu, other))
    )


def is_no_larger(one: Profile, other: Profile) -> bool:
    """Whether any GPU that holds the other holds this one in its stead, whatever else is on it."""
    is_within = all(any(not place.mask & ~wider.mask for place in one.placements) for wider in other.placements)
    mine, others = one.engines, other.engines
    takes_no_more = all((a or 0) <= (b or 0) for a, b in zip(mine, others, strict=True))
    return is_within and takes_no_more and one.max_instances >= _most_apart(one)


def _most_apart(profile: Profile) -> int:
    """How many placements of a profile there are side by side, were it alone and without a maximum."""
    end = count = 0
    for place in sorted(profile.placements, key=lambda place: place.end):
        if place.start >= end:
            end, count = place.end, count + 1
    return count


# --- Shares ------------------------------------------------------------------------------------------------------


def most_shares(gpu: Gpu, way: Way, need: Need) -> int:
    """Into how many shares a GPU can be divided so that each is enough for a pod of the need; 0 where into none."""
    if need.service is not None or wants_whole(need) or not _is_measured(need):
        return 0
    limits = [most_mps_clients(gpu) if way is Way.MPS else MANY_SHARES, *_ratios(gpu, need)]
    most = min(limits)
    return most if most > 1 and holds(share(gpu, way, most), need) else 0


def _ratios(gpu: Gpu, need: Need) -> Iterator[int]:
    if need.memory_mib:
        yield gpu_memory_mib(gpu) // need.memory_mib
    if need.compute:
        yield int(1 / need.compute)
    for engine, count in need.engines.items():
        if count:
            yield (getattr(gpu.engines, engine) or 0) // count
