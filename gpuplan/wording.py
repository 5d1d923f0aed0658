"""Turns of phrase that every stage shares: lists of names, and what a misspelt one was meant to be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar, overload

Item = TypeVar("Item")

SHOWN = 4
"""How many of a list a note names before it only counts."""


def listing(names: Sequence[str], shown: int | None = SHOWN, last: str = "and") -> str:
    """`` `a`, `b` and `c` ``, or `` `a`, `b` and 3 more ``; all of them where ``shown`` is None."""
    words = [f"`{name}`" for name in names[:shown]]
    if shown is not None and len(names) > shown:
        words.append(f"{len(names) - shown} more")
    return joined(words, last)


def joined(words: Sequence[str], last: str = "and") -> str:
    """Words as a sentence lists them: ``a, b and c``."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


_PLAIN_CODE = re.compile(r"[A-Za-z0-9_./:{}*?=-]+(?: [A-Za-z0-9_./:{}*?=-]+)*")


def markdown_code(text: str) -> str:
    """A name as code in Markdown, in a table's cell too; what could end the code is written as a reference."""
    if _PLAIN_CODE.fullmatch(text):
        return f"`{text}`"
    return f"<code>{re.sub('[^A-Za-z0-9 ./_-]', lambda match: f'&#{_shown(match[0])};', text)}</code>"


def _shown(character: str) -> int:
    """The number of a character that shows: no page may hold a control character."""
    return ord(character) if character.isprintable() else 0xFFFD


class Tail(Sequence[Item]):
    """What is in a list from an index on, without a copy: of each of ten thousand, what comes after it."""

    __slots__ = ("_items", "_start")

    def __init__(self, items: Sequence[Item], start: int) -> None:
        self._items = items
        self._start = start

    def __len__(self) -> int:
        return len(self._items) - self._start

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            return self._items[start + self._start : stop + self._start : step]
        return self._items[range(len(self))[index] + self._start]


def closest(name: str, known: Iterable[str], *, likeness: float = 0.6) -> str | None:
    """The known name that this one is most likely a misspelling of; letter case does not count."""
    from difflib import get_close_matches

    by_lower_case = {item.lower(): item for item in known}
    found = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=likeness)
    return by_lower_case[found[0]] if found else None
