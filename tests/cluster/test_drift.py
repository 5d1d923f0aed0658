"""What an API server returns after a sync is what was written, whatever else is there; what is changed then is told."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from gpuplan.adoption.kinds import COLLECTED
from gpuplan.pipeline.drifting import drift
from tests.cluster.comparisons import Record
from tests.cluster.example import REPOSITORY, ExampleCluster


def test_after_a_sync_nothing_differs(example: ExampleCluster, record: Record) -> None:
    files = dict(dump(example))
    for n, b in files.items():
        Path(f"/tmp/drift/{example.name}-{n}").write_bytes(b)
    found = drift(files, REPOSITORY, example.name)
    record(f"{example.name}: differences after a sync", [], [f"{item.title} {item.path} {item.live}" for item in found.drifts])
    record(f"{example.name}: not compared", [], [f"{item}" for item in found.unjudged])


def dump(example: ExampleCluster) -> Iterator[tuple[str, bytes]]:
    """What kubectl prints of each kind that there is, Secrets aside, with who owns which field."""
    names = example.control_plane.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    wanted = [n for n in names if n not in ("secrets", "events", "events.events.k8s.io", "leases.coordination.k8s.io")]
    yield (
        "live.json",
        example.control_plane.kubectl("get", ",".join(wanted), "-A", "-o", "json", "--show-managed-fields").encode(),
    )
