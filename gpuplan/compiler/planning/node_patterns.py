"""Patterns of node names: the names that they match, and whether two patterns can match the same name.

A pattern must match the whole name. Sets of its automaton's positions are bits of whole numbers, so that a set moves on
in a few operations however long a repetition unrolls (Navarro and Raffinot, Flexible Pattern Matching in Strings,
chapter 5).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from operator import and_

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.planning.node_pattern_syntax import (
    ALPHABET,
    CHARACTER,
    DIGITS,
    LETTERS,
    LONGEST_NAME,
    START,
    Characters,
    Positions,
    Unreadable,
    bits,
    characters,
    read,
)
from gpuplan.compiler.planning.plan import Nodes

_ALNUM = characters(LETTERS + DIGITS)
_HYPHEN = characters("-")
_DOT = characters(".")
_MAY_FOLLOW = {_ALNUM: (_ALNUM, _HYPHEN, _DOT), _HYPHEN: (_ALNUM, _HYPHEN), _DOT: (_ALNUM,)}
"""Legal names by kinds of characters: between dots, they begin and end with a letter or a digit.

So a name begins as what follows a dot does.
"""


class NodePattern(Value, eq=False):
    """A pattern as an automaton: ``accepts[p]`` is what position ``p`` reads, ``follow[p]`` where it may go next.

    ``last`` are the positions at which a match may end. ``foreign`` are the literal characters of the pattern that no
    node name holds.
    """

    text: str
    foreign: str
    last: Positions
    accepts: tuple[Characters, ...]
    follow: tuple[Positions, ...]

    def matches(self, name: str) -> bool:
        """Whether the pattern matches the whole name."""
        reached = START
        for character in name:
            reached = self.step(reached) & _readers(self, CHARACTER.get(character, 0))
        return bool(reached & self.last)

    def step(self, positions: Positions) -> Positions:
        """Return every position that may follow one of these."""
        chain, jumps = self._moves
        reached = (positions & chain) << 1
        for origins, targets in jumps:
            if positions & origins:
                reached |= targets
        return reached

    @cached_property
    def _moves(self) -> tuple[Positions, tuple[tuple[Positions, Positions], ...]]:
        """The positions that go to the one after them, and for all other moves: from which positions to which."""
        chain = 0
        jumps: defaultdict[Positions, Positions] = defaultdict(int)
        for position, targets in enumerate(self.follow):
            next_one = 2 << position
            chain |= (targets & next_one) >> 1
            jumps[targets & ~next_one] |= 1 << position
        return chain, tuple((origins, targets) for targets, origins in jumps.items() if targets)

    @cached_property
    def positions_by_characters(self) -> tuple[tuple[Characters, Positions], ...]:
        found: defaultdict[Characters, Positions] = defaultdict(int)
        for position, accepted in enumerate(self.accepts):
            found[accepted] |= 1 << position
        return tuple(found.items())

    @cached_property
    def prefix(self) -> str:
        """The beginning of every matching name."""
        return self._common(self.follow[0], self.last, self.step)

    @cached_property
    def suffix(self) -> str:
        """The end of every matching name."""
        return self._common(self.last, self.follow[0], self._step_back)[::-1]

    def _common(self, positions: Positions, stop: Positions, move: Callable[[Positions], Positions]) -> str:
        text = ""
        while len(text) < LONGEST_NAME and (read_here := self.reads(positions)).bit_count() == 1:
            text += _lowest(read_here)
            if positions & stop:
                break
            positions = move(positions)
        return text

    def _step_back(self, positions: Positions) -> Positions:
        return sum(1 << position for position, targets in enumerate(self.follow) if targets & positions)

    def reads(self, positions: Positions) -> Characters:
        """Return the characters that these positions read."""
        found = 0
        for position in bits(positions):
            found |= self.accepts[position]
        return found


@lru_cache(maxsize=1 << 15)
def _readers(pattern: NodePattern, wanted: Characters) -> Positions:
    """The positions of a pattern that read one of the characters."""
    return sum(positions for accepted, positions in pattern.positions_by_characters if accepted & wanted)


# Clusters share policies, so the same questions come once for each cluster: the answers are kept.
@lru_cache(maxsize=1024)
def parse(text: str) -> NodePattern | Unreadable:
    """Read a pattern; the same text gives the same object."""
    found = read(text)
    return found if isinstance(found, Unreadable) else NodePattern(text, *found)


@lru_cache(maxsize=1)
def _every_name() -> NodePattern:
    pattern = parse(".+")
    assert isinstance(pattern, NodePattern)  # noqa: S101 - the text is above
    return pattern


# --- What two patterns have in common ----------------------------------------------------------------------------

Frontier = dict[tuple[int, Characters], Positions]
"""For a position of one pattern and the kind of its character: the positions of the other that go with it."""


@lru_cache(maxsize=1024)
def find_name(pattern: NodePattern) -> str | None:
    """Return the shortest legal node name that the pattern matches, or None."""
    return find_common_name(pattern, _every_name())


@lru_cache(maxsize=8192)
def find_common_name(one: NodePattern, other: NodePattern) -> str | None:
    """Return the shortest legal node name that both patterns match, or None.

    It searches the product of the two automata and the rules of names breadth first, a length at a time.
    """
    if not _is_either(one.prefix, other.prefix, str.startswith) or not _is_either(
        one.suffix, other.suffix, str.endswith
    ):
        return None
    frontiers: list[Frontier] = [{(0, _DOT): START}]
    seen: Frontier = {}
    while frontiers[-1] and len(frontiers) <= LONGEST_NAME + 1:
        for (position, kind), partners in frontiers[-1].items():
            if kind == _ALNUM and one.last >> position & 1 and (ends := partners & other.last):
                return _spell(one, other, frontiers[:-1], position, kind, next(bits(ends)))
        frontiers.append(_advance(one, other, frontiers[-1], seen))
    return None


def _is_either(one: str, other: str, contains: Callable[[str, str], bool]) -> bool:
    return contains(one, other) or contains(other, one)


def _advance(one: NodePattern, other: NodePattern, frontier: Frontier, seen: Frontier) -> Frontier:
    """Read one more character: every pair of positions that was not met before."""
    found: Frontier = {}
    for (position, kind), partners in frontier.items():
        targets = other.step(partners)
        for target in bits(one.follow[position]):
            for next_kind in _MAY_FOLLOW[kind]:
                key = target, next_kind
                new = targets & _readers(other, one.accepts[target] & next_kind) & ~seen.get(key, 0)
                if new:
                    seen[key] = seen.get(key, 0) | new
                    found[key] = found.get(key, 0) | new
    return found


def _spell(
    one: NodePattern, other: NodePattern, frontiers: list[Frontier], position: int, kind: Characters, partner: int
) -> str:
    """Walk back from the end, a character at each step: every pair was reached from the frontier before it."""
    name = ""
    for frontier in reversed(frontiers):
        name = _lowest(one.accepts[position] & other.accepts[partner] & kind) + name
        position, kind, partner = next(
            (before, kind_before, candidate)
            for (before, kind_before), partners in frontier.items()
            if kind in _MAY_FOLLOW[kind_before] and one.follow[before] >> position & 1
            for candidate in bits(partners)
            if other.follow[candidate] >> partner & 1
        )
    return name


# --- What one pattern has by itself ------------------------------------------------------------------------------

_MOST_STEPS = 2000

Reached = tuple[tuple[Positions, ...], Characters]
"""The positions of each pattern that the beginning of a name leads to, and the kind of its last character."""


def _onward(patterns: tuple[NodePattern, ...], reached: Reached) -> Iterator[tuple[Reached, Characters]]:
    """Yield the positions that one more character leads to if the first pattern goes on, with these characters."""
    positions, kind = reached
    ahead = [pattern.step(at) for pattern, at in zip(patterns, positions, strict=True)]
    for choices, next_kind, readers in _letters(patterns):
        if next_kind in _MAY_FOLLOW[kind] and ahead[0] & readers[0]:
            yield (tuple(map(and_, ahead, readers)), next_kind), choices


@lru_cache(maxsize=1024)
def _letters(patterns: tuple[NodePattern, ...]) -> list[tuple[Characters, Characters, list[Positions]]]:
    """Return groups of characters that all positions treat alike, with their kind and the positions that read them."""
    groups = [(kind, kind) for kind in _MAY_FOLLOW]
    for accepted in sorted({accepted for pattern in patterns for accepted in pattern.accepts}):
        groups = [(part, kind) for group, kind in groups for part in (group & accepted, group & ~accepted) if part]
    return [(group, kind, [_readers(pattern, group) for pattern in patterns]) for group, kind in groups]


@lru_cache(maxsize=1024)
def find_other_name(pattern: NodePattern, others: tuple[NodePattern, ...]) -> str | None:
    """Return a shortest legal node name that the pattern matches and none of the others does, or None.

    It searches the sets of positions that beginnings lead to, breadth first. After too many steps it takes any name of
    the pattern for such a name.
    """
    patterns = pattern, *others
    frontier: dict[Reached, str] = {((START,) * len(patterns), _DOT): ""}
    seen = set(frontier)
    for _ in range(LONGEST_NAME + 1):
        for (positions, kind), name in frontier.items():
            is_end, *is_others = (bool(at & one.last) for at, one in zip(positions, patterns, strict=True))
            if kind == _ALNUM and is_end and not any(is_others):
                return name
        if not frontier:
            return None
        if len(seen) > _MOST_STEPS:
            break
        frontier = {
            after: name + _lowest(choices)
            for reached, name in frontier.items()
            for after, choices in _onward(patterns, reached)
            if after not in seen
        }
        seen.update(frontier)
    return find_name(pattern)


@lru_cache(maxsize=1024)
def count_names(pattern: NodePattern, at_most: int) -> int:
    """Count the legal node names that the pattern matches, no further than ``at_most``.

    A name is one way through the sets of positions that its beginnings lead to, so ways are counted, a length at a
    time. A pattern that takes too many steps is taken to match enough.
    """
    ways: Counter[Reached] = Counter({((START,), _DOT): 1})
    total = steps = 0
    for _ in range(LONGEST_NAME):
        longer: Counter[Reached] = Counter()
        for reached, count in ways.items():
            for after, choices in _onward((pattern,), reached):
                longer[after] += choices.bit_count() * count
        ways = longer
        total += sum(count for ((at,), kind), count in ways.items() if kind == _ALNUM and at & pattern.last)
        steps += len(ways)
        if total >= at_most or steps > _MOST_STEPS:
            return at_most
    return total


def _lowest(wanted: Characters) -> str:
    return ALPHABET[next(bits(wanted))]


def has_node(nodes: Nodes, name: str) -> bool:
    """Whether a node belongs to a pool, or a part of one, by its name."""
    if nodes.names:
        return name in nodes.names
    pattern = find_pattern(nodes.name_pattern)
    return pattern is not None and name not in nodes.moved and pattern.matches(name)


def find_pattern(text: str | None) -> NodePattern | None:
    """Return the pattern that a text spells, or None if it is no readable pattern."""
    found = parse(text) if text else None
    return found if isinstance(found, NodePattern) else None
