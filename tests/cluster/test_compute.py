"""CPU and memory of a pool on real schedulers: pods run up to what is planned, and the next CPU does not."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gpuplan.compiler.planning.kai import queue_name
from gpuplan.compiler.planning.schedulers.kai import NODE_POOL_LABEL, QUEUE_LABEL, SCHEDULER_NAME
from gpuplan.compiler.planning.schedulers.kueue import QUEUE_LABEL as LOCAL_QUEUE_LABEL
from tests.cli.runs import run
from tests.cluster.api import Object, Refused
from tests.cluster.example import ExampleCluster
from tests.cluster.kai_scheduler import kai_controllers, kai_schedulers
from tests.cluster.kueue_controller import kueue_controller
from tests.cluster.kueue_jobs import Job
from tests.cluster.outcomes import in_the_end
from tests.cluster.pods import a_pod, remove_pods, schedule, selector, tolerations
from tests.cluster.processes import until
from tests.cluster.programs import need_go

Record = Callable[[str, object, object], None]

PLATFORM = Path(__file__).with_name("compute.yaml")
TENANTS = ["stated", "derived"]
GPU = "nvidia.com/gpu"


def repository(folder: Path, scheduler: str) -> Path:
    (folder / "overlays" / "live").mkdir(parents=True)
    (folder / "policies").mkdir()
    text = PLATFORM.read_text(encoding="utf-8").replace("SCHEDULER", scheduler)
    (folder / "overlays" / "live" / "cluster.yaml").write_text(text, encoding="utf-8")
    built = run("build", cwd=folder)
    assert built.code == 0, built.err
    return folder


@contextmanager
def cluster(folder: Path, scheduler: str) -> Iterator[ExampleCluster]:
    """The platform with a scheduler, on a control plane of its own."""
    need_go()
    home = repository(folder, scheduler)
    match scheduler:
        case "kueue":
            configuration = home / "out" / "live" / "scheduling" / "kueue-configuration.yaml"
            with ExampleCluster.start("live", home, partial(kueue_controller, configuration=configuration)) as found:
                yield found
        case "kai":
            with ExampleCluster.start("live", home, kai_controllers) as found, kai_schedulers(found.control_plane):
                yield found
        case _:
            with ExampleCluster.start("live", home) as found:
                yield found


@pytest.fixture(scope="module", params=["kubernetes", "kueue", "kai"])
def live(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleCluster]:
    scheduler: str = request.param
    with cluster(tmp_path_factory.mktemp(scheduler), scheduler) as found:
        yield found


# --- What is planned -------------------------------------------------------------------------------------------------


def bounds(plan: Mapping[str, Any], tenant: str) -> dict[str, int]:
    """Millicores and bytes that a tenant may use of the pool at most."""
    [found] = [item for item in plan["tenants"] if item["name"] == tenant]
    [quota] = found["quotas"]
    return {part["counted"]: part["limit"] for part in quota["compute"]}


def test_the_plan_is_what_the_policy_says(live: ExampleCluster, record: Record) -> None:
    """Three of eight GPUs are three eighths of what the node has beyond its reserve."""
    record(f"{kind(live)}: stated: CPU and memory", {"cpu": 16500, "memory": 64 * 10**9}, bounds(live.plan, "stated"))
    derived = {"cpu": 160_000 * 3 // 8, "memory": 2000 * 2**30 * 3 // 8}
    record(f"{kind(live)}: derived: CPU and memory", derived, bounds(live.plan, "derived"))


@pytest.mark.parametrize("tenant", TENANTS)
@pytest.mark.parametrize("counted", ["cpu", "memory"])
def test_work_runs_up_to_the_bound_and_what_goes_over_by_one_does_not(
    live: ExampleCluster, tenant: str, counted: str, record: Record
) -> None:
    """The first takes all but one CPU, or one Gi, the second that one: with it the bound is reached exactly."""
    one = 1000 if counted == "cpu" else 2**30
    whole = bounds(live.plan, tenant)[counted]
    asked = [{counted: amount_text(counted, amount)} for amount in (whole - one, one, one)]
    planned = ["runs", "runs", over(kind(live), counted)]
    observed = TRIALS[kind(live)](live, tenant, asked, planned)
    remove_pods(live.api, tenant)
    record(f"{kind(live)}: {tenant}: all but one, one, one more ({counted})", planned, observed)


@pytest.mark.parametrize("tenant", TENANTS)
def test_pods_without_gpus_count_in_the_pool_as_well(live: ExampleCluster, tenant: str, record: Record) -> None:
    whole = bounds(live.plan, tenant)["cpu"]
    asked = [{"cpu": amount_text("cpu", amount)} for amount in (whole, 1000)]
    planned = ["runs", over(kind(live), "cpu")]
    observed = TRIALS[kind(live)](live, tenant, asked, planned, gpus=0)
    remove_pods(live.api, tenant)
    record(f"{kind(live)}: {tenant}: all CPUs without a GPU, one more", planned, observed)


def test_pods_that_run_are_not_given_more_than_is_counted(live: ExampleCluster, record: Record) -> None:
    """A ResourceQuota counts it; where a queue counts, nobody raises what a pod asks for."""
    planned = {"kubernetes": ["resized", "resized", "exceeded quota"]}.get(kind(live), ["resized", KEPT, KEPT])
    with running(live, "stated") as path:
        observed = [resized(live, path, cpu) for cpu in ("500m", "1", "17")]
    record(f"{kind(live)}: stated: a pod of one CPU is to have a half, one, more than the bound", planned, observed)


def test_no_queue_counts_it(live: ExampleCluster, record: Record) -> None:
    """Without the rule a pod has more than its tenant may use, and goes on to run."""
    if kind(live) == "kubernetes":
        pytest.skip("a ResourceQuota does")
    with running(live, "stated") as path, without_rule(live):
        in_the_end("resized", resized, live, path, "17")
        time.sleep(FEW)
        pod = live.api.get(path)
    asked = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    observed = (asked, pod["status"]["phase"], "deletionTimestamp" in pod["metadata"])
    record(
        f"{kind(live)}: stated: a pod that has more than the bound: asks, runs, ends",
        ("17", "Running", False),
        observed,
    )


KEPT = "requests of CPU and memory of pods that run are not to be raised"
DEVICES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/gpuplan-devices"
FEW = 4
"""Seconds in which a scheduler looks at what has changed."""


@contextmanager
def running(live: ExampleCluster, tenant: str) -> Iterator[str]:
    """Where a pod of one CPU is that runs."""
    pods = f"/api/v1/namespaces/{tenant}/pods"
    if kind(live) == "kueue":
        job = submit(live, tenant, {"cpu": "1"}, 0)
        pods = f"{pods}?labelSelector=batch.kubernetes.io/job-name={job.name}"
    else:
        made = body(live, tenant, {"cpu": "1"}, 0)
        if kind(live) == "kai":
            in_queue(made, tenant)
        live.api.create(made)

    def runs() -> bool:
        return [pod["status"]["phase"] for pod in live.api.list(pods)] == ["Running"]

    until(runs, "a pod runs", seconds=60)
    [pod] = live.api.list(pods)
    yield f"/api/v1/namespaces/{tenant}/pods/{pod['metadata']['name']}"
    if kind(live) == "kueue":
        live.api.delete(job.path)
        until(job.is_gone, f"{job.path} is gone", seconds=60)
    remove_pods(live.api, tenant)


def resized(live: ExampleCluster, path: str, cpu: str) -> str:
    """What comes of it when a pod is to have so much, whoever asks."""
    pod = live.api.get(path)
    amounts = {"cpu": cpu}
    pod["spec"]["containers"][0]["resources"] = {"limits": amounts, "requests": amounts}
    try:
        live.api.replace(f"{path}/resize", pod)
    except Refused as refused:
        return next((told for told in (KEPT, "exceeded quota") if told in refused.message), refused.message)
    return "resized"


@contextmanager
def without_rule(live: ExampleCluster) -> Iterator[None]:
    rules = live.api.get(DEVICES)["spec"]["validations"]
    less = [rule for rule in rules if not rule["message"].startswith(KEPT)]
    assert len(less) == len(rules) - 1
    put_rules(live, less)
    yield
    put_rules(live, rules)


def put_rules(live: ExampleCluster, rules: Sequence[Object]) -> None:
    live.api.patch(DEVICES, [{"op": "replace", "path": "/spec/validations", "value": rules}], kind="json")


def kind(live: ExampleCluster) -> str:
    return str(live.plan["scheduler"]["kind"])


def amount_text(counted: str, amount: int) -> str:
    return f"{amount}m" if counted == "cpu" else str(amount)


def over(scheduler: str, counted: str) -> str:
    """What is told whoever goes over."""
    told = {
        "kubernetes": f"exceeded quota: gpuplan: requests.{counted}",
        "kueue": f"insufficient quota for {counted} in flavor sized",
        "kai": "OverLimit",
    }
    return told[scheduler]


# --- What becomes of it ----------------------------------------------------------------------------------------------


def body(live: ExampleCluster, tenant: str, asks: Mapping[str, str], gpus: int) -> dict[str, Any]:
    """A pod for the pool, as a workload of the tenant has it."""
    [pool] = live.plan["pools"]
    made = a_pod(tenant, nodeSelector=selector(pool), tolerations=tolerations(pool))
    limits = {**asks, **({GPU: str(gpus)} if gpus else {})}
    made["spec"]["containers"][0]["resources"] = {"limits": limits}
    return made


def by_quota(
    live: ExampleCluster, tenant: str, asked: Sequence[Mapping[str, str]], planned: Sequence[str], gpus: int = 1
) -> list[str]:
    """Of pods, one after the other: plain Kubernetes refuses them as they are made."""
    found: list[str] = []
    for number, asks in enumerate(asked):
        made = body(live, tenant, asks, gpus)
        try:
            outcome = schedule(live.api, {number: [made]})[number]
        except Refused as refused:
            match = re.search(r"exceeded quota: (\w+), requested: (requests\.\w+)=", refused.message)
            found.append(f"exceeded quota: {match[1]}: {match[2]}" if match else refused.message)
        else:
            found.append("runs" if outcome.bound else outcome.reasons[0])
    return found


def by_queue(
    live: ExampleCluster, tenant: str, asked: Sequence[Mapping[str, str]], planned: Sequence[str], gpus: int = 1
) -> list[str]:
    """Of Jobs that say nothing of the pool: Kueue puts them there."""
    jobs: list[Job] = []
    try:
        for asks in asked:
            jobs.append(submit(live, tenant, asks, gpus))
            in_the_end(planned[len(jobs) - 1], fate, jobs[-1])
        return [fate(job) for job in jobs]
    finally:
        for job in jobs:
            live.api.delete(job.path)
        for job in jobs:
            until(job.is_gone, f"{job.path} is gone", seconds=60)


def submit(live: ExampleCluster, tenant: str, asks: Mapping[str, str], gpus: int) -> Job:
    limits = {**asks, **({GPU: str(gpus)} if gpus else {})}
    container = {"name": "main", "image": "registry.example.com/test:1", "resources": {"limits": limits}}
    made = live.api.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"generateName": "test-", "namespace": tenant, "labels": {LOCAL_QUEUE_LABEL: "default"}},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
        }
    )
    return Job(live.api, tenant, made["metadata"]["name"], made["metadata"]["uid"], 1)


def fate(job: Job) -> str:
    if job.nodes():
        return "runs"
    found = re.search(r"insufficient (?:unused )?quota for (\S+) in flavor (\S+?),", job.why_it_waits())
    return f"insufficient quota for {found[1]} in flavor {found[2]}" if found else job.why_it_waits()


def by_scheduler(
    live: ExampleCluster, tenant: str, asked: Sequence[Mapping[str, str]], planned: Sequence[str], gpus: int = 1
) -> list[str]:
    """Of pods in the tenant's queue, one after the other: those over a limit stay pending."""
    found: list[str] = []
    for asks, wanted in zip(asked, planned, strict=True):
        made = body(live, tenant, asks, gpus)
        in_queue(made, tenant)
        path = f"/api/v1/namespaces/{tenant}/pods/{live.api.create(made)['metadata']['name']}"
        found.append(in_the_end(wanted, state, live, path))
    return found


def in_queue(made: dict[str, Any], tenant: str) -> None:
    made["metadata"]["labels"] = {QUEUE_LABEL: queue_name(tenant, "sized"), NODE_POOL_LABEL: "sized"}
    made["spec"]["schedulerName"] = SCHEDULER_NAME


def state(live: ExampleCluster, path: str) -> str:
    pod: Object = live.api.get(path)
    if pod["spec"].get("nodeName"):
        return "runs"
    conditions = pod["status"].get("conditions", ())
    told = [item["message"].partition(":")[0] for item in conditions if item.get("reason") == "Unschedulable"]
    return told[0] if told else "waits"


TRIALS = {"kubernetes": by_quota, "kueue": by_queue, "kai": by_scheduler}
