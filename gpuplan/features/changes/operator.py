"""The effects of changes of the GPU Operator: its installation, its driver, and the restarts of its pods on nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from gpuplan.compiler.backends.gpu_operator import config_map_names, device_plugin, mig_parted, nvidia_drivers, settings
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.plain import Body, section, value_of, without
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.catalog.operands import (
    AUTO_UPGRADE,
    UPDATE_STRATEGY,
    Restart,
    Roll,
    Setup,
    Where,
    is_left_alone,
    rolls,
    running,
    sections,
)
from gpuplan.compiler.catalog.operators import NFD_CHART, OPERATORS_PACKAGE, default_driver
from gpuplan.compiler.manifests import Subject
from gpuplan.compiler.planning import gpu_operator
from gpuplan.compiler.planning.plan import MIG_MANAGER_LABEL, UNREAD, GpuOperator, Plan, Pool, Stage
from gpuplan.compiler.planning.plugin_configs import has_own, pool_of
from gpuplan.compiler.policy.models import Install, Platform
from gpuplan.features.changes.fields import changes_by_row
from gpuplan.features.changes.kinds import differing_keys
from gpuplan.features.changes.model import NOTHING_RUNS, OTHER_WAY_ROUND, Change, from_to, listed, names, nodes_of, of
from gpuplan.features.changes.nodes import all_pods, impact, impact_of_all, pods_on
from gpuplan.features.changes.step import Step


class Cause(NamedTuple):
    """Why pods of the operator restart, and of which operands; None where that is not known.

    ``is_of_driver`` says that its text tells of the driver.
    """

    text: str
    at: Origin
    rolls: tuple[Roll, ...] | None
    is_of_driver: bool = False


def restarted(step: Step, causes: Sequence[Cause], setup: Setup) -> Iterator[Change]:
    """One for each fate of pods: the operator renders a DaemonSet again when anything of it changes, and it rolls.

    Nodes whose MPS daemons restart are told of apart. They depend on the pools as they were: that is what runs.
    """
    there = [cause._replace(rolls=_on_nodes(step, cause.rolls)) for cause in causes]
    alone = _only(there, lambda roll: is_left_alone(roll, setup))
    moving = _only(there, lambda roll: not is_left_alone(roll, setup))
    if found := [cause for cause in moving if _has(cause, Restart.EVICTS)]:
        # A pod of the driver that is not of its DaemonSet's revision restarts, and pods that hold GPUs go before it.
        # That is so for each change of its pod template, such as a toleration, unless the operator knows that what is
        # installed stays the same (`Restart.EVICTS` in the catalog).
        own = [cause for cause in found if cause.is_of_driver]
        rolls = [roll for cause in found for roll in cause.rolls or () if roll.restart is Restart.EVICTS]
        goes = any(roll.goes for roll in rolls)
        yield Change(
            *of(step.after, step.after.cluster, found[0].at),
            ChangeClass.REPARTITION,
            _texts(own) if own else f"drivers restart: {_texts(found)}",
            "the driver's pods go from all nodes, and the driver with them: pods that hold GPUs must end first"
            if goes
            else "driver pods restart on all nodes, a few at a time, and pods that hold GPUs are evicted for it",
            "reverting restarts the drivers again, in the same way",
            nodes=impact_of_all(step.after.pools),
            pods=all_pods(step.before),
            needs_drain=True,
            daemon_sets=tuple(dict.fromkeys(roll.operand.daemon_set for roll in rolls)),
        )
    if mps := [cause for cause in moving if _has(cause, Restart.ENDS)]:
        yield _mps_restarts(step, mps)
    others = _only(moving, lambda roll: roll.restart in (Restart.PAUSES, Restart.WATCHES))
    rolling = [cause for cause in others if cause.rolls != ()]
    yield from _pods_restart(step, rolling, _runs_mps(step) if mps else [])
    yield from _untouched(step, there, alone)


def _only(causes: Iterable[Cause], is_meant: Callable[[Roll], bool]) -> list[Cause]:
    """Return the causes with those of their restarts that are meant, or without any if they are not known."""
    return [
        cause if cause.rolls is None else cause._replace(rolls=tuple(filter(is_meant, cause.rolls))) for cause in causes
    ]


def _has(cause: Cause, restart: Restart) -> bool:
    return any(roll.restart is restart for roll in cause.rolls or ())


def with_pods(step: Step, rolls: tuple[Roll, ...]) -> tuple[str, ...]:
    """The DaemonSets of them that have pods on nodes."""
    return tuple(roll.operand.daemon_set for roll in _on_nodes(step, rolls) or ())


def _on_nodes(step: Step, rolls: tuple[Roll, ...] | None) -> tuple[Roll, ...] | None:
    """Those that have pods on nodes of the plan's pools; all of them where there are no pools yet."""
    if rolls is None or not step.after.pools:
        return rolls
    places = {Where.ALL, *([Where.MPS] if _runs_mps(step) else []), *([Where.MIG] if _divisible(step) else [])}
    return tuple(roll for roll in rolls if roll.operand.where in places)


def _runs_mps(step: Step) -> list[Pool]:
    return [part for part in step.before.parts if part.runs_mps]


def _divisible(step: Step) -> list[Pool]:
    """Pools with nodes on which mig-manager runs."""
    return [
        part for part in step.after.parts if part.gpu.supports_mig and part.labels.get(MIG_MANAGER_LABEL) != "false"
    ]


def _texts(causes: Sequence[Cause]) -> str:
    return "; ".join(dict.fromkeys(cause.text for cause in causes))


def _daemon_sets(causes: Sequence[Cause]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(roll.operand.daemon_set for cause in causes for roll in cause.rolls or ()))


# --- The driver --------------------------------------------------------------------------------------------------


# --- MPS ---------------------------------------------------------------------------------------------------------


def _mps_restarts(step: Step, causes: Sequence[Cause]) -> Change:
    """An MPS server ends with its daemon, and every CUDA process of its GPUs with the server.

    (`Stop` in `cmd/mps-control-daemon/mps/daemon.go` of NVIDIA/k8s-device-plugin, which `main.go` there calls when the
    pod ends.)
    """
    parts = _runs_mps(step)
    nodes = impact_of_all(parts)
    rolled = _only(causes, lambda roll: roll.operand.where is not Where.MIG and roll.restart is not Restart.EVICTS)
    return Change(
        *of(step.after, step.after.cluster, causes[0].at),
        ChangeClass.REPARTITION,
        f"daemons of MPS restart: {_texts(causes)}",
        f"every CUDA process on {nodes_of(nodes) if nodes else 'nodes'} that share GPUs by MPS fails, one node at a "
        "time: pods that hold GPUs there must end first",
        "reverting restarts the daemons again, in the same way",
        nodes=nodes,
        pods=sum(pods_on(step.before, part, part.nodes.count) for part in parts),
        needs_drain=True,
        daemon_sets=_daemon_sets(rolled),
    )


# --- All others --------------------------------------------------------------------------------------------------

_PAUSING: Final = (
    "pods of the operator restart on {}, one at a time; pods that hold GPUs go on, new ones wait meanwhile"
)
_GOING: Final = (
    "pods of the operator go or restart on {}; pods that hold GPUs go on, new ones wait until something else does what "
    "{} did"
)
_WATCHING: Final = "pods of the operator come, go or restart on {}; pods that hold GPUs go on, and none waits for them"
_LABELLER: Final = "gpu-feature-discovery"
_UNLABELLED: Final = (
    "; nobody writes its labels on new nodes, and pods that select by them find none; without `nvidia.com/mig.capable` "
    "on a node the MIG manager leaves it"
)
"""`hasMIGCapableGPU` in `controllers/state_manager.go` of NVIDIA/gpu-operator v26.7.0."""
_NO_NODES: Final = "the operator is set up; there are no nodes yet"


def _pods_restart(step: Step, causes: Sequence[Cause], shared: Sequence[Pool]) -> Iterator[Change]:
    """Yield the restarts on nodes that no earlier change says."""
    wheres = {roll.operand.where for cause in causes for roll in cause.rolls or ()}
    is_everywhere = Where.ALL in wheres or any(cause.rolls is None for cause in causes)
    pools = step.after.pools if is_everywhere else _divisible(step)
    nodes = impact_of_all(part for pool in pools for part in _beside(pool, shared))
    if not causes or (nodes is None and shared):
        return
    pauses = any(cause.rolls is None or _has(cause, Restart.PAUSES) for cause in causes)
    restarts = [roll for cause in causes for roll in cause.rolls or ()]
    gone = [roll for roll in restarts if roll.goes and roll.restart is Restart.PAUSES]
    effect = (_PAUSING if pauses else _WATCHING).format(nodes_of(nodes)) if nodes else _NO_NODES
    if gone and nodes:
        sets = list(dict.fromkeys(roll.operand.daemon_set for roll in gone))
        effect = _GOING.format(nodes_of(nodes), listing(sets, None))
    if nodes and any(roll.goes and roll.operand.daemon_set == _LABELLER for roll in restarts):
        effect += _UNLABELLED
    yield Change(
        *of(step.after, step.after.cluster, causes[0].at),
        ChangeClass.PLUGIN_RESTART,
        _texts(causes),
        effect,
        nodes=nodes,
        daemon_sets=_daemon_sets(causes),
    )


def _beside(pool: Pool, shared: Sequence[Pool]) -> Sequence[Pool]:
    """The pool, or what is left of it beside the nodes of its parts that were told of."""
    if all(item.name != pool.name for item in shared):
        return (pool,)
    return [part for part in pool.parts if part.nodes.count and not part.runs_mps]


def _untouched(step: Step, causes: Sequence[Cause], alone: Sequence[Cause]) -> Iterator[Change]:
    """Causes that restart nothing: no node runs what reads it, or somebody has to delete pods for it."""
    place = of(step.after, step.after.cluster, step.after.cluster.gpu_operator.at)
    if waiting := [cause for cause in alone if cause.rolls]:
        sets = _daemon_sets(waiting)
        effect = f"pods of {listing(sets, None)} stay as they are until somebody deletes them; {NOTHING_RUNS}"
        yield Change(*place, ChangeClass.METADATA, _texts(waiting), effect, daemon_sets=sets)
    if idle := [cause for cause in causes if cause.rolls == ()]:
        yield Change(*place, ChangeClass.METADATA, _texts(idle), f"no pod of the operator restarts; {NOTHING_RUNS}")


def swaps_drivers(step: Step, was: Pool | None, to: Pool | None) -> bool:
    """Whether another NVIDIADriver is for nodes than before, while there are some before and after.

    The DaemonSet of one selects nodes by the label of their pool: its pod goes as the label moves, without asking the
    upgrade controller, and the next one's `k8s-driver-manager` evicts pods that hold GPUs before it unloads the driver
    (`internal/state/nodepool.go` and `manifests/state-driver/0500_daemonset.yaml` of NVIDIA/gpu-operator v26.7.0).
    """
    if not (gpu_operator.are_drivers_by_pool(step.before) and gpu_operator.are_drivers_by_pool(step.after)):
        return False
    return gpu_operator.group_of(step.before, was) != gpu_operator.group_of(step.after, to)


def drivers_of_pools(step: Step) -> Iterator[Change]:
    """One change for each NVIDIADriver that says something else now, or that another one takes the place of.

    The operator cordons as many nodes of each at once as its `maxParallelUpgrades` and `maxUnavailable` allow, and
    evicts pods that hold GPUs (`reconcileNVIDIADriverUpgrades` in `controllers/upgrade_controller.go` there).
    """
    before, after = nvidia_drivers(step.before), nvidia_drivers(step.after)
    groups = {group.name: group for group in gpu_operator.driver_groups(step.before)}
    if before and not after:
        yield Change(
            *of(step.after, step.after.cluster, step.after.cluster.gpu_operator.at / "driver"),
            ChangeClass.DESTRUCTIVE,
            "no pool names its own driver any more",
            f"{_GONE}; the ClusterPolicy's own driver follows",
            "reverting brings NVIDIADrivers back, in the same way",
            nodes=impact_of_all(step.after.pools),
            pods=all_pods(step.before),
            needs_drain=True,
            daemon_sets=tuple(map(_owner_of, groups.values())),
        )
    if not before or not after:
        return
    for group in gpu_operator.driver_groups(step.after):
        if group.name in before and before[group.name] != after[group.name]:
            yield _driver_changed(step, groups[group.name], group, before[group.name], after[group.name])
        elif group.name not in before and group.pool and step.before.find_pool(group.pool.name):
            # The nodes of a new pool are part of the change of that pool.
            change = _restarted(step, group, f"its nodes have a driver of their own: {group.version}", goes=True)
            yield change._replace(effect=_TAKEN_OVER)
    for name, group in groups.items():
        if name not in after and group.pool and (pool := step.after.find_pool(group.pool.name)):
            # DaemonSets go with the NVIDIADriver that owns them, and those of a removed pool with the pool.
            change = _restarted(step, group._replace(pool=pool), "its nodes have the cluster's driver again", goes=True)
            yield change._replace(change_class=ChangeClass.DESTRUCTIVE, effect=_GONE)


def _driver_changed(
    step: Step, was: gpu_operator.DriverGroup, now: gpu_operator.DriverGroup, old: Body, new: Body
) -> Change:
    specs = [section(body, "spec") for body in (old, new)]
    place = _place(step.after, now)
    if without(specs[0], "upgradePolicy") == without(specs[1], "upgradePolicy"):
        if _waits(old) and not _waits(new):
            return _restarted(step, now, NO_LONGER)
        what = "the driver's upgrade policy changes"
        effect = f"the next driver comes to nodes in another way; {NOTHING_RUNS}"
        return Change(*place, ChangeClass.METADATA, what, effect)
    if was.version != now.version:
        what = f"the driver changes {from_to(was.version, now.version)}"
    else:
        what = f"settings of the driver change: {names(differing_keys(*specs))}"
    return _restarted(step, now, what)


_GONE: Final = (
    "the NVIDIADriver takes its DaemonSets along, and all driver pods at once: pods that hold GPUs must end first"
)


def handed_over_by_hand(step: Step) -> Change:
    """The ClusterPolicy's DaemonSet goes without its pods, and an NVIDIADriver's pod is on no node beside another one.

    Nobody ends the old ones without `autoUpgrade` (`step` in `controllers/state_manager.go`, the `podAntiAffinity` in
    `manifests/state-driver/0500_daemonset.yaml` and `reconcileNVIDIADriverUpgrades` in
    `controllers/upgrade_controller.go` there).
    """
    place = of(step.after, step.after.cluster, step.after.cluster.gpu_operator.at)
    effect = (
        "driver pods of the ClusterPolicy stay until somebody deletes them, since `autoUpgrade` is false: pods of "
        f"NVIDIADrivers wait meanwhile, and none of these is ready; {NOTHING_RUNS}"
    )
    return Change(*place, ChangeClass.METADATA, "NVIDIADrivers take over drivers from the ClusterPolicy", effect)


NO_LONGER: Final = "pods that wait for a person to delete them wait no longer"
"""Only the cluster knows these pods: each differs from the revision of its DaemonSet, or has lost its DaemonSet."""


def _owner_of(group: gpu_operator.DriverGroup) -> str:
    """The owner of DaemonSets whose names only the cluster knows: they end in a hash of its UID.

    (`getDriverAppName` in `internal/state/driver.go` there; the node label `nvidia.com/gpu-operator.driver.owner` says
    of each node whose it is.)
    """
    return f"NVIDIADriver/{group.name}"


def _restarted(step: Step, group: gpu_operator.DriverGroup, words: str, *, goes: bool = False) -> Change:
    """``goes`` where Kubernetes ends the pods, whatever the upgrade policy says."""
    before, own = step.before, group.pool
    if own is not None:
        pools = [pool for pool in before.pools if pool.name == own.name]
    else:
        pools = [pool for pool in before.pools if gpu_operator.group_of(before, pool) == group.name]
    pods = sum(pods_on(before, pool, pool.nodes.count) for pool in pools)
    waits = not goes and _waits(nvidia_drivers(step.after).get(group.name))
    return Change(
        *_place(step.after, group),
        ChangeClass.METADATA if waits else ChangeClass.REPARTITION,
        words,
        f"pods of the driver stay as they are until somebody deletes them; {NOTHING_RUNS}" if waits else _EFFECT,
        "" if waits else "reverting restarts the drivers again, in the same way",
        nodes=impact(own.nodes) if own else impact_of_all(pools),
        pods=0 if waits else pods,
        needs_drain=not waits,
        daemon_sets=(_owner_of(group),),
    )


_TAKEN_OVER: Final = (
    "their driver pods go at once, since another NVIDIADriver takes the nodes, and its own evict pods that hold GPUs"
)
_EFFECT: Final = "driver pods restart there, a few at a time, and pods that hold GPUs are evicted for it"


def _waits(body: Mapping[str, Any] | None) -> bool:
    return section(body, "spec", "upgradePolicy").get("autoUpgrade") is False


def _place(plan: Plan, group: gpu_operator.DriverGroup) -> tuple[str, Subject, Origin]:
    if group.pool is None:
        return of(plan, plan.cluster, plan.cluster.gpu_operator.at / "driver")
    return of(plan, group.pool, group.pool.at / "driver")


def operator_changes(step: Step) -> Iterator[Change]:
    """All that is in the folder of the GPU Operator. Which release of the chart it is may be written nowhere."""
    old, new = step.before.cluster.gpu_operator, step.after.cluster.gpu_operator
    is_another_chart = new.spec.install is Install.HELM and old.version != new.version
    folders = (Stage.GPU_OPERATOR.value,) if is_another_chart else ()
    is_moved = old.spec.install is not new.spec.install or old.namespace != new.namespace
    for change in _installed_otherwise(step) if is_moved else _changed(step):
        told = (
            change._replace(effect=f"when the ClusterPolicy's owner has merged it: {change.effect}")
            if new.is_merged_by_owner and not is_moved
            else change
        )
        yield told._replace(stages=change.stages or (Stage.GPU_OPERATOR,), folders=folders)
    if not is_moved:
        yield from changes_by_row(step, old, new)


def _changed(step: Step) -> Iterator[Change]:
    old, new = step.before.cluster.gpu_operator, step.after.cluster.gpu_operator
    if old.cluster_policy != new.cluster_policy and new.spec.install is not Install.HELM:
        # The operator works by one ClusterPolicy and looks at no other (`clusterpolicy_controller.go` there).
        yield Change(
            *of(step.after, step.after.cluster, new.at / "clusterPolicy"),
            ChangeClass.RECREATE,
            f"the ClusterPolicy is called `{new.cluster_policy}`, not `{old.cluster_policy}`",
            "the operator ignores a second ClusterPolicy: the first must go before, and all its DaemonSets with it",
            OTHER_WAY_ROUND,
            nodes=impact_of_all(step.after.pools),
            needs_drain=True,
            daemon_sets=_all(step),
        )
    told = _Told(step, *_setups(step))
    if told.gives_nodes_away:
        # The operator takes the labels that choose operands off nodes with another workload. NFD's workers stay.
        # (`getWorkloadConfig` and `gpuStateLabels` in `controllers/state_manager.go` there.)
        stopped = tuple(roll for roll in _running_before(step) if roll.operand.takes_strategy)
        yield Change(
            *of(step.after, step.after.cluster, new.at / "values"),
            ChangeClass.DESTRUCTIVE,
            "nodes are for virtual machines unless their label `nvidia.com/gpu.workload.config` says `container`",
            "drivers, device plugin and MIG manager go from all nodes without that label: containers get no GPUs there",
            "reverting brings them back",
            nodes=impact_of_all(step.after.pools),
            pods=all_pods(step.before),
            needs_drain=True,
            daemon_sets=with_pods(step, stopped),
        )
    yield from drivers_of_pools(step)
    if told.is_handed_over_by_hand:
        yield handed_over_by_hand(step)
    yield from restarted(step, tuple(_causes(step, told)), told.new)
    yield from _filed(step)
    cluster = step.after.cluster
    place = of(step.after, cluster, cluster.gpu_operator.at)
    loud = {key.partition(".")[0] for key in told.rolled}
    details = [key for key in told.differing if key not in loud and key not in (*told.unknown, *_TOLD)]
    if details:
        what = f"settings of {names(details)} change"
        yield Change(*place, ChangeClass.METADATA, what, "nothing restarts on nodes with GPUs")
    policies = [value_of(setup.settings, ("driver", "upgradePolicy")) for setup in (told.old, told.new)]
    if policies[0] != policies[1] and not gpu_operator.are_drivers_by_pool(step.before):
        effect = f"the next driver comes to nodes in another way; {NOTHING_RUNS}"
        yield Change(*place, ChangeClass.METADATA, "the driver's upgrade policy changes", effect)


# --- Installation ------------------------------------------------------------------------------------------------


def _installed_otherwise(step: Step) -> Iterator[Change]:
    old, new = step.before.cluster.gpu_operator, step.after.cluster.gpu_operator
    texts = []
    if old.spec.install is not new.spec.install:
        texts.append(f"the operator is installed by {new.spec.install}, not by {old.spec.install}")
    if old.namespace != new.namespace:
        texts.append(f"its namespace is `{new.namespace}`, not `{old.namespace}`")
    yield Change(
        *of(step.after, step.after.cluster, new.at),
        ChangeClass.DESTRUCTIVE,
        "; ".join(texts),
        "the old operator must go before the new one works, and takes drivers and device plugin from all nodes",
        "reverting installs the old one again, which disturbs the nodes once more",
        nodes=impact_of_all(step.after.pools),
        stages=(Stage.GPU_OPERATOR, Stage.PARTITIONS),
        pods=all_pods(step.before),
        needs_drain=True,
        daemon_sets=_all(step),
    )


def _all(step: Step) -> tuple[str, ...]:
    """All DaemonSets that there are, which go and come again."""
    return with_pods(step, _running_before(step))


def _running_before(step: Step) -> tuple[Roll, ...]:
    old, _ = _setups(step)
    return running(step.before.cluster.gpu_operator.version, old)


# --- Why pods of the operator restart ------------------------------------------------------------------------------


def _causes(step: Step, settings_: _Told) -> Iterator[Cause]:
    old, new = step.before.cluster.gpu_operator, step.after.cluster.gpu_operator
    spec, at, rolled = new.spec, new.at, dict(settings_.rolled)
    if gpu_operator.are_drivers_by_pool(step.before) or settings_.is_handed_over_by_hand:
        # What becomes of NVIDIADrivers is told of for each; nobody reads the ClusterPolicy's driver beside them.
        rolled = {key: found for key, found in rolled.items() if not key.startswith(_DRIVER)}
    elif text := _driver_text(old, new, settings_):
        keys = [key for key in rolled if key.startswith(_DRIVER)]
        there = settings_.running if _brings_another_driver(old, new) else ()
        own = (*there, *([settings_.handed_over] if settings_.handed_over else []))
        found = (*(roll for key in keys for roll in rolled.pop(key)), *(roll for roll in own if _is_driver(roll)))
        yield Cause(text, at, found, is_of_driver=True)
    if old.version != new.version and spec.install is not Install.EXTERNAL:
        yield Cause(f"the operator's release changes {from_to(old.version, new.version)}", at, settings_.running)
    if old.spec.mig_strategy is not spec.mig_strategy:
        text = f"the MIG strategy changes {from_to(old.spec.mig_strategy, spec.mig_strategy)}"
        yield Cause(text, at, rolled.pop("mig.strategy", ()))
    if old.spec.reboot_on_mig_change != spec.reboot_on_mig_change:
        may = "may reboot" if spec.reboot_on_mig_change else "no longer reboots"
        yield Cause(f"mig-manager {may} nodes", at, rolled.pop("migManager.env", ()))
    if gpu_operator.closing_environment(step.before) != gpu_operator.closing_environment(step.after):
        text = "containers are kept from choosing GPUs by other settings"  # another release may have other ones
        if not gpu_operator.closing_environment(step.after):
            text = "images may choose GPUs by `NVIDIA_VISIBLE_DEVICES` again"
        elif not gpu_operator.closing_environment(step.before):
            text = "containers without privileges no longer choose GPUs by `NVIDIA_VISIBLE_DEVICES`"
        popped = dict.fromkeys((*rolled.pop("toolkit.env", ()), *rolled.pop("devicePlugin.env", ())))
        yield Cause(text, at / "closeVisibleDevices", tuple(popped))
    plugin = rolled.pop(_PLUGIN_FILE, ())
    if old.keeps_plugin_file is not new.keeps_plugin_file:
        how = "keeps its name from now on" if new.keeps_plugin_file else "is named after its content"
        yield Cause(f"the device plugin's ConfigMap {how}", at / "devicePluginConfig", plugin)
    yield from _causes_in_files(step, plugin, rolled.pop(_LAYOUT_FILE, ()))
    yield from _causes_in_settings(step, settings_, rolled)


_DRIVER: Final = "driver."
_PLUGIN_FILE: Final = "devicePlugin.config.name"
_LAYOUT_FILE: Final = "migManager.config.name"


def _is_driver(roll: Roll) -> bool:
    return roll.operand.restart is Restart.EVICTS


def _causes_in_settings(step: Step, settings_: _Told, rolled: dict[str, tuple[Roll, ...]]) -> Iterator[Cause]:
    """Yield the causes in other settings that are, or may be, part of pod templates."""
    at = step.after.cluster.gpu_operator.at
    if released := rolled.pop(UPDATE_STRATEGY, ()):
        yield Cause(NO_LONGER, at, released)
    if unknown := settings_.unknown:
        yield Cause(f"settings of {names(unknown)} change", at, None)
    if parts := list(dict.fromkeys(key.partition(".")[0] for key in rolled)):
        tainted = (pool.at / "taints" for was, pool in step.kept_pools if was.spec.taints != pool.spec.taints)
        place = next(tainted, at) if _OF_POOLS.issuperset(parts) else at
        found = dict.fromkeys(roll for rolls_of_one in rolled.values() for roll in rolls_of_one)
        yield Cause(f"settings of {names(parts)} change", place, tuple(found))


def _causes_in_files(step: Step, plugin: tuple[Roll, ...], layouts: tuple[Roll, ...]) -> Iterator[Cause]:
    """The device plugin's file and mig-manager's: a name in pod templates is one for what is in the file."""
    plans, at = (step.after, step.before), step.after.cluster.gpu_operator.at
    files = [device_plugin.configurations(plan) for plan in plans]
    if not step.keeps_plugin_file and (keys := _whole(differing_keys(*files), step)):
        pools = (pool for plan in plans for pool in plan.pools if any(has_own(pool, key) for key in keys))
        places = (pool.at / "sharing" for pool in pools)
        place = next(places, at)
        yield from (Cause(f"the device plugin's file {text}", place, plugin) for text in _difference(keys, *files))
    entries = [mig_parted.configuration(plan)["mig-configs"] for plan in plans]
    keys = _whole(differing_keys(*reversed(entries)), step)
    origins = (layout.at for plan in plans for layout in plan.mig_layouts if layout.config_name in keys)
    for text in _difference(keys, *entries):
        yield Cause(f"mig-manager's file {text}", next(origins, at), layouts)


def _difference(keys: Sequence[str], new: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    """Return the differences of a file in these keys or entries, in words."""
    return listed(
        ("gets", [key for key in keys if key not in old]),
        ("loses", [key for key in keys if key not in new]),
        ("has another", [key for key in keys if key in old and key in new]),
    )


def _whole(keys: Sequence[str], step: Step) -> list[str]:
    """The keys and entries, without those of pools and layouts with errors: these are missing in a plan alone."""
    broken = {name for plan in (step.before, step.after) for name in (*plan.broken.pools, *plan.broken.layouts)}
    named = {key: {key, pool_of(key), key.rpartition("-")[0]} for key in keys}
    return [] if UNREAD in broken else [key for key in keys if named[key].isdisjoint(broken)]


def _driver_text(old: GpuOperator, new: GpuOperator, settings_: _Told) -> str:
    """Return the change of the driver in words, or "" if there is none or somebody else manages the driver."""
    one, other, is_managed = old.spec.driver, new.spec.driver, new.spec.driver.enabled
    if new.spec.install is Install.EXTERNAL or not (one.enabled or is_managed):
        return ""
    if one.enabled != is_managed:
        return f"the operator {'manages' if is_managed else 'no longer manages'} the driver"
    if one.version != other.version:
        own = "the release's own"
        return f"the driver changes {from_to(one.version or own, other.version or own)}"
    if settings_.handed_over:
        step = settings_.step
        if gpu_operator.are_drivers_by_pool(step.after):
            return "pools name drivers, which NVIDIADrivers bring: a DaemonSet for each of them, and none for all nodes"
        return "another DaemonSet brings the driver: who says which it is changes (`driver.nvidiaDriverCRD`)"
    if _brings_another_driver(old, new):
        return f"the operator's release brings a driver of its own, {from_to(_own_driver(old), _own_driver(new))}"
    keys = {key for key in settings_.rolled if key.startswith(_DRIVER)}
    return NO_LONGER if keys == {AUTO_UPGRADE} else "settings of the driver change" if keys else ""


def _brings_another_driver(old: GpuOperator, new: GpuOperator) -> bool:
    is_own = not old.spec.driver.version and not new.spec.driver.version
    return is_own and old.version != new.version and _own_driver(old) != _own_driver(new)


def _own_driver(operator: GpuOperator) -> str:
    return default_driver(operator.version) or f"that of {operator.version}"


# --- What the operator is told -----------------------------------------------------------------------------------

_NFD_INSTANCE: Final = "NodeFeatureDiscovery nfd-instance"
_SUBSCRIPTION: Final = f"Subscription {OPERATORS_PACKAGE}"

_OF_POOLS: Final = frozenset(("daemonsets", NFD_CHART, _NFD_INSTANCE))
"""Settings that follow from the labels and taints of pools."""


class _Told(Value, eq=False):
    """The settings of the operator, and those for OLM, before and after."""

    step: Step
    old: Setup
    new: Setup

    @cached_property
    def rolled(self) -> Mapping[str, tuple[Roll, ...]]:
        """The operands whose pods restart, by setting."""
        return rolls(self._release, self.old, self.new)

    @cached_property
    def running(self) -> tuple[Roll, ...]:
        """The operands that there are on both sides: what another release of the operator restarts."""
        was = {roll.operand.daemon_set for roll in running(self._release, self.old)}
        return tuple(roll for roll in running(self._release, self.new) if roll.operand.daemon_set in was)

    @property
    def handed_over(self) -> Roll | None:
        """The driver's DaemonSet, where it goes and that of an NVIDIADriver comes, or the other way round.

        Before v26.7 its pods go with it (`step` and `cleanupAllDriverDaemonSets` in `controllers` there); from then on
        they stay until the upgrade controller replaces each, as the NVIDIADriver's own upgrade policy has it. An older
        operator that still runs as it is told so may take them before a newer one takes over.
        """
        was, now = (setup.value(_DRIVER_OBJECTS) or setup.value(_OF_POLICY) or {} for setup in (self.old, self.new))
        is_on = any(_has_objects(setup) for setup in (self.old, self.new))
        rolls_ = [roll for roll in running(self._release, self.old) if _is_driver(roll)]
        if was == now or not is_on or not rolls_:
            return None
        operators = (plan.cluster.gpu_operator for plan in (self.step.before, self.step.after))
        stay = all(gpu_operator.has_default_driver(operator) for operator in operators)
        return rolls_[0]._replace(comes=True, goes=not stay)

    @property
    def is_handed_over_by_hand(self) -> bool:
        """Whether NVIDIADrivers begin, and pods of the ClusterPolicy's DaemonSet stay until somebody deletes them.

        Those of pools have the upgrade policy of the values; what others have is said elsewhere, and may evict.
        """
        roll = self.handed_over
        begins = gpu_operator.are_drivers_by_pool(self.step.after) and not _has_objects(self.old)
        return roll is not None and not roll.goes and begins and not self.new.is_on(AUTO_UPGRADE, default=True)

    @property
    def gives_nodes_away(self) -> bool:
        """Whether nodes are no longer for containers by default."""
        was, now = (_default_workload(setup) for setup in (self.old, self.new))
        return was != now and now.startswith("vm-")

    @property
    def differing(self) -> list[str]:
        """The parts of the settings that differ."""
        return differing_keys(self.old.settings, self.new.settings)

    @property
    def unknown(self) -> list[str]:
        """Those of which it is not known what stands in pod templates."""
        known = sections(self._release, self.new.installed_by)
        return [key for key in self.differing if key not in known]

    @property
    def _release(self) -> str:
        return self.step.after.cluster.gpu_operator.version


_DRIVER_OBJECTS: Final = "driver.nvidiaDriverCRD"
_OF_POLICY: Final = "driver.useNvidiaDriverCRD"
"""In the chart's values, and in a ClusterPolicy."""


def _has_objects(setup: Setup) -> bool:
    """Whether NVIDIADrivers bring the driver."""
    return setup.is_on(f"{_DRIVER_OBJECTS}.enabled", default=False) or setup.is_on(_OF_POLICY, default=False)


def _default_workload(setup: Setup) -> str:
    """Return the workload of nodes without the label."""
    is_on = setup.is_on("sandboxWorkloads.enabled", default=False)
    return str(setup.value("sandboxWorkloads.defaultWorkload") or "container") if is_on else "container"


def _setups(step: Step) -> Iterator[Setup]:
    """Without what follows from pools where pools have errors: a plan lacks it."""
    lacking = _OF_POOLS if step.before.broken.pools or step.after.broken.pools else frozenset[str]()
    for plan in (step.before, step.after):
        told = {key: value for key, value in _settings(plan).items() if key not in lacking}
        is_openshift = plan.cluster.spec.platform is Platform.OPENSHIFT
        traits = frozenset(("cri-o", "openshift") if is_openshift else ())
        yield Setup(told, plan.cluster.gpu_operator.spec.install.value, traits)


def _settings(plan: Plan) -> Mapping[str, Any]:
    told = config_map_names(plan)
    match plan.cluster.gpu_operator.spec.install:
        case Install.HELM:
            return settings.helm_values(plan, told)
        case Install.EXTERNAL:
            return section(settings.policy_patch(plan, told), "spec")
        case Install.OLM:
            bodies = (*settings.operator_objects(plan), *settings.nfd_objects(plan))
            objects = {f"{body['kind']} {body['metadata']['name']}": body.get("spec", {}) for body in bodies}
            return {**section(settings.whole_policy(plan, told), "spec"), **objects}


def _filed(step: Step) -> Iterator[Change]:
    """A file whose ConfigMap keeps its name: pods mount it as it is now, and look at it when their node's label moves.

    (`updateConfig` in `cmd/config-manager/main.go` of NVIDIA/k8s-device-plugin follows the label alone.)
    """
    files = [device_plugin.configurations(plan) for plan in (step.after, step.before)]
    keys = _whole(differing_keys(*files), step) if step.keeps_plugin_file else ()
    for text in _difference(keys, *files) if keys else ():
        place = of(step.after, step.after.cluster, step.after.cluster.gpu_operator.at)
        effect = "nothing restarts: nodes read a key when their label names it"
        yield Change(*place, ChangeClass.METADATA, f"the device plugin's file {text}", effect)


_TOLD: Final = ("driver", "mig", "migManager", "devicePlugin", _SUBSCRIPTION)
"""Parts of the settings whose every difference is told of: by files, by fields of the policy, or by the release."""
