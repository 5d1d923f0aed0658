"""What people read of an import."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import jsonschema

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.pipeline import Report
from gpuplan.features.live.drafts import Draft
from gpuplan.features.live.drifting import Differs, Drift, NextSync
from gpuplan.features.live.first_sync import Effect, FirstSync
from gpuplan.features.live.importing import Difference, Import
from gpuplan.features.live.views import files, import_findings, summary
from gpuplan.terminal.schemas import schema
from gpuplan.terminal.text import Theme

CHANGED = Drift(
    cluster="lab",
    differs=Differs.FIELD,
    title="Namespace vision",
    path="metadata.labels.a",
    line=0,
    written="new",
    live="old",
    is_written=True,
    has_live=True,
    file="",
    dump="",
    sources=(),
    owner=None,
    next_sync=NextSync.OVERWRITES,
    applier=None,
    change_class=ChangeClass.METADATA,
)


def a_sync(
    *absent: Drift, added: Mapping[str, int] = MappingProxyType({}), annotated: int = 0, **changed: Drift
) -> FirstSync:
    by_effect = {effect: (changed[effect.name.lower()],) if effect.name.lower() in changed else () for effect in Effect}
    return FirstSync(dict.fromkeys(Effect, ()), by_effect, absent, added, annotated)


MADE = Import(
    Report((), (), ("lab",), 1),
    "lab",
    {"overlays/lab/cluster.yaml": "kind: Cluster\n", "overlays/lab/pools/a.yaml": "kind: Pool\n"},
    (
        Draft("Cluster", "lab", {}),
        Draft("Pool", "a", {}),
        Draft("PriorityClass", "b", {}),
        Draft("PriorityClass", "c", {}),
    ),
    first_sync=a_sync(),
)


def test_what_was_made_and_what_comes_next() -> None:
    assert summary(MADE, dry=False).splitlines() == [
        "created overlays/lab/cluster.yaml",
        "created overlays/lab/pools/a.yaml",
        "cluster `lab`: 1 Cluster, 1 Pool and 2 PriorityClasses",
        "the first sync changes nothing else that the dump shows",
        "next: gpuplan validate -c lab && gpuplan build -c lab",
    ]


def test_a_trial_says_what_would_be_written() -> None:
    assert summary(MADE, dry=True).startswith("would create overlays/lab/cluster.yaml\n")
    assert "next:" not in summary(MADE, dry=True)
    assert files(MADE) == "# overlays/lab/cluster.yaml\nkind: Cluster\n---\n# overlays/lab/pools/a.yaml\nkind: Pool\n"


def test_the_first_sync_is_told_worst_first_and_what_is_refused_there() -> None:
    fails = CHANGED._replace(title="LocalQueue vision/default", path="spec.clusterQueue", next_sync=NextSync.FAILS)
    refused = "LocalQueue vision/default spec.clusterQueue: old becomes new"
    sync = a_sync(changes=CHANGED, stops=fails, added={"ConfigMap": 1}, annotated=2)
    assert summary(replace(MADE, first_sync=sync), dry=False).splitlines()[3:9] == [
        "the first sync stops work:",
        f"  {refused}, which the API server refuses: it cannot be changed",
        "the first sync changes:",
        "  Namespace vision metadata.labels.a: old becomes new",
        "the first sync adds 1 ConfigMap",
        "the first sync adds annotations and labels of its own to 2 objects",
    ]


def test_json_has_the_effects_as_the_text_has_them() -> None:
    fails = CHANGED._replace(title="LocalQueue vision/default", path="spec.clusterQueue", next_sync=NextSync.FAILS)
    absent = CHANGED._replace(differs=Differs.NODE, title="Node a", path="", next_sync=NextSync.NOTHING)
    sync = a_sync(absent, changes=CHANGED, stops=fails, added={"ConfigMap": 1}, annotated=2)
    body = json.loads(import_findings(replace(MADE, first_sync=sync), "json", Theme()))

    jsonschema.validate(body, schema("import"))
    jsonschema.validate(body, schema("findings"))
    told = body["first_sync"]
    assert [item["object"] for item in told["absent"]] == ["Node a"]
    assert [(item["effect"], [one["object"] for one in item["changes"]]) for item in told["effects"]] == [
        ("stops work", ["LocalQueue vision/default"]),
        ("takes away", []),
        ("repartitions", []),
        ("restarts", []),
        ("changes", ["Namespace vision"]),
    ]
    for item in (*told["absent"], *(one for effect in told["effects"] for one in effect["changes"])):
        jsonschema.validate(item, {**schema("drift"), "$ref": "#/definitions/difference"})
    assert (told["adds"], told["annotates"]) == ([{"kind": "ConfigMap", "count": 1}], 2)
    assert sync.is_refused
    assert not a_sync(changes=CHANGED).is_refused


def test_json_says_nothing_of_a_sync_of_policies_with_errors() -> None:
    body = json.loads(import_findings(replace(MADE, first_sync=None), "json", Theme()))
    jsonschema.validate(body, schema("import"))
    assert body["first_sync"] is None


def test_nodes_that_are_not_there_are_no_change_of_a_sync() -> None:
    named = CHANGED._replace(differs=Differs.NODE, title="Node a", path="", next_sync=NextSync.NOTHING)
    counted = named._replace(title="Pool a", note="pool `a` has 0 nodes in the cluster, not 1")
    told = summary(replace(MADE, first_sync=a_sync(named, counted)), dry=False).splitlines()
    assert told[3:6] == [
        "Node a is not in the dump",
        "pool `a` has 0 nodes in the cluster, not 1",
        "the first sync changes nothing else that the dump shows",
    ]


def test_policies_with_errors_say_nothing_of_a_sync() -> None:
    assert "nothing is known of a sync" in summary(replace(MADE, first_sync=None), dry=False)


def test_what_is_there_and_says_something_else_is_named() -> None:
    left = replace(MADE, files={}, differing=(Difference("overlays/lab/pools/a.yaml", "Pool a"),))
    assert "overlays/lab/pools/a.yaml: Pool a says something else than the dump\n" in summary(left, dry=False)
    assert "nothing to write" in summary(left, dry=False)


def test_a_dump_of_another_cluster_is_told() -> None:
    assert "the dump is of cluster `prod`, " in summary(replace(MADE, told_name="prod"), dry=False)
    assert "the dump is of" not in summary(replace(MADE, told_name="lab"), dry=False)


def test_of_a_dump_that_cannot_be_read_nothing_is_made() -> None:
    unread = replace(MADE, files={}, drafts=(), first_sync=None)
    assert summary(unread, dry=False) == "nothing was made: a part of the dump cannot be read\n"
