"""For each field of policies, a value on some platform and another one in its place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Final, NamedTuple

from tests.laws.acting.acts import field_of, places, without
from tests.laws.acting.effects import effects_of
from tests.laws.acting.test_fields import FACTS, HEADING, PLATFORMS
from tests.laws.fields.built import Built, build_all
from tests.laws.tracing.mutations import Mutation, Mutations, Scalar
from tests.laws.tracing.policies import Policies, read_policies
from tests.laws.tracing.test_traces import EXAMPLE

MOST_PLACES: Final = 3
"""The places of a field that are tried on a platform."""
MOST_VALUES: Final = 8
"""The other values that are tried at a place."""

ORDER: Final = (*(name for name in PLATFORMS if name != EXAMPLE), EXAMPLE)
"""Small platforms come first: the example has several clusters, and takes longer."""


class Example(NamedTuple):
    """A valid platform, and the same with another value of a field, which is valid and built, too.

    Without a ``mutation`` the value is left out. ``is_written`` says whether an object or a file differs.
    """

    field: str
    platform: str
    scalar: Scalar
    mutation: Mutation | None
    after: Built
    is_written: bool


def set_on(platform: str) -> Sequence[str]:
    """Return the fields that this platform is the first to set with a value of their own."""
    return [field for field in sorted(FIELDS_ASKED) if next(iter(_platforms(field)), "") == platform]


def example_of(field: str) -> Example | None:
    """Return an example that changes what is written, or any other; None if no other value is valid anywhere."""
    unwritten = None
    for platform in _platforms(field):
        example = _example(platform, field)
        if example is not None and example.is_written:
            return example
        unwritten = unwritten or example
    return unwritten


def _platforms(field: str) -> Iterator[str]:
    return (name for name in ORDER if field in _places(name))


@cache
def policies_of(platform: str) -> Policies:
    return read_policies(PLATFORMS[platform])


@cache
def _places(platform: str) -> Mapping[str, Sequence[Scalar]]:
    scalars: defaultdict[str, list[Scalar]] = defaultdict(list)
    policies = policies_of(platform)
    for scalar in places(policies):
        scalars[field_of(policies, scalar.place)].append(scalar)
    return scalars


@cache
def _keys(platform: str) -> Mapping[str, Sequence[Scalar]]:
    keys: defaultdict[str, list[Scalar]] = defaultdict(list)
    policies = policies_of(platform)
    for scalar in Mutations(policies).scalars:
        if scalar.is_key:
            keys[field_of(policies, scalar.place)].append(scalar)
    return keys


def texts_of(platform: str, field: str) -> Sequence[Scalar]:
    """Return a value of a field on a platform and a key of it, as far as there are any."""
    return (*_places(platform).get(field, ())[:1], *_keys(platform).get(field, ())[:1])


def _example(platform: str, field: str) -> Example | None:
    """Return the first other value that is valid and changes what is written, else the first that is valid."""
    policies, first = policies_of(platform), None
    before = effects_of(policies).written
    for mutation, scalar, changed in _changed(platform, field):
        effects = effects_of(changed)
        if not effects.is_valid or ((is_written := effects.written != before) is False and first):
            continue
        built = build_all(changed)
        if built is not None:
            example = Example(field, platform, scalar, mutation, built, is_written)
            if is_written:
                return example
            first = example
    return first


def _changed(platform: str, field: str) -> Iterator[tuple[Mutation | None, Scalar, Policies]]:
    policies = policies_of(platform)
    mutations = Mutations(policies)
    scalars = _places(platform)[field][:MOST_PLACES]
    for scalar in scalars:
        for mutation in islice(mutations.of(scalar), MOST_VALUES):
            if mutation.folder is None:
                yield mutation, scalar, mutation.apply(policies)
    for scalar in scalars:
        yield None, scalar, without(policies, scalar.place)


FIELDS_ASKED: Final = frozenset(
    field
    for platform in ORDER
    for field in _places(platform)
    if field.split(".")[0] not in FACTS and field.split(".")[1] not in HEADING
)
"""All fields of policies that have values, but those of catalogues."""
