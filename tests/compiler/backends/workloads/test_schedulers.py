"""What each scheduler finds on a workload."""

from __future__ import annotations

import pytest

from gpuplan.compiler.backends import kai, kueue
from gpuplan.compiler.manifests import Manifest, check_schemas
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.schedulers import traits_of
from gpuplan.compiler.planning.schedulers.kubernetes import DEFAULT_SCHEDULER
from gpuplan.compiler.policy.models import SchedulerKind
from tests.compiler.backends.workloads.rendered import SERVICE, TRAINING, container_of, get, manifests, planned, pod_of

GANG = "training: {pods: 4, gang: 3}"
TOPOLOGY = "topology: [example.com/block, example.com/rack]"
LABELS = {"gpuplan.dev/tenant": "research", "gpuplan.dev/workload": "app"}
QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"


def fraction(amount: str) -> str:
    return f"{SERVICE}\nfraction: {amount}"


def of_kueue(plan: Plan, kind: str) -> Manifest:
    """The only object of a kind."""
    (found,) = (item for item in kueue.render(plan) if isinstance(item, Manifest) and item.kind == kind)
    return found


# --- Kubernetes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "spec"), [("Deployment", SERVICE), ("Job", GANG)])
def test_kubernetes_needs_nothing(kind: str, spec: str) -> None:
    found = get(kind, spec, pool=TOPOLOGY)
    assert found["metadata"].keys() == {"name", "namespace", "labels"}
    assert found["metadata"]["labels"] == LABELS
    assert found["spec"]["template"]["metadata"] == {"labels": LABELS}
    assert "schedulerName" not in found["spec"]["template"]["spec"]


@pytest.mark.parametrize("kind", SchedulerKind)
def test_pods_name_a_scheduler_that_is_none_of_the_cluster_s_own(kind: SchedulerKind) -> None:
    """A pod that names none is placed by kube-scheduler, whatever else is installed."""
    own = [name for name in traits_of(kind).pod_schedulers if name != DEFAULT_SCHEDULER]
    spec = get("Deployment", scheduler=kind)["spec"]["template"]["spec"]
    assert [spec[name] for name in ("schedulerName",) if name in spec] == own


@pytest.mark.parametrize("kind", SchedulerKind)
def test_a_batch_is_the_job_that_a_training_is_whose_pods_need_nothing_of_one_another(kind: SchedulerKind) -> None:
    said = "{pods: 2, trials: 9, backoffLimitPerIndex: 1, maxFailedIndexes: 3, fatalExitCodes: [2], deadline: 2h}"
    assert get("Job", f"batch: {said}", scheduler=kind) == get("Job", f"training: {said}", scheduler=kind)


# --- Kueue -------------------------------------------------------------------------------------------------------


def test_kueue_queues_the_pods_of_a_deployment() -> None:
    """Its webhook writes the queue's name on the pods; what is there already is no difference to Git."""
    queued = {**LABELS, QUEUE: "default", PRIORITY: "urgent"}
    found = get("Deployment", scheduler="kueue")
    assert found["metadata"]["labels"] == queued
    assert found["spec"]["template"]["metadata"] == {"labels": queued}


def test_kueue_queues_a_job_as_a_whole() -> None:
    found = get("Job", TRAINING, scheduler="kueue")
    assert found["metadata"]["labels"] == {**LABELS, QUEUE: "default", PRIORITY: "urgent"}
    assert found["spec"]["template"]["metadata"] == {"labels": LABELS}


def test_a_job_that_runs_already_is_another_one_for_kueue() -> None:
    """`ValidateJobOnUpdate` in `pkg/controller/jobframework/validation.go`: what runs keeps the queue that it has."""
    names = {get("Job", TRAINING, scheduler=scheduler)["metadata"]["name"] for scheduler in ("kubernetes", "kueue")}
    assert len(names) == 2


def test_the_queue_is_one_that_kueue_has() -> None:
    plan = planned(TRAINING, scheduler="kueue")
    queue = of_kueue(plan, "LocalQueue")
    labels = get("Job", TRAINING, scheduler="kueue")["metadata"]["labels"]
    assert (queue.folder, queue.name) == ("namespaces/lab", labels[QUEUE])


def test_whether_a_job_runs_is_not_in_git() -> None:
    """`ApplyDefaultForSuspend` in `pkg/controller/jobs/job/job_webhook.go` of Kueue suspends every new Job."""
    found = get("Job", GANG, scheduler="kueue")
    assert "suspend" not in found["spec"]
    assert "annotations" not in found["metadata"]


def test_what_kueue_adds_to_a_job_is_there_already() -> None:
    """`Merge` in `pkg/podset/podset.go` of Kueue: equal tolerations and labels are not added a second time."""
    plan = planned(TRAINING, scheduler="kueue")
    flavor = of_kueue(plan, "ResourceFlavor")
    pod = pod_of("Job", TRAINING, scheduler="kueue")["spec"]
    assert pod["tolerations"] == flavor.body["spec"]["tolerations"]
    assert pod["nodeSelector"] == flavor.body["spec"]["nodeLabels"]


def test_kueue_puts_a_gang_close_together() -> None:
    pod = pod_of("Job", GANG, scheduler="kueue", pool=TOPOLOGY)
    assert pod["metadata"]["annotations"] == {"kueue.x-k8s.io/podset-preferred-topology": "example.com/rack"}


@pytest.mark.parametrize(("kind", "document"), [("Job", TRAINING), ("Deployment", SERVICE)])
def test_kueue_places_others_by_topology_only_if_they_say_that_any_place_will_do(kind: str, document: str) -> None:
    """`checkPodSetAndFlavorMatchForTAS` in `pkg/scheduler/flavorassigner/tas_flavorassigner.go` of Kueue."""
    pod = pod_of(kind, document, scheduler="kueue", pool=TOPOLOGY)
    assert pod["metadata"]["annotations"] == {"kueue.x-k8s.io/podset-unconstrained-topology": "true"}


@pytest.mark.parametrize("scheduler", ["kai", "runai"])
def test_pods_that_may_start_alone_may_be_anywhere(scheduler: str) -> None:
    found = get("Job", TRAINING, scheduler=scheduler, pool=TOPOLOGY)
    assert "annotations" not in found["metadata"]
    assert "annotations" not in found["spec"]["template"]["metadata"]


# --- KAI-Scheduler -----------------------------------------------------------------------------------------------


def test_kai_finds_queue_shard_and_scheduler_on_the_pods() -> None:
    found = get("Deployment", scheduler="kai")
    pod = found["spec"]["template"]
    assert found["metadata"]["labels"] == LABELS
    assert pod["spec"]["schedulerName"] == "kai-scheduler"
    assert pod["metadata"] == {
        "labels": {
            **LABELS,
            "kai.scheduler/queue": "research-gpus",
            "kai.scheduler/node-pool": "gpus",
            "kai.scheduler/preemptibility": "non-preemptible",
        }
    }


def test_the_queue_and_the_shard_are_ones_that_kai_has() -> None:
    labels = pod_of("Deployment", scheduler="kai")["metadata"]["labels"]
    found = {(item.kind, item.name): item.body for item in kai.objects(planned(scheduler="kai"))}
    queue = found["Queue", labels["kai.scheduler/queue"]]
    assert queue["metadata"]["labels"]["kai.scheduler/node-pool"] == labels["kai.scheduler/node-pool"]
    shard = found["SchedulingShard", "gpus"]
    assert shard["spec"]["partitionLabelValue"] == labels["kai.scheduler/node-pool"]


def test_kai_may_evict_what_its_class_lets_go() -> None:
    pod = pod_of("Job", TRAINING, scheduler="kai", priority="spare")
    assert pod["metadata"]["labels"]["kai.scheduler/preemptibility"] == "preemptible"


def test_kai_reads_a_gang_from_the_job() -> None:
    """`calcMinMember` in `pkg/podgrouper/podgrouper/plugins/job/job_grouper.go`: without it one pod may start alone."""
    assert get("Job", GANG, scheduler="kai")["metadata"]["annotations"] == {"kai.scheduler/batch-min-member": "3"}


@pytest.mark.parametrize("how", ["required", "preferred"])
def test_a_level_that_is_named_holds_with_or_without_a_gang(how: str) -> None:
    spec = f"training: {{pods: 4, topology: {{{how}: example.com/block}}}}"
    kueue = pod_of("Job", spec, scheduler="kueue", pool=TOPOLOGY)
    assert kueue["metadata"]["annotations"] == {f"kueue.x-k8s.io/podset-{how}-topology": "example.com/block"}
    assert get("Job", spec, scheduler="kai", pool=TOPOLOGY)["metadata"]["annotations"] == {
        "kai.scheduler/topology": "gpus",
        f"kai.scheduler/topology-{how}-placement": "example.com/block",
    }


def test_kai_puts_a_gang_close_together_by_the_pools_topology() -> None:
    annotations = get("Job", GANG, scheduler="kai", pool=TOPOLOGY)["metadata"]["annotations"]
    assert annotations == {
        "kai.scheduler/batch-min-member": "3",
        "kai.scheduler/topology": "gpus",
        "kai.scheduler/topology-preferred-placement": "example.com/rack",
    }
    plan = planned(GANG, scheduler="kai", pool=TOPOLOGY)
    assert "gpus" in [item.name for item in kai.objects(plan) if item.kind == "Topology"]


@pytest.mark.parametrize("scheduler", ["kai", "runai"])
def test_a_fraction_is_asked_for_by_annotation_and_never_beside_a_gpu(scheduler: str) -> None:
    """`gpu_request_validator.go` of KAI-Scheduler refuses pods that ask for both."""
    more = {"scheduler": scheduler, "sharing": "fraction: {}"}
    assert pod_of("Deployment", fraction("0.33"), **more)["metadata"]["annotations"] == {"gpu-fraction": "0.33"}
    assert "resources" not in container_of("Deployment", fraction("0.33"), **more)


@pytest.mark.parametrize("scheduler", ["kai", "runai"])
@pytest.mark.parametrize(("amount", "mib"), [("10Gi", "10240"), ("2000Mi", "2000"), ("10G", "9537")])
def test_memory_of_a_gpu_is_asked_for_in_mib(scheduler: str, amount: str, mib: str) -> None:
    more = {"scheduler": scheduler, "sharing": "fraction: {}"}
    pod = pod_of("Deployment", fraction(f"{{memory: {amount}}}"), **more)
    assert pod["metadata"]["annotations"] == {"gpu-memory": mib}
    assert "resources" not in container_of("Deployment", fraction(f"{{memory: {amount}}}"), **more)


def test_nor_is_a_gpu_asked_for_where_the_pool_hands_out_whole_ones() -> None:
    """That is an error, GPU580; whoever suppresses it gets pods that are refused for one reason, not for two."""
    assert "resources" not in container_of("Deployment", fraction("0.5"), scheduler="kai")


def test_kai_gives_the_least_of_a_range() -> None:
    more = {"scheduler": "kai", "sharing": "fraction: {}"}
    pod = pod_of("Deployment", fraction("{min: 0.25, max: 0.75}"), **more)
    assert pod["metadata"]["annotations"] == {"gpu-fraction": "0.25"}


# --- Run:ai ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("most", "portion", "variable"), [("0.75", "0.75", "0.75"), ("1", "0.99999", "1.0")])
def test_runai_gives_a_range(most: str, portion: str, variable: str) -> None:
    """By the annotation of 3.0, which must be below 1, and by the variable of 2.26."""
    more = {"scheduler": "runai", "sharing": "fraction: {}"}
    pod = pod_of("Deployment", fraction(f"{{min: 0.25, max: {most}}}"), **more)
    limit = {"kai.scheduler/container.main.gpu-memory.portion.limit": portion}
    assert pod["metadata"]["annotations"] == {"gpu-fraction": "0.25", **limit}
    assert pod["spec"]["containers"][0]["env"] == [{"name": "RUNAI_GPU_MEMORY_LIMIT", "value": variable}]


@pytest.mark.parametrize("asked", ["0.25", "{min: 0.25}", "{memory: 5Gi}"])
def test_runai_has_no_limit_without_a_range(asked: str) -> None:
    pod = pod_of("Deployment", fraction(asked), scheduler="runai", sharing="fraction: {}")
    assert len(pod["metadata"]["annotations"]) == 1
    assert "env" not in pod["spec"]["containers"][0]


def test_runai_finds_node_pool_and_scheduler_on_the_pods() -> None:
    pod = pod_of("Deployment", scheduler="runai")
    assert pod["spec"]["schedulerName"] == "runai-scheduler"
    assert pod["metadata"] == {"labels": {**LABELS, "runai/node-pool": "gpus"}}


def test_runai_is_told_the_gang_and_no_topology_that_it_has_not() -> None:
    found = get("Job", GANG, scheduler="runai", pool=TOPOLOGY)
    assert found["metadata"]["annotations"] == {"kai.scheduler/batch-min-member": "3"}


# --- All ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", ["kubernetes", "kueue", "kai", "runai"])
@pytest.mark.parametrize("spec", [SERVICE, GANG])
def test_pods_choose_their_pool_under_every_scheduler(scheduler: str, spec: str) -> None:
    pod = pod_of("Deployment" if spec == SERVICE else "Job", spec, scheduler=scheduler)
    assert pod["spec"]["nodeSelector"] == {"gpuplan.dev/pool": "gpus"}
    assert pod["spec"]["priorityClassName"] == "urgent"


@pytest.mark.parametrize("scheduler", ["kubernetes", "kueue", "kai", "runai"])
@pytest.mark.parametrize("spec", [SERVICE, GANG])
def test_objects_fit_their_schemas(scheduler: str, spec: str) -> None:
    assert check_schemas(manifests(spec, scheduler=scheduler, pool=TOPOLOGY), "1.34") == ()
