"""Count the GPUs that ParvaGPU's six scenarios need, beside those of its own deployments.

Its constraints are kept: throughput and latency as it measured them, batches that take less than 0.9 of half the
objective for latency, and at most so many processes in a partition.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from benchmarks.published import ITS_MOST_PROCESSES, deployment, find_folder, scenario
from gpuplan.compiler.catalog import load
from gpuplan.features.packing.sizing.answers import Answer, NodeType, Objective
from gpuplan.features.packing.sizing.choosing import choose

SCENARIOS = range(1, 7)
LIMITS = {"at most 3 processes": ITS_MOST_PROCESSES, "all measured processes": 5}


def main() -> None:
    folder = find_folder()
    if folder is None:
        sys.exit("GPUPLAN_DATA names no folder of published tables")
    rows = {"its deployments": [len({part.gpu for part in deployment(folder, number)}) for number in SCENARIOS]}
    start = time.perf_counter()
    for name, most in LIMITS.items():
        rows[name] = [answer(folder, number, most).gpus for number in SCENARIOS]
    seconds = time.perf_counter() - start
    print(f"{'GPUs':24}" + "".join(f"{f'S{number}':>5}" for number in SCENARIOS) + f"{'all':>6}")
    for name, gpus in rows.items():
        print(f"{name:24}" + "".join(f"{count:>5}" for count in gpus) + f"{sum(gpus):>6}")
    print(f"{seconds:.1f} seconds for {len(LIMITS) * len(SCENARIOS)} answers, each proven")


def answer(folder: Path, number: int, most_processes: int) -> Answer:
    return choose(scenario(folder, number, most_processes), [node_type()], Objective.GPUS)


def node_type() -> NodeType:
    """A100s one by one, as it counts them."""
    gpu = load().get("A100-80GB")
    return NodeType("a100", gpu, 1, None, profiles=tuple(profile.name for profile in gpu.base_profiles))


if __name__ == "__main__":
    main()
