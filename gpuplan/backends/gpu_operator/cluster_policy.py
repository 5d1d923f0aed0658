"""The ClusterPolicy: whole where OLM installs the operator, a patch for one that somebody else owns.

Whatever object of the spec is written, the fields that the CRD would fill in are written too: a field that appears
after the apply would keep Argo CD from ever calling the object synced.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpuplan.backends.gpu_operator import dcgm, tolerations
from gpuplan.catalog.operators import OPERAND_TOLERATIONS, nearest_line
from gpuplan.planning.dra import uses_claims
from gpuplan.planning.plan import GpuOperator, Plan
from gpuplan.planning.pools import ALL_DISABLED
from gpuplan.policy.models import ClusterMigStrategy, Platform


class ConfigMapNames(NamedTuple):
    """The ConfigMaps that the operator mounts, empty where there is none; ``metrics`` is the DCGM exporter's."""

    mig_parted: str
    device_plugin: str = ""
    metrics: str = ""


# --- A patch -----------------------------------------------------------------------------------------------------


def patch(plan: Plan, names: ConfigMapNames) -> dict[str, Any]:
    """A partial ClusterPolicy for server-side apply over one that exists; it owns these fields and no others.

    Its owner must not write them, nor `mig.strategy` where that is up to each pool. Tolerations are not here, since
    server-side apply owns a list as a whole and would drop the owner's; GPU608 names those that are missing. Where the
    cluster is watched, what the DCGM exporter collects and how it is scraped are the plan's too.
    """
    operator = plan.cluster.gpu_operator
    spec: dict[str, Any] = {
        **_mig(operator),
        "migManager": {"config": _mig_manager_config(names)},
        "devicePlugin": {"config": _device_plugin_config(names)},
    }
    if uses_claims(plan):
        spec["devicePlugin"]["enabled"] = False
    if operator.spec.reboot_on_mig_change:
        spec["migManager"]["env"] = _reboot()
    if monitoring := plan.cluster.monitoring:
        spec["dcgmExporter"] = dcgm.exporter(monitoring, names.metrics)
        spec["nodeStatusExporter"] = {"enabled": True}
    return _cluster_policy(operator.cluster_policy, spec)


# --- A whole one -------------------------------------------------------------------------------------------------


def whole(plan: Plan, names: ConfigMapNames) -> dict[str, Any]:
    """A ClusterPolicy that nobody else owns; OLM's bundle tells the operator its images."""
    operator = plan.cluster.gpu_operator
    line = nearest_line(operator.version)
    spec: dict[str, Any] = {
        "operator": _operator(plan.cluster.spec.platform),
        "daemonsets": {
            "updateStrategy": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "1"},
            "tolerations": [*OPERAND_TOLERATIONS, *tolerations.missing(plan, OPERAND_TOLERATIONS)],
        },
        "cdi": dict(line.cdi),
        "driver": {**_driver(operator), **line.driver_fields},
        "toolkit": {"enabled": True, "installDir": "/usr/local/nvidia"},
        **_mig(operator),
        "migManager": {
            "enabled": True,
            "config": _mig_manager_config(names),
            **({"env": _reboot()} if operator.spec.reboot_on_mig_change else {}),
        },
        "devicePlugin": {
            "enabled": not uses_claims(plan),
            "config": _device_plugin_config(names),
            "mps": {"root": "/run/nvidia/mps"},
        },
        "gfd": {"enabled": True},
        "dcgm": {"enabled": True},
        "dcgmExporter": {"enabled": True, **_dcgm_exporter(plan, names)},
        "nodeStatusExporter": {"enabled": True},
        "validator": {"plugin": {"env": [{"name": "WITH_WORKLOAD", "value": "false"}]}},
    }
    return _cluster_policy(operator.cluster_policy, spec)


def _operator(platform: Platform) -> dict[str, Any]:
    is_openshift = platform is Platform.OPENSHIFT
    return {
        "defaultRuntime": "crio" if is_openshift else "containerd",
        "runtimeClass": "nvidia",
        "use_ocp_driver_toolkit": is_openshift,
    }


def _driver(operator: GpuOperator) -> dict[str, Any]:
    """A version counts only with a repository and an image (`ImagePath` in the operator's `api/nvidia/v1`)."""
    driver: dict[str, Any] = {"enabled": operator.spec.driver.enabled}
    if operator.spec.driver.version:
        driver |= {"repository": "nvcr.io/nvidia", "image": "driver", "version": operator.spec.driver.version}
    return driver | {
        "upgradePolicy": {"autoUpgrade": True, "maxParallelUpgrades": 1, "maxUnavailable": "25%"},
    }


def _dcgm_exporter(plan: Plan, names: ConfigMapNames) -> dict[str, Any]:
    """The operator's own metrics are there to be scraped even where gpuplan writes nothing that reads them."""
    monitoring = plan.cluster.monitoring
    return dcgm.exporter(monitoring, names.metrics) if monitoring else {"serviceMonitor": {"enabled": True}}


# --- Parts of both -----------------------------------------------------------------------------------------------


def _cluster_policy(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }


def _mig(operator: GpuOperator) -> dict[str, Any]:
    """Nothing for `perPool`: the CRD takes no empty strategy, and one that is set overrides every pool's own."""
    strategy = operator.spec.mig_strategy
    return {} if strategy is ClusterMigStrategy.PER_POOL else {"mig": {"strategy": strategy.value}}


def _mig_manager_config(names: ConfigMapNames) -> dict[str, str]:
    """The CRD allows no default but `all-disabled` and none: which layout a node gets is its label's business."""
    return {"name": names.mig_parted, "default": ALL_DISABLED}


def _device_plugin_config(names: ConfigMapNames) -> dict[str, str]:
    """No default: it would reach every node that has no label."""
    return {"name": names.device_plugin, "default": ""}


def _reboot() -> list[dict[str, str]]:
    return [{"name": "WITH_REBOOT", "value": "true"}]
