"""Reads the text of a node-name pattern, the regular expressions that RE2 and Python understand alike, as an automaton.

It is that of Glushkov: a position for each character of the unrolled pattern, and `START` before all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple, Value

LETTERS = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
ALPHABET = f"{LETTERS}{DIGITS}-."
CHARACTER = {character: 1 << index for index, character in enumerate(ALPHABET)}
"""The set of each character alone."""

LONGEST_NAME: Final = 253
"""A node's name is a DNS-1123 subdomain, which is at most this long."""

_LARGEST_REPEAT = 1000  # RE2's own limit
_DEEPEST_NESTING = 50
_MOST_POSITIONS = 1024

Characters = int
"""A set of the characters that node names consist of: one bit for each of `ALPHABET`."""

Positions = int
"""A set of an automaton's positions: one bit each."""

START: Positions = 1


def characters(text: str) -> Characters:
    """The set of these characters; what no node name holds is left out."""
    return sum(CHARACTER.get(character, 0) for character in {*text})


ANY: Characters = (1 << len(ALPHABET)) - 1

_SMALL_CLASSES = {"d": characters(DIGITS), "w": characters(LETTERS + DIGITS), "s": 0}
_ESCAPED_CLASSES = _SMALL_CLASSES | {letter.upper(): ANY & ~found for letter, found in _SMALL_CLASSES.items()}
_NAMED_CLASSES = {
    **dict.fromkeys(("alnum", "word"), characters(LETTERS + DIGITS)),
    **dict.fromkeys(("alpha", "lower"), characters(LETTERS)),
    **dict.fromkeys(("ascii", "graph", "print"), ANY),
    **dict.fromkeys(("blank", "cntrl", "space", "upper"), 0),
    "digit": characters(DIGITS),
    "punct": characters("-."),
    "xdigit": characters(f"{DIGITS}abcdef"),
}

_REPETITION = regex(r"\{([0-9]{1,9})(?:(,)([0-9]{1,9})?)?\}")
_NAMED_CLASS = regex(r"\[:(\^?)([a-z]+):\]")
_GROUP_START = regex(r"\((?:\?:|\?P?<[A-Za-z_][A-Za-z0-9_]*>|(?!\?))")


class Unreadable(Value):
    """Why a pattern cannot be understood; ``column`` counts its characters from 1, ``instead`` says what to write."""

    reason: str
    column: int
    instead: str = ""


class Automaton(NamedTuple):
    """A pattern as its positions: ``accepts[p]`` is what ``p`` reads, ``follow[p]`` where it may go next.

    ``last`` are those at which a match may end, ``foreign`` the literal characters that no node name holds.
    """

    foreign: str
    last: Positions
    accepts: tuple[Characters, ...]
    follow: tuple[Positions, ...]


class Part(NamedTuple):
    """A part of an automaton: whether it may be empty, and where its matches begin and end."""

    is_nullable: bool
    first: Positions
    last: Positions


_EMPTY = Part(is_nullable=True, first=0, last=0)


def read(text: str) -> Automaton | Unreadable:
    """The pattern as an automaton, and its literal characters that no node name holds (upper case, ``_``)."""
    try:
        return _Reader(text).read()
    except _RefusedError as refused:
        return refused.why


class _RefusedError(Exception):
    def __init__(self, reason: str, at: int, instead: str = "") -> None:
        super().__init__(reason)
        self.why = Unreadable(reason, at + 1, instead)


class _Reader:
    """A recursive descent over the text; ``at`` is the next character. Positions are numbered as they are read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.foreign: list[str] = []
        self.accepts: list[Characters] = [0]
        self.follow: list[Positions] = [0]

    def read(self) -> Automaton:
        whole = self.join(Part(is_nullable=False, first=START, last=START), self.choice())
        if self.at < len(self.text):
            raise _RefusedError("`)` closes no group", self.at, r"remove it, or write `\)` for the character itself")
        return Automaton("".join(dict.fromkeys(self.foreign)), whole.last, tuple(self.accepts), tuple(self.follow))

    def choice(self) -> Part:
        found = self.sequence()
        while self.take("|"):
            other = self.sequence()
            is_nullable = found.is_nullable or other.is_nullable
            found = Part(is_nullable, found.first | other.first, found.last | other.last)
        return found

    def sequence(self) -> Part:
        found = _EMPTY
        self.anchor("^", at_edge=not self.depth)
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if self.text[self.at] == "$":
                self.anchor("$", at_edge=not self.depth and self.text[self.at + 1 : self.at + 2] in ("", "|"))
            else:
                found = self.join(found, self.repeated())
        return found

    def anchor(self, mark: str, *, at_edge: bool) -> None:
        """Skip an anchor where it says nothing new: the whole name must match anyway."""
        start = self.at
        if self.take(mark) and not at_edge:
            why = f"`{mark}` inside the pattern"
            raise _RefusedError(why, start, "the whole name is matched: leave the anchor out")

    def repeated(self) -> Part:
        before = len(self.accepts)
        part = self.atom()
        start = self.at
        bounds = self.bounds()
        if bounds is None:
            return part
        self.take("?")  # a lazy quantifier matches the same names
        if self.bounds() is not None:
            raise _RefusedError("a repetition of a repetition", start, "put the first one into a group: `(?:...)`")
        return self.unrolled(part, before, *bounds)

    def unrolled(self, part: Part, before: int, least: int, most: int | None) -> Part:
        """So many copies of the newest positions, as far as names can be long; each follows only the one before it."""
        accepts, follow = self.accepts[before:], self.follow[before:]
        least = 0 if part.is_nullable else min(least, LONGEST_NAME + 1)
        most = None if most is None or most > LONGEST_NAME else most
        copies = max(least, 1) if most is None else most
        if not copies or not accepts:
            del self.accepts[before:], self.follow[before:]
            return _EMPTY
        newest, last = part, part.last
        for number in range(1, copies):
            shift = number * len(accepts)
            self.add(accepts, [targets << shift for targets in follow])
            previous, newest = newest, Part(part.is_nullable, part.first << shift, part.last << shift)
            self.link(previous.last, newest.first)
            last = newest.last | (last if number >= least else 0)
        if most is None:
            self.link(newest.last, newest.first)
        return Part(not least, part.first, last)

    def join(self, part: Part, after: Part) -> Part:
        self.link(part.last, after.first)
        return Part(
            is_nullable=part.is_nullable and after.is_nullable,
            first=part.first | (after.first if part.is_nullable else 0),
            last=after.last | (part.last if after.is_nullable else 0),
        )

    def link(self, origins: Positions, targets: Positions) -> None:
        for position in bits(origins):
            self.follow[position] |= targets

    def one(self, of: Characters) -> Part:
        """A position that reads one character out of a set; an empty set matches nothing."""
        bit = 1 << len(self.accepts)
        self.add([of], [0])
        return Part(is_nullable=False, first=bit, last=bit)

    def add(self, accepts: list[Characters], follow: list[Positions]) -> None:
        self.accepts += accepts
        self.follow += follow
        if len(self.accepts) > _MOST_POSITIONS + 1:
            why = f"the pattern unrolls to more than {_MOST_POSITIONS} characters"
            raise _RefusedError(why, 0, "write `+` or `*`")

    def bounds(self) -> tuple[int, int | None] | None:
        """Read a quantifier, if there is one."""
        for mark, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(mark):
                return bounds
        match = _REPETITION.match(self.text, self.at)
        if match is None:
            return None
        least = int(match[1])
        most = None if match[2] and not match[3] else int(match[3] or least)
        if max(least, most or 0) > _LARGEST_REPEAT:
            why = f"a repetition of more than {_LARGEST_REPEAT}"
            raise _RefusedError(why, self.at, f"a node name has at most {LONGEST_NAME} characters")
        if most is not None and most < least:
            raise _RefusedError("a repetition whose end is below its start", self.at, f"write `{{{most},{least}}}`")
        self.at = match.end()
        return least, most

    def atom(self) -> Part:
        character = self.text[self.at]
        if character in "*+?{":
            why = f"`{character}` repeats nothing"
            raise _RefusedError(why, self.at, rf"write `\{character}` for the character itself")
        if character == "^":
            self.anchor("^", at_edge=False)
        if character == "(":
            return self.group()
        if character == "[":
            return self.bracket()
        if character == "\\":
            return self.one(self.escape())
        self.at += 1
        return self.one(ANY if character == "." else self.literal(character))

    def group(self) -> Part:
        start = self.at
        match = _GROUP_START.match(self.text, start)
        if match is None:
            raise _refuse_group(self.text[start : start + 4], start)
        self.at = match.end()
        self.depth += 1
        if self.depth > _DEEPEST_NESTING:
            raise _RefusedError(f"groups nested more than {_DEEPEST_NESTING} deep", start)
        part = self.choice()
        self.depth -= 1
        if not self.take(")"):
            raise _RefusedError("`(` is never closed", start, r"add `)`, or write `\(` for the character itself")
        return part

    def bracket(self) -> Part:
        start = self.at
        self.at += 1
        is_negated = self.take("^")
        found = 0
        is_first = True
        while is_first or not self.take("]"):
            if self.at >= len(self.text):
                raise _RefusedError("`[` is never closed", start, r"add `]`, or write `\[` for the character itself")
            found |= self.bracket_item()
            is_first = False
        return self.one(ANY & ~found if is_negated else found)

    def bracket_item(self) -> Characters:
        """A character, a range, or a class within brackets."""
        start = self.at
        for read_class in (self.named_class, self.escaped_class):
            if (found := read_class()) is not None:
                return found
        low = self.plain_character()
        if not (self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] not in ("", "]")):
            return self.literal(low)
        self.at += 1
        high = self.plain_character()
        if high < low:
            raise _RefusedError(f"the range `{low}-{high}` is empty", start, f"write `{high}-{low}`")
        return characters("".join(character for character in ALPHABET if low <= character <= high))

    def named_class(self) -> Characters | None:
        match = _NAMED_CLASS.match(self.text, self.at)
        if match is None:
            return None
        if match[2] not in _NAMED_CLASSES:
            raise _RefusedError(f"`{match[0]}` is no class of characters", self.at)
        self.at = match.end()
        found = _NAMED_CLASSES[match[2]]
        return ANY & ~found if match[1] else found

    def plain_character(self) -> str:
        self.at += 1
        character = self.text[self.at - 1]
        return self.escaped_character() if character == "\\" else character

    def escape(self) -> Characters:
        found = self.escaped_class()
        return self.literal(self.plain_character()) if found is None else found

    def escaped_class(self) -> Characters | None:
        if self.text.startswith("\\", self.at):
            found = _ESCAPED_CLASSES.get(self.text[self.at + 1 : self.at + 2])
            if found is not None:
                self.at += 2
                return found
        return None

    def escaped_character(self) -> str:
        """The character after a backslash; only punctuation stands for itself."""
        character = self.text[self.at : self.at + 1]
        if not character:
            why = "nothing follows the last backslash"
            raise _RefusedError(why, self.at - 1, r"write `\\` for the backslash itself")
        if character.isalnum() or not character.isascii():
            raise _refuse_escape(character, self.at - 1)
        self.at += 1
        return character

    def literal(self, character: str) -> Characters:
        if character not in CHARACTER:
            self.foreign.append(character)
        return characters(character)

    def take(self, mark: str) -> bool:
        found = self.text.startswith(mark, self.at)
        self.at += found
        return found


def _refuse_group(opening: str, at: int) -> _RefusedError:
    if opening.startswith(("(?=", "(?!", "(?<=", "(?<!")):
        return _RefusedError("look-around", at, "RE2 has none: say what the name is")
    if opening.startswith("(?P"):
        return _RefusedError("a back-reference", at, "RE2 has none: write the part out again")
    return _RefusedError("flags", at, "node names are lower case and one line: leave the flags out")


def _refuse_escape(character: str, at: int) -> _RefusedError:
    if character.isdigit():
        return _RefusedError("a back-reference", at, "RE2 has none: write the part out again")
    if character in "bB":
        return _RefusedError("a word boundary", at, "write the characters that stand there")
    if character in "AzZ":
        return _RefusedError("an anchor", at, "the whole name is matched: leave the anchor out")
    return _RefusedError(f"the escape `\\{character}`", at, "write the characters out: `[0-9]`, `[a-z]`")


def bits(numbers: int) -> Iterator[int]:
    while numbers:
        lowest = numbers & -numbers
        yield lowest.bit_length() - 1
        numbers ^= lowest
