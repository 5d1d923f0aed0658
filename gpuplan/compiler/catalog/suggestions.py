"""Finds the models that a misspelt name may stand for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.catalog.models import Gpu

_LIMIT = 4
_LEAST_LIKENESS = 0.6
_SPREAD = 0.1
_SHARING_SUFFIX = regex(r"-(shared|mig-.*)$")
_NUMBERED = regex(r"[a-z]*[0-9]+")
_WORD = regex(r"[a-z0-9]+")


def suggest(name: str, gpus: Iterable[Gpu]) -> tuple[str, ...]:
    """Ids of the models that the name fits best: the same spelling, else the same words, beginning or letters."""
    wanted = _SHARING_SUFFIX.sub("", name.lower())
    ranked = sorted((*_rank(wanted, gpu), gpu.id) for gpu in gpus)
    if not _words(wanted) or not ranked:
        return ()
    best, least, _ = ranked[0]
    limit = min(least + _SPREAD, 1 - _LEAST_LIKENESS)
    return tuple(id_ for rank, unlikeness, id_ in ranked if rank == best and unlikeness <= limit)[:_LIMIT]


def _rank(wanted: str, gpu: Gpu) -> tuple[int, float]:
    """Return how badly the model fits by its best spelling: a class, then the unlikeness within it."""
    return min(_compare(wanted, spelling) for spelling in _spellings(gpu))


def _compare(wanted: str, spelling: str) -> tuple[int, float]:
    if wanted == spelling:
        return 0, 0.0
    words, theirs = _words(wanted), _words(spelling)
    if not set(words) >= _SERIES.intersection(theirs):
        return 3, 1.0
    if set(words) <= set(theirs):
        return 1, 0.0
    beginning, rest = "".join(words), "".join(theirs)
    if rest.startswith(beginning) and not (beginning[-1:].isdigit() and rest[len(beginning) :][:1].isdigit()):
        return 2, 0.0
    if not all(any(_is_meant(word, other) for other in theirs) for word in words):
        return 3, 1.0
    return 3, 1 - SequenceMatcher(None, "".join(words), "".join(theirs)).ratio()


_SERIES: Final = frozenset(("ada", "pro"))
"""Words that tell boards of one number apart: an RTX 6000 is neither an RTX 6000 Ada nor an RTX PRO 6000."""


def _is_meant(word: str, other: str) -> bool:
    """Whether a word is a misspelt one. What has a number tells boards apart, and so do letters behind it: neither an
    A200 nor an A100X is an A100; only the letters of a size may be wrong.
    """
    one, another = _NUMBERED.match(word), _NUMBERED.match(other)
    if one is None:
        is_near = another is None and SequenceMatcher(None, word, other).ratio() >= _LEAST_LIKENESS
        return is_near or (len(word) > 1 and other.startswith(word))
    if another is None:
        return False
    is_size = other[another.end() :] == _UNIT and set(word[one.end() :]) <= set(_UNIT)
    return one[0] == another[0] and (is_size or word == other)


_UNIT: Final = "gb"


def _spellings(gpu: Gpu) -> Iterator[str]:
    yield gpu.id.lower()
    yield from (product.label.lower() for product in gpu.products)
    yield from (device.name.lower() for device in gpu.pci)


def _words(name: str) -> tuple[str, ...]:
    """The letters and digits of a lower-case name; the vendor's name says nothing."""
    return tuple(word for word in _WORD.findall(name) if word != "nvidia")


def may_be_called(name: str, gpu: Gpu) -> bool:
    """Whether all words of a name are among those of one way to call the model."""
    words = set(_words(_SHARING_SUFFIX.sub("", name.lower())))
    return bool(words) and any(words <= set(_words(spelling)) for spelling in _spellings(gpu))
