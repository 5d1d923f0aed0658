"""Names that a cluster has already: all that names an object names it so."""

from __future__ import annotations

from gpuplan.compiler.backends import workloads
from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.kueue.platform import cells, found, manifests, tenant
from tests.plans import a_cluster, a_plan
from tests.platforms import document, pool

POOLS = pool("fast", "exclusive: {}", "names: {resourceFlavor: h100}, topology: [example.com/rack]") + pool("slow")
RESEARCH = tenant(
    "research",
    "namespaces: [lab, papers], quotas: [{pool: slow, guaranteed: 2}, {pool: fast, guaranteed: 8}], "
    "names: {clusterQueue: research-cq, localQueue: user-queue}",
)
WORK = "tenant: research, namespace: lab, pool: fast, image: busybox, command: [train], training: {}"


def platform(*documents: str) -> Plan:
    cluster = a_cluster("kind: kueue, kueue: {cohort: all-gpus}")
    return a_plan("".join((cluster, POOLS, *documents)))


def names(plan: Plan, kind: str) -> list[str]:
    return [item.name for item in manifests(plan) if item.kind == kind]


def test_a_flavor_keeps_its_name_in_queues_and_cohorts() -> None:
    plan = platform(RESEARCH)

    assert names(plan, "ResourceFlavor") == ["h100", "slow"]
    assert found(plan, "ResourceFlavor", "h100") == {"nodeLabels": {"gpuplan.dev/pool": "fast"}, "topologyName": "fast"}
    assert [*cells(plan, "ClusterQueue", "research-cq")] == [("slow", "gpu"), ("h100", "gpu")]
    assert [*cells(plan, "Cohort", "all-gpus")] == [("h100", "gpu"), ("slow", "gpu")]


def test_a_queue_keeps_its_name_and_its_cohort_has_the_cluster_s() -> None:
    plan = platform(
        RESEARCH, tenant("vision", "namespaces: [vision], parent: research, quotas: [{pool: slow, guaranteed: 1}]")
    )

    assert names(plan, "ClusterQueue") == ["research-cq", "vision"]
    assert names(plan, "Cohort") == ["all-gpus", "research"]
    assert found(plan, "ClusterQueue", "research-cq")["cohortName"] == "research"
    assert found(plan, "Cohort", "research")["parentName"] == "all-gpus"


def test_work_names_a_queue_that_is_kept_and_what_names_none_has_the_default() -> None:
    plan = platform(RESEARCH, document("Workload", "train", WORK))
    ways = [item for item in manifests(plan) if item.kind == "LocalQueue"]
    (job,) = (item for item in workloads.render(plan) if item.kind == "Job")

    assert [(item.namespace, item.name, item.body["spec"]["clusterQueue"]) for item in ways] == [
        ("lab", "user-queue", "research-cq"),
        ("lab", "default", "research-cq"),
        ("papers", "user-queue", "research-cq"),
        ("papers", "default", "research-cq"),
    ]
    assert job.body["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "user-queue"
