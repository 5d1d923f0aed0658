"""The class of a change of a Kubernetes object, by the object's kind and the fields that differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from gpuplan.compiler.backends.gpu_operator import device_plugin
from gpuplan.compiler.base.disturbance import ChangeClass, worst
from gpuplan.compiler.base.plain import Body, items, mappings, section, value_of, without
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog.operands import Restart, Setup, is_left_alone, rolls, sections
from gpuplan.compiler.catalog.operators import OPERATORS_CHART, lines
from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.manifests.kinds import Disturbance, Immutable, Judgement, Kind, Route, assume_kind, route_of
from gpuplan.compiler.manifests.quantities import parse_quantity
from gpuplan.compiler.planning.grants import RDMA_LABEL, SYSTEM_NAMESPACE
from gpuplan.compiler.planning.plan import TENANT_LABEL, Stage
from gpuplan.features.changes.node_rules import class_of_arrival, class_of_labels, class_of_rules, rules_of


class Pair(NamedTuple):
    """An object, or file, of a folder on both sides; one is None where it comes or goes."""

    folder: str
    identity: Identity
    before: Body | None
    after: Body | None

    def both(self, *route: str) -> tuple[Body, Body]:
        """A section of each."""
        return section(self.before, *route), section(self.after, *route)


def class_of(pair: Pair) -> ChangeClass:
    """Return the class of a change. Labels and annotations alone disturb nothing unless the kind says otherwise."""
    identity, before, after = pair.identity, pair.before, pair.after
    metadata = section(before or after, "metadata")
    # A hook or a guard runs when something is synced, and is not applied.
    is_run = "argocd.argoproj.io/hook" in section(metadata, "annotations") or str(metadata.get("name")).startswith(
        _GUARD
    )
    if is_run or (identity.kind == "ConfigMap" and identity.name.startswith(_METRICS)):
        return ChangeClass.NONE if before == after else ChangeClass.METADATA
    kind = assume_kind(identity.group, identity.kind)
    if before is None or after is None:
        return _judge(kind.added if before is None else kind.removed, pair)
    if before == after:
        return ChangeClass.NONE
    fixed = ChangeClass.RECREATE if locked_fields(identity, before, after) else ChangeClass.NONE
    return worst((fixed, _class_of_fields(kind, pair)))


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
        and not (item.unless and value_of(before, route_of(item.unless)))
        and _is_other(item, before, after)
    )


def _is_other(locked: Immutable, before: Body, after: Body) -> bool:
    old, new = (value_of(body, locked.route, locked.default) for body in (before, after))
    if locked.may_grow:
        return _is_fewer(old, new)
    return old != new and not (locked.may_go and (old is None or new is None))


def is_of_number(pair: Pair) -> bool:
    """Whether fewer pods are the worst of a change, so that those which stay are the same."""
    if pair.before is None or pair.after is None:
        return False
    kind = assume_kind(pair.identity.group, pair.identity.kind)
    found = class_of(pair)
    rest = _class_of_fields(kind, pair, but=Judgement.NUMBER_OF_PODS)
    return rest.rank < found.rank and not locked_fields(pair.identity, pair.before, pair.after)


def _class_of_fields(kind: Kind, pair: Pair, but: Disturbance | None = None) -> ChangeClass:
    routes = kind.routes
    old, new = pair.both()
    if _LABELS not in routes:
        old, new = (
            {**body, "metadata": without(section(body, "metadata"), "labels", "annotations")} for body in (old, new)
        )
    disturbances = {routes.get(route, kind.changed) for route in _differing(routes, old, new)} - {but}
    judged = pair._replace(before=old, after=new)
    return worst((ChangeClass.METADATA, *(_judge(item, judged) for item in disturbances)))


_LABELS: Final = ("metadata", "labels")


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
            continue
        old, new = (body.get(key, _ABSENT) for body in (before, after))
        if field in routes:
            old, new = (_ABSENT if value is False else value for value in (old, new))
        if old != new:
            yield field if field in routes else route


_ABSENT: Final = object()


# --- Kinds that nothing else is known of -------------------------------------------------------------------------

_BY_STAGE: Final[Mapping[str, ChangeClass]] = {
    Stage.GPU_OPERATOR: ChangeClass.PLUGIN_RESTART,
    Stage.SCHEDULER: ChangeClass.ADMISSION,
    Stage.PARTITIONS: ChangeClass.REPARTITION,
    Stage.SCHEDULING: ChangeClass.ADMISSION,
    Stage.QUEUES: ChangeClass.PREEMPTION_ORDER,
    Stage.NAMESPACES: ChangeClass.ADMISSION,
    Stage.MONITORING: ChangeClass.METADATA,
    Stage.WORKLOADS: ChangeClass.RECREATE,
}


def stage_of(folder: str) -> str:
    return folder.partition("/")[0]


def class_of_stage(folder: str) -> ChangeClass:
    """Return the default class of a change in a folder. Folders that sync other folders are only metadata."""
    return _BY_STAGE.get(stage_of(folder), ChangeClass.METADATA)


def _by_folder(pair: Pair) -> ChangeClass:
    found = class_of_stage(pair.folder)
    if pair.before is None:
        is_work = stage_of(pair.folder) == Stage.WORKLOADS
        return ChangeClass.QUOTA if is_work else min(found, ChangeClass.ADMISSION, key=lambda one: one.rank)
    return ChangeClass.DESTRUCTIVE if pair.after is None and found is not ChangeClass.METADATA else found


# --- Nodes -------------------------------------------------------------------------------------------------------


def _node_labels(pair: Pair) -> ChangeClass:
    """Return the class for a Node object. An object that leaves Git is not pruned, and keeps its labels."""
    old, new = pair.both(*_LABELS)
    if pair.before is None:
        return class_of_arrival(new)
    return ChangeClass.ADMISSION if pair.after is None else class_of_labels(old, new)


# --- The GPU Operator --------------------------------------------------------------------------------------------


def class_of_settings(before: Setup, after: Setup, release: str, *, has_mps: bool) -> ChangeClass:
    """Return the class of a change of the operator's settings, by the pod templates of that release's line.

    Any line may be meant where there is no release. What the table does not know may restart anything.
    """
    releases = [release] if release else [line.name for line in lines()]
    classes = {**_BY_RESTART, Restart.ENDS: ChangeClass.REPARTITION if has_mps else ChangeClass.METADATA}
    found = [ChangeClass.METADATA]
    for each in releases:
        known = sections(each, after.installed_by)
        if any(key not in known for key in differing_keys(before.settings, after.settings)):
            found.append(ChangeClass.PLUGIN_RESTART)
        else:
            rolled = (roll for several in rolls(each, before, after).values() for roll in several)
            found += [classes[roll.restart] for roll in rolled if not is_left_alone(roll, after)]
    return worst(found)


_BY_RESTART: Final[Mapping[Restart, ChangeClass]] = {
    Restart.EVICTS: ChangeClass.REPARTITION,
    Restart.PAUSES: ChangeClass.PLUGIN_RESTART,
    Restart.WATCHES: ChangeClass.PLUGIN_RESTART,
}
"""The classes of restarts, but for those that end pods: these matter with MPS alone."""


def differing_keys(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """Return the keys whose values differ, those of the earlier mapping first."""
    return [key for key in dict.fromkeys((*old, *new)) if old.get(key) != new.get(key)]


# --- Pods --------------------------------------------------------------------------------------------------------


def _number_of_pods(pair: Pair) -> ChangeClass:
    """Return `RECREATE` if pods end, or else `QUOTA`.

    An absent number of replicas is 1 (`SetDefaults_Deployment` in `pkg/apis/apps/v1/defaults.go` of
    kubernetes/kubernetes, and the definition of a LeaderWorkerSet). Of an autoscaler only what is stated is compared.
    """
    routes = assume_kind(pair.identity.group, pair.identity.kind).routes
    numbers = (route for route, disturbance in routes.items() if disturbance is Judgement.NUMBER_OF_PODS)
    both = ([value_of(body, route, _REPLICAS.get(route)) for body in pair.both()] for route in numbers)
    return ChangeClass.RECREATE if any(_is_fewer(old, new) for old, new in both) else ChangeClass.QUOTA


_REPLICAS: Final[Mapping[Route, int]] = {("spec", "replicas"): 1}


def _is_fewer(old: object, new: object) -> bool:
    """Whether a number, or a quantity, is less than another one; what is none is not."""
    before, after = (parse_quantity(str(value)) for value in (old, new))
    return before is not None and after is not None and after < before


# --- Queues ------------------------------------------------------------------------------------------------------


def _selected_namespaces(pair: Pair) -> ChangeClass:
    """The namespaces that a queue takes work of, by name."""
    old, new = (
        {name for item in mappings(selector.get("matchExpressions")) for name in map(str, items(item.get("values")))}
        for selector in pair.both("spec", "namespaceSelector")
    )
    return ChangeClass.QUOTA if old <= new else ChangeClass.ADMISSION


def _stopped_work(pair: Pair) -> ChangeClass:
    """`HoldAndDrain` evicts what was admitted, `Hold` lets it run (`clusterqueue_types.go`, `localqueue_types.go`)."""
    is_drained = section(pair.after, "spec").get("stopPolicy") == "HoldAndDrain"
    return ChangeClass.RECREATE if is_drained else ChangeClass.ADMISSION


# --- Namespaces --------------------------------------------------------------------------------------------------


def _tenant_labels(pair: Pair) -> ChangeClass:
    old, new = pair.both(*_LABELS)
    keys = differing_keys(old, new)
    judged = any(key in (TENANT_LABEL, RDMA_LABEL) or key.startswith("pod-security.kubernetes.io/") for key in keys)
    return ChangeClass.ADMISSION if judged else ChangeClass.METADATA


def _own_namespace(pair: Pair) -> ChangeClass:
    """In our own there is nothing but what tenants are granted, for admission to read."""
    is_own = section(pair.before, "metadata").get("name") == SYSTEM_NAMESPACE
    return ChangeClass.ADMISSION if is_own else ChangeClass.DESTRUCTIVE


def _operator_files(pair: Pair) -> ChangeClass:
    """Parameters of admission are lists: where one only grows, nobody may do less than before.

    A ConfigMap of the device plugin that has no hash in its name is brought to pods as it is, and restarts none.
    """
    if all(metadata.get("name") == device_plugin.CONFIG_MAP for metadata in pair.both("metadata")):
        return ChangeClass.METADATA
    if runs_mps(pair):
        return ChangeClass.REPARTITION
    if stage_of(pair.folder) != Stage.NAMESPACES:
        return class_of_stage(pair.folder)
    old, new = ({key: {*str(text).splitlines()} for key, text in data.items()} for data in pair.both("data"))
    if old == new:
        return ChangeClass.METADATA
    grows = old.keys() == new.keys() and all(old[key] <= new[key] for key in old)
    return ChangeClass.QUOTA if grows else ChangeClass.ADMISSION


def runs_mps(pair: Pair) -> bool:
    """Whether it holds the device plugin's files, and one of them shares GPUs by MPS: its daemons start with it."""
    named = (
        body
        for body in (pair.before, pair.after)
        if str(section(body, "metadata").get("name")).startswith(device_plugin.CONFIG_MAP)
    )
    return any("\n  mps:" in str(text) for body in named for text in section(body, "data").values())


# --- What syncs --------------------------------------------------------------------------------------------------


def _charts(pair: Pair) -> ChangeClass:
    """Return the class for an Application: a new chart of the GPU Operator restarts its operands."""
    old, new = (
        {
            (str(item["chart"]), str(item.get("targetRevision")))
            for item in mappings(spec.get("sources"))
            if "chart" in item
        }
        for spec in pair.both("spec")
    )
    charts = {chart for chart, _ in old ^ new}
    if not charts:
        return ChangeClass.METADATA
    return ChangeClass.PLUGIN_RESTART if OPERATORS_CHART in charts else ChangeClass.ADMISSION


def _synced_objects(pair: Pair) -> ChangeClass:
    """With a finalizer it takes along what it wrote, as one of Flux does that prunes."""
    has_finalizers = section(pair.before, "metadata").get("finalizers")
    prunes = section(pair.before, "spec").get("prune")
    return ChangeClass.DESTRUCTIVE if has_finalizers or prunes else ChangeClass.METADATA


# --- Judgements --------------------------------------------------------------------------------------------------


def _judge(disturbance: Disturbance, pair: Pair) -> ChangeClass:
    return disturbance if isinstance(disturbance, ChangeClass) else JUDGES[disturbance](pair)


JUDGES: Final[Mapping[Judgement, Callable[[Pair], ChangeClass]]] = {
    Judgement.ADMISSION_UNLESS_WATCHING: lambda pair: (
        ChangeClass.METADATA if class_of_stage(pair.folder) is ChangeClass.METADATA else ChangeClass.ADMISSION
    ),
    Judgement.BY_FOLDER: _by_folder,
    Judgement.CHARTS: _charts,
    Judgement.NODE_LABELS: _node_labels,
    Judgement.NODE_RULES: lambda pair: class_of_rules(rules_of(pair.before), rules_of(pair.after)),
    Judgement.NUMBER_OF_PODS: _number_of_pods,
    Judgement.OPERATOR_FILES: _operator_files,
    Judgement.OWN_NAMESPACE: _own_namespace,
    Judgement.SELECTED_NAMESPACES: _selected_namespaces,
    Judgement.STOPPED_WORK: _stopped_work,
    Judgement.SYNCED_OBJECTS: _synced_objects,
    Judgement.TENANT_LABELS: _tenant_labels,
}
