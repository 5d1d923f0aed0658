"""The drivers of nodes: NVIDIADrivers for pools that have their own, and values for the chart of the driver for DRA."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from gpuplan.compiler.backends.gpu_operator.settings import missing_tolerations
from gpuplan.compiler.base.plain import value_of
from gpuplan.compiler.catalog.operators import OPERAND_TOLERATIONS
from gpuplan.compiler.manifests import HEADER, File, to_yaml
from gpuplan.compiler.manifests.bodies import given, new_object
from gpuplan.compiler.manifests.provenance import Routes, below, chosen, copied
from gpuplan.compiler.manifests.templates import read_rows
from gpuplan.compiler.planning.dra import DRA_PLUGIN_LABEL, dynamic_pools
from gpuplan.compiler.planning.gpu_operator import DriverGroup, kernel_modules_at
from gpuplan.compiler.planning.plan import POOL_LABEL, Plan, Pool, Stage
from gpuplan.compiler.planning.sources import named, taints_of
from gpuplan.compiler.planning.subjects import about

_ROWS: Final = Path(__file__).with_name("nvidia-driver.yaml")

_UPGRADES: Final = {"autoUpgrade": True, "maxParallelUpgrades": 1, "maxUnavailable": "25%"}
"""The same values as in the chart."""

_USUAL: Final[Mapping[str, Any]] = {
    "repository": "nvcr.io/nvidia",
    "image": "driver",
    "usePrecompiled": False,
    "tolerations": list(OPERAND_TOLERATIONS),
}
"""The values that hold unless the cluster's settings say otherwise, as in the chart. The operator names no image by
itself: each part is needed (`GetImagePath` in `api/nvidia/v1alpha1/nvidiadriver_types.go` there)."""


def nvidia_driver(group: DriverGroup, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the NVIDIADriver for the nodes with the pool's label, or for those of no other.

    All of the ``settings`` hold for it. Fields with a default of the CRD are written, so that the file shows what
    holds, whichever release's CRD is there.
    """
    spec: dict[str, Any] = {**_USUAL, "default": group.pool is None, "upgradePolicy": dict(_UPGRADES)}
    for field, places in _fields():
        stated = (value for place in places if (value := value_of(settings, place)) not in (None, "", [], {}))
        value = next(stated, None)
        if value is not None and (field[0] not in _SIDECARS or value_of(value, ("enabled",)) is True):
            inner = spec
            for key in field[:-1]:
                inner[key] = dict(inner.get(key, {}))
                inner = inner[key]
            inner[field[-1]] = value
    spec |= {"driverType": "gpu", "version": group.version, "kernelModuleType": group.kernel_modules}
    if group.pool is not None:
        spec["nodeSelector"] = {POOL_LABEL: group.pool.name}
    return new_object("nvidia.com/v1alpha1", "NVIDIADriver", group.name, spec=dict(sorted(spec.items())))


Route = tuple[str, ...]


@cache
def _fields() -> tuple[tuple[Route, tuple[Route, ...]], ...]:
    rows: Mapping[str, list[str]] = read_rows(_ROWS)
    return tuple((tuple(field.split(".")), tuple(tuple(place.split(".")) for place in rows[field])) for field in rows)


_SIDECARS: Final = ("gds", "gdrcopy")
"""The parts with images of their own, which stand for nothing unless they are on."""


# --- The driver for DRA ------------------------------------------------------------------------------------------

_DRA_VALUES_FILE: Final = "dra-driver-values.yaml"

_ABOUT_DRA: Final = "# Values for the chart dra-driver-nvidia-gpu, beside your own.\n"

_CHARTS_OWN: Final = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
"""The toleration that the chart's plugin has by itself (`kubeletPlugin.tolerations`); a list replaces it."""


def dra_values_file(plan: Plan) -> Iterator[File]:
    """Yield values for the chart of NVIDIA's driver for DRA, if it makes partitions on demand in a pool.

    Whoever installs the chart gives it this file beside their own values: its gate holds for all nodes of the cluster,
    and its plugin has to run on those of the pools, whose taints it has to tolerate. No device plugin publishes GPUs
    beside it (`gpuResourcesEnabledOverride`): gpuplan switches that off.
    """
    pools = dynamic_pools(plan)
    if not pools:
        return
    missing = missing_tolerations(plan, [_CHARTS_OWN])
    plugin = given(nodeSelector={DRA_PLUGIN_LABEL: "true"}, tolerations=[_CHARTS_OWN, *missing] if missing else None)
    values = {"featureGates": {"DynamicMIG": True}, "gpuResourcesEnabledOverride": True, "kubeletPlugin": plugin}
    path, text = f"{Stage.GPU_OPERATOR.value}/{_DRA_VALUES_FILE}", HEADER + _ABOUT_DRA + to_yaml(values)
    yield File(path, text.encode(), about=about(*plan.pools), trace=partial(_trace_dra, plan, pools))


# --- Where it comes from -----------------------------------------------------------------------------------------


def trace(plan: Plan, group: DriverGroup, places_of: Callable[[], Routes]) -> Routes:
    """Yield the routes of a driver; ``places_of`` returns those of what the operator is told for all nodes."""
    operator, pool = plan.cluster.gpu_operator, group.pool
    deciding = (
        *(operator.at / field for field in ("install", "version")),
        *(each.at / "driver" for each in plan.pools),
    )
    yield (), chosen(operator.at / "driver" / "enabled", *deciding)
    yield ("metadata", "name"), named(pool) if pool else ()
    yield ("spec", "nodeSelector"), named(pool) if pool else ()
    known = list(places_of())
    for field, places in _fields():
        within = (
            (route[len(place) :], links) for place in places for route, links in known if route[: len(place)] == place
        )
        yield from below(("spec", *field), within)
    stated = [operator.at / "driver" / "version", *([pool.at / "driver" / "version"] if pool else [])]
    yield ("spec", "version"), (*copied(*stated), *chosen(operator.at / "version"))
    is_of_pool = pool and pool.spec.driver and pool.spec.driver.kernel_modules
    at = pool.at / "driver" / "kernelModules" if pool and is_of_pool else kernel_modules_at(operator)
    yield ("spec", "kernelModuleType"), copied(at)


def _trace_dra(plan: Plan, pools: Sequence[Pool]) -> Routes:
    yield (), chosen(*(pool.sharing.at for pool in pools))
    yield ("kubeletPlugin", "tolerations"), taints_of(plan)
