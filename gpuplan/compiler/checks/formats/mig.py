"""What the MIG manager refuses of its file, or cannot fulfil."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping, sequence
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.catalog import Gpu, load, parse_profile
from gpuplan.compiler.checks.formats import Problem, find_problems
from gpuplan.compiler.checks.mig import MOST_GPUS
from gpuplan.compiler.checks.wording import gpu_numbers
from gpuplan.compiler.planning.placement.layouts import nearest_layouts
from gpuplan.compiler.planning.placement.placing import fits

LABEL_VALUE = regex(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")


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
        if fault := profile_fault(profile):
            yield Problem((*place, profile), f"entry `{name}` has `{profile}`, {fault[0]}", fault[1], fault[2])
    counts = {profile: count for profile, count in instances.items() if isinstance(count, int) and count > 0}
    models = meant(item.get("device-filter"), gpus) if is_enabled and len(counts) == len(instances) else []
    if _fits_nowhere(counts, models):
        which = models[0].id if len(models) == 1 else "GPU"
        message = f"no {which} can have what entry `{name}` asks for: {_spell(counts)}"
        label = "fits on no model" if which == "GPU" else f"does not fit on {which}"
        yield Problem(place, message, label, _nearest_layout(counts, models))


def profile_fault(profile: str) -> tuple[str, str, str] | None:
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


def meant(filters: object, gpus: Sequence[Gpu]) -> list[Gpu]:
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
