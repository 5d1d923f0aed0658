"""Of every field of the language: a slip in its name, its place or its shape is answered with the field."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator
from enum import Enum
from types import NoneType
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.alias_generators import to_snake

from gpuplan.compiler.base.diagnostics import Finding, Path
from gpuplan.compiler.documents import read_text
from gpuplan.compiler.policy import parse
from gpuplan.compiler.policy.data.elsewhere import REMEDIES
from gpuplan.compiler.policy.fields import nested_model
from gpuplan.compiler.policy.homes import fields_of, shown
from gpuplan.compiler.policy.marks import models_in
from gpuplan.compiler.policy.models import KINDS
from gpuplan.compiler.policy.shapes import accepts, example_of, is_list, value_at
from tests.compiler.policy.test_help import applied
from tests.every import every

HEADS = ("apiVersion", "kind", "metadata")


def findings(kind: str, place: Path, value: object) -> list[Finding]:
    """The findings on a document that says one thing, by where it says it."""
    return findings_at(a_document(kind, place, value), place)


def a_document(kind: str, place: Path, value: object) -> dict[str, Any]:
    data: Any = value
    for part in reversed(place):
        data = [data] if isinstance(part, int) else {part: data}
    return {"apiVersion": "gpuplan.dev/v1", "kind": kind, "metadata": {"name": "a"}, **data}


def findings_at(data: dict[str, Any], place: Path) -> list[Finding]:
    (document,), _ = read_text("policies/a.yaml", yaml.safe_dump(data, sort_keys=False))
    return [item.finding for item in parse(document).diagnostics if item.finding.at.path[: len(place)] == place]


def a_value(annotation: object) -> object:
    """A value of a type, as far as it has one without knowing its form."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return a_value(arguments[0])
    if origin is list:
        return [a_value(arguments[0])]
    if origin is dict:
        return {"a": a_value(arguments[1])}
    if origin is typing.Literal:
        return arguments[0]
    if arguments:
        return a_value(next(item for item in arguments if item is not NoneType))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return next(iter(annotation)).value
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {
            field.alias or name: a_value(field.annotation)
            for name, field in annotation.model_fields.items()
            if field.is_required()
        }
    return True if annotation is bool else 2 if annotation is int else 0.5 if annotation is float else "1h"


def swapped(name: str) -> str:
    """The name with two letters in the wrong order."""
    index = next((at for at in range(len(name) // 2, len(name) - 1) if name[at].lower() != name[at + 1].lower()), 0)
    return f"{name[:index]}{name[index + 1]}{name[index]}{name[index + 2 :]}"


def fields(kind: str) -> Iterator[tuple[Path, Any]]:
    for path, field in fields_of(KINDS[kind]):
        if path[0] not in HEADS:
            yield path, field


def answers(kind: str, place: Path, value: object) -> str:
    return "\n".join(f"{found.message}; {found.label}; {found.help}" for found in findings(kind, place, value))


def misses(kind: str, respelt: Callable[[str], str]) -> Iterator[str]:
    for path, field in fields(kind):
        name = str(path[-1])
        place = (*path[:-1], respelt(name))
        parent = nested_model(KINDS[kind], path[:-1])
        known = {inner.alias for inner in parent.model_fields.values()} if parent else ()
        if place == path or place[-1] in known or name[:-1] in known:
            continue
        answer = answers(kind, place, a_value(field.annotation))
        if f"`{name}:" not in answer or "remove" in answer:
            yield f"{shown(place)}: {answer}"


@every(KINDS)
def test_a_field_with_two_letters_swapped_is_told_its_name(kind: str) -> None:
    assert [*misses(kind, lambda name: swapped(name) if len(name) > 4 else name)] == []


@every(KINDS)
def test_a_field_in_snake_case_is_told_its_name(kind: str) -> None:
    assert [*misses(kind, to_snake)] == []


@every(KINDS)
def test_a_field_in_kebab_case_is_told_its_name(kind: str) -> None:
    assert [*misses(kind, lambda name: to_snake(name).replace("_", "-"))] == []


@every(KINDS)
def test_a_field_in_small_letters_is_told_its_name(kind: str) -> None:
    assert [*misses(kind, str.lower)] == []


def strays(kind: str, moved: Callable[[Path], Iterator[Path]]) -> Iterator[str]:
    model = KINDS[kind]
    for path, field in fields(kind):
        for place in moved(path):
            parent = nested_model(model, place[:-1])
            if (
                place[-2:] in REMEDIES
                or parent is None
                or place[-1] in {inner.alias for inner in parent.model_fields.values()}
            ):
                continue
            answer = answers(kind, place, a_value(field.annotation))
            if "remove" in answer or f"`{place[-1]}" not in answer:
                yield f"{shown(place)}: {answer}"


def one_level_up(path: Path) -> Iterator[Path]:
    around = path[:-1]
    while around and isinstance(around[-1], int):
        around = around[:-1]
    if len(around) > 1:
        yield (*around[:-1], path[-1])


@every(KINDS)
def test_a_field_one_level_too_far_left_is_told_its_place(kind: str) -> None:
    assert [*strays(kind, one_level_up)] == []


@every(KINDS)
def test_a_field_one_level_too_far_right_is_told_its_place(kind: str) -> None:
    model = KINDS[kind]
    inner = [
        (*path, 0) if is_list(field.annotation) else path for path, field in fields(kind) if nested_model(model, path)
    ]

    def one_level_down(path: Path) -> Iterator[Path]:
        beside = (other for other in inner if other[: len(path) - 1] == path[:-1] and other[len(path) :] in ((), (0,)))
        yield from ((*other, path[-1]) for other in beside if other[: len(path)] != path)

    assert [*strays(kind, one_level_down)] == []


@every(KINDS)
def test_a_bare_value_in_place_of_a_mapping_is_told_a_field_of_it(kind: str) -> None:
    missed = []
    for path, field in fields(kind):
        inner = next(models_in(field.annotation), None)
        if inner is None or typing.get_origin(field.annotation) is not None:
            continue
        names = [other.alias for other in inner.model_fields.values()]
        for value in (3, "a", True, ["a"]):
            found = findings(kind, path, value)
            answer = "\n".join(item.help for item in found)
            if found and ("remove" in answer or not any(str(name) in answer for name in names)) and "{}" not in answer:
                missed.append(f"{shown(path)}: {value}: {answer}")
    assert missed == []


def an_example(kind: str, path: Path, field: Any) -> object:
    """A value that a field takes: that of its documentation, or any of its type. None if there is no simple one."""
    said = example_of(KINDS[kind], path).removeprefix(", such as `").removesuffix("`")
    value = yaml.safe_load(said) if said else a_value(field.annotation)
    return value if accepts(KINDS[kind], path, value) and value not in ("", [], {}) else None


def distorted(name: str, value: object) -> Iterator[object]:
    """The value in shapes that people give it."""
    yield {name: value}
    if isinstance(value, bool):
        yield from ("yes" if value else "no", str(value).lower(), "enabled" if value else "disabled", int(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from (str(value), {"count": value})
    if isinstance(value, str):
        yield from ({"name": value}, {"value": value})
    if not isinstance(value, list):
        yield [value]
    elif len(value) == 1:
        yield from (value[0], [value])
        if isinstance(value[0], str):
            yield [{"name": value[0]}]
    if isinstance(value, dict) and all(isinstance(part, str | int) for part in value.values()):
        yield [{key: part} for key, part in value.items()]


@every(KINDS)
def test_a_value_in_another_shape_is_told_its_own(kind: str) -> None:
    missed = []
    for path, field in fields(kind):
        value = an_example(kind, path, field)
        for wrong in distorted(str(path[-1]), value) if value is not None else ():
            takes_more = nested_model(KINDS[kind], path) or nested_model(KINDS[kind], (*path, "a"))
            takes_others = (takes_more and not isinstance(value, dict)) or "env" in path
            if accepts(KINDS[kind], path, wrong) or takes_others or (value == "all" and wrong == ["all"]):
                continue
            data = a_document(kind, path, wrong)
            told = [found for found in findings_at(data, path) if "is missing" not in found.message]
            mended = applied(data, told[0]) if told and told[0].help.startswith(("write", "put")) else data
            if value_at(mended, path) != value:
                missed.append(f"{shown(path)}: {wrong}: {told and told[0].help}")
    assert missed == []
