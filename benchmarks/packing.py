"""Measure `pack`: a million instances given as counts, beside a loop that adds up a million numbers.

For each model of the catalog: random mixes of all its profiles, a million instances each. ``warm`` is a demand that the
process has not seen, on a model that it has; ``cold`` is the first one of a process that has read the catalog, and so
includes the model's layouts and prices. Both are medians of parts of the loop's time in the same round; each cold one
has a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from statistics import median

from benchmarks.published import find_folder, shared_pods
from gpuplan.compiler.catalog import Gpu, load
from gpuplan.features.packing.sizing.packing import pack

REPOSITORY = Path(__file__).parents[1]
INSTANCES = 1_000_000
MOST_WARM = 1 / 50
"""What one demand may take of the loop's time, once the model is known."""
PROFILES_OF_OPENB = {1: "1g.5gb", 2: "2g.10gb", 3: "3g.20gb", 4: "4g.20gb", 7: "7g.40gb"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cold", metavar="MODEL", help="measure one round of a model in this process, and print it")
    options = parser.parse_args()
    if options.cold:
        print(json.dumps(measure_cold(load().get(options.cold))))
        return
    measured = {gpu.id: measure(gpu, options.rounds) for gpu in load().all() if gpu.profiles}
    report(measured)
    report_openb()


def measure(gpu: Gpu, rounds: int) -> tuple[float, float]:
    """Parts of the loop's time: cold, and warm."""
    random = Random(gpu.id)
    pack(gpu, a_mix(gpu, random))
    cold, warm = [], []
    for _ in range(rounds):
        loop, first = cold_round(gpu)
        cold.append(first / loop)
        mix = a_mix(gpu, random)
        warm.append(seconds(partial(pack, gpu, mix)) / seconds(add_up))
    return median(cold), median(warm)


def cold_round(gpu: Gpu) -> tuple[float, float]:
    command = (sys.executable, "-m", "benchmarks.packing", "--cold", gpu.id)
    done = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    loop, first = json.loads(done.stdout)
    return loop, first


def measure_cold(gpu: Gpu) -> tuple[float, float]:
    """Seconds of the loop, and of the first demand in this process."""
    mix = a_mix(gpu, Random(gpu.id))
    first = seconds(partial(pack, gpu, mix))
    return seconds(add_up), first


def a_mix(gpu: Gpu, random: Random) -> dict[str, int]:
    """A million instances of all profiles, by chance."""
    cuts = sorted(random.randint(0, INSTANCES) for _ in gpu.profiles[1:])
    ends = zip([0, *cuts], [*cuts, INSTANCES], strict=True)
    return {profile.name: end - start for profile, (start, end) in zip(gpu.profiles, ends, strict=True)}


def add_up() -> int:
    total = 0
    for number in range(INSTANCES):
        total += number
    return total


def seconds(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def report(measured: dict[str, tuple[float, float]]) -> None:
    print(f"{'a million instances / a million additions':44} {'cold':>8} {'warm':>8} {'at most':>8}")
    for model, (cold, warm) in measured.items():
        missed = "" if warm <= MOST_WARM else "  missed"
        print(f"{model:44} {f'1/{1 / cold:.1f}':>8} {f'1/{1 / warm:.0f}':>8} {f'1/{1 / MOST_WARM:.0f}':>8}{missed}")


def report_openb() -> None:
    folder = find_folder()
    if folder is None:
        print("openb is left out: GPUPLAN_DATA names no folder of published traces", file=sys.stderr)
        return
    pods = shared_pods(folder)
    packing = pack(load().get("A100-40GB"), {PROFILES_OF_OPENB[slices]: count for slices, count in pods.items()})
    print(f"openb: {pods.total()} shared pods on {packing.gpus} A100, no fewer than {packing.least}")


if __name__ == "__main__":
    main()
