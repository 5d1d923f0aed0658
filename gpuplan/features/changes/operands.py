"""The effects of restarts of the GPU Operator's own pods on nodes and on other pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpuplan.compiler.backends.gpu_operator import nvidia_drivers
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.plain import section, without
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.catalog.operands import Restart, Roll, Setup, Where, is_left_alone
from gpuplan.compiler.manifests import Subject
from gpuplan.compiler.planning.gpu_operator import DriverGroup, are_drivers_by_pool, driver_groups, group_of
from gpuplan.compiler.planning.plan import MIG_MANAGER_LABEL, Plan, Pool
from gpuplan.features.changes.kinds import differing_keys
from gpuplan.features.changes.model import NOTHING_RUNS, Change, NodeImpact, from_to, names, nodes_of, of
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
    alone = [_only(cause, [roll for roll in cause.rolls or () if is_left_alone(roll, setup)]) for cause in there]
    moving = [
        cause if cause.rolls is None else _only(cause, [roll for roll in cause.rolls if not is_left_alone(roll, setup)])
        for cause in there
    ]
    if found := [cause for cause in moving if _has(cause, Restart.EVICTS)]:
        yield _drivers_restart(step, found)
    if mps := [cause for cause in moving if _has(cause, Restart.ENDS)]:
        yield _mps_restarts(step, mps)
    others = [
        cause
        if cause.rolls is None
        else _only(cause, [roll for roll in cause.rolls or () if roll.restart in (Restart.PAUSES, Restart.WATCHES)])
        for cause in moving
    ]
    rolling = [cause for cause in others if cause.rolls != ()]
    yield from _pods_restart(step, rolling, _runs_mps(step) if mps else [])
    yield from _untouched(step, there, alone)


def _only(cause: Cause, rolls: Sequence[Roll]) -> Cause:
    return cause._replace(rolls=tuple(rolls))


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


def _drivers_restart(step: Step, causes: Sequence[Cause]) -> Change:
    """A pod of the driver that is not of its DaemonSet's revision restarts, and pods that hold GPUs go before it.

    That is so for each change of its pod template, such as a toleration, unless the operator knows that what is
    installed stays the same (`Restart.EVICTS` in the catalog).
    """
    own = [cause for cause in causes if cause.is_of_driver]
    rolls = [roll for cause in causes for roll in cause.rolls or () if roll.restart is Restart.EVICTS]
    goes = any(roll.goes for roll in rolls)
    return Change(
        *of(step.after, step.after.cluster, causes[0].at),
        ChangeClass.REPARTITION,
        _texts(own) if own else f"drivers restart: {_texts(causes)}",
        "the driver's pods go from all nodes, and the driver with them: pods that hold GPUs must end first"
        if goes
        else "driver pods restart on all nodes, a few at a time, and pods that hold GPUs are evicted for it",
        "reverting restarts the drivers again, in the same way",
        nodes=impact_of_all(step.after.pools),
        pods=all_pods(step.before),
        needs_drain=True,
        daemon_sets=tuple(dict.fromkeys(roll.operand.daemon_set for roll in rolls)),
    )


# --- MPS ---------------------------------------------------------------------------------------------------------


def _mps_restarts(step: Step, causes: Sequence[Cause]) -> Change:
    """An MPS server ends with its daemon, and every CUDA process of its GPUs with the server.

    (`Stop` in `cmd/mps-control-daemon/mps/daemon.go` of NVIDIA/k8s-device-plugin, which `main.go` there calls when the
    pod ends.)
    """
    parts = _runs_mps(step)
    nodes = impact_of_all(parts)
    rolled = [
        _only(
            cause,
            [
                roll
                for roll in cause.rolls or ()
                if (roll.operand.where is not Where.MIG and roll.restart is not Restart.EVICTS)
            ],
        )
        for cause in causes
    ]
    return Change(
        *of(step.after, step.after.cluster, causes[0].at),
        ChangeClass.REPARTITION,
        f"daemons of MPS restart: {_texts(causes)}",
        f"every CUDA process on {nodes_of(nodes) if nodes else 'nodes'} that share GPUs by MPS fails as the daemon of "
        "its node restarts, one node at a time: pods that hold GPUs there must end first",
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
    nodes = _nodes(step, causes, shared)
    if not causes or (nodes is None and shared):
        return
    pauses = any(cause.rolls is None or _has(cause, Restart.PAUSES) for cause in causes)
    gone = [roll for cause in causes for roll in cause.rolls or () if roll.goes and roll.restart is Restart.PAUSES]
    effect = (_PAUSING if pauses else _WATCHING).format(nodes_of(nodes)) if nodes else _NO_NODES
    if gone and nodes:
        sets = list(dict.fromkeys(roll.operand.daemon_set for roll in gone))
        effect = _GOING.format(nodes_of(nodes), listing(sets, None))
    if nodes and any(
        roll.goes and roll.operand.daemon_set == _LABELLER for cause in causes for roll in cause.rolls or ()
    ):
        effect += _UNLABELLED
    yield Change(
        *of(step.after, step.after.cluster, causes[0].at),
        ChangeClass.PLUGIN_RESTART,
        _texts(causes),
        effect,
        nodes=nodes,
        daemon_sets=_daemon_sets(causes),
    )


def _nodes(step: Step, causes: Sequence[Cause], shared: Sequence[Pool]) -> NodeImpact | None:
    wheres = {roll.operand.where for cause in causes for roll in cause.rolls or ()}
    is_everywhere = Where.ALL in wheres or any(cause.rolls is None for cause in causes)
    pools = step.after.pools if is_everywhere else _divisible(step)
    return impact_of_all(part for pool in pools for part in _beside(pool, shared))


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
    if not (are_drivers_by_pool(step.before) and are_drivers_by_pool(step.after)):
        return False
    return group_of(step.before, was) != group_of(step.after, to)


def drivers_of_pools(step: Step) -> Iterator[Change]:
    """One change for each NVIDIADriver that says something else now, or that another one takes the place of.

    The operator cordons as many nodes of each at once as its `maxParallelUpgrades` and `maxUnavailable` allow, and
    evicts pods that hold GPUs (`reconcileNVIDIADriverUpgrades` in `controllers/upgrade_controller.go` there).
    """
    before, after = nvidia_drivers(step.before), nvidia_drivers(step.after)
    groups = {group.name: group for group in driver_groups(step.before)}
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
    for group in driver_groups(step.after):
        if group.name in before and before[group.name] != after[group.name]:
            yield _changed(step, groups[group.name], group, before[group.name], after[group.name])
        elif group.name not in before and group.pool and step.before.find_pool(group.pool.name):
            # The nodes of a new pool are part of the change of that pool.
            change = _restarted(step, group, f"its nodes have a driver of their own: {group.version}", goes=True)
            yield change._replace(effect=_TAKEN_OVER)
    for name, group in groups.items():
        if name not in after and group.pool and (pool := step.after.find_pool(group.pool.name)):
            # DaemonSets go with the NVIDIADriver that owns them, and those of a removed pool with the pool.
            change = _restarted(step, group._replace(pool=pool), "its nodes have the cluster's driver again", goes=True)
            yield change._replace(change_class=ChangeClass.DESTRUCTIVE, effect=_GONE)


def _changed(step: Step, was: DriverGroup, now: DriverGroup, old: Mapping[str, Any], new: Mapping[str, Any]) -> Change:
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


def _owner_of(group: DriverGroup) -> str:
    """The owner of DaemonSets whose names only the cluster knows: they end in a hash of its UID.

    (`getDriverAppName` in `internal/state/driver.go` there; the node label `nvidia.com/gpu-operator.driver.owner` says
    of each node whose it is.)
    """
    return f"NVIDIADriver/{group.name}"


def _restarted(step: Step, group: DriverGroup, words: str, *, goes: bool = False) -> Change:
    """``goes`` where Kubernetes ends the pods, whatever the upgrade policy says."""
    before = step.before
    pools = [
        pool
        for pool in before.pools
        if (pool.name == group.pool.name if group.pool is not None else group_of(before, pool) == group.name)
    ]
    pods = sum(pods_on(step.before, pool, pool.nodes.count) for pool in pools)
    waits = not goes and _waits(nvidia_drivers(step.after).get(group.name))
    return Change(
        *_place(step.after, group),
        ChangeClass.METADATA if waits else ChangeClass.REPARTITION,
        words,
        f"pods of the driver stay as they are until somebody deletes them; {NOTHING_RUNS}" if waits else _EFFECT,
        "" if waits else "reverting restarts the drivers again, in the same way",
        nodes=impact(group.pool.nodes) if group.pool else impact_of_all(pools),
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


def _place(plan: Plan, group: DriverGroup) -> tuple[str, Subject, Origin]:
    if group.pool is None:
        return of(plan, plan.cluster, plan.cluster.gpu_operator.at / "driver")
    return of(plan, group.pool, group.pool.at / "driver")
