"""Checks on hand-written NVIDIADriver objects (GPU698)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from gpuplan.compiler.base.diagnostics import Finding, Label, Severity
from gpuplan.compiler.base.plain import inside, mapping, value_at
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.discovered import GPU_PRESENT_LABEL
from gpuplan.compiler.planning.gpu_operator import are_drivers_by_pool, driver_groups, has_default_driver
from gpuplan.compiler.planning.hand_files import HandFiles, Object
from gpuplan.compiler.planning.plan import POOL_LABEL, Plan
from gpuplan.compiler.policy.models import Install


@check("GPU698", "nvidia-driver-not-installed")
def nvidia_driver_not_installed(files: HandFiles) -> Iterator[Finding]:
    """A hand-written NVIDIADriver is one that the GPU Operator does not install.

    ## Why
    The operator skips them all unless its ClusterPolicy says `driver.useNvidiaDriverCRD: true`
    (`controllers/nvidiadriver_controller.go` of NVIDIA/gpu-operator v26.3.0): that is a warning. It stops at the first
    two that select the same node, and then changes neither (`internal/validator/validator.go`): the reason is
    `ConflictingNodeSelector`. Without a `nodeSelector` one selects all GPU nodes. From v26.7 on one of them can say
    `default: true`, and is for the nodes that no other one selects.

    ## Instead
    Write `driver: {nvidiaDriverCRD: {enabled: true}}` under `gpuOperator.values`, or patch the ClusterPolicy. Have
    selectors differ in the value of one label.
    """
    drivers = nvidia_drivers(files)
    if files.plan is None:
        return
    help_ = _BY_VALUE if files.plan.cluster.gpu_operator.spec.install is Install.HELM else _BY_PATCH
    yield from (skipped(found, help_) for found in drivers if _are_skipped(files.plan, files))
    has_fallback = has_default_driver(files.plan.cluster.gpu_operator)
    yield from _meeting_those_of_pools(files.plan, drivers, has_fallback=has_fallback)
    for first, second in combinations(drivers, 2):
        if share_nodes(first, second, has_fallback=has_fallback):
            yield conflict(first, second)


def nvidia_drivers(files: HandFiles) -> list[Object]:
    return [found for found in files.of_kind("NVIDIADriver") if found.group == "nvidia.com" and not found.is_patch]


def skipped(driver: Object, help_: str) -> Finding:
    """One that the operator does not install."""
    return Finding(
        driver.place("kind"),
        f"the operator skips {driver.title}: its ClusterPolicy installs the driver itself",
        label="does nothing",
        notes=("NVIDIADriver objects count only with `driver.useNvidiaDriverCRD: true` in the ClusterPolicy",),
        help=help_,
        severity=Severity.WARNING,
    )


def conflict(first: Object, second: Object) -> Finding:
    """Two that are for the same nodes."""
    return Finding(
        second.place("spec", "nodeSelector"),
        f"{second.title} and {first.title} are for the same nodes",
        label="conflicts with the other",
        related=(Label(first.place("spec", "nodeSelector"), "selects these nodes, too"),),
        notes=(_ONE_DRIVER,),
        help="have the selectors differ in the value of one label",
    )


_ONE_DRIVER = "the operator installs one driver on a node, and stops where two NVIDIADriver objects select it"


def _meeting_those_of_pools(plan: Plan, drivers: list[Object], *, has_fallback: bool) -> Iterator[Finding]:
    """The first NVIDIADriver of gpuplan's own that is for nodes of a hand-written one."""
    for found in drivers:
        for group in driver_groups(plan):
            is_both = is_fallback = _is_fallback(found)
            if group.pool is not None:
                selects_all = _selector(found).items() <= {POOL_LABEL: group.pool.name}.items()
                is_both = selects_all and not (has_fallback and is_fallback)
            if is_both:
                pools = (pool for pool in (group.pool, *plan.pools) if pool is not None)
                first = next(pool for pool in pools if pool.spec.driver)
                yield Finding(
                    found.place("spec", "nodeSelector"),
                    f"{found.title} and NVIDIADriver `{group.name}` are for the same nodes",
                    label="conflicts with that of the policies",
                    related=(Label((first.at / "driver").key, "has gpuplan write the other one"),),
                    notes=(_ONE_DRIVER,),
                    help="say it in `driver` of the pool, or take `driver` out of all pools",
                )
                break


_BY_VALUE = "write `driver: {nvidiaDriverCRD: {enabled: true}}` under `gpuOperator.values`"
_BY_PATCH = "patch the ClusterPolicy with `spec: {driver: {useNvidiaDriverCRD: true}}`"


def _are_skipped(plan: Plan, files: HandFiles) -> bool:
    """Whether the ClusterPolicy is known to install the driver; one that somebody else owns is not."""
    operator = plan.cluster.gpu_operator
    by_value = (
        are_drivers_by_pool(plan) or value_at(operator.spec.values, ("driver", "nvidiaDriverCRD", "enabled")) is True
    )
    policies = (mapping(found.body.get("spec")) for found in files.of_kind("ClusterPolicy"))
    by_patch = any(value_at(spec, ("driver", "useNvidiaDriverCRD")) is True for spec in policies)
    is_owned_elsewhere = operator.spec.install is Install.EXTERNAL or any(files.of_kind("GPUCluster"))
    return not (by_value or by_patch or is_owned_elsewhere or are_drivers_by_pool(plan))


def share_nodes(one: Object, other: Object, *, has_fallback: bool) -> bool:
    """Whether each node that one of them selects is the other's as well, or each that the other one selects."""
    if one.name == other.name:
        return False
    if has_fallback and (_is_fallback(one) or _is_fallback(other)):
        return _is_fallback(one) and _is_fallback(other)
    first, second = _selector(one).items(), _selector(other).items()
    return first <= second or second <= first


def _is_fallback(driver: Object) -> bool:
    return value_at(driver.body, ("spec", "default")) is True


def _selector(driver: Object) -> Mapping[str, str]:
    """The labels that it asks for, less the one that all GPU nodes have."""
    labels = {key: str(value) for key, value in inside(driver.body, "spec", "nodeSelector").items()}
    return {key: value for key, value in labels.items() if (key, value) != (GPU_PRESENT_LABEL, "true")}
