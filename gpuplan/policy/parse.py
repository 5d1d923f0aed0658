"""Turn a document into a policy model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from gpuplan.diagnostics import Diagnostic, Path
from gpuplan.policy.models import KINDS, Policy

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from gpuplan.documents import Document


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document and the policy that it holds; ``policy`` is None when no policy can be made of it.

    A policy may stand beside errors: wrong optional values are left out, so that the rest can still be judged.
    """

    document: Document
    policy: Policy | None
    diagnostics: tuple[Diagnostic, ...]


def parse(document: Document) -> Parsed:
    """Read one document as the kind that it says it is."""
    model = KINDS.get(document.kind)
    if model is None:
        from gpuplan.policy.problems import unknown_kind

        return Parsed(document, None, (unknown_kind(document),))
    try:
        return Parsed(document, model.model_validate(document.data), ())
    except ValidationError as error:
        from gpuplan.policy.problems import describe, problems_by_place

        problems = problems_by_place(document, error)
        return Parsed(document, _without(model, document.data, problems), describe(document, model, problems))


def _without(model: type[BaseModel], data: Mapping[str, Any], problems: Mapping[Path, ErrorDetails]) -> Policy | None:
    """The policy that is left when the wrong values are taken out, if they can be done without."""
    if any(problem["type"] == "missing" for problem in problems.values()):
        return None
    try:
        policy: Any = model.model_validate(_pruned(data, (), frozenset(problems)))
    except ValidationError:
        return None
    else:
        return policy  # type: ignore[no-any-return]  # one of KINDS


def _pruned(data: Any, here: Path, wrong: frozenset[Path]) -> Any:  # noqa: ANN401 - plain YAML data
    if isinstance(data, dict):
        return {k: _pruned(v, (*here, k), wrong) for k, v in data.items() if (*here, k) not in wrong}
    if isinstance(data, list):
        return [_pruned(v, (*here, i), wrong) for i, v in enumerate(data) if (*here, i) not in wrong]
    return data
