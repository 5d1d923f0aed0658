"""The back end of the stage `partitions`: labels and taints on nodes, the switch that repartitions GPUs.

A changed `nvidia.com/mig.config` makes mig-manager repartition every node that carries it, at once and without
draining; a removed one makes the operator write `all-disabled`, which does the same. So each pool has a folder of its
own, which can be synced at its own time, and nothing in it disappears without a person's consent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from gpuplan.compiler.backends.base import text_of
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.catalog.openshift import UPSTREAM_RULES
from gpuplan.compiler.manifests import HEADER, File, Manifest, to_yaml
from gpuplan.compiler.manifests.bodies import given, new_object
from gpuplan.compiler.manifests.provenance import ANY, Links, Routes, as_written, below, chosen, copied, ordered, summed
from gpuplan.compiler.planning import sources
from gpuplan.compiler.planning.discovered import GPU_RESOURCE
from gpuplan.compiler.planning.gpu_operator import matches_boards, rules_group
from gpuplan.compiler.planning.node_pools import is_in_node_pool, node_pool_command
from gpuplan.compiler.planning.plan import Cluster, Nodes, Plan, Pool, Retained, RetainedNodes, Stage, Taint
from gpuplan.compiler.planning.pools import ROLLOUT_SUFFIX
from gpuplan.compiler.planning.subjects import about
from gpuplan.compiler.policy.models import NodeLabels, Platform


def render(plan: Plan) -> Iterator[Manifest | File]:
    match plan.cluster.spec.node_labels:
        case NodeLabels.NFD:
            group = rules_group(plan.cluster)
            for pool, parts in _selectable(plan):
                trace = partial(_Traces(plan, pool).rules, parts)
                matches = matches_boards(plan.cluster, pool)
                rules = (_rule(pool, part, asks_for_boards=matches) for part in parts)
                yield Manifest(_folder(pool.name), _rules(pool.name, rules, group), about=about(pool), trace=trace)
            yield from _kept(plan, group)
        case NodeLabels.NODE:
            for pool, part in _parts(plan):
                for node in sorted(part.nodes.names):
                    trace = partial(_Traces(plan, pool).node, part, node)
                    # It has no taints: `spec.taints` is an atomic list (`+listType=atomic` in `core/v1`). Who applies
                    # one taint owns them all, and would remove those of the kubelet and the node lifecycle controller.
                    # They are in the table instead.
                    body = new_object("v1", "Node", node, labels=_labels(part))
                    yield Manifest(_folder(pool.name), body, is_partial=True, about=about(pool), trace=trace)
            if any(pool.taints for pool in plan.pools):
                yield _table(plan)
        case NodeLabels.EXTERNAL:
            yield _table(plan)


def _parts(plan: Plan) -> Iterator[tuple[Pool, Pool]]:
    """Return each pool with what is shared alike in it."""
    return ((pool, part) for pool in plan.pools for part in pool.parts)


def _folder(pool: str) -> str:
    return f"{Stage.PARTITIONS}/{pool}"


# --- Node Feature Discovery --------------------------------------------------------------------------------------

_HAS_NVIDIA_GPU: Final[Mapping[str, Any]] = {
    "feature": "pci.device",
    "matchExpressions": {
        "vendor": {"op": "In", "value": ["10de"]},
        "class": {"op": "In", "value": ["0300", "0302"]},  # VGA and 3D controllers
    },
}


def _selectable(plan: Plan) -> Iterator[tuple[Pool, list[Pool]]]:
    """Yield the pools whose nodes can be told, with the parts for which there is a rule each.

    Without names or boards a rule would match every node that has an NVIDIA GPU.
    """
    for pool in plan.pools:
        nodes = ((part, part.nodes) for part in pool.parts)
        if parts := [part for part, own in nodes if own.names or own.name_pattern or own.are_by_board]:
            yield pool, parts


def _rules(pool: str, rules: Iterable[Mapping[str, Any]], group: str) -> dict[str, Any]:
    """Return one object for a pool: a node that a rollout moves goes from one of its rules to the other in one step.

    OpenShift's rules have names of their own: its operator copies them to the other group, and owns the copies. A rule
    that took over a copy's name there would be collected with its owner, and the nodes' labels with it.
    """
    name = f"gpuplan-pool-{pool}" if group == UPSTREAM_RULES else f"gpuplan-openshift-pool-{pool}"
    return new_object(f"{group}/v1alpha1", "NodeFeatureRule", name, spec={"rules": [*rules]})


def _rule(pool: Pool, part: Pool, *, asks_for_boards: bool) -> dict[str, Any]:
    """Return a rule for nodes of a pool, by name, that have an NVIDIA GPU or one of the pool's model, or by that alone.

    It is by name since NFD knows features and not labels, and labels such as `nvidia.com/gpu.product` change with the
    very sharing that the rule switches. A board has its PCI id however it is shared.
    """
    is_moved = pool.rollout is not None and part is pool.rollout.moved
    boards = [*_boards(pool.gpu)] if asks_for_boards else [_HAS_NVIDIA_GPU]
    any_board = [{"matchFeatures": [board]} for board in boards] if len(boards) > 1 else []
    return given(
        name=f"{pool.name}{ROLLOUT_SUFFIX}" if is_moved else pool.name,
        labels=_labels(part),
        taints=_taints(part),
        matchFeatures=[*_names(part.nodes), *(() if any_board else boards)],
        matchAny=any_board,
    )


def _boards(gpu: Gpu) -> Iterator[dict[str, Any]]:
    """Yield a term for all ids of a model, and one for each that is not the model's alone: its subsystem tells it.

    A term holds where one device has all that it says. nfd-worker has the ids as the kernel spells them, in small
    letters (`readPciDevInfo` in `source/pci/utils.go` of node-feature-discovery).
    """
    expressions: Mapping[str, Any] = _HAS_NVIDIA_GPU["matchExpressions"]
    if own := sorted(_digits(found.device) for found in gpu.pci if not found.subsystem):
        yield {"feature": "pci.device", "matchExpressions": {**expressions, "device": {"op": "In", "value": own}}}
    for found in sorted(found for found in gpu.pci if found.subsystem):
        exact = {
            "device": _digits(found.device),
            "subsystem_vendor": found.subsystem[:4].lower(),
            "subsystem_device": found.subsystem[4:].lower(),
        }
        asked = {name: {"op": "In", "value": [value]} for name, value in exact.items()}
        yield {"feature": "pci.device", "matchExpressions": {**expressions, **asked}}


OF_BOARDS: Final = ("device", "subsystem_vendor", "subsystem_device")


def _digits(device: str) -> str:
    return device.removeprefix("0x").lower()


def _names(nodes: Nodes) -> list[dict[str, Any]]:
    """Return the terms on a node's name. A key has one expression in a term, and a rule wants all terms to match.

    (`evaluateFeatureMatcher` in `pkg/apis/nfd/nodefeaturerule/rule.go` of node-feature-discovery.) NFD searches for a
    regular expression anywhere in the name, so the pattern is tied to both ends.
    """
    matches: list[dict[str, Any]] = []
    if nodes.names:
        matches = [{"op": "In", "value": sorted(nodes.names)}]
    else:
        if nodes.name_pattern is not None:
            matches.append({"op": "InRegexp", "value": [f"^(?:{nodes.name_pattern})$"]})
        if nodes.moved:
            matches.append({"op": "NotIn", "value": sorted(nodes.moved)})
    return [{"feature": "system.name", "matchExpressions": {"nodename": match}} for match in matches]


_BEFORE_POOLS: Final = -1
"""A rule that keeps nodes is there before the pool's own, applied with it, lets them go."""


_KEPT: Final = "gpuplan-kept-"
_KEPT_ON_OPENSHIFT: Final = "gpuplan-openshift-kept-"


def is_kept(name: str) -> bool:
    """Whether the object of this name holds what nodes keep."""
    return name.startswith((_KEPT, _KEPT_ON_OPENSHIFT))


def kept_name(cluster: Cluster, document: str) -> str:
    """Return the name of the object that a document makes."""
    return f"{_KEPT if rules_group(cluster) == UPSTREAM_RULES else _KEPT_ON_OPENSHIFT}{document}"


def _kept(plan: Plan, group: str) -> Iterator[Manifest]:
    """Yield what nodes keep; and for a pool that has none any more an object without rules.

    Neither Flux nor `kubectl apply` deletes the rule of a pool that is gone, and Argo CD waits for a person. As long as
    it is there it holds nodes, the more so if its name comes after that of the pool that they go to.
    """
    selectable = {pool.name for pool, _ in _selectable(plan)}
    for retained, kept in plan.retained_nodes:
        trace = partial(_trace_kept, plan, retained, kept)
        body = _kept_rules(kept_name(plan.cluster, retained.name), retained.name, kept, group)
        yield Manifest(kept.folder, body, order=_BEFORE_POOLS, about=about(retained), trace=trace)
    gone = {
        kept.spec.pool: (retained, kept) for retained, kept in plan.retained_nodes if kept.spec.pool not in selectable
    }
    for pool, (retained, kept) in gone.items():
        trace = partial(_trace_emptied, plan, kept)
        yield Manifest(kept.folder, _rules(pool, (), group), about=about(retained), trace=trace)


def _kept_rules(rules: str, name: str, kept: RetainedNodes, group: str) -> dict[str, Any]:
    """Return what nodes keep that a pool has let go, until another pool's rule says more.

    NFD goes through its rules by name, and of two values of a label the later one holds (`processNodeFeatureRule` in
    `pkg/nfd-master/nfd-master.go` of node-feature-discovery): `kept` comes before `pool`. It gives no taints: NFD lists
    those of all rules in an annotation of the node, and cannot read it again where two have one key and effect, so that
    it never changes a taint of that node any more (`setTaints` there, and `ParseTaints` in `pkg/util/taints` of
    kubernetes).
    """
    rule = given(
        name=name, labels=dict(sorted(kept.spec.labels.items())), matchFeatures=[*_names(kept.nodes), _HAS_NVIDIA_GPU]
    )
    return new_object(f"{group}/v1alpha1", "NodeFeatureRule", rules, spec={"rules": [rule]})


# --- A table -----------------------------------------------------------------------------------------------------


def _table(plan: Plan) -> File:
    has_machine_sets = plan.cluster.spec.platform is Platform.OPENSHIFT
    header = text_of("node-groups") + (text_of("machine-sets") if has_machine_sets else "")
    header += text_of("node-pools") if any(is_in_node_pool(pool.nodes.selector) for pool in plan.pools) else ""
    groups = [_row(pool, has_machine_sets=has_machine_sets) for _, pool in _rows(plan)]
    text = HEADER + header + to_yaml({"formatVersion": 1, "nodeGroups": groups})
    path, trace = f"{Stage.PARTITIONS}/node-groups.yaml", partial(_trace_table, plan)
    return File(path, text.encode(), about=about(plan.cluster, *plan.pools), trace=trace)


def _rows(plan: Plan) -> Iterator[tuple[Pool, Pool]]:
    return ((pool, part) for pool, part in _parts(plan) if part.nodes.count)


def _row(pool: Pool, *, has_machine_sets: bool) -> dict[str, Any]:
    nodes, labels, taints = pool.nodes, _labels(pool), _taints(pool)
    row = given(
        pool=pool.name,
        gpu=pool.gpu.id,
        nodes=nodes.count,
        gpusPerNode=nodes.gpus_per_node,
        names=sorted(nodes.names),
        namePattern=nodes.name_pattern,
        selector=dict(sorted(nodes.selector.items())),
        exceptNames=[] if nodes.names else sorted(nodes.moved),
    )
    row |= {"labels": labels, "taints": taints, **given(command=node_pool_command(nodes.selector, labels, taints))}
    if has_machine_sets:
        # OpenShift's Machine API labels and taints new nodes by it; whatever else a MachineSet has stays.
        is_accelerated = any(unit.resource == GPU_RESOURCE and unit.per_node for unit in pool.units)
        accelerator = {_ACCELERATOR: f"nvidia-{pool.gpu.id.lower()}"} if is_accelerated else {}
        machine = given(metadata={"labels": {**accelerator, **labels}}, taints=taints)
        row["machineSet"] = {"spec": {"template": {"spec": machine}}}
    return row


# `GPULabel` of the provider `clusterapi` in kubernetes/autoscaler; what it does to nodes without GPUs is in
# `processors/customresources/gpu_processor.go`.
_ACCELERATOR = "cluster-api/accelerator"


# --- Parts of all ------------------------------------------------------------------------------------------------


def _labels(pool: Pool) -> dict[str, str]:
    return dict(sorted(pool.labels.items()))


def _taints(pool: Pool) -> list[dict[str, str]]:
    taints = (taint for _, taint in _sorted_taints(pool))
    return [given(key=taint.key, value=taint.value, effect=taint.effect.value) for taint in taints]


def _sorted_taints(pool: Pool) -> list[tuple[int, Taint]]:
    """Return the taints, each with its number in the policy."""
    return sorted(enumerate(pool.taints), key=lambda pair: (pair[1].key, pair[1].effect, pair[1].value))


# --- Where it comes from -----------------------------------------------------------------------------------------


class _Traces(NamedTuple):
    """Routes of what the nodes of one pool get."""

    plan: Plan
    pool: Pool

    def rules(self, parts: Sequence[Pool]) -> Routes:
        yield (), self._way()
        yield ("metadata", "name"), (*sources.named(self.pool), *sources.rules_group_of(self.plan.cluster))
        for index, part in enumerate(parts):
            yield from below(("spec", "rules", index), self._rule(part))

    def node(self, part: Pool, node: str) -> Routes:
        """Yield the routes of a node. A rollout chooses between two ways of sharing by the node's name."""
        yield (), self._way()
        yield ("metadata", "name"), sources.node_of(self.pool, node)
        yield from below(("metadata",), self._marks(part))
        left, moved = self.pool.parts[0].labels, self.pool.parts[-1].labels
        for key in left.keys() | moved.keys():
            if left.get(key) != moved.get(key):
                yield ("metadata", "labels", key), chosen(*sources.moved_names(self.pool).places)

    def row(self, part: Pool) -> Routes:
        """Yield the routes of a row of the table."""
        nodes = self.pool.at / "nodes"
        yield ("pool",), sources.named(self.pool)
        yield ("gpu",), chosen(self.pool.at / "gpu")
        count, moved = nodes / "count", sources.moved_names(self.pool).places
        rollout = self.pool.rollout
        moving = summed(*moved) if rollout and part is rollout.moved else summed(count, *moved)
        yield ("nodes",), moving if rollout else copied(count)
        yield ("gpusPerNode",), copied(nodes / "gpusPerNode")
        yield from below(("names",), sources.names_of(self.pool, part.nodes.names))
        yield ("namePattern",), copied(nodes / "namePattern")
        yield from below(("exceptNames",), sources.names_of(self.pool, part.nodes.moved))
        yield from below(("selector",), as_written(nodes / "selector", part.nodes.selector))
        yield from self._marks(part)
        marks = tuple(dict.fromkeys(link for _, links in self._marks(part) for link in links))
        yield ("command",), (*copied(*(nodes / "selector" / key for key in part.nodes.selector)), *marks)

    def machine_set(self, part: Pool) -> Routes:
        resources = (link for unit in part.units for link in sources.resource_of(self.pool, unit))
        yield (), chosen(self.plan.cluster.at / "platform")
        yield (*_MACHINE, "metadata", "labels", _ACCELERATOR), (*chosen(self.pool.at / "gpu"), *resources)
        for (field, *route), links in self._marks(part):
            yield (*_MACHINE, *(("metadata",) if field == "labels" else ()), field, *route), links

    def _rule(self, part: Pool) -> Routes:
        yield ("name",), sources.named(self.pool)
        asked = chosen(self.plan.cluster.at / "matchBoards", self.pool.at / "nodes" / "matchBoards")
        matches = matches_boards(self.plan.cluster, self.pool)
        boards = (*asked, *chosen(self.pool.at / "gpu"), *sources.ids_of(self.pool.gpu)) if matches else asked
        yield ("matchAny",), boards
        if matches or len([*_boards(self.pool.gpu)]) > 1:  # the term may be among several
            yield ("matchFeatures", len(_names(part.nodes))), boards[: len(asked) + 1]
        yield from ((("matchFeatures", ANY, "matchExpressions", name), boards) for name in OF_BOARDS)
        yield from self._marks(part)
        match = ("matchFeatures", ANY, "matchExpressions", "nodename", "value")
        if part.nodes.names:
            yield from below(match, sources.names_of(self.pool, part.nodes.names))
            return
        if part.nodes.name_pattern is not None:
            yield ("matchFeatures", 0, *match[2:]), copied(self.pool.at / "nodes" / "namePattern")
        if part.nodes.moved:
            last = len(_names(part.nodes)) - 1
            yield from below(("matchFeatures", last, *match[2:]), sources.names_of(self.pool, part.nodes.moved))

    def _marks(self, part: Pool) -> Routes:
        """Yield the routes of labels and taints."""
        yield from below(("labels",), sources.labels_of(self.plan, part))
        for number, (index, _) in enumerate(_sorted_taints(self.pool)):
            yield from below(("taints", number), self._taint(index))

    def _taint(self, index: int) -> Routes:
        """Yield the routes of a taint. Taints stand by their key, and by the rest if they have one key."""
        taints, own_taint = self.pool.taints, self.pool.taints[index]
        if own_taint.is_default:
            yield (), sources.default_taint_of(self.pool, own_taint)
        alike = [taint for other, taint in enumerate(taints) if other != index and taint.key == own_taint.key]
        by_key = (taint.place("key") for taint in taints if len(taints) > 1)
        order = ordered(*by_key, *(taint.place(field) for taint in alike for field in ("effect", "value")))
        for field in () if own_taint.is_default else ("key", "value", "effect"):
            own = own_taint.place(field)
            links = (chosen if alike else copied)(own)
            yield (field,), (*links, *(link for link in order if link.at != own))

    def _way(self) -> Links:
        return chosen(self.plan.cluster.at / "nodeLabels")


def _trace_table(plan: Plan) -> Routes:
    """Yield the routes of the table, whose rows stand by the names of pools."""
    yield (), chosen(plan.cluster.at / "nodeLabels")
    if len(plan.pools) > 1:
        yield ("nodeGroups",), ordered(*(sources.name_of(pool) for pool in plan.pools))
    for index, (pool, part) in enumerate(_rows(plan)):
        of = _Traces(plan, pool)
        yield from below(("nodeGroups", index), of.row(part))
        yield from below(("nodeGroups", index, "machineSet"), of.machine_set(part))


_MACHINE: Final = ("spec", "template", "spec")
"""The place in a MachineSet of what its nodes have."""


def _trace_emptied(plan: Plan, kept: RetainedNodes) -> Routes:
    """Yield the routes of an emptied object: only the document says that there was a pool."""
    yield (), chosen(plan.cluster.at / "nodeLabels", kept.at / "pool")
    yield ("metadata", "name"), (*copied(kept.at / "pool"), *sources.rules_group_of(plan.cluster))


def _trace_kept(plan: Plan, retained: Retained, kept: RetainedNodes) -> Routes:
    """Yield the routes of what the document has, in the form of a rule."""
    yield (), chosen(plan.cluster.at / "nodeLabels", kept.at / "pool")
    yield ("metadata", "name"), (*sources.named(retained), *sources.rules_group_of(plan.cluster))
    rule = ("spec", "rules", 0)
    yield (*rule, "name"), sources.named(retained)
    yield from below((*rule, "labels"), as_written(kept.at / "labels", kept.spec.labels))
    # The term that lists names is the first, or comes after that of a pattern.
    named_nodes, moved = (0, "names", kept.nodes.names), (1, "exceptNames", kept.nodes.moved)
    term, field, listed = named_nodes if kept.nodes.names else moved
    match = (*rule, "matchFeatures", term, "matchExpressions", "nodename", "value")
    order = ordered(*(kept.at / field / index for index in range(len(listed))))
    for number, (_, index) in enumerate(sorted((name, index) for index, name in enumerate(listed))):
        own = kept.at / field / index
        yield (*match, number), (*copied(own), *(link for link in order if link.at != own))
    if kept.nodes.name_pattern:
        yield (*rule, "matchFeatures", 0, "matchExpressions", "nodename", "value"), copied(kept.at / "namePattern")
