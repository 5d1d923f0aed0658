"""The effects of changes of pools: of their nodes, their sharing, and their users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from gpuplan.compiler.backends.gpu_operator import device_plugin, mig_parted
from gpuplan.compiler.base.disturbance import ChangeClass, worst
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import count, joined
from gpuplan.compiler.planning.gpu_operator import boards_of
from gpuplan.compiler.planning.grants import refuses_more_than_one
from gpuplan.compiler.planning.kueue import counted_units, flavor_name
from gpuplan.compiler.planning.layouts import entry_of, is_divided_alike
from gpuplan.compiler.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    DynamicMig,
    Mig,
    Mps,
    Pool,
    Taint,
)
from gpuplan.compiler.planning.pools import ALL_DISABLED
from gpuplan.compiler.planning.subjects import about
from gpuplan.compiler.policy.models import Allocation, Effect, NodeLabels
from gpuplan.features.changes.fields import changes_by_row
from gpuplan.features.changes.kinds import class_of_boards
from gpuplan.features.changes.meanwhile import Halves, halves, lost_key, may_labels_come_first, without_file
from gpuplan.features.changes.model import (
    NOTHING_RUNS,
    OTHER_WAY_ROUND,
    REVERT,
    Change,
    division,
    fate_of_queues,
    from_to,
    listed,
    names,
    nodes_of,
    of,
    shared_as,
    verb,
    who_names,
)
from gpuplan.features.changes.nodes import (
    Arrival,
    Departure,
    Transition,
    arrivals,
    capacities,
    departures,
    impact,
    moves,
    pods_on,
    transitions,
)
from gpuplan.features.changes.operator import swaps_drivers
from gpuplan.features.changes.orders import hangs_on_order
from gpuplan.features.changes.step import Step, changes_of


def pool_changes(step: Step) -> Iterator[Change]:
    """The changes of all pools; one that has other nodes' names or patterns under another name was renamed."""
    return changes_of(step, step.pools, _added, _removed, _changed)


# --- Nodes that change hands -------------------------------------------------------------------------------------


class Passage(NamedTuple):
    """The way of nodes from one pool to another. None stands for no known pool.

    ``takes_turns`` says that they are without labels in one order of two syncs, ``swaps_drivers`` that another
    NVIDIADriver brings them their driver.
    """

    was: Pool | None
    to: Pool | None
    takes_turns: bool = False
    swaps_drivers: bool = False

    @property
    def change_class(self) -> ChangeClass:
        """The class of the change for nodes that change hands."""
        loses_partitions = self.is_partitioned and self.to is None
        judged = (
            (self.was is None, ChangeClass.PLUGIN_RESTART),
            (self.was is not None or self._taints, ChangeClass.ADMISSION),
            (self.is_partitioned or self.mps or self.swaps_drivers, ChangeClass.REPARTITION),
            (self.takes_turns, ChangeClass.TWO_STEP),
            (loses_partitions or self.evicts, ChangeClass.DESTRUCTIVE),
        )
        return worst(change_class for is_so, change_class in judged if is_so)

    @property
    def is_partitioned(self) -> bool:
        """Whether GPUs are set up again, or their partitions dissolved."""
        if self.was is None or self.to is None:
            return any(_division(part) is not None for pool in (self.was, self.to) if pool for part in pool.parts)
        divisions, next_divisions = ([_division(part) for part in pool.parts] for pool in (self.was, self.to))
        return divisions != next_divisions

    @property
    def mps(self) -> str:
        """The effect of MPS as the nodes' label names the file of another pool, or "" if neither pool has MPS."""
        if self.was is not None and self.was.runs_mps:
            return _MPS_ENDS
        return _MPS_BEGINS if self.to is not None and self.to.runs_mps else ""

    @property
    def _taints(self) -> list[Taint]:
        return _without(self.to.taints, self.was.taints if self.was else ()) if self.to else []

    @property
    def evicts(self) -> bool:
        return _evict(self._taints)

    @property
    def drains(self) -> bool:
        return self.is_partitioned or self.evicts or bool(self.mps) or self.swaps_drivers

    def effect(self, text: str, on_partitions: str) -> str:
        """The text, with all that comes of it."""
        mps, order = f"; {self.mps}" if self.mps else "", f"; {_ordered(self)}" if self.takes_turns else ""
        evicted = "; pods there that do not tolerate its taints are evicted at once" if self.evicts else ""
        drivers = f"; {_OTHER_DRIVER}" if self.swaps_drivers else ""
        return text + order + (on_partitions if self.is_partitioned else "") + mps + drivers + evicted


def _passage(step: Step, was: Pool | None, to: Pool | None, moved: Iterable[Transition]) -> Passage:
    return Passage(was, to, any(hangs_on_order(step, found) for found in moved), swaps_drivers(step, was, to))


def _ordered(passage: Passage) -> str:
    """Return the effect of the wrong order, with its remedy (`gpuplan.features.changes.orders`)."""
    was, to = (pool.name if pool else "" for pool in passage[:2])
    return (
        f"the nodes have no labels for a while if pool `{was}` is synced before `{to}`. The operator may then write "
        "`all-disabled`, which dissolves partitions or fails half-way, and GPUs are published whole; `gpuplan "
        f"retain --write` keeps the labels of `{was}` until then"
    )


def _reboots(step: Step, *, is_partitioned: bool) -> bool:
    return is_partitioned and step.after.cluster.gpu_operator.spec.reboot_on_mig_change


def _evict(taints: Iterable[Taint]) -> bool:
    return any(taint.effect is Effect.NO_EXECUTE for taint in taints)


_DISSOLVED: Final = (
    "; the operator then labels them `all-disabled`, which dissolves their partitions, or fails halfway where pods "
    "hold some"
)
_OTHER_DRIVER: Final = (
    "the driver's pods there go with the label, and those of another NVIDIADriver come, which evict pods that hold GPUs"
)
_MPS_ENDS: Final = "the MPS daemons there end, and every CUDA process with them: pods that hold GPUs must end first"
_MPS_BEGINS: Final = (
    "the MPS daemons there leave each GPU to their server, which cannot start while another process has the GPU: "
    "pods that hold GPUs must end first"
)


# --- Pools that come, go and have another name -------------------------------------------------------------------


def _added(step: Step, pool: Pool) -> Iterator[Change]:
    """Its nodes may run something already: nothing here knows what they were before.

    Of those that come from pools that stay, these tell.
    """
    is_chosen = bool(pool.nodes.names or pool.nodes.name_pattern)
    if is_chosen and next(arrivals(step, None, pool), None) is None:
        yield Change(
            *of(step.after, pool),
            ChangeClass.ADMISSION,
            "pool is added",
            "its nodes come from other pools, which say what becomes of them",
            "reverting takes the pool away again",
            nodes=impact(pool.nodes),
            capacity=capacities(None, pool),
            windows=pool.windows,
        )
        return
    yield _arrived(step, None, pool, Arrival(pool, impact(pool.nodes), None))._replace(
        what="pool is added", undo="reverting takes the pool away again, which is destructive"
    )


def _removed(step: Step, pool: Pool) -> Iterator[Change]:
    """Yield the change of a removed pool. The change of another pool says what its nodes become there.

    A node without `nvidia.com/mig.config` gets `all-disabled` from the operator, and mig-manager then dissolves its
    partitions (`controllers/nodelabeling_controller.go` of NVIDIA/gpu-operator).
    """
    nodes, is_partitioned = impact(pool.nodes), Passage(pool, None).is_partitioned
    where = names([item.to.name for item in departures(step, pool, None) if item.to is not None])
    gone = _DISSOLVED if is_partitioned else ""
    if not is_partitioned and is_plugin_config_gone(step, pool):
        gone = f"; the operator's sync takes their configuration away before: {without_file(step)}"
    yield Change(
        *of(step.before, pool),
        ChangeClass.DESTRUCTIVE,
        "pool is removed" + (f"; its nodes go to {where}" if where else ""),
        f"labels and taints of the pool go from {nodes_of(nodes)}" + gone,
        "reverting brings labels and partitions back, not the pods",
        nodes=nodes,
        capacity=capacities(pool, None),
        pods=pods_on(step.before, pool, nodes.count) if is_partitioned else 0,
        needs_drain=is_partitioned,
        needs_reboot=_reboots(step, is_partitioned=is_partitioned),
    )


def is_plugin_config_gone(step: Step, pool: Pool) -> bool:
    """Whether the file goes that the label of a pool's nodes names, and with it all that they hand out.

    (config-manager stops at a key that is not there: `updateConfigName` in `cmd/config-manager/main.go` of
    NVIDIA/k8s-device-plugin.)
    """
    known = device_plugin.configurations(step.after)
    keys = {part.labels[DEVICE_PLUGIN_CONFIG_LABEL] for part in pool.parts}
    return pool.spec.allocation is Allocation.DEVICE_PLUGIN and not keys <= known.keys()


def _changed(step: Step, old: Pool, new: Pool) -> Iterator[Change]:
    if old.name != new.name:
        lost = lost_key(step, old, new)
        is_held = step.after.scheduler.has_queues
        passage = _passage(step, old, new, transitions(old, new))
        takes_turns = passage.takes_turns
        effects = [
            *([_ordered(passage)] if takes_turns else []),
            "pods that choose the pool by its old name find no node",
            *([lost] if lost else []),
            *([f"the scheduler's objects of the old name {fate_of_queues(step.after.scheduler)}"] if is_held else []),
        ]
        yield Change(
            *of(step.after, new),
            ChangeClass.TWO_STEP if takes_turns or lost or is_held else ChangeClass.ADMISSION,
            f"pool `{old.name}` is called `{new.name}`",
            "; ".join(effects),
            OTHER_WAY_ROUND,
            nodes=impact(new.nodes),
        )
    yield from changes_by_row(step, old, new)
    for field, judge in _JUDGES.items():
        yield from (
            change if change.at.source != new.at.source else change._replace(at=new.at / field)
            for change in judge(step, old, new)
        )


# --- Sharing -----------------------------------------------------------------------------------------------------


def _sharing(step: Step, old: Pool, new: Pool) -> Iterator[Change]:
    if old.spec.allocation is not new.spec.allocation:
        claims, nodes = new.spec.allocation is Allocation.DRA, impact(new.nodes)
        yield Change(
            *of(step.after, new),
            ChangeClass.RECREATE,
            "devices are had by claims, not by resources" if claims else "devices are had by resources, not by claims",
            "pods ask in another way: those that run keep their devices unseen by whoever now hands them out, and must "
            "be recreated",
            OTHER_WAY_ROUND,
            nodes=nodes,
            capacity=capacities(old, new),
            pods=pods_on(step.before, old, nodes.count),
            needs_drain=True,
            windows=new.windows,
        )
    elif _asked(old) != _asked(new):  # a pod that asks by an old name waits for ever: its resources never change
        asked, asks = _asked(old), _asked(new)
        gone, come = [key for key in asked if key not in asks], [key for key in asks if key not in asked]
        other = [key for key in asks if key in asked and asks[key] != asked[key]]
        effects = [
            f"new pods that ask for {names(gone)} are not admitted" if gone else "",
            f"pods may ask for {names(come)}" if come else "",
            f"a container may ask for {'one' if asks[other[0]] else 'several'} of {names(other)}" if other else "",
        ]
        yield Change(
            *of(step.after, new),
            ChangeClass.ADMISSION if gone or other else ChangeClass.QUOTA,
            "the pool hands out other units" if gone or come else "the pool hands out its units otherwise",
            "; ".join(filter(None, effects)),
            capacity=capacities(old, new),
        )
    for moved in transitions(old, new):
        between = halves(step, moved)
        if isinstance(moved.before.sharing, DynamicMig) and isinstance(moved.after.sharing, DynamicMig):
            continue  # other units are all that comes of it: the driver publishes every profile anyway
        if _makes_otherwise(moved):
            yield _made_otherwise(step, new, moved)
        elif _has_other_config(moved):
            yield _repartitioned(step, new, moved, between)
        elif shared_as(moved.before.sharing) != shared_as(moved.after.sharing):
            yield _shared_otherwise(step, new, moved)
        elif not _names_another_key(old, new) and (between.labels_first is not None or _reads_other_key(step, moved)):
            yield _named_otherwise(step, new, moved, between)


def _names(step: Step, old: Pool, new: Pool) -> Iterator[Change]:
    """The names that a pool keeps; where it is renamed as well, that tells of its flavor."""
    for moved in transitions(old, new) if _names_another_key(old, new) else ():
        is_told = _makes_otherwise(moved) or _has_other_config(moved)
        is_told |= shared_as(moved.before.sharing) != shared_as(moved.after.sharing)
        if not is_told and _key(moved.before) != _key(moved.after):
            yield _named_otherwise(step, new, moved, halves(step, moved))
    is_counted = all(plan.scheduler.has_queues_for_all_pools for plan in (step.before, step.after))
    if is_counted and old.name == new.name and flavor_name(old) != flavor_name(new) and counted_units(old):
        yield Change(
            *of(step.after, new),
            ChangeClass.TWO_STEP,
            f"its ResourceFlavor `{flavor_name(old)}` is called `{flavor_name(new)}`",
            f"the scheduler's objects of the old name {fate_of_queues(step.after.scheduler)}; what runs holds quota "
            "under the old one",
            OTHER_WAY_ROUND,
            pods=pods_on(step.before, old, old.nodes.count),
        )


def _names_another_key(old: Pool, new: Pool) -> bool:
    return old.spec.names.device_plugin_config != new.spec.names.device_plugin_config


def _repartitioned(step: Step, new: Pool, moved: Transition, between: Halves) -> Change:
    """The nodes' `nvidia.com/mig.config` changes, and mig-manager acts on each at once.

    It neither cordons nor drains, and fails where a pod holds a GPU (`pkg/mig/reconfigure` of NVIDIA/mig-parted). An
    entry that the GPUs match already is left alone there. To a label that names no entry, it says `failed` and does not
    try again until the label changes.
    """
    old_config = _mig_config(moved.before)
    by = step.naming(MIG_CONFIG_LABEL, old_config) if old_config is not None else ()
    vanishes = by != () and old_config not in mig_parted.configuration(step.after)["mig-configs"]
    is_same = _division(moved.before) == _division(moved.after)
    may_reboot = _reboots(step, is_partitioned=_modes(moved.before) != _modes(moved.after))
    effects = [
        f"`{old_config}` vanishes while {who_names(by)}: one that restarts before its label moves fails"
        if vanishes
        else "",
        lost := lost_key(step, moved.before, moved.after),
        "the GPUs are divided as before"
        if is_same
        else f"mig-manager sets up the GPUs of {nodes_of(moved.nodes)} at once and drains none: pods that hold them "
        "must end first",
        f"`{old_config}` keeps its name, so that no label moves: it is so with the sync of the GPU Operator, whoever "
        "approves the pool"
        if is_entry_changed(moved)
        else "",
        *_between(between),
        "nodes reboot where the mode of their GPUs does not switch without" if may_reboot else "",
    ]
    if vanishes or lost or _is_out_of_order(step, new, between):
        change_class = ChangeClass.TWO_STEP
    else:
        change_class = ChangeClass.PLUGIN_RESTART if is_same else ChangeClass.REPARTITION
    return Change(
        *of(step.after, new),
        change_class,
        _repartition_text(moved, is_same=is_same),
        "; ".join(filter(None, effects)),
        REVERT if is_same else "reverting partitions the same nodes again, which needs them drained again",
        nodes=moved.nodes,
        capacity=capacities(moved.before, moved.after, moved.nodes.count),
        pods=0 if is_same else pods_on(step.before, moved.before, moved.nodes.count),
        needs_drain=not is_same,
        needs_reboot=may_reboot,
        windows=() if is_entry_changed(moved) else new.windows,
    )


def _makes_otherwise(moved: Transition) -> bool:
    """Whether partitions are made on demand only before, or only after."""
    return isinstance(moved.before.sharing, DynamicMig) is not isinstance(moved.after.sharing, DynamicMig)


def _made_otherwise(step: Step, new: Pool, moved: Transition) -> Change:
    """The driver for DRA takes over from mig-manager, or gives back.

    When it starts with its gate it removes each instance that no claim holds (`DestroyUnknownMIGDevices` in
    `cmd/gpu-kubelet-plugin/device_state.go` of NVIDIA's driver for DRA). Without the gate it publishes what it finds.
    """
    old, sharing = moved.before.sharing, moved.after.sharing
    begins = isinstance(sharing, DynamicMig)
    return Change(
        *of(step.after, new),
        ChangeClass.DESTRUCTIVE if begins else ChangeClass.REPARTITION,
        f"GPUs are shared otherwise: {from_to(shared_as(old), shared_as(sharing))}",
        "mig-manager leaves, and the driver for DRA removes the partitions that no claim holds, as it starts with its "
        f"gate `DynamicMIG`: pods on {nodes_of(moved.nodes)} that hold GPUs must end first"
        if begins
        else "mig-manager returns and sets up the GPUs, and fails if pods hold partitions: first drain "
        f"{nodes_of(moved.nodes)}, and start the driver for DRA without its gate `DynamicMIG`",
        "reverting is the same the other way round, and needs the nodes drained again",
        nodes=moved.nodes,
        capacity=capacities(moved.before, moved.after, moved.nodes.count),
        pods=pods_on(step.before, moved.before, moved.nodes.count),
        needs_drain=True,
        windows=new.windows,
    )


def _is_out_of_order(step: Step, pool: Pool, between: Halves) -> bool:
    """Whether nodes publish what is of neither state in the order in which the halves of the step arrive.

    The GPU Operator's files are synced by themselves, and labels as late as somebody approves it.
    """
    may_be_late = between.labels_first is not None and may_labels_come_first(step, pool.name)
    return between.files_first is not None or may_be_late


def _between(between: Halves) -> Iterator[str]:
    if between.files_first is not None:
        yield f"from the sync of the GPU Operator to that of the labels each node publishes {between.files_first}"
    if between.labels_first is not None:
        yield (
            "sync the GPU Operator first and wait until it is healthy, then the labels: the other way round each node "
            f"publishes {between.labels_first}"
        )


def _repartition_text(moved: Transition, *, is_same: bool) -> str:
    old, new = moved.before.sharing, moved.after.sharing
    if isinstance(old, Mig) and isinstance(new, Mig):
        if is_same and old.layout.name == new.layout.name:
            return f"the entry of layout `{old.layout.name}` is called `{new.layout.config_name}`"
        if old.layout.name == new.layout.name:
            return f"layout `{new.layout.name}` is edited: {from_to(division(old.layout), division(new.layout))}"
        if is_same:
            return f"layout `{old.layout.name}` is called `{new.layout.name}`"
    return f"GPUs are shared otherwise: {from_to(shared_as(old), shared_as(new))}"


def _shared_otherwise(step: Step, new: Pool, moved: Transition) -> Change:
    """From MPS, and to it, pods do not go on.

    Config-manager tells the daemon of a new file, which then starts again (`SIGHUP` in `cmd/mps-control-daemon/main.go`
    of NVIDIA/k8s-device-plugin). A daemon that starts sets GPUs to `EXCLUSIVE_PROCESS` (`Start` in `mps/daemon.go`
    there), at once: https://docs.nvidia.com/deploy/mps/index.html.
    """
    old, sharing = moved.before.sharing, moved.after.sharing
    must_end = isinstance(old, Mps) or isinstance(sharing, Mps)
    goes_on = "pods that run go on, and until they end more may share a GPU than there are units"
    lost = lost_key(step, moved.before, moved.after)
    found = ChangeClass.REPARTITION if must_end else ChangeClass.PLUGIN_RESTART
    return Change(
        *of(step.after, new),
        ChangeClass.TWO_STEP if lost else found,
        f"GPUs are shared otherwise: {from_to(shared_as(old), shared_as(sharing))}",
        f"the device plugin publishes other units on {nodes_of(moved.nodes)}; "
        + (Passage(moved.before, moved.after).mps if must_end else goes_on)
        + (f"; {lost}" if lost else ""),
        "reverting ends what runs there again" if must_end else REVERT,
        nodes=moved.nodes,
        capacity=capacities(moved.before, moved.after, moved.nodes.count),
        pods=pods_on(step.before, moved.before, moved.nodes.count) if must_end else 0,
        needs_drain=must_end,
        windows=new.windows if _key(moved.before) != _key(moved.after) else (),
    )


def _named_otherwise(step: Step, new: Pool, moved: Transition, between: Halves) -> Change:
    """Nodes are shared as they were, such as where a pool no longer keeps a key, or a rollout of long ago ends.

    Config-manager tells what reads the file of another name as of another content (`updateSymlink` in
    `cmd/config-manager/main.go` of NVIDIA/k8s-device-plugin).
    """
    ends_mps = moved.before.runs_mps and _reads_other_key(step, moved)
    lost = lost_key(step, moved.before, moved.after)
    if lost or _is_out_of_order(step, new, between):
        found = ChangeClass.TWO_STEP
    else:
        found = ChangeClass.REPARTITION if ends_mps else ChangeClass.PLUGIN_RESTART
    goes_on = "the device plugin reads it as the label moves, and pods that hold GPUs go on"
    return Change(
        *of(step.after, new),
        found,
        "the device plugin's configuration of its nodes has another name",
        "; ".join([*_between(between), *([_MPS_ENDS] if ends_mps else []), *([lost] if lost else [])]) or goes_on,
        "reverting ends what runs there again" if ends_mps else REVERT,
        nodes=moved.nodes,
        pods=pods_on(step.before, moved.before, moved.nodes.count) if ends_mps else 0,
        needs_drain=ends_mps,
        windows=new.windows,
    )


def _reads_other_key(step: Step, moved: Transition) -> bool:
    """Whether nodes get another key where the ConfigMap keeps its name: elsewhere all pods that read it restart."""
    keeps = [plan.cluster.gpu_operator.keeps_plugin_file for plan in (step.before, step.after)]
    is_claimed = Allocation.DRA in (moved.before.spec.allocation, moved.after.spec.allocation)
    return any(keeps) and not is_claimed and _key(moved.before) != _key(moved.after)


def _key(part: Pool) -> str:
    """Return the key that nodes read. With another key their units change as late as their labels do."""
    return part.labels[DEVICE_PLUGIN_CONFIG_LABEL]


def _asked(pool: Pool) -> dict[str, bool]:
    """Return the names by which pods ask for units, each with whether a container may ask for just one."""
    return {unit.asked_as or unit.name: refuses_more_than_one(pool, unit) for unit in pool.units}


def is_partitioned_anew(moved: Transition) -> bool:
    """Whether the nodes' GPUs are set up again; a layout that only has another name changes nothing of them."""
    is_set_up = _has_other_config(moved) or _makes_otherwise(moved)
    return is_set_up and _division(moved.before) != _division(moved.after)


def _has_other_config(moved: Transition) -> bool:
    configs = {_mig_config(moved.before), _mig_config(moved.after)}
    return is_entry_changed(moved) or (len(configs) > 1 and not configs <= {None, ALL_DISABLED})


def is_entry_changed(moved: Transition) -> bool:
    """Whether the entry that nodes name goes on under its name, and says something else."""
    old, new = moved.before.sharing, moved.after.sharing
    if not isinstance(old, Mig) or not isinstance(new, Mig):
        return False
    is_kept = old.layout.config_name == new.layout.config_name
    return is_kept and not is_divided_alike(old.layout, new.layout)


def _mig_config(pool: Pool) -> str | None:
    return pool.labels.get(MIG_CONFIG_LABEL)


def _division(pool: Pool) -> object:
    """Return the division of a node's GPUs, or None if no GPU is divided."""
    match pool.sharing:
        case Mig():
            return pool.gpu.id, _instances(pool)
        case DynamicMig():
            return pool.gpu.id, "on demand"
        case _:
            return None


def _modes(pool: Pool) -> list[bool]:
    """Whether MIG is on, for each GPU of a node. Switching it resets the GPU, and reboots the node if that fails.

    (`WITH_REBOOT` in `pkg/mig/reconfigure/reconfigure.go` of NVIDIA/mig-parted.)
    """
    return [instances is not None for instances in _instances(pool)]


def _instances(pool: Pool) -> list[Mapping[str, int] | None]:
    """The instances of each GPU of a node; None where MIG is off."""
    if not isinstance(pool.sharing, Mig):
        return [None] * pool.nodes.gpus_per_node
    entries = (entry_of(pool.sharing.layout, index) for index in range(pool.nodes.gpus_per_node))
    return [
        {name: count for name, count in entry.instances.items() if count} if entry and entry.mig_enabled else None
        for entry in entries
    ]


# --- Nodes -------------------------------------------------------------------------------------------------------


def _nodes(step: Step, old: Pool, new: Pool) -> Iterator[Change]:
    """Nodes that come from a pool that stays are told of with that pool."""
    yield from (_departed(step, old, new, leaving) for leaving in departures(step, old, new))
    yield from (_arrived(step, old, new, coming) for coming in arrivals(step, old, new))
    one, other = old.nodes, new.nodes
    planned, now = old.spec.nodes.count, new.spec.nodes.count
    texts = []
    if old.gpu.id != new.gpu.id:
        texts.append(f"the GPUs are {new.gpu.id}, not {old.gpu.id}")
    if planned != now:
        texts.append(f"the plan counts {count(now, 'node')}, not {planned}")
    if one.gpus_per_node != other.gpus_per_node:
        texts.append(f"nodes have {other.gpus_per_node} GPUs, not {one.gpus_per_node}")
    if one.name_pattern != other.name_pattern:
        texts.append(_chosen(new))
    if one.selector != other.selector:
        texts.append("nodes are chosen by other labels")
    elif not texts and set(one.names) != set(other.names):
        texts.append("its nodes are others")
    if texts:
        effect = f"there are other numbers of units to hand out; {NOTHING_RUNS}"
        yield Change(*of(step.after, new), ChangeClass.QUOTA, "; ".join(texts), effect, capacity=capacities(old, new))
    yield from _boards(step, old, new)


def _boards(step: Step, old: Pool, new: Pool) -> Iterator[Change]:
    """Nodes of the pool that have another board than its model are labelled, or they are not."""
    before, after = boards_of(step.before, old), boards_of(step.after, new)
    classes = [class_of_boards(before, after, one.labels, other.labels) for one in old.parts for other in new.parts]
    found = worst(classes)
    if found is ChangeClass.NONE:
        return
    is_own = any(pool.nodes.boards for pool in (old, new))
    place = new.nodes.at / "matchBoards" if is_own else step.after.cluster.at / "matchBoards"
    goes, comes = (_passage(step, was, to, ()) for was, to in ((old, None), (None, new)))
    if after:
        which = "all nodes with a board of {} are labelled, and no others" if new.nodes.are_by_board else _ONLY_BOARDS
        what = f"{which.format(new.gpu.id)}: {joined(sorted(after))}"
        effect = "a node with another PCI id loses the pool's labels and taints"
        effect = goes.effect(effect, _DISSOLVED)
        effect += "; `lspci -nn -d 10de:` prints a node's ids"
    else:
        what = "nodes with any board of NVIDIA's are labelled"
        effect = "a node with another board and a name of the pool gets its labels and taints"
        effect = comes.effect(effect, ", and mig-manager partitions its GPUs")
    passages = [goes] if after and not (before and before <= after) else []
    passages += [comes] if before and not (after and after <= before) else []
    yield Change(
        *of(step.after, new, place),
        worst([found, *(passage.change_class for passage in passages)]),
        what,
        effect,
        nodes=impact(old.nodes if goes in passages else new.nodes),
        pods=pods_on(step.before, old, old.nodes.count) if goes in passages and goes.drains else 0,
        needs_drain=any(passage.drains for passage in passages),
        windows=new.windows,
    )


_ONLY_BOARDS: Final = "only nodes with a board of {} are labelled"


def _departed(step: Step, old: Pool, new: Pool, leaving: Departure) -> Change:
    nodes, to, passage = leaving.nodes, leaving.to, _passage(step, old, leaving.to, moves(old, leaving))
    is_partitioned = passage.is_partitioned
    if to is None and step.before.cluster.spec.node_labels is step.after.cluster.spec.node_labels is NodeLabels.NODE:
        return Change(
            *of(step.after, new),
            ChangeClass.ADMISSION,
            f"{verb(nodes, 'leaves', 'leave')} the pool for none",
            "labels and taints stay on them until somebody takes them away",
            nodes=nodes,
            windows=new.windows,
        )
    if to is None:
        what = f"{verb(nodes, 'leaves', 'leave')} the pool for none"
        if not nodes.names:
            by = "boards" if nodes.pattern is None else "patterns"
            what += f", as {by} say (`--nodes FILE` shows which)"
        effect = passage.effect("labels and taints of the pool go from them", _DISSOLVED)
        undo = "reverting brings labels and partitions back, not the pods" if is_partitioned else REVERT
    else:
        what = f"{verb(nodes, 'goes', 'go')} to pool `{to.name}`"
        sets_up = ", and mig-manager sets up their GPUs again: pods that hold them must end first"
        effect = passage.effect("they get that pool's labels and taints", sets_up)
        undo = "reverting moves them back" + (", which needs them drained again" if is_partitioned else "")
    return _handed_over(step, old, new, passage, (what, effect, undo))._replace(
        nodes=nodes,
        also=about(to) if to is not None else (),
        pods=pods_on(step.before, old, nodes.count) if passage.drains else 0,
    )


def _arrived(step: Step, old: Pool | None, new: Pool, coming: Arrival) -> Change:
    nodes, was = coming.nodes, coming.was
    moved = () if was is None else (Transition(was, coming.to, nodes),)
    passage = _passage(step, was, coming.to, moved)
    by = f"match `{nodes.pattern}`" if nodes.pattern else f"have a board of {coming.to.gpu.id}"
    come = names(nodes.names) if nodes.names else f"{nodes_of(nodes)} at most that {by}"
    what = f"{come} {'joins' if nodes.count == 1 else 'join'}" + (f" from pool `{was.name}`" if was else "")
    effect = passage.effect(
        f"labels and taints come to {nodes_of(nodes)}",
        "; mig-manager partitions the GPUs there, on which nothing may run",
    )
    undo = "reverting takes them out of the pool again" + (", which is destructive" if passage.is_partitioned else "")
    return _handed_over(step, old, new, passage, (what, effect, undo))._replace(
        nodes=replace(nodes, are_new=was is None)
    )


def _handed_over(step: Step, old: Pool | None, new: Pool, passage: Passage, texts: tuple[str, str, str]) -> Change:
    return Change(
        *of(step.after, new),
        passage.change_class,
        *texts,
        capacity=capacities(old, new),
        needs_drain=passage.drains,
        needs_reboot=_reboots(step, is_partitioned=passage.is_partitioned),
        windows=new.windows,
    )


def _chosen(pool: Pool) -> str:
    """Return the way, in words, in which nodes come to a pool whose pattern changed."""
    if pool.nodes.name_pattern:
        return f"the nodes' names match `{pool.nodes.name_pattern}`"
    if pool.nodes.are_by_board:
        return f"nodes are chosen by their boards: {pool.gpu.id}"
    return "nodes are named" if pool.nodes.names else "nodes are neither named nor matched by a pattern"


# --- Who may use the pool, and how -------------------------------------------------------------------------------


def _taints(step: Step, old: Pool, new: Pool) -> Iterator[Change]:
    gone, come = _without(old.taints, new.taints), _without(new.taints, old.taints)
    evicts, nodes = _evict(come), impact(new.nodes)
    closes = bool(new.barrier) and not old.barrier
    effect = "other pods may come to the nodes; those there stay"
    if evicts:
        effect = "pods that do not tolerate it are evicted at once"
    elif closes:
        effect = (
            "new pods without a toleration do not run on the nodes, even of DaemonSets and of other namespaces; "
            "running pods stay"
        )
    if gone or come:
        place = next((taint.at for taint in come if taint.is_default), None)
        yield Change(
            *of(step.after, new, place),
            ChangeClass.DESTRUCTIVE if evicts else ChangeClass.TAINT if closes else ChangeClass.ADMISSION,
            "; ".join(listed(("loses", [*map(_taint, gone)]), ("gets", [*map(_taint, come)]))),
            effect,
            "reverting lets pods in again, and brings none back" if evicts else REVERT,
            nodes=nodes,
            pods=pods_on(step.before, old, nodes.count) if evicts else 0,
            needs_drain=evicts,
            windows=new.windows,
            closing=new.barrier if closes else (),
        )
    elif [*map(taint_key, old.taints)] != [*map(taint_key, new.taints)]:
        yield Change(*of(step.after, new), ChangeClass.METADATA, "taints are listed in another order")


def _without(taints: Iterable[Taint], others: Iterable[Taint]) -> list[Taint]:
    known = set(map(taint_key, others))
    return [taint for taint in taints if taint_key(taint) not in known]


def taint_key(taint: Taint) -> tuple[str, str, Effect]:
    return taint.key, taint.value, taint.effect


def _taint(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


_JUDGES: Final[Mapping[str, Callable[[Step, Pool, Pool], Iterator[Change]]]] = {
    "sharing": _sharing,
    "nodes": _nodes,
    "taints": _taints,
    "names": _names,
}
"""The judges of those fields of a pool for which nodes are looked at."""
