"""Checks on hand-written files of the device plugin and of the MIG manager (GPU629-633)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpuplan.compiler.base.diagnostics import Finding, Path, Severity
from gpuplan.compiler.base.plain import grouped, mapping, sequence
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.checks.formats import Problem, find_problems
from gpuplan.compiler.checks.formats.faults import (
    IN_CLUSTER,
    meant,
    mig_errors,
    plugin_errors,
    profile_fault,
    unmatched_names,
)
from gpuplan.compiler.checks.formats.files import broken_configs, mig_configs, plugin_configs
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


# --- The MIG manager -------------------------------------------------------------------------------------------------


@check("GPU632", "mig-config-refused")
def mig_config_refused(files: HandFiles) -> Iterator[Finding]:
    """A hand-written file of the MIG manager is one that it cannot read or cannot fulfil.

    ## Why
    The file is parsed as a whole (`api/spec/v1` of NVIDIA/mig-parted): one bad entry fails every node of the cluster.
    What is not refused can be worse: a malformed filter matches no GPU, and a count of 0, or a GPU about which the
    entry says nothing, never becomes true (`cmd/nvidia-mig-parted/assert`), so that the node is repartitioned at each
    start.

    ## Instead
    Write a MigLayout: gpuplan writes the file, and proves that the instances fit.
    """
    fact = "one bad entry fails the file, and with it all nodes"
    for config in mig_configs(files):
        yield from config.findings(mig_errors(config.body, files.gpus), fact)
    yield from broken_configs(files, are_plugins=False, fact=fact)


@check("GPU629", "profile-of-no-gpu", Severity.WARNING)
def profile_of_no_gpu(files: HandFiles) -> Iterator[Finding]:
    """A hand-written file of the MIG manager names a profile that no GPU of the catalog has.

    ## Why
    mig-parted looks for the profile on the node's own board and fails with `MIG profile not found on this GPU`; the
    node keeps its old partitions. `4g.80gb` is spelt like a profile, and is none of any board. Where the entry's
    `device-filter` names boards that the catalog knows, it is an error; else there may be a newer board.

    ## Instead
    Use a profile that the finding names. `gpuplan catalog` with a model's name lists all that it has.
    """
    fact = "mig-parted fails on each GPU that does not have it: `MIG profile not found on this GPU`"
    for config in mig_configs(files):
        for name, entry in mapping(config.body.get("mig-configs")).items():
            for index, item in enumerate(sequence(entry)):
                route = ("mig-configs", name, index, "mig-devices")
                for problem, is_sure in _unknown_profiles(route, name, mapping(item), files.gpus):
                    severity = Severity.ERROR if is_sure else None
                    yield from (replace(found, severity=severity) for found in config.findings((problem,), fact))


def _unknown_profiles(
    route: Path, name: str, part: Mapping[str, object], gpus: Sequence[Gpu]
) -> Iterator[tuple[Problem, bool]]:
    """Profiles that no model has, and whether these are all that the part can be for."""
    profiles, filters = mapping(part.get("mig-devices")), part.get("device-filter")
    fitting = meant(filters, gpus)
    models = [gpu for gpu in fitting if gpu.profiles] if profiles else []
    known = {profile: [gpu for gpu in models if gpu.find_profile(gpu.current_name(profile))] for profile in profiles}
    which = models[0].id if (filters or gpus) and len(models) == 1 else "GPU of the catalog"
    likely = {id(gpu) for homes in known.values() for gpu in homes}
    # Of boards whose placements nobody published, the profiles are known by name.
    named = " ".join(note for gpu in fitting if not gpu.is_complete for note in gpu.notes).replace(",", " ").split()
    for profile, homes in known.items():
        if not homes and profile not in named and not profile_fault(profile) and (models or not (filters or gpus)):
            near = [gpu for gpu in models if id(gpu) in likely] or models
            yield (
                Problem(
                    (*route, profile),
                    f"entry `{name}` wants `{profile}`, which no {which} has",
                    "no such profile",
                    _nearest(profile, near),
                ),
                bool(filters or gpus) and all(gpu.is_complete for gpu in fitting),
            )


def _nearest(profile: str, models: Sequence[Gpu]) -> str:
    """Return a hint to profiles with as many compute slices. Models with the entry's other profiles come first."""
    by_name = grouped((near.name, gpu.id) for gpu in models for near in gpu.similar_profiles(profile)[:1])
    named = [f"`{name}` ({', '.join(ids)})" for name, ids in by_name.items()]
    return f"write {joined(named[:3], 'or')}" if named else "`gpuplan catalog` with a model's name lists its profiles"


@check("GPU633", "mig-config-incomplete")
def mig_config_incomplete(files: HandFiles) -> Iterator[Finding]:
    """A hand-written file of the MIG manager lacks what every cluster needs of it.

    ## Why
    The operator labels new nodes `all-disabled`; without that entry they end in the state `failed`. The MIG manager
    reads the key `config.yaml` of its ConfigMap, and no other. A file that is in no ConfigMap may be one that
    `nvidia-mig-parted apply` reads, which needs no such entry: there it is a note.

    ## Instead
    Write a MigLayout: the generated file has the key and the entry. By hand, add `all-disabled` with `devices: all` and
    `mig-enabled: false`.
    """
    for config in mig_configs(files):
        gaps: list[Problem] = []
        is_operators = bool(config.config_map or config.key or files.plan or files.settings)
        if "all-disabled" not in mapping(config.body.get("mig-configs")):
            missing, add = "entry `all-disabled` is missing", "`all-disabled: [{devices: all, mig-enabled: false}]`"
            gaps.append(Problem(("mig-configs",), missing, "the operator labels new nodes with it", f"add {add}"))
        if config.key not in ("", "config.yaml"):
            unread = "the MIG manager does not read this key"
            gaps.append(Problem((), unread, "not `config.yaml`", "name the key `config.yaml`"))
        for found in config.findings(gaps, "this file replaces the one that the MIG manager makes itself"):
            yield found if is_operators else replace(found, severity=Severity.NOTE, notes=(_IF_OPERATORS,))


_IF_OPERATORS = "it matters where the GPU Operator reads the file, and not to `nvidia-mig-parted apply`"
