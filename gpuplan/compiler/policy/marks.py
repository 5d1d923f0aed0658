"""Marks of fields of the policy language, beside their types and their documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeVar, get_args

from pydantic import BaseModel

from gpuplan.compiler.base.values import Value

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

T = TypeVar("T")


class Words(Value):
    """The name of a field in a sentence, if the words of its own name are not right: `environment` for ``env``."""

    text: str


class Keyed(Value):
    """The fields that tell the items of a list apart, by their names here. Plain words have none, and do."""

    fields: tuple[str, ...]


class AnyText(Value):
    """A text of which the policy language asks nothing, and the reason."""

    reason: str


class Judged(Value):
    """A text, or the keys of a mapping, that a check holds to its form; ``code`` is that of the check's rule."""

    code: str


class Essential(Value):
    """A field whose default means something else than a wrong value did: with it checks would find what nobody wrote.

    No policy is made of a document where such a field is wrong.
    """


class Independent(Value):
    """A list of which an item more or less does not make the others wrong."""


class Main(Value):
    """The field that a bare value in the place of its mapping means: `timeSlicing: 3` are three shares.

    ``read`` returns the fields of the mapping that a text means, where it may mean more than this one.
    """

    read: Callable[[str], Mapping[str, object]] | None = None


ESSENTIAL: Final = Essential()
INDEPENDENT: Final = Independent()
MAIN: Final = Main()


def find_mark(field: FieldInfo, kind: type[T]) -> T | None:
    """The field's mark of a kind: its own, or that of what it may hold."""
    return next((mark for mark in marks_of(field) if isinstance(mark, kind)), None)


def marks_of(field: FieldInfo) -> Iterator[object]:
    """All that is said of a field beside its type: its own first, then what is said of what it may hold."""
    inner = (mark for part in types_in(field.annotation) for mark in getattr(part, "__metadata__", ()))
    for mark in (*field.metadata, *inner):
        yield mark
        yield from getattr(mark, "metadata", ())  # a nested `Field` has its own


def types_in(annotation: object) -> Iterator[object]:
    """A type and all that it is made of: a union's members, a list's items."""
    yield annotation
    for part in get_args(annotation):
        yield from types_in(part)


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    return (part for part in types_in(annotation) if isinstance(part, type) and issubclass(part, BaseModel))


def words_of(name: str, field: FieldInfo) -> str:
    """Return the name of a field in a sentence."""
    words = find_mark(field, Words)
    return words.text if words else name.replace("_", " ")
