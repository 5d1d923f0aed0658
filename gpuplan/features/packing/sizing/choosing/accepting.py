"""Choices that hold the most pods when there are more or fewer of them than planned, on all nodes that there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.features.packing.sizing.answers import Bound, NodeType, Proof
from gpuplan.features.packing.sizing.choosing.asking import Ask, Place
from gpuplan.features.packing.sizing.choosing.highs import INFINITE, Solution
from gpuplan.features.packing.sizing.choosing.parts import holds, size
from gpuplan.features.packing.sizing.choosing.program import Choice, Found, Maker
from gpuplan.features.packing.sizing.overflow import Law, Overflow, off_by

MOST_ROUNDS = 40
PAIRS = 16
"""How often each need is off while a choice is made; more of it hardly changes the choice."""
OWN = 0.1
"""What a pod counts that finds room only in a part larger than its own."""
STEP = 0.01
"""Answers that hold so many pods more or less are as good."""
MOST_PUSHED = 12
"""So many kinds of parts, the smallest ones, are insisted on."""
PUSHED_RADIUS = 8
"""So many parts more or less of the others are looked at then, or as many as one node has of a kind."""
SECONDS_EACH = 2.0
"""A round may take so long; it need not be proven to be the best one."""

Room = Mapping[Place, int]
"""How many parts there are at each place."""


class _Reached(NamedTuple):
    """A choice that can be, the room that it has, and how many pods it turns away on average."""

    choice: Choice
    solution: Solution
    room: Room
    away: float


def accept(
    make: Maker,
    asked: Sequence[Ask],
    types: Sequence[NodeType],
    amounts: Sequence[Fraction],
    tolerance: float,
    nearest: Callable[[Choice, float], Solution],
) -> Found | None:
    """What is asked for has room, and the rest is cut so that the fewest pods are turned away on average.

    It goes from one choice to a better one: what one part more or less of each kind is worth gives an integer program,
    which is followed as far as that can be trusted, and half as far where it was not. Where that ends, one part more or
    less of some kind is insisted on. All this first for demand as planned, then from there for demand that is off; and
    once more from how nodes are cut today, or nearly so, so that no answer is worse than that. There may be better ones
    far from both. Of answers with as much room it takes the one that is ``nearest`` to how nodes are cut today.
    None where HiGHS finds none at all.
    """
    search = _Search(make, amounts, types)
    starts = (search.today(_Loss(asked, 0), nearest), search.find(_Loss(asked, 0)))
    best = None
    for start in starts:
        found = search.climb_all(asked, start, tolerance) if start else None
        best = found if found and (best is None or found.away < best.away - STEP) else best
    if best is None:
        return None
    choice = search.full()
    for place, count in best.room.items():
        if count:
            choice.program.row(count, choice.supply[place], INFINITE)
    near = nearest(choice, SECONDS_EACH)
    bound = Bound(Fraction(0), Proof.NONE)
    is_good = bool(near.values) and choice.holds(near, amounts)
    return choice.found(near, bound) if is_good else best.choice.found(best.solution, bound)


class _Around(NamedTuple):
    """Where to look for a better choice: so many parts of each kind more or less than a room has.

    Of the place that is ``pushed`` there must be one more, or one less where ``by`` says so.
    """

    room: Room
    radius: int
    pushed: Place | None = None
    by: int = 1


class _Search:
    """Choices of one maker, on all nodes."""

    def __init__(self, make: Maker, amounts: Sequence[Fraction], types: Sequence[NodeType]) -> None:
        self._make, self._amounts, self._types = make, amounts, types

    def today(self, loss: _Loss, nearest: Callable[[Choice, float], Solution]) -> _Reached | None:
        """What is asked for has room, and nodes are cut as near to today as can be."""
        choice = self.full()
        return self._reached(choice, nearest(choice, SECONDS_EACH), loss)

    def climb_all(self, asked: Sequence[Ask], best: _Reached, tolerance: float) -> _Reached:
        """For demand as planned, then for demand that is off."""
        for off in sorted({0.0, tolerance}):
            loss = _Loss(asked, off)
            best = self.climb(loss, best._replace(away=loss.away(best.room)))
        return best

    def climb(self, loss: _Loss, best: _Reached) -> _Reached:
        """From a choice to better ones, until none is near."""
        for _ in range(MOST_ROUNDS):
            best = self._follow(loss, best)
            pushed = self._push(loss, best)
            if pushed is None:
                break
            best = pushed
        return best

    def _follow(self, loss: _Loss, best: _Reached) -> _Reached:
        radius = max(4, max(best.room.values(), default=0) // 2)
        for _ in range(MOST_ROUNDS):
            found = self.find(loss, _Around(best.room, radius))
            if found is not None and _is_better(found, best):
                best = found
            elif radius <= 1:
                break
            else:
                radius = max(radius // 2, 1)
        return best

    def _push(self, loss: _Loss, best: _Reached) -> _Reached | None:
        """A better choice that what parts are worth one by one does not lead to: one stands in for another."""
        radius = max(PUSHED_RADIUS, *(each for factors in best.choice.supply.values() for each in factors.values()))
        for place in loss.places(best.room)[:MOST_PUSHED]:
            for by in (1, -1):
                found = self.find(loss, _Around(best.room, round(radius), place, by))
                if found is not None and _is_better(found, best):
                    return found
        return None

    def find(self, loss: _Loss, around: _Around | None = None) -> _Reached | None:
        """The choice that is worth the most by what parts are worth around a room; any choice with none."""
        choice = self.full()
        costs: dict[int, float] = {}
        for place in loss.places(choice.supply):
            least, steps = (0, ()) if around is None else loss.worth(around.room, place, around.radius)
            taken = {}
            for width, each in steps:
                if each > 0:
                    index = choice.program.number(width)
                    costs[index] = -each
                    taken[index] = -1.0
            choice.program.row(least, {**choice.supply[place], **taken}, INFINITE)
        if around is not None and around.pushed is not None:
            count = around.room.get(around.pushed, 0) + around.by
            bounds = (count, INFINITE) if around.by > 0 else (-INFINITE, count)
            choice.program.row(bounds[0], choice.supply[around.pushed], bounds[1])
        return self._reached(choice, choice.solve(costs, step=STEP, time_limit_s=SECONDS_EACH), loss)

    def _reached(self, choice: Choice, solution: Solution, loss: _Loss) -> _Reached | None:
        if not (solution.values and choice.holds(solution, self._amounts)):
            return None
        room = {place: _sum(choice.supply[place], solution) for place in choice.supply}
        return _Reached(choice, solution, room, loss.away(room))

    def full(self) -> Choice:
        """A choice that uses all nodes of each type that is of use: one that stands idle turns pods away."""
        choice = self._make(self._amounts)
        useful = {number for number, _ in choice.supply}
        for number, node_type in enumerate(self._types):
            forms = [index for index, form in choice.node_forms.items() if form.number == number]
            if number in useful and node_type.nodes is not None:
                choice.program.row(node_type.nodes, dict.fromkeys(forms, 1), node_type.nodes)
        return choice


def _is_better(found: _Reached, best: _Reached) -> bool:
    return found.away < best.away - STEP / 10


def _sum(factors: Mapping[int, float], solution: Solution) -> int:
    return round(sum(factor * solution.values[index] for index, factor in factors.items()))


class _Loss:
    """How many pods are turned away for want of room, on average over what demand may be.

    Pods may take larger parts when theirs are taken; those that would be turned away if they did not count a little,
    too, since not all work knows how to ask for another resource.
    """

    def __init__(self, asked: Sequence[Ask], tolerance: float) -> None:
        self._asked = asked
        pods = [float(ask.amount / max(ask.worth.values(), default=Fraction(1))) for ask in asked]
        self._demands = [
            [count * factor for count, factor in zip(pods, factors, strict=True)]
            for factors in off_by(len(pods), tolerance, PAIRS)
        ]
        self._order: tuple[Place, ...] = ()
        self._larger = self._own = Overflow(())
        self._known: dict[tuple[int, ...], float] = {}

    def places(self, supply: Iterable[Place]) -> Sequence[Place]:
        """All places at which something is handed out, from the smallest part on."""
        order = tuple(sorted(supply, key=lambda place: (*size(place[1]), place[0])))
        if order != self._order:
            self._order = order
            places = [*enumerate(order)]
            self._larger = Overflow(
                [[at for at, (_, part) in places if holds(part, ask.needs[0])] for ask in self._asked]
            )
            self._own = Overflow(
                [[at for at, place in places if place in (ask.least or ask.worth)] for ask in self._asked]
            )
            self._known.clear()
        return order

    def away(self, room: Room) -> float:
        counts = tuple(room.get(place, 0) for place in self.places(room))
        if counts not in self._known:
            away = sum(self._away(pods, counts) for pods in self._demands)
            self._known[counts] = away / len(self._demands)
        return self._known[counts]

    def _away(self, pods: Sequence[float], counts: Sequence[int]) -> float:
        larger, own = (sum(one.turned_away(pods, counts, Law.BY_CHANCE)) for one in (self._larger, self._own))
        return larger + OWN * own

    def worth(self, room: Room, place: Place, radius: int) -> tuple[int, Sequence[tuple[int, float]]]:
        """The fewest parts of a kind that are looked at; then how many more at a time, and what each of them saves.

        What the next ones save is never more than what those before them do.
        """
        count = room.get(place, 0)
        points = sorted({max(count + part, 0) for part in (-radius, -(radius // 2), -1, 0, 1, radius // 2, radius)})
        away = [self.away({**room, place: point}) for point in points]
        return points[0], [*_falling(points, away)]


def _falling(points: Sequence[int], away: Sequence[float]) -> Iterator[tuple[int, float]]:
    least = INFINITE
    for at in range(1, len(points)):
        width = points[at] - points[at - 1]
        least = min(least, (away[at - 1] - away[at]) / width)
        yield width, least
