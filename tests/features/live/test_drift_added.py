"""Fields that others add to gpuplan's objects: those that take one out of force are told with who added them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from gpuplan.compiler.manifests.templates import read_rows
from gpuplan.features.live.drifting import Differs, Drift, NextSync, compare_with
from gpuplan.features.live.drifting.added import ROWS
from tests.features.live.cluster_mutations import ME, at, put, title
from tests.features.live.dumps import Body, compared, dump_of, example, synced

VALUES: Mapping[str, Any] = {
    "admissionChecks": ["theirs"],
    "admissionChecksStrategy": {"admissionChecks": [{"name": "theirs"}]},
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
    "deletionTimestamp": "2026-11-30T10:00:00Z",
    "fairSharing": {"weight": "3"},
    "globalDefault": True,
    "matchConditions": [{"name": "never", "expression": "false"}],
    "nodeLabels": {"disk": "ssd"},
    "nodeTaints": [{"key": "theirs", "effect": "NoSchedule"}],
    "openshift.io/node-selector": "disk=ssd",
    "parentName": "theirs",
    "paused": True,
    "pod-security.kubernetes.io/enforce-version": "v1.20",
    "scheduler.alpha.kubernetes.io/node-selector": "disk=ssd",
    "scopeSelector": {"matchExpressions": [{"scopeName": "BestEffort", "operator": "Exists"}]},
    "scopes": ["BestEffort"],
    "stopPolicy": "Hold",
    "syncWindows": [{"kind": "deny", "schedule": "* * * * *", "duration": "1h"}],
    "topologyName": "theirs",
}
CASES = [
    pytest.param(kind.partition(".")[0], row, id=f"{kind} {row['at'][-1]}")
    for kind, rows in read_rows(ROWS).items()
    for row in rows
    if "fluxcd.io" not in kind  # the example has Argo CD; `test_drift_drawn.py` draws clusters with Flux
]


def alone(live: Body, cluster: str = "prod") -> tuple[Drift, ...]:
    return compare_with(example(cluster), dump_of([live], alone=True)).drifts


def without(kind: str, route: tuple[str, ...]) -> tuple[str, Body]:
    """An object of the example that has not got a field."""
    for cluster in ("prod", "dev", "openshift"):
        for body in synced(example(cluster)):
            if body["kind"] == kind or (kind == "*" and body["kind"] == "ClusterQueue"):
                found = at(body, *route)
                if found is None or route[-1] == "nodeLabels":
                    return cluster, body
    raise LookupError(kind)


@pytest.mark.parametrize(("kind", "row"), CASES)
def test_a_field_that_takes_one_of_our_objects_out_of_force(kind: str, row: Mapping[str, Any]) -> None:
    route = tuple(row["at"])
    cluster, body = without(kind, route)
    live, value = copy.deepcopy(body), VALUES[route[-1]]
    if "whole" in row:
        [(key, value)] = value.items()
        route = (*route, key)
    put(live, value, *route)

    [drift] = alone(live, cluster)

    assert (drift.differs, drift.title, drift.live) == (Differs.FIELD, title(body), value)
    assert route[-1] in drift.path
    assert not drift.is_written
    assert drift.owner is not None
    assert drift.owner.manager == ME
    assert drift.note == row["effect"]
    assert drift.sources
    assert drift.next_sync is (NextSync.OVERWRITES if "whole" in row else NextSync.NOTHING)


@pytest.mark.parametrize(("kind", "row"), [case for case in CASES if "whole" not in str(case.values[1])])
def test_a_value_that_changes_nothing_is_theirs(kind: str, row: Mapping[str, Any]) -> None:
    route = tuple(row["at"])
    cluster, body = without(kind, route)
    for idle in {"", row.get("idle", "")}:
        live = copy.deepcopy(body)
        put(live, idle, *route)

        assert alone(live, cluster) == ()


def test_other_fields_of_our_objects_are_theirs() -> None:
    for cluster in ("prod", "dev", "openshift"):
        bodies = copy.deepcopy(synced(example(cluster)))
        for body in bodies:
            put(body, "x", "metadata", "annotations", "theirs.example/note")
            put(body, "x", "metadata", "labels", "theirs.example/mark")

        assert compared(bodies, cluster).drifts == ()


def test_a_field_that_was_added_is_of_the_class_of_its_removal() -> None:
    queue = copy.deepcopy(next(body for body in synced(example("prod")) if body["kind"] == "PriorityClass"))
    put(queue, True, "globalDefault")

    [drift] = alone(queue)

    assert drift.change_class.value != "none"
