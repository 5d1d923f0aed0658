"""What fields of the policy language say of themselves beside their type and their documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from gpuplan.values import Value

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

T = TypeVar("T")


class Words(Value):
    """What a field is called in a sentence, where the words of its name are not right: `environment` for ``env``."""

    text: str


class Keyed(Value):
    """What tells the items of a list apart: fields by their names here. Without it an item's place in the list does."""

    fields: tuple[str, ...]


def find_mark(field: FieldInfo, kind: type[T]) -> T | None:
    """The field's mark of a kind."""
    return next((mark for mark in field.metadata if isinstance(mark, kind)), None)


def words_of(name: str, field: FieldInfo) -> str:
    """What the field of this name is called in a sentence."""
    words = find_mark(field, Words)
    return words.text if words else name.replace("_", " ")
