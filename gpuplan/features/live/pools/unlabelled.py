"""What nodes are divided into that have MIG devices and no label which names an entry: what they publish says it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.planning.discovered import is_of_mig_devices, mig_resource
from gpuplan.compiler.planning.plan import MIG_CONFIG_LABEL
from gpuplan.compiler.planning.pools import ALL_DISABLED
from gpuplan.compiler.policy.models import MigStrategy
from gpuplan.features.live.pools.boards import profile_of_product
from gpuplan.features.live.pools.divisions import (
    Division,
    Entry,
    Spec,
    divide,
    divide_instances,
    profiles_of,
    published_by,
)
from gpuplan.features.live.pools.grouping import Group
from gpuplan.features.live.pools.telling import Told
from gpuplan.features.live.rules import LAYOUT_NOT_SAID

_NODE_SIZES: Final = (8, 4, 2, 1, 16)
"""How many GPUs a node may have where nothing counts them; the usual ones first."""


class Seen(NamedTuple):
    """The entry that divides GPUs into what nodes publish; or the same as a pool says it, where there is none."""

    entry: str = ""
    spec: Spec = {}  # noqa: RUF012 - never changed


_NOTHING: Final = Seen()


def read_unlabelled(found: Group, gpu: Gpu, entries: Mapping[str, Entry], told: Told) -> Seen:
    """Nothing for nodes with a label that names an entry, and for those without MIG devices."""
    if found.is_claimed or MIG_CONFIG_LABEL in found.claim.first.labels or not found.machines:
        return _NOTHING
    first = found.machines[0]
    is_single = is_of_mig_devices(first.product)
    if not is_single and not first.has_mig_devices:
        return _NOTHING
    seen = next(_found(found, gpu, entries.values(), is_single=is_single), _NOTHING)
    label = "they lose their partitions by the first sync"
    help_ = "write what they have into `sharing.mig` of the pool"
    if seen.spec:
        spelt = ", ".join(f"{number}x `{name}`" for name, number in seen.spec["instances"].items())
        label, help_ = f"taken for {spelt} on each GPU", "`nvidia-smi mig -lgi` on a node shows whether that is so"
    elif seen.entry:
        label = f"`{seen.entry}` has what they publish"
        help_ = f"say so before the first sync: `kubectl label nodes NODE {MIG_CONFIG_LABEL}={seen.entry}`"
    told.say(
        LAYOUT_NOT_SAID,
        first.at / "metadata" / "labels",
        f"nodes of pool `{found.pool}` have MIG devices, and no label says of which entry",
        label=label,
        notes=(f"without `{MIG_CONFIG_LABEL}` the GPU Operator writes `{ALL_DISABLED}`, and the partitions are gone",),
        help=help_,
        drafts=(f"Pool {found.pool}",),
    )
    return seen


def _found(found: Group, gpu: Gpu, entries: Iterable[Entry], *, is_single: bool) -> Iterator[Seen]:
    first = found.machines[0]
    strategy = MigStrategy.SINGLE if is_single else MigStrategy.MIXED
    profile = profile_of_product(first.product, gpu) if is_single else None
    sizes = (first.counted,) if first.counted and not is_single else _NODE_SIZES

    def is_right(division: Division) -> bool:
        spec = division.spec
        if division.fault or not spec or (profile and profiles_of(spec) != [profile.name]):
            return False
        return any(published_by(first.at, gpu, spec, size, strategy) == first.published for size in sizes)

    for entry in entries:
        if not entry.problems and is_right(divide(entry, gpu)):
            yield Seen(entry.name)
    each = {profile.name: profile.max_instances} if profile else _even(first.published, gpu, first.counted)
    if each and is_right(divide_instances(each, gpu)):
        yield Seen(spec={"instances": each})


def _even(published: Mapping[str, int], gpu: Gpu, gpus: int) -> Mapping[str, int]:
    """The instances of each GPU, where all have the same; nothing where that cannot be."""
    by_suffix = {mig_resource(profile.name): profile.name for profile in gpu.profiles}
    if not gpus or not published.keys() <= by_suffix.keys() or any(number % gpus for number in published.values()):
        return {}
    return {by_suffix[name]: number // gpus for name, number in published.items()}
