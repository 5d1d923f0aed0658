"""Queues and flavors that run go on as they are when an import is synced, or the import names them as errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.pipeline import build
from gpuplan.features.live.importing import Import, adopt
from tests.features.live.test_first_quotas import LEFT_OUT, a_namespace, a_node, imported

Body = dict[str, Any]
KUEUE = "kueue.x-k8s.io/v1beta2"
CPU_NODE: Body = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "c", "labels": {"kubernetes.io/os": "linux"}},
    "status": {"allocatable": {"cpu": "128"}, "nodeInfo": {"kubeletVersion": "v1.33.4"}},
}


def a_flavor(name: str, **labels: str) -> Body:
    spec = {"nodeLabels": {key.replace("_", "/"): value for key, value in labels.items()}} if labels else {}
    return {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def a_queue(name: str, **flavors: dict[str, int]) -> Body:
    covered = [*dict.fromkeys(resource for cells in flavors.values() for resource in cells)]
    listed = [
        {"name": flavor, "resources": [{"name": key, "nominalQuota": cells.get(key, 0)} for key in covered]}
        for flavor, cells in flavors.items()
    ]
    groups = [{"coveredResources": covered, "flavors": listed}]
    spec = {"namespaceSelector": {}, "resourceGroups": groups}
    return {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}


def a_local_queue(name: str, queue: str, namespace: str = "one") -> Body:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": queue}}


def a_job(queue: str, namespace: str = "one", name: str = "job") -> Body:
    labels = {"kueue.x-k8s.io/queue-name": queue}
    container = {"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


def built(root: Path, kind: str) -> dict[str, Body]:
    """The objects of a kind that are written, by name; those of a namespace with it."""
    tree = build(root).tree
    files = [data for path, data in tree.items() if f"/{kind.lower()}-" in path]
    bodies = [body for data in files for body in yaml.safe_load_all(data) if body["kind"] == kind]
    return {"/".join(filter(None, (b["metadata"].get("namespace"), b["metadata"]["name"]))): b["spec"] for b in bodies}


def tenants(made: Import) -> dict[str, list[str]]:
    return {draft.name: [*draft.spec["namespaces"]] for draft in made.drafts if draft.kind == "Tenant"}


def errors(made: Import) -> list[str]:
    return [item.finding.message for item in made.report.diagnostics if item.is_error and item.code != "GPU817"]


def places_of_errors(made: Import) -> list[tuple[str, str, str]]:
    """Each error with its file, and with what that was made of."""
    found = [item.finding for item in made.report.diagnostics if item.is_error and item.code != "GPU817"]
    beside = [(item.related[-1].text, item.related[-1].at.locate().file.path) for item in found]
    files = [item.at.locate().file.path for item in found]
    return [(f.message, file, f"{t} in {p}") for f, file, (t, p) in zip(found, files, beside, strict=True)]


def messages(made: Import) -> list[str]:
    return [item.finding.message for item in made.report.diagnostics]


GPUS = {"nvidia.com/gpu": 4}
ALL = {"cpu": 160, "memory": 2**39, **GPUS}
GPU_NODE = a_node("g", "l40s", 4, zone="a")


# --- Flavors of more nodes than a pool has -----------------------------------------------------------------------


@pytest.mark.parametrize("flavor", [a_flavor("all"), a_flavor("all", zone="a")], ids=["of-all", "of-a-zone"])
@pytest.mark.parametrize("beside", [{}, {"pods": 10}], ids=["cpu", "pods"])
def test_a_queue_that_counts_cpu_on_nodes_without_gpus_stays_as_it_is(
    flavor: Body, beside: dict[str, int], tmp_path: Path
) -> None:
    cpu_node = {**CPU_NODE, "metadata": {"name": "c", "labels": {"zone": "a"}}}
    queue = a_queue("shared", all={**(beside or {"cpu": 160}), **GPUS})
    made = imported(tmp_path, GPU_NODE, cpu_node, a_namespace(), flavor, queue, a_local_queue("jobs", "shared"))

    assert errors(made) == [
        "ClusterQueue `shared` counts CPU or memory by ResourceFlavor `all`, which is of nodes without GPUs, too"
    ]
    assert tenants(made) == {}
    assert built(tmp_path, "ClusterQueue") == built(tmp_path, "LocalQueue") == {}
    assert "all" not in built(tmp_path, "ResourceFlavor")


def test_a_queue_on_gpus_alone_gets_a_flavor_of_the_pool_in_place_of_one_of_more_nodes(tmp_path: Path) -> None:
    queue = a_queue("shared", all=GPUS)
    made = imported(
        tmp_path, GPU_NODE, CPU_NODE, a_namespace(), a_flavor("all"), queue, a_local_queue("jobs", "shared")
    )

    assert errors(made) == []
    assert "ResourceFlavor `all` is of nodes beside those of a pool, too, such as Node `c`" in messages(made)
    assert built(tmp_path, "ResourceFlavor").keys() == {"l40s"}


@pytest.mark.parametrize("flavor", [a_flavor("all"), a_flavor("all", zone="a")], ids=["of-all", "of-a-zone"])
def test_a_flavor_of_just_the_nodes_of_a_pool_keeps_its_name(flavor: Body, tmp_path: Path) -> None:
    queue = a_queue("shared", all=ALL)
    made = imported(tmp_path, GPU_NODE, a_namespace(), flavor, queue, a_local_queue("jobs", "shared"))

    assert errors(made) == []
    assert tenants(made) == {"shared": ["one"]}
    assert built(tmp_path, "ResourceFlavor").keys() == {"all"}


def test_memory_in_which_no_container_starts_is_named_and_not_read(tmp_path: Path) -> None:
    queue = a_queue("shared", all={**ALL, "memory": 512})
    made = imported(tmp_path, GPU_NODE, a_namespace(), a_flavor("all"), queue, a_local_queue("jobs", "shared"))

    assert errors(made) == ["ClusterQueue `shared` has a quota on `memory` that is no number of them"]


def test_the_help_on_a_flavor_of_all_nodes_leads_to_a_tenant(tmp_path: Path) -> None:
    flavors = (a_flavor("all"), a_flavor("gpus", zone="a"))
    queues = (a_queue("shared", gpus=ALL), a_queue("cpus", all={"cpu": 160}))
    local = (a_local_queue("jobs", "shared"), a_local_queue("jobs", "cpus", "two"))
    spaces = (a_namespace(), a_namespace("two"))
    made = imported(tmp_path, GPU_NODE, CPU_NODE, *spaces, *flavors, *queues, *local)

    assert errors(made) == []
    assert tenants(made) == {"shared": ["one"]}
    assert built(tmp_path, "ResourceFlavor").keys() == {"gpus"}


def test_cpu_that_a_queue_counts_by_a_flavor_without_gpus_is_an_error(tmp_path: Path) -> None:
    flavors = (a_flavor("cpus", kubernetes_io="x"), a_flavor("gpus", zone="a"))
    node = {**CPU_NODE, "metadata": {"name": "c", "labels": {"kubernetes/io": "x"}}}
    queue = a_queue("shared", gpus=ALL, cpus={"cpu": 128})
    made = imported(tmp_path, GPU_NODE, node, a_namespace(), *flavors, queue, a_local_queue("jobs", "shared"))

    assert errors(made) == ["ClusterQueue `shared` counts `cpu` where it has no GPUs"]


# --- Several LocalQueues in a namespace --------------------------------------------------------------------------

TWO_QUEUES = (
    a_flavor("all"),
    a_queue("batch", all={"nvidia.com/gpu": 3}),
    a_queue("notebooks", all={"nvidia.com/gpu": 1}),
)


@pytest.mark.parametrize(
    ("default", "other"), [("notebooks", "batch"), ("batch", "notebooks")], ids=["notebooks", "batch"]
)
@pytest.mark.parametrize("name", ["a-first", "nightly"])
def test_default_leads_where_it_led(default: str, other: str, name: str, tmp_path: Path) -> None:
    local = (a_local_queue(name, other), a_local_queue("default", default))
    made = imported(tmp_path, GPU_NODE, a_namespace(), *TWO_QUEUES, *local, a_job(name))

    assert tenants(made) == {default: ["one"]}
    assert built(tmp_path, "LocalQueue") == {"one/default": {"clusterQueue": default}}
    leads = f"LocalQueue `{name}` in namespace `one` leads to ClusterQueue `{other}`"
    assert errors(made) == [f"{leads}, and `default` beside it to `{default}`"]


def test_default_to_a_queue_without_gpus_keeps_the_namespace_as_it_is(tmp_path: Path) -> None:
    queues = (
        a_flavor("all"),
        a_flavor("c", **{"kubernetes.io_os": "linux"}),
        a_queue("gpus", all=GPUS),
        a_queue("cpus", c={"cpu": 4}),
    )
    local = (a_local_queue("default", "cpus"), a_local_queue("gpus", "gpus"), a_local_queue("gpus", "gpus", "two"))
    made = imported(tmp_path, GPU_NODE, CPU_NODE, a_namespace(), a_namespace("two"), *queues, *local)

    assert tenants(made) == {"gpus": ["two"]}
    assert errors(made) == [
        "LocalQueue `default` in namespace `one` leads to ClusterQueue `cpus`, of which no tenant is made"
    ]


@pytest.mark.parametrize("used", ["a", "b"])
def test_without_default_the_namespace_is_of_the_queue_that_its_work_is_in(used: str, tmp_path: Path) -> None:
    local = (a_local_queue("a", "batch"), a_local_queue("b", "notebooks"))
    made = imported(tmp_path, GPU_NODE, a_namespace(), *TWO_QUEUES, *local, a_job(used))

    assert tenants(made) == {{"a": "batch", "b": "notebooks"}[used]: ["one"]}
    assert built(tmp_path, "LocalQueue")[f"one/{used}"] == {"clusterQueue": {"a": "batch", "b": "notebooks"}[used]}


def test_two_localqueues_to_one_queue_are_no_error(tmp_path: Path) -> None:
    local = (a_local_queue("default", "batch"), a_local_queue("jobs", "batch"))
    made = imported(tmp_path, GPU_NODE, a_namespace(), *TWO_QUEUES, *local)

    assert errors(made) == []
    assert built(tmp_path, "LocalQueue").keys() == {"one/default", "one/jobs"}


def test_a_quota_on_gpus_of_nodes_that_are_in_no_pool_is_an_error(tmp_path: Path) -> None:
    labels = {"cloud.google.com_gke-nodepool": "mig"}
    flavors = (a_flavor("all", zone="a"), a_flavor("mig", **labels))
    queue = a_queue("shared", all=GPUS, mig={"nvidia.com/gpu": 7})
    local = a_local_queue("jobs", "shared")
    made = imported(tmp_path, GPU_NODE, LEFT_OUT, a_namespace(), *flavors, queue, local)

    assert errors(made) == [
        "ClusterQueue `shared` counts `nvidia.com/gpu` on nodes that are in no pool, such as Node `gke-mig-1`"
    ]


@pytest.mark.parametrize(("second", "promised"), [(1, 0), (3, 6)])
def test_nominal_quotas_of_more_gpus_than_there_are_are_one_error(second: int, promised: int, tmp_path: Path) -> None:
    queues = (a_queue("chat", all={"nvidia.com/gpu": 3}), a_queue("web", all={"nvidia.com/gpu": second}))
    doors = (a_local_queue("jobs", "chat"), a_local_queue("jobs", "web", "two"))
    made = imported(tmp_path, GPU_NODE, a_namespace(), a_namespace("two"), a_flavor("all"), *queues, *doors)

    sums = f"guarantees on `gpu` of pool `all` add up to {promised} of 4"
    assert places_of_errors(made) == [
        (sums, "overlays/lab/tenants/web.yaml", "made of ClusterQueue `web` in dump.yaml")
    ] * bool(promised)


def test_who_lowers_a_guarantee_in_a_policy_is_told_of_the_queue_alone(tmp_path: Path) -> None:
    queues = (a_queue("chat", all={"nvidia.com/gpu": 3}), a_queue("web", all={"nvidia.com/gpu": 3}))
    doors = (a_local_queue("jobs", "chat"), a_local_queue("jobs", "web", "two"))
    dump = (GPU_NODE, a_namespace(), a_namespace("two"), a_flavor("all"), *queues, *doors)
    imported(tmp_path, *dump)
    tenant = tmp_path / "overlays/lab/tenants/web.yaml"
    tenant.write_text(tenant.read_text(encoding="utf-8").replace("guaranteed: 3", "guaranteed: 1"), encoding="utf-8")

    found = {"dump.yaml": yaml.safe_dump_all([*dump]).encode()}
    made = adopt(found, tmp_path, "lab", merges=True)

    assert errors(made) == []
    assert "ClusterQueue `web` has 1 of `nvidia.com/gpu`, and it is 3 today" in messages(made)


def test_a_queue_with_two_flavors_of_a_pool_may_borrow_both_limits(tmp_path: Path) -> None:
    queue = a_queue("shared", all={"nvidia.com/gpu": 1}, also={"nvidia.com/gpu": 1})
    queue["spec"]["cohortName"] = "everyone"
    for flavor, limit in zip(queue["spec"]["resourceGroups"][0]["flavors"], (1, 2), strict=True):
        flavor["resources"][0]["borrowingLimit"] = limit
    flavors = (a_flavor("all", zone="a"), a_flavor("also", zone="a"))
    node = a_node("g", "l40s", 8, zone="a")
    made = imported(tmp_path, node, a_namespace(), *flavors, queue, a_local_queue("jobs", "shared"))

    [tenant] = [draft.spec for draft in made.drafts if draft.kind == "Tenant"]
    assert [(quota["guaranteed"], quota["limit"]) for quota in tenant["quotas"]] == [(2, 5)]


# --- Defaults beside quotas of CPU -------------------------------------------------------------------------------


def a_limit_range(**parts: Body) -> Body:
    metadata = {"name": "theirs", "namespace": "one"}
    limits = [{"type": "Container", **parts}]
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": limits}}


@pytest.mark.parametrize(
    ("parts", "hidden", "kept"),
    [
        ({"defaultRequest": {"cpu": "500m"}}, "`cpu`", None),
        ({"default": {"cpu": "2", "memory": "4Gi"}}, "`cpu` and `memory`", None),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, "", {"cpu": {"maxRatio": 2}}),
    ],
)
def test_a_default_that_kueue_takes_before_limits_stays_in_its_limitrange(
    parts: Body, hidden: str, kept: Body | None, tmp_path: Path
) -> None:
    bodies = (a_flavor("all"), a_queue("shared", all=ALL), a_local_queue("jobs", "shared"), a_limit_range(**parts))
    made = imported(tmp_path, GPU_NODE, a_namespace(), *bodies)

    assert errors(made) == []
    [tenant] = [draft for draft in made.drafts if draft.kind == "Tenant"]
    assert tenant.spec.get("containers") == kept
    message = f"a LimitRange of namespace `one` gives a default of {hidden}, which Kueue takes before limits"
    assert (message in messages(made)) is bool(hidden)


def test_a_default_beside_a_queue_of_gpus_alone_becomes_the_tenants(tmp_path: Path) -> None:
    bodies = (a_flavor("all"), a_queue("shared", all=GPUS), a_local_queue("jobs", "shared"))
    limits = a_limit_range(defaultRequest={"cpu": "500m"})
    made = imported(tmp_path, GPU_NODE, a_namespace(), *bodies, limits)

    [tenant] = [draft for draft in made.drafts if draft.kind == "Tenant"]
    assert tenant.spec["containers"] == {"cpu": {"request": "500m"}}
    assert not any("before limits" in message for message in messages(made))


# --- KAI-Scheduler -----------------------------------------------------------------------------------------------

NO_BOUND = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def a_kai_queue(name: str, quota: float, limit: float, parent: str = "", cpu: Body | None = None, **spec: Any) -> Body:
    gpu = {"quota": quota, "limit": limit, "overQuotaWeight": 1}
    above = {"parentQueue": parent} if parent else {}
    resources = {"gpu": gpu, "cpu": cpu or NO_BOUND, "memory": NO_BOUND}
    body = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}}
    return {**body, "spec": {**above, "resources": resources, **spec}}


def kai_work(queue: str, namespace: str = "one", part: str = "", **pods: Any) -> Body:
    annotations = {"gpu-fraction": part} if part else {}
    container = {"name": "c", "image": "x", "resources": {} if part else {"limits": {"nvidia.com/gpu": 1}}}
    labels = {"app": queue, "kai.scheduler/queue": queue}
    spec = {"schedulerName": "kai-scheduler", **pods, "containers": [container]}
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": queue, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": queue}}, "template": template},
    }


KAI_NODES = (a_node("a", "a100", 8), a_node("l", "l40s", 2))


def kai_queues(root: Path, tenant: str) -> dict[str, Body]:
    """The resources of a tenant's queues by pool."""
    found = built(root, "Queue")
    shown = {name: spec for name, spec in found.items() if spec["displayName"] == tenant}
    return {("l40s" if name.endswith("l40s") else "a100"): spec["resources"] for name, spec in shown.items()}


@pytest.mark.parametrize(("quota", "limit"), [(1.5, 1.5), (2, 3), (6.5, 8), (0.25, 0.5)])
def test_a_quota_in_parts_of_gpus_keeps_its_sum_and_each_pool_its_limit(
    quota: float, limit: float, tmp_path: Path
) -> None:
    bodies = (a_kai_queue("top", 8, -1), a_kai_queue("chat", quota, limit, "top"), kai_work("chat", part="0.5"))
    made = imported(tmp_path, *KAI_NODES, a_namespace(), *bodies)

    assert errors(made) == []
    gpus = [resources["gpu"] for resources in kai_queues(tmp_path, "chat").values()]
    assert sum(gpu["quota"] for gpu in gpus) == quota
    assert {gpu["limit"] for gpu in gpus} == {limit}


@pytest.mark.parametrize(("quota", "limit"), [(2, 3), (8, 8), (6.5, 7.5)])
def test_a_limit_on_whole_gpus_is_no_lower_than_it_was(quota: float, limit: float, tmp_path: Path) -> None:
    bodies = (a_kai_queue("top", 8, -1), a_kai_queue("chat", quota, limit, "top"), kai_work("chat"))
    made = imported(tmp_path, *KAI_NODES, a_namespace(), *bodies)

    assert errors(made) == []
    gpus = [resources["gpu"] for resources in kai_queues(tmp_path, "chat").values()]
    assert sum(gpu["quota"] for gpu in gpus) == int(quota)
    assert min(gpu["limit"] for gpu in gpus) >= limit
    told = "Queue `chat` has GPUs that are no whole number of what pool `a100-sxm4-40gb` hands out"
    assert (told in messages(made)) == (quota % 1 > 0)


def test_a_quota_goes_to_the_pool_that_work_of_the_queue_selects(tmp_path: Path) -> None:
    work = kai_work("chat", nodeSelector={"board": "l40s"})
    made = imported(tmp_path, *KAI_NODES, a_namespace(), a_kai_queue("chat", 1, 2), work)

    assert errors(made) == []
    quotas = {pool: resources["gpu"]["quota"] for pool, resources in kai_queues(tmp_path, "chat").items()}
    assert quotas == {"a100": 0, "l40s": 1}


@pytest.mark.parametrize(("asks", "quotas"), [(4, {"a100": 1, "l40s": 0}), (2, {"a100": 0.8, "l40s": 0.2})])
def test_a_quota_goes_to_the_pool_whose_nodes_are_large_enough(
    asks: int, quotas: dict[str, float], tmp_path: Path
) -> None:
    work = kai_work("chat")
    work["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = asks
    made = imported(tmp_path, *KAI_NODES, a_namespace(), a_kai_queue("chat", 5, 5), work)

    assert errors(made) == []
    found = {pool: resources["gpu"]["quota"] for pool, resources in kai_queues(tmp_path, "chat").items()}
    assert found == {pool: part * 5 for pool, part in quotas.items()}


def test_cpu_is_divided_as_the_gpus_are_and_its_limit_is_not(tmp_path: Path) -> None:
    cpu = {"quota": 100_000, "limit": 200_000, "overQuotaWeight": 1}
    made = imported(tmp_path, *KAI_NODES, a_namespace(), a_kai_queue("chat", 5, 5, cpu=cpu), kai_work("chat"))

    assert errors(made) == []
    found = {pool: resources["cpu"] for pool, resources in kai_queues(tmp_path, "chat").items()}
    assert {pool: (part["quota"], part["limit"]) for pool, part in found.items()} == {
        "a100": (80_000, 200_000),
        "l40s": (20_000, 200_000),
    }


@pytest.mark.parametrize("parts", [(3, 3), (1, 5), (2, 2)])
def test_a_queue_with_as_much_as_those_below_it_is_not_called_less(parts: tuple[int, int], tmp_path: Path) -> None:
    leaves = [a_kai_queue(f"t{index}", part, part, "top") for index, part in enumerate(parts)]
    work = [kai_work(f"t{index}", f"n{index}") for index in range(2)]
    spaces = [a_namespace(f"n{index}") for index in range(2)]
    made = imported(tmp_path, *KAI_NODES, *spaces, a_kai_queue("top", sum(parts), -1), *leaves, *work)

    assert errors(made) == []
    assert not any("less than what the queues below it have" in message for message in messages(made))


def test_a_queue_with_less_than_those_below_it_is_called_so(tmp_path: Path) -> None:
    queues = (a_kai_queue("top", 1, -1), a_kai_queue("chat", 4, 4, "top"))
    made = imported(tmp_path, *KAI_NODES, a_namespace(), *queues, kai_work("chat"))

    assert "Queue `top` has a quota that is less than what the queues below it have" in messages(made)


@pytest.mark.parametrize(("second", "promised"), [(6, 0), (7, 11)])
def test_quotas_of_more_gpus_than_there_are_are_one_error(second: int, promised: int, tmp_path: Path) -> None:
    queues = (a_kai_queue("top", 8, -1), a_kai_queue("chat", 4, 4, "top"), a_kai_queue("web", second, -1, "top"))
    work = (kai_work("chat"), kai_work("web", "two"))
    made = imported(tmp_path, a_node("a", gpus=10), a_namespace(), a_namespace("two"), *queues, *work)

    sums = f"guarantees on `gpu` of pool `a100-sxm4-40gb` add up to {promised} of 10"
    assert places_of_errors(made) == [
        (sums, "overlays/lab/tenants/web.yaml", "made of Queue `web` in dump.yaml")
    ] * bool(promised)


@pytest.mark.parametrize(("shares", "has_kai"), [(1, True), (4, True), (4, False)])
def test_shares_that_kai_takes_for_gpus_are_one_error(shares: int, has_kai: bool, tmp_path: Path) -> None:
    node = a_node("l", "l40s", 2)
    node["metadata"]["labels"] |= {"nvidia.com/gpu.replicas": str(shares)}
    node["metadata"]["labels"] |= {"nvidia.com/gpu.sharing-strategy": "time-slicing" if shares > 1 else "none"}
    node["status"]["allocatable"]["nvidia.com/gpu"] = str(2 * shares)
    queues = (a_kai_queue("chat", 1, 2), kai_work("chat")) if has_kai else ()
    made = imported(tmp_path, node, a_namespace(), *queues)

    sums = "KAI-Scheduler does not count the shares of pool `l40s`"
    assert places_of_errors(made) == [(sums, "overlays/lab/pools/l40s.yaml", "made of Node `l` in dump.yaml")] * (
        shares > 1 and has_kai
    )


@pytest.mark.parametrize(("whole", "is_told"), [([0], True), ([], False)])
def test_whole_gpus_beside_mig_are_one_error_with_kai(whole: list[int], is_told: bool, tmp_path: Path) -> None:
    layout = [{"devices": [*range(8)], "mig-enabled": True, "mig-devices": {"1g.5gb": 7}}]
    if whole:
        layout = [{"devices": whole, "mig-enabled": False}, {**layout[0], "devices": [*range(1, 8)]}]
    data = {"config.yaml": yaml.safe_dump({"version": "v1", "mig-configs": {"own": layout}})}
    metadata = {"name": "mig-layouts", "namespace": "gpu-operator"}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    node = a_node("m")
    node["metadata"]["labels"] |= {"nvidia.com/mig.config": "own", "nvidia.com/mig.config.state": "success"}
    node["metadata"]["labels"] |= {"nvidia.com/mig.strategy": "mixed"}
    node["status"]["allocatable"] = {
        "nvidia.com/mig-1g.5gb": str(7 * (8 - len(whole))),
        "nvidia.com/gpu": str(len(whole)),
    }
    made = imported(tmp_path, node, config_map, a_namespace(), a_kai_queue("chat", 1, 2), kai_work("chat"))

    unused = "KAI-Scheduler cannot use the 1 whole GPUs of pool `a100-sxm4-40gb-own`"
    assert errors(made) == [unused] * is_told


def test_the_shard_whose_nodes_get_shards_of_their_own_is_named(tmp_path: Path) -> None:
    shard = {"apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard", "metadata": {"name": "default"}, "spec": {}}
    made = imported(tmp_path, *KAI_NODES, a_namespace(), a_kai_queue("chat", 1, 2), kai_work("chat"), shard)

    told = "SchedulingShard `default` loses the nodes of `a100-sxm4-40gb` and `l40s` from the first sync on"
    assert told in messages(made)


def test_a_name_that_is_displayed_and_a_priority_are_told_or_kept(tmp_path: Path) -> None:
    queue = a_kai_queue("chat", 1, 2, displayName="Chat team", priority=120)
    made = imported(tmp_path, *KAI_NODES, a_namespace(), queue, kai_work("chat"))

    assert {spec["priority"] for spec in built(tmp_path, "Queue").values()} == {120}
    assert "queues are displayed as `Chat team`, which no policy says" in messages(made)


@pytest.mark.parametrize("name", ["train", "build", "inference", "build-preemptible"])
def test_a_class_of_kais_chart_needs_no_policy(name: str, tmp_path: Path) -> None:
    work = kai_work("chat", priorityClassName=name)
    made = imported(tmp_path, *KAI_NODES, a_namespace(), a_kai_queue("chat", 1, 2), work)

    notes = [note for item in made.report.diagnostics for note in item.finding.notes]
    assert not any("which is in no policy" in note for note in notes)


# --- Kueue before 0.15, and its Configuration --------------------------------------------------------------------


def a_controller(image: str) -> Body:
    container = {"name": "manager", "image": image}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kueue-controller-manager", "namespace": "kueue-system"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }


def of_v1beta1(*bodies: Body) -> list[Body]:
    """The same queues as a release before 0.15 serves them."""
    found = [{**body, "apiVersion": "kueue.x-k8s.io/v1beta1", "spec": {**body["spec"]}} for body in bodies]
    for body in found:
        if "cohortName" in body["spec"]:
            body["spec"]["cohort"] = body["spec"].pop("cohortName")
    return found


@pytest.mark.parametrize("release", ["v0.8.1", "v0.11.4", "v0.14.9"])
def test_queues_of_an_older_kueue_are_read_and_its_upgrade_is_named(release: str, tmp_path: Path) -> None:
    queue, other = a_queue("jobs", all={"nvidia.com/gpu": 3}), a_queue("lab", all={"nvidia.com/gpu": 1})
    for body in (queue, other):
        body["spec"]["cohortName"] = "everyone"
    local = (a_local_queue("default", "jobs"), a_local_queue("default", "lab", "two"))
    spaces = (a_namespace(), a_namespace("two"))
    objects = of_v1beta1(a_flavor("all"), queue, other, *local)
    made = imported(tmp_path, GPU_NODE, *spaces, *objects, a_controller(f"registry.k8s.io/kueue/kueue:{release}"))

    assert errors(made) == []
    assert f"Kueue {release} does not know the objects that are written for it" in messages(made)
    assert tenants(made) == {"jobs": ["one"], "lab": ["two"]}
    assert {name: spec["cohortName"] for name, spec in built(tmp_path, "ClusterQueue").items()} == {
        "jobs": "everyone",
        "lab": "everyone",
    }
    assert made.first_sync is not None
    paths = {drift.path for drifts in made.first_sync.changed.values() for drift in drifts}
    assert {path for path in paths if "cohort" in path} == set()
    assert "spec.preemption" in paths


def test_a_kueue_that_knows_the_objects_is_written_with_its_release(tmp_path: Path) -> None:
    queues = (a_flavor("all"), a_queue("jobs", all=GPUS), a_local_queue("default", "jobs"))
    made = imported(tmp_path, GPU_NODE, a_namespace(), *queues, a_controller("registry.k8s.io/kueue/kueue:v0.17.0"))

    (cluster,) = [draft.spec for draft in made.drafts if draft.kind == "Cluster"]
    assert cluster["scheduler"]["version"] == "v0.17.0"
    assert not any("does not know the objects" in message for message in messages(made))


def test_settings_of_kueues_configuration_are_named(tmp_path: Path) -> None:
    settings = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "manageJobsWithoutQueueName": True,
        "waitForPodsReady": {"enable": True},
        "integrations": {"frameworks": ["batch/job", "ray.io/rayjob"]},
    }
    files = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kueue-manager-config", "namespace": "kueue-system"},
        "data": {"controller_manager_config.yaml": yaml.safe_dump(settings)},
    }
    queues = (a_flavor("all"), a_queue("jobs", all=GPUS), a_local_queue("default", "jobs"))
    made = imported(tmp_path, GPU_NODE, a_namespace(), *queues, files)

    title = "ConfigMap `kueue-manager-config` in namespace `kueue-system`"
    keys = "`manageJobsWithoutQueueName` and `waitForPodsReady`"
    assert f"{title} sets {keys}, which follows from no policy" in messages(made)
    assert f"{title} has another `integrations` than gpuplan writes" in messages(made)


# --- Run:ai ------------------------------------------------------------------------------------------------------


def of_runai(kind: str, name: str, group: str = "kai.resources/v1alpha1", **spec: Any) -> Body:
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": spec}


def a_part(pool: str, deserved: float, limit: float = -1) -> Body:
    gpu = {"deserved": deserved, "limit": limit, "overQuotaWeight": 1}
    return {"name": f"queue-{pool}", "nodepool": pool, "resources": {"gpu": gpu}}


NODE_POOLS = (
    of_runai("NodePool", "big", labelKey="board", labelValue="a100"),
    of_runai("NodePool", "small", labelKey="board", labelValue="l40s"),
)


def test_projects_of_runai_are_tenants_of_the_pools_that_its_node_pools_are(tmp_path: Path) -> None:
    project = of_runai(
        "Project", "chat", parent="labs", namespace="one", queues=[a_part("big", 2, 4), a_part("small", 1)]
    )
    department = of_runai("Department", "labs", queues=[a_part("big", 5), a_part("small", 1)])
    queue = a_kai_queue("queue-big", 2, 4)
    made = imported(tmp_path, *KAI_NODES, a_namespace(), *NODE_POOLS, project, department, queue)

    assert errors(made) == []
    assert {draft.name for draft in made.drafts if draft.kind == "Pool"} == {"big", "small"}
    (chat,) = [draft.spec for draft in made.drafts if (draft.kind, draft.name) == ("Tenant", "chat")]
    assert (chat["parent"], chat["namespaces"]) == ("labs", ["one"])
    assert [*chat["quotas"]] == [
        {"pool": "big", "unit": "gpu", "guaranteed": 2, "limit": 4},
        {"pool": "small", "unit": "gpu", "guaranteed": 1, "limit": "none"},
    ]
    assert "no tenant is made of Queues `queue-big`: Run:ai makes them of its projects" in messages(made)


def test_a_project_without_a_limit_has_what_it_deserves(tmp_path: Path) -> None:
    part = {"name": "q", "nodepool": "big", "resources": {"gpu": {"deserved": 2}}}
    project = of_runai("Project", "chat", namespace="one", queues=[part])
    made = imported(tmp_path, *KAI_NODES, a_namespace(), *NODE_POOLS, project)

    (chat,) = [draft.spec for draft in made.drafts if (draft.kind, draft.name) == ("Tenant", "chat")]
    assert [quota for quota in chat["quotas"] if quota["pool"] == "big"] == [
        {"pool": "big", "unit": "gpu", "guaranteed": 2}
    ]


@pytest.mark.parametrize("kind", ["Project", "Department"])
def test_projects_that_do_not_show_what_they_have_are_named(kind: str, tmp_path: Path) -> None:
    bodies = [of_runai(kind, name, "run.ai/v2", deservedGpus=2) for name in ("chat", "vision")]
    made = imported(tmp_path, *KAI_NODES, a_namespace(), *bodies, a_kai_queue("chat", 2, 2))

    assert errors(made) == []
    assert f"{kind}s `chat` and `vision` of Run:ai do not show what teams have" in messages(made)
    assert "no tenant is made of Queues `chat`: Run:ai makes them of its projects" in messages(made)


# --- Names of flavors --------------------------------------------------------------------------------------------


def test_a_pool_is_called_as_the_flavor_of_its_nodes(tmp_path: Path) -> None:
    queue = a_queue("shared", fast=GPUS)
    flavor = a_flavor("fast", zone="a")
    made = imported(tmp_path, GPU_NODE, CPU_NODE, a_namespace(), flavor, queue, a_local_queue("jobs", "shared"))

    assert [draft.name for draft in made.drafts if draft.kind == "Pool"] == ["fast"]
    assert built(tmp_path, "ResourceFlavor").keys() == {"fast"}


def test_no_pool_writes_into_a_flavor_of_others(tmp_path: Path) -> None:
    queue = a_queue("shared", l40s=GPUS)
    made = imported(tmp_path, GPU_NODE, CPU_NODE, a_namespace(), a_flavor("l40s"), queue, a_local_queue("j", "shared"))

    assert [draft.name for draft in made.drafts if draft.kind == "Pool"] == ["l40s"]
    assert built(tmp_path, "ResourceFlavor").keys() == {"l40s-2"}
