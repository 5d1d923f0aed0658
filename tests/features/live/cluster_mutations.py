"""Changes that people and programs make in a cluster, each with the object and the field that drift has to name.

A change says by itself what is to be named. It knows objects as Kubernetes and the projects define them, and nothing of
how drift compares.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import yaml

from gpuplan.compiler.planning.plan import Plan
from tests.features.live.dumps import KINDS, Body, an_object, kueues_configuration


class Named(NamedTuple):
    """The words that have to be told of a change.

    ``title`` is the object, and ``field`` a part of the path or, of a finding, of its message. ``is_mine`` says that
    whoever made the change is to be named. Findings of what others have are ``against`` the policies: `error` if work
    stops or something is taken away, else `warning`.
    """

    title: str
    field: str = ""
    live: object = None
    is_mine: bool = True
    against: str = ""


class World:
    """A cluster that a change may edit."""

    def __init__(self, plan: Plan, bodies: list[Body], rng: random.Random) -> None:
        self.plan, self.bodies, self.rng = plan, bodies, rng

    def any(self, kind: str, *route: str, where: Callable[[Body], bool] = lambda _: True) -> Body:
        """One of a kind that has a field, or the change cannot be made here."""
        found = [body for body in self.bodies if body["kind"] == kind and at(body, *route) is not None and where(body)]
        if not found:
            raise NotHereError
        return self.rng.choice(found)

    def node(self, *marks: str) -> Body:
        """A node of a pool, with labels of which the keys begin so."""
        return self.any("Node", where=lambda body: all(keys_of(body, mark) for mark in marks))

    def tenants_namespace(self) -> str:
        spaces = [name for tenant in self.plan.tenants if tenant.quotas for name in tenant.spec.namespaces]
        if not spaces:
            raise NotHereError
        return self.rng.choice(spaces)

    def add(self, body: Body) -> Body:
        self.bodies.append(body)
        return body

    def drop(self, body: Body) -> None:
        self.bodies.remove(body)


class NotHereError(Exception):
    """The cluster has nothing that a change could be made of."""


def at(body: Any, *route: str | int) -> Any:
    for part in route:
        try:
            body = body[part]
        except (KeyError, IndexError, TypeError):
            return None
    return body


def keys_of(node: Body, start: str) -> list[str]:
    return [key for key in node["metadata"]["labels"] if key.startswith(start)]


def title(body: Body) -> str:
    metadata = body["metadata"]
    return f"{body['kind']} {'/'.join(filter(None, (metadata.get('namespace'), metadata['name'])))}"


ME: Final = "kubectl-edit"


def signed(body: Body, *route: str) -> None:
    """Have kubectl own a field, as `kubectl edit` does."""
    fields: Any = {}
    for part in reversed(route):
        fields = {f"f:{part}": fields}
    entry = {"manager": ME, "operation": "Update", "time": "2026-11-30T10:00:00Z", "fieldsV1": fields}
    body["metadata"].setdefault("managedFields", []).append(entry)


def put(body: Body, value: Any, *route: str) -> Named:
    """Set a field of an object."""
    *above, last = route
    part = body
    for step in above:
        part = part.setdefault(step, {})
    part[last] = value
    signed(body, *route)
    return Named(title(body), last, value)


CHANGES: Final[dict[str, Callable[[World], Named]]] = {}


def change(function: Callable[[World], Named]) -> Callable[[World], Named]:
    CHANGES[function.__name__] = function
    return function


# --- Nodes -------------------------------------------------------------------------------------------------------


def label(world: World, key: str, value: str, *marks: str) -> Named:
    return put(world.node(*marks), value, "metadata", "labels", key)


@change
def another_layout(world: World) -> Named:
    return label(world, "nvidia.com/mig.config", "all-1g.5gb", "nvidia.com/mig.config")


@change
def no_file_of_the_device_plugin(world: World) -> Named:
    node = world.node("nvidia.com/device-plugin.config")
    del node["metadata"]["labels"]["nvidia.com/device-plugin.config"]
    return Named(title(node), "nvidia.com/device-plugin.config", is_mine=False)


@change
def another_pool(world: World) -> Named:
    return label(world, "gpuplan.dev/pool", "theirs", "gpuplan.dev/pool")


@change
def another_board(world: World) -> Named:
    return label(world, "nvidia.com/gpu.product", "Tesla-K80")


@change
def another_ending_of_the_product(world: World) -> Named:
    node = world.node("nvidia.com/gpu.replicas")
    labels = node["metadata"]["labels"]
    product = labels["nvidia.com/gpu.product"]
    ending = product.removesuffix("-SHARED") if product.endswith("-SHARED") else f"{product}-SHARED"
    return put(node, ending, "metadata", "labels", "nvidia.com/gpu.product")


@change
def mig_in_the_product(world: World) -> Named:
    def is_whole(node: Body) -> bool:
        labels = node["metadata"]["labels"]
        is_undivided = labels.get("nvidia.com/mig.config", "all-disabled") == "all-disabled"
        return is_undivided and "nvidia.com/gpu.replicas" in labels

    node = world.any("Node", where=is_whole)
    product = node["metadata"]["labels"]["nvidia.com/gpu.product"].removesuffix("-SHARED")
    return put(node, f"{product}-MIG-1g.10gb", "metadata", "labels", "nvidia.com/gpu.product")


@change
def other_replicas(world: World) -> Named:
    return label(world, "nvidia.com/gpu.replicas", "77", "nvidia.com/gpu.replicas")


@change
def another_strategy_of_sharing(world: World) -> Named:
    node = world.node("nvidia.com/gpu.sharing-strategy")
    now = node["metadata"]["labels"]["nvidia.com/gpu.sharing-strategy"]
    return put(node, "mps" if now != "mps" else "time-slicing", "metadata", "labels", "nvidia.com/gpu.sharing-strategy")


@change
def shares_of_partitions(world: World) -> Named:
    node = world.node("nvidia.com/mig-")
    key = world.rng.choice([key for key in keys_of(node, "nvidia.com/mig-") if key.endswith(".replicas")])
    return put(node, "77", "metadata", "labels", key)


@change
def a_division_that_failed(world: World) -> Named:
    return label(world, "nvidia.com/mig.config.state", "failed", "nvidia.com/mig.config")


@change
def no_device_plugin_there(world: World) -> Named:
    return label(world, "nvidia.com/gpu.deploy.device-plugin", "false", "nvidia.com/gpu.replicas")


@change
def no_operands_there(world: World) -> Named:
    return label(world, "nvidia.com/gpu.deploy.operands", "false")


@change
def no_feature_discovery_there(world: World) -> Named:
    return label(world, "nvidia.com/gpu.deploy.gpu-feature-discovery", "false")


@change
def no_validator_there(world: World) -> Named:
    return label(world, "nvidia.com/gpu.deploy.operator-validator", "false")


@change
def no_mig_manager_there(world: World) -> Named:
    return label(world, "nvidia.com/gpu.deploy.mig-manager", "false", "nvidia.com/mig.config")


def taint(world: World, effect: str) -> Named:
    node = world.node()
    node["spec"].setdefault("taints", []).append({"key": "theirs.example/hold", "value": "x", "effect": effect})
    signed(node, "spec", "taints")
    return Named(title(node), "spec.taints", f"theirs.example/hold=x:{effect}")


@change
def a_taint_that_keeps_pods_off(world: World) -> Named:
    return taint(world, "NoSchedule")


@change
def a_taint_that_evicts(world: World) -> Named:
    return taint(world, "NoExecute")


@change
def a_taint_that_is_gone(world: World) -> Named:
    node = world.any("Node", where=lambda body: bool(body["spec"].get("taints")))
    node["spec"]["taints"] = []
    return Named(title(node), "spec.taints", is_mine=False)


@change
def a_taint_with_another_value(world: World) -> Named:
    node = world.any("Node", where=lambda body: bool(body["spec"].get("taints")))
    node["spec"]["taints"][0]["value"] = "theirs"
    signed(node, "spec", "taints")
    return Named(title(node), "spec.taints[0].value", "theirs")


@change
def fewer_units(world: World) -> Named:
    def has_units(node: Body) -> bool:
        return any(key.startswith("nvidia.com/") for key in node["status"]["allocatable"])

    node = world.any("Node", where=has_units)
    units = node["status"]["allocatable"]
    key = world.rng.choice([key for key in units if key.startswith("nvidia.com/")])
    units[key] = "0"
    return Named(title(node), key, "0", is_mine=False)


@change
def units_that_nobody_planned(world: World) -> Named:
    node = world.any("Node", where=lambda body: bool(keys_of(body, "nvidia.com/gpu.replicas")))
    for field in ("capacity", "allocatable"):
        node["status"][field]["nvidia.com/mig-9g.999gb"] = "3"
    return Named(title(node), "nvidia.com/mig-9g.999gb", "3", is_mine=False)


@change
def a_node_that_is_gone(world: World) -> Named:
    node = world.node()
    world.drop(node)
    pools = [part for part in world.plan.parts if node["metadata"]["name"] in (part.nodes.names or ())]
    if pools:
        return Named(title(node), is_mine=False)
    pool = node["metadata"]["labels"].get("gpuplan.dev/pool")
    if not pool or not any(body["kind"] == "Node" for body in world.bodies):
        raise NotHereError
    return Named(f"Pool {pool}", is_mine=False)


@change
def a_node_in_no_pool(world: World) -> Named:
    if any(pool.nodes.are_by_board for pool in world.plan.pools):
        raise NotHereError
    node = an_object("v1", "Node", "stray-1", status={"capacity": {"nvidia.com/gpu": "8"}})
    node["metadata"]["labels"] = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-L4"}
    world.add(node)
    return Named("1 node with GPUs is in no pool", is_mine=False, against="warning")


@change
def a_node_of_a_pool_that_there_is_not(world: World) -> Named:
    node = an_object("v1", "Node", "stray-2", status={"capacity": {"nvidia.com/gpu": "8"}})
    node["metadata"]["labels"] = {"gpuplan.dev/pool": "of-nobody"}
    world.add(node)
    return Named(title(node), "gpuplan.dev/pool", "of-nobody", is_mine=False)


# --- The GPU Operator --------------------------------------------------------------------------------------------


def off(world: World, section: str, *, is_needed: bool = True) -> Named:
    if not is_needed or not world.plan.pools:
        raise NotHereError
    policy = world.any("ClusterPolicy")
    is_off = at(policy, "spec", section, "enabled") is False
    if is_off or at(world.plan.cluster.gpu_operator.spec.values, section, "enabled") is False:
        raise NotHereError
    named = put(policy, False, "spec", section, "enabled")
    return named._replace(field=f"spec.{section}.enabled")


@change
def device_plugin_off(world: World) -> Named:
    return off(world, "devicePlugin", is_needed=all(pool.spec.allocation != "dra" for pool in world.plan.pools))


@change
def mig_manager_off(world: World) -> Named:
    labels = (part.labels for part in world.plan.parts)
    return off(world, "migManager", is_needed=any("nvidia.com/mig.config" in found for found in labels))


@change
def feature_discovery_off(world: World) -> Named:
    return off(world, "gfd")


@change
def toolkit_off(world: World) -> Named:
    return off(world, "toolkit", is_needed=world.plan.cluster.gpu_operator.spec.install != "external")


@change
def driver_off(world: World) -> Named:
    return off(world, "driver", is_needed=world.plan.cluster.gpu_operator.spec.driver.enabled)


@change
def exporter_off(world: World) -> Named:
    return off(world, "dcgmExporter", is_needed=world.plan.cluster.monitoring is not None)


@change
def cluster_policy_gone(world: World) -> Named:
    policy = world.any("ClusterPolicy")
    if not world.plan.pools:
        raise NotHereError
    world.drop(policy)
    world.add(an_object("nvidia.com/v1", "ClusterPolicy", "theirs", spec={}))
    return Named(title(policy), is_mine=False)


@change
def cluster_policy_not_ready(world: World) -> Named:
    if not world.plan.pools:
        raise NotHereError
    policy = world.any("ClusterPolicy")
    policy["status"]["state"] = "notReady"
    return Named(title(policy), "status.state", "notReady", is_mine=False)


@change
def a_second_cluster_policy(world: World) -> Named:
    world.add(an_object("nvidia.com/v1", "ClusterPolicy", "theirs", spec={}))
    return Named("ClusterPolicy `theirs`", "is a second one", is_mine=False, against="error")


@change
def another_release_of_the_operator(world: World) -> Named:
    deployment = world.any("Deployment", where=lambda body: body["metadata"]["name"] == "gpu-operator")
    labels = deployment["metadata"]["labels"]
    labels |= {"helm.sh/chart": "gpu-operator-v23.9.2", "app.kubernetes.io/version": "v23.9.2"}
    signed(deployment, "metadata", "labels", "app.kubernetes.io/version")
    return Named(title(deployment), "app.kubernetes.io/version", "v23.9.2")


@change
def another_release_from_olm(world: World) -> Named:
    csv = an_object("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "gpu-operator-certified.v23.9.2", "x")
    world.add({**csv, "status": {"phase": "Succeeded"}})
    return Named(title(csv), "metadata.name", "gpu-operator-certified.v23.9.2", is_mine=False)


@change
def a_rule_with_our_labels(world: World) -> Named:
    keys = sorted({key for part in world.plan.parts for key in part.labels})
    if not keys:
        raise NotHereError
    key = world.rng.choice(keys)
    rules = [{"name": "x", "labels": {key: "theirs"}}]
    world.add(an_object("nfd.k8s-sigs.io/v1alpha1", "NodeFeatureRule", "theirs", spec={"rules": rules}))
    return Named("NodeFeatureRule `theirs`", key, is_mine=False, against="error")


def text(world: World, start: str) -> Named:
    found = world.any("ConfigMap", "data", where=lambda body: body["metadata"]["name"].startswith(start))
    key = min(found["data"])
    found["data"][key] += "theirs: 1\n"
    signed(found, "data", key)
    return Named(title(found), "data")


@change
def another_mig_parted_file(world: World) -> Named:
    return text(world, "gpuplan-mig-parted")


@change
def another_file_of_the_device_plugin(world: World) -> Named:
    return text(world, "gpuplan-device-plugin")


# --- Quotas and namespaces ---------------------------------------------------------------------------------------


@change
def another_quota(world: World) -> Named:
    quota = world.any("ResourceQuota", "spec", "hard")
    key = world.rng.choice(sorted(quota["spec"]["hard"]))
    return put(quota, "77777", "spec", "hard", key)


@change
def a_quota_that_is_gone(world: World) -> Named:
    quota = world.any("ResourceQuota")
    world.drop(quota)
    world.add(an_object("v1", "ResourceQuota", "theirs", quota["metadata"]["namespace"], spec={"hard": {"pods": "9"}}))
    return Named(title(quota), is_mine=False)


@change
def a_quota_of_some_pods(world: World) -> Named:
    return put(world.any("ResourceQuota"), ["BestEffort"], "spec", "scopes")


@change
def a_quota_that_selects(world: World) -> Named:
    selector = {"matchExpressions": [{"operator": "Exists", "scopeName": "PriorityClass"}]}
    quota = world.any("ResourceQuota", where=lambda body: not at(body, "spec", "scopeSelector"))
    return put(quota, selector, "spec", "scopeSelector")


@change
def a_tighter_quota_of_others(world: World) -> Named:
    hard = {"requests.nvidia.com/gpu": "0"}
    ours = [at(body, "spec", "hard") or {} for body in world.bodies if body["kind"] == "ResourceQuota"]
    if any(found.get("requests.nvidia.com/gpu") == "0" for found in ours):
        raise NotHereError
    world.add(an_object("v1", "ResourceQuota", "theirs", world.tenants_namespace(), spec={"hard": hard}))
    return Named("ResourceQuota `theirs`", "requests.nvidia.com/gpu", is_mine=False, against="error")


@change
def a_limit_range_that_gives_gpus(world: World) -> Named:
    limits = [{"type": "Container", "default": {"nvidia.com/gpu": "1"}}]
    world.add(an_object("v1", "LimitRange", "theirs", world.tenants_namespace(), spec={"limits": limits}))
    return Named("LimitRange `theirs`", "gives GPUs", is_mine=False, against="error")


@change
def a_limit_range_of_pods(world: World) -> Named:
    limits = [{"type": "Pod", "max": {"nvidia.com/gpu": "1"}}]
    world.add(an_object("v1", "LimitRange", "theirs", world.tenants_namespace(), spec={"limits": limits}))
    return Named("LimitRange `theirs`", "refuses pods", is_mine=False, against="error")


@change
def a_class_for_everybody(world: World) -> Named:
    world.add(an_object("scheduling.k8s.io/v1", "PriorityClass", "theirs", value=9, globalDefault=True))
    return Named("PriorityClass `theirs`", "pods that name none", is_mine=False, against="warning")


@change
def our_class_for_everybody(world: World) -> Named:
    return put(world.any("PriorityClass", where=lambda body: not body.get("globalDefault")), True, "globalDefault")


@change
def another_value_of_a_class(world: World) -> Named:
    return put(world.any("PriorityClass"), 77, "value")


@change
def another_level_of_pod_security(world: World) -> Named:
    key = "pod-security.kubernetes.io/enforce"
    return put(world.any("Namespace", "metadata", "labels", key), "of-nobody", "metadata", "labels", key)


@change
def checks_of_an_old_release(world: World) -> Named:
    key = "pod-security.kubernetes.io/enforce-version"
    return put(world.any("Namespace", "metadata", "labels"), "v1.20", "metadata", "labels", key)


@change
def a_selector_of_a_namespace(world: World) -> Named:
    key = world.rng.choice(("scheduler.alpha.kubernetes.io/node-selector", "openshift.io/node-selector"))
    return put(world.any("Namespace"), "disk=ssd", "metadata", "annotations", key)


@change
def a_namespace_that_is_gone(world: World) -> Named:
    space = world.any("Namespace")
    world.drop(space)
    world.add(an_object("v1", "Namespace", "default"))
    return Named(title(space), is_mine=False)


@change
def an_object_that_is_being_deleted(world: World) -> Named:
    kind = world.rng.choice(("Namespace", "ResourceQuota", "ConfigMap"))
    found = world.any(kind, where=lambda body: body["metadata"]["name"] != "kueue-manager-config")
    return put(found, "2026-11-30T10:00:00Z", "metadata", "deletionTimestamp")


# --- Kueue -------------------------------------------------------------------------------------------------------


@change
def a_stopped_queue(world: World) -> Named:
    return put(world.any("ClusterQueue"), world.rng.choice(("Hold", "HoldAndDrain")), "spec", "stopPolicy")


@change
def a_stopped_local_queue(world: World) -> Named:
    return put(world.any("LocalQueue"), "Hold", "spec", "stopPolicy")


@change
def checks_before_admission(world: World) -> Named:
    checks = {"admissionChecks": [{"name": "theirs"}]}
    return put(world.any("ClusterQueue"), checks, "spec", "admissionChecksStrategy")


@change
def checks_before_admission_as_they_were(world: World) -> Named:
    return put(world.any("ClusterQueue"), ["theirs"], "spec", "admissionChecks")


@change
def another_weight(world: World) -> Named:
    queue = world.any("ClusterQueue", where=lambda body: at(body, "spec", "fairSharing") is None)
    return put(queue, {"weight": "7"}, "spec", "fairSharing")


@change
def another_quota_of_a_queue(world: World) -> Named:
    queue = world.any("ClusterQueue", "spec", "resourceGroups")
    flavor = queue["spec"]["resourceGroups"][0]["flavors"][0]
    flavor["resources"][0]["nominalQuota"] = "77777"
    signed(queue, "spec", "resourceGroups")
    return Named(title(queue), "nominalQuota", "77777")


@change
def a_flavor_of_other_nodes(world: World) -> Named:
    return put(world.any("ResourceFlavor"), "ssd", "spec", "nodeLabels", "disk")


@change
def a_flavor_with_taints(world: World) -> Named:
    taints = [{"key": "theirs", "value": "x", "effect": "NoSchedule"}]
    return put(world.any("ResourceFlavor"), taints, "spec", "nodeTaints")


@change
def a_flavor_with_a_topology(world: World) -> Named:
    flavor = world.any("ResourceFlavor", where=lambda body: at(body, "spec", "topologyName") is None)
    return put(flavor, "theirs", "spec", "topologyName")


@change
def a_root_below_another(world: World) -> Named:
    cohort = world.any("Cohort", where=lambda body: at(body, "spec", "parentName") is None)
    return put(cohort, "theirs", "spec", "parentName")


def queue(**spec: Any) -> Body:
    return an_object("kueue.x-k8s.io/v1beta2", "ClusterQueue", "theirs", spec=spec)


@change
def a_queue_in_our_cohort(world: World) -> Named:
    cohort = world.any("Cohort")["metadata"]["name"]
    world.add(queue(cohortName=cohort))
    return Named("ClusterQueue `theirs`", cohort, is_mine=False, against="error")


@change
def a_cohort_below_ours(world: World) -> Named:
    cohort = world.any("Cohort")["metadata"]["name"]
    world.add(an_object("kueue.x-k8s.io/v1beta2", "Cohort", "theirs", spec={"parentName": cohort}))
    return Named("Cohort `theirs`", cohort, is_mine=False, against="error")


@change
def a_queue_with_our_flavor(world: World) -> Named:
    flavor = world.any("ResourceFlavor")["metadata"]["name"]
    resources = [{"name": "nvidia.com/gpu", "nominalQuota": "8"}]
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": flavor, "resources": resources}]}]
    world.add(queue(resourceGroups=groups))
    return Named("ClusterQueue `theirs`", flavor, is_mine=False, against="error")


@change
def a_queue_for_everybody(world: World) -> Named:
    world.tenants_namespace()
    world.add(queue(namespaceSelector={}))
    return Named("ClusterQueue `theirs`", "tenants' namespaces", is_mine=False, against="warning")


@change
def a_way_around_the_queue(world: World) -> Named:
    space = world.any("LocalQueue")["metadata"]["namespace"]
    world.add(an_object("kueue.x-k8s.io/v1beta2", "LocalQueue", "theirs", space, spec={"clusterQueue": "theirs"}))
    return Named("LocalQueue `theirs`", "not gpuplan's", is_mine=False, against="warning")


def configuration(world: World, **rest: Any) -> Body:
    found = world.any("ConfigMap", where=lambda body: body["metadata"]["name"] == "kueue-manager-config")
    body = yaml.safe_load(found["data"]["controller_manager_config.yaml"])
    world.drop(found)
    return world.add(kueues_configuration(**{"frameworks": body["integrations"]["frameworks"], **rest}))


@change
def a_kind_that_kueue_does_not_know(world: World) -> Named:
    world.any("Job")
    configuration(world, frameworks=["pod", "deployment", "statefulset"])
    return Named("ConfigMap `kueue-manager-config`", "`batch/job`", is_mine=False, against="error")


@change
def no_pods_in_queues(world: World) -> Named:
    found = world.any("ConfigMap", where=lambda body: body["metadata"]["name"] == "kueue-manager-config")
    world.drop(found)
    world.add(kueues_configuration([name for name in KINDS if name != "pod"]))
    return Named("ConfigMap `kueue-manager-config`", "`pod`", is_mine=False, against="warning")


@change
def all_work_through_queues(world: World) -> Named:
    configuration(world, manageJobsWithoutQueueName=True)
    return Named("ConfigMap `kueue-manager-config`", "names no queue", is_mine=False, against="warning")


# --- KAI-Scheduler -----------------------------------------------------------------------------------------------


@change
def a_queue_below_a_tenants(world: World) -> Named:
    parent = world.any("Queue")["metadata"]["name"]
    world.add(an_object("scheduling.run.ai/v2", "Queue", "theirs", spec={"parentQueue": parent}))
    return Named("Queue `theirs`", parent, is_mine=False, against="error")


@change
def another_quota_of_kai(world: World) -> Named:
    found = world.any("Queue", "spec", "resources", "gpu", "quota")
    return put(found, 77, "spec", "resources", "gpu", "quota")


@change
def another_shard(world: World) -> Named:
    return put(world.any("SchedulingShard", "spec", "partitionLabelValue"), "theirs", "spec", "partitionLabelValue")


# --- Admission and rights ----------------------------------------------------------------------------------------


@change
def a_policy_that_is_gone(world: World) -> Named:
    policy = world.any("ValidatingAdmissionPolicy")
    world.drop(policy)
    return Named(title(policy), is_mine=False)


@change
def a_policy_that_judges_nothing(world: World) -> Named:
    policy = world.any("ValidatingAdmissionPolicy", where=lambda body: not at(body, "spec", "matchConditions"))
    return put(policy, [{"name": "never", "expression": "false"}], "spec", "matchConditions")


@change
def a_policy_that_lets_errors_through(world: World) -> Named:
    return put(world.any("ValidatingAdmissionPolicy", "spec", "failurePolicy"), "Ignore", "spec", "failurePolicy")


@change
def a_binding_for_some(world: World) -> Named:
    selector = {"matchLabels": {"of": "nobody"}}
    return put(world.any("ValidatingAdmissionPolicyBinding"), selector, "spec", "matchResources", "objectSelector")


@change
def another_action_of_a_binding(world: World) -> Named:
    binding = world.any("ValidatingAdmissionPolicyBinding", "spec", "validationActions")
    return put(binding, ["Audit"], "spec", "validationActions")._replace(live=None)


@change
def another_member(world: World) -> Named:
    binding = world.any("RoleBinding", "subjects")
    binding["subjects"][0]["name"] = "everyone"
    signed(binding, "subjects")
    return Named(title(binding), "subjects[0].name", "everyone")


@change
def another_role(world: World) -> Named:
    return put(world.any("RoleBinding", "roleRef"), "cluster-admin", "roleRef", "name")


@change
def a_right_to_write_quotas(world: World) -> Named:
    group = "rbac.authorization.k8s.io"
    binding = an_object(
        f"{group}/v1",
        "RoleBinding",
        "theirs",
        world.tenants_namespace(),
        roleRef={"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        subjects=[{"apiGroup": group, "kind": "User", "name": "anna"}],
    )
    world.add(binding)
    return Named("RoleBinding `theirs`", "write quotas", is_mine=False, against="warning")


# --- Work and what syncs it --------------------------------------------------------------------------------------


def work(world: World, *kinds: str) -> Body:
    return world.any(world.rng.choice(kinds), "spec", "template", where=lambda body: "namespace" in body["metadata"])


@change
def work_that_is_paused(world: World) -> Named:
    return put(work(world, "Deployment"), True, "spec", "paused")


@change
def work_on_other_nodes(world: World) -> Named:
    found = work(world, "Deployment", "StatefulSet")
    return put(found, "ssd", "spec", "template", "spec", "nodeSelector", "disk")


@change
def another_image(world: World) -> Named:
    found = work(world, "Deployment", "StatefulSet", "Job")
    found["spec"]["template"]["spec"]["containers"][0]["image"] = "theirs:1"
    signed(found, "spec", "template")
    return Named(title(found), "image", "theirs:1")


@change
def an_application_of_another_branch(world: World) -> Named:
    found = world.any("Application", "spec", "source", "targetRevision")
    return put(found, "theirs", "spec", "source", "targetRevision")


@change
def a_kustomization_that_is_suspended(world: World) -> Named:
    found = world.any("Kustomization", where=lambda body: not at(body, "spec", "suspend"))
    return put(found, True, "spec", "suspend")


@change
def a_release_that_is_suspended(world: World) -> Named:
    found = world.any("HelmRelease", where=lambda body: not at(body, "spec", "suspend"))
    return put(found, True, "spec", "suspend")


@change
def a_project_with_windows(world: World) -> Named:
    window = {"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"]}
    found = world.any("AppProject", where=lambda body: not at(body, "spec", "syncWindows"))
    return put(found, [window], "spec", "syncWindows")


@change
def an_alert_that_is_gone(world: World) -> Named:
    found = world.any("PrometheusRule", "spec", "groups")
    found["spec"]["groups"] = copy.deepcopy(found["spec"]["groups"])[1:]
    return Named(title(found), "spec.groups", is_mine=False)
