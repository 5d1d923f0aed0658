"""The effects of changes of the drivers that NVIDIADrivers bring to pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.backends.gpu_operator import nvidia_drivers
from gpuplan.compiler.base.bodies import section, without
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests import Subject
from gpuplan.compiler.planning.drivers import DriverGroup, are_drivers_by_pool, driver_groups, group_of
from gpuplan.compiler.planning.plan import Plan, Pool
from gpuplan.features.changes.capacity import all_pods, pods_on
from gpuplan.features.changes.model import NOTHING_RUNS, Change, of
from gpuplan.features.changes.nodes import impact, impact_of_all
from gpuplan.features.changes.step import Step
from gpuplan.features.changes.wording import from_to, names


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
            daemon_sets=tuple(map(_daemon_sets, groups.values())),
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
    differing = sorted(key for key in {**specs[0], **specs[1]} if specs[0].get(key) != specs[1].get(key))
    if was.version != now.version:
        what = f"the driver changes {from_to(was.version, now.version)}"
    else:
        what = f"settings of the driver change: {names(differing)}"
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


def _daemon_sets(group: DriverGroup) -> str:
    """The owner of DaemonSets whose names only the cluster knows: they end in a hash of its UID.

    (`getDriverAppName` in `internal/state/driver.go` there; the node label `nvidia.com/gpu-operator.driver.owner` says
    of each node whose it is.)
    """
    return f"NVIDIADriver/{group.name}"


def _restarted(step: Step, group: DriverGroup, words: str, *, goes: bool = False) -> Change:
    """``goes`` where Kubernetes ends the pods, whatever the upgrade policy says."""
    pools = _pools(step.before, group)
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
        daemon_sets=(_daemon_sets(group),),
    )


_TAKEN_OVER: Final = (
    "their driver pods go at once, since another NVIDIADriver takes the nodes, and its own evict pods that hold GPUs"
)
_EFFECT: Final = "driver pods restart there, a few at a time, and pods that hold GPUs are evicted for it"


def _waits(body: Mapping[str, Any] | None) -> bool:
    return section(body, "spec", "upgradePolicy").get("autoUpgrade") is False


def _pools(plan: Plan, group: DriverGroup) -> list[Pool]:
    """The pools whose nodes it is for, of those that there were."""
    if group.pool is not None:
        return [pool for pool in plan.pools if pool.name == group.pool.name]
    return [pool for pool in plan.pools if group_of(plan, pool) == group.name]


def _place(plan: Plan, group: DriverGroup) -> tuple[str, Subject, Origin]:
    if group.pool is None:
        return of(plan, plan.cluster, plan.cluster.gpu_operator.at / "driver")
    return of(plan, group.pool, group.pool.at / "driver")
