"""Where the objects of monitoring come from, rule by rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from gpuplan.backends.monitoring.dashboards import is_for_console
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
    alert_rows,
    published,
    recording_row,
)
from gpuplan.diagnostics import Origin
from gpuplan.manifests.provenance import Links, Routes, below, choosing, chosen, copied, ordered
from gpuplan.manifests.templates import Row, places_in
from gpuplan.planning.plan import MIG_CONFIG_LABEL, Mig, Monitoring, Plan, Pool, Quota, Tenant, Unit
from gpuplan.planning.sources import (
    capacity_of,
    layout_of,
    mig_config_of,
    name_of,
    named,
    namespace_of,
    operator_namespace,
    per_node_of,
    resource_of,
    unit_name_of,
    workload_namespace,
)
from gpuplan.policy.models import Platform
from gpuplan.values import NamedTuple


class Traces(NamedTuple):
    """Where the objects of one cluster come from."""

    plan: Plan
    monitoring: Monitoring

    def rule_object(self, group: Group) -> Routes:
        yield ("metadata", "namespace"), _namespace(self.plan, self.monitoring)
        yield from self._labels()
        yield from below(("spec",), self.rule_file(group))

    def rule_file(self, group: Group) -> Routes:
        pools = {pool.name: pool for pool in self.plan.pools}
        tenants = {tenant.name: tenant for tenant in self.plan.tenants}
        for index, rule in enumerate(group.rules):
            record, labels = rule.get("record"), rule.get("labels", {})
            if record in _OF_TENANTS:
                found = _of_tenant(tenants[labels["tenant"]], rule)
            elif record in _OF_POOLS:
                found = _of_pool(self.plan, pools[labels["pool"]], rule)
            else:
                found = _of_text(self.plan, self.monitoring, rule)
            yield from below(("groups", 0, "rules", index), found)

    def service_monitor(self) -> Routes:
        """There is one where Prometheus selects by labels, on other platforms than OpenShift."""
        namespace = operator_namespace(self.plan.cluster)
        yield (), chosen(self.plan.cluster.at / "platform")
        yield ("metadata", "namespace"), namespace
        yield ("spec", "namespaceSelector", "matchNames", 0), namespace
        yield from self._labels()

    def dashboard(self) -> Routes:
        cluster, dashboards = self.plan.cluster, self.monitoring.dashboards
        platform = chosen(cluster.at / "platform")
        yield ("metadata", "name"), named(cluster)
        yield ("metadata", "annotations", "grafana_folder"), copied(dashboards.at / "folder")
        if dashboards.spec.namespace:
            yield ("metadata", "namespace"), copied(dashboards.at / "namespace")
        elif cluster.spec.platform is Platform.OPENSHIFT:
            yield ("metadata", "namespace"), platform
        else:
            yield ("metadata", "namespace"), _namespace(self.plan, self.monitoring)
        for key in dashboards.labels:
            is_usual = dashboards.spec.labels is None
            yield ("metadata", "labels", key), platform if is_usual else copied(dashboards.at / "labels" / key)
        yield from below(("data", f"gpuplan-{cluster.name}.json"), self._board())

    def _board(self) -> Routes:
        """Which of the two forms it has follows from the labels."""
        dashboards = self.monitoring.dashboards
        if dashboards.spec.labels is None:
            yield (), chosen(self.plan.cluster.at / "platform")
        elif is_for_console(dashboards):
            keys = (key for key in dashboards.labels if key.startswith("console.openshift.io/"))
            yield (), chosen(*(dashboards.at / "labels" / key for key in keys))
        yield ("title",), named(self.plan.cluster)
        if not is_for_console(dashboards):
            yield ("uid",), named(self.plan.cluster)

    def _labels(self) -> Routes:
        for key in self.monitoring.spec.labels:
            yield ("metadata", "labels", key), copied(self.monitoring.at / "labels" / key)


def _namespace(plan: Plan, monitoring: Monitoring) -> Links:
    if monitoring.spec.namespace:
        return copied(monitoring.at / "namespace")
    platform = chosen(plan.cluster.at / "platform")
    is_openshift = plan.cluster.spec.platform is Platform.OPENSHIFT
    return (*platform, *operator_namespace(plan.cluster)) if is_openshift else platform


# --- By the plan -------------------------------------------------------------------------------------------------

_OF_POOLS: Final = frozenset((POOL_PLANNED_NODES, POOL_PLANNED_UNITS, POOL_MIG_CONFIG, NODE_PLANNED_UNITS))
_OF_TENANTS: Final = frozenset((NAMESPACE_TENANT, TENANT_GUARANTEED_UNITS, TENANT_LIMIT_UNITS))


def _of_pool(plan: Plan, pool: Pool, rule: Rule) -> Routes:
    record, labels = rule["record"], rule["labels"]
    before = plan.pools[: plan.pools.index(pool)]
    yield (), _counting(before)
    if record != NODE_PLANNED_UNITS:
        yield (), _counting_configs(before)
    yield ("labels", "pool"), named(pool)
    if record == POOL_PLANNED_NODES:
        yield ("expr",), copied(pool.nodes.at / "count")
    elif record == POOL_MIG_CONFIG:
        part = next(part for part in pool.parts if part.labels.get(MIG_CONFIG_LABEL) == labels["mig_config"])
        yield (), choosing(mig_config_of(part)) if not isinstance(part.sharing, Mig) else ()
        yield (), _counting((pool,))
        yield ("labels", "mig_config"), mig_config_of(part)
    else:
        yield from _of_units(pool, rule)


def _of_units(pool: Pool, rule: Rule) -> Routes:
    units = [unit for unit in pool.units if unit.name in rule["labels"]["unit"].split("/")]
    is_on_nodes = rule["record"] == NODE_PLANNED_UNITS
    if len(pool.units) > 1:
        yield (), ordered(*(link.at for unit in pool.units for link in unit_name_of(pool, unit)))
    for unit in units:
        yield ("labels", "unit"), unit_name_of(pool, unit)
        yield ("labels", "resource"), resource_of(pool, unit)
        if not is_on_nodes:
            yield ("expr",), capacity_of(pool, unit)
        for part in pool.parts if is_on_nodes else ():
            yield ("expr",), per_node_of(part, unit)
    if is_on_nodes:
        yield ("expr",), named(pool)
    if is_on_nodes and pool.rollout:
        yield ("expr",), copied(*(pool.rollout.at / "nodes" / index for index in range(len(pool.rollout.nodes))))


def _counting(pools: Iterable[Pool]) -> Links:
    """What decides how many units pools hand out, and so where the rules stand that follow theirs."""
    return ordered(*(link.at for pool in pools for part in pool.parts for link in layout_of(part)))


def _counting_configs(pools: Iterable[Pool]) -> Links:
    """What decides whether the nodes of pools are labelled for mig-manager."""
    parts = (part for pool in pools for part in pool.parts if not isinstance(part.sharing, Mig))
    return ordered(*(link.at for part in parts for link in mig_config_of(part)))


def _of_tenant(tenant: Tenant, rule: Rule) -> Routes:
    record, labels = rule["record"], rule["labels"]
    yield ("labels", "tenant"), named(tenant)
    if record == NAMESPACE_TENANT:
        yield ("labels", "namespace"), copied(namespace_of(tenant, labels["namespace"]))
        return
    quota = next(quota for quota in tenant.quotas if quota.key == (labels["pool"], labels["unit"]))
    is_limit = record == TENANT_LIMIT_UNITS and quota.spec.limit is not None
    yield ("expr",), copied(quota.at / ("limit" if is_limit else "guaranteed"))
    yield ("labels", "pool"), copied(quota.at / "pool", name_of(quota.pool))
    yield ("labels", "unit"), _unit_of(quota)
    yield ("labels", "resource"), (*chosen(quota.at / "pool", quota.at / "unit"), *_resource_of(quota.pool, quota.unit))


def _unit_of(quota: Quota) -> Links:
    if quota.spec.unit:
        return copied(quota.at / "unit")
    return (*chosen(quota.at / "pool"), *unit_name_of(quota.pool, quota.unit))


def _resource_of(pool: Pool, unit: Unit) -> Links:
    """What chooses the label `resource`: claimed devices have none."""
    return resource_of(pool, unit)


# --- What stands in `rules.yaml` ---------------------------------------------------------------------------------


def _of_text(plan: Plan, monitoring: Monitoring, rule: Rule) -> Routes:
    """A rule of the file: what is filled in, and what decides whether it is there."""
    of = _Places(plan, monitoring)
    if "record" in rule:
        row = recording_row(plan, monitoring, rule["record"])
        yield (), (*of.facts(row), *(_counting(plan.pools) if "<resources>" in row["expr"] else ()))
        yield ("expr",), of.filled(row["expr"])
        return
    rows = {row["name"]: row for row in alert_rows()}
    row = rows[rule["alert"]]
    yield (), of.facts(row)
    yield (), ordered(*(link.at for name in rows if name < row["name"] for link in of.facts(rows[name])))
    yield (), chosen(*(monitoring.at / "disabledAlerts" / index for index in range(len(monitoring.spec.disabled_alerts))))
    yield ("expr",), of.filled(row["expr"])
    yield ("annotations", "summary"), of.filled(row["summary"])
    yield ("annotations", "description"), of.filled(row["meaning"] + row["action"])
    for key in monitoring.spec.alert_labels:
        yield ("labels", key), copied(monitoring.at / "alertLabels" / key)
