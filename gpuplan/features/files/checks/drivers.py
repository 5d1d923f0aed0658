"""Drivers in ClusterPolicies, in values of the chart and in NVIDIADrivers, without a platform."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from posixpath import dirname

from gpuplan.compiler.base.diagnostics import Finding, Label
from gpuplan.compiler.base.plain import inside, text
from gpuplan.compiler.catalog.operators import find_line
from gpuplan.compiler.checks import drivers
from gpuplan.compiler.checks.registry import same_rule
from gpuplan.compiler.planning.hand_files import HandFiles, Settings
from gpuplan.compiler.policy.models import KernelModules
from gpuplan.features.components.checks import drivers as by_hand


def _driven(files: HandFiles) -> Iterator[tuple[Settings, tuple[str, ...]]]:
    """A setting of the driver of nodes, with the route to it. An NVIDIADriver is one."""
    for setting in files.settings:
        yield setting, ("driver",)
    for found in by_hand.nvidia_drivers(files):
        yield Settings(found.at, inside(found.body, "spec"), found.title, is_whole=True, of=found), ()


@same_rule(drivers.precompiled_driver_beside_sidecar)
def precompiled_beside_sidecar(files: HandFiles) -> Iterator[Finding]:
    """Find kinds of drivers that are built against a driver beside one that is built already.

    The operator refuses it of a ClusterPolicy as well (`transformGDSContainer` and `transformGDRCopyContainer` in
    `controllers/object_controls.go` of NVIDIA/gpu-operator v26.7.0).
    """
    for setting, route in _driven(files):
        for part in drivers.SIDECARS if setting.value(*route, "usePrecompiled") is True else ():
            if setting.value(part, "enabled") is True and setting.value(*route, "enabled") is not False:
                at = setting.place(*route, "usePrecompiled")
                yield Finding(
                    setting.place(part, "enabled"),
                    f"the operator installs no precompiled driver with `{part}`",
                    label="not with precompiled drivers",
                    related=() if setting.is_inline else (Label(at, "asks for these"),),
                    help="remove it, or write `usePrecompiled: false`",
                )


@same_rule(drivers.storage_driver_beside_closed_modules)
def storage_beside_closed_modules(files: HandFiles) -> Iterator[Finding]:
    """GPUDirect Storage in an NVIDIADriver with other kernel modules; of a ClusterPolicy the operator asks nothing."""
    for found in by_hand.nvidia_drivers(files):
        setting = Settings(found.at, inside(found.body, "spec"), found.title, of=found)
        modules = text(setting.value("kernelModuleType")) or KernelModules.AUTO.value
        is_on = setting.value("gds", "enabled") is True and drivers.needs_open_modules(
            text(setting.value("gds", "version"))
        )
        if is_on and modules != KernelModules.OPEN.value:
            yield Finding(
                setting.place("gds", "enabled"),
                f"the operator installs no driver with `gds` and {modules} kernel modules",
                label="needs `open`",
                notes=(f"nodes of {found.title} get no driver",),
                help="write `kernelModuleType: open`",
            )


@same_rule(drivers.kernel_modules_do_not_fit)
def modules_do_not_fit(files: HandFiles) -> Iterator[Finding]:
    """Kernel modules that drive none of the models that were named."""
    for setting, route in _driven(files):
        stated = text(setting.value(*route, "kernelModuleType"))
        wanted = next((kind for kind in KernelModules if kind.value == stated), None)
        faults = [drivers.modules_fault(wanted, gpu) for gpu in files.gpus] if wanted is not None else []
        if faults and all(faults):
            other, note = next(fault for fault in faults if fault)
            names = " and ".join(gpu.id for gpu in files.gpus)
            yield Finding(
                setting.place(*route, "kernelModuleType"),
                f"{stated} kernel modules do not drive {names}",
                label=f"needs `{other}`",
                notes=(note,),
                help=f"write `kernelModuleType: {other}`",
            )


@same_rule(by_hand.nvidia_driver_not_installed)
def driver_not_installed(files: HandFiles) -> Iterator[Finding]:
    """NVIDIADrivers that a ClusterPolicy among the files has the operator skip, and two of one folder for one node."""
    found = by_hand.nvidia_drivers(files)
    stated = [_uses_drivers(setting) for setting in files.settings]
    if False in stated and True not in stated:
        help_ = "write `driver: {useNvidiaDriverCRD: true}` in the ClusterPolicy, in values `nvidiaDriverCRD.enabled`"
        yield from (by_hand.skipped(driver, help_) for driver in found)
    known = [line for line in (find_line(setting.release) for setting in files.settings) if line is not None]
    has_fallback = all(line.has_default_driver for line in known)
    for first, second in combinations(found, 2):
        is_one_cluster = dirname(first.path) == dirname(second.path)
        if is_one_cluster and by_hand.share_nodes(first, second, has_fallback=has_fallback):
            yield by_hand.conflict(first, second)


def _uses_drivers(setting: Settings) -> bool | None:
    """Whether NVIDIADrivers count; None where that is not said."""
    if setting.of is None:
        stated = setting.value("driver", "nvidiaDriverCRD", "enabled")
        return stated if isinstance(stated, bool) else None
    if setting.value("driver", "useNvidiaDriverCRD") is True:
        return True
    return False if setting.is_whole else None
