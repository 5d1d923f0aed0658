"""Whether the policies of an answer hold every pod that was asked for: judged from them alone.

Nothing here knows how an answer is found or handed out. It reads the plan that the written policies make, and asks one
program: can all pods run at once, each on a unit of its team's quotas that is enough for it, and those with several
GPUs on one node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import floor

from gpuplan.compiler.planning.plan import Isolation, Plan, Pool, Unit, UnitKey
from gpuplan.features.packing.sizing.choosing.highs import INFINITE, Program
from gpuplan.features.packing.sizing.needs import Need

_STRONGEST_FIRST = tuple(Isolation)


def not_held(plan: Plan, needs: Sequence[Need], tenants: Mapping[str, str]) -> Iterator[tuple[Need, int]]:
    """Yield the needs that the quotas and nodes of a plan do not hold, and how many pods of each find no unit.

    ``tenants`` has the name of a team's tenant where it is not the team's own. A service that is not answered is one
    pod.
    """
    program = Program()
    asked: list[tuple[Need, int]] = []
    takers: defaultdict[tuple[str, UnitKey], dict[int, int]] = defaultdict(dict)
    gangs: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for need in needs:
        tenant = tenants.get(need.team, need.team)
        size = max(need.gpus, 1)
        given: dict[int, float] = {}
        for pool, unit in _units_of(plan, tenant):
            if worth := _worth(pool, unit, need):
                index = program.number()
                given[index] = float(worth)
                takers[tenant, (pool.name, unit.name)][index] = size
                if size > 1:
                    gangs[pool.name, size].append(index)
        lacking = program.number()
        service = need.service
        asked.append((need, lacking))
        amount = service.requests_per_second if service else need.pods
        program.row(amount - 1e-6, {**given, lacking: amount if service else 1}, INFINITE)
    for (name, key), indexes in takers.items():
        holder = plan.tree.find(name)
        program.row(0, indexes, floor(plan.tree.left_over(holder, key)) if holder else 0)
    for pool in plan.pools:
        _lay(program, pool, {size: indexes for (name, size), indexes in gangs.items() if name == pool.name})
    solution = program.solve({index: 1.0 for _, index in asked}, step=1)
    for need, index in asked:
        missing = solution.values[index] if solution.values else max(need.pods, 1)
        if missing:
            yield need, missing


def _units_of(plan: Plan, tenant: str) -> Iterator[tuple[Pool, Unit]]:
    mine = plan.tree.find(tenant)
    keys = dict.fromkeys(quota.key for quota in mine.quotas) if mine else {}
    for name, unit_name in keys:
        pool = plan.find_pool(name)
        unit = pool.find_unit(unit_name) if pool else None
        if pool and unit:
            yield pool, unit


def _lay(program: Program, pool: Pool, gangs: Mapping[int, Sequence[int]]) -> None:
    """Have pods with several GPUs fit on nodes of a pool: each node has room for one choice of them."""
    if not gangs:
        return
    gpus = max((unit.per_node for unit in pool.units if unit.isolation is Isolation.WHOLE_GPU), default=0)
    choices = {program.number(): choice for choice in _choices(sorted(gangs), gpus)}
    program.row(0, dict.fromkeys(choices, 1), pool.nodes.count)
    for size, indexes in gangs.items():
        room = {index: choice.count(size) for index, choice in choices.items() if size in choice}
        program.row(0, {**room, **dict.fromkeys(indexes, -1)}, INFINITE)


def _choices(sizes: Sequence[int], gpus: int) -> Iterator[tuple[int, ...]]:
    """Yield the pods that fit on a node beside one another, as their numbers of GPUs, smallest first."""
    yield ()
    for at, size in enumerate(sizes):
        if size <= gpus:
            yield from ((size, *rest) for rest in _choices(sizes[at:], gpus - size))


# --- Whether a unit is enough ------------------------------------------------------------------------------------


def _worth(pool: Pool, unit: Unit, need: Need) -> Fraction:
    """Return how much of a need one pod on that unit is: a pod, or requests a second; 0 if the unit is too little."""
    profile = pool.gpu.find_profile(pool.gpu.current_name(unit.name))
    is_whole = unit.isolation is Isolation.WHOLE_GPU
    shares = 1 if is_whole or profile else max(unit.per_gpu)
    compute = Fraction(profile.compute_slices, pool.gpu.compute_slices) if profile else Fraction(1, shares)
    engines = {name: (number or 0) // shares for name, number in (profile or pool.gpu).engines.items()}
    is_enough = (
        (is_whole or not (need.gpus or need.isolation is Isolation.WHOLE_GPU))
        and (not need.models or pool.gpu.id in need.models)
        and _STRONGEST_FIRST.index(unit.isolation) <= _STRONGEST_FIRST.index(need.isolation)
        and need.memory_mib <= (unit.memory_mib or 0)
        and need.compute <= compute
        and all(engines.get(name, 0) >= number for name, number in need.engines.items())
    )
    if not is_enough or need.service is None:
        return Fraction(is_enough)
    service, sizes = need.service, (unit.name, compute * pool.gpu.compute_slices)
    answered = (
        Fraction(point.requests_per_second)
        for point in service.measured
        if point.size in sizes
        and point.processes <= service.max_processes
        and (service.latency_ms is None or point.latency_ms <= service.latency_ms)
    )
    return max(answered, default=Fraction(0)) if profile or is_whole else Fraction(0)
