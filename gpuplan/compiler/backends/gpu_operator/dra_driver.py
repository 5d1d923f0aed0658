"""Values for the chart of NVIDIA's driver for DRA, where it makes partitions on demand.

Whoever installs the chart gives it this file beside their own values: its gate holds for all nodes of the cluster, and
its plugin has to run on those of the pools, whose taints it has to tolerate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from gpuplan.compiler.backends.gpu_operator.settings import missing_tolerations
from gpuplan.compiler.manifests import HEADER, File, to_yaml
from gpuplan.compiler.manifests.bodies import given
from gpuplan.compiler.manifests.provenance import Routes, chosen
from gpuplan.compiler.planning.dra import DRA_PLUGIN_LABEL, dynamic_pools
from gpuplan.compiler.planning.plan import Plan, Pool, Stage
from gpuplan.compiler.planning.sources import taints_of
from gpuplan.compiler.planning.subjects import about

VALUES_FILE: Final = "dra-driver-values.yaml"

_ABOUT: Final = "# Values for the chart dra-driver-nvidia-gpu, beside your own.\n"

_CHARTS_OWN: Final = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
"""What the chart's plugin tolerates by itself (`kubeletPlugin.tolerations` in its values); a list replaces it."""


def values_file(plan: Plan) -> Iterator[File]:
    """The file, where the plan has such pools."""
    if pools := dynamic_pools(plan):
        text = HEADER + _ABOUT + to_yaml(_values(plan))
        path, trace = f"{Stage.GPU_OPERATOR.value}/{VALUES_FILE}", partial(_trace, plan, pools)
        yield File(path, text.encode(), about=about(*plan.pools), trace=trace)


def _values(plan: Plan) -> dict[str, Any]:
    """No device plugin publishes GPUs beside it (`gpuResourcesEnabledOverride`): gpuplan switches that off."""
    missing = missing_tolerations(plan, [_CHARTS_OWN])
    plugin = given(nodeSelector={DRA_PLUGIN_LABEL: "true"}, tolerations=[_CHARTS_OWN, *missing] if missing else None)
    return {"featureGates": {"DynamicMIG": True}, "gpuResourcesEnabledOverride": True, "kubeletPlugin": plugin}


# --- Where it comes from -----------------------------------------------------------------------------------------


def _trace(plan: Plan, pools: Sequence[Pool]) -> Routes:
    yield (), chosen(*(pool.sharing.at for pool in pools))
    yield ("kubeletPlugin", "tolerations"), taints_of(plan)
