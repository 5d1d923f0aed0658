"""The classes of changes of Kubernetes objects, by kind and by field, and those of rules that label nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from gpuplan.compiler.backends.gpu_operator import device_plugin
from gpuplan.compiler.backends.partitions import OF_BOARDS
from gpuplan.compiler.base.disturbance import ChangeClass, worst
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import Body, items, mappings, section, value_of, without
from gpuplan.compiler.base.trees import ABSENT
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog.operands import Restart, Setup, is_left_alone, rolls, sections
from gpuplan.compiler.catalog.operators import OPERATORS_CHART, lines
from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.manifests.kinds import Disturbance, Immutable, Judgement, Kind, Route, assume_kind, route_of
from gpuplan.compiler.manifests.quantities import parse_quantity
from gpuplan.compiler.planning.grants import RDMA_LABEL, SYSTEM_NAMESPACE
from gpuplan.compiler.planning.node_patterns import NodePattern, find_common_name, find_other_name, find_pattern
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, TENANT_LABEL, Stage
from gpuplan.compiler.planning.pools import ALL_DISABLED

Counts = Mapping[str, int]
"""The number of a rule's nodes, by the rule's name, as far as it is known."""

Names = Mapping[str, frozenset[str]]
"""The nodes that a pattern matches, by its text, where anybody knows them."""

_UNKNOWN: Final[Counts] = {}
_UNNAMED: Final[Names] = {}


class Rule(NamedTuple):
    """A rule for nodes that have one of these ``names``, or whose name matches the ``pattern`` and is no exception.

    One with neither chooses nodes in a way that is not known here. ``size`` is how many nodes there are, and
    ``division`` what the entry says that the labels name, if known.
    """

    names: frozenset[str]
    pattern: str
    exceptions: frozenset[str]
    size: int | None
    labels: Body
    taints: tuple[object, ...]
    chosen: object
    """The terms that choose nodes, as they are written."""
    boards: frozenset[str] = frozenset()
    """The PCI ids of which the nodes have one; none where any board of NVIDIA's will do."""
    division: object = None

    @property
    def key(self) -> object:
        """The nodes that are chosen; None where that is not known."""
        if self.names or self.pattern:
            return self.names, self.pattern, self.exceptions
        return (self.boards, self.exceptions) if self.boards else None

    @property
    def are_by_board(self) -> bool:
        return bool(self.boards) and not self.names and not self.pattern

    def is_for_nodes_of(self, other: Rule) -> bool:
        """Whether both are known to choose the very same nodes."""
        return self.key is not None and self.key == other.key

    @property
    def parsed(self) -> NodePattern | None:
        """None of what may match anything."""
        return find_pattern(self.pattern)

    def has(self, name: str) -> bool:
        if self.names:
            return name in self.names
        pattern = self.parsed
        return name not in self.exceptions and (pattern is None or pattern.matches(name))


Rules = Sequence[Rule]


def rules_of(body: Body | None, counts: Counts = _UNKNOWN, names: Names = _UNNAMED) -> tuple[Rule, ...]:
    """The rules of a NodeFeatureRule, with the nodes by name, as the back end writes it."""
    found = mappings(section(body, "spec").get("rules"))
    return tuple(_with_names(_rule(rule, counts.get(str(rule.get("name")))), names) for rule in found)


def _with_names(rule: Rule, known: Names) -> Rule:
    """The rule for the nodes that its pattern matches, where these are known."""
    names = known.get(rule.pattern, frozenset()) - rule.exceptions
    if not names:
        return rule._replace(size=0) if rule.pattern in known else rule
    return rule._replace(names=names, pattern="", exceptions=frozenset(), size=len(names))


def _rule(rule: Body, count: int | None) -> Rule:
    chosen: dict[str, list[str]] = {}
    for feature in mappings(rule.get("matchFeatures")):
        if feature.get("feature") == "system.name":
            found = section(feature, "matchExpressions", "nodename")
            chosen.setdefault(str(found.get("op")), []).extend(map(str, items(found.get("value"))))
    patterns = chosen.get("InRegexp", [])
    return Rule(
        frozenset(chosen.get("In", ())),
        # Without what ties it to both ends of a name.
        patterns[0].removeprefix("^(?:").removesuffix(")$") if len(patterns) == 1 else "",
        frozenset(chosen.get("NotIn", ())),
        count,
        section(rule, "labels"),
        tuple(items(rule.get("taints"))),
        (rule.get("matchFeatures"), rule.get("matchAny")),
        frozenset(_boards(rule)),
    )


def _boards(rule: Body) -> Iterator[str]:
    """Ids of devices, with those of the subsystem where a rule says them."""
    terms = [term for any_of in mappings(rule.get("matchAny")) for term in mappings(any_of.get("matchFeatures"))]
    for feature in (*mappings(rule.get("matchFeatures")), *terms):
        values = (items(section(feature, "matchExpressions", name).get("value")) for name in OF_BOARDS)
        ids, *subsystem = ([str(value) for value in found] for found in values)
        yield from (":".join((device, *(part for found in subsystem for part in found))) for device in ids)


def rule_of_group(row: Body, known: Names = _UNNAMED) -> Rule:
    """A row of the table of node groups, as the rule that it stands for."""
    names, exceptions = (frozenset(map(str, items(row.get(key)))) for key in ("names", "exceptNames"))
    count = row.get("nodes")
    fields = "names", "namePattern", "selector", "exceptNames", "gpu", "nodes", "gpusPerNode"
    rule = Rule(
        names,
        "" if names else str(row.get("namePattern") or ""),
        exceptions,
        count if isinstance(count, int) else None,
        section(row, "labels"),
        tuple(items(row.get("taints"))),
        {key: row.get(key) for key in fields},
    )
    return _with_names(rule, known)


# --- Classes -----------------------------------------------------------------------------------------------------


def class_of_rules(
    before: Rules, after: Rules, all_before: Rules | None = None, all_after: Rules | None = None
) -> ChangeClass:
    """Return the class of a change of rules, node by node.

    Nodes that one rule leaves to another get what that one says. ``all_before`` and ``all_after`` are the rules of all
    objects, where more than these are known, in their order: of two for a node, the later one holds.
    """
    everywhere = before if all_before is None else all_before, after if all_after is None else all_after
    return worst((ChangeClass.METADATA, *_classes(before, after, *everywhere)))


def class_of_kept_rules(gone: Rules, after: Rules) -> ChangeClass:
    """Return the class of retained rules that go. Nodes lose the labels that no other rule gives them."""
    lost = (ChangeClass.ADMISSION if _are_covered(rule, after) else class_of_departure(rule.labels) for rule in gone)
    return worst((ChangeClass.METADATA, *lost))


def _classes(before: Rules, after: Rules, all_before: Rules, all_after: Rules) -> Iterator[ChangeClass]:
    if [rule.chosen for rule in before] != [rule.chosen for rule in after]:
        yield ChangeClass.QUOTA
    gone, come = _but(before, all_after), _but(after, all_before)
    all_gone, all_come = _but(all_before, all_after), _but(all_after, all_before)
    pairs = {(id(old), id(new)): (old, new) for old in gone for new in _meeting(old, all_come)}
    pairs |= {(id(old), id(new)): (old, new) for new in come for old in _meeting(new, all_gone)}
    for old, new in pairs.values():
        is_alike = old.division is not None and old.division == new.division
        yield class_of_labels(old.labels, new.labels, is_divided_alike=is_alike)
        yield class_of_boards(old.boards, new.boards, old.labels, new.labels)
        yield class_of_taints(old.taints, new.taints)
    yield from (class_of_departure(old.labels) for old in gone if not _are_covered(old, all_come))
    arriving = [new for new in come if not _are_covered(new, all_gone)]
    for new in arriving:  # a rule for nodes that had none already changes the pods that may come
        of_taints = class_of_taints((), new.taints)
        of_taints = ChangeClass.ADMISSION if of_taints is ChangeClass.TAINT else of_taints
        yield worst((class_of_arrival(new.labels), of_taints))


def _but(rules: Rules, others: Rules) -> list[Rule]:
    """The rules that say something else to their nodes, or to other nodes, than the others."""
    known = {rule.key: (rule.labels, rule.taints, rule.boards) for rule in others if rule.key is not None}
    return [rule for rule in rules if known.get(rule.key) != (rule.labels, rule.taints, rule.boards)]


def class_of_labels(old: Body, new: Body, *, is_divided_alike: bool = False) -> ChangeClass:
    """Return the class for nodes whose labels change. Partitions are dissolved without `nvidia.com/mig.config`.

    Where the entries of both say the same, mig-parted finds it applied and leaves the GPUs alone. What obeys that
    label, and the one of the device plugin's configuration, is the GPU Operator; pods choose nodes by the others.
    """
    one, other = old.get(MIG_CONFIG_LABEL), new.get(MIG_CONFIG_LABEL)
    if one != other and other is None and one != ALL_DISABLED:
        return ChangeClass.DESTRUCTIVE
    if one != other and any(value not in (None, ALL_DISABLED) for value in (one, other)):
        hashes = [match[1] for name in (one, other) if (match := _HASH.fullmatch(str(name)))]
        is_alike = is_divided_alike or (len(hashes) == 2 and hashes[0] == hashes[1])
        return ChangeClass.PLUGIN_RESTART if is_alike else ChangeClass.REPARTITION
    known, next_known = (without(labels, *_OF_THE_OPERATOR) for labels in (old, new))
    if any(next_known.get(key) != value for key, value in known.items()):
        return ChangeClass.ADMISSION
    if old.get(DEVICE_PLUGIN_CONFIG_LABEL) != new.get(DEVICE_PLUGIN_CONFIG_LABEL):
        return ChangeClass.PLUGIN_RESTART
    return ChangeClass.NONE if old == new else ChangeClass.METADATA


def class_of_boards(old: frozenset[str], new: frozenset[str], labels: Body, next_labels: Body) -> ChangeClass:
    """Return the class for nodes that are chosen by their boards: some may leave, and others may come."""
    leave = bool(new) and not (old and old <= new)
    come = bool(old) and not (new and new <= old)
    found = [class_of_departure(labels)] * leave + [class_of_arrival(next_labels)] * come
    return worst((ChangeClass.NONE, *found))


_HASH: Final = regex(r".+-([0-9a-f]{8})")
"""The name of an entry, which ends in a hash of its content."""

_OF_THE_OPERATOR: Final = (MIG_CONFIG_LABEL, DEVICE_PLUGIN_CONFIG_LABEL)


def class_of_taints(old: Sequence[object], new: Sequence[object]) -> ChangeClass:
    if old == new:
        return ChangeClass.NONE
    come = [taint for taint in new if taint not in old]
    evicts = any(isinstance(taint, Mapping) and taint.get("effect") == "NoExecute" for taint in come)
    if evicts:
        return ChangeClass.DESTRUCTIVE
    return ChangeClass.TAINT if _keep_off(new) and not _keep_off(old) else ChangeClass.ADMISSION


def _keep_off(taints: Sequence[object]) -> bool:
    return any(isinstance(taint, Mapping) and taint.get("effect") != "PreferNoSchedule" for taint in taints)


def class_of_arrival(labels: Body) -> ChangeClass:
    """Return the class for nodes that had no pool: at least their device plugin restarts."""
    return ChangeClass.REPARTITION if _partitions(labels) else ChangeClass.PLUGIN_RESTART


def class_of_departure(labels: Body) -> ChangeClass:
    """Return the class for nodes that leave for no pool."""
    return ChangeClass.DESTRUCTIVE if _partitions(labels) else ChangeClass.ADMISSION


def _partitions(labels: Body) -> bool:
    return labels.get(MIG_CONFIG_LABEL) not in (None, ALL_DISABLED)


# --- Nodes -------------------------------------------------------------------------------------------------------


def _meeting(rule: Rule, others: Rules) -> list[Rule]:
    """The others that have nodes of a rule. One for the very same nodes is the only one, since a node is in one."""
    same = [other for other in others if other.is_for_nodes_of(rule)]
    return [other for other in same or others if _share_nodes(rule, other)]


def _share_nodes(old: Rule, new: Rule) -> bool:
    """Whether nodes may be in both; in one that is known to have none, there are none."""
    if old.size == 0 or new.size == 0:
        return False
    if (old.are_by_board or new.are_by_board) and _are_other_boards(old.boards, new.boards):
        return False
    if old.names or new.names:
        return any(old.has(name) and new.has(name) for name in old.names | new.names)
    one, other = old.parsed, new.parsed
    return one is None or other is None or find_common_name(one, other) is not None


def _have_its_boards(rule: Rule, others: Rules) -> bool:
    """Whether nodes that are chosen by their boards are in another rule so, or all that are counted by their names."""
    takers = [other for other in others if not other.boards or rule.boards <= other.boards]
    if any(
        other.are_by_board
        and all(any(taker.has(name) for taker in takers) for name in other.exceptions - rule.exceptions)
        for other in takers
    ):
        return True
    return rule.size is not None and sum(other.size or 0 for other in takers if other.key) >= rule.size


def _are_other_boards(old: frozenset[str], new: frozenset[str]) -> bool:
    """Whether no board has an id of both; only ids of devices are compared, without their subsystems."""
    one, other = ({board.partition(":")[0] for board in boards} for boards in (old, new))
    return bool(one and other) and one.isdisjoint(other)


def _are_covered(rule: Rule, others: Rules) -> bool:
    """Whether all nodes of a rule are in one of the others."""
    if rule.size == 0 or any(other.is_for_nodes_of(rule) for other in others):
        return True
    if rule.names:
        return all(any(other.has(name) for other in others) for name in rule.names)
    if rule.are_by_board and _have_its_boards(rule, others):
        return True
    pattern = rule.parsed
    if pattern is None:
        return any(other.chosen == rule.chosen for other in others)
    named = {name for other in others for name in other.names if rule.has(name)}
    if rule.size is not None and len(named) >= rule.size:
        return True
    patterns = tuple(found for other in others if (found := other.parsed) is not None)
    left_out = {name for other in others for name in other.exceptions if rule.has(name)}
    return find_other_name(pattern, patterns) is None and all(
        any(other.has(name) for other in others) for name in left_out
    )


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
        old, new = (body.get(key, ABSENT) for body in (before, after))
        if field in routes:
            old, new = (ABSENT if value is False else value for value in (old, new))
        if old != new:
            yield field if field in routes else route


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
