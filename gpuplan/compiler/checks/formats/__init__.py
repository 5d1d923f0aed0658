"""Judge plain data by a schema, each part of which says what to type instead of what does not fit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path as File
from typing import TYPE_CHECKING, Any, Final, cast

from gpuplan.compiler.base.diagnostics import Finding, Origin, Path
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping, text, value_at
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.checks.wording import in_yaml
from gpuplan.compiler.manifests.validators import compile_schema

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

_FOLDER: Final = File(__file__).parent
_STEPS: Final = ("additionalProperties", "items", "properties")
"""Keywords of a schema that lead to a part of the value."""


class Problem(NamedTuple):
    """A problem of a value: the route to it, the words for it, and what to write instead."""

    route: Path
    message: str
    label: str
    help: str

    def finding(self, at: Origin, fact: str, key: str = "") -> Finding:
        """Return the problem as a finding, with what follows. ``key`` says where it is if the place is not exact."""
        message = f"`{key}`: {self.message}" if key else self.message
        return Finding(at, message, label=self.label, notes=(fact,), help=self.help)


def find_problems(name: str, value: object) -> tuple[Problem, ...]:
    """Return the problems of a value by the format of a name, one a place. Data that JSON cannot express has none."""
    schema, validator = _format(name)
    try:
        plain = json.loads(json.dumps(value, default=str, skipkeys=True), object_pairs_hook=_without_empty_keys)
        errors = list(validator.iter_errors(plain))
    except (ValueError, RecursionError):  # of anchors that hold themselves, and of numbers without end
        return ()
    problems: dict[Path, Problem] = {}
    for error in errors:
        for route, texts in _blamed(schema, error, _route(plain, tuple(error.instance_path))):
            problems.setdefault(route, _problem(route, texts, plain))
    return tuple(problems.values())


def _without_empty_keys(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Return the pairs without empty keys, which no format has. The validator leaves them out of routes."""
    return {key: value for key, value in pairs if key}


def _route(value: Any, reported: Path) -> Path:  # noqa: ANN401 - plain data
    """Return the way to a value. The validator takes keys that are digits for indexes, `00` for 0, too.

    It ends before a step that more than one key may be.
    """
    route: Path = ()
    for step in reported:
        if isinstance(value, dict) and step not in value:
            keys = [key for key in value if key.lstrip("+").isdecimal() and int(key) == step]
            if len(keys) != 1:
                return route
            step = keys[0]  # noqa: PLW2901 - as the mapping spells it
        elif isinstance(value, list) and not (isinstance(step, int) and step < len(value)):
            return route
        route = (*route, step)
        value = value[step]
    return route


@cache
def _format(name: str) -> tuple[Mapping[str, Any], Draft202012Validator]:
    import yaml

    schema = yaml.load((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return schema, compile_schema(schema)


def _blamed(schema: object, error: ValidationError, route: Path) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """Yield the places of an error, with the words of the innermost part of the schema that has some."""
    kind: Any = error.kind
    part = tuple(error.schema_path)[:-1]
    places = [route]
    if type(kind).__name__ == "AdditionalProperties":
        places = [(*route, name) for name in kind.unexpected]
    elif type(kind).__name__ == "Required":
        places, part = [(*route, kind.property)], (*part, "properties", kind.property)
    while (texts := value_at(schema, (*part, "problem"))) is None:
        if part[-1] in _STEPS:
            places = [place[:-1] for place in places]
        part = part[:-1]
    yield from ((place, cast("Mapping[str, str]", texts)) for place in places)


def _problem(route: Path, texts: Mapping[str, str], plain: object) -> Problem:
    beside = value_at(plain, route[:-1])
    is_there = not route or isinstance(beside, list) or route[-1] in mapping(beside)
    value = value_at(plain, route) if route else None
    key = next((part for part in reversed(route) if isinstance(part, str)), "")
    words = {
        "path": (*route, "", ""),
        "key": key,
        "value": in_yaml(value),
        "lower": in_yaml(value).lower(),
        "filter": _filter(value),
        "given": f"`{key}: {in_yaml(value)}`" if is_there else f"no `{key}`",
        "name": text(mapping(beside).get("name")) or "resource",
    }
    return Problem(route, *(texts[part].format(**words) for part in ("message", "label", "help")))


def _filter(value: object) -> str:
    """Return how a device filter is written, of the board that is meant: YAML reads `0x233010DE` as a number."""
    number = f"0x{value:08X}" if isinstance(value, int) and not isinstance(value, bool) else text(value)
    found = _DEVICE.fullmatch(number)
    if found is None:
        return 'device and vendor in hex, in quotes, such as `"0x233010DE"` for an H100'
    return f'`"0x{found["device"].upper()}{_NVIDIA}"`'


_DEVICE: Final = regex(r"(?:0[xX])?(?P<device>[0-9A-Fa-f]{4})(?:10[dD][eE]|(?<=^0[xX]....))")
_NVIDIA: Final = "10DE"
"""The vendor's number."""
