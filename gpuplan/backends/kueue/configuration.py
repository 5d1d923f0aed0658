"""What Kueue's own Configuration must say for the queues to mean what the policy says; nothing applies it from here."""

from __future__ import annotations

from typing import Any

from gpuplan.manifests import HEADER, File, to_yaml
from gpuplan.planning.dra import device_class_name
from gpuplan.planning.kueue import counted_resource
from gpuplan.planning.plan import TENANT_LABEL, Plan, Stage
from gpuplan.planning.subjects import about
from gpuplan.policy.models import Allocation, Training

_PATH = f"{Stage.SCHEDULING.value}/kueue-configuration.yaml"

_ABOUT = """\
#
# Kueue reads its Configuration from a file of its own: with its chart, merge this into the value
# managerConfig.controllerManagerConfigYaml; else into the ConfigMap kueue-manager-config. Restart its controller then.
# Where a list is here, yours must hold at least what is in it.
"""

_FRAMEWORKS = ("batch/job", "deployment", "pod")
"""Kinds that go through queues. Pods are among them, so that nothing gets a GPU by a kind that Kueue does not know."""

_UNCOUNTED = ("cpu", "memory", "ephemeral-storage", "hugepages-")
"""Prefixes of resources that no quota counts. A workload that asks for a resource that its queue does not cover is
never admitted (`BlockUndeclared`); the alternative `IgnoreUndeclared` would let GPUs through that no quota covers."""


def configuration(plan: Plan) -> File:
    """The parts that this plan depends on.

    Without fair sharing what is idle belongs to whoever comes first; every tenant has a weight in it, and it is 1 where
    the policy says nothing.
    """
    body: dict[str, Any] = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        "integrations": {"frameworks": list(_FRAMEWORKS)},
        "managedJobsNamespaceSelector": {"matchExpressions": [{"key": TENANT_LABEL, "operator": "Exists"}]},
        "resources": {"excludeResourcePrefixes": list(_UNCOUNTED)},
    }
    mappings = _device_class_mappings(plan)
    if mappings:
        body["resources"]["deviceClassMappings"] = mappings
    if _has_gangs(plan):
        body["waitForPodsReady"] = _WAIT_FOR_PODS_READY
    subjects = about(plan.cluster, *plan.pools, *plan.workloads)
    return File(_PATH, (HEADER + _ABOUT + to_yaml(body)).encode(), about=subjects)


_WAIT_FOR_PODS_READY = {"timeout": "10m", "recoveryTimeout": "10m", "blockAdmission": False}
"""A gang of which some pods find no place gives its quota back after a while, and comes again later."""


def _device_class_mappings(plan: Plan) -> list[dict[str, Any]]:
    """What claims of each DeviceClass count as; pools of one GPU model have one class for a unit."""
    classes = {
        counted_resource(pool, unit): device_class_name(pool, unit)
        for pool in plan.pools
        if pool.spec.allocation is Allocation.DRA
        for unit in pool.units
    }
    return [{"name": resource, "deviceClassNames": [name]} for resource, name in sorted(classes.items())]


def _has_gangs(plan: Plan) -> bool:
    return any(isinstance(workload.work, Training) and workload.work.gang for workload in plan.workloads)
