"""Checks on releases of the GPU Operator and what they bring (GPU602, GPU605, GPU612-614)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.catalog import parse_profile
from gpuplan.catalog.operators import (
    DriverDefect,
    DriverEffect,
    default_driver,
    driver_defects,
    find_line,
    lines,
    nearest_line,
    parse_version,
)
from gpuplan.checks.layouts import mig_pools
from gpuplan.checks.registry import check
from gpuplan.diagnostics import Finding, Label, Origin, Severity
from gpuplan.planning.plan import Plan, Pool
from gpuplan.policy.models import Install, MigStrategy
from gpuplan.wording import listing

_PLUGIN_THAT_TELLS_SUFFIXES_APART = (0, 20)


# --- The release -------------------------------------------------------------------------------------------------


@check("GPU602", "unknown-operator-release", Severity.NOTE)
def unknown_operator_release(plan: Plan) -> Iterator[Finding]:
    """gpuplan knows nothing of this line of GPU Operator releases.

    ## Why
    Helm values, the ClusterPolicy's fields and known defects differ between lines. For one that gpuplan does not know
    it uses the nearest older one, which may be wrong in details.

    ## Instead
    Use a line that gpuplan knows, or compare the generated files with the release's own documentation.
    """
    version = plan.cluster.gpu_operator.version
    if parse_version(version) is not None and find_line(version) is None:
        yield Finding(
            plan.cluster.gpu_operator.at / "version",
            f"GPU Operator {version} is of a line that gpuplan does not know",
            label=f"read as {nearest_line(version).name}",
            notes=(f"known lines: {listing([line.name for line in lines()], shown=len(lines()))}",),
        )


@check("GPU605", "unsupported-kubernetes", Severity.WARNING)
def unsupported_kubernetes(plan: Plan) -> Iterator[Finding]:
    """The GPU Operator's release does not support the cluster's Kubernetes version.

    ## Why
    NVIDIA tests each line of releases on a range of Kubernetes versions (page "Platform Support" of the operator's
    documentation). Outside of it the operator may still run, but its problems are the cluster's own.

    ## Instead
    Upgrade the operator before Kubernetes, one line at a time.
    """
    line = find_line(plan.cluster.gpu_operator.version)
    kubernetes = parse_version(plan.cluster.spec.kubernetes)
    if line is None or kubernetes is None:
        return
    oldest, newest = parse_version(line.oldest_kubernetes), parse_version(line.newest_kubernetes)
    if (oldest and kubernetes < oldest) or (newest and kubernetes > newest):
        yield Finding(
            plan.cluster.at / "kubernetes",
            f"GPU Operator {line.name} does not support Kubernetes {plan.cluster.spec.kubernetes}",
            label=_range(line.oldest_kubernetes, line.newest_kubernetes),
            related=(Label(plan.cluster.gpu_operator.at / "version", "this release"),),
            help="use another line of the operator",
        )


def _range(oldest: str, newest: str) -> str:
    return f"it supports {oldest} to {newest}" if oldest else f"it supports versions up to {newest}"


# --- What the release brings -------------------------------------------------------------------------------------


@check("GPU612", "suffix-profile-needs-newer-plugin", Severity.WARNING)
def suffix_profile_needs_newer_plugin(plan: Plan) -> Iterator[Finding]:
    """A pool publishes profiles such as `1g.10gb+me` with a device plugin that takes them for others.

    ## Why
    Under the strategy `mixed` the device plugin finds a device's resource by a pattern of its profile. Before v0.20,
    which comes with the operator v26.7, the pattern of a plain profile also matches the same profile with a suffix, so
    that a device may be published under the wrong name (NVIDIA/k8s-device-plugin#1807).

    ## Instead
    Use the operator from v26.7 on, or profiles without `+` and `-`.
    """
    line = find_line(plan.cluster.gpu_operator.version)
    if line is None or line.device_plugin >= _PLUGIN_THAT_TELLS_SUFFIXES_APART:
        return
    for pool, mig in mig_pools(plan):
        names = sorted({name for entry in mig.layout.entries for name in entry.instances if not _is_plain(name)})
        if names and mig.spec.strategy is MigStrategy.MIXED:
            yield Finding(
                mig.layout_at,
                f"pool `{pool.name}` has {listing(names)}, which the device plugin of {line.name} may misname",
                label="may be published as the plain profile",
                related=(Label(plan.cluster.gpu_operator.at / "version", "this release"),),
                help="use the operator from v26.7 on, or plain profiles",
            )


def _is_plain(profile: str) -> bool:
    parsed = parse_profile(profile)
    return parsed is None or parsed.is_plain


@check("GPU613", "default-driver-breaks-mig")
def default_driver_breaks_mig(plan: Plan) -> Iterator[Finding]:
    """The driver that this release installs by default does not work with MIG as a pool uses it.

    ## Why
    A policy that names no driver gets the release's own. Some have defects: with 570.148.08, the default of v25.3.1,
    pods stay Pending on a node that has both partitioned and whole GPUs (NVIDIA/gpu-operator#1361).

    ## Instead
    Name a driver in `gpuOperator.driver.version`, or use another release.
    """
    operator = plan.cluster.gpu_operator
    if operator.spec.driver.version or not operator.spec.driver.enabled or operator.spec.install is Install.EXTERNAL:
        return
    driver = default_driver(operator.version)
    for pool, mig in mig_pools(plan):
        for defect in _defects(driver, pool):
            yield Finding(
                operator.at / "version",
                f"GPU Operator {operator.version} installs driver {driver}, {_FAULTS[defect.effect]}",
                label="its default driver",
                related=(Label(mig.layout_at, f"pool `{pool.name}` needs it"),),
                notes=(defect.source,),
                help="name another driver in `gpuOperator.driver.version`",
            )
            return


_FAULTS = {
    DriverEffect.NO_MIG: "which does not support MIG",
    DriverEffect.NO_MIG_BESIDE_WHOLE_GPUS: "which does not work with MIG beside whole GPUs",
}


def _defects(driver: str, pool: Pool) -> Iterator[DriverDefect]:
    for defect in driver_defects():
        is_in_the_way = defect.effect is DriverEffect.NO_MIG or pool.find_unit("gpu") is not None
        if defect.effect in _FAULTS and is_in_the_way and defect.has(driver):
            yield defect


@check("GPU614", "cdmm-excludes-mig", Severity.WARNING)
def cdmm_excludes_mig(plan: Plan) -> Iterator[Finding]:
    """A pool partitions GPUs of a Grace system, where the driver's memory mode may exclude MIG.

    ## Why
    From driver 580.65.06 on, Grace systems run under Kubernetes in the mode CDMM, in which the driver and not the
    operating system manages the GPU's memory. MIG cannot be enabled in that mode, so that mig-manager fails on every
    node. Where the driver or the board is not known exactly, this is a note.

    ## Instead
    Switch CDMM off on these nodes, by the kernel module parameter `NVreg_CoherentGPUMemoryMode=numa`, or share the GPUs
    by time-slicing.
    """
    operator = plan.cluster.gpu_operator
    driver = operator.spec.driver.version or default_driver(operator.version)
    cdmm = next(defect for defect in driver_defects() if defect.effect is DriverEffect.CDMM)
    for pool, mig in mig_pools(plan) if not driver or cdmm.has(driver) else ():
        hit = [cdmm.hits(product.label) for product in pool.gpu.products]
        if any(hit):
            yield Finding(
                mig.at.key,
                f"pool `{pool.name}` partitions {pool.gpu.id}, which CDMM does not allow",
                label="fails while CDMM is on",
                related=_driver_labels(operator.at, operator.spec.driver.version),
                notes=(f"on Grace systems CDMM is on by default from driver {cdmm.since} on: {cdmm.source}",),
                help="load the driver with `NVreg_CoherentGPUMemoryMode=numa` on these nodes",
                severity=None if driver and all(hit) else Severity.NOTE,
            )


def _driver_labels(operator: Origin, driver: str | None) -> tuple[Label, ...]:
    return (Label(operator / "driver" / "version", "this driver"),) if driver else ()
