"""What no scheduler's cluster lets a tenant do, and what it lets the scheduler itself do.

Tenant `research` may ask for whole GPUs in pool `whole`, and where there are any for fractions in pool `parts`; tenant
`serving` has the pool `other` and the class `production`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import pytest

from gpuplan.compiler.backends import scheduling
from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.scheduling.cel import KUBERNETES_FUNCTIONS, STANDARD_FUNCTIONS, functions_of, refusals
from tests.compiler.backends.scheduling.platform import parameters_of, policy
from tests.compiler.backends.scheduling.pods import asking, container, pod
from tests.plans import a_cluster, a_plan

SCHEDULERS: Final = ("kubernetes", "kueue", "kai", "runai")
POLICIES = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: whole}
spec: {gpu: A100-80GB, nodes: {count: 2, gpusPerNode: 8}, sharing: {exclusive: {}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: other}
spec: {gpu: A100-80GB, nodes: {count: 2, gpusPerNode: 8}, sharing: {mig: {instances: {3g.40gb: 2}}}}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: research}
spec: {value: 50}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: production}
spec: {value: 1000}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: research}
spec:
  namespaces: [research]
  priorityClasses: [research]
  quotas: [{pool: whole, guaranteed: 4}]
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: serving}
spec:
  namespaces: [serving]
  priorityClasses: [production]
  quotas: [{pool: other, guaranteed: 8}]
"""
FRACTIONS = """\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: parts}
spec: {gpu: A100-80GB, nodes: {count: 2, gpusPerNode: 8}, sharing: {fraction: {}}}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: fractions}
spec: {namespaces: [fractions], priorityClasses: [research], quotas: [{pool: parts, guaranteed: 2}]}
"""

GPU, PARTITION = "nvidia.com/gpu", "nvidia.com/mig-3g.40gb"
GATE: Final = [{"name": "kueue.x-k8s.io/admission"}]
HELD: Final[dict[str, dict[str, Any]]] = {
    "kubernetes": {},
    "kueue": {"schedulingGates": GATE},
    "kai": {
        "schedulerName": "kai-scheduler",
        "labels": {"kai.scheduler/queue": "research-whole", "kai.scheduler/node-pool": "whole"},
    },
    "runai": {"schedulerName": "runai-scheduler", "labels": {"runai/node-pool": "whole"}},
}
"""What a pod with GPUs has on each scheduler's cluster, its webhook's work included."""

JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "small", "uid": "0", "controller": True}
REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-6d4", "uid": "0", "controller": True}
JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"
REPLICA_SETS = "system:serviceaccount:kube-system:replicaset-controller"
KUEUE = "system:serviceaccount:kueue-system:kueue-controller-manager"
BINDER = "system:serviceaccount:kai-scheduler:binder"


@cache
def platform(scheduler: str) -> Plan:
    fractions = FRACTIONS if scheduler in ("kai", "runai") else ""
    return a_plan(f"{a_cluster(f'kind: {scheduler}')}---\n{POLICIES}{fractions}")


def judge(made: dict[str, Any], scheduler: str, user: str = "jane", more: dict[str, str] | None = None) -> list[str]:
    """Why a new pod of tenant `research` is refused; empty when it is let in."""
    plan = platform(scheduler)
    given = parameters_of("research", plan) | (more or {})
    grants = refusals(policy("gpuplan-grants", plan), made, given, user=user)
    return grants + refusals(policy("gpuplan-devices", plan), made, user=user)


def change(old: dict[str, Any], new: dict[str, Any], scheduler: str, user: str = "jane", sub: str = "") -> list[str]:
    return refusals(policy("gpuplan-devices", platform(scheduler)), new, old=old, user=user, subresource=sub or None)


def a_pod(scheduler: str, *containers: dict[str, Any], owners: tuple[dict[str, Any], ...] = (), **changes: Any) -> Any:
    """A pod with a GPU that has all that it needs on the scheduler's cluster, but for the changes."""
    fields = {"pool": "whole", "priority_class": "research", **HELD[scheduler], **changes}
    made = pod(*(containers or (asking(GPU),)), **fields)
    return {**made, "metadata": {**made["metadata"], **({"ownerReferences": list(owners)} if owners else {})}}


def variable(name: str, value: str = "all") -> list[dict[str, Any]]:
    return [{"name": name, "value": value}]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_pod_with_what_its_tenant_has_is_let_in(scheduler: str) -> None:
    assert judge(a_pod(scheduler), scheduler) == []


# --- Another tenant's ------------------------------------------------------------------------------------------------

SETUP = asking(PARTITION, name="setup")
HOSTILE: Final[dict[str, tuple[tuple[dict[str, Any], ...], dict[str, Any], str]]] = {
    "another tenant's unit": ((asking(PARTITION),), {}, "tenant research has no quota on nvidia.com/mig-3g.40gb"),
    "another tenant's unit in its pool": (
        (asking(PARTITION),),
        {"pool": "other"},
        "tenant research has no quota on nvidia.com/mig-3g.40gb",
    ),
    "another tenant's unit in an init container": (
        (),
        {"init": (SETUP,)},
        "tenant research has no quota on nvidia.com/mig-3g.40gb",
    ),
    "another tenant's unit in a sidecar": (
        (),
        {"init": ({**SETUP, "restartPolicy": "Always"},)},
        "tenant research has no quota on nvidia.com/mig-3g.40gb",
    ),
    "another tenant's pool": ((), {"pool": "other"}, "tenant research has no quota in pool other"),
    "another tenant's pool without a GPU": (
        (container(),),
        {"pool": "other"},
        "tenant research has no quota in pool other",
    ),
    "another tenant's class": (
        (),
        {"priority_class": "production"},
        "priority class production is not open to tenant research",
    ),
    "another tenant's class without a GPU": (
        (container(),),
        {"priority_class": "production"},
        "priority class production is not open to tenant research",
    ),
    "a system class": (
        (),
        {"priority_class": "system-node-critical"},
        "priority class system-node-critical is not open to tenant research",
    ),
    "no class": ((), {"priority_class": ""}, "pods that ask for GPUs must name a priority class of tenant research"),
    "a scheduler of nobody": ((), {"schedulerName": "volcano"}, "schedulerName must be "),
    "a node": ((), {"nodeName": "node-1"}, "nodeName must not be set"),
    "a node without a GPU": ((container(),), {"nodeName": "node-1"}, "nodeName must not be set"),
    "all GPUs by a variable": (
        (container(env=variable("NVIDIA_VISIBLE_DEVICES")),),
        {},
        "NVIDIA_VISIBLE_DEVICES must not be set",
    ),
    "all GPUs by a variable beside one": (
        (asking(GPU, env=variable("NVIDIA_VISIBLE_DEVICES")),),
        {},
        "NVIDIA_VISIBLE_DEVICES must not be set",
    ),
    "all GPUs by a variable in an init container": (
        (),
        {"init": (container("setup", env=variable("NVIDIA_VISIBLE_DEVICES")),)},
        "NVIDIA_VISIBLE_DEVICES must not be set",
    ),
    "control of partitions": (
        (asking(GPU, env=variable("NVIDIA_MIG_CONFIG_DEVICES")),),
        {},
        "NVIDIA_MIG_CONFIG_DEVICES must not be set",
    ),
    "all GPUs by an annotation": (
        (),
        {"annotations": {"cdi.k8s.io/gpus": "nvidia.com/gpu=all"}},
        "annotations cdi.k8s.io/* must not be set",
    ),
    "all GPUs by the agent of fractions": (
        (container(),),
        {"annotations": {"nvidia.com/container.main.gpus.devices": "all"}},
        "annotations nvidia.com/container.*.gpus.devices must not be set",
    ),
    "all GPUs by an agent of fractions with a prefix of its own": (
        (container(),),
        {"annotations": {"example.com/container.main.gpus.devices": "all"}},
        "annotations nvidia.com/container.*.gpus.devices must not be set",
    ),
    "a claim": (
        (),
        {"resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}]},
        "resourceClaims are not open to tenants",
    ),
    "a device class as a resource": (
        (asking("deviceclass.resource.kubernetes.io/gpu.nvidia.com"),),
        {},
        "resources of device classes are not open to tenants",
    ),
    "NVIDIA's runtime without a GPU": (
        (container(),),
        {"runtimeClassName": "nvidia"},
        "a runtimeClassName of NVIDIA is for pods that ask for GPUs",
    ),
    "a GPU in requests alone": ((container(requests={GPU: "1"}),), {}, "GPUs are asked for in the resources.limits"),
    "a GPU for the pod as a whole": ((), {"resources": {"limits": {GPU: "1"}}}, "GPUs are asked for in the resources"),
}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize(("containers", "changes", "message"), HOSTILE.values(), ids=HOSTILE)
def test_refused_by_every_cluster(
    containers: tuple[dict[str, Any], ...], changes: dict[str, Any], message: str, scheduler: str
) -> None:
    assert [text for text in judge(a_pod(scheduler, *containers, **changes), scheduler) if text.startswith(message)]


@pytest.mark.parametrize(
    ("scheduler", "message"),
    [
        ("kubernetes", "annotations gpu-fraction and gpu-memory have no effect on this cluster"),
        ("kueue", "annotations gpu-fraction and gpu-memory have no effect on this cluster"),
        ("kai", "tenant research has no quota on fractions of GPUs in pool whole"),
        ("runai", "tenant research has no quota on fractions of GPUs in pool whole"),
    ],
)
@pytest.mark.parametrize("annotation", ["gpu-fraction", "gpu-memory"])
def test_a_fraction_is_refused_to_who_has_none(scheduler: str, message: str, annotation: str) -> None:
    made = a_pod(scheduler, container(), annotations={annotation: "0.5"})
    assert judge(made, scheduler)[0].startswith(message)


@pytest.mark.parametrize("queue", ["serving-other", "default-queue", ""])
def test_another_tenants_queue_is_refused(queue: str) -> None:
    labels = {"kai.scheduler/queue": queue, "kai.scheduler/node-pool": "whole"}
    (message,) = judge(a_pod("kai", labels=labels), "kai")
    assert message.startswith("pods that ask for GPUs in pool whole must name the queue of tenant research there")


@pytest.mark.parametrize("scheduler", ["kai-scheduler", "runai-scheduler"])
@pytest.mark.parametrize("cluster", ["kubernetes", "kueue"])
def test_a_scheduler_that_the_cluster_has_not_is_refused(cluster: str, scheduler: str) -> None:
    assert judge(a_pod(cluster, schedulerName=scheduler), cluster) == ["schedulerName must be default-scheduler"]


# --- Pods that exist -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("name", ["NVIDIA_VISIBLE_DEVICES", "CUDA_VERSION"])
def test_a_debug_container_chooses_no_devices(scheduler: str, name: str) -> None:
    old = a_pod(scheduler)
    new = {**old, "spec": {**old["spec"], "ephemeralContainers": [container("debug", env=variable(name))]}}
    assert change(old, new, scheduler, sub="ephemeralcontainers")[0].startswith(f"{name} must not be set")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("annotation", ["nvidia.com/container.main.gpus.devices", "cdi.k8s.io/gpus"])
def test_no_device_is_chosen_for_a_pod_that_waits(scheduler: str, annotation: str) -> None:
    for before in (None, {annotation: "GPU-1"}):
        old, new = a_pod(scheduler, annotations=before), a_pod(scheduler, annotations={annotation: "all"})
        assert change(old, new, scheduler) != []


@pytest.mark.parametrize("scheduler", ["kai", "runai"])
def test_the_scheduler_says_which_device_it_is(scheduler: str) -> None:
    old = a_pod(scheduler, annotations={"gpu-fraction": "0.5"})
    new = a_pod(scheduler, annotations={"gpu-fraction": "0.5", "nvidia.com/container.main.gpus.devices": "GPU-1"})
    assert change(old, new, scheduler, BINDER) == []
    assert change(old, new, scheduler, "system:serviceaccount:serving:binder") != []


# --- Kueue -----------------------------------------------------------------------------------------------------------

WAIT = (
    "pods that ask for GPUs must wait for Kueue: its webhook adds the scheduling gate kueue.x-k8s.io/admission to pods "
    "that name no owner"
)


def ungated(*owners: dict[str, Any]) -> Any:
    made = a_pod("kueue", owners=owners)
    return {**made, "spec": {key: value for key, value in made["spec"].items() if key != "schedulingGates"}}


def test_a_pod_that_does_not_wait_for_kueue_is_refused() -> None:
    assert judge(ungated(), "kueue") == [WAIT]


@pytest.mark.parametrize("user", ["jane", "system:serviceaccount:research:default", "system:serviceaccount:serving:ci"])
@pytest.mark.parametrize("owner", [JOB, REPLICA_SET], ids=["job", "replicaset"])
def test_an_owner_by_name_is_no_way_around_kueue(owner: dict[str, Any], user: str) -> None:
    assert judge(ungated(owner), "kueue", user) == [WAIT]


def test_the_pods_of_a_job_that_kueue_started_are_let_in() -> None:
    assert judge(ungated(JOB), "kueue", JOB_CONTROLLER) == []


@pytest.mark.parametrize(
    "owner",
    [
        REPLICA_SET,
        {**JOB, "apiVersion": "batch.volcano.sh/v1alpha1"},
        {key: value for key, value in JOB.items() if key != "controller"},
    ],
)
def test_the_pods_of_what_kueue_does_not_hold_back_must_wait_themselves(owner: dict[str, Any]) -> None:
    assert judge(ungated(owner), "kueue", REPLICA_SETS) == [WAIT]


def test_further_kinds_that_kueue_holds_back_can_be_opened() -> None:
    owner = {**JOB, "apiVersion": "ray.io/v1", "kind": "RayCluster"}
    more = {"otherOwners": "kubeflow.org/v1 PyTorchJob\nray.io/v1 RayCluster\n"}
    assert judge(ungated(owner), "kueue", JOB_CONTROLLER, more) == []
    assert judge(ungated(owner), "kueue", "jane", more) == [WAIT]


def test_pods_without_gpus_need_not_wait() -> None:
    assert judge(pod(), "kueue") == []


def test_kueue_alone_takes_its_gate_away() -> None:
    told = "the scheduling gate kueue.x-k8s.io/admission is for Kueue to take away, when it admits the pod"
    assert change(a_pod("kueue"), ungated(), "kueue") == [told]
    assert change(a_pod("kueue"), a_pod("kueue", schedulingGates=[]), "kueue") == [told]
    assert change(a_pod("kueue"), ungated(), "kueue", KUEUE) == []


def test_other_gates_may_go() -> None:
    two = a_pod("kueue", schedulingGates=[*GATE, {"name": "example.com/wait"}])
    assert change(two, a_pod("kueue"), "kueue") == []
    assert change(a_pod("kueue", schedulingGates=[{"name": "example.com/wait"}]), ungated(), "kueue") == []


def test_a_pod_that_waits_can_be_changed_otherwise() -> None:
    assert change(a_pod("kueue"), a_pod("kueue", annotations={"a": "b"}), "kueue") == []
    assert change(ungated(), ungated(), "kueue") == []


# --- Jobs under Kueue ------------------------------------------------------------------------------------------------


def a_job(*, suspend: bool | None, gpus: str = "1", **template: Any) -> dict[str, Any]:
    """A Job that calls itself part of another."""
    spec = {"template": {"spec": {"containers": [asking(GPU, gpus)], **template}}}
    held = {} if suspend is None else {"suspend": suspend}
    metadata = {"name": "large", "namespace": "research", "ownerReferences": [JOB]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {**held, **spec}}


def judge_job(new: dict[str, Any], old: dict[str, Any] | None = None, user: str = "jane") -> list[str]:
    return refusals(policy("gpuplan-jobs", platform("kueue")), new, old=old, user=user)


HELD_BACK = (
    "Jobs that Kueue counts must be suspended until it starts them; its webhook suspends those that name no owner"
)


@pytest.mark.parametrize("suspend", [False, None])
@pytest.mark.parametrize("user", ["jane", "system:serviceaccount:research:default", "system:serviceaccount:serving:ci"])
def test_a_job_with_gpus_does_not_start_by_itself(suspend: bool | None, user: str) -> None:
    assert judge_job(a_job(suspend=suspend), user=user) == [HELD_BACK]
    assert judge_job(a_job(suspend=suspend), a_job(suspend=True), user) == [HELD_BACK]


def test_a_job_with_a_gpu_in_an_init_container_or_by_a_claim_does_not_either() -> None:
    hidden = a_job(suspend=False, containers=[container()], initContainers=[asking(GPU, name="setup")])
    claimed = a_job(suspend=False, containers=[container()], resourceClaims=[{"name": "gpu"}])
    assert judge_job(hidden) == judge_job(claimed) == [HELD_BACK]


def test_a_job_that_waits_is_let_in_and_started_by_kueue() -> None:
    assert judge_job(a_job(suspend=True)) == []
    assert judge_job(a_job(suspend=False), a_job(suspend=True), KUEUE) == []


def test_a_job_that_runs_may_be_changed_and_stopped() -> None:
    assert judge_job(a_job(suspend=False), a_job(suspend=False)) == []
    assert judge_job(a_job(suspend=True), a_job(suspend=False)) == []


def test_a_job_that_a_controller_makes_of_what_kueue_started_is_let_in() -> None:
    assert judge_job(a_job(suspend=False), user="system:serviceaccount:kube-system:cronjob-controller") == []


def test_a_job_without_gpus_starts_as_it_likes() -> None:
    assert judge_job(a_job(suspend=False, gpus="0")) == []


def test_the_policy_on_jobs_holds_for_all_tenants_of_kueue_alone() -> None:
    names = {
        scheduler: [item.kind for item in scheduling.render(platform(scheduler)) if item.name == "gpuplan-jobs"]
        for scheduler in SCHEDULERS
    }
    both = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]
    assert names == {"kubernetes": [], "kueue": both, "kai": [], "runai": []}


# --- The expressions themselves --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_expressions_call_only_what_kubernetes_1_30_knows(scheduler: str) -> None:
    for found in scheduling.render(platform(scheduler)):
        spec = found.body["spec"] if found.kind == "ValidatingAdmissionPolicy" else {"variables": [], "validations": []}
        for item in (*spec["variables"], *spec["validations"]):
            assert functions_of(item["expression"]) <= STANDARD_FUNCTIONS | KUBERNETES_FUNCTIONS.keys()
