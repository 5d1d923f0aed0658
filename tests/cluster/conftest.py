"""Control planes and example clusters for the tests, and the table of what was planned and what was observed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.example import ExampleCluster
from tests.cluster.programs import HOW_TO_RUN, are_asked_for, need_go
from tests.cluster.table import Table

_TABLE = pytest.StashKey[Table]()

NEWEST = "1.34"
"""The newest Kubernetes of the example clusters."""


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_TABLE] = Table()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without the programs the whole folder is skipped, so that one line for each file says so."""
    if not are_asked_for():
        for item in items:
            if item.path.is_relative_to(Path(__file__).parent):
                item.add_marker(pytest.mark.skip(reason=HOW_TO_RUN))


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
    started: dict[str, ExampleCluster] = {}
    with ExitStack() as stack:

        def cluster(name: str) -> ExampleCluster:
            if name not in started:
                started[name] = stack.enter_context(ExampleCluster.start(name))
            return started[name]

        yield cluster


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
