"""What tenants are made of quotas, members and labels, written by hand or by gpuplan."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

from gpuplan.compiler.pipeline import build
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.live import priorities, teams
from gpuplan.features.live.drafts import Draft, Found
from gpuplan.features.live.dump import read_dump
from tests.features.live.round_trip import is_dumped
from tests.laws.orders.platforms import CLUSTER, random_platform
from tests.platforms import a_platform, pool, priority_class

Spec = dict[str, Any]

# --- Written by hand ---------------------------------------------------------------------------------------------


def imported(plan: Plan, text: str) -> Found:
    """What a dump makes; that it lacks Namespaces, as most of these do, is not looked at."""
    found = all_imported(plan, text)
    told = [item for item in found.diagnostics if "no level of Pod Security" not in item.finding.message]
    drafts = [replace(draft, spec=_without_external(draft.spec)) for draft in found.drafts]
    return Found(tuple(drafts), tuple(told))


def _without_external(spec: Mapping[str, Any]) -> Spec:
    return {field: value for field, value in spec.items() if value != {"podSecurity": "external"}}


def all_imported(plan: Plan, text: str) -> Found:
    dump, unread = read_dump({"dump.yaml": dedent(text).encode()})
    assert unread == ()
    return teams.read(dump, plan)


def specs(found: Found) -> dict[str, Any]:
    return {draft.name: draft.spec for draft in found.drafts}


def messages(found: Found) -> list[tuple[str, str]]:
    return [(item.code, item.finding.message) for item in found.diagnostics]


A_QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpus, namespace: vision}
spec:
  hard: {requests.nvidia.com/gpu: "4"}
"""


WARNED = {"admission": {"enforcement": "warn"}}
"""The cluster of the tests refuses, and no rule has judged a team that is no tenant yet."""


def test_a_namespace_with_a_quota_on_gpus_is_a_tenant_of_its_name() -> None:
    found = imported(a_platform(pool("a")), A_QUOTA)
    assert specs(found) == {
        "vision": {"namespaces": ["vision"], "quotas": [{"pool": "a", "unit": "gpu", "guaranteed": 4}], **WARNED}
    }
    assert found.drafts[0].sources == ("ResourceQuota `gpus` in namespace `vision` (dump.yaml)",)
    assert found.diagnostics == ()


def test_a_quota_that_bans_gpus_makes_no_tenant() -> None:
    assert imported(a_platform(pool("a")), A_QUOTA.replace('"4"', '"0"')).drafts == ()


def test_each_profile_is_counted_in_the_pool_that_hands_it_out() -> None:
    plan = a_platform(pool("a", "mig: {instances: {3g.40gb: 1, 2g.20gb: 2}}"), pool("b"))
    text = A_QUOTA.replace("requests.nvidia.com/gpu", "requests.nvidia.com/mig-2g.20gb")
    assert specs(imported(plan, text))["vision"]["quotas"] == [
        {"pool": "a", "unit": "2g.20gb", "guaranteed": 4},
        {"pool": "a", "unit": "3g.40gb", "guaranteed": 0, "limit": "none"},
        {"pool": "b", "unit": "gpu", "guaranteed": 0, "limit": "none"},
    ]


def test_what_several_pools_hand_out_is_divided_so_that_the_sum_stays() -> None:
    plan = a_platform(pool("a", nodes="count: 1, gpusPerNode: 8"), pool("b", nodes="count: 3, gpusPerNode: 8"))
    found = imported(plan, A_QUOTA)
    assert specs(found)["vision"]["quotas"] == [
        {"pool": "a", "unit": "gpu", "guaranteed": 1},
        {"pool": "b", "unit": "gpu", "guaranteed": 3},
    ]
    (item,) = found.diagnostics
    assert item.code == "GPU811"
    assert item.finding.message == (
        "`nvidia.com/gpu` is handed out by 2 pools, and a quota of `vision` does not say which is meant"
    )
    assert item.finding.at.locate().span.start.line == 5
    assert found.drafts[0].remarks[0] == "of 4 `nvidia.com/gpu`: 1 in `a` and 3 in `b`"


def test_quotas_beyond_what_there_is_stay_as_caps() -> None:
    plan = a_platform(pool("a", nodes="count: 1, gpusPerNode: 8"))
    found = imported(plan, f"{A_QUOTA.replace('4', '6')}---\n{A_QUOTA.replace('vision', 'speech').replace('4', '10')}")
    assert {name: spec["quotas"][0] for name, spec in specs(found).items()} == {
        "speech": {"pool": "a", "unit": "gpu", "guaranteed": 5, "limit": 10},
        "vision": {"pool": "a", "unit": "gpu", "guaranteed": 3, "limit": 6},
    }
    assert messages(found) == [("GPU811", "quotas on `gpu` of pool `a` add up to 16 of 8")]
    assert ["has 8 `gpu` for caps of 16" in draft.remarks[0] for draft in found.drafts] == [True, True]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("limits.nvidia.com/gpu", "`limits.nvidia.com/gpu` in ResourceQuota `gpus` caps nothing"),
        ("nvidia.com/gpu", "`nvidia.com/gpu` in ResourceQuota `gpus` caps nothing"),
        ("requests.nvidia.com/gpus", "`requests.nvidia.com/gpus` in ResourceQuota `gpus` in namespace `vision`"),
        ("requests.nvidia.com/mig-1g.5gb", "`requests.nvidia.com/mig-1g.5gb` in ResourceQuota `gpus` in namespace"),
    ],
)
def test_a_key_that_caps_nothing_is_named_and_makes_no_tenant(key: str, message: str) -> None:
    found = imported(a_platform(pool("a")), A_QUOTA.replace("requests.nvidia.com/gpu", key))
    assert found.drafts == ()
    assert [item.code for item in found.diagnostics] == ["GPU812"]
    assert found.diagnostics[0].finding.message.startswith(message)
    assert found.diagnostics[0].finding.at.locate().span.start.line == 5


def test_other_keys_of_a_quota_stay_where_they_are() -> None:
    text = A_QUOTA.replace('"4"', '"4", requests.storage: 1Ti, services: "3"')
    (item,) = imported(a_platform(pool("a")), text).diagnostics
    assert (item.code, item.severity) == ("GPU811", "note")
    assert item.finding.message == (
        "quotas of `vision` also cap `requests.storage` and `services`, which no policy says"
    )


def test_a_quota_of_some_pods_alone_is_named() -> None:
    scoped = f"{A_QUOTA}  scopes: [BestEffort]\n"
    found = imported(a_platform(pool("a")), scoped)
    assert found.drafts == ()
    assert messages(found) == [
        ("GPU811", "ResourceQuota `gpus` in namespace `vision` counts some pods alone, and no quota of a tenant can")
    ]


def test_a_quota_of_one_class_is_a_limit_of_it() -> None:
    plan = a_platform(pool("a"), priority_class("urgent", 100), priority_class("late", 10))
    scoped = f"""\
{A_QUOTA}---
{A_QUOTA.replace("gpus", "urgent").replace('"4"', '"1"')}  scopeSelector:
    matchExpressions: [{{scopeName: PriorityClass, operator: In, values: [urgent]}}]
"""
    assert specs(imported(plan, scoped)) == {
        "vision": {
            "namespaces": ["vision"],
            "priorityClasses": ["urgent", "late"],
            "quotas": [{"pool": "a", "unit": "gpu", "guaranteed": 4, "classLimits": {"urgent": 1}}],
            **WARNED,
        }
    }


def test_cpu_memory_and_pods_are_those_of_the_pools() -> None:
    text = A_QUOTA.replace('"4"', '"4", cpu: 64, requests.memory: 512Gi, pods: "20"')
    assert specs(imported(a_platform(pool("a")), text))["vision"]["quotas"] == [
        {"pool": "a", "unit": "gpu", "guaranteed": 4, "cpu": "64", "memory": "512Gi", "pods": 20}
    ]


def test_a_namespace_without_a_queue_is_left_alone_where_all_goes_through_queues() -> None:
    found = imported(a_platform(pool("a"), scheduler="kueue"), A_QUOTA)
    assert found.drafts == ()
    assert messages(found) == [("GPU811", "namespace `vision` has a quota on GPUs and is made no tenant")]


# --- People and pods ---------------------------------------------------------------------------------------------


def a_binding(name: str, role: str, *subjects: str, kind: str = "ClusterRole", namespace: str = "vision") -> str:
    return f"""\
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: {name}, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: {role}}}
subjects: [{", ".join(subjects)}]
"""


def test_members_are_groups_users_and_service_accounts_with_a_cluster_role() -> None:
    bindings = (
        a_binding("devs", "edit", "{kind: Group, name: ml}"),
        a_binding("leads", "admin", "{kind: User, name: ann}"),
        a_binding("bots", "gpu-runner", "{kind: ServiceAccount, name: ci}"),
        a_binding("pullers", "system:image-puller", "{kind: Group, name: all}"),
    )
    found = imported(a_platform(pool("a")), A_QUOTA + "".join(bindings))
    assert specs(found)["vision"]["members"] == [
        "ml",
        {"user": "ann", "role": "admin"},
        {"user": "system:serviceaccount:vision:ci", "clusterRole": "gpu-runner"},
    ]
    assert found.diagnostics == ()


def test_a_role_of_the_namespace_stays_there() -> None:
    found = imported(a_platform(pool("a")), A_QUOTA + a_binding("x", "runner", "{kind: Group, name: g}", kind="Role"))
    assert "members" not in specs(found)["vision"]
    assert messages(found) == [("GPU811", "RoleBinding `vision/x` gives a Role of its namespace")]


def a_namespace(*labels: str) -> str:
    return f"---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: vision, labels: {{{', '.join(labels)}}}}}\n"


def test_the_level_of_pod_security_stays() -> None:
    found = imported(a_platform(pool("a")), A_QUOTA + a_namespace("pod-security.kubernetes.io/enforce: restricted"))
    assert specs(found)["vision"]["allow"] == {"podSecurity": "restricted"}
    assert found.diagnostics == ()


def test_the_release_whose_checks_a_namespace_enforces_is_told() -> None:
    level, version = "pod-security.kubernetes.io/enforce: restricted", "pod-security.kubernetes.io/enforce-version"
    for release, told in (("v1.24", ["v1.24"]), ("latest", [])):
        found = all_imported(a_platform(pool("a")), A_QUOTA + a_namespace(level, f"{version}: {release}"))
        wanted = "Namespace `vision` enforces Pod Security as of `{}`, which no policy says"
        assert messages(found) == [("GPU811", wanted.format(name)) for name in told]


def test_defaults_of_containers_are_those_of_a_limit_range() -> None:
    limits = """\
---
apiVersion: v1
kind: LimitRange
metadata: {name: defaults, namespace: vision}
spec:
  limits:
    - type: Container
      default: {cpu: "2", memory: 4Gi}
      defaultRequest: {cpu: "1", memory: 4Gi}
      maxLimitRequestRatio: {cpu: "4"}
      max: {cpu: "8"}
"""
    found = imported(a_platform(pool("a")), A_QUOTA + limits)
    assert specs(found)["vision"]["containers"] == {
        "cpu": {"request": "1", "limit": "2", "maxRatio": 4},
        "memory": {"limit": "4Gi"},
    }
    assert messages(found) == [("GPU811", "LimitRanges of `vision` have `max` of `cpu`, which no policy says")]


# --- Priority classes --------------------------------------------------------------------------------------------


def classes_of(text: str) -> Found:
    return priorities.read(read_dump({"dump.yaml": dedent(text).encode()})[0])


A_CLASS = """\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
globalDefault: true
preemptionPolicy: Never
description: Do not wait.
"""


def test_a_priority_class_is_one() -> None:
    assert specs(classes_of(A_CLASS)) == {
        "urgent": {"value": 1000, "preempts": False, "default": True, "description": "Do not wait."}
    }


def test_a_class_of_kubernetes_is_its_own() -> None:
    assert classes_of(A_CLASS.replace("urgent", "system-node-critical")).drafts == ()


def test_a_class_of_a_chart_is_its_own_where_the_chart_is() -> None:
    text = A_CLASS.replace("urgent", "train").replace("1000", "50")
    shard = "---\napiVersion: kai.scheduler/v1\nkind: SchedulingShard\nmetadata: {name: default}\n"
    assert [*specs(classes_of(text))] == ["train"]
    assert [*specs(classes_of(text + shard))] == []


def test_where_values_say_who_may_be_evicted_work_says_otherwise() -> None:
    shard = "---\napiVersion: kai.scheduler/v1\nkind: SchedulingShard\nmetadata: {name: default}\n"
    pod = """\
---
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: b, labels: {kai.scheduler/preemptibility: preemptible}}
spec: {priorityClassName: urgent}
"""
    assert specs(classes_of(A_CLASS + shard))["urgent"]["preemptible"] is False
    assert "preemptible" not in specs(classes_of(A_CLASS + shard + pod))["urgent"]


A_CLUSTER_QUEUE = """\
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: all}
spec: {preemption: {withinClusterQueue: LowerPriority}}
"""


def test_with_kueue_a_class_does_not_say_whether_it_preempts_and_queues_do() -> None:
    late = "---\n" + A_CLASS.replace("urgent", "late").replace("1000", "10")
    evicting = specs(classes_of(A_CLASS + late + A_CLUSTER_QUEUE))
    assert [spec.get("preempts", True) for spec in evicting.values()] == [True, True]
    waiting = specs(classes_of(A_CLASS + late + A_CLUSTER_QUEUE.replace("LowerPriority", "Never")))
    assert {name: spec.get("preempts", True) for name, spec in waiting.items()} == {"late": True, "urgent": False}


def test_a_class_that_preempts_by_itself_is_named_where_queues_do() -> None:
    found = classes_of(A_CLASS.replace("preemptionPolicy: Never\n", "") + A_CLUSTER_QUEUE)
    assert messages(found) == [
        ("GPU811", "PriorityClass `urgent` has kube-scheduler evict pods, which gpuplan leaves to Kueue")
    ]


# --- Written by gpuplan ------------------------------------------------------------------------------------------


def built_again(documents: list[Spec], tmp_path: Path) -> tuple[dict[str, bytes], dict[str, bytes], tuple[Draft, ...]]:
    """What is written about teams for a platform, and for one whose tenants are made of what is written."""
    before = build(_written(tmp_path / "before", documents))
    (plan,) = before.report.plans
    dump, _ = read_dump({path: data for path, data in before.tree.items() if is_dumped(path)})
    drafts = (*priorities.read(dump).drafts, *teams.read(dump, plan).drafts)
    kept = [document for document in documents if document["kind"] not in ("Tenant", "PriorityClass")]
    again = build(_written(tmp_path / "again", kept + [_document(draft) for draft in drafts]))
    assert [item.finding.message for item in again.report.diagnostics if item.is_error] == []
    return _about_teams(before.tree), _about_teams(again.tree), drafts


def _written(root: Path, documents: list[Spec]) -> Path:
    (root / "overlays" / CLUSTER).mkdir(parents=True)
    (root / "policies").mkdir()
    for document in documents:
        kind, name = document["kind"], document["metadata"]["name"]
        path = f"overlays/{CLUSTER}/cluster.yaml" if kind == "Cluster" else f"policies/{kind}-{name}.yaml"
        (root / path).write_text(yaml.safe_dump(document, sort_keys=False))
    return root


def _document(draft: Draft) -> Spec:
    metadata = {"name": draft.name}
    return {"apiVersion": "gpuplan.dev/v1", "kind": draft.kind, "metadata": metadata, "spec": dict(draft.spec)}


def _about_teams(tree: Any) -> dict[str, bytes]:
    about = ("/namespaces/", "/runai/", "priorityclass", "grants.")
    return {path: data for path, data in tree.items() if any(part in path for part in about)}


@pytest.mark.parametrize("seed", range(5))
def test_random_teams_are_written_again_byte_by_byte(seed: int, tmp_path: Path) -> None:
    platform = random_platform(random.Random(seed), scheduler="kubernetes")
    cluster = {
        "apiVersion": "gpuplan.dev/v1",
        "kind": "Cluster",
        "metadata": {"name": CLUSTER},
        "spec": platform.cluster,
    }
    documents = [cluster] + [
        {"apiVersion": "gpuplan.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        for (kind, name), spec in platform.documents.items()
    ]
    before, again, _ = built_again(documents, tmp_path)
    assert before
    assert again == before


@pytest.mark.parametrize("name", ["runai", "dra"])
def test_platforms_with_all_that_a_tenant_may_say_are_written_again(name: str, tmp_path: Path) -> None:
    """Fractions, a department, CPU and memory, times, members; claims."""
    text = (Path(__file__).parents[2] / f"laws/tracing/platforms/{name}.yaml").read_text()
    before, again, _ = built_again([*yaml.safe_load_all(text)], tmp_path)
    assert before
    assert again == before


RICH = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: test}
spec: {kubernetes: "1.34", gpuOperator: {install: helm, version: v26.7.0}, nodeLabels: external}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: a}
spec: {gpu: A100-80GB, nodes: {count: 4, gpusPerNode: 8, cpu: 128, memory: 1000Gi}, sharing: {exclusive: {}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: b}
spec: {gpu: A100-80GB, nodes: {count: 2, gpusPerNode: 8, cpu: 128, memory: 1000Gi}, sharing: {exclusive: {}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: c}
spec: {gpu: A100-80GB, nodes: {count: 2, gpusPerNode: 8}, sharing: {mig: {instances: {1g.10gb: 7}}}}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: urgent}
spec: {value: 100, preempts: false}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: late}
spec: {value: 10, default: true}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: divided}
spec:
  namespaces: [y, x]
  priorityClasses: [urgent, late]
  quotas:
    - {pool: a, guaranteed: 7, limit: 9, split: {x: 5, y: 4}, classLimits: {urgent: 3}}
    - {pool: c, guaranteed: 20, split: {x: 20, y: 0}, classLimits: {late: 7}}
  members: [ml, {user: ann, role: admin}, {group: ops, clusterRole: gpu-runner}]
  allow: {podSecurity: restricted, unitsPerContainer: 2, gracePeriod: 90s}
  admission: {namespaces: {x: warn}}
  containers: {cpu: {limit: "2", request: 500m, maxRatio: 4}, memory: {limit: 4Gi}}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: both}
spec:
  namespaces: [both]
  labelledNamespaces: true
  priorityClasses: [late]
  quotas:
    - {pool: a, guaranteed: 3, limit: 5, classLimits: {late: 2}, memory: 100Gi, pods: 7}
    - {pool: b, guaranteed: 3, memory: 300Gi, pods: 30}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: free}
spec:
  namespaces: [free]
  quotas:
    - {pool: a, guaranteed: 3, limit: none}
    - {pool: c, guaranteed: 1, limit: none, classLimits: {urgent: 2}}
  priorityClasses: [urgent]
  admission: {enforcement: warn}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: labelled}
spec:
  labelledNamespaces: true
  admission: {enforcement: warn}
  quotas:
    - {pool: b, guaranteed: 3}
"""


def test_splits_classes_and_labelled_namespaces_are_written_again(tmp_path: Path) -> None:
    before, again, drafts = built_again([*yaml.safe_load_all(RICH)], tmp_path)
    assert again == before
    assert next(draft for draft in drafts if draft.name == "divided").spec == {
        "namespaces": ["x", "y"],
        "priorityClasses": ["urgent", "late"],
        "quotas": [
            {"pool": "a", "unit": "gpu", "guaranteed": 9, "split": {"x": 5, "y": 4}, "classLimits": {"urgent": 3}},
            {"pool": "c", "unit": "1g.10gb", "guaranteed": 20, "split": {"x": 20, "y": 0}, "classLimits": {"late": 7}},
        ],
        "members": ["ml", {"group": "ops", "clusterRole": "gpu-runner"}, {"user": "ann", "role": "admin"}],
        "allow": {"podSecurity": "restricted", "unitsPerContainer": 2, "gracePeriod": "90s"},
        "admission": {"namespaces": {"x": "warn"}},
        "containers": {"cpu": {"request": "500m", "limit": "2", "maxRatio": 4}, "memory": {"limit": "4Gi"}},
    }


# --- Run:ai ------------------------------------------------------------------------------------------------------


PROJECT: Spec = {
    "name": "vision",
    "requestedNamespace": "runai-vision",
    "defaultNodePools": ["b", "a"],
    "schedulingRules": {"interactiveJobTimeLimitSeconds": 5400},
    "resources": [
        {"nodePool": {"name": "a"}, "gpu": {"deserved": 2, "limit": 4, "overQuotaWeight": 3}, "rank": "High"},
        {"nodePool": {"name": "b"}, "gpu": {"deserved": 1.5, "limit": None, "overQuotaWeight": 3}, "rank": "High"},
    ],
}


def of_runai(*bodies: Spec) -> Found:
    plan = a_platform(pool("a"), pool("b", "fraction: {}"), scheduler="runai")
    dump, _ = read_dump({f"{index}.json": json.dumps(body).encode() for index, body in enumerate(bodies)})
    return teams.read(dump, plan)


def test_a_project_is_a_namespace_of_a_tenant() -> None:
    found = of_runai(PROJECT)
    assert specs(found) == {
        "vision": {
            "namespaces": ["runai-vision"],
            "quotas": [
                {"pool": "b", "unit": "fraction", "guaranteed": 1.5, "limit": "none"},
                {"pool": "a", "unit": "gpu", "guaranteed": 2, "limit": 4},
            ],
            "surplus": {"weight": 3, "rank": 3},
            "timeLimits": {"workspaces": {"run": "90m"}},
            **WARNED,
        }
    }
    assert found.drafts[0].sources == ("project `vision` (0.json)",)


def test_a_department_is_a_tenant_that_others_are_part_of() -> None:
    department = {
        "name": "science",
        "id": "d1",
        "resources": [{"nodePool": {"name": "a"}, "gpu": {"deserved": 6, "limit": 8, "overQuotaWeight": 1}}],
    }
    found = specs(of_runai({"departments": [department]}, {"projects": [{**PROJECT, "parentId": "d1"}]}))
    assert found["vision"]["parent"] == "science"
    assert found["science"] == {"quotas": [{"pool": "a", "unit": "gpu", "guaranteed": 6, "limit": 8}]}


def test_gpus_of_a_node_pool_that_is_no_pool_are_named() -> None:
    lost = {"nodePool": {"name": "default"}, "gpu": {"deserved": 2, "limit": 2, "overQuotaWeight": 1}}
    found = of_runai({**PROJECT, "resources": [lost], "nodeTypes": {"training": ["dgx"]}})
    assert messages(found) == [
        ("GPU811", "project `vision` of Run:ai has GPUs of `default`, which is no pool"),
        ("GPU811", "project `vision` of Run:ai says `nodeTypes`, which no policy does"),
    ]


# --- Any shape ---------------------------------------------------------------------------------------------------

ODD: tuple[Any, ...] = (None, True, -1, 2**70, "", "x", "-4", [], {}, [None], [[]], {"": ""}, {"a": None})


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_bodies_of_any_shape_are_read(odd: object) -> None:
    for field in ("spec", "metadata", "data", "roleRef", "subjects", "value", "resources", "schedulingRules"):
        bodies = [*yaml.safe_load_all(A_QUOTA + a_binding("x", "edit", "{kind: Group, name: g}") + "---\n" + A_CLASS)]
        of_kubernetes = {
            f"{index}.json": json.dumps({**body, field: odd}).encode() for index, body in enumerate(bodies)
        }
        dump, _ = read_dump(of_kubernetes)
        teams.read(dump, a_platform(pool("a")))
        priorities.read(dump)
        of_runai({**PROJECT, field: odd})
    for key in ("requests.nvidia.com/gpu", "requests.cpu", "pods"):
        body = {**yaml.safe_load(A_QUOTA), "spec": {"hard": {"requests.nvidia.com/gpu": "4", key: odd}}}
        dump, _ = read_dump({"quota.json": json.dumps(body).encode()})
        teams.read(dump, a_platform(pool("a")))
