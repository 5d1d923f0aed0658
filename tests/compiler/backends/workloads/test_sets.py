"""JobSets and TrainJobs by value, and what each scheduler finds on them."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.manifests import check_schemas
from gpuplan.compiler.manifests.crds import served
from tests.compiler.backends.workloads.rendered import container_of, get, manifests, pod_of
from tests.compiler.backends.workloads.test_trace import leaves

LABELS = {"gpuplan.dev/tenant": "research", "gpuplan.dev/workload": "app"}
QUEUED = {**LABELS, "kueue.x-k8s.io/queue-name": "default", "kueue.x-k8s.io/priority-class": "urgent"}
GANG = "kai.scheduler/batch-min-member"
TOPOLOGY = "topology: [example.com/block, example.com/rack]"
SCHEDULERS = ("kubernetes", "kueue", "kai", "runai")


def a_set(training: str = "") -> str:
    return f"training: {{kind: JobSet, pods: 4{training}}}"


def a_train_job(training: str = "") -> str:
    return f"training: {{kind: TrainJob, pods: 4{training}}}"


def job_of(spec: str, **more: str) -> Any:
    """The only Job of the set, or of what a TrainJob's set is made of."""
    kind = "JobSet" if "JobSet" in spec else "TrainingRuntime"
    found = get(kind, spec, **more)["spec"]
    (job,) = found["replicatedJobs"] if kind == "JobSet" else found["template"]["spec"]["replicatedJobs"]
    return job


def variables_of(kind: str, spec: str) -> dict[str, object]:
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in container_of(kind, spec)["env"]}


# --- JobSets -----------------------------------------------------------------------------------------------------


def test_a_set_is_one_job_that_fails_with_its_first_pod_and_is_made_again() -> None:
    """`Recreate` in `api/jobset/v1alpha2/jobset_types.go`: what starts again are all pods."""
    spec = get("JobSet", a_set(", backoffLimit: 5"))["spec"]
    assert spec["failurePolicy"]["maxRestarts"] == 5
    job = job_of(a_set(", backoffLimit: 5"))
    assert (job["name"], job["replicas"]) == ("node", 1)
    counts = {field: job["template"]["spec"][field] for field in ("parallelism", "completions", "backoffLimit")}
    assert counts == {"parallelism": 4, "completions": 4, "backoffLimit": 0}
    assert job["template"]["spec"]["completionMode"] == "Indexed"


def test_all_start_again_when_one_pod_makes_way_and_that_is_no_failure() -> None:
    (rule,) = job_of(a_set())["template"]["spec"]["podFailurePolicy"]["rules"]
    assert rule == {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    (rule,) = get("JobSet", a_set())["spec"]["failurePolicy"]["rules"]
    action = "RestartJobSetAndIgnoreMaxRestarts"
    assert rule == {"name": "evicted", "action": action, "onJobFailureReasons": ["PodFailurePolicy"]}


def test_beside_fatal_exits_making_way_is_a_failure_like_others() -> None:
    """Both have the reason `PodFailurePolicy`, and a fatal exit must not start for ever."""
    (rule,) = job_of(a_set(", fatalExitCodes: [2]"))["template"]["spec"]["podFailurePolicy"]["rules"]
    assert "onExitCodes" in rule
    rules = get("JobSet", a_set(", fatalExitCodes: [2]"))["spec"]["failurePolicy"]["rules"]
    assert [found["action"] for found in rules] == ["FailJobSet"]


@pytest.mark.parametrize(
    ("training", "reasons"),
    [
        (", deadline: 2h", ["DeadlineExceeded"]),
        (", fatalExitCodes: [2]", ["PodFailurePolicy"]),
        (", fatalExitCodes: [2], deadline: 2h", ["DeadlineExceeded", "PodFailurePolicy"]),
    ],
)
def test_what_is_final_for_the_job_is_final_for_the_set(training: str, reasons: list[str]) -> None:
    rule = get("JobSet", a_set(training))["spec"]["failurePolicy"]["rules"][0]
    assert rule == {"name": "final", "action": "FailJobSet", "onJobFailureReasons": reasons}


def test_its_pods_find_one_another_by_the_names_that_jobset_gives_them() -> None:
    """`GenPodName` in `pkg/util/placement/placement.go`, and `GetSubdomain` in `pkg/controllers/jobset_controller.go`:
    `<set>-<job>-<number>-<index>` in the subdomain that has the set's name."""
    name = get("JobSet", a_set(", peers: {port: 23456}"))["metadata"]["name"]
    found = variables_of("JobSet", a_set(", peers: {port: 23456}"))
    assert found["MASTER_ADDR"] == found["PET_MASTER_ADDR"] == f"{name}-node-0-0.{name}"
    assert (found["PET_MASTER_PORT"], found["PET_NNODES"], found["WORLD_SIZE"]) == ("23456", "4", "4")
    assert [item.kind for item in manifests(a_set(", peers: {port: 23456}"))] == ["JobSet"]


@pytest.mark.parametrize(("training", "has_names"), [(", peers: {}", True), ("", False)])
def test_only_those_who_find_one_another_get_a_service(training: str, has_names: bool) -> None:
    assert get("JobSet", a_set(training))["spec"]["network"] == {"enableDNSHostnames": has_names}


def test_names_of_pods_fit_a_label() -> None:
    """With the end that each pod's name gets (`ValidateCreate` in `pkg/webhooks/jobset_webhook.go`)."""
    name = get("JobSet", "training: {kind: JobSet, pods: 1000}", name="a" * 63)["metadata"]["name"]
    assert len(f"{name}-node-0-999-abcde") == 63


def test_another_image_is_another_set() -> None:
    names = {get("JobSet", f"{a_set()}\nargs: [{word}]")["metadata"]["name"] for word in ("a", "b")}
    assert len(names) == 2


# --- TrainJobs ---------------------------------------------------------------------------------------------------


def test_a_train_job_names_a_runtime_of_its_own_that_comes_before_it() -> None:
    runtime, job = manifests(a_train_job())
    assert (runtime.kind, job.kind) == ("TrainingRuntime", "TrainJob")
    assert runtime.order < job.order
    reference = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": runtime.name}
    assert job.body["spec"] == {"runtimeRef": reference}
    assert job.name == runtime.name


def test_trainer_takes_the_set_as_it_is() -> None:
    """It asks for a container of its own of a Job that has the label of a step (`validateReplicatedJobs` in
    `pkg/webhooks/trainingruntime_webhook.go`); of others it keeps the number of pods (`RuntimeInfo` in
    `pkg/runtime/core/trainingruntime.go`)."""
    job = job_of(a_train_job())
    assert "metadata" not in job["template"]
    assert job["template"]["spec"]["parallelism"] == 4
    assert get("TrainingRuntime", a_train_job())["spec"].keys() == {"template"}


def test_a_train_job_s_pods_are_those_of_a_set() -> None:
    """Trainer calls the set as the TrainJob (`Build` in `pkg/runtime/framework/plugins/jobset/jobset.go`)."""
    spec = a_train_job(", peers: {}")
    name = get("TrainJob", spec)["metadata"]["name"]
    assert variables_of("TrainingRuntime", spec)["PET_MASTER_ADDR"] == f"{name}-node-0-0.{name}"
    ours, theirs = pod_of("JobSet", a_set(", peers: {}")), pod_of("TrainingRuntime", spec)
    named = str(theirs).replace(name, get("JobSet", a_set(", peers: {}"))["metadata"]["name"])
    assert str(ours) == named


# --- Schedulers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "spec"), [("JobSet", a_set()), ("TrainJob", a_train_job())])
def test_kueue_queues_the_whole(kind: str, spec: str) -> None:
    """`suspend` is Kueue's to write, as on a Job."""
    found = get(kind, spec, scheduler="kueue")
    assert found["metadata"]["labels"] == QUEUED
    assert "suspend" not in found["spec"]
    assert job_of(spec, scheduler="kueue")["template"]["spec"]["template"]["metadata"]["labels"] == LABELS


def test_kueue_finds_the_level_of_topology_on_the_pods() -> None:
    pod = pod_of("JobSet", a_set(", gang: 4"), scheduler="kueue", pool=TOPOLOGY)
    assert pod["metadata"]["annotations"] == {"kueue.x-k8s.io/podset-preferred-topology": "example.com/rack"}


@pytest.mark.parametrize("scheduler", ["kai", "runai"])
@pytest.mark.parametrize(("training", "together"), [(", gang: 3", "3"), ("", "1")])
@pytest.mark.parametrize("spec", [a_set, a_train_job])
def test_kai_finds_on_the_job_of_a_set_how_many_start_together(
    spec: Any, training: str, together: str, scheduler: str
) -> None:
    """Without a number it takes all of them for a gang."""
    job = job_of(spec(training), scheduler=scheduler)
    assert job["template"]["metadata"]["annotations"] == {GANG: together}


def test_kai_finds_the_topology_on_the_set() -> None:
    """Also on one that Trainer makes, which takes the annotations of the runtime's template."""
    expected = {
        GANG: "4",
        "kai.scheduler/topology": "gpus",
        "kai.scheduler/topology-preferred-placement": "example.com/rack",
    }
    found = get("JobSet", a_set(", gang: 4"), scheduler="kai", pool=TOPOLOGY)
    assert found["metadata"]["annotations"] == expected
    runtime = get("TrainingRuntime", a_train_job(", gang: 4"), scheduler="kai", pool=TOPOLOGY)
    assert runtime["spec"]["template"]["metadata"]["annotations"] == expected


@pytest.mark.parametrize("spec", [a_set(), a_train_job()])
def test_pods_name_their_scheduler_and_their_class(spec: str) -> None:
    pod = job_of(spec, scheduler="kai")["template"]["spec"]["template"]["spec"]
    assert (pod["schedulerName"], pod["priorityClassName"]) == ("kai-scheduler", "urgent")


# --- Definitions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("spec", [a_set, a_train_job])
def test_every_release_that_knows_the_rules_takes_them(spec: Any, scheduler: str) -> None:
    """`onJobFailureReasons` came with JobSet v0.6."""
    everything = f"{spec(', gang: 4, peers: {}, deadline: 2h, fatalExitCodes: [2]')}\nmodel: {{size: 1Gi}}"
    found = [item for item in manifests(everything, scheduler=scheduler, pool=TOPOLOGY) if item.body["kind"] != "Job"]
    for release in releases("JobSet"):
        assert check_schemas(found, "1.34", None, {"jobset": release}) == (), release
    for release in releases("TrainJob"):
        assert check_schemas(found, "1.34", None, {"trainer": release}) == (), release


GROUPS = {"JobSet": "jobset.x-k8s.io", "TrainJob": "trainer.kubeflow.org"}


def releases(kind: str) -> list[str]:
    known = [release for item in served(GROUPS[kind], kind) for release in item.releases]
    return [release for release in known if release != "v0.5.2"]


# --- Where it comes from -----------------------------------------------------------------------------------------


def test_the_parts_of_a_set_are_traced() -> None:
    found = leaves("JobSet", a_set(", peers: {}, deadline: 2h, backoffLimit: 1"))
    job = "spec.replicatedJobs[0].template.spec"
    assert found["spec.failurePolicy.maxRestarts"] == ["copied Workload/app spec.training.backoffLimit"]
    reason = found["spec.failurePolicy.rules[0].onJobFailureReasons[0]"]
    assert "chosen by Workload/app spec.training.deadline" in reason
    assert "copied Workload/app spec.training.pods" in found[f"{job}.parallelism"]
    assert "copied Workload/app spec.image" in found[f"{job}.template.spec.containers[0].image"]
    assert "chosen by Workload/app spec.training.peers" in found["spec.network.enableDNSHostnames"]


def test_the_parts_of_a_runtime_are_traced() -> None:
    found = leaves("TrainingRuntime", a_train_job(), scheduler="kai")
    job = "spec.template.spec.replicatedJobs[0].template.spec"
    assert "copied Workload/app spec.training.pods" in found[f"{job}.parallelism"]
    assert "copied Workload/app spec.image" in found[f"{job}.template.spec.containers[0].image"]
