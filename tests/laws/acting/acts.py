"""Whether each value of some policies acts: another one, or none, changes what is written or what is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from enum import Enum
from itertools import islice
from typing import Any, Final, NamedTuple

from pydantic.fields import FieldInfo

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.policy.fields import fields_along
from gpuplan.compiler.policy.models import KINDS, parts_of_language
from tests.laws.acting.effects import Effects, differ, effects_of
from tests.laws.tracing.mutations import Mutations, Scalar, texts
from tests.laws.tracing.policies import Place, Policies

MOST_TRIES: Final = 12

FIELDS: Final[Mapping[int, str]] = {
    id(field): f"{model.__name__}.{field.alias or name}"
    for model in parts_of_language()
    if model.__module__.startswith("gpuplan.compiler.")
    for name, field in model.model_fields.items()
}
"""Every field of policies, by what pydantic knows it as: a model that stands in two places is one.

Those of a `Demand`, which no build reads, are tried in `tests/features/packing/sizing/demand/test_fields.py`.
"""


class How(Enum):
    """What stands in the place of a value."""

    WORD = "another word that the field knows"
    VALUE = "any other value"
    GONE = "nothing"


class Verdict(NamedTuple):
    """What became of one value. ``inert`` are policies with another value, or none, that are as valid and no others."""

    place: Place
    field: str
    inert: tuple[Policies, ...] = ()


def fields_of(policies: Policies, place: Place) -> list[FieldInfo]:
    """The fields on the way to a place."""
    kind = policies.documents[place.file][place.document].get("kind", "")
    return [*fields_along(KINDS[kind], place.path)]


def field_of(policies: Policies, place: Place) -> str:
    return FIELDS[id(fields_of(policies, place)[-1])]


def places(policies: Policies) -> Iterator[Scalar]:
    """Every value that says something: all but what makes a document one of its kind, or takes one away."""
    gone = {place[:2] for place, _ in policies.scalars() if place.path == ("metadata", "$patch")}
    for scalar in Mutations(policies).scalars:
        if not scalar.is_key and scalar.place.path not in (("apiVersion",), ("kind",)) and scalar.place[:2] not in gone:
            yield scalar
    for file, documents in policies.documents.items():
        for number, document in enumerate(documents):
            yield from (Scalar(Place(file, number, path), {}) for path in _empty(document, ()))


def _empty(value: object, path: Path) -> Iterator[Path]:
    """A mapping without anything in it says something by being there."""
    if value == {} and path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _empty(item, (*path, key))


def judge(policies: Policies, scalars: Iterable[Scalar]) -> Iterator[Verdict]:
    """A value acts if another one changes something, or if no other is valid: then it is held to what it says.

    A word that a field knows, such as a version, a model or a name, is held to something also where one is refused.
    That none may stand in the place of what stands there anyway says nothing.
    """
    mutations, known = Mutations(policies), dict[frozenset[str], Effects]()
    for scalar in scalars:
        inert: list[tuple[Policies, How]] = []
        for other, clusters, how in islice(_others(policies, mutations, scalar), MOST_TRIES):
            if clusters not in known:
                known[clusters] = effects_of(policies, clusters)
            new = effects_of(other, clusters)
            if (not new.is_valid and how is How.WORD) or (new.is_valid and differ(known[clusters], new)):
                inert = []
                break
            if new.is_valid:
                inert.append((other, how))
        is_held = all(how is How.GONE for _, how in inert)
        found = () if is_held else tuple(other for other, _ in inert)
        yield Verdict(scalar.place, field_of(policies, scalar.place), found)


def _others(policies: Policies, mutations: Mutations, scalar: Scalar) -> Iterator[tuple[Policies, frozenset[str], How]]:
    """The policies without the value, or with another one, and the clusters that it can matter to."""
    if scalar.value == {}:
        yield without(policies, scalar.place), frozenset(), How.VALUE
        return
    likely = set(texts(str(scalar.value)))
    for mutation in mutations.of(scalar):
        if mutation.folder is None:
            value = mutation.edits[0].value
            how = How.WORD if isinstance(value, str) and value not in likely else How.VALUE
            yield mutation.apply(policies), mutation.clusters, how
    yield without(policies, scalar.place), frozenset(), How.GONE


def without(policies: Policies, place: Place) -> Policies:
    documents: list[Any] = deepcopy(list(policies.documents[place.file]))
    part = documents[place.document]
    for key in place.path[:-1]:
        part = part[key]
    del part[place.path[-1]]
    return Policies({**policies.documents, place.file: tuple(documents)}, policies.others)
