"""Checks on drivers of pools (GPU482-486, GPU488, GPU490, GPU491)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpuplan.compiler.base.diagnostics import Finding, Label, Severity
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.catalog.operators import parse_version
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.drivers import (
    DriverGroup,
    are_drivers_by_pool,
    driver_groups,
    group_of,
    has_default_driver,
    installs_drivers,
    kernel_modules_at,
)
from gpuplan.compiler.planning.plan import Plan, Pool
from gpuplan.compiler.policy.models import Install, KernelModules


def _pools(plan: Plan) -> Iterator[Pool]:
    """Yield the pools with a driver of their own."""
    return (pool for pool in plan.pools if pool.spec.driver is not None)


@check("GPU482", "pool-driver-not-installed")
def pool_driver_not_installed(plan: Plan) -> Iterator[Finding]:
    """A pool names a driver, and the GPU Operator installs none as gpuplan says.

    ## Why
    With `gpuOperator.driver.enabled: false` nodes have the driver of their image. With `install: external` somebody
    else writes the ClusterPolicy: whether NVIDIADrivers count is one of its fields, `driver.useNvidiaDriverCRD`.

    ## Instead
    Take `driver` out of the pool and choose the driver where nodes get it: in their image, or by NVIDIADrivers of
    whoever owns the ClusterPolicy.
    """
    operator = plan.cluster.gpu_operator
    for pool in _pools(plan) if not installs_drivers(operator) else ():
        is_external = operator.spec.install is Install.EXTERNAL
        field = operator.at / "install" if is_external else operator.at / "driver" / "enabled"
        yield Finding(
            (pool.at / "driver").key,
            f"pool `{pool.name}` names a driver that nothing installs",
            label="installed by nobody",
            related=(Label(field, "somebody else owns the ClusterPolicy" if is_external else "nodes bring their own"),),
            help="remove it; the owner of the ClusterPolicy can say it in an NVIDIADriver"
            if is_external
            else "remove it, or write `enabled: true`",
        )


@check("GPU483", "operator-too-old-for-pool-drivers")
def operator_too_old_for_pool_drivers(plan: Plan) -> Iterator[Finding]:
    """A pool names a driver, and in the cluster's GPU Operator none can be for the other nodes.

    ## Why
    NVIDIADrivers say which nodes get which driver, by labels that the nodes have. Before v26.7.0 none of them can be
    for all nodes that no other one selects (`default` in `api/nvidia/v1alpha1/nvidiadriver_types.go` of
    NVIDIA/gpu-operator): a node has no driver until it has its pool's label, and that is synced when the operator is
    healthy, which it is not while nodes have none. And all driver pods end at once when NVIDIADrivers take over.

    ## Instead
    Raise `gpuOperator.version` to v26.7.0 or newer in a step of its own, then name drivers of pools.
    """
    operator = plan.cluster.gpu_operator
    if not are_drivers_by_pool(plan) or has_default_driver(operator):
        return
    for pool in _pools(plan):
        yield Finding(
            (pool.at / "driver").key,
            f"GPU Operator {operator.version} installs one driver on all nodes, and pool `{pool.name}` names its own",
            label="needs v26.7.0",
            related=(Label(operator.at / "version", "this release"),),
            help="write `version: v26.7.0` in `gpuOperator`, and name drivers of pools in a later step",
        )


@check("GPU484", "pool-driver-without-version")
def pool_driver_without_version(plan: Plan) -> Iterator[Finding]:
    """Nothing says which version of the driver some nodes get.

    ## Why
    An NVIDIADriver must name its image whole: the operator adds no default (`GetImagePath` in
    `api/nvidia/v1alpha1/nvidiadriver_types.go` of NVIDIA/gpu-operator). Where the policy names no version it is that of
    the operator's release, as far as the catalog knows it.

    ## Instead
    Write `gpuOperator.driver.version`, which counts for all pools that name none.
    """
    operator = plan.cluster.gpu_operator
    if any(not group.version for group in driver_groups(plan)):
        own = next(pool.at / "driver" for pool in _pools(plan))
        yield Finding(
            operator.at.key,
            "nothing says which driver nodes have whose pool names no version",
            label="no version",
            related=(Label(own.key, "has NVIDIADrivers written, which name an image each"),),
            notes=(f"the driver of {operator.version} is not in the catalog",),
            help="write `driver: {version: 580.95.05}` in `gpuOperator`",
        )


@check("GPU491", "pool-driver-says-nothing", Severity.WARNING)
def pool_driver_says_nothing(plan: Plan) -> Iterator[Finding]:
    """A pool has a driver of its own, and says nothing of it.

    ## Why
    Where a pool has `driver`, NVIDIADrivers install the drivers of all nodes, and the ClusterPolicy none any more: the
    step to it evicts pods that hold GPUs. Without `version` and `kernelModules` the pool's driver is the one that all
    other nodes have.

    ## Instead
    Write the version or the kernel modules that the pool is to have, or take `driver` out of it.
    """
    for pool in _pools(plan) if are_drivers_by_pool(plan) else ():
        if pool.spec.driver and not pool.spec.driver.version and pool.spec.driver.kernel_modules is None:
            yield Finding(
                (pool.at / "driver").key,
                f"`driver` of pool `{pool.name}` says neither version nor kernel modules",
                label="the cluster's driver",
                notes=("with it NVIDIADrivers bring the drivers of all nodes, and the ClusterPolicy brings none",),
                help="remove it, or write a version, such as `driver: {version: 580.95.05}`",
            )


@check("GPU485", "kernel-modules-do-not-fit")
def kernel_modules_do_not_fit(plan: Plan) -> Iterator[Finding]:
    """A pool's driver has kernel modules that do not drive its boards.

    ## Why
    NVIDIA's open kernel modules drive Turing and newer boards, and are the only ones for Grace Hopper and Blackwell.
    With the others the driver's pod ends in an error on each node, and no operand starts there. A pool that says
    nothing of them has those of `gpuOperator.values`.

    ## Instead
    Write the other kind, or `auto`, with which the driver's container chooses by what it finds on the node.
    """
    groups = {group.name: group for group in driver_groups(plan)}
    for pool in plan.pools if groups else ():
        wanted = groups[group_of(plan, pool)].kernel_modules
        if fault := modules_fault(wanted, pool.gpu):
            other, note = fault
            is_own, text = _states_modules(pool), f"`kernelModules: {other.value}`"
            yield Finding(
                pool.at / "driver" / "kernelModules" if is_own else kernel_modules_at(plan.cluster.gpu_operator),
                f"{wanted} kernel modules do not drive {pool.gpu.id} of pool `{pool.name}`",
                label=f"needs `{other.value}`",
                related=(Label(pool.at / "gpu", "these boards"),),
                notes=(note,),
                help=f"write {text}" if is_own else f"write {text} in `driver` of pool `{pool.name}`",
            )


_TURING: Final = (7, 5)
_BLACKWELL: Final = (10, 0)
_SINCE_TURING: Final = "the open kernel modules drive Turing and newer boards, of compute capability 7.5 on"
_OPEN_ALONE: Final = "Grace Hopper and Blackwell boards have open kernel modules alone"
"""https://developer.nvidia.com/blog/nvidia-transitions-fully-towards-open-source-gpu-kernel-modules"""


def modules_fault(wanted: str, gpu: Gpu) -> tuple[KernelModules, str] | None:
    """Return the kernel modules that drive a board which the wanted ones do not, and why."""
    is_grace_hopper = all("GH200" in product.label for product in gpu.products)
    if wanted == KernelModules.OPEN and gpu.compute_capability < _TURING:
        return KernelModules.PROPRIETARY, _SINCE_TURING
    if wanted == KernelModules.PROPRIETARY and (gpu.compute_capability >= _BLACKWELL or is_grace_hopper):
        return KernelModules.OPEN, _OPEN_ALONE
    return None


@check("GPU486", "driver-sidecar-without-image")
def driver_sidecar_without_image(plan: Plan) -> Iterator[Finding]:
    """Pools name drivers, and an addition to the driver's pods has no whole image.

    ## Why
    Where NVIDIADrivers install the driver, they install GPUDirect Storage and GDRCopy, too. As for the driver, the
    operator adds no default to the image that an NVIDIADriver names; the chart's own is in values that gpuplan does not
    have.

    ## Instead
    Copy `repository`, `image` and `version` from the values of the chart's release.
    """
    values, at = plan.cluster.gpu_operator.spec.values, plan.cluster.gpu_operator.at / "values"
    for part in SIDECARS if are_drivers_by_pool(plan) else ():
        stated = values.get(part)
        if isinstance(stated, dict) and stated.get("enabled") is True:
            missing = [field for field in ("repository", "image", "version") if not stated.get(field)]
            if missing:
                yield Finding(
                    (at / part).key,
                    f"`{part}` of NVIDIADrivers has no {joined([f'`{field}`' for field in missing])}",
                    label="no whole image",
                    notes=("the operator adds no default to what an NVIDIADriver names",),
                    help=f"write `{part}.{missing[0]}` as the chart's own values have it",
                )


SIDECARS: Final = ("gds", "gdrcopy")


@check("GPU488", "precompiled-driver-beside-sidecar")
def precompiled_driver_beside_sidecar(plan: Plan) -> Iterator[Finding]:
    """NVIDIADrivers are to bring precompiled drivers together with what is built against them.

    ## Why
    The operator reconciles no NVIDIADriver with `usePrecompiled` that has GPUDirect Storage or GDRCopy, and nodes go
    without a driver (`Reconcile` in `controllers/nvidiadriver_controller.go` of NVIDIA/gpu-operator).

    ## Instead
    Have drivers compiled on the nodes, or take `gds` and `gdrcopy` away.
    """
    values, at = plan.cluster.gpu_operator.spec.values, plan.cluster.gpu_operator.at / "values"
    driver = values.get("driver")
    is_precompiled = isinstance(driver, dict) and driver.get("usePrecompiled") is True
    for part in SIDECARS if is_precompiled and are_drivers_by_pool(plan) else ():
        stated = values.get(part)
        if isinstance(stated, dict) and stated.get("enabled") is True:
            yield Finding(
                at / part / "enabled",
                f"the operator installs no precompiled driver with `{part}`",
                label="not with precompiled drivers",
                related=(Label(at / "driver" / "usePrecompiled", "asks for these"),),
                help="remove it, or write `usePrecompiled: false`",
            )


@check("GPU490", "storage-driver-beside-closed-modules")
def storage_driver_beside_closed_modules(plan: Plan) -> Iterator[Finding]:
    """NVIDIADrivers are to bring GPUDirect Storage to nodes whose kernel modules may not be the open ones.

    ## Why
    From v2.17.5 on GPUDirect Storage works with the open kernel modules alone. The operator reconciles no NVIDIADriver
    with `gds` whose `kernelModuleType` is another one than `open`, `auto` included, and nodes go without a driver
    (`Reconcile` in `controllers/nvidiadriver_controller.go` and `IsOpenKernelModulesRequired` in
    `api/nvidia/v1alpha1/nvidiadriver_types.go` of NVIDIA/gpu-operator v26.7.0). That holds for each of them, also for
    the one of all nodes whose pool names no driver.

    ## Instead
    Write `driver: {kernelModuleType: open}` under `gpuOperator.values`, and `kernelModules: open` where a pool says
    something else. With boards older than Turing, which these modules do not drive, there is no GPUDirect Storage.
    """
    operator = plan.cluster.gpu_operator
    gds = operator.spec.values.get("gds")
    if not isinstance(gds, dict) or gds.get("enabled") is not True or not needs_open_modules(str(gds.get("version"))):
        return
    for group in driver_groups(plan):
        if group.kernel_modules != KernelModules.OPEN and (group.pool is None or _states_modules(group.pool)):
            yield _beside_closed_modules(plan, group)


def _beside_closed_modules(plan: Plan, group: DriverGroup) -> Finding:
    """Report a driver for all its nodes, those included whose pools say nothing of kernel modules."""
    operator, pool = plan.cluster.gpu_operator, group.pool
    enabled = operator.at / "values" / "gds" / "enabled"
    served = [pool] if pool else [other for other in plan.pools if not _states_modules(other)]
    inheriting = [other for other in driver_groups(plan) if not pool and other.pool and not _states_modules(other.pool)]
    names = [f"`{other.name}`" for other in driver_groups(plan) if other == group or other in inheriting]
    old = next((other for other in served if other.gpu.compute_capability < _TURING), None)
    if old is not None:
        help_ = "write `gds: {enabled: false}` under `gpuOperator.values`"
    elif pool is not None:
        help_ = "write `kernelModules: open`"
    else:
        help_ = "write `driver: {kernelModuleType: open}` under `gpuOperator.values`"
    return Finding(
        pool.at / "driver" / "kernelModules" if pool else enabled,
        f"the operator installs no driver with `gds` and {group.kernel_modules} kernel modules",
        label="needs `open`",
        related=(Label(enabled, "asks for GPUDirect Storage"),) if pool else (),
        notes=(
            f"nodes of NVIDIADriver {joined(names)} get no driver",
            *([f"open kernel modules do not drive {old.gpu.id} of pool `{old.name}`"] if old else []),
        ),
        help=help_,
    )


def _states_modules(pool: Pool) -> bool:
    return pool.spec.driver is not None and pool.spec.driver.kernel_modules is not None


_SINCE_OPEN: Final = (2, 17, 5)
"""`MinimumGDSVersionForOpenRM` in `internal/consts/consts.go` of NVIDIA/gpu-operator v26.7.0."""


def needs_open_modules(version: str) -> bool:
    """Whether a version of GPUDirect Storage needs the open kernel modules. A digest counts as a new version."""
    return version.startswith("sha256") or (parse_version(version) or ()) >= _SINCE_OPEN
