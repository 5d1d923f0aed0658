"""Values for the chart of NVIDIA's driver for DRA."""

from __future__ import annotations

from typing import Any

import yaml

from gpuplan.compiler.backends import gpu_operator
from gpuplan.compiler.manifests import File
from tests.platforms import a_platform, pool

ON_DEMAND = "dynamicMig: {profiles: [1g.10gb]}"


def values(*documents: str) -> Any:
    plan = a_platform(*documents, kubernetes="1.36")
    files = [item for item in gpu_operator.render(plan) if isinstance(item, File)]
    found = [file for file in files if file.path == "gpu-operator/dra-driver-values.yaml"]
    return yaml.safe_load(found[0].data) if found else None


def test_the_gate_is_on_and_the_plugin_runs_on_the_pools_nodes() -> None:
    assert values(pool("parts", ON_DEMAND, "allocation: dra", gpu="H100-80GB")) == {
        "featureGates": {"DynamicMIG": True},
        "gpuResourcesEnabledOverride": True,
        "kubeletPlugin": {"nodeSelector": {"nvidia.com/dra-kubelet-plugin": "true"}},
    }


def test_taints_that_the_chart_does_not_tolerate_are_added_to_what_it_does() -> None:
    taints = "taints: [{key: example.com/gpu, effect: NoSchedule}, {key: nvidia.com/gpu, effect: NoSchedule}]"
    found = values(pool("parts", ON_DEMAND, "allocation: dra", taints, gpu="H100-80GB"))
    assert found["kubeletPlugin"]["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    ]


def test_partitions_by_layout_need_no_gate() -> None:
    assert values(pool("parts", "mig: {instances: {1g.10gb: 7}}", "allocation: dra")) is None
