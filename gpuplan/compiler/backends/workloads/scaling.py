"""Autoscalers, by which the number of a service's pods follows the load: a HorizontalPodAutoscaler, or KEDA's
ScaledObject."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Final, assert_never

from gpuplan.compiler.backends.workloads.bodies import AFTER, Written, workload_object
from gpuplan.compiler.backends.workloads.tracing import Traces
from gpuplan.compiler.manifests import quantity
from gpuplan.compiler.manifests.bodies import given
from gpuplan.compiler.manifests.provenance import Links, Routes, chosen, copied, multiplied
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.planning.projects import seconds
from gpuplan.compiler.planning.serving import GPU_METRIC, asks_prometheus, autoscaler_kind, metric_of
from gpuplan.compiler.planning.sources import named
from gpuplan.compiler.policy.models import Api, AutoscalerKind, Autoscaling, Prometheus


def autoscaler(
    plan: Plan, workload: Workload, scaling: Autoscaling, maker: Mapping[str, Any], target: Links
) -> tuple[Written, ...]:
    """Return one of the two kinds, or none if the cluster lacks what it needs."""
    of = Traces(plan, workload)
    match autoscaler_kind(scaling):
        case AutoscalerKind.HORIZONTAL_POD_AUTOSCALER:
            routes = partial(_autoscaler_routes, of, target)
            return ((AFTER, _autoscaler(workload, scaling, maker), routes),)
        case AutoscalerKind.SCALED_OBJECT:
            cluster = plan.cluster.spec
            if Api.SCALED_OBJECT not in cluster.apis or (asks_prometheus(scaling) and cluster.prometheus is None):
                return ()
            return (
                (AFTER, _scaled_object(plan, workload, scaling, maker), partial(_scaled_routes, of, scaling, target)),
            )
        case unknown:
            assert_never(unknown)


def _target(maker: Mapping[str, Any]) -> dict[str, str]:
    return {"apiVersion": maker["apiVersion"], "kind": maker["kind"], "name": maker["metadata"]["name"]}


# --- HorizontalPodAutoscaler -------------------------------------------------------------------------------------


def _autoscaler(workload: Workload, scaling: Autoscaling, maker: Mapping[str, Any]) -> dict[str, Any]:
    """Return so many pods that each has at most its part of the load; metrics of pods come from an adapter."""
    load: dict[str, Any]
    if scaling.cpu_percent is not None:
        target = {"type": "Utilization", "averageUtilization": scaling.cpu_percent}
        load = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    else:
        average = {"type": "AverageValue", "averageValue": quantity(_each(scaling))}
        load = {"type": "Pods", "pods": {"metric": {"name": metric_of(scaling)}, "target": average}}
    spec = {
        "scaleTargetRef": _target(maker),
        "minReplicas": scaling.min_replicas,
        "maxReplicas": scaling.max_replicas,
        "metrics": [load],
    }
    return workload_object("autoscaling/v2", "HorizontalPodAutoscaler", workload.name, workload, spec=spec)


def _each(scaling: Autoscaling) -> Decimal:
    """Return how much of what is measured there may be for each pod."""
    if scaling.query is not None:
        return Decimal(str(scaling.query.per_pod))
    return Decimal(scaling.requests_per_second or scaling.waiting_requests or Decimal(scaling.gpu_percent or 0) / 100)


# --- ScaledObject ------------------------------------------------------------------------------------------------

_TRANSFER = {"scaledobject.keda.sh/transfer-hpa-ownership": "true"}


def _scaled_object(plan: Plan, workload: Workload, scaling: Autoscaling, maker: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ScaledObject, of which KEDA makes a HorizontalPodAutoscaler with the workload's name.

    KEDA's webhook refuses it while another autoscaler is there for the same pods, on a dry run as well, unless it may
    take that one over by its name (`verifyHpas` in `apis/keda/v1alpha1/scaledobject_webhook.go` of kedacore/keda). So
    the one that gpuplan wrote before goes on, and a name that KEDA would make of a longer prefix always fits.

    While Prometheus does not answer, KEDA leaves the number of pods as it is: no `fallback` says another one
    (`RequestScale` in `pkg/scaling/executor/scale_scaledobjects.go`).
    """
    idles = scaling.min_replicas == 0 and scaling.cooldown is not None
    spec = {
        "scaleTargetRef": _target(maker),
        "minReplicaCount": scaling.min_replicas,
        "maxReplicaCount": scaling.max_replicas,
        **({"cooldownPeriod": seconds(scaling.cooldown)} if idles and scaling.cooldown else {}),
        "advanced": {"horizontalPodAutoscalerConfig": {"name": workload.name}},
        "triggers": [_trigger(plan, workload, scaling, maker)],
    }
    return workload_object(
        "keda.sh/v1alpha1", "ScaledObject", workload.name, workload, annotations=_TRANSFER, spec=spec
    )


def _trigger(plan: Plan, workload: Workload, scaling: Autoscaling, maker: Mapping[str, Any]) -> dict[str, Any]:
    if scaling.cpu_percent is not None:
        return {"type": "cpu", "metricType": "Utilization", "metadata": {"value": str(scaling.cpu_percent)}}
    prometheus = plan.cluster.spec.prometheus or Prometheus.model_construct(url="")
    secret = prometheus.authentication
    idle = scaling.query.idle if scaling.query else 0
    metadata = given(
        serverAddress=prometheus.url,
        query=_query(plan, workload, scaling, maker),
        threshold=_number(_each(scaling)),
        activationThreshold=_number(Decimal(str(idle))) if idle else None,
        authModes="bearer" if secret else None,
    )
    reference = {"kind": "ClusterTriggerAuthentication", "name": secret} if secret else None
    return given(type="prometheus", metadata=metadata, authenticationRef=reference)


def _number(value: Decimal) -> str:
    return f"{value.normalize():f}"


def _query(plan: Plan, workload: Workload, scaling: Autoscaling, maker: Mapping[str, Any]) -> str:
    """Return one number for all pods, of which KEDA has each take its part.

    Requests are counted, so their rate is asked.
    """
    if scaling.query is not None:
        return scaling.query.promql
    metric = metric_of(scaling)
    monitoring = plan.cluster.spec.monitoring
    # What the DCGM exporter says of pods is renamed where Prometheus adds the labels of the exporter's own pod.
    prefix = "exported_" if metric == GPU_METRIC and not (monitoring and monitoring.honor_labels) else ""
    # Pods are called by their ReplicaSet, or by the number of their replica.
    name = maker["metadata"]["name"]
    suffix = "(-[a-z0-9]+)?" if len(name) + _HASH > _LONGEST_BASE else "-[a-z0-9]{5}"
    names = f"{name}-[0-9]+" if workload.is_grouped else f"{name}-[a-z0-9]+{suffix}"
    pods = f'{prefix}namespace="{workload.namespace}",{prefix}pod=~"{names}"'
    if scaling.requests_per_second is not None:
        return f"sum(rate({metric}{{{pods}}}[2m]))"
    return f"sum({metric}{{{pods}}})"


_HASH: Final = len("-0123456789-")
"""The part of a pod's name that its ReplicaSet adds to that of the Deployment, and the pod to that, before five
letters."""

_LONGEST_BASE: Final = 58
"""The length of a name that the API server keeps before the letters that it adds, without the hyphen where that is cut
(`maxNameLength` in `staging/src/k8s.io/apiserver/pkg/storage/names/generate.go` of kubernetes/kubernetes)."""


# --- Where it comes from -------------------------------------------------------------------------------------------


def _autoscaler_routes(of: Traces, target: Links) -> Routes:
    at = of.workload.work_at / "autoscaling"
    yield (), chosen(at / "kind")
    yield from of.metadata(named(of.workload))
    yield ("spec", "scaleTargetRef"), chosen(of.workload.work_at / "podsPerReplica", of.workload.work_at / "kind")
    yield ("spec", "scaleTargetRef", "name"), target
    yield ("spec", "minReplicas"), copied(at / "minReplicas")
    yield ("spec", "maxReplicas"), copied(at / "maxReplicas")
    pods, measures = ("spec", "metrics", 0, "pods"), ("requestsPerSecond", "waitingRequests", "gpuPercent")
    measured = chosen(*(at / measure for measure in (*measures, "cpuPercent")))
    yield ("spec", "metrics", 0, "type"), measured
    yield (*pods, "metric"), (*measured, *copied(at / "metric"))
    yield (*pods, "target", "averageValue"), copied(at / "requestsPerSecond", at / "waitingRequests")
    yield (*pods, "target", "averageValue"), multiplied(at / "gpuPercent")
    resource = ("spec", "metrics", 0, "resource")
    yield resource, chosen(at / "cpuPercent")
    yield (*resource, "target", "averageUtilization"), copied(at / "cpuPercent")


def _scaled_routes(of: Traces, scaling: Autoscaling, target: Links) -> Routes:
    at, prometheus = of.workload.work_at / "autoscaling", of.plan.cluster.at / "prometheus"
    yield (), chosen(at / "kind")
    yield from of.metadata(named(of.workload))
    yield ("spec", "scaleTargetRef"), chosen(of.workload.work_at / "podsPerReplica", of.workload.work_at / "kind")
    yield ("spec", "scaleTargetRef", "name"), target
    yield ("spec", "minReplicaCount"), copied(at / "minReplicas")
    yield ("spec", "maxReplicaCount"), copied(at / "maxReplicas")
    yield ("spec", "cooldownPeriod"), multiplied(at / "cooldown")
    yield ("spec", "cooldownPeriod"), chosen(at / "minReplicas")
    yield ("spec", "advanced"), named(of.workload)
    trigger = ("spec", "triggers", 0)
    measures = ("requestsPerSecond", "waitingRequests", "gpuPercent", "cpuPercent", "query")
    yield (*trigger, "type"), chosen(*(at / measure for measure in measures))
    metadata = (*trigger, "metadata")
    yield (*metadata, "value"), copied(at / "cpuPercent")
    yield (*metadata, "serverAddress"), copied(prometheus / "url")
    yield (*metadata, "threshold"), copied(at / "requestsPerSecond", at / "waitingRequests", at / "query" / "perPod")
    yield (*metadata, "threshold"), multiplied(at / "gpuPercent")
    yield (*metadata, "activationThreshold"), copied(at / "query" / "idle")
    yield (*metadata, "authModes"), chosen(prometheus / "authentication")
    yield (*trigger, "authenticationRef", "name"), copied(prometheus / "authentication")
    if scaling.query is not None:
        yield (*metadata, "query"), copied(at / "query" / "promql")
        return
    yield (*metadata, "query"), (*target, *chosen(*(at / measure for measure in measures)), *copied(at / "metric"))
    yield (*metadata, "query"), of.namespace()
    if scaling.gpu_percent is not None:
        yield (*metadata, "query"), chosen(of.plan.cluster.at / "monitoring" / "honorLabels")
