"""Which pods hold what a change takes away, out of a list as kubectl prints it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests import Subject
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.changes.checks import nodes as running, run
from gpuplan.features.changes.model import CapacityChange, Change, NodeImpact
from gpuplan.features.changes.nodes import pods_on
from gpuplan.features.changes.pods import Holder, Pod, find_holders, read_pods
from gpuplan.features.changes.step import Step
from tests.plans import a_plan

FLEET = """
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: shared}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8, namePattern: "shared-[0-9]+"}
  sharing: {timeSlicing: {replicas: 3}}
  workloadTypes: [research]
---
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: mixed}
spec: {gpu: A100-80GB, instances: {3g.40gb: 1, 1g.10gb: 3}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: mig}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8, names: [mig-a, mig-b]}
  sharing: {mig: {layout: mixed}}
  workloadTypes: [inference]
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: science}
spec: {namespaces: [lab, lab-two], workloadTypes: [research], quotas: [{pool: shared, guaranteed: 8}]}
"""
SMALL, LARGE, SHARE = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb", "nvidia.com/gpu.shared"


@pytest.fixture(scope="module")
def plan() -> Plan:
    return a_plan(FLEET)


def a_change(plan: Plan, **fields: Any) -> Change:
    """A repartition of the pool `mig`, unless it is said otherwise."""
    change = Change("test", Subject("Pool", "mig"), plan.cluster.at, ChangeClass.REPARTITION, "what", "effect", "undo")
    return change._replace(**{"nodes": NodeImpact(2, ("mig-a", "mig-b"), None), "pods": 64, **fields})


def an_item(name: str = "p", node: str = "mig-a", *, namespace: str = "lab", **fields: Any) -> dict[str, Any]:
    spec = {"nodeName": node, "containers": [{"resources": {"requests": {SMALL: "1"}}}], **fields.pop("spec", {})}
    metadata = {"name": name, "namespace": namespace, **fields.pop("metadata", {})}
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}, **fields}


def listed(*items: object) -> tuple[Pod, ...]:
    return read_pods(json.dumps({"kind": "List", "items": items}), "pods.json")


def requests(**spec: Any) -> dict[str, int]:
    [pod] = listed(an_item(spec=spec))
    return dict(pod.requests)


def asking(number: int | str, resource: str = SMALL, **fields: Any) -> dict[str, Any]:
    return {"resources": {"requests": {resource: str(number)}}, **fields}


# --- Reading -----------------------------------------------------------------------------------------------------


def test_a_pod_is_read_with_what_it_holds() -> None:
    assert listed(an_item("p-0", metadata={"labels": {"gpuplan.dev/workload": "chat"}})) == (
        Pod("lab", "p-0", "mig-a", "", "chat", {SMALL: 1}, 0, has_fraction=False),
    )


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_holds_nothing(phase: str) -> None:
    assert listed(an_item(status={"phase": phase})) == ()


def test_a_pod_on_no_node_holds_nothing_yet() -> None:
    assert listed(an_item(spec={"nodeName": ""}, status={"phase": "Pending"})) == ()


def test_a_pod_that_starts_on_a_node_holds_what_it_asks_for() -> None:
    assert len(listed(an_item(status={"phase": "Pending"}))) == 1


def test_containers_and_sidecars_add_up() -> None:
    assert requests(containers=[asking(1), asking(2)], initContainers=[asking(1, restartPolicy="Always")]) == {SMALL: 4}


def test_an_init_container_counts_where_it_asks_for_more() -> None:
    assert requests(containers=[asking(2)], initContainers=[asking(3), asking(1)]) == {SMALL: 3}


def test_a_limit_alone_is_a_request() -> None:
    assert requests(containers=[{"resources": {"limits": {SMALL: "2"}}}]) == {SMALL: 2}


def test_cpu_and_memory_are_no_devices() -> None:
    assert requests(containers=[{"resources": {"requests": {"cpu": "4", "memory": "1Gi", SMALL: "0"}}}]) == {}


def test_numbers_are_written_as_the_api_server_does() -> None:
    assert requests(containers=[asking("1k")]) == {SMALL: 1000}
    assert requests(containers=[asking("2M")]) == {SMALL: 2_000_000}
    assert requests(containers=[asking("007")]) == {SMALL: 7}


@pytest.mark.parametrize("number", ["9" * 19, "9" * 5000, "9" * 17 + "M"])
def test_a_number_is_no_larger_than_a_quantity_can_be(number: str) -> None:
    assert requests(containers=[asking(number)]) == {SMALL: 2**63 - 1}
    assert requests(containers=[asking("0" * 5000 + "8")]) == {SMALL: 8}


def test_a_namespace_in_the_list_says_whose_it_is() -> None:
    namespace = {"kind": "Namespace", "metadata": {"name": "lab", "labels": {"gpuplan.dev/tenant": "them"}}}

    [pod] = listed(an_item(), namespace)

    assert pod.tenant == "them"


def test_pods_are_read_from_whatever_was_collected_with_them() -> None:
    """Namespaces may come in another list than the pods that are in them, and Secrets are left alone."""
    space = {"kind": "Namespace", "metadata": {"name": "lab", "labels": {"gpuplan.dev/tenant": "them"}}}
    text = f"""\
kind: Secret
data: {{a: b}}
---
{json.dumps({"kind": "List", "items": [an_item(), {"kind": "Node", "metadata": {"name": "mig-a"}}]})}
---
{json.dumps({"kind": "NamespaceList", "items": [space]})}
"""
    [pod] = read_pods(text, "all.yaml")

    assert (pod.name, pod.tenant) == ("p", "them")


def test_a_pod_in_two_lists_is_one() -> None:
    text = json.dumps({"kind": "List", "items": [an_item()]})

    assert len(read_pods(text * 2, "pods.json")) == 1


def test_an_empty_cluster_has_no_pods() -> None:
    assert listed() == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("NAME READY\n", "it is neither JSON nor YAML of kubectl; a table or names alone show "),
        ("[" * 100_000, "it is not JSON: "),
        ("[]", "it is no object and no list of objects"),
        ('{"items": 1}', "its `items` is no list of objects"),
        ('{"items": [1]}', "its `items` is no list of objects"),
        ('{"items": [{"kind": "Node"}]}', "it lists Node, and no Pod"),
        ('{"items": [{}]}', "it lists objects without a kind, and no Pod"),
    ],
)
def test_what_is_no_list_of_pods_is_refused(text: str, why: str) -> None:
    with pytest.raises(GpuplanError) as caught:
        read_pods(text, "pods.json")

    assert caught.value.message.startswith(f"`pods.json` is no list of pods: {why}")
    assert caught.value.hint == "write it with `kubectl get pods -A -o json`"


@pytest.mark.parametrize(
    "item",
    [
        {"kind": "Pod", "spec": {"nodeName": "mig-a"}},
        {"kind": "Pod", "metadata": [], "spec": {"nodeName": "mig-a", "containers": {}}},
        an_item(spec={"containers": [1, {"resources": []}, {"resources": {"requests": {SMALL: ["1"]}}}]}),
        an_item(metadata={"labels": 1, "annotations": 2}),
    ],
)
def test_odd_shapes_are_survived(item: object) -> None:
    assert len(listed(item)) == 1


# --- Whose pods are disturbed ------------------------------------------------------------------------------------


def test_pods_that_hold_units_of_the_nodes_are_found(plan: Plan) -> None:
    pods = listed(
        an_item("holds", "mig-a"),
        an_item("elsewhere", "mig-z"),
        an_item("other-pool", "shared-1", spec={"containers": [asking(1, SHARE)]}),
        an_item("no-gpu", "mig-a", spec={"containers": [{}]}),
        an_item("both", "mig-b", namespace="other", spec={"containers": [asking(1), asking(2, LARGE)]}),
    )

    assert find_holders(a_change(plan), plan, pods) == (
        Holder("lab", "holds", "mig-a", "science", {"1g.10gb": 1}),
        Holder("other", "both", "mig-b", "", {"3g.40gb": 2, "1g.10gb": 1}),
    )


def names(change: Change, plan: Plan, *items: object) -> list[str]:
    return [holder.name for holder in find_holders(change, plan, listed(*items))]


def test_of_named_nodes_only_those_count_that_the_change_names(plan: Plan) -> None:
    change = a_change(plan, nodes=NodeImpact(1, ("mig-b",), None))

    assert names(change, plan, an_item("a", "mig-a"), an_item("b", "mig-b")) == ["b"]


@pytest.mark.parametrize("known", [("new-1",), ()])
def test_pods_on_nodes_that_come_are_found_by_what_they_hold(plan: Plan, known: tuple[str, ...]) -> None:
    nodes = NodeImpact(1, known, None if known else "new-[0-9]+", are_new=True)
    change = a_change(plan, nodes=nodes, pods=0, needs_drain=True)
    pods = listed(
        an_item("whole", "new-1", spec={"containers": [asking(2, "nvidia.com/gpu")]}),
        an_item("other", "new-1", spec={"containers": [asking(2, "example.com/fpga")]}),
        an_item("elsewhere", "old-1", spec={"containers": [asking(2, "nvidia.com/gpu")]}),
        an_item("known", "mig-a"),
    )

    assert find_holders(change, plan, pods) == (Holder("lab", "whole", "new-1", "science", {"nvidia.com/gpu": 2}),)


def test_where_nobody_is_disturbed_nobody_is_found(plan: Plan) -> None:
    assert names(a_change(plan, pods=0, needs_drain=False), plan, an_item()) == []


def test_pods_beyond_any_quota_are_found(plan: Plan) -> None:
    assert names(a_change(plan, pods=0, needs_drain=True), plan, an_item()) == ["p"]


def test_where_only_some_units_go_only_those_count(plan: Plan) -> None:
    change = a_change(
        plan,
        change_class=ChangeClass.QUOTA,
        capacity=(CapacityChange("mig", "1g.10gb", 48, 24), CapacityChange("mig", "3g.40gb", 16, 16)),
    )
    large = an_item("large", spec={"containers": [asking(1, LARGE)]})

    assert names(change, plan, an_item("small"), large) == ["small"]


def test_a_tenants_pods_are_those_of_its_namespaces(plan: Plan) -> None:
    change = a_change(plan, change_class=ChangeClass.DESTRUCTIVE, subject=Subject("Tenant", "science"), nodes=None)

    assert names(change, plan, an_item("mine", namespace="lab-two"), an_item("other", namespace="else")) == ["mine"]


def test_a_workloads_pods_bear_its_label(plan: Plan) -> None:
    change = a_change(plan, change_class=ChangeClass.DESTRUCTIVE, subject=Subject("Workload", "chat"), nodes=None)
    labelled = an_item("chat-0", metadata={"labels": {"gpuplan.dev/workload": "chat"}})

    assert names(change, plan, labelled, an_item("other")) == ["chat-0"]


FRACTIONS = """
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: test}
spec:
  kubernetes: "1.34"
  gpuOperator: {install: helm, version: v26.7.0}
  scheduler: {kind: kai}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: parts}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8, namePattern: "parts-[0-9]+"}
  sharing: {fraction: {}}
  workloadTypes: [research]
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: science}
spec: {namespaces: [lab], workloadTypes: [research], quotas: [{pool: parts, guaranteed: 2, limit: 2.5}]}
"""


@pytest.mark.parametrize("annotation", ["gpu-fraction", "gpu-memory", "nvidia.com/container.main.gpu-memory.request"])
def test_pods_with_fractions_hold_the_nodes_gpus(annotation: str) -> None:
    plan = a_plan(FRACTIONS)
    change = a_change(plan, subject=Subject("Pool", "parts"), nodes=NodeImpact(1, (), "parts-[0-9]+"))
    part = an_item("part", "parts-1", spec={"containers": [{}]}, metadata={"annotations": {annotation: "0.5"}})

    assert names(change, plan, part, an_item("none", "parts-1", spec={"containers": [{}]})) == ["part"]


def test_a_gpu_that_is_divided_may_have_a_pod_for_each_hundredth() -> None:
    plan = a_plan(FRACTIONS)

    assert pods_on(plan, plan.pools[0], 1) == 250


# --- Nodes that leave ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "number"),
    [
        (None, 3),
        (NodeImpact(1, ("mig-a",), None), 2),
        (NodeImpact(1, ("mig-b",), None), 1),
        (NodeImpact(2, ("mig-a", "mig-b"), None), 3),
        (NodeImpact(2, ("mig-a",), "mig-.*"), 3),
        (NodeImpact(2, (), None), 3),
    ],
)
def test_pods_count_on_the_nodes_that_are_known_by_name(plan: Plan, nodes: NodeImpact | None, number: int) -> None:
    share = {"containers": [asking(1, SHARE)]}
    pods = listed(an_item("a"), an_item("b"), an_item("c", "mig-b"), an_item("d", "shared-1", spec=share))
    shared, mig = sorted(plan.pools, key=lambda pool: pool.name, reverse=True)

    assert running.pods_on(Step(plan, plan, pods), mig, nodes) == number
    assert running.pods_on(Step(plan, plan, pods), shared) == 1
    assert running.pods_on(Step(plan, plan), mig, nodes) is None


def test_pods_of_a_tenant_are_those_in_its_namespaces(plan: Plan) -> None:
    pods = listed(an_item("a"), an_item("b", namespace="lab-two"), an_item("c", namespace="other"))
    (tenant,) = plan.tenants

    assert running.pods_of(Step(plan, plan, pods), tenant.spec.namespaces) == 2
    assert running.pods_of(Step(plan, plan), tenant.spec.namespaces) is None


@pytest.mark.parametrize(
    ("number", "notes"),
    [
        (None, ()),
        (0, ("0 pods hold GPUs there now",)),
        (1, ("1 pod holds GPUs there now",)),
        (2, ("2 pods hold GPUs there now",)),
    ],
)
def test_how_many_hold_gpus_is_said_where_it_is_known(number: int | None, notes: tuple[str, ...]) -> None:
    assert running.pods_note(number) == notes


# --- Pods that a new scheduler does not count --------------------------------------------------------------------

CLUSTER = """
---
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: test}
spec:
  kubernetes: "1.34"
  gpuOperator: {install: helm, version: v26.7.0}
  scheduler: {kind: SCHEDULER}
"""


@pytest.mark.parametrize(
    ("was", "becomes", "shares", "notes"),
    [
        ("kubernetes", "kueue", (2, 1), ["they hold 3 `shared` of pool `shared`, until they end"]),
        ("kueue", "kubernetes", (2, 1), None),  # a ResourceQuota counts what is there
        ("kueue", "kueue", (2, 1), None),
        ("kubernetes", "kueue", (), None),
    ],
)
def test_pods_that_run_are_counted_for_a_scheduler_that_does_not(
    was: str, becomes: str, shares: tuple[int, ...], notes: list[str] | None
) -> None:
    before, after = (a_plan(FLEET + CLUSTER.replace("SCHEDULER", kind)) for kind in (was, becomes))
    spec = [{"containers": [{"resources": {"requests": {SHARE: str(number)}}}]} for number in shares]
    pods = listed(*(an_item(f"p{index}", "shared-1", spec=each) for index, each in enumerate(spec)))
    step = Step.of(before, after, pods)

    found = [list(item.finding.notes) for item in run(step) if item.code == "GPU758"]

    assert found == ([] if notes is None else [notes])
