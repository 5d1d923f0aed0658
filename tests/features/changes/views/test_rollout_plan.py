"""A pool in the middle of a rollout, as `gpuplan show` tells it."""

from __future__ import annotations

import jsonschema

from gpuplan.terminal.plan import plan_page, summary_row
from gpuplan.terminal.plan_json import plans_as_data
from gpuplan.terminal.schemas import schema
from gpuplan.terminal.text import PLAIN
from tests.plans import a_plan

PLAN = a_plan("""
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: p}
spec:
  gpu: A100-80GB
  nodes: {count: 4, gpusPerNode: 2, namePattern: 'n[0-9]+'}
  sharing: {timeSlicing: {replicas: 3}}
  rollout: {sharing: {mig: {layout: small}}, nodes: [n1]}
---
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: small}
spec: {gpu: A100-80GB, instances: {1g.10gb: 7}}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: t}
spec:
  namespaces: [t]
  quotas:
  - {pool: p, guaranteed: 9}
  - {pool: p, unit: 1g.10gb, guaranteed: 14}
""")


def test_the_table_tells_how_many_nodes_are_shared_in_which_way() -> None:
    page = plan_page(PLAN, PLAIN)
    assert "time-slicing, 3 shares on 3; MIG small (mixed) on 1" in page
    assert "small on A100-80GB, used by p;" in page


def test_guarantees_are_weighed_by_the_gpus_of_the_half_that_has_the_unit() -> None:
    """3 GPUs in shares and 2 in partitions are promised, of 8."""
    assert summary_row(PLAN)[5] == f"{round(100 * 5 / 8)}%"


def test_the_contract_has_the_moved_nodes() -> None:
    data = plans_as_data([PLAN])
    jsonschema.validate(data, schema("plan"))
    (pool,) = data["clusters"][0]["pools"]
    assert pool["sharing"]["kind"] == "timeSlicing"
    assert pool["rollout"]["nodes"] == ["n1"]
    assert pool["rollout"]["sharing"]["layout"] == "small"
    assert pool["rollout"]["labels"]["nvidia.com/device-plugin.config"] == "p.rollout"
    assert [(unit["name"], unit["capacity"]) for unit in pool["units"]] == [("shared", 18), ("1g.10gb", 14)]
