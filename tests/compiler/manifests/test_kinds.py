"""What gpuplan knows of kinds of objects, and that nothing is written of a kind that it does not know."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.catalog.operators import chart_kinds
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.manifests.kinds import (
    Care,
    Judgement,
    Kind,
    assume_kind,
    data as data_package,
    find_kind,
    get_kind,
    known_kinds,
)
from gpuplan.compiler.manifests.kinds.registry import by_name
from tests.every import every
from tests.subjects import A_CLUSTER

ROOT = Path(__file__).parents[3]
every_kind = every(known_kinds().values(), lambda kind: f"{kind.kind}.{kind.group}")
MODULES = sorted(Path(next(iter(data_package.__path__))).glob("*.py"))
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}


def test_an_object_of_an_unknown_kind_cannot_be_made() -> None:
    with pytest.raises(ValueError, match=r"no kind Widget\.example\.com in gpuplan/compiler/manifests/kinds/data/"):
        Manifest("x", WIDGET, about=A_CLUSTER, trace=None)


def test_people_may_write_objects_of_any_kind() -> None:
    assert Manifest("x", WIDGET, is_foreign=True, about=A_CLUSTER, trace=None).kind == "Widget"


def test_a_kind_is_one_of_its_group() -> None:
    assert find_kind("kyverno.io", "ClusterPolicy") is None
    assert get_kind("nvidia.com", "ClusterPolicy").group == "nvidia.com"


def test_an_unknown_kind_is_taken_for_one_that_nothing_is_known_of() -> None:
    widget = assume_kind("example.com", "Widget")

    assert widget.care == Care()
    assert {widget.added, widget.changed, widget.removed} == {Judgement.BY_FOLDER}
    assert widget.immutable == ()
    assert not widget.is_namespaced
    assert not widget.outlives_policy


def test_a_kind_is_said_once() -> None:
    with pytest.raises(ValueError, match="two kinds"):
        by_name((get_kind("", "Node"), get_kind("", "Node")))


@every_kind
def test_a_kind_says_where_its_facts_are_from(kind: Kind) -> None:
    file = r"[\w./-]+( \(\w+\))?"
    assert re.fullmatch(rf"([\w-]+/[\w-]+#[0-9]+; )?[\w-]+/[\w-]+: {file}(; {file})*", kind.source)


MAKERS = ("Deployment", "InferenceService", "LeaderWorkerSet", "StatefulSet")
"""What recreates its pods where they change."""


@every_kind
def test_a_kind_contradicts_itself_in_nothing(kind: Kind) -> None:
    fields = [*kind.fields, *(item.field for item in kind.immutable)]
    recreated = {field for field, disturbance in kind.fields.items() if disturbance is ChangeClass.RECREATE}

    assert len(fields) == len(set(fields)), "what cannot be changed needs no class of its own"
    assert kind.changed is not ChangeClass.RECREATE
    assert not recreated or kind.kind in MAKERS, "pods are recreated, not the object"
    assert ("SPACE" in kind.needed_until) == (kind.is_namespaced and bool(kind.needed_until))


def test_every_module_of_data_is_read() -> None:
    written = re.findall(r"^        kind=\"(\w+)\",$", "".join(path.read_text() for path in MODULES), re.MULTILINE)
    assert sorted(written) == sorted(kind.kind for kind in known_kinds().values())


def test_kinds_of_the_chart_are_where_they_are_known_to_be() -> None:
    for is_namespaced, names in ((False, chart_kinds().cluster), (True, chart_kinds().namespaced)):
        known = [kind for name in names if (kind := find_kind(*name))]
        assert known
        assert {kind.is_namespaced for kind in known} == {is_namespaced}


def the_example() -> Iterator[Mapping[str, dict[str, str]]]:
    for path in sorted((ROOT / "out").rglob("*.yaml")):
        body = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        if isinstance(body, dict) and "apiVersion" in body and "name" in body.get("metadata", {}):
            yield body


def test_all_that_is_written_of_the_example_is_of_a_known_kind_and_in_its_place() -> None:
    bodies = list(the_example())
    names = {(str(body["apiVersion"]).rpartition("/")[0], str(body["kind"])) for body in bodies}

    assert len(names) > 20
    assert {name for name in names if find_kind(*name) is None} == set()
    for body in bodies:
        kind = get_kind(str(body["apiVersion"]).rpartition("/")[0], str(body["kind"]))
        assert kind.is_namespaced is ("namespace" in body["metadata"]), body["metadata"]["name"]
