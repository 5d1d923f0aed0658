"""Checks on how services are asked, reached and scaled (GPU524-525, GPU596-598)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Literal

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.wording import count, joined, listing
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.plan import Counted, Plan, Workload
from gpuplan.compiler.planning.pods import asked_by_main, container_limits, silent_containers
from gpuplan.compiler.planning.serving import (
    MAIN_PORT,
    PROBE_PERIOD,
    asks_prometheus,
    autoscaler_kind,
    metric_of,
    ports_of,
    probe_of,
)
from gpuplan.compiler.policy.models import Api, AutoscalerKind, Autoscaling, Inference, Probe, ServiceType

# --- Ports and probes ----------------------------------------------------------------------------------------------


@check("GPU598", "service-contradicts-itself")
def service_contradicts_itself(plan: Plan) -> Iterator[Finding]:
    """The ports, probes and routes of a service contradict each other.

    ## Why
    A service with `port: none` has no Service, and nothing to ask at a port. A probe that asks a port which is not
    there fails for ever, and the pods never get a request. The API server takes a name of a port once, with at most 15
    characters and a letter among them (`IsValidPortName` in `pkg/util/validation` of kubernetes/apimachinery), and a
    `nodePort` on Services of the types `NodePort` and `LoadBalancer`
    (`ValidateService` in `pkg/apis/core/validation/validation.go` of kubernetes/kubernetes).

    `liveness` is asked from the first second where no `startup` holds it back, and starts a container again that is
    loading its model: it never gets ready.

    ## Instead
    Correct one of the two. A service without a port may be asked by a command.
    """
    for workload, work in plan.work_of(Inference):
        yield from _without_port(workload, work)
        yield from _ports(workload, work)
        yield from _probes(workload, work)
        at, service = workload.work_at / "service", work.service
        if service.node_port is not None and service.type is ServiceType.CLUSTER_IP and work.port != "none":
            yield Finding(
                at / "nodePort",
                f"the Service of `{workload.name}` is reached from within the cluster alone and has a port of the "
                "nodes",
                label="refused by the API server",
                related=(Label(at / "type", "no port of nodes"),),
                help="write `type: NodePort`, or leave it out",
            )


def _without_port(workload: Workload, work: Inference) -> Iterator[Finding]:
    """Find what needs a port, of a service that has none."""
    at, on_command = workload.work_at, "write `liveness: {command: [...]}`, or leave it out"
    needing = (
        (bool(work.ports), (at / "ports").key, "has further ports", "write one of them as `port`"),
        (work.service.model_fields_set, (at / "service").key, "says how its Service is reached", "leave `service` out"),
        (work.route is not None, (at / "route").key, "is reached from outside", "leave `route` out"),
        (_asks_port(probe_of(work)), at / "probe", "is asked at a port", "write `probe: none`, or `{command: [...]}`"),
        (_asks_port(work.liveness), at / "liveness", "is asked at a port", on_command),
    )
    for is_there, place, fact, instead in needing if work.port == "none" else ():
        if is_there:
            yield Finding(
                place,
                f"`{workload.name}` {fact} and has none",
                label="needs a port",
                related=(Label(at / "port", "nothing listens"),),
                help=instead,
            )


def _asks_port(probe: Probe | str) -> bool:
    return probe.command is None if isinstance(probe, Probe) else probe != "none"


_PORT_NAME = regex(r"(?!.*--)(?=[a-z0-9-]*[a-z])[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?")


def _ports(workload: Workload, work: Inference) -> Iterator[Finding]:
    at, numbers = workload.work_at, {work.port: MAIN_PORT}
    for name, number in work.ports.items():
        if name == MAIN_PORT or not _PORT_NAME.fullmatch(name):
            yield Finding(
                (at / "ports" / name).key,
                f"`{name}` of `{workload.name}` cannot be the name of a further port",
                label="what `port` is called" if name == MAIN_PORT else "at most 15 of `a-z`, `0-9` and single `-`",
                help="write another name, such as `metrics`",
            )
        if number in numbers:
            yield Finding(
                at / "ports" / name,
                f"port {number} of `{workload.name}` is there twice",
                label=f"also `{numbers[number]}`",
                help="leave one of them out",
            )
        numbers.setdefault(number, name)
    reach, others = work.service.port, list(work.ports.values())
    if reach is not None and reach in others:
        yield Finding(
            at / "service" / "port",
            f"the Service of `{workload.name}` has port {reach} twice",
            label="taken by one of `ports`",
            help="write another one",
        )


def _probes(workload: Workload, work: Inference) -> Iterator[Finding]:
    at, probe = workload.work_at, probe_of(work)
    yield from _probe(workload, work, at / "probe", probe)
    yield from _probe(workload, work, at / "liveness", work.liveness)
    if work.startup is not None and probe == "none":
        yield Finding(
            at / "startup",
            f"`{workload.name}` may take so long to start, and nobody asks whether it has",
            label="has no effect without a probe",
            related=(Label(at / ("port" if work.probe is None else "probe"), "no probe"),),
            help="add a probe, such as `probe: {command: [cat, /tmp/ready]}`, or leave it out",
        )
    can_be_asked = work.port != "none" or not _asks_port(work.liveness)
    if work.liveness != "none" and work.startup is None and can_be_asked:
        yield Finding(
            at / "liveness",
            f"`{workload.name}` is started again when it does not answer, also while it loads its model",
            label="asked from the start",
            notes=(f"three times without an answer are {3 * PROBE_PERIOD} seconds",),
            help="add `startup: 15m`, or as long as it may take, and a `probe`",
            severity=Severity.WARNING,
        )


def _probe(
    workload: Workload, work: Inference, at: Origin, probe: Probe | Literal["tcp", "grpc", "none"]
) -> Iterator[Finding]:
    known = ports_of(work)
    if isinstance(probe, Probe) and probe.port is not None and known:
        if probe.command is not None:
            yield Finding(
                at / "port",
                f"a command asks `{workload.name}`, and no port",
                label="has no effect on a command",
                help="leave it out",
            )
        elif probe.port not in known:
            yield Finding(
                at / "port",
                f"`{workload.name}` has no port `{probe.port}` to be asked at",
                label=f"it has {listing([*known])}",
                help=f"write {joined([f'`port: {name}`' for name in known], 'or')}",
            )


# --- Ports of nodes ------------------------------------------------------------------------------------------------

_NODE_PORTS = range(30000, 32768)
"""The ports that the API server hands out unless `--service-node-port-range` says otherwise."""


@check("GPU597", "node-port-not-free")
def node_port_not_free(plan: Plan) -> Iterator[Finding]:
    """A port of the nodes is asked for twice in a cluster, or is none that Services may have.

    ## Why
    A port of the nodes is the whole cluster's: the API server refuses the second Service that asks for it, in whichever
    namespace. It hands out 30000 to 32767, unless its flag `--service-node-port-range` says otherwise, which is why
    another number is a warning.

    ## Instead
    Write another port, or leave `nodePort` out: then Kubernetes chooses one that is free.
    """
    asked: dict[int, list[tuple[Workload, Origin]]] = defaultdict(list)
    for workload, work in plan.work_of(Inference):
        number = work.service.node_port
        if number is None or work.service.type is ServiceType.CLUSTER_IP:
            continue
        at = workload.work_at / "service" / "nodePort"
        asked[number].append((workload, at))
        if number not in _NODE_PORTS:
            yield Finding(
                at,
                f"port {number} of the nodes is none that Services usually have",
                label=f"not from {_NODE_PORTS[0]} to {_NODE_PORTS[-1]}",
                help=f"write one from {_NODE_PORTS[0]} to {_NODE_PORTS[-1]}, or leave it out",
                severity=Severity.WARNING,
            )
    for number, ((first, first_at), *others) in asked.items():
        for workload, at in others:
            yield Finding(
                at,
                f"port {number} of the nodes is asked for by `{workload.name}` and by `{first.name}`",
                label="one Service can have it",
                related=(Label(first_at, "asked for here"),),
                help="write another one, or leave it out",
            )


# --- Autoscaling ---------------------------------------------------------------------------------------------------


@check("GPU596", "load-that-cannot-be-measured")
def load_that_cannot_be_measured(plan: Plan) -> Iterator[Finding]:
    """An autoscaler follows what is not known of the workload's pods.

    ## Why
    The use of CPU is a part of what a pod asks for: without a request the autoscaler says `missing request for cpu` and
    never changes the number of pods (`calculatePodRequests` in `pkg/controller/podautoscaler/replica_calculator.go` of
    kubernetes/kubernetes), also where it is one container of several that has none. The use of a GPU is that of the
    whole device: where several pods share it, each is seen to use what all of them use, and more pods make it no less.

    ## Instead
    Write `cpu`. On shares and fractions let the number of pods follow requests: `requestsPerSecond`, or
    `waitingRequests`.
    """
    for workload, work in plan.work_of(Inference):
        scaling = work.autoscaling
        if scaling is None:
            continue
        at = workload.work_at / "autoscaling"
        if scaling.cpu_percent is not None and asked_by_main(workload, Counted.CPU) is None:
            yield Finding(
                at / "cpuPercent",
                f"the number of pods of `{workload.name}` follows their use of CPU, and they ask for none",
                label="a part of nothing",
                help='add `cpu: "4"`, or as much as a pod needs',
            )
        yield from _silent(plan, workload, at, scaling)
        part = workload.pool.part_with(workload.unit)
        is_shared = workload.fraction is not None or part.shares_of(workload.unit)
        if scaling.gpu_percent is not None and is_shared:
            yield Finding(
                at / "gpuPercent",
                f"the number of pods of `{workload.name}` follows their use of a GPU that others use as well",
                label="what all of them use",
                related=(Label(part.sharing.at.key, "several pods on a GPU"),),
                help="write `requestsPerSecond` or `waitingRequests` in its place",
            )
        if scaling.metric is not None and metric_of(scaling) != scaling.metric:
            yield Finding(
                at / "metric",
                f"the number of pods of `{workload.name}` follows what they use, and not `{scaling.metric}`",
                label="has no effect here",
                help="leave it out, or write `requestsPerSecond` or `waitingRequests`",
            )


def _silent(plan: Plan, workload: Workload, at: Origin, scaling: Autoscaling) -> Iterator[Finding]:
    """Find containers beside the main one whose requests nobody says, not even a LimitRange."""
    limits = container_limits(workload.tenant, workload.namespace, plan.scheduler)
    if scaling.cpu_percent is None or Counted.CPU in limits.get("defaultRequest", {}):
        return
    for container in silent_containers(workload, Counted.CPU):
        yield Finding(
            container.at,
            f"pods of `{workload.name}` follow their use of CPU, and container `{container.name}` asks for none",
            label="the autoscaler then changes nothing",
            related=(Label(at / "cpuPercent", "a part of what all containers ask for"),),
            help="add `resources: {requests: {cpu: 100m}}`, or as much as it needs",
        )


@check("GPU524", "autoscaler-not-possible")
def autoscaler_not_possible(plan: Plan) -> Iterator[Finding]:
    """The number of a service's pods is to follow something that its cluster has no program for.

    ## Why
    A HorizontalPodAutoscaler follows what pods say, and keeps one of them: the API server refuses `minReplicas: 0`
    without a metric of something else (`validateMetrics` in `pkg/apis/autoscaling/validation/validation.go` of
    kubernetes/kubernetes), and before Kubernetes 1.37 without the feature gate `HPAScaleToZero`. It knows metrics of
    adapters and no queries. KEDA's ScaledObject knows both, and asks Prometheus by an address. Where its definition is
    missing, the sync of the namespace's folder fails.

    ## Instead
    Install KEDA, and write `apis: [ScaledObject]` and `prometheus: {url: http://...}` in the Cluster; or let the number
    of pods follow a metric of pods, from one pod on.
    """
    for workload, work in plan.work_of(Inference):
        scaling, name, at = work.autoscaling, workload.name, workload.work_at / "autoscaling"
        if scaling is None:
            continue
        if autoscaler_kind(scaling) is AutoscalerKind.HORIZONTAL_POD_AUTOSCALER:
            none_left = "follows what pods say, and keeps one"
            beyond = (
                (scaling.min_replicas == 0, at / "minReplicas", none_left, "or `minReplicas: 1`"),
                (scaling.query is not None, (at / "query").key, "asks no Prometheus", "or follow a metric of pods"),
            )
            for is_asked, place, fact, otherwise in beyond:
                if is_asked:
                    yield Finding(
                        place,
                        f"the HorizontalPodAutoscaler of `{name}` {fact}",
                        label="beyond what it can do",
                        related=(Label(at / "kind", "asked for here"),),
                        help=f"write `kind: ScaledObject`, {otherwise}",
                    )
        else:
            yield from _by_keda(plan, workload, scaling, at)
        if scaling.cooldown is not None and scaling.min_replicas != 0:
            yield Finding(
                at / "cooldown",
                f"`{name}` always has {count(scaling.min_replicas, 'pod')}, and no last one that could go",
                label="has no effect",
                related=(Label(at / "minReplicas", "the fewest"),),
                help="write `minReplicas: 0`, or leave it out",
                severity=Severity.WARNING,
            )


def _by_keda(plan: Plan, workload: Workload, scaling: Autoscaling, at: Origin) -> Iterator[Finding]:
    name, cluster = workload.name, plan.cluster
    if scaling.kind is not None:
        place = at / "kind"
    else:
        place = at / "minReplicas" if scaling.query is None else (at / "query").key
    if Api.SCALED_OBJECT not in cluster.spec.apis:
        yield Finding(
            place,
            f"`{name}` needs a ScaledObject, and cluster `{cluster.name}` does not say that it has them",
            label="KEDA's alone",
            related=(Label((cluster.at / "apis").key, "not among these"),) if cluster.spec.apis else (),
            help="install KEDA, and add `ScaledObject` to `apis` of the cluster",
        )
    elif asks_prometheus(scaling) and cluster.spec.prometheus is None:
        yield Finding(
            place,
            f"the ScaledObject of `{name}` asks Prometheus, and cluster `{cluster.name}` does not say where it is",
            label="asks nobody",
            help="add `prometheus: {url: http://<Service>.<namespace>:9090}` to the Cluster",
        )
    if scaling.metric is not None and not _SERIES.fullmatch(scaling.metric):
        yield Finding(
            at / "metric",
            f"`{scaling.metric}` is no name of a metric in Prometheus",
            label="letters, digits, `_` and `:`",
            help="write its name as Prometheus has it, or a `query`",
        )


_SERIES = regex(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@check("GPU525", "never-wakes")
def never_wakes(plan: Plan) -> Iterator[Finding]:
    """A service goes to zero pods, and follows what only pods say: it would never have one again.

    ## Why
    Without pods nobody counts their requests, their queue or their use of a GPU. Prometheus answers with nothing, which
    KEDA takes for 0 (`ExecutePromQuery` in `pkg/scalers/prometheus_scaler.go` of kedacore/keda): nothing to do. Its
    webhook refuses the use of CPU as the only trigger of such a service (`verifyCPUMemoryScalers` in
    `apis/keda/v1alpha1/scaledobject_webhook.go`).

    ## Instead
    Follow what is there without pods, by a `query`: requests that a gateway counts, or the length of a queue. Somebody
    has to hold requests until a pod is ready: a queue does, and most gateways answer 503.
    """
    for workload, work in plan.work_of(Inference):
        scaling = work.autoscaling
        if scaling is None or scaling.min_replicas != 0:
            continue
        at, zero = workload.work_at / "autoscaling", "no pods, and no metric"
        measures = (
            ("requestsPerSecond", scaling.requests_per_second),
            ("waitingRequests", scaling.waiting_requests),
            ("cpuPercent", scaling.cpu_percent),
            ("gpuPercent", scaling.gpu_percent),
        )
        for field, value in measures:
            if value is not None:
                yield Finding(
                    at / field,
                    f"`{workload.name}` would have no pods for ever: `{field}` is what pods say",
                    label="says nothing without pods",
                    related=(Label(at / "minReplicas", zero),),
                    help="write `query: {promql: <what a gateway or a queue counts>, perPod: <how much>}`, "
                    "or `minReplicas: 1`",
                )
        asked = _OF_PODS.search(scaling.query.promql) if scaling.query else None
        if asked is not None:
            yield Finding(
                at / "query" / "promql",
                f"`{asked[0]}` is what pods say, and `{workload.name}` may have none",
                label="says nothing without pods",
                related=(Label(at / "minReplicas", zero),),
                help="ask what a gateway or a queue counts, or write `minReplicas: 1`",
                severity=Severity.WARNING,
            )


_OF_PODS = regex(r"\bvllm:[a-z_]+|\bDCGM_FI_[A-Z_]+|\bcontainer_[a-z_]+")
"""Metrics of servers, of their GPUs and of their containers."""
