"""Rules in CEL: what they say, and that another evaluator of CEL says the same of every rule that comes along."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import celpy
import pytest
from celpy.adapter import json_to_cel
from celpy.evaluation import CELEvalError

from gpuplan.compiler.manifests.cel import Authorizer, CelError, UnjudgedError, evaluate, holds, names_in, read_rule
from gpuplan.compiler.manifests.crds import groups, kinds, served
from gpuplan.compiler.manifests.schema_rules import RULES


@pytest.mark.parametrize(
    ("rule", "value", "verdict"),
    [
        ("has(self.a) == has(self.b)", {"a": 1}, False),
        ("has(self.a.b)", {"a": {"b": None}}, True),
        ("has(self.a.b)", {}, False),  # fails: there is no `a`
        ("!has(self.a) || self.a > 1", {}, True),
        ("self.a > 1 || true", {}, True),  # one side that fails is enough
        ("self.a > 1 && true", {}, False),
        ("self.a == 1 ? self.b == 2 : self.c == 3", {"a": 1, "b": 2}, True),
        ("self in ['a', 'b']", "b", True),
        ("'a' in self", {"a": 1}, True),
        ("self.all(x, x.n >= 1)", [{"n": 1}, {"n": 2}], True),
        ("self.all(x, x.n >= 1)", [{"n": 0}, {}], False),
        ("self.exists(x, x.n == 2)", [{}, {"n": 2}], True),
        ("self.exists_one(x, x == 'a')", ["a", "b", "a"], False),
        ("self.filter(i, i != 'a').size() == 1", ["a", "b"], True),
        ("size(self.map(i, i.n)) == 1", [{"n": 1}], True),
        ("self[size(self) - 1] == 'b'", ["a", "b"], True),
        ("self[1] == 'b'", ["a"], False),
        ("self > 0 || self in ['auto']", "auto", True),  # texts have no order with numbers
        ("self == 1", True, False),
        ("self == 1", 1.0, True),
        ("self.matches('^a+$')", "aa\n", False),
        ("self.split('.').exists(x, x.matches('^0[0-9]+$'))", "a.01", True),
        (r"self.matches(r'''^\d$''')", "1", True),
        ("self == 'it\\'s'", "it's", True),
        ("duration(self) > duration('1h30m')", "5401s", True),
        ("duration(self) > duration('1s')", "soon", False),
        ("self.x__dash__y == 1", {"x-y": 1}, True),
        ("self.__namespace__ == 'a'", {"namespace": "a"}, True),
        ("-self < 0", 1, True),
        ("(self.b ? {} : {'a': self.n}) == {'a': 2}", {"b": False, "n": 2}, True),
        ("size({'a': 1, 'b': 2,}) == 2", None, True),
        ("{'a': 1, self: 2}.a == 1", "a", False),  # fails: the key is there twice
        ("self.a || self.b", {"a": "true", "b": False}, False),
        ("self.join(' or ') == 'a or b'", ["a", "b"], True),
        ("self.join() == 'ab'", ["a", "b"], True),
        ("self.join('') == ''", ["a", 1], False),  # fails: not all are texts
        ("self.substring(1) == 'bc' && self.substring(1, 2) == 'b'", "abc", True),
        ("self.substring(2, 1) == ''", "abc", False),  # fails: it ends before it begins
        ("self.lowerAscii() == 'aÄ' && self.upperAscii() == 'AÄ'", "aÄ", True),
        ("self.replace('a', 'b') == 'bb' && self.indexOf('c') == -1", "ab", True),
        ("int(self) == -12", "-12", True),
        ("int(self) == 1", "1.0", False),
        ("int(self) == 1", 1.9, True),
        ("string(self) == '7'", 7, True),
        ("self + 1 > 0", 2**63 - 1, False),  # fails: no integer is so large
        ("quantity(self).isGreaterThan(quantity('1')) && !quantity(self).isLessThan(quantity('1100m'))", "1.1", True),
        ("quantity(self).compareTo(quantity('1024Mi')) == 0 && quantity(self) == quantity('1073741824')", "1Gi", True),
        ("quantity(self).add(quantity('1')).sub(quantity('3')) == quantity('-1')", "1", True),
        ("quantity(self) == quantity('2n')", "1.5n", True),
        ("quantity(self) > quantity('1')", "2", False),  # fails: quantities have no order of CEL's own
        ("size(quantity(self)) == 1", "2", False),
        ("isQuantity(self)", "2 GB", False),
        ("isQuantity(self)", "+2e3", True),
    ],
)
def test_what_a_rule_says(rule: str, value: object, verdict: bool) -> None:
    assert holds(read_rule(rule), value) is verdict


@pytest.mark.parametrize(
    "rule",
    [
        "url(self).getHost() == 'a'",
        "self.sorted() == self",
        "self.a ==",
        "other == 1",
        "self ~ 1",
        "has(self)",
        "1u == 1u",
    ],
)
def test_what_is_not_evaluated_is_said_when_the_rule_is_read(rule: str) -> None:
    with pytest.raises(UnjudgedError):
        read_rule(rule)


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param("(" * 20_000 + "true" + ")" * 20_000, id="long"),
        pytest.param("(" * 5_000 + "true" + ")" * 5_000, id="nested"),
        pytest.param("self < " + "9" * 5_000, id="number"),
    ],
)
def test_a_rule_that_nobody_would_write_is_not_read(rule: str) -> None:
    with pytest.raises(UnjudgedError):
        read_rule(rule)


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param("self.l.exists(a, self.l.exists(b, self.l.exists(c, a + b + c < 0)))", id="loops"),
        pytest.param("self.l[0]" + " + 1" * 4_000 + " < 0", id="chain"),
        pytest.param("['x']" + ".map(a, a + a)" * 40 + "[0] == ''", id="texts"),
        pytest.param("[self.l]" + ".map(a, a + a)" * 40 + "[0] == []", id="lists"),
        pytest.param(" == ".join(["[1]" + ".map(a, [a, a])" * 40] * 2) + " && false", id="equals"),
        pytest.param("'" + "a" * 5_000 + "'.replace('a', '" + "b" * 5_000 + "') == ''", id="replaced"),
        pytest.param("['" + "a" * 9_000 + "']" + ".map(a, [a, a].join(a))" * 9 + "[0] == ''", id="joined"),
    ],
)
def test_a_rule_that_takes_too_long_is_not_judged(rule: str) -> None:
    assert holds(read_rule(rule), {"l": [*range(70)]})


@pytest.mark.parametrize(("verb", "is_allowed"), [("patch", True), ("get", False)])
def test_an_authorizer_is_asked_with_group_resource_and_verb(verb: str, is_allowed: bool) -> None:
    rule = read_rule(f"authorizer.group('batch').resource('jobs').check('{verb}').allowed()", ["authorizer"])
    may = Authorizer(lambda *asked: asked == ("batch", "jobs", "patch"))

    assert evaluate(rule, {"authorizer": may}) is is_allowed


def test_half_a_question_has_no_answer() -> None:
    rule = read_rule("authorizer.group('').resource('pods').allowed()", ["authorizer"])

    with pytest.raises(CelError):
        evaluate(rule, {"authorizer": Authorizer(lambda *_: True)})


def test_a_list_is_no_key_of_a_map() -> None:
    assert not holds(read_rule("self.m[self.l] == 1"), {"m": {"a": 1}, "l": ["a"]})


def test_names_are_found() -> None:
    assert "oldSelf" in names_in("self.a == oldSelf.a")
    assert "oldSelf" not in names_in("self.a == 'oldSelf'")


# --- Another evaluator ------------------------------------------------------------------------------------------------


@cache
def rules() -> Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Every rule that comes along, with a schema that has it and the parts of that."""
    found: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
    for group in groups():
        for kind in kinds(group):
            for item in served(group, kind):
                for version in item.versions:
                    text = item.schema(version)
                    whole = json.loads(text) if RULES in text else {"$defs": {}}
                    for schema in _schemas(whole["$defs"]):
                        for rule in schema.get(RULES, ()):
                            found.setdefault(rule["rule"], (schema, whole["$defs"]))
    return found


def _schemas(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from _schemas(part)
    elif isinstance(value, list):
        for part in value:
            yield from _schemas(part)


def a_value(schema: Mapping[str, Any], parts: Mapping[str, Any], chance: random.Random, words: list[str]) -> Any:
    """A value of roughly the schema's form, of words that its rule has."""
    if "$ref" in schema:
        return a_value(parts[schema["$ref"].rpartition("/")[2]], parts, chance, words) if _is_ours(schema) else {}
    types = schema.get("type", "object")
    match chance.choice(types) if isinstance(types, list) else types:
        case "object":
            properties = schema.get("properties", {})
            chosen = [name for name in properties if chance.random() < (0.7 if name in words else 0.05)]
            return {name: a_value(properties[name], parts, chance, words) for name in chosen}
        case "array":
            items = schema.get("items", {})
            return [a_value(items, parts, chance, words) for _ in range(chance.randrange(3))]
        case "boolean":
            return chance.random() < 0.5
        case "integer" | "number":
            return chance.randrange(4)
        case _:
            return chance.choice([*schema.get("enum", ()), *words, ""])


def _is_ours(schema: Mapping[str, Any]) -> bool:
    return str(schema["$ref"]).startswith("#")


_DEEP = re.compile(r"has\(\w+(\.\w+){2}|split\(")
"""celpy has no `split`, and for `has(a.b.c)` where there is no `b` it says no, which in cel-go is a failure: all
qualifiers but the last must be there (`applyQualifiers` in `interpreter/attributes.go` of cel-go v0.27.0)."""


def test_another_evaluator_says_the_same_of_every_rule() -> None:
    chance = random.Random(1)
    differing = []
    compared = {text: where for text, where in rules().items() if not _DEEP.search(text)}
    for text, (schema, parts) in sorted(compared.items()):
        rule, other = read_rule(text), celpy.Environment().program(celpy.Environment().compile(text))
        words = text.replace("'", " ").replace(".", " ").replace(")", " ").split()
        for _ in range(8):
            value = a_value(schema, parts, chance, words)
            if holds(rule, value) is not _holds_by_celpy(other, value):
                differing.append((text, value))
    assert differing == []
    assert len(compared) > 100


def _holds_by_celpy(program: celpy.Runner, value: Any) -> bool:
    try:
        return bool(program.evaluate({"self": json_to_cel(value)}))
    except CELEvalError:
        return False
