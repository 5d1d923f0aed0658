"""Checks on the driver that MIG layouts need (GPU222-223)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuplan.catalog.operators import DriverEffect, driver_defects
from gpuplan.checks.layouts import LayoutUse, layout_uses, mig_pools
from gpuplan.checks.registry import check
from gpuplan.diagnostics import Finding, Label, Origin
from gpuplan.planning.plan import Layout, Plan, Pool


@check("GPU222", "driver-too-old-for-mig")
def driver_too_old_for_mig(plan: Plan) -> Iterator[Finding]:
    """The cluster's driver is older than what a layout needs.

    ## Why
    Drivers learn models and profiles one by one: an H100 is divided from R525 on, `4g` and `3g` stand together on an
    A100 from R510 on. An older one does not list the profile, and mig-parted fails on every node of the pool.

    ## Instead
    Raise `gpuOperator.driver.version`, or use a layout without what the finding names.
    """
    driver = _version(plan.cluster.gpu_operator.spec.driver.version or "")
    needed: dict[str, tuple[str, LayoutUse]] = {}
    for use in layout_uses(plan) if driver else ():
        for what, least in _requirements(use.layout) if use.pools else ():
            if driver < _version(least):
                needed.setdefault(f"{use.layout.gpu.id} {what}", (least, use))
    for what, (least, use) in needed.items():
        yield Finding(
            _driver_at(plan),
            f"driver {plan.cluster.gpu_operator.spec.driver.version} is too old for {what}",
            label=f"needs {least}",
            related=use.use_labels or (Label(use.layout.at.key, f"{use.name} needs it"),),
            help=f"write a driver version from {least} on",
        )


def _requirements(layout: Layout) -> Iterator[tuple[str, str]]:
    """What the layout needs of a driver: the key of the catalog's table, and the version."""
    used = [{name for name, count in entry.instances.items() if count > 0} for entry in layout.entries]
    for what, least in layout.gpu.min_drivers.items():
        if what == "MIG" or any(one.issuperset(what.split(" + ")) for one in used):
            yield what, least


@check("GPU223", "driver-breaks-mig")
def driver_breaks_mig(plan: Plan) -> Iterator[Finding]:
    """The cluster's driver is known not to work with MIG, or not with how a pool uses it.

    ## Why
    Driver 575.57.08 does not support MIG. With 570.124.06, 570.133.20, 570.148.08 and 570.158.01, pods stay Pending on
    a node that has both partitioned and whole GPUs.

    ## Instead
    Use another driver: 570.172.08 and 580.65.06 have the fix. Or divide all GPUs of a node, or none.
    """
    driver = plan.cluster.gpu_operator.spec.driver.version
    defects = [defect for defect in driver_defects() if defect.has(driver)] if driver else []
    for pool, mig in mig_pools(plan) if defects else ():
        for defect in defects:
            if fault := _fault(defect.effect, pool):
                yield Finding(
                    _driver_at(plan),
                    f"driver {driver} {fault}",
                    label="known not to work",
                    related=(Label(mig.layout_at, f"pool `{pool.name}` needs it"),),
                    notes=(defect.source,),
                    help="write a later version, such as `580.95.05`",
                )
                return


def _fault(effect: DriverEffect, pool: Pool) -> str:
    """What the driver does to the pool; its modes (CDMM) are another check's business (GPU614)."""
    if effect is DriverEffect.NO_MIG:
        return "does not support MIG"
    if effect is DriverEffect.NO_MIG_BESIDE_WHOLE_GPUS and pool.find_unit("gpu"):
        return "does not work with MIG beside whole GPUs"
    return ""


def _version(text: str) -> tuple[int, ...]:
    """A driver's version as numbers; the branch `R525` is its first release."""
    return tuple(int(part) for part in re.findall(r"[0-9]{1,9}", text))


def _driver_at(plan: Plan) -> Origin:
    return plan.cluster.gpu_operator.at / "driver" / "version"
