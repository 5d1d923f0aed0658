"""Work of frameworks goes through Kueue as a whole, and the pods that their controllers make of it are let in and run.

The controllers are played: what they make has the shape of `tests/tenancy/requests/bases.yaml`, with the template that
Kueue has written, and comes by their own accounts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.definitions import define
from tests.cluster.example import ExampleCluster
from tests.cluster.kueue_controller import kueue_controller
from tests.cluster.kueue_jobs import QUEUE
from tests.cluster.lending import CLUSTER, Party, write
from tests.cluster.outcomes import in_the_end
from tests.cluster.processes import until
from tests.cluster.programs import need_go
from tests.cluster.queued import seen
from tests.cluster.tenants import CUSTOM, roles
from tests.cluster.tenants import FRAMEWORKS as ROLES
from tests.tenancy.boundaries import FRAMEWORKS
from tests.tenancy.judging import user_of
from tests.tenancy.requests import base, merged

Record = Callable[[str, object, object], None]

POOL = "p0"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of work: where its template is, who makes pods or Jobs of it, and in which shape."""

    of: str
    template: tuple[str | int, ...]
    suspend: tuple[str, ...]
    who: str
    makes: str


KINDS = (
    Kind("ray-cluster", ("workerGroupSpecs", 0, "template"), ("suspend",), "kuberay", "ray-worker"),
    Kind("mpi-job", ("mpiReplicaSpecs", "Worker", "template"), ("runPolicy", "suspend"), "mpi", "mpi-worker"),
    Kind(
        "pytorch-job",
        ("pytorchReplicaSpecs", "Worker", "template"),
        ("runPolicy", "suspend"),
        "kubeflow",
        "pytorch-pod",
    ),
    Kind("job-set", ("replicatedJobs", 0, "template", "spec", "template"), ("suspend",), "jobset", "job"),
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleCluster]:
    need_go()
    repository = tmp_path_factory.mktemp("frameworks")
    write(repository, f"kind: kueue, kueue: {{frameworks: [{', '.join(FRAMEWORKS)}]}}", [POOL])
    configuration = repository / "out" / CLUSTER / "scheduling" / "kueue-configuration.yaml"

    @contextmanager
    def beside(control_plane: ControlPlane) -> Iterator[object]:
        """The kinds are there before Kueue, which looks for them as it starts."""
        define(control_plane.api, [base(name, "kueue") for name in CUSTOM if name not in ("workload", "pod-group")])
        with kueue_controller(control_plane, Path(configuration)) as process:
            yield process

    with ExampleCluster.start(CLUSTER, repository, beside) as started:
        for body in roles():
            started.api.apply(body, manager="tests")
        until(partial(_may_make_them, started), "tenants have the role of frameworks")
        yield started


def _may_make_them(cluster: ExampleCluster) -> bool:
    """The role `edit` gets what other roles add to it some time later."""
    [*groups] = ROLES
    asked = {"namespace": f"alice-{POOL}", "verb": "create", "group": groups[-1], "resource": ROLES[groups[-1]][0]}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {"user": f"alice-{POOL}", "groups": [f"alice-{POOL}"], "resourceAttributes": asked},
    }
    return bool(cluster.api.create(body)["status"]["allowed"])


@pytest.fixture
def alice(cluster: ExampleCluster) -> Iterator[Party]:
    party = Party(cluster.api, f"alice-{POOL}", POOL, {QUEUE: "default"})
    yield party
    for kind in KINDS:
        body = base(kind.of, "kueue")
        party.admin.delete(party.admin.collection_of(merged(body, {"metadata": {"namespace": party.name}})))
    party.clear()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.of)
def test_work_of_a_framework_is_counted_and_runs(alice: Party, kind: Kind, record: Record) -> None:
    made = alice.api.create(_work(alice, kind))
    path = alice.admin.path_of(made)
    until(lambda: not _at(alice.admin.get(path)["spec"], kind.suspend), f"{kind.of} is started", seconds=60)
    controller = alice.admin.as_user(user_of(kind.who), ["system:serviceaccounts"])
    controller.create(_made_of(alice, kind, alice.admin.get(path)))
    record(f"kueue: a worker of {made['kind']}: GPUs that run, GPUs counted", (1, 1), in_the_end((1, 1), seen, alice))


def test_pods_of_a_deployment_run(alice: Party, record: Record) -> None:
    template = alice.pod(restartPolicy="Always")
    labels = {"app": "serves"}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "serves", "namespace": alice.name, "labels": alice.labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": {**alice.labels, **labels}}, "spec": template["spec"]},
        },
    }
    path = alice.admin.path_of(alice.api.create(body))
    record("kueue: a Deployment of two: run, counted", (2, 2), in_the_end((2, 2), seen, alice))
    alice.api.delete(path)


def _work(alice: Party, kind: Kind) -> dict[str, Any]:
    """One worker with a GPU; what runs beside it asks for none."""
    worker, other = (_template(alice, gpus) for gpus in (1, 0))
    replicas = {"replicas": 1, "template": worker}
    specs: dict[str, dict[str, Any]] = {
        "ray-cluster": {
            "headGroupSpec": {"rayStartParams": {}, "template": other},
            "workerGroupSpecs": [
                {"groupName": "small", "rayStartParams": {}, "minReplicas": 1, "maxReplicas": 1, **replicas}
            ],
        },
        "mpi-job": {"mpiReplicaSpecs": {"Launcher": {"replicas": 1, "template": other}, "Worker": replicas}},
        "pytorch-job": {"pytorchReplicaSpecs": {"Worker": replicas}},
        "job-set": {
            "replicatedJobs": [
                {
                    "name": "workers",
                    "replicas": 1,
                    "template": {"spec": {"parallelism": 1, "completions": 1, "template": worker}},
                }
            ]
        },
    }
    metadata = {"name": kind.of, "namespace": alice.name, "labels": dict(alice.labels)}
    found: dict[str, Any] = merged(base(kind.of, "kueue"), {"metadata": metadata, "spec": specs[kind.of]})
    return found


def _template(alice: Party, gpus: int) -> dict[str, Any]:
    body = alice.pod(gpus)
    return {"metadata": {"annotations": body["metadata"]["annotations"]}, "spec": body["spec"]}


def _made_of(alice: Party, kind: Kind, owner: Mapping[str, Any]) -> dict[str, Any]:
    """What the controller makes of work that has been let in."""
    shape, template = base(kind.makes, "kueue"), _at(owner["spec"], kind.template)
    reference = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}
    own = {**reference, "apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    metadata = {**shape["metadata"], "namespace": alice.name, "ownerReferences": [own]}
    if kind.makes == "job":
        spec = {"parallelism": 1, "completions": 1, "suspend": False, "template": template}
        return {**shape, "metadata": {**metadata, "name": "job-set-workers-0", "labels": {}}, "spec": spec}
    annotations = {**metadata.get("annotations", {}), **template["metadata"].get("annotations", {})}
    return {**shape, "metadata": {**metadata, "annotations": annotations}, "spec": template["spec"]}


def _at(body: Any, route: tuple[str | int, ...]) -> Any:
    for key in route:
        body = body[key]
    return body
