"""What the operators and functions of CEL make of values; one that is of the wrong type is a `CelError`."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_UP, Decimal
from typing import TYPE_CHECKING, Any, Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.manifests.quantities import parse_quantity
from gpuplan.compiler.manifests.validators import compile_schema

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator


class UnjudgedError(Exception):
    """A rule uses something that is not evaluated here, or takes more than the API server would spend on it."""


class CelError(Exception):
    """A rule has no value for this object."""


class Budget(threading.local):
    """The work that an evaluation may still take, in steps. A step is one item of a macro or of a comparison."""

    steps = 0

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise UnjudgedError("it takes too many steps")


BUDGET: Final = Budget()
_LETTERS: Final = 64
"""The letters that are made in one step."""


# --- Types -----------------------------------------------------------------------------------------------------------


def truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise CelError("no such overload")


def as_map(value: object) -> Mapping[Any, Any]:
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101 - most are dicts, which is known at once
        return value
    raise CelError("no such overload")


def _string(value: object) -> str:
    if isinstance(value, str):
        return value
    raise CelError("no such overload")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def number(value: object) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise CelError("no such overload")


def elements(value: object) -> Sequence[Any]:
    """The items of a list, the keys of a map."""
    if isinstance(value, list | tuple):
        return value
    return list(as_map(value))


def _size(value: object) -> int:
    if isinstance(value, str | list | tuple | Mapping):
        return len(value)
    raise CelError("no such overload")


# --- Operators --------------------------------------------------------------------------------------------------------


def item_of(holder: object, index: object) -> object:
    if isinstance(holder, Mapping):
        if isinstance(index, str) and index in holder:
            return holder[index]
    elif isinstance(holder, list | tuple) and _is_number(index) and number(index) in range(len(holder)):
        return holder[int(number(index))]
    raise CelError(f"no such key: {index}")


def map_of(entries: Iterable[tuple[object, object]]) -> Mapping[str, object]:
    """A map whose keys are texts, as those of all objects are."""
    found: dict[str, object] = {}
    for key, value in entries:
        if not isinstance(key, str):
            raise UnjudgedError("maps are read whose keys are texts")
        if key in found:
            raise CelError(f"repeated key: {key}")
        found[key] = value
    return found


def _equal(left: object, right: object) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    BUDGET.spend(1)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return left == right


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[object, object], bool]:
    def value(left: object, right: object) -> bool:
        are_texts = isinstance(left, str) and isinstance(right, str)
        are_alike = are_texts or (isinstance(left, _Duration) and isinstance(right, _Duration))
        if are_alike or (_is_number(left) and _is_number(right)):
            return compare(left, right)
        raise CelError("no such overload")

    return value


def _is_in(item: object, holder: object) -> bool:
    known = elements(holder)
    BUDGET.spend(len(known))
    return any(_equal(item, element) for element in known)


def _plus(left: object, right: object) -> object:
    if isinstance(left, str) and isinstance(right, str):
        BUDGET.spend((len(left) + len(right)) // _LETTERS)
        return left + right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        BUDGET.spend(len(left) + len(right))
        return [*left, *right]
    return within(number(left) + number(right))


def within(value: float) -> int | float:
    """A number that 64 bits hold."""
    if isinstance(value, int) and not -_MOST - 1 <= value <= _MOST:
        raise CelError("integer overflow")
    return value


_MOST: Final = 2**63 - 1


COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": _ordered(lambda left, right: left < right),
    "<=": _ordered(lambda left, right: left <= right),
    ">": _ordered(lambda left, right: left > right),
    ">=": _ordered(lambda left, right: left >= right),
    "in": _is_in,
}
SUMS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": _plus,
    "-": lambda left, right: within(number(left) - number(right)),
}

# --- Durations --------------------------------------------------------------------------------------------------------


class _Duration(float):
    """Seconds."""

    __slots__ = ()


_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_DURATION: Final = regex(r"[+-]?(?:[0-9]*\.?[0-9]+(?:ns|us|µs|ms|s|m|h))+|0")
_PART: Final = regex(r"([0-9]*\.?[0-9]+)(ns|us|µs|ms|s|m|h)")


def _duration(value: object) -> _Duration:
    text = _string(value)
    if not _DURATION.fullmatch(text):
        raise CelError(f"invalid duration {text}")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    return _Duration(-seconds if text.startswith("-") else seconds)


# --- Quantities -------------------------------------------------------------------------------------------------------


class _Quantity(Value):
    """An amount as Kubernetes writes it."""

    amount: Decimal


def _quantity(value: object) -> _Quantity:
    """What is finer than a billionth is rounded away from zero (`ParseQuantity` in `pkg/api/resource` there)."""
    text = _string(value)
    parsed = parse_quantity(text)
    if parsed is None:
        raise CelError(f"quantity must match the regular expression: {text}")
    exact = parsed.quantize(_NANO, ROUND_UP) if parsed % _NANO else parsed
    return _Quantity(max(Decimal(-_MOST), min(Decimal(_MOST), exact)))


_NANO: Final = Decimal("1e-9")


def _is_quantity(value: object) -> bool:
    try:
        _quantity(_string(value))
    except CelError:
        if isinstance(value, str):
            return False
        raise
    return True


def _amount(value: object) -> Decimal:
    if isinstance(value, _Quantity):
        return value.amount
    raise CelError("no such overload")


def _compared(one: object, other: object) -> int:
    left, right = _amount(one), _amount(other)
    return (left > right) - (left < right)


# --- Rights -----------------------------------------------------------------------------------------------------------


class Authorizer:
    """Whoever asks for something, as far as a rule wants to know what else they may do.

    ``may`` is asked with the group, the resource and the verb.
    """

    def __init__(self, may: Callable[[str, str, str], bool]) -> None:
        self.may = may


class _Asked(Value):
    """A question to an authorizer, as far as it goes."""

    authorizer: Authorizer
    group: str
    resource: str = ""
    verb: str = ""


def _asked(value: object, *, is_whole: bool = False) -> _Asked:
    if isinstance(value, _Asked) and bool(value.verb) is is_whole:
        return value
    raise CelError("no such overload")


def _group(value: object, group: object) -> _Asked:
    if isinstance(value, Authorizer):
        return _Asked(value, _string(group))
    raise CelError("no such overload")


def _subresource(value: object, name: object) -> _Asked:
    asked = _asked(value)
    return replace(asked, resource=f"{asked.resource}/{_string(name)}")


def _allowed(value: object) -> bool:
    asked = _asked(value, is_whole=True)
    return asked.authorizer.may(asked.group, asked.resource, asked.verb)


# --- Texts ------------------------------------------------------------------------------------------------------------


def _matches(value: object, pattern: object) -> bool:
    return bool(_validator(_string(pattern)).is_valid(_string(value)))


def _validator(pattern: str) -> Draft202012Validator:
    """An engine of Go's kind: time linear in the text, and `$` is the end of it."""
    if pattern not in _PATTERNS:
        try:
            _PATTERNS[pattern] = compile_schema({"pattern": pattern})
        except ValueError as error:
            raise CelError(f"invalid pattern {pattern}") from error
    return _PATTERNS[pattern]


_PATTERNS: dict[str, Draft202012Validator] = {}


def _split(value: str, by: str) -> list[str]:
    return value.split(by) if by else [*value]


def _joined(items: object, by: object) -> str:
    if not isinstance(items, list | tuple):
        raise CelError("no such overload")
    texts = [*map(_string, items)]
    BUDGET.spend(sum(map(len, texts), len(texts) * len(_string(by))) // _LETTERS)
    return _string(by).join(texts)


def _replaced(value: str, old: str, new: str) -> str:
    BUDGET.spend((len(value) + value.count(old) * len(new)) // _LETTERS)
    return value.replace(old, new)


def _ascii(change: Callable[[str], str], value: str) -> str:
    return "".join(change(letter) if letter.isascii() else letter for letter in value)


def _substring(value: str, start: object, end: object) -> str:
    first, last = _index(start), _index(end)
    if not 0 <= first <= last <= len(value):
        raise CelError("index out of range")
    return value[first:last]


def _index(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise CelError("no such overload")


_INTEGER: Final = regex(r"[+-]?[0-9]{1,30}", re.ASCII)


def _int(value: object) -> int | float:
    """A number without its fraction, or what a text says."""
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value):
            raise CelError(f"type conversion error from string to int: {value}")
        return within(int(value))
    return within(int(number(value)))


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    raise UnjudgedError("`string()` is evaluated of texts, booleans and whole numbers alone")


# --- By name ----------------------------------------------------------------------------------------------------------

FUNCTIONS: Final[Mapping[tuple[str, int], Callable[..., Any]]] = {
    ("size", 1): _size,
    ("duration", 1): _duration,
    ("int", 1): _int,
    ("isQuantity", 1): _is_quantity,
    ("quantity", 1): _quantity,
    ("string", 1): _as_text,
}
METHODS: Final[Mapping[tuple[str, int], Callable[..., Any]]] = {
    ("size", 1): _size,
    ("matches", 2): _matches,
    ("startsWith", 2): lambda value, start: _string(value).startswith(_string(start)),
    ("endsWith", 2): lambda value, end: _string(value).endswith(_string(end)),
    ("contains", 2): lambda value, part: _string(part) in _string(value),
    ("indexOf", 2): lambda value, part: _string(value).find(_string(part)),
    ("join", 1): lambda items: _joined(items, ""),
    ("join", 2): _joined,
    ("lowerAscii", 1): lambda value: _ascii(str.lower, _string(value)),
    ("replace", 3): lambda value, old, new: _replaced(_string(value), _string(old), _string(new)),
    ("split", 2): lambda value, by: _split(_string(value), _string(by)),
    ("substring", 2): lambda value, start: _substring(_string(value), start, len(_string(value))),
    ("substring", 3): lambda value, start, end: _substring(_string(value), start, end),
    ("upperAscii", 1): lambda value: _ascii(str.upper, _string(value)),
    ("add", 2): lambda one, other: _Quantity(_amount(one) + _amount(other)),
    ("compareTo", 2): _compared,
    ("isGreaterThan", 2): lambda one, other: _compared(one, other) > 0,
    ("isLessThan", 2): lambda one, other: _compared(one, other) < 0,
    ("sub", 2): lambda one, other: _Quantity(_amount(one) - _amount(other)),
    ("subresource", 2): _subresource,
    ("allowed", 1): _allowed,
    ("check", 2): lambda asked, verb: replace(_asked(asked), verb=_string(verb)),
    ("group", 2): _group,
    ("resource", 2): lambda asked, resource: replace(_asked(asked), resource=_string(resource)),
}
