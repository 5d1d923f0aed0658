"""Compare what two policies say, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.policy.marks import Keyed, find_mark, words_of


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
