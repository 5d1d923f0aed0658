"""Shards, topologies and queues as KAI-Scheduler reads them."""

from __future__ import annotations

import pytest

from gpuplan.compiler.backends import kai
from gpuplan.compiler.delivery.annotations import SYNC_WAVE, annotate
from tests.compiler.backends.crds import problems
from tests.compiler.backends.kai.platform import body, manifests, platform
from tests.plans import a_cluster, a_plan

UNBOUNDED = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def test_each_pool_has_a_shard_of_its_own() -> None:
    assert body("SchedulingShard", "a100-mig") == {
        "apiVersion": "kai.scheduler/v1",
        "kind": "SchedulingShard",
        "metadata": {"name": "a100-mig"},
        "spec": {
            "partitionLabelValue": "a100-mig",
            "placementStrategy": {"gpu": "binpack", "cpu": "binpack"},
            "plugins": {"minruntime": {"arguments": {"reclaimResolveMethod": "queue"}}},
        },
    }
    assert body("SchedulingShard", "h100")["spec"]["placementStrategy"] == {"gpu": "spread", "cpu": "spread"}


def test_a_pool_that_says_nothing_of_placement_leaves_it_to_the_scheduler() -> None:
    pool = "{gpu: A100-80GB, nodes: {count: 1, gpusPerNode: 8, names: [a]}, sharing: {exclusive: {}}}"
    text = f"apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {{name: whole}}\nspec: {pool}\n"
    (shard,) = kai.objects(a_plan(f"{a_cluster('kind: kai')}---\n{text}"))
    assert "placementStrategy" not in shard.body["spec"]


def test_a_pool_with_a_topology_has_one() -> None:
    assert body("Topology", "h100") == {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "h100"},
        "spec": {"levels": [{"nodeLabel": "example.com/rack"}, {"nodeLabel": "kubernetes.io/hostname"}]},
    }
    assert [found.name for found in manifests() if found.kind == "Topology"] == ["h100"]


def test_a_queue_has_all_nine_numbers_and_what_the_tenant_says() -> None:
    assert body("Queue", "physics-a100-mig") == {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": "physics-a100-mig", "labels": {"kai.scheduler/node-pool": "a100-mig"}},
        "spec": {
            "displayName": "physics",
            "parentQueue": "science-a100-mig",
            "priority": 110,
            "preemptMinRuntime": "10m",
            "reclaimMinRuntime": "1h30m",
            "resources": {
                "gpu": {"quota": 8, "limit": 16, "overQuotaWeight": 2.5},
                "cpu": UNBOUNDED,
                "memory": UNBOUNDED,
            },
        },
    }


def test_fractions_are_numbers_of_gpus_and_no_bound_is_minus_one() -> None:
    assert body("Queue", "physics-h100")["spec"]["resources"]["gpu"] == {
        "quota": 1.5,
        "limit": -1,
        "overQuotaWeight": 2.5,
    }


def test_a_parents_queue_has_all_nine_numbers_too() -> None:
    assert body("Queue", "science-h100")["spec"] == {
        "displayName": "science",
        "priority": 100,
        "resources": {"gpu": {"quota": 1.5, "limit": -1, "overQuotaWeight": 3}, "cpu": UNBOUNDED, "memory": UNBOUNDED},
    }


def test_no_queue_may_run_nothing_for_want_of_a_number() -> None:
    for found in manifests():
        if found.kind == "Queue":
            resources = found.body["spec"]["resources"]
            assert set(resources) == {"gpu", "cpu", "memory"}
            assert all(set(numbers) == {"quota", "limit", "overQuotaWeight"} for numbers in resources.values())
            assert all(type(number) in (int, float) for numbers in resources.values() for number in numbers.values())


def test_queues_of_a_pool_are_delivered_by_themselves() -> None:
    """Tenants times pools are too many for one kustomize build, which is quadratic."""
    folders = {(found.kind == "Queue", found.folder) for found in manifests()}
    assert folders == {(False, "scheduling"), (True, "queues/a100-mig"), (True, "queues/h100")}


def test_all_objects_are_the_clusters() -> None:
    assert {found.namespace for found in manifests()} == {""}
    assert [(found.kind, found.name) for found in manifests()] == [
        ("SchedulingShard", "a100-mig"),
        ("Topology", "h100"),
        ("SchedulingShard", "h100"),
        ("Queue", "science-a100-mig"),
        ("Queue", "physics-a100-mig"),
        ("Queue", "science-h100"),
        ("Queue", "physics-h100"),
        ("Queue", "serving-h100"),
    ]


def test_a_queue_comes_before_those_below_it_and_goes_after_them() -> None:
    """Argo CD applies waves upwards and prunes them downwards; a queue with others below it cannot be deleted.

    (`ValidateDelete` in `pkg/admission/webhook/queuehooks/queue_validator.go` of KAI-Scheduler.)
    """
    waves = {
        found.name: int(annotate(found, platform().cluster).body["metadata"]["annotations"][SYNC_WAVE])
        for found in manifests()
        if found.kind == "Queue"
    }
    assert waves["science-h100"] < waves["physics-h100"]
    assert waves["science-h100"] == waves["serving-h100"]


def test_an_old_cluster_has_no_policy() -> None:
    assert "ValidatingAdmissionPolicy" not in [found.kind for found in kai.objects(platform("1.29"))]


@pytest.mark.parametrize("scheduler", ["kubernetes", "kueue", "runai"])
def test_other_schedulers_get_nothing(scheduler: str) -> None:
    assert list(kai.render(a_plan(a_cluster(f"kind: {scheduler}")))) == []


def test_objects_fit_their_definitions() -> None:
    assert problems([found for found in manifests() if found.kind != "ValidatingAdmissionPolicy"]) == []
