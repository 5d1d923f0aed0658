"""An API server takes all that platforms are built into, each object as its Application applies it, and nothing is null.

The GPU Operator's chart is that of v25.3.4, which comes with its module, or of each line where `GPUPLAN_SOURCES` names
mirrors. `make proof` has 200 drawn platforms.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.cluster.charts import MIRRORS, of_the_module, rendered, the
from tests.cluster.conftest import NEWEST, once
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kueue_controller import kueue_release
from tests.cluster.lab import RELEASE
from tests.cluster.programs import need_go
from tests.cluster.proof import IS_ASKED_FOR
from tests.cluster.strictly import Item, Server, Written, drawn, example, nulls, write
from tests.cluster.test_charts import OPERATORS

Record = Callable[[str, object, object], None]

CLUSTERS: Final = ("dev", "openshift", "prod")
DRAWN: Final = 200 if IS_ASKED_FOR else 20
LINES: Final = OPERATORS if MIRRORS else (RELEASE,)
each_line = pytest.mark.parametrize("release", LINES)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Server]]:
    """A control plane for each release of the GPU Operator, whose definitions it has."""
    need_go()
    planes: list[ControlPlane] = []

    def start(release: str) -> Server:
        planes.append(ControlPlane.start(NEWEST))
        return Server.prepare(planes[-1], release, tmp_path_factory.mktemp("chart"))

    yield once(start)
    for plane in planes:
        plane.stop()


@cache
def platforms(release: str) -> dict[str, Written]:
    """The example's clusters and drawn ones with a release, by name, but for those that ask for what it lacks."""
    asked = [*((name, name, example(name)) for name in CLUSTERS), *drawn(DRAWN)]
    built = {name: write(name, cluster, files, release) for name, cluster, files in asked}
    return {name: found for name, found in built.items() if found}


@each_line
def test_nearly_all_platforms_are_there(release: str) -> None:
    assert len(platforms(release)) >= 0.95 * (DRAWN + len(CLUSTERS))


@each_line
def test_nothing_that_is_written_is_null(release: str, record: Record) -> None:
    items = [item for found in platforms(release).values() for item in found.items]
    record(f"GPU Operator {release}: null in {len(items)} objects", [], nulls(items))


@each_line
def test_nothing_that_is_written_is_refused(
    release: str, servers: Callable[[str], Server], record: Record
) -> None:
    items = [item for found in platforms(release).values() for item in found.items]
    record(f"GPU Operator {release}: refused of {len(items)} objects", [], servers(release).refusals(items))


@each_line
def test_nothing_that_the_operators_chart_makes_of_the_values_is_refused(
    release: str, servers: Callable[[str], Server], record: Record
) -> None:
    server = servers(release)
    installed = [(name, found.operator) for name, found in platforms(release).items() if found.operator]
    items = server.render(installed)
    title = f"GPU Operator {release}: refused of {len(items)} objects of its chart, by {len(installed)} platforms"
    record(title, [], server.refusals(items))
