"""Services of which each replica is several pods."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.manifests import check_schemas
from tests.compiler.backends.workloads.rendered import get, manifests, planned

GROUPED = "inference: {port: 8080, replicas: 2, podsPerReplica: 4}"
SCALED = "inference: {podsPerReplica: 2, autoscaling: {minReplicas: 2, maxReplicas: 4, cpuPercent: 70}}\ncpu: '4'"
TOPOLOGY = "topology: [example.com/block, example.com/rack]"
SCHEDULERS = ("kubernetes", "kueue", "kai", "runai")
LABELS = {"gpuplan.dev/tenant": "research", "gpuplan.dev/workload": "app"}


def group_set(spec: str = GROUPED, **more: str) -> Any:
    return get("LeaderWorkerSet", spec, **more)


def template(role: str, spec: str = GROUPED, **more: str) -> Any:
    return group_set(spec, **more)["spec"]["leaderWorkerTemplate"][f"{role}Template"]


def container(role: str, spec: str) -> Any:
    (found,) = template(role, spec)["spec"]["containers"]
    return found


def test_a_leader_worker_set_makes_replicas_that_come_and_go_as_a_whole() -> None:
    found = group_set()
    assert (found["apiVersion"], found["metadata"]["name"]) == ("leaderworkerset.x-k8s.io/v1", "app")
    templates = found["spec"].pop("leaderWorkerTemplate")
    assert found["spec"] == {
        "replicas": 2,
        "startupPolicy": "LeaderCreated",
        "rolloutStrategy": {
            "type": "RollingUpdate",
            "rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": 0},
        },
        "networkConfig": {"subdomainPolicy": "UniquePerReplica"},
    }
    assert (templates["size"], templates["restartPolicy"]) == (4, "RecreateGroupOnPodRestart")


def test_one_pod_to_a_replica_is_a_deployment() -> None:
    kinds = [manifest.kind for manifest in manifests("inference: {podsPerReplica: 1}")]
    assert kinds == ["Deployment", "Service"]


def test_requests_reach_leaders_alone() -> None:
    assert get("Service", GROUPED)["spec"]["selector"] == {
        "gpuplan.dev/workload": "app",
        "leaderworkerset.sigs.k8s.io/worker-index": "0",
    }


def test_only_a_leader_listens_and_is_asked() -> None:
    leader, worker = container("leader", GROUPED), container("worker", GROUPED)
    assert leader["ports"] == [{"name": "http", "containerPort": 8080}]
    assert leader["readinessProbe"] == {"tcpSocket": {"port": "http"}}
    assert {"ports", "readinessProbe", "startupProbe"} & worker.keys() == set()
    assert worker["resources"] == leader["resources"]


@pytest.mark.parametrize(
    ("worker", "command", "args"),
    [
        ("", ["serve"], ["--lead"]),
        ("worker: {args: [--join]}", ["serve"], ["--join"]),
        ("worker: {command: [join]}", ["join"], None),
    ],
)
def test_workers_run_what_the_policy_says_or_what_the_leader_does(
    worker: str, command: list[str], args: list[str] | None
) -> None:
    spec = f"inference: {{podsPerReplica: 2, {worker}}}\ncommand: [serve]\nargs: [--lead]"
    found = container("worker", spec)
    assert (found["command"], found.get("args")) == (command, args)
    assert [container("leader", spec)[field] for field in ("command", "args")] == [["serve"], ["--lead"]]


def test_an_autoscaler_counts_replicas() -> None:
    found = get("HorizontalPodAutoscaler", SCALED)["spec"]
    target = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "app"}
    assert (found["scaleTargetRef"], found["minReplicas"], found["maxReplicas"]) == (target, 2, 4)
    assert "replicas" not in group_set(SCALED)["spec"]


@pytest.mark.parametrize(("spec", "most"), [(GROUPED, 8), (SCALED, 8)])
def test_all_pods_of_all_replicas_count(spec: str, most: int) -> None:
    (workload,) = planned(spec).workloads
    assert workload.most_pods == most


def test_a_long_name_leaves_room_for_what_the_controllers_add() -> None:
    """The workers' StatefulSet of replica 999 is a label of its pods, with a hash of ten characters behind it."""
    name = group_set(name="a" * 49)["metadata"]["name"]
    assert len(f"{name}-999-0123456789") <= 63
    assert name != group_set(name=f"{'a' * 48}b")["metadata"]["name"]
    assert group_set(name="a" * 48)["metadata"]["name"] == "a" * 48


# --- Schedulers --------------------------------------------------------------------------------------------------


def test_kueue_queues_each_replica() -> None:
    queue = {"kueue.x-k8s.io/queue-name": "default", "kueue.x-k8s.io/priority-class": "urgent"}
    assert group_set(scheduler="kueue")["metadata"]["labels"] == {**LABELS, **queue}
    for role in ("leader", "worker"):
        assert template(role, scheduler="kueue")["metadata"] == {"labels": {**LABELS, **queue}}


def test_kueue_places_leader_and_workers_as_one() -> None:
    for role in ("leader", "worker"):
        assert template(role, scheduler="kueue", pool=TOPOLOGY)["metadata"]["annotations"] == {
            "kueue.x-k8s.io/podset-preferred-topology": "example.com/rack",
            "kueue.x-k8s.io/podset-group-name": "app",
        }


def test_a_level_is_that_of_the_policy() -> None:
    spec = "inference: {podsPerReplica: 2, topology: {required: example.com/block}}"
    found = template("worker", spec, scheduler="kueue", pool=TOPOLOGY)["metadata"]["annotations"]
    assert found["kueue.x-k8s.io/podset-required-topology"] == "example.com/block"


@pytest.mark.parametrize(
    "other",
    [
        GROUPED.replace("podsPerReplica: 4", "podsPerReplica: 2"),
        GROUPED.replace("8080", "8081"),
        f"{GROUPED}\ncount: 2",
        f"{GROUPED}\ncpu: '2'",
        f"{GROUPED}\npodPatch: {{spec: {{runtimeClassName: kata}}}}",
        f"{GROUPED}\npodPatch: {{spec: {{overhead: {{cpu: 100m}}}}}}",
    ],
)
def test_what_kueue_counts_otherwise_is_another_set(other: str) -> None:
    """`ValidateUpdate` in `pkg/controller/jobs/leaderworkerset/leaderworkerset_webhook.go` of Kueue refuses it."""
    names = {group_set(spec, scheduler="kueue")["metadata"]["name"] for spec in (GROUPED, other)}
    assert len(names) == 2
    assert {group_set(spec)["metadata"]["name"] for spec in (GROUPED, other)} == {"app"}


@pytest.mark.parametrize("other", [GROUPED.replace("replicas: 2", "replicas: 3"), f"{GROUPED}\nargs: [--fast]"])
def test_what_kueue_takes_stays_the_same_set(other: str) -> None:
    first, second = (group_set(spec, scheduler="kueue") for spec in (GROUPED, other))
    assert first["metadata"] == second["metadata"]
    assert first["spec"] != second["spec"]


def test_the_autoscaler_finds_the_set_by_kueue_s_name_for_it() -> None:
    target = get("HorizontalPodAutoscaler", SCALED, scheduler="kueue")["spec"]["scaleTargetRef"]["name"]
    assert target == group_set(SCALED, scheduler="kueue")["metadata"]["name"] != "app"


def test_kai_groups_the_pods_of_a_replica_by_the_set() -> None:
    """Its size is the gang's, and its annotations say where (`lws_grouper.go` of KAI-Scheduler)."""
    found = group_set(scheduler="kai", pool=TOPOLOGY)
    assert found["metadata"]["annotations"] == {
        "kai.scheduler/topology": "gpus",
        "kai.scheduler/topology-preferred-placement": "example.com/rack",
    }
    for role in ("leader", "worker"):
        pod = template(role, scheduler="kai", pool=TOPOLOGY)
        assert pod["metadata"]["labels"]["kai.scheduler/queue"] == "research-gpus"
        assert pod["spec"]["schedulerName"] == "kai-scheduler"


def test_run_ai_finds_the_node_pool_on_all_pods() -> None:
    for role in ("leader", "worker"):
        pod = template(role, scheduler="runai")
        assert pod["metadata"]["labels"]["runai/node-pool"] == "gpus"
        assert pod["spec"]["schedulerName"] == "runai-scheduler"


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("spec", [GROUPED, SCALED, "inference: {port: none, podsPerReplica: 2, worker: {args: [a]}}"])
def test_its_definition_takes_what_is_written(spec: str, scheduler: str) -> None:
    found = manifests(spec, scheduler=scheduler)
    assert check_schemas(found, "1.34") == ()


BESIDE = "podPatch: {spec: {containers: [{name: proxy, image: 'example.com/proxy:1'%s}]}}"


def test_what_runs_beside_the_leader_runs_beside_workers_that_run_something_else() -> None:
    spec = f"inference: {{podsPerReplica: 2, worker: {{args: [--join]}}}}\n{BESIDE % ''}"
    for role, args in (("leader", None), ("worker", ["--join"])):
        found = {item["name"]: item.get("args") for item in template(role, spec)["spec"]["containers"]}
        assert found == {"main": args, "proxy": None}


def test_a_set_that_kueue_counts_with_what_runs_beside_it_is_another_one() -> None:
    names = {
        group_set(f"{GROUPED}\n{BESIDE % more}", scheduler="kueue")["metadata"]["name"]
        for more in ("", ", resources: {requests: {cpu: '1'}}", ", args: [--quiet]")
    }
    assert len(names) == 2
