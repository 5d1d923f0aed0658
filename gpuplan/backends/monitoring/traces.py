"""Where the objects of monitoring come from, rule by rule."""

from __future__ import annotations

from typing import Final

from gpuplan.backends.monitoring.rules import (
    NAMESPACE_TENANT,
    NODE_PLANNED_UNITS,
    POOL_MIG_CONFIG,
    POOL_PLANNED_NODES,
    POOL_PLANNED_UNITS,
    TENANT_GUARANTEED_UNITS,
    TENANT_LIMIT_UNITS,
    Group,
    Rule,
    texts,
)
from gpuplan.diagnostics import Origin
from gpuplan.manifests.provenance import Links, Routes, below, choosing, chosen, copied, ordering
from gpuplan.manifests.templates import Row, places_in
from gpuplan.planning.plan import MIG_CONFIG_LABEL, Mig, Monitoring, Plan, Pool, Quota, Tenant, Workload
from gpuplan.planning.sources import (
    asked_by,
    by_name,
    capacity_of,
    claims_of,
    mig_config_of,
    monitoring_namespace,
    named,
    namespace_of,
    operator_namespace,
    per_node_of,
    resource_of,
    scheduler_of,
    unit_name_of,
)
from gpuplan.values import NamedTuple


class Traces(NamedTuple):
    """Where the objects of one cluster come from."""

    plan: Plan
    monitoring: Monitoring

    def rule_object(self, group: Group) -> Routes:
        yield ("metadata", "namespace"), monitoring_namespace(self.plan.cluster)
        yield from self._labels()
        yield from below(("spec",), self.rule_file(group))

    def rule_file(self, group: Group) -> Routes:
        pools = {pool.name: pool for pool in self.plan.pools}
        tenants = {tenant.name: tenant for tenant in self.plan.tenants}
        for index, rule in enumerate(group.rules):
            record, labels = rule.get("record"), rule.get("labels", {})
            if record in _OF_TENANTS:
                found = _of_tenant(self.plan, tenants[labels["tenant"]], rule)
            elif record in _OF_POOLS:
                found = _of_pool(self.plan, pools[labels["pool"]], rule)
            else:
                found = _of_text(_Texts(self.plan, self.monitoring), rule)
            yield from below(("groups", 0, "rules", index), found)

    def service_monitor(self) -> Routes:
        """There is one where Prometheus selects by labels, on other platforms than OpenShift."""
        namespace = operator_namespace(self.plan.cluster)
        yield (), chosen(self.plan.cluster.at / "platform")
        yield ("metadata", "namespace"), namespace
        yield ("spec", "namespaceSelector", "matchNames", 0), namespace
        yield from self._labels()

    def _labels(self) -> Routes:
        for key in self.monitoring.spec.labels:
            yield ("metadata", "labels", key), copied(self.monitoring.at / "labels" / key)


# --- By the plan -------------------------------------------------------------------------------------------------

_OF_POOLS: Final = frozenset((POOL_PLANNED_NODES, POOL_PLANNED_UNITS, POOL_MIG_CONFIG, NODE_PLANNED_UNITS))
_OF_TENANTS: Final = frozenset((NAMESPACE_TENANT, TENANT_GUARANTEED_UNITS, TENANT_LIMIT_UNITS))


def _of_pool(plan: Plan, pool: Pool, rule: Rule) -> Routes:
    record = rule["record"]
    yield (), by_name(plan.pools)
    if record != NODE_PLANNED_UNITS:
        before = plan.pools[: plan.pools.index(pool)]
        yield (), ordering(link for other in before for link in _labelled(other))
    yield ("labels", "pool"), named(pool)
    if record == POOL_PLANNED_NODES:
        yield ("expr",), copied(pool.nodes.at / "count")
    elif record == POOL_MIG_CONFIG:
        yield (), _labelled(pool)
        config = rule["labels"]["mig_config"]
        part = next(part for part in pool.parts if part.labels.get(MIG_CONFIG_LABEL) == config)
        yield ("labels", "mig_config"), mig_config_of(part)
    else:
        yield from _of_units(pool, rule)


def _labelled(pool: Pool) -> Links:
    """What decides whether the nodes of a pool are labelled for mig-manager."""
    return choosing(link for part in pool.parts if not isinstance(part.sharing, Mig) for link in mig_config_of(part))


def _of_units(pool: Pool, rule: Rule) -> Routes:
    is_on_nodes = rule["record"] == NODE_PLANNED_UNITS
    for route in (("expr",), ("labels", "unit"), ("labels", "resource")) if len(pool.units) > 1 else ():
        yield route, ordering(link for unit in pool.units for link in unit_name_of(pool, unit))
    for unit in pool.units:
        if unit.name not in rule["labels"]["unit"].split("/"):
            continue
        yield ("labels", "unit"), unit_name_of(pool, unit)
        yield ("labels", "resource"), resource_of(pool, unit)
        for links in (per_node_of(part, unit) for part in pool.parts) if is_on_nodes else (capacity_of(pool, unit),):
            yield ("expr",), links
    if is_on_nodes:
        yield ("expr",), (*named(pool), *_moved(pool))


def _moved(pool: Pool) -> Links:
    """The names of the nodes that a rollout has moved."""
    rollout = pool.rollout
    return copied(*(rollout.at / "nodes" / index for index in range(len(rollout.nodes)))) if rollout else ()


def _of_tenant(plan: Plan, tenant: Tenant, rule: Rule) -> Routes:
    record, labels = rule["record"], rule["labels"]
    yield (), by_name(plan.tenants)
    yield ("labels", "tenant"), named(tenant)
    if record == NAMESPACE_TENANT:
        yield ("labels", "namespace"), copied(namespace_of(tenant, labels["namespace"]))
        return
    quota = next(quota for quota in tenant.quotas if quota.key == (labels["pool"], labels["unit"]))
    is_limit = record == TENANT_LIMIT_UNITS and quota.spec.limit is not None
    yield ("expr",), copied(quota.at / ("limit" if is_limit else "guaranteed"))
    yield ("labels", "pool"), copied(quota.at / "pool")
    yield ("labels", "unit"), _unit_of(quota)
    yield ("labels", "resource"), asked_by(plan, quota)


def _unit_of(quota: Quota) -> Links:
    if quota.spec.unit:
        return copied(quota.at / "unit")
    return (*chosen(quota.at / "pool"), *unit_name_of(quota.pool, quota.unit))


# --- What stands in `rules.yaml` ---------------------------------------------------------------------------------


def _of_text(of: _Texts, rule: Rule) -> Routes:
    """A rule of the file: what is filled in, and what decides whether it is there."""
    rows = texts()
    if "record" in rule:
        row = rows[rule["record"]]
        yield (), of.facts(row)
        yield ("expr",), of.filled(row["expr"])
        return
    name, spec, at = rule["alert"], of.monitoring.spec, of.monitoring.at
    yield (), (*of.facts(rows[name]), *chosen(*(at / "disabledAlerts" / i for i in range(len(spec.disabled_alerts)))))
    before = (row for row in rows.values() if row.get("name", name) < name)
    yield (), ordering(link for row in before for link in of.facts(row))
    yield ("expr",), of.filled(rows[name]["expr"])
    yield ("annotations", "summary"), of.filled(rows[name]["summary"])
    yield ("annotations", "description"), of.filled("{meaning} {action}".format_map(rows[name]))
    for key in spec.alert_labels:
        yield ("labels", key), copied(at / "alertLabels" / key)


class _Texts(NamedTuple):
    """Where the facts and the values of the file's rules come from; their names are those of `rules.py`."""

    plan: Plan
    monitoring: Monitoring

    def facts(self, row: Row) -> Links:
        """What decides whether a rule is there; `argocd`, `pools` and `namespaces` hold by what no value says."""
        match row.get("if") or row.get("unless"):
            case "claims":
                return claims_of(self.plan)
            case "exported-labels" | "honored-labels":
                return self._honors()
            case "partitioned":
                partitioned = [pool for pool in self.plan.pools if MIG_CONFIG_LABEL in pool.labels]
                return _labelled(partitioned[0]) if len(partitioned) == 1 else ()
            case _:
                return ()

    def filled(self, text: str) -> Links:
        return tuple(dict.fromkeys(link for name in places_in(text) for link in self._value(name)))

    def _value(self, name: str) -> Links:
        plan, cluster = self.plan, self.plan.cluster
        match name:
            case "applications":
                return self._applications()
            case "project" if cluster.argocd:
                return copied(cluster.argocd.at / "project") if cluster.argocd.spec.project else named(cluster)
            case "has_workload":
                namespace = operator_namespace(cluster) if self.monitoring.spec.honor_labels else ()
                return (*self._honors(), *namespace)
            case "namespace_label" | "pod_label":
                return self._honors()
            case "partitioned_pools":
                partitioned = [pool for pool in plan.pools if MIG_CONFIG_LABEL in pool.labels]
                return (*named(*partitioned), *(link for pool in plan.pools for link in _labelled(pool)))
            case "resources" | "mig_resources":
                return tuple(link for pool in plan.pools for unit in pool.units for link in resource_of(pool, unit))
            case "start_kube_state_metrics":
                return chosen(cluster.at / "platform")
            case _:
                return ()

    def _applications(self) -> Links:
        """The names of all Applications: those of workloads' namespaces follow from the workloads."""
        plan = self.plan
        namespaces = (namespace_of(tenant, name) for tenant in plan.tenants for name in tenant.spec.namespaces)
        found = (*named(plan.cluster, *plan.pools), *copied(*namespaces), *scheduler_of(plan))
        return (*found, *chosen(*(place for workload in plan.workloads for place in _namespace_of(workload))))

    def _honors(self) -> Links:
        return chosen(self.monitoring.at / "honorLabels")


def _namespace_of(workload: Workload) -> tuple[Origin, ...]:
    return workload.at / "tenant", workload.at / "namespace"
