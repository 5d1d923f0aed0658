"""Which pods of tenant `research` are let in, and what the author of a refused one reads.

`research` may ask for shares in pool `shared` (one a container), `2g.20gb` and `3g.40gb` in pool `split` (four a
container), and may name the priority classes `research` and `training`.
"""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.planning.schedulers import SCHEDULERS
from tests.compiler.backends.scheduling.cel import KUBERNETES_FUNCTIONS, STANDARD_FUNCTIONS, functions_of, refusals
from tests.compiler.backends.scheduling.platform import parameters_of, platform, policy
from tests.compiler.backends.scheduling.pods import asking, container, pod
from tests.every import every
from tests.plans import a_cluster, a_plan
from tests.platforms import a_platform, pool as a_pool, tenant

SHARE, SMALL, LARGE, WHOLE = (
    "nvidia.com/gpu.shared",
    "nvidia.com/mig-2g.20gb",
    "nvidia.com/mig-3g.40gb",
    "nvidia.com/gpu",
)
RESEARCH: dict[str, Any] = {"priority_class": "research"}
IN_SHARED: dict[str, Any] = {"pool": "shared", **RESEARCH}
IN_SPLIT: dict[str, Any] = {"pool": "split", **RESEARCH}

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-6d4", "uid": "0", "controller": True}


def variable(name: str, value: str | None = None, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": name, **({} if value is None else {"value": value}), **fields}]


def owned(made: dict[str, Any]) -> dict[str, Any]:
    """A pod as a Deployment's ReplicaSet makes it."""
    metadata = {"generateName": "web-6d4-", "namespace": "research", "labels": {"pod-template-hash": "6d4"}}
    return {**made, "metadata": {**metadata, "ownerReferences": [OWNER]}}


ALLOWED = {
    "a pool by affinity": pod(
        asking(SHARE),
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "gpuplan.dev/pool", "operator": "In", "values": ["shared"]}]}
                    ]
                }
            }
        },
        **RESEARCH,
    ),
    # Pods without GPUs
    "a plain pod": pod(),
    "a pod that a Deployment made": owned(pod()),
    "a pod with init containers": pod(init=(container("setup"),)),
    "a pod with a sidecar": pod(init=(container("proxy", restartPolicy="Always"),)),
    "a pod without resources": pod(container(resources={})),
    "a pod with cpu and memory": pod(container(limits={"cpu": "1"}, requests={"memory": "1Gi"})),
    "a pod with another vendor's device": pod(container(limits={"rdma/hca": "1"})),
    "a pod that asks for zero GPUs": pod(container(limits={WHOLE: "0"})),
    "a pod of the tenant's class": pod(priority_class="training"),
    "a pod of a class that gives no priority": pod(priority_class="low"),
    "a pod of a DaemonSet": pod(
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
                    ]
                }
            }
        }
    ),
    "a pod with a node selector of its own": pod(nodeSelector={"topology.kubernetes.io/zone": "a"}),
    "a pod in a pool of the tenant": pod(pool="shared"),
    "a pod with another runtime class": pod(runtimeClassName="gvisor"),
    "a pod with variables": pod(container(env=variable("CUDA_VISIBLE_DEVICES", "0"))),
    "a CUDA image that hides GPUs": pod(container(env=variable("NVIDIA_VISIBLE_DEVICES", "void"))),
    "a pod with an empty list of claims": pod(resourceClaims=[]),
    "a pod with annotations": pod(annotations={"prometheus.io/scrape": "true"}),
    # Pods with GPUs
    "a share": pod(asking(SHARE), **IN_SHARED),
    "a share of the other class": pod(asking(SHARE), pool="shared", priority_class="training"),
    "a share in a pod that a Deployment made": owned(pod(asking(SHARE), **IN_SHARED)),
    "a share beside a container without": pod(asking(SHARE), container("logs"), **IN_SHARED),
    "a share in each of two containers": pod(asking(SHARE), asking(SHARE, name="second"), **IN_SHARED),
    "a share in an init container": pod(init=(asking(SHARE, name="warm-up"),), **IN_SHARED),
    "a partition": pod(asking(SMALL), **IN_SPLIT),
    "as many partitions as a container may have": pod(asking(SMALL, "4"), **IN_SPLIT),
    "partitions of two sizes in two containers": pod(asking(SMALL), asking(LARGE, name="second"), **IN_SPLIT),
    "a share with tolerations": pod(
        asking(SHARE), tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}], **IN_SHARED
    ),
    "a share with a further selector": pod(
        asking(SHARE), nodeSelector={"gpuplan.dev/pool": "shared", "zone": "a"}, **RESEARCH
    ),
    "a share behind a scheduling gate": pod(asking(SHARE), schedulingGates=[{"name": "example.com/wait"}], **IN_SHARED),
    "a share under NVIDIA's runtime": pod(asking(SHARE), runtimeClassName="nvidia", **IN_SHARED),
    "a share whose driver capabilities are chosen": pod(
        asking(SHARE, env=variable("NVIDIA_DRIVER_CAPABILITIES", "compute,utility")), **IN_SHARED
    ),
}

MAY_ASK = (
    "it may ask for nvidia.com/gpu.shared in pool shared, nvidia.com/mig-2g.20gb in pool split, "
    "nvidia.com/mig-3g.40gb in pool split"
)
NO_QUOTA = f"tenant research has no quota on {{}}; {MAY_ASK}"
CHOOSE_POOL = (
    "pods that ask for GPUs must choose a pool: set the nodeSelector gpuplan.dev/pool to shared or split, or name "
    "several of them by a required nodeAffinity"
)
NAME_CLASS = (
    "pods that ask for GPUs must name a priority class of tenant research: "
    "set priorityClassName to research or training"
)
IN_LIMITS = "GPUs are asked for in the resources.limits of a container"
NOT_SET = "{} must not be set: the device plugin chooses devices; ask for GPUs in resources.limits"
NO_DEVICE_CLASS = "resources of device classes are not open to tenants; ask for GPUs by their nvidia.com/ names"
NO_CLAIM = "resourceClaims are not open to tenants; ask for GPUs in resources.limits"
NO_NODE = "nodeName must not be set: it bypasses the scheduler; choose a pool by nodeSelector"
IDLE_RUNTIME = "a runtimeClassName of NVIDIA is for pods that ask for GPUs in resources.limits"
NO_FRACTION = "annotations gpu-fraction and gpu-memory have no effect on this cluster; ask for GPUs in resources.limits"

REFUSED = {
    # Resources
    "a whole GPU": (pod(asking(WHOLE), **IN_SHARED), NO_QUOTA.format(WHOLE)),
    "a profile that nobody has": (
        pod(asking("nvidia.com/mig-7g.80gb"), **IN_SPLIT),
        NO_QUOTA.format("nvidia.com/mig-7g.80gb"),
    ),
    "another spelling of a share": (
        pod(asking("nvidia.com/mig-2g.20gb.shared"), **IN_SPLIT),
        NO_QUOTA.format("nvidia.com/mig-2g.20gb.shared"),
    ),
    "a whole GPU in an init container": (pod(init=(asking(WHOLE, name="setup"),), **IN_SHARED), NO_QUOTA.format(WHOLE)),
    "a whole GPU in the second container": (
        pod(asking(SHARE), asking(WHOLE, name="second"), **IN_SHARED),
        NO_QUOTA.format(WHOLE),
    ),
    "a GPU passed through to virtual machines": (
        pod(asking("nvidia.com/GA100_A100"), **IN_SPLIT),
        NO_QUOTA.format("nvidia.com/GA100_A100"),
    ),
    "a GPU in requests alone": (pod(container(requests={SHARE: "1"}), **IN_SHARED), IN_LIMITS),
    "a GPU for the pod as a whole": (pod(resources={"limits": {SHARE: "1"}}, **IN_SHARED), IN_LIMITS),
    "a GPU requested for the pod as a whole": (pod(resources={"requests": {SHARE: "1"}}, **IN_SHARED), IN_LIMITS),
    "a device class as a resource": (pod(asking("deviceclass.resource.kubernetes.io/gpu.nvidia.com")), NO_DEVICE_CLASS),
    "a device class in requests": (
        pod(container(requests={"deviceclass.resource.kubernetes.io/mig.nvidia.com": "1"})),
        NO_DEVICE_CLASS,
    ),
    "a resource claim": (pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}]), NO_CLAIM),
    "a resource claim from a template": (
        pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "mine"}]),
        NO_CLAIM,
    ),
    "two sizes of partition in one container": (
        pod(container(limits={SMALL: "1", LARGE: "1"}), **IN_SPLIT),
        (
            "a container may ask for one kind of GPU resource only, not for nvidia.com/mig-2g.20gb and "
            "nvidia.com/mig-3g.40gb; put the others into further containers"
        ),
    ),
    "two shares in one container": (
        pod(asking(SHARE, "2"), **IN_SHARED),
        "a container of tenant research may ask for at most 1 of nvidia.com/gpu.shared",
    ),
    "more partitions than a container may have": (
        pod(asking(SMALL, "5"), **IN_SPLIT),
        "a container of tenant research may ask for at most 4 of nvidia.com/mig-2g.20gb, 4 of nvidia.com/mig-3g.40gb",
    ),
    "a thousand partitions": (
        pod(asking(SMALL, "1k"), **IN_SPLIT),
        "a container of tenant research may ask for at most 4 of nvidia.com/mig-2g.20gb, 4 of nvidia.com/mig-3g.40gb",
    ),
    # Pools
    "no pool": (pod(asking(SHARE), **RESEARCH), CHOOSE_POOL),
    "no pool for an init container": (pod(init=(asking(SHARE, name="setup"),), **RESEARCH), CHOOSE_POOL),
    "its pool or any other by affinity": (
        pod(
            asking(SHARE),
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpuplan.dev/pool", "operator": "Exists"}]}]
                    }
                }
            },
            **RESEARCH,
        ),
        CHOOSE_POOL,
    ),
    "another tenant's pool": (
        pod(asking(SHARE), pool="whole", **RESEARCH),
        "tenant research has no quota in pool whole; it may use shared or split",
    ),
    "another tenant's pool without a GPU": (
        pod(pool="whole"),
        "tenant research has no quota in pool whole; it may use shared or split",
    ),
    "a share in the pool of partitions": (
        pod(asking(SHARE), **IN_SPLIT),
        (
            "in pool split tenant research may ask for nvidia.com/mig-2g.20gb or nvidia.com/mig-3g.40gb, not for "
            "nvidia.com/gpu.shared"
        ),
    ),
    "a partition in the pool of shares": (
        pod(asking(SMALL), **IN_SHARED),
        "in pool shared tenant research may ask for nvidia.com/gpu.shared, not for nvidia.com/mig-2g.20gb",
    ),
    "a node": (pod(nodeName="node-1"), NO_NODE),
    "a node for a share": (pod(asking(SHARE), nodeName="node-1", **IN_SHARED), NO_NODE),
    # Priority and scheduler
    "a share without a class": (pod(asking(SHARE), pool="shared"), NAME_CLASS),
    "a share of a class of no priority": (pod(asking(SHARE), pool="shared", priority_class="low"), NAME_CLASS),
    "a share of another tenant's class": (pod(asking(SHARE), pool="shared", priority_class="production"), NAME_CLASS),
    "another tenant's class without a GPU": (
        pod(priority_class="production"),
        "priority class production is not open to tenant research; pods may name research or training",
    ),
    "a system class": (
        pod(priority_class="system-cluster-critical"),
        "priority class system-cluster-critical is not open to tenant research; pods may name research or training",
    ),
    "a system class for a share": (
        pod(asking(SHARE), pool="shared", priority_class="system-node-critical"),
        NAME_CLASS,
    ),
    "another scheduler": (pod(schedulerName="kai-scheduler"), "schedulerName must be default-scheduler"),
    "another scheduler for a share": (
        pod(asking(SHARE), schedulerName="volcano", **IN_SHARED),
        "schedulerName must be default-scheduler",
    ),
    # Ways around the device plugin
    "all GPUs by a variable": (
        pod(container(env=variable("NVIDIA_VISIBLE_DEVICES", "all"))),
        NOT_SET.format("NVIDIA_VISIBLE_DEVICES"),
    ),
    "one GPU by a variable": (
        pod(container(env=variable("NVIDIA_VISIBLE_DEVICES", "0"))),
        NOT_SET.format("NVIDIA_VISIBLE_DEVICES"),
    ),
    "a GPU by a variable after a harmless one": (
        pod(container(env=variable("NVIDIA_VISIBLE_DEVICES", "void") + variable("NVIDIA_VISIBLE_DEVICES", "all"))),
        NOT_SET.format("NVIDIA_VISIBLE_DEVICES"),
    ),
    "a GPU by a variable from a ConfigMap": (
        pod(
            container(env=variable("NVIDIA_VISIBLE_DEVICES", valueFrom={"configMapKeyRef": {"name": "a", "key": "b"}}))
        ),
        NOT_SET.format("NVIDIA_VISIBLE_DEVICES"),
    ),
    "a GPU by a variable in an init container": (
        pod(init=(container("setup", env=variable("NVIDIA_VISIBLE_DEVICES", "all")),)),
        NOT_SET.format("NVIDIA_VISIBLE_DEVICES"),
    ),
    "more GPUs than asked for by a variable": (
        pod(asking(SHARE, env=variable("NVIDIA_VISIBLE_DEVICES", "all")), **IN_SHARED),
        NOT_SET.format("NVIDIA_VISIBLE_DEVICES"),
    ),
    "control of MIG": (
        pod(container(env=variable("NVIDIA_MIG_CONFIG_DEVICES", "all"))),
        NOT_SET.format("NVIDIA_MIG_CONFIG_DEVICES"),
    ),
    "a view on MIG": (
        pod(container(env=variable("NVIDIA_MIG_MONITOR_DEVICES", "all"))),
        NOT_SET.format("NVIDIA_MIG_MONITOR_DEVICES"),
    ),
    "an image made old": (pod(container(env=variable("CUDA_VERSION", "11.0"))), NOT_SET.format("CUDA_VERSION")),
    "two variables in two containers": (
        pod(
            container(env=variable("CUDA_VERSION", "11.0")),
            container("second", env=variable("NVIDIA_IMEX_CHANNELS", "0")),
        ),
        NOT_SET.format("CUDA_VERSION and NVIDIA_IMEX_CHANNELS"),
    ),
    "devices by an annotation": (
        pod(annotations={"cdi.k8s.io/gpus": "nvidia.com/gpu=all"}),
        "annotations cdi.k8s.io/* must not be set; ask for GPUs in resources.limits",
    ),
    "NVIDIA's runtime without a GPU": (pod(runtimeClassName="nvidia"), IDLE_RUNTIME),
    "NVIDIA's runtime with zero GPUs": (
        pod(container(limits={WHOLE: "0"}), runtimeClassName="nvidia-cdi"),
        IDLE_RUNTIME,
    ),
    "a fraction of a GPU": (pod(annotations={"gpu-fraction": "0.5"}), NO_FRACTION),
    "memory of a GPU": (pod(annotations={"gpu-memory": "4096"}), NO_FRACTION),
}


def judge(
    made: dict[str, Any], tenant: str = "research", *, scheduler: str = "kubernetes", more: dict[str, str] | None = None
) -> list[str]:
    """Why a new pod of a tenant is refused; empty when it is let in."""
    plan = platform(scheduler)
    parameters = parameters_of(tenant, plan) | (more or {})
    grants = refusals(policy("gpuplan-grants", plan), made, parameters)
    return grants + refusals(policy("gpuplan-devices", plan), made)


@pytest.mark.parametrize("made", ALLOWED.values(), ids=ALLOWED)
def test_allowed(made: dict[str, Any]) -> None:
    assert judge(made) == []


@pytest.mark.parametrize(("made", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(made: dict[str, Any], message: str) -> None:
    assert judge(made)[0] == message


# --- Other tenants -----------------------------------------------------------------------------------------------


def test_a_tenant_without_classes_uses_gpus_without_one() -> None:
    assert judge(pod(asking(WHOLE, "16"), pool="whole"), "serving") == []


def test_a_tenant_without_classes_may_name_none() -> None:
    found = judge(pod(asking(WHOLE), pool="whole", priority_class="research"), "serving")
    assert found == ["priority class research is not open to tenant serving; pods may name none"]


def test_a_tenant_without_quotas_runs_pods_without_gpus() -> None:
    assert judge(pod(), "web") == []


def test_a_tenant_without_quotas_gets_no_gpu() -> None:
    found = judge(pod(asking(WHOLE), pool="whole"), "web")
    assert found[0] == "tenant web has no quota on nvidia.com/gpu; it may ask for no GPUs"


def test_a_tenant_without_quotas_chooses_no_pool() -> None:
    assert judge(pod(pool="whole"), "web") == ["tenant web has no quota in pool whole; it may use no pool"]


# --- Parameters --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["grants", "pools", "priorityClasses"])
def test_a_missing_parameter_refuses_pods_with_gpus(missing: str) -> None:
    plan = platform()
    parameters = {key: value for key, value in parameters_of("research", plan).items() if key != missing}
    found = refusals(policy("gpuplan-grants", plan), pod(asking(SHARE), **IN_SHARED), parameters)
    assert found
    assert all(message.startswith("error: ") for message in found)


def test_a_missing_name_of_the_tenant_costs_the_message_alone() -> None:
    plan = platform()
    parameters = {key: value for key, value in parameters_of("research", plan).items() if key != "tenant"}
    found = refusals(policy("gpuplan-grants", plan), pod(asking(WHOLE), **IN_SHARED), parameters)
    assert found[0] == "the pod asks for a GPU resource that its tenant has no quota on"


def test_resources_that_are_no_gpus_can_be_opened() -> None:
    nic = "nvidia.com/hostdev"
    asked = pod(container(limits={SHARE: "1", nic: "2"}), **IN_SHARED)
    assert judge(asked)[0] == NO_QUOTA.format(nic)
    assert judge(asked, more={"otherResources": f"nvidia.com/other\n{nic}\n"}) == []


def test_further_schedulers_can_be_opened() -> None:
    packed = pod(asking(SHARE), schedulerName="bin-packing", **IN_SHARED)
    assert judge(packed, more={"otherSchedulers": "bin-packing\n"}) == []
    assert judge(packed, more={"otherSchedulers": "bin-packing-2\n"}) == ["schedulerName must be default-scheduler"]


# --- Changes to pods ---------------------------------------------------------------------------------------------


def change(old: dict[str, Any], new: dict[str, Any], subresource: str | None = None) -> list[str]:
    return refusals(policy("gpuplan-devices", platform()), new, old=old, subresource=subresource)


def debugged(made: dict[str, Any], *containers: dict[str, Any]) -> dict[str, Any]:
    return {**made, "spec": {**made["spec"], "ephemeralContainers": list(containers)}}


def test_a_debug_container_is_let_in() -> None:
    assert change(pod(), debugged(pod(), container("debugger")), "ephemeralcontainers") == []


def test_a_debug_container_chooses_no_devices() -> None:
    debugger = container("debugger", env=variable("NVIDIA_VISIBLE_DEVICES", "all"))
    found = change(pod(), debugged(pod(), debugger), "ephemeralcontainers")
    assert found == [NOT_SET.format("NVIDIA_VISIBLE_DEVICES")]


def test_a_running_pod_may_be_changed_whatever_it_was_made_with() -> None:
    running = pod(
        asking(WHOLE, env=variable("NVIDIA_VISIBLE_DEVICES", "all")), nodeName="node-1", runtimeClassName="nvidia"
    )
    running["metadata"]["annotations"] = {"cdi.k8s.io/gpus": "nvidia.com/gpu=0", "gpu-fraction": "0.5"}
    finished = {**running, "metadata": {**running["metadata"], "finalizers": []}}
    assert change(running, finished) == []


@pytest.mark.parametrize("before", [None, {}, {"other": "1"}, {"cdi.k8s.io/gpus": "nvidia.com/gpu=0"}])
def test_devices_are_not_added_by_an_annotation_later(before: dict[str, str] | None) -> None:
    waiting = pod()
    if before is not None:
        waiting["metadata"]["annotations"] = before
    changed = pod(annotations={**(before or {}), "cdi.k8s.io/gpus": "nvidia.com/gpu=all"})
    assert change(waiting, changed) == ["annotations cdi.k8s.io/* must not be set; ask for GPUs in resources.limits"]


def test_pods_are_judged_when_they_are_made_and_when_they_change() -> None:
    rules = {
        name: policy(name, platform())["spec"]["matchConstraints"]["resourceRules"]
        for name in ("gpuplan-grants", "gpuplan-devices")
    }
    judged = {name: {rule["resources"][0]: rule["operations"] for rule in found} for name, found in rules.items()}
    assert judged == {
        "gpuplan-grants": {"pods": ["CREATE", "UPDATE"]},
        "gpuplan-devices": {"pods": ["CREATE", "UPDATE"], "pods/ephemeralcontainers": ["UPDATE"]},
    }


# --- Other schedulers --------------------------------------------------------------------------------------------


GATED: dict[str, Any] = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}


@pytest.mark.parametrize(("scheduler", "held"), [("kueue", GATED), ("runai", {"schedulerName": "runai-scheduler"})])
def test_a_scheduler_that_places_pods_itself_gets_them_without_a_pool(scheduler: str, held: dict[str, Any]) -> None:
    assert judge(pod(asking(SHARE), **RESEARCH, **held), scheduler=scheduler) == []
    assert judge(pod(asking(WHOLE), **RESEARCH), scheduler=scheduler)[0] == NO_QUOTA.format(WHOLE)
    assert judge(pod(asking(SHARE), pool="whole", **RESEARCH), scheduler=scheduler)[0].startswith(
        "tenant research has no quota in pool whole"
    )


def test_a_bound_holds_without_a_pool() -> None:
    found = judge(pod(asking(SHARE, "2"), **RESEARCH, **GATED), scheduler="kueue")
    assert found[0].startswith("a container of tenant research may ask for at most 1 of nvidia.com/gpu.shared")


@pytest.mark.parametrize(("scheduler", "name"), [("kai", "kai-scheduler"), ("runai", "runai-scheduler")])
def test_the_clusters_own_scheduler_may_be_named(scheduler: str, name: str) -> None:
    assert judge(pod(schedulerName=name), scheduler=scheduler) == []


# --- The expressions themselves ----------------------------------------------------------------------------------


def expressions() -> list[str]:
    found: list[str] = []
    for name in ("gpuplan-grants", "gpuplan-devices"):
        spec = policy(name, platform())["spec"]
        found += [variable["expression"] for variable in spec["variables"]]
        found += [rule["expression"] for rule in spec["validations"]]
        found += [rule["messageExpression"] for rule in spec["validations"] if "messageExpression" in rule]
    return found


@every(expressions())
def test_expressions_call_only_what_kubernetes_1_30_knows(expression: str) -> None:
    assert functions_of(expression) <= STANDARD_FUNCTIONS | KUBERNETES_FUNCTIONS.keys()


def test_every_rule_has_a_message_on_one_line() -> None:
    for name in ("gpuplan-grants", "gpuplan-devices"):
        for rule in policy(name, platform())["spec"]["validations"]:
            assert rule["message"]
            assert "\n" not in rule["message"]
            assert rule["reason"] == "Forbidden"


# --- Grace periods ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize(
    ("seconds", "allowed", "is_refused"),
    [(30, "", False), (31, "", True), (600, "10m", False), (601, "10m", True), (30, "10s", True)],
)
def test_a_pod_with_gpus_asks_for_no_longer_grace_period_than_it_may(
    scheduler: str, seconds: int, allowed: str, is_refused: bool
) -> None:
    own = f"allow: {{gracePeriod: {allowed}}}" if allowed else ""
    plan = a_platform(a_pool("whole"), tenant("research", "pool: whole, guaranteed: 8", more=own), scheduler=scheduler)
    made = pod(asking("nvidia.com/gpu"), pool="whole", terminationGracePeriodSeconds=seconds)
    found = refusals(policy("gpuplan-grants", plan), made, parameters_of("research", plan))

    assert any("terminationGracePeriodSeconds" in message for message in found) is is_refused


def test_a_pod_without_gpus_ends_when_it_likes() -> None:
    made, grants = pod(terminationGracePeriodSeconds=86400), policy("gpuplan-grants", platform())

    assert refusals(grants, made, parameters_of("web", platform())) == []


def test_one_line_of_policy_bounds_no_grace_period() -> None:
    cluster = a_cluster("kind: kubernetes").replace("spec:\n", "spec:\n  admission: {gracePeriod: none}\n", 1)
    plan = a_plan(f"{cluster}---\n{a_pool('whole')}{tenant('research', 'pool: whole, guaranteed: 8')}")
    made = pod(asking("nvidia.com/gpu"), pool="whole", terminationGracePeriodSeconds=86400)

    assert refusals(policy("gpuplan-grants", plan), made, parameters_of("research", plan)) == []
