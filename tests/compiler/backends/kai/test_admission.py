"""Which pods and which PodGroups of a tenant are let in on a cluster with KAI-Scheduler."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest

from gpuplan.compiler.backends import namespaces, scheduling
from gpuplan.compiler.planning.grants import parameters
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from tests.compiler.backends.kai.platform import platform
from tests.compiler.backends.scheduling.cel import KUBERNETES_FUNCTIONS, STANDARD_FUNCTIONS, functions_of, refusals
from tests.compiler.backends.scheduling.pods import asking, pod
from tests.every import every

SMALL = "nvidia.com/mig-2g.20gb"
MIG_LABELS = {"kai.scheduler/queue": "physics-a100-mig", "kai.scheduler/node-pool": "a100-mig"}
H100_LABELS = {"kai.scheduler/queue": "physics-h100", "kai.scheduler/node-pool": "h100"}


def policy(name: str) -> Any:
    found = scheduling.render(platform())
    return next(item.body for item in found if (item.kind, item.name) == ("ValidatingAdmissionPolicy", name))


def parameters_of(namespace: str) -> dict[str, str]:
    tenant = next(tenant for tenant in platform().tenants if namespace in tenant.spec.namespaces)
    return dict(parameters(tenant, namespace, SCHEDULERS["kai"]))


# --- Pods --------------------------------------------------------------------------------------------------------


def partition(**changes: Any) -> dict[str, Any]:
    """A pod that has all that it needs, but for the changes."""
    fields: dict[str, Any] = {
        "pool": "a100-mig",
        "priority_class": "spot",
        "labels": MIG_LABELS,
        "schedulerName": "kai-scheduler",
        **changes,
    }
    return pod(asking(SMALL), **fields)


def half(**changes: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "pool": "h100",
        "priority_class": "spot",
        "labels": H100_LABELS,
        "annotations": {"gpu-fraction": "0.5"},
        "schedulerName": "kai-scheduler",
        **changes,
    }
    return pod(**fields)


def judge(made: dict[str, Any], namespace: str = "physics") -> list[str]:
    return refusals(policy("gpuplan-grants"), made, parameters_of(namespace))


@pytest.mark.parametrize("namespace", ["physics", "physics-batch"])
@pytest.mark.parametrize("made", [partition(), half()], ids=["partition", "fraction"])
def test_a_pod_that_names_queue_pool_and_scheduler_is_let_in(made: dict[str, Any], namespace: str) -> None:
    assert judge(made, namespace) == []


def test_pods_without_gpus_need_none_of_it() -> None:
    assert judge(pod()) == []
    assert judge(pod(labels={"kai.scheduler/queue": "physics-h100"}, schedulerName="kai-scheduler")) == []


QUEUE = (
    "pods that ask for GPUs in pool {} must name the queue of tenant physics there: set the label kai.scheduler/queue "
    "to physics-{}"
)
SHARD = "pods that ask for GPUs in pool {} must say so to its scheduler: set the label kai.scheduler/node-pool to {}"
SCHEDULER = "pods that ask for GPUs must set schedulerName to kai-scheduler"
GROUP = "annotations pod-group-name and kai.scheduler/skip-podgrouper must not be set; KAI-Scheduler groups pods itself"

REFUSED = {
    "another scheduler": (partition(schedulerName="default-scheduler"), SCHEDULER),
    "a fraction by another scheduler": (half(schedulerName="default-scheduler"), SCHEDULER),
    "no queue": (partition(labels={"kai.scheduler/node-pool": "a100-mig"}), QUEUE.format("a100-mig", "a100-mig")),
    "another tenant's queue": (half(labels={**H100_LABELS, "kai.scheduler/queue": "serving-h100"}), QUEUE),
    "the parent's queue": (half(labels={**H100_LABELS, "kai.scheduler/queue": "science-h100"}), QUEUE),
    "its own queue in another pool": (
        partition(labels={**MIG_LABELS, "kai.scheduler/queue": "physics-h100"}),
        QUEUE.format("a100-mig", "a100-mig"),
    ),
    "no shard": (partition(labels={"kai.scheduler/queue": "physics-a100-mig"}), SHARD.format("a100-mig", "a100-mig")),
    "another shard": (
        partition(labels={**MIG_LABELS, "kai.scheduler/node-pool": "h100"}),
        SHARD.format("a100-mig", "a100-mig"),
    ),
    "no labels": (partition(labels=None), QUEUE.format("a100-mig", "a100-mig")),
    "no pool": (partition(pool=""), "pods that ask for GPUs must choose a pool"),
    "a group of its own": (partition(annotations={"pod-group-name": "pg-serving"}), GROUP),
    "no grouping": (partition(annotations={"kai.scheduler/skip-podgrouper": "true"}), GROUP),
    "a group without GPUs": (pod(annotations={"pod-group-name": "pg-serving"}), GROUP),
}


@pytest.mark.parametrize(("made", "message"), REFUSED.values(), ids=REFUSED)
def test_a_pod_is_told_what_it_lacks(made: dict[str, Any], message: str) -> None:
    assert judge(made)[0].startswith(message.format("h100", "h100"))


# --- Pods that exist ---------------------------------------------------------------------------------------------

POD_GROUPER = "system:serviceaccount:kai-scheduler:pod-grouper"
GROUPED = {"gpu-fraction": "0.5", "pod-group-name": "pg-train-0"}


def judge_change(annotations: dict[str, str], user: str = "jane", old: dict[str, str] | None = None) -> list[str]:
    """A change of the annotations of a pod in namespace `research` that has half of a GPU."""
    before = half(annotations={"gpu-fraction": "0.5"} if old is None else old)
    return refusals(policy("gpuplan-devices"), half(annotations=annotations), old=before, user=user)


def test_the_pod_grouper_groups_pods() -> None:
    assert judge_change(GROUPED, POD_GROUPER) == []
    assert judge_change({**GROUPED, "pod-group-name": "pg-train-1"}, POD_GROUPER, old=GROUPED) == []


def test_other_annotations_may_change() -> None:
    assert judge_change({**GROUPED, "example.com/note": "b"}, old={**GROUPED, "example.com/note": "a"}) == []
    assert judge_change(GROUPED, old={**GROUPED, "example.com/note": "a"}) == []


@pytest.mark.parametrize(
    "annotations",
    [
        {**GROUPED, "pod-group-name": "pg-of-another-tenant"},
        {**GROUPED, "gpu-fraction": "0.01"},
        {**GROUPED, "gpu-memory": "100"},
        {**GROUPED, "gpu-fraction-num-devices": "2"},
        {**GROUPED, "nvidia.com/container.main.gpu-memory.request": "1"},
        {"pod-group-name": "pg-train-0"},
        {"gpu-fraction": "0.5"},
    ],
)
@pytest.mark.parametrize("user", ["jane", "system:serviceaccount:research:default"])
def test_what_the_scheduler_counts_by_stays(annotations: dict[str, str], user: str) -> None:
    assert judge_change(annotations, user, old=GROUPED) == [
        "annotations that KAI-Scheduler counts by are not to be changed; make a new pod"
    ]


# --- PodGroups ---------------------------------------------------------------------------------------------------


def group(queue: str | None = "physics-h100", priority: str | None = "spot", **spec: Any) -> dict[str, Any]:
    """A PodGroup as the pod grouper makes it; not even the queue need be there."""
    fields = {"queue": queue, "priorityClassName": priority, "minMember": 1, **spec}
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "pg-train-0", "namespace": "physics"},
        "spec": {key: value for key, value in fields.items() if value is not None},
    }


def judge_group(made: dict[str, Any], namespace: str = "physics", old: dict[str, Any] | None = None) -> list[str]:
    return refusals(policy("gpuplan-queues"), made, parameters_of(namespace), old=old)


@pytest.mark.parametrize("queue", ["physics-h100", "physics-a100-mig"])
@pytest.mark.parametrize("priority", ["spot", "guaranteed", "", None])
def test_work_joins_its_tenants_queues_with_its_classes(queue: str, priority: str | None) -> None:
    assert judge_group(group(queue, priority)) == []


@pytest.mark.parametrize("queue", ["serving-h100", "science-h100", "default-queue"])
def test_work_joins_no_other_queue(queue: str) -> None:
    (message,) = judge_group(group(queue))
    assert message == (
        f"queue {queue} is not open to tenant physics; "
        "set the label kai.scheduler/queue to physics-a100-mig or physics-h100"
    )


@pytest.mark.parametrize("made", [group(None), {**group(), "spec": {}}, {"metadata": {"name": "a"}}])
def test_work_without_a_queue_is_refused(made: dict[str, Any]) -> None:
    assert judge_group(made)[0].startswith("queue (none) is not open to tenant physics")


def test_a_class_by_a_label_of_the_owner_is_seen() -> None:
    """The label `priorityClassName` of a Job comes before the class of its pods."""
    assert judge_group(group(priority="system-node-critical")) == [
        "priority class system-node-critical is not open to tenant physics; set priorityClassName to guaranteed or spot"
    ]


def test_work_of_a_tenant_without_classes_gets_the_schedulers_own() -> None:
    assert judge_group(group("serving-h100", "inference"), "serving") == []
    assert judge_group(group("serving-h100", "guaranteed"), "serving") != []


def test_work_cannot_move_to_another_queue() -> None:
    assert judge_group(group("serving-h100"), old=group()) != []
    assert judge_group(group(priority="production"), old=group()) != []


def test_work_that_lost_its_queue_can_be_finished() -> None:
    lost = group("physics-l40s", "former")
    assert judge_group({**lost, "metadata": {"name": "pg-train-0", "labels": {"a": "b"}}}, old=lost) == []


def test_work_without_a_spec_gets_no_queue_by_an_update() -> None:
    assert judge_group(group("serving-h100"), old={"metadata": {"name": "a"}}) != []


def test_each_namespace_is_bound_to_its_own_parameters() -> None:
    found = {
        manifest.name: manifest.body["spec"]
        for manifest in namespaces.render(platform())
        if manifest.kind == "ValidatingAdmissionPolicyBinding"
    }
    assert sorted(found) == [
        "gpuplan-grants-physics",
        "gpuplan-grants-physics-batch",
        "gpuplan-grants-serving",
        "gpuplan-queues-physics",
        "gpuplan-queues-physics-batch",
        "gpuplan-queues-serving",
    ]
    assert found["gpuplan-queues-physics-batch"] == {
        "policyName": "gpuplan-queues",
        "paramRef": {"name": "grants-physics-batch", "namespace": "gpuplan-system", "parameterNotFoundAction": "Deny"},
        "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "physics-batch"}}},
        "validationActions": ["Deny", "Audit"],
    }


def test_the_policy_is_about_pod_groups() -> None:
    assert policy("gpuplan-queues")["spec"]["matchConstraints"] == {
        "resourceRules": [
            {
                "apiGroups": ["scheduling.run.ai"],
                "apiVersions": ["v2alpha2"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["podgroups"],
            }
        ]
    }


@pytest.mark.parametrize("minor", ["1.30", "1.37"])
def test_the_policy_has_the_shape_that_kubernetes_wants(minor: str) -> None:
    kubernetes_validate.validate(policy("gpuplan-queues"), minor, strict=True)


def expressions() -> list[str]:
    found: list[str] = []
    for name in ("gpuplan-devices", "gpuplan-grants", "gpuplan-queues"):
        spec = policy(name)["spec"]
        found += [item["expression"] for item in (*spec["variables"], *spec["validations"])]
        found += [rule["messageExpression"] for rule in spec["validations"] if "messageExpression" in rule]
    return found


@every(expressions())
def test_expressions_call_only_what_kubernetes_1_30_knows(expression: str) -> None:
    assert functions_of(expression) <= STANDARD_FUNCTIONS | KUBERNETES_FUNCTIONS.keys()
