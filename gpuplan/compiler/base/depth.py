"""Judge how deep a text nests, before it is read into Python.

libyaml's composer is recursive and ends the process at some ten thousand levels; Python's own recursion ends at a
thousand.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from gpuplan.compiler.base.patterns import regex

MAX_TEXT_DEPTH: Final = 200
"""The levels that values in a text may nest; a definition with schemas of pods has about seventy."""


def is_deep(text: str) -> bool:
    """Whether values of a YAML text nest deeper than `MAX_TEXT_DEPTH`; what follows a syntax error does not count."""
    if not _may_be_deep(text):
        return False
    import yaml

    depth = 0
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_TEXT_DEPTH:
                return True
    except yaml.YAMLError:
        return False
    return False


def _may_be_deep(text: str) -> bool:
    """Whether an exact look is worth its time, which is half of that of the reading.

    Brackets that close prove nothing, since they may stand in a text. What a line nests without brackets is a run of
    indicators, and what several lines nest shows in their indentation: two levels a column at most.
    """
    brackets = _OPENING.finditer(text)
    return next(islice(brackets, _HALF, None), None) is not None or _LONG_RUN.search(text) is not None


_HALF: Final = MAX_TEXT_DEPTH // 2
_OPENING: Final = regex(r"[\[{](?<![^\s\[{,:?\-].)")
"""A bracket where a value may begin; within words and behind text it opens nothing."""
_LONG_RUN: Final = regex(rf"(?<![ ?:\-\t])[ ?:\-\t]{{{_HALF},}}")


def is_deep_json(text: str) -> bool:
    """Whether values of a JSON text nest deeper than `MAX_TEXT_DEPTH`.

    Of what may be a gigabyte Python looks at no character by itself: quoted texts are taken out, and then the innermost
    pairs of brackets as often as values may nest.
    """
    plain = text.encode(errors="replace").replace(rb"\\", b"").replace(rb"\"", b"").translate(_BRACES, _REST)
    left = _QUOTED.sub(b"", plain.replace(b'""', b""))
    for _ in range(MAX_TEXT_DEPTH):
        before, left = left, left.replace(b"{}", b"")
        if before == left:
            break
    return b"{}" in left or left.count(b"{") > MAX_TEXT_DEPTH


_BRACES: Final = bytes.maketrans(b"[]", b"{}")
_REST: Final = bytes(set(range(256)) - set(b'[]{}"'))
_QUOTED: Final = re.compile(rb'"[^"]*(?:"|\Z)')


MAX_ALIASED_VALUES: Final = 10_000


def has_few_aliases(text: str, most: int = MAX_ALIASED_VALUES) -> bool:
    """Whether aliases of a YAML text stand for so few values that it can be gone through; one in itself has no end.

    A text that nests too deep is not looked at to its end, since libyaml takes quadratic time in the depth of brackets.
    """
    if "*" not in text:
        return True
    import yaml

    sizes, within, values, aliased = dict[str | None, int](), list[tuple[str | None, int]](), 0, 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            size = sizes.get(event.anchor, most + 1)
            values, aliased = values + size, aliased + size
        elif isinstance(event, yaml.ScalarEvent):
            values, sizes[event.anchor] = values + 1, 1
        elif isinstance(event, yaml.CollectionStartEvent):
            within.append((event.anchor, values))
            sizes.pop(event.anchor, None)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, start = within.pop()
            sizes[anchor] = values - start + 1
        if aliased > most or len(within) > MAX_TEXT_DEPTH:
            return False
    return True
