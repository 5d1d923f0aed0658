"""Routes of the objects of monitoring, rule by rule."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.backends.monitoring.costs import GROUP, routes
from gpuplan.compiler.backends.monitoring.rules import (
    NAMESPACE_TENANT,
    NODE_PLANNED_UNITS,
    POOL_COUNTED,
    POOL_MIG_CONFIG,
    POOL_PLANNED_NODES,
    POOL_PLANNED_UNITS,
    QUEUE_TENANT,
    TENANT_GUARANTEED_UNITS,
    TENANT_LIMIT_UNITS,
    TENANT_QUEUES,
    Group,
    Rule,
    rows_before,
    texts,
)
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog.charts import find_scheduler_chart
from gpuplan.compiler.manifests.provenance import Links, Routes, below, choosing, chosen, copied, ordering
from gpuplan.compiler.manifests.templates import Row, places_in
from gpuplan.compiler.planning import sources
from gpuplan.compiler.planning.apis import install_of
from gpuplan.compiler.planning.gpu_operator import matches_boards
from gpuplan.compiler.planning.plan import MIG_CONFIG_LABEL, Mig, Monitoring, Plan, Pool, Tenant, with_places


class Traces(NamedTuple):
    """Routes of the objects of one cluster."""

    plan: Plan
    monitoring: Monitoring

    def rule_object(self, group: Group) -> Routes:
        yield (), self._is_there(group)
        yield ("metadata", "namespace"), sources.monitoring_namespace(self.plan.cluster)
        yield from self._labels()
        yield from below(("spec",), self.rule_file(group))

    def _is_there(self, group: Group) -> Links:
        """Return what decides that a group is there; other groups have rules whatever the policies say."""
        return sources.scheduler_of(self.plan) if group.name.startswith(TENANT_QUEUES) else ()

    def rule_file(self, group: Group) -> Routes:
        yield (), self._is_there(group)
        pools = {pool.name: pool for pool in self.plan.pools}
        tenants = {tenant.name: tenant for tenant in self.plan.tenants}
        for index, rule in enumerate(group.rules):
            record, labels = rule.get("record"), rule.get("labels", {})
            if group.name.startswith(GROUP):
                found = routes(self.plan, rule)
            elif record in _OF_TENANTS:
                found = _of_tenant(self.plan, tenants[labels["tenant"]], rule)
            elif record in _OF_POOLS:
                found = _of_pool(self.plan, pools[labels["pool"]], rule)
            else:
                found = _of_text(_Texts(self.plan, self.monitoring), rule)
            yield from below(("groups", 0, "rules", index), found)

    def queue_metrics(self) -> Routes:
        """Yield the routes of a monitor: of Kueue if Prometheus selects by labels, and of KAI-Scheduler."""
        yield (), (*chosen(self.plan.cluster.at / "platform"), *sources.scheduler_of(self.plan))
        yield ("metadata", "namespace"), sources.monitoring_namespace(self.plan.cluster)
        yield from self._labels()

    def service_monitor(self) -> Routes:
        """Yield the routes of a monitor.

        It is there on other platforms than OpenShift if Prometheus selects by labels.
        """
        namespace = sources.operator_namespace(self.plan.cluster)
        yield (), chosen(self.plan.cluster.at / "platform")
        yield ("metadata", "namespace"), namespace
        yield ("spec", "namespaceSelector", "matchNames", 0), namespace
        yield from self._labels()

    def _labels(self) -> Routes:
        for key in self.monitoring.spec.labels:
            yield ("metadata", "labels", key), copied(self.monitoring.at / "labels" / key)


# --- By the plan -------------------------------------------------------------------------------------------------

_OF_POOLS: Final = frozenset(
    (POOL_PLANNED_NODES, POOL_PLANNED_UNITS, POOL_MIG_CONFIG, NODE_PLANNED_UNITS, POOL_COUNTED)
)
_OF_TENANTS: Final = frozenset((NAMESPACE_TENANT, TENANT_GUARANTEED_UNITS, TENANT_LIMIT_UNITS, QUEUE_TENANT))


def _of_pool(plan: Plan, pool: Pool, rule: Rule) -> Routes:
    record = rule["record"]
    yield (), sources.by_name(plan.pools)
    if record != NODE_PLANNED_UNITS:
        before = plan.pools[: plan.pools.index(pool)]
        yield (), ordering(link for other in before for link in _labelled(other))
    yield ("labels", "pool"), sources.named(pool)
    if record == POOL_PLANNED_NODES:
        yield ("expr",), copied(pool.nodes.at / "count")
    elif record == POOL_MIG_CONFIG:
        yield (), _labelled(pool)
        config = rule["labels"]["mig_config"]
        part = next(part for part in pool.parts if part.labels.get(MIG_CONFIG_LABEL) == config)
        yield ("labels", "mig_config"), sources.mig_config_of(part)
    elif record == POOL_COUNTED:
        yield (), (*sources.scheduler_of(plan), *ordering(link for other in plan.pools for link in _labelled(other)))
        for unit in (unit for unit in pool.units if unit.name in rule["labels"]["unit"].split("/")):
            yield ("labels",), (*sources.unit_name_of(pool, unit), *sources.resource_of(pool, unit))
    else:
        yield from _of_units(pool, rule)


def _labelled(pool: Pool) -> Links:
    """Return what decides whether the nodes of a pool are labelled for mig-manager."""
    return choosing(
        link for part in pool.parts if not isinstance(part.sharing, Mig) for link in sources.mig_config_of(part)
    )


def _of_units(pool: Pool, rule: Rule) -> Routes:
    is_on_nodes = rule["record"] == NODE_PLANNED_UNITS
    for route in (("expr",), ("labels", "unit"), ("labels", "resource")) if len(pool.units) > 1 else ():
        yield route, ordering(link for unit in pool.units for link in sources.unit_name_of(pool, unit))
    for unit in pool.units:
        if unit.name not in rule["labels"]["unit"].split("/"):
            continue
        yield ("labels", "unit"), sources.unit_name_of(pool, unit)
        yield ("labels", "resource"), sources.resource_of(pool, unit)
        for links in (
            (sources.per_node_of(part, unit) for part in pool.parts)
            if is_on_nodes
            else (sources.capacity_of(pool, unit),)
        ):
            yield ("expr",), links
    if is_on_nodes:
        moved = [pool.rollout.at / "nodes" / index for index in range(len(pool.rollout.nodes))] if pool.rollout else []
        yield ("expr",), (*sources.named(pool), *copied(*moved))


def _of_tenant(plan: Plan, tenant: Tenant, rule: Rule) -> Routes:
    record, labels = rule["record"], rule["labels"]
    yield (), sources.by_name(plan.tenants)
    yield ("labels", "tenant"), sources.named(tenant)
    if record == NAMESPACE_TENANT:
        yield ("labels", "namespace"), copied(sources.namespace_of(tenant, labels["namespace"]))
        return
    if record == QUEUE_TENANT:
        pools = [pool for pool in plan.pools if pool.name == labels.get("pool")]
        yield (), (*sources.scheduler_of(plan), *(sources.by_name(plan.pools) if pools else ()))
        yield (
            ("labels", "queue"),
            sources.queue_by_pool_of(tenant, *pools) if pools else sources.cluster_queue_of(tenant),
        )
        yield ("labels", "pool"), sources.named(*pools)
        return
    quota = next(quota for quota in tenant.quotas if quota.key == (labels["pool"], labels["unit"]))
    is_limit = record == TENANT_LIMIT_UNITS and quota.spec.limit is not None
    yield ("expr",), copied(quota.at / ("limit" if is_limit else "guaranteed"))
    yield ("labels", "pool"), copied(quota.at / "pool")
    is_stated = bool(quota.spec.unit)
    follows = (*chosen(quota.at / "pool"), *sources.unit_name_of(quota.pool, quota.unit))
    yield ("labels", "unit"), copied(quota.at / "unit") if is_stated else follows
    yield ("labels", "resource"), sources.asked_by(plan, quota)


# --- What stands in `rules.yaml` ---------------------------------------------------------------------------------


def _of_text(of: _Texts, rule: Rule) -> Routes:
    """Yield the routes of a rule of the file: what is filled in, and what decides whether it is there."""
    rows = texts()
    if "record" in rule:
        yield (), ordering(dict.fromkeys(link for row in rows_before(rule["record"]) for link in of.facts(row)))
        for row in rows[rule["record"]]:
            yield (), of.facts(row)
            yield ("expr",), of.filled(row["expr"])
        return
    name, spec, at = rule["alert"], of.monitoring.spec, of.monitoring.at
    yield (), chosen(*(at / "disabledAlerts" / i for i in range(len(spec.disabled_alerts))))
    before = (row for named_alike in rows.values() for row in named_alike if row.get("name", name) < name)
    yield (), ordering(link for row in before for link in of.facts(row))
    yield ("annotations", "runbook_url"), copied(at / "runbookUrl")
    for row in rows[name]:
        yield (), of.facts(row)
        yield ("expr",), of.filled(row["expr"])
        for text in ("summary", "meaning", "action"):
            yield ("annotations", "summary" if text == "summary" else "description"), of.filled(row[text])
    for key in spec.alert_labels:
        yield ("labels", key), copied(at / "alertLabels" / key)


class _Texts(NamedTuple):
    """Routes of the facts and the values of the file's rules; their names are those of `rules.py`."""

    plan: Plan
    monitoring: Monitoring

    def facts(self, row: Row) -> Links:
        """Return what decides whether a rule is there.

        `argocd`, `pools` and `namespaces` hold by what no value says.
        """
        return tuple(link for key in ("if", "unless") for link in self._fact(row.get(key)))

    def _fact(self, fact: str | None) -> Links:
        match fact:
            case "claims" | "units":
                return sources.claims_of(self.plan)
            case "asking-pods" | "namespaces" | "pools":
                return ()
            case "claims-of-kueue" | "units-beside-kueue" | "units-of-kueue" | "units-of-pods":
                return (*sources.scheduler_of(self.plan), *sources.release_of(self.plan), *sources.claims_of(self.plan))
            case "fractions-of-kai" | "kueue" | "pods-that-wait" | "queue-metrics":
                return sources.scheduler_of(self.plan)
            case "exported-labels" | "honored-labels":
                return (*self._honors(), *sources.claims_of(self.plan))
            case "health" | "health-status" | "recovery-action":
                return sources.exporter_of(self.plan)
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
                return copied(cluster.argocd.at / "project") if cluster.argocd.spec.project else sources.named(cluster)
            case "asking_pods":
                resources = (
                    link for pool in plan.pools for unit in pool.units for link in sources.resource_of(pool, unit)
                )
                return (*resources, *sources.scheduler_of(plan), *sources.claims_of(plan))
            case "fraction_pools":
                divided = [pool for pool in plan.pools if any(unit.resource is None for unit in pool.units)]
                return (*sources.named(*divided), *chosen(*(pool.at / "sharing" for pool in plan.pools)))
            case "flavors_begin" | "flavors_end":
                kept = [pool for pool in plan.pools if pool.spec.names.resource_flavor]
                return (*sources.named(*kept), *(link for pool in kept for link in sources.flavor_of(pool)))
            case "queue_metric" | "scheduler" | "scheduler_namespace":
                return sources.scheduler_of(plan)
            case "has_workload":
                namespace = sources.operator_namespace(cluster) if self.monitoring.spec.honor_labels else ()
                return (*self._honors(), *namespace, *sources.scheduler_of(plan))
            case "namespace_label" | "pod_label":
                return self._honors()
            case "partitioned_pools":
                partitioned = [pool for pool in plan.pools if MIG_CONFIG_LABEL in pool.labels]
                return (*sources.named(*partitioned), *(link for pool in plan.pools for link in _labelled(pool)))
            case "resources" | "mig_resources":
                return tuple(
                    link for pool in plan.pools for unit in pool.units for link in sources.resource_of(pool, unit)
                )
            case "start_kube_state_metrics":
                return chosen(cluster.at / "platform")
            case _:
                return self._of_hardware(name)

    def _of_hardware(self, name: str) -> Links:
        """Return the places of what alerts on hardware are filled in with."""
        plan = self.plan
        match name:
            case "and_pod":
                operator = self.plan.cluster.gpu_operator.at
                own = operator / "values" / "dcgmExporter"
                return (
                    *self._honors(),
                    *sources.shared_pods_of(plan),
                    *chosen(own / "hostPID", own / "enablePodUID", own / "env", operator / "install"),
                )
            case "clock_reasons":
                return sources.exporter_of(self.plan)
            case "foreign_boards":
                models = {pool.gpu.id: pool.gpu for pool in plan.pools if pool.gpu.written_at is not None}
                products = (link for gpu in models.values() for link in sources.products_of(gpu))
                found = (*sources.named(*plan.pools), *chosen(*(pool.at / "gpu" for pool in plan.pools)), *products)
                # Names of nodes may stand for the label of the pool.
                by_board = [each.nodes for each in plan.pools if matches_boards(plan.cluster, each)]
                patterns = [nodes.at / "namePattern" for nodes in by_board]
                names = [at for nodes in by_board for at, _ in with_places(nodes.at / "names", nodes.names)]
                return (*found, *copied(*patterns, *names), *self._matches_boards())
            case "foreign_effect":
                return (*self._matches_boards(), *chosen(plan.cluster.at / "nodeLabels"))
            case "planned_gpus":
                return (*sources.named(*plan.pools), *copied(*(pool.nodes.at / "gpusPerNode" for pool in plan.pools)))
            case "xid_of_instances":
                divided = [pool for pool in plan.pools if any(isinstance(part.sharing, Mig) for part in pool.parts)]
                only = chosen(divided[0].at / "sharing") if len(divided) == 1 else ()
                return (*sources.exporter_of(self.plan), *sources.claims_of(plan), *only)
            case _:
                return ()

    def _matches_boards(self) -> Links:
        own = (pool.nodes.at / "matchBoards" for pool in self.plan.pools)
        return chosen(self.plan.cluster.at / "matchBoards", *own)

    def _applications(self) -> Links:
        """Return the names of all Applications: those of workloads' namespaces follow from the workloads."""
        plan = self.plan
        namespaces = (sources.namespace_of(tenant, name) for tenant in plan.tenants for name in tenant.spec.namespaces)
        # The scheduler may have an Application of its own.
        installed = install_of(plan) if find_scheduler_chart(plan.cluster.scheduler.kind.value) else ()
        names = (
            *sources.named(plan.cluster, *plan.pools),
            *copied(*namespaces),
            *sources.scheduler_of(plan),
            *installed,
        )
        places = (workload.at / field for workload in plan.workloads for field in ("tenant", "namespace"))
        return (*names, *chosen(*places))

    def _honors(self) -> Links:
        return chosen(self.monitoring.at / "honorLabels")
