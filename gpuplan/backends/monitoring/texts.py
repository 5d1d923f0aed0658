"""The rules of `rules.yaml` for a plan: which of them there are, and what stands in the places of their texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpuplan.backends.monitoring.metrics import (
    MIG_STATE_LABEL,
    NODE_LABELS,
    node_label,
    one_of,
    published,
    quoted,
    sanitized,
    workload_labels,
)
from gpuplan.backends.monitoring.rules import Alert, Recording
from gpuplan.manifests.templates import filled, read_rows, rows_for
from gpuplan.planning.alerts import AlertName
from gpuplan.planning.dra import uses_claims
from gpuplan.planning.plan import MIG_CONFIG_LABEL, POOL_LABEL, Mig, Monitoring, Plan, Stage
from gpuplan.planning.sync_names import sync_name
from gpuplan.policy.models import MigStrategy, Platform

_FILE: Final = Path(__file__).with_name("rules.yaml")


class Texts:
    """The file's rules that belong to one plan."""

    def __init__(self, plan: Plan, monitoring: Monitoring) -> None:
        partitioned = [pool.name for pool in plan.pools if MIG_CONFIG_LABEL in pool.labels]
        sizes = _mig_resources(plan)
        has_namespaces = any(tenant.spec.namespaces for tenant in plan.tenants)
        facts = {
            "argocd": plan.cluster.argocd is not None,
            "claims": uses_claims(plan),
            "exported-labels": has_namespaces and not monitoring.spec.honor_labels,
            "honored-labels": has_namespaces and monitoring.spec.honor_labels,
            "namespaces": has_namespaces,
            "partitioned": bool(partitioned),
            "pools": bool(plan.pools),
            "sizes": len(sizes) > 1,
        }
        self._facts = {fact for fact, is_so in facts.items() if is_so}
        self._values = _values(plan, monitoring) | {
            "mig_resources": quoted(one_of(sizes)),
            "partitioned_pools": quoted(one_of(partitioned)),
        }

    def recordings(self, group: str) -> Iterator[Recording]:
        """The recording rules of a group, in the order in which they need each other."""
        for row in rows_for(self._facts, read_rows(_FILE)[group]):
            for record, metric in (row.get("records") or {row["record"]: ""}).items():
                yield Recording(record, filled(row["expr"], {**self._values, "metric": metric}))

    def alerts(self) -> Iterator[Alert]:
        for row in rows_for(self._facts, read_rows(_FILE)["alerts"]):
            texts = (filled(row[key], self._values) for key in ("summary", "meaning", "action"))
            expression = filled(row["expr"], self._values)
            yield Alert(AlertName(row["name"]), expression, row["for"], row["severity"], *texts)


def _values(plan: Plan, monitoring: Monitoring) -> dict[str, str]:
    workload = workload_labels(plan.cluster, monitoring)
    resources = {sanitized(item.resource) for pool in plan.pools for item in published(pool)}
    allowlist = f"--metric-labels-allowlist=nodes=[{','.join(NODE_LABELS)}]"
    is_told = plan.cluster.spec.platform is not Platform.OPENSHIFT
    return {
        "applications": quoted(one_of(_applications(plan))),
        "has_workload": workload.is_set,
        "mig_config_label": node_label(MIG_CONFIG_LABEL),
        "mig_state_label": node_label(MIG_STATE_LABEL),
        "namespace_label": workload.namespace,
        "pod_label": workload.pod,
        "pool_label": node_label(POOL_LABEL),
        "project": quoted(plan.cluster.argocd.project if plan.cluster.argocd else ""),
        "resources": quoted(one_of(sorted(resources))),
        "start_kube_state_metrics": f"Start kube-state-metrics with {allowlist}. " if is_told else "",
    }


def _mig_resources(plan: Plan) -> list[str]:
    """Resources that are MIG profiles; under `single` the name says nothing of the profile."""
    return sorted(
        {
            sanitized(item.resource)
            for pool in plan.parts
            if isinstance(pool.sharing, Mig) and pool.sharing.spec.strategy is MigStrategy.MIXED
            for item in published(pool)
            if item.resource.startswith("nvidia.com/mig-")
        }
    )


def _applications(plan: Plan) -> list[str]:
    """The names of the cluster's Applications, whether there is something in each or not."""
    cluster = plan.cluster.name
    stages = [stage for stage in Stage if stage not in (Stage.QUEUES, Stage.NAMESPACES)]
    by_pool = [Stage.PARTITIONS, *([Stage.QUEUES] if plan.scheduler.has_queues_by_pool else [])]
    pools = [f"{stage}/{pool.name}" for stage in by_pool for pool in plan.pools]
    namespaces = [f"{Stage.NAMESPACES}/{namespace}" for tenant in plan.tenants for namespace in tenant.spec.namespaces]
    workloads = sorted({f"{Stage.WORKLOADS}/{workload.namespace}" for workload in plan.workloads})
    return [sync_name(cluster, folder) for folder in (*stages, *pools, *namespaces, *workloads)]
