"""Published tables and traces that gpuplan is measured by, which lie in a folder beside the checkout.

The folder is that of the environment variable ``GPUPLAN_DATA``, or ``../shared/data``. Nothing of it is part of the
project; what needs it is skipped where it is not there.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from pathlib import Path

BESIDE = Path(__file__).parents[2] / "shared" / "data"


def find_folder() -> Path | None:
    """The folder, or None where there is none."""
    folder = Path(os.environ.get("GPUPLAN_DATA") or BESIDE)
    return folder.resolve() if folder.is_dir() else None


# --- openb: the trace of Alibaba's clusters that FGD was measured by (USENIX ATC'23), Apache-2.0 ------------------

SLICES = {143: 1, 286: 2, 429: 3, 572: 4, 999: 7}
"""How many compute slices hold so many thousandths of a GPU; three sevenths are 429 of them."""


def shared_pods(folder: Path) -> Counter[int]:
    """How many pods of openb's default list take a part of one GPU, by the compute slices that hold that."""
    with (folder / "openb" / "openb_pod_list_default.csv").open(newline="", encoding="utf-8") as lines:
        parts = [int(pod["gpu_milli"]) for pod in csv.DictReader(lines) if pod["num_gpu"] == "1"]
    return Counter(next(SLICES[most] for most in SLICES if part <= most) for part in parts if part < 1000)
