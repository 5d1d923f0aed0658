"""Which driver the GPU Operator installs on which nodes: one for all of them, or one for each pool that says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog.operators import default_driver, nearest_line
from gpuplan.compiler.planning.plan import GpuOperator, Plan, Pool
from gpuplan.compiler.planning.sync_names import fit
from gpuplan.compiler.policy.models import Install, KernelModules, PoolDriver


class DriverGroup(NamedTuple):
    """Nodes that an NVIDIADriver is for: those of a pool, or with ``pool`` None all that no other one selects."""

    name: str
    pool: Pool | None
    version: str
    kernel_modules: str


_NAME: Final = "gpuplan"


def are_drivers_by_pool(plan: Plan) -> bool:
    """Whether NVIDIADrivers say which driver a node has; the ClusterPolicy's driver is then read by nobody."""
    return installs_drivers(plan.cluster.gpu_operator) and any(pool.spec.driver for pool in plan.pools)


def installs_drivers(operator: GpuOperator) -> bool:
    """Whether the operator installs drivers as gpuplan says."""
    return operator.spec.driver.enabled and operator.spec.install is not Install.EXTERNAL


def driver_groups(plan: Plan) -> tuple[DriverGroup, ...]:
    """A group for each pool with a driver of its own, and one for the rest; nothing where there is none."""
    if not are_drivers_by_pool(plan):
        return ()
    own = (_group(plan, pool, pool.spec.driver) for pool in plan.pools if pool.spec.driver)
    return (*own, DriverGroup(_NAME, None, _version(plan), kernel_modules(plan.cluster.gpu_operator)))


def has_default_driver(operator: GpuOperator) -> bool:
    """Whether an NVIDIADriver can be for all nodes that no other one selects."""
    return nearest_line(operator.version).has_default_driver


def group_of(plan: Plan, pool: Pool | None) -> str:
    """The name of the NVIDIADriver that is for a pool's nodes, or for those of no pool; empty where none is."""
    found = {group.pool.name if group.pool else "": group.name for group in driver_groups(plan)}
    return found.get(pool.name if pool else "", found.get("", ""))


def kernel_modules(operator: GpuOperator) -> str:
    """The kernel modules of nodes whose pool says nothing of them: those of the values, which may be anything."""
    driver = operator.spec.values.get("driver")
    stated = driver.get("kernelModuleType") if isinstance(driver, Mapping) else None
    return str(stated) if stated else KernelModules.AUTO.value


def kernel_modules_at(operator: GpuOperator) -> Origin:
    """Where the values say which."""
    return operator.at / "values" / "driver" / "kernelModuleType"


def stated_driver(plan: Plan, pool: Pool) -> tuple[str | None, Origin]:
    """The version that the policy says a pool's nodes have, and where: the pool's own, or the cluster's."""
    if pool.spec.driver is not None and pool.spec.driver.version:
        return pool.spec.driver.version, pool.at / "driver" / "version"
    return plan.cluster.gpu_operator.spec.driver.version, plan.cluster.gpu_operator.at / "driver" / "version"


def _group(plan: Plan, pool: Pool, own: PoolDriver) -> DriverGroup:
    modules = own.kernel_modules.value if own.kernel_modules else kernel_modules(plan.cluster.gpu_operator)
    return DriverGroup(_name_for(pool), pool, own.version or _version(plan), modules)


def _name_for(pool: Pool) -> str:
    """The operator writes it on nodes, as a label's value: one without room there, and it labels no node at all.

    (`nvidia.com/gpu-operator.driver.owner`, in `internal/nvidiadriver/nvidiadriver.go` of NVIDIA/gpu-operator v26.7.0.)
    """
    return fit(f"{_NAME}-{pool.name}")


def _version(plan: Plan) -> str:
    """The cluster's, else the release's own; empty where that was not read."""
    operator = plan.cluster.gpu_operator
    return operator.spec.driver.version or default_driver(operator.version)
