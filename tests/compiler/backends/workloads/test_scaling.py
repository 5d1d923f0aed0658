"""What lets the number of pods follow the load by KEDA."""

from __future__ import annotations

import re

import pytest

from gpuplan.compiler.manifests import check_schemas
from tests.compiler.backends.workloads.rendered import get, manifests
from tests.compiler.backends.workloads.test_outside import LABELS

KEDA = "apis: [LeaderWorkerSet, ScaledObject]\nprometheus: {url: 'http://prometheus.monitoring:9090'}"
QUERY = "query: {promql: 'sum(rate(gateway_requests_total[2m]))', perPod: 2.5, idle: 0.1}"
ZERO = f"inference: {{autoscaling: {{minReplicas: 0, maxReplicas: 4, cooldown: 30m, {QUERY}}}}}"
PODS = 'namespace="lab",pod=~"app-[a-z0-9]+-[a-z0-9]{5}"'

EXPORTED = 'exported_namespace="lab",exported_pod=~"app-[a-z0-9]+-[a-z0-9]{5}"'


def asked(follows: str, cluster: str = KEDA) -> object:
    spec = f"inference: {{autoscaling: {{maxReplicas: 4, kind: ScaledObject, {follows}}}}}"
    (trigger,) = get("ScaledObject", spec, cluster=cluster)["spec"]["triggers"]
    return trigger


def test_a_service_that_goes_to_zero_as_a_whole() -> None:
    assert get("ScaledObject", ZERO, cluster=KEDA) == {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {
            "name": "app",
            "namespace": "lab",
            "labels": LABELS,
            "annotations": {"scaledobject.keda.sh/transfer-hpa-ownership": "true"},
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"},
            "minReplicaCount": 0,
            "maxReplicaCount": 4,
            "cooldownPeriod": 1800,
            "advanced": {"horizontalPodAutoscalerConfig": {"name": "app"}},
            "triggers": [
                {
                    "type": "prometheus",
                    "metadata": {
                        "serverAddress": "http://prometheus.monitoring:9090",
                        "query": "sum(rate(gateway_requests_total[2m]))",
                        "threshold": "2.5",
                        "activationThreshold": "0.1",
                    },
                }
            ],
        },
    }


def test_keda_makes_the_only_autoscaler_and_nobody_states_the_number_of_pods() -> None:
    objects = {item.kind: item.body for item in manifests(ZERO, cluster=KEDA)}

    assert "HorizontalPodAutoscaler" not in objects
    assert "replicas" not in objects["Deployment"]["spec"]


@pytest.mark.parametrize(
    ("follows", "query", "threshold"),
    [
        ("waitingRequests: 5", f"sum(vllm:num_requests_waiting{{{PODS}}})", "5"),
        ("waitingRequests: 5, metric: queue", f"sum(queue{{{PODS}}})", "5"),
        ("requestsPerSecond: 20", f"sum(rate(http_requests_total{{{PODS}}}[2m]))", "20"),
        ("gpuPercent: 80", f"sum(DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{EXPORTED}}})", "0.8"),
    ],
)
def test_prometheus_is_asked_of_the_service_s_own_pods(follows: str, query: str, threshold: str) -> None:
    metadata = {"serverAddress": "http://prometheus.monitoring:9090", "query": query, "threshold": threshold}

    assert asked(follows) == {"type": "prometheus", "metadata": metadata}


def test_labels_of_the_exporter_win_where_the_cluster_says_so() -> None:
    trigger = asked("gpuPercent: 80", f"{KEDA}\nmonitoring: {{honorLabels: true}}")

    assert f"{{{PODS}}}" in str(trigger)


def test_the_use_of_cpu_needs_no_prometheus() -> None:
    assert asked("cpuPercent: 70", "apis: [ScaledObject]") == {
        "type": "cpu",
        "metricType": "Utilization",
        "metadata": {"value": "70"},
    }


def test_prometheus_is_asked_with_a_token_where_there_is_one() -> None:
    trigger = asked("waitingRequests: 5", f"{KEDA.removesuffix('}')}, authentication: thanos}}")

    assert isinstance(trigger, dict)
    assert trigger["authenticationRef"] == {"kind": "ClusterTriggerAuthentication", "name": "thanos"}
    assert trigger["metadata"]["authModes"] == "bearer"


def test_replicas_of_several_pods_are_scaled_as_one() -> None:
    spec = "inference: {podsPerReplica: 2, autoscaling: {maxReplicas: 2, kind: ScaledObject, waitingRequests: 5}}"

    found = get("ScaledObject", spec, cluster=KEDA)["spec"]
    assert found["scaleTargetRef"]["kind"] == "LeaderWorkerSet"
    assert 'pod=~"app-[0-9]+"' in found["triggers"][0]["metadata"]["query"]


@pytest.mark.parametrize("cluster", ["", "apis: [ScaledObject]", "prometheus: {url: 'http://a.b:9090'}"])
def test_without_keda_or_prometheus_nothing_is_written(cluster: str) -> None:
    kinds = {item.kind for item in manifests(ZERO, cluster=cluster)}

    assert kinds == {"Deployment", "Service"}


@pytest.mark.parametrize("scheduler", ["kubernetes", "kueue", "kai", "runai"])
def test_scaled_objects_fit_their_schema(scheduler: str) -> None:
    assert list(check_schemas(manifests(ZERO, cluster=KEDA, scheduler=scheduler), "1.34")) == []


@pytest.mark.parametrize(
    ("name", "pods"),
    [
        ("a" * 46, ["a" * 46 + "-0123456789-abcde"]),
        # The API server keeps 58 characters before the five that it adds: the hyphen goes, or part of the hash.
        ("a" * 47, ["a" * 47 + "-0123456789abcde", "a" * 47 + "-012345678-abcde"]),
        ("a" * 52, ["a" * 52 + "-01234abcde"]),
    ],
)
def test_pods_with_long_names_are_asked_for_too(name: str, pods: list[str]) -> None:
    spec = "inference: {autoscaling: {maxReplicas: 4, kind: ScaledObject, waitingRequests: 5}}"
    (trigger,) = get("ScaledObject", spec, cluster=KEDA, name=name)["spec"]["triggers"]
    asked_for = re.search('pod=~"([^"]+)"', trigger["metadata"]["query"])
    assert asked_for
    assert all(re.fullmatch(asked_for[1], pod) for pod in pods)
    assert not re.fullmatch(asked_for[1], f"{name}-canary-0123456789-abcde")
