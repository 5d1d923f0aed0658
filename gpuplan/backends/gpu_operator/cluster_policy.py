"""The ClusterPolicy: whole where OLM installs the operator, a patch for one that somebody else owns."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from gpuplan.backends.gpu_operator.settings import ConfigMapNames, merge, missing_tolerations, operands, reboot
from gpuplan.catalog.operators import OPERAND_TOLERATIONS, nearest_line
from gpuplan.manifests.bodies import given, new_object
from gpuplan.manifests.templates import read_rows
from gpuplan.planning.plan import GpuOperator, Plan
from gpuplan.policy.models import ClusterMigStrategy, Platform

_FILE: Final = Path(__file__).with_name("cluster-policy.yaml")


def patch(plan: Plan, names: ConfigMapNames) -> dict[str, Any]:
    """A partial ClusterPolicy for server-side apply over one that exists; it owns these fields and no others.

    Its owner must not write them, nor `mig.strategy` where that is up to each pool. Tolerations are not here, since
    server-side apply owns a list as a whole and would drop the owner's; GPU608 names those that are missing. Where the
    cluster is watched, what the DCGM exporter collects and how it is scraped are the plan's too.
    """
    return _cluster_policy(plan.cluster.gpu_operator, _decided(plan, names))


def whole(plan: Plan, names: ConfigMapNames) -> dict[str, Any]:
    """A ClusterPolicy that nobody else owns.

    The operator's own metrics are there to be scraped even where gpuplan writes nothing that reads them.
    """
    operator = plan.cluster.gpu_operator
    line = nearest_line(operator.version)
    own: dict[str, Any] = {
        "daemonsets": {"tolerations": [*OPERAND_TOLERATIONS, *missing_tolerations(plan, OPERAND_TOLERATIONS)]},
        "cdi": dict(line.cdi),
        "driver": {**_driver(operator), **line.driver_fields},
        "dcgmExporter": {} if plan.cluster.monitoring else {"serviceMonitor": {"enabled": True}},
    }
    if plan.cluster.spec.platform is Platform.OPENSHIFT:
        own["operator"] = {"defaultRuntime": "crio", "use_ocp_driver_toolkit": True}
    return _cluster_policy(operator, merge(merge(read_rows(_FILE), own), _decided(plan, names)))


def _driver(operator: GpuOperator) -> dict[str, Any]:
    """A version counts only with a repository and an image (`ImagePath` in the operator's `api/nvidia/v1`)."""
    version = operator.spec.driver.version
    image = {"repository": "nvcr.io/nvidia", "image": "driver", "version": version} if version else {}
    upgrades = {"autoUpgrade": True, "maxParallelUpgrades": 1, "maxUnavailable": "25%"}
    return {"enabled": operator.spec.driver.enabled, **image, "upgradePolicy": upgrades}


def _decided(plan: Plan, names: ConfigMapNames) -> dict[str, Any]:
    """No strategy for `perPool`: the CRD takes no empty one, and one that is set overrides every pool's own."""
    spec = plan.cluster.gpu_operator.spec
    is_pools_own = spec.mig_strategy is ClusterMigStrategy.PER_POOL
    decided = {**({} if is_pools_own else {"mig": {"strategy": spec.mig_strategy.value}}), **operands(plan, names)}
    return merge(decided, {"migManager": {"env": [reboot(is_wanted=True)]}}) if spec.reboot_on_mig_change else decided


def _cluster_policy(operator: GpuOperator, spec: dict[str, Any]) -> dict[str, Any]:
    return new_object("nvidia.com/v1", "ClusterPolicy", operator.cluster_policy, spec=given(**spec))
