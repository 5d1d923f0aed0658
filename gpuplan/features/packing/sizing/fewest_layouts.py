"""The fewest different layouts for instances on as few GPUs as hold them, with how many there are at least."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.planning.placement.layouts import Vector, maximal_layouts
from gpuplan.features.packing.sizing.frontier import Frontier, frontier
from gpuplan.features.packing.sizing.packing import Packing

MOST_STATES = 12
"""How many ways to begin are followed at once."""
MOST_TRIED = 20_000
"""How many choices a proof looks at before it gives up; a tenth of a second or so."""

Times = Mapping[int, int]
"""How many GPUs have a layout, by its place among the layouts that may be taken."""


class Simpler(Value):
    """A packing whose layouts hold what is asked for or more; none on so many GPUs has fewer than ``least`` layouts."""

    packing: Packing
    least: int


def with_fewest_layouts(packing: Packing) -> Simpler:
    """As many GPUs, cut in fewer ways: layouts of the profiles that are asked for, to which none of these can be added.

    Each layout is taken on as many GPUs as prices allow, and of the ways to do so those are followed that leave least,
    until nothing is left. That finds few layouts, and nearly always the fewest. Whether fewer will do is then tried in
    all ways, until these are too many: ``least`` says how far that came.
    """
    known = frontier(packing.gpu)
    layouts = maximal_layouts(packing.gpu, [name for name, count in packing.counts.items() if count])
    vectors = [known.vector(layout) for layout in layouts]
    start = _State(known.vector(packing.counts), packing.gpus, {})
    found = _follow(known, vectors, start)
    least, better = _try_fewer(known, vectors, start, len(packing.layouts) if found is None else len(found))
    times = found if better is None else better
    if times is None or len(times) >= len(packing.layouts):
        return Simpler(packing, least)
    held = tuple((layout, times[at]) for at, layout in enumerate(layouts) if at in times)
    return Simpler(Packing(packing.gpu, packing.counts, held, packing.bound), least)


class _State(NamedTuple):
    """What is still asked for, the GPUs that are left, and which layouts the others have."""

    left: Vector
    gpus: int
    times: Times


def _follow(known: Frontier, vectors: Sequence[Vector], start: _State) -> Times | None:
    """The layouts of the shortest of the ways that are followed; None where each ends with something left."""
    states = [start]
    while states:
        reached: dict[Vector, _State] = {}
        for state in states:
            if not any(state.left):
                return state.times
            for at, vector in enumerate(vectors):
                times, left = known.take(state.left, state.gpus, vector)
                if times and at not in state.times:
                    grown = _State(left, state.gpus - times, {**state.times, at: times})
                    reached[left] = max(grown, reached.get(left, grown), key=_gpus)
        states = sorted(reached.values(), key=_what_is_left)[:MOST_STATES]
    return None


def _gpus(state: _State) -> int:
    return state.gpus


def _what_is_left(state: _State) -> tuple[int, int]:
    return sum(map(bool, state.left)), sum(state.left)


# --- Whether fewer will do ---------------------------------------------------------------------------------------


def _try_fewer(known: Frontier, vectors: Sequence[Vector], start: _State, found: int) -> tuple[int, Times | None]:
    """How many layouts there are at least, and such as were overlooked."""
    most = [known.take(start.left, start.gpus, vector)[0] for vector in vectors]
    tried = 0
    for size in range(1, found):
        for chosen in combinations([at for at, times in enumerate(most) if times], size):
            for times in _ways(vectors, most, chosen, start):
                tried += 1
                if times is not None:
                    return size, times
                if tried > MOST_TRIED:
                    return size, None
    return found, None


def _ways(
    vectors: Sequence[Vector], most: Sequence[int], chosen: Sequence[int], state: _State
) -> Iterator[Times | None]:
    """For each way to give GPUs to the chosen layouts but the last two: what each has; None where that is too few."""
    first, *others = chosen
    if len(others) < 2:
        yield _divide(vectors, first, others[-1] if others else first, state)
    elif not _holds_each(vectors, chosen, state.left):
        yield None
    else:
        for times in range(1, min(most[first], state.gpus) + 1):
            left = tuple(count - times * held for count, held in zip(state.left, vectors[first], strict=True))
            yield from _ways(vectors, most, others, _State(left, state.gpus - times, {**state.times, first: times}))


def _holds_each(vectors: Sequence[Vector], chosen: Sequence[int], left: Vector) -> bool:
    """Whether some chosen layout holds each of what is left; what was held already is below zero."""
    return all(any(vectors[at][index] for at in chosen) for index, count in enumerate(left) if count > 0)


def _divide(vectors: Sequence[Vector], first: int, other: int, state: _State) -> Times | None:
    """All GPUs that are left between two layouts: as few as hold the rest have the first one."""
    least, highest = 0, state.gpus
    for count, one, two in zip(state.left, vectors[first], vectors[other], strict=True):
        lacking = count - two * state.gpus
        if one > two:
            least = max(least, -(-lacking // (one - two)))
        elif one < two:
            highest = min(highest, -lacking // (two - one))
        elif lacking > 0:
            return None
    if least > highest:
        return None
    return {**state.times, **{at: gpus for at, gpus in ((other, state.gpus - least), (first, least)) if gpus}}
