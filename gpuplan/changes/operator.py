"""What changes of the GPU Operator do: its installation, its driver, and the pods that it restarts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from gpuplan.backends.gpu_operator import cluster_policy, device_plugin, helm, mig_parted, nfd, olm
from gpuplan.backends.gpu_operator.cluster_policy import ConfigMapNames
from gpuplan.catalog.operators import default_driver
from gpuplan.changes.bodies import section, without
from gpuplan.changes.capacity import all_pods, pods_on
from gpuplan.changes.model import Change, ChangeClass, change_of
from gpuplan.changes.nodes import impact_of_all
from gpuplan.changes.wording import NOTHING_RUNS, REVERT, from_to, names, nodes_of
from gpuplan.diagnostics import Origin
from gpuplan.planning.dra import uses_claims
from gpuplan.planning.plan import UNREAD, GpuOperator, Plan, Pool, Stage
from gpuplan.planning.pools import ROLLOUT_SUFFIX
from gpuplan.policy.models import Install

_NO_NAMES: Final = ConfigMapNames("")
"""ConfigMaps' names follow from what is in them, which is compared by itself."""

_WATCHED: Final = ("dcgmExporter", "nodeStatusExporter")
"""Operands that hand out no GPUs: the GPUs and the pods on them are only watched."""


def operator_changes(before: Plan, after: Plan) -> Iterator[Change]:
    """All that is in the folder of the GPU Operator. Which release of the chart it is may be written nowhere."""
    old, new = before.cluster.gpu_operator, after.cluster.gpu_operator
    is_another_chart = new.spec.install is Install.HELM and old.version != new.version
    folders = (Stage.GPU_OPERATOR.value,) if is_another_chart else ()
    yield from (change._replace(folders=folders) for change in _changes(before, after))


def _changes(before: Plan, after: Plan) -> Iterator[Change]:
    old, new = before.cluster.gpu_operator, after.cluster.gpu_operator
    if old.spec.install is not new.spec.install or old.namespace != new.namespace:
        yield _installed_otherwise(before, after)
        return
    if old.cluster_policy != new.cluster_policy and new.spec.install is not Install.HELM:
        yield _policy_renamed(after, old)
    if driver := _driver_text(before, after):
        yield _driver(before, after, driver)
    if causes := _causes(before, after):
        if mps := _mps_restarting(before, after):
            yield _mps_restarted(before, after, causes, mps)
        yield from _restarted(before, after, causes, mps)
    if watchers := _watchers(before, after):
        yield _watched_anew(after, watchers)
    if details := _details(before, after, watchers):
        yield _detailed(after, details)
    if _upgrade_policy(before) != _upgrade_policy(after):
        yield _upgraded_otherwise(after)


# --- Installation ------------------------------------------------------------------------------------------------


def _installed_otherwise(before: Plan, after: Plan) -> Change:
    old, new = before.cluster.gpu_operator, after.cluster.gpu_operator
    texts = []
    if old.spec.install is not new.spec.install:
        texts.append(f"the operator is installed by {new.spec.install}, not by {old.spec.install}")
    if old.namespace != new.namespace:
        texts.append(f"its namespace is `{new.namespace}`, not `{old.namespace}`")
    return _change(
        after,
        ChangeClass.DESTRUCTIVE,
        "; ".join(texts),
        "the old operator must go before the new one works, and takes drivers and device plugin from all nodes",
        "reverting installs the old one again, which disturbs the nodes once more",
        new.at,
    )._replace(
        nodes=impact_of_all(after.pools),
        stages=(Stage.GPU_OPERATOR, Stage.PARTITIONS),
        pods=all_pods(before),
        needs_drain=True,
    )


def _policy_renamed(after: Plan, old: GpuOperator) -> Change:
    """The operator works by one ClusterPolicy and calls others `ignored` (`clusterpolicy_controller.go` there)."""
    new = after.cluster.gpu_operator
    return _change(
        after,
        ChangeClass.RECREATE,
        f"the ClusterPolicy is called `{new.cluster_policy}`, not `{old.cluster_policy}`",
        "the operator ignores a second ClusterPolicy: the first must go before, and all its DaemonSets with it",
        "reverting is the same the other way round",
        new.at / "clusterPolicy",
    )._replace(nodes=impact_of_all(after.pools), needs_drain=True)


# --- The driver --------------------------------------------------------------------------------------------------


def _driver(before: Plan, after: Plan, text: str) -> Change:
    """A new driver cannot be loaded while pods hold the old one: the operator evicts them, node by node.

    (`upgradePolicy` of the driver; https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-driver-upgrades.html)
    """
    return _change(
        after,
        ChangeClass.REPARTITION,
        text,
        "driver pods restart on all nodes, a few at a time, and pods that hold GPUs are evicted for it",
        "reverting restarts the drivers again, in the same way",
        after.cluster.gpu_operator.at,
    )._replace(nodes=impact_of_all(after.pools), pods=all_pods(before), needs_drain=True)


def _driver_text(before: Plan, after: Plan) -> str:
    """What changes of the driver; empty where nothing does, or where somebody else sees to it."""
    old, new = before.cluster.gpu_operator, after.cluster.gpu_operator
    if new.spec.install is Install.EXTERNAL:
        return ""
    if old.spec.driver.enabled != new.spec.driver.enabled:
        return f"the operator {'manages' if new.spec.driver.enabled else 'no longer manages'} the driver"
    if not new.spec.driver.enabled:
        return ""
    if old.spec.driver.version != new.spec.driver.version:
        versions = from_to(
            old.spec.driver.version or "the release's own", new.spec.driver.version or "the release's own"
        )
        return f"the driver changes {versions}"
    if not new.spec.driver.version and old.version != new.version and _own_driver(old) != _own_driver(new):
        return f"the operator's release brings a driver of its own, {from_to(_own_driver(old), _own_driver(new))}"
    one, other = (without(section(_settings(plan), "driver"), "upgradePolicy") for plan in (before, after))
    return "settings of the driver change" if _differing(one, other) else ""


def _own_driver(operator: GpuOperator) -> str:
    return default_driver(operator.version) or f"that of {operator.version}"


# --- Restarts ----------------------------------------------------------------------------------------------------


def _restarted(before: Plan, after: Plan, causes: list[str], mps: Sequence[Pool]) -> Iterator[Change]:
    """One for all: the operator renders a DaemonSet again when anything of it changes, and the DaemonSet rolls.

    Nodes whose MPS daemons restart are told of apart.
    """
    touched = after.pools if _plugin_restarts(before, after) else _with_mig(after)
    nodes = impact_of_all(part for pool in touched for part in _without_mps(pool, mps))
    if nodes is None and mps:
        return
    yield _change(
        after,
        ChangeClass.PLUGIN_RESTART,
        "; ".join(causes),
        f"pods of the operator restart on {nodes_of(nodes)}, one at a time; pods that hold GPUs go on, new ones wait "
        "meanwhile"
        if nodes is not None
        else "the operator is set up; there are no nodes yet",
        REVERT,
        _where(before, after),
    )._replace(nodes=nodes)


def _without_mps(pool: Pool, mps: Sequence[Pool]) -> tuple[Pool, ...]:
    """The pool, or what is left of it beside the nodes of its parts that have MPS daemons now."""
    if all(item.name != pool.name for item in mps):
        return (pool,)
    return tuple(part for part in pool.parts if part.nodes.count and not part.runs_mps)


def _mps_restarting(before: Plan, after: Plan) -> tuple[Pool, ...]:
    """The parts of pools whose MPS daemons restart. They depend on the pools as they were: that is what runs."""
    if uses_claims(before) or not (_plugin_file_differs(before, after) or _mps_settings_differ(before, after)):
        return ()
    return tuple(part for part in before.parts if part.runs_mps)


def _plugin_file_differs(before: Plan, after: Plan) -> bool:
    """Whether the ConfigMap gets another name, which stands in the pod templates of all that read it."""
    return not uses_claims(after) and device_plugin.data(before) != device_plugin.data(after)


def _mps_settings_differ(before: Plan, after: Plan) -> bool:
    """Whether the operator renders the MPS daemon otherwise, for all that is known.

    Its image is the device plugin's, and comes with the release; its environment has the MIG strategy
    (`TransformMPSControlDaemon` in `controllers/object_controls.go` of NVIDIA/gpu-operator).
    """
    old, new = before.cluster.gpu_operator, after.cluster.gpu_operator
    return (
        (old.version != new.version and new.spec.install is not Install.EXTERNAL)
        or old.spec.mig_strategy is not new.spec.mig_strategy
        or bool(set(_settings_differing(before, after)) - _APART_FROM_MPS)
    )


_APART_FROM_MPS: Final = frozenset(
    ("dcgm", "gfd", "migManager", "node-feature-discovery", "NodeFeatureDiscovery nfd-instance")
)
"""Settings of operands that stand in none of the MPS daemon's pods."""


def _mps_restarted(before: Plan, after: Plan, causes: list[str], mps: Sequence[Pool]) -> Change:
    """An MPS server ends with its daemon, and every CUDA process of its GPUs with the server.

    (`Stop` in `cmd/mps-control-daemon/mps/daemon.go` of NVIDIA/k8s-device-plugin, which `main.go` there calls when the
    pod ends.)
    """
    nodes = impact_of_all(mps)
    return _change(
        after,
        ChangeClass.REPARTITION,
        f"daemons of MPS restart: {'; '.join(causes)}",
        f"every CUDA process on {nodes_of(nodes) if nodes else 'nodes'} that share GPUs by MPS fails as the daemon of "
        "its node restarts, one node at a time: pods that hold GPUs there must end first",
        "reverting restarts the daemons again, in the same way",
        _where(before, after),
    )._replace(nodes=nodes, pods=sum(pods_on(before, part, part.nodes.count) for part in mps), needs_drain=True)


def _with_mig(after: Plan) -> tuple[Pool, ...]:
    return tuple(pool for pool in after.pools if pool.gpu.supports_mig)


def _causes(before: Plan, after: Plan) -> list[str]:
    old, new = before.cluster.gpu_operator, after.cluster.gpu_operator
    found = []
    if old.version != new.version and new.spec.install is not Install.EXTERNAL:
        found.append(f"the operator's release changes {from_to(old.version, new.version)}")
    if old.spec.mig_strategy is not new.spec.mig_strategy:
        found.append(f"the MIG strategy changes {from_to(old.spec.mig_strategy, new.spec.mig_strategy)}")
    if old.spec.reboot_on_mig_change != new.spec.reboot_on_mig_change:
        found.append(f"mig-manager {'may reboot' if new.spec.reboot_on_mig_change else 'no longer reboots'} nodes")
    if keys := _whole(_differing(device_plugin.data(before), device_plugin.data(after)), before, after):
        found.append(f"the device plugin's configuration of {names(keys)} changes")
    entries = _entries(before), _entries(after)
    found += _file_differs(*entries, _whole(_differing(*entries), before, after))
    if keys := _settings_differing(before, after):
        found.append(f"settings of {names(keys)} change")
    return found


def _where(before: Plan, after: Plan) -> Origin:
    """Where the first of the causes is said: of the operator itself, in a pool, or in a layout."""
    old, new = before.cluster.gpu_operator, after.cluster.gpu_operator
    own = ((item.version, item.spec.mig_strategy, item.spec.reboot_on_mig_change) for item in (old, new))
    if len({*own}) > 1:
        return new.at
    keys = _differing(device_plugin.data(before), device_plugin.data(after))
    names = {key.removesuffix(ROLLOUT_SUFFIX) for key in keys}
    entries = _differing(_entries(before), _entries(after))
    for plan in (after, before):
        shared = (pool.at / "sharing" for pool in plan.pools if pool.name in names)
        divided = (layout.at for layout in plan.mig_layouts if layout.config_name in entries)
        if found := next(chain(shared, divided), None):
            return found
    return new.at


def _file_differs(old: Mapping[str, Any], new: Mapping[str, Any], differing: list[str]) -> list[str]:
    """What differs in mig-manager's file, by entry."""
    keys = (
        ("gets", [key for key in differing if key not in old]),
        ("loses", [key for key in differing if key not in new]),
        ("has another", [key for key in differing if key in old and key in new]),
    )
    return [f"mig-manager's file {verb} {names(found)}" for verb, found in keys if found]


def _whole(keys: list[str], before: Plan, after: Plan) -> list[str]:
    """The keys and entries, without those of pools and layouts with errors: these are missing in a plan alone."""
    broken = {name for plan in (before, after) for name in (*plan.broken.pools, *plan.broken.layouts)}
    named = {key: {key, key.removesuffix(ROLLOUT_SUFFIX), key.rpartition("-")[0]} for key in keys}
    return [] if UNREAD in broken else [key for key in keys if named[key].isdisjoint(broken)]


def _entries(plan: Plan) -> Mapping[str, Any]:
    entries: Mapping[str, Any] = mig_parted.configuration(plan)["mig-configs"]
    return entries


def _plugin_restarts(before: Plan, after: Plan) -> bool:
    """Whether more than mig-manager restarts. Where devices are claimed, there is no device plugin to restart."""
    old, new = before.cluster.gpu_operator, after.cluster.gpu_operator
    return (
        old.version != new.version
        or old.spec.mig_strategy is not new.spec.mig_strategy
        or _plugin_file_differs(before, after)
        or bool(set(_settings_differing(before, after)) - {"migManager"})
    )


# --- Settings ----------------------------------------------------------------------------------------------------


def _settings(plan: Plan) -> Mapping[str, Any]:
    """What the operator is told, by operand, and what else OLM is told."""
    match plan.cluster.gpu_operator.spec.install:
        case Install.HELM:
            return helm.values(plan, _NO_NAMES)
        case Install.EXTERNAL:
            return _spec(cluster_policy.patch(plan, _NO_NAMES))
        case Install.OLM:
            return {**_spec(cluster_policy.whole(plan, _NO_NAMES)), **_olm(plan)}


def _spec(body: Mapping[str, Any]) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = body["spec"]
    return spec


def _olm(plan: Plan) -> Mapping[str, Any]:
    bodies = [*olm.objects(plan), *(nfd.objects(plan) if plan.cluster.gpu_operator.spec.nfd else ())]
    return {f"{body['kind']} {body['metadata']['name']}": body.get("spec", {}) for body in bodies}


def _settings_differing(before: Plan, after: Plan) -> list[str]:
    """The operands whose own settings differ, beyond what the policy has fields for, and beyond those that watch."""
    old, new = (_own_settings(plan) for plan in (before, after))
    differing = _differing(old, new)
    return [key for key in differing if key not in _OF_POOLS] if _lacks_pools(before, after) else differing


_OF_POOLS: Final = frozenset(("daemonsets", "node-feature-discovery", "NodeFeatureDiscovery nfd-instance"))
"""Settings that follow from the labels and taints of pools."""


def _lacks_pools(before: Plan, after: Plan) -> bool:
    return bool(before.broken.pools or after.broken.pools)


def _own_settings(plan: Plan) -> Mapping[str, Any]:
    found = {key: value for key, value in _settings(plan).items() if key not in (*_WATCHED, "mig", "driver")}
    found["migManager"] = without(section(found, "migManager"), "env")
    if "node-feature-discovery" in found:
        # Its master runs on no node of a pool.
        found["node-feature-discovery"] = without(section(found, "node-feature-discovery"), "master")
    for name in ("Subscription gpu-operator-certified", "NodeFeatureDiscovery nfd-instance"):
        if name in found:
            found[name] = without(section(found, name), "channel", "startingCSV", "extraLabelNs", "enableTaints")
    return found


def _watchers(before: Plan, after: Plan) -> list[str]:
    """The operands that only watch and whose pods restart; how they are found is none of their pods' business."""
    old, new = _settings(before), _settings(after)
    return [key for key in _WATCHED if without(section(old, key), _FOUND_BY) != without(section(new, key), _FOUND_BY)]


_FOUND_BY: Final = "serviceMonitor"


def _watched_anew(after: Plan, watchers: list[str]) -> Change:
    nodes = impact_of_all(after.pools)
    return _change(
        after,
        ChangeClass.PLUGIN_RESTART,
        f"settings of {names(watchers)} change",
        f"pods that watch GPUs come, go or restart{f' on {nodes_of(nodes)}' if nodes else ''}; pods that hold GPUs go "
        "on, and no new ones wait",
        REVERT,
        after.cluster.gpu_operator.at,
    )._replace(nodes=nodes)


def _details(before: Plan, after: Plan, watchers: list[str]) -> list[str]:
    """The operands that differ without a restart of anything on nodes."""
    old, new = _settings(before), _settings(after)
    found = [key for key in _WATCHED if key not in watchers and old.get(key) != new.get(key)]
    return found if _lacks_pools(before, after) else found + _nfd_master(old, new)


def _nfd_master(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    def masters(settings: Mapping[str, Any]) -> object:
        charts = section(settings, "node-feature-discovery").get("master")
        instance = section(settings, "NodeFeatureDiscovery nfd-instance")
        return charts, instance.get("extraLabelNs"), instance.get("enableTaints")

    return ["node-feature-discovery"] if masters(old) != masters(new) else []


def _detailed(after: Plan, details: list[str]) -> Change:
    return _change(
        after,
        ChangeClass.METADATA,
        f"settings of {names(details)} change",
        "nothing restarts on nodes with GPUs",
        REVERT,
        after.cluster.gpu_operator.at,
    )


def _upgrade_policy(plan: Plan) -> object:
    return section(_settings(plan), "driver").get("upgradePolicy")


def _upgraded_otherwise(after: Plan) -> Change:
    return _change(
        after,
        ChangeClass.METADATA,
        "the driver's upgrade policy changes",
        f"the next driver comes to nodes in another way; {NOTHING_RUNS}",
        REVERT,
        after.cluster.gpu_operator.at,
    )


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return [key for key in dict.fromkeys((*old, *new)) if old.get(key) != new.get(key)]


# --- Parts of all ------------------------------------------------------------------------------------------------


def _change(plan: Plan, change_class: ChangeClass, what: str, effect: str, undo: str, at: Origin) -> Change:
    found = change_of(plan, plan.cluster, change_class, what, effect, undo)
    return found._replace(at=at, stages=(Stage.GPU_OPERATOR,))
