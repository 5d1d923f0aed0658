"""Checks on hand-written files of the MIG manager (GPU629, GPU632, GPU633)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpuplan.compiler.base.diagnostics import Finding, Path, Severity
from gpuplan.compiler.base.plain import mapping, sequence
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.checks.formats import Problem
from gpuplan.compiler.checks.formats.faults import meant, mig_errors, profile_fault
from gpuplan.compiler.checks.formats.files import Config, broken_configs, mig_configs
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.hand_files import HandFiles


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
    route: Path, name: str, item: Mapping[str, object], gpus: Sequence[Gpu]
) -> Iterator[tuple[Problem, bool]]:
    """Profiles that no model has, and whether these are all that the item can be for."""
    profiles, filters = mapping(item.get("mig-devices")), item.get("device-filter")
    fitting = meant(filters, gpus)
    models = [gpu for gpu in fitting if gpu.profiles] if profiles else []
    known = {profile: [gpu for gpu in models if gpu.find_profile(gpu.current_name(profile))] for profile in profiles}
    likely = {id(gpu) for homes in known.values() for gpu in homes}
    for profile, homes in known.items():
        if not homes and not profile_fault(profile) and (models or not (filters or gpus)):
            near = [gpu for gpu in models if id(gpu) in likely] or models
            yield (
                Problem(
                    (*route, profile),
                    f"entry `{name}` wants `{profile}`, which no {_which(models, is_given=bool(filters or gpus))} has",
                    "no such profile",
                    _nearest(profile, near),
                ),
                bool(filters or gpus) and all(gpu.is_complete for gpu in fitting),
            )


def _which(models: Sequence[Gpu], *, is_given: bool) -> str:
    return models[0].id if is_given and len(models) == 1 else "GPU of the catalog"


def _nearest(profile: str, models: Sequence[Gpu]) -> str:
    """What has as many compute slices, on models that have the entry's other profiles if some do."""
    by_name: dict[str, list[str]] = {}
    for gpu in models:
        for near in gpu.similar_profiles(profile)[:1]:
            by_name.setdefault(near.name, []).append(gpu.id)
    named = [f"`{name}` ({', '.join(ids)})" for name, ids in by_name.items()]
    return f"write {joined(named[:3], 'or')}" if named else "`gpuplan catalog` with a model's name lists its profiles"


@check("GPU633", "mig-config-incomplete")
def mig_config_incomplete(files: HandFiles) -> Iterator[Finding]:
    """A hand-written file of the MIG manager lacks what every cluster needs of it.

    ## Why
    The operator labels new nodes `all-disabled`; without that entry they end in the state `failed`. The MIG manager
    reads the key `config.yaml` of its ConfigMap, and no other.

    ## Instead
    Write a MigLayout: the generated file has the key and the entry. By hand, add `all-disabled` with `devices: all` and
    `mig-enabled: false`.
    """
    for config in mig_configs(files):
        yield from config.findings(_mig_gaps(config), "this file replaces the one that the MIG manager makes itself")


def _mig_gaps(config: Config) -> Iterator[Problem]:
    if "all-disabled" not in mapping(config.body.get("mig-configs")):
        message, help_ = "entry `all-disabled` is missing", "add `all-disabled: [{devices: all, mig-enabled: false}]`"
        yield Problem(("mig-configs",), message, "the operator labels new nodes with it", help_)
    if config.key not in ("", "config.yaml"):
        yield Problem((), "the MIG manager does not read this key", "not `config.yaml`", "name the key `config.yaml`")
