"""What tenants may not do is refused by the API server, with the message of the policy, and the rest is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from tests.cluster.api import Api, Object, Refused
from tests.cluster.definitions import define
from tests.cluster.example import ExampleCluster
from tests.cluster.pods import GATES, a_pod, editor, pod, selector
from tests.cluster.processes import until

Record = Callable[[str, object, object], None]

ACCEPTED = "accepted"

Verdict = tuple[str | tuple[str, ...], str]
"""What is planned, by how it may begin, and what the API server says."""
NAME = "admission"
GATE_STAYS = (
    "the scheduling gate kueue.x-k8s.io/admission is for Kueue",
    "scheduling gates kueue.x-k8s.io/* are for Kueue",
)
NO_CDI = "annotations cdi.k8s.io/* must not be set"
PLAIN_AND_QUEUED = pytest.mark.parametrize("example", ["dev", "prod"], indirect=True)
QUEUED = pytest.mark.parametrize("example", ["prod"], indirect=True)


# --- What is a tenant's own ------------------------------------------------------------------------------------------


@PLAIN_AND_QUEUED
def test_pods_get_the_units_of_their_tenant_alone(example: ExampleCluster, record: Record) -> None:
    """Of all pools, with and without the tenant's own units."""
    for tenant in example.plan["tenants"]:
        planned = sorted(f"{quota['unit']} of {quota['pool']}" for quota in tenant["quotas"])
        observed = sorted(
            f"{unit['name']} of {pool['name']}"
            for pool in example.plan["pools"]
            for unit in pool["units"]
            if ask(example, tenant, own_pod(example, tenant, pool=pool, resource=unit["resource"])) == ACCEPTED
        )
        record(f"{example.name}: pods of {tenant['name']} get", ", ".join(planned), ", ".join(observed))


@PLAIN_AND_QUEUED
def test_pods_name_the_classes_of_their_tenant_alone(example: ExampleCluster, record: Record) -> None:
    classes = [found["name"] for found in example.plan["priority_classes"]]
    for tenant in example.plan["tenants"]:
        observed = [
            name
            for name in (*classes, "system-cluster-critical", "system-node-critical")
            if ask(example, tenant, own_pod(example, tenant, priority_class=name)) == ACCEPTED
        ]
        planned = sorted(tenant["priority_classes"])
        record(f"{example.name}: classes that pods of {tenant['name']} name", planned, sorted(observed))


@PLAIN_AND_QUEUED
def test_groups_make_pods_where_they_are_members(example: ExampleCluster, record: Record) -> None:
    groups = sorted({member["group"] for tenant in example.plan["tenants"] for member in tenant["members"]})
    for tenant in example.plan["tenants"]:
        body = own_pod(example, tenant)
        planned = {member["group"] for member in tenant["members"] if member["role"] != "view"}
        observed = {
            group
            for group in (*groups, "system:authenticated")
            if answer(partial(example.api.as_user("jane", [group]).create, body, dry_run=True)) == ACCEPTED
        }
        record(f"{example.name}: groups that make pods of {tenant['name']}", sorted(planned), sorted(observed))


@PLAIN_AND_QUEUED
def test_members_change_nothing_that_holds_them(example: ExampleCluster, record: Record) -> None:
    """Not even the administrators of a tenant's namespaces."""
    verdicts = {}
    for tenant in example.plan["tenants"]:
        paths = fences(example, home(tenant))
        assert changeable(example.api, paths) == paths
        for member in tenant["members"]:
            found = changeable(example.api.as_user("jane", [member["group"]]), paths)
            verdicts[f"{member['group']} in {tenant['name']}"] = "nothing", ", ".join(found) or "nothing"
    record_all(record, f"{example.name}: quotas and policies that members may change", verdicts)


def fences(example: ExampleCluster, namespace: str) -> list[str]:
    """The paths of all that keeps a namespace within its tenant's grants."""
    admission = "/apis/admissionregistration.k8s.io/v1"
    is_queued = example.plan["scheduler"]["kind"] == "kueue"
    return [
        f"/api/v1/namespaces/{namespace}",
        f"/api/v1/namespaces/{namespace}/resourcequotas/gpuplan",
        f"/api/v1/namespaces/gpuplan-system/configmaps/grants-{namespace}",
        f"{admission}/validatingadmissionpolicybindings/gpuplan-grants-{namespace}",
        f"{admission}/validatingadmissionpolicybindings/gpuplan-devices",
        f"{admission}/validatingadmissionpolicies/gpuplan-grants",
        "/apis/scheduling.k8s.io/v1/priorityclasses/research",
        *([f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/localqueues/default"] if is_queued else []),
    ]


def changeable(api: Api, paths: list[str]) -> list[str]:
    return [path for path in paths if answer(partial(api.patch, f"{path}?dryRun=All", {})) == ACCEPTED]


# --- What is not -----------------------------------------------------------------------------------------------------


@PLAIN_AND_QUEUED
def test_what_is_another_tenants_is_refused(example: ExampleCluster, record: Record) -> None:
    verdicts: dict[str, dict[str, Verdict]] = {}
    for tenant in example.plan["tenants"]:
        name = tenant["name"]
        pool, unit = foreign_unit(example, tenant)
        classes = [found["name"] for found in example.plan["priority_classes"]]
        priority_class = next(found for found in classes if found not in tenant["priority_classes"])
        no_unit = f"tenant {name} has no quota on {unit}"
        no_pool = f"tenant {name} has no quota in pool {pool['name']}"
        no_class = f"priority class {priority_class} is not open to tenant {name}"
        here = home(tenant)
        for what, planned, body in (
            ("unit", no_unit, own_pod(example, tenant, resource=unit)),
            ("unit in its pool", no_unit, own_pod(example, tenant, pool=pool, resource=unit)),
            ("pool", no_pool, own_pod(example, tenant, pool=pool)),
            ("pool, for a pod without GPUs", no_pool, a_pod(here, nodeSelector=selector(pool))),
            ("class, for a pod without GPUs", no_class, a_pod(here, priority_class=priority_class)),
        ):
            verdicts.setdefault(what, {})[name] = planned, ask(example, tenant, body)
    for what, found in verdicts.items():
        record_all(record, f"{example.name}: another tenant's {what}", found)


def foreign_unit(example: ExampleCluster, tenant: Object) -> tuple[Object, str]:
    """A pool that the tenant has no quota in, and what it has none of."""
    own = {quota["resource"] for quota in tenant["quotas"]}
    pools = {quota["pool"] for quota in tenant["quotas"]}
    return next(
        (pool, unit["resource"])
        for pool in example.plan["pools"]
        for unit in pool["units"]
        if pool["name"] not in pools and unit["resource"] not in own
    )


@PLAIN_AND_QUEUED
def test_ways_around_quotas_are_refused(example: ExampleCluster, record: Record) -> None:
    with runtime_class(example.api, "nvidia"):
        for what, (hostile, planned) in WAYS_AROUND.items():
            verdicts = {
                tenant["name"]: (
                    planned.format(tenant=tenant["name"]),
                    ask(example, tenant, hostile(own_pod(example, tenant))),
                )
                for tenant in example.plan["tenants"]
            }
            record_all(record, f"{example.name}: {what}", verdicts)


@PLAIN_AND_QUEUED
def test_more_units_than_a_container_may_have_are_refused(example: ExampleCluster, record: Record) -> None:
    for tenant in example.plan["tenants"]:
        most = tenant["units_per_container"]
        if most is not None:
            resource = tenant["quotas"][0]["resource"]
            answers = [ask(example, tenant, own_pod(example, tenant, units=units)) for units in (most, most + 1)]
            refusal = f"a container of tenant {tenant['name']} may ask for at most {most} of {resource}"
            scenario = f"{example.name}: {most}, {most + 1} units for a container of {tenant['name']}"
            record(scenario, f"{ACCEPTED}, {refusal}", ", ".join(answers))


@PLAIN_AND_QUEUED
def test_pods_choose_a_pool_or_wait_for_kueue(example: ExampleCluster, record: Record) -> None:
    is_queued = example.plan["scheduler"]["kind"] == "kueue"
    no_pool = ACCEPTED if is_queued else "pods that ask for GPUs must choose a pool"
    no_gate = "pods that ask for GPUs must wait for Kueue" if is_queued else ACCEPTED
    of_a_job = (no_gate, "queued work must not call itself part of other work") if is_queued else ACCEPTED
    verdicts: dict[str, dict[str, Verdict]] = {}
    for tenant in example.plan["tenants"]:
        ungated = own_pod(example, tenant, schedulingGates=[])
        owned = {**ungated, "metadata": {**ungated["metadata"], "ownerReferences": [OWNER]}}
        for what, planned, body in (
            ("for no pool", no_pool, own_pod(example, tenant, nodeSelector={})),
            ("without a gate", no_gate, ungated),
            ("without a gate that says it is a Job's", of_a_job, owned),
        ):
            verdicts.setdefault(what, {})[tenant["name"]] = planned, ask(example, tenant, body)
    for what, found in verdicts.items():
        record_all(record, f"{example.name}: a pod {what}", found)


OWNER: Object = {"apiVersion": "batch/v1", "kind": "Job", "name": "small", "uid": "small", "controller": True}
PLAIN: Object = {"name": "plain", "image": "registry.example.com/app:1.0.0"}


def with_spec(**fields: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda body: {**body, "spec": {**body["spec"], **fields}}


def with_container(**fields: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """With a second container, which asks for nothing."""
    second = {**PLAIN, "name": "second", **fields}
    return lambda body: with_spec(containers=[*body["spec"]["containers"], second])(body)


def with_annotation(name: str, value: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda body: {**body, "metadata": {**body["metadata"], "annotations": {name: value}}}


def with_variable(name: str, value: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return with_container(env=[{"name": name, "value": value}])


WAYS_AROUND: Mapping[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], str]] = {
    "a pod that chooses its node": (
        with_spec(nodeName="gpu-1", containers=[PLAIN], schedulingGates=[]),
        "nodeName must not be set",
    ),
    "a pod for another scheduler": (with_spec(schedulerName="volcano"), "schedulerName must be default-scheduler"),
    "a pod that shows itself all GPUs": (
        with_variable("NVIDIA_VISIBLE_DEVICES", "all"),
        "NVIDIA_VISIBLE_DEVICES must not be set",
    ),
    "a pod that controls partitions": (
        with_variable("NVIDIA_MIG_CONFIG_DEVICES", "all"),
        "NVIDIA_MIG_CONFIG_DEVICES must not be set",
    ),
    "an init container that shows itself all GPUs": (
        with_spec(
            initContainers=[{**PLAIN, "name": "init", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "0"}]}]
        ),
        "NVIDIA_VISIBLE_DEVICES must not be set",
    ),
    "a pod with a device by CDI": (with_annotation("cdi.k8s.io/gpu", "nvidia.com/gpu=all"), NO_CDI),
    "a pod with devices by a node agent": (
        with_annotation("nvidia.com/container.main.gpus.devices", "all"),
        "annotations nvidia.com/container.*.gpus.devices must not be set",
    ),
    "a pod with a fraction": (
        with_annotation("gpu-fraction", "0.5"),
        "annotations gpu-fraction and gpu-memory have no effect on this cluster",
    ),
    "a pod with a claim": (
        with_spec(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]),
        "resourceClaims are not open to tenants",
    ),
    "a resource of NVIDIA's that no pool has": (
        with_container(resources={"limits": {"nvidia.com/gpu.of-nobody": "1"}}),
        "tenant {tenant} has no quota on nvidia.com/gpu.of-nobody",
    ),
    "NVIDIA's runtime for a pod without GPUs": (
        with_spec(runtimeClassName="nvidia", containers=[PLAIN]),
        "a runtimeClassName of NVIDIA is for pods that ask for GPUs",
    ),
}


# --- What is made and changed later ----------------------------------------------------------------------------------


@PLAIN_AND_QUEUED
def test_templates_of_controllers_get_no_more_than_pods(example: ExampleCluster, record: Record) -> None:
    """The controller is let in, and its pods are not, with the reason where its owner looks."""
    tenant = example.plan["tenants"][0]
    pool, resource = foreign_unit(example, tenant)
    member = example.api.as_user("jane", [editor(tenant)])
    planned = f"tenant {tenant['name']} has no quota on {resource}"
    spec = pod(home(tenant), pool, resource, priority_class=tenant["priority_classes"][0])["spec"]
    bodies = controllers(home(tenant), spec)
    if example.plan["scheduler"]["kind"] == "kubernetes":
        bodies.append(a_job(home(tenant), spec))
    for body in bodies:
        path = example.api.path_of(member.create(body))
        observed = until(partial(find_refusal, example.api, body), f"somebody says why a {body['kind']} has no pods")
        example.api.delete(path)
        record(f"{example.name}: a {body['kind']} with another tenant's unit", planned, observed[: len(planned)])


def controllers(namespace: str, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Whatever keeps making pods of a template."""
    labels = {"app": NAME}
    template = {"metadata": {"labels": labels}, "spec": spec}
    always = {"selector": {"matchLabels": labels}, "template": template}
    fields = {
        ("apps/v1", "Deployment"): always,
        ("apps/v1", "StatefulSet"): {**always, "serviceName": NAME},
        ("apps/v1", "DaemonSet"): always,
    }
    return [
        {"apiVersion": version, "kind": kind, "metadata": {"name": NAME, "namespace": namespace}, "spec": made}
        for (version, kind), made in fields.items()
    ]


def find_refusal(api: Api, body: Object) -> str:
    """What the policy said of the pods of a controller, or of its ReplicaSet; empty while nothing is said."""
    kind = "ReplicaSet" if body["kind"] == "Deployment" else body["kind"]
    for event in api.list(f"/api/v1/namespaces/{body['metadata']['namespace']}/events"):
        about = event["involvedObject"]
        if (event["reason"], about["kind"]) == ("FailedCreate", kind) and about["name"].startswith(NAME):
            return reason_of(event["message"])
    return ""


@QUEUED
def test_jobs_start_when_kueue_starts_them(example: ExampleCluster, record: Record) -> None:
    """Kueue's webhook suspends them; here they bring it along. The administrator stands for Kueue."""
    refusal = "Jobs that Kueue counts must be suspended until it starts them"
    verdicts: dict[str, dict[str, Verdict]] = {}
    for tenant in example.plan["tenants"]:
        member = example.api.as_user("jane", [editor(tenant)])
        running = a_job(home(tenant), own_pod(example, tenant, schedulingGates=[])["spec"])
        held = {**running, "spec": {**running["spec"], "suspend": True}}
        path = example.api.path_of(held)
        start = {"spec": {"suspend": False}}
        for what, planned, request in (
            ("a Job that runs", refusal, partial(member.create, running, dry_run=True)),
            ("a Job that waits", ACCEPTED, partial(member.create, held)),
            ("a Job that its owner starts", refusal, partial(member.patch, f"{path}?dryRun=All", start)),
            ("a Job that Kueue starts", ACCEPTED, partial(example.api.patch, f"{path}?dryRun=All", start)),
        ):
            verdicts.setdefault(what, {})[tenant["name"]] = planned, answer(request)
        example.api.delete(path)
    for what, found in verdicts.items():
        record_all(record, f"{example.name}: {what}", found)


@QUEUED
def test_queued_work_has_the_classes_of_its_tenant_alone(example: ExampleCluster, record: Record) -> None:
    """The objects that Kueue makes of all work, with the priority that it goes by."""
    define(example.api, [a_kueue_workload("default", {"name": "any", "value": 1})])
    foreign = a_kueue_workload("research", {"name": "production-inference", "value": 1000})
    until(lambda: answer(partial(example.api.create, foreign, dry_run=True)) != ACCEPTED, "the policy sees Workloads")
    for tenant in example.plan["tenants"]:
        observed = [
            found["name"]
            for found in example.plan["priority_classes"]
            if answer(partial(example.api.create, a_kueue_workload(home(tenant), found), dry_run=True)) == ACCEPTED
        ]
        scenario = f"{example.name}: classes of work in the queue of {tenant['name']}"
        record(scenario, sorted(tenant["priority_classes"]), sorted(observed))


@QUEUED
def test_labels_name_the_classes_of_their_tenant_alone(example: ExampleCluster, record: Record) -> None:
    """What Kueue reads the class from, of all kinds; whoever writes it, here the administrator."""
    classes = [found["name"] for found in example.plan["priority_classes"]]
    define(example.api, [a_job_set("default")])
    foreign = with_class(a_job_set("research"), "production-inference")
    until(lambda: answer(partial(example.api.create, foreign, dry_run=True)) != ACCEPTED, "the policy sees JobSets")
    planned = {tenant["name"]: sorted(tenant["priority_classes"]) for tenant in example.plan["tenants"]}
    observed: dict[str, dict[str, list[str]]] = {}
    for tenant in example.plan["tenants"]:
        for body in queued_work(example, tenant):
            observed.setdefault(body["kind"], {})[tenant["name"]] = [
                name
                for name in sorted(classes)
                if answer(partial(example.api.create, with_class(body, name), dry_run=True)) == ACCEPTED
            ]
    for kind, found in observed.items():
        record(f"{example.name}: classes that labels of a {kind} name", planned, found)


@QUEUED
def test_labels_of_work_that_exists_are_judged_when_they_change(example: ExampleCluster, record: Record) -> None:
    verdicts: dict[str, dict[str, Verdict]] = {}
    for tenant in example.plan["tenants"]:
        name = tenant["name"]
        foreign = next(
            found["name"]
            for found in example.plan["priority_classes"]
            if found["name"] not in tenant["priority_classes"]
        )
        refusal = f"priority class {foreign} is not open to tenant {name}"
        member = example.api.as_user("jane", [editor(tenant)])
        for body in queued_work(example, tenant):
            if body["kind"] == "JobSet":  # members have no role for it
                continue
            path = example.api.path_of(member.create(with_class(body, tenant["priority_classes"][0])))
            for what, planned, patch in (
                ("another tenant's class", refusal, with_class({"metadata": {}}, foreign)),
                ("an annotation", ACCEPTED, {"metadata": {"annotations": {"example.com/note": "a"}}}),
            ):
                observed = answer(partial(member.patch, f"{path}?dryRun=All", patch))
                verdicts.setdefault(f"a {body['kind']} that gets {what}", {})[name] = planned, observed
            example.api.delete(path)
    for what, found in verdicts.items():
        record_all(record, f"{example.name}: {what}", found)


@QUEUED
def test_the_types_of_the_policy_on_queues_agree(example: ExampleCluster, record: Record) -> None:
    """The API server warns of rules with fields that one of the kinds lacks."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/gpuplan-queues"
    until(lambda: is_checked(example.api.get(path)), "types are checked", seconds=60)
    warnings = example.api.get(path)["status"].get("typeChecking", {}).get("expressionWarnings", [])
    record(f"{example.name}: warnings of types in gpuplan-queues", [], warnings)


def is_checked(policy: Object) -> bool:
    """Whether the controller manager has looked at the policy as it is."""
    return bool(policy.get("status", {}).get("observedGeneration") == policy["metadata"]["generation"])


def queued_work(example: ExampleCluster, tenant: Object) -> list[dict[str, Any]]:
    """Work of all kinds whose label is judged, that waits for Kueue."""
    own = own_pod(example, tenant)
    job = a_job(home(tenant), own["spec"])
    held = {**job, "spec": {**job["spec"], "suspend": True}}
    templates = [body for body in controllers(home(tenant), own["spec"]) if body["kind"] != "DaemonSet"]
    return [own, held, *templates, a_job_set(home(tenant))]


def a_job_set(namespace: str) -> dict[str, Any]:
    metadata = {"name": NAME, "namespace": namespace}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": {}}


def with_class(body: Object, name: str) -> dict[str, Any]:
    """What Kueue shall take for work of a class."""
    return {**body, "metadata": {**body["metadata"], "labels": {"kueue.x-k8s.io/priority-class": name}}}


@PLAIN_AND_QUEUED
def test_pods_that_exist_are_changed_within_bounds(example: ExampleCluster, record: Record) -> None:
    """Debug containers are added by the administrator: the roles of members do not let them."""
    is_queued = example.plan["scheduler"]["kind"] == "kueue"
    gates = (
        "the scheduling gate kueue.x-k8s.io/admission is for Kueue",
        "scheduling gates kueue.x-k8s.io/* are for Kueue",
    )
    gate = gates if is_queued else ACCEPTED
    device = {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
    no_devices = "annotations nvidia.com/container.*.gpus.devices must not be set"
    ungated = {"spec": {"schedulingGates": None}}
    admin = example.api
    verdicts: dict[str, dict[str, Verdict]] = {}
    for tenant in example.plan["tenants"]:
        member = admin.as_user("jane", [editor(tenant)])
        path = admin.path_of(member.create(own_pod(example, tenant)))
        debug = f"{path}/ephemeralcontainers"
        for what, planned, api, where, change in (
            ("an annotation", ACCEPTED, member, path, annotated("example.com/owner", "jane")),
            ("a device by CDI", NO_CDI, member, path, annotated("cdi.k8s.io/gpu", "all")),
            (
                "a device for a node agent",
                no_devices,
                member,
                path,
                annotated("nvidia.com/container.x.gpus.devices", "0"),
            ),
            ("no gate", gate, member, path, ungated),
            ("no gate, by Kueue", ACCEPTED, admin, path, ungated),
            ("a debug container", ACCEPTED, admin, debug, debugged({})),
            ("a debug container with GPUs", "NVIDIA_VISIBLE_DEVICES must not be set", admin, debug, debugged(device)),
        ):
            found = answer(partial(api.patch, f"{where}?dryRun=All", change, kind="strategic"))
            verdicts.setdefault(what, {})[tenant["name"]] = planned, found
        admin.delete(path, grace_seconds=0)
    for what, answers in verdicts.items():
        record_all(record, f"{example.name}: a pod that gets {what}", answers)


def annotated(name: str, value: str) -> Object:
    return {"metadata": {"annotations": {name: value}}}


def debugged(fields: Object) -> Object:
    container = {"name": "debugger", "image": "registry.example.com/debug:1.0.0", **fields}
    return {"spec": {"ephemeralContainers": [container]}}


def a_job(namespace: str, spec: Object) -> dict[str, Any]:
    template = {"spec": {**spec, "restartPolicy": "Never"}}
    metadata = {"name": NAME, "namespace": namespace}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def a_kueue_workload(namespace: str, priority_class: Object) -> dict[str, Any]:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {
            "queueName": "default",
            "priority": priority_class["value"],
            "priorityClassRef": {
                "group": "kueue.x-k8s.io",
                "kind": "WorkloadPriorityClass",
                "name": priority_class["name"],
            },
        },
    }


# --- Asking ----------------------------------------------------------------------------------------------------------


def own_pod(
    example: ExampleCluster,
    tenant: Object,
    *,
    pool: Object | None = None,
    resource: str | None = None,
    units: int = 1,
    priority_class: str | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod as a tenant may have it: of its first quota and class, but for what is given."""
    quota = tenant["quotas"][0]
    chosen = pool or next(found for found in example.plan["pools"] if found["name"] == quota["pool"])
    named = priority_class or next(iter(tenant["priority_classes"]), None)
    fields = {**GATES[example.plan["scheduler"]["kind"]], **spec}
    return pod(home(tenant), chosen, resource or quota["resource"], units, priority_class=named, **fields)


def record_all(record: Record, scenario: str, verdicts: Mapping[str, Verdict]) -> None:
    """One row for all tenants: what is planned for the first, and what differs for any. Answers begin as is planned.

    Where the rules of several policies refuse, the API server answers with one of them.
    """
    differing = [
        f"{name}: {observed}" for name, (planned, observed) in verdicts.items() if not observed.startswith(planned)
    ]
    first = next(planned for planned, _ in verdicts.values())
    said = first if isinstance(first, str) else " or ".join(first)
    text = f"{said} (of {len(verdicts)} alike)"
    record(scenario, text, "; ".join(differing) or text)


def home(tenant: Object) -> str:
    return str(tenant["namespaces"][0])


def ask(example: ExampleCluster, tenant: Object, body: Object) -> str:
    """Whether a member of the tenant may make the pod."""
    member = example.api.as_user("jane", [editor(tenant)])
    return answer(partial(member.create, body, dry_run=True))


def answer(request: Callable[[], object]) -> str:
    """What comes of a request: it is accepted, or the reason why not."""
    try:
        request()
    except Refused as refused:
        return reason_of(refused.message)
    return ACCEPTED


def reason_of(message: str) -> str:
    """What an admission policy says, without its name."""
    return re.sub("^.* denied request: ", "", message)


@contextmanager
def runtime_class(api: Api, name: str) -> Iterator[None]:
    """As the GPU Operator makes it on the nodes."""
    body = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": name}
    path = api.path_of(api.create(body))
    try:
        yield
    finally:
        api.delete(path)
