"""The API server refuses to change what the kinds say that nobody can change, and nothing else of what is written."""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.manifests import identity_of
from gpuplan.features.changes import locked_fields
from tests.cluster.api import Api, Refused
from tests.cluster.delivery import MANAGER
from tests.cluster.example import ExampleCluster

Route = tuple[str | int, ...]

ANOTHER_IS_NEW: Final = ("ConfigMap", "Job")
"""Their names have a digest of what they hold, so that there is no change."""


def test_of_what_is_written_only_fields_that_are_listed_are_refused(clusters: Callable[[str], ExampleCluster]) -> None:
    cluster = clusters("prod")
    refused: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    unlisted: list[tuple[str, Route]] = []
    for body in one_of_each_kind(cluster):
        for route, changed in changes(body):
            if is_taken(cluster.api, as_another(changed)) and not is_applied(cluster.api, changed):
                refused[body["kind"]].update(locked := locked_fields(identity_of(body), body, changed))
                unlisted += [] if locked else [(body["kind"], route)]

    assert unlisted == []
    assert {kind: sorted(map(".".join, routes)) for kind, routes in refused.items() if kind not in ANOTHER_IS_NEW} == {
        "ClusterRoleBinding": ["roleRef"],
        "LocalQueue": ["spec.clusterQueue"],
        "PersistentVolumeClaim": ["spec.accessModes", "spec.resources.requests.storage", "spec.storageClassName"],
        "PriorityClass": ["preemptionPolicy", "value"],
        "RoleBinding": ["roleRef"],
    }


def one_of_each_kind(cluster: ExampleCluster) -> Iterator[Mapping[str, Any]]:
    """The largest, which has most fields."""
    bodies = (body for folder in cluster.folders for body in folder.objects)
    largest = {body["kind"]: body for body in sorted(bodies, key=lambda body: len(json.dumps(body)))}
    return iter(largest.values())


def changes(body: Mapping[str, Any]) -> Iterator[tuple[Route, dict[str, Any]]]:
    """The object with one value changed at a time, beside its metadata."""
    for route, value in leaves({key: part for key, part in body.items() if key not in _NAMES}, ()):
        for other in others(value):
            changed: Any = copy.deepcopy(dict(body))
            inner = changed
            for key in route[:-1]:
                inner = inner[key]
            inner[route[-1]] = other
            yield route, changed


_NAMES: Final = ("apiVersion", "kind", "metadata")


def leaves(value: object, route: Route) -> Iterator[tuple[Route, object]]:
    """Those of the first item of each list: the others are of the same kind."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, (*route, key))
    elif isinstance(value, list):
        for part in value[:1]:
            yield from leaves(part, (*route, 0))
    else:
        yield route, value


def others(value: object) -> tuple[object, ...]:
    """Values of the same type: names, amounts, and members of sets that some fields have."""
    match value:
        case bool():
            return (not value,)
        case int():
            return (value + 1,)
        case str():
            return tuple({f"{value}x", "1Mi", "PreemptLowerPriority", "ReadOnlyMany"} - {value})
        case _:
            return ()


def as_another(body: Mapping[str, Any]) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "name": f"{body['metadata']['name']}-x"}}


def is_taken(api: Api, body: Mapping[str, Any]) -> bool:
    try:
        api.create(body, dry_run=True)
    except Refused:
        return False
    return True


def is_applied(api: Api, body: Mapping[str, Any]) -> bool:
    try:
        api.apply(body, manager=MANAGER, force=True, dry_run=True)
    except Refused:
        return False
    return True
