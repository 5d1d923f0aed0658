"""The part of Kueue's own Configuration that the queues need."""

from __future__ import annotations

from typing import Any

import yaml

from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.kueue.platform import files, found, platform, team
from tests.compiler.backends.monitoring.watched import KUEUE, a_cluster
from tests.plans import a_plan
from tests.platforms import document


def configuration(plan: Plan) -> Any:
    (file,) = files(plan)
    assert file.path == "scheduling/kueue-configuration.yaml"
    return yaml.safe_load(file.data)


def test_it_shares_fairly_and_manages_what_tenants_run() -> None:
    assert configuration(platform()) == {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        "integrations": {"frameworks": ["batch/job", "deployment", "pod"]},
        "managedJobsNamespaceSelector": {"matchExpressions": [{"key": "gpuplan.dev/tenant", "operator": "Exists"}]},
        "resources": {"excludeResourcePrefixes": ["cpu", "memory", "ephemeral-storage", "hugepages-"]},
    }


def test_it_sums_up_what_queues_have_and_wait_for_where_somebody_watches() -> None:
    assert configuration(a_plan(a_cluster(KUEUE)))["metrics"] == {"enableClusterQueueResources": True}


def test_nothing_that_a_queue_counts_is_excluded() -> None:
    plan = platform(team("research", "pool: shared, guaranteed: 1", "pool: split, unit: 2g.20gb, guaranteed: 1"))
    prefixes = tuple(configuration(plan)["resources"]["excludeResourcePrefixes"])
    covered = found(plan, "ClusterQueue", "research")["resourceGroups"][0]["coveredResources"]
    assert [resource for resource in covered if resource.startswith(prefixes)] == []


def test_cpu_and_memory_are_excluded_unless_some_quota_has_them() -> None:
    cpu = platform(team("research", "pool: whole, guaranteed: 1, cpu: 8"), team("other", "pool: whole, guaranteed: 1"))
    pods = platform(team("research", "pool: whole, guaranteed: 1, pods: 8"))
    usual = ["cpu", "memory", "ephemeral-storage", "hugepages-"]
    assert configuration(cpu)["resources"]["excludeResourcePrefixes"] == usual[1:]
    assert configuration(pods)["resources"]["excludeResourcePrefixes"] == usual
    assert "Queues count cpu:" in files(cpu)[0].data.decode()


TRAINING = "tenant: research, namespace: research, pool: whole, image: example.com/train:1, training: {{pods: 4{more}}}"


def test_a_gang_gives_up_a_place_that_it_cannot_fill() -> None:
    quota = team("research", "pool: whole, guaranteed: 4")
    alone = platform(quota, document("Workload", "train", TRAINING.format(more="")))
    gang = platform(quota, document("Workload", "train", TRAINING.format(more=", gang: 4")))
    assert "waitForPodsReady" not in configuration(alone)
    assert configuration(gang)["waitForPodsReady"] == {
        "timeout": "10m",
        "recoveryTimeout": "10m",
        "blockAdmission": False,
    }
