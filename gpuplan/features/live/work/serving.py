"""Deployments, LeaderWorkerSets and InferenceServices as services."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import inside, mapping, sequence, text, value_at
from gpuplan.compiler.manifests import parse_quantity
from gpuplan.compiler.planning.amounts import as_number
from gpuplan.compiler.planning.serving import GPU_METRIC, MAIN_PORT, PROBE_PERIOD, canary_name, metric_of
from gpuplan.compiler.policy.models import AutoscalerKind, Autoscaling, ServingKind
from gpuplan.features.live.dump import Item
from gpuplan.features.live.work.ending import annotations_of, topology
from gpuplan.features.live.work.pods import (
    AUTOSCALER,
    DEPLOYMENT,
    HTTP_ROUTE,
    INFERENCE_SERVICE,
    INGRESS,
    LEADER_WORKER_SET,
    SCALED_OBJECT,
    SERVICE,
    Group,
    duration,
    given,
    kind_of,
    main_container,
    number,
    template_of,
    texts,
    variables_of,
)

Spec = dict[str, Any]


def serving(group: Group, maker: Item) -> Iterator[Spec]:
    """Yield what the service may be, the likeliest first."""
    container = main_container(template_of(maker))
    listed = map(mapping, sequence(container.get("ports")))
    ports = {
        name: port
        for item in listed
        if isinstance(name := item.get("name"), str) and (port := number(item.get("containerPort"))) is not None
    }
    service = group.find(SERVICE, group.name)
    reach = inside(service.body, "spec") if service else {}
    door, kind = mapping(value_at(reach, ("ports", 0))), text(reach.get("type"))
    spec = given(
        kind=ServingKind.INFERENCE_SERVICE.value if kind_of(maker) == INFERENCE_SERVICE else None,
        **_pods(maker),
        port=ports.get(MAIN_PORT, "none"),
        ports={name: port for name, port in ports.items() if name != MAIN_PORT},
        startup=_startup(maker, container),
        liveness=_probe(container.get("livenessProbe"), ports),
        service=given(
            type=None if kind == "ClusterIP" else kind,
            port=None if (reached := number(door.get("port"))) == ports.get(MAIN_PORT) else reached,
            nodePort=door.get("nodePort"),
        ),
        canary=_canary(group, container),
    ) | _worker(maker)
    if (probe := _probe(container.get("readinessProbe"), ports) or "none") != ("tcp" if ports else "none"):
        spec["probe"] = probe
    for route in _routes(group):
        for scaling in _scalings(group):
            yield {
                **spec,
                **({} if scaling is None else {"replicas": max(number(scaling.get("minReplicas")) or 1, 1)}),
                **given(route=route, autoscaling=scaling),
            }


def _pods(maker: Item) -> Spec:
    """Return the number of replicas, and for replicas of several pods their size and topology."""
    spec = inside(maker.body, "spec")
    if kind_of(maker) == INFERENCE_SERVICE:
        return {"replicas": inside(spec, "predictor").get("minReplicas")}
    if kind_of(maker) != LEADER_WORKER_SET:
        return {"replicas": spec.get("replicas")}
    sets = inside(spec, "leaderWorkerTemplate")
    found = topology(inside(sets, "leaderTemplate", "metadata", "annotations"), annotations_of(maker))
    return {"replicas": spec.get("replicas"), "podsPerReplica": sets.get("size"), "topology": found}


def _worker(maker: Item) -> Spec:
    """Return the command of workers that differs from the leader's; the leader's arguments are never theirs."""
    if kind_of(maker) != LEADER_WORKER_SET:
        return {}
    sets = inside(maker.body, "spec", "leaderWorkerTemplate")
    leader, worker = (main_container(inside(sets, name)) for name in ("leaderTemplate", "workerTemplate"))
    (command, args), own = ((texts(item.get("command")), texts(item.get("args"))) for item in (leader, worker))
    if (command, args) == own:
        return {}
    return {"worker": given(command=own[0] if own[0] != command else [], args=own[1])}


# --- Ports and probes ------------------------------------------------------------------------------------------------


def _probe(value: object, ports: Mapping[str, int]) -> object:
    """Return a probe as a policy says it; None where there is none."""
    probe = mapping(value)
    timeout = duration(probe.get("timeoutSeconds")) if probe.get("timeoutSeconds") != 1 else None
    by_number = {port: name for name, port in reversed(tuple(ports.items()))}
    if "tcpSocket" in probe:
        return "tcp"
    if asked := inside(probe, "httpGet"):
        return given(http=asked.get("path"), port=_unless_main(asked.get("port")), timeout=timeout)
    if asked := inside(probe, "grpc"):
        name = by_number.get(number(asked.get("port")) or 0)
        if not asked.get("service"):
            return "grpc"
        return given(grpc=asked.get("service"), port=_unless_main(name), timeout=timeout)
    if asked := inside(probe, "exec"):
        return given(command=texts(asked.get("command")), timeout=timeout)
    return None


def _unless_main(name: object) -> object:
    return None if name == MAIN_PORT else name


def _startup(maker: Item, container: Mapping[str, object]) -> str | None:
    """Return the time to start, which a Deployment says to the second and a probe by its number of tries."""
    probe = inside(container, "startupProbe")
    if not probe:
        return None
    within = number(inside(maker.body, "spec").get("progressDeadlineSeconds"))
    if kind_of(maker) == DEPLOYMENT and within and within > _BEFORE_START:
        return duration(within - _BEFORE_START)
    return duration((number(probe.get("failureThreshold")) or 0) * PROBE_PERIOD)


_BEFORE_START: Final = 600


# --- What leads to it ------------------------------------------------------------------------------------------------


def _routes(group: Group) -> Iterator[Spec | None]:
    """Yield the route from outside, with and without its kind."""
    item = next(group.of(HTTP_ROUTE), None) or next(group.of(INGRESS), None)
    if item is None:
        yield None
        return
    spec, service = inside(item.body, "spec"), group.find(SERVICE, group.name)
    ports = [mapping(port) for port in sequence(inside(service.body, "spec").get("ports"))] if service else []
    if kind_of(item) == HTTP_ROUTE:
        rule = mapping(value_at(spec, ("rules", 0)))
        number_of = value_at(rule, ("backendRefs", 0, "port"))
        name = next((port.get("name") for port in ports if port.get("port") == number_of), None)
        route = given(hosts=texts(spec.get("hostnames")), path=value_at(rule, ("matches", 0, "path", "value")))
    else:
        rules = [mapping(rule) for rule in sequence(spec.get("rules"))]
        path = mapping(value_at(rules[0] if rules else {}, ("http", "paths", 0)))
        name = inside(path, "backend", "service", "port").get("name")
        hosts, secret = texts([rule.get("host") for rule in rules]), value_at(spec, ("tls", 0, "secretName"))
        route = given(hosts=hosts, path=path.get("path"), tlsSecret=secret)
    grpc = next((text(port.get("name")) for port in ports if "appProtocol" in port), None)
    port = (_unless_main(grpc) or name) if grpc else _unless_main(name)
    found = {**route, **given(port=port), **({"grpc": True} if grpc else {})}
    yield found
    yield {**found, "kind": item.kind}


def _canary(group: Group, container: Mapping[str, object]) -> Spec | None:
    item, route = group.find(DEPLOYMENT, canary_name(group.name)), next(group.of(HTTP_ROUTE), None)
    if item is None or route is None:
        return None
    other = main_container(template_of(item))
    own, variables = variables_of(container), variables_of(other)
    backends = sequence(value_at(route.body, ("spec", "rules", 0, "backendRefs")))
    weights = [mapping(found) for found in backends if mapping(found).get("name") == item.name]
    return {
        "weight": weights[0].get("weight") if weights else None,
        **given(
            replicas=inside(item.body, "spec").get("replicas"),
            image=None if other.get("image") == container.get("image") else other.get("image"),
            env={name: value for name, value in variables.items() if own.get(name) != value},
        ),
        **{
            field: texts(other.get(field))
            for field in ("command", "args")
            if texts(other.get(field)) != texts(container.get(field))
        },
    }


# --- Autoscaling -----------------------------------------------------------------------------------------------------


def _scalings(group: Group) -> Iterator[Spec | None]:
    """Yield the autoscaling, with and without its kind; a query of Prometheus may be one of gpuplan's own."""
    item = next(group.of(AUTOSCALER, SCALED_OBJECT), None)
    if item is None:
        yield None
        return
    spec = inside(item.body, "spec")
    is_scaled = kind_of(item) == SCALED_OBJECT
    fewest, most = ("minReplicaCount", "maxReplicaCount") if is_scaled else ("minReplicas", "maxReplicas")
    base = {"minReplicas": spec.get(fewest), "maxReplicas": spec.get(most)}
    if is_scaled and spec.get("minReplicaCount") == 0:
        base |= given(cooldown=duration(spec.get("cooldownPeriod")))
    for measure in _triggers(spec) if is_scaled else _metrics(spec):
        yield {**base, **measure}
        yield {**base, **measure, "kind": item.kind}


def _metrics(spec: Mapping[str, object]) -> Iterator[Spec]:
    metric = mapping(value_at(spec, ("metrics", 0)))
    if metric.get("type") == "Resource":
        yield {"cpuPercent": inside(metric, "resource", "target").get("averageUtilization")}
        return
    each = parse_quantity(text(inside(metric, "pods", "target").get("averageValue")))
    yield from _measures(text(inside(metric, "pods", "metric").get("name")), each, is_counted=None)


def _measures(metric: str, each: Decimal | None, *, is_counted: bool | None) -> Iterator[Spec]:
    """Yield the fields of a policy that a metric of pods may stand for, without the usual metric's name."""
    if each is None:
        return
    if metric == GPU_METRIC:
        yield {"gpuPercent": as_number(each * 100)}
    if metric in _USUAL:
        yield {_USUAL[metric]: as_number(each)}
    name = "requestsPerSecond" if is_counted is not False else "waitingRequests"
    yield {name: as_number(each), "metric": metric}


_USUAL: Final = {
    metric_of(Autoscaling.model_validate({"maxReplicas": 1, measure: 1, "kind": kind.value})): measure
    for measure in ("requestsPerSecond", "waitingRequests")
    for kind in AutoscalerKind
}
"""The measures by the metric that stands for them if a policy names none."""


def _triggers(spec: Mapping[str, object]) -> Iterator[Spec]:
    trigger = mapping(value_at(spec, ("triggers", 0)))
    metadata = inside(trigger, "metadata")
    if trigger.get("type") == "cpu":
        yield {"cpuPercent": number(metadata.get("value"))}
        return
    query, each = text(metadata.get("query")), parse_quantity(text(metadata.get("threshold")))
    if each is None:
        return
    if found := _OF_PODS.fullmatch(query):
        yield from _measures(found["metric"], each, is_counted=found["rate"] is not None)
    idle = parse_quantity(text(metadata.get("activationThreshold")))
    yield {"query": {"promql": query, "perPod": float(each), **({"idle": float(idle)} if idle else {})}}


_OF_PODS: Final = regex(r"sum\((?P<rate>rate\()?(?P<metric>[a-zA-Z_:][a-zA-Z0-9_:]*)\{.*\}(\[2m\]\))?\)")
"""The query of Prometheus that gpuplan writes for the pods of a service."""
