"""Services: work that runs all the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import ceil
from typing import Any, Final, Literal, assert_never

from gpuplan.compiler.backends.workloads import outside
from gpuplan.compiler.backends.workloads.bodies import AFTER, TEMPLATE, Written, selector_of, terms_of, workload_object
from gpuplan.compiler.backends.workloads.groups import LEADERS, group_set, name_from, routes
from gpuplan.compiler.backends.workloads.kserve import deployment_of, inference_service, kserve_routes
from gpuplan.compiler.backends.workloads.pods import pod_template
from gpuplan.compiler.backends.workloads.scaling import autoscaler
from gpuplan.compiler.backends.workloads.tracing import Traces
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.plain import inside
from gpuplan.compiler.manifests.bodies import given
from gpuplan.compiler.manifests.provenance import ANY, Routes, below, chosen, copied, multiplied
from gpuplan.compiler.planning.apis import needed_api
from gpuplan.compiler.planning.plan import WORKLOAD_LABEL, Plan, Workload
from gpuplan.compiler.planning.projects import seconds
from gpuplan.compiler.planning.serving import (
    MAIN_PORT,
    PROBE_PERIOD,
    canary_name,
    canary_of,
    ports_of,
    probe_of,
    routed_port,
)
from gpuplan.compiler.planning.sources import named
from gpuplan.compiler.policy.models import Api, Canary, Inference, Probe, Reach, ServiceType


def objects(plan: Plan, workload: Workload, work: Inference) -> Iterator[Written]:
    """Yield what makes the pods, a Service if something listens, what leads there from outside, and an autoscaler."""
    of = Traces(plan, workload)
    maker = _maker(plan, workload, work)
    yield AFTER, maker, partial(_maker_routes, of, work)
    if ports_of(work):
        yield AFTER, _service(workload, work), partial(_service_routes, of, work)
    yield from outside.objects(plan, workload, work)
    yield from _canary(plan, workload, work)
    if work.autoscaling:
        scaled = deployment_of(workload) if needed_api(workload) is Api.INFERENCE_SERVICE else maker
        name = name_from(of, [*_listening(of, work)]) if workload.is_grouped else named(workload)
        yield from autoscaler(plan, workload, work.autoscaling, scaled, name)


def _canary(plan: Plan, workload: Workload, work: Inference) -> Iterator[Written]:
    """Yield a Deployment and a Service of its own, if an HTTPRoute weighs the two."""
    canary = canary_of(plan.cluster.spec, work)
    if canary is None:
        return
    # The workload is as it would be if its pods were those of the canary. Its name is the service's, as are the volume
    # and the files that all pods mount.
    reach = Reach.model_construct(port=work.service.port)
    changed = {"replicas": canary.replicas, "autoscaling": None, "canary": None, "service": reach}
    program = {name: value for name in ("image", "command", "args") if (value := getattr(canary, name)) is not None}
    env = {**workload.spec.env, **canary.env}
    spec = {**program, "env": env, "inference": work.model_copy(update=changed)}
    of, other = Traces(plan, workload), workload._replace(spec=workload.spec.model_copy(update=spec))
    if isinstance(other.work, Inference):
        made, service = _maker(plan, other, other.work), _service(other, other.work)
        of_other = Traces(plan, other)
        yield AFTER, _as_canary(workload, made), partial(_canary_routes, of, canary, _maker_routes, of_other)
        yield AFTER, _as_canary(workload, service), partial(_canary_routes, of, canary, _service_routes, of_other)


def _maker(plan: Plan, workload: Workload, work: Inference) -> dict[str, Any]:
    """Return what makes the pods: a Deployment, a LeaderWorkerSet if a replica is several pods, or KServe's object."""
    container = given(
        ports=[{"name": name, "containerPort": port} for name, port in ports_of(work).items()],
        startupProbe=_startup_probe(work),
        # Until then it may still be loading the model.
        readinessProbe=_probe(work, probe_of(work)),
        livenessProbe=_probe(work, work.liveness),
    )
    match needed_api(workload):
        case Api.LEADER_WORKER_SET:
            return group_set(plan, workload, work, container)
        case Api.INFERENCE_SERVICE:
            return inference_service(plan, workload, work, container)
        case _:
            return _deployment(plan, workload, work, container)


_STRATEGY: Final = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
"""A new pod gets the units of an old one. One more than the policy counts would wait for units that may never come."""


def _deployment(plan: Plan, workload: Workload, inference: Inference, container: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pods.

    Their number is not stated if it follows the load: whoever restores what is in Git would undo it.
    """
    asked = terms_of(plan, workload)
    spec = {
        **({} if inference.autoscaling else {"replicas": inference.replicas}),
        "selector": {"matchLabels": selector_of(workload)},
        "strategy": _STRATEGY,
        # A Deployment whose pods take longer counts as failed, and Argo CD and Flux say so of the sync.
        **({"progressDeadlineSeconds": seconds(inference.startup) + _BEFORE_START} if inference.startup else {}),
        "template": pod_template(plan, workload, asked, {}, container, dict(asked.env)),
    }
    return workload_object("apps/v1", "Deployment", workload.name, workload, asked.labels, asked.annotations, spec=spec)


_BEFORE_START: Final = 600
"""The seconds that a Deployment may be without progress by itself: pods wait for their node and their image as well."""


def _probe(inference: Inference, probe: Probe | Literal["tcp", "grpc", "none"]) -> dict[str, Any]:
    ports = ports_of(inference)
    match probe:
        case "none":
            return {}
        case "tcp":
            return {"tcpSocket": {"port": MAIN_PORT}}
        case "grpc":
            return {"grpc": {"port": ports.get(MAIN_PORT)}}
        case Probe():
            # Kubernetes finds a port by its name for HTTP, and for gRPC by its number alone.
            name, asked = probe.port or MAIN_PORT, dict[str, Any]()
            if probe.command is not None:
                asked = {"exec": {"command": list(probe.command)}}
            elif probe.http is not None:
                asked = {"httpGet": {"path": probe.http, "port": name}}
            else:
                asked = {"grpc": {"port": ports.get(name), "service": probe.grpc}}
            timeout = {"timeoutSeconds": max(seconds(probe.timeout), 1)} if probe.timeout else {}
            return {**asked, **timeout}
        case unknown:
            assert_never(unknown)


def _startup_probe(inference: Inference) -> dict[str, Any]:
    """Return the same until it is answered once; whoever does not answer in time is ended and started again."""
    probe = _probe(inference, probe_of(inference))
    if inference.startup is None or not probe:
        return {}
    return {
        **probe,
        "periodSeconds": PROBE_PERIOD,
        "failureThreshold": max(ceil(seconds(inference.startup) / PROBE_PERIOD), 1),
    }


def _service(workload: Workload, inference: Inference) -> dict[str, Any]:
    """Return the Service; its type is not stated if it is what every Service is."""
    (_, port), *others = ports_of(inference).items()
    reach = inference.service
    main = {"name": MAIN_PORT, "port": reach.port or port, "targetPort": MAIN_PORT}
    spec = {
        **given(type=None if reach.type is ServiceType.CLUSTER_IP else reach.type.value),
        "selector": {**selector_of(workload), **(LEADERS if workload.is_grouped else {})},
        "ports": [
            {**main, **_protocol(inference, MAIN_PORT), **given(nodePort=reach.node_port)},
            *(
                {"name": name, "port": number, "targetPort": name, **_protocol(inference, name)}
                for name, number in others
            ),
        ],
    }
    return workload_object("v1", "Service", workload.name, workload, spec=spec)


def _protocol(inference: Inference, name: str) -> dict[str, str]:
    """Return what a Gateway speaks with the port that requests come to: a name of KEP 3726, which Gateway API reads."""
    is_asked = inference.route is not None and inference.route.grpc and routed_port(inference) == name
    return {"appProtocol": "kubernetes.io/h2c"} if is_asked else {}


# --- A canary ----------------------------------------------------------------------------------------------------


def _as_canary(workload: Workload, body: dict[str, Any]) -> dict[str, Any]:
    """Return an object of the variant by the canary's name, and its pods by a label that no other pods have.

    The service's own label would make them pods of the other Deployment to an autoscaler, and of the other Service,
    whatever the weights say.
    """
    name, spec = canary_name(workload.name), dict(body["spec"])
    own = {WORKLOAD_LABEL: name}
    if "template" in spec:
        labels = {**inside(spec, "template", "metadata", "labels"), **own}  # a patch may have made a list of them
        spec["template"] = {**spec["template"], "metadata": {**inside(spec, "template", "metadata"), "labels": labels}}
        spec["selector"] = {"matchLabels": own}
    else:
        spec["selector"] = own
    return {**body, "metadata": {**body["metadata"], "name": name}, "spec": spec}


# --- Where it comes from -------------------------------------------------------------------------------------------


def _maker_routes(of: Traces, work: Inference) -> Routes:
    match needed_api(of.workload):
        case Api.LEADER_WORKER_SET:
            return routes(of, work, [*_listening(of, work)])
        case Api.INFERENCE_SERVICE:
            return kserve_routes(of, work, [*_listening(of, work)])
        case _:
            return _deployment_routes(of, work)


def _canary_routes(of: Traces, canary: Canary, routes: Callable[[Traces, Inference], Routes], other: Traces) -> Routes:
    """Yield the routes of the variant, with what the canary says in the place of what the workload does."""
    yield (), chosen(of.workload.work_at / "canary")
    for route, links in routes(other, other.workload.work) if isinstance(other.workload.work, Inference) else ():
        yield route, tuple(link._replace(at=_moved(of.workload, canary, link.at)) for link in links)


def _deployment_routes(of: Traces, work: Inference) -> Routes:
    yield (), chosen(of.workload.work_at / "podsPerReplica", of.workload.work_at / "kind")
    yield from of.metadata(named(of.workload))
    asked = terms_of(of.plan, of.workload)
    yield from of.asked(asked.labels, asked.annotations)
    yield ("spec", "replicas"), copied(of.workload.work_at / "replicas")
    yield ("spec", "selector"), named(of.workload)
    yield ("spec", "progressDeadlineSeconds"), multiplied(of.workload.work_at / "startup")
    yield from below(TEMPLATE, of.pod(_listening(of, work)))


def _service_routes(of: Traces, work: Inference) -> Routes:
    yield from of.metadata(named(of.workload))
    yield ("spec", "selector"), named(of.workload)
    at = of.workload.work_at
    yield ("spec", "selector", *LEADERS), chosen(at / "podsPerReplica")
    reach = at / "service"
    yield ("spec", "type"), copied(reach / "type")
    has_own_port = isinstance(of.workload.work, Inference) and of.workload.work.service.port is not None
    yield ("spec", "ports", 0, "port"), copied(reach / "port" if has_own_port else at / "port")
    yield ("spec", "ports", 0, "nodePort"), copied(reach / "nodePort")
    yield ("spec", "ports", ANY, "appProtocol"), chosen(at / "route" / "grpc", at / "route" / "port")
    for index, name in enumerate(work.ports, start=1):
        yield ("spec", "ports", index), chosen(at / "ports" / name)
        yield ("spec", "ports", index, "port"), copied(at / "ports" / name)


def _listening(of: Traces, work: Inference) -> Routes:
    at = of.workload.work_at
    yield ("ports", 0, "containerPort"), copied(at / "port")
    for index, name in enumerate(work.ports, start=1):
        yield ("ports", index), chosen(at / "ports" / name)
        yield ("ports", index, "containerPort"), copied(at / "ports" / name)
    for field, source, probe in (
        ("startupProbe", "probe", work.probe),
        ("readinessProbe", "probe", work.probe),
        ("livenessProbe", "liveness", work.liveness),
    ):
        yield from below((field,), _probing(of, at / source, probe))
    yield ("startupProbe", "failureThreshold"), multiplied(at / "startup")
    yield ("startupProbe",), chosen(at / "startup")


def _probing(of: Traces, at: Origin, probe: Probe | str | None) -> Routes:
    yield (), chosen(at)
    asked = None
    if isinstance(probe, Probe):
        asked = probe.port
        for field, route in (("http", ("httpGet", "path")), ("grpc", ("grpc", "service"))):
            yield route, copied(at / field)
        for index in range(len(probe.command or ())):
            yield ("exec", "command", index), copied(at / "command" / index)
        yield ("timeoutSeconds",), multiplied(at / "timeout")
        yield ("httpGet", "port"), copied(at / "port")
        yield ("grpc", "port"), chosen(at / "port")
    ports = of.workload.work_at
    yield ("grpc", "port"), copied(ports / "ports" / asked if asked else ports / "port")


def _moved(workload: Workload, canary: Canary, at: Origin) -> Origin:
    own, canary_path = workload.at.path, (workload.work_at / "canary").path
    if at.source != workload.at.source or at.path[: len(own)] != own:
        return at
    match path := at.path[len(own) :]:
        case ("inference", "replicas"):
            return Origin(at.source, (*canary_path, "replicas"))
        case ("image" | "command" | "args" as field, *_) if getattr(canary, field) is not None:
            return Origin(at.source, (*canary_path, *path))
        case ("env", str(name), *_) if name in canary.env:
            return Origin(at.source, (*canary_path, *path))
        case _:
            return at
