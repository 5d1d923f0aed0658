"""Services whose pods KServe makes."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests import Identity, check_schemas
from gpuplan.compiler.manifests.crds import served
from gpuplan.features.changes.kinds import Pair, class_of
from tests.compiler.backends.workloads.rendered import get, manifests, pod_of

SERVED = "inference: {kind: InferenceService, port: 8080, replicas: 2}"
SCALED = "inference: {kind: InferenceService, autoscaling: {minReplicas: 2, maxReplicas: 4, waitingRequests: 5}}"
DEPLOYMENT = Identity("apps", "Deployment", "lab", "app")
SCHEDULERS = ("kubernetes", "kueue", "kai", "runai")
LABELS = {"gpuplan.dev/tenant": "research", "gpuplan.dev/workload": "app"}


def served_by_kserve(spec: str = SERVED, **more: str) -> Any:
    return get("InferenceService", spec, **more)


def predictor(spec: str = SERVED, **more: str) -> Any:
    return served_by_kserve(spec, **more)["spec"]["predictor"]


def test_it_is_told_to_make_a_deployment_and_nothing_that_leads_there_from_outside() -> None:
    """KServe's own Ingress would have the workload's name, as the route of the policy has."""
    found = served_by_kserve()
    assert found["apiVersion"] == "serving.kserve.io/v1beta1"
    assert found["metadata"] == {
        "name": "app",
        "namespace": "lab",
        "labels": {**LABELS, "networking.kserve.io/visibility": "cluster-local"},
        "annotations": {"serving.kserve.io/deploymentMode": "RawDeployment"},
    }


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_its_pods_are_those_of_a_deployment(scheduler: str) -> None:
    """But for the name of the container, which KServe looks for."""
    spec = "\ncpu: '2'\nmemory: 4Gi\ncommand: [serve]\nenv: {A: b}"
    template = pod_of("Deployment", f"inference: {{port: 8080, replicas: 2}}{spec}", scheduler=scheduler)
    found = predictor(f"{SERVED}{spec}", scheduler=scheduler)
    own = {"minReplicas", "maxReplicas", "deploymentStrategy", "labels", "annotations"}
    template["spec"]["containers"][0]["name"] = "kserve-container"
    assert {key: value for key, value in found.items() if key not in own} == template["spec"]
    assert found["labels"] == template["metadata"]["labels"]
    assert found.get("annotations") == template["metadata"].get("annotations")


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_another_label_or_annotation_recreates_its_pods(field: str) -> None:
    """KServe hands them on; a Deployment's own are nobody's but its own."""
    before = served_by_kserve()
    metadata = before["metadata"]
    after = {**before, "metadata": {**metadata, field: {**metadata[field], "example.com/a": "b"}}}
    identity = Identity("serving.kserve.io", "InferenceService", "lab", "app")
    assert class_of(Pair("workloads/lab", identity, before, after)) is ChangeClass.RECREATE
    assert class_of(Pair("workloads/lab", DEPLOYMENT, before, after)) is ChangeClass.METADATA


def test_a_fixed_number_is_kept_by_the_autoscaler_of_kserve() -> None:
    """The Deployment that it makes says no number."""
    assert (predictor()["minReplicas"], predictor()["maxReplicas"]) == (2, 2)
    assert "HorizontalPodAutoscaler" not in [manifest.kind for manifest in manifests(SERVED)]


def test_the_policy_s_own_autoscaler_scales_the_deployment_of_kserve() -> None:
    annotations = served_by_kserve(SCALED)["metadata"]["annotations"]
    assert annotations["serving.kserve.io/autoscalerClass"] == "external"
    target = get("HorizontalPodAutoscaler", SCALED)["spec"]["scaleTargetRef"]
    assert target == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app-predictor"}


def test_no_pod_is_added_before_an_old_one_has_given_its_units_back() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    assert predictor()["deploymentStrategy"] == strategy


def test_the_service_leads_to_its_pods() -> None:
    assert get("Service", SERVED)["spec"]["selector"].items() <= predictor()["labels"].items()


def test_kueue_finds_the_queue_on_what_kserve_makes() -> None:
    """KServe hands on the labels of the object to the Deployment, and those of the predictor, too."""
    queue = {"kueue.x-k8s.io/queue-name": "default", "kueue.x-k8s.io/priority-class": "urgent"}
    found = served_by_kserve(scheduler="kueue")
    assert found["metadata"]["labels"].items() >= queue.items()
    assert found["spec"]["predictor"]["labels"].items() >= queue.items()


def test_an_annotation_about_the_container_has_its_name() -> None:
    found = predictor(f"{SERVED}\nfraction: {{min: 0.25, max: 0.5}}", scheduler="runai", sharing="fraction: {}")
    key = "kai.scheduler/container.kserve-container.gpu-memory.portion.limit"
    assert found["annotations"] == {"gpu-fraction": "0.25", key: "0.5"}


RELEASES = [release for item in served("serving.kserve.io", "InferenceService") for release in item.releases]


@pytest.mark.parametrize("release", RELEASES)
def test_its_definition_takes_what_is_written(release: str) -> None:
    """But that v0.12 has no strategy for Deployments, and drops the field."""
    for spec in (SERVED, SCALED):
        found = check_schemas(manifests(spec, scheduler="kueue"), "1.34", releases={"kserve": release})
        unknown = [problem.text for problem in found]
        assert len(unknown) == (1 if release.startswith("v0.12.") else 0)
        assert all("deploymentStrategy" in text for text in unknown)
