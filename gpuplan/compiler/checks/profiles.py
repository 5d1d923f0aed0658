"""Checks on the MIG profiles that layouts name (GPU204-211, GPU221): spelling, model, count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import joined, listing, misspelling
from gpuplan.compiler.catalog import Gpu, Profile, load, parse_profile
from gpuplan.compiler.catalog.names import ProfileName
from gpuplan.compiler.checks.mig import instances_at, nearest_that_fit, partitioned, positive, refused
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import mistyped
from gpuplan.compiler.planning.placement.placing import Refusal, RefusedBy, fits, place
from gpuplan.compiler.planning.plan import LayoutEntry, Mig, Plan

_MANY = 20
"""The number of profiles that no model exceeds, so that a note can list them all."""


class _Written(Value):
    """A line of a layout's instances, and what its name reads as."""

    gpu: Gpu
    entry: LayoutEntry
    name: str
    count: int
    at: Origin

    @property
    def parsed(self) -> ProfileName | None:
        return parse_profile(self.name)

    def write(self, better: str) -> str:
        """Return what to type instead of the name. A name that stands there already takes the count."""
        return f"add the count to `{better}`" if better in self.entry.instances else f"write `{better}`"

    @property
    def catalog(self) -> str:
        return f"`gpuplan catalog {self.gpu.id}` shows the profiles"


def _lines(plan: Plan) -> Iterator[_Written]:
    for use, entry in partitioned(plan):
        at = instances_at(entry)
        for name, count in entry.instances.items():
            yield _Written(use.layout.gpu, entry, name, count, at / name)


def _profiles_of(gpu: Gpu) -> str:
    return f"profiles of {gpu.id}: {listing([profile.name for profile in gpu.profiles], _MANY)}"


# --- Names -------------------------------------------------------------------------------------------------------


@check("GPU204", "profile-of-another-gpu")
def profile_of_another_gpu(plan: Plan) -> Iterator[Finding]:
    """A layout names a MIG profile that its GPU model does not have.

    ## Why
    A profile's name gives its memory, and that follows from the board: a seventh of an A100-40GB is `1g.5gb`, of an
    A100-80GB `1g.10gb`, of an H200 `1g.18gb`. mig-parted finds no such profile on the GPU, fails for the node, and the
    node keeps its old partitions.

    ## Instead
    Use a profile of this model. The finding names those with as many compute slices; their memory is another one, so
    look whether it is enough. `gpuplan catalog` with the model's name lists them all.
    """
    for line in _lines(plan):
        gpu, name, parsed = line.gpu, line.name, line.parsed
        is_known = gpu.find_profile(name) or name in gpu.legacy_names
        if parsed is None or parsed.compute_instance_slices is not None or is_known:
            continue
        homes = [gpu.id for gpu in load().all() if gpu.find_profile(name)]  # parses the whole catalog
        in_lower_case = line.write(name.lower()) if gpu.find_profile(name.lower()) else ""
        yield Finding(
            line.at.key,
            f"`{name}` is not a profile of {gpu.id}",
            label="no such profile here",
            notes=(*((f"`{name}` is a profile of {listing(homes)}",) if homes else ()), _profiles_of(gpu)),
            help=in_lower_case or _as_many_slices(line, parsed.compute_slices) or line.catalog,
        )


def _as_many_slices(line: _Written, slices: int) -> str:
    """Return what this model has with the compute slices of another one's profile, a fact since the memory differs."""
    gpu = line.gpu
    found = gpu.similar_profiles(line.name) or [item for item in gpu.plain_profiles if item.compute_slices == slices]
    have = "one compute slice has" if slices == 1 else f"{slices} compute slices have"
    most = {profile.name: _as_many_as_fit(line, profile.name) for profile in found}
    sizes = []
    for profile in found:
        less = (
            ""
            if most[profile.name] == line.count
            else f" ({f'at most {n}' if (n := most[profile.name]) else 'none fits'})"
        )
        sizes.append(f"{profile.parsed.gigabytes} GB: `{profile.name}`{less}")
    whole = [name for name, number in most.items() if number == line.count]
    only = f"{line.write(whole[0])}, of which {line.count} fit; " if len(whole) == 1 < len(found) else ""
    return f"{only}on {gpu.id} {have} {joined(sizes, 'or')}" if found else ""


def _as_many_as_fit(line: _Written, better: str) -> int:
    """Return how many of another profile fit in place of the line's, beside the known rest; no more than of that."""
    others = {line.gpu.current_name(name): count for name, count in positive(line.entry).items() if name != line.name}
    rest = {name: count for name, count in others.items() if line.gpu.find_profile(name)}
    there, most = rest.get(better, 0), min(line.count, line.gpu.compute_slices)
    fitting = (more for more in range(most, 0, -1) if fits(line.gpu, {**rest, better: there + more}))
    return next(fitting, 0)


@check("GPU205", "unreadable-profile", ignorable=False)
def unreadable_profile(plan: Plan) -> Iterator[Finding]:
    """A layout names something that is not spelt like a MIG profile.

    ## Why
    A profile is `<compute slices>g.<memory>gb`, with `+me` and the like after it: `3g.40gb`, `1g.10gb+me`. mig-parted
    reads its file as a whole, so one name that it cannot read fails every node of the cluster, also those of other
    pools. Resources and labels spell some names differently: `nvidia.com/mig-1g.10gb.me` is the profile `1g.10gb+me`.

    ## Instead
    Write the name as `nvidia-smi mig -lgip` and `gpuplan catalog` print it.
    """
    for line in _lines(plan):
        if line.parsed is None:
            better = _respell(line.gpu, line.name)
            bare = _MEMORY.fullmatch(line.name.strip())
            yield mistyped(
                line.at.key,
                f"`{line.name}` is not a MIG profile",
                better,
                "not `<slices>g.<memory>gb`",
                (_as_many_slices(line, int(bare[1])) if bare else "") or line.catalog,
                _profiles_of(line.gpu),
                write=line.write(better or ""),
            )


_LOOSE = regex(
    r"(?:nvidia\.com/)?(?:mig-|all-)?(?:(\d+)c)?\W*(\d+)g\W*(\d+)\W*(?:gi?b?)?(?:([.+_-])(me\.all|me|gfx))?",
    re.IGNORECASE | re.ASCII,
)


_MEMORY = regex(r"(\d+) *g(?:i?b)?", re.IGNORECASE | re.ASCII)


def _respell(gpu: Gpu, name: str) -> str | None:
    """Return the profile that a misspelt name, a resource's or label's spelling, or its memory alone stands for."""
    names = [profile.name for profile in gpu.profiles]
    if memory := _MEMORY.fullmatch(name.strip()):
        of_this_size = [item.name for item in gpu.plain_profiles if item.parsed.gigabytes == int(memory[1])]
        return of_this_size[0] if len(of_this_size) == 1 else None
    match = _LOOSE.fullmatch(name.strip())
    if match:
        sign = "" if not match[5] else "-" if match[4] == "-" else "+"
        exact = f"{match[2]}g.{match[3]}gb{sign}{(match[5] or '').lower()}"
        return exact if exact in names else None
    of_these_numbers = [item for item in names if _NUMBERS.findall(item) == _NUMBERS.findall(name)]
    return of_these_numbers[0] if len(of_these_numbers) == 1 else misspelling(name, names)


_NUMBERS = regex(r"[0-9]+")


@check("GPU206", "compute-instance-profile")
def compute_instance_profile(plan: Plan) -> Iterator[Finding]:
    """A layout names a compute instance inside a GPU instance.

    ## Why
    `1c.3g.40gb` is one compute slice of a `3g.40gb`. mig-parted would create it, but the device plugin publishes only
    devices that are a whole GPU instance: it exits with `does not match any resource patterns`, and the node has no
    GPUs at all.

    ## Instead
    Ask for the GPU instance, or for a smaller one.
    """
    for line in _lines(plan):
        if line.parsed and line.parsed.is_compute_instance:
            instance = line.parsed.gpu_instance
            yield Finding(
                line.at.key,
                f"`{line.name}` is a compute instance, not a GPU instance",
                label="the device plugin cannot publish it",
                notes=(f"it is a part of a `{instance}`; the device plugin exits when it finds such a part",),
                help=f"name a GPU instance, such as the whole `{instance}`"
                if line.gpu.find_profile(instance)
                else line.catalog,
            )


@check("GPU207", "long-profile-name")
def long_profile_name(plan: Plan) -> Iterator[Finding]:
    """A layout spells a profile with a `c` part that says nothing.

    ## Why
    `7c.7g.80gb` is accepted when the instance is made, but reported back as `7g.80gb`. mig-parted compares the two,
    finds them different, and divides the GPU again each time that it starts.

    ## Instead
    Write the short name.
    """
    for line in _lines(plan):
        if line.parsed and line.parsed.is_long_spelling:
            yield Finding(
                line.at.key,
                f"`{line.name}` is reported back as `{line.parsed.gpu_instance}`",
                label="never compares equal",
                help=line.write(line.parsed.gpu_instance),
            )


@check("GPU221", "profile-renamed-by-driver")
def profile_renamed_by_driver(plan: Plan) -> Iterator[Finding]:
    """A layout names a profile by a name that only some drivers use.

    ## Why
    A profile's name is made from the memory that the driver reports, so it drifts: `7g.80gb` was `7g.79gb` on some
    boards, and a GB200's `1g.23gb` was `1g.24gb` on early ones. mig-parted looks for the exact name and fails with
    `MIG profile not found on this GPU` where the driver uses the other one.

    ## Instead
    Use the current name, and pin the driver with `gpuOperator.driver.version` so that it stays the one that nodes
    report. `nvidia-smi mig -lgip` on a node shows its names.
    """
    pinned = plan.cluster.gpu_operator.spec.driver.version
    pin = "" if pinned else ", and pin the driver with `gpuOperator.driver.version`"
    for line in _lines(plan):
        legacy = line.gpu.legacy_names.get(line.name)
        if legacy is not None and not line.gpu.find_profile(line.name):
            yield Finding(
                line.at.key,
                f"`{line.name}` is another driver's name for `{legacy.profile}` of {line.gpu.id}",
                label=f"now `{legacy.profile}`",
                notes=(
                    f"`{legacy.name}`: {legacy.note}",
                    "where nodes do report it, suppress this finding with that as the reason",
                ),
                help=f"{line.write(legacy.profile)}{pin}",
            )


# --- Counts ------------------------------------------------------------------------------------------------------


@check("GPU208", "too-many-instances")
def too_many_instances(plan: Plan) -> Iterator[Finding]:
    """A layout asks for more instances of one profile than a GPU can hold.

    ## Why
    Each profile has a few fixed places on the board. Counts are per GPU: `instances` says how each single GPU is
    divided, not what a node or a pool has in total.

    ## Instead
    Ask for as many as fit on one GPU; gpuplan multiplies by `gpusPerNode` and `count`.
    """
    for line in _lines(plan):
        profile = line.gpu.find_profile(line.gpu.current_name(line.name))
        if profile is not None and line.count > profile.max_instances:
            proof, lost = place(line.gpu, {profile.name: line.count}), _lost_units(plan, line)
            yield Finding(
                line.at,
                f"{line.count}x `{line.name}` do not fit on one {line.gpu.id}",
                label=f"at most {profile.max_instances}",
                related=tuple(Label(at, "the layout lacks it") for at in lost.values()),
                notes=(*(proof.facts if isinstance(proof, Refusal) else ()), "counts are per GPU, not per node"),
                help=_fewer(line, profile, lost),
            )


def _lost_units(plan: Plan, line: _Written) -> dict[str, Origin]:
    """Return the profiles that a layout lacks, and that quotas on its pools name, with the place of such a quota."""
    pools = [
        item.name for item in plan.pools if isinstance(item.sharing, Mig) and line.entry in item.sharing.layout.entries
    ]
    there = {line.gpu.current_name(name) for name in line.entry.instances}
    return {
        quota.unit: tenant.at / "quotas" / index / "unit"
        for tenant in plan.tenants
        for index, quota in enumerate(tenant.spec.quotas)
        if quota.pool in pools and quota.unit and quota.unit not in there and line.gpu.find_profile(quota.unit)
    }


def _fewer(line: _Written, profile: Profile, lost: Iterable[str]) -> str:
    """Return as many of the profile as a GPU can hold, if that fits beside the rest of the layout.

    A profile that quotas miss takes what is left of the GPU.
    """
    rest = {line.gpu.current_name(name): count for name, count in positive(line.entry).items()}
    if fits(line.gpu, {**rest, profile.name: profile.max_instances}):
        fewer = {**rest, profile.name: profile.max_instances}
        for unit in lost:
            fitting = (n for n in range(line.gpu.compute_slices, 0, -1) if fits(line.gpu, {**fewer, unit: n}))
            if number := next(fitting, 0):
                both = f"`{line.name}: {profile.max_instances}` and, for the quotas, `{unit}: {number}`"
                return f"a GPU holds up to {profile.max_instances} of them: {both}"
        plain, left = line.name.partition("+")[0], line.count - profile.max_instances
        filled = (
            line.name != plain
            and plain not in rest
            and fits(line.gpu, {**rest, profile.name: profile.max_instances, plain: left})
        )
        others = f" and `{plain}: {left}`" if filled else ""
        return f"a GPU holds up to {profile.max_instances} of them: `{line.name}: {profile.max_instances}`{others}"
    return nearest_that_fit(line.gpu, line.entry)


@check("GPU209", "media-engines-exceeded")
def media_engines_exceeded(plan: Plan) -> Iterator[Finding]:
    """A layout's instances together need more media engines than the GPU has.

    ## Why
    `+me` profiles come with the board's JPEG and optical-flow engines, of which there is one set, so that only one
    instance of a GPU can be of a `+me` profile. `+me.all` takes every decoder and encoder as well, so that the rest of
    the board must be of `-me` profiles.

    ## Instead
    Keep one `+me` instance and make the others plain, or `-me` beside a `+me.all`.
    """
    told = "{layout} asks for more media engines than {gpu} has"
    yield from refused(plan, RefusedBy.ENGINES, told, "takes media engines")


@check("GPU210", "media-instance-beside-plain", Severity.WARNING)
def media_instance_beside_plain(plan: Plan) -> Iterator[Finding]:
    """A layout has a `+me` instance beside the same profile without it.

    ## Why
    The placements, the counts and the engines allow it, and NVIDIA's guide reads so. But no capture of a real board
    with such a layout is known, and a list in mig-parted's own tests leaves it out.

    ## Instead
    Try the layout on one node before it goes to all: `nvidia-smi mig -cgi` with both profiles.
    """
    for use, entry in partitioned(plan):
        for name in entry.instances if not isinstance(entry.placed, Refusal) else ():
            profile = use.layout.gpu.find_profile(name)
            plain = name.partition("+")[0]
            if profile and profile.is_media and entry.instances.get(plain, 0) > 0:
                at = instances_at(entry)
                yield Finding(
                    (at / name).key,
                    f"`{name}` beside `{plain}` has not been seen on a real {use.layout.gpu.id}",
                    label="should fit",
                    related=(Label((at / plain).key, "the same without media engines"),),
                    notes=("placements, counts and engines allow it",),
                    help=f"try it on one node: `nvidia-smi mig -cgi {name},{plain}`",
                )


@check("GPU211", "instance-count-below-one")
def instance_count_below_one(plan: Plan) -> Iterator[Finding]:
    """A layout asks for no instance of a profile, or for fewer than none.

    ## Why
    mig-parted accepts a count of 0 but compares it with what it finds on the GPU, where there is no such entry: the
    node never reaches the state that is asked for. A negative count makes the file invalid, for every node.

    ## Instead
    Leave the profile out.
    """
    for line in _lines(plan):
        if line.count < 1:
            yield Finding(
                line.at,
                f"{line.count}x `{line.name}` is not a number of instances",
                label="at least 1",
                notes=("mig-parted never finds a GPU that has this",) if line.count == 0 else (),
                help=f"remove `{line.name}`",
            )
