"""Who can evict whom, as people read it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.preemption import Condition, Mechanism, evictions
from gpuplan.terminal.data import evictions as evictions_words
from gpuplan.terminal.data.evictions import WHEN_EVICTED, WHY_EVICTED
from gpuplan.terminal.plan_json import plan_as_data
from gpuplan.terminal.preemption import preemption_page
from gpuplan.terminal.text import PLAIN
from tests.plans import a_cluster, a_plan

POLICY = """\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: h100}
spec: {gpu: H100-80GB, nodes: {count: 1, gpusPerNode: 8, names: [a]}, sharing: {exclusive: {}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: idle}
spec: {gpu: H100-80GB, nodes: {count: 1, gpusPerNode: 8, names: [b]}, sharing: {exclusive: {}}}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: urgent}
spec: {value: 125, preemptible: false}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: batch}
spec: {value: 50}
"""


def of(kind: str, *tenants: str) -> Plan:
    documents = [
        f"---\napiVersion: gpuplan.dev/v1\nkind: Tenant\nmetadata: {{name: {name}}}\nspec: {{namespaces: [{name}], "
        f"priorityClasses: [urgent, batch], protect: {{reclaim: 1h}}, quotas: [{{pool: h100, {quota}}}]}}\n"
        for name, quota in (tenant.split(": ", 1) for tenant in tenants)
    ]
    return a_plan(a_cluster(f"kind: {kind}") + POLICY + "".join(documents))


def test_a_line_for_each_way() -> None:
    plan = of("kai", "a: guaranteed: 4", "b: guaranteed: 4, limit: 8")

    heading, _, *rows, legend, none = preemption_page(plan, PLAIN).splitlines()
    assert heading == "Cluster test: who can evict whom with KAI-Scheduler"
    cells = [re.split(" {2,}", row.strip()) for row in rows]
    assert [row[1] for row in cells] == ["gpu", "gpu", *["cpu, memory"] * 4]
    assert [row[2:] for row in cells[:2]] == [row[2:] for row in cells[2:4]]
    assert [row[0] for row in cells] == [*["h100"] * 5, "idle"], "where no taint keeps tenants off"
    assert cells[4][1:] == cells[5][1:]
    assert cells[4][2:5] == ["a, b (urgent)", "a, b (batch)", "a higher class"]
    assert cells[4][5] == "the pool is full, kube-scheduler places the pod, which asks for no GPUs"
    assert [row[2:] for row in cells[:2]] == [
        ["a, b (urgent)", "a, b (batch)", "a higher class of the same tenant", "the pod does not fit", "-"],
        [
            "a (urgent batch)",
            "b (batch)",
            "another tenant's guarantee",
            "the victim's tenant is above its guarantee, the other within its own",
            "1h",
        ],
    ]
    assert none == "  nobody evicts anybody in idle (gpu)"
    assert legend == "  LACKING = the resource that the new pod waits for; RUNS AT LEAST = before it may be evicted"


def test_cpu_and_memory_have_lines_of_their_own_where_they_differ() -> None:
    plan = of("kueue", "a: guaranteed: 4, cpu: 60, memory: 100Gi", "b: guaranteed: 4, cpu: {guaranteed: 9, limit: 20}")

    _, _, *rows, _, none = preemption_page(plan, PLAIN).splitlines()
    assert [re.split(" {2,}", row.strip())[1:3] for row in rows] == [
        ["gpu", "a, b (urgent)"],
        ["cpu", "a, b (urgent)"],
        ["cpu", "a (urgent batch)"],
        ["memory", "a (urgent)"],
    ]
    assert none == "  nobody evicts anybody in idle (gpu, cpu, memory)"


def test_many_tenants_are_counted() -> None:
    plan = of("kubernetes", *(f"t{index}: guaranteed: 1" for index in range(6)))

    assert "t0, t1 and 4 more (urgent)" in preemption_page(plan, PLAIN)


def test_without_tenants_nobody_is_evicted() -> None:
    assert "nobody evicts anybody in h100 (gpu, cpu, memory), idle (gpu, cpu, memory)" in preemption_page(
        of("kueue"), PLAIN
    )


def test_programs_get_all_of_them() -> None:
    plan = of("kubernetes", *(f"t{index}: guaranteed: 1" for index in range(6)))

    found, *for_nodes = (item for item in plan_as_data(plan)["evictions"] if item["pool"] == "h100")
    assert found["victims"][5] == {"tenant": "t5", "priority_class": "batch"}
    assert (found["mechanism"], found["when"], found["min_run_time"]) == (
        "priority",
        ["node-full", "quota-has-room"],
        None,
    )
    assert (found["within_tenants"], found["across_tenants"]) == (True, True)
    assert [(item["unit"], item["when"]) for item in for_nodes] == [("cpu", ["pool-full"]), ("memory", ["pool-full"])]
    assert [item.unit for item in evictions(plan) if item.pool == "h100"] == ["gpu", "cpu", "memory"]


def test_the_published_schema_has_every_value() -> None:
    text = Path(evictions_words.__file__).with_name("plan.schema.json")
    published = json.loads(text.read_text())["definitions"]["eviction"]["properties"]
    assert published["when"]["items"]["enum"] == [*Condition]
    assert published["mechanism"]["enum"] == [*Mechanism]


@pytest.mark.parametrize("item", [*Mechanism, *Condition])
def test_everything_has_words(item: Mechanism | Condition) -> None:
    words = WHY_EVICTED if isinstance(item, Mechanism) else WHEN_EVICTED
    assert item in words


def test_where_a_label_says_it_pods_without_it_are_named() -> None:
    page = preemption_page(a_plan(a_cluster("kind: kai") + POLICY.replace("value: 50", "value: 120")), PLAIN)
    assert page.endswith(
        "  kai.scheduler/preemptibility says of the pods of Workloads whether they may be evicted; others of batch "
        "need it\n"
    )
    assert "preemptibility" not in preemption_page(of("kai"), PLAIN)
