"""Work in the shapes that tenants and controllers give it goes through Kueue, under all rules on running work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.cluster.api import Refused
from tests.cluster.attacks import COUNT, ELASTIC, GROUP
from tests.cluster.example import ExampleCluster
from tests.cluster.kueue_controller import kueue_controller
from tests.cluster.kueue_jobs import QUEUE
from tests.cluster.lending import CLUSTER, Party, write
from tests.cluster.outcomes import in_the_end
from tests.cluster.programs import need_go
from tests.cluster.queued import seen

Record = Callable[[str, object, object], None]

POOL = "p0"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleCluster]:
    need_go()
    repository = tmp_path_factory.mktemp("queued")
    write(repository, "kind: kueue", [POOL])
    configuration = repository / "out" / CLUSTER / "scheduling" / "kueue-configuration.yaml"
    with ExampleCluster.start(CLUSTER, repository, partial(kueue_controller, configuration=configuration)) as started:
        yield started


@pytest.fixture
def alice(cluster: ExampleCluster) -> Iterator[Party]:
    party = Party(cluster.api, f"alice-{POOL}", POOL, {QUEUE: "default"})
    yield party
    party.api.delete(f"/apis/apps/v1/namespaces/{party.name}/statefulsets")
    party.clear()


def test_pods_of_a_group_run_together(alice: Party, record: Record) -> None:
    for _ in range(2):
        alice.api.create(alice.pod(annotations={COUNT: "2"}, labels={GROUP: "pair"}))
    record("kueue: a group of two pods: GPUs that run, GPUs counted", (2, 2), in_the_end((2, 2), seen, alice))


def test_pods_of_unlike_sizes_are_counted_as_they_are(alice: Party, record: Record) -> None:
    for size in (1, 3):
        alice.api.create(alice.pod(size, annotations={COUNT: "2"}, labels={GROUP: "unlike"}))
    record("kueue: a group of one and three GPUs: run, counted", (4, 4), in_the_end((4, 4), seen, alice))


def test_an_elastic_job_grows(alice: Party, record: Record) -> None:
    body = alice.job(1, completions=False, metadata={"annotations": {ELASTIC: "true"}})
    job = alice.api.create(body)
    in_the_end((1, 1), seen, alice)
    alice.api.patch(alice.job_path(job), {"spec": {"parallelism": 3}})
    record("kueue: an elastic Job of one that grows to three: run, counted", (3, 3), in_the_end((3, 3), seen, alice))


def test_a_job_that_waits_may_be_changed(alice: Party, record: Record) -> None:
    job = alice.api.create(alice.job(5, completions=False, metadata={"labels": {QUEUE: "none"}}))
    alice.api.patch(alice.job_path(job), {"spec": {"parallelism": 2}})
    alice.api.patch(alice.job_path(job), {"metadata": {"labels": {QUEUE: "default"}}})
    record("kueue: a Job that waited gets smaller and a queue: run, counted", (2, 2), in_the_end((2, 2), seen, alice))


def test_a_job_that_runs_may_shrink_and_be_labelled_and_deleted(alice: Party, record: Record) -> None:
    job = alice.api.create(alice.job(4, completions=False))
    in_the_end((4, 4), seen, alice)
    alice.api.patch(alice.job_path(job), {"metadata": {"labels": {"mine": "1"}}})
    alice.api.patch(alice.job_path(job), {"spec": {"parallelism": 2}})
    record("kueue: a Job of four that shrinks to two: run, counted", (2, 2), in_the_end((2, 2), seen, alice))
    alice.api.delete(alice.job_path(job))
    record("kueue: the same, deleted: run, counted", (0, 0), in_the_end((0, 0), seen, alice))


def test_a_job_that_runs_is_given_more_to_complete_by_kueue_alone(alice: Party, record: Record) -> None:
    """One of four at once has one pod while it is to complete one; with more the others come, uncounted at first."""
    body = alice.job(1)
    body["spec"] |= {"completionMode": "Indexed", "parallelism": 4}
    job = alice.api.create(body)
    record(
        "kueue: a Job of four at once, of which one is to complete: run, counted",
        (1, 1),
        in_the_end((1, 1), seen, alice),
    )
    more = {"spec": {"completions": 4}}
    with pytest.raises(Refused, match="nor its completions"):
        alice.api.patch(alice.job_path(job), more)
    alice.admin.patch(alice.job_path(job), more)
    record("kueue: the same, of which four are: run, counted", (4, 4), in_the_end((4, 4), seen, alice))


def test_replicas_of_a_statefulset_run(alice: Party, record: Record) -> None:
    template = alice.pod()
    labels = {**alice.labels, "app": "replicas"}
    body: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "replicas", "namespace": alice.name, "labels": alice.labels},
        "spec": {
            "replicas": 2,
            "serviceName": "none",
            "selector": {"matchLabels": {"app": "replicas"}},
            "template": {
                "metadata": {"labels": labels, "annotations": template["metadata"]["annotations"]},
                "spec": {**template["spec"], "restartPolicy": "Always"},
            },
        },
    }
    alice.api.create(body)
    record("kueue: a StatefulSet of two: run, counted", (2, 2), in_the_end((2, 2), seen, alice))


def test_whoever_drains_a_node_says_how_long_pods_have(alice: Party) -> None:
    """A tenant does not."""
    job = alice.api.create(alice.job(1))
    in_the_end((1, 1), seen, alice)
    [pod] = alice.pods(job)
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod["metadata"]["name"], "namespace": alice.name},
        "deleteOptions": {"gracePeriodSeconds": 600},
    }
    with pytest.raises(Refused, match="longer grace period"):
        alice.api.request("POST", f"{alice.path(pod)}/eviction", body)
    alice.admin.request("POST", f"{alice.path(pod)}/eviction", body)
    assert alice.admin.get(alice.path(pod))["metadata"]["deletionGracePeriodSeconds"] == 600
