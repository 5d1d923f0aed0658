"""Another release of gpuplan moves nobody's labels: the names below are those of the one before."""

from __future__ import annotations

from gpuplan.compiler.backends.gpu_operator import config_map_names, device_plugin, mig_parted
from gpuplan.compiler.planning.plan import Plan
from tests.plans import a_plan

POOLS = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: b}
spec:
  gpu: A100-80GB
  nodes: {count: 3, gpusPerNode: 8, names: [b1, b2, b3]}
  sharing: {SHARING}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: c}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8, names: [c1]}
  sharing: {mps: {replicas: 2}}
"""
RETAINED = """\
---
apiVersion: gpuplan.dev/v1
kind: Retained
metadata: {name: b-rollout}
spec:
  devicePluginConfig: {key: b.rollout, config: {version: v1, flags: {migStrategy: mixed}}}
  until: no node names it
"""
MIG = "mig: {instances: {1g.10gb: 7}}"


def labels(plan: Plan) -> list[tuple[str, str]]:
    keys = ("nvidia.com/device-plugin.config", "nvidia.com/mig.config")
    return [(part.labels[keys[0]], part.labels[keys[1]]) for part in plan.parts]


def test_a_rollout_under_way_goes_on_with_its_labels() -> None:
    rollout = f"exclusive: {{}}}}\n  rollout: {{nodes: [b1], sharing: {{{MIG}}}"
    plan = a_plan(POOLS.replace("SHARING", rollout))

    assert labels(plan) == [("b", "all-disabled"), ("b.rollout", "b-2d7d978e"), ("c", "all-disabled")]
    assert list(device_plugin.data(plan)) == ["b.rollout", "b", "c"]
    assert list(mig_parted.configuration(plan)["mig-configs"]) == ["all-disabled", "b-2d7d978e"]
    assert config_map_names(plan)[:2] == ("gpuplan-mig-parted-fa777ee7", "gpuplan-device-plugin-c98ec1c0")


def test_a_rollout_that_has_settled_keeps_what_it_retained() -> None:
    plan = a_plan(POOLS.replace("SHARING", MIG) + RETAINED)

    assert labels(plan) == [("b", "b-2d7d978e"), ("c", "all-disabled")]
    assert list(device_plugin.data(plan)) == ["b", "c", "b.rollout"]
    assert config_map_names(plan)[:2] == ("gpuplan-mig-parted-fa777ee7", "gpuplan-device-plugin-f9196b1c")
