"""Groups of Prometheus rules: what the plan says, what is there, how busy it is, and alerts.

Those that hold the plan's own numbers are made here, those that are the same for all plans are in `rules.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from gpuplan.backends.monitoring import metrics
from gpuplan.backends.monitoring.metrics import (
    MIG_STATE_LABEL,
    NODE_LABELS,
    node_label,
    one_of,
    published,
    quoted,
    sanitized,
    series,
    workload_labels,
)
from gpuplan.manifests.bodies import given
from gpuplan.manifests.templates import filled, read_rows, rows_for
from gpuplan.planning.alerts import AlertName
from gpuplan.planning.dra import uses_claims
from gpuplan.planning.plan import (
    MIG_CONFIG_LABEL,
    POOL_LABEL,
    Amount,
    Mig,
    Monitoring,
    Plan,
    Pool,
    Quota,
    Stage,
    Tenant,
)
from gpuplan.planning.sync_names import sync_name
from gpuplan.policy.models import MigStrategy, Platform
from gpuplan.values import NamedTuple

_FILE: Final = Path(__file__).with_name("rules.yaml")
_RUNBOOK: Final = "docs/how-to/monitor-pools.md"


class Recording(NamedTuple):
    """A recording rule. ``labels`` are added to every series of the result."""

    record: str
    expr: str
    labels: Mapping[str, str] = {}

    def body(self) -> dict[str, Any]:
        return given(record=self.record, expr=self.expr, labels=dict(self.labels))


class Alert(NamedTuple):
    """An alerting rule: ``duration`` is how long the expression must hold; ``meaning`` and ``action`` are sentences."""

    name: AlertName
    expr: str
    duration: str
    severity: str
    summary: str
    meaning: str
    action: str

    def body(self, labels: Mapping[str, str]) -> dict[str, Any]:
        return {
            "alert": self.name.value,
            "expr": self.expr,
            "for": self.duration,
            "labels": {"severity": self.severity, **labels},
            "annotations": {
                "summary": self.summary,
                "description": f"{self.meaning} {self.action} See {_RUNBOOK}#{self.name.lower()}.",
            },
        }


class Group(NamedTuple):
    """Rules that are evaluated in their order, each seeing the results of those before it."""

    name: str
    rules: tuple[Recording | Alert, ...]

    def body(self, monitoring: Monitoring) -> dict[str, Any]:
        alert_labels = dict(sorted(monitoring.spec.alert_labels.items()))
        rules = [rule.body(alert_labels) if isinstance(rule, Alert) else rule.body() for rule in self.rules]
        return {"name": self.name, "rules": rules}


# --- By the plan -------------------------------------------------------------------------------------------------

_MOST_RULES: Final = 1000
"""Of one object: its rules then stay well below the 1 MiB that a Prometheus' ConfigMap of rules may have."""


def pool_group(plan: Plan) -> Group:
    return Group("gpuplan-planned", tuple(rule for pool in plan.pools for rule in _pool_rules(pool)))


def tenant_groups(plan: Plan) -> Iterator[Group]:
    """As many groups as keep each object small."""
    rules = tuple(rule for tenant in plan.tenants for rule in _tenant_rules(tenant))
    for number, start in enumerate(range(0, len(rules), _MOST_RULES), start=1):
        yield Group(f"gpuplan-tenants{f'-{number}' if number > 1 else ''}", rules[start : start + _MOST_RULES])


def _pool_rules(pool: Pool) -> Iterator[Recording]:
    here = {"pool": pool.name}
    yield _constant(metrics.POOL_PLANNED_NODES, pool.nodes.count, **here)
    for resource in published(pool):
        yield _constant(metrics.POOL_PLANNED_UNITS, resource.capacity, **here, **resource.labels)
    for config in dict.fromkeys(part.labels.get(MIG_CONFIG_LABEL) for part in pool.parts if part.nodes.count):
        if config is not None:
            yield _constant(metrics.POOL_MIG_CONFIG, 1, mig_config=config, **here)


def _tenant_rules(tenant: Tenant) -> Iterator[Recording]:
    for namespace in tenant.spec.namespaces:
        yield _constant(metrics.NAMESPACE_TENANT, 1, namespace=namespace, tenant=tenant.name)
    for quota in tenant.quotas:
        labels = {"tenant": tenant.name, "pool": quota.pool.name, **_unit_labels(quota)}
        yield _constant(metrics.TENANT_GUARANTEED_UNITS, quota.guaranteed, **labels)
        if quota.limit is not None:
            yield _constant(metrics.TENANT_LIMIT_UNITS, quota.limit, **labels)


def _unit_labels(quota: Quota) -> dict[str, str]:
    """A grant is on a unit, also where several are published as one."""
    found = next((item for item in published(quota.pool) if quota.unit.name in item.units), None)
    return ({} if found is None else found.labels) | {"unit": quota.unit.name}


def _constant(record: str, amount: Amount, **labels: str) -> Recording:
    number = amount if isinstance(amount, int) else f"{amount:f}"
    return Recording(record, f"vector({number})", dict(sorted(labels.items())))


# --- As it is ----------------------------------------------------------------------------------------------------


def observed_groups(plan: Plan, monitoring: Monitoring) -> Iterator[Group]:
    """The groups, in the order in which they need each other; an alert that the policy disables is left out."""
    texts = _Texts(plan, monitoring)
    planned = [rule for pool in plan.pools for rule in _node_planned(pool)]
    has_units = any(published(pool) for pool in plan.pools)
    units = texts.recordings("units") if has_units else ()
    yield Group("gpuplan-pools", (*texts.recordings("nodes"), *planned, *units))
    yield Group("gpuplan-utilization", tuple(texts.recordings("utilization")))
    alerts = sorted(texts.alerts(), key=lambda alert: alert.name)
    yield Group("gpuplan-alerts", tuple(alert for alert in alerts if alert.name not in monitoring.spec.disabled_alerts))


def _node_planned(pool: Pool) -> Iterator[Recording]:
    for resource in published(pool):
        nodes = [
            f"{_nodes(pool, part)} * {item.per_node}"
            for part in pool.parts
            for item in published(part)
            if item.resource == resource.resource and item.per_node and part.nodes.count
        ]
        if nodes:
            # The label `pool` is there already; it tells rules of two pools with one resource apart.
            labels = {"pool": pool.name, **resource.labels}
            yield Recording(metrics.NODE_PLANNED_UNITS, "\nor\n".join(nodes), labels)


def _nodes(pool: Pool, part: Pool) -> str:
    """The nodes of a part of a pool: all, or those that a rollout has moved, or all but those."""
    if pool.rollout is None or part.nodes.count == pool.nodes.count:
        return series(metrics.NODE_POOL, pool=pool.name)
    names = one_of(sorted(pool.rollout.moved.nodes.names))
    is_moved = part is pool.rollout.moved
    return series(metrics.NODE_POOL, pool=pool.name, **{"node__re" if is_moved else "node__nre": names})


# --- What stands in `rules.yaml` ---------------------------------------------------------------------------------


class _Texts:
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
