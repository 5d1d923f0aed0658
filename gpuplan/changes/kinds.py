"""What a change of a Kubernetes object does, by its kind and the fields that differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, assert_never

from gpuplan.changes.bodies import Body, items, section
from gpuplan.changes.model import ChangeClass, worst
from gpuplan.changes.node_rules import (
    class_of_arrival,
    class_of_departure,
    class_of_labels,
    class_of_rules,
    rules_of,
)
from gpuplan.manifests import Identity
from gpuplan.manifests.kinds import Disturbance, Judgement, Kind, Route, assume_kind, get_kind, route_of
from gpuplan.planning.grants import SYSTEM_NAMESPACE
from gpuplan.planning.plan import TENANT_LABEL, Stage


def class_of(folder: str, identity: Identity, before: Body | None, after: Body | None) -> ChangeClass:
    """How far a change disturbs: one is None where the object comes or goes. Labels and annotations alone do not."""
    if (identity.kind == "ConfigMap" and identity.name.startswith(_METRICS)) or _guards(before or after or {}):
        return ChangeClass.NONE if before == after else ChangeClass.METADATA
    kind = assume_kind(identity.group, identity.kind)
    if before is None or after is None:
        return _judge(kind.added if before is None else kind.removed, folder, before, after)
    if before == after:
        return ChangeClass.NONE
    if locked_fields(identity, before, after):
        return worst((ChangeClass.RECREATE, _class_of_fields(kind, folder, before, after)))
    return _class_of_fields(kind, folder, before, after)


def _guards(body: Body) -> bool:
    """Whether an object runs when something is synced, and is none of what is applied."""
    annotations = section(section(body, "metadata"), "annotations")
    return "argocd.argoproj.io/hook" in annotations or str(section(body, "metadata").get("name")).startswith(_GUARD)


_GUARD: Final = "gpuplan-guard"
_METRICS: Final = "gpuplan-dcgm-metrics-"
"""Begins the name of the DCGM exporter's list of metrics, which hands out no GPUs."""


# --- Fields ------------------------------------------------------------------------------------------------------


def locked_fields(identity: Identity, before: Body, after: Body) -> tuple[Route, ...]:
    """The fields that differ and cannot be changed."""
    return tuple(
        item.route
        for item in assume_kind(identity.group, identity.kind).immutable
        if (not item.where or value_of(before, route_of(item.where)))
        and value_of(before, item.route, item.default) != value_of(after, item.route, item.default)
    )


def value_of(body: Body, route: Route, default: object = None) -> object:
    """What is at the end of a route; the default where nothing is."""
    found: object = body
    for key in route:
        found = found.get(key) if isinstance(found, Mapping) else None
    return default if found is None else found


def _class_of_fields(kind: Kind, folder: str, before: Body, after: Body) -> ChangeClass:
    routes = kind.routes
    if _LABELS not in routes:
        before, after = _bare(before), _bare(after)
    disturbances = {routes.get(route, kind.changed) for route in _differing(routes, before, after)}
    return worst((ChangeClass.METADATA, *(_judge(item, folder, before, after) for item in disturbances)))


_LABELS: Final = ("metadata", "labels")


def _bare(body: Body) -> Body:
    metadata = {key: value for key, value in section(body, "metadata").items() if key not in ("labels", "annotations")}
    return {**body, "metadata": metadata}


def _differing(routes: Mapping[Route, Disturbance], before: Body, after: Body, route: Route = ()) -> Iterator[Route]:
    """The nearest of these routes to each field that differs, and the empty one where there is none.

    What has such fields below it counts as empty where it is absent, and one of these that is false as absent. Null is
    a value: in a patch it removes a field.
    """
    for key in {*before, *after}:
        field = (*route, key)
        if any(len(other) > len(field) and other[: len(field)] == field for other in routes):
            inner = _differing(routes, section(before, key), section(after, key), field)
            yield from (found if found in routes else route for found in inner)
        elif field in routes:
            if _asserted(before, key) != _asserted(after, key):
                yield field
        elif before.get(key, _ABSENT) != after.get(key, _ABSENT):
            yield route


_ABSENT: Final = object()


def _asserted(body: Body, key: str) -> object:
    found = body.get(key, _ABSENT)
    return _ABSENT if found is False else found


# --- Kinds that nothing else is known of -------------------------------------------------------------------------

_BY_STAGE: Final = {
    Stage.GPU_OPERATOR: ChangeClass.PLUGIN_RESTART,
    Stage.PARTITIONS: ChangeClass.REPARTITION,
    Stage.SCHEDULING: ChangeClass.ADMISSION,
    Stage.QUEUES: ChangeClass.PREEMPTION_ORDER,
    Stage.NAMESPACES: ChangeClass.ADMISSION,
    Stage.MONITORING: ChangeClass.METADATA,
    Stage.WORKLOADS: ChangeClass.RECREATE,
}


def class_of_stage(folder: str) -> ChangeClass:
    """What a change that nothing else is known of may do, by its folder; of what syncs folders, nothing."""
    stage = folder.partition("/")[0]
    return _BY_STAGE[Stage(stage)] if stage in _STAGES else ChangeClass.METADATA


_STAGES: Final = frozenset(stage.value for stage in Stage)


def _by_folder(folder: str, before: Body | None, after: Body | None) -> ChangeClass:
    found = class_of_stage(folder)
    if before is None:
        is_work = folder.partition("/")[0] == Stage.WORKLOADS
        return ChangeClass.QUOTA if is_work else min(found, ChangeClass.ADMISSION, key=lambda item: item.rank)
    return ChangeClass.DESTRUCTIVE if after is None and found is not ChangeClass.METADATA else found


# --- Nodes -------------------------------------------------------------------------------------------------------


def _node_rules(before: Body | None, after: Body | None) -> ChangeClass:
    return class_of_rules(rules_of(before or {}), rules_of(after or {}))


def _node_labels(before: Body | None, after: Body | None) -> ChangeClass:
    old, new = (section(section(body or {}, "metadata"), "labels") for body in (before, after))
    if before is None:
        return class_of_arrival(new)
    return class_of_departure(old) if after is None else class_of_labels(old, new)


# --- The GPU Operator --------------------------------------------------------------------------------------------


def class_of_settings(before: Body, after: Body) -> ChangeClass:
    """Of the chart's values, which say what the ClusterPolicy's spec is to be."""
    policy = get_kind("nvidia.com", "ClusterPolicy")
    return _class_of_fields(policy, Stage.GPU_OPERATOR.value, {"spec": before}, {"spec": after})


# --- Queues ------------------------------------------------------------------------------------------------------


def _selected_namespaces(before: Body | None, after: Body | None) -> ChangeClass:
    return ChangeClass.QUOTA if _selected(before) <= _selected(after) else ChangeClass.ADMISSION


def _selected(body: Body | None) -> frozenset[str]:
    """The namespaces that a queue takes work of, by name."""
    selector = section(section(body or {}, "spec"), "namespaceSelector")
    found = items(selector.get("matchExpressions"))
    return frozenset(str(name) for item in found if isinstance(item, Mapping) for name in items(item.get("values")))


def _stopped_work(after: Body | None) -> ChangeClass:
    """`HoldAndDrain` evicts what was admitted, `Hold` lets it run (`clusterqueue_types.go`, `localqueue_types.go`)."""
    is_drained = section(after or {}, "spec").get("stopPolicy") == "HoldAndDrain"
    return ChangeClass.RECREATE if is_drained else ChangeClass.ADMISSION


# --- Namespaces --------------------------------------------------------------------------------------------------


def _tenant_labels(before: Body | None, after: Body | None) -> ChangeClass:
    old, new = (section(section(body or {}, "metadata"), "labels") for body in (before, after))
    keys = {key for key in {*old, *new} if old.get(key) != new.get(key)}
    judged = any(key == TENANT_LABEL or key.startswith("pod-security.kubernetes.io/") for key in keys)
    return ChangeClass.ADMISSION if judged else ChangeClass.METADATA


def _own_namespace(body: Body | None) -> ChangeClass:
    """In our own there is nothing but what tenants are granted, for admission to read."""
    is_own = section(body or {}, "metadata").get("name") == SYSTEM_NAMESPACE
    return ChangeClass.ADMISSION if is_own else ChangeClass.DESTRUCTIVE


def _operator_files(folder: str, before: Body | None, after: Body | None) -> ChangeClass:
    """Parameters of admission are lists: where one only grows, nobody may do less than before."""
    if runs_mps(before or {}) or runs_mps(after or {}):
        return ChangeClass.REPARTITION
    if folder.partition("/")[0] != Stage.NAMESPACES:
        return class_of_stage(folder)
    old, new = ({key: _lines(text) for key, text in section(body or {}, "data").items()} for body in (before, after))
    if old == new:
        return ChangeClass.METADATA
    grows = old.keys() == new.keys() and all(old[key] <= new[key] for key in old)
    return ChangeClass.QUOTA if grows else ChangeClass.ADMISSION


def runs_mps(config_map: Body) -> bool:
    """Whether it holds the device plugin's files, and one of them shares GPUs by MPS: its daemons start with it."""
    name = str(section(config_map, "metadata").get("name"))
    files = section(config_map, "data").values()
    return name.startswith(_PLUGIN) and any("\n  mps:" in str(text) for text in files)


_PLUGIN: Final = "gpuplan-device-plugin-"


def _lines(text: object) -> frozenset[str]:
    return frozenset(str(text).splitlines())


# --- What syncs --------------------------------------------------------------------------------------------------


def _charts(before: Body | None, after: Body | None) -> ChangeClass:
    return ChangeClass.METADATA if _charts_of(before) == _charts_of(after) else ChangeClass.PLUGIN_RESTART


def _charts_of(body: Body | None) -> list[object]:
    sources = items(section(body or {}, "spec").get("sources"))
    charts = [source for source in sources if isinstance(source, Mapping) and "chart" in source]
    return [(source.get("chart"), source.get("targetRevision")) for source in charts]


def _synced_objects(body: Body | None) -> ChangeClass:
    """With a finalizer it takes along what it wrote, as one of Flux does that prunes."""
    has_finalizers = bool(section(body or {}, "metadata").get("finalizers"))
    prunes = bool(section(body or {}, "spec").get("prune"))
    return ChangeClass.DESTRUCTIVE if has_finalizers or prunes else ChangeClass.METADATA


# --- Judgements --------------------------------------------------------------------------------------------------


def _judge(disturbance: Disturbance, folder: str, before: Body | None, after: Body | None) -> ChangeClass:
    return disturbance if isinstance(disturbance, ChangeClass) else _weigh(disturbance, folder, before, after)


def _weigh(judgement: Judgement, folder: str, before: Body | None, after: Body | None) -> ChangeClass:
    match judgement:
        case Judgement.ADMISSION_UNLESS_WATCHING:
            is_watching = class_of_stage(folder) is ChangeClass.METADATA
            return ChangeClass.METADATA if is_watching else ChangeClass.ADMISSION
        case Judgement.BY_FOLDER:
            return _by_folder(folder, before, after)
        case Judgement.CHARTS:
            return _charts(before, after)
        case Judgement.NODE_LABELS:
            return _node_labels(before, after)
        case Judgement.NODE_RULES:
            return _node_rules(before, after)
        case Judgement.OPERATOR_FILES:
            return _operator_files(folder, before, after)
        case Judgement.OWN_NAMESPACE:
            return _own_namespace(before)
        case Judgement.SELECTED_NAMESPACES:
            return _selected_namespaces(before, after)
        case Judgement.STOPPED_WORK:
            return _stopped_work(after)
        case Judgement.SYNCED_OBJECTS:
            return _synced_objects(before)
        case Judgement.TENANT_LABELS:
            return _tenant_labels(before, after)
        case _:
            assert_never(judgement)
