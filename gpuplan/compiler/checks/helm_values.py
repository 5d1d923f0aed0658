"""Checks on the Helm values that a policy adds (GPU600, GPU603, GPU604, GPU609)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity
from gpuplan.compiler.base.plain import mapping, sequence, value_at
from gpuplan.compiler.base.wording import closest, listing
from gpuplan.compiler.catalog import operators
from gpuplan.compiler.catalog.operators import NFD_CHART, Keys, parse_version
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.discovered import is_of_discovery
from gpuplan.compiler.planning.dra import uses_claims
from gpuplan.compiler.planning.gpu_operator import (
    FOR_CONTAINERS,
    FOR_MACHINES,
    WORKLOAD_LABEL,
    are_drivers_by_pool,
    closed_variables,
    default_workload,
)
from gpuplan.compiler.planning.plan import Mig, Plan
from gpuplan.compiler.planning.pools import ALL_DISABLED
from gpuplan.compiler.policy.models import ClusterMigStrategy, Install, NodeLabels, Platform

Route = tuple[str, ...]


# --- Keys that the chart does not read ---------------------------------------------------------------------------


@check("GPU600", "unknown-helm-value")
def unknown_helm_value(plan: Plan) -> Iterator[Finding]:
    """A Helm value has a key that this release's chart does not read.

    ## Why
    The chart gpu-operator has no schema for its values: a misspelt key, or one of another release, is ignored without a
    word, and the cluster keeps the default. So does the chart node-feature-discovery inside it, up to v26.3. gpuplan
    knows the keys of several releases, those that the templates read although `values.yaml` does not list them
    included. The finding is a warning where only older releases read the key, and for a release whose chart gpuplan
    does not know: then the keys of the releases around it count.

    ## Instead
    Use the key that the finding suggests, or take the value away.
    """
    operator = plan.cluster.gpu_operator
    if operator.spec.install is not Install.HELM or not operator.spec.values:
        return
    for route, finding in unread_values(operator.spec.values, operator.version):
        if route[0] != NFD_CHART or operator.spec.nfd:  # else GPU604
            yield finding((operator.at / "values" / route).key)


def unread_values(values: Mapping[str, object], release: str) -> Iterator[tuple[Route, Callable[[Origin], Finding]]]:
    """Yield routes to keys that a release's chart does not read, or no chart does, with a finding for each."""
    chart = operators.chart_keys(release) if release else operators.all_chart_keys()
    unread = f"the chart of {release} was not read; its neighbours were, the newest is {operators.newest_read_line()}"
    listed = operators.listed_values()
    for route, known in _unknown(values, chart.keys, ()):
        if route in listed and value_at(values, route) == listed[route]:
            continue
        knowing = operators.lines_that_know(route)
        is_former = bool(knowing) and (parse_version(knowing[-1]) or ()) < (parse_version(release) or ())
        close = "" if is_former else closest(route[-1], known)
        meant = f"`{'.'.join((*route[:-1], close))}`" if close else ""
        notes = (f"known to {listing(knowing)}" if knowing else "", "" if chart.is_read else unread)
        which = (
            f"chart {operators.OPERATORS_CHART} {release}"
            if release
            else f"no known release of chart {operators.OPERATORS_CHART}"
        )
        finding = partial(
            Finding,
            message=f"{which} reads {'no' if release else 'a'} value `{'.'.join(route)}`",
            label=f"did you mean {meant}" if meant else "not read any more" if is_former else "ignored without a word",
            notes=tuple(filter(None, notes)),
            help=f"write {meant}" if meant else _elsewhere(route[-1], chart.keys) or "remove it",
            severity=Severity.WARNING if is_former or not chart.is_read else None,
        )
        yield route, finding


def _unknown(values: Mapping[str, object], keys: Keys, route: Route) -> Iterator[tuple[Route, Keys]]:
    """Yield routes to unknown keys, each with the known keys beside it."""
    for key, value in values.items():
        if key not in keys:
            yield (*route, key), keys
        else:
            below = keys[key]
            if below is not None and isinstance(value, Mapping):
                yield from _unknown(value, below, (*route, key))


def _elsewhere(key: str, keys: Keys) -> str:
    """Return where else the chart itself has a key of this name, if it is in few places."""
    places = [".".join(route) for route in _routes(keys, ()) if route[-1] == key and route[0] != NFD_CHART]
    return f"write {' or '.join(f'`{place}`' for place in places)}" if 0 < len(places) <= 3 else ""


def _routes(keys: Keys, route: Route) -> Iterator[Route]:
    for key, below in keys.items():
        yield (*route, key)
        if below is not None:
            yield from _routes(below, (*route, key))


# --- Values that gpuplan decides ---------------------------------------------------------------------------------


@check("GPU603", "decided-helm-value")
def decided_helm_value(plan: Plan) -> Iterator[Finding]:
    """A Helm value contradicts what follows from the policy.

    ## Why
    gpuplan writes the values that make the operator do what the plan says: its ConfigMaps, the MIG strategy, the
    driver, reboots, what may choose devices, NFD and its taints, and the exporters where the cluster is watched. Its
    values win over those of `gpuOperator.values`, so that a contradicting one would be dropped; an environment variable
    such as `MIG_STRATEGY` would win over every pool. Editing `default-mig-parted-config` is no way out: the operator
    resets it.

    ## Instead
    Remove the value, and say it in the policy: in the field that the finding names, or in the pools and layouts.
    """
    operator = plan.cluster.gpu_operator
    if operator.spec.install is not Install.HELM:
        return
    at, decided = operator.at / "values", _decided(plan)
    for route, field in operators.decided_values().items():
        found = value_at(operator.spec.values, route)
        if found is not None and found not in decided.get(route, (found,)):
            yield _contradiction(at / route, ".".join(route), field)
    reboots = "true" if operator.spec.reboot_on_mig_change else "false"
    usual_values = {("migManager", "WITH_REBOOT"): (reboots,), **{k: (v,) for k, v in closed_variables(plan).items()}}
    variables = {**operators.decided_environment(), **dict.fromkeys(closed_variables(plan), _CLOSING)}
    for (operand, variable), field in variables.items():
        usual = usual_values.get((operand, variable), ())
        for index, item in enumerate(sequence(value_at(operator.spec.values, (operand, "env")))):
            name, value = (mapping(item).get(key) for key in ("name", "value"))
            if name == variable and value not in usual:
                yield _contradiction(at / operand / "env" / index, f"{operand}.env[{variable}]", field)


_CLOSING: Final = "spec.gpuOperator.closeVisibleDevices"


def _decided(plan: Plan) -> dict[Route, tuple[object, ...]]:
    """Return the values that are as good as none, by route. A route that is absent may have any value."""
    operator = plan.cluster.gpu_operator
    strategy = operator.spec.mig_strategy
    decided: dict[Route, tuple[object, ...]] = {
        ("mig", "strategy"): ("" if strategy is ClusterMigStrategy.PER_POOL else strategy.value,),
        ("driver", "enabled"): (operator.spec.driver.enabled,),
        ("driver", "version"): (operator.spec.driver.version or "",),
        ("platform", "openshift"): (plan.cluster.spec.platform is Platform.OPENSHIFT,),
        ("nfd", "enabled"): (operator.spec.nfd,),
        ("migManager", "config", "default"): (ALL_DISABLED,),
        ("devicePlugin", "config", "default"): (operator.spec.default_device_plugin_config or "",),
    }
    if are_drivers_by_pool(plan):
        decided |= {("driver", "nvidiaDriverCRD", "enabled"): (True,)}
        decided |= {("driver", "nvidiaDriverCRD", "deployDefaultCR"): (False,)}
    monitoring = plan.cluster.monitoring
    for operand in ("migManager", "devicePlugin", *(("dcgmExporter",) if monitoring else ())):
        unset = {"create": False, "name": "", "data": {}}
        decided |= {(operand, "config", key): (value,) for key, value in unset.items()}
    if uses_claims(plan):
        decided[("devicePlugin", "enabled")] = (False,)
    if plan.cluster.spec.node_labels is NodeLabels.NFD and any(pool.taints for pool in plan.pools):
        decided[(NFD_CHART, "master", "config", "enableTaints")] = (True,)
    if monitoring:
        decided |= {
            ("dcgmExporter", "enabled"): (True,),
            ("dcgmExporter", "serviceMonitor", "enabled"): (True,),
            ("dcgmExporter", "serviceMonitor", "honorLabels"): (monitoring.spec.honor_labels,),
            ("nodeStatusExporter", "enabled"): (True,),
        }
    return decided


def _contradiction(at: Origin, value: str, field: str) -> Finding:
    return Finding(
        at,
        f"Helm value `{value}` contradicts the policy",
        label="gpuplan decides this one",
        notes=(f"it follows from `{field}`" if field else "it follows from the pools and their layouts",),
        help=f"remove it, and set `{field}` if that is not what you mean" if field else "remove it",
    )


# --- Values that nothing reads -----------------------------------------------------------------------------------


@check("GPU604", "unused-helm-values")
def unused_helm_values(plan: Plan) -> Iterator[Finding]:
    """A cluster has Helm values that nothing reads.

    ## Why
    `gpuOperator.values` goes into the chart's values file, and only `install: helm` has one. With `olm` and `external`
    the values would be dropped. With `nfd: false` the chart brings no Node Feature Discovery, and the one that the
    cluster has does not read what stands under `node-feature-discovery`.

    ## Instead
    Remove them. Change the ClusterPolicy itself by a kustomize patch in `overlays/<cluster>/kustomize/gpu-operator/`,
    and an NFD of another owner where that owner configures it.
    """
    operator = plan.cluster.gpu_operator
    if operator.spec.install is not Install.HELM and operator.spec.values:
        yield Finding(
            (operator.at / "values").key,
            f"Helm values have no effect with `install: {operator.spec.install.value}`",
            label="nothing reads these",
            help="remove them, or patch the ClusterPolicy in a hand-written kustomize Component",
        )
    elif not operator.spec.nfd and operator.spec.values.get(NFD_CHART):
        yield Finding(
            (operator.at / "values" / NFD_CHART).key,
            f"Helm values of `{NFD_CHART}` have no effect with `nfd: false`",
            label="nothing reads these",
            related=(Label(operator.at / "nfd", "the chart brings no NFD"),),
            help="remove them, and configure the NFD that the cluster has",
        )


# --- Components that the plan needs ------------------------------------------------------------------------------


@check("GPU609", "component-switched-off")
def component_switched_off(plan: Plan) -> Iterator[Finding]:
    """A Helm value switches off a part of the operator that the plan needs.

    ## Why
    Pools are made by the device plugin and, where they are partitioned, by mig-manager; both take their configuration
    from the ClusterPolicy. Without one of them nodes publish no GPUs or whole ones, and quotas hold for resources that
    do not exist. A GPUCluster excludes a ClusterPolicy: it is for Dynamic Resource Allocation, where there are no
    extended resources and no replicas. Where pools say `allocation: dra` the device plugin is off, and mig-manager is
    needed all the same.

    ## Instead
    Remove the value. Whatever of the operator the plan does not need may stay off.
    """
    operator = plan.cluster.gpu_operator
    if operator.spec.install is not Install.HELM or not plan.pools:
        return
    values = operator.spec.values
    has_mig = any(isinstance(pool.sharing, Mig) for pool in plan.parts)
    chosen_by_board = any(is_of_discovery(key) for pool in plan.pools for key in pool.nodes.selector)
    unlabelled = any(pool.labels.get(WORKLOAD_LABEL) != FOR_CONTAINERS for pool in plan.parts)
    workload, of_machines = default_workload(values), "nodes are for virtual machines unless a label says `container`"
    by_label = "no node gets the labels of its boards"
    for part, field, value, consequence, is_needed in (
        ("clusterPolicy", "deployCR", False, "no ClusterPolicy names the ConfigMaps", True),
        ("gpuCluster", "deployCR", True, "a GPUCluster hands out GPUs by DRA, not as resources", True),
        ("devicePlugin", "enabled", False, "nothing publishes the pools' resources", not uses_claims(plan)),
        ("migManager", "enabled", False, "nothing partitions the GPUs", has_mig),
        ("gfd", "enabled", False, by_label, has_mig or chosen_by_board),
        ("sandboxWorkloads", "defaultWorkload", workload, of_machines, workload in FOR_MACHINES and unlabelled),
    ):
        if is_needed and value_at(values, (part, field)) == value:
            yield Finding(
                operator.at / "values" / part / field,
                f"the plan cannot work with `{part}.{field}: {str(value).lower()}`",
                label=consequence,
                help="remove it",
            )
