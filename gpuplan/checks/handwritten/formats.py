"""Judge plain data by a schema, each part of which says what to type instead of what does not fit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path as File
from typing import TYPE_CHECKING, Any, Final, cast

from gpuplan.checks.handwritten.reading import mapping, text
from gpuplan.checks.wording import in_yaml
from gpuplan.diagnostics import Finding, Origin, Path
from gpuplan.values import NamedTuple

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

_FOLDER: Final = File(__file__).parent / "formats"
_STEPS: Final = ("additionalProperties", "items", "properties")
"""Keywords of a schema that lead to a part of the value."""


class Problem(NamedTuple):
    """What is wrong, where in the value, and what to write instead."""

    route: Path
    message: str
    label: str
    help: str

    def found(self, at: Origin, fact: str, key: str = "") -> Finding:
        """It as a finding, with what follows of it; ``key`` is where it is in a place that is no more exact."""
        message = f"`{key}`: {self.message}" if key else self.message
        return Finding(at, message, label=self.label, notes=(fact,), help=self.help)


def find_problems(name: str, value: object) -> tuple[Problem, ...]:
    """What does not fit the format of a name, one problem a place; data that JSON cannot express is not judged."""
    schema, validator = _format(name)
    try:
        plain = json.loads(json.dumps(value, default=str, skipkeys=True), object_pairs_hook=_without_empty_keys)
        errors = list(validator.iter_errors(plain))
    except (ValueError, RecursionError):  # of anchors that hold themselves, and of numbers without end
        return ()
    found: dict[Path, Problem] = {}
    for error in errors:
        for route, part in _blamed(schema, error, _route(plain, tuple(error.instance_path))):
            found.setdefault(route, _problem(route, part["problem"], plain))
    return tuple(found.values())


def _without_empty_keys(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """No format has one, and the validator leaves them out of the way to a value."""
    return {key: value for key, value in pairs if key}


def _route(value: Any, reported: Path) -> Path:  # noqa: ANN401 - plain data
    """The way to a value; the validator takes keys that are digits for indexes."""
    route: Path = ()
    for step in reported:
        route = (*route, str(step) if isinstance(value, dict) else step)
        value = value[route[-1]]
    return route


@cache
def _format(name: str) -> tuple[Mapping[str, Any], Draft202012Validator]:
    import yaml
    from jsonschema_rs import Draft202012Validator, RegexOptions

    schema = yaml.load((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return schema, Draft202012Validator(schema, pattern_options=RegexOptions())


def _blamed(schema: Mapping[str, Any], error: ValidationError, route: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The places of an error, with the parts of the schema that have something to say of them."""
    kind: Any = error.kind
    part = tuple(error.schema_path)[:-1]
    match type(kind).__name__:
        case "AdditionalProperties":
            yield from (((*route, name), _at(schema, part)) for name in kind.unexpected)
        case "Required":
            yield _nearest(schema, (*route, kind.property), (*part, "properties", kind.property))
        case _:
            yield _nearest(schema, route, part)


def _nearest(schema: Mapping[str, Any], route: Path, part: Path) -> tuple[Path, Mapping[str, Any]]:
    """The innermost part of the schema around a place that has something to say, and the place that it is about."""
    while "problem" not in _at(schema, part):
        if part[-1] in _STEPS:
            route = route[:-1]
        part = part[:-1]
    return route, _at(schema, part)


def _at(schema: Mapping[str, Any], way: Path) -> Mapping[str, Any]:
    part: Any = schema
    for step in way:
        part = part[step]
    return cast("Mapping[str, Any]", part)


def _problem(route: Path, texts: Mapping[str, str], plain: object) -> Problem:
    beside: Any = plain
    for step in route[:-1]:
        beside = beside[step]
    is_there = not route or isinstance(beside, list) or route[-1] in beside
    value = beside[route[-1]] if route and is_there else None
    key = next((part for part in reversed(route) if isinstance(part, str)), "")
    words = {
        "path": (*route, "", ""),
        "key": key,
        "value": in_yaml(value),
        "given": f"`{key}: {in_yaml(value)}`" if is_there else f"no `{key}`",
        "name": text(mapping(beside).get("name")) or "resource",
    }
    return Problem(route, *(texts[part].format(**words) for part in ("message", "label", "help")))
