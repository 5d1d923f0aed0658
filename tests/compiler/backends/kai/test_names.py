"""Queues that a cluster has already: all that names one names it so."""

from __future__ import annotations

from gpuplan.compiler.backends import kai, workloads
from gpuplan.compiler.planning.grants import parameters
from tests.plans import a_cluster, a_plan
from tests.platforms import document, pool, tenant

PLATFORM = (
    a_cluster("kind: kai")
    + pool("a")
    + pool("b")
    + tenant("lab", "pool: a, guaranteed: 8", more="names: {queues: {a: lab-gpus}}")
    + tenant("vision", "pool: a, guaranteed: 4", "pool: b, guaranteed: 1", more="parent: lab, names: {queues: {a: cv}}")
    + document("Workload", "train", "tenant: vision, pool: a, image: busybox, command: [train], training: {}")
)


def test_a_queue_keeps_its_name_below_one_that_does() -> None:
    queues = [item.body for item in kai.objects(a_plan(PLATFORM)) if item.kind == "Queue"]

    assert [(body["metadata"]["name"], body["spec"].get("parentQueue")) for body in queues] == [
        ("lab-gpus.all", None),
        ("lab-gpus", "lab-gpus.all"),
        ("cv", "lab-gpus.all"),
        ("lab-b", None),
        ("vision-b", "lab-b"),
    ]


def test_work_names_it_and_admission_lets_it_in() -> None:
    plan = a_plan(PLATFORM)
    (job,) = (item for item in workloads.render(plan) if item.kind == "Job")
    (vision,) = (found for found in plan.tenants if found.name == "vision")

    assert job.body["spec"]["template"]["metadata"]["labels"]["kai.scheduler/queue"] == "cv"
    assert parameters(vision, "vision", plan.scheduler)["queues"] == "a cv\nb vision-b\n"
