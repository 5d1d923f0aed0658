"""The fate of nodes in every order in which the folders of a step may be synced.

What a node's labels name is in the GPU Operator's files, which are synced as one; its labels come from folders of their
own, each synced by itself, and of each label the last rule's value holds. Where labels are no rules but parts of
objects, or somebody else's, none is taken away. What is pruned stays until a person says so, which is as if it were not
synced yet.

A document `Retained` has a pool's earlier rule stay beside that of the pool that lets its nodes go, in one folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import combinations, islice
from typing import Any, Final

from gpuplan.compiler.backends.gpu_operator import device_plugin
from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import count, joined, listing
from gpuplan.compiler.catalog.operators import nearest_line
from gpuplan.compiler.planning.dra import DRA_PLUGIN_LABEL
from gpuplan.compiler.planning.layouts import content_hash
from gpuplan.compiler.planning.node_patterns import find_common_name, find_pattern, has_node
from gpuplan.compiler.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    POOL_LABEL,
    Amount,
    Layout,
    Nodes,
    Plan,
    Pool,
    RetainedNodes,
    Stage,
)
from gpuplan.compiler.planning.pools import ALL_DISABLED
from gpuplan.compiler.planning.sync_names import folder_name, sync_name
from gpuplan.compiler.policy.models import ClusterMigStrategy, NodeLabels
from gpuplan.features.changes.meanwhile import Published, is_label_gone_between, may_labels_come_first, published_by
from gpuplan.features.changes.model import NodeImpact, amount
from gpuplan.features.changes.nodes import LabelRule, NodeClass, Transition, classes, departures, moves, transitions
from gpuplan.features.changes.step import Step

Synced = frozenset[str]
"""The folders that are synced; all others wait."""

FILES: Final = Stage.GPU_OPERATOR.value


class Hazard(StrEnum):
    """The ways in which nodes are wrong while some folders are synced and others wait, worst first."""

    UNLABELLED = "no-partition-label"
    """They are divided by MIG before and after, and nothing says so: the operator has the partitions dissolved."""
    UNSHARED = "no-sharing-label"
    """Nothing says how their GPUs are shared, and they publish what they neither did before nor will afterwards."""
    NEITHER = "third-state"
    """They publish what they neither did before nor will afterwards."""
    DANGLING = "dangling"
    """A label names what the operator's files no longer have."""
    BARE = "early-unshared"
    """A label names what the operator's files do not have yet, and until they come nodes publish what they neither did
    before nor will afterwards: config-manager starts again, and begins as if there were no label."""
    STUCK = "taints-stuck"
    """Two rules give them one taint, and from then on Node Feature Discovery changes no taint of theirs."""
    UNCOVERED = "guarantees-uncovered"
    """A pool has less of what it guarantees before and afterwards."""
    EARLY = "early"
    """A label names what the operator's files do not have yet; it ends when they come."""


class BadOrder(NamedTuple):
    """Nodes, what is wrong with them, and the first combination of folders in which it is.

    ``synced`` and ``waiting`` are the folders without which it would not be so. ``what`` says it of one node or of
    several; ``example`` is one, empty where none is known. ``named`` is the label that names what is not there.
    ``pools`` are those whose labels they have before and afterwards, ``was`` and ``to`` the parts of them that they are
    in; None where a document keeps their labels.
    ``is_unasked`` says that it may happen where nobody chooses the order. In the order of ``safe`` nothing happens;
    None where no such order is found. ``text`` and ``advice`` say it with the names of what syncs the folders.
    """

    cluster: str
    hazard: Hazard
    nodes: NodeImpact
    example: str
    synced: tuple[str, ...]
    waiting: tuple[str, ...]
    what: str
    named: tuple[str, str] | None
    pools: tuple[str, str]
    was: Pool | None
    to: Pool | None
    is_unasked: bool
    safe: tuple[str, ...] | None
    text: str = ""
    advice: str = ""


@lru_cache(maxsize=64)
def bad_orders(step: Step) -> tuple[BadOrder, ...]:
    """Return the first combination of folders with each hazard, worst first, for each set of alike nodes."""
    if step.before.cluster.spec.node_labels is not step.after.cluster.spec.node_labels:
        return ()  # other hands for all labels
    files = Files.of(step.before), Files.of(step.after)
    is_by_rule = step.before.cluster.spec.node_labels is not NodeLabels.NODE
    ways = [_Way(files, alike, is_by_rule=is_by_rule) for alike in classes(step, files[1].leave_out)]
    ways = [way for way in ways if way.folders and way.is_judged]
    groups: dict[tuple[object, ...], BadOrder] = {}  # nodes that differ in nothing that is said of them, together
    for bad in (bad for way in ways for bad in _judged(step, way)):
        same = bad.hazard, bad.pools, id(bad.was), id(bad.to), bad.synced, bad.waiting, bad.what
        known = groups.get(same)
        groups[same] = bad if known is None else known._replace(nodes=_both(known.nodes, bad.nodes))
    ranks = {hazard: rank for rank, hazard in enumerate(Hazard)}
    orders = (_in_words(step.after, bad) for bad in (*groups.values(), *_shortfalls(step, ways)))
    return tuple(sorted(orders, key=lambda bad: (ranks[bad.hazard], not bad.is_unasked, bad.synced, bad.example)))


def dangling(step: Step, label: str, value: str) -> tuple[str, ...]:
    """The first order in which nodes name what the operator's files no longer have, in words; none where none does."""
    found = (bad.text for bad in bad_orders(step) if bad.hazard is Hazard.DANGLING and bad.named == (label, value))
    return tuple(islice(found, 1))


def _both(one: NodeImpact, other: NodeImpact) -> NodeImpact:
    """Return the nodes of both. Nodes without names count as the larger of the two numbers."""
    names = tuple(sorted({*one.names, *other.names}))
    unnamed = max(one.count - len(one.names), other.count - len(other.names))
    return NodeImpact(len(names) + unnamed, names, one.pattern or other.pattern)


# --- In words ----------------------------------------------------------------------------------------------------


def _in_words(plan: Plan, bad: BadOrder) -> BadOrder:
    """``if `gpu-partitions-c-x` syncs before `gpu-partitions-c-y`: node `b` has no partition label``."""
    synced, waiting = syncers_of(plan, bad.synced), syncers_of(plan, bad.waiting)
    verb = "syncs" if len(synced) == 1 else "sync"
    once = f"once {joined(synced)} {'is' if len(synced) == 1 else 'are'} synced"
    when = f"if {joined(synced)} {verb} before {joined(waiting)}" if waiting else once
    neither = ", neither as before nor as afterwards" if bad.hazard in _NEITHER else ""
    *first, last = syncers_of(plan, bad.safe or ()) or ("",)
    advice = f"safe: {', '.join(first)}, then {last}" if first else f"safe: {last}"
    return bad._replace(
        text=f"{when}: {_subject(bad)} {bad.what}{neither}",
        advice=advice if bad.safe is not None else "no order of these is safe",
    )


_NEITHER: Final = {Hazard.UNSHARED, Hazard.NEITHER, Hazard.BARE}
"""The hazards in which nodes publish the units of neither side."""


def syncers_of(plan: Plan, folders: Iterable[str]) -> list[str]:
    """Return what syncs the folders, in words. A folder that nothing syncs stands for itself."""
    return [_syncer_of(plan, folder) for folder in folders]


def _syncer_of(plan: Plan, folder: str) -> str:
    cluster = plan.cluster
    if folder == Stage.PARTITIONS:
        return "whoever labels nodes"
    if folder == FILES and cluster.gpu_operator.is_merged_by_owner:
        return "the ClusterPolicy's owner"
    if cluster.flux is not None:
        return f"`{folder_name(cluster.name, folder)}`"
    return f"`{sync_name(cluster.name, folder) if cluster.argocd is not None else folder}`"


def concerns_nodes(folder: str) -> bool:
    """Whether a folder holds the labels of nodes, or the files that they name."""
    return folder == FILES or folder.partition("/")[0] == Stage.PARTITIONS


def _subject(bad: BadOrder) -> str:
    names = bad.nodes.names
    if bad.hazard is Hazard.UNCOVERED:
        return f"pool `{bad.pools[0]}`"
    if len(names) > 1:
        return f"each of the nodes {listing(names)}"
    if names:
        return f"node `{names[0]}`"
    pool = bad.was or bad.to
    such_as = f", such as `{bad.example}`," if bad.example else ""
    return f"each of {count(bad.nodes.count, 'node')} of pool `{pool.name}`{such_as}" if pool else f"`{bad.example}`"


# --- Files -------------------------------------------------------------------------------------------------------


class Files(Value):
    """The GPU Operator's files: the division of each entry by model, and the device plugin's configurations.

    ``is_read_late`` says that the release's config-manager begins as if its node had no label.
    """

    layouts: Mapping[tuple[str, str], Layout | None]
    configs: Mapping[str, Mapping[str, Any]]
    strategy: ClusterMigStrategy
    is_read_late: bool

    @classmethod
    def of(cls, plan: Plan) -> Files:
        layouts: dict[tuple[str, str], Layout | None] = {(ALL_DISABLED, ""): None}
        layouts |= {(kept.spec.config_name, kept.spec.gpu): kept.layout for kept in plan.retained_layouts}
        layouts |= {(layout.config_name, layout.gpu.id): layout for layout in plan.mig_layouts}
        operator = plan.cluster.gpu_operator
        is_read_late = nearest_line(operator.version).reads_label_late
        return cls(layouts, device_plugin.configurations(plan), operator.spec.mig_strategy, is_read_late)

    def say_same_as(self, other: Files) -> bool:
        """The name of an entry changes with what it says, but for one that the policy keeps."""
        return self._content == other._content

    @cached_property
    def _content(self) -> tuple[object, ...]:
        divisions = {name: layout and content_hash(layout.entries) for name, layout in self.layouts.items()}
        return divisions, self.configs, self.strategy

    def leave_out(self, rule: LabelRule) -> bool:
        """Whether a rule's labels name what is not there."""
        return any(self.lacks(label, value) for label in _NAMES if (value := rule.labels.get(label)) is not None)

    def lacks(self, label: str, value: str) -> bool:
        return value not in (self.entries if label == MIG_CONFIG_LABEL else self.configs)

    @cached_property
    def entries(self) -> frozenset[str]:
        return frozenset(entry for entry, _ in self.layouts)

    def division(self, entry: str, gpu: str) -> Layout | None:
        """Return the division of a model by an entry, or that of another model if the entry is not for this one."""
        others = (layout for (name, _), layout in self.layouts.items() if name == entry)
        return self.layouts.get((entry, gpu)) or next(others, None)


_NAMES: Final = {MIG_CONFIG_LABEL: "the entry", DEVICE_PLUGIN_CONFIG_LABEL: "the configuration"}
"""The part of the files that each label names, in words."""


# --- One kind of node --------------------------------------------------------------------------------------------


class _Fault(NamedTuple):
    """A fault of one combination."""

    what: str
    named: tuple[str, str] | None = None


class _Way(Value):
    """Nodes that are alike, on their way."""

    files: tuple[Files, Files]
    alike: NodeClass
    is_by_rule: bool

    @cached_property
    def folders(self) -> tuple[str, ...]:
        """The folders that make a difference to these nodes, the operator's files first."""
        before, after = (_by_folder(rules) for rules in (self.alike.before, self.alike.after))
        differing = sorted(folder for folder in {*before, *after} if before.get(folder) != after.get(folder))
        files = () if self.files[0].say_same_as(self.files[1]) else (FILES,)
        return (*files, *differing)

    def rules(self, synced: Synced) -> list[LabelRule]:
        """Those that are for the nodes, as each folder has them."""
        rules = [rule for rule in self.alike.before if rule.folder not in synced]
        return [*rules, *(rule for rule in self.alike.after if rule.folder in synced)]

    def labels(self, synced: Synced) -> Mapping[str, str]:
        if self.is_by_rule:
            return _merged(self.rules(synced))
        come = (rule for rule in self.alike.after if rule.folder in synced)
        return {**_merged(self.alike.before), **_merged(come)}

    @cached_property
    def first(self) -> Mapping[str, str]:
        return self.labels(frozenset())

    @cached_property
    def last(self) -> Mapping[str, str]:
        return self.labels(frozenset(self.folders))

    @cached_property
    def pools(self) -> tuple[str, str]:
        """The pools whose labels they have before and afterwards."""
        return self.first.get(POOL_LABEL, ""), self.last.get(POOL_LABEL, "")

    @cached_property
    def is_judged(self) -> bool:
        """Nodes that come from no pool have nothing to lose; those that go to none lose all, in any order."""
        return DEVICE_PLUGIN_CONFIG_LABEL in self.first and DEVICE_PLUGIN_CONFIG_LABEL in self.last

    @cached_property
    def ends(self) -> tuple[Published | None, Published | None]:
        return self.published(frozenset()), self.published(frozenset(self.folders))

    @cached_property
    def is_claimed(self) -> bool:
        """Whether devices are claimed on a side, and not handed out by the device plugin."""
        return DRA_PLUGIN_LABEL in self.first or DRA_PLUGIN_LABEL in self.last

    @cached_property
    def gpus(self) -> int:
        return next((part.nodes.gpus_per_node for part in (self.alike.to, self.alike.was) if part is not None), 0)

    def published(self, synced: Synced) -> Published | None:
        """Return the units that the nodes publish, or None if the files lack what their label names.

        Without a label config-manager takes an empty file (the operator sets `FALLBACK_STRATEGIES=empty`). Where its
        label names what is not there it ends with an error; newer ones start again as if there were no label, before
        they have seen the node (`Get` and `updateConfigName` in `cmd/config-manager/main.go` of
        NVIDIA/k8s-device-plugin, run by `tests/cluster/test_config_manager.py`).
        """
        files, labels = self.at_hand(synced), self.labels(synced)
        key = labels.get(DEVICE_PLUGIN_CONFIG_LABEL)
        otherwise: Mapping[str, Any] | None = {} if key is None or files.is_read_late else None
        config = otherwise if key is None else files.configs.get(key, otherwise)
        return None if config is None else published_by(config, files.strategy, self._division(synced), self.gpus)

    def _division(self, synced: Synced) -> Layout | None:
        """As the entry says that is named; where the file lacks it, or there is no MIG manager's label, as before."""
        entry = self.labels(synced).get(MIG_CONFIG_LABEL, ALL_DISABLED)
        files = self.at_hand(synced)
        is_there = entry in files.entries or not synced
        return files.division(entry, self._gpu) if is_there else self._division(frozenset())

    @property
    def _gpu(self) -> str:
        return next((part.gpu.id for part in (self.alike.to, self.alike.was) if part is not None), "")

    def at_hand(self, synced: Synced) -> Files:
        return self.files[FILES in synced]

    def faults(self, synced: Synced) -> Mapping[Hazard, _Fault]:
        """Return the faults of one combination. A missing label hides the faults that follow from it."""
        labels = self.labels(synced)
        was, will = (found.get(MIG_CONFIG_LABEL, ALL_DISABLED) for found in (self.first, self.last))
        if MIG_CONFIG_LABEL not in labels and ALL_DISABLED not in (was, will):
            return {Hazard.UNLABELLED: _Fault("has no partition label")}
        hazards: dict[Hazard, _Fault] = {}
        if self.is_by_rule and (twice := self._taint_twice(synced)):
            hazards[Hazard.STUCK] = _Fault(f"gets the taint `{twice}` from two pools, and Node Feature Discovery fails")
        third, lacking = self._third(synced), [*self._lacking(synced, labels)]
        for hazard, one in self._of_lacking(synced, lacking, third):
            hazards.setdefault(hazard, one)
        if (
            third is not None
            and DEVICE_PLUGIN_CONFIG_LABEL in labels
            and DEVICE_PLUGIN_CONFIG_LABEL not in dict(lacking)
        ):
            hazards[Hazard.NEITHER] = _Fault(f"publishes {third}")
        elif third is not None and DEVICE_PLUGIN_CONFIG_LABEL not in labels:
            hazards[Hazard.UNSHARED] = _Fault(f"has no `{DEVICE_PLUGIN_CONFIG_LABEL}` and publishes {third}")
        return hazards

    def _third(self, synced: Synced) -> Published | None:
        """Return the units that the nodes publish if they are those of neither side, or None."""
        found = None if self.is_claimed else self.published(synced)
        return None if None in self.ends or found in self.ends else found

    @staticmethod
    def _of_lacking(
        synced: Synced, lacking: Iterable[tuple[str, str]], third: Published | None
    ) -> Iterator[tuple[Hazard, _Fault]]:
        for label, value in lacking:
            if FILES in synced:
                yield Hazard.DANGLING, _Fault(f"names {_NAMES[label]} `{value}`, which is gone", (label, value))
                continue
            text = f"names {_NAMES[label]} `{value}`, which is not there yet"
            if third is not None and label == DEVICE_PLUGIN_CONFIG_LABEL:
                yield Hazard.BARE, _Fault(f"{text}, and publishes {third}", (label, value))
            else:
                yield Hazard.EARLY, _Fault(text, (label, value))

    def _taint_twice(self, synced: Synced) -> str | None:
        """A taint that two pools' rules give, whatever its values.

        Node Feature Discovery writes all taints into an annotation of the node, which it cannot read again where two
        have one key and effect (`setTaints` in `pkg/nfd-master/nfd-master.go`, `ParseTaints` in `pkg/util/taints` of
        kubernetes). So it changes no taint of the node again until somebody removes the annotation.
        """
        rules = (rule.part.taints for rule in self.rules(synced) if rule.part is not None)
        given = Counter(f"{taint.key}:{taint.effect}" for taints in rules for taint in taints)
        return next((taint for taint, times in sorted(given.items()) if times > 1), None)

    def _lacking(self, synced: Synced, labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """The labels that name what is not there; what was not there before is nothing of this step."""
        for label in _NAMES if not self.is_claimed else (MIG_CONFIG_LABEL,):
            value = labels.get(label)
            if value is None or not self.at_hand(synced).lacks(label, value):
                continue
            if value != self.first.get(label) or not self.files[0].lacks(label, value):
                yield label, value


def _by_folder(rules: Iterable[LabelRule]) -> Mapping[str, Sequence[tuple[str, Mapping[str, str]]]]:
    """Return the labels that each folder gives a node, with the order of their rules."""
    return grouped((rule.folder, (rule.order, rule.labels)) for rule in rules)


def _merged(rules: Iterable[LabelRule]) -> dict[str, str]:
    """The labels of a node: of two values of one, that of the later rule."""
    return {key: value for rule in sorted(rules, key=lambda rule: rule.order) for key, value in rule.labels.items()}


# --- All orders --------------------------------------------------------------------------------------------------

_MOST_FOLDERS: Final = 6
"""The most folders of which all combinations are tried. With more folders, at most two are ahead or behind."""


def _judged(step: Step, way: _Way) -> Iterator[BadOrder]:
    alike = way.alike
    found = {
        synced: {  # a label that a list shows on no node is no fault
            hazard: fault
            for hazard, fault in way.faults(synced).items()
            if hazard is not Hazard.DANGLING or fault.named is None or step.naming(*fault.named) != ()
        }
        for synced in _combinations(way.folders)
        if _is_possible(step, way.folders, synced)
    }
    if not any(found.values()):
        return
    safe = _find_safe(way.folders, {synced for synced, hazards in found.items() if not hazards})
    for hazard in Hazard:
        first = min(
            (_explained(step, way, synced, hazard) for synced, hazards in found.items() if hazard in hazards),
            key=lambda explained: (not explained[2], len(explained[0]) + len(explained[1])),
            default=None,
        )
        if first is not None:
            ahead, behind, is_unasked, one = first
            known = step.after.cluster.name, hazard, alike.impact, alike.example
            yield BadOrder(*known, ahead, behind, *one, way.pools, alike.was, alike.to, is_unasked, safe)


def _combinations(folders: Sequence[str]) -> Iterator[Synced]:
    """The fewest folders first."""
    total = len(folders)
    sizes = [size for size in range(total + 1) if total <= _MOST_FOLDERS or min(size, total - size) <= 2]
    return (frozenset(chosen) for size in sizes for chosen in combinations(folders, size))


def _is_possible(step: Step, folders: Sequence[str], synced: Synced) -> bool:
    """Flux applies what labels nodes when the operator is there as the same revision has it (`dependsOn`).

    So does a root of Argo CD with the pools that it orders.
    """
    cluster = step.after.cluster
    if not synced or FILES in synced or FILES not in folders or cluster.spec.node_labels is NodeLabels.EXTERNAL:
        return True
    pools = [step.after.find_pool(folder.partition("/")[2]) for folder in synced]
    by_root = [pool is not None and cluster.argocd is not None and cluster.argocd.orders(pool) for pool in pools]
    return cluster.flux is None and not any(by_root)


def _explained(
    step: Step, way: _Way, synced: Synced, hazard: Hazard
) -> tuple[tuple[str, ...], tuple[str, ...], bool, _Fault]:
    """The folders without which it would not be so, those synced and those that wait; and whether nobody chooses it."""
    matter = [folder for folder in way.folders if hazard not in way.faults(synced ^ {folder})]
    ahead = tuple(folder for folder in matter if folder in synced)
    behind = tuple(folder for folder in matter if folder not in synced)
    is_unasked = FILES not in behind or any(
        may_labels_come_first(step, part.name) for part in (way.alike.was, way.alike.to) if part is not None
    )
    return ahead, behind, is_unasked, way.faults(synced)[hazard]


def _find_safe(folders: Sequence[str], good: set[Synced]) -> tuple[str, ...] | None:
    """An order in which one folder after the other is synced and nothing happens in between."""
    reached: dict[Synced, tuple[str, ...]] = {frozenset(): ()}
    for _ in folders:
        ways = ((way, synced | {folder}, folder) for synced, way in reached.items() for folder in folders)
        reached = {after: (*way, folder) for way, after, folder in ways if after in good and folder not in way}
    return reached.get(frozenset(folders))


# --- Guarantees --------------------------------------------------------------------------------------------------


class _Short(Value):
    """A unit of a pool that nodes come to and go from: how many there are, whatever is synced."""

    pool: str
    resource: str
    steady: int
    ways: tuple[_Way, ...]

    def capacity(self, synced: Synced) -> int:
        return self.steady + sum(_units(way, synced, self.pool, self.resource) for way in self.ways)

    @property
    def least(self) -> int:
        """No combination of what each node hands out before and afterwards has less."""
        ends = ((frozenset[str](), frozenset(way.folders)) for way in self.ways)
        found = zip(self.ways, ends, strict=True)
        return self.steady + sum(min(_units(way, end, self.pool, self.resource) for end in both) for way, both in found)


def _units(way: _Way, synced: Synced, pool: str, resource: str) -> int:
    """Return the units that the nodes add to a pool. Until a file arrives they publish what they did before."""
    if way.labels(synced).get(POOL_LABEL) != pool:
        return 0
    published = way.published(synced) or way.ends[0]
    units = published.units if published is not None else {}
    return len(way.alike.names) * sum(number for (name, _), number in units.items() if name == resource)


def _shortfalls(step: Step, ways: Sequence[_Way]) -> Iterator[BadOrder]:
    """Pools whose nodes are swapped, by name: where some have gone and the others have not come."""
    by_pool = grouped((pool, way) for way in ways for pool in {*way.pools})
    totals = {total.key: total for total in step.before.totals}
    for total in step.after.totals:
        was, meant = totals.get(total.key), by_pool.get(total.pool.name, ())
        resource = total.unit.resource
        if (
            was is None
            or resource is None
            or was.unit.resource != resource
            or not all(way.alike.names for way in meant)
        ):
            continue
        sides = (was.unit.capacity, frozenset[str]()), (total.unit.capacity, frozenset(_folders(meant)))
        others = (
            capacity - sum(_units(way, synced, total.pool.name, resource) for way in meant)
            for capacity, synced in sides
        )
        short = _Short(total.pool.name, resource, min(others), tuple(meant))
        guaranteed = min(was.guaranteed, total.guaranteed)
        if short.least < guaranteed <= min(was.unit.capacity, total.unit.capacity):
            yield from _uncovered(step, short, guaranteed, total.unit.name)


def _folders(ways: Iterable[_Way]) -> tuple[str, ...]:
    return tuple(sorted({folder for way in ways for folder in way.folders}))


_APART: Final = {Hazard.EARLY, Hazard.STUCK}
"""The hazards that concern no units."""


def _uncovered(step: Step, short: _Short, guaranteed: Amount, unit: str) -> Iterator[BadOrder]:
    """The first combination that has less than is guaranteed, and nothing else wrong that would be said of it."""
    folders = _folders(short.ways)
    possible = [synced for synced in _combinations(folders) if _is_possible(step, folders, synced)]
    sound = [synced for synced in possible if not any({*way.faults(synced)} - _APART for way in short.ways)]
    bad = [synced for synced in sound if short.capacity(synced) < guaranteed]
    for synced in bad[:1]:
        matter = [folder for folder in folders if short.capacity(synced ^ {folder}) >= guaranteed]
        names = tuple(sorted({name for way in short.ways for name in way.alike.names}))
        yield BadOrder(
            step.after.cluster.name,
            Hazard.UNCOVERED,
            NodeImpact(len(names), names, None),
            names[0],
            tuple(folder for folder in matter if folder in synced),
            tuple(folder for folder in matter if folder not in synced),
            f"has {short.capacity(synced)} of {amount(guaranteed)} `{unit}` that are guaranteed",
            None,
            (short.pool, short.pool),
            step.before.find_pool(short.pool),
            step.after.find_pool(short.pool),
            is_unasked=FILES not in matter or FILES in synced or may_labels_come_first(step, short.pool),
            safe=_find_safe(folders, {*sound} - {*bad}),
        )


_HELD = (MIG_CONFIG_LABEL, DEVICE_PLUGIN_CONFIG_LABEL)
"""The labels that say what a node hands out."""


class LettingGo(NamedTuple):
    """Nodes of a pool, or of a part of one, that must keep its labels until those of the pools ``to`` are there.

    ``names`` is empty where the pool has its nodes by a pattern: all that it matches may be meant.
    """

    was: Pool
    to: tuple[Pool, ...]
    names: tuple[str, ...]

    @property
    def labels(self) -> dict[str, str]:
        """The labels that the nodes keep. The label that serves claims goes at once if no new pool has that label."""
        is_served = any(DRA_PLUGIN_LABEL in pool.labels for pool in self.to)
        return {key: value for key, value in self.was.labels.items() if is_served or key != DRA_PLUGIN_LABEL}


def letting_go(step: Step) -> Iterator[LettingGo]:
    """All nodes that one order of syncs leaves without labels, by the part of a pool that they leave."""
    found: dict[int, LettingGo] = {}
    for bad in without_labels(step):
        if bad.was is not None and bad.to is not None:
            known = found.get(id(bad.was), LettingGo(bad.was, (), ()))
            names = () if bad.was.nodes.name_pattern else tuple(sorted({*known.names, *bad.nodes.names}))
            found[id(bad.was)] = known._replace(to=(*known.to, bad.to), names=names)
    yield from found.values()


def without_labels(step: Step) -> Iterator[BadOrder]:
    """The orders that leave nodes without labels which they would not do without."""
    return (bad for bad in bad_orders(step) if bad.hazard in (Hazard.UNLABELLED, Hazard.UNSHARED))


def handed_over(step: Step) -> Iterator[tuple[Pool, Transition]]:
    """The nodes that have another pool afterwards, or their pool another name: each with the pool that they had."""
    for old, new in step.pools:
        if old is not None:
            found = [*(transitions(old, new) if new is not None else ())]
            found += (moved for leaving in departures(step, old, new) for moved in moves(old, leaving))
            yield from ((old, moved) for moved in found if old.name != moved.after.name)


def hangs_on_order(step: Step, moved: Transition) -> bool:
    """Whether nodes that another pool takes are without labels in one order of two syncs, and would not do without."""
    return any(bad.was is moved.before and bad.to is moved.after for bad in without_labels(step))


def is_needed(step: Step, kept: RetainedNodes) -> bool:
    """Whether a document keeps the labels of nodes that another pool takes in this very step."""
    return any(
        kept.spec.pool == moved.before.name
        and all(kept.spec.labels.get(key) == moved.before.labels.get(key) for key in _HELD)
        and is_label_gone_between(step, moved.before, moved.after)
        and _has_some(kept.nodes, moved)
        for _, moved in handed_over(step)
    )


def _has_some(nodes: Nodes, moved: Transition) -> bool:
    """Whether some of the nodes are among these; of what only patterns say, one that may match both is enough."""
    if moved.nodes.names:
        return any(has_node(nodes, name) for name in moved.nodes.names)
    if nodes.names:
        return any(has_node(moved.before.nodes, name) for name in nodes.names)
    one, other = find_pattern(nodes.name_pattern), find_pattern(moved.before.nodes.name_pattern)
    return one is not None and other is not None and find_common_name(one, other) is not None
