"""Pods come to the nodes of a pool, and of the control plane, with the selector of a granted pool alone.

Pool `granted` has a taint of its own key, `cordial` only asks pods to stay away, `strict` has two that keep them off,
and `foreign` has the usual taint of GPU nodes. Tenant `research` has a quota in the first two.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import pytest

from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.scheduling.cel import refusals
from tests.compiler.backends.scheduling.platform import parameters_of, policy
from tests.compiler.backends.scheduling.pods import asking, pod
from tests.platforms import a_platform, pool, tenant

SCHEDULERS: Final = ("kubernetes", "kueue", "kai", "runai")
GPU: Final = "nvidia.com/gpu"
KUEUE, DAEMON_SETS = (
    "system:serviceaccount:kueue-system:kueue-controller-manager",
    "system:serviceaccount:kube-system:daemon-set-controller",
)
ALL: Final = {"operator": "Exists"}
USUAL: Final = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
CONTROL_PLANE: Final = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}
CORDON: Final = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}


@cache
def platform(scheduler: str) -> Plan:
    return a_platform(
        pool("granted", "exclusive: {}", "taints: [{key: lab, value: mine, effect: NoSchedule}]"),
        pool("cordial", "exclusive: {}", "taints: [{key: polite, effect: PreferNoSchedule}]"),
        pool("strict", "exclusive: {}", "taints: [{key: a, effect: NoSchedule}, {key: b, effect: NoExecute}]"),
        pool("foreign", "exclusive: {}", "taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]"),
        tenant("research", "pool: granted, guaranteed: 4", "pool: cordial, guaranteed: 4"),
        scheduler=scheduler,
    )


def judge(made: dict[str, Any], scheduler: str, user: str = "jane", old: dict[str, Any] | None = None) -> list[str]:
    plan = platform(scheduler)
    return refusals(policy("gpuplan-grants", plan), made, parameters_of("research", plan), user=user, old=old)


def by_affinity(*, fields: bool = False) -> dict[str, Any]:
    """An affinity to a node by its name, or to the nodes of pool `foreign`."""
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}]}
    pooled = {"matchExpressions": [{"key": "gpuplan.dev/pool", "operator": "In", "values": ["foreign"]}]}
    terms = {"nodeSelectorTerms": [named if fields else pooled]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


ENTERING: Final[dict[str, dict[str, Any]]] = {
    "all taints": {"tolerations": [ALL]},
    "all taints, by hostname": {"tolerations": [ALL], "nodeSelector": {"kubernetes.io/hostname": "gpu-1"}},
    "all taints, by affinity to the pool": {"tolerations": [ALL], "affinity": by_affinity()},
    "all taints, by a field of the node": {"tolerations": [ALL], "affinity": by_affinity(fields=True)},
    "all taints that keep new pods off": {"tolerations": [{**ALL, "effect": "NoSchedule"}]},
    "the key": {"tolerations": [{"key": GPU, "operator": "Exists"}]},
    "the key with its effect": {"tolerations": [USUAL]},
    "the key with its value": {"tolerations": [{"key": GPU, "value": "present"}]},
    "the key with another value: a managed service sets the taint": {
        "tolerations": [{"key": GPU, "operator": "Equal", "value": "true"}]
    },
    "the key with an operator to come": {"tolerations": [{"key": "lab", "operator": "Gt", "value": "1"}]},
    "a granted pool's own taint": {"tolerations": [{"key": "lab", "operator": "Equal", "value": "mine"}]},
    "both taints of a pool": {
        "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists", "effect": "NoExecute"}]
    },
    "the control plane": {"tolerations": [CONTROL_PLANE]},
    "the control plane's older name": {
        "tolerations": [{"key": "node-role.kubernetes.io/master", "operator": "Exists", "effect": "NoSchedule"}]
    },
}

OTHERS: Final[dict[str, dict[str, Any]]] = {
    "no tolerations": {"tolerations": []},
    "nodes in trouble": {
        "tolerations": [
            {
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            },
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
        ]
    },
    "no eviction from any node": {"tolerations": [{**ALL, "effect": "NoExecute"}]},
    "what a DaemonSet's pods tolerate": {
        "tolerations": [
            {"key": f"node.kubernetes.io/{name}", "operator": "Exists"}
            for name in (
                "not-ready",
                "unreachable",
                "disk-pressure",
                "memory-pressure",
                "pid-pressure",
                "unschedulable",
            )
        ],
        "affinity": by_affinity(fields=True),
    },
    "another node group": {"tolerations": [{"key": "spot", "operator": "Exists"}]},
    "another value of a pool's key": {"tolerations": [{"key": "lab", "operator": "Equal", "value": "ci"}]},
    "an empty value of a pool's key": {"tolerations": [{"key": "lab"}]},
    "one of two taints": {"tolerations": [{"key": "b", "operator": "Exists"}]},
    "a taint that keeps nobody off": {"tolerations": [{"key": "polite", "operator": "Exists"}]},
    "a pool's key with another effect": {
        "tolerations": [{"key": GPU, "operator": "Exists", "effect": "PreferNoSchedule"}]
    },
}


@pytest.mark.parametrize("spec", ENTERING.values(), ids=ENTERING)
def test_who_tolerates_what_keeps_pods_off_needs_the_selector_of_a_granted_pool(spec: dict[str, Any]) -> None:
    (refusal,) = judge(pod(**spec), "kubernetes")

    assert refusal.endswith("take the toleration away, or set the nodeSelector gpuplan.dev/pool to cordial or granted")


@pytest.mark.parametrize("spec", OTHERS.values(), ids=OTHERS)
def test_other_tolerations_are_free(spec: dict[str, Any]) -> None:
    assert judge(pod(**spec), "kubernetes") == []


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_so_it_is_with_every_scheduler(scheduler: str) -> None:
    (refusal,) = judge(pod(**ENTERING["all taints, by hostname"]), scheduler)

    assert refusal.startswith("the pod tolerates")
    assert judge(pod(**OTHERS["what a DaemonSet's pods tolerate"]), scheduler) == []


def test_a_refusal_names_the_taints() -> None:
    tolerations = [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}, CONTROL_PLANE]

    (refusal,) = judge(pod(tolerations=tolerations), "kubernetes")

    assert refusal.startswith(
        "the pod tolerates a:NoSchedule with b:NoExecute and node-role.kubernetes.io/control-plane:NoSchedule, which"
    )


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("how", ["all taints, by hostname", "both taints of a pool", "the control plane"])
def test_with_the_selector_of_a_granted_pool_a_pod_tolerates_what_it_likes(how: str, scheduler: str) -> None:
    spec = ENTERING[how]
    selector = spec.get("nodeSelector", {}) | {"gpuplan.dev/pool": "granted"}

    assert judge(pod(**{**spec, "nodeSelector": selector}), scheduler) == []


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_selector_of_another_pool_opens_nothing(scheduler: str) -> None:
    (refusal,) = judge(pod(pool="foreign", tolerations=[USUAL]), scheduler)

    assert refusal.startswith("tenant research has no quota in pool foreign")


# --- Later -------------------------------------------------------------------------------------------------------

WAITING: Final[dict[str, Any]] = {"schedulingGates": [{"name": "example.com/mine"}]}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_toleration_that_comes_later_is_judged(scheduler: str) -> None:
    (refusal,) = judge(pod(tolerations=[USUAL]), scheduler, old=pod(tolerations=[]))

    assert refusal.startswith("the pod tolerates nvidia.com/gpu:NoSchedule")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_pool_that_comes_later_is_judged(scheduler: str) -> None:
    (refusal,) = judge(pod(pool="foreign", **WAITING), scheduler, old=pod(**WAITING))

    assert refusal.startswith("tenant research has no quota in pool foreign")
    assert judge(pod(pool="granted", **WAITING), scheduler, old=pod(**WAITING)) == []


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_pod_that_goes_nowhere_else_is_not_judged_again(scheduler: str) -> None:
    """What runs by a grant that is withdrawn still loses its finalizers."""
    running = pod(asking(GPU), pool="foreign", tolerations=[ALL])
    finished = {**running, "metadata": {**running["metadata"], "labels": {"done": "yes"}}}

    assert judge(finished, scheduler, old=running) == []


def gated(**fields: Any) -> dict[str, Any]:
    """A pod with a GPU as Kueue's webhook leaves it, and ExtendedResourceToleration before it."""
    return pod(
        asking(GPU), tolerations=[USUAL], **{"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}], **fields}
    )


def test_kueue_may_send_a_pod_to_a_pool_as_it_admits_it() -> None:
    admitted = gated(pool="granted", schedulingGates=[])

    assert judge(gated(), "kueue") == []
    assert judge(admitted, "kueue", KUEUE, old=gated()) == []


def test_a_pod_that_kueue_admits_to_no_pool_stays_where_it_is() -> None:
    """Kueue adds the selector of a flavor that its queue has; one that names another shape is admitted to none."""
    found = judge(gated(schedulingGates=[]), "kueue", KUEUE, old=gated())

    assert found[0].startswith("pods that ask for GPUs must choose a pool")
    assert found[1].startswith("the pod tolerates nvidia.com/gpu:NoSchedule")


def test_a_gate_of_kueue_is_no_excuse_for_a_pod_without_gpus() -> None:
    made = pod(tolerations=[ALL], schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])

    assert judge(made, "kueue")[0].startswith("the pod tolerates")


def test_runai_may_choose_the_pool_of_its_own_pods_alone() -> None:
    made = pod(asking(GPU), tolerations=[USUAL], schedulerName="runai-scheduler")

    assert judge(made, "runai") == []
    assert judge({**made, "spec": {**made["spec"], "schedulerName": "default-scheduler"}}, "runai")


# --- Cordoned nodes ----------------------------------------------------------------------------------------------

HELD: Final[dict[str, dict[str, Any]]] = {
    "kubernetes": {},
    "kueue": {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]},
    "kai": {
        "schedulerName": "kai-scheduler",
        "labels": {"kai.scheduler/queue": "research-granted", "kai.scheduler/node-pool": "granted"},
    },
    "runai": {"schedulerName": "runai-scheduler"},
}
STAYING: Final = (ALL, {**ALL, "effect": "NoSchedule"}, CORDON, {"key": CORDON["key"], "value": ""})


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("toleration", STAYING, ids=str)
def test_cordoned_nodes_stay_empty_of_gpu_pods(toleration: dict[str, str], scheduler: str) -> None:
    made = pod(asking(GPU), pool="granted", tolerations=[toleration], **HELD[scheduler])

    (refusal,) = judge(made, scheduler)

    assert refusal.startswith("pods that ask for GPUs must not tolerate node.kubernetes.io/unschedulable")
    assert judge(pod(pool="granted", tolerations=[toleration]), scheduler) == []


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_gpu_pods_tolerate_the_taints_of_their_pool(scheduler: str) -> None:
    made = pod(asking(GPU), pool="granted", tolerations=[USUAL, {"key": "lab", "value": "mine"}], **HELD[scheduler])

    assert judge(made, scheduler) == []


def test_pods_of_a_daemon_set_stay_on_cordoned_nodes_if_its_controller_makes_them() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "warm", "uid": "0", "controller": True}
    made = pod(asking(GPU), pool="granted", tolerations=[CORDON])
    made["metadata"]["ownerReferences"] = [owner]

    assert judge(made, "kubernetes", DAEMON_SETS) == []
    assert len(judge(made, "kubernetes")) == 1


# --- What is guarded ---------------------------------------------------------------------------------------------


def test_without_any_pool_the_usual_taints_are_guarded() -> None:
    plan = a_platform(tenant("web"))

    (refusal,) = refusals(policy("gpuplan-grants", plan), pod(tolerations=[ALL]), parameters_of("web", plan))

    assert refusal == (
        "the pod tolerates node-role.kubernetes.io/control-plane:NoSchedule and "
        "node-role.kubernetes.io/master:NoSchedule and nvidia.com/gpu:NoSchedule, "
        "which keeps pods off nodes that are not theirs: take the toleration away"
    )
