"""Measure gpuplan on fleet-N: wall and CPU time and peak memory, as ratios within the same run.

R is the peer (rjsonnet generating and writing the same objects from the same data, without reading, typing or
checking policies); F is the floor (plain Python writing the same bytes to the same files). S is the least that a start
takes: Python importing click and yaml, and declaring one pydantic model. Rounds are interleaved, and ratios are medians
of the rounds' own ratios of CPU time, so that a noisy machine disturbs them little. Each command runs once before, so
that Python has compiled what it imports.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import yaml

from benchmarks import floor
from benchmarks.fleet import peer_data, write_fleet

REPOSITORY = Path(__file__).parents[1]
GPUPLAN = str(Path(sys.executable).with_name("gpuplan"))


@dataclass(frozen=True)
class Sample:
    """One run of a command: seconds of wall clock and of CPU, and the most memory it held."""

    wall: float
    cpu: float
    peak_mib: float


@dataclass(frozen=True)
class Case:
    """A command that is measured; ``prepare`` runs before each round and is not measured."""

    name: str
    command: tuple[str, ...]
    prepare: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Target:
    """What a build of a fleet may take: of the peer's CPU time, and of memory."""

    ratio: float
    peak_mib: float


MOST_OF_START = 1.7
MOST_OF_VALIDATE = 1.5
"""What `check` of one file may take of the time of `validate dev`."""
MOST_OF_REPORT = 3.0
"""What the report of a fleet may take of the time of its `validate`, which is a part of it."""
JUDGED = {
    "check mig": "out/dev/gpu-operator/configmap-gpuplan-mig-parted-*.yaml",
    "check plugin": "out/dev/gpu-operator/configmap-gpuplan-device-plugin-*.yaml",
    "check values": "out/dev/gpu-operator/values.yaml",
    "check operator": "out/openshift/gpu-operator/clusterpolicy-*.yaml",
    "check queue": "out/prod/scheduling/clusterqueue-model-services.yaml",
    "check work": "out/dev/workloads/research/*.yaml",
}
"""A file of each kind that `check` knows, the first by its name."""
TARGETS = {1000: Target(0.75, 75), 5000: Target(0.45, 153)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 5000], metavar="N")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="where to write the fleets; a tmpfs gives the steadiest numbers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measured = {size: measure_fleet(Path(folder) / str(size), size, options.rounds) for size in options.sizes}
        start_up = measure_start_up(options.rounds)
    report(measured)
    report_targets(measured, start_up)


def measure_start_up(rounds: int) -> dict[str, list[Sample]]:
    """Of the example platform, all and one of its clusters."""
    cases = [
        Case("click", (sys.executable, "-c", "import click")),
        Case("help", (GPUPLAN, "--help")),
        Case("S", (sys.executable, str(REPOSITORY / "benchmarks" / "start.py"))),
        Case("validate", (GPUPLAN, "validate", "-q")),
        Case("validate dev", (GPUPLAN, "validate", "-q", "-c", "dev")),
        *(Case(name, (GPUPLAN, "check", "-q", str(min(REPOSITORY.glob(files))))) for name, files in JUDGED.items()),
    ]
    return measure(cases, rounds * 3)


def measure_fleet(root: Path, tenants: int, rounds: int) -> dict[str, list[Sample]]:
    out, peer_out, floor_out = root / "out", root / "peer-out", root / "floor-out"
    write_fleet(root, tenants)
    run((GPUPLAN, "-C", str(root), "build", "-q"))
    data, ready = root / "data.json", root / "ready"
    data.write_text(json.dumps(peer_data(tenants, out)))
    floor.pack({p.relative_to(out).as_posix(): p.read_bytes() for p in out.rglob("*") if p.is_file()}, ready)
    python = (sys.executable, "-m")
    cases = [
        Case("R", (*python, "benchmarks.peer", str(data), str(peer_out)), lambda: remove(peer_out)),
        Case("F", (*python, "benchmarks.floor", str(ready), str(floor_out)), lambda: remove(floor_out)),
        Case("build", (GPUPLAN, "-C", str(root), "build", "-q"), lambda: remove(out)),
        Case("check", (GPUPLAN, "-C", str(root), "build", "--check", "-q")),
        Case("validate", (GPUPLAN, "-C", str(root), "validate", "-q")),
        Case("report", (GPUPLAN, "-C", str(root), "report", "--output", str(root / "report.html"))),
    ]
    samples = measure(cases, rounds)
    compare_objects(out, peer_out)
    return samples


def measure(cases: list[Case], rounds: int) -> dict[str, list[Sample]]:
    samples: dict[str, list[Sample]] = {case.name: [] for case in cases}
    for case in cases:
        case.prepare()
        run(case.command)
    for _ in range(rounds):
        for case in cases:
            case.prepare()
            samples[case.name].append(run(case.command))
    return samples


def run(command: tuple[str, ...]) -> Sample:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    for name in ("GPUPLAN_CRDS", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return Sample(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def compare_objects(ours: Path, peers: Path) -> None:
    """The peer must write the same objects, or its time means nothing."""
    for path in sorted(peers.rglob("*.yaml")):
        name = path.relative_to(peers)
        if yaml.load(path.read_text(), yaml.CSafeLoader) != yaml.load((ours / name).read_text(), yaml.CSafeLoader):
            sys.exit(f"the peer's {name} is not the object that gpuplan writes")
    objects = sum(1 for _ in ours.rglob("*.yaml"))
    written = sum(1 for _ in peers.rglob("*.yaml"))
    print(f"peer: {written} of {objects} files, all equal as objects", file=sys.stderr)


def report(measured: dict[int, dict[str, list[Sample]]]) -> None:
    print(f"{'fleet':>6} {'case':9} {'wall s':>8} {'cpu s':>8} {'peak MiB':>9} {'/ R':>6} {'/ F':>6} {'/ build':>8}")
    for size, samples in measured.items():
        for name, runs in samples.items():
            figures = f"{median(s.wall for s in runs):8.3f} {median(s.cpu for s in runs):8.3f}"
            ratios = [ratio(runs, samples[other]) for other in ("R", "F", "build")]
            print(f"{size:>6} {name:9} {figures} {max(s.peak_mib for s in runs):9.0f} ", end="")
            print("{:6.2f} {:6.2f} {:8.2f}".format(*ratios))
    sizes = sorted(measured)
    for small, large in pairwise(sizes):
        growth = median(s.wall for s in measured[large]["build"]) / median(s.wall for s in measured[small]["build"])
        print(f"build of fleet-{large} takes {growth:.2f} times that of fleet-{small}")


def report_targets(measured: dict[int, dict[str, list[Sample]]], start_up: dict[str, list[Sample]]) -> None:
    """What should be reached, each beside what is."""
    print(f"\n{'':40} {'is':>8} {'at most':>8}")
    figures: list[tuple[str, float, float]] = [
        (f"{name} / S", ratio(start_up[name], start_up["S"]), MOST_OF_START) for name in ("validate", "validate dev")
    ]
    slowest = max((ratio(start_up[name], start_up["validate dev"]), name) for name in JUDGED)
    figures.append((f"{slowest[1]} / validate dev", slowest[0], MOST_OF_VALIDATE))
    for size, target in TARGETS.items():
        if size in measured:
            build = measured[size]["build"]
            figures.append((f"build of fleet-{size} / R", ratio(build, measured[size]["R"]), target.ratio))
            figures.append((f"build of fleet-{size}, peak MiB", max(s.peak_mib for s in build), target.peak_mib))
            drawn = ratio(measured[size]["report"], measured[size]["validate"])
            figures.append((f"report of fleet-{size} / validate", drawn, MOST_OF_REPORT))
    for what, figure, most in figures:
        print(f"{what:40} {figure:8.2f} {most:8.2f}{'' if figure <= most else '  missed'}")
    print(f"{'--help / import click':40} {ratio(start_up['help'], start_up['click']):8.2f}")


def ratio(runs: list[Sample], others: list[Sample]) -> float:
    return median(run.cpu / other.cpu for run, other in zip(runs, others, strict=True))


if __name__ == "__main__":
    main()
