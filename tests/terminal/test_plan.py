"""The resolved plan: the contract for programs, and the tables for people."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from gpuplan.cli.views.showing import shown_plans, shown_summary
from gpuplan.terminal.plan import plan_page
from gpuplan.terminal.plan_json import plan_as_data, plans_as_data
from gpuplan.terminal.schemas import schema
from gpuplan.terminal.text import PLAIN, Theme
from tests.plans import a_cluster, a_plan
from tests.platforms import document, pool, tenant

RESEARCH = """
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: research}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 4}
  sharing: {timeSlicing: {replicas: 3}}
  workloadTypes: [research, training]
"""
INFERENCE = """
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: inference}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 4, names: [gpu-1]}
  sharing:
    mig:
      devices:
      - {gpus: [0, 1, 2], instances: {3g.40gb: 1, 2g.20gb: 2}}
      - {gpus: [3], enabled: false}
  taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
  fallback: research
"""
LAYOUT = """
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: small}
spec: {gpu: A100-80GB, instances: {1g.10gb: 7}}
"""
OTHERS = """
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: whole}
spec: {gpu: A100-80GB, nodes: {count: 1, gpusPerNode: 8}, sharing: {exclusive: {}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: mps}
spec: {gpu: A100-80GB, nodes: {count: 1, gpusPerNode: 8}, sharing: {mps: {replicas: 4}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: fractions}
spec: {gpu: A100-80GB, nodes: {count: 1, gpusPerNode: 8}, sharing: {fraction: {}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: sliced-partitions}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 1, namePattern: "small-.*"}
  sharing: {mig: {layout: small, timeSlicing: {replicas: 2}}}
"""
TENANTS = """
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: research}
spec: {value: 100, preempts: false, default: true}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: production}
spec: {value: 1000, preemptible: false}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: research}
spec:
  namespaces: [vision, speech, text, planning]
  members: [researchers]
  priorityClasses: [research]
  quotas:
  - {pool: research, guaranteed: 10, limit: none, lendable: 4}
  - {pool: inference, unit: 2g.20gb, guaranteed: 2, limit: 3}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: vision}
spec: {parent: research, namespaces: [vision-lab]}
"""
WORKLOADS = """
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {name: chat}
spec:
  tenant: research
  namespace: text
  inference: {autoscaling: {minReplicas: 2, maxReplicas: 4, requestsPerSecond: 20}}
  pool: research
  image: registry.example.com/chat:1
  cpu: "4"
  model: {size: 100Gi, download: {image: "registry.example.com/fetch:1"}}
---
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {name: notebooks}
spec:
  tenant: research
  namespace: planning
  training: {pods: 3}
  pool: fractions
  fraction: {min: 0.25, max: 0.75}
  priorityClass: production
  image: registry.example.com/notebook:1
---
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {name: pretraining}
spec:
  tenant: research
  namespace: vision
  training: {pods: 2, gang: 2}
  pool: inference
  unit: 2g.20gb
  count: 2
  image: registry.example.com/train:1
"""
FLEET = "---".join((RESEARCH, INFERENCE, LAYOUT, OTHERS, TENANTS, WORKLOADS))


def strictly(body: Any) -> Any:
    """A schema that knows no other keys than those it names, so that no key is left out of the contract."""
    if isinstance(body, dict):
        closed = {"additionalProperties": False} if "properties" in body and body.get("type") else {}
        return {**closed, **{key: strictly(value) for key, value in body.items()}}
    return [strictly(item) for item in body] if isinstance(body, list) else body


def test_the_contract_is_what_its_schema_says() -> None:
    jsonschema.Draft7Validator.check_schema(schema("plan"))

    jsonschema.validate(plans_as_data([a_plan(FLEET)]), strictly(schema("plan")))


def test_what_is_said_by_profile_and_by_memory_is_in_the_contract() -> None:
    by_profile = FLEET.replace("timeSlicing: {replicas: 2}", "timeSlicing: {replicas: {1g.10gb: 2}}")
    plan = a_plan(by_profile.replace("{min: 0.25, max: 0.75}", "{memory: 10Gi}"))
    page, told = plan_page(plan, PLAIN), plan_as_data(plan)

    assert "2 shares of each 1g.10gb" in page
    assert "0.13 (10240 MiB)" in page
    assert [work["gpu_memory_mib"] for work in told["workloads"]] == [None, 10240, None]
    jsonschema.validate(plans_as_data([plan]), strictly(schema("plan")))


def test_drivers_of_pools_are_listed_where_one_has_its_own() -> None:
    own = RESEARCH.replace("  gpu:", "  driver: {version: 570.195.03, kernelModules: open}\n  gpu:", 1)
    page = plan_page(a_plan(own), PLAIN)
    rows = [line.split() for line in page.partition("\nDrivers\n")[2].partition("\n\n")[0].splitlines()]

    assert rows == [
        ["POOL", "DRIVER", "KERNEL", "MODULES"],
        ["research", "570.195.03", "open"],
        ["all", "others", "595.91.07", "auto"],
    ]
    assert "\nDrivers\n" not in plan_page(a_plan(FLEET), PLAIN)


def test_json_and_yaml_say_the_same() -> None:
    plans = [a_plan(FLEET)]

    assert yaml.safe_load(shown_plans(plans, "yaml", PLAIN)) == json.loads(shown_plans(plans, "json", PLAIN))


def test_a_summary_counts_guarantees_in_physical_gpus() -> None:
    plan = a_plan(
        """
        apiVersion: gpuplan.dev/v1
        kind: Pool
        metadata: {name: whole}
        spec: {gpu: A100-80GB, nodes: {count: 1, gpusPerNode: 6}, sharing: {exclusive: {}}}
        ---
        apiVersion: gpuplan.dev/v1
        kind: Pool
        metadata: {name: parts}
        spec:
          gpu: A100-80GB
          nodes: {count: 1, gpusPerNode: 2}
          sharing: {mig: {devices: [{gpus: [0], instances: {3g.40gb: 1, 2g.20gb: 2}}, {gpus: [1], enabled: false}]}}
        ---
        apiVersion: gpuplan.dev/v1
        kind: Tenant
        metadata: {name: research}
        spec:
          namespaces: [research]
          quotas:
          - {pool: parts, unit: 3g.40gb, guaranteed: 1}
          - {pool: parts, unit: 2g.20gb, guaranteed: 2}
          - {pool: whole, guaranteed: 1}
        """
    )
    row = shown_summary([plan], "table", PLAIN).splitlines()[1]
    assert "25%" in row  # one divided GPU and one whole, of eight


def test_units_say_what_is_promised_and_what_is_free() -> None:
    pool = next(pool for pool in plan_as_data(a_plan(FLEET))["pools"] if pool["name"] == "research")

    (unit,) = pool["units"]
    assert (unit["name"], unit["resource"]) == ("shared", "nvidia.com/gpu.shared")
    assert (unit["per_gpu"], unit["per_node"], unit["capacity"]) == ([3, 3, 3, 3], 12, 24)
    assert (unit["guaranteed"], unit["limit"], unit["free"]) == (10, None, 14)
    assert unit["gpu_weight"] == "1/3"


def test_a_unit_that_nobody_has_a_quota_on_is_free() -> None:
    pool = next(pool for pool in plan_as_data(a_plan(FLEET))["pools"] if pool["name"] == "whole")

    assert (pool["units"][0]["guaranteed"], pool["units"][0]["limit"], pool["units"][0]["free"]) == (0, 0, 8)


def test_instances_are_where_the_driver_puts_them() -> None:
    layout = next(layout for layout in plan_as_data(a_plan(FLEET))["layouts"] if layout["name"] == "inference")

    assert layout["inline"] is True
    assert [(entry["gpus"], entry["mig_enabled"]) for entry in layout["entries"]] == [([0, 1, 2], True), ([3], False)]
    assert layout["entries"][0]["placements"] == [
        {"profile": "2g.20gb", "start": 0, "size": 2},
        {"profile": "2g.20gb", "start": 2, "size": 2},
        {"profile": "3g.40gb", "start": 4, "size": 4},
    ]
    assert layout["entries"][1]["placements"] is None


def test_a_layout_that_does_not_fit_has_no_placements_and_says_so() -> None:
    plan = a_plan(LAYOUT.replace("1g.10gb: 7", "3g.40gb: 2, 1g.10gb: 1"))

    assert plan_as_data(plan)["layouts"][0]["entries"][0]["placements"] is None
    assert "all GPUs  {3g.40gb: 2, 1g.10gb: 1} cannot be placed" in plan_page(plan, PLAIN)


@pytest.mark.parametrize(
    ("pool", "sharing"),
    [
        ("whole", {"kind": "exclusive"}),
        ("fractions", {"kind": "fraction"}),
        ("mps", {"kind": "mps", "replicas": 4, "rename": True}),
        ("research", {"kind": "timeSlicing", "replicas": 3, "rename": True, "fail_requests_greater_than_one": True}),
    ],
)
def test_sharing_is_named_as_in_the_policy(pool: str, sharing: dict[str, object]) -> None:
    pools = {item["name"]: item["sharing"] for item in plan_as_data(a_plan(FLEET))["pools"]}

    assert pools[pool] == sharing


def test_an_unbounded_limit_is_null_for_programs_and_none_for_people() -> None:
    plan = a_plan(FLEET)
    tenant = next(tenant for tenant in plan_as_data(plan)["tenants"] if tenant["name"] == "research")

    assert tenant["quotas"][0]["limit"] is None
    row = next(line for line in plan_page(plan, PLAIN).splitlines() if "and 2 more" in line)
    assert row.split()[6:] == ["research", "shared", "10", "none", "24", "research"]


@pytest.mark.parametrize(
    ("scheduler", "is_lent"), [("kubernetes", False), ("kueue", True), ("kai", True), ("runai", True)]
)
def test_what_is_lent_is_shown_where_the_scheduler_lends(scheduler: str, *, is_lent: bool) -> None:
    page = plan_page(
        a_plan(a_cluster(f"kind: {scheduler}") + pool("a", "exclusive: {}") + tenant("lab", "pool: a, guaranteed: 4")),
        PLAIN,
    )

    assert ("LENDABLE = lent while it is idle" in page, "  ALL  LENDABLE\n" in page) == (is_lent, is_lent)


@pytest.mark.parametrize(
    ("sharing", "memory", "is_told"),
    [
        ("timeSlicing: {replicas: 3}", "~27306 MiB", True),
        ("mig: {instances: {1g.10gb: 7}, timeSlicing: {replicas: 2}}", "~4864 MiB", True),
        ("mps: {replicas: 4}", "20480 MiB", False),
        ("mig: {instances: {1g.10gb: 7}}", "9728 MiB", False),
        ("exclusive: {}", "81920 MiB", False),
    ],
)
def test_memory_that_nothing_enforces_is_marked(sharing: str, memory: str, *, is_told: bool) -> None:
    page = plan_page(a_plan(pool("a", sharing)), PLAIN)

    assert f" {memory}\n" in page
    assert ("~ = an even part of a GPU, which nothing enforces" in page) is is_told


def test_gpus_that_differ_are_counted_in_runs() -> None:
    row = next(line for line in plan_page(a_plan(FLEET), PLAIN).splitlines() if "nvidia.com/mig-2g.20gb" in line)

    assert "  3x2 1x0  " in row


def test_workloads_say_how_many_pods_there_are_and_what_all_of_them_ask_for() -> None:
    page = plan_page(a_plan(FLEET), PLAIN)
    rows = page[page.index("WORKLOAD  ") :].splitlines()[1:]

    assert [row.split() for row in rows] == [
        ["chat", "research", "text", "2", "to", "4", "research", "shared", "1", "4", "research"],
        ["notebooks", "research", "planning", "3", "fractions", "fraction", "0.25", "to", "0.75", "0.75", "production"],
        ["pretraining", "research", "vision", "2,", "2", "together", "inference", "2g.20gb", "2", "4", "research"],
    ]


def test_trials_are_counted_by_what_runs_at_once() -> None:
    work = document(
        "Workload", "search", "tenant: lab", "pool: a", "image: example.com/a:1", "training: {trials: 40, pods: 4}"
    )
    plan = a_plan(pool("a", "exclusive: {}") + tenant("lab", "pool: a, guaranteed: 4") + work)
    row = next(line for line in plan_page(plan, PLAIN).splitlines() if line.strip().startswith("search "))

    assert row.split() == ["search", "lab", "lab", "4", "of", "40", "a", "gpu", "1", "4"]


FALLING_BACK = (
    pool("first", "exclusive: {}", "fallback: second")
    + pool("second", "exclusive: {}", "fallback: third")
    + pool("third")
    + tenant("lab", "pool: first, guaranteed: 4", "pool: third, guaranteed: 2")
    + document("Workload", "chat", "tenant: lab", "pool: first", "image: example.com/chat:1", "inference: {}")
)


@pytest.mark.parametrize(
    ("scheduler", "cells", "pools"),
    [
        ("kubernetes", "1     first, then third  gpu", ["first", "third"]),
        ("kueue", "1     first, then third  gpu", ["first", "third"]),
        ("kai", "1     first  gpu", ["first"]),
    ],
)
def test_a_workload_has_all_pools_that_it_reaches(scheduler: str, cells: str, pools: list[str]) -> None:
    """Its tenant has nothing in the second, and KAI-Scheduler's shards do not know each other."""
    plan = a_plan(a_cluster(f"kind: {scheduler}") + FALLING_BACK)
    page = plan_page(plan, PLAIN)

    assert cells in page[page.index("WORKLOAD  ") :]
    assert [found["pools"] for found in plan_as_data(plan)["workloads"]] == [pools]


def test_workloads_are_told_to_programs() -> None:
    chat, notebooks, pretraining = plan_as_data(a_plan(FLEET))["workloads"]

    assert (
        chat
        | {
            "name": "chat",
            "tenant": "research",
            "namespace": "text",
            "kind": "inference",
            "replicas": 1,
            "port": 8000,
            "autoscaling": {
                "min_replicas": 2,
                "max_replicas": 4,
                "requests_per_second": 20,
                "waiting_requests": None,
                "cpu_percent": None,
                "gpu_percent": None,
                "query": None,
                "metric": "http_requests_per_second",
                "kind": "HorizontalPodAutoscaler",
                "cooldown": None,
            },
            "most_pods": 4,
            "pool": "research",
            "unit": "shared",
            "units_per_pod": 1,
            "units_per_pod_at_most": 1,
            "priority_class": "research",
            "image": "registry.example.com/chat:1",
            "cpu": "4",
            "memory": None,
            "model": {
                "size": "100Gi",
                "storage_class": None,
                "mount_path": "/models",
                "access_mode": "ReadWriteMany",
                "download_image": "registry.example.com/fetch:1",
            },
        }
        == chat
    )
    assert (notebooks["units_per_pod"], notebooks["units_per_pod_at_most"]) == (0.25, 0.75)
    assert (pretraining["kind"], pretraining["gang"], pretraining["units_per_pod"]) == ("training", 2, 2)


def test_a_plan_without_pools_has_no_empty_tables() -> None:
    assert plan_page(a_plan(""), PLAIN).splitlines()[1:] == []


def test_a_layout_that_says_nothing_is_named_and_drawn_as_nothing() -> None:
    page = plan_page(a_plan(LAYOUT.replace("instances: {1g.10gb: 7}", "devices: []")), PLAIN)

    assert page.splitlines()[-1].startswith("  small on A100-80GB, used by no pool")


def test_what_the_policy_says_never_reaches_the_terminal_as_control() -> None:
    plan = a_plan(LAYOUT.replace("name: small", 'name: "a\\e[2J"').replace("1g.10gb", '"b\\e[2J"'))

    assert "\x1b" not in plan_page(plan, PLAIN)
    assert "a␛[2J on A100-80GB" in plan_page(plan, PLAIN)


def test_whole_page(snapshot: SnapshotAssertion) -> None:
    assert plan_page(a_plan(FLEET), PLAIN) == snapshot


def test_headings_are_strong_where_colours_are_wanted() -> None:
    assert plan_page(a_plan(""), Theme(color=True)).startswith("\x1b[1mCluster test\x1b[0m  Kubernetes 1.34")


RETAINED = """\
apiVersion: gpuplan.dev/v1
kind: Retained
metadata: {name: entry}
spec:
  migLayout: {configName: halves-d9c2814c, gpu: A100-80GB, instances: {3g.40gb: 2}}
  until: no node names it
---
apiVersion: gpuplan.dev/v1
kind: Retained
metadata: {name: flavor}
spec:
  object:
    manifest: {apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: b}}
  until: no queue names it
---
apiVersion: gpuplan.dev/v1
kind: Retained
metadata: {name: key}
spec:
  devicePluginConfig: {key: b, config: {version: v1}}
  until: no node names it
---
apiVersion: gpuplan.dev/v1
kind: Retained
metadata: {name: nameless}
spec:
  object: {manifest: {kind: ResourceFlavor, metadata: []}}
  until: nobody knows
"""


def test_what_is_retained_is_told_to_programs() -> None:
    data = plans_as_data([a_plan("---\n".join((FLEET, RETAINED)))])

    jsonschema.validate(data, schema("plan"))
    assert [
        (item["name"], item["kind"], item["defines"], item["until"]) for item in data["clusters"][0]["retained"]
    ] == [
        ("entry", "migLayout", "halves-d9c2814c", "no node names it"),
        ("flavor", "object", "ResourceFlavor b", "no queue names it"),
        ("key", "devicePluginConfig", "b", "no node names it"),
        ("nameless", "object", "ResourceFlavor", "nobody knows"),
    ]


def test_a_workspace_is_told_with_its_times_and_what_stays_of_it() -> None:
    asked = "idle: 2h, runTime: 12h, storage: {size: 50Gi, group: 100}"
    image = "image: 'quay.io/jupyter/base-notebook:1'"
    work = document("Workload", "notes", f"tenant: lab, pool: whole, {image}, workspace: {{{asked}}}")
    plan = a_plan(f"{pool('whole')}{tenant('lab', 'pool: whole, guaranteed: 8')}{work}")
    told = plans_as_data([plan])
    jsonschema.validate(told, strictly(schema("plan")))
    [found] = told["clusters"][0]["workloads"]

    assert (found["kind"], found["port"], found["idle"], found["run_time"]) == ("workspace", 8888, "2h", "12h")
    assert found["storage"] == {
        "size": "50Gi",
        "storage_class": None,
        "mount_path": "/work",
        "access_mode": "ReadWriteOnce",
        "group": 100,
    }
    assert found["most_pods"] == 1
    assert "  1, a workspace  " in plan_page(plan, PLAIN)


def test_a_service_says_how_many_pods_of_it_go_together() -> None:
    asked = "replicas: 2, podsPerReplica: 3, worker: {args: [--join]}, topology: {required: example.com/rack}"
    large = document("Workload", "large", f"tenant: lab, pool: whole, image: 'example.com/a:1', inference: {{{asked}}}")
    plan = a_plan(f"{pool('whole')}{tenant('lab', 'pool: whole, guaranteed: 8')}{large}")
    told = plans_as_data([plan])
    jsonschema.validate(told, strictly(schema("plan")))
    [found] = told["clusters"][0]["workloads"]

    assert (found["replicas"], found["pods_per_replica"], found["most_pods"]) == (2, 3, 6)
    assert found["worker"] == {"command": [], "args": ["--join"]}
    assert "  6, 3 together  " in plan_page(plan, PLAIN)


def test_a_service_says_its_route_its_canary_and_what_its_autoscaler_asks() -> None:
    scaled = "autoscaling: {minReplicas: 0, maxReplicas: 2, query: {promql: up, perPod: 2}}"
    canary = "canary: {weight: 10, image: 'example.com/a:2', env: {A: b}}"
    asked = f"route: {{hosts: [a.example.com]}}, {canary}, {scaled}"
    loud = document("Workload", "loud", f"tenant: lab, pool: whole, image: 'example.com/a:1', inference: {{{asked}}}")
    plan = a_plan(f"{pool('whole')}{tenant('lab', 'pool: whole, guaranteed: 8')}{loud}")
    told = plans_as_data([plan])
    jsonschema.validate(told, strictly(schema("plan")))
    [found] = told["clusters"][0]["workloads"]

    assert found["route"]["hosts"] == ["a.example.com"]
    assert found["canary"] == {"weight": 10, "replicas": 1, "image": "example.com/a:2"}
    assert found["autoscaling"]["kind"] == "ScaledObject"
    assert found["autoscaling"]["query"] == {"promql": "up", "per_pod": 2, "idle": 0}
    assert found["most_pods"] == 3
    assert "  1 to 3, 1 as canary  " in plan_page(plan, PLAIN)


def test_a_service_says_how_it_is_asked_and_reached() -> None:
    quiet = document("Workload", "quiet", "tenant: lab, pool: whole, image: 'example.com/a:1', inference: {port: none}")
    reached = "service: {type: NodePort, nodePort: 30080}"
    asked = f"probe: {{http: /health}}, {reached}, autoscaling: {{maxReplicas: 2, gpuPercent: 80}}"
    loud = document("Workload", "loud", f"tenant: lab, pool: whole, image: 'example.com/a:1', inference: {{{asked}}}")
    plan = a_plan(f"{pool('whole')}{tenant('lab', 'pool: whole, guaranteed: 8')}{quiet}{loud}")
    told = plans_as_data([plan])
    jsonschema.validate(told, strictly(schema("plan")))
    found = {item["name"]: item for item in told["clusters"][0]["workloads"]}

    assert (found["quiet"]["port"], found["quiet"]["probe"]) == (None, "none")
    assert found["loud"]["probe"] == {"http": "/health", "grpc": None, "command": None, "port": None, "timeout": None}
    assert found["loud"]["service"] == {"type": "NodePort", "port": None, "node_port": 30080}
    assert found["loud"]["autoscaling"]["metric"] == "DCGM_FI_PROF_GR_ENGINE_ACTIVE"


def test_what_looks_like_a_credential_is_not_published() -> None:
    token = "ghp_" + "b" * 36
    work = document(
        "Workload",
        "chat",
        "tenant: lab",
        "pool: a",
        'image: "x:1"',
        f"podPatch: {{metadata: {{annotations: {{t: {token}}}}}, "
        f"spec: {{containers: [{{name: s, args: [-t={token}]}}]}}}}",
        f"inference: {{probe: {{command: [ask, {token}]}}, "
        f"autoscaling: {{maxReplicas: 2, query: {{promql: 'x{{t=\"{token}\"}}', perPod: 1}}}}}}",
    )
    plan = a_plan("---\n".join((pool("a"), tenant("lab", "pool: a, guaranteed: 8"), work)))

    told = json.dumps(plans_as_data([plan]))

    assert token not in told
    assert told.count("*" * 40) == 4
