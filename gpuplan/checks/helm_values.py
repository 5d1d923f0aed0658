"""Checks on the Helm values that a policy adds (GPU600, GPU603, GPU604, GPU609)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuplan.catalog.operators import (
    Keys,
    chart_keys,
    decided_environment,
    decided_values,
    lines_that_know,
    newest_read_line,
)
from gpuplan.checks.registry import check
from gpuplan.diagnostics import Finding, Label, Origin, Severity
from gpuplan.planning.dra import uses_claims
from gpuplan.planning.plan import Mig, Monitoring, Plan
from gpuplan.planning.pools import ALL_DISABLED
from gpuplan.policy.models import ClusterMigStrategy, Install, NodeLabels, Platform
from gpuplan.values import Value
from gpuplan.wording import closest, listing

Route = tuple[str, ...]


# --- Keys that the chart does not read ---------------------------------------------------------------------------


@check("GPU600", "unknown-helm-value")
def unknown_helm_value(plan: Plan) -> Iterator[Finding]:
    """A Helm value has a key that this release's chart does not read.

    ## Why
    The chart gpu-operator has no schema for its values: a misspelt key, or one of another release, is ignored without a
    word, and the cluster keeps the default. gpuplan knows the keys of several releases, those that the templates read
    although `values.yaml` does not list them included. For a release whose chart it does not know, the keys of the
    releases around it count, and the finding is a warning.

    ## Instead
    Use the key that the finding suggests, or take the value away.
    """
    operator = plan.cluster.gpu_operator
    if operator.spec.install is not Install.HELM or not operator.spec.values:
        return
    chart = chart_keys(operator.version)
    for route, known in _unknown(operator.spec.values, chart.keys, ()):
        yield Finding(
            _at(operator.at, route).key,
            f"chart gpu-operator {operator.version} reads no value `{'.'.join(route)}`",
            label=_similar(route, known, "did you mean `{}`") or "ignored without a word",
            notes=tuple(_notes_on_releases(operator.version, route, is_read=chart.is_read)),
            help=_similar(route, known, "write `{}`") or _elsewhere(route[-1], chart.keys) or "remove it",
            severity=None if chart.is_read else Severity.WARNING,
        )


def _unknown(values: Mapping[str, object], keys: Keys, route: Route) -> Iterator[tuple[Route, Keys]]:
    """Routes to the keys that are unknown, each with those known beside it."""
    for key, value in values.items():
        if key not in keys:
            yield (*route, key), keys
        else:
            below = keys[key]
            if below is not None and isinstance(value, Mapping):
                yield from _unknown(value, below, (*route, key))


def _similar(route: Route, known: Keys, phrase: str) -> str:
    """The phrase with the key beside it that was probably meant; empty where none is."""
    close = closest(route[-1], known, likeness=0.7)
    return phrase.format(".".join((*route[:-1], close))) if close else ""


def _elsewhere(key: str, keys: Keys) -> str:
    """Where else the chart has a key of this name, if not nearly everywhere."""
    places = [".".join(route) for route in _routes(keys, ()) if route[-1] == key]
    return f"write {' or '.join(f'`{place}`' for place in places)}" if 0 < len(places) <= 3 else ""


def _routes(keys: Keys, route: Route) -> Iterator[Route]:
    for key, below in keys.items():
        yield (*route, key)
        if below is not None:
            yield from _routes(below, (*route, key))


def _notes_on_releases(version: str, route: Route, *, is_read: bool) -> Iterator[str]:
    if knowing := lines_that_know(route):
        yield f"known to {listing(knowing)}"
    if not is_read:
        yield f"the chart of {version} was not read; its neighbours were, the newest is {newest_read_line()}"


# --- Values that gpuplan decides ---------------------------------------------------------------------------------


@check("GPU603", "decided-helm-value")
def decided_helm_value(plan: Plan) -> Iterator[Finding]:
    """A Helm value contradicts what follows from the policy.

    ## Why
    gpuplan writes the values that make the operator do what the plan says: its ConfigMaps, the MIG strategy, the
    driver, reboots, NFD and its taints, and the exporters where the cluster is watched. Its values win over those of
    `gpuOperator.values`, so that a contradicting one would be dropped; an environment variable such as `MIG_STRATEGY`
    would win over every pool. Editing `default-mig-parted-config` is no way out: the operator resets it.

    ## Instead
    Remove the value, and say it in the policy: in the field that the finding names, or in the pools and layouts.
    """
    if plan.cluster.gpu_operator.spec.install is not Install.HELM:
        return
    values, at = plan.cluster.gpu_operator.spec.values, plan.cluster.gpu_operator.at
    decided = _decided(plan)
    for route, field in decided_values().items():
        found = _find(values, route)
        if found is not None and found not in decided.get(route, (found,)):
            yield _contradiction(_at(at, route), ".".join(route), field)
    for (operand, variable), field in decided_environment().items():
        for index, value in _variables(values, operand, variable):
            if variable != "WITH_REBOOT" or value != _reboots(plan):
                yield _contradiction(_at(at, (operand, "env")) / index, f"{operand}.env[{variable}]", field)


def _decided(plan: Plan) -> dict[Route, tuple[object, ...]]:
    """The values that are as good as none, by route; a route that is not here may have any."""
    operator = plan.cluster.gpu_operator
    strategy = operator.spec.mig_strategy
    decided: dict[Route, tuple[object, ...]] = {
        ("mig", "strategy"): ("" if strategy is ClusterMigStrategy.PER_POOL else strategy.value,),
        ("driver", "enabled"): (operator.spec.driver.enabled,),
        ("driver", "version"): (operator.spec.driver.version or "",),
        ("platform", "openshift"): (plan.cluster.spec.platform is Platform.OPENSHIFT,),
        ("nfd", "enabled"): (operator.spec.nfd,),
        ("migManager", "config", "default"): (ALL_DISABLED,),
        ("devicePlugin", "config", "default"): ("",),
    }
    for operand in ("migManager", "devicePlugin"):
        decided |= {
            (operand, "config", "create"): (False,),
            (operand, "config", "name"): ("",),
            (operand, "config", "data"): ({},),
        }
    if uses_claims(plan):
        decided[("devicePlugin", "enabled")] = (False,)
    if plan.cluster.spec.node_labels is NodeLabels.NFD and any(pool.spec.taints for pool in plan.pools):
        decided[(_NFD_CHART, "master", "config", "enableTaints")] = (True,)
    if monitoring := plan.cluster.monitoring:
        decided |= _decided_by_monitoring(monitoring)
    return decided


def _decided_by_monitoring(monitoring: Monitoring) -> dict[Route, tuple[object, ...]]:
    return {
        ("dcgmExporter", "enabled"): (True,),
        ("dcgmExporter", "config", "create"): (False,),
        ("dcgmExporter", "config", "name"): ("",),
        ("dcgmExporter", "config", "data"): ({},),
        ("dcgmExporter", "serviceMonitor", "enabled"): (True,),
        ("dcgmExporter", "serviceMonitor", "honorLabels"): (monitoring.spec.honor_labels,),
        ("nodeStatusExporter", "enabled"): (True,),
    }


def _contradiction(at: Origin, value: str, field: str) -> Finding:
    return Finding(
        at,
        f"Helm value `{value}` contradicts the policy",
        label="gpuplan decides this one",
        notes=(f"it follows from `{field}`" if field else "it follows from the pools and their layouts",),
        help=f"remove it, and set `{field}` if that is not what you mean" if field else "remove it",
    )


def _variables(values: Mapping[str, object], operand: str, variable: str) -> Iterator[tuple[int, object]]:
    listed = _find(values, (operand, "env"))
    for index, item in enumerate(listed if isinstance(listed, list | tuple) else ()):
        if isinstance(item, Mapping) and item.get("name") == variable:
            yield index, item.get("value")


def _reboots(plan: Plan) -> str:
    return "true" if plan.cluster.gpu_operator.spec.reboot_on_mig_change else "false"


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
    elif not operator.spec.nfd and operator.spec.values.get(_NFD_CHART):
        yield Finding(
            (operator.at / "values" / _NFD_CHART).key,
            f"Helm values of `{_NFD_CHART}` have no effect with `nfd: false`",
            label="nothing reads these",
            related=(Label(operator.at / "nfd", "the chart brings no NFD"),),
            help="remove them, and configure the NFD that the cluster has",
        )


_NFD_CHART = "node-feature-discovery"

# --- Components that the plan needs ------------------------------------------------------------------------------


class _Switch(Value):
    """A value that takes away what the plan builds on."""

    route: Route
    value: bool
    consequence: str
    needs_mig: bool = False
    needs_resources: bool = False


_SWITCHES = (
    _Switch(("clusterPolicy", "deployCR"), value=False, consequence="no ClusterPolicy names the ConfigMaps"),
    _Switch(("gpuCluster", "deployCR"), value=True, consequence="a GPUCluster hands out GPUs by DRA, not as resources"),
    _Switch(
        ("devicePlugin", "enabled"),
        value=False,
        consequence="nothing publishes the pools' resources",
        needs_resources=True,
    ),
    _Switch(("migManager", "enabled"), value=False, consequence="nothing partitions the GPUs", needs_mig=True),
)


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
    has_mig = any(isinstance(pool.sharing, Mig) for pool in plan.parts)
    for switch in _SWITCHES:
        is_needed = has_mig if switch.needs_mig else not (switch.needs_resources and uses_claims(plan))
        if is_needed and _find(operator.spec.values, switch.route) is switch.value:
            yield Finding(
                _at(operator.at, switch.route),
                f"the plan cannot work with `{'.'.join(switch.route)}: {str(switch.value).lower()}`",
                label=switch.consequence,
                help="remove it",
            )


# --- Parts of all ------------------------------------------------------------------------------------------------


def _find(values: object, route: Route) -> object:
    """The value at a route; None where there is none, or null."""
    for key in route:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values


def _at(operator: Origin, route: Route) -> Origin:
    at = operator / "values"
    for key in route:
        at /= key
    return at
