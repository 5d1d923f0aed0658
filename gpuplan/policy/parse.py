"""Turn a document into a policy model, and each thing that is wrong with it into a finding."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from gpuplan.diagnostics import Diagnostic, Finding, Origin, Path
from gpuplan.policy.fields import nested_model
from gpuplan.policy.models import API_VERSION, KINDS, Policy
from gpuplan.policy.rules import (
    MISSING_FIELD,
    NOT_EXACTLY_ONE,
    UNKNOWN_API_VERSION,
    UNKNOWN_FIELD,
    UNKNOWN_KIND,
    VALUE_NOT_ALLOWED,
    WRONG_TYPE,
)

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
        return Parsed(document, None, (_unknown_kind(document),))
    try:
        return Parsed(document, model.model_validate(document.data), ())
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=True)
        problems = _one_per_place(document, errors)
        found = tuple(_describe(document, model, place, problem) for place, problem in problems.items())
        return Parsed(document, _without(model, document.data, problems), found)


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


def _one_per_place(document: Document, errors: Iterable[ErrorDetails]) -> dict[Path, ErrorDetails]:
    """The errors by the path in the document that they are about.

    A union reports once per member that did not match; the last of them is kept, since the models put the most
    telling member last.
    """
    problems: dict[Path, ErrorDetails] = {}
    for error in errors:
        place = _place(document.data, error)
        if place not in problems or error["type"] != "none_required":
            problems[place] = error
    return problems


def _place(data: Any, error: ErrorDetails) -> Path:  # noqa: ANN401 - plain YAML data
    """The path in the document: pydantic's `loc` also holds union members and `[key]`, which are not in the file."""
    path: Path = ()
    loc = error["loc"]
    for index, part in enumerate(loc):
        if _holds(data, part):
            path, data = (*path, part), data[part]
        elif error["type"] == "missing" and index == len(loc) - 1:
            path = (*path, part)
    return path


def _holds(data: object, part: str | int) -> bool:
    if isinstance(data, list):
        return isinstance(part, int) and part < len(data)
    return isinstance(data, dict) and part in data


def _describe(document: Document, model: type[BaseModel], place: Path, error: ErrorDetails) -> Diagnostic:
    at = Origin(document, place)
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            return UNKNOWN_FIELD.report(_unknown_field(at, model))
        case "missing":
            return MISSING_FIELD.report(_missing_field(at))
        case "exactly_one":
            return NOT_EXACTLY_ONE.report(_not_exactly_one(at, context))
        case "literal_error" if place == ("apiVersion",):
            return UNKNOWN_API_VERSION.report(_unknown_api_version(at, error["input"]))
        case kind if kind in _EXPECTED_TYPES:
            return WRONG_TYPE.report(_wrong_type(at, kind, error["input"]))
        case kind:
            return VALUE_NOT_ALLOWED.report(_value_not_allowed(at, kind, error["input"], context))


# --- One function for each kind of error -------------------------------------------------------------------------


def _unknown_kind(document: Document) -> Diagnostic:
    at = document.origin / "kind"
    known = ", ".join(f"`{kind}`" for kind in KINDS)
    if not document.kind:
        finding = Finding(document.origin, "document has no `kind`", notes=(f"the kinds are {known}",))
        return UNKNOWN_KIND.report(finding)
    close = _closest(document.kind, KINDS)
    return UNKNOWN_KIND.report(
        Finding(
            at,
            f"unknown kind `{document.kind}`",
            label="not a kind of gpuplan.dev/v1",
            notes=(f"the kinds are {known}",),
            help=f"write `kind: {close}`" if close else "plain Kubernetes objects go to overlays/<cluster>/kustomize/",
        )
    )


def _unknown_api_version(at: Origin, value: object) -> Finding:
    return Finding(at, f"unknown apiVersion `{value}`", help=f"write `apiVersion: {API_VERSION}`")


def _unknown_field(at: Origin, model: type[BaseModel]) -> Finding:
    name = str(at.path[-1])
    parent = nested_model(model, at.path[:-1])
    known = tuple(field.alias or key for key, field in parent.model_fields.items()) if parent else ()
    close = _closest(name, known)
    return Finding(
        at.key,
        f"unknown field `{name}`",
        label=f"did you mean `{close}`?".rstrip("?") if close else "not a field here",
        notes=(f"the fields here are {', '.join(f'`{field}`' for field in known)}",) if known else (),
        help=f"write `{close}:`" if close else f"remove `{name}`",
    )


def _missing_field(at: Origin) -> Finding:
    name = at.path[-1]
    where = f"`{Origin(at.source, at.path[:-1])}`" if len(at.path) > 1 else "the document"
    parent = Origin(at.source, at.path[:-1])
    return Finding(parent.key, f"{where} has no `{name}`", label=f"`{name}` is missing", help=f"add `{name}:`")


def _not_exactly_one(at: Origin, context: Mapping[str, Any]) -> Finding:
    fields = ", ".join(f"`{name}`" for name in context["fields"])
    given = context["given"]
    if not given:
        return Finding(at.key, f"{context['what']} is missing", help=f"give one of {fields}")
    both = " and ".join(f"`{name}`" for name in given)
    return Finding(
        (at / given[1]).key,
        f"{context['what']} is given {len(given)} times: {both}",
        label=f"beside `{given[0]}`",
        notes=(f"exactly one of {fields} may stand here",),
        help=f"keep one of {both}",
    )


_EXPECTED_TYPES = {
    "bool_type": "`true` or `false`",
    "dict_type": "a mapping",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_attributes_type": "a mapping",
    "model_type": "a mapping",
    "string_type": "text",
}


def _wrong_type(at: Origin, kind: str, value: object) -> Finding:
    return Finding(
        at,
        f"`{at}` should be {_EXPECTED_TYPES[kind]}, not {_type_name(value)}",
        label=f"this is {_type_name(value)}",
        help=_type_help(kind, value),
    )


def _type_help(kind: str, value: object) -> str:
    if kind == "string_type" and isinstance(value, bool | int | float):
        return 'put the value in quotes, as it was written, such as "1.30"'
    if kind in ("int_type", "float_type") and isinstance(value, str) and re.fullmatch(r"[0-9]+", value):
        return f"write {value} without quotes"
    if kind == "list_type":
        return "write a list: one `- ` item per line, or `[]`"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return "write `field: value` lines below it, or `{}`"
    return f"write {_EXPECTED_TYPES[kind]}"


def _type_name(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "`true` or `false`"
        case int():
            return "a number"
        case float():
            return "a number with a decimal point"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "a mapping"


def _value_not_allowed(at: Origin, kind: str, value: object, context: Mapping[str, Any]) -> Finding:
    shown = f"`{value}`" if isinstance(value, str | int | float) else "this value"
    if kind in ("enum", "literal_error"):
        allowed = re.findall(r"'([^']*)'", str(context.get("expected", "")))
        close = _closest(str(value), allowed)
        return Finding(
            at,
            f"`{at}` cannot be {shown}",
            label=f"did you mean `{close}`" if close else "not one of its values",
            notes=(f"its values are {', '.join(f'`{item}`' for item in allowed)}",),
            help=f"write `{close}`" if close else f"write one of {', '.join(allowed)}",
        )
    return Finding(at, f"`{at}` cannot be {shown}", label=(limit := _limit(kind, context)), help=f"write {limit}")


def _limit(kind: str, context: Mapping[str, Any]) -> str:
    match kind:
        case "greater_than_equal":
            return f"a number of at least {_plain(context['ge'])}"
        case "less_than_equal":
            return f"a number of at most {_plain(context['le'])}"
        case "string_pattern_mismatch":
            return _FORMS.get(context["pattern"], f"text that matches `{context['pattern']}`")
        case "finite_number":
            return "a finite number"
        case "int_parsing_size":
            return "a smaller number"
        case _:
            return "another value"


_FORMS = {
    r"^1\.[0-9]+$": 'a Kubernetes minor version in quotes, such as "1.34"',
    r"^v?[0-9]+\.[0-9]+\.[0-9]+$": "a release of three numbers, such as v26.7.0",
    r"^([0-9]+(s|m|h))+$": "a duration, such as 30s, 10m or 4h",
}


def _plain(number: float) -> str:
    return f"{number:g}"


def _closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that this one is most likely a misspelling of; letter case does not count."""
    by_lower = {item.lower(): item for item in known}
    found = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None
