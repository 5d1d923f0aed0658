"""How pools, units, tenants and workloads are named in PromQL.

`rules.yaml` says of its recorded series what labels they have, and what those mean; those that hold the plan's own
numbers are here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from gpuplan.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    GPU_RESOURCE,
    MIG_CONFIG_LABEL,
    POOL_LABEL,
    Cluster,
    Monitoring,
    Pool,
)
from gpuplan.policy.models import Allocation
from gpuplan.values import NamedTuple

# --- Recorded series ---------------------------------------------------------------------------------------------

NODE_POOL: Final = "node:gpuplan_pool:info"
"""{node, pool}: 1 for each node that carries the label of a pool."""
NAMESPACE_TENANT: Final = "namespace:gpuplan_tenant:info"
"""{namespace, tenant}: 1 for each namespace of a tenant."""
POOL_MIG_CONFIG: Final = "pool:gpuplan_mig_config:info"
"""{pool, mig_config}: 1 for the value of `nvidia.com/mig.config` by the plan; pools without that label have none."""

POOL_PLANNED_NODES: Final = "pool:gpuplan_planned_nodes:sum"
"""{pool}: nodes by the plan."""
POOL_PLANNED_UNITS: Final = "pool:gpuplan_planned_units:sum"
"""{pool, unit, resource}: the pool's capacity by the plan."""
NODE_PLANNED_UNITS: Final = "node:gpuplan_planned_units:sum"
"""{node, pool, unit, resource}: what each node that is there has to publish by the plan."""
TENANT_GUARANTEED_UNITS: Final = "tenant:gpuplan_guaranteed_units:sum"
"""{tenant, pool, unit, resource}: what the tenant is guaranteed."""
TENANT_LIMIT_UNITS: Final = "tenant:gpuplan_limit_units:sum"
"""{tenant, pool, unit, resource}: what the tenant may have at most; absent where unbounded."""


# --- Units as resources ------------------------------------------------------------------------------------------


class Published(NamedTuple):
    """An extended resource of a pool's nodes, with the units that it stands for; ``capacity`` is the pool's."""

    resource: str
    units: tuple[str, ...]
    per_node: int
    capacity: int

    @property
    def labels(self) -> dict[str, str]:
        """The labels `resource` and `unit`."""
        return {"resource": sanitized(self.resource), "unit": "/".join(self.units)}


def published(pool: Pool) -> tuple[Published, ...]:
    """What a pool's nodes publish, in the order of its units.

    Fractions are cut from GPUs that the nodes publish whole, and counted in GPUs. Claimed devices are not among a
    node's resources, and kube-state-metrics does not count them.
    """
    found: dict[str, Published] = {}
    for unit in pool.units if pool.spec.allocation is Allocation.DEVICE_PLUGIN else ():
        resource = unit.resource or GPU_RESOURCE
        units, per_node, capacity = found[resource][1:] if resource in found else ((), 0, 0)
        found[resource] = Published(resource, (*units, unit.name), per_node + unit.per_node, capacity + unit.capacity)
    return tuple(found.values())


def sanitized(name: str) -> str:
    """A resource's name as kube-state-metrics writes it (`SanitizeLabelName` in internal/store/utils.go).

    That is so for nodes and pods; the resources of `kube_resourcequota` keep their names (internal/store/
    resourcequota.go).
    """
    return re.sub(r"[^a-zA-Z0-9_]", "_", name)


# --- Labels of nodes ---------------------------------------------------------------------------------------------

MIG_STATE_LABEL: Final = f"{MIG_CONFIG_LABEL}.state"
"""mig-manager's word on its last attempt: pending, rebooting, success or failed."""

NODE_LABELS: Final = (POOL_LABEL, MIG_CONFIG_LABEL, MIG_STATE_LABEL, DEVICE_PLUGIN_CONFIG_LABEL)
"""The node labels that kube-state-metrics has to show: `--metric-labels-allowlist=nodes=[...]`."""


def node_label(key: str) -> str:
    """A label of `kube_node_labels`: sanitised, and in snake case (`labelName` in internal/store/utils.go)."""
    return "label_" + re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", sanitized(key)).lower()


# --- Labels of workloads -----------------------------------------------------------------------------------------


class WorkloadLabels(NamedTuple):
    """The labels by which the DCGM exporter's series name the pod that has a device.

    ``is_set`` are matchers that leave series without a workload out.
    """

    namespace: str
    pod: str
    is_set: str


def workload_labels(cluster: Cluster, monitoring: Monitoring) -> WorkloadLabels:
    """Prometheus puts `exported_` before labels that the target has too, unless it honours those of the series.

    Where it does, a device without a workload has the labels of its target: the exporter's own namespace and pod.
    """
    if monitoring.spec.honor_labels:
        is_set = matchers(pod__ne="", namespace__ne=cluster.gpu_operator.namespace)
        return WorkloadLabels("namespace", "pod", is_set)
    return WorkloadLabels("exported_namespace", "exported_pod", matchers(exported_pod__ne=""))


# --- Text --------------------------------------------------------------------------------------------------------

_OPERATORS: Final = {"": "=", "ne": "!=", "re": "=~", "nre": "!~"}


def matchers(**values: str) -> str:
    """Label matchers without braces: ``matchers(pool="a", profile__ne="")`` is `pool="a",profile!=""`.

    A suffix names the operator: `__ne` is `!=`, `__re` is `=~`, `__nre` is `!~`.
    """
    parts = []
    for key, value in values.items():
        label, _, operator = key.partition("__")
        parts.append(f"{label}{_OPERATORS[operator]}{quoted(value)}")
    return ",".join(parts)


def series(metric: str, **values: str) -> str:
    """A selector, such as `pool:gpuplan_planned_units:sum{pool="a"}`."""
    return f"{metric}{{{matchers(**values)}}}" if values else metric


def quoted(text: str) -> str:
    """A string of PromQL."""
    return json.dumps(text, ensure_ascii=False)


def one_of(values: Iterable[str]) -> str:
    """A regular expression for these values and no others; Prometheus ties it to both ends."""
    return "|".join(re.sub(r"[!-,./:-@\[-^`{-~]", r"\\\g<0>", value) for value in values)
