"""Faults of files for the device plugin and the MIG manager: what they refuse, ignore or cannot fulfil."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping, sequence, text, value_at
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.catalog import Gpu, load, parse_profile
from gpuplan.compiler.checks.formats import Problem, find_problems
from gpuplan.compiler.checks.mig import MOST_GPUS
from gpuplan.compiler.checks.wording import gpu_numbers
from gpuplan.compiler.planning.placement.layouts import nearest_layouts
from gpuplan.compiler.planning.placement.placing import fits
from gpuplan.compiler.policy.models import ClusterMigStrategy

IN_CLUSTER = "write `gpuOperator.migStrategy: perPool` in the Cluster"


def plugin_errors(
    body: Mapping[str, object], overriding: ClusterMigStrategy, opening: str = IN_CLUSTER
) -> Iterator[Problem]:
    """Yield what the device plugin refuses. The file's own strategy counts if the cluster leaves it to each pool.

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


def unmatched_names(body: Mapping[str, object], overriding: ClusterMigStrategy) -> Iterator[Problem]:
    """Yield names of devices to share that no device has, or has only under another strategy."""
    own = text(value_at(body, ("flags", "migStrategy"))) or ClusterMigStrategy.NONE.value
    strategy = own if overriding is ClusterMigStrategy.PER_POOL else overriding.value
    for method in ("timeSlicing", "mps"):
        for index, resource in enumerate(sequence(value_at(body, ("sharing", method, "resources")))):
            name = mapping(resource).get("name")
            fault = _unmatched_name(name, strategy) if isinstance(name, str) else None
            if fault:
                yield Problem(("sharing", method, "resources", index, "name"), fault[0], "matches nothing", fault[1])


def _unmatched_name(name: str, strategy: str) -> tuple[str, str] | None:
    """Return what is wrong with the name of a resource, and what to do."""
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


LABEL_VALUE = regex(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")


def mig_errors(body: Mapping[str, object], gpus: Sequence[Gpu]) -> Iterator[Problem]:
    """Yield what the MIG manager refuses, or never reports as a success, for nodes with one of these models."""
    yield from find_problems("mig-parted", body)
    for name, entry in mapping(body.get("mig-configs")).items():
        route, parts = ("mig-configs", name), [mapping(part) for part in sequence(entry)]
        if not LABEL_VALUE.fullmatch(name):
            better = re.sub(r"[^-_.A-Za-z0-9]", ".", name)
            message = f"entry `{name}` cannot be the value of a node label"
            yield Problem(route, message, "nodes choose it by label", f"write `{better}`")
        for index, part in enumerate(parts):
            yield from _instance_errors((*route, index), name, part, gpus)
        yield from islice(_mode_conflicts(route, name, parts), 1)
        devices = [part.get("devices") for part in parts]
        indexes = {index for listed in devices for index in sequence(listed) if type(index) is int}
        # A node that has the highest of these GPUs has them all.
        missing = [index for index in range(min(max(indexes, default=0), MOST_GPUS)) if index not in indexes]
        if missing and all(isinstance(listed, list) for listed in devices):
            whole = "them whole" if missing[1:] else "it whole"
            instead = f"add `{{devices: {missing}, mig-enabled: false}}` to leave {whole}"
            message = f"entry `{name}` says nothing about {gpu_numbers(missing)}"
            yield Problem(route, message, "never reported as a success", instead)


def _mode_conflicts(route: Path, name: str, parts: Sequence[Mapping[str, object]]) -> Iterator[Problem]:
    """Yield parts that switch MIG on or off against an earlier part for the same GPUs, on which mig-parted fails."""
    for index, part in enumerate(parts):
        for earlier in parts[:index]:
            is_for_all_boards = "device-filter" not in part and "device-filter" not in earlier
            differ = (part.get("mig-enabled"), earlier.get("mig-enabled")) in ((True, False), (False, True))
            one, other = part.get("devices"), earlier.get("devices")
            if isinstance(one, list) and isinstance(other, list):
                share_gpus = any(gpu in other for gpu in one)
            else:
                share_gpus = "all" in (one, other) and bool(one) and bool(other)
            if is_for_all_boards and differ and share_gpus:
                message = f"entry `{name}` switches MIG on and off for the same GPU"
                yield Problem((*route, index, "devices"), message, "named before", "name each GPU once")


def _instance_errors(route: Path, name: str, part: Mapping[str, object], gpus: Sequence[Gpu]) -> Iterator[Problem]:
    instances, is_enabled = mapping(part.get("mig-devices")), part.get("mig-enabled") is True
    place, for_none = (*route, "mig-devices"), "write `mig-devices: {}` for none"
    if is_enabled and part.get("mig-devices") is None:
        yield Problem(place, f"entry `{name}` has no `mig-devices`", "needed with MIG", for_none)
    if instances and not is_enabled:
        message = f"entry `{name}` has instances on GPUs without MIG"
        yield Problem(place, message, "not with `mig-enabled: false`", _EITHER)
    if instances and not any(instances.values()):
        yield Problem(place, f"entry `{name}` has instances, and all counts are 0", "cannot be read", for_none)
    for profile, count in instances.items():
        if count is None or (count == 0 and count is not False):
            message = f"entry `{name}` wants {count} of `{profile}`, which never becomes true"
            yield Problem((*place, profile), message, "1 or more", "leave the profile out")
        if fault := profile_fault(profile):
            yield Problem((*place, profile), f"entry `{name}` has `{profile}`, {fault[0]}", fault[1], fault[2])
    counts = {profile: count for profile, count in instances.items() if isinstance(count, int) and count > 0}
    models = meant(part.get("device-filter"), gpus) if is_enabled and len(counts) == len(instances) else []
    # Profiles may have other names under earlier drivers. A model that lacks one of them is not meant.
    renamed = [(gpu, {gpu.current_name(profile): counts[profile] for profile in counts}) for gpu in models]
    able = [(gpu, wanted) for gpu, wanted in renamed if all(gpu.find_profile(profile) for profile in wanted)]
    if counts and able and not any(fits(gpu, wanted) for gpu, wanted in able):
        which = models[0].id if len(models) == 1 else "GPU"
        nearest = [_spell(layout) for gpu, wanted in able if len(able) == 1 for layout in nearest_layouts(gpu, wanted)]
        yield Problem(
            place,
            f"no {which} can have what entry `{name}` asks for: {_spell(counts)}",
            "fits on no model" if which == "GPU" else f"does not fit on {which}",
            f"nearest that fit: {joined(nearest, 'or')}"
            if len(able) == 1
            else "`gpuplan check FILE --gpu MODEL` names the nearest that fit on a board",
        )


_EITHER = "remove `mig-devices`, or write `mig-enabled: true`"


def profile_fault(profile: str) -> tuple[str, str, str] | None:
    """Return what is wrong with a profile's name, in short, and what to do."""
    parsed = parse_profile(profile)
    if parsed is None:
        return "which is no MIG profile", "the file cannot be read", "write it as `nvidia-smi mig -lgip` prints it"
    if parsed.is_compute_instance:
        return (
            "a compute instance",
            "the device plugin exits when it finds one",
            f"write `{parsed.gpu_instance}`, which is the whole",
        )
    if parsed.is_long_spelling:
        return f"reported back as `{parsed.gpu_instance}`", "never compares equal", f"write `{parsed.gpu_instance}`"
    return None


def meant(filters: object, gpus: Sequence[Gpu]) -> list[Gpu]:
    """Return the models that a part of an entry is for, of those that are given or of all.

    A filter that is none is reported for itself. This parses the whole catalog, for hand-written files alone.
    """
    texts = [text.lower() for text in (filters if isinstance(filters, list) else [filters]) if isinstance(text, str)]
    given = {text.partition(":")[0] for text in texts if _FILTER.match(text)}
    return [gpu for gpu in gpus or load().all() if not given or given & {device.filter.lower() for device in gpu.pci}]


_FILTER = regex(r"0x[0-9a-f]{8}(?::|$)")


def _spell(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count}x `{name}`" for name, count in counts.items())
