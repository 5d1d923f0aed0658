"""Turns of phrase that every stage shares: lists of names, and what a misspelt one was meant to be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def closest(name: str, known: Iterable[str], *, likeness: float = 0.6) -> str | None:
    """The known name that this one is most likely a misspelling of; letter case does not count."""
    from difflib import get_close_matches

    by_lower_case = {item.lower(): item for item in known}
    found = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=likeness)
    return by_lower_case[found[0]] if found else None
