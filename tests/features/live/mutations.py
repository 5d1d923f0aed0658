"""Single changes of live objects, at fields that a manager owns by ``metadata.managedFields``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

Route = tuple[str | int, ...]


class Mutation(NamedTuple):
    """A change of one field, as an operation of a JSON patch."""

    route: Route
    operation: str
    value: object = None

    @property
    def patch(self) -> list[dict[str, Any]]:
        pointer = "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in self.route)
        said = {} if self.operation == "remove" else {"value": self.value}
        return [{"op": self.operation, "path": pointer, **said}]


def mutate(live: Mapping[str, Any], manager: str, random: Random) -> Mutation | None:
    """Another value for a field that the manager owns, or none; None where it owns nothing that says something."""
    owned = [(route, value) for route, value in owned_leaves(live, manager) if value not in ({}, [], "", None)]
    if not owned:
        return None
    route, value = random.choice(owned)
    if random.random() < 0.2 and isinstance(route[-1], str):
        return Mutation(route, "remove")
    return Mutation(route, "replace", other_value(value, random))


def owned_leaves(live: Mapping[str, Any], manager: str) -> Iterator[tuple[Route, object]]:
    """What a manager has applied, leaf by leaf, but for what tells which object it is."""
    for entry in live["metadata"].get("managedFields", ()):
        if entry["manager"] == manager and entry["operation"] == "Apply":
            yield from _leaves(entry["fieldsV1"], live, ())


def _leaves(fields: Mapping[str, Any], live: Any, route: Route) -> Iterator[tuple[Route, object]]:
    for key, inner in fields.items():
        kind, _, rest = key.partition(":")
        if kind == "f" and rest in live:
            step: str | int = rest
        elif kind == "k":
            named = json.loads(rest)
            step = next(n for n, item in enumerate(live) if all(item.get(name) == named[name] for name in named))
        elif kind == "v":
            step = live.index(json.loads(rest))
        else:
            continue
        if inner:
            yield from _leaves(inner, live[step], (*route, step))
        elif not (kind == "f" and rest == "name" and route and isinstance(route[-1], int)):
            yield from whole_leaves(live[step], (*route, step))


def whole_leaves(value: object, route: Route) -> Iterator[tuple[Route, object]]:
    """What is applied as a whole, leaf by leaf."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from whole_leaves(item, (*route, key))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from whole_leaves(item, (*route, index))
    else:
        yield route, value


def other_value(value: object, random: Random) -> object:
    match value:
        case bool():
            return not value
        case int():
            return value + random.randint(1, 9)
        case float():
            return value + 1
        case str() if value.isdigit():
            return str(int(value) + random.randint(1, 9))
        case str() if "\n" in value:
            lines = value.splitlines(keepends=True)
            index = random.randrange(len(lines))
            return "".join((*lines[:index], f"# changed by hand {random.random()}\n", *lines[index:]))
        case str():
            return f"{value}x" if random.random() < 0.5 else f"{value[:-1]}0" if value[-1] != "0" else f"{value}1"
        case _:
            return "changed"
