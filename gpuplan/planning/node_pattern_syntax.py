"""Reads the text of a node-name pattern: the regular expressions that RE2 and Python understand alike."""

from __future__ import annotations

import re

from gpuplan.patterns import regex
from gpuplan.values import Value

LETTERS = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
ALPHABET = f"{LETTERS}{DIGITS}-."
INDEX = {character: index for index, character in enumerate(ALPHABET)}

_LARGEST_REPEAT = 1000  # RE2's own limit
_DEEPEST_NESTING = 50

Characters = int
"""A set of the characters that node names consist of: one bit for each of `ALPHABET`."""


def characters(text: str) -> Characters:
    """The set of these characters; what no node name holds is left out."""
    found = 0
    for character in text:
        if character in INDEX:
            found |= 1 << INDEX[character]
    return found


ANY: Characters = (1 << len(ALPHABET)) - 1

_ESCAPED_CLASSES = {
    "d": characters(DIGITS),
    "D": ANY & ~characters(DIGITS),
    "w": characters(LETTERS + DIGITS),
    "W": characters("-."),
    "s": 0,
    "S": ANY,
}
_NAMED_CLASSES = {
    "alnum": characters(LETTERS + DIGITS),
    "alpha": characters(LETTERS),
    "ascii": ANY,
    "blank": 0,
    "cntrl": 0,
    "digit": characters(DIGITS),
    "graph": ANY,
    "lower": characters(LETTERS),
    "print": ANY,
    "punct": characters("-."),
    "space": 0,
    "upper": 0,
    "word": characters(LETTERS + DIGITS),
    "xdigit": characters(f"{DIGITS}abcdef"),
}

_PLAIN = regex(r"[a-z0-9-]+(?![*+?{])")
_REPETITION = regex(r"\{([0-9]{1,9})(?:(,)([0-9]{1,9})?)?\}")
_NAMED_CLASS = regex(r"\[:(\^?)([a-z]+):\]")
_GROUP_START = regex(r"\((?:\?:|\?P?<[A-Za-z_][A-Za-z0-9_]*>|(?!\?))")


class Unreadable(Value):
    """Why a pattern cannot be understood; ``column`` counts its characters from 1, ``instead`` says what to write."""

    reason: str
    column: int
    instead: str = ""


class One(Value):
    """One character out of a set; an empty set matches nothing."""

    of: Characters


class Sequence(Value):
    """Parts one after the other; no parts match the empty text."""

    parts: tuple[Tree, ...]


class Choice(Value):
    """Any one of the branches."""

    branches: tuple[Tree, ...]


class Repeat(Value):
    """The part at least ``least`` and at most ``most`` times; ``most`` is None where there is no bound."""

    part: Tree
    least: int
    most: int | None


Tree = One | Sequence | Choice | Repeat


_ONES = {character: One(1 << index) for character, index in INDEX.items()}


def read(text: str) -> tuple[Tree, str] | Unreadable:
    """The pattern as a tree, and its literal characters that no node name holds (upper case, ``_``)."""
    reader = _Reader(text)
    try:
        tree = reader.read()
    except _RefusedError as refused:
        return refused.why
    return tree, "".join(dict.fromkeys(reader.foreign))


class _RefusedError(Exception):
    def __init__(self, reason: str, at: int, instead: str = "") -> None:
        super().__init__(reason)
        self.why = Unreadable(reason, at + 1, instead)


class _Reader:
    """A recursive descent over the text; ``at`` is the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.foreign: list[str] = []

    def read(self) -> Tree:
        tree = self.choice()
        if self.at < len(self.text):
            raise _RefusedError("`)` closes no group", self.at, r"remove it, or write `\)` for the character itself")
        return tree

    def choice(self) -> Tree:
        branches = [self.sequence()]
        while self.take("|"):
            branches.append(self.sequence())
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def sequence(self) -> Tree:
        parts: list[Tree] = []
        self.anchor("^", at_edge=not self.depth)
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if self.text[self.at] == "$":
                self.anchor("$", at_edge=not self.depth and self.text[self.at + 1 : self.at + 2] in ("", "|"))
            elif plain := _PLAIN.match(self.text, self.at):
                parts += [_ONES[character] for character in plain[0]]
                self.at = plain.end()
            else:
                parts.append(self.repeated())
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def anchor(self, mark: str, *, at_edge: bool) -> None:
        """Skip an anchor where it says nothing new: the whole name must match anyway."""
        start = self.at
        if self.take(mark) and not at_edge:
            raise _RefusedError(
                f"`{mark}` inside the pattern", start, "the whole name is matched: leave the anchor out"
            )

    def repeated(self) -> Tree:
        part = self.atom()
        start = self.at
        bounds = self.bounds()
        if bounds is None:
            return part
        self.take("?")  # a lazy quantifier matches the same names
        if self.bounds() is not None:
            raise _RefusedError("a repetition of a repetition", start, "put the first one into a group: `(?:...)`")
        return Repeat(part, *bounds)

    def bounds(self) -> tuple[int, int | None] | None:
        """Read a quantifier, if there is one."""
        for mark, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(mark):
                return bounds
        match = _REPETITION.match(self.text, self.at)
        return self.counted(match) if match else None

    def counted(self, match: re.Match[str]) -> tuple[int, int | None]:
        least = int(match[1])
        most = None if match[2] and not match[3] else int(match[3] or least)
        if max(least, most or 0) > _LARGEST_REPEAT:
            raise _RefusedError(
                f"a repetition of more than {_LARGEST_REPEAT}", self.at, "a node name has at most 253 characters"
            )
        if most is not None and most < least:
            raise _RefusedError("a repetition whose end is below its start", self.at, f"write `{{{most},{least}}}`")
        self.at = match.end()
        return least, most

    def atom(self) -> Tree:
        character = self.text[self.at]
        if character in "*+?{":
            raise _RefusedError(
                f"`{character}` repeats nothing", self.at, rf"write `\{character}` for the character itself"
            )
        if character == "^":
            self.anchor("^", at_edge=False)
        if character == "(":
            return self.group()
        if character == "[":
            return self.bracket()
        if character == "\\":
            return One(self.escape())
        self.at += 1
        return One(ANY if character == "." else self.literal(character))

    def group(self) -> Tree:
        start = self.at
        match = _GROUP_START.match(self.text, start)
        if match is None:
            raise _refuse_group(self.text[start : start + 4], start)
        self.at = match.end()
        self.depth += 1
        if self.depth > _DEEPEST_NESTING:
            raise _RefusedError(f"groups nested more than {_DEEPEST_NESTING} deep", start)
        tree = self.choice()
        self.depth -= 1
        if not self.take(")"):
            raise _RefusedError("`(` is never closed", start, r"add `)`, or write `\(` for the character itself")
        return tree

    def bracket(self) -> Tree:
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
        return One(ANY & ~found if is_negated else found)

    def bracket_item(self) -> Characters:
        """A character, a range, or a class within brackets."""
        start = self.at
        found = self.named_class()
        if found is None:
            found = self.escaped_class()
        if found is not None:
            return found
        low = self.bracket_character()
        if not (self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] not in ("", "]")):
            return self.literal(low)
        self.at += 1
        high = self.bracket_character()
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

    def bracket_character(self) -> str:
        character = self.text[self.at]
        if character == "\\":
            self.at += 1
            return self.escaped_character()
        self.at += 1
        return character

    def escape(self) -> Characters:
        escaped = self.escaped_class()
        if escaped is not None:
            return escaped
        self.at += 1
        return self.literal(self.escaped_character())

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
            raise _RefusedError(
                "nothing follows the last backslash", self.at - 1, r"write `\\` for the backslash itself"
            )
        if character.isalnum() or not character.isascii():
            raise _refuse_escape(character, self.at - 1)
        self.at += 1
        return character

    def literal(self, character: str) -> Characters:
        if character not in INDEX:
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
