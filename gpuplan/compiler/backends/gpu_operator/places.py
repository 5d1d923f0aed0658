"""Where the operator's settings come from: Helm values, the ClusterPolicy and what OLM is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gpuplan.compiler.backends.gpu_operator import device_plugin, mig_parted, settings
from gpuplan.compiler.backends.gpu_operator.settings import NFD, ConfigMapNames
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.catalog.openshift import NFD_OPERATOR_TOLERATIONS
from gpuplan.compiler.catalog.operators import (
    NFD_WORKER_TOLERATIONS,
    OPERAND_TOLERATIONS,
    Toleration,
    is_tolerated,
    lines,
    nearest_line,
)
from gpuplan.compiler.catalog.places import operator_fact
from gpuplan.compiler.manifests.provenance import (
    ANY,
    Links,
    Routes,
    as_written,
    below,
    choosing,
    chosen,
    copied,
    facts,
    hashed,
    ordered,
)
from gpuplan.compiler.planning.gpu_operator import operand_environment, variable_routes
from gpuplan.compiler.planning.plan import Plan, Taint, with_places
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from gpuplan.compiler.planning.sources import exporter_of, operator_namespace, shared_pods_of, usual_names
from gpuplan.compiler.policy.models import ClusterMigStrategy, NodeLabels

# --- ConfigMaps --------------------------------------------------------------------------------------------------


def _dcgm_metrics(plan: Plan) -> Routes:
    yield (), _watched(plan)
    yield ("data",), exporter_of(plan)


CONTENTS: Mapping[str, Callable[[Plan], Routes]] = {
    "mig_parted": mig_parted.trace,
    "device_plugin": device_plugin.trace,
    "metrics": _dcgm_metrics,
}
"""The routes of the content of ConfigMaps, by their field of `ConfigMapNames`."""


def config_map(plan: Plan, field: str) -> Routes:
    yield ("metadata", "name"), _digest(plan, field)
    yield ("metadata", "namespace"), operator_namespace(plan.cluster)
    yield ("immutable",), _choice(plan, field)
    yield from CONTENTS[field](plan)


def _digest(plan: Plan, field: str) -> Links:
    """Return the places of a name that ends in a digest of the ConfigMap, unless the policy has it stay."""
    if field == "device_plugin" and plan.cluster.gpu_operator.keeps_plugin_file:
        return _choice(plan, field)
    return hashed(link for route, links in CONTENTS[field](plan) if route for link in links)


def _choice(plan: Plan, field: str) -> Links:
    """Return what chooses whether a ConfigMap keeps its name; that of the device plugin alone has a choice."""
    return chosen(plan.cluster.gpu_operator.at / "devicePluginConfig") if field == "device_plugin" else ()


# --- What is told in Helm values and in a ClusterPolicy ----------------------------------------------------------


def _operands(plan: Plan) -> Routes:
    yield ("migManager", "config", "name"), _digest(plan, "mig_parted")
    yield ("devicePlugin", "config", "name"), _digest(plan, "device_plugin")
    default = plan.cluster.gpu_operator.spec.default_device_plugin_config
    default_links = copied if default else chosen
    yield (
        ("devicePlugin", "config", "default"),
        default_links(plan.cluster.gpu_operator.at / "defaultDevicePluginConfig"),
    )
    yield ("devicePlugin", "enabled"), chosen(*(pool.at / "allocation" for pool in plan.pools))
    if monitoring := plan.cluster.monitoring:
        exporter = ("dcgmExporter", "serviceMonitor")
        yield ("dcgmExporter", "config", "name"), _watched(plan)
        yield ("dcgmExporter", "config", "name"), _digest(plan, "metrics")
        own, shared = plan.cluster.gpu_operator.at / "values" / "dcgmExporter", shared_pods_of(plan)
        yield ("dcgmExporter", "env"), shared
        for field in ("hostPID", "enablePodUID"):
            seen = chosen(own / "hostPID", own / "enablePodUID", own / "env")
            yield ("dcgmExporter", field), (*shared, *seen)
        yield exporter, _watched(plan)
        yield (*exporter, "honorLabels"), copied(monitoring.at / "honorLabels")
        yield from below((*exporter, "additionalLabels"), as_written(monitoring.at / "labels", monitoring.spec.labels))


def _watched(plan: Plan) -> Links:
    """Return the places of what is there because the cluster is watched."""
    return chosen(plan.cluster.monitoring.at) if plan.cluster.monitoring else ()


def _mig_strategy(plan: Plan) -> Links:
    """Return the place of the strategy; none is written if each pool has its own."""
    operator = plan.cluster.gpu_operator
    is_pools_own = operator.spec.mig_strategy is ClusterMigStrategy.PER_POOL
    return (chosen if is_pools_own else copied)(operator.at / "migStrategy")


def _driver(plan: Plan) -> Routes:
    at = plan.cluster.gpu_operator.at / "driver"
    yield ("driver", "enabled"), copied(at / "enabled")
    yield ("driver", "version"), copied(at / "version")
    own = chosen(*(pool.at / "driver" for pool in plan.pools), at / "enabled")
    yield ("driver", "nvidiaDriverCRD"), own
    yield ("driver", "useNvidiaDriverCRD"), own


# --- Helm --------------------------------------------------------------------------------------------------------


def helm_file(plan: Plan) -> Routes:
    yield (), chosen(plan.cluster.gpu_operator.at / "install")
    yield from helm_values(plan)


def helm_values(plan: Plan) -> Routes:
    """Yield the places of the values, by routes in them."""
    cluster, operator = plan.cluster, plan.cluster.gpu_operator
    yield from _users(operator.at / "values", operator.spec.values, settings.decided_values(plan, ConfigMapNames("")))
    yield from _operands(plan)
    yield from _driver(plan)
    yield ("mig", "strategy"), _mig_strategy(plan)
    yield ("platform", "openshift"), chosen(cluster.at / "platform")
    yield ("dcgmExporter", "enabled"), _watched(plan)
    yield ("dcgmExporter", "config", "create"), (*_watched(plan), *chosen(operator.at / "version"))
    yield ("nodeStatusExporter", "enabled"), _watched(plan)
    yield ("nfd", "enabled"), copied(operator.at / "nfd")
    # The policy's own values for the chart's Node Feature Discovery stay without it.
    at = operator.at / "nfd"
    yield (NFD, "postDeleteCleanup"), chosen(at, operator.at / "version")
    yield (NFD, "worker", "tolerations"), chosen(at)
    yield (NFD, "master", "config", "enableTaints"), chosen(at)
    for route in ("enableTaints", "extraLabelNs"):
        yield (NFD, "master", "config", route), chosen(at, cluster.at / "nodeLabels")
    yield from _images(plan, settings.image_settings(plan), operator.spec.values)
    # The lists that the plan adds to: the policy's own items come first.
    yield from _helm_tolerations(plan, ("daemonsets", "tolerations"), OPERAND_TOLERATIONS)
    env, relabelings = ("migManager", "env"), ("dcgmExporter", "serviceMonitor", "relabelings")
    variables = [item for item in _own_items(plan, env) or () if not settings.is_reboot(item[1])]
    yield from below(env, _items(variables))
    yield from below((*env, len(variables)), _reboot(plan))
    for operand in operand_environment(plan):
        yield from below((operand, "env"), _environment_of(plan, operand, _own_items(plan, (operand, "env")) or ()))
    if plan.cluster.monitoring:
        own = _own_items(plan, ("dcgmExporter", "env")) or ()
        yield from below(("dcgmExporter", "env"), _items(own))
        own = _own_items(plan, relabelings) or ()
        yield from below(relabelings, _items([item for item in own if item[1] != settings.NODE_RELABELING]))
    if plan.cluster.gpu_operator.spec.nfd:
        yield from _helm_tolerations(plan, (NFD, "worker", "tolerations"), NFD_WORKER_TOLERATIONS)
        if plan.cluster.spec.node_labels is NodeLabels.NFD:
            listed = (NFD, "master", "config", "extraLabelNs")
            yield from below(listed, _label_namespaces(plan, _own_items(plan, listed) or ()))


def _images(plan: Plan, blocks: Mapping[str, Any], stated: object, route: tuple[str, ...] = ()) -> Routes:
    """Yield the routes of blocks with a repository or pull secrets; the policy's own values are above these."""
    operator = plan.cluster.gpu_operator
    has_image = chosen(operator.at / "version")
    for key, value in blocks.items():
        stated = stated.get(key) if isinstance(stated, Mapping) else None
        if isinstance(value, Mapping):
            yield from _images(plan, value, stated, (*route, key))
        elif stated is None and key == "repository":
            yield (*route, key), (*copied(operator.at / "registry"), *has_image)
        elif stated is None:
            for index in range(len(value)):
                yield (*route, key, index), (*copied(operator.at / "imagePullSecrets" / index), *has_image)


def _users(at: Origin, values: Mapping[str, object], decided: object) -> Routes:
    """Yield the policy's own values, but for those that the plan decides."""
    for key, value in values.items():
        over = decided.get(key) if isinstance(decided, Mapping) else None
        if over is None:
            yield from below((key,), as_written(at / key, value))
        elif isinstance(over, Mapping) and isinstance(value, Mapping):
            yield from below((key,), _users(at / key, value, over))


def _environment_of(plan: Plan, operand: str, stated: _Items) -> Routes:
    """Yield the routes of the variables that the policy states or needs, behind those of its values."""
    needed = operand_environment(plan)[operand]
    kept = [item for item in stated if not (isinstance(item[1], Mapping) and str(item[1].get("name")) in needed)]
    yield from _items(kept)
    for index, name in enumerate(needed, start=len(kept)):
        yield from below((index,), variable_routes(plan, operand, name))


def _helm_tolerations(plan: Plan, route: tuple[str, ...], chart: Sequence[Toleration]) -> Routes:
    """Yield the routes of tolerations: the policy's own decide which ones are added to them."""
    own = _own_items(plan, route)
    present = chart if own is None else [item for _, item in own]
    listed = list(_items(own or ()))
    missing = settings.missing_tolerations(plan, present)
    if missing:
        yield from below(route, listed)
    for index in range(len(present), len(present) + len(missing)):
        yield (*route, index), choosing(link for _, links in listed for link in links)
    yield from below(route, _tolerations(plan, present, len(present), is_there=own is not None))


_Items = Sequence[tuple[Origin, object]]


def _own_items(plan: Plan, route: tuple[str, ...]) -> list[tuple[Origin, object]] | None:
    """Return the items of a list among the policy's own values, with their places, or None if it has no such list."""
    operator = plan.cluster.gpu_operator
    found = settings.find_list(operator.spec.values, *route)
    return None if found is None else list(with_places(operator.at / "values" / route, found))


def _items(items: _Items) -> Routes:
    for index, (at, item) in enumerate(items):
        yield from below((index,), as_written(at, item))


def _reboot(plan: Plan) -> Routes:
    yield ("value",), copied(plan.cluster.gpu_operator.at / "rebootOnMigChange")


def _tolerations(plan: Plan, present: Sequence[object], first: int, *, is_there: bool) -> Routes:
    """Yield the routes of what is added to those present, from the first index on. A new list is there for them."""
    taints = [
        taint
        for pool in plan.pools
        for taint in pool.taints
        if not is_tolerated(present, taint.key, taint.value, taint.effect)
    ]
    places = [place for taint in taints for place in _decide(taint, present)]
    missing = settings.missing_tolerations(plan, present)
    if len(taints) == 1 and not is_there:
        yield (), chosen(*places)
    for index, toleration in enumerate(missing, first):
        key, effect = toleration["key"], toleration["effect"]
        same = [taint for taint in taints if (taint.key, taint.effect) == (key, effect)]
        yield (index,), chosen(*(place for taint in same for place in _decide(taint, present)))
        if len(same) == 1 and not same[0].is_default:
            yield (index, "key"), copied(same[0].at / "key")
        if len(missing) > 1:
            yield (index,), ordered(*places)


def _decide(taint: Taint, present: Sequence[object]) -> Iterator[Origin]:
    """Yield what of a taint decides whether it is tolerated; its value does if a toleration of its key asks for one."""
    yield from (taint.place("key"), taint.place("effect"))
    if any(isinstance(item, Mapping) and item.get("key") == taint.key and item.get("value") for item in present):
        yield taint.place("value")


def _label_namespaces(plan: Plan, stated: _Items) -> Routes:
    """Yield the routes of the sorted namespaces, listed or of labels; that of a scheduler moves all behind it."""
    kind = plan.cluster.scheduler.at / "kind"
    of_schedulers = {each.node_pool_label.partition("/")[0] for each in SCHEDULERS.values()} - {""}
    for index, namespace in enumerate(settings.label_namespaces(plan, [item for _, item in stated])):
        listed = [at for at, item in stated if str(item) == namespace]
        labels = [at for at, key in _labels(plan) if key.partition("/")[0] == namespace]
        yield (index,), copied(*listed) if len(listed) == 1 and not labels else chosen(*listed, *labels)
        if any(known <= namespace for known in of_schedulers):
            yield (index,), chosen(kind)
    yield (ANY,), ordered(*(at for at, _ in (*stated, *_labels(plan))))


def _labels(plan: Plan) -> Iterator[tuple[Origin, str]]:
    """Yield the keys of the nodes' labels that the policy chooses."""
    for pool in plan.pools:
        yield from (((pool.at / "nodeLabels" / key).key, key) for key in pool.spec.node_labels)


# --- ClusterPolicy -----------------------------------------------------------------------------------------------


def policy_patch(plan: Plan) -> Routes:
    """Yield the routes of the part of a ClusterPolicy that somebody else owns."""
    yield from _policy(plan)
    yield ("spec", "nodeStatusExporter"), _watched(plan)


def owners_patch(plan: Plan) -> Routes:
    """Yield the routes of the patch for the owner of a ClusterPolicy."""
    operator = plan.cluster.gpu_operator
    yield (), chosen(operator.at / "clusterPolicyPatch")
    yield from policy_patch(plan)


def owners_values(plan: Plan) -> Routes:
    """Yield the routes of the values for the owner of a ClusterPolicy that comes from the chart."""
    operator = plan.cluster.gpu_operator
    yield (), chosen(operator.at / "clusterPolicyPatch", operator.at / "install")
    yield from ((route[1:], links) for route, links in policy_patch(plan) if route[:1] == ("spec",))


def whole_policy(plan: Plan) -> Routes:
    """Yield the routes of a ClusterPolicy that nobody else owns."""
    yield from _policy(plan)
    yield from below(("spec",), _driver(plan))
    for field in ("repository", "image"):
        yield ("spec", "driver", field), chosen(plan.cluster.gpu_operator.at / "driver" / "version")
    platform = plan.cluster.at / "platform"
    yield ("spec", "operator", "defaultRuntime"), chosen(platform, plan.cluster.gpu_operator.at / "version")
    yield ("spec", "operator", "use_ocp_driver_toolkit"), chosen(platform)
    for operand in operand_environment(plan):
        yield from below(("spec", operand, "env"), _environment_of(plan, operand, ()))
    yield from below(("spec",), _images(plan, settings.pull_secrets(plan), {}))
    route, chart = ("spec", "daemonsets", "tolerations"), OPERAND_TOLERATIONS
    yield from below(route, _tolerations(plan, chart, len(chart), is_there=True))
    # Only some lines of releases have these fields, or have them with another default.
    operator = plan.cluster.gpu_operator
    line = nearest_line(operator.version)
    for part, attribute in (("cdi", "cdi"), ("driver", "driver_fields")):
        known = getattr(line, attribute)
        for key in known:
            yield ("spec", part, key), facts(operator_fact("lines", lines().index(line), attribute, key))
            if any(getattr(other, attribute).get(key) != known[key] for other in lines()):
                yield ("spec", part, key), chosen(operator.at / "version")


def _policy(plan: Plan) -> Routes:
    operator = plan.cluster.gpu_operator
    yield (), chosen(operator.at / "install")
    is_named = bool(operator.spec.cluster_policy)
    yield ("metadata", "name"), copied(operator.at / "clusterPolicy") if is_named else usual_names(plan.cluster)
    yield ("spec", "mig", "strategy"), _mig_strategy(plan)
    yield ("spec", "migManager", "env"), chosen(operator.at / "rebootOnMigChange")
    yield from below(("spec", "migManager", "env", 0), _reboot(plan))
    yield from below(("spec",), _operands(plan))


def spec_of_whole_policy(plan: Plan) -> Routes:
    yield from ((route[1:], links) for route, links in whole_policy(plan) if route[:1] == ("spec",))


# --- OLM ---------------------------------------------------------------------------------------------------------


def namespace(plan: Plan) -> Routes:
    """Yield the routes of the namespace that the operator's pods run in."""
    yield (), chosen(plan.cluster.gpu_operator.at / "install")
    yield ("metadata", "name"), operator_namespace(plan.cluster)
    yield ("metadata", "labels", "openshift.io/cluster-monitoring"), chosen(plan.cluster.at / "platform")


def operator_object(plan: Plan) -> Routes:
    """Yield the routes of the OperatorGroup and the Subscription."""
    operator, named = plan.cluster.gpu_operator, operator_namespace(plan.cluster)
    yield (), chosen(operator.at / "install")
    yield ("metadata", "namespace"), named
    yield ("spec", "targetNamespaces"), named
    yield ("spec", "channel"), chosen(operator.at / "version", operator.at / "olm" / "channel")
    if operator.spec.olm.channel:
        yield ("spec", "channel"), copied(operator.at / "olm" / "channel")
    yield ("spec", "source"), copied(operator.at / "olm" / "catalog")
    yield ("spec", "startingCSV"), copied(operator.at / "version")


def nfd_object(plan: Plan) -> Routes:
    """Yield the routes of Node Feature Discovery's objects; its one instance alone has what the plan says in it."""
    operator = plan.cluster.gpu_operator
    yield (), chosen(operator.at / "install", operator.at / "nfd")
    kubernetes, node_labels = plan.cluster.at / "kubernetes", plan.cluster.at / "nodeLabels"
    yield ("spec", "operand"), chosen(kubernetes)
    workers = ("spec", "operand", "workerTolerations")
    yield from below(workers, _tolerations(plan, NFD_OPERATOR_TOLERATIONS, 0, is_there=False))
    yield ("spec", "extraLabelNs"), chosen(node_labels)
    yield from below(("spec", "extraLabelNs"), _label_namespaces(plan, ()))
    yield ("spec", "enableTaints"), chosen(node_labels, kubernetes)
