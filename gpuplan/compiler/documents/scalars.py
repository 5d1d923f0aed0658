"""The meaning of plain scalars by the core schema of YAML 1.2, and whether YAML 1.1 would read them differently."""

from __future__ import annotations

import math
from functools import lru_cache

from gpuplan.compiler.base.diagnostics import Rule
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.documents.rules import AMBIGUOUS_NUMBER, AMBIGUOUS_TEXT, CURLY_QUOTE, NUMBER_OUT_OF_RANGE

Plain = str | int | float | bool | None
"""The values that a scalar can have in JSON."""


class Doubt(NamedTuple):
    """Why a plain scalar should not stand in a policy."""

    rule: Rule
    message: str
    label: str
    help: str


class Reading(NamedTuple):
    """The value of a plain scalar, with the doubt that it raises."""

    value: Plain
    doubt: Doubt | None = None


@lru_cache(maxsize=8192)
def read_plain(text: str) -> Reading:
    """Read what stands without quotes: text, a number, a boolean or null."""
    if text in _WORDS:
        return Reading(_WORDS[text])
    if text in _LEGACY_BOOLEANS:
        legacy = _LEGACY_BOOLEANS[text]
        message = f"plain `{text}` is text here, but the boolean {legacy} in YAML 1.1"
        return Reading(
            text, Doubt(AMBIGUOUS_TEXT, message, "read in two ways", f"write `{quoted(text)}` for text, or `{legacy}`")
        )
    if text[0] not in "+-.0123456789":
        return _curly(text) if text[0] in CURLY_QUOTES else Reading(text)
    if text in _NOT_FINITE:
        return Reading(_NOT_FINITE[text], _range_doubt(text))
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        value = float(text)
        if not math.isfinite(value):
            return Reading(value, _range_doubt(text))
        if _LEGACY_FLOAT.fullmatch(text):
            return Reading(value)
        decimal = str(int(value)) if value.is_integer() and abs(value) < 2**63 else repr(value)
        return Reading(value, _number_doubt(text, f"{decimal} here, but text in YAML 1.1", decimal))
    return Reading(text, _legacy_doubt(text))


CURLY_QUOTES = "\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b"


def quoted(text: str) -> str:
    """The text as a message shows it: in double quotes, and no longer than a line bears."""
    return f'"{shortened(text)}"'


def shortened(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


_WORDS: dict[str, Plain] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_LEGACY_BOOLEANS = {
    **{word: "true" for plain in ("y", "yes", "on") for word in (plain, plain.capitalize(), plain.upper())},
    **{word: "false" for plain in ("n", "no", "off") for word in (plain, plain.capitalize(), plain.upper())},
}
_NOT_FINITE = {
    **{sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}

_INTEGER = regex(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = regex(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")

_LEGACY_FLOAT = regex(r"(?:[-+]?[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?")
_LEGACY_NUMBER = regex(
    r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)"
    r"|(?:[-+]?[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?"
)
_LEGACY_SIXTIES = regex(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_LEGACY_TIME = regex(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?"
    r"(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?"
)


def _integer(text: str) -> Reading:
    if text[:2] in ("0o", "0x"):
        return _prefixed_integer(text)
    digits = text.lstrip("+-")
    significant = digits.lstrip("0") or "0"
    if len(significant) > _MAX_DIGITS:
        return Reading(float(text), _range_doubt(text))
    value = -int(significant) if text[0] == "-" else int(significant)
    if not _fits(value):
        return Reading(value, _range_doubt(text))
    if len(digits) > 1 and digits[0] == "0":
        return Reading(value, _number_doubt(text, f"{value} here, but {_legacy_octal(text)} in YAML 1.1", str(value)))
    return Reading(value)


def _prefixed_integer(text: str) -> Reading:
    if len(text) > _MAX_DIGITS:
        return Reading(math.inf, _range_doubt(text))
    value = int(text, 0)
    if not _fits(value):
        return Reading(value, _range_doubt(text))
    if text[1] == "o":
        return Reading(value, _number_doubt(text, f"{value} here, but text in YAML 1.1", str(value)))
    return Reading(value)


def _curly(text: str) -> Reading:
    """Return the text between curly quotes, as it would be between straight ones."""
    meant = text.strip(CURLY_QUOTES)
    doubt = Doubt(
        CURLY_QUOTE,
        "curly quotes are letters to YAML",
        "a curly quote",
        f"write `{quoted(meant)}`" if meant else "remove it",
    )
    return Reading(meant, doubt)


_MAX_DIGITS = 100  # Python refuses to read or to write more than 4,300, and a sum must not get there


def _fits(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _legacy_octal(text: str) -> str:
    return "text" if set("89") & set(text) else f"{int(text, 8)} (octal)"


def _legacy_doubt(text: str) -> Doubt | None:
    if _LEGACY_NUMBER.fullmatch(text):
        return _number_doubt(text, "text here, but a number in YAML 1.1", "the number in plain decimal digits")
    if _LEGACY_SIXTIES.fullmatch(text):
        return _text_doubt(text, "a number in base 60")
    if _LEGACY_TIME.fullmatch(text):
        return _text_doubt(text, "a date")
    return None


def _range_doubt(text: str) -> Doubt:
    message = f"number `{shortened(text)}` is not a finite number of 64 bits"
    return Doubt(
        NUMBER_OUT_OF_RANGE, message, "out of range", f"write a number that fits, or `{quoted(text)}` for text"
    )


def _number_doubt(text: str, readings: str, decimal: str) -> Doubt:
    written = decimal if " " in decimal else f"`{decimal}`"
    return Doubt(
        AMBIGUOUS_NUMBER,
        f"plain `{shortened(text)}` is {readings}",
        "read in two ways",
        f"write {written}, or `{quoted(text)}` for text",
    )


def _text_doubt(text: str, legacy: str) -> Doubt:
    message = f"plain `{shortened(text)}` is text here, but {legacy} in YAML 1.1"
    return Doubt(AMBIGUOUS_TEXT, message, "read in two ways", f"write `{quoted(text)}`")
