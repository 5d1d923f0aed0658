"""Turn a document into a policy model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from gpuplan.compiler.base.diagnostics import Diagnostic, Location, Origin, Path
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.policy.models import KINDS, Policy

if TYPE_CHECKING:
    from gpuplan.compiler.documents import Document

M = TypeVar("M", bound=BaseModel)


class Parsed(Value):
    """A document and the policy that it holds; ``policy`` is None when no policy can be made of it.

    A policy may stand beside errors: wrong optional values are read as they were meant, or left out, so that the rest
    can still be judged.
    ``origin`` finds the policy's values in the document, where items of lists that were left out still count.
    """

    document: Document
    policy: Policy | None
    diagnostics: tuple[Diagnostic, ...]
    left_out: frozenset[Path] = frozenset()

    @property
    def origin(self) -> Origin:
        return origin_of(self.document, self.left_out)


def origin_of(document: Document, left_out: frozenset[Path]) -> Origin:
    """Finds the values of what was read of a document without what was left out."""
    return Origin(_Renumbered(document, left_out)) if left_out else document.origin


class _Renumbered(Value, eq=False):
    """A document of whose lists some items are left out; it is asked by the numbers that the others then have."""

    document: Document
    left_out: frozenset[Path]

    @property
    def title(self) -> str:
        return self.document.title

    def locate(self, path: Path, *, on_key: bool = False) -> Location:
        here: Path = ()
        for part in path:
            here = (*here, self._index(here, part) if isinstance(part, int) else part)
        return self.document.locate(here, on_key=on_key)

    def _index(self, items: Path, number: int) -> int:
        """The index of the item that has this number among those that are left."""
        index = number
        for left_out in sorted(
            place[-1] for place in self.left_out if place[:-1] == items and isinstance(place[-1], int)
        ):
            index += left_out <= index
        return index


def is_whole(at: Origin) -> bool:
    """Whether nothing at or below a place in a policy was left out."""
    left_out = at.source.left_out if isinstance(at.source, _Renumbered) else ()
    return not any(place[: len(at.path)] == at.path for place in left_out)


def document_of(at: Origin) -> Document | None:
    """The document that a place in a policy is in; None where it is in none."""
    from gpuplan.compiler.documents import Document

    source = at.source.document if isinstance(at.source, _Renumbered) else at.source
    return source if isinstance(source, Document) else None


Read = tuple[M | None, tuple[Diagnostic, ...], frozenset[Path]]
"""The content of a document as far as it can be judged, the findings, and the places that were left out."""


def parse(document: Document) -> Parsed:
    """Read one document as the kind that it says it is. One that was not read whole is no policy."""
    model = KINDS.get(document.kind)
    if model is not None:
        return Parsed(document, *parse_as(document, model))
    from gpuplan.compiler.documents import Reading
    from gpuplan.compiler.policy.problems import unknown_kind

    return Parsed(document, None, () if document.reading is Reading.LOST else (unknown_kind(document),))


def parse_as(document: Document, model: type[M]) -> Read[M]:
    """Read one document as a model, which may be that of a kind that is no part of a platform."""
    if not document.is_whole:
        from gpuplan.compiler.documents import Reading
        from gpuplan.compiler.policy.rules import MISSING_FIELD, NOT_EXACTLY_ONE

        if document.reading is Reading.LOST:
            return None, (), frozenset()
        _, found, _ = _read_whole(document, model)
        return None, tuple(item for item in found if item.rule not in (MISSING_FIELD, NOT_EXACTLY_ONE)), frozenset()
    return _read_whole(document, model)


def _read_whole(document: Document, model: type[M]) -> Read[M]:
    try:
        return model.model_validate(document.data), (), frozenset()
    except ValidationError as error:
        return _read_wrong(document, model, error)


def _read_wrong(document: Document, model: type[M], error: ValidationError) -> Read[M]:
    from gpuplan.compiler.policy.problems import crowds, describe, describe_crowd, mended, problems_by_place

    crowded = crowds(model, document.data)
    found = tuple(describe_crowd(Origin(document, place), unknown) for place, unknown in crowded.items())
    data = document.data
    if crowded:
        data = _pruned(data, (), frozenset((*place, name) for place, names in crowded.items() for name in names))
        try:
            return model.model_validate(data), found, frozenset()
        except ValidationError as other:
            error = other
    problems = problems_by_place(document, error)
    described, meant = describe(document, model, problems)
    clear, rest = mended(model, data, problems)
    said, left_out = _without(model, clear, {*rest, *meant})
    if said is None:
        said, left_out = _without(model, data, {*problems, *meant})
    return said, (*found, *described), left_out


def _without(model: type[M], data: Mapping[str, Any], problems: Iterable[Path]) -> tuple[M | None, frozenset[Path]]:
    """The policy without the wrong values, if it still says what it is about, and what was left out."""
    from gpuplan.compiler.policy.fields import fields_along
    from gpuplan.compiler.policy.marks import Essential, find_mark

    wrong = frozenset(_item_around(model, place) for place in problems)
    if any(find_mark(field, Essential) for place in wrong for field in fields_along(model, place)):
        return None, wrong
    try:
        policy = model.model_validate(_pruned(data, (), wrong))
    except ValidationError:
        return None, wrong
    else:
        return policy, wrong


def _item_around(model: type[BaseModel], place: Path) -> Path:
    """The item of an independent list that the place is in, or the place itself."""
    from gpuplan.compiler.policy.fields import fields_along
    from gpuplan.compiler.policy.marks import Independent, find_mark

    lists = [index for index, part in enumerate(place) if isinstance(part, int)]
    for index in reversed(lists):
        *_, field = fields_along(model, place[:index])
        if find_mark(field, Independent):
            return place[: index + 1]
    return place


def _pruned(data: Any, here: Path, wrong: frozenset[Path]) -> Any:  # noqa: ANN401 - plain YAML data
    if isinstance(data, dict):
        return {k: _pruned(v, (*here, k), wrong) for k, v in data.items() if (*here, k) not in wrong}
    if isinstance(data, list):
        return [_pruned(v, (*here, i), wrong) for i, v in enumerate(data) if (*here, i) not in wrong]
    return data
