"""Values for the chart gpu-operator.

The chart has no schema of its own: it ignores what it does not know. A list in a values file replaces the chart's, so
lists that the plan adds to are written whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gpuplan.backends.gpu_operator.settings import (
    NODE_RELABELING,
    ConfigMapNames,
    Values,
    label_namespaces,
    merge,
    missing_tolerations,
    operands,
    reboot,
)
from gpuplan.catalog.operators import NFD_WORKER_TOLERATIONS, OPERAND_TOLERATIONS, Toleration
from gpuplan.manifests import HEADER, to_yaml
from gpuplan.manifests.bodies import given
from gpuplan.planning.plan import Plan
from gpuplan.policy.models import ClusterMigStrategy, NodeLabels, Platform

FILE_NAME: Final = "values.yaml"

_NFD: Final = "node-feature-discovery"


def render_values(plan: Plan, names: ConfigMapNames) -> bytes:
    about = f"# Values for the chart gpu-operator, {plan.cluster.gpu_operator.version}.\n"
    return (HEADER + about + to_yaml(values(plan, names))).encode()


def values(plan: Plan, names: ConfigMapNames) -> dict[str, Any]:
    """Defaults that suit GitOps, under the policy's own values, under what follows from the plan; keys in order."""
    user = plan.cluster.gpu_operator.spec.values
    merged: dict[str, Any] = {}
    for layer in (
        _defaults(plan),
        user,
        _decided(plan),
        operands(plan, names),
        _NOT_MADE,
        _completed_lists(plan, user),
    ):
        merged = merge(merged, layer)
    return _sorted(merged)


def _defaults(plan: Plan) -> dict[str, Any]:
    """Argo CD applies the chart's CRDs at each sync, and would run the hook that does so at each sync too.

    And whoever deletes the release, or an Application that keeps its objects, runs NFD's post-delete hook: it takes all
    of NFD's labels off all nodes, `nvidia.com/mig.config` among them, and the operator then dissolves the partitions.
    """
    nfd = {_NFD: {"postDeleteCleanup": False}} if plan.cluster.gpu_operator.spec.nfd else {}
    return {"operator": {"upgradeCRD": False, "cleanupCRD": False}, **nfd}


def _decided(plan: Plan) -> dict[str, Any]:
    """Whatever is in `gpuplan.catalog.operators.decided_values`, and not the operands'.

    An empty strategy: the chart's template then leaves the field out, which its default `single` would not.
    """
    spec = plan.cluster.gpu_operator.spec
    is_pools_own = spec.mig_strategy is ClusterMigStrategy.PER_POOL
    decided: dict[str, Any] = {
        "mig": {"strategy": "" if is_pools_own else spec.mig_strategy.value},
        "driver": given(enabled=spec.driver.enabled, version=spec.driver.version),
    }
    if plan.cluster.spec.platform is Platform.OPENSHIFT:
        decided["platform"] = {"openshift": True}
    if plan.cluster.monitoring:
        decided["dcgmExporter"] = {"enabled": True, "config": {"create": False}}
    if not spec.nfd:
        decided["nfd"] = {"enabled": False}
    elif plan.cluster.spec.node_labels is NodeLabels.NFD and any(pool.spec.taints for pool in plan.pools):
        decided[_NFD] = {"master": {"config": {"enableTaints": True}}}
    return decided


_NOT_MADE: Final = {"devicePlugin": {"config": {"create": False}}, "migManager": {"config": {"create": False}}}
"""ConfigMaps that are gpuplan's, and not the chart's."""


# --- Lists -------------------------------------------------------------------------------------------------------


def _completed_lists(plan: Plan, user: Values) -> dict[str, Any]:
    """Lists that hold the policy's own items, or else the chart's, and what the plan needs."""
    operands = _tolerations(plan, _find_list(user, "daemonsets", "tolerations"), OPERAND_TOLERATIONS)
    lists: dict[str, Any] = {
        "migManager": {"env": _environment(plan, user)},
        "daemonsets": given(tolerations=operands),
        _NFD: _nfd_lists(plan, user) if plan.cluster.gpu_operator.spec.nfd else {},
    }
    if plan.cluster.monitoring:
        lists["dcgmExporter"] = {"serviceMonitor": {"relabelings": _relabelings(user)}}
    return given(**lists)


def _relabelings(user: Values) -> list[Any]:
    """The policy's own come first, so that none of them takes the label `node` away."""
    own = _find_list(user, "dcgmExporter", "serviceMonitor", "relabelings") or ()
    return [*(item for item in own if item != NODE_RELABELING), NODE_RELABELING]


def _nfd_lists(plan: Plan, user: Values) -> dict[str, Any]:
    workers = _tolerations(plan, _find_list(user, _NFD, "worker", "tolerations"), NFD_WORKER_TOLERATIONS)
    lists: dict[str, Any] = {"worker": {"tolerations": workers}} if workers else {}
    if plan.cluster.spec.node_labels is NodeLabels.NFD:
        listed = _find_list(user, _NFD, "master", "config", "extraLabelNs") or ()
        lists["master"] = {"config": {"extraLabelNs": label_namespaces(plan, listed)}}
    return lists


def _tolerations(plan: Plan, user: Sequence[Any] | None, chart: Sequence[Toleration]) -> list[Any]:
    """The whole list, empty where the one that holds anyway is enough."""
    present: Sequence[Any] = chart if user is None else user
    needed = missing_tolerations(plan, present)
    return [*present, *needed] if needed else []


def _environment(plan: Plan, user: Values) -> list[Any]:
    own = reboot(is_wanted=plan.cluster.gpu_operator.spec.reboot_on_mig_change)
    listed = _find_list(user, "migManager", "env") or ()
    return [*(item for item in listed if not (isinstance(item, Mapping) and item.get("name") == own["name"])), own]


def _find_list(values: object, *route: str) -> Sequence[Any] | None:
    for key in route:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values if isinstance(values, list | tuple) else None


def _sorted(values: Values) -> dict[str, Any]:
    return {key: _sorted(value) if isinstance(value, Mapping) else value for key, value in sorted(values.items())}
