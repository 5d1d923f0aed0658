"""The GPU Operator: operands that are off, its ClusterPolicy, its release, and what the dump must show of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.live.drifting import Differs, Drift, NextSync, compare_with
from gpuplan.features.live.dump import read_dump
from tests.features.live.cluster_mutations import ME, put
from tests.features.live.dumps import Body, an_object, compared, dump_of, example, find, listed, running, synced

OFF = {
    "devicePlugin": "the nodes publish no GPUs",
    "migManager": "nobody divides GPUs as the layout says",
    "gfd": "the nodes get no labels of their boards",
    "toolkit": "containers get no GPUs",
    "driver": "nobody installs the driver",
    "dcgmExporter": "there are no metrics of GPUs",
    "nodeStatusExporter": "there are no metrics of the operator",
}


def policy_of(bodies: list[Body]) -> Body:
    return next(body for body in bodies if body["kind"] == "ClusterPolicy")


def edited(edit: Callable[[list[Body]], Any], cluster: str = "prod") -> tuple[Drift, ...]:
    bodies = running(example(cluster))
    edit(bodies)
    return compared(bodies, cluster).drifts


@pytest.mark.parametrize("section", OFF)
def test_an_operand_that_is_off(section: str) -> None:
    [found] = edited(lambda bodies: put(policy_of(bodies), False, "spec", section, "enabled"))

    assert (found.title, found.path) == ("ClusterPolicy cluster-policy", f"spec.{section}.enabled")
    assert (found.written, found.live, found.note) == (True, False, OFF[section])
    assert found.owner is not None
    assert found.owner.manager == ME
    assert found.sources
    assert found.next_sync is NextSync.OVERWRITES  # Argo CD applies the chart
    assert found.applier is not None
    assert found.change_class.value == ("repartition" if section == "driver" else "plugin-restart")


@pytest.mark.parametrize("section", [*OFF, "dcgm", "vgpuManager"])
def test_an_operand_that_is_on_or_that_nothing_needs(section: str) -> None:
    value = section in OFF

    assert edited(lambda bodies: put(policy_of(bodies), value, "spec", section, "enabled")) == ()


def test_an_operand_that_gpuplan_writes_is_told_once() -> None:
    [found] = edited(lambda bodies: put(policy_of(bodies), False, "spec", "devicePlugin", "enabled"), "openshift")

    assert (found.title, found.path) == ("ClusterPolicy gpu-cluster-policy", "spec.devicePlugin.enabled")
    assert found.file


@pytest.mark.parametrize("state", ["notReady", "ignored", "disabled"])
def test_a_cluster_policy_that_is_not_ready(state: str) -> None:
    [found] = edited(lambda bodies: policy_of(bodies)["status"].update(state=state))

    assert (found.path, found.written, found.live) == ("status.state", "ready", state)
    assert found.note
    assert found.next_sync is NextSync.NOTHING


def test_the_operator_says_what_is_not_ready() -> None:
    conditions = [
        {"type": "Ready", "status": "False", "reason": "Error", "message": ""},
        {"type": "Error", "status": "True", "reason": "OperandNotReady", "message": "states not ready: [state-driver]"},
    ]
    [found] = edited(lambda bodies: policy_of(bodies).update(status={"state": "notReady", "conditions": conditions}))

    assert found.note == "states not ready: [state-driver]"


def test_a_cluster_policy_without_a_state_is_new() -> None:
    assert edited(lambda bodies: policy_of(bodies).pop("status")) == ()


@pytest.mark.parametrize(
    ("labels", "path"),
    [
        ({"app.kubernetes.io/version": "v24.9.2"}, 'metadata.labels["app.kubernetes.io/version"]'),
        ({"helm.sh/chart": "gpu-operator-v24.9.2"}, 'metadata.labels["helm.sh/chart"]'),
    ],
)
def test_another_release_runs(labels: dict[str, str], path: str) -> None:
    def edit(bodies: list[Body]) -> None:
        find(bodies, "Deployment", "gpu-operator", "gpu-operator")["metadata"]["labels"] = labels

    [found] = edited(edit)

    assert (found.title, found.path) == ("Deployment gpu-operator/gpu-operator", path)
    assert found.written == example("prod").cluster.gpu_operator.version
    assert any(source.path == "spec.gpuOperator.version" for source in found.sources)


def test_the_image_tells_the_release_where_no_label_does() -> None:
    def edit(bodies: list[Body]) -> None:
        body = find(bodies, "Deployment", "gpu-operator", "gpu-operator")
        del body["metadata"]["labels"]
        containers = [{"name": "gpu-operator", "image": "10.0.0.1:5000/nvidia/gpu-operator:v24.9.2"}]
        body["spec"] = {"template": {"spec": {"containers": containers}}}

    [found] = edited(edit)

    assert found.path == "spec.template.spec.containers[0].image"


def a_csv(release: str, **rest: Any) -> Body:
    version = "operators.coreos.com/v1alpha1"
    body = an_object(version, "ClusterServiceVersion", f"gpu-operator-certified.{release}", "nvidia-gpu-operator")
    return {**body, **rest}


def test_olm_installed_another_release() -> None:
    [found] = edited(lambda bodies: bodies.append(a_csv("v24.9.2", status={"phase": "Succeeded"})), "openshift")

    assert found.title == "ClusterServiceVersion nvidia-gpu-operator/gpu-operator-certified.v24.9.2"
    assert found.live == "gpu-operator-certified.v24.9.2"


def test_what_olm_replaces_or_copies_runs_nowhere() -> None:
    release = example("openshift").cluster.gpu_operator.version
    copied = a_csv("v24.9.2")
    copied["metadata"]["labels"] = {"olm.copiedFrom": "nvidia-gpu-operator"}
    bodies = [a_csv(release, status={"phase": "Succeeded"}), a_csv("v25.3.0", status={"phase": "Replacing"}), copied]

    assert edited(lambda there: there.extend(bodies), "openshift") == ()


# --- What is gone --------------------------------------------------------------------------------------------------


def missing(plan: Plan, files: dict[str, bytes]) -> list[Drift]:
    dump, found = read_dump(files)
    assert found == ()
    return [drift for drift in compare_with(plan, dump).drifts if drift.differs is Differs.MISSING]


def a_dump(plan: Plan, **files: list[Body]) -> dict[str, bytes]:
    """A folder as `gpuplan import --commands` fills it: one list of what each command collects."""
    first = ("Node", "Namespace", "ResourceQuota", "RoleBinding", "PriorityClass", "LimitRange")
    bodies = [body for body in running(plan) if body["kind"] in first]
    named = {"cluster.json": bodies, **{f"{name}.json": found for name, found in files.items()}}
    return {f"dump/{name}": listed(found)["live.json"] for name, found in named.items()}


@pytest.mark.parametrize("cluster", ["prod", "openshift"])
def test_a_cluster_policy_that_is_gone(cluster: str) -> None:
    plan = example(cluster)
    files = a_dump(plan)
    empty = b"apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: ''\n"

    [found] = missing(plan, {**files, "dump/operator.yaml": empty})

    assert found.title == f"ClusterPolicy {plan.cluster.gpu_operator.cluster_policy}"
    assert found.note.startswith("dump/operator.yaml lists none")
    assert missing(plan, files) == []
    assert missing(plan, {**files, "elsewhere/operator.yaml": empty}) == []
    assert missing(plan, {**files, "dump/theirs.yaml": empty}) == []


def test_a_list_tells_of_kinds_that_it_does_not_hold_only_as_a_command_collects_it() -> None:
    plan = example("prod")
    bindings = [body for body in synced(plan) if body["kind"] == "ValidatingAdmissionPolicyBinding"]
    listing = {"dump/admission.yaml": listed(bindings)["live.json"]}

    found = missing(plan, {**a_dump(plan), **listing})

    assert {drift.title.partition(" ")[0] for drift in found} == {"ValidatingAdmissionPolicy"}
    assert missing(plan, listing) == []  # a file of that name, and no folder of the commands
    others = listed([*bindings, an_object("v1", "Service", "x", "y")])["live.json"]
    assert missing(plan, {**a_dump(plan), "dump/admission.yaml": others}) == []


def test_the_first_file_holds_what_each_cluster_has() -> None:
    plan = example("prod")
    bodies = [body for body in running(plan) if body["kind"] in ("Node", "Namespace", "PriorityClass")]
    binding = an_object("rbac.authorization.k8s.io/v1", "RoleBinding", "system:x", "kube-system")

    assert missing(plan, {"cluster.json": listed(bodies)["live.json"]}) == []
    found = missing(plan, {"cluster.json": listed([*bodies, binding])["live.json"]})

    assert {drift.title.partition(" ")[0] for drift in found} >= {"ResourceQuota", "RoleBinding"}


def test_a_list_of_another_policy_shows_that_ours_is_gone() -> None:
    plan = example("prod")
    bodies = [body for body in running(plan) if body["kind"] != "ClusterPolicy"]
    other = an_object("nvidia.com/v1", "ClusterPolicy", "theirs", spec={})

    [found] = compare_with(plan, dump_of([*bodies, other])).drifts

    assert (found.differs, found.title) == (Differs.MISSING, "ClusterPolicy cluster-policy")
    assert compare_with(plan, dump_of(bodies)).drifts == ()
