"""What of the GPUs nobody is promised, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.plan import Plan, Pool
from gpuplan.features.packing.fleet import cut_of
from gpuplan.features.packing.sizing.answers import Cut, Way


class Idle(NamedTuple):
    """What lies idle in a pool: ``unused`` units that nobody has a guarantee on, and memory slices in no instance."""

    pool: str
    unused: Mapping[str, int]
    slices: int


def idle_of(plan: Plan, pools: Sequence[Pool]) -> Iterator[Idle]:
    """What lies idle in each of some pools, as the plan has it."""
    for pool in pools:
        guaranteed = _guaranteed(plan, pool)
        unused = {unit.name: unit.capacity - guaranteed.get(unit.name, 0) for unit in pool.units}
        cut = cut_of(pool)
        yield Idle(pool.name, unused, _slices(pool, cut) if cut else 0)


def _guaranteed(plan: Plan, pool: Pool) -> dict[str, int]:
    return {total.unit.name: ceil(total.guaranteed) for total in plan.totals if total.pool.name == pool.name}


def _slices(pool: Pool, cut: Cut) -> int:
    """The memory slices of divided GPUs in which no instance stands."""
    if cut.way is not Way.MIG:
        return 0
    sizes = {profile.name: profile.memory_slices for profile in pool.gpu.profiles}
    free = (
        pool.gpu.memory_slices - sum(sizes[name] * number for name, number in counts.items())
        for counts in cut.per_gpu
        if counts
    )
    return sum(free) * pool.nodes.count


def rounding_of(plan: Plan, pools: Sequence[Pool]) -> Mapping[str, int]:
    """By model, how many GPUs of some pools are there because a node has several, and all of its pool are cut alike."""
    from gpuplan.features.packing.sizing.packing import pack

    there: Counter[str] = Counter()
    needed: Counter[str] = Counter()
    instances: dict[str, Counter[str]] = {}
    models = {pool.gpu.id: pool.gpu for pool in pools}
    for pool in pools:
        cut, guaranteed = cut_of(pool), _guaranteed(plan, pool)
        there[pool.gpu.id] += pool.gpu_count
        if cut is None:
            needed[pool.gpu.id] += pool.gpu_count
        elif cut.way is Way.MIG:
            parts = {name: number for name, number in guaranteed.items() if name != "gpu"}
            instances.setdefault(pool.gpu.id, Counter()).update(parts)
            needed[pool.gpu.id] += guaranteed.get("gpu", 0)
        else:
            needed[pool.gpu.id] += ceil(sum(guaranteed.values()) / cut.replicas)
    for model, counts in instances.items():
        known = {profile.name for profile in models[model].plain_profiles}
        needed[model] += pack(models[model], counts).gpus if known >= counts.keys() else there[model] - needed[model]
    return {model: there[model] - needed[model] for model in there}
