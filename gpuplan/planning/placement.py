"""Decides whether GPU instances fit on one GPU together, and where the driver would put them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from gpuplan.catalog import Gpu, Placement, Profile

Layout = Mapping[str, int]
"""How many GPU instances of each profile one GPU holds, largest profile first."""

_Counts = tuple[tuple[str, int], ...]
"""A layout as a cache key: sorted by name, without zeros."""

_WAYS_SHOWN = 4


class Instance(NamedTuple):
    """A GPU instance at its place."""

    profile: Profile
    placement: Placement


@dataclass(frozen=True, slots=True)
class Placed:
    """A layout that fits, with the place of every instance, by memory slice."""

    gpu: Gpu
    instances: tuple[Instance, ...]

    @property
    def memory_slices(self) -> int:
        """How many memory slices the instances take."""
        return sum(instance.placement.size for instance in self.instances)

    @property
    def compute_slices(self) -> int:
        """How many compute slices the instances take."""
        return sum(instance.profile.compute_slices for instance in self.instances)


class RefusedBy(StrEnum):
    """The rule that a layout breaks."""

    NO_MIG = "no-mig"
    INCOMPLETE_MODEL = "incomplete-model"
    UNKNOWN_PROFILE = "unknown-profile"
    TOO_MANY = "too-many"
    ENGINES = "engines"
    NO_ARRANGEMENT = "no-arrangement"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A layout that does not fit, with the proof.

    ``profiles`` are the ones that the proof is about; ``summary`` fits beside a caret; ``facts`` are what proves it, a
    line each.
    """

    gpu: Gpu
    rule: RefusedBy
    profiles: tuple[str, ...]
    summary: str
    facts: tuple[str, ...]


def place(gpu: Gpu, counts: Mapping[str, int]) -> Placed | Refusal:
    """Place instances on one GPU, or prove that they cannot be.

    A layout fits iff every profile exists on the model, no count is over its maximum, the media engines suffice, and
    a listed placement can be chosen for each instance so that no two share a memory slice. The search is exact: sums
    of slices or of gigabytes decide nothing.

    Of several arrangements it takes the one that the driver makes when the largest instance is created first, as
    mig-parted does: each instance goes where it blocks the fewest placements that are still free. On an A100 that puts
    a lone ``1g`` at slice 6, and ``3g`` at 4, ``2g`` at 0, ``1g`` at 2 and 3, as was seen on hardware
    (NVIDIA's MIG user guide, "Creating GPU instances"; https://github.com/NVIDIA/DCGM/issues/138).
    """
    return _place(gpu, _key(counts))


def fits(gpu: Gpu, counts: Mapping[str, int]) -> bool:
    """Whether `place` would place the instances; cheaper, for it proves nothing."""
    return _fits(gpu, _key(counts))


@lru_cache(maxsize=4096)
def _place(gpu: Gpu, counts: _Counts) -> Placed | Refusal:
    refusal = _refuse_model(gpu) or _refuse_names(gpu, counts) or _refuse_counts(gpu, counts)
    if refusal := refusal or _refuse_engines(gpu, counts):
        return refusal
    arrangement = _arrange(gpu, counts)
    if arrangement is None:
        return _refuse_arrangement(gpu, counts)
    return Placed(gpu, arrangement)


@lru_cache(maxsize=65536)
def _fits(gpu: Gpu, counts: _Counts) -> bool:
    if not gpu.profiles:
        return not counts and gpu.supports_mig and gpu.is_complete
    for name, count in counts:
        profile = gpu.find_profile(name)
        if profile is None or count > profile.max_instances:
            return False
    return not _short_engines(gpu, counts) and _arrange(gpu, counts) is not None


def _key(counts: Mapping[str, int]) -> _Counts:
    for name, count in counts.items():
        if count < 0:
            raise ValueError(f"{count} instances of {name}")
    return tuple(sorted((name, count) for name, count in counts.items() if count))


# --- Arrangements ------------------------------------------------------------------------------------------------


def arrangements(gpu: Gpu, counts: Mapping[str, int]) -> Iterator[tuple[Instance, ...]]:
    """Every way to place the instances, by memory slice; instances of one profile are interchangeable."""
    profiles = _largest_first(gpu, _key(counts))

    def extend(index: int, taken: int, chosen: tuple[Instance, ...]) -> Iterator[tuple[Instance, ...]]:
        if index == len(profiles):
            yield tuple(sorted(chosen, key=_start))
            return
        profile = profiles[index]
        after = chosen[-1].placement.start if chosen and chosen[-1].profile is profile else -1
        for placement in profile.placements:
            if placement.start > after and not placement.mask & taken:
                yield from extend(index + 1, taken | placement.mask, (*chosen, Instance(profile, placement)))

    return extend(0, 0, ())


@lru_cache(maxsize=4096)
def _arrange(gpu: Gpu, counts: _Counts) -> tuple[Instance, ...] | None:
    """The arrangement that the driver would make, or None when there is none."""
    profiles = _largest_first(gpu, counts)
    dead_ends: set[tuple[int, int]] = set()

    def extend(index: int, taken: int) -> tuple[Instance, ...] | None:
        if index == len(profiles):
            return ()
        if (index, taken) in dead_ends:
            return None
        profile = profiles[index]
        for placement in _by_obstruction(gpu, profile, taken):
            rest = extend(index + 1, taken | placement.mask)
            if rest is not None:
                return (Instance(profile, placement), *rest)
        dead_ends.add((index, taken))
        return None

    arrangement = extend(0, 0)
    return None if arrangement is None else tuple(sorted(arrangement, key=_start))


def _by_obstruction(gpu: Gpu, profile: Profile, taken: int) -> list[Placement]:
    """The profile's free placements, the one first that blocks the fewest other free ones."""
    free = [mask for mask in _masks(gpu) if not mask & taken]
    candidates = [placement for placement in profile.placements if not placement.mask & taken]
    return sorted(candidates, key=lambda place: (sum(bool(mask & place.mask) for mask in free), place.start))


@lru_cache(maxsize=256)
def _masks(gpu: Gpu) -> tuple[int, ...]:
    return tuple(placement.mask for profile in gpu.profiles for placement in profile.placements)


def _largest_first(gpu: Gpu, counts: _Counts) -> list[Profile]:
    """One profile per instance, the largest first."""
    wanted = dict(counts)
    return [profile for profile in _by_size(gpu.profiles) for _ in range(wanted.get(profile.name, 0))]


def _by_size(profiles: Iterable[Profile]) -> list[Profile]:
    return sorted(profiles, key=lambda profile: (-profile.compute_slices, -profile.memory_slices))


def _start(instance: Instance) -> int:
    return instance.placement.start


# --- Refusals ----------------------------------------------------------------------------------------------------


def _refuse_model(gpu: Gpu) -> Refusal | None:
    if not gpu.supports_mig:
        return Refusal(gpu, RefusedBy.NO_MIG, (), f"{gpu.id} has no MIG", ())
    if not gpu.is_complete:
        summary = f"the catalog cannot judge MIG layouts on {gpu.id}"
        return Refusal(gpu, RefusedBy.INCOMPLETE_MODEL, (), summary, (gpu.incomplete_reason,))
    return None


def _refuse_names(gpu: Gpu, counts: _Counts) -> Refusal | None:
    unknown = tuple(name for name, _ in counts if gpu.find_profile(name) is None)
    if not unknown:
        return None
    legacy = [gpu.legacy_names[name] for name in unknown if name in gpu.legacy_names]
    facts = [f"`{old.name}` is another name of `{old.profile}`: {old.note}" for old in legacy]
    facts.append(f"profiles of {gpu.id}: {_and([f'`{profile.name}`' for profile in gpu.profiles])}")
    summary = f"{gpu.id} has no profile {_or([f'`{name}`' for name in unknown])}"
    return Refusal(gpu, RefusedBy.UNKNOWN_PROFILE, unknown, summary, tuple(facts))


def _refuse_counts(gpu: Gpu, counts: _Counts) -> Refusal | None:
    over = [profile for name, count in counts if (profile := _get(gpu, name)).max_instances < count]
    if not over:
        return None
    facts = tuple(_why_no_more(profile) for profile in over)
    summary = _and([f"at most {profile.max_instances} `{profile.name}`" for profile in over]) + f" on {gpu.id}"
    return Refusal(gpu, RefusedBy.TOO_MANY, tuple(profile.name for profile in over), summary, facts)


def _why_no_more(profile: Profile) -> str:
    if profile.is_media and profile.max_instances == 1:
        return f"`{profile.name}` holds the JPEG and optical flow engines, of which the GPU has one set to give away"
    return _where(profile)


def _refuse_engines(gpu: Gpu, counts: _Counts) -> Refusal | None:
    short = _short_engines(gpu, counts)
    if not short:
        return None
    users = [profile for name, _ in counts if any(dict((profile := _get(gpu, name)).engines.items())[e] for e in short)]
    facts = [f"`{profile.name}` takes {_engines_of(profile, short)}" for profile in users]
    needs = [f"{needed} {_ENGINE_NAMES[engine]} of {total}" for engine, (needed, total) in short.items()]
    summary = f"needs {_and(needs)}"
    return Refusal(gpu, RefusedBy.ENGINES, tuple(profile.name for profile in users), summary, tuple(facts))


_ENGINE_NAMES = {"dec": "decoders", "enc": "encoders", "jpeg": "JPEG engines", "ofa": "optical flow engines"}


def _engines_of(profile: Profile, engines: Iterable[str]) -> str:
    amounts = dict(profile.engines.items())
    return _and([f"{amounts[engine] or 0} {_ENGINE_NAMES[engine]}" for engine in engines])


def _short_engines(gpu: Gpu, counts: _Counts) -> dict[str, tuple[int, int]]:
    """The engines that do not suffice: how many are needed and how many there are. Unknown numbers refuse nothing."""
    short = {}
    for engine, total in gpu.engines.items():
        if total is None:
            continue
        needed = sum(count * (dict(_get(gpu, name).engines.items())[engine] or 0) for name, count in counts)
        if needed > total:
            short[engine] = needed, total
    return short


def _refuse_arrangement(gpu: Gpu, counts: _Counts) -> Refusal:
    """Prove it by a smallest part of the layout that does not fit: all of it but one instance fits in few ways."""
    core = _core(gpu, counts)
    rest, last, ways = _hardest(gpu, core)
    facts = [_where(profile) for profile in dict.fromkeys(core)]
    facts += _collisions(rest, last, ways)
    facts.append(
        f"they add up to {sum(p.compute_slices for p in core)} of {gpu.compute_slices} compute slices"
        f" and {sum(p.memory_slices for p in core)} of {gpu.memory_slices} memory slices"
    )
    names = tuple(dict.fromkeys(profile.name for profile in core))
    summary = f"no start is left for `{last.name}` beside {_spell(rest)}"
    return Refusal(gpu, RefusedBy.NO_ARRANGEMENT, names, summary, tuple(facts))


def _core(gpu: Gpu, counts: _Counts) -> list[Profile]:
    """A part of the layout that does not fit although all of its own parts do; drops small instances first."""
    core = _largest_first(gpu, counts)
    for profile in reversed(tuple(core)):
        without = core.copy()
        without.remove(profile)
        if _arrange(gpu, _count(without)) is None:
            core = without
    return core


def _hardest(gpu: Gpu, core: list[Profile]) -> tuple[list[Profile], Profile, list[tuple[Instance, ...]]]:
    """Split a core into one instance and the rest, so that the rest has the fewest arrangements."""
    splits = []
    for last in reversed(list(dict.fromkeys(core))):
        rest = core.copy()
        rest.remove(last)
        splits.append((rest, last, list(arrangements(gpu, dict(_count(rest))))))
    return min(splits, key=lambda split: len(split[2]))


def _collisions(rest: list[Profile], last: Profile, ways: list[tuple[Instance, ...]]) -> list[str]:
    need = f"`{last.name}` can start only at {_starts(last)}: none is left"
    if len(ways) == 1:
        verb = "takes" if len(rest) == 1 else "take"
        slices = _and([str(instance.placement) for instance in ways[0]]) if len(set(rest)) == 1 else _way(ways[0])
        return [f"{_spell(rest)} {verb} memory slices {slices}; {need}"]
    lines = [f"{_spell(rest)} fit in {len(ways)} ways; {need} in any of them"]
    lines += [f"{_way(way)}" for way in ways[:_WAYS_SHOWN]]
    if len(ways) > _WAYS_SHOWN:
        lines.append(f"and {len(ways) - _WAYS_SHOWN} more")
    return lines


def _way(way: tuple[Instance, ...]) -> str:
    return ", ".join(f"{instance.placement} (`{instance.profile.name}`)" for instance in way)


def _where(profile: Profile) -> str:
    slices = "memory slice" if profile.memory_slices == 1 else "memory slices"
    return f"`{profile.name}` takes {profile.memory_slices} {slices} and can start only at {_starts(profile)}"


def _starts(profile: Profile) -> str:
    starts = profile.starts
    if len(starts) > 2 and starts[-1] - starts[0] == len(starts) - 1:
        return f"{starts[0]}-{starts[-1]}"
    return _or([str(start) for start in starts])


def _spell(profiles: Iterable[Profile]) -> str:
    counted = [(profile.name, len(list(same))) for profile, same in groupby(profiles)]
    return _and([f"`{name}`" if count == 1 else f"{count}x `{name}`" for name, count in counted])


def _and(words: list[str]) -> str:
    return _join(words, "and")


def _or(words: list[str]) -> str:
    return _join(words, "or")


def _join(words: list[str], last: str) -> str:
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _count(profiles: Iterable[Profile]) -> _Counts:
    return tuple(sorted(Counter(profile.name for profile in profiles).items()))


def _get(gpu: Gpu, name: str) -> Profile:
    profile = gpu.find_profile(name)
    if profile is None:
        raise KeyError(name)
    return profile


# --- Layouts -----------------------------------------------------------------------------------------------------


def valid_layouts(gpu: Gpu, profiles: Iterable[str] | None = None) -> tuple[Layout, ...]:
    """Every non-empty layout that fits, of the given profiles or else of those without attributes; large ones first."""
    return _valid_layouts(gpu, _names(gpu, profiles))


def maximal_layouts(gpu: Gpu, profiles: Iterable[str] | None = None) -> tuple[Layout, ...]:
    """The valid layouts to which no instance can be added."""
    return _maximal_layouts(gpu, _names(gpu, profiles))


def room_left(gpu: Gpu, counts: Mapping[str, int], profiles: Iterable[str] | None = None) -> tuple[Profile, ...]:
    """The profiles of which one more instance fits beside the layout, largest first."""
    return tuple(
        _get(gpu, name) for name in _names(gpu, profiles) if fits(gpu, {**counts, name: counts.get(name, 0) + 1})
    )


def nearest_layouts(gpu: Gpu, counts: Mapping[str, int], limit: int = 3) -> tuple[Layout, ...]:
    """Valid layouts to propose instead of one that does not fit, nearest first.

    They are the part of the layout that keeps most memory slices, and maximal layouts of this model's base profiles
    and the profiles named. Nearest is what takes the fewest changes (an instance dropped, added, or exchanged for
    another), then what keeps the largest instances. Another model's profile counts as the one of the same size here.
    """
    wanted = _translate(gpu, counts)
    names = {profile.name for profile in gpu.base_profiles} | set(wanted)
    candidates = [*_best_part(gpu, wanted), *maximal_layouts(gpu, names)]
    chosen: list[Layout] = []
    for layout in sorted(candidates, key=lambda layout: _distance(gpu, wanted, layout)):
        if not any(_is_part(layout, other) for other in chosen):
            chosen.append(layout)
    return tuple(chosen[:limit])


@lru_cache(maxsize=256)
def _valid_layouts(gpu: Gpu, names: tuple[str, ...]) -> tuple[Layout, ...]:
    def extend(index: int, layout: dict[str, int]) -> Iterator[Layout]:
        if index == len(names):
            if layout:
                yield MappingProxyType(layout)
            return
        name = names[index]
        for count in range(_get(gpu, name).max_instances, 0, -1):
            if fits(gpu, grown := {**layout, name: count}):
                yield from extend(index + 1, grown)
        yield from extend(index + 1, layout)

    return tuple(extend(0, {}))


@lru_cache(maxsize=256)
def _maximal_layouts(gpu: Gpu, names: tuple[str, ...]) -> tuple[Layout, ...]:
    return tuple(layout for layout in _valid_layouts(gpu, names) if not room_left(gpu, layout, names))


def _names(gpu: Gpu, profiles: Iterable[str] | None) -> tuple[str, ...]:
    wanted = None if profiles is None else set(profiles)
    chosen = [profile for profile in gpu.profiles if (profile.is_plain if wanted is None else profile.name in wanted)]
    return tuple(profile.name for profile in _by_size(chosen))


def _translate(gpu: Gpu, counts: Mapping[str, int]) -> dict[str, int]:
    """The layout in this model's names; what has no counterpart here is dropped."""
    wanted: Counter[str] = Counter()
    for name, count in counts.items():
        known = gpu.find_profile(name)
        for profile in (known,) if known else gpu.similar_profiles(name)[:1]:
            wanted[profile.name] += count
    return {name: count for name, count in wanted.items() if count}


def _best_part(gpu: Gpu, wanted: Mapping[str, int]) -> tuple[Layout, ...]:
    """The valid part of a layout that keeps the most memory slices with the fewest instances."""
    parts = [layout for layout in valid_layouts(gpu, wanted) if _is_part(layout, wanted)]
    return tuple(sorted(parts, key=lambda part: (-_memory(gpu, part), sum(part.values())))[:1])


def _distance(gpu: Gpu, wanted: Mapping[str, int], layout: Layout) -> tuple[int, int, int]:
    kept = Counter(wanted) & Counter(layout)
    dropped, added = sum(wanted.values()) - kept.total(), sum(layout.values()) - kept.total()
    return max(dropped, added), -_memory(gpu, kept), -_memory(gpu, layout)


def _memory(gpu: Gpu, layout: Mapping[str, int]) -> int:
    return sum(count * _get(gpu, name).memory_slices for name, count in layout.items())


def _is_part(layout: Mapping[str, int], whole: Mapping[str, int]) -> bool:
    return all(count <= whole.get(name, 0) for name, count in layout.items())
