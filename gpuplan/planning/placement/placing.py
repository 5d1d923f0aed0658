"""Decides whether GPU instances fit on one GPU together."""

from __future__ import annotations

from functools import lru_cache

from gpuplan.catalog import Gpu
from gpuplan.planning.placement.arrangement import Arrangement, InstanceCounts, Key, arrange, as_key
from gpuplan.planning.placement.refusal import (
    Refusal,
    refuse_arrangement,
    refuse_engines,
    refuse_names_and_counts,
    short_engines,
)
from gpuplan.values import Value


class Placed(Value):
    """Instances that fit, each at its place, in the order of their memory slices."""

    gpu: Gpu
    instances: Arrangement

    @property
    def memory_slices(self) -> int:
        """How many memory slices the instances take."""
        return sum(instance.placement.size for instance in self.instances)

    @property
    def compute_slices(self) -> int:
        """How many compute slices the instances take."""
        return sum(instance.profile.compute_slices for instance in self.instances)


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
    refusal = refuse_names_and_counts(gpu, counts)
    if refusal:
        return refusal
    arrangement = arrange(gpu, counts)
    if arrangement is None:
        return refuse_arrangement(gpu, counts)
    return refuse_engines(gpu, counts) or Placed(gpu, arrangement)


@lru_cache(maxsize=16384)
def _fits(gpu: Gpu, counts: Key) -> bool:
    if not gpu.supports_mig or not gpu.is_complete:
        return False
    for name, count in counts:
        profile = gpu.find_profile(name)
        if profile is None or count > profile.max_instances:
            return False
    return not short_engines(gpu, counts) and arrange(gpu, counts) is not None
