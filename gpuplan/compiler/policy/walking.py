"""Find the names that a policy gives, wherever they stand in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import get_args

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.policy.marks import find_mark, models_in
from gpuplan.compiler.policy.models import KINDS
from gpuplan.compiler.policy.names import Naming, Titled


class Name(NamedTuple):
    """A name, what it has to be, and the route to it."""

    naming: Naming
    text: str
    path: Path


@cache
def naming_of(kind: str) -> Naming:
    """Return the form of the names of documents of a kind."""
    marks = KINDS[kind].model_fields["metadata"].metadata
    return next(mark.naming for mark in marks if isinstance(mark, Titled))


def names_in(part: BaseModel) -> Iterator[Name]:
    """The names that a part of a policy gives to something; not those that only refer to it.

    An empty text where a name may be left out gives none.
    """
    for field in _fields_with_names(type(part)):
        value = getattr(part, field.name)
        if field.naming is None:
            yield from _names_below(field.alias, value)
        elif isinstance(value, list | dict):
            items = enumerate(value) if isinstance(value, list) else value.items()
            yield from (Name(field.naming, text, (field.alias, index)) for index, text in items)
        elif value or (value is not None and not field.is_optional):
            yield Name(field.naming, value, (field.alias,))


def _names_below(alias: str, value: object) -> Iterator[Name]:
    items: Iterable[tuple[str | int | None, object]] = ((None, value),)
    if isinstance(value, list | dict):
        items = enumerate(value) if isinstance(value, list) else value.items()
    for index, item in items:
        if isinstance(item, BaseModel):
            here: Path = (alias,) if index is None else (alias, index)
            yield from (name._replace(path=here + name.path) for name in names_in(item))


class _Field(NamedTuple):
    name: str
    alias: str
    naming: Naming | None
    is_optional: bool


@cache
def _fields_with_names(model: type[BaseModel]) -> tuple[_Field, ...]:
    """The fields that hold names, or parts that do: most of a policy is not looked at."""
    found = []
    for name, field in model.model_fields.items():
        naming = find_mark(field, Naming)
        if naming or any(map(_fields_with_names, models_in(field.annotation))):
            found.append(_Field(name, field.alias or to_camel(name), naming, type(None) in get_args(field.annotation)))
    return tuple(found)
