"""Checks on hand-written files of the device plugin (GPU630, GPU631)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuplan.checks.handwritten.config_files import broken_configs, plugin_configs
from gpuplan.checks.handwritten.formats import Problem, find_problems
from gpuplan.checks.handwritten.reading import HandFiles, mapping, sequence, text, value_at
from gpuplan.checks.registry import check
from gpuplan.diagnostics import Finding, Severity
from gpuplan.patterns import regex
from gpuplan.policy.models import ClusterMigStrategy


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
        opening = _IN_CLUSTER if files.plan is not None else 'leave `mig.strategy` empty, in values as `""`'
        problems = plugin_errors(config.body, strategy, opening)
        yield from config.findings(problems, fact)
    yield from broken_configs(files, are_plugins=True, fact=fact)


_IN_CLUSTER = "write `gpuOperator.migStrategy: perPool` in the Cluster"


def plugin_errors(
    body: Mapping[str, object], overriding: ClusterMigStrategy, opening: str = _IN_CLUSTER
) -> Iterator[Problem]:
    """What the device plugin refuses; the file's own strategy counts where the cluster leaves it to each pool.

    ``opening`` is how it comes to do so.
    """
    yield from find_problems("device-plugin", body)
    own = value_at(body, ("flags", "migStrategy"))
    is_own = overriding is ClusterMigStrategy.PER_POOL
    if is_own and isinstance(own, str) and own not in ("none", "single", "mixed"):
        message = f"the device plugin knows no MIG strategy `{own}`"
        yield Problem(("flags", "migStrategy"), message, "unknown", "write `none`, `single` or `mixed`")
    has_mps = value_at(body, ("sharing", "mps")) is not None
    if has_mps and (own if is_own else overriding) == ClusterMigStrategy.MIXED:
        message = "the device plugin refuses MPS with the MIG strategy `mixed`"
        if is_own:
            yield Problem(("flags", "migStrategy"), message, "not with MPS", "write `migStrategy: none`")
        else:
            help_ = f"use `timeSlicing`, or {opening}"
            yield Problem(("sharing", "mps"), message, "the cluster's strategy is `mixed`", help_)


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


def unmatched_names(body: Mapping[str, object], overriding: ClusterMigStrategy) -> Iterator[Problem]:
    """Devices that are to be shared by a name that none has, or has only under another strategy."""
    own = text(value_at(body, ("flags", "migStrategy"))) or ClusterMigStrategy.NONE.value
    strategy = own if overriding is ClusterMigStrategy.PER_POOL else overriding.value
    for method in ("timeSlicing", "mps"):
        for index, resource in enumerate(sequence(value_at(body, ("sharing", method, "resources")))):
            name = mapping(resource).get("name")
            fault = _unmatched_name(name, strategy) if isinstance(name, str) else None
            if fault:
                yield Problem(("sharing", method, "resources", index, "name"), fault[0], "matches nothing", fault[1])


def _unmatched_name(name: str, strategy: str) -> tuple[str, str] | None:
    """What is wrong with the name of a resource, and what to do."""
    bare = name.removeprefix("nvidia.com/")
    if bare != "gpu" and not _MIG_DEVICE.fullmatch(bare):
        return f"`{name}` is not shared: no device has this name", "write `nvidia.com/gpu`"
    if bare == "gpu" or strategy == ClusterMigStrategy.MIXED:
        return None
    message = f"`{name}` is not shared: under the MIG strategy `{strategy}` no device has this name"
    if strategy == ClusterMigStrategy.SINGLE:
        return message, "write `nvidia.com/gpu`"
    return message, "write `flags: {migStrategy: mixed}` in the file"


_MIG_DEVICE = regex(r"mig-[0-9]+g\.[0-9]+gb(?:[-.].+)?")
