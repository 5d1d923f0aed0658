"""With `nodeLabels: external`, a table says what node groups must set."""

from __future__ import annotations

from gpuplan.compiler.backends import partitions
from tests.compiler.backends.partitions.rendered import objects, table
from tests.plans import a_plan

PLAN = a_plan("""
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: test}
spec:
  kubernetes: "1.34"
  nodeLabels: external
  gpuOperator: {install: helm, version: v26.7.0}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: whole}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8}
  sharing: {exclusive: {}}
  taints: [{key: nvidia.com/gpu, value: whole, effect: NoSchedule}]
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: shared}
spec:
  gpu: L4-24GB
  nodes: {count: 1, gpusPerNode: 1, namePattern: 'l4-[0-9]+'}
  sharing: {timeSlicing: {replicas: 2}}
  nodeLabels: {rack: r1}
""")


def test_the_table() -> None:
    assert table(PLAN) == {
        "formatVersion": 1,
        "nodeGroups": [
            {
                "pool": "shared",
                "gpu": "L4-24GB",
                "nodes": 1,
                "gpusPerNode": 1,
                "namePattern": "l4-[0-9]+",
                "labels": {"gpuplan.dev/pool": "shared", "nvidia.com/device-plugin.config": "shared", "rack": "r1"},
                "taints": [],
            },
            {
                "pool": "whole",
                "gpu": "A100-80GB",
                "nodes": 2,
                "gpusPerNode": 8,
                "labels": {
                    "gpuplan.dev/pool": "whole",
                    "nvidia.com/device-plugin.config": "whole",
                    "nvidia.com/mig.config": "all-disabled",
                },
                "taints": [{"key": "nvidia.com/gpu", "value": "whole", "effect": "NoSchedule"}],
            },
        ],
    }


def test_nothing_is_applied() -> None:
    assert objects(PLAN) == []
    assert len(list(partitions.render(PLAN))) == 1
