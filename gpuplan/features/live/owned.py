"""Settings of somebody else's GPU Operator that keep nodes of pools from what the pools count on."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.base.plain import section, text, value_at
from gpuplan.compiler.base.wording import count
from gpuplan.compiler.catalog.operators import default_driver
from gpuplan.compiler.checks.mig import unmet_by_pools
from gpuplan.compiler.planning.discovered import DRIVER_LABEL
from gpuplan.compiler.planning.gpu_operator import FOR_CONTAINERS, FOR_MACHINES, WORKLOAD_LABEL, default_workload
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.policy.models import Install
from gpuplan.features.live.clusters.operators import read_operator
from gpuplan.features.live.dump import Dump
from gpuplan.features.live.findings import report
from gpuplan.features.live.pools.nodes import read_machines


def tell_of_owner(dump: Dump, plan: Plan) -> Iterator[Diagnostic]:
    """Yield findings on what the operator is told. Where gpuplan tells it, checks of the plan judge the same."""
    operator = plan.cluster.gpu_operator
    told = next(iter(read_operator(dump).settings), None)
    if told is None or operator.spec.install is not Install.EXTERNAL or not plan.pools:
        return
    machines, driver = read_machines(dump).live.values(), default_driver(operator.version)
    running = {machine.labels[DRIVER_LABEL] for machine in machines if DRIVER_LABEL in machine.labels}
    stated = section(told.body, "driver")
    by_objects = stated.get("useNvidiaDriverCRD") is True or section(stated, "nvidiaDriverCRD").get("enabled") is True
    is_default = operator.spec.driver.enabled and not operator.spec.driver.version and not by_objects
    if driver and is_default and text(stated.get("version")) in ("", driver) and running <= {driver}:
        at = told.at / "driver" / "version" if stated.get("version") else told.at
        for found in unmet_by_pools(plan, lambda _: (driver, at)):
            yield report("default-driver-too-old", at, release=operator.version, found=found)
    workload = default_workload(told.body)
    given = [
        machine for machine in machines if machine.labels.get(WORKLOAD_LABEL) not in (FOR_CONTAINERS, *FOR_MACHINES)
    ]
    if workload != FOR_CONTAINERS and given:
        at = told.at / "sandboxWorkloads" / "defaultWorkload"
        yield report("nodes-for-machines", at, first=given[0].name, nodes=count(len(given), "node"), workload=workload)
    discovers = any("gpu-feature-discovery" in item.name for item in dump.of_kind("apps", "DaemonSet"))
    if value_at(told.body, ("gfd", "enabled")) is False and not discovers:
        yield report("no-feature-discovery", told.at / "gfd" / "enabled")
