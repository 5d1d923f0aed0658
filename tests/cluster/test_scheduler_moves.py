"""A cluster with work moves from plain Kubernetes to real Kueue, as the guide `docs/how-to/move-to-kueue.md` says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cluster.api import Api, Refused
from tests.cluster.delivery import MANAGER, deliveries
from tests.cluster.example import ExampleCluster, settle
from tests.cluster.kueue_controller import API_VERSION, kueue_controller
from tests.cluster.kueue_jobs import QUEUE
from tests.cluster.lending import CLUSTER, OWN, Party, own_place, write
from tests.cluster.outcomes import in_the_end
from tests.cluster.processes import until
from tests.cluster.programs import need_go
from tests.cluster.queued import seen
from tests.platforms import document

Record = Callable[[str, object, object], None]

POOL: Final = "p0"
MALLORY: Final = f"mallory-{POOL}"
DEPLOYMENTS: Final = f"/apis/apps/v1/namespaces/{MALLORY}/deployments"
REFUSED: Final = r"metadata\.labels\[kueue\.x-k8s\.io/queue-name\]: Invalid value.*field is immutable"
QUEUED: Final = {"metadata": {"labels": {QUEUE: "default"}}}
CHAT: Final = document(
    "Workload",
    "chat",
    f"tenant: {MALLORY}",
    f"namespace: {MALLORY}",
    f"pool: {POOL}",
    "image: registry.example.com/chat:1",
    "inference: {replicas: 2, port: 8000}",
)


def test_what_runs_is_moved_to_kueue(tmp_path: Path, record: Record) -> None:
    """Mallory's eight GPUs run before the move, of which six are alice's by guarantee."""
    need_go()
    _write(tmp_path, "kind: kubernetes")
    with ExampleCluster.start(CLUSTER, tmp_path) as cluster:
        api = cluster.api
        mallory, alice = (Party(api, f"{name}-{POOL}", POOL, {}, own_place(POOL)) for name in ("mallory", "alice"))
        own = api.create(_own_deployment(mallory, replicas=3))
        job = mallory.api.create(mallory.job(3))
        record("before: GPUs of mallory's that run", 8.0, in_the_end(8.0, mallory.running))
        until(lambda: all(_ready(api, name) == size for name, size in (("chat", 2), ("own", 3))), "they are ready")

        _write(tmp_path, "kind: kueue")
        with _kueue(cluster, tmp_path):
            refused = _sync(cluster, tmp_path)
            record("the sync: objects refused by Kueue", ["Deployment chat"], refused)
            for party in (mallory, alice):
                until(partial(_is_seen, party), "Kueue has seen the queue")
            with pytest.raises(Refused, match=REFUSED):  # whatever is changed
                api.patch(api.path_of(own), {"metadata": {"annotations": {"mine": "1"}}})
            with pytest.raises(Refused, match=REFUSED):
                api.patch(mallory.job_path(job), QUEUED)
            record("the same pods: run, counted", (8.0, 0), seen(mallory))

            waiting = alice.api.create(alice.job(OWN))
            record("alice's guarantee meanwhile: run, counted", (0.0, OWN), in_the_end((0.0, OWN), seen, alice))
            alice.api.delete(alice.job_path(waiting))
            in_the_end((0.0, 0), seen, alice)

            # What the policies have: deleted, and synced again.
            kubectl = partial(cluster.control_plane.kubectl, "-n", MALLORY)
            kubectl("delete", "deployment.apps", "chat")
            record("the sync afterwards: objects refused", [], _sync(cluster, tmp_path))
            record("chat is counted", (8.0, 2), in_the_end((8.0, 2), seen, mallory))
            # What teams have deployed: to 0, into the queue, and back.
            kubectl("scale", "deployment/own", "--replicas=0")
            kubectl("rollout", "status", "deployment/own", "--timeout=60s")
            kubectl("label", "deployment/own", f"{QUEUE}=default")
            kubectl("scale", "deployment/own", "--replicas=3")
            record("a Deployment by hand is counted", (8.0, 5), in_the_end((8.0, 5), seen, mallory))
            # A Job: suspended in the same request, until Kueue starts it.
            suspended = json.dumps({**QUEUED, "spec": {"suspend": True}})
            kubectl("patch", "job", job["metadata"]["name"], "--type", "merge", "-p", suspended)
            record("a Job is counted", (8.0, 8), in_the_end((8.0, 8), seen, mallory))

            alice.api.create(alice.job(OWN))
            record("alice's guarantee afterwards: run, counted", (6.0, OWN), in_the_end((6.0, OWN), seen, alice))

            # Back again, while Kueue is still there: what is queued is deleted, and made anew without a queue.
            for party in (alice, mallory):
                api.delete(party.jobs_path)
            record("mallory's services: run, counted", (5.0, 5), in_the_end((5.0, 5), seen, mallory))
            kueues = _objects(cluster, tmp_path)
            _write(tmp_path, "kind: kubernetes")
            for path in kueues.keys() - _objects(cluster, tmp_path).keys():
                api.delete(path)
            record("the sync back: objects refused by Kueue", ["Deployment chat"], _sync(cluster, tmp_path))
            with pytest.raises(Refused, match=REFUSED):
                api.patch(f"{DEPLOYMENTS}/own", {"metadata": {"labels": {QUEUE: None}}})
            api.delete(f"{DEPLOYMENTS}/chat")
            api.delete(f"{DEPLOYMENTS}/own")
            record("the sync afterwards: objects refused", [], _sync(cluster, tmp_path))
            api.create(_own_deployment(mallory, replicas=3))
            alice.api.create(alice.job(1))
            record(
                "back: GPUs that run", [5.0, 1.0], in_the_end([5.0, 1.0], lambda: [mallory.running(), alice.running()])
            )
            record("Workloads of Kueue", 0, in_the_end(0, lambda: len(api.list(f"/apis/{API_VERSION}/workloads"))))


def _write(repository: Path, scheduler: str) -> None:
    write(repository, scheduler, [POOL], others=[CHAT])


@contextmanager
def _kueue(cluster: ExampleCluster, repository: Path) -> Iterator[None]:
    configuration = repository / "out" / CLUSTER / "scheduling" / "kueue-configuration.yaml"
    with kueue_controller(cluster.control_plane, configuration):
        yield


def _objects(cluster: ExampleCluster, repository: Path) -> dict[str, Mapping[str, Any]]:
    """Return all objects of the folders, by their paths."""
    folders = deliveries(cluster.control_plane, repository, CLUSTER)
    return {cluster.api.path_of(body): body for folder in folders for body in folder.objects}


def _sync(cluster: ExampleCluster, repository: Path) -> list[str]:
    """Apply all folders. Return the objects that Kueue refuses."""
    refused = []
    for body in _objects(cluster, repository).values():
        try:
            cluster.api.apply(body, manager=MANAGER, force=True)
        except Refused as error:
            if QUEUE not in error.message:
                raise
            refused.append(f"{body['kind']} {body['metadata']['name']}")
    settle(cluster.api)
    return refused


def _is_seen(party: Party) -> bool:
    return "status" in party.admin.get(f"/apis/{API_VERSION}/clusterqueues/{party.name}")


def _ready(api: Api, name: str) -> int:
    return int(api.get(f"{DEPLOYMENTS}/{name}")["status"].get("readyReplicas", 0))


def _own_deployment(party: Party, *, replicas: int) -> Mapping[str, Any]:
    template = party.pod()
    labels = {"app": "own"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "own", "namespace": party.name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {**template["spec"], "restartPolicy": "Always"}},
        },
    }
