"""Checks on hand-written files of the device plugin (GPU630, GPU631)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.diagnostics import Finding, Severity
from gpuplan.compiler.checks.formats import find_problems
from gpuplan.compiler.checks.formats.faults import IN_CLUSTER, plugin_errors, unmatched_names
from gpuplan.compiler.checks.formats.files import broken_configs, plugin_configs
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.hand_files import HandFiles


@check("GPU630", "device-plugin-config-refused")
def device_plugin_config_refused(files: HandFiles) -> Iterator[Finding]:
    """A hand-written configuration of the device plugin is one that it cannot read.

    ## Why
    The plugin checks its file when it starts (`api/config/v1` of NVIDIA/k8s-device-plugin). With a file that it refuses
    it exits, and the nodes that select the entry hand out no GPUs at all. A common one is `replicas: 0` or `1` to
    switch sharing off.

    ## Instead
    Describe the pool in the policy. Where an entry must be written by hand, switch sharing off by leaving `sharing`
    out.
    """
    fact = "nodes with this entry hand out no GPUs"
    for config, strategy in plugin_configs(files):
        opening = IN_CLUSTER if files.plan is not None else 'leave `mig.strategy` empty, in values as `""`'
        problems = plugin_errors(config.body, strategy, opening)
        yield from config.findings(problems, fact)
    yield from broken_configs(files, are_plugins=True, fact=fact)


@check("GPU631", "device-plugin-config-ignored", Severity.WARNING)
def device_plugin_config_ignored(files: HandFiles) -> Iterator[Finding]:
    """A hand-written configuration of the device plugin has fields that it ignores.

    ## Why
    `rename`, `devices` and the top-level `resources` are parsed and dropped with a line in the log; keys in the wrong
    place are dropped without one. Where `timeSlicing` and `mps` stand side by side, MPS wins. A resource that the node
    does not have is skipped (`internal/rm/device_map.go`): `nvidia.com/mps` on every node, MIG devices such as
    `nvidia.com/mig-1g.10gb` under any strategy but `mixed`. The nodes then publish other resources than the file says.

    ## Instead
    `renameByDefault` and `failRequestsGreaterThanOne` belong right under `timeSlicing` or `mps`. Sharing is the same
    for all GPUs of a node: GPUs to be shared in another way need another pool.
    """
    for config, strategy in plugin_configs(files):
        refused = {problem.route for problem in find_problems("device-plugin", config.body)}
        ignored = (*find_problems("device-plugin-ignored", config.body), *unmatched_names(config.body, strategy))
        problems = (item for item in ignored if item.route not in refused)
        yield from config.findings(problems, "the device plugin starts without it")
