"""Work of frameworks goes through Kueue as a whole, and the pods that their controllers make of it are let in and run.

The controllers are played: what they make has the shape of `tests/laws/tenancy/requests/bases.yaml`, with the template
that Kueue has written, and comes by their own accounts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.api import Object, Refused
from tests.cluster.attacks import ELASTIC
from tests.cluster.control_plane import ControlPlane
from tests.cluster.definitions import define
from tests.cluster.example import ExampleCluster
from tests.cluster.kueue_controller import kueue_controller
from tests.cluster.kueue_jobs import QUEUE
from tests.cluster.lending import CLUSTER, Party, write
from tests.cluster.outcomes import in_the_end
from tests.cluster.processes import until
from tests.cluster.programs import need_go
from tests.cluster.queued import counted, seen
from tests.cluster.tenants import CUSTOM, FRAMEWORKS as ROLES, roles
from tests.laws.tenancy.boundaries import FRAMEWORKS
from tests.laws.tenancy.judging import user_of
from tests.laws.tenancy.requests import base, merged

Record = Callable[[str, object, object], None]

POOL = "p0"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of work: where its template and its count are, who makes pods or Jobs of it, and in which shape."""

    of: str
    template: tuple[str | int, ...]
    count: tuple[str | int, ...]
    suspend: tuple[str, ...]
    who: str
    makes: str


RAY = Kind(
    "ray-cluster",
    ("workerGroupSpecs", 0, "template"),
    ("workerGroupSpecs", 0, "replicas"),
    ("suspend",),
    "kuberay",
    "ray-worker",
)
PYTORCH = Kind(
    "pytorch-job",
    ("pytorchReplicaSpecs", "Worker", "template"),
    ("pytorchReplicaSpecs", "Worker", "replicas"),
    ("runPolicy", "suspend"),
    "kubeflow",
    "pytorch-pod",
)
KINDS = (
    RAY,
    Kind(
        "mpi-job",
        ("mpiReplicaSpecs", "Worker", "template"),
        ("mpiReplicaSpecs", "Worker", "replicas"),
        ("runPolicy", "suspend"),
        "mpi",
        "mpi-worker",
    ),
    PYTORCH,
    Kind(
        "job-set",
        ("replicatedJobs", 0, "template", "spec", "template"),
        ("replicatedJobs", 0, "replicas"),
        ("suspend",),
        "jobset",
        "job",
    ),
)
FEW = 4
"""Seconds in which Kueue looks at what has changed, and stops it if it would."""


SCALE = {
    "specReplicasPath": ".spec.pytorchReplicaSpecs.Worker.replicas",
    "statusReplicasPath": ".status.replicaStatuses.Worker.active",
}
"""As `pytorch_types.go` in `pkg/apis/kubeflow.org/v1` of kubeflow/trainer v1.9.3 has it."""


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
        control_plane.api.patch(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pytorchjobs.kubeflow.org",
            [{"op": "add", "path": "/spec/versions/0/subresources", "value": {"scale": SCALE}}],
            kind="json",
        )
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
    made, path = _started(alice, kind)
    controller = alice.admin.as_user(user_of(kind.who), ["system:serviceaccounts"])
    controller.create(_made_of(alice, kind, alice.admin.get(path)))
    record(f"kueue: a worker of {made['kind']}: GPUs that run, GPUs counted", (1, 1), in_the_end((1, 1), seen, alice))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.of)
def test_work_that_runs_grows_and_stops_by_kueue_alone(alice: Party, kind: Kind, record: Record) -> None:
    """Kueue stops what has grown, some time later: until then its controller has made pods."""
    made, path = _started(alice, kind)
    more, held = _with(made, kind.count, 3), _with(made, kind.suspend, True)
    with pytest.raises(Refused, match="not to be raised"):
        alice.api.patch(path, more)
    with pytest.raises(Refused, match="suspended by Kueue alone"):
        alice.api.patch(path, held)
    alice.admin.patch(path, more)
    record(f"kueue: a {made['kind']} that grows is stopped, or counted anew: GPUs", 3, in_the_end(3, counted, alice))


def test_an_elastic_ray_cluster_grows(alice: Party, record: Record) -> None:
    """Without being stopped: its new pods wait at a gate."""
    made, path = _started(alice, RAY, annotations={ELASTIC: "true"})
    alice.api.patch(path, _with(made, RAY.count, 3))
    record("kueue: an elastic RayCluster of one that grows to three: GPUs", 3, in_the_end(3, counted, alice))
    record("kueue: and is not stopped", False, _is_held(alice, RAY, path))


def test_kueue_does_not_see_the_least_number_of_workers(alice: Party, record: Record) -> None:
    """KubeRay makes as many, so that a rule keeps it below what is counted."""
    made, path = _started(alice, RAY)
    more = _with(made, ("workerGroupSpecs", 0, "minReplicas"), 5)
    with pytest.raises(Refused, match="minReplicas"):
        alice.api.patch(path, more)
    alice.admin.patch(path, more)
    time.sleep(FEW)
    observed = (counted(alice), _is_held(alice, RAY, path))
    record("kueue: a RayCluster with five workers at least: counted, stopped", (1, False), observed)


def test_kueue_does_not_see_where_pods_are_sent(alice: Party, record: Record) -> None:
    made, path = _started(alice, PYTORCH)
    elsewhere = _with(made, (*PYTORCH.template, "spec", "nodeSelector"), {"gpuplan.dev/pool": "elsewhere"})
    with pytest.raises(Refused, match="makes its pods of"):
        alice.api.patch(path, elsewhere)
    alice.admin.patch(path, elsewhere)
    time.sleep(FEW)
    observed = (counted(alice), _is_held(alice, PYTORCH, path))
    record("kueue: a PyTorchJob with another node selector: counted, stopped", (1, False), observed)


def test_whoever_scales_for_a_tenant_raises_nothing(alice: Party, record: Record) -> None:
    """The autoscaler of pods may scale whatever there is."""
    _, path = _started(alice, PYTORCH)
    autoscaler = alice.admin.as_user(
        "system:serviceaccount:kube-system:horizontal-pod-autoscaler", ["system:serviceaccounts"]
    )
    scale = autoscaler.get(f"{path}/scale")
    with pytest.raises(Refused, match="nor any by its scale"):
        autoscaler.replace(f"{path}/scale", {**scale, "spec": {"replicas": 3}})
    autoscaler.replace(f"{path}/scale", scale)
    record("kueue: a PyTorchJob that is not scaled: GPUs", 1, in_the_end(1, counted, alice))


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


def _started(alice: Party, kind: Kind, **metadata: Any) -> tuple[Object, str]:
    """Work that Kueue has let in, and where it is."""
    path = alice.admin.path_of(alice.api.create(merged(_work(alice, kind), {"metadata": metadata})))
    until(lambda: not _is_held(alice, kind, path), f"{kind.of} is started", seconds=60)
    return alice.admin.get(path), path


def _is_held(alice: Party, kind: Kind, path: str) -> bool:
    return bool(_at(alice.admin.get(path)["spec"], kind.suspend))


def _with(body: Object, route: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """The spec with another value in a place."""
    spec: dict[str, Any] = deepcopy(body["spec"])
    *above, last = route
    _at(spec, tuple(above))[last] = value
    return {"spec": spec}


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
