"""What tests of the doors share: the program that watches commands, and a listener that nobody is to ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.platforms import a_platform
from tests.laws.doors.observing import Watcher
from tests.listener import Listener


@pytest.fixture(scope="session")
def watcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watcher]:
    with Watcher(a_platform(tmp_path_factory.mktemp("warm"))) as watcher:
        yield watcher


@pytest.fixture(scope="session")
def listener() -> Iterator[Listener]:
    with Listener() as listener:
        yield listener
