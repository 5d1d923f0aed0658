"""Finds the models that a misspelt name may stand for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher

from gpuplan.catalog.models import Gpu

_LIMIT = 4
_LEAST_LIKENESS = 0.6
_SHARING_SUFFIX = re.compile(r"-(SHARED|MIG-.*)$", re.IGNORECASE)
_WORD = re.compile(r"[a-z0-9]+")


def suggest(name: str, gpus: Iterable[Gpu]) -> tuple[str, ...]:
    """Ids of the models that the name fits best: the same spelling, else the same words, beginning or letters."""
    wanted = _words(_SHARING_SUFFIX.sub("", name))
    ranked = sorted((*_rank(wanted, gpu), gpu.id) for gpu in gpus)
    if not wanted or not ranked:
        return ()
    best = ranked[0][0]
    return tuple(id_ for rank, unlikeness, id_ in ranked if rank == best and unlikeness <= 1 - _LEAST_LIKENESS)[:_LIMIT]


def _rank(wanted: tuple[str, ...], gpu: Gpu) -> tuple[int, float]:
    """How badly the model fits by its best spelling: a class, then the unlikeness within it."""
    return min(_compare(wanted, spelling) for spelling in _spellings(gpu))


def _compare(wanted: tuple[str, ...], spelling: tuple[str, ...]) -> tuple[int, float]:
    ours, theirs = "".join(wanted), "".join(spelling)
    if ours == theirs:
        return 0, 0.0
    if set(wanted) <= set(spelling):
        return 1, 0.0
    if theirs.startswith(ours):
        return 2, 0.0
    return 3, 1 - SequenceMatcher(None, ours, theirs).ratio()


def _spellings(gpu: Gpu) -> Iterator[tuple[str, ...]]:
    yield _words(gpu.id)
    for product in gpu.products:
        yield _words(product.label)
    for device in gpu.pci:
        yield _words(device.name)


def _words(name: str) -> tuple[str, ...]:
    """The letters and digits of a name in lower case; the vendor's name says nothing."""
    return tuple(word for word in _WORD.findall(name.lower()) if word != "nvidia")
