"""Patterns of node names: which names they match, and whether two of them can match the same one.

A pattern must match the whole name. It becomes a Glushkov automaton with a position for each character of the unrolled
pattern. Sets of positions are bits of whole numbers, so that a set moves on in a few operations however long a
repetition unrolls (Navarro and Raffinot, Flexible Pattern Matching in Strings, chapter 5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import assert_never

from gpuplan.planning.node_pattern_syntax import (
    ALPHABET,
    ANY,
    DIGITS,
    INDEX,
    LETTERS,
    Characters,
    Choice,
    One,
    Repeat,
    Sequence,
    Tree,
    Unreadable,
    characters,
    read,
)
from gpuplan.values import Value

__all__ = [
    "LONGEST_NAME",
    "NodePattern",
    "Unreadable",
    "count_names",
    "find_common_name",
    "find_name",
    "find_other_name",
    "parse",
]

LONGEST_NAME = 253
"""A node's name is a DNS-1123 subdomain, which is at most this long."""

_MOST_POSITIONS = 1024

_ALNUM = characters(LETTERS + DIGITS)
_HYPHEN = characters("-")
_DOT = characters(".")
_MAY_FOLLOW = {_ALNUM: (_ALNUM, _HYPHEN, _DOT), _HYPHEN: (_ALNUM, _HYPHEN), _DOT: (_ALNUM,)}
"""Legal names by kinds of characters: between dots, they begin and end with a letter or a digit."""

Positions = int
"""A set of an automaton's positions: one bit each."""


class NodePattern(Value, eq=False):
    """A pattern as an automaton: ``accepts[p]`` is what position ``p`` reads, ``follow[p]`` where it may go next.

    ``foreign`` are the literal characters of the pattern that no node name holds.
    """

    text: str
    foreign: str
    matches_empty: bool
    first: Positions
    last: Positions
    accepts: tuple[Characters, ...]
    follow: tuple[Positions, ...]

    def matches(self, name: str) -> bool:
        """Whether the pattern matches the whole name."""
        if not name:
            return self.matches_empty
        reached = -1
        for character in name:
            if character not in INDEX:
                return False
            allowed = self.first if reached == -1 else self.step(reached)
            reached = allowed & self.readers(1 << INDEX[character])
            if not reached:
                return False
        return bool(reached & self.last)

    def step(self, positions: Positions) -> Positions:
        """Every position that may follow one of these."""
        chain, jumps = self._moves
        reached = (positions & chain) << 1
        for origins, targets in jumps:
            if positions & origins:
                reached |= targets
        return reached

    def readers(self, wanted: Characters) -> Positions:
        """The positions that read one of the characters."""
        found = self._known_readers.get(wanted)
        if found is None:
            found = 0
            for accepted, positions in self._positions_by_characters.items():
                if accepted & wanted:
                    found |= positions
            self._known_readers[wanted] = found
        return found

    @cached_property
    def prefix(self) -> str:
        """What every matching name begins with."""
        return self._common(self.first, self.last, self.step)

    @cached_property
    def suffix(self) -> str:
        """What every matching name ends with."""
        return self._common(self.last, self.first, self._step_back)[::-1]

    def _common(self, start: Positions, stop: Positions, move: Callable[[Positions], Positions]) -> str:
        text = ""
        positions = 0 if self.matches_empty else start
        while positions and len(text) < LONGEST_NAME:
            read_here = 0
            for position in _bits(positions):
                read_here |= self.accepts[position]
            if read_here.bit_count() != 1:
                break
            text += _lowest(read_here)
            positions = 0 if positions & stop else move(positions)
        return text

    @cached_property
    def groups(self) -> tuple[tuple[Characters, Positions], ...]:
        """Characters that the same positions read, and those positions."""
        groups: list[tuple[Characters, Positions]] = [(ANY, 0)]
        for accepted, positions in self._positions_by_characters.items():
            groups = [
                (part, readers | positions if is_read else readers)
                for letters, readers in groups
                for is_read, part in ((True, letters & accepted), (False, letters & ~accepted))
                if part
            ]
        return tuple((letters, readers) for letters, readers in groups if readers)

    @cached_property
    def _moves(self) -> tuple[Positions, tuple[tuple[Positions, Positions], ...]]:
        """The positions that go to the one after them, and for all other moves: from which positions to which."""
        chain = 0
        jumps: dict[Positions, Positions] = {}
        for position, targets in enumerate(self.follow):
            next_one = 2 << position
            if targets & next_one:
                chain |= 1 << position
            if others := targets & ~next_one:
                jumps[others] = jumps.get(others, 0) | 1 << position
        return chain, tuple((origins, targets) for targets, origins in jumps.items())

    @cached_property
    def _positions_by_characters(self) -> dict[Characters, Positions]:
        found: dict[Characters, Positions] = {}
        for position, accepted in enumerate(self.accepts):
            found[accepted] = found.get(accepted, 0) | 1 << position
        return found

    @cached_property
    def _known_readers(self) -> dict[Characters, Positions]:
        return {}

    def _step_back(self, positions: Positions) -> Positions:
        return sum(1 << position for position, targets in enumerate(self.follow) if targets & positions)


# Clusters share policies, so the same questions come once for each cluster: the answers are kept.
@lru_cache(maxsize=1024)
def parse(text: str) -> NodePattern | Unreadable:
    """Read a pattern; the same text gives the same object."""
    tree = read(text)
    if isinstance(tree, Unreadable):
        return tree
    shape, foreign = tree
    if _size(shape) > _MOST_POSITIONS:
        return Unreadable(f"the pattern unrolls to more than {_MOST_POSITIONS} characters", 1, "write `+` or `*`")
    return _Builder().build(text, foreign, shape)


@lru_cache(maxsize=1)
def _every_name() -> NodePattern:
    pattern = parse(".+")
    assert isinstance(pattern, NodePattern)  # noqa: S101 - the text is above
    return pattern


# --- Questions ---------------------------------------------------------------------------------------------------

Frontier = dict[tuple[int, Characters], Positions]
"""For a position of one pattern and the kind of its character: the positions of the other that go with it."""


@lru_cache(maxsize=1024)
def find_name(pattern: NodePattern) -> str | None:
    """The shortest legal node name that the pattern matches."""
    return find_common_name(pattern, _every_name())


@lru_cache(maxsize=8192)
def find_common_name(one: NodePattern, other: NodePattern) -> str | None:
    """The shortest legal node name that both patterns match, or None when there is none.

    It searches the product of the two automata and the rules of names breadth first, a length at a time.
    """
    if not _ends_agree(one, other):
        return None
    frontiers = [_begin(one, other)]
    seen: Frontier = dict(frontiers[0])
    while frontiers[-1] and len(frontiers) <= LONGEST_NAME:
        if end := _find_end(one, other, frontiers[-1]):
            return _spell(one, other, frontiers, end)
        frontiers.append(_advance(one, other, frontiers[-1], seen))
    return None


def _ends_agree(one: NodePattern, other: NodePattern) -> bool:
    return _is_either(one.prefix, other.prefix, str.startswith) and _is_either(one.suffix, other.suffix, str.endswith)


def _is_either(one: str, other: str, contains: Callable[[str, str], bool]) -> bool:
    return contains(one, other) or contains(other, one)


def _begin(one: NodePattern, other: NodePattern) -> Frontier:
    found: Frontier = {}
    for position in _bits(one.first):
        shared = other.first & other.readers(one.accepts[position] & _ALNUM)
        if shared:
            found[position, _ALNUM] = shared
    return found


def _advance(one: NodePattern, other: NodePattern, frontier: Frontier, seen: Frontier) -> Frontier:
    """Read one more character: every pair of positions that was not met before."""
    found: Frontier = {}
    for (position, kind), partners in frontier.items():
        targets = other.step(partners)
        for target in _bits(one.follow[position]):
            for next_kind in _MAY_FOLLOW[kind]:
                key = target, next_kind
                new = targets & other.readers(one.accepts[target] & next_kind) & ~seen.get(key, 0)
                if new:
                    seen[key] = seen.get(key, 0) | new
                    found[key] = found.get(key, 0) | new
    return found


Pair = tuple[int, Characters, int]
"""A position of one pattern, the kind of its character, a position of the other."""


def _find_end(one: NodePattern, other: NodePattern, frontier: Frontier) -> Pair | None:
    for (position, kind), partners in frontier.items():
        if kind == _ALNUM and one.last >> position & 1 and (ends := partners & other.last):
            return position, kind, _lowest_bit(ends)
    return None


def _spell(one: NodePattern, other: NodePattern, frontiers: list[Frontier], end: Pair) -> str:
    """Walk back from the end, a character at each step."""
    pairs = [end]
    for frontier in reversed(frontiers[:-1]):
        pairs.append(_find_before(one, other, frontier, pairs[-1]))
    shared = (one.accepts[position] & other.accepts[partner] & kind for position, kind, partner in reversed(pairs))
    return "".join(map(_lowest, shared))


def _find_before(one: NodePattern, other: NodePattern, frontier: Frontier, pair: Pair) -> Pair:
    position, kind, partner = pair
    for (before, kind_before), partners in frontier.items():
        if kind in _MAY_FOLLOW[kind_before] and one.follow[before] >> position & 1:
            for candidate in _bits(partners):
                if other.follow[candidate] >> partner & 1:
                    return before, kind_before, candidate
    raise AssertionError(f"no way to {pair}")  # every pair was reached from the frontier before it


Reached = tuple[Positions, Characters, tuple[Positions, ...]]
"""The positions of one pattern that a beginning leads to, the kind of its last character, the positions of others."""


@lru_cache(maxsize=1024)
def find_other_name(pattern: NodePattern, others: tuple[NodePattern, ...]) -> str | None:
    """A shortest legal node name that the pattern matches and none of the others does, or None when there is none.

    Breadth first through the sets of positions that beginnings lead to. Where that takes too many steps, one name of
    the pattern is taken to be such a name.
    """
    letters = _alike((pattern, *others))
    start = pattern.first, tuple(other.first for other in others)
    frontier: dict[Reached, str] = _read(pattern, others, letters, (_ALNUM,), *start, "")
    seen = set(frontier)
    for _ in range(LONGEST_NAME):
        for (positions, kind, theirs), name in frontier.items():
            is_others = any(at & other.last for at, other in zip(theirs, others, strict=True))
            if kind == _ALNUM and positions & pattern.last and not is_others:
                return name
        if not frontier:
            return None
        if len(seen) > _MOST_STEPS:
            break
        found: dict[Reached, str] = {}
        for (positions, kind, theirs), name in frontier.items():
            next_theirs = tuple(other.step(at) for at, other in zip(theirs, others, strict=True))
            found |= _read(pattern, others, letters, _MAY_FOLLOW[kind], pattern.step(positions), next_theirs, name)
        frontier = {reached: name for reached, name in found.items() if reached not in seen}
        seen.update(frontier)
    return find_name(pattern)


def _read(
    pattern: NodePattern,
    others: tuple[NodePattern, ...],
    letters: tuple[Characters, ...],
    kinds: tuple[Characters, ...],
    positions: Positions,
    theirs: tuple[Positions, ...],
    name: str,
) -> dict[Reached, str]:
    """Where one more character leads; of characters that lead to the same, one stands for all."""
    found: dict[Reached, str] = {}
    for kind in kinds:
        for group in letters:
            if (choices := group & kind) and (reached := positions & pattern.readers(choices)):
                after = tuple(at & other.readers(choices) for at, other in zip(theirs, others, strict=True))
                found.setdefault((reached, kind, after), name + _lowest(choices))
    return found


def _alike(patterns: tuple[NodePattern, ...]) -> tuple[Characters, ...]:
    """Characters that no position of any of the patterns tells apart."""
    groups: tuple[Characters, ...] = (ANY,)
    for accepted in sorted({accepted for pattern in patterns for accepted in pattern.accepts}):
        groups = tuple(part for group in groups for part in (group & accepted, group & ~accepted) if part)
    return groups


# --- Counting ----------------------------------------------------------------------------------------------------

_MOST_STEPS = 2000

Way = tuple[Positions, tuple[Characters, ...], int]
"""Positions that may be read next, the kinds of characters that may, and how many beginnings of names lead there."""


@lru_cache(maxsize=1024)
def count_names(pattern: NodePattern, at_most: int) -> int:
    """How many legal node names the pattern matches, counted no further than ``at_most``.

    A name is one way through the sets of positions that its beginnings lead to, so ways are counted, a length at a
    time. A pattern that takes too many steps is taken to match enough.
    """
    ways: list[Way] = [(pattern.first, (_ALNUM,), 1)]
    total = steps = 0
    for _ in range(LONGEST_NAME):
        reached = _spread(pattern, ways)
        total += sum(count for (at, kind), count in reached.items() if kind == _ALNUM and at & pattern.last)
        steps += len(reached)
        if total >= at_most or steps > _MOST_STEPS:
            return at_most
        ways = [(pattern.step(at), _MAY_FOLLOW[kind], count) for (at, kind), count in reached.items()]
    return total


def _spread(pattern: NodePattern, ways: list[Way]) -> dict[tuple[Positions, Characters], int]:
    """Read one more character: how many beginnings of names lead to which positions, by its kind."""
    found: dict[tuple[Positions, Characters], int] = {}
    for positions, kinds, count in ways:
        is_one = not positions & (positions - 1)
        groups = ((pattern.accepts[_lowest_bit(positions)], positions),) if is_one and positions else pattern.groups
        for letters, readers in groups:
            if reached := positions & readers:
                for kind in kinds:
                    if choices := (letters & kind).bit_count():
                        found[reached, kind] = found.get((reached, kind), 0) + choices * count
    return found


# --- Building ----------------------------------------------------------------------------------------------------


class _Part(Value):
    """A part of the automaton: whether it may be empty, and where its matches begin and end."""

    is_nullable: bool
    first: Positions
    last: Positions


_EMPTY = _Part(is_nullable=True, first=0, last=0)


class _Builder:
    """Numbers the positions from left to right and joins parts as Glushkov does."""

    def __init__(self) -> None:
        self.accepts: list[Characters] = []
        self.follow: list[Positions] = []

    def build(self, text: str, foreign: str, tree: Tree) -> NodePattern:
        part = self.part(tree)
        return NodePattern(
            text, foreign, part.is_nullable, part.first, part.last, tuple(self.accepts), tuple(self.follow)
        )

    def part(self, tree: Tree) -> _Part:
        match tree:
            case One(of):
                return self.one(of)
            case Sequence(parts):
                return self.sequence(parts)
            case Choice(branches):
                return _either([self.part(branch) for branch in branches])
            case Repeat(part):
                return self.repeat(part, *_bounds(tree))
            case _:
                assert_never(tree)

    def one(self, of: Characters) -> _Part:
        bit = 1 << len(self.accepts)
        self.accepts.append(of)
        self.follow.append(0)
        return _Part(is_nullable=False, first=bit, last=bit)

    def sequence(self, trees: tuple[Tree, ...]) -> _Part:
        whole = _EMPTY
        for tree in trees:
            whole = self.join(whole, self.part(tree))
        return whole

    def repeat(self, tree: Tree, least: int, most: int | None) -> _Part:
        if most is None:
            needed = self.sequence((tree,) * (least - 1))
            return self.join(needed, self.loop(tree, is_optional=not least))
        return self.join(self.sequence((tree,) * least), self.chain(tree, most - least))

    def loop(self, tree: Tree, *, is_optional: bool) -> _Part:
        part = self.part(tree)
        self.link(part.last, part.first)
        return _Part(part.is_nullable or is_optional, part.first, part.last)

    def chain(self, tree: Tree, copies: int) -> _Part:
        """At most so many copies: each follows only the one before it."""
        chain, newest = _EMPTY, _EMPTY
        for _ in range(copies):
            part = self.part(tree)
            self.link(newest.last, part.first)
            chain = _Part(is_nullable=True, first=chain.first or part.first, last=chain.last | part.last)
            newest = part
        return chain

    def join(self, left: _Part, right: _Part) -> _Part:
        self.link(left.last, right.first)
        return _Part(
            is_nullable=left.is_nullable and right.is_nullable,
            first=left.first | (right.first if left.is_nullable else 0),
            last=right.last | (left.last if right.is_nullable else 0),
        )

    def link(self, origins: Positions, targets: Positions) -> None:
        for position in _bits(origins):
            self.follow[position] |= targets


def _either(parts: list[_Part]) -> _Part:
    whole = _Part(is_nullable=False, first=0, last=0)
    for part in parts:
        whole = _Part(
            whole.is_nullable or part.is_nullable, first=whole.first | part.first, last=whole.last | part.last
        )
    return whole


def _bounds(repeat: Repeat) -> tuple[int, int | None]:
    """How often the part must be unrolled to be right for names, which are short."""
    least = 0 if _is_nullable(repeat.part) else min(repeat.least, LONGEST_NAME + 1)
    most = repeat.most
    return least, None if most is None or most > LONGEST_NAME else most


def _is_nullable(tree: Tree) -> bool:
    match tree:
        case One():
            return False
        case Sequence(parts):
            return all(map(_is_nullable, parts))
        case Choice(branches):
            return any(map(_is_nullable, branches))
        case Repeat(part, least, _):
            return least == 0 or _is_nullable(part)
        case _:
            assert_never(tree)


def _size(tree: Tree) -> int:
    """How much the tree grows to when it is unrolled; never less than its positions."""
    match tree:
        case One():
            return 1
        case Sequence(parts) | Choice(parts):
            return max(1, sum(map(_size, parts)))
        case Repeat(part, _, _):
            least, most = _bounds(tree)
            return _size(part) * max(1, least, most or 0)
        case _:
            assert_never(tree)


def _bits(numbers: int) -> Iterator[int]:
    while numbers:
        lowest = numbers & -numbers
        yield lowest.bit_length() - 1
        numbers ^= lowest


def _lowest_bit(numbers: int) -> int:
    return (numbers & -numbers).bit_length() - 1


def _lowest(wanted: Characters) -> str:
    return ALPHABET[_lowest_bit(wanted)]
