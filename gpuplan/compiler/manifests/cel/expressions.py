"""Evaluate the part of CEL that admission policies and definitions of custom kinds state their rules in.

It has what those rules use: fields, lists, `has`, the macros over lists and maps, comparisons, sums, and a few
functions on texts, durations, quantities and rights. What else a rule may use is `UnjudgedError` when it is read, never
a wrong answer later. An evaluation that fails, as by a field that is absent, fails the rule, as it does in the API
server; `&&` and `||` take their answer from either side if that is enough.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.manifests.cel.functions import (
    BUDGET,
    COMPARISONS,
    FUNCTIONS,
    METHODS,
    SUMS,
    CelError,
    UnjudgedError,
    as_map,
    elements,
    item_of,
    map_of,
    number,
    truth,
    within,
)

Scope = Mapping[str, Any]
Term = Callable[[Scope], Any]
"""An expression that is ready to be evaluated, with what its names stand for."""


def read_rule(text: str, names: Sequence[str] = ("self",)) -> Term:
    """A rule over the names."""
    try:
        return _Reader(text, names).read()
    except RecursionError as error:
        raise UnjudgedError("it is nested too deep") from error


def evaluate(rule: Term, scope: Scope) -> Any:  # noqa: ANN401 - of any type
    """Return the value of a rule. Raise `CelError` if it has none, and `UnjudgedError` if nobody can tell here."""
    outer, BUDGET.steps = BUDGET.steps, MAX_STEPS
    try:
        return rule(scope)
    except RecursionError as error:
        raise UnjudgedError("it is nested too deep") from error
    finally:
        BUDGET.steps = outer


def holds(rule: Term, value: object) -> bool:
    """Whether a value keeps a rule; one that fails on it does not hold.

    One that asks for more than a reasonable rule does is not judged: the API server refuses it for its costs.
    """
    try:
        return evaluate(rule, {"self": value}) is True
    except CelError:
        return False
    except UnjudgedError:
        return True


MAX_STEPS: Final = 200_000
"""The steps that a rule may take, which are about two seconds. A reasonable one takes a few hundred."""


# --- Reading ----------------------------------------------------------------------------------------------------------

_TOKEN: Final = regex(
    r"""\s*(?:
    (?P<name>[A-Za-z_]\w*(?!["'\w]))
    |(?P<sign>\|\||&&|==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])
    |(?P<text>[rR]?(?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))
    |(?P<number>[0-9]{1,18}(?:\.[0-9]{1,18})?(?![\w.]))
    |(?P<unread>\S[\s\S]{0,19})
    )""",
    re.VERBOSE,
)
MAX_LENGTH: Final = 20_000
_CONSTANTS: Final[Mapping[str, object]] = {"true": True, "false": False, "null": None}
_RELATIONS: Final = frozenset(("==", "!=", "<", "<=", ">", ">=", "in"))
_ESCAPED: Final = {"__dot__": ".", "__dash__": "-", "__slash__": "/", "__underscores__": "__"}
_KEYWORD: Final = regex(r"__([a-z]+)__")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "`": "`"}


_Token = tuple[str, str]
"""A kind, and how it is written."""


def _tokens(text: str) -> list[_Token]:
    text = text.rstrip()
    if len(text) > MAX_LENGTH:
        raise UnjudgedError("it is too long")
    found: list[_Token] = []
    for name, sign, quoted, digits, unread in _TOKEN.findall(text):
        if name:
            found.append(("name", name))
        elif sign:
            found.append(("sign", sign))
        elif quoted or digits:
            found.append(("text", quoted) if quoted else ("number", digits))
        else:
            raise UnjudgedError(f"`{unread}` is not read")
    return found


class _Reader:
    """Reads one expression; each method reads what binds tighter than the one before it."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        self._tokens = _tokens(text)
        self._signs = [*("" if kind == "text" else written for kind, written in self._tokens), ""]
        self._next = 0
        self._names = [*names]

    def read(self) -> Term:
        term = self._choice()
        if self._next < len(self._tokens):
            raise UnjudgedError(f"`{self._tokens[self._next][1]}` is not expected")
        return term

    def _choice(self) -> Term:
        condition = self._either()
        if not self._takes("?"):
            return condition
        then = self._either()
        self._needs(":")
        otherwise = self._choice()
        return lambda scope: then(scope) if truth(condition(scope)) else otherwise(scope)

    def _either(self) -> Term:
        terms = [self._both()]
        while self._takes("||"):
            terms.append(self._both())
        return terms[0] if len(terms) == 1 else _logical(terms, decisive=True)

    def _both(self) -> Term:
        terms = [self._relation()]
        while self._takes("&&"):
            terms.append(self._relation())
        return terms[0] if len(terms) == 1 else _logical(terms, decisive=False)

    def _relation(self) -> Term:
        left = self._sum()
        while (sign := self._peek()) in _RELATIONS:
            self._next += 1
            left = _binary(COMPARISONS[sign], left, self._sum())
        return left

    def _sum(self) -> Term:
        left = self._signed()
        while (sign := self._peek()) in SUMS:
            self._next += 1
            left = _binary(SUMS[sign], left, self._signed())
        return left

    def _signed(self) -> Term:
        if self._takes("!"):
            inner = self._signed()
            return lambda scope: not truth(inner(scope))
        if self._takes("-"):
            negated = self._signed()
            return lambda scope: within(-number(negated(scope)))
        return self._member()

    def _member(self) -> Term:
        term = self._primary()
        while True:
            if self._takes("."):
                name = self._name()
                term = self._called(term, name) if self._takes("(") else _field(term, _unescaped(name))
            elif self._takes("["):
                term = _binary(item_of, term, self._choice())
                self._needs("]")
            else:
                return term

    def _primary(self) -> Term:
        kind, text = self._take()
        if kind == "text":
            is_raw = text[0] in "rR"
            quoted = text[is_raw:]
            width = 3 if quoted[:3] in ('"""', "'''") else 1
            inner = quoted[width:-width]
            return _constant(inner if is_raw else re.sub(r"\\(.)", _unescape, inner, flags=re.DOTALL))
        if kind == "number":
            return _constant(float(text) if "." in text else int(text))
        if kind == "name" and text in _CONSTANTS:
            return _constant(_CONSTANTS[text])
        if kind == "name":
            return self._function(text) if self._takes("(") else self._variable(text)
        if text == "(":
            term = self._choice()
            self._needs(")")
            return term
        if text == "[":
            items = self._arguments("]")
            return lambda scope: [item(scope) for item in items]
        if text == "{":
            entries = self._entries()
            return lambda scope: map_of((key(scope), value(scope)) for key, value in entries)
        raise UnjudgedError(f"`{text}` is not expected")

    def _variable(self, name: str) -> Term:
        if name not in self._names:
            raise UnjudgedError(f"`{name}` is not known")

        def value(scope: Scope) -> Any:  # noqa: ANN401 - of any type
            return scope[name]

        return value

    def _function(self, name: str) -> Term:
        if name == "has":
            return self._has()
        arguments = self._arguments(")")
        found = FUNCTIONS.get((name, len(arguments)))
        if found is None:
            raise UnjudgedError(f"`{name}()` is not evaluated")
        return lambda scope: found(*(argument(scope) for argument in arguments))

    def _has(self) -> Term:
        """Whether the field that a chain of fields ends with is there; what is before it must be."""
        holder = self._primary()
        asked = ""
        while not self._takes(")"):
            holder = _field(holder, asked) if asked else holder
            asked = ""
            if self._takes("["):
                holder = _binary(item_of, holder, self._choice())
                self._needs("]")
            else:
                self._needs(".")
                asked = _unescaped(self._name())
        if not asked:
            raise UnjudgedError("`has()` asks for no field")
        return lambda scope: asked in as_map(holder(scope))

    def _called(self, target: Term, name: str) -> Term:
        if name in _MACROS:
            return self._macro(target, name)
        arguments = [target, *self._arguments(")")]
        found = METHODS.get((name, len(arguments)))
        if found is None:
            raise UnjudgedError(f"`.{name}()` is not evaluated")
        return lambda scope: found(*(argument(scope) for argument in arguments))

    def _macro(self, target: Term, name: str) -> Term:
        variable = self._name()
        self._needs(",")
        self._names.append(variable)
        body = self._choice()
        self._names.pop()
        self._needs(")")
        macro = _MACROS[name]

        def value(scope: Scope) -> Any:  # noqa: ANN401 - of any type
            def of_item(element: object) -> Any:  # noqa: ANN401 - of any type
                BUDGET.spend(1)
                return body({**scope, variable: element})

            return macro(elements(target(scope)), of_item)

        return value

    def _arguments(self, end: str) -> list[Term]:
        found: list[Term] = []
        while not self._takes(end):
            found.append(self._choice())
            if not self._takes(","):
                self._needs(end)
                break
        return found

    def _entries(self) -> list[tuple[Term, Term]]:
        found: list[tuple[Term, Term]] = []
        while not self._takes("}"):
            key = self._choice()
            self._needs(":")
            found.append((key, self._choice()))
            if not self._takes(","):
                self._needs("}")
                break
        return found

    def _peek(self) -> str:
        return self._signs[self._next]

    def _take(self) -> _Token:
        if self._next == len(self._tokens):
            raise UnjudgedError("the rule ends too early")
        self._next += 1
        return self._tokens[self._next - 1]

    def _takes(self, sign: str) -> bool:
        if self._signs[self._next] != sign:
            return False
        self._next += 1
        return True

    def _needs(self, sign: str) -> None:
        if not self._takes(sign):
            raise UnjudgedError(f"`{sign}` is missing before `{self._peek()}`")

    def _name(self) -> str:
        kind, text = self._take()
        if kind != "name":
            raise UnjudgedError(f"`{text}` is no name")
        return text


def _unescape(match: re.Match[str]) -> str:
    if match[1] not in _ESCAPES:
        raise UnjudgedError(f"`{match[0]}` in a text is not read")
    return _ESCAPES[match[1]]


def _unescaped(name: str) -> str:
    """The field that a name stands for: not every field's own name could be written."""
    if keyword := _KEYWORD.fullmatch(name):
        return _ESCAPED.get(name, keyword[1])
    for escaped, text in _ESCAPED.items():
        name = name.replace(escaped, text)
    return name


# --- Evaluating -------------------------------------------------------------------------------------------------------


def _constant(value: object) -> Term:
    return lambda _: value


def _binary(operation: Callable[[Any, Any], Any], one: Term, other: Term) -> Term:
    return lambda scope: operation(one(scope), other(scope))


def _logical(terms: Sequence[Term], *, decisive: bool) -> Term:
    return lambda scope: _any(terms, lambda term: term(scope), decisive=decisive)


def _field(holder: Term, name: str) -> Term:
    def value(scope: Scope) -> Any:  # noqa: ANN401 - of any type
        found = as_map(holder(scope))
        if name not in found:
            raise CelError(f"no such key: {name}")
        return found[name]

    return value


# --- Macros -----------------------------------------------------------------------------------------------------------

_Body = Callable[[Any], Any]


def _any(items: Sequence[Any], body: _Body, *, decisive: bool) -> bool:
    """One item of the decisive value is enough; else all must have a value."""
    failed: CelError | None = None
    for item in items:
        try:
            if truth(body(item)) is decisive:
                return decisive
        except CelError as error:
            failed = error
    if failed:
        raise failed
    return not decisive


_MACROS: Final[Mapping[str, Callable[[Sequence[Any], _Body], Any]]] = {
    "all": lambda items, body: _any(items, body, decisive=False),
    "exists": lambda items, body: _any(items, body, decisive=True),
    "exists_one": lambda items, body: sum(truth(body(item)) for item in items) == 1,
    "filter": lambda items, body: [item for item in items if truth(body(item))],
    "map": lambda items, body: [body(item) for item in items],
}


def names_in(text: str) -> Iterator[str]:
    """The names in a rule, such as `oldSelf`."""
    return (written for kind, written in _tokens(text) if kind == "name")
