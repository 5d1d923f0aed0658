"""What Kueue admits as a whole: its Configuration, whose pods are let in, and who starts it."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import pytest
import yaml

from gpuplan.compiler.backends import kueue, scheduling
from gpuplan.compiler.catalog.frameworks import frameworks
from gpuplan.compiler.manifests import File
from gpuplan.compiler.manifests.crds import served
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.policy.models import Framework
from tests.compiler.backends.scheduling.cel import refusals
from tests.compiler.backends.scheduling.platform import parameters_of, policy
from tests.compiler.backends.scheduling.pods import asking, pod
from tests.plans import a_cluster, a_plan
from tests.platforms import pool, tenant

GPU: Final = "nvidia.com/gpu"
EVERY: Final = ", ".join(kind.value for kind in Framework)

JOBSET_CONTROLLER: Final = "system:serviceaccount:jobset-system:jobset-controller-manager"
JOB_CONTROLLER: Final = "system:serviceaccount:kube-system:job-controller"
KUBERAY: Final = "system:serviceaccount:kuberay:kuberay-operator"
KUEUE: Final = "system:serviceaccount:kueue-system:kueue-controller-manager"
MPI_OPERATOR: Final = "system:serviceaccount:mpi-operator:mpi-operator"
TRAINER: Final = "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager"


@cache
def platform(chosen: str) -> Plan:
    cluster = a_cluster(f"kind: kueue, kueue: {{frameworks: [{chosen}]}}" if chosen else "kind: kueue")
    return a_plan(cluster + pool("whole") + tenant("research", "pool: whole, guaranteed: 4"))


def integrations(plan: Plan) -> list[str]:
    (file,) = [item for item in kueue.render(plan) if isinstance(item, File)]
    found: list[str] = yaml.safe_load(file.data)["integrations"]["frameworks"]
    return found


def policy_names(plan: Plan) -> set[str]:
    return {found.name for found in scheduling.render(plan) if found.kind == "ValidatingAdmissionPolicy"}


# --- What Kueue is told ----------------------------------------------------------------------------------------------


def test_every_kind_that_a_policy_may_name_is_known() -> None:
    assert {kind.value for kind in Framework} == {name for name, found in frameworks().items() if not found.always}


def test_a_field_that_kueue_fills_in_is_in_the_definitions_of_the_releases_that_are_said_to_have_it() -> None:
    found = frameworks()["TrainJob"]
    assert [item.field for item in found.fills] == ["podSpecOverrides", "podTemplateOverrides", "runtimePatches"]
    for item in served(found.group, found.kind):
        (release,), schema = item.releases, item.schema(found.api.rpartition("/")[2])
        has = [filled.field for filled in found.fills if f'"{filled.field}"' in schema]
        said = [filled.field for filled in found.fills if minor(filled.first) <= minor(release) < minor(filled.before)]
        assert (release, has) == (release, said)
        assert len(has) == 1


def minor(release: str) -> tuple[int, ...]:
    """Of a release or of what a row says; what it does not say is later than any."""
    return tuple(map(int, release.removeprefix("v").split(".")[:2])) if release else (999,)


@pytest.mark.parametrize(
    ("release", "field"),
    [
        ("v0.13.9", None),
        ("v0.14.0", "podSpecOverrides"),
        ("v0.14.4", "podSpecOverrides"),
        ("v0.14.5", "podTemplateOverrides"),
        ("v0.16.9", "podTemplateOverrides"),
        ("v0.17.0", "runtimePatches"),
        ("v0.19.2", "runtimePatches"),
    ],
)
def test_what_kueue_fills_in_follows_from_its_release(release: str, field: str | None) -> None:
    """As `RunWithPodSetsInfo` in `pkg/controller/jobs/trainjob/trainjob_controller.go` does in each of them."""
    filled = frameworks()["TrainJob"].filled_by(release)
    assert (filled.field if filled else None) == field


def test_all_that_a_kind_is_made_of_is_known() -> None:
    made = {kind for found in frameworks().values() for kind in found.makes}
    assert made <= frameworks().keys()


@pytest.mark.parametrize(
    ("chosen", "more"),
    [
        ("", []),
        ("StatefulSet", ["statefulset"]),
        ("RayJob", ["ray.io/raycluster", "ray.io/rayjob"]),
        ("TrainJob", ["jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob"]),
        ("MPIJob, JobSet", ["jobset.x-k8s.io/jobset", "kubeflow.org/mpijob"]),
    ],
)
def test_kueue_is_told_of_a_kind_and_of_what_is_made_of_it(chosen: str, more: list[str]) -> None:
    assert integrations(platform(chosen)) == ["batch/job", "deployment", "pod", *more]


@pytest.mark.parametrize(
    ("chosen", "is_there"), [("", False), ("StatefulSet, LeaderWorkerSet", False), ("JobSet", True)]
)
def test_a_policy_looks_at_what_is_suspended_as_a_whole(chosen: str, is_there: bool) -> None:
    assert ("gpuplan-frameworks" in policy_names(platform(chosen))) is is_there


def test_it_looks_at_the_kinds_that_are_named_and_what_is_made_of_them() -> None:
    found = policy("gpuplan-frameworks", platform("RayJob"))["spec"]["matchConstraints"]["resourceRules"]
    assert [(rule["apiGroups"], rule["resources"], rule["operations"]) for rule in found] == [
        (["ray.io"], ["rayclusters"], ["CREATE", "UPDATE"]),
        (["ray.io"], ["rayjobs"], ["CREATE", "UPDATE"]),
    ]


# --- Pods ------------------------------------------------------------------------------------------------------------


def owner(api: str, kind: str) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "name": "small", "uid": "1", "controller": True}


def worker(api: str, kind: str) -> dict[str, Any]:
    """A pod as an operator makes it of what Kueue has admitted: no gate, with the flavor's selector."""
    made = pod(asking(GPU), pool="whole")
    return {**made, "metadata": {**made["metadata"], "ownerReferences": [owner(api, kind)]}}


def judge_pod(made: dict[str, Any], chosen: str, user: str) -> list[str]:
    plan = platform(chosen)
    return [
        message
        for name, parameters in (("gpuplan-grants", parameters_of("research", plan)), ("gpuplan-devices", None))
        for message in refusals(policy(name, plan), made, parameters, user=user)
    ]


WAIT = (
    "pods that ask for GPUs must wait for Kueue: its webhook adds the scheduling gate kueue.x-k8s.io/admission to pods "
    "that name no owner"
)
WORKERS = [
    ("RayCluster", "ray.io/v1", "RayCluster", KUBERAY),
    ("RayJob", "ray.io/v1", "RayCluster", KUBERAY),
    ("RayService", "ray.io/v1", "RayCluster", KUBERAY),
    ("MPIJob", "kubeflow.org/v2beta1", "MPIJob", MPI_OPERATOR),
    ("PyTorchJob", "kubeflow.org/v1", "PyTorchJob", JOB_CONTROLLER),
    ("JobSet", "batch/v1", "Job", JOB_CONTROLLER),
    ("TrainJob", "batch/v1", "Job", JOB_CONTROLLER),
]


@pytest.mark.parametrize(("chosen", "api", "kind", "user"), WORKERS)
def test_the_workers_of_what_is_admitted_as_a_whole_are_let_in(chosen: str, api: str, kind: str, user: str) -> None:
    assert judge_pod(worker(api, kind), chosen, user) == []


@pytest.mark.parametrize(("chosen", "api", "kind", "user"), WORKERS)
def test_a_tenants_own_pod_is_no_worker(chosen: str, api: str, kind: str, user: str) -> None:
    assert judge_pod(worker(api, kind), chosen, "jane") == [WAIT]


@pytest.mark.parametrize(("chosen", "api", "kind", "user"), WORKERS[:5])
def test_workers_of_a_kind_that_kueue_is_not_told_of_wait_themselves(
    chosen: str, api: str, kind: str, user: str
) -> None:
    assert judge_pod(worker(api, kind), "", user) == [WAIT]


@pytest.mark.parametrize("kind", ["StatefulSet", "LeaderWorkerSet"])
def test_pods_that_are_gated_need_their_gate_whatever_owns_them(kind: str) -> None:
    made = worker("apps/v1", "StatefulSet")
    assert judge_pod(made, kind, JOB_CONTROLLER) == [WAIT]
    gated = {**made, "spec": {**made["spec"], "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}}
    assert judge_pod(gated, kind, JOB_CONTROLLER) == []


# --- What makes them -------------------------------------------------------------------------------------------------


def work(kind: str, *owners: dict[str, Any], suspend: bool | None = True) -> dict[str, Any]:
    """An object of a kind, suspended where it says so."""
    framework = frameworks()[kind]
    *route, last = framework.suspend.split(".")
    body: dict[str, Any] = {} if suspend is None else {last: suspend}
    for step in reversed(route):
        body = {step: body}
    metadata: dict[str, Any] = {"name": "large", "namespace": "research"}
    return {
        "apiVersion": framework.api,
        "kind": kind,
        "metadata": metadata | ({"ownerReferences": [*owners]} if owners else {}),
        "spec": {"other": 1, **body.get("spec", {})},
    }


HELD = sorted(kind.value for kind in Framework if frameworks()[kind.value].suspend)
STOPPED = "only Kueue may suspend running work; delete the work to stop it"
STARTED = "the work must be suspended until Kueue starts it; its webhook suspends the kinds that it manages"


def judge_work(new: dict[str, Any], old: dict[str, Any] | None = None, user: str = "jane") -> list[str]:
    return refusals(policy("gpuplan-frameworks", platform(EVERY)), new, old=old, user=user)


@pytest.mark.parametrize("kind", HELD)
def test_work_waits_for_kueue(kind: str) -> None:
    assert judge_work(work(kind)) == []
    assert judge_work(work(kind, suspend=False)) == [STARTED]
    assert judge_work(work(kind, suspend=None)) == [STARTED]


@pytest.mark.parametrize("kind", HELD)
def test_kueue_alone_starts_it(kind: str) -> None:
    assert judge_work(work(kind, suspend=False), work(kind)) == [STARTED]
    assert judge_work(work(kind, suspend=False), work(kind), KUEUE) == []
    assert judge_work(work(kind, suspend=False), work(kind, suspend=False)) == []


@pytest.mark.parametrize("kind", HELD)
def test_kueue_alone_stops_it(kind: str) -> None:
    assert judge_work(work(kind), work(kind, suspend=False)) == [STOPPED]
    assert judge_work(work(kind), work(kind, suspend=False), KUEUE) == []


def test_a_scale_raises_no_replicas_of_any_work() -> None:
    """A `Scale` does not show whether its work waits or runs."""

    def scale(replicas: int) -> dict[str, Any]:
        metadata = {"name": "large", "namespace": "research"}
        return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": replicas}}

    [refused] = judge_work(scale(3), scale(2))
    assert refused.startswith("replicas of running work must not be raised, nor those of any work by its scale;")
    assert judge_work(scale(2), scale(3)) == []


@pytest.mark.parametrize(
    ("kind", "of", "user"),
    [
        ("RayCluster", ("ray.io/v1", "RayJob"), KUBERAY),
        ("JobSet", ("trainer.kubeflow.org/v1alpha1", "TrainJob"), TRAINER),
    ],
)
def test_a_controller_makes_one_kind_of_another_and_starts_it(kind: str, of: tuple[str, str], user: str) -> None:
    assert judge_work(work(kind, owner(*of), suspend=False), user=user) == []


# --- Jobs ------------------------------------------------------------------------------------------------------------


def a_job(*owners: dict[str, Any], suspend: bool) -> dict[str, Any]:
    spec = {"suspend": suspend, "template": {"spec": {"containers": [asking(GPU)]}}}
    metadata = {"name": "large-0", "namespace": "research", "ownerReferences": [*owners]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


JOB_SET = owner("jobset.x-k8s.io/v1alpha2", "JobSet")
UNKNOWN = (
    "Jobs that Kueue counts are started by Kueue alone where it does not know the kind that they are of: the platform "
    "team adds it to scheduler.kueue.frameworks"
)


def judge_job(chosen: str, new: dict[str, Any], old: dict[str, Any] | None = None, user: str = "jane") -> list[str]:
    return refusals(policy("gpuplan-jobs", platform(chosen)), new, old=old, user=user)


def test_the_controller_of_a_kind_that_kueue_is_not_told_of_starts_none_of_its_jobs() -> None:
    held, started = a_job(JOB_SET, suspend=True), a_job(JOB_SET, suspend=False)
    assert judge_job("", started, user=JOBSET_CONTROLLER) == [UNKNOWN]
    assert judge_job("", started, held, user=JOBSET_CONTROLLER) == [UNKNOWN]
    assert judge_job("", held, user=JOBSET_CONTROLLER) == []
    assert judge_job("", started, held, user=KUEUE) == []
    assert judge_job("", started, started, user=JOBSET_CONTROLLER) == []


def test_it_does_so_where_kueue_is_told() -> None:
    started = a_job(JOB_SET, suspend=False)
    assert judge_job("JobSet", started, user=JOBSET_CONTROLLER) == []
    assert judge_job("TrainJob", started, user=JOBSET_CONTROLLER) == []
    assert judge_job("RayJob", started, user=JOBSET_CONTROLLER) == [UNKNOWN]


def test_an_operator_that_updates_jobs_starts_its_launcher() -> None:
    launcher = a_job(owner("kubeflow.org/v2beta1", "MPIJob"), suspend=False)
    assert judge_job("MPIJob", launcher, user=MPI_OPERATOR) == []
    assert judge_job("MPIJob", launcher) != []
