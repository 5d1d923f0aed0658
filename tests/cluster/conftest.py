"""Control planes and example clusters for the tests, and the table of what was planned and what was observed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.example import ExampleCluster
from tests.cluster.programs import HOW_TO_RUN, are_asked_for, need_go
from tests.cluster.strictly import Server
from tests.cluster.table import Table

T = TypeVar("T")

_TABLE = pytest.StashKey[Table]()

NEWEST = "1.34"
"""The newest Kubernetes of the example clusters."""


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_TABLE] = Table()


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Without the programs each file is skipped as a whole: one line says so, not one for each test."""
    return None if are_asked_for() else _SkippedModule.from_parent(parent, path=module_path)


class _SkippedModule(pytest.Module):
    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        pytest.skip(HOW_TO_RUN, allow_module_level=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    table = config.stash[_TABLE]
    if table.rows:
        terminalreporter.section("planned and observed")
        for line in table.lines():
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def record(pytestconfig: pytest.Config) -> Callable[[str, object, object], None]:
    """Writes a row of the table, and asserts that what was observed is what was planned."""
    return pytestconfig.stash[_TABLE].record


@pytest.fixture(scope="session")
def clusters() -> Iterator[Callable[[str], ExampleCluster]]:
    """The example clusters by name, each started when it is first asked for."""
    need_go()
    with ExitStack() as stack:
        yield once(lambda name: stack.enter_context(ExampleCluster.start(name)))


def once(start: Callable[[str], T]) -> Callable[[str], T]:
    """The same by name, each started when it is first asked for; one that does not start is not tried again."""
    started: dict[str, T] = {}
    failed: dict[str, Exception] = {}

    def get(name: str) -> T:
        if name in failed:
            pytest.fail(f"{name} has not started before: {failed[name]}", pytrace=False)
        if name not in started:
            try:
                started[name] = start(name)
            except Exception as error:
                failed[name] = error
                raise
        return started[name]

    return get


@pytest.fixture(params=["dev", "openshift", "prod"])
def example(request: pytest.FixtureRequest, clusters: Callable[[str], ExampleCluster]) -> Iterator[ExampleCluster]:
    """Each example cluster; `@pytest.mark.parametrize("example", ["prod"], indirect=True)` is one of them."""
    cluster = clusters(request.param)
    yield cluster
    cluster.control_plane.assert_running()


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """An empty control plane."""
    need_go()
    with ControlPlane.start(NEWEST) as started:
        yield started


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Server]]:
    """By a release of the GPU Operator, a control plane that has its definitions, and those of all kinds."""
    need_go()
    with ExitStack() as stack:

        def start(release: str) -> Server:
            plane = stack.enter_context(ControlPlane.start(NEWEST))
            return Server.prepare(plane, release, tmp_path_factory.mktemp("chart"))

        yield once(start)
