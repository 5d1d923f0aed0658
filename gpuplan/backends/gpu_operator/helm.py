"""Values for the chart gpu-operator.

The chart has no schema of its own: it ignores what it does not know. A list in a values file replaces the chart's, so
lists that the plan adds to are written whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpuplan.backends.gpu_operator import dcgm, tolerations
from gpuplan.backends.gpu_operator.cluster_policy import ConfigMapNames
from gpuplan.backends.gpu_operator.nfd import label_namespaces
from gpuplan.catalog.operators import NFD_WORKER_TOLERATIONS, OPERAND_TOLERATIONS, Toleration
from gpuplan.manifests import HEADER, to_yaml
from gpuplan.planning.dra import uses_claims
from gpuplan.planning.plan import Monitoring, Plan
from gpuplan.planning.pools import ALL_DISABLED
from gpuplan.policy.models import ClusterMigStrategy, NodeLabels, Platform

FILE_NAME = "values.yaml"

_NFD = "node-feature-discovery"

Values = Mapping[str, Any]


def render_values(plan: Plan, names: ConfigMapNames) -> bytes:
    about = f"# Values for the chart gpu-operator, {plan.cluster.gpu_operator.version}.\n"
    return (HEADER + about + to_yaml(values(plan, names))).encode()


def values(plan: Plan, names: ConfigMapNames) -> dict[str, Any]:
    """Defaults that suit GitOps, under the policy's own values, under what follows from the plan; keys in order."""
    user = plan.cluster.gpu_operator.spec.values
    merged = _merge(_merge(_defaults(plan), user), _decided(plan, names))
    return _sorted(_merge(merged, _completed_lists(plan, user)))


def _defaults(plan: Plan) -> dict[str, Any]:
    """Argo CD applies the chart's CRDs at each sync, and would run the hook that does so at each sync too.

    And whoever deletes the release, or an Application that keeps its objects, runs NFD's post-delete hook: it takes all
    of NFD's labels off all nodes, `nvidia.com/mig.config` among them, and the operator then dissolves the partitions.
    """
    defaults: dict[str, Any] = {"operator": {"upgradeCRD": False, "cleanupCRD": False}}
    if plan.cluster.gpu_operator.spec.nfd:
        defaults[_NFD] = {"postDeleteCleanup": False}
    return defaults


def _decided(plan: Plan, names: ConfigMapNames) -> dict[str, Any]:
    """Whatever is in `gpuplan.catalog.operators.decided_values`."""
    operator = plan.cluster.gpu_operator
    decided: dict[str, Any] = {
        "mig": {"strategy": _mig_strategy(operator.spec.mig_strategy)},
        "driver": {"enabled": operator.spec.driver.enabled},
        "devicePlugin": {"config": {"create": False, "name": names.device_plugin, "default": ""}},
        "migManager": {"config": {"create": False, "name": names.mig_parted, "default": ALL_DISABLED}},
    }
    if uses_claims(plan):
        decided["devicePlugin"]["enabled"] = False
    if operator.spec.driver.version:
        decided["driver"]["version"] = operator.spec.driver.version
    if plan.cluster.spec.platform is Platform.OPENSHIFT:
        decided["platform"] = {"openshift": True}
    if monitoring := plan.cluster.monitoring:
        decided["dcgmExporter"] = _dcgm_exporter(plan, monitoring, names.metrics)
        decided["nodeStatusExporter"] = {"enabled": True}
    if not operator.spec.nfd:
        decided["nfd"] = {"enabled": False}
    elif plan.cluster.spec.node_labels is NodeLabels.NFD and any(pool.spec.taints for pool in plan.pools):
        decided[_NFD] = {"master": {"config": {"enableTaints": True}}}
    return decided


def _mig_strategy(strategy: ClusterMigStrategy) -> str:
    """An empty strategy: the chart's template then leaves the field out, which its default `single` would not."""
    return "" if strategy is ClusterMigStrategy.PER_POOL else strategy.value


def _dcgm_exporter(plan: Plan, monitoring: Monitoring, config_name: str) -> dict[str, Any]:
    """The policy's own relabelings come first, so that none of them takes the label `node` away."""
    exporter = _merge({"enabled": True, "config": {"create": False}}, dcgm.exporter(monitoring, config_name))
    own = _find_list(plan.cluster.gpu_operator.spec.values, "dcgmExporter", "serviceMonitor", "relabelings") or ()
    relabelings = [*(item for item in own if item != dcgm.NODE_RELABELING), dcgm.NODE_RELABELING]
    return _merge(exporter, {"serviceMonitor": {"relabelings": relabelings}})


# --- Lists -------------------------------------------------------------------------------------------------------


def _completed_lists(plan: Plan, user: Values) -> dict[str, Any]:
    """Lists that hold the policy's own items, or else the chart's, and what the plan needs."""
    lists: dict[str, Any] = {"migManager": {"env": _environment(plan, user)}}
    if operands := _tolerations(plan, _find_list(user, "daemonsets", "tolerations"), OPERAND_TOLERATIONS):
        lists["daemonsets"] = {"tolerations": operands}
    if plan.cluster.gpu_operator.spec.nfd:
        lists[_NFD] = _nfd_lists(plan, user)
    return {key: value for key, value in lists.items() if value}


def _nfd_lists(plan: Plan, user: Values) -> dict[str, Any]:
    lists: dict[str, Any] = {}
    if workers := _tolerations(plan, _find_list(user, _NFD, "worker", "tolerations"), NFD_WORKER_TOLERATIONS):
        lists["worker"] = {"tolerations": workers}
    if plan.cluster.spec.node_labels is NodeLabels.NFD:
        listed = _find_list(user, _NFD, "master", "config", "extraLabelNs") or ()
        namespaces = label_namespaces(plan, *(str(namespace) for namespace in listed))
        lists["master"] = {"config": {"extraLabelNs": namespaces}}
    return lists


def _tolerations(plan: Plan, user: Sequence[Any] | None, chart: Sequence[Toleration]) -> list[Any]:
    """The whole list, empty where the one that holds anyway is enough."""
    present: Sequence[Any] = chart if user is None else user
    needed = tolerations.missing(plan, present)
    return [*present, *needed] if needed else []


def _environment(plan: Plan, user: Values) -> list[Any]:
    reboots = "true" if plan.cluster.gpu_operator.spec.reboot_on_mig_change else "false"
    others = [
        item
        for item in _find_list(user, "migManager", "env") or ()
        if not (isinstance(item, Mapping) and item.get("name") == "WITH_REBOOT")
    ]
    return [*others, {"name": "WITH_REBOOT", "value": reboots}]


def _find_list(values: object, *route: str) -> Sequence[Any] | None:
    for key in route:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values if isinstance(values, list | tuple) else None


# --- Merging -----------------------------------------------------------------------------------------------------


def _merge(under: Values, over: Values) -> dict[str, Any]:
    """Maps merge, all else is replaced, as Helm does with several files of values."""
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _merge(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged


def _sorted(values: Values) -> dict[str, Any]:
    return {key: _sorted(value) if isinstance(value, Mapping) else value for key, value in sorted(values.items())}
