"""Where the values of what is written come from: links from a leaf to places that decide it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Final

from gpuplan.compiler.base.diagnostics import Origin, Path
from gpuplan.compiler.base.trees import leaves
from gpuplan.compiler.base.values import NamedTuple


class How(StrEnum):
    """What a leaf has of the place that it comes from."""

    COPIED = "copied"
    """The leaf says what is written there, by itself or within a text: whenever that changes, the leaf does."""
    SUM = "sum of"
    """It is one of the numbers that are added up, or taken away."""
    PRODUCT = "product of"
    """It is one of the numbers that are multiplied, or divided by."""
    CHOSEN = "chosen by"
    """It decides whether the leaf is there, what it is called, or which of several values it has."""
    HASH = "hash of"
    """It is a part of the content that the leaf is a digest of."""
    ORDER = "order of"
    """It decides where the leaf stands among others."""
    RULE = "rule"
    """It is gpuplan's own, by a rule that a page of the documentation tells."""
    FACT = "fact"
    """It is a fact of the catalog, about hardware or a program."""


class Link(NamedTuple):
    """One place that a leaf comes from, and what the leaf has of it."""

    how: How
    at: Origin


Links = tuple[Link, ...]

ANY: Final = "*"
"""In the route of a trace: any key, or any index."""

Routes = Iterator[tuple[Path, Links]]
"""Routes in an artifact, each with links of all leaves that it leads to."""

Trace = Callable[[], Routes]
"""Says where the leaves of one artifact come from, when somebody asks.

A route is one in the object; its links hold for all leaves below it, and those of the empty route for all there are:
they tell why the object is there. A route may lead on into a text that is YAML or JSON itself, and by the number of a
line into any other. What no route leads to follows from a rule of gpuplan's own. A place that the policy leaves out
links nothing: what is written then is a default.
"""


def copied(*places: Origin) -> Links:
    return _links(How.COPIED, places)


def summed(*places: Origin) -> Links:
    return _links(How.SUM, places)


def multiplied(*places: Origin) -> Links:
    return _links(How.PRODUCT, places)


def chosen(*places: Origin) -> Links:
    return _links(How.CHOSEN, places)


def ordered(*places: Origin) -> Links:
    return _links(How.ORDER, places)


def facts(*places: Origin) -> Links:
    """What the catalog says; `gpuplan.compiler.catalog.places` knows where."""
    return _links(How.FACT, places)


def hashed(links: Iterable[Link]) -> Links:
    """What decides the content of a digest; facts are no part of what a policy changes in it."""
    return tuple(dict.fromkeys(Link(How.HASH, link.at) for link in links if link.how is not How.FACT))


def choosing(links: Iterable[Link]) -> Links:
    """The same places for what they only choose: a name that is copied decides where the rest of an object is."""
    return tuple(dict.fromkeys(link if link.how is How.HASH else Link(How.CHOSEN, link.at) for link in links))


def adding(links: Iterable[Link]) -> Links:
    """The same numbers where they are added up with others."""
    return tuple(dict.fromkeys(Link(How.SUM, link.at) if link.how is How.COPIED else link for link in links))


def multiplying(links: Iterable[Link]) -> Links:
    """The same numbers where they are multiplied with others."""
    return tuple(dict.fromkeys(Link(How.PRODUCT, link.at) if link.how is How.COPIED else link for link in links))


def ordering(links: Iterable[Link]) -> Links:
    """The same places for what they decide about others: where those stand."""
    return tuple(dict.fromkeys(Link(How.ORDER, link.at) for link in links))


def below(route: Path, traced: Iterable[tuple[Path, Links]]) -> Routes:
    """What is traced in a part, with routes in the whole."""
    return (((*route, *inner), links) for inner, links in traced)


def as_written(at: Origin, value: object, route: Path = ()) -> Routes:
    """What is taken over from a place as it stands: each leaf by its route there."""
    return (((*route, *inner), copied(at / inner)) for inner, _ in leaves(value))


def _links(how: How, places: Iterable[Origin]) -> Links:
    return tuple(Link(how, place) for place in places)
