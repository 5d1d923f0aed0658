"""Values of the GPU Operator's chart, without a platform."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpuplan.compiler.base.diagnostics import Finding, Label
from gpuplan.compiler.base.plain import mapping, sequence, text
from gpuplan.compiler.catalog.operators import parse_version
from gpuplan.compiler.checks import helm_values, operator_settings
from gpuplan.compiler.checks.registry import same_rule
from gpuplan.compiler.checks.wording import in_yaml
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


def _taken_away(setting: Settings, operand: str) -> Iterator[Finding]:
    """Find settings by which an operand runs on no node, though it is on.

    Without GPU feature discovery no node has `nvidia.com/mig.capable`, for which `hasMIGCapableGPU` in
    `controllers/state_manager.go` of NVIDIA/gpu-operator v26.7.0 looks. Nodes without the label
    `nvidia.com/gpu.workload.config` get the workload that is the default (`gpuStateLabels` there).
    """
    if operand == MIG_MANAGER and setting.value("gfd", "enabled") is False:
        yield Finding(
            setting.place("gfd", "enabled"),
            f"`gfd.enabled: false` in {setting.title} leaves all nodes without the label `nvidia.com/mig.capable`",
            label="the MIG manager runs on none",
            help="remove it",
        )
    workload = text(setting.value("sandboxWorkloads", "defaultWorkload"))
    if setting.value("sandboxWorkloads", "enabled") is True and workload.startswith("vm-"):
        yield Finding(
            setting.place("sandboxWorkloads", "defaultWorkload"),
            f"`sandboxWorkloads.defaultWorkload: {workload}` in {setting.title} takes nodes from `{operand}`",
            label="nodes without a label are for virtual machines",
            notes=("containers get GPUs on nodes alone with `nvidia.com/gpu.workload.config: container`",),
            help="write `defaultWorkload: container`, and label the nodes for virtual machines",
        )


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
