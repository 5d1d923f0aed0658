"""Expressions of the grammar that is read: another evaluator of CEL gives each the same value, or fails as well."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from celpy import celtypes
from celpy.adapter import json_to_cel
from celpy.evaluation import CELEvalError
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.manifests.cel import CelError, evaluate, read_rule
from tests.compiler.backends.scheduling import cel as other

EXAMPLES = int(os.environ.get("GPUPLAN_CEL_EXAMPLES", "150"))


class Text(NamedTuple):
    """An expression, and how tightly it binds: parentheses stand where they must, so that precedence is compared."""

    text: str
    binds: int


CHOICE, EITHER, BOTH, RELATION, SUM, SIGNED, MEMBER = range(7)


TRUTHS = (
    *(Text(text, MEMBER) for text in ("true", "false", "object.b", "has(object.o)")),
    Text("object.o == 'a'", RELATION),
)


def within(found: Text, binds: int) -> str:
    return found.text if found.binds >= binds else f"({found.text})"


class Grammar:
    """Draws expressions of each type; ``depth`` is how many more they may be made of."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw
        self.names: list[str] = []

    def one_of(self, *makers: Callable[[], Text]) -> Text:
        make: Callable[[], Text] = self.draw(st.sampled_from(makers))
        return make()

    def infix(self, sign: str, binds: int, left: Text, right: Text) -> Text:
        return Text(f"{within(left, binds)} {sign} {within(right, binds + 1)}", binds)

    def choice(self, make: Callable[[int], Text], depth: int) -> Text:
        condition = within(self.boolean(depth), EITHER)
        return Text(f"{condition} ? {within(make(depth), EITHER)} : {make(depth).text}", CHOICE)

    def boolean(self, depth: int) -> Text:
        plain = [lambda: self.draw(st.sampled_from(TRUTHS))]
        if not depth:
            return self.one_of(*plain)
        less = depth - 1
        return self.one_of(
            *plain,
            lambda: self.infix("&&", BOTH, self.boolean(less), self.boolean(less)),
            lambda: self.infix("||", EITHER, self.boolean(less), self.boolean(less)),
            lambda: Text(f"!{within(self.boolean(less), MEMBER)}", SIGNED),
            lambda: self.choice(self.boolean, less),
            lambda: self.compared(self.number, less),
            lambda: self.compared(self.string, less),
            lambda: self.infix("in", RELATION, self.string(less), self.strings(less)),
            lambda: Text(f"{within(self.string(less), MEMBER)} in object.m", RELATION),
            lambda: Text(self.draw(st.sampled_from(["has(object.o)", "has(object.m.k)"])), MEMBER),
            lambda: self.macro(self.draw(st.sampled_from(["all", "exists"])), self.boolean, less),
            lambda: self.method(self.draw(st.sampled_from(["startsWith", "endsWith"])), less),
        )

    def compared(self, make: Callable[[int], Text], depth: int) -> Text:
        sign = self.draw(st.sampled_from(["==", "!=", "<", "<=", ">", ">="]))
        return Text(f"{within(make(depth), SUM)} {sign} {within(make(depth), SUM)}", RELATION)

    def number(self, depth: int) -> Text:
        plain = [lambda: Text(self.draw(st.sampled_from(["0", "1", "2", "object.n", "size(object.o)"])), MEMBER)]
        if not depth:
            return self.one_of(*plain)
        less = depth - 1
        return self.one_of(
            *plain,
            lambda: self.infix(self.draw(st.sampled_from(["+", "-"])), SUM, self.number(less), self.number(less)),
            lambda: Text(f"-{within(self.number(less), MEMBER)}", SIGNED),
            lambda: Text(f"size({self.strings(less).text})", MEMBER),
            lambda: Text(f"{within(self.string(less), MEMBER)}.size()", MEMBER),
            lambda: Text(f"int({self.number(less).text})", MEMBER),
            lambda: self.choice(self.number, less),
        )

    def string(self, depth: int) -> Text:
        written = ["''", "'a'", '"b c"', r"r'\d'", r"'it\'s'", "object.s", "object.o", "object.m['k']"]
        written += [*self.names, *self.names]
        plain = [lambda: Text(self.draw(st.sampled_from(written)), MEMBER)]
        if not depth:
            return self.one_of(*plain)
        less = depth - 1
        return self.one_of(
            *plain,
            lambda: self.infix("+", SUM, self.string(less), self.string(less)),
            lambda: Text(f"{within(self.strings(less), MEMBER)}[{self.index()}]", MEMBER),
            lambda: Text(f"{within(self.strings(less), MEMBER)}.join({self.string(0).text})", MEMBER),
            lambda: self.choice(self.string, less),
        )

    def index(self) -> str:
        """Not a negative one: celpy counts it from the end, and cel-go fails."""
        return str(self.draw(st.sampled_from(["0", "0", "1", "7", "size(object.l)"])))

    def strings(self, depth: int) -> Text:
        plain = [
            lambda: Text(self.draw(st.sampled_from(["[]", "object.l", "object.l", "['a', 'b']", "[object.o]"])), MEMBER)
        ]
        if not depth:
            return self.one_of(*plain)
        less = depth - 1
        return self.one_of(
            *plain,
            lambda: self.infix("+", SUM, self.strings(less), self.strings(less)),
            lambda: Text(f"[{self.string(less).text}, {self.string(less).text}]", MEMBER),
            lambda: self.macro("filter", self.boolean, less),
            lambda: self.macro("map", self.string, less),
            lambda: Text(f"{within(self.string(less), MEMBER)}.split(' ')", MEMBER),
            lambda: self.choice(self.strings, less),
        )

    def macro(self, name: str, make: Callable[[int], Text], depth: int) -> Text:
        items = within(self.strings(depth), MEMBER)
        variable = f"v{len(self.names)}"
        self.names.append(variable)
        body = make(depth).text
        self.names.pop()
        return Text(f"{items}.{name}({variable}, {body})", MEMBER)

    def method(self, name: str, depth: int) -> Text:
        return Text(f"{within(self.string(depth), MEMBER)}.{name}({self.string(depth).text})", MEMBER)


@st.composite
def expressions(draw: Any) -> str:
    grammar = Grammar(draw)
    make = draw(st.sampled_from([grammar.boolean, grammar.boolean, grammar.number, grammar.string, grammar.strings]))
    return str(make(draw(st.integers(1, 4))).text)


OBJECTS = st.fixed_dictionaries(
    {
        "b": st.booleans(),
        "n": st.integers(-3, 3),
        "s": st.sampled_from(["", "a", "b c", "it's"]),
        "l": st.lists(st.sampled_from(["a", "b", ""]), max_size=3),
        "m": st.dictionaries(st.sampled_from(["k", "a"]), st.sampled_from(["a", "b"]), max_size=2),
    },
    optional={"o": st.sampled_from(["", "a"])},
)
FAILED = "failed"


def value_of(expression: str, body: object) -> object:
    try:
        return evaluate(read_rule(expression, ["object"]), {"object": body})
    except CelError:
        return FAILED


def value_by_celpy(expression: str, body: dict[str, Any]) -> object:
    try:
        found = other.evaluate(expression, {"object": json_to_cel(body)})
    except CELEvalError:
        return FAILED
    return FAILED if isinstance(found, CELEvalError) else plain(found)


def plain(value: object) -> object:
    if isinstance(value, celtypes.BoolType):
        return bool(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return int(value) if isinstance(value, celtypes.IntType) else value


@settings(max_examples=EXAMPLES)
@given(expressions(), OBJECTS)
def test_another_evaluator_finds_the_same_value(expression: str, body: dict[str, Any]) -> None:
    ours, theirs = value_of(expression, body), value_by_celpy(expression, body)
    if theirs == FAILED != ours:  # celpy lets an error out of `in` that `||` and `&&` absorb ("Logical Operators")
        assert re.search(r" in .*\.(filter|map)\(", expression)
        assert "||" in expression or "&&" in expression
    else:
        assert ours == theirs
