"""A GPU's memory slices as a line of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil

from gpuplan.catalog import Gpu
from gpuplan.planning.placement import Instance

_NARROWEST = 3


def boxes(gpu: Gpu, instances: Iterable[Instance]) -> str:
    """One box for each instance, as wide as the slices it takes: ``|3g.40gb        |2g.20gb|2g.20gb|``.

    A slice that nothing takes is a box with a dot in it.
    """
    placed = tuple(instances)
    width = max((ceil((len(item.profile.name) + 1) / item.placement.size) for item in placed), default=0)
    width = max(width, _NARROWEST)
    drawn = (f"|{name:<{size * width - 1}}" for name, size in _segments(gpu, placed, free="."))
    return f"{''.join(drawn)}|"


def strip(gpu: Gpu, instances: Iterable[Instance]) -> str:
    """One character for each slice: the compute slices of the instance that takes it, as in ``|3333|22|22|``."""
    placed = tuple(instances)
    drawn = (f"|{name.partition('g')[0][-1] * size}" for name, size in _segments(gpu, placed, free="."))
    return f"{''.join(drawn)}|"


def _segments(gpu: Gpu, instances: tuple[Instance, ...], free: str) -> Iterator[tuple[str, int]]:
    """What stands on the axis, from slice 0 on: names with their sizes, and free slices one by one."""
    position = 0
    for instance in sorted(instances, key=lambda item: item.placement.start):
        yield from ((free, 1) for _ in range(position, instance.placement.start))
        yield instance.profile.name, instance.placement.size
        position = instance.placement.end
    yield from ((free, 1) for _ in range(position, gpu.memory_slices))
