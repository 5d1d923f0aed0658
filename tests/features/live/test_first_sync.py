"""Each kind of loss by a first sync of policies is told (GPU817), and its nearest legal neighbour is not."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from gpuplan.compiler.base.diagnostics import Severity
from gpuplan.features.live.drifting.model import planned
from gpuplan.features.live.first_sync import Effect, FirstSync, simulate
from tests.features.live.dumps import dump_of
from tests.plans import a_plan

Body = dict[str, Any]

POOLS = """
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: shared}
spec:
  gpu: L40S-48GB
  nodes: {count: 1, gpusPerNode: 4, names: [a]}
  sharing: {timeSlicing: {replicas: 4, rename: false}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: whole}
spec:
  gpu: L40S-48GB
  nodes: {count: 1, gpusPerNode: 4, names: [b]}
  sharing: {exclusive: {}}
"""
TENANT = """
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: normal}
spec: {value: 1}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: team}
spec:
  namespaces: [team]
  members: [team]
  priorityClasses: [normal]
  quotas: [{pool: whole, guaranteed: 4, cpu: 64}]
"""


def a_node(name: str, gpus: int, **labels: str) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {},
        "status": {"allocatable": {"cpu": "64", "nvidia.com/gpu": str(gpus)}},
    }


NODES = (a_node("a", 16), a_node("b", 4))


def an_object(kind: str, name: str, spec: Body, namespace: str = "", api: str = "v1") -> Body:
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": spec,
    }


def a_quota(**hard: object) -> Body:
    return an_object(
        "ResourceQuota", "old", {"hard": {key.replace("_", "."): value for key, value in hard.items()}}, "team"
    )


def a_deployment(**pod: object) -> Body:
    container = {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [container], **pod}}
    return an_object("Deployment", "work", {"template": template}, "team", "apps/v1")


def sync_of(*objects: Body, policies: str = POOLS) -> FirstSync:
    given = {body["metadata"]["name"] for body in objects if body["kind"] == "Node"}
    bodies = deepcopy([*(node for node in NODES if node["metadata"]["name"] not in given), *objects])
    return simulate(a_plan(policies), dump_of(bodies))


def told(sync: FirstSync, effect: Effect = Effect.TAKES_AWAY) -> list[str]:
    return [item.shown.message for item in sync.found[effect]]


def test_a_sync_that_keeps_all_is_told_to_harm_nobody() -> None:
    sync = sync_of(a_quota(requests_cpu="64"), a_deployment(), policies=POOLS + TENANT)

    assert told(sync, Effect.STOPS) == []
    assert [text for text in told(sync) if "cpu" in text or "hands out" in text] == []


# --- Caps --------------------------------------------------------------------------------------------------------


def test_a_tighter_quota_beside_the_one_there_is_told_with_both_numbers() -> None:
    sync = sync_of(a_quota(requests_cpu="96"), policies=POOLS + TENANT)

    assert "namespace `team` is capped at 64 of `requests.cpu`, and it was 96" in told(sync)


@pytest.mark.parametrize("amount", ["64", "64000m", "32"])
def test_a_quota_that_is_as_tight_takes_nothing_away(amount: str) -> None:
    sync = sync_of(a_quota(requests_cpu=amount), policies=POOLS + TENANT)

    assert [text for text in told(sync) if "requests.cpu" in text] == []


def test_quotas_of_some_pods_alone_bound_nothing_for_the_rest() -> None:
    scoped = a_quota(requests_cpu="32")
    scoped["spec"]["scopes"] = ["BestEffort"]

    assert "namespace `team` is capped at 64 of `requests.cpu`, and nothing capped it" in told(
        sync_of(scoped, policies=POOLS + TENANT)
    )


def test_a_ban_on_what_nothing_capped_is_an_error_if_work_asks_for_it() -> None:
    mig = POOLS.replace("exclusive: {}", "mig: {instances: {1g.10gb: 7}}").replace(
        "L40S-48GB\n  nodes: {count: 1, gpusPerNode: 4, names: [b]}",
        "A100-80GB\n  nodes: {count: 1, gpusPerNode: 4, names: [b]}",
    )
    tenant = TENANT.replace("{pool: whole, guaranteed: 4, cpu: 64}", "{pool: shared, guaranteed: 16}")
    node = a_node("b", 0)
    node["status"]["allocatable"] = {"nvidia.com/mig-1g.10gb": "28"}
    work = a_deployment()
    asks = deepcopy(work)
    asks["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/mig-1g.10gb": 1}}

    for deployment, severity in ((asks, Severity.ERROR), (work, Severity.WARNING)):
        sync = sync_of(node, a_namespace(), deployment, policies=mig + tenant)
        [found] = [item for item in sync.found[Effect.TAKES_AWAY] if "mig-1g.10gb" in item.shown.message]
        assert found.severity is severity


def a_namespace() -> Body:
    return an_object("Namespace", "team", {})


WARN = "pod-security.kubernetes.io/warn"


@pytest.mark.parametrize(("labels", "is_changed"), [({WARN: "privileged"}, True), ({}, False)])
def test_a_label_that_somebody_gave_is_changed_and_one_that_nobody_gave_is_a_mark(
    labels: dict[str, str], *, is_changed: bool
) -> None:
    space = {**a_namespace(), "metadata": {"name": "team", "labels": labels}}
    sync = sync_of(space, policies=POOLS + TENANT)

    changed = [drift.path for drift in sync.changed[Effect.CHANGES] if drift.title == "Namespace team"]
    assert (f'metadata.labels["{WARN}"]' in changed) is is_changed


# --- Nodes and the order of syncs --------------------------------------------------------------------------------


@pytest.mark.parametrize("is_told", [True, False])
def test_a_node_that_hands_out_less_afterwards_is_told_by_pool_and_resource(*, is_told: bool) -> None:
    labelled = a_node("a", 32, **{"nvidia.com/device-plugin.config": "old"})
    divided = an_operator("", old="8" if is_told else "4")

    found = [text for text in told(sync_of(labelled, *divided)) if "hands out" in text]

    assert found == ["pool `shared` hands out 16 `nvidia.com/gpu` on a node that has 32"] * is_told


def test_a_node_that_lacks_gpus_today_loses_none_by_the_sync() -> None:
    assert told(sync_of(a_node("b", 8))) == []
    assert told(sync_of(a_node("b", 2))) == []


def an_operator(default: str, **files: str) -> tuple[Body, Body]:
    policy = an_object(
        "ClusterPolicy",
        "cluster-policy",
        {"devicePlugin": {"config": {"name": "files", "default": default}}},
        api="nvidia.com/v1",
    )
    data = {
        key: f"version: v1\nsharing: {{timeSlicing: {{resources: [{{name: nvidia.com/gpu, replicas: {n}}}]}}}}\n"
        for key, n in files.items()
    }
    return policy, {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "files", "namespace": "gpu-operator"},
        "data": data,
    }


def test_nodes_that_read_a_default_file_have_no_safe_order_if_its_key_goes() -> None:
    [found] = [text for text in told(sync_of(*an_operator("any", any="4"))) if "two syncs" in text]

    assert found.startswith(
        "nodes `a` of pool `shared` have no right `nvidia.com/device-plugin.config` between two syncs"
    )


def test_nodes_whose_label_names_the_file_they_keep_have_a_safe_order() -> None:
    labelled = a_node("a", 16, **{"nvidia.com/device-plugin.config": "any"})
    kept = POOLS.replace("  gpu: L40S-48GB\n", "  gpu: L40S-48GB\n  names: {devicePluginConfig: any}\n", 1)

    assert told(sync_of(labelled, *an_operator("", any="4"), policies=kept)) == []


# --- Queues ------------------------------------------------------------------------------------------------------

QUEUED = f"""
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: test}}
spec:
  kubernetes: "1.34"
  gpuOperator: {{install: external, version: v26.7.0}}
  scheduler: {{kind: kueue, version: v0.17.0, install: external}}
---{POOLS}{TENANT}"""
_KUEUE = "kueue.x-k8s.io/v1beta2"


def test_a_queue_of_a_namespace_that_leads_elsewhere_stops_its_sync() -> None:
    queue = an_object("LocalQueue", "default", {"clusterQueue": "other"}, "team", _KUEUE)

    sync = sync_of(queue, policies=QUEUED)

    assert told(sync, Effect.STOPS) == [
        "LocalQueue `default` in namespace `team` leads to ClusterQueue `team`, and led to `other`"
    ]


def test_a_queue_that_leads_where_it_led_moves_nobody() -> None:
    queue = an_object("LocalQueue", "default", {"clusterQueue": "team"}, "team", _KUEUE)

    assert told(sync_of(queue, policies=QUEUED), Effect.STOPS) == []


@pytest.mark.parametrize(("gpus", "losses"), [(8, 1), (4, 0), (2, 0)])
def test_a_queue_that_has_less_than_today_is_told(gpus: int, losses: int) -> None:
    resources = [{"name": "nvidia.com/gpu", "nominalQuota": gpus}]
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "whole", "resources": resources}]}]
    queue = an_object("ClusterQueue", "team", {"cohortName": "all", "resourceGroups": groups}, api=_KUEUE)

    found = [text for text in told(sync_of(queue, policies=QUEUED)) if "of `nvidia.com/gpu`, and" in text]

    assert found == ["ClusterQueue `team` has 4 of `nvidia.com/gpu`, and it is 8 today"] * losses


@pytest.mark.parametrize(("has", "losses"), [(0, 0), (-1, 2), (9, 2), (4, 0)])
def test_a_queue_of_kai_that_has_less_than_today_is_told(has: int, losses: int) -> None:
    """Of GPUs -1 bounds nothing, and 0 is no GPU."""
    policies = QUEUED.replace("kind: kueue, version: v0.17.0", "kind: kai, version: v0.15.2")
    names = [key.name for key in planned(a_plan(policies), Path()).objects if key.kind == "Queue"]
    [name] = [name for name in names if "team" in name and "whole" in name]
    spec = {"resources": {"gpu": {"quota": has, "limit": has}}}
    queue = an_object("Queue", name, spec, api="scheduling.run.ai/v2")

    found = [text for text in told(sync_of(queue, policies=policies)) if "`gpu." in text]

    assert len(found) == losses


@pytest.mark.parametrize(("labels", "is_told"), [({}, True), ({"kubernetes.io/hostname": "b"}, False)])
def test_a_flavor_that_matches_fewer_nodes_afterwards_is_told(labels: Body, is_told: bool) -> None:
    flavor = an_object("ResourceFlavor", "whole", {"nodeLabels": labels}, api=_KUEUE)

    found = [text for text in told(sync_of(flavor, policies=QUEUED)) if "no longer matches" in text]

    assert found == ["ResourceFlavor `whole` no longer matches `a`"] * is_told


@pytest.mark.parametrize(("label", "is_told"), [({}, True), ({"gpuplan.dev/pool": "whole"}, False)])
def test_a_flavor_that_comes_before_the_labels_of_its_nodes_is_told(label: Body, is_told: bool) -> None:
    nodes = [
        {**node, "metadata": {**node["metadata"], "labels": {**node["metadata"]["labels"], **label}}} for node in NODES
    ]
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "all", "resources": []}]}]
    queue = an_object("ClusterQueue", "team", {"cohortName": "all", "resourceGroups": groups}, api=_KUEUE)

    found = told(sync_of(*nodes, queue, policies=QUEUED), Effect.CHANGES)

    message = "ClusterQueue `team` would send work to nodes without the label `gpuplan.dev/pool`"
    assert [text for text in found if "would send" in text] == [message] * is_told


def test_no_sync_touches_what_runai_has() -> None:
    """gpuplan writes requests to Run:ai's control plane, which nothing applies: Run:ai alone writes these objects."""
    plan = a_plan(QUEUED.replace("kind: kueue, version: v0.17.0, install: external", "kind: runai"))
    theirs = [
        an_object(kind, name, {"resources": {"gpu": {"quota": 99, "limit": 99}}}, api=api)
        for api in ("run.ai/v2", "kai.resources/v1alpha1", "scheduling.run.ai/v2")
        for kind in ("Project", "Department", "NodePool", "Queue")
        for name in ("team", "whole")
    ]

    groups = {identity.group for identity in planned(plan, Path()).objects}
    assert {group for group in groups if group.endswith(("run.ai", "kai.resources", "kai.scheduler"))} == set()
    alone, beside = (simulate(plan, dump_of(deepcopy([*NODES, *bodies]))) for bodies in ([], theirs))
    assert (beside.found, beside.changed, beside.added) == (alone.found, alone.changed, alone.added)


# --- Places for pods ---------------------------------------------------------------------------------------------


MIG_CONFIG = "nvidia.com/mig.config"
TERM = {"matchExpressions": [{"key": MIG_CONFIG, "operator": "In", "values": ["old"]}]}
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}}}


def test_work_that_selects_a_label_which_moves_finds_no_node() -> None:
    was = a_node("b", 4, **{"nvidia.com/mig.config": "old"})
    pod = {"nodeSelector": {"nvidia.com/mig.config": "old"}}
    mig = POOLS.replace("exclusive: {}", "mig: {instances: {1g.10gb: 7}}").replace(
        "L40S-48GB\n  nodes: {count: 1, gpusPerNode: 4, names: [b]}",
        "A100-80GB\n  nodes: {count: 1, gpusPerNode: 4, names: [b]}",
    )

    assert told(sync_of(was, a_deployment(**pod), policies=mig), Effect.STOPS) == [
        "Deployment `work` in namespace `team` finds no node after the first sync"
    ]


def test_work_that_selects_a_label_which_stays_keeps_its_node() -> None:
    pod = {"nodeSelector": {"kubernetes.io/hostname": "b"}}

    assert told(sync_of(a_deployment(**pod)), Effect.STOPS) == []


@pytest.mark.parametrize(("host", "is_told"), [("b", False), ("elsewhere", True)])
def test_one_term_of_an_affinity_is_enough(host: str, *, is_told: bool) -> None:
    was = a_node("b", 0, **{MIG_CONFIG: "old"})
    was["status"]["allocatable"] = {"nvidia.com/mig-1g.10gb": "28"}
    terms = [TERM, {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    mig = POOLS.replace("exclusive: {}", "mig: {instances: {1g.10gb: 7}}").replace(
        "L40S-48GB\n  nodes: {count: 1, gpusPerNode: 4, names: [b]}",
        "A100-80GB\n  nodes: {count: 1, gpusPerNode: 4, names: [b]}",
    )
    work = a_deployment(affinity=affinity)
    work["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/mig-1g.10gb": 1}}

    found = told(sync_of(was, work, policies=mig), Effect.STOPS)

    assert found == ["Deployment `work` in namespace `team` finds no node after the first sync"] * is_told


def test_pods_that_do_not_tolerate_a_new_taint_have_fewer_nodes() -> None:
    tainted = POOLS.replace("names: [b]}", "names: [b]}\n  taints: [{key: team, value: x, effect: NoSchedule}]")

    assert "Deployment `work` in namespace `team` runs no longer on `b`" in told(
        sync_of(a_deployment(), policies=tainted)
    )
    tolerant = a_deployment(tolerations=[{"key": "team", "operator": "Exists"}])
    assert [text for text in told(sync_of(tolerant, policies=tainted)) if "Deployment" in text] == []


@pytest.mark.parametrize(
    ("key", "ran_there"),
    [
        ("node.kubernetes.io/unschedulable", True),
        ("karpenter.sh/disrupted", True),
        ("nvidia.com/gpu", True),
        ("nvidia.com/gpu.memory", False),
        ("team", False),
    ],
)
def test_taints_that_pass_or_that_the_api_server_tolerates_keep_no_pod_off(key: str, *, ran_there: bool) -> None:
    was = a_node("b", 4, **{"kubernetes.io/arch": "amd64"})
    was["spec"]["taints"] = [{"key": key, "effect": "NoSchedule"}]
    tainted = POOLS.replace("names: [b]}", "names: [b]}\n  taints: [{key: new, value: x, effect: NoSchedule}]")
    work = a_deployment(nodeSelector={"kubernetes.io/arch": "amd64"})

    found = told(sync_of(was, work, policies=tainted), Effect.STOPS)

    assert found == ["Deployment `work` in namespace `team` finds no node after the first sync"] * ran_there


@pytest.mark.parametrize(("effect", "node", "is_told"), [("NoExecute", "b", True), ("NoSchedule", "b", False)])
def test_pods_that_name_their_node_pass_by_the_scheduler(effect: str, node: str, *, is_told: bool) -> None:
    tainted = POOLS.replace("names: [b]}", f"names: [b]}}\n  taints: [{{key: new, value: x, effect: {effect}}}]")

    found = told(sync_of(a_deployment(nodeName=node), policies=tainted), Effect.STOPS)

    assert found == ["Deployment `work` in namespace `team` finds no node after the first sync"] * is_told


@pytest.mark.parametrize(("effect", "is_told"), [("NoExecute", True), ("NoSchedule", False)])
def test_a_taint_of_another_effect_is_a_new_one(effect: str, *, is_told: bool) -> None:
    was = a_node("b", 4)
    was["spec"]["taints"] = [{"key": "team", "value": "x", "effect": "NoSchedule"}]
    tainted = POOLS.replace("names: [b]}", f"names: [b]}}\n  taints: [{{key: team, value: x, effect: {effect}}}]")
    work = a_deployment(tolerations=[{"key": "team", "operator": "Exists", "effect": "NoSchedule"}])

    found = [text for text in told(sync_of(was, work, policies=tainted)) if "Deployment" in text]

    assert found == ["Deployment `work` in namespace `team` runs no longer on `b`"] * is_told


def test_a_pod_is_put_anew_where_it_is_made_again() -> None:
    tainted = POOLS.replace("names: [b]}", "names: [b]}\n  taints: [{key: new, value: x, effect: NoSchedule}]")
    pod = an_object("Pod", "work", {"nodeName": "b", **a_deployment()["spec"]["template"]["spec"]}, "team")

    assert "Pod `work` in namespace `team` runs no longer on `b`" in told(sync_of(pod, policies=tainted))


def test_pods_of_kai_that_name_no_node_pool_find_no_node_of_a_shard() -> None:
    sharded = QUEUED.replace("kind: kueue, version: v0.17.0", "kind: kai, version: v0.15.2")
    work = a_deployment(schedulerName="kai-scheduler")
    named = deepcopy(work)
    named["spec"]["template"]["metadata"]["labels"]["kai.scheduler/node-pool"] = "whole"
    old, new = a_node("b", 4, **{"kai.scheduler/node-pool": "whole"}), a_node("b", 4)

    assert "Deployment `work` in namespace `team` finds no node after the first sync" in told(
        sync_of(new, work, policies=sharded), Effect.STOPS
    )
    assert told(sync_of(old, named, policies=sharded), Effect.STOPS) == []


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (
            {"schedulerName": "kai-scheduler"},
            "`b` has the label `kai.scheduler/node-pool: whole`, and its pods have none",
        ),
        ({"nodeSelector": {MIG_CONFIG: "old"}}, f"its pods select `{MIG_CONFIG}: old`; `b` has `{MIG_CONFIG}: whole-"),
        ({"affinity": AFFINITY}, f"the affinity of its pods does not match: `b` has `{MIG_CONFIG}: whole-"),
        ({}, "`b` has the taint `team=x:NoSchedule`, which its pods do not tolerate"),
    ],
)
def test_the_reasons_why_work_loses_a_node_are_told(pod: Body, reason: str) -> None:
    taints = "\n  taints: [{key: team, value: x, effect: NoSchedule}]"
    nodes = "GB\n  nodes: {count: 1, gpusPerNode: 4, names: [b]}"
    policies = (
        QUEUED.replace("kind: kueue, version: v0.17.0", "kind: kai, version: v0.15.2")
        .replace(f"L40S-48{nodes}", f"A100-80{nodes}{taints}")
        .replace("exclusive: {}", "mig: {instances: {1g.10gb: 7}}")
        .replace("{pool: whole, guaranteed: 4, cpu: 64}", "{pool: whole, guaranteed: 4}")
    )
    node = a_node("b", 0, **{MIG_CONFIG: "old"})
    node["status"]["allocatable"] = {"nvidia.com/mig-1g.10gb": "28"}
    work = a_deployment(**pod)
    work["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/mig-1g.10gb": 1}}

    [found] = [
        item.shown
        for item in sync_of(node, work, policies=policies).found[Effect.STOPS]
        if "Deployment" in item.shown.message
    ]

    assert reason in "\n".join(found.notes)


@pytest.mark.parametrize(("annotations", "is_told"), [({"gpu-fraction": "0.5"}, True), ({"team": "x"}, False)])
def test_pods_with_a_part_of_a_gpu_lose_the_nodes_with_gpus(annotations: Body, is_told: bool) -> None:
    """A node without GPUs goes on to take the pods that ask for none."""
    sharded = QUEUED.replace("kind: kueue, version: v0.17.0", "kind: kai, version: v0.15.2")
    work = a_deployment(schedulerName="kai-scheduler")
    work["spec"]["template"]["metadata"]["annotations"] = annotations
    del work["spec"]["template"]["spec"]["containers"][0]["resources"]

    found = [text for text in told(sync_of(a_node("c", 0), work, policies=sharded), Effect.STOPS) if "`work`" in text]

    assert found == ["Deployment `work` in namespace `team` finds no node after the first sync"] * is_told


@pytest.mark.parametrize(("gpus", "is_told"), [(4, True), (0, False)])
def test_a_cap_of_all_that_nodes_hand_out_is_noted(gpus: int, is_told: bool) -> None:
    nodes = (a_node("a", 0), a_node("b", gpus))

    found = told(sync_of(a_namespace(), *nodes, policies=POOLS + TENANT), Effect.CHANGES)

    message = "namespaces `team` are capped at 4 of `requests.nvidia.com/gpu`, and nothing capped them"
    assert (message in found) is is_told


def test_the_label_of_a_shard_is_to_be_written_right_after_the_two_folders_of_its_pool() -> None:
    """A shard without a name takes pods without the label alone, and has the nodes and Queues without it."""
    sharded = QUEUED.replace("kind: kueue, version: v0.17.0", "kind: kai, version: v0.15.2")
    sync = sync_of(a_deployment(schedulerName="kai-scheduler"), policies=sharded)

    [found] = [item.shown for item in sync.found[Effect.STOPS] if "Deployment" in item.shown.message]

    assert found.help.startswith(
        "sync `queues/shared` and `partitions/shared` last, and write `kai.scheduler/node-pool: shared`"
    )


@pytest.mark.parametrize(
    ("nodes", "labels", "help_"),
    [
        ("selector: {zone: x}", {"zone": "x"}, "select `zone: x` in its pods first"),
        ("names: [b]", {"zone": "x"}, "or select `gpuplan.dev/pool: whole` right after the sync of `partitions/whole`"),
    ],
    ids=["labels-that-stay", "names-alone"],
)
def test_no_selector_is_advised_that_no_node_has_yet(nodes: str, labels: dict[str, str], help_: str) -> None:
    was = a_node("b", 4, **{MIG_CONFIG: "old"}, **labels)
    mig = POOLS.replace("exclusive: {}", "mig: {instances: {1g.10gb: 7}}").replace(
        "L40S-48GB\n  nodes: {count: 1, gpusPerNode: 4, names: [b]}",
        f"A100-80GB\n  nodes: {{count: 1, gpusPerNode: 4, {nodes}}}",
    )
    sync = sync_of(was, a_deployment(nodeSelector={MIG_CONFIG: "old"}), policies=mig)

    [found] = [item.shown for item in sync.found[Effect.STOPS] if "Deployment" in item.shown.message]

    assert help_ in found.help


@pytest.mark.parametrize(("labels", "is_told"), [({}, True), ({"kueue.x-k8s.io/queue-name": "own"}, False)])
def test_a_new_default_queue_takes_work_that_names_none(labels: Body, is_told: bool) -> None:
    work = a_deployment()
    work["metadata"]["labels"] = labels

    found = [text for text in told(sync_of(a_namespace(), work, policies=QUEUED)) if "names no queue" in text]

    assert bool(found) is is_told
