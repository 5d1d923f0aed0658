"""Compare planned MIG layouts with partitions that are made in no time, as pods come and go.

There are 100 A100. Jobs of five sizes come at random, at 85 % of all memory slices on average, stay for a random time
of mean 1, and are turned away where nothing has room for them; of 20,000 jobs the first 4,000 are not counted.

``static`` are layouts that `choose` planned for the mean of each size, with the objective `accepted`; they never
change, and a job takes the smallest free instance that holds it. ``dynamic`` makes each instance where it destroys
least, and removes it when its job ends: each GPU and placement is judged by what could still be made there afterwards.
There are several ways to say what that is worth; of those that are tried the best one counts, mix by mix. ``first
place`` takes the first placement of the first GPU.

``off`` is the same with each size's demand off by a random factor of its own, up to 30 % either way, which `choose` was
told (``tolerance``) but not by how much: each run has other factors, and static and dynamic see the same jobs.
"""

from __future__ import annotations

import argparse
import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate
from random import Random
from statistics import mean
from typing import NamedTuple

from benchmarks.published import SHARED_PODS
from gpuplan.compiler.catalog import Gpu, load
from gpuplan.features.packing.sizing.answers import Answer, NodeType, Objective
from gpuplan.features.packing.sizing.choosing import choose
from gpuplan.features.packing.sizing.choosing.forms import node_parts
from gpuplan.features.packing.sizing.needs import Need

GPUS = 100
LOAD = 0.85
JOBS, WARM_UP = 20_000, 4_000
TOLERANCE = 0.3
LEAST, LEAST_OFF = 0.985, 0.975
"""What planned layouts have to accept of what the best dynamic placement does."""
AIM, AIM_OFF = 0.995, 0.985
MIXES: dict[str, Sequence[int]] = {
    "uniform": (1, 1, 1, 1, 1),
    "small": (40, 25, 20, 10, 5),
    "bimodal": (50, 0, 0, 0, 50),
    "no-7g": (40, 30, 20, 10, 0),
    "openb": tuple(SHARED_PODS.values()),
}
"""How often each size is asked for: 1g, 2g, 3g, 4g and 7g."""


class Job(NamedTuple):
    start: float
    size: int
    end: float


class Row(NamedTuple):
    """Which part of all jobs is accepted, on average over the runs."""

    static: float
    dynamic: float
    first_place: float
    off_static: float
    off_dynamic: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print("accepted, % of jobs     static  dynamic  ratio   first place    off: static  dynamic  ratio")
    for name, weights in MIXES.items():
        row = measure(weights, range(options.seeds))
        ratio, off = row.static / row.dynamic, row.off_static / row.off_dynamic
        verdict = "" if ratio >= LEAST and off >= LEAST_OFF else "  missed"
        verdict = verdict or ("" if ratio >= AIM and off >= AIM_OFF else "  below the aim")
        print(
            f"{name:22} {row.static:>7.2%} {row.dynamic:>8.2%} {ratio:>6.2%} {row.first_place:>13.2%}"
            f" {row.off_static:>14.2%} {row.off_dynamic:>8.2%} {off:>6.2%}{verdict}"
        )
    print(f"at least {LEAST:.1%} and {LEAST_OFF:.1%} of dynamic; the aim is {AIM:.1%} and {AIM_OFF:.1%}")


def measure(weights: Sequence[int], seeds: Sequence[int]) -> Row:
    board = Board(load().get("A100-40GB"))
    offered = demand(board, weights)
    runs = [jobs(offered, seed) for seed in seeds]
    off = [jobs([pods * factor for pods, factor in zip(offered, factors(seed), strict=True)], seed) for seed in seeds]
    planned, tolerant = (instances(board, plan(board, offered, tolerance)) for tolerance in (0.0, TOLERANCE))
    rules = worths(board, weights)
    return Row(
        static=mean(static(run, planned) for run in runs),
        dynamic=max(mean(dynamic(run, board, rule) for run in runs) for rule in rules),
        first_place=mean(dynamic(run, board, first_place) for run in runs),
        off_static=mean(static(run, tolerant) for run in off),
        off_dynamic=max(mean(dynamic(run, board, rule) for run in off) for rule in rules),
    )


class Board:
    """A GPU model by its memory slices: for each size what it takes, and where that can be."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.profiles = gpu.base_profiles
        self.places = [[place.mask for place in profile.placements] for profile in self.profiles]
        self.memory = [profile.memory_slices for profile in self.profiles]


def demand(board: Board, weights: Sequence[int]) -> list[float]:
    """Jobs of each size that would run at once, were there always room."""
    slices = sum(weight * memory for weight, memory in zip(weights, board.memory, strict=True)) / sum(weights)
    jobs_at_once = LOAD * GPUS * board.gpu.memory_slices / slices
    return [jobs_at_once * weight / sum(weights) for weight in weights]


def jobs(offered: Sequence[float], seed: int) -> list[Job]:
    random = Random(seed)
    now, found = 0.0, []
    sizes = random.choices(range(len(offered)), cum_weights=[*accumulate(offered)], k=JOBS)
    for size in sizes:
        now += random.expovariate(sum(offered))
        found.append(Job(now, size, now + random.expovariate(1)))
    return found


def factors(seed: int) -> list[float]:
    random = Random(1_000 + seed)
    return [random.uniform(1 - TOLERANCE, 1 + TOLERANCE) for _ in range(5)]


# --- Planned layouts ---------------------------------------------------------------------------------------------


def plan(board: Board, offered: Sequence[float], tolerance: float) -> Answer:
    """The layouts of 100 nodes with one GPU each; a need asks for the compute of its size."""
    needs = [
        Need(None, "jobs", profile.name, round(pods), compute=Fraction(profile.compute_slices, 7))
        for profile, pods in zip(board.profiles, offered, strict=True)
        if round(pods)
    ]
    nodes = NodeType("a100", board.gpu, 1, GPUS, profiles=tuple(profile.name for profile in board.profiles))
    return choose(needs, [nodes], Objective.ACCEPTED, tolerance=tolerance)


def instances(board: Board, answer: Answer) -> list[int]:
    """How many there are of each size; a GPU that stays whole is one of the largest."""
    found: Counter[str] = Counter()
    for group in answer.groups:
        for part, each in node_parts(group.node_type, group.cut).items():
            found[part.name] += each * group.nodes
    found[board.profiles[-1].name] += found.pop("gpu", 0)
    return [found[profile.name] for profile in board.profiles]


def static(run: Sequence[Job], room: Sequence[int]) -> float:
    free = list(room)
    busy: list[tuple[float, int]] = []
    accepted = 0
    for number, job in enumerate(run):
        while busy and busy[0][0] <= job.start:
            free[heapq.heappop(busy)[1]] += 1
        size = next((size for size in range(job.size, len(free)) if free[size]), None)
        if size is not None:
            free[size] -= 1
            heapq.heappush(busy, (job.end, size))
            accepted += number >= WARM_UP
    return accepted / (len(run) - WARM_UP)


# --- Partitions that are made in no time -------------------------------------------------------------------------

Worth = Callable[[int, int, int], tuple[float, ...]]
"""What is lost when a placement is taken on a GPU with a mask of slices in use: the mask, the place, its number."""


def first_place(_: int, __: int, number: int) -> tuple[float, ...]:
    return (number,)


def worths(board: Board, weights: Sequence[int]) -> list[Worth]:
    """By what could be made afterwards, by memory or number, of all sizes or as asked for; and the fullest first."""
    kinds = range(len(board.places))
    values = [
        [sum(weight * sum(not place & mask for place in board.places[kind]) for kind, weight in each) for mask in MASKS]
        for each in (
            [(kind, float(board.memory[kind])) for kind in kinds],
            [(kind, float(board.memory[kind] * weights[kind])) for kind in kinds],
            [(kind, 1.0) for kind in kinds],
            [(kind, float(weights[kind])) for kind in kinds],
        )
    ]
    return [*map(_by_loss, values), _by_fill(values[0])]


def _by_loss(value: Sequence[float]) -> Worth:
    return lambda mask, place, number: (value[mask] - value[mask | place], -mask.bit_count(), number)


def _by_fill(value: Sequence[float]) -> Worth:
    return lambda mask, place, number: (-mask.bit_count(), value[mask] - value[mask | place], number)


MASKS = range(256)


def dynamic(run: Sequence[Job], board: Board, worth: Worth) -> float:
    """GPUs with the same slices in use are as good as each other, but for `first_place`, which takes them in order."""
    best = [_best(places, worth) for places in board.places]
    ordered = [[mask for _, mask in sorted((found[mask][0], mask) for mask in found)] for found in best]
    masks = [0] * GPUS
    by_mask: list[set[int]] = [set() for _ in MASKS]
    by_mask[0] = set(range(GPUS))
    busy: list[tuple[float, int, int]] = []
    accepted = 0
    for number, job in enumerate(run):
        while busy and busy[0][0] <= job.start:
            _, gpu, place = heapq.heappop(busy)
            _move(masks, by_mask, gpu, masks[gpu] & ~place)
        if worth is first_place:
            gpu = next((gpu for gpu in range(GPUS) if masks[gpu] in best[job.size]), -1)
        else:
            mask = next((mask for mask in ordered[job.size] if by_mask[mask]), -1)
            gpu = min(by_mask[mask]) if mask >= 0 else -1
        if gpu >= 0:
            place = best[job.size][masks[gpu]][1]
            _move(masks, by_mask, gpu, masks[gpu] | place)
            heapq.heappush(busy, (job.end, gpu, place))
            accepted += number >= WARM_UP
    return accepted / (len(run) - WARM_UP)


def _best(places: Sequence[int], worth: Worth) -> dict[int, tuple[tuple[float, ...], int]]:
    """By slices in use, where a job of one size is placed, and what that costs; no entry where nothing is left."""
    free = {
        mask: [(worth(mask, place, number), place) for number, place in enumerate(places) if not place & mask]
        for mask in MASKS
    }
    return {mask: min(found) for mask, found in free.items() if found}


def _move(masks: list[int], by_mask: list[set[int]], gpu: int, mask: int) -> None:
    by_mask[masks[gpu]].discard(gpu)
    masks[gpu] = mask
    by_mask[mask].add(gpu)


if __name__ == "__main__":
    main()
