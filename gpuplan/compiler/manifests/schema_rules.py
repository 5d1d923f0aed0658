"""Judge what JSON Schema cannot: the rules in CEL of definitions, and the keys by which items of a list differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.manifests.crds import Served
from gpuplan.compiler.manifests.validators import Schema

RULES: Final = "x-kubernetes-validations"
KEYS: Final = "x-kubernetes-list-map-keys"
_OLD: Final = "oldSelf"


class Broken(NamedTuple):
    """Where a rule does not hold, and what it asks for."""

    path: Path
    message: str
    is_about_keys: bool = False


class Rule(NamedTuple):
    holds: Callable[[object], bool]
    message: str


class _Node(Value):
    """A part of a schema at which something is ruled, or in which."""

    schema: Schema
    rules: tuple[Rule, ...]
    keys: tuple[str, ...]
    fields: Mapping[str, _Node]
    items: _Node | None
    values: _Node | None


class SchemaRules:
    """The rules in a schema; the parts that it refers to are in its ``$defs``."""

    def __init__(self, schema: Schema) -> None:
        self._parts: Mapping[str, Schema] = schema.get("$defs", {})
        self._known: dict[str, _Node | None] = {}
        self._root = self._node(schema)

    def broken(self, body: Mapping[str, Any]) -> Iterator[Broken]:
        """Yield the rules that an object breaks, with defaults filled in as by the API server. It fits the schema."""
        if self._root is not None:
            yield from self._judge(self._root, self._defaulted(self._root.schema, self._root, body), ())

    def _judge(self, node: _Node, value: object, path: Path) -> Iterator[Broken]:
        yield from (Broken(path, rule.message) for rule in node.rules if not rule.holds(value))
        if isinstance(value, Mapping):
            for name, part in value.items():
                inner = node.fields.get(name) or node.values
                if inner is not None:
                    yield from self._judge(inner, part, (*path, name))
        elif isinstance(value, list):
            yield from self._twice(node, value, path)
            inner = node.items
            for index, part in enumerate(value):
                if inner is not None:
                    yield from self._judge(inner, part, (*path, index))

    def _twice(self, node: _Node, items: Sequence[object], path: Path) -> Iterator[Broken]:
        seen: set[tuple[str, ...]] = set()
        for index, item in enumerate(items if node.keys else ()):
            found = item if isinstance(item, Mapping) else {}
            key = tuple(repr(found.get(name)) for name in node.keys)
            if key in seen:
                said = ", ".join(f"`{name}: {found.get(name)}`" for name in node.keys if name in found)
                yield Broken((*path, index), f"a second item with {said}", is_about_keys=True)
            seen.add(key)

    # --- Reading a schema ---------------------------------------------------------------------------------------------

    def _node(self, schema: Schema) -> _Node | None:
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return self._made(schema)
        name = reference.rpartition("/")[2]
        if name not in self._known:
            self._known[name] = None
            self._known[name] = self._made(self._parts[name]) if name in self._parts else None
        return self._known[name]

    def _made(self, schema: Schema) -> _Node | None:
        found = {name: self._node(part) for name, part in schema.get("properties", {}).items()}
        fields = {name: node for name, node in found.items() if node is not None}
        items, values = (self._inner(schema.get(keyword)) for keyword in ("items", "additionalProperties"))
        rules, keys = tuple(judged(schema)), tuple(schema.get(KEYS, ()))
        if not (rules or keys or fields or items or values):
            return None
        return _Node(schema, rules, keys, fields, items, values)

    def _inner(self, schema: object) -> _Node | None:
        return self._node(schema) if isinstance(schema, Mapping) else None

    # --- Defaults -----------------------------------------------------------------------------------------------------

    def _defaulted(self, schema: Schema, node: _Node | None, value: object, *, is_read: bool = False) -> object:
        """With defaults wherever a rule may look: below one, and on the way to one."""
        if node is None and not is_read:
            return value
        reference = schema.get("$ref")
        if isinstance(reference, str):
            name = reference.rpartition("/")[2]
            known = name in self._parts
            return self._defaulted(self._parts[name], node, value, is_read=is_read) if known else value
        is_read = is_read or (node is not None and bool(node.rules or node.keys))
        if isinstance(value, Mapping):
            return self._defaulted_fields(schema, node, value, is_read=is_read)
        if isinstance(value, list | tuple):
            items, inner = schema.get("items"), node and node.items
            if not isinstance(items, Mapping):
                return [*value]
            return [self._defaulted(items, inner, item, is_read=is_read) for item in value]
        return value

    def _defaulted_fields(
        self, schema: Schema, node: _Node | None, value: Mapping[str, object], *, is_read: bool
    ) -> Mapping[str, object]:
        properties: Mapping[str, Schema] = schema.get("properties", {})
        others = schema.get("additionalProperties")
        absent = {name: deepcopy(part["default"]) for name, part in properties.items() if _fills(part, name, value)}
        filled: dict[str, object] = {**value, **absent}
        for name, part in filled.items():
            inner = properties.get(name, others)
            if isinstance(inner, Mapping):
                below = node and (node.fields.get(name) or node.values)
                filled[name] = self._defaulted(inner, below, part, is_read=is_read)
        return filled


def kept_rules(served: Served, version: str) -> SchemaRules | None:
    """The rules of a definition that comes with gpuplan; alike ones of several releases are read once."""
    name = served.versions[version]
    if name not in _KEPT:
        text = served.schema(version)
        _KEPT[name] = SchemaRules(json.loads(text)) if RULES in text or KEYS in text else None
    return _KEPT[name]


_KEPT: dict[str, SchemaRules | None] = {}


def _fills(part: Schema, name: str, value: Mapping[str, object]) -> bool:
    return "default" in part and name not in value


def judged(schema: Schema) -> Iterator[Rule]:
    """The rules right at a schema that are about one state of an object and can be judged."""
    for rule in schema.get(RULES, ()):
        from gpuplan.compiler.manifests.cel import UnjudgedError, holds, names_in, read_rule

        text = rule["rule"]
        try:
            if _OLD not in names_in(text):
                told = rule.get("message") or f"breaks the rule `{' '.join(text.split())}`"
                yield Rule(partial(holds, read_rule(text)), told)
        except UnjudgedError:
            continue


def is_about_a_step(rule: str) -> bool:
    """Whether a rule compares an object with what it was."""
    from gpuplan.compiler.manifests.cel import names_in

    return _OLD in names_in(rule)
