"""What changes of the GPU Operator do: its installation, its driver, and the pods that it restarts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpuplan.backends.gpu_operator import device_plugin, mig_parted, settings
from gpuplan.backends.gpu_operator.settings import ConfigMapNames
from gpuplan.catalog.operators import default_driver
from gpuplan.changes.bodies import Body, section, without
from gpuplan.changes.capacity import all_pods, pods_on
from gpuplan.changes.model import NOTHING_RUNS, Change, of
from gpuplan.changes.nodes import impact_of_all
from gpuplan.changes.step import Step
from gpuplan.changes.wording import from_to, listed, names, nodes_of
from gpuplan.diagnostics import Origin
from gpuplan.disturbance import ChangeClass
from gpuplan.planning.dra import uses_claims
from gpuplan.planning.plan import UNREAD, GpuOperator, Plan, Pool, Stage
from gpuplan.planning.plugin_configs import pool_of
from gpuplan.policy.models import Install
from gpuplan.values import NamedTuple


def operator_changes(step: Step) -> Iterator[Change]:
    """All that is in the folder of the GPU Operator. Which release of the chart it is may be written nowhere."""
    old, new = step.before.cluster.gpu_operator, step.after.cluster.gpu_operator
    is_another_chart = new.spec.install is Install.HELM and old.version != new.version
    folders = (Stage.GPU_OPERATOR.value,) if is_another_chart else ()
    is_moved = old.spec.install is not new.spec.install or old.namespace != new.namespace
    for change in _installed_otherwise(step) if is_moved else _changed(step):
        yield change._replace(stages=change.stages or (Stage.GPU_OPERATOR,), folders=folders)


def _changed(step: Step) -> Iterator[Change]:
    old, new = step.before.cluster.gpu_operator, step.after.cluster.gpu_operator
    if old.cluster_policy != new.cluster_policy and new.spec.install is not Install.HELM:
        yield _policy_renamed(step)
    told = _Told(step, _settings(step.before), _settings(step.after))
    if driver := _driver_text(old, new, told):
        yield _driver(step, driver)
    if causes := tuple(_causes(step, told)):
        yield from _restarted(step, causes)
    yield from _quietly(step, told)


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
    )


def _policy_renamed(step: Step) -> Change:
    """The operator works by one ClusterPolicy and calls others `ignored` (`clusterpolicy_controller.go` there)."""
    old, new = step.before.cluster.gpu_operator, step.after.cluster.gpu_operator
    return Change(
        *of(step.after, step.after.cluster, new.at / "clusterPolicy"),
        ChangeClass.RECREATE,
        f"the ClusterPolicy is called `{new.cluster_policy}`, not `{old.cluster_policy}`",
        "the operator ignores a second ClusterPolicy: the first must go before, and all its DaemonSets with it",
        "reverting is the same the other way round",
        nodes=impact_of_all(step.after.pools),
        needs_drain=True,
    )


# --- The driver --------------------------------------------------------------------------------------------------


def _driver(step: Step, text: str) -> Change:
    """A new driver cannot be loaded while pods hold the old one: the operator evicts them, node by node.

    (`upgradePolicy` of the driver; https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-driver-upgrades.html)
    """
    return Change(
        *of(step.after, step.after.cluster, step.after.cluster.gpu_operator.at),
        ChangeClass.REPARTITION,
        text,
        "driver pods restart on all nodes, a few at a time, and pods that hold GPUs are evicted for it",
        "reverting restarts the drivers again, in the same way",
        nodes=impact_of_all(step.after.pools),
        pods=all_pods(step.before),
        needs_drain=True,
    )


def _driver_text(old: GpuOperator, new: GpuOperator, told: _Told) -> str:
    """What changes of the driver; empty where nothing does, or where somebody else sees to it."""
    one, other, is_managed = old.spec.driver, new.spec.driver, new.spec.driver.enabled
    if new.spec.install is Install.EXTERNAL or not (one.enabled or is_managed):
        return ""
    if one.enabled != is_managed:
        return f"the operator {'manages' if is_managed else 'no longer manages'} the driver"
    if one.version != other.version:
        own = "the release's own"
        return f"the driver changes {from_to(one.version or own, other.version or own)}"
    if not other.version and old.version != new.version and _own_driver(old) != _own_driver(new):
        return f"the operator's release brings a driver of its own, {from_to(_own_driver(old), _own_driver(new))}"
    return "settings of the driver change" if "driver" in told.restarting else ""


def _own_driver(operator: GpuOperator) -> str:
    return default_driver(operator.version) or f"that of {operator.version}"


# --- Restarts ----------------------------------------------------------------------------------------------------


class _Cause(NamedTuple):
    """Why pods of the operator restart: those of mig-manager at least, of the device plugin, or MPS daemons, too."""

    text: str
    at: Origin
    restarts_plugin: bool = True
    restarts_mps: bool = True


def _causes(step: Step, told: _Told) -> Iterator[_Cause]:
    old, new = step.before.cluster.gpu_operator, step.after.cluster.gpu_operator
    spec, at = new.spec, new.at
    if old.version != new.version and spec.install is not Install.EXTERNAL:
        yield _Cause(f"the operator's release changes {from_to(old.version, new.version)}", at)
    if old.spec.mig_strategy is not spec.mig_strategy:
        yield _Cause(f"the MIG strategy changes {from_to(old.spec.mig_strategy, spec.mig_strategy)}", at)
    if old.spec.reboot_on_mig_change != spec.reboot_on_mig_change:
        may = "may reboot" if spec.reboot_on_mig_change else "no longer reboots"
        yield _Cause(f"mig-manager {may} nodes", at, restarts_plugin=False, restarts_mps=False)
    yield from _causes_in_files(step)
    if keys := told.settings:
        is_plugin = not set(keys) <= {"migManager"}
        tainted = (pool.at / "taints" for was, pool in step.kept_pools if was.spec.taints != pool.spec.taints)
        place = next(tainted, at) if _OF_POOLS.issuperset(keys) else at
        yield _Cause(f"settings of {names(keys)} change", place, is_plugin, not _APART_FROM_MPS.issuperset(keys))


_APART_FROM_MPS: Final = frozenset(
    ("dcgm", "gfd", "migManager", "node-feature-discovery", "NodeFeatureDiscovery nfd-instance")
)
"""Settings of operands that stand in none of the MPS daemon's pods.

Its image is the device plugin's, and comes with the release; its environment has the MIG strategy
(`TransformMPSControlDaemon` in `controllers/object_controls.go` of NVIDIA/gpu-operator).
"""


def _causes_in_files(step: Step) -> Iterator[_Cause]:
    """The device plugin's file, whose name stands in the pod templates of all that read it, and mig-manager's."""
    plans, at = (step.after, step.before), step.after.cluster.gpu_operator.at
    files = [device_plugin.configurations(plan) for plan in plans]
    if keys := _whole(_differing(*files), step):
        pools = {pool_of(key) for key in keys}
        places = (pool.at / "sharing" for plan in plans for pool in plan.pools if pool.name in pools)
        is_read = not uses_claims(step.after)
        yield from (
            _Cause(f"the device plugin's file {text}", place, restarts_plugin=is_read, restarts_mps=is_read)
            for place in [next(places, at)]
            for text in _told(keys, *files)
        )
    entries = [mig_parted.configuration(plan)["mig-configs"] for plan in plans]
    keys = _whole(_differing(*reversed(entries)), step)
    layouts = (layout.at for plan in plans for layout in plan.mig_layouts if layout.config_name in keys)
    for text in _told(keys, *entries):
        yield _Cause(f"mig-manager's file {text}", next(layouts, at), restarts_plugin=False, restarts_mps=False)


def _told(keys: Sequence[str], new: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    """How a file differs in these keys, or entries."""
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


def _restarted(step: Step, causes: Sequence[_Cause]) -> Iterator[Change]:
    """One for all: the operator renders a DaemonSet again when anything of it changes, and the DaemonSet rolls.

    Nodes whose MPS daemons restart are told of apart. They depend on the pools as they were: that is what runs.
    """
    what, at = "; ".join(cause.text for cause in causes), causes[0].at
    ends_mps = any(cause.restarts_mps for cause in causes) and not uses_claims(step.before)
    mps = [part for part in step.before.parts if ends_mps and part.runs_mps]
    if mps:
        yield _mps_restarted(step, what, at, mps)
    restarts_plugin = any(cause.restarts_plugin for cause in causes)
    touched = [pool for pool in step.after.pools if restarts_plugin or pool.gpu.supports_mig]
    nodes = impact_of_all(part for pool in touched for part in _without_mps(pool, mps))
    if nodes is None and mps:
        return
    yield Change(
        *of(step.after, step.after.cluster, at),
        ChangeClass.PLUGIN_RESTART,
        what,
        f"pods of the operator restart on {nodes_of(nodes)}, one at a time; pods that hold GPUs go on, new ones wait "
        "meanwhile"
        if nodes is not None
        else "the operator is set up; there are no nodes yet",
        nodes=nodes,
    )


def _without_mps(pool: Pool, mps: Sequence[Pool]) -> Sequence[Pool]:
    """The pool, or what is left of it beside the nodes of its parts that have MPS daemons now."""
    if all(item.name != pool.name for item in mps):
        return (pool,)
    return [part for part in pool.parts if part.nodes.count and not part.runs_mps]


def _mps_restarted(step: Step, what: str, at: Origin, mps: Sequence[Pool]) -> Change:
    """An MPS server ends with its daemon, and every CUDA process of its GPUs with the server.

    (`Stop` in `cmd/mps-control-daemon/mps/daemon.go` of NVIDIA/k8s-device-plugin, which `main.go` there calls when the
    pod ends.)
    """
    nodes = impact_of_all(mps)
    return Change(
        *of(step.after, step.after.cluster, at),
        ChangeClass.REPARTITION,
        f"daemons of MPS restart: {what}",
        f"every CUDA process on {nodes_of(nodes) if nodes else 'nodes'} that share GPUs by MPS fails as the daemon of "
        "its node restarts, one node at a time: pods that hold GPUs there must end first",
        "reverting restarts the daemons again, in the same way",
        nodes=nodes,
        pods=sum(pods_on(step.before, part, part.nodes.count) for part in mps),
        needs_drain=True,
    )


# --- Settings ----------------------------------------------------------------------------------------------------

_WATCHED: Final = ("dcgmExporter", "nodeStatusExporter")
"""Operands that hand out no GPUs: the GPUs and the pods on them are only watched."""

_NFD: Final = "node-feature-discovery"
_NFD_INSTANCE: Final = "NodeFeatureDiscovery nfd-instance"

_QUIET: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(_WATCHED, ("serviceMonitor",)),
    "driver": ("upgradePolicy",),
    "migManager": ("env",),  # that it may reboot nodes is told of apart
    _NFD: ("master",),
    _NFD_INSTANCE: ("extraLabelNs", "enableTaints"),
    "Subscription gpu-operator-certified": ("channel", "startingCSV"),
}
"""What of an operand's settings concerns none of its pods on nodes of pools, or is told of elsewhere."""

_OF_POOLS: Final = frozenset(("daemonsets", _NFD, _NFD_INSTANCE))
"""Settings that follow from the labels and taints of pools."""


class _Told(NamedTuple):
    """What the operator is told, by operand, and what else OLM is told."""

    step: Step
    old: Body
    new: Body

    @property
    def lacks_pools(self) -> bool:
        """Whether pools have errors: a plan lacks what follows from them."""
        return bool(self.step.before.broken.pools or self.step.after.broken.pools)

    @property
    def restarting(self) -> list[str]:
        """The operands whose pods restart by their own settings."""
        return [key for key in {**self.old, **self.new} if _loud(key, self.old) != _loud(key, self.new)]

    @property
    def settings(self) -> list[str]:
        """Those of them that the policy has no fields for, beyond those that watch."""
        apart = {*_WATCHED, "mig", "driver", *(_OF_POOLS if self.lacks_pools else ())}
        return [key for key in self.restarting if key not in apart]

    def is_quiet(self, key: str) -> bool:
        """Whether something differs of an operand that restarts none of its pods."""
        quiet = _QUIET[key]
        one, other = ({name: section(side, key).get(name) for name in quiet} for side in (self.old, self.new))
        return one != other


def _loud(key: str, settings: Body) -> object:
    return without(section(settings, key), *_QUIET[key]) if key in _QUIET else settings.get(key)


def _settings(plan: Plan) -> Body:
    """Without the names of ConfigMaps: these follow from what is in them, which is compared by itself."""
    unnamed = ConfigMapNames("")
    match plan.cluster.gpu_operator.spec.install:
        case Install.HELM:
            return settings.helm_values(plan, unnamed)
        case Install.EXTERNAL:
            return section(settings.policy_patch(plan, unnamed), "spec")
        case Install.OLM:
            bodies = settings.olm_objects(plan)
            told = {f"{body['kind']} {body['metadata']['name']}": body.get("spec", {}) for body in bodies}
            return {**section(settings.whole_policy(plan, unnamed), "spec"), **told}


def _quietly(step: Step, told: _Told) -> Iterator[Change]:
    """What concerns no pods that hand out GPUs."""
    cluster, nodes = step.after.cluster, impact_of_all(step.after.pools)
    place = of(step.after, cluster, cluster.gpu_operator.at)
    if watchers := [key for key in _WATCHED if key in told.restarting]:
        yield Change(
            *place,
            ChangeClass.PLUGIN_RESTART,
            f"settings of {names(watchers)} change",
            f"pods that watch GPUs come, go or restart{f' on {nodes_of(nodes)}' if nodes else ''}; pods that hold GPUs "
            "go on, and no new ones wait",
            nodes=nodes,
        )
    details = [key for key in _WATCHED if key not in watchers and told.is_quiet(key)]
    if not told.lacks_pools and (told.is_quiet(_NFD) or told.is_quiet(_NFD_INSTANCE)):
        details.append(_NFD)
    if details:
        what, effect = f"settings of {names(details)} change", "nothing restarts on nodes with GPUs"
        yield Change(*place, ChangeClass.METADATA, what, effect)
    if told.is_quiet("driver"):
        effect = f"the next driver comes to nodes in another way; {NOTHING_RUNS}"
        yield Change(*place, ChangeClass.METADATA, "the driver's upgrade policy changes", effect)


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return [key for key in dict.fromkeys((*old, *new)) if old.get(key) != new.get(key)]
