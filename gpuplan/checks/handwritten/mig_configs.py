"""Checks on hand-written files of the MIG manager (GPU629, GPU632, GPU633)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpuplan.catalog import Gpu, load, parse_profile
from gpuplan.checks.handwritten.config_files import Config, broken_configs, mig_configs
from gpuplan.checks.handwritten.formats import Problem, find_problems
from gpuplan.checks.handwritten.reading import HandFiles, mapping, sequence
from gpuplan.checks.mig import MOST_GPUS
from gpuplan.checks.registry import check
from gpuplan.checks.wording import gpu_numbers
from gpuplan.diagnostics import Finding, Path, Severity
from gpuplan.patterns import regex
from gpuplan.planning.placement.layouts import nearest_layouts
from gpuplan.planning.placement.placing import fits
from gpuplan.wording import joined

LABEL_VALUE = regex(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")


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


def mig_errors(body: Mapping[str, object], gpus: Sequence[Gpu]) -> Iterator[Problem]:
    yield from find_problems("mig-parted", body)
    for name, entry in mapping(body.get("mig-configs")).items():
        route, items = ("mig-configs", name), [mapping(item) for item in sequence(entry)]
        if not LABEL_VALUE.fullmatch(name):
            message = f"entry `{name}` cannot be the value of a node label"
            yield Problem(
                route, message, "nodes choose it by label", f"write `{re.sub(r'[^-_.A-Za-z0-9]', '.', name)}`"
            )
        for index, item in enumerate(items):
            yield from _instance_errors((*route, index), name, item, gpus)
        yield from _mode_conflicts(route, name, items)
        yield from _gap(route, name, [item.get("devices") for item in items])


def _mode_conflicts(route: Path, name: str, items: list[Mapping[str, object]]) -> Iterator[Problem]:
    """Items for the same GPUs, on any board, that disagree on whether MIG is on: mig-parted fails on those GPUs."""
    for index, item in enumerate(items):
        for earlier in items[:index]:
            is_for_all_boards = "device-filter" not in item and "device-filter" not in earlier
            differ = (item.get("mig-enabled"), earlier.get("mig-enabled")) in ((True, False), (False, True))
            if is_for_all_boards and differ and _share_gpus(item.get("devices"), earlier.get("devices")):
                message = f"entry `{name}` switches MIG on and off for the same GPU"
                yield Problem((*route, index, "devices"), message, "named before", "name each GPU once")
                return


def _share_gpus(one: object, other: object) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return any(index in other for index in one)
    return "all" in (one, other) and bool(one) and bool(other)


def _gap(route: Path, name: str, devices: Sequence[object]) -> Iterator[Problem]:
    """GPUs that an entry leaves out: a node that has the highest of those it names has them all."""
    indexes = {index for part in devices for index in sequence(part) if type(index) is int}
    missing = [index for index in range(min(max(indexes, default=0), MOST_GPUS)) if index not in indexes]
    if missing and all(isinstance(part, list) for part in devices):
        yield Problem(
            route,
            f"entry `{name}` says nothing about {gpu_numbers(missing)}",
            "never reported as a success",
            f"add `{{devices: {missing}, mig-enabled: false}}` to leave {'them' if missing[1:] else 'it'} whole",
        )


def _instance_errors(route: Path, name: str, item: Mapping[str, object], gpus: Sequence[Gpu]) -> Iterator[Problem]:
    instances, is_enabled = mapping(item.get("mig-devices")), item.get("mig-enabled") is True
    place = (*route, "mig-devices")
    if is_enabled and item.get("mig-devices") is None:
        yield Problem(
            place, f"entry `{name}` has no `mig-devices`", "needed with MIG", "write `mig-devices: {}` for none"
        )
    if instances and not is_enabled:
        message = f"entry `{name}` has instances on GPUs without MIG"
        yield Problem(place, message, "not with `mig-enabled: false`", "write `mig-enabled: true`")
    if instances and not any(instances.values()):
        message = f"entry `{name}` has instances, and all counts are 0"
        yield Problem(place, message, "cannot be read", "write `mig-devices: {}` for none")
    for profile, count in instances.items():
        if count is None or (count == 0 and count is not False):
            message = f"entry `{name}` wants {count} of `{profile}`, which never becomes true"
            yield Problem((*place, profile), message, "1 or more", "leave the profile out")
        if fault := _profile_fault(profile):
            yield Problem((*place, profile), f"entry `{name}` has `{profile}`, {fault[0]}", fault[1], fault[2])
    counts = {profile: count for profile, count in instances.items() if isinstance(count, int) and count > 0}
    models = _meant(item.get("device-filter"), gpus) if is_enabled and len(counts) == len(instances) else []
    if _fits_nowhere(counts, models):
        which = models[0].id if len(models) == 1 else "GPU"
        message = f"no {which} can have what entry `{name}` asks for: {_spell(counts)}"
        label = "fits on no model" if which == "GPU" else f"does not fit on {which}"
        yield Problem(place, message, label, _nearest_layout(counts, models))


def _profile_fault(profile: str) -> tuple[str, str, str] | None:
    """What is wrong with a profile's name, in short, and what to do."""
    parsed = parse_profile(profile)
    if parsed is None:
        return "which is no MIG profile", "the file cannot be read", "write it as `nvidia-smi mig -lgip` prints it"
    if parsed.is_compute_instance:
        return "a compute instance", "the device plugin exits when it finds one", f"write `{parsed.gpu_instance}`"
    if parsed.is_long_spelling:
        return f"reported back as `{parsed.gpu_instance}`", "never compares equal", f"write `{parsed.gpu_instance}`"
    return None


def _fits_nowhere(counts: Mapping[str, int], models: Sequence[Gpu]) -> bool:
    """Whether some model has all these profiles, now or under earlier drivers, and none of them can be divided so."""
    renamed = [(gpu, {gpu.current_name(name): counts[name] for name in counts}) for gpu in models]
    able = [(gpu, wanted) for gpu, wanted in renamed if all(gpu.find_profile(name) for name in wanted)]
    return bool(counts and able) and not any(fits(gpu, wanted) for gpu, wanted in able)


def _nearest_layout(counts: Mapping[str, int], models: Sequence[Gpu]) -> str:
    """What the one model can have that has all these profiles; several have different ones."""
    named = [(gpu, {gpu.current_name(name): number for name, number in counts.items()}) for gpu in models]
    able = [(gpu, wanted) for gpu, wanted in named if all(gpu.find_profile(name) for name in wanted)]
    if len(able) != 1:
        return "`gpuplan check FILE --gpu MODEL` names the nearest that fit on a board"
    [(gpu, wanted)] = able
    return f"nearest that fit: {joined([_spell(layout) for layout in nearest_layouts(gpu, wanted)], 'or')}"


def _meant(filters: object, gpus: Sequence[Gpu]) -> list[Gpu]:
    """The models that an item is for: of those that are given, or of all.

    A filter that is none is reported for itself, and says nothing of them.

    It parses the whole catalog, so it is for hand-written files alone.
    """
    texts = [item.lower() for item in (filters if isinstance(filters, list) else [filters]) if isinstance(item, str)]
    given = {item.partition(":")[0] for item in texts if _FILTER.match(item)}
    return [gpu for gpu in gpus or load().all() if not given or given & {device.filter.lower() for device in gpu.pci}]


_FILTER = regex(r"0x[0-9a-f]{8}(?::|$)")


def _spell(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count}x `{name}`" for name, count in counts.items())


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
    meant = _meant(filters, gpus)
    models = [gpu for gpu in meant if gpu.profiles] if profiles else []
    known = {profile: [gpu for gpu in models if gpu.find_profile(gpu.current_name(profile))] for profile in profiles}
    likely = {id(gpu) for homes in known.values() for gpu in homes}
    for profile, homes in known.items():
        if not homes and not _profile_fault(profile) and (models or not (filters or gpus)):
            near = [gpu for gpu in models if id(gpu) in likely] or models
            yield (
                Problem(
                    (*route, profile),
                    f"entry `{name}` wants `{profile}`, which no {_which(models, is_given=bool(filters or gpus))} has",
                    "no such profile",
                    _nearest(profile, near),
                ),
                bool(filters or gpus) and all(gpu.is_complete for gpu in meant),
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
