"""How a template arrives as a pod, and which part of it is to blame for a refusal."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.admission.arriving import Body, arrivals, blamed, without
from gpuplan.compiler.admission.judging import Request, refusals
from gpuplan.compiler.admission.policies import policies
from tests.compiler.admission.platforms import SETTINGS, grants_of, platform

ASKING = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
SPEC = {"containers": [{"name": "main", **ASKING}], "nodeSelector": {"gpuplan.dev/pool": "whole"}}


def template(spec: Body) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "model"}}, "spec": spec}


LEADERS = {"leaderWorkerTemplate": {"workerTemplate": template(SPEC)}}
RAY = {"headGroupSpec": {"template": template(SPEC)}}


def made(kind: str, version: str, spec: Body, scheduler: str = "kubernetes") -> Body:
    """The pod of the only template that an object has."""
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "model"}, "spec": spec}
    _, pod = arrivals(platform(scheduler), body, {})
    return pod.body


def test_limits_become_texts_and_are_requested() -> None:
    limits = {"cpu": 2, "memory": "1.5Gi", "nvidia.com/gpu": "1000m"}
    resources = {"limits": limits, "requests": {"cpu": "500m"}}
    pod = made("Deployment", "apps/v1", {"template": template({"containers": [{"resources": resources}]})})

    assert pod["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "2", "memory": "1610612736", "nvidia.com/gpu": "1"},
        "requests": {"cpu": "500m", "memory": "1610612736", "nvidia.com/gpu": "1"},
    }


def test_a_pod_that_validation_refuses_does_not_arrive() -> None:
    resources = {"limits": {"nvidia.com/gpu": 1}, "requests": {"nvidia.com/gpu": 2}}
    spec = {"template": template({"containers": [{"resources": resources}]})}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "model"}, "spec": spec}

    assert [arrival.route for arrival in arrivals(platform("kubernetes"), body, {})] == [()]


def test_a_pod_has_the_number_of_its_class() -> None:
    spec = {**SPEC, "priorityClassName": "production"}
    assert made("Job", "batch/v1", {"template": template(spec)})["spec"]["priority"] == 1000
    assert made("Job", "batch/v1", {"template": template(SPEC)})["spec"]["priority"] == 0


@pytest.mark.parametrize(
    ("kind", "version", "spec", "owner", "is_gated"),
    [
        ("Deployment", "apps/v1", {"template": template(SPEC)}, "ReplicaSet", True),
        ("StatefulSet", "apps/v1", {"template": template(SPEC)}, "StatefulSet", True),
        ("Job", "batch/v1", {"template": template(SPEC)}, "Job", False),
        ("CronJob", "batch/v1", {"jobTemplate": {"spec": {"template": template(SPEC)}}}, "Job", False),
        (
            "JobSet",
            "jobset.x-k8s.io/v1alpha2",
            {"replicatedJobs": [{"template": {"spec": {"template": template(SPEC)}}}]},
            "Job",
            False,
        ),
        ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", LEADERS, "StatefulSet", True),
        ("RayCluster", "ray.io/v1", RAY, "RayCluster", True),
        ("RayService", "ray.io/v1", {"rayClusterConfig": RAY}, "RayCluster", True),
        ("Job", "example.com/v1", {"template": template(SPEC)}, "Job", True),
    ],
)
def test_kueue_holds_back_pods_that_no_job_owns(
    kind: str, version: str, spec: Body, owner: str, is_gated: bool
) -> None:
    pod = made(kind, version, spec, scheduler="kueue")

    assert pod["metadata"]["ownerReferences"][0]["kind"] == owner
    assert ("schedulingGates" in pod["spec"]) is is_gated


@pytest.mark.parametrize(
    ("kind", "version", "spec", "owner"),
    [
        ("RayService", "ray.io/v1", {"rayClusterConfig": RAY}, "RayCluster"),
        ("TrainJob", "trainer.kubeflow.org/v1alpha1", {"template": template(SPEC)}, "Job"),
        ("MPIJob", "kubeflow.org/v2beta1", {"mpiReplicaSpecs": {"Worker": {"template": template(SPEC)}}}, "MPIJob"),
    ],
)
def test_kueue_holds_back_the_owners_that_it_is_told_of(kind: str, version: str, spec: Body, owner: str) -> None:
    pod = made(kind, version, spec, scheduler="kueue, frameworks")

    assert pod["metadata"]["ownerReferences"][0]["kind"] == owner
    assert "schedulingGates" not in pod["spec"]


@pytest.mark.parametrize(
    ("kind", "version", "selector", "sent"),
    [
        ("Job", "batch/v1", {}, "whole"),
        ("Job", "batch/v1", {"zone": "a"}, "whole"),
        ("Job", "batch/v1", {"gpuplan.dev/pool": "split"}, "split"),
        ("Deployment", "apps/v1", {}, None),
        ("Job", "example.com/v1", {}, None),
    ],
)
def test_kueue_sends_what_it_starts_to_a_pool_of_its_queue(
    kind: str, version: str, selector: Body, sent: str | None
) -> None:
    plan = platform("kueue")
    [tenant] = [found for found in plan.tenants if found.name == "research"]
    spec = {"template": template({**SPEC, "nodeSelector": selector})}
    _, pod = arrivals(plan, {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}, {}, tenant)

    assert pod.body["spec"]["nodeSelector"].get("gpuplan.dev/pool") == sent
    assert selector.items() <= pod.body["spec"]["nodeSelector"].items()


def test_kai_makes_a_group_of_a_pod_with_the_labels_of_its_owner_first() -> None:
    label = "kai.scheduler/queue"
    pod = {"metadata": {"labels": {label: "of-pod"}}, "spec": {**SPEC, "schedulerName": "kai-scheduler"}}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": {"template": pod}}
    *_, group = arrivals(platform("kai"), body, {})
    assert group.body["spec"] == {"queue": "of-pod", "priorityClassName": "train"}
    assert group.source(()) == ("spec", "template", "metadata", "labels", label)
    assert group.source(("spec", "priorityClassName")) == ()

    *_, owned = arrivals(platform("kai"), {**body, "metadata": {"labels": {label: "of-job"}}}, {})
    assert owned.body["spec"]["queue"] == "of-job"
    assert owned.source(()) == ("metadata", "labels", label)


def test_kai_makes_no_group_of_pods_of_another_scheduler() -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": SPEC}
    assert [arrival.body["kind"] for arrival in arrivals(platform("kai"), body, {})] == ["Pod"]


def refused(pod: Body) -> bool:
    setting = "kubernetes"
    request = Request(pod, parameters=grants_of(setting, "research"))
    return any(refusals(policies(platform(setting)), request))


def a_pod(**spec: Any) -> Body:
    """A pod of the tenant `research` that is let in but for what is said."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "annotations": {}},
        "spec": {**SPEC, "containers": [{"name": "main"}], **spec},
    }


def test_a_field_that_is_wrong_is_to_blame() -> None:
    assert not refused(a_pod())
    assert blamed(a_pod(nodeName="gpu-1"), refused) == [("spec", "nodeName")]


def test_each_container_that_is_wrong_is_to_blame() -> None:
    bad = {"name": "a", "env": [{"name": "PATH", "value": "/"}, {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
    good = {"name": "b"}

    assert blamed(a_pod(containers=[good, bad], initContainers=[bad]), refused) == [
        ("spec", "containers", 1, "env", 1),
        ("spec", "initContainers", 0, "env", 1),
    ]


def test_each_variable_and_annotation_that_is_wrong_is_to_blame() -> None:
    names = ("CUDA_VERSION", "PATH", "NVIDIA_VISIBLE_DEVICES")
    bad = {"name": "a", "env": [{"name": name, "value": "all"} for name in names]}
    annotations = {"cdi.k8s.io/a": "b", "c": "d", "cdi.k8s.io/e": "f"}

    assert blamed(a_pod(containers=[bad]), refused) == [
        ("spec", "containers", 0, "env", 0),
        ("spec", "containers", 0, "env", 2),
    ]
    assert blamed({**a_pod(), "metadata": {"annotations": annotations}}, refused) == [
        ("metadata", "annotations", "cdi.k8s.io/a"),
        ("metadata", "annotations", "cdi.k8s.io/e"),
    ]


def test_nothing_is_to_blame_for_what_cannot_be_taken_away() -> None:
    assert blamed(a_pod(), lambda _: True) == [()]


def test_parts_are_taken_away_whatever_their_order() -> None:
    body = {"spec": {"a": [1, 2, 3], "b": {"c": 4}}}
    assert without(body, [("spec", "a", 0), ("spec", "b", "c"), ("spec", "a", 2)]) == {"spec": {"a": [2], "b": {}}}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_pod_without_gpus_is_let_in_everywhere(setting: str) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "main"}]}}
    (pod,) = arrivals(platform(setting), body, {})
    request = Request(pod.body, parameters=grants_of(setting, "web"))
    names = ("gpuplan-grants", "gpuplan-devices")

    assert [*refusals([policy for policy in policies(platform(setting)) if policy.name in names], request)] == []
