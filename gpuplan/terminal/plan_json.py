"""Plans as plain data: a stable contract, `plan.schema.json`, that other programs may rely on.

A part has the fields of its spec and what is resolved, by their names. Where something else was published, the table
below says so; a field that the policy language gains is published without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from enum import Enum
from fractions import Fraction as Ratio
from typing import Any, Final, get_type_hints

from pydantic import BaseModel

from gpuplan.compiler.base.credentials import hidden
from gpuplan.compiler.base.plain import value_of
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.planning import plan as parts
from gpuplan.compiler.planning.amounts import guaranteed_gpus
from gpuplan.compiler.planning.dra import certain_units, dynamic_pools
from gpuplan.compiler.planning.fallbacks import reach
from gpuplan.compiler.planning.grants import warned_namespaces
from gpuplan.compiler.planning.placement.placing import Placed
from gpuplan.compiler.planning.plan import Plan, values_of
from gpuplan.compiler.planning.prices import selected_costs
from gpuplan.compiler.planning.projects import seconds
from gpuplan.compiler.planning.selection import Selection, selection_of
from gpuplan.compiler.planning.serving import autoscaler_kind, metric_of, probe_of
from gpuplan.compiler.policy import models
from gpuplan.compiler.policy.fields import document
from gpuplan.terminal.costs import costs_as_data
from gpuplan.terminal.syncing import applied_to_nodes

FORMAT_VERSION = "1.8"
"""A minor step adds keys, and values where the schema lists them, and no more.

Null means unbounded for limits and caps, otherwise unknown or not there.
"""


def plans_as_data(plans: Iterable[Plan | Selection]) -> dict[str, Any]:
    """All clusters, or what is chosen of them; what has an order in the policy keeps it, all else is sorted by name."""
    return {"format_version": FORMAT_VERSION, "clusters": [plan_as_data(plan) for plan in plans]}


def plan_as_data(chosen: Plan | Selection) -> dict[str, Any]:
    """One cluster, or what is chosen of it."""
    shown = selection_of(chosen)
    plan = shown.plan
    totals = {(total.pool.name, total.unit.name): total for total in plan.totals}
    return {
        **as_data(plan.cluster),
        "scheduler": {**as_data(plan.cluster.scheduler), "cap": plan.cluster.cap.value},
        "pools": [_pool(plan, pool, totals) for pool in shown.pools],
        "gpus": [as_data(gpu) for gpu in shown.gpus],
        "layouts": [as_data(layout) for layout in shown.layouts],
        "priority_classes": [as_data(item) for item in shown.priority_classes],
        "tenants": [as_data(tenant) for tenant in shown.tenants],
        "warned_namespaces": [name for tenant, name in warned_namespaces(plan) if tenant in shown.tenants],
        "evictions": [
            {
                "pool": eviction.pool,
                "unit": eviction.unit,
                "mechanism": eviction.mechanism.value,
                "within_tenants": eviction.mechanism.is_within_tenants,
                "across_tenants": eviction.mechanism.is_across_tenants,
                "evictors": [party._asdict() for party in eviction.evictors],
                "victims": [party._asdict() for party in eviction.victims],
                "when": [condition.value for condition in eviction.when],
                "min_run_time": eviction.min_run_time,
            }
            for eviction in shown.evictions
        ],
        "workloads": [
            {**as_data(workload), "pools": [pool.name for pool in reach(plan, workload)]}
            for workload in shown.workloads
        ],
        "retained": [as_data(item) for item in shown.retained],
        "costs": costs_as_data(found) if (found := selected_costs(shown)) else None,
    }


_Totals = Mapping[tuple[str, str], parts.Total]


def _pool(plan: Plan, pool: parts.Pool, totals: _Totals) -> dict[str, Any]:
    """With what is promised of it, in GPUs: to a ten-thousandth of one."""
    promised = _plain(Decimal(round(guaranteed_gpus(plan, pool) * 10_000)) / 10_000, _CONTRACT)
    applied = applied_to_nodes(plan, pool)
    return {**as_data(pool), "guaranteed_gpus": promised, "applied": applied, "units": [*_units(plan, pool, totals)]}


def _units(plan: Plan, pool: parts.Pool, totals: _Totals) -> Iterator[dict[str, Any]]:
    """Yield each unit of a pool with the number that is promised; for units made on demand, with the certain number."""
    certain = {
        name: found
        for part in dynamic_pools(plan)
        if part.name == pool.name
        for name, found in certain_units(plan, part).items()
    }
    for unit in pool.units:
        total = totals.get((pool.name, unit.name))
        guaranteed, limit = (total.guaranteed, total.limit) if total else (0, 0)
        promised = {"guaranteed": guaranteed, "limit": limit, "free": unit.capacity - guaranteed}
        sure = {"certain": certain[unit.name]} if unit.name in certain else {}
        yield {**as_data(unit), **{name: _plain(amount, _CONTRACT) for name, amount in promised.items()}, **sure}


# --- Any part ----------------------------------------------------------------------------------------------------


def as_data(part: object, contract: Mapping[type, Published] | None = None) -> dict[str, Any]:
    """A part by the names of its fields, and what a contract says of its type and of those in it."""
    known = _CONTRACT if contract is None else contract
    published = known.get(type(part), _AS_IT_IS)
    fields = ((name, value) for name, value in values_of(part) if name not in published.left_out)
    own = {published.renamed.get(name, name): _plain(value, known) for name, value in fields}
    return {**own, **{name: _plain(value, known) for name, value in published.more(part).items()}}


def _plain(value: Any, contract: Mapping[type, Published]) -> Any:  # noqa: ANN401 - anything that a plan holds, as JSON
    """A value as plain data. What has a name is that name: it is told of where all of its kind are."""
    match value:
        case parts.Pool() | parts.Unit() | parts.Layout() | parts.Tenant() | parts.PriorityClass():
            return value.name
        case Gpu():
            return value.id
        case Enum():
            return value.value
        case Ratio():
            return str(value)
        case float() | Decimal():
            return int(value) if value == int(value) else float(value)
        case Mapping():
            return {key: _plain(item, contract) for key, item in value.items()}
        case list():
            return [_plain(item, contract) for item in value]
        case tuple() if not hasattr(value, "_fields"):
            return [_plain(item, contract) for item in value]
        case None | bool() | int() | str():
            return value
        case _:
            return as_data(value, contract)


# --- What is published otherwise ---------------------------------------------------------------------------------


class Published(NamedTuple):
    """The difference between a part and the contract: fields ``left_out`` or ``renamed``, and ``more`` of them."""

    left_out: tuple[str, ...] = ()
    renamed: Mapping[str, str] = {}
    more: Callable[[Any], Mapping[str, object]] = lambda _: {}


_AS_IT_IS: Final = Published()


def _driver(operator: parts.GpuOperator) -> Mapping[str, object]:
    return {"driver_enabled": operator.spec.driver.enabled, "driver_version": operator.spec.driver.version or None}


def _of_gpu(described: parts.OwnGpu) -> Mapping[str, object]:
    return {"mig_profiles": [profile.name for profile in described.gpu.profiles]}


def _shared(pool: parts.Pool) -> Mapping[str, object]:
    """``kind`` and what belongs to it, named as in the policy."""
    sharing = {"kind": _SHARING[type(pool.sharing)], **as_data(pool.sharing)}
    return {"sharing": sharing, "labels": dict(sorted(pool.labels.items()))}


_SHARING: Final[Mapping[type, str]] = {
    parts.Exclusive: "exclusive",
    parts.TimeSlicing: "timeSlicing",
    parts.Mps: "mps",
    parts.Mig: "mig",
    parts.DynamicMig: "dynamicMig",
    parts.Fraction: "fraction",
}


def _placements(entry: parts.LayoutEntry) -> Mapping[str, object]:
    if not isinstance(entry.placed, Placed):
        return {"placements": None, "free_memory_slices": None}
    found = ((instance.profile.name, instance.placement) for instance in entry.placed.instances)
    placements = [{"profile": name, "start": at.start, "size": at.size} for name, at in found]
    free = entry.placed.gpu.memory_slices - entry.placed.memory_slices
    return {"placements": placements, "free_memory_slices": free}


def _counted(quota: parts.Quota) -> Mapping[str, object]:
    caps = dict(sorted(quota.caps.items()))
    return {"resource": quota.unit.resource, "device_class": quota.unit.device_class, "caps": caps}


def _work(workload: parts.Workload) -> Mapping[str, object]:
    least = workload.amount_per_pod
    return {
        "kind": workload.kind,
        **as_data(workload.work),
        "most_pods": workload.most_pods,
        "units_per_pod": least,
        "units_per_pod_at_most": workload.fraction.most if workload.fraction else least,
        "gpu_memory_mib": workload.fraction.memory_mib if workload.fraction else None,
        "cpu": workload.spec.cpu or None,
        "memory": workload.spec.memory or None,
    }


def _served(work: models.Inference) -> Mapping[str, object]:
    made_by = "LeaderWorkerSet" if work.pods_per_replica > 1 else work.kind.value
    return {"made_by": made_by, "port": None if work.port == "none" else work.port, "probe": probe_of(work)}


def _without_credentials(value: object) -> object:
    """The same with stars for what looks like a credential: whoever reads the plan need not be who may read these."""
    match value:
        case str():
            return hidden(value)
        case Mapping():
            return {key: _without_credentials(item) for key, item in value.items()}
        case list() | tuple():
            return [_without_credentials(item) for item in value]
        case _:
            return value


def _volume(model: models.ModelVolume) -> Mapping[str, object]:
    image = model.download.image if model.download else None
    return {"storage_class": model.storage_class or None, "download_image": image}


def _defined(document: parts.Retained) -> Mapping[str, object]:
    """The field of the policy that holds it, and what is still known by it; objects may have any shape."""
    match document.what:
        case parts.RetainedLayout() as layout:
            return {"kind": "migLayout", "defines": layout.spec.config_name}
        case parts.RetainedDevicePluginConfig() as config:
            return {"kind": "devicePluginConfig", "defines": config.spec.key}
        case parts.RetainedNodes() as kept:
            return {"kind": "nodes", "defines": kept.spec.pool}
        case retained:
            manifest = retained.spec.manifest
            names = manifest.get("kind"), value_of(manifest, ("metadata", "name"))
            return {"kind": "object", "defines": " ".join(str(name) for name in names if name)}


_CONTRACT: Final[Mapping[type, Published]] = {
    parts.Cluster: Published(left_out=("argocd", "flux", "monitoring", "bases")),
    parts.GpuOperator: Published(
        left_out=("driver", "reboot_on_mig_change", "nfd", "chart_repo_url", "values"), more=_driver
    ),
    parts.Scheduler: Published(left_out=("version", "runai")),
    parts.Pool: Published(
        left_out=("node_labels", "sharing", "units", "keys"),
        renamed={"memory_per_unit": "memory_per_unit_mib"},
        more=lambda pool: {"gpu_count": pool.gpu_count, **_shared(pool)},
    ),
    parts.Rollout: Published(
        left_out=("left", "moved"), more=lambda rollout: {"nodes": rollout.moved.nodes.names, **_shared(rollout.moved)}
    ),
    parts.Nodes: Published(left_out=("moved",)),
    parts.Mig: Published(left_out=("instances", "devices"), more=lambda mig: {"config_name": mig.layout.config_name}),
    models.Guard: Published(left_out=("timeout",), more=lambda guard: {"timeout_seconds": seconds(guard.timeout)}),
    parts.OwnGpu: Published(left_out=("mig", "gpu", "faults"), more=_of_gpu),
    parts.Layout: Published(left_out=("keeps_name",), renamed={"is_inline": "inline"}),
    parts.LayoutEntry: Published(left_out=("placed",), more=_placements),
    parts.Tenant: Published(
        left_out=("allow", "surplus_weight"), more=lambda tenant: dict(values_of(tenant.spec.allow))
    ),
    parts.Quota: Published(left_out=("split", "labelled_cap"), more=_counted),
    parts.Workload: Published(
        left_out=("command", "args", "env", "config", *models.KINDS_OF_WORK, "count", "fraction"), more=_work
    ),
    models.Training: Published(renamed={"kind": "made_by"}),
    models.Inference: Published(left_out=("kind",), more=_served),
    models.Autoscaling: Published(
        more=lambda scaling: {"metric": metric_of(scaling) or None, "kind": autoscaler_kind(scaling)}
    ),
    models.PodPatch: Published(
        more=lambda patch: {"metadata": _without_credentials(patch.metadata), "spec": _without_credentials(patch.spec)}
    ),
    models.Probe: Published(more=lambda probe: {"command": _without_credentials(probe.command)}),
    models.Query: Published(more=lambda query: {"promql": hidden(query.promql)}),
    models.Canary: Published(left_out=("command", "args", "env")),
    models.ModelVolume: Published(left_out=("download",), more=_volume),
    parts.Retained: Published(left_out=("mig_layout", "device_plugin_config", "object", "what"), more=_defined),
}


# --- The contract ------------------------------------------------------------------------------------------------


def with_new_fields(schema: dict[str, Any]) -> dict[str, Any]:
    """The contract's schema with the fields that the policy language has gained since it was written."""
    definitions = schema["definitions"]
    for part in (
        parts.Cluster,
        parts.GpuOperator,
        parts.Scheduler,
        parts.Pool,
        parts.OwnGpu,
        parts.PriorityClass,
        parts.Tenant,
        parts.Quota,
        parts.Workload,
    ):
        name = "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in part.__name__).lstrip("_")
        known = definitions[name]["properties"]
        published = _CONTRACT.get(part, _AS_IT_IS)
        spec: type[BaseModel] = get_type_hints(part)["spec"]
        document(spec)
        for field, info in spec.model_fields.items():
            if field not in published.left_out and field not in published.renamed:
                known.setdefault(field, {"description": info.description})
    return schema
