"""Values of the GPU Operator's chart, without a platform."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpuplan.compiler.base.diagnostics import Finding, Label
from gpuplan.compiler.base.plain import mapping, parts, sequence, text
from gpuplan.compiler.catalog.operators import parse_version
from gpuplan.compiler.checks import helm_values, operator_settings
from gpuplan.compiler.checks.registry import same_rule
from gpuplan.compiler.checks.wording import in_yaml
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, MIG_RESOURCES, is_of_discovery
from gpuplan.compiler.planning.gpu_operator import FOR_CONTAINERS, WORKLOAD_LABEL, default_workload
from gpuplan.compiler.planning.hand_files import DEVICE_PLUGIN, MIG_MANAGER, HandFiles, Settings

_NFD_CHART = "node-feature-discovery"


@same_rule(helm_values.unknown_helm_value)
def unknown_value(files: HandFiles) -> Iterator[Finding]:
    """Keys that the release's chart does not read; any release's count where none is named."""
    for found in files.settings:
        if found.of is None:
            release = found.release if parse_version(found.release) else ""
            for route, finding in helm_values.unread_values(found.spec, release):
                at = found.place(*route)
                yield finding(at if found.is_inline else at.key)


@same_rule(helm_values.unused_helm_values)
def unused_values(files: HandFiles) -> Iterator[Finding]:
    """Values for an NFD that the chart does not bring."""
    for found in files.settings:
        if found.of is None and found.value("nfd", "enabled") is False and found.value(_NFD_CHART):
            at = found.place(_NFD_CHART)
            yield Finding(
                at if found.is_inline else at.key,
                f"Helm values of `{_NFD_CHART}` have no effect with `nfd.enabled: false`",
                label="nothing reads these",
                related=() if found.is_inline else (Label(found.place("nfd", "enabled"), "the chart brings no NFD"),),
                help="remove them, and configure the NFD that the cluster has",
            )


@same_rule(helm_values.component_switched_off)
def component_off(files: HandFiles) -> Iterator[Finding]:
    """Operands that are off, and have a file to read."""
    for found in files.settings:
        for operand, consequence in (
            (DEVICE_PLUGIN, "nothing publishes the resources"),
            (MIG_MANAGER, "nothing partitions the GPUs"),
        ):
            named = () if found.is_inline else (Label(found.place(operand, "config", "name"), "read by nobody"),)
            if found.value(operand, "enabled") is False and found.config_name(operand):
                yield Finding(
                    found.place(operand, "enabled"),
                    f"`{operand}.enabled: false` in {found.title}, which names a configuration for it",
                    label=consequence,
                    related=named,
                    help="remove it, or `config`",
                )
            elif found.config_name(operand):
                yield from (replace(item, related=named) for item in _taken_away(found, operand))
        if not any(map(found.config_name, (DEVICE_PLUGIN, MIG_MANAGER))) and _wants_gpus(files):
            yield from _given_away(found, "the device plugin")
        named_by = next(_by_board(files), None) if not found.config_name(MIG_MANAGER) else None
        if named_by is not None and found.value("gfd", "enabled") is False:
            yield _undiscovered(found, "labels of their boards", f"{named_by} selects nodes by such labels")


def _taken_away(setting: Settings, operand: str) -> Iterator[Finding]:
    """Find settings by which an operand runs on no node, though it is on.

    Without GPU feature discovery no node has `nvidia.com/mig.capable`, for which `hasMIGCapableGPU` in
    `controllers/state_manager.go` of NVIDIA/gpu-operator v26.7.0 looks.
    """
    if operand == MIG_MANAGER and setting.value("gfd", "enabled") is False:
        yield _undiscovered(setting, "the label `nvidia.com/mig.capable`", "the MIG manager runs on none")
    yield from _given_away(setting, f"`{operand}`")


def _undiscovered(setting: Settings, lacking: str, label: str) -> Finding:
    return Finding(
        setting.place("gfd", "enabled"),
        f"`gfd.enabled: false` in {setting.title} leaves all nodes without {lacking}",
        label=label,
        help="remove it",
    )


def _given_away(setting: Settings, operand: str) -> Iterator[Finding]:
    """Find settings that give nodes without a label to virtual machines."""
    if (workload := default_workload(setting.spec)) != FOR_CONTAINERS:
        yield Finding(
            setting.place("sandboxWorkloads", "defaultWorkload"),
            f"`sandboxWorkloads.defaultWorkload: {workload}` in {setting.title} takes nodes from {operand}",
            label="nodes without a label are for virtual machines",
            notes=(f"containers get GPUs on nodes alone with `{WORKLOAD_LABEL}: {FOR_CONTAINERS}`",),
            help="write `defaultWorkload: container`, and label the nodes for virtual machines",
        )


def _wants_gpus(files: HandFiles) -> bool:
    """Whether containers ask for GPUs, and nothing says that nodes have the label for containers."""
    found = [
        part for item in files.objects if item.kind != "Node" for route, part in parts(item.body) if "limits" in route
    ]
    are_labelled = any(
        mapping(part).get(WORKLOAD_LABEL) == FOR_CONTAINERS for item in files.objects for _, part in parts(item.body)
    )
    asked = {key for part in found for key in mapping(part)}
    return not are_labelled and any(key == GPU_RESOURCE or key.startswith(MIG_RESOURCES) for key in asked)


def _by_board(files: HandFiles) -> Iterator[str]:
    """Yield the titles of objects that select nodes by labels of GPU feature discovery, if none other of it runs."""
    if any(item.kind == "DaemonSet" and "gpu-feature-discovery" in item.name for item in files.objects):
        return
    for item in files.objects:
        for route, part in parts(item.body):
            keys = [*mapping(part)] if route[-1:] in (("nodeSelector",), ("nodeLabels",)) else ()
            terms = (text(mapping(part).get("key")),) if "matchExpressions" in route else ()
            if any(map(is_of_discovery, map(str, (*keys, *terms)))):
                yield item.title


@same_rule(operator_settings.operand_variable_unusable)
def variable_unusable(files: HandFiles) -> Iterator[Finding]:
    """Variables with which the API server refuses the ClusterPolicy: by their names, or by values that are no text."""
    for found in files.settings:
        for operand, block in found.spec.items():
            for index, variable in enumerate(sequence(mapping(block).get("env"))):
                name = text(mapping(variable).get("name"))
                if name and not operator_settings.is_variable(name):
                    at = found.place(operand, "env", index, "name")
                    yield operator_settings.unusable_name(at, name)
                value = mapping(variable).get("value")
                if found.of is None and value is not None and not isinstance(value, str):
                    at = found.place(operand, "env", index, "value")
                    yield Finding(
                        at,
                        f"the value of `{name}` in {found.title} is no text",
                        label="the API server refuses the ClusterPolicy",
                        notes=("the chart copies it as it is; `--set-string` makes text of it, and `--set` does not",),
                        help=f'write `"{in_yaml(value)}"`',
                    )
