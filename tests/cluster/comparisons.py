"""Compares what is in files and in the plan with what an API server has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from tests.cluster.api import Api
from tests.cluster.delivery import MANAGER, identity
from tests.cluster.example import ExampleCluster
from tests.cluster.nodes import granted_but_not_published, planned_units, published_units

Record: TypeAlias = Callable[[str, object, object], None]

_OF_THE_SERVER = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")


def compare_units(record: Record, name: str, plan: Mapping[str, Any], api: Api) -> None:
    """Each pool's nodes together publish each unit as often as it is planned."""
    planned, published = planned_units(plan), published_units(api)
    for pool, resource in sorted(planned.keys() | published.keys()):
        scenario = f"{name}: {resource} of {pool or 'no pool'}"
        record(scenario, planned.get((pool, resource), 0), published.get((pool, resource), 0))


def compare_grants(record: Record, name: str, api: Api) -> None:
    """What quotas grant and pods ask for is something that nodes have."""
    record(f"{name}: resources granted that no node has", [], sorted(granted_but_not_published(api)))


def objects_in(folder: Path) -> Iterator[str]:
    """The identities of the Kubernetes objects in a folder's files, whether something delivers them or not."""
    for path in sorted(folder.rglob("*.yaml")):
        body = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        if isinstance(body, Mapping) and {"apiVersion", "kind", "metadata"} <= body.keys():
            yield identity(body)


def applied(cluster: ExampleCluster) -> set[str]:
    """The identities of the delivered objects that the server has, and has from us."""
    return {identity(body) for body in _written(cluster) if _applied_fields(_live(cluster, body))}


def changed_by_second_apply(cluster: ExampleCluster) -> list[str]:
    """The delivered objects that are not the same after another apply as before."""
    return [identity(body) for body in _written(cluster) if _is_changed(cluster, body)]


def rewritten(cluster: ExampleCluster) -> list[str]:
    """The fields of delivered objects that the server keeps in another form than they are written in."""
    return [
        f"{identity(body)}{route}"
        for body in _written(cluster)
        for route in _differences(body, _live(cluster, body) or {})
    ]


def _is_changed(cluster: ExampleCluster, body: Mapping[str, Any]) -> bool:
    """Whether an apply changes the object or whose its fields are.

    The server's version of the object alone does not tell: a controller may have written in between, and where one
    applies a part of the status in the same second as we apply the object, the next apply changes the order of their
    entries, which counts as a change (`sortEncodedManagedFields` of k8s.io/apimachinery, and
    `IgnoreManagedFieldsTimestampsTransformer` of k8s.io/apiserver, which compares them in order).
    """
    before = _live(cluster, body)
    after = cluster.api.apply(body, manager=MANAGER)
    if before is None:
        return True
    if before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]:
        return False
    return _applied_fields(before) != _applied_fields(after) or content(before) != content(after)


def _applied_fields(live: Mapping[str, Any] | None) -> list[object]:
    """The fields that are ours, since we have applied them."""
    entries = live["metadata"].get("managedFields", ()) if live else ()
    return [entry["fieldsV1"] for entry in entries if entry["manager"] == MANAGER and entry["operation"] == "Apply"]


def content(live: Mapping[str, Any]) -> dict[str, Any]:
    """What an object says, without what the server writes."""
    metadata = {key: value for key, value in live["metadata"].items() if key not in _OF_THE_SERVER}
    return {**{key: value for key, value in live.items() if key != "status"}, "metadata": metadata}


def _differences(written: object, kept: object, route: str = "") -> Iterator[str]:
    if isinstance(written, Mapping) and isinstance(kept, Mapping):
        for key, value in written.items():
            yield from _differences(value, kept.get(key), f"{route}.{key}")
    elif isinstance(written, Sequence) and not isinstance(written, str) and isinstance(kept, Sequence):
        if len(written) != len(kept):
            yield route
        for number, (one, other) in enumerate(zip(written, kept, strict=False)):
            yield from _differences(one, other, f"{route}[{number}]")
    elif written != kept:
        yield f"{route}: {written!r} is kept as {kept!r}"


def _written(cluster: ExampleCluster) -> Iterator[dict[str, Any]]:
    return (body for folder in cluster.folders for body in folder.objects)


def _live(cluster: ExampleCluster, body: Mapping[str, Any]) -> dict[str, Any] | None:
    return cluster.api.find(cluster.api.path_of(body))
