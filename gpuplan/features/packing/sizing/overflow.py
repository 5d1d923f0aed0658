"""How many pods are turned away by parts of GPUs that take turns, the smallest that holds a pod first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from random import Random

from gpuplan.compiler.base.values import NamedTuple

PAIRS = 32
"""So many times each need is off by chance, and then by as much the other way."""


class Law(StrEnum):
    """What the pods of a need do in the course of time."""

    AT_ONCE = "at-once"
    """So many are there at once, and stay."""
    BY_CHANCE = "by-chance"
    """They come at random and stay as long as they like; so many would be there on average, were there always room."""


class _Rest(NamedTuple):
    """Pods that have found no room so far: how many on average, and the variance of that."""

    mean: float
    variance: float

    @property
    def peakedness(self) -> float:
        return self.variance / self.mean


class Overflow:
    """Pods of several needs on parts of several kinds, which are numbered from the smallest on.

    ``reach`` says for each need the numbers of the parts that hold one of its pods. Each pod takes the first of them
    that is free, and is turned away where none is.
    """

    def __init__(self, reach: Sequence[Sequence[int]]) -> None:
        kinds = 1 + max((part for parts in reach for part in parts), default=-1)
        self._takers = [[need for need, parts in enumerate(reach) if part in parts] for part in range(kinds)]

    def turned_away(self, pods: Sequence[float], room: Sequence[int], law: Law) -> list[float]:
        """How many pods of each need find no room, on average, with ``room`` parts of each kind.

        Under `BY_CHANCE` this is an estimate: what a kind turns away comes in bunches, and is taken for random arrivals
        in units of its peakedness (W. S. Hayward's approximation: A. Fredericks, Bell System Technical Journal 59,
        1980), with mean and variance by J. Riordan (R. Wilkinson, Bell System Technical Journal 35, 1956). How long
        pods stay hardly matters beside how many there are on average. It is within 0.8 % of all pods of a simulation,
        and within 1.3 % of an exact chain with a few parts (`test_overflow.py`); of the pods of one need,
        where they are few, it can be 11 %.
        """
        rests = [_Rest(count, count if law is Law.BY_CHANCE else 0.0) for count in pods]
        for part, takers in enumerate(self._takers):
            waiting = [need for need in takers if rests[need].mean > _NOBODY]
            if waiting:
                left = _left(_sum([rests[need] for need in waiting]), room[part], law)
                shares = _shares([rests[need] for need in waiting])
                for need, share in zip(waiting, shares, strict=True):
                    rests[need] = _part(left, share)
        return [rest.mean for rest in rests]


_NOBODY = 1e-9


def _sum(rests: Sequence[_Rest]) -> _Rest:
    return _Rest(sum(rest.mean for rest in rests), sum(rest.variance for rest in rests))


def _left(offered: _Rest, room: int, law: Law) -> _Rest:
    """What so many parts turn away."""
    if law is Law.AT_ONCE:
        return _Rest(max(offered.mean - room, 0.0), 0.0)
    unit = max(offered.peakedness, _NOBODY)
    pods, parts = offered.mean / unit, room / unit
    mean = pods * erlang_b(pods, parts)
    variance = mean * (1 - mean + pods / (parts + 1 + mean - pods)) if mean > _NOBODY else mean
    return _Rest(unit * mean, unit * unit * variance)


def _shares(rests: Sequence[_Rest]) -> list[float]:
    """Who is turned away in which part: by how many each has, and by how much they come in bunches."""
    all_ = _sum(rests)
    if not all_.variance:
        return [rest.mean / all_.mean for rest in rests]
    return [(rest.mean / all_.mean + rest.variance / all_.variance) / 2 for rest in rests]


def _part(left: _Rest, share: float) -> _Rest:
    """A random part of the pods that are turned away: the smaller it is, the less they come in bunches."""
    mean = left.mean * share
    if left.mean <= _NOBODY or not left.variance:
        return _Rest(mean, 0.0)
    return _Rest(mean, mean * max(1 + (left.peakedness - 1) * share, _NOBODY))


def off_by(needs: int, tolerance: float, pairs: int = PAIRS) -> Iterator[list[float]]:
    """By which factor each need is off, each time: all are as likely, and the same in every run."""
    if not tolerance:
        yield [1.0] * needs
        return
    random = Random(1)  # noqa: S311 - a sample
    for _ in range(pairs):
        off = [tolerance * (2 * random.random() - 1) for _ in range(needs)]
        yield [1 + part for part in off]
        yield [1 - part for part in off]


def erlang_b(offered: float, servers: float) -> float:
    """The part of random arrivals that finds all servers busy (Erlang's B); the number of servers may be broken.

    Its inverse is an incomplete gamma function, ``e^a a^-n Gamma(n + 1, a)`` (D. Jagerman, Bell System Technical
    Journal 53, 1974). It is summed up below its mean, and a continued fraction above.
    """
    if offered <= 0:
        return 0.0
    if servers <= 0:
        return 1.0
    if offered > servers + 2:
        return 1 / (offered * _upper_fraction(servers + 1, offered))
    log_busy = servers * math.log(offered) - offered - math.lgamma(servers + 1)
    term = total = 1 / (servers + 1)
    steps = servers + 1
    while term > total * _PRECISION:
        steps += 1
        term *= offered / steps
        total += term
    busy = math.exp(log_busy)
    return min(busy / max(1 - busy * offered * total, busy), 1.0)


_PRECISION = 1e-13


def _upper_fraction(shape: float, at: float) -> float:
    """``Gamma(shape, at) e^at at^-shape``, by W. Lentz's way to evaluate its continued fraction."""
    tiny = 1e-300
    b = at + 1 - shape
    c, d = 1 / tiny, 1 / b
    value = d
    for step in range(1, 100_000):
        a = -step * (step - shape)
        b += 2
        d = 1 / (_apart(a * d + b, tiny))
        c = _apart(b + a / c, tiny)
        value *= d * c
        if abs(d * c - 1) < _PRECISION:
            break
    return value


def _apart(value: float, least: float) -> float:
    return value if abs(value) > least else least
