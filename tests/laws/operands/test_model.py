"""The catalog's operands read what the tables of the operator's source say: nothing more, nothing less."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from gpuplan.compiler.catalog.operands import operands
from tests.laws.operands.tables import RELEASES, operator

SOURCES = os.environ.get("GPUPLAN_SOURCES", "")
# How a field is read that the line does not name: by a method of its part, or by a function that takes the part.
_BY_OTHERS = r"|ImagePath\(|resolveDriverTag\(|\.\w+Enabled\(\)|IsHostMOFED\(\)|isCustomPluginConfigSet\("
by_release = pytest.mark.parametrize(
    ("release", "installed_by"), [(release, way) for release in RELEASES for way in ("helm", "olm")]
)


def _is_of(one: str, other: str) -> bool:
    """Whether one field holds the other, or both are the same."""
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def _without(fields: Iterable[str], known: Iterable[str]) -> set[str]:
    held = tuple(known)
    return {field for field in fields if not any(_is_of(field, each) for each in held)}


@by_release
def test_an_operand_reads_what_its_function_reads(release: str, installed_by: str) -> None:
    table = operator(release)["daemonSets"]
    model = {each.daemon_set: {read.key for read in each.reads} for each in operands(release, installed_by)}
    assert set(table) - set(model) == set()
    unknown = {(name, key) for name, found in table.items() for key in _without(found["reads"], model[name])}
    unread = {(name, key) for name, found in table.items() for key in _without(model[name], found["reads"])}
    assert (unknown, unread) == (set(), set())


@by_release
def test_an_operand_comes_and_goes_with_its_field(release: str, installed_by: str) -> None:
    table = operator(release)["daemonSets"]
    model = {each.daemon_set: {each.enabled} - {""} for each in operands(release, installed_by)}
    assert {name: set(found["enabledBy"]) for name, found in table.items()} == {name: model[name] for name in table}


@pytest.mark.skipif(not SOURCES, reason="GPUPLAN_SOURCES names no folder of mirrors: OWNER+NAME/repo")
@pytest.mark.parametrize("release", RELEASES)
def test_each_line_that_an_operand_cites_reads_its_field(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[3] / "tools"))
    from operator_tables import mirror

    @cache
    def lines(repository: str, tag: str, path: str) -> list[str]:
        return mirror(Path(SOURCES), repository, tag).text(path).splitlines()

    def reads(key: str, source: str) -> bool:
        repository, tag, path, line = re.split("[ :]", source)
        return bool(
            re.search(key.rpartition(".")[2] + _BY_OTHERS, lines(repository, tag, path)[int(line) - 1], re.IGNORECASE)
        )

    cited = [(each.daemon_set, read.key, read.source) for each in operands(release) for read in each.reads]
    assert [place for place in cited if not reads(*place[1:])] == []
