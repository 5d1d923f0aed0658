"""NVIDIADrivers: which driver the nodes of a pool have, where it is another than that of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Path as LeafPath
from gpuplan.compiler.catalog.operators import OPERAND_TOLERATIONS
from gpuplan.compiler.manifests.bodies import new_object
from gpuplan.compiler.manifests.provenance import Links, Routes, below, chosen, copied
from gpuplan.compiler.manifests.templates import read_rows
from gpuplan.compiler.planning.gpu_operator import DriverGroup, kernel_modules_at
from gpuplan.compiler.planning.plan import POOL_LABEL, Plan
from gpuplan.compiler.planning.sources import named

_ROWS: Final = Path(__file__).with_name("nvidia-driver.yaml")

_UPGRADES: Final = {"autoUpgrade": True, "maxParallelUpgrades": 1, "maxUnavailable": "25%"}
"""Those of the chart."""

_USUAL: Final[Mapping[str, Any]] = {
    "repository": "nvcr.io/nvidia",
    "image": "driver",
    "usePrecompiled": False,
    "tolerations": list(OPERAND_TOLERATIONS),
}
"""What holds where nothing says otherwise, as in the chart. The operator names no image by itself: each part is needed
(`GetImagePath` in `api/nvidia/v1alpha1/nvidiadriver_types.go` there).
"""


def nvidia_driver(group: DriverGroup, told: Mapping[str, Any]) -> dict[str, Any]:
    """One that is for the nodes with the pool's label, or for those of no other; all that is ``told`` holds for it.

    Fields with a default of the CRD are written, so that the file shows what holds, whichever release's CRD is there.
    """
    spec: dict[str, Any] = {**_USUAL, "default": group.pool is None, "upgradePolicy": dict(_UPGRADES)}
    for field, value in _taken_over(told):
        _put(spec, field, value)
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
"""Parts with images of their own, which stand for nothing unless they are on."""


def _taken_over(told: Mapping[str, Any]) -> Iterator[tuple[Route, Any]]:
    for field, places in _fields():
        found = next((value for place in places if (value := _value(told, place)) not in (None, "", [], {})), None)
        if found is not None and (field[0] not in _SIDECARS or found.get("enabled") is True):
            yield field, found


def _value(told: object, route: Route) -> Any:  # noqa: ANN401 - whatever the policy's own values hold
    for key in route:
        told = told.get(key) if isinstance(told, Mapping) else None
    return told


def _put(spec: dict[str, Any], route: Route, value: object) -> None:
    for key in route[:-1]:
        spec[key] = dict(spec.get(key, {}))
        spec = spec[key]
    spec[route[-1]] = value


# --- Where it comes from -----------------------------------------------------------------------------------------


def trace(plan: Plan, group: DriverGroup, told: Routes) -> Routes:
    """``told`` are the routes of what the operator is told for all nodes."""
    operator, pool = plan.cluster.gpu_operator, group.pool
    yield (), _reasons(plan)
    yield ("metadata", "name"), named(pool) if pool else ()
    yield ("spec", "nodeSelector"), named(pool) if pool else ()
    known = list(told)
    for field, places in _fields():
        yield from below(("spec", *field), (found for place in places for found in _within(known, place)))
    stated = [operator.at / "driver" / "version", *([pool.at / "driver" / "version"] if pool else [])]
    yield ("spec", "version"), (*copied(*stated), *chosen(operator.at / "version"))
    own = (
        pool.at / "driver" / "kernelModules" if pool and pool.spec.driver and pool.spec.driver.kernel_modules else None
    )
    yield ("spec", "kernelModuleType"), copied(own or kernel_modules_at(operator))


def _reasons(plan: Plan) -> Links:
    """Of that there are any at all."""
    operator = plan.cluster.gpu_operator
    fields = ("install", "version")
    own = (pool.at / "driver" for pool in plan.pools)
    return chosen(operator.at / "driver" / "enabled", *(operator.at / field for field in fields), *own)


def _within(known: Sequence[tuple[LeafPath, Links]], place: Route) -> Routes:
    """What is said of a part of the settings, by routes in it."""
    return ((route[len(place) :], links) for route, links in known if route[: len(place)] == place)
