"""Groups of Prometheus rules: what the plan says, what is there, how busy it is, and alerts.

Those that hold the plan's own numbers are made here, those that are the same for all plans are in `rules.yaml`. It says
of its recorded series what labels they have, and what those mean; of those that are made here, it is said here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.catalog.exporters import ExporterTrait
from gpuplan.compiler.catalog.operators import parse_version
from gpuplan.compiler.manifests.bodies import given
from gpuplan.compiler.manifests.templates import Row, filled, read_rows, rows_for
from gpuplan.compiler.planning.alerts import AlertName
from gpuplan.compiler.planning.apis import find_chart
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, MIG_RESOURCES, MIG_STATE_LABEL
from gpuplan.compiler.planning.dra import uses_claims
from gpuplan.compiler.planning.gpu_operator import (
    collects_health,
    matches_boards,
    names_every_pod,
    plan_exporter_traits,
)
from gpuplan.compiler.planning.kai import queues
from gpuplan.compiler.planning.kueue import cluster_queue, counted_resource, counted_units, flavor_name, has_queue
from gpuplan.compiler.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    POOL_LABEL,
    Amount,
    Cluster,
    Mig,
    Monitoring,
    Plan,
    Pool,
    Stage,
    Tenant,
)
from gpuplan.compiler.planning.sync_names import sync_name
from gpuplan.compiler.policy.models import Allocation, MigStrategy, Platform

# --- Recorded series ---------------------------------------------------------------------------------------------

NODE_POOL: Final = "node:gpuplan_pool:info"
"""{node, pool}: 1 for each node that carries the label of a pool."""
NAMESPACE_TENANT: Final = "namespace:gpuplan_tenant:info"
"""{namespace, tenant}: 1 for each namespace of a tenant."""
QUEUE_TENANT: Final = "queue:gpuplan_tenant:info"
"""{queue, tenant, pool}: 1 for each queue that a tenant's own work waits in; those of Kueue are in no pool."""
POOL_COUNTED: Final = "pool:gpuplan_counted:info"
"""{pool, unit, resource, counted}: 1 for what Kueue counts of each pool, `counted` being its name for the resource."""
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
    """Return what a pool's nodes publish, in the order of its units.

    Fractions are cut from GPUs that the nodes publish whole, and counted in GPUs. Claimed devices are not among a
    node's resources, and kube-state-metrics does not count them.
    """
    resources: dict[str, Published] = {}
    for unit in pool.units if pool.spec.allocation is Allocation.DEVICE_PLUGIN else ():
        resource = unit.resource or GPU_RESOURCE
        units, per_node, capacity = resources[resource][1:] if resource in resources else ((), 0, 0)
        resources[resource] = Published(
            resource, (*units, unit.name), per_node + unit.per_node, capacity + unit.capacity
        )
    return tuple(resources.values())


def sanitized(name: str) -> str:
    """Return a resource's name as kube-state-metrics writes it (`SanitizeLabelName` in internal/store/utils.go).

    That is so for nodes and pods; the resources of `kube_resourcequota` keep their names (internal/store/
    resourcequota.go).
    """
    return re.sub(r"[^a-zA-Z0-9_]", "_", name)


# --- Labels of nodes ---------------------------------------------------------------------------------------------

NODE_LABELS: Final = (POOL_LABEL, MIG_CONFIG_LABEL, MIG_STATE_LABEL, DEVICE_PLUGIN_CONFIG_LABEL)
"""The node labels that kube-state-metrics has to show: `--metric-labels-allowlist=nodes=[...]`."""


def node_label(key: str) -> str:
    """Return a label of `kube_node_labels`: sanitised, and in snake case (`labelName` in internal/store/utils.go)."""
    return "label_" + re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", sanitized(key)).lower()


# --- Labels of workloads -----------------------------------------------------------------------------------------


class WorkloadLabels(NamedTuple):
    """The labels by which the DCGM exporter's series name the pod that has a device.

    ``is_set`` are matchers that leave series without a workload out.
    """

    namespace: str
    pod: str
    is_set: str


def workload_labels(cluster: Cluster, monitoring: Monitoring, reservations: str) -> WorkloadLabels:
    """Return the labels. Prometheus puts `exported_` before those that the target has too, unless it honours the
        series'.

    If it honours them, a device without a workload has the labels of its target: the exporter's own namespace and pod.
        ``reservations`` is the namespace of pods that hold GPUs for those that get fractions of them.
    """
    if monitoring.spec.honor_labels:
        is_set = matchers(pod__ne="", **_other_than("namespace", cluster.gpu_operator.namespace, reservations))
        return WorkloadLabels("namespace", "pod", is_set)
    is_set = matchers(exported_pod__ne="", **_other_than("exported_namespace", reservations))
    return WorkloadLabels("exported_namespace", "exported_pod", is_set)


def _other_than(label: str, *values: str) -> dict[str, str]:
    """Return matchers that leave these values out, but for empty ones."""
    match list(filter(None, values)):
        case []:
            return {}
        case [value]:
            return {f"{label}__ne": value}
        case several:
            return {f"{label}__nre": one_of(several)}


# --- Text --------------------------------------------------------------------------------------------------------

_OPERATORS: Final = {"": "=", "ne": "!=", "re": "=~", "nre": "!~"}


def matchers(**values: str) -> str:
    """Return label matchers without braces: ``matchers(pool="a", profile__ne="")`` is `pool="a",profile!=""`.

    A suffix names the operator: `__ne` is `!=`, `__re` is `=~`, `__nre` is `!~`.
    """
    parts = []
    for key, value in values.items():
        label, _, operator = key.partition("__")
        parts.append(f"{label}{_OPERATORS[operator]}{quoted(value)}")
    return ",".join(parts)


def series(metric: str, **values: str) -> str:
    """Return a selector, such as `pool:gpuplan_planned_units:sum{pool="a"}`."""
    return f"{metric}{{{matchers(**values)}}}" if values else metric


def quoted(text: str) -> str:
    """Return a string of PromQL."""
    return json.dumps(text, ensure_ascii=False)


def one_of(values: Iterable[str]) -> str:
    """Return a regular expression for these values and no others; Prometheus ties it to both ends."""
    return "|".join(re.sub(r"[!-,./:-@\[-^`{-~]", r"\\\g<0>", value) for value in values)


# --- Groups ------------------------------------------------------------------------------------------------------

_FILE: Final = Path(__file__).with_name("rules.yaml")
_RUNBOOK: Final = "docs/how-to/monitor-pools.md"


Rule = dict[str, Any]
"""A rule as Prometheus reads it."""


class Group(NamedTuple):
    """Rules that are evaluated in their order, each seeing the results of those before it."""

    name: str
    rules: tuple[Rule, ...]


def recording(record: str, expression: str, labels: Mapping[str, str] | None = None) -> Rule:
    """Return a recording rule; the labels are added to every series of the result."""
    return given(record=record, expr=expression, labels=labels)


# --- By the plan -------------------------------------------------------------------------------------------------

_MOST_RULES: Final = 1000
"""The rules that one object has at most: it stays well below the 1 MiB of a Prometheus' ConfigMap of rules."""


TENANT_QUEUES: Final = "gpuplan-tenant-queues"
"""The group that is there only with a scheduler that has queues."""


def pool_group(plan: Plan) -> Group:
    rules: list[Rule] = []
    for pool in plan.pools:
        here = {"pool": pool.name}
        rules.append(constant(POOL_PLANNED_NODES, pool.nodes.count, **here))
        rules += [constant(POOL_PLANNED_UNITS, each.capacity, **here, **each.labels) for each in published(pool)]
        configs = dict.fromkeys(part.labels.get(MIG_CONFIG_LABEL) for part in pool.parts if part.nodes.count)
        rules += [constant(POOL_MIG_CONFIG, 1, mig_config=config, **here) for config in configs if config is not None]
    for pool in plan.pools if has_cluster_queues(plan) else ():
        for unit in counted_units(pool):
            counted = counted_resource(pool, unit) or ""
            resource = _published_as(pool, unit.name)
            labels = resource.labels if resource else {"resource": sanitized(counted), "unit": unit.name}
            if resource is None or unit.name == resource.units[0]:
                rules.append(constant(POOL_COUNTED, 1, pool=pool.name, counted=counted, **labels))
    return Group("gpuplan-planned", tuple(rules))


def tenant_groups(plan: Plan) -> Iterator[Group]:
    """Yield as many groups as keep each object small: who is who and has what, and whose a queue is."""
    yield from divided("gpuplan-tenants", [rule for tenant in plan.tenants for rule in _tenant_rules(tenant)])
    having = filter(has_queue, plan.tenants) if plan.scheduler.has_queues_for_all_pools else ()
    owners = [constant(QUEUE_TENANT, 1, queue=cluster_queue(tenant), tenant=tenant.name) for tenant in having]
    for queue in sorted(queues(plan), key=lambda queue: (queue.tenant.name, queue.pool.name)):
        if queue.takes_work:  # one of KAI-Scheduler that others are part of has all that these have, and is nobody's
            tenant, pool = queue.tenant.name, queue.pool.name
            owners.append(constant(QUEUE_TENANT, 1, queue=queue.name, tenant=tenant, pool=pool))
    yield from divided(TENANT_QUEUES, owners)


def divided(name: str, rules: Sequence[Rule]) -> Iterator[Group]:
    """Yield groups that keep each object small, all but the first with a number behind the name."""
    for number, start in enumerate(range(0, len(rules), _MOST_RULES), start=1):
        yield Group(f"{name}{f'-{number}' if number > 1 else ''}", tuple(rules[start : start + _MOST_RULES]))


def _published_as(pool: Pool, unit: str) -> Published | None:
    return next((resource for resource in published(pool) if unit in resource.units), None)


def has_cluster_queues(plan: Plan) -> bool:
    """Whether Kueue has something to say of tenants."""
    return plan.scheduler.has_queues_for_all_pools and any(map(has_queue, plan.tenants))


def _tenant_rules(tenant: Tenant) -> Iterator[Rule]:
    for namespace in tenant.spec.namespaces:
        yield constant(NAMESPACE_TENANT, 1, namespace=namespace, tenant=tenant.name)
    for quota in tenant.quotas:
        # A grant is on a unit, also if several are published as one.
        resource = _published_as(quota.pool, quota.unit.name)
        labels = (resource.labels if resource else {}) | {"unit": quota.unit.name}
        labels |= {"tenant": tenant.name, "pool": quota.pool.name}
        yield constant(TENANT_GUARANTEED_UNITS, quota.guaranteed, **labels)
        if quota.limit is not None:
            yield constant(TENANT_LIMIT_UNITS, quota.limit, **labels)


def constant(record: str, amount: Amount | str, **labels: str) -> Rule:
    """Return a series of one number, which may be text already."""
    number = f"{amount:f}" if isinstance(amount, Decimal) else amount
    return recording(record, f"vector({number})", dict(sorted(labels.items())))


# --- As it is ----------------------------------------------------------------------------------------------------


def observed_groups(plan: Plan, monitoring: Monitoring) -> Iterator[Group]:
    """Yield the groups, in the order in which they need each other; an alert that the policy disables is left out."""
    texts = _Texts(plan, monitoring)
    planned = [rule for pool in plan.pools for rule in _node_planned(pool)]
    has_units = any(published(pool) for pool in plan.pools)
    units = texts.recordings("units") if has_units else ()
    yield Group("gpuplan-pools", (*texts.recordings("nodes"), *planned, *units))
    yield Group("gpuplan-queues", tuple(texts.recordings("queues")))
    yield Group("gpuplan-utilization", tuple(texts.recordings("utilization")))
    alerts = sorted(texts.alerts(monitoring), key=lambda alert: str(alert["alert"]))
    yield Group("gpuplan-alerts", tuple(alerts))


def groups(plan: Plan, monitoring: Monitoring) -> Iterator[Group]:
    """Return the groups that have rules."""
    every = (pool_group(plan), *tenant_groups(plan), *observed_groups(plan, monitoring))
    return (group for group in every if group.rules)


def recorded_series(every: Iterable[Group]) -> frozenset[str]:
    """Return the names of all that groups record."""
    return frozenset(rule["record"] for group in every for rule in group.rules if "record" in rule)


def _node_planned(pool: Pool) -> Iterator[Rule]:
    """Yield what each node has to publish: those that a rollout has moved other units than all others."""
    for resource in published(pool):
        nodes = []
        for part in pool.parts:
            matching: dict[str, str] = {}
            if pool.rollout and part.nodes.count != pool.nodes.count:
                names = one_of(sorted(pool.rollout.moved.nodes.names))
                matching = {"node__re" if part is pool.rollout.moved else "node__nre": names}
            of_part = series(NODE_POOL, pool=pool.name, **matching)
            same = [each for each in published(part) if each.resource == resource.resource and part.nodes.count]
            nodes += [f"{of_part} * {each.per_node}" for each in same if each.per_node]
        if nodes:
            # The label `pool` is there already; it tells rules of two pools with one resource apart.
            labels = {"pool": pool.name, **resource.labels}
            yield recording(NODE_PLANNED_UNITS, "\nor\n".join(nodes), labels)


# --- What stands in `rules.yaml` ---------------------------------------------------------------------------------


class _Texts:
    """The file's rules that belong to one plan."""

    def __init__(self, plan: Plan, monitoring: Monitoring) -> None:
        partitioned = [pool.name for pool in plan.pools if MIG_CONFIG_LABEL in pool.labels]
        mixed = [
            part
            for part in plan.parts
            if isinstance(part.sharing, Mig) and part.sharing.spec.strategy is MigStrategy.MIXED
        ]
        resources = {each.resource for part in mixed for each in published(part)}
        # Under the strategy `single` a resource's name says nothing of the profile.
        sizes = sorted({sanitized(name) for name in resources if name.startswith(MIG_RESOURCES)})
        has_namespaces = any(tenant.spec.namespaces for tenant in plan.tenants)
        claims, has_units = uses_claims(plan), any(map(published, plan.pools))
        kueue, kai = has_cluster_queues(plan), plan.scheduler.has_queues_by_pool
        sums = kueue and sums_pending_units(plan)
        facts: dict[str, bool] = {
            "argocd": plan.cluster.argocd is not None,
            "asking-pods": has_namespaces and bool(plan.pools),
            "claims": claims,
            "claims-of-kueue": sums and claims,
            "exported-labels": has_namespaces and not claims and not monitoring.spec.honor_labels,
            "fractions-of-kai": kai and bool(_fraction_pools(plan)),
            "honored-labels": has_namespaces and not claims and monitoring.spec.honor_labels,
            "health": collects_health(plan),
            **dict.fromkeys(plan_exporter_traits(plan) if collects_health(plan) else (), True),
            "kueue": kueue,
            "namespaces": has_namespaces,
            "partitioned": bool(partitioned),
            "pods-that-wait": has_namespaces and bool(plan.pools) and not kueue,
            "pools": bool(plan.pools),
            "queue-metrics": kueue or bool(queues(plan)),
            "sizes": len(sizes) > 1,
            "units": has_units,
            "units-beside-kueue": sums and has_units,
            "units-of-kueue": sums,
            "units-of-pods": has_units and not sums,
        }
        self._facts = {fact for fact, is_so in facts.items() if is_so}
        self._values = _values(plan, monitoring) | {
            "fraction_pools": quoted(one_of(_fraction_pools(plan))),
            "mig_resources": quoted(one_of(sizes)),
            "partitioned_pools": quoted(one_of(partitioned)),
            "xid_of_instances": _xid_of_instances(plan, self._facts),
        }

    def recordings(self, group: str) -> Iterator[Rule]:
        """Yield the recording rules of a group, in the order in which they need each other."""
        for row in rows_for(self._facts, read_rows(_FILE)[group]):
            for record, metric in _records(row).items():
                yield recording(record, filled(row["expr"], {**self._values, "metric": metric}))

    def alerts(self, monitoring: Monitoring) -> Iterator[Rule]:
        """Yield the alerting rules that the policy leaves on."""
        labels = dict(sorted(monitoring.spec.alert_labels.items()))
        for row in rows_for(self._facts, read_rows(_FILE)["alerts"]):
            if (name := AlertName(row["name"])) not in monitoring.spec.disabled_alerts:
                summary, meaning, action = (filled(row[key], self._values) for key in ("summary", "meaning", "action"))
                base = monitoring.spec.runbook_url
                url = {"runbook_url": f"{base}#{name.lower()}"} if base else {}
                description = f"{meaning} {action} See {_RUNBOOK}#{name.lower()}."
                yield {
                    "alert": name.value,
                    "expr": filled(row["expr"], self._values),
                    "for": row["for"],
                    "labels": {"severity": row["severity"], **labels},
                    "annotations": {"summary": summary, "description": description, **url},
                }


@cache
def texts() -> Mapping[str, Sequence[Row]]:
    """Return the file's rules by the names of series and alerts: all ways in which there are such."""
    rows = (row for group in read_rows(_FILE).values() for row in group)
    return grouped((name, row) for row in rows for name in ([row["name"]] if "name" in row else _records(row)))


def rows_before(record: str) -> Iterator[Row]:
    """Return the rows of the same group of the file that come before all of this record."""
    group = next(rows for rows in read_rows(_FILE).values() if any(record in _records(row) for row in rows))
    return takewhile(lambda row: record not in _records(row), group)


def _records(row: Row) -> Mapping[str, str]:
    """Return what a row records, each with the metric that it is of, if there are several."""
    return row.get("records") or ({row["record"]: ""} if "record" in row else {})


def _values(plan: Plan, monitoring: Monitoring) -> dict[str, str]:
    workload = workload_labels(plan.cluster, monitoring, plan.scheduler.reservation_namespace)
    resources = {sanitized(item.resource) for pool in plan.pools for item in published(pool)}
    allowlist = f"--metric-labels-allowlist=nodes=[{','.join(NODE_LABELS)}]"
    is_told = plan.cluster.spec.platform is not Platform.OPENSHIFT
    is_new = ExporterTrait.EVENT_REASONS in plan_exporter_traits(plan)
    # Flavors that keep their names say by these which pool they are.
    kept = {flavor_name(pool): pool.name for pool in plan.pools if flavor_name(pool) != pool.name}
    renamed = (f', "pool", {quoted(pool)}, "flavor", {quoted(one_of([flavor]))})' for flavor, pool in kept.items())
    counts = sorted({pool.nodes.gpus_per_node for pool in plan.pools})
    sizes = {count: [pool for pool in plan.pools if pool.nodes.gpus_per_node == count] for count in counts}
    # Pods want GPUs by a resource, by a claim, which kube-state-metrics knows since 2.20, or by annotations, which only
    # their scheduler reads. All pods that name a scheduler of its own count, with GPUs or not: kube-state-metrics shows
    # annotations only if it is told to, and not as numbers.
    by_resource = series("kube_pod_container_resource_requests", resource__re=one_of(sorted(resources)))
    asking = [by_resource] if resources else []
    asking += ["kube_pod_resourceclaim_info"] if uses_claims(plan) else []
    if plan.scheduler.supports("fraction"):
        asking.append(series("kube_pod_scheduler", name=plan.scheduler.pod_schedulers[-1]))
    return {
        "and_pod": f", namespace, {workload.pod}" if names_every_pod(plan) else "",
        "clock_reasons": "DCGM_FI_DEV_CLOCKS_EVENT_REASONS" if is_new else "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
        "flavors_begin": "label_replace(" * len(kept),
        "flavors_end": "".join(renamed),
        "foreign_boards": _foreign_boards(plan),
        "foreign_effect": _foreign_effect(plan),
        "planned_gpus": " or ".join(f"{_of_pools(pools)} * {count}" for count, pools in sizes.items()),
        "applications": quoted(one_of(_applications(plan))),
        "asking_pods": " or ".join(asking),
        "gpu_resource": quoted(sanitized(GPU_RESOURCE)),
        "has_workload": workload.is_set,
        "mig_config_label": node_label(MIG_CONFIG_LABEL),
        "mig_state_label": node_label(MIG_STATE_LABEL),
        "namespace_label": workload.namespace,
        "pod_label": workload.pod,
        "pool_label": node_label(POOL_LABEL),
        "project": quoted(plan.cluster.argocd.project if plan.cluster.argocd else ""),
        "queue_metric": plan.scheduler.queue_series,
        "resources": quoted(one_of(sorted(resources))),
        "scheduler": plan.scheduler.title,
        "scheduler_namespace": next(iter(plan.scheduler.namespaces), ""),
        "start_kube_state_metrics": f"Start kube-state-metrics with {allowlist}. " if is_told else "",
    }


def _xid_of_instances(plan: Plan, facts: Collection[str]) -> str:
    """Return what the alert on Xids does not see of divided GPUs, and which alerts do."""
    if not any(isinstance(part.sharing, Mig) for part in plan.parts):
        return ""
    rows = rows_for(facts, read_rows(_FILE)["alerts"])
    others = [row["name"] for row in rows if row["name"] in _OF_WHOLE_GPUS]
    elsewhere = f": {joined(others)} tell of the others" if others else ""
    return f" On a GPU with MIG devices this alert sees only an Xid that names a MIG device{elsewhere}."


_OF_WHOLE_GPUS: Final = (
    AlertName.HEALTH_FAILED,
    AlertName.RECOVERY_NEEDED,
    AlertName.DEVICE_UNHEALTHY,
    AlertName.MISSING,
)
"""The alerts that tell of a GPU's end, whether it has MIG devices or not."""


_OF_DEVICES: Final = ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_SM_CLOCK")
"""Every device has one of these."""


def _foreign_boards(plan: Plan) -> str:
    """Return {node, pool, modelName}: how many boards of a node are not of the pool's model."""
    by_name = []
    for pool in plan.pools:
        if is_chosen_by_name_and_board(plan, pool):  # rules leave its nodes without its label
            nodes = one_of(sorted(pool.nodes.names)) or pool.nodes.name_pattern or ""
            foreign = _not_of(pool.gpu, node__re=nodes)
            counted = f"count by (node, modelName) (count by (node, gpu, modelName) (\n  {foreign}\n))"
            named = f"{quoted('pool')}, {quoted(pool.name)}, {quoted('')}, {quoted('')}"
            by_name.append(f"label_replace(\n{counted},\n{named})")
    labelled = [pool for pool in plan.pools if not is_chosen_by_name_and_board(plan, pool)]
    models = {pool.gpu.id: pool.gpu for pool in labelled}
    by_label = (
        f"count by (node, modelName) (count by (node, gpu, modelName) (\n  {_not_of(gpu)}\n))\n"
        f"* on (node) group_left (pool) {_of_pools(pool for pool in labelled if pool.gpu.id == gpu.id)}"
        for gpu in models.values()
    )
    return "\nor\n".join((*by_name, *by_label))


def is_chosen_by_name_and_board(plan: Plan, pool: Pool) -> bool:
    """Whether a node with a name of the pool and another board goes without the pool's label."""
    return matches_boards(plan.cluster, pool) and bool(pool.nodes.names or pool.nodes.name_pattern)


def _foreign_effect(plan: Plan) -> str:
    ways = {is_chosen_by_name_and_board(plan, pool) for pool in plan.pools}
    without_labels = "the node has none of its labels and taints, and its GPUs are in no pool"
    labelled = "layouts, memory and quotas are wrong there"
    if len(ways) > 1:
        return f"{labelled}; where rules ask for name and board, {without_labels}"
    return without_labels if True in ways else labelled


def _not_of(gpu: Gpu, **more: str) -> str:
    """Return series of devices that are not of a model.

    The driver's names of its boards differ from labels of nodes, which have dashes for blanks; old drivers write no
    `NVIDIA`.
    """
    names = (one_of([product.label.removeprefix("NVIDIA-")]) for product in gpu.products)
    boards = f"(NVIDIA[ -])?({'|'.join(name.replace('-', '[ -]') for name in names)})"
    return "\n  or ".join(series(metric, modelName__nre=boards, **more) for metric in _OF_DEVICES)


def _of_pools(pools: Iterable[Pool]) -> str:
    return series(NODE_POOL, pool__re=one_of(sorted(pool.name for pool in pools)))


def _fraction_pools(plan: Plan) -> list[str]:
    return [pool.name for pool in plan.pools if published(pool) and any(unit.resource is None for unit in pool.units)]


_SUMS_PENDING_UNITS: Final = (0, 18)
"""The release since which Kueue says what the workloads request that wait in a queue."""


def sums_pending_units(plan: Plan) -> bool:
    """Whether the cluster's Kueue has `kueue_cluster_queue_resource_pending`."""
    version = parse_version(plan.cluster.scheduler.version)
    return version is None or version[:2] >= _SUMS_PENDING_UNITS


def _applications(plan: Plan) -> list[str]:
    """Return the names of the cluster's Applications, whether there is something in each or not."""
    cluster = plan.cluster.name
    left_out = {Stage.QUEUES, Stage.NAMESPACES, *(() if find_chart(plan.cluster) else (Stage.SCHEDULER,))}
    stages = [stage for stage in Stage if stage not in left_out]
    by_pool = [Stage.PARTITIONS, *([Stage.QUEUES] if plan.scheduler.has_queues_by_pool else [])]
    pools = [f"{stage}/{pool.name}" for stage in by_pool for pool in plan.pools]
    namespaces = [f"{Stage.NAMESPACES}/{namespace}" for tenant in plan.tenants for namespace in tenant.spec.namespaces]
    workloads = sorted({f"{Stage.WORKLOADS}/{workload.namespace}" for workload in plan.workloads})
    return [sync_name(cluster, folder) for folder in (*stages, *pools, *namespaces, *workloads)]
