"""What changes of pools do: their nodes, how these are shared, and who may use them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from gpuplan.backends.gpu_operator import device_plugin, mig_parted
from gpuplan.changes.capacity import capacities, pods_on
from gpuplan.changes.meanwhile import Halves, halves, is_label_gone_between, may_labels_come_first
from gpuplan.changes.model import Change, ChangeClass, change_of, worst
from gpuplan.changes.nodes import Arrival, Departure, Transition, arrivals, departures, impact, transitions
from gpuplan.changes.pairing import successors
from gpuplan.changes.wording import NOTHING_RUNS, REVERT, division, from_to, names, nodes_of, shared_as, verb
from gpuplan.planning.grants import refuses_more_than_one
from gpuplan.planning.layouts import entry_of
from gpuplan.planning.plan import MIG_CONFIG_LABEL, Mig, Mps, Plan, Pool
from gpuplan.planning.pools import ALL_DISABLED
from gpuplan.planning.projects import seconds
from gpuplan.planning.subjects import about
from gpuplan.policy.models import Allocation, Effect, Guard, Taint

"""Their objects of a pool cannot go while work is in them.

Kueue keeps a ResourceFlavor by a finalizer while a ClusterQueue names it, and a ClusterQueue while work holds quota of
it (`pkg/controller/core` there); KAI-Scheduler's queues are kept by those below them.
"""


def pool_changes(before: Plan, after: Plan) -> Iterator[Change]:
    """The changes of all pools; one that has other nodes' names or patterns under another name was renamed."""
    for old, new in pairs(before, after):
        if old is None:
            if new is not None:
                yield _added(before, after, new)
        elif new is None:
            yield _removed(before, after, old)
        else:
            also = () if old.name == new.name else about(old)
            changes = _changed(before, after, old, new)
            yield from (change._replace(also=(*also, *change.also)) for change in changes)


def pairs(before: Plan, after: Plan) -> Iterator[tuple[Pool | None, Pool | None]]:
    """Each pool and what became of it."""
    return successors(before.pools, after.pools, _has_same_nodes)


def renamed(before: Plan, after: Plan) -> dict[str, str]:
    """The pools that have another name now, by the name that they had."""
    return {old.name: new.name for old, new in pairs(before, after) if old and new and old.name != new.name}


def _has_same_nodes(one: Pool, other: Pool) -> bool:
    return (
        one.gpu.id == other.gpu.id
        and bool(one.nodes.names or one.nodes.name_pattern)
        and set(one.nodes.names) == set(other.nodes.names)
        and one.nodes.name_pattern == other.nodes.name_pattern
    )


# --- Pools that come and go --------------------------------------------------------------------------------------


def _added(before: Plan, after: Plan, pool: Pool) -> Change:
    """Its nodes may run something already: nothing here knows what they were before."""
    return _arrived(before, after, None, pool, Arrival(pool, impact(pool.nodes), None))._replace(
        what="pool is added", undo="reverting takes the pool away again, which is destructive"
    )


def class_of_arrival(was: Pool | None, pool: Pool) -> ChangeClass:
    """How far it disturbs nodes that they come to a pool, from another one or from none that is known."""
    return worst(_classes_of_arrival(was, pool))


def _classes_of_arrival(was: Pool | None, pool: Pool) -> Iterator[ChangeClass]:
    yield ChangeClass.PLUGIN_RESTART if was is None else ChangeClass.ADMISSION
    if _is_partitioned_on_arrival(was, pool) or _mps_effect(was, pool):
        yield ChangeClass.REPARTITION
    if taints := _without(pool.spec.taints, was.spec.taints if was else ()):
        yield ChangeClass.DESTRUCTIVE if _evict(taints) else ChangeClass.ADMISSION


def _is_partitioned_on_arrival(was: Pool | None, pool: Pool) -> bool:
    if was is None:
        return any(_mig_config(part) not in (None, ALL_DISABLED) for part in pool.parts)
    return _divisions(was) != _divisions(pool)


def _mps_effect(was: Pool | None, to: Pool | None) -> str:
    """What MPS does on nodes as their label names the file of another pool; empty where neither pool has it."""
    if was is not None and was.runs_mps:
        return _MPS_ENDS
    return _MPS_BEGINS if to is not None and to.runs_mps else ""


def _evict(taints: Iterable[Taint]) -> bool:
    return any(taint.effect is Effect.NO_EXECUTE for taint in taints)


def _removed(before: Plan, after: Plan, pool: Pool) -> Change:
    """What its nodes become elsewhere is said of the pool that they come to.

    A node without `nvidia.com/mig.config` gets `all-disabled` from the operator, and mig-manager then dissolves its
    partitions (`controllers/nodelabeling_controller.go` of NVIDIA/gpu-operator).
    """
    leaving = departures(pool, None, before, after)
    nodes = impact(pool.nodes)
    is_partitioned = any(isinstance(part.sharing, Mig) for part in pool.parts)
    where = names([item.to.name for item in leaving if item.to is not None])
    return change_of(
        before,
        pool,
        ChangeClass.DESTRUCTIVE,
        "pool is removed" + (f"; its nodes go to {where}" if where else ""),
        f"labels and taints of the pool go from {nodes_of(nodes)}" + (_DISSOLVED if is_partitioned else ""),
        "reverting brings labels and partitions back, not the pods",
    )._replace(
        nodes=nodes,
        capacity=capacities(pool, None),
        pods=pods_on(before, pool, nodes.count) if is_partitioned else 0,
        needs_drain=is_partitioned,
        needs_reboot=is_partitioned and after.cluster.gpu_operator.spec.reboot_on_mig_change,
    )


_DISSOLVED: Final = (
    "; the operator then labels them `all-disabled`, which dissolves their partitions, or fails halfway where pods "
    "hold some"
)


# --- Pools that stay ---------------------------------------------------------------------------------------------


def _changed(before: Plan, after: Plan, old: Pool, new: Pool) -> Iterator[Change]:
    if old.name != new.name:
        yield _renamed(before, after, old, new)
    for field, changes in (
        ("sharing", _sharing(before, after, old, new)),
        ("nodes", _leaving(before, after, old, new)),
        ("nodes", _coming(before, after, old, new)),
        ("nodes", _nodes(after, old, new)),
        ("placement", _placement(after, old, new)),
        ("taints", _taints(before, after, old, new)),
        ("nodeLabels", _labels(after, old, new)),
        ("topology", _topology(after, old, new)),
        ("disruption", _disruption(after, old, new)),
    ):
        yield from (change._replace(at=change.at / field) for change in changes)


def _renamed(before: Plan, after: Plan, old: Pool, new: Pool) -> Change:
    """config-manager stops at a key that is not there (`updateConfigName` in `cmd/config-manager/main.go` of
    NVIDIA/k8s-device-plugin)."""
    vanishes = old.name not in device_plugin.data(after) and new.spec.allocation is Allocation.DEVICE_PLUGIN
    is_held = after.scheduler.has_queues
    takes_turns = _is_label_gone(before, after, old, new)
    effects = [
        *([_ordered(old, new)] if takes_turns else []),
        "pods that choose the pool by its old name find no node",
        *(["until the nodes' label moves, their device plugin finds no configuration"] if vanishes else []),
        *(["the scheduler's objects of the old name stay while work is in them"] if is_held else []),
    ]
    return change_of(
        after,
        new,
        ChangeClass.TWO_STEP if takes_turns or vanishes or is_held else ChangeClass.ADMISSION,
        f"pool `{old.name}` is called `{new.name}`",
        "; ".join(effects),
        "reverting is the same the other way round",
    )._replace(
        nodes=impact(new.nodes),
        pods=0,
    )


def _is_label_gone(before: Plan, after: Plan, was: Pool, to: Pool) -> bool:
    return any(is_label_gone_between(before, after, one, other) for one in was.parts for other in to.parts)


def _ordered(was: Pool, to: Pool) -> str:
    """The order in which nodes keep `nvidia.com/mig.config` (`gpuplan.changes.meanwhile`)."""
    return (
        f"sync the labels of pool `{to.name}` first, then those of `{was.name}`: the other way round the nodes have no "
        "`nvidia.com/mig.config` for a while, in which the operator may write `all-disabled`: that dissolves their "
        "partitions, or fails halfway where pods hold some"
    )


# --- Sharing -----------------------------------------------------------------------------------------------------


def _sharing(before: Plan, after: Plan, old: Pool, new: Pool) -> Iterator[Change]:
    if old.spec.allocation is not new.spec.allocation:
        yield _allocation(before, after, old, new)
    for moved in transitions(old, new):
        config, next_config = _mig_config(moved.before), _mig_config(moved.after)
        if config != next_config and not {config, next_config} <= {None, ALL_DISABLED}:
            yield _repartitioned(before, after, new, moved)
        elif shared_as(moved.before.sharing) != shared_as(moved.after.sharing):
            yield _shared_otherwise(before, after, new, moved)
        elif (between := halves(before, after, moved)).labels_first is not None:
            yield _configured_otherwise(before, after, new, moved, between)
    if old.spec.allocation is new.spec.allocation and _asked(old) != _asked(new):
        yield _asked_otherwise(after, old, new)


def _allocation(before: Plan, after: Plan, old: Pool, new: Pool) -> Change:
    claims = new.spec.allocation is Allocation.DRA
    nodes = impact(new.nodes)
    return change_of(
        after,
        new,
        ChangeClass.RECREATE,
        "devices are had by claims, not by resources" if claims else "devices are had by resources, not by claims",
        "pods ask in another way: those that run keep their devices unseen by whoever now hands them out, and must be "
        "recreated",
        "reverting is the same the other way round",
    )._replace(
        nodes=nodes,
        capacity=capacities(old, new),
        pods=pods_on(before, old, nodes.count),
        needs_drain=True,
        windows=new.windows,
    )


def _repartitioned(before: Plan, after: Plan, new: Pool, moved: Transition) -> Change:
    """The nodes' `nvidia.com/mig.config` changes, and mig-manager acts on each at once.

    It neither cordons nor drains, and fails where a pod holds a GPU (`pkg/mig/reconfigure` of NVIDIA/mig-parted). An
    entry that the GPUs match already is left alone there. To a label that names no entry, it says `failed` and does not
    try again until the label changes.
    """
    old_config = _mig_config(moved.before)
    vanishes = old_config is not None and old_config not in mig_parted.configuration(after)["mig-configs"]
    is_same = _division(moved.before) == _division(moved.after)
    between = halves(before, after, moved)
    if vanishes or _is_out_of_order(before, after, new, between):
        change_class = ChangeClass.TWO_STEP
    else:
        change_class = ChangeClass.PLUGIN_RESTART if is_same else ChangeClass.REPARTITION
    switches = _modes(moved.before) != _modes(moved.after)
    may_reboot = switches and after.cluster.gpu_operator.spec.reboot_on_mig_change
    effects = []
    if vanishes:
        effects.append(
            f"`{old_config}` vanishes while nodes still name it: one that restarts before its label moves fails"
        )
    if is_same:
        effects.append("the GPUs are divided as before")
    else:
        effects.append(
            f"mig-manager sets up the GPUs of {nodes_of(moved.nodes)} at once and drains none: pods that hold them "
            "must end first"
        )
    effects += _between(between)
    if may_reboot:
        effects.append("nodes reboot where the mode of their GPUs does not switch without")
    return change_of(
        after,
        new,
        change_class,
        _repartition_text(moved),
        "; ".join(effects),
        REVERT if is_same else "reverting partitions the same nodes again, which needs them drained again",
    )._replace(
        nodes=moved.nodes,
        capacity=capacities(moved.before, moved.after, moved.nodes.count),
        pods=0 if is_same else pods_on(before, moved.before, moved.nodes.count),
        needs_drain=not is_same,
        needs_reboot=may_reboot,
        windows=new.windows,
    )


def _is_out_of_order(before: Plan, after: Plan, pool: Pool, between: Halves) -> bool:
    """Whether nodes publish what is of neither state in the order in which the halves of the step arrive.

    The GPU Operator's files are synced by themselves, and labels as late as somebody approves it.
    """
    may_be_late = between.labels_first is not None and may_labels_come_first(before, after, pool.name)
    return between.files_first is not None or may_be_late


def _between(between: Halves) -> Iterator[str]:
    if between.files_first is not None:
        yield f"from the sync of the GPU Operator to that of the labels each node publishes {between.files_first}"
    if between.labels_first is not None:
        yield (
            "sync the GPU Operator first and wait until it is healthy, then the labels: the other way round each node "
            f"publishes {between.labels_first}"
        )


def _configured_otherwise(before: Plan, after: Plan, new: Pool, moved: Transition, between: Halves) -> Change:
    """As at the end of a rollout, whose configuration becomes the pool's own: nodes are shared as they were."""
    return change_of(
        after,
        new,
        ChangeClass.TWO_STEP if _is_out_of_order(before, after, new, between) else ChangeClass.PLUGIN_RESTART,
        "the device plugin's configuration of its nodes has another name",
        "; ".join(_between(between)),
        REVERT,
    )._replace(nodes=moved.nodes, windows=new.windows)


def _repartition_text(moved: Transition) -> str:
    old, new = moved.before.sharing, moved.after.sharing
    if isinstance(old, Mig) and isinstance(new, Mig):
        if old.layout.name == new.layout.name:
            return f"layout `{new.layout.name}` is edited: {from_to(division(old.layout), division(new.layout))}"
        if _division(moved.before) == _division(moved.after):
            return f"layout `{old.layout.name}` is called `{new.layout.name}`"
    return f"GPUs are shared otherwise: {from_to(shared_as(old), shared_as(new))}"


def _shared_otherwise(before: Plan, after: Plan, new: Pool, moved: Transition) -> Change:
    """From MPS, and to it, pods do not go on.

    Config-manager tells the daemon of a new file, which then starts again (`SIGHUP` in `cmd/mps-control-daemon/main.go`
    of NVIDIA/k8s-device-plugin). A daemon that starts sets GPUs to `EXCLUSIVE_PROCESS` (`Start` in `mps/daemon.go`
    there), at once: https://docs.nvidia.com/deploy/mps/index.html.
    """
    had_mps, has_mps = (isinstance(pool.sharing, Mps) for pool in (moved.before, moved.after))
    must_end = had_mps or has_mps
    return change_of(
        after,
        new,
        ChangeClass.REPARTITION if must_end else ChangeClass.PLUGIN_RESTART,
        f"GPUs are shared otherwise: {from_to(shared_as(moved.before.sharing), shared_as(moved.after.sharing))}",
        f"the device plugin publishes other units on {nodes_of(moved.nodes)}; "
        + (
            _mps_effect(moved.before, moved.after)
            if must_end
            else "pods that run go on, and until they end more may share a GPU than there are units"
        ),
        _REVERT_MPS if must_end else REVERT,
    )._replace(
        nodes=moved.nodes,
        capacity=capacities(moved.before, moved.after, moved.nodes.count),
        pods=pods_on(before, moved.before, moved.nodes.count) if must_end else 0,
        needs_drain=must_end,
    )


_MPS_ENDS: Final = "the MPS daemons there end, and every CUDA process with them: pods that hold GPUs must end first"
_MPS_BEGINS: Final = (
    "the MPS daemons there leave each GPU to one process, their server: it does not start beside what holds the GPU "
    "already, which starts no process more: pods that hold GPUs must end first"
)
_REVERT_MPS: Final = "reverting ends what runs there again"


def _asked_otherwise(after: Plan, old: Pool, new: Pool) -> Change:
    """A pod's resources cannot be changed, so one that asks by an old name waits for ever."""
    asked, asks = _asked(old), _asked(new)
    gone, come = [name for name in asked if name not in asks], [name for name in asks if name not in asked]
    other = [name for name in asks if name in asked and asks[name] != asked[name]]
    effects = [
        f"new pods that ask for {names(gone)} are not admitted" if gone else "",
        f"pods may ask for {names(come)}" if come else "",
        f"a container may ask for {'one' if asks[other[0]] else 'several'} of {names(other)}" if other else "",
    ]
    return change_of(
        after,
        new,
        ChangeClass.ADMISSION if gone or other else ChangeClass.QUOTA,
        "the pool hands out other units" if gone or come else "the pool hands out its units otherwise",
        "; ".join(filter(None, effects)),
        REVERT,
    )._replace(capacity=capacities(old, new))


def _asked(pool: Pool) -> dict[str, bool]:
    """What pods ask the pool's units by, and whether a container may ask for one alone."""
    return {unit.asked_as or unit.name: refuses_more_than_one(pool, unit) for unit in pool.units}


def is_partitioned_anew(moved: Transition) -> bool:
    """Whether the nodes' GPUs are set up again; a layout that only has another name changes nothing of them."""
    old, new = moved.before, moved.after
    configs = {_mig_config(old), _mig_config(new)}
    return len(configs) > 1 and not configs <= {None, ALL_DISABLED} and _division(old) != _division(new)


def _mig_config(pool: Pool) -> str | None:
    return pool.labels.get(MIG_CONFIG_LABEL)


def _division(pool: Pool) -> object:
    """What each GPU of a node becomes; None where none is divided."""
    if not isinstance(pool.sharing, Mig):
        return None
    entries = (entry_of(pool.sharing.layout, index) for index in range(pool.nodes.gpus_per_node))
    return pool.gpu.id, [
        {name: count for name, count in entry.instances.items() if count} if entry and entry.mig_enabled else None
        for entry in entries
    ]


def _modes(pool: Pool) -> tuple[bool, ...]:
    """Whether MIG is on, for each GPU of a node. Switching it resets the GPU, and reboots the node if that fails.

    (`WITH_REBOOT` in `pkg/mig/reconfigure/reconfigure.go` of NVIDIA/mig-parted.)
    """
    if not isinstance(pool.sharing, Mig):
        return (False,) * pool.nodes.gpus_per_node
    entries = (entry_of(pool.sharing.layout, index) for index in range(pool.nodes.gpus_per_node))
    return tuple(entry is not None and entry.mig_enabled for entry in entries)


# --- Nodes -------------------------------------------------------------------------------------------------------


def _leaving(before: Plan, after: Plan, old: Pool, new: Pool) -> Iterator[Change]:
    yield from (_departed(before, after, old, new, leaving) for leaving in departures(old, new, before, after))


def _departed(before: Plan, after: Plan, old: Pool, new: Pool, leaving: Departure) -> Change:
    nodes, to, mps = leaving.nodes, leaving.to, _mps_effect(old, leaving.to)
    evicts = to is not None and _evict(_without(to.spec.taints, old.spec.taints))
    if to is None:
        is_partitioned = any(isinstance(part.sharing, Mig) for part in old.parts)
        change_class = worst(
            (
                ChangeClass.ADMISSION,
                *[ChangeClass.REPARTITION] * bool(mps),
                *[ChangeClass.DESTRUCTIVE] * is_partitioned,
            )
        )
        what = f"{verb(nodes, 'leaves', 'leave')} the pool for none"
        effect = _told("labels and taints of the pool go from them", (is_partitioned, _DISSOLVED), (mps, f"; {mps}"))
        undo = "reverting brings labels and partitions back, not the pods" if is_partitioned else REVERT
    else:
        is_partitioned = _is_partitioned_on_arrival(old, to)
        takes_turns = _is_label_gone(before, after, old, to)
        change_class = worst((class_of_arrival(old, to), *[ChangeClass.TWO_STEP] * takes_turns))
        what = f"{verb(nodes, 'goes', 'go')} to pool `{to.name}`"
        effect = _told(
            "they get that pool's labels and taints",
            (takes_turns, f"; {_ordered(old, to)}"),
            (is_partitioned, ", and mig-manager sets up their GPUs again: pods that hold them must end first"),
            (mps, f"; {mps}"),
            (evicts, _EVICTED),
        )
        undo = "reverting moves them back" + (", which needs them drained again" if is_partitioned else "")
    return change_of(after, new, change_class, what, effect, undo)._replace(
        nodes=nodes,
        also=about(to) if to is not None else (),
        capacity=capacities(old, new),
        pods=pods_on(before, old, nodes.count) if is_partitioned or mps or evicts else 0,
        needs_drain=is_partitioned or bool(mps) or evicts,
        needs_reboot=is_partitioned and after.cluster.gpu_operator.spec.reboot_on_mig_change,
        windows=new.windows,
    )


def _told(text: str, *more: tuple[object, str]) -> str:
    """The text, and what goes with it where that is so."""
    return text + "".join(phrase for is_so, phrase in more if is_so)


_EVICTED: Final = "; pods there that do not tolerate its taints are evicted at once"


def _coming(before: Plan, after: Plan, old: Pool, new: Pool) -> Iterator[Change]:
    """Nodes that arrive; those from a pool that stays are told with that pool."""
    became = list(pairs(before, after))
    others = [pool for pool, successor in became if pool and successor and pool is not old]
    removed = [pool for pool, successor in became if pool and successor is None]
    for coming in arrivals(old, new, others, removed):
        yield _arrived(before, after, old, new, coming)


def _arrived(before: Plan, after: Plan, old: Pool | None, new: Pool, coming: Arrival) -> Change:
    nodes, was = coming.nodes, coming.was
    evicts = _evict(_without(new.spec.taints, was.spec.taints if was else ()))
    is_partitioned = _is_partitioned_on_arrival(was, coming.to)
    takes_turns = was is not None and _is_label_gone(before, after, was, coming.to)
    mps = _mps_effect(was, coming.to)
    come = names(nodes.names) if nodes.names else f"{nodes_of(nodes)} at most that match `{nodes.pattern}`"
    return change_of(
        after,
        new,
        worst((class_of_arrival(was, coming.to), *[ChangeClass.TWO_STEP] * takes_turns)),
        f"{come} {'joins' if nodes.count == 1 else 'join'}" + (f" from pool `{was.name}`" if was else ""),
        _told(
            f"labels and taints come to {nodes_of(nodes)}",
            (takes_turns, f"; {_ordered(was, coming.to)}" if was is not None else ""),
            (is_partitioned, "; mig-manager partitions the GPUs there, on which nothing may run"),
            (mps, f"; {mps}"),
            (evicts, _EVICTED),
        ),
        _told("reverting takes them out of the pool again", (is_partitioned, ", which is destructive")),
    )._replace(
        nodes=replace(nodes, are_new=was is None),
        capacity=capacities(old, new),
        needs_drain=is_partitioned or evicts or bool(mps),
        needs_reboot=is_partitioned and after.cluster.gpu_operator.spec.reboot_on_mig_change,
        windows=new.windows,
    )


def _divisions(pool: Pool) -> list[object]:
    return [_mig_config(part) for part in pool.parts]


def _nodes(after: Plan, old: Pool, new: Pool) -> Iterator[Change]:
    """What the plan counts, and how nodes are chosen; what that does to nodes is said of those that come and go."""
    one, other = old.nodes, new.nodes
    texts = []
    if old.gpu.id != new.gpu.id:
        texts.append(f"the GPUs are {new.gpu.id}, not {old.gpu.id}")
    if one.count != other.count:
        texts.append(f"the plan counts {nodes_of(impact(other))}, not {one.count}")
    if one.gpus_per_node != other.gpus_per_node:
        texts.append(f"nodes have {other.gpus_per_node} GPUs, not {one.gpus_per_node}")
    if one.name_pattern != other.name_pattern:
        texts.append(f"the nodes' names match `{other.name_pattern}`" if other.name_pattern else "nodes are named")
    elif not texts and set(one.names) != set(other.names):
        texts.append("its nodes are others")
    if texts:
        yield change_of(
            after,
            new,
            ChangeClass.QUOTA,
            "; ".join(texts),
            f"there are other numbers of units to hand out; {NOTHING_RUNS}",
            REVERT,
        )._replace(capacity=capacities(old, new))


# --- Who may use the pool, and how -------------------------------------------------------------------------------


def _placement(after: Plan, old: Pool, new: Pool) -> Iterator[Change]:
    if old.spec.placement is not new.spec.placement and after.scheduler.places_by_pool:
        how = new.spec.placement.value if new.spec.placement is not None else "as the scheduler does by itself"
        yield change_of(
            after, new, ChangeClass.ADMISSION, f"pods are placed otherwise: {how}", "new pods go to other nodes", REVERT
        )


def _taints(before: Plan, after: Plan, old: Pool, new: Pool) -> Iterator[Change]:
    gone, come = _without(old.spec.taints, new.spec.taints), _without(new.spec.taints, old.spec.taints)
    if not gone and not come:
        if old.spec.taints != new.spec.taints:
            yield change_of(
                after, new, ChangeClass.METADATA, "taints are listed in another order", NOTHING_RUNS, REVERT
            )
        return
    evicts = _evict(come)
    parts = (("loses", gone), ("gets", come))
    yield change_of(
        after,
        new,
        ChangeClass.DESTRUCTIVE if evicts else ChangeClass.ADMISSION,
        "; ".join(f"{verb} {names([_taint(taint) for taint in taints])}" for verb, taints in parts if taints),
        "pods that do not tolerate it are evicted at once"
        if evicts
        else "other pods may come to the nodes; those there stay",
        "reverting lets pods in again, and brings none back" if evicts else REVERT,
    )._replace(
        nodes=impact(new.nodes),
        pods=pods_on(before, old, new.nodes.count) if evicts else 0,
        needs_drain=evicts,
        windows=new.windows,
    )


def _without(taints: Iterable[Taint], others: Iterable[Taint]) -> list[Taint]:
    known = {(taint.key, taint.value, taint.effect) for taint in others}
    return [taint for taint in taints if (taint.key, taint.value, taint.effect) not in known]


def _taint(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _labels(after: Plan, old: Pool, new: Pool) -> Iterator[Change]:
    gone = [key for key in old.spec.node_labels if key not in new.spec.node_labels]
    come = [key for key in new.spec.node_labels if key not in old.spec.node_labels]
    other = [key for key, value in new.spec.node_labels.items() if old.spec.node_labels.get(key, value) != value]
    if not (gone or come or other):
        return
    parts = (("loses", gone), ("changes", other), ("gets", come))
    yield change_of(
        after,
        new,
        ChangeClass.ADMISSION if gone or other else ChangeClass.METADATA,
        "; ".join(f"{verb} the node label {names(keys)}" for verb, keys in parts if keys),
        "pods that choose nodes by it find others; those there stay" if gone or other else NOTHING_RUNS,
        REVERT,
    )._replace(
        nodes=impact(new.nodes),
        windows=new.windows,
    )


def _topology(after: Plan, old: Pool, new: Pool) -> Iterator[Change]:
    """Levels of a Topology never change, nor does a ResourceFlavor that names one.

    (`apis/kueue/v1beta2/{topology,resourceflavor}_types.go` of Kueue, rules of the CRDs.)
    """
    if old.spec.topology == new.spec.topology or not after.scheduler.reads_topology:
        return
    change_class = ChangeClass.RECREATE if old.spec.topology else ChangeClass.ADMISSION
    if not after.scheduler.has_topologies:  # a page says it, and nothing obeys that
        change_class = ChangeClass.METADATA
    yield change_of(
        after,
        new,
        change_class,
        f"topology is {names(new.spec.topology)}" if new.spec.topology else "topology is taken away",
        "the scheduler's objects of the pool must be deleted and recreated"
        if change_class is ChangeClass.RECREATE
        else "gangs are placed otherwise; those that run stay",
        REVERT,
    )


def _disruption(after: Plan, old: Pool, new: Pool) -> Iterator[Change]:
    one, other = old.spec.disruption, new.spec.disruption
    if one == other:
        return
    texts = []
    if one.approval is not other.approval:
        texts.append(f"approval is {other.approval}")
    if after.cluster.argocd is not None and one.windows != other.windows:
        texts.append("windows change")
    is_guarded_otherwise = _guarded(one.guard) != _guarded(other.guard)
    if after.cluster.argocd is not None and is_guarded_otherwise:
        texts.append("what watches over a disruption changes")
    if not texts:
        return
    yield change_of(
        after,
        new,
        ChangeClass.METADATA,
        "; ".join(texts),
        f"changes of the pool are applied at other times; {NOTHING_RUNS}",
        REVERT,
    )


def _guarded(guard: Guard | None) -> tuple[str, int] | None:
    return (guard.image, seconds(guard.timeout)) if guard else None
