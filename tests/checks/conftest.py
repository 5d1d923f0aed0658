"""A rule's folder is collected like a module, `pytest tests/checks/GPU203`: each case in it is a test."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

IS_RULE = re.compile(r"GPU\d{3}").fullmatch


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Directory | None:
    return RuleFolder.from_parent(parent, path=path) if IS_RULE(path.name) else None


class RuleFolder(pytest.Directory):
    """The cases of a rule."""

    def collect(self) -> Iterator[pytest.Item]:
        for path in sorted(self.path.iterdir()):
            if path.name.startswith(("fail-", "ok-")):
                yield Case.from_parent(self, name=path.name, path=path)


class Case(pytest.Item):
    """A repository, or two, with marks on the lines that findings point at."""

    def runtest(self) -> None:
        from tests.checks.test_cases import check_case

        with tempfile.TemporaryDirectory() as folder:
            check_case(self.path, Path(folder))
