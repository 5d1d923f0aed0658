"""Decide whether GPU instances fit on one GPU together, with an arrangement or with the reason that there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from itertools import groupby

from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import count, joined, listing
from gpuplan.compiler.catalog import Gpu, Placement, Profile

_WAYS_SHOWN = 4
_ENGINES = {"dec": "decoders", "enc": "encoders", "jpeg": "JPEG engines", "ofa": "optical flow engines"}


class Placed(Value):
    """Instances that fit, each at its place, in the order of their memory slices."""

    gpu: Gpu
    instances: Arrangement

    @property
    def memory_slices(self) -> int:
        """The number of memory slices that the instances take."""
        return sum(instance.placement.size for instance in self.instances)

    @property
    def compute_slices(self) -> int:
        """The number of compute slices that the instances take."""
        return sum(instance.profile.compute_slices for instance in self.instances)


class RefusedBy(StrEnum):
    """The rule that instances break."""

    NO_MIG = "no-mig"
    INCOMPLETE_MODEL = "incomplete-model"
    UNKNOWN_PROFILE = "unknown-profile"
    TOO_MANY = "too-many"
    ENGINES = "engines"
    NO_ARRANGEMENT = "no-arrangement"


class Refusal(Value):
    """Instances that do not fit, with the proof.

    ``profiles`` are the ones that the proof is about; ``summary`` is short enough to stand at a caret; ``facts`` are
    what proves it, a sentence each.
    """

    rule: RefusedBy
    profiles: tuple[str, ...]
    summary: str
    facts: tuple[str, ...] = ()


def place(gpu: Gpu, counts: InstanceCounts) -> Placed | Refusal:
    """Place instances on one GPU, or prove that they cannot be.

    They fit iff every profile exists on the model, no count is over its maximum, the media engines suffice, and a
    listed placement can be chosen for each instance so that no two share a memory slice. The search is exact: sums of
    slices or of gigabytes decide nothing.

    Of several arrangements it takes the one that the driver makes when the largest instance is created first, as
    mig-parted does: each instance goes where it blocks the fewest placements that are still free. On an A100 that puts
    a lone ``1g`` at slice 6, and the instances of the all-balanced layout where they were seen on hardware: ``3g`` at
    4, ``2g`` at 0, ``1g`` at 2 and 3 (https://github.com/NVIDIA/DCGM/issues/138; "Creating GPU Instances" in
    https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html).
    """
    return _place(gpu, as_key(counts))


def fits(gpu: Gpu, counts: InstanceCounts) -> bool:
    """Whether `place` would place the instances; cheaper, for it proves nothing."""
    return _fits(gpu, as_key(counts))


@lru_cache(maxsize=4096)
def _place(gpu: Gpu, counts: Key) -> Placed | Refusal:
    refusal = _refuse_model(gpu) or _refuse_unknown_profiles(gpu, counts) or _refuse_maximum(gpu, counts)
    if refusal:
        return refusal
    arrangement = arrange(gpu, counts)
    if arrangement is None:
        return _refuse_arrangement(gpu, counts)
    return _refuse_engines(gpu, counts) or Placed(gpu, arrangement)


@lru_cache(maxsize=16384)
def _fits(gpu: Gpu, counts: Key) -> bool:
    if not gpu.supports_mig or not gpu.is_complete:
        return False
    for name, wanted in counts:
        profile = gpu.find_profile(name)
        if profile is None or wanted > profile.max_instances:
            return False
    return not _short_engines(gpu, counts) and arrange(gpu, counts) is not None


# --- Why they do not fit -----------------------------------------------------------------------------------------


def _refuse_model(gpu: Gpu) -> Refusal | None:
    if not gpu.supports_mig:
        return Refusal(RefusedBy.NO_MIG, (), f"{gpu.id} has no MIG")
    if not gpu.is_complete:
        summary = f"MIG layouts cannot be judged on {gpu.id}"
        return Refusal(RefusedBy.INCOMPLETE_MODEL, (), summary, (gpu.incomplete_reason,))
    return None


def _refuse_unknown_profiles(gpu: Gpu, counts: Key) -> Refusal | None:
    unknown = tuple(name for name, _ in counts if gpu.find_profile(name) is None)
    if not unknown:
        return None
    legacy = [gpu.legacy_names[name] for name in unknown if name in gpu.legacy_names]
    facts = [f"`{old.name}` is another name of `{old.profile}`: {old.note}" for old in legacy]
    facts.append(f"profiles of {gpu.id}: {listing([profile.name for profile in gpu.profiles], None)}")
    summary = f"{gpu.id} has no profile {listing(unknown, None, 'or')}"
    return Refusal(RefusedBy.UNKNOWN_PROFILE, unknown, summary, tuple(facts))


def _refuse_maximum(gpu: Gpu, counts: Key) -> Refusal | None:
    over = [profile for profile, count in _pairs(gpu, counts) if count > profile.max_instances]
    if not over:
        return None
    limits = [f"at most {profile.max_instances} `{profile.name}`" for profile in over]
    names = tuple(profile.name for profile in over)
    facts = tuple(_why_no_more(profile) for profile in over)
    return Refusal(RefusedBy.TOO_MANY, names, f"{joined(limits)} on {gpu.id}", facts)


def _why_no_more(profile: Profile) -> str:
    if profile.is_media and profile.max_instances == 1:
        return f"`{profile.name}` takes the optical flow engine, and a GPU has one to give away"
    return _where(profile)


def _refuse_engines(gpu: Gpu, counts: Key) -> Refusal | None:
    short = _short_engines(gpu, counts)
    if not short:
        return None
    users = [profile for profile, _ in _pairs(gpu, counts) if any(getattr(profile, engine) for engine in short)]
    needs = [f"{needed} of {total} {_ENGINES[engine]}" for engine, (needed, total) in short.items()]
    facts = tuple(f"each `{profile.name}` takes {joined(_shares(gpu, profile, short))}" for profile in users)
    return Refusal(RefusedBy.ENGINES, tuple(user.name for user in users), f"needs {joined(needs)}", facts)


def _shares(gpu: Gpu, profile: Profile, engines: Iterable[str]) -> list[str]:
    return [f"{getattr(profile, name) or 0} of {getattr(gpu.engines, name)} {_ENGINES[name]}" for name in engines]


def _short_engines(gpu: Gpu, counts: Key) -> dict[str, tuple[int, int]]:
    """Return the numbers (needed, available) of media engines that do not suffice. Unknown numbers refuse nothing."""
    short = {}
    for engine, total in gpu.engines.items():
        if total is not None:
            needed = sum(count * (getattr(profile, engine) or 0) for profile, count in _pairs(gpu, counts))
            if needed > total:
                short[engine] = needed, total
    return short


def _refuse_arrangement(gpu: Gpu, counts: Key) -> Refusal:
    """Prove that no arrangement exists, by a smallest part that has none: all of it but one instance has few."""
    core = _core(gpu, counts)
    # Split the core into one instance and the rest such that the rest has the fewest arrangements.
    splits = []
    for last in reversed(tuple(dict.fromkeys(core))):
        rest = _without(core, last)
        splits.append((rest, last, list(arrangements(gpu, dict(_count(rest))))))
    rest, last, ways = min(splits, key=lambda split: len(split[2]))
    facts = [_where(profile) for profile in dict.fromkeys(rest)]
    facts += _collision(rest, last, ways)
    facts.append(
        f"{_spell(core)} add up to {sum(profile.compute_slices for profile in core)} of {gpu.compute_slices}"
        f" compute slices and {sum(profile.memory_slices for profile in core)} of {gpu.memory_slices} memory slices"
    )
    names = tuple(dict.fromkeys(profile.name for profile in core))
    summary = f"no placement is left for {_other(last, rest)} beside {_spell(rest)}"
    return Refusal(RefusedBy.NO_ARRANGEMENT, names, summary, tuple(facts))


def _core(gpu: Gpu, counts: Key) -> list[Profile]:
    """Return instances that do not fit although any of them less one do. Small instances are dropped first."""
    core = one_by_one(gpu, counts)
    for profile in reversed(tuple(core)):
        rest = _without(core, profile)
        if arrange(gpu, _count(rest)) is None:
            core = rest
    return core


def _collision(rest: list[Profile], last: Profile, ways: list[Arrangement]) -> list[str]:
    need = f"{_other(last, rest)} can start only at {_starts(last)}: none is left"
    if len(ways) == 1:
        slices = _slices(ways[0]) if len(set(rest)) == 1 else f"so: {_way(rest, ways[0])}"
        return [f"{_spell(rest)} can only take memory slices {slices}; {need}"]
    shown = [_way(rest, way) for way in ways[:_WAYS_SHOWN]]
    more = [f"{len(ways) - _WAYS_SHOWN} more"] if len(ways) > _WAYS_SHOWN else []
    return [f"{_spell(rest)} fit in {len(ways)} ways: {'; '.join(shown + more)}", f"{need} in any of them"]


def _way(profiles: list[Profile], way: Arrangement) -> str:
    """Return the places of all instances: ``3g.40gb at 4-7, 2g.20gb at 0-1 and 2-3``."""
    return ", ".join(
        f"`{profile.name}` at {_slices(instance for instance in way if instance.profile is profile)}"
        for profile in dict.fromkeys(profiles)
    )


def _slices(instances: Iterable[Instance]) -> str:
    return joined([str(instance.placement) for instance in instances])


def _other(last: Profile, rest: list[Profile]) -> str:
    return f"another `{last.name}`" if last in rest else f"`{last.name}`"


def _where(profile: Profile) -> str:
    slices = count(profile.memory_slices, "memory slice")
    return f"`{profile.name}` takes {slices} and can start only at {_starts(profile)}"


def _starts(profile: Profile) -> str:
    starts = profile.starts
    if len(starts) > 2 and starts[-1] - starts[0] == len(starts) - 1:
        return f"{starts[0]}-{starts[-1]}"
    return joined([str(start) for start in starts], last="or")


def _spell(profiles: Iterable[Profile]) -> str:
    counted = [(profile.name, len(list(same))) for profile, same in groupby(profiles)]
    return joined([f"`{name}`" if count == 1 else f"{count}x `{name}`" for name, count in counted])


def _pairs(gpu: Gpu, counts: Key) -> list[tuple[Profile, int]]:
    wanted = dict(counts)
    return [(profile, wanted[profile.name]) for profile in gpu.profiles if profile.name in wanted]


def _without(profiles: list[Profile], one: Profile) -> list[Profile]:
    rest = profiles.copy()
    rest.remove(one)
    return rest


def _count(profiles: Iterable[Profile]) -> Key:
    return tuple(sorted(Counter(profile.name for profile in profiles).items()))


InstanceCounts = Mapping[str, int]
"""Numbers of GPU instances of one GPU by profile."""

Key = tuple[tuple[str, int], ...]
"""Instance counts in a form that can be cached: sorted by name, without zeros."""


class Instance(NamedTuple):
    """A GPU instance at its place."""

    profile: Profile
    placement: Placement


Arrangement = tuple[Instance, ...]
"""Instances in the order of their memory slices; no two overlap."""


def as_key(counts: InstanceCounts) -> Key:
    for name, number in counts.items():
        if number < 0:
            raise ValueError(f"{number} instances of {name}")
    return tuple(sorted((name, count) for name, count in counts.items() if count))


@lru_cache(maxsize=16384)
def arrange(gpu: Gpu, counts: Key) -> Arrangement | None:
    """Return the arrangement that the driver would make, or None if there is none.

    Profiles must be those of the model.
    """
    profiles = one_by_one(gpu, counts)
    dead_ends: set[tuple[int, int]] = set()

    def extend(index: int, taken: int) -> Arrangement | None:
        if index == len(profiles):
            return ()
        if (index, taken) in dead_ends:
            return None
        for placement in _least_obstructive_first(gpu, profiles[index], taken):
            rest = extend(index + 1, taken | placement.mask)
            if rest is not None:
                return (Instance(profiles[index], placement), *rest)
        dead_ends.add((index, taken))
        return None

    arrangement = extend(0, 0)
    return None if arrangement is None else _by_slice(arrangement)


def arrangements(gpu: Gpu, counts: InstanceCounts) -> Iterator[Arrangement]:
    """Yield every way to place the instances. Those of one profile are interchangeable."""
    profiles = one_by_one(gpu, as_key(counts))

    def extend(index: int, taken: int, chosen: Arrangement) -> Iterator[Arrangement]:
        if index == len(profiles):
            yield _by_slice(chosen)
            return
        profile = profiles[index]
        after = chosen[-1].placement.start if chosen and chosen[-1].profile is profile else -1
        for placement in profile.placements:
            if placement.start > after and not placement.mask & taken:
                yield from extend(index + 1, taken | placement.mask, (*chosen, Instance(profile, placement)))

    return extend(0, 0, ())


def one_by_one(gpu: Gpu, counts: Key) -> list[Profile]:
    """Return one profile per instance, the largest first."""
    wanted = dict(counts)
    return [profile for profile in largest_first(gpu.profiles) for _ in range(wanted.get(profile.name, 0))]


def largest_first(profiles: Iterable[Profile]) -> list[Profile]:
    return sorted(profiles, key=lambda profile: (-profile.compute_slices, -profile.memory_slices))


def _least_obstructive_first(gpu: Gpu, profile: Profile, taken: int) -> list[Placement]:
    """Return the profile's free placements, first the one that blocks the fewest other free placements."""
    free = [mask for mask in _masks(gpu) if not mask & taken]
    candidates = [placement for placement in profile.placements if not placement.mask & taken]
    return sorted(candidates, key=lambda place: (sum(bool(mask & place.mask) for mask in free), place.start))


@lru_cache(maxsize=256)
def _masks(gpu: Gpu) -> tuple[int, ...]:
    return tuple(placement.mask for profile in gpu.profiles for placement in profile.placements)


def _by_slice(instances: Iterable[Instance]) -> Arrangement:
    return tuple(sorted(instances, key=lambda instance: instance.placement.start))
