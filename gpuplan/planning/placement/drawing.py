"""Draws the instances on a GPU's memory slices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from gpuplan.catalog import Gpu
from gpuplan.planning.placement.arrangement import Arrangement

_IDLE = "idle"
_WIDEST = 80


@dataclass(frozen=True, slots=True)
class BoxStyle:
    """The characters of a box: corners and crossings from left to right, then lines, then what fills idle slices."""

    top: tuple[str, str, str]
    bottom: tuple[str, str, str]
    across: str
    down: str
    idle: str


UNICODE = BoxStyle(top=("┌", "┬", "┐"), bottom=("└", "┴", "┘"), across="─", down="│", idle="░")
ASCII = BoxStyle(top=("+", "+", "+"), bottom=("+", "+", "+"), across="-", down="|", idle=".")


def draw_slices(gpu: Gpu, instances: Arrangement, style: BoxStyle = UNICODE) -> str:
    """Three lines of boxes under a line of slice numbers; all slices are equally wide, adjacent idle ones share a box.

    Every line ends where the last box does, or earlier in the line of numbers.
    """
    cells = list(_cells(gpu, instances))
    width = _slice_width(gpu, cells)
    widths = [size * width + size - 1 for _, size in cells]
    numbers = " ".join(f"{number:^{width}}" for number in range(gpu.memory_slices))
    names = (_cell(name, wide, style) for (name, _), wide in zip(cells, widths, strict=True))
    middle = f"{style.down}{style.down.join(names)}{style.down}"
    return "\n".join(
        (
            f" {numbers}".rstrip(),
            _edge(style.top, style.across, widths),
            middle,
            _edge(style.bottom, style.across, widths),
        )
    )


def _cells(gpu: Gpu, instances: Arrangement) -> Iterator[tuple[str, int]]:
    """Names with their sizes from slice 0 on; the empty name is idle."""
    position = 0
    for profile, placement in instances:
        if placement.start > position:
            yield "", placement.start - position
        yield profile.name, placement.size
        position = placement.end
    if position < gpu.memory_slices:
        yield "", gpu.memory_slices - position


def _slice_width(gpu: Gpu, cells: list[tuple[str, int]]) -> int:
    """Wide enough for every name and number, with spaces beside names where that stays on a terminal's line."""
    tight, airy = (max(ceil((len(name or _IDLE) + air - size + 1) / size) for name, size in cells) for air in (0, 2))
    width = airy if gpu.memory_slices * (airy + 1) < _WIDEST else tight
    return max(width, len(str(gpu.memory_slices)) + 1)


def _cell(name: str, width: int, style: BoxStyle) -> str:
    return f"{name:^{width}}" if name else f"{_IDLE:{style.idle}^{width}}"


def _edge(corners: tuple[str, str, str], line: str, widths: list[int]) -> str:
    left, crossing, right = corners
    return f"{left}{crossing.join(line * width for width in widths)}{right}"
