"""What a namespace may use stays what it is when its ResourceQuotas are read and gpuplan writes its own beside them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.manifests import parse_quantity
from gpuplan.compiler.pipeline import build, validate
from gpuplan.features.live.importing import Import, adopt, write_import

Body = dict[str, Any]
Hard = Mapping[str, str]

BASELINE = {"pod-security.kubernetes.io/enforce": "baseline"}
PRODUCTS = {"a100": "NVIDIA-A100-SXM4-40GB", "t4": "Tesla-T4", "l40s": "NVIDIA-L40S"}


def a_node(name: str, board: str = "a100", gpus: int = 8, *, taints: tuple[Body, ...] = (), **labels: str) -> Body:
    known = {"nvidia.com/gpu.product": PRODUCTS[board], "nvidia.com/gpu.count": str(gpus), "board": board, **labels}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": known},
        "spec": {"taints": [*taints]},
        "status": {"allocatable": {"nvidia.com/gpu": str(gpus)}, "nodeInfo": {"kubeletVersion": "v1.33.4"}},
    }


MIG_NODE: Body = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "m",
        "labels": {
            "nvidia.com/gpu.product": PRODUCTS["a100"],
            "nvidia.com/gpu.count": "8",
            "nvidia.com/mig.config": "all-1g.5gb",
            "nvidia.com/mig.config.state": "success",
        },
    },
    "status": {"allocatable": {"nvidia.com/mig-1g.5gb": "56"}, "nodeInfo": {"kubeletVersion": "v1.33.4"}},
}
LEFT_OUT = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "gke-mig-1",
        "labels": {
            "cloud.google.com/gke-nodepool": "mig",
            "cloud.google.com/gke-accelerator": "nvidia-a100-80gb",
            "cloud.google.com/gke-gpu-partition-size": "1g.10gb",
        },
    },
    "status": {"allocatable": {"nvidia.com/gpu": "7"}, "nodeInfo": {"kubeletVersion": "v1.33.4-gke.1"}},
}


def a_namespace(name: str = "one", **labels: str) -> Body:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {**BASELINE, **labels}}}


def a_quota(hard: Hard, namespace: str = "one", name: str = "q") -> Body:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"hard": {**hard}},
    }


def a_deployment(pods: Body, gpus: int = 1, replicas: int = 1, namespace: str = "one", name: str = "web") -> Body:
    container = {"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {**pods, "containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def imported(root: Path, *bodies: Body) -> Import:
    made = adopt({"dump.yaml": yaml.safe_dump_all([*bodies]).encode()}, root, "lab")
    write_import(made, root)
    return made


def told(made: Import, *severities: str) -> list[str]:
    found = [item for item in made.report.diagnostics if item.code in ("GPU811", "GPU812")]
    return [item.finding.message for item in found if not severities or item.severity in severities]


def errors(made: Import) -> list[str]:
    return [item.finding.message for item in made.report.diagnostics if item.is_error]


def written(root: Path, namespace: str = "one") -> dict[str, Decimal]:
    """The caps of the quota that gpuplan writes in a namespace."""
    path = next(
        path for path in build(root).tree if path.endswith(f"namespaces/{namespace}/resourcequota-gpuplan.yaml")
    )
    hard = yaml.safe_load(build(root).tree[path])["spec"].get("hard", {})
    return {key: amount(value) for key, value in hard.items()}


def amount(value: str) -> Decimal:
    found = parse_quantity(value)
    assert found is not None
    return found


def quotas(made: Import, tenant: str = "one") -> list[Body]:
    (spec,) = [draft.spec for draft in made.drafts if (draft.kind, draft.name) == ("Tenant", tenant)]
    return [*spec["quotas"]]


# --- CPU, memory and pods ----------------------------------------------------------------------------------------

TWO_POOLS = (a_node("a"), a_node("t", "t4", 4))
THREE_POOLS = (*TWO_POOLS, a_node("l", "l40s", 2))


@pytest.mark.parametrize("nodes", [TWO_POOLS[:1], TWO_POOLS, THREE_POOLS], ids=["one-pool", "two", "three"])
@pytest.mark.parametrize(
    "hard",
    [
        {"requests.cpu": "64", "requests.memory": "256Gi", "pods": "10"},
        {"requests.cpu": "1500m", "requests.memory": "1000001Ki"},
        {"cpu": "7", "memory": "3G", "count/pods": "7"},
        {"requests.cpu": "1", "pods": "1"},
    ],
    ids=["usual", "parts", "short-names", "less-than-pools"],
)
@pytest.mark.parametrize("gpus", ["1", "2", "30"])
def test_caps_of_cpu_memory_and_pods_are_written_as_they_are(
    nodes: tuple[Body, ...], hard: Hard, gpus: str, tmp_path: Path
) -> None:
    made = imported(tmp_path, *nodes, a_namespace(), a_quota({"requests.nvidia.com/gpu": gpus, **hard}))

    assert errors(made) == []
    caps = written(tmp_path)
    live = {
        {"cpu": "requests.cpu", "memory": "requests.memory", "count/pods": "pods"}.get(k, k): v for k, v in hard.items()
    }
    kept = {key: value for key, value in live.items() if key in caps}
    assert {key: caps[key] for key in kept} == {key: amount(value) for key, value in kept.items()}
    named = {"pods"} if any("also cap `pods`" in message for message in told(made)) else set()
    assert live.keys() - kept.keys() == named
    assert caps["requests.nvidia.com/gpu"] == int(gpus)


def test_the_tightest_of_several_quotas_is_written(tmp_path: Path) -> None:
    quotas = ({"requests.nvidia.com/gpu": "4", "requests.cpu": "64"}, {"requests.cpu": "32", "limits.cpu": "90"})
    made = imported(tmp_path, *TWO_POOLS, a_namespace(), *(a_quota(hard, name=str(i)) for i, hard in enumerate(quotas)))

    assert errors(made) == []
    assert written(tmp_path)["requests.cpu"] == 32


@pytest.mark.parametrize("key", ["limits.cpu", "limits.memory", "requests.storage", "count/jobs.batch"])
def test_a_key_that_no_policy_says_stays_in_its_quota_and_is_named_once(key: str, tmp_path: Path) -> None:
    hard = {"requests.nvidia.com/gpu": "2", key: "9"}
    spaces = ("one", "two", "three")
    made = imported(tmp_path, TWO_POOLS[0], *map(a_namespace, spaces), *(a_quota(hard, name) for name in spaces))

    assert key not in written(tmp_path)
    assert told(made) == [f"quotas of `one`, `three` and `two` also cap `{key}`, which no policy says"]


# --- What nothing caps -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hard", "resource"),
    [
        ({"requests.nvidia.com/gpu": "4"}, "nvidia.com/mig-1g.5gb"),
        ({"requests.nvidia.com/mig-1g.5gb": "7"}, "nvidia.com/gpu"),
        ({"requests.nvidia.com/gpu": "4", "requests.cpu": "9"}, "nvidia.com/mig-1g.5gb"),
    ],
)
def test_what_was_not_capped_may_be_used_without_a_bound(hard: Hard, resource: str, tmp_path: Path) -> None:
    made = imported(tmp_path, a_node("a"), MIG_NODE, a_namespace(), a_quota(hard))

    assert f"requests.{resource}" not in written(tmp_path)
    assert [quota["limit"] for quota in quotas(made) if not quota["guaranteed"]] == ["none"]
    assert told(made) == [f"no quota caps `{resource}` in `one`"]


def test_what_no_quota_of_a_namespace_caps_is_one_remark(tmp_path: Path) -> None:
    metadata = {
        **MIG_NODE["metadata"],
        "labels": {**MIG_NODE["metadata"]["labels"], "nvidia.com/mig.config": "all-balanced"},
    }
    published = {"nvidia.com/mig-1g.5gb": "16", "nvidia.com/mig-2g.10gb": "8", "nvidia.com/mig-3g.20gb": "8"}
    node = {**MIG_NODE, "metadata": metadata, "status": {**MIG_NODE["status"], "allocatable": published}}
    made = imported(tmp_path, a_node("a"), node, a_namespace(), a_quota({"requests.nvidia.com/gpu": "4"}))

    resources = "`nvidia.com/mig-1g.5gb`, `nvidia.com/mig-2g.10gb` and `nvidia.com/mig-3g.20gb`"
    assert told(made) == [f"no quota caps {resources} in `one`"]
    assert [quota["limit"] for quota in quotas(made) if not quota["guaranteed"]] == ["none"] * 3


def test_a_cap_of_zero_beside_a_cap_still_bans(tmp_path: Path) -> None:
    hard = {"requests.nvidia.com/gpu": "4", "requests.nvidia.com/mig-1g.5gb": "0"}
    made = imported(tmp_path, a_node("a"), MIG_NODE, a_namespace(), a_quota(hard))

    assert written(tmp_path)["requests.nvidia.com/mig-1g.5gb"] == 0
    assert told(made) == []


def test_namespaces_that_are_banned_today_stay_so_and_are_named_once(tmp_path: Path) -> None:
    banned = [a_quota({"requests.nvidia.com/gpu": "0"}, name) for name in ("two", "three")]
    made = imported(tmp_path, a_node("a"), a_namespace(), a_quota({"requests.nvidia.com/gpu": "4"}), *banned)

    assert [draft.name for draft in made.drafts if draft.kind == "Tenant"] == ["one"]
    assert told(made) == ["quotas let nobody use GPUs in `three` and `two`"]


# --- Where work has to run ---------------------------------------------------------------------------------------

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def affine(*terms: Body) -> Body:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [*terms]}}}}


@pytest.mark.parametrize(
    "pods",
    [
        {"nodeSelector": {"nvidia.com/gpu.product": "Tesla-T4"}},
        affine({"matchExpressions": [{"key": "board", "operator": "In", "values": ["t4"]}]}),
        affine({"matchExpressions": [{"key": "board", "operator": "NotIn", "values": ["a100", "l40s"]}]}),
        affine({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["t"]}]}),
        {"nodeName": "t"},
    ],
    ids=["selector", "affinity", "not-in", "field", "node"],
)
def test_a_cap_goes_to_the_pool_that_work_selects(pods: Body, tmp_path: Path) -> None:
    hard = {"requests.nvidia.com/gpu": "1", "requests.cpu": "64", "pods": "10"}
    made = imported(tmp_path, *THREE_POOLS, a_namespace(), a_quota(hard), a_deployment(pods))

    assert quotas(made) == [{"pool": "tesla-t4", "unit": "gpu", "guaranteed": 1, "cpu": "64", "pods": 10}]
    (draft,) = [draft for draft in made.drafts if draft.kind == "Tenant"]
    assert "1 in `tesla-t4` (its work selects it)" in draft.remarks[0]


def test_work_that_tolerates_no_taint_of_a_pool_runs_in_the_other(tmp_path: Path) -> None:
    taint = {"key": "team", "value": "x", "effect": "NoSchedule"}
    nodes = (a_node("a", taints=(taint,)), a_node("t", "t4", 4))
    made = imported(tmp_path, *nodes, a_namespace(), a_quota({"requests.nvidia.com/gpu": "1"}), a_deployment({}))

    assert [quota["pool"] for quota in quotas(made)] == ["tesla-t4"]


def test_the_rest_of_a_cap_goes_by_the_size_of_pools(tmp_path: Path) -> None:
    selects = a_deployment({"nodeSelector": {"board": "t4"}}, gpus=1, replicas=3)
    made = imported(tmp_path, *TWO_POOLS, a_namespace(), a_quota({"requests.nvidia.com/gpu": "6"}), selects)

    assert {quota["pool"]: quota["guaranteed"] for quota in quotas(made)} == {"a100-sxm4-40gb": 2, "tesla-t4": 4}


def test_work_in_more_pools_than_the_cap_has_units_keeps_each(tmp_path: Path) -> None:
    work = (a_deployment({"nodeSelector": {"board": name}}, name=name) for name in ("a100", "t4"))
    made = imported(tmp_path, *TWO_POOLS, a_namespace(), a_quota({"requests.nvidia.com/gpu": "1"}), *work)

    assert [quota["guaranteed"] for quota in quotas(made)] == [1, 1]
    assert "work of tenant `one` selects more pools than its cap of 1 `nvidia.com/gpu` can be divided among" in told(
        made
    )


def test_a_namespace_all_of_whose_work_is_on_nodes_of_no_pool_is_left_alone(tmp_path: Path) -> None:
    work = a_deployment({"nodeSelector": {"cloud.google.com/gke-gpu-partition-size": "1g.10gb"}})
    made = imported(tmp_path, a_node("a"), LEFT_OUT, a_namespace(), a_quota({"requests.nvidia.com/gpu": "7"}), work)

    assert [draft.name for draft in made.drafts if draft.kind == "Tenant"] == []
    assert told(made) == ["namespace `one` has a quota on GPUs and is made no tenant"]
    assert errors(made) == []


def test_work_on_nodes_of_no_pool_beside_work_in_a_pool_is_an_error(tmp_path: Path) -> None:
    work = a_deployment({"nodeSelector": {"cloud.google.com/gke-gpu-partition-size": "1g.10gb"}})
    beside = a_deployment({"nodeSelector": {"board": "a100"}}, name="beside")
    quota = a_quota({"requests.nvidia.com/gpu": "7"})
    made = imported(tmp_path, a_node("a"), LEFT_OUT, a_namespace(), quota, work, beside)

    assert errors(made) == [
        "Deployment `web` in namespace `one` runs on nodes that are in no pool, such as Node `gke-mig-1`"
    ]


# --- Any quotas, work and nodes -----------------------------------------------------------------------------------

AMOUNTS = {
    "requests.nvidia.com/gpu": st.sampled_from(["0", "1", "2", "3", "7", "30", "1500m"]),
    "requests.nvidia.com/mig-1g.5gb": st.sampled_from(["0", "1", "5", "99"]),
    "requests.cpu": st.sampled_from(["0", "1", "1500m", "64", "7"]),
    "limits.cpu": st.sampled_from(["1", "64"]),
    "requests.memory": st.sampled_from(["0", "512", "3Mi", "1Gi", "999M"]),
    "pods": st.sampled_from(["0", "1", "2", "10"]),
    "services": st.just("3"),
}
SELECTORS = st.sampled_from([{}, *({"nodeSelector": {"board": board}} for board in PRODUCTS)])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([*THREE_POOLS, MIG_NODE]), min_size=1, max_size=4, unique_by=id),
    st.lists(st.fixed_dictionaries({}, optional=AMOUNTS), min_size=1, max_size=2),
    st.lists(st.tuples(SELECTORS, st.integers(1, 3), st.integers(1, 3)), max_size=3),
)
def test_no_cap_is_lower_than_it_was_and_nothing_else_is_banned(
    nodes: list[Body], live: list[Hard], work: list[tuple[Body, int, int]]
) -> None:
    quota_objects = [a_quota(hard, name=str(number)) for number, hard in enumerate(live)]
    deployments = [a_deployment(*spec, name=f"w{number}") for number, spec in enumerate(work)]
    with TemporaryDirectory() as folder:
        made = imported(Path(folder), *nodes, a_namespace(), *quota_objects, *deployments)
        assert errors(made) == []
        if not any(draft.kind == "Tenant" for draft in made.drafts):
            return  # the namespace stays as it is
        caps = written(Path(folder))
    before: dict[str, Decimal] = {}
    for hard in live:
        before |= {key: min(before.get(key, amount(value)), amount(value)) for key, value in hard.items()}
    published = {f"requests.{key}" for node in nodes for key in node["status"]["allocatable"]}
    counted = {key for key in before if key in published or "nvidia" not in key}
    lower = {key for key, cap in caps.items() if key in counted and cap < int(before[key])}
    banned = {key for key, cap in caps.items() if key in published and key not in before}
    assert (lower, banned) == (set(), set())


# --- Claims ------------------------------------------------------------------------------------------------------


def test_a_cap_on_claims_stays_in_its_quota_and_is_named(tmp_path: Path) -> None:
    key = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices"
    made = imported(tmp_path, a_node("a"), a_namespace(), a_quota({"requests.nvidia.com/gpu": "4", key: "4"}))

    assert told(made) == [f"quotas of `one` also cap `{key}`, which no policy says"]


# --- Pod Security ------------------------------------------------------------------------------------------------

ENFORCE = "pod-security.kubernetes.io/enforce"


def levels(root: Path) -> dict[str, str | None]:
    """The levels that gpuplan writes, by namespace: an import warns first, and enforces nothing."""
    tree = build(root).tree
    found = [
        yaml.safe_load(data)["metadata"]
        for path, data in tree.items()
        if "/namespaces/" in path and "/namespace-" in path
    ]
    return {body["name"]: body["labels"].get("pod-security.kubernetes.io/warn") for body in found}


@pytest.mark.parametrize("label", [{}, {"team": "x"}, {ENFORCE: "unheard-of"}], ids=["none", "others", "unknown"])
def test_a_namespace_without_a_level_gets_none(label: dict[str, str], tmp_path: Path) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "one", "labels": label}}
    made = imported(tmp_path, a_node("a"), namespace, a_quota({"requests.nvidia.com/gpu": "4"}))

    assert levels(tmp_path) == {"one": None}
    assert told(made) == ["the dump shows no level of Pod Security of `one`"]


def test_a_namespace_that_is_not_in_the_dump_gets_none(tmp_path: Path) -> None:
    made = imported(tmp_path, a_node("a"), a_quota({"requests.nvidia.com/gpu": "4"}))

    assert levels(tmp_path) == {"one": None}
    assert told(made) == ["the dump shows no level of Pod Security of `one`"]


@pytest.mark.parametrize("level", ["privileged", "baseline", "restricted"])
def test_a_namespace_with_a_level_keeps_it(level: str, tmp_path: Path) -> None:
    labels = {"name": "one", "labels": {ENFORCE: level}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": labels}
    made = imported(tmp_path, a_node("a"), namespace, a_quota({"requests.nvidia.com/gpu": "4"}))

    assert levels(tmp_path) == {"one": level}
    assert told(made) == []


def test_many_namespaces_without_a_level_are_one_finding_and_one_later(tmp_path: Path) -> None:
    names = [f"n{index}" for index in range(20)]
    spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
    quotas = [a_quota({"requests.nvidia.com/gpu": "1"}, name) for name in names]
    made = imported(tmp_path, a_node("a"), a_node("b"), a_node("c"), *spaces, *quotas)

    assert told(made) == ["the dump shows no level of Pod Security of `n0`, `n1`, `n10`, `n11` and 16 more"]
    assert [item.code for item in validate(tmp_path).diagnostics].count("GPU520") == 1


# --- LimitRanges -------------------------------------------------------------------------------------------------


def a_limit_range(namespace: str = "one", kind: str = "Container", **limits: Any) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "limits", "namespace": namespace},
        "spec": {"limits": [{"type": kind, **limits}]},
    }


@pytest.mark.parametrize("field", ["default", "defaultRequest"])
def test_a_limit_range_that_gives_gpus_is_named_with_what_comes_of_it(field: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {field: {"nvidia.com/gpu": "1"}}
    limits = a_limit_range(**given)
    made = imported(tmp_path, a_node("a"), a_namespace(), a_quota({"requests.nvidia.com/gpu": "4"}), limits)

    assert "LimitRanges of `one` give each container `nvidia.com/gpu` that asks for none" in told(made, "warning")


def test_a_bound_of_a_limit_range_is_named_once_for_all(tmp_path: Path) -> None:
    spaces = ("one", "two")
    bounds = [a_limit_range(name, max={"cpu": "8"}) for name in spaces]
    quota_of = [a_quota({"requests.nvidia.com/gpu": "4"}, name) for name in spaces]
    made = imported(tmp_path, a_node("a"), *map(a_namespace, spaces), *quota_of, *bounds)

    assert told(made) == ["LimitRanges of `one` and `two` have `max` of `cpu`, which no policy says"]


# --- How it reads ------------------------------------------------------------------------------------------------


def test_comments_are_shorter_than_the_policy(tmp_path: Path) -> None:
    roles = [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": f"r{index}", "namespace": "one"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            "subjects": [{"kind": "Group", "name": "g"}],
        }
        for index in range(9)
    ]
    hard = {"requests.nvidia.com/gpu": "40", "services": "3", "limits.cpu": "9"}
    work = [a_deployment({"nodeSelector": {"board": name}}, name=name) for name in ("a100", "t4")]
    imported(tmp_path, *TWO_POOLS, a_namespace(), a_quota(hard), a_limit_range(max={"cpu": "8"}), *roles, *work)

    lines = (tmp_path / "overlays/lab/tenants/one.yaml").read_text().splitlines()
    comments = [line for line in lines if line.startswith("#")]
    assert 0 < len(comments) < len(lines) - len(comments)


def test_a_cap_beyond_what_there_is_is_explained_beside_it(tmp_path: Path) -> None:
    made = imported(tmp_path, a_node("t", "t4", 4), a_namespace(), a_quota({"requests.nvidia.com/gpu": "21"}))

    (draft,) = [draft for draft in made.drafts if draft.kind == "Tenant"]
    assert draft.remarks == (
        "pool `tesla-t4` has 4 `gpu` for caps of 21: `limit` is the cap of today, 21, and 4 of it are guaranteed",
    )


# --- Names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["argocd", "flux"])
def test_a_name_that_no_cluster_may_have_is_trouble_before_anything_is_written(name: str, tmp_path: Path) -> None:
    dump = {"dump.yaml": yaml.safe_dump(a_node("a")).encode()}
    with pytest.raises(GpuplanError, match=f"`{name}` cannot be a cluster's name"):
        adopt(dump, tmp_path, name)


def test_priority_classes_of_the_first_cluster_are_not_those_of_the_next(tmp_path: Path) -> None:
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 9}
    first = imported(tmp_path, a_node("a"), urgent)
    second = adopt({"dump.yaml": yaml.safe_dump(a_node("b")).encode()}, tmp_path, "other")

    assert "overlays/lab/priority-classes/urgent.yaml" in first.files
    assert "overlays/other/not-here.yaml" not in second.files
