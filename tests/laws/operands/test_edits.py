"""`gpuplan diff` agrees with what was derived by hand from the operator's source: what rolls, and for whom."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from gpuplan.compiler.base.disturbance import ChangeClass, worst
from tests.cli.runs import run, scrub
from tests.every import Laws
from tests.laws.operands.edits import NODES, Edit, edits, write
from tests.laws.operands.tables import RELEASES, line_of

SOURCES = os.environ.get("GPUPLAN_SOURCES", "")
EDITS = edits()
CLASSES = {
    "nothing": ChangeClass.PLUGIN_RESTART,
    "wait": ChangeClass.PLUGIN_RESTART,
    "fail": ChangeClass.REPARTITION,
    "evicted": ChangeClass.REPARTITION,
}
each_edit = pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name.replace(" ", "-"))
laws = Laws[Edit]()


@pytest.fixture(autouse=True)
def scrubbed_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    scrub(monkeypatch)


@cache
def _said(name: str) -> Mapping[str, Any]:
    edit = next(each for each in EDITS if each.name == name)
    with TemporaryDirectory() as folder:
        write(edit.before, Path(folder) / "before")
        write(edit.after, Path(folder) / "after")
        done = run("-C", f"{folder}/after", "diff", "--against", f"{folder}/before", "-o", "json")
    assert done.code in {0, 1}, done.err
    said: Mapping[str, Any] = json.loads(done.out)
    assert said["not_compared"] == []
    return said


def _rolling(edit: Edit) -> Iterator[Mapping[str, Any]]:
    """The changes, and objects that none explains, that name DaemonSets."""
    for cluster in _said(edit.name)["clusters"]:
        for found in (*cluster["changes"], *cluster["objects"]):
            if found.get("daemonSets"):
                yield found


@each_edit
def test_of_each_edit_the_same_holds(edit: Edit) -> None:
    laws.assert_each(edit)


@laws
def the_daemon_sets_that_roll_are_those_of_the_source(edit: Edit) -> None:
    named = {name for found in _rolling(edit) for name in found["daemonSets"]}
    assert {"missing": edit.rolls - named, "too many": named - edit.rolls - edit.may} == {
        "missing": frozenset(),
        "too many": frozenset(),
    }


@laws
def a_node_is_said_to_be_disturbed_as_its_pods_are(edit: Edit) -> None:
    said = {
        pool: worst(
            ChangeClass(found["class"])
            for found in _rolling(edit)
            if found.get("nodes") and NODES[pool] in found["nodes"]["names"]
        )
        for pool in edit.pods
    }
    assert said == {pool: CLASSES[what] for pool, what in edit.pods.items()}


@laws
def where_no_pod_notices_none_is_said_to_wait(edit: Edit) -> None:
    waiting = [
        found["effect"]
        for found in _rolling(edit)
        if re.search("(?<!no )new ones wait", found.get("effect", "")) and set(edit.pods.values()) == {"nothing"}
    ]
    assert waiting == []


@laws
def a_change_explains_each_object_that_differs(edit: Edit) -> None:
    assert [found["name"] for cluster in _said(edit.name)["clusters"] for found in cluster["objects"]] == []


def test_there_is_an_edit_of_each_line_operand_and_way_of_installing() -> None:
    assert len({edit.name for edit in EDITS}) == len(EDITS) >= 40
    assert {line_of(edit.release) for edit in EDITS} == {line_of(release) for release in RELEASES}
    rolled = {name for edit in EDITS for name in edit.rolls}
    assert len(rolled) == 10
    installs = {edit.after["Cluster/c"]["gpuOperator"]["install"] for edit in EDITS}
    assert installs == {"helm", "olm", "external"}


@pytest.mark.skipif(not SOURCES, reason="GPUPLAN_SOURCES names no folder of mirrors: OWNER+NAME/repo")
@each_edit
def test_the_source_says_what_a_row_cites(edit: Edit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[3] / "tools"))
    from operator_tables import OPERATOR, mirror

    source = mirror(Path(SOURCES), OPERATOR, edit.release)
    lines = {cited.path: source.text(cited.path).splitlines() for cited in edit.sources}
    missing = [cited for cited in edit.sources if cited.words not in lines[cited.path][cited.line - 1]]
    assert missing == []
