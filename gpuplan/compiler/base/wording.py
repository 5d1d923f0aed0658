"""Turns of phrase that every stage shares: lists of names, and what a misspelt one was meant to be."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from gpuplan.compiler.base.patterns import regex

SHOWN = 4
"""The number of items that a note names before it only counts."""


def listing(names: Sequence[str], shown: int | None = SHOWN, last: str = "and") -> str:
    """`` `a`, `b` and `c` ``, or `` `a`, `b` and 3 more ``; all of them where ``shown`` is None."""
    words = [f"`{name}`" for name in names[:shown]]
    if shown is not None and len(names) > shown:
        words.append(f"{len(names) - shown} more")
    return joined(words, last)


def abridged(names: Sequence[str], between: str = " ", most: int = 3) -> str:
    """The first of many names and how many more there are, as a table's cell says it; a dash for none."""
    if len(names) <= most:
        return between.join(names) or "-"
    return f"{between.join(names[: most - 1])} and {count(len(names) - most + 1, 'more', 'more')}"


def joined(words: Sequence[str], last: str = "and") -> str:
    """Words as a sentence lists them: ``a, b and c``."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: ``1 error``, ``2 errors``."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def count_kinds(kinds: Iterable[str]) -> str:
    """Return the number of each kind: ``1 Namespace, 2 PriorityClasses and 3 ValidatingAdmissionPolicies``."""
    numbers = Counter(kinds)
    return joined([count(numbers[kind], kind, _plural(kind)) for kind in sorted(numbers)])


def _plural(kind: str) -> str:
    if kind.endswith(("s", "x")):
        return f"{kind}es"
    return f"{kind[:-1]}ies" if kind.endswith("cy") else f"{kind}s"


def help_on_variables(text: str) -> str:
    """Return help if a text has what a template or a shell would replace, or nothing."""
    advice = "policies have no variables: write the value here, or each cluster's own in `overlays/<cluster>/`"
    return advice if _VARIABLE.search(text) else ""


_VARIABLE = regex(r"\$\{|\{\{|\{%|\$\([A-Za-z_]")
_MARKUP = regex(r"[!#$&*<>@\[\\\]_`{|}~]|:(?=//)|(?<=www)\.", re.IGNORECASE)


def markdown_escaped(text: str) -> str:
    """Text in Markdown, in a table's cell too: a character that would be markup is written as a reference."""
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", text)


_PLAIN_CODE = regex(r"[A-Za-z0-9_./:{}*?=-]+(?: [A-Za-z0-9_./:{}*?=-]+)*")


def markdown_code(text: str) -> str:
    """A name as code in Markdown, in a table's cell too; no page may hold a control character."""
    if _PLAIN_CODE.fullmatch(text):
        return f"`{text}`"
    shown = "".join(character if character.isprintable() else "\ufffd" for character in text)
    return f"<code>{markdown_escaped(shown)}</code>"


def misspelling(name: str, known: Iterable[str]) -> str | None:
    """The one known name that this one is a misspelling of: typed wrongly, not another name of the same kind.

    Letter case and separators do not count. Each word may have one wrong letter, a long one two; one of four letters
    may have one too many, too few or two swapped, and a shorter one none, for `a` and `b`, `eu` and `us`, `cold` and
    `gold` are words of their own. Numbers are never misspelt: `h100` is not `a100`, nor is `1g.10gb` `2g.20gb`.
    """
    wanted = _Spelling(name)
    found = [item for item in known if wanted.is_meant_for(_Spelling(item))]
    exact = [item for item in found if _Spelling(item).bare == wanted.bare]
    found = exact or found
    return found[0] if len(found) == 1 else None


def longer_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that have this one, of four letters or more, at the start of a word of theirs."""
    return [item for item in known if len(name) >= 4 and f"-{name}" in f"-{item}"]


def lengthened(name: str, known: Iterable[str]) -> str | None:
    """Return the one known name that this one is a part of."""
    found = longer_names(name, known)
    return found[0] if len(found) == 1 else None


def spelt_alike(name: str, known: Iterable[str]) -> str | None:
    """Return the one known name with the letters and digits of this one: `GPU203` for `gpu-203`."""
    bare = _Spelling(name).bare
    found = [item for item in known if _Spelling(item).bare == bare] if bare else []
    return found[0] if len(found) == 1 else None


def renaming(name: str, known: Iterable[str], *, shortest: int = 4) -> str | None:
    """Return the one known name that this one most likely had or has: misspelt, or shortened by its end."""
    names = tuple(known)
    parts = [
        item
        for item in names
        if min(len(name), len(item)) >= shortest and _stem(item)[: len(_stem(name))] == _stem(name)[: len(_stem(item))]
    ]
    return misspelling(name, names) or (parts[0] if len(parts) == 1 else None)


def _stem(name: str) -> str:
    """Return a name without the ending of its plural."""
    return name.removesuffix("ies").removesuffix("s").removesuffix("y")


def closest(word: str, known: Iterable[str], *, likeness: float = 0.7) -> str | None:
    """The word of a fixed vocabulary that this one is most like; letter case does not count, numbers have to be equal.

    For words that mean one thing each, such as the fields of a document. Names are for `misspelling`.
    """
    from difflib import get_close_matches

    by_lower_case = {item.lower(): item for item in known if _DIGITS.findall(item) == _DIGITS.findall(word)}
    found = get_close_matches(word.lower(), by_lower_case, n=1, cutoff=likeness)
    return by_lower_case[found[0]] if found else None


class _Spelling:
    """A name as its letters, its words without their numbers, and its numbers."""

    __slots__ = ("bare", "numbers", "words")

    def __init__(self, name: str) -> None:
        lower = name.lower()
        self.numbers = _DIGITS.findall(lower)
        self.words = _SEPARATORS.split(_DIGITS.sub("", lower))
        self.bare = _SEPARATORS.sub("", lower)

    def is_meant_for(self, other: _Spelling) -> bool:
        if self.numbers != other.numbers:
            return False
        if self.bare == other.bare:
            return True
        return len(self.words) == len(other.words) and all(map(_is_typo, self.words, other.words))


def _is_typo(word: str, meant: str) -> bool:
    """Whether a word is meant to be another one, or is it."""
    if word == meant:
        return True
    length = max(len(word), len(meant))
    if len(word) == len(meant) == _SHORT and sorted(word) != sorted(meant):
        return False
    most = 0 if length < _SHORT else 1 if length < _LONG else 2
    return abs(len(word) - len(meant)) <= most and _distance(word, meant) <= most


_SHORT, _LONG = 4, 8
_DIGITS = regex(r"[0-9]+")
_SEPARATORS = regex(r"[^a-z0-9]+")


def _distance(word: str, other: str) -> int:
    """Letters wrong, missing, too many, or swapped with the next one (optimal string alignment)."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(word, 1):
        line = [row]
        for column, theirs in enumerate(other, 1):
            cost = min(last[column] + 1, line[-1] + 1, last[column - 1] + (letter != theirs))
            is_swap = row > 1 and column > 1 and letter == other[column - 2] and word[row - 2] == theirs
            line.append(min(cost, before[column - 2] + 1) if is_swap else cost)
        before, last = last, line
    return last[-1]
