"""Published tables and traces that gpuplan is measured by, which lie in a folder beside the checkout.

The folder is that of the environment variable ``GPUPLAN_DATA``, or ``../shared/data``. Nothing of it is part of the
project; what needs it is skipped where it is not there.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from gpuplan.features.packing.sizing.needs import Need, Service, Throughput

BESIDE = Path(__file__).parents[2] / "shared" / "data"


def find_folder() -> Path | None:
    """The folder, or None where there is none."""
    folder = Path(os.environ.get("GPUPLAN_DATA") or BESIDE)
    return folder.resolve() if folder.is_dir() else None


# --- openb: the trace of Alibaba's clusters that FGD was measured by (USENIX ATC'23), Apache-2.0 ------------------

SLICES = {143: 1, 286: 2, 429: 3, 572: 4, 999: 7}
"""How many compute slices hold so many thousandths of a GPU; three sevenths are 429 of them."""

SHARED_PODS = Counter({1: 32, 2: 280, 3: 389, 4: 971, 7: 1406})
"""What `shared_pods` reads in the trace, for what needs these numbers alone."""


def shared_pods(folder: Path) -> Counter[int]:
    """How many pods of openb's default list take a part of one GPU, by the compute slices that hold that."""
    with (folder / "openb" / "openb_pod_list_default.csv").open(newline="", encoding="utf-8") as lines:
        parts = [int(pod["gpu_milli"]) for pod in csv.DictReader(lines) if pod["num_gpu"] == "1"]
    return Counter(next(SLICES[most] for most in SLICES if part <= most) for part in parts if part < 1000)


# --- ParvaGPU: inference services on MIG, with MPS inside of partitions (SC'24), MIT -------------------------------

SERVICES = (
    "bert",
    "densenet121",
    "densenet169",
    "densenet201",
    "inceptionv3",
    "mobilenetv2",
    "resnet101",
    "resnet152",
    "resnet50",
    "vgg16",
    "vgg19",
)
"""In the order of the columns of `SLO/*.csv`; each of these files has a line for each scenario."""
ITS_MOST_PROCESSES = 3
"""In one partition, as its README says; its own deployments have up to 5."""
LATENCY_MARGIN = 0.9 / 2
"""A batch takes less than this part of its objective for latency (src/configurator.c); requests wait in the rest."""


class Segment(NamedTuple):
    """A partition of one of its deployments: the GPU that it is on, the service, and how that runs there."""

    gpu: tuple[str, str]
    service: str
    slices: int
    batch: int
    processes: int


def measured(folder: Path, service: str) -> tuple[Throughput, ...]:
    """What its profiles say of a service.

    Their column `Throughput` is that of one process: ParvaGPU multiplies it by them (src/data_load.c), and a deployment
    reaches its requests only so (`test_parvagpu.py`). Here it is that of all of them. Latency is in seconds there.
    """
    with (folder / "parvagpu" / "prof_data" / f"{service}.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return tuple(
        Throughput(
            int(row["Mig instance"]),
            int(row["Batch size"]),
            int(row["Workload Number"]),
            float(row["Throughput"]) * int(row["Workload Number"]),
            float(row["Latency"]) * 1000,
        )
        for row in rows
        if float(row["Throughput"]) > 0
    )


def scenario(folder: Path, number: int, most_processes: int) -> tuple[Need, ...]:
    """The services of one of its six scenarios, with the latency that a batch may have."""
    rates, latencies = (_line(folder, f"SLO_{name}.csv", number) for name in ("req_rate", "latency"))
    return tuple(
        Need(
            None,
            "parvagpu",
            name,
            0,
            service=Service(float(rate), float(latency) * LATENCY_MARGIN, points, most_processes),
        )
        for name, rate, latency in zip(SERVICES, rates, latencies, strict=True)
        if rate != "N/A"
        for points in [measured(folder, name)]
    )


def _line(folder: Path, name: str, number: int) -> list[str]:
    with (folder / "parvagpu" / "SLO" / name).open(newline="", encoding="utf-8") as lines:
        return list(csv.reader(lines))[number - 1]


def deployment(folder: Path, number: int) -> tuple[Segment, ...]:
    """How it placed the services of a scenario itself."""
    place = folder / "parvagpu" / "deployment" / f"SLO{number}" / f"SLO{number}_ParvaGPU_deploy.csv"
    with place.open(newline="", encoding="utf-8") as lines:
        return tuple(
            Segment(
                (row["Num instance"], row["Num GPU"]),
                row["Model"],
                int(row["Instance size"]),
                int(row["Batch size"]),
                int(row["Num proc"]),
            )
            for row in csv.DictReader(lines)
        )
