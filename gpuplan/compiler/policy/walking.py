"""Walk the fields of policies: the names that a policy gives, and the differences between two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import get_args

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.policy.marks import Keyed, find_mark, models_in, words_of
from gpuplan.compiler.policy.models import KINDS
from gpuplan.compiler.policy.names import Naming, Reference, Titled


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


def names_in(part: BaseModel, mark: type[Naming | Reference] = Naming) -> Iterator[Name]:
    """Yield the names that a part of a policy gives to something, or with the other mark those that only refer to it.

    An empty text where a name may be left out gives none.
    """
    for field in _fields_with_names(type(part), mark):
        value = getattr(part, field.name)
        if field.naming is None:
            yield from _names_below(field.alias, value, mark)
        elif isinstance(value, list | dict):
            items = enumerate(value) if isinstance(value, list) else value.items()
            yield from (Name(field.naming, text, (field.alias, index)) for index, text in items)
        elif value or (value is not None and not field.is_optional):
            yield Name(field.naming, value, (field.alias,))


def _names_below(alias: str, value: object, mark: type[Naming | Reference]) -> Iterator[Name]:
    items: Iterable[tuple[str | int | None, object]] = ((None, value),)
    if isinstance(value, list | dict):
        items = enumerate(value) if isinstance(value, list) else value.items()
    for index, item in items:
        if isinstance(item, BaseModel):
            here: Path = (alias,) if index is None else (alias, index)
            yield from (name._replace(path=here + name.path) for name in names_in(item, mark))


class _Field(NamedTuple):
    name: str
    alias: str
    naming: Naming | None
    is_optional: bool


@cache
def _fields_with_names(model: type[BaseModel], mark: type[Naming | Reference]) -> tuple[_Field, ...]:
    """The fields that hold names, or parts that do: most of a policy is not looked at."""
    found = []
    for name, field in model.model_fields.items():
        found_mark = find_mark(field, mark)
        naming = found_mark.naming if isinstance(found_mark, Reference) else found_mark
        if naming or any(_fields_with_names(inner, mark) for inner in models_in(field.annotation)):
            found.append(_Field(name, field.alias or to_camel(name), naming, type(None) in get_args(field.annotation)))
    return tuple(found)


# --- Differences -----------------------------------------------------------------------------------------------------


class FieldChange(NamedTuple):
    """A field that says something else. ``path`` leads to it from what was compared, as in a file.

    ``words`` are what it is called in a sentence, with what it is a part of: `model size`. ``old`` and ``new`` are None
    where it is left out, and so is the item of a list, or the entry of a mapping, that comes or goes.
    """

    path: Path
    words: str
    old: object
    new: object


def changed_fields(old: BaseModel, new: BaseModel) -> Iterator[FieldChange]:
    """Each field that differs between two specs of one type, in the order of the policy language.

    What both have is looked into: `inference.port` changes, and not `inference`. Mappings are compared by their keys.
    Items of a list are known by what its mark `Keyed` names, else by their place; a list of plain values is one value.
    The path to an item is that in ``new``, or in ``old`` where it goes.
    """
    for name, alias, words, key in _fields(type(new)):
        yield from _changes((alias,), words, key, getattr(old, name), getattr(new, name))


@cache
def _fields(model: type[BaseModel]) -> tuple[tuple[str, str, str, tuple[str, ...]], ...]:
    """Name, name in a file, words and key of each field."""
    found = []
    for name, field in model.model_fields.items():
        keyed = find_mark(field, Keyed)
        found.append((name, field.alias or to_camel(name), words_of(name, field), keyed.fields if keyed else ()))
    return tuple(found)


def _changes(path: Path, words: str, key: tuple[str, ...], old: object, new: object) -> Iterator[FieldChange]:
    match old, new:
        case (BaseModel(), BaseModel()) if type(old) is type(new):
            for change in changed_fields(old, new):
                yield change._replace(path=(*path, *change.path), words=f"{words} {change.words}")
        case Mapping(), Mapping():
            for entry in dict.fromkeys((*new, *old)):
                yield from _changes((*path, str(entry)), words, (), old.get(entry), new.get(entry))
        case list(), list() if any(isinstance(item, BaseModel) for item in (*old, *new)):
            before, after = _by_key(key, old), _by_key(key, new)
            for known in dict.fromkeys((*after, *before)):
                index, item = after.get(known) or (before[known][0], None)
                yield from _changes((*path, index), words, (), before[known][1] if known in before else None, item)
        case _:
            if old != new:
                yield FieldChange(path, words, old, new)


def _by_key(key: tuple[str, ...], items: Sequence[object]) -> dict[object, tuple[int, object]]:
    found: dict[object, tuple[int, object]] = {}
    for index, item in enumerate(items):
        known = tuple(getattr(item, field, None) for field in key) if key else index
        found[index if known in found else known] = index, item
    return found
