"""YAML text of plain data that every reader of YAML reads back as that data.

PyYAML writes the strings ``y``, ``1e3`` and ``0o7`` without quotes, since YAML 1.1 takes them for strings; go-yaml,
which is what kubectl, kustomize and Argo CD use, reads a boolean and two numbers. A string is therefore plain here only
when it is made of harmless words; all others are double-quoted. Text of several lines is a literal block (``|``) where
that is exact, so that a generated configuration file reads as one.

The style is kustomize's: two spaces, sequences not indented under their key, one line per scalar, no anchors.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from gpuplan.compiler.base.patterns import regex

_WORDS: Final = regex(r"[A-Za-z_/][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
_NOT_WORDS: Final = frozenset(
    ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf", "infinity"]
)
"""Words that some reader takes for a boolean, a number or nothing, in any case."""

_UNPRINTABLE: Final = regex("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""The letters that JSON leaves as they are and YAML does not allow, or takes for a line end or a byte order mark."""

_INEXACT_IN_BLOCK: Final = regex(
    "[^\t\n -~\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"  # needs an escape
    "|[ \t](?:\n|\\Z)"  # blanks at the end of a line, which editors remove
    "|(?:\\A|\n)\t"  # a tab at the start of a line, which some readers take for indentation
)
_LONGEST_KEY: Final = 1000
"""Readers look no further than 1024 characters for the colon after a key."""


_JSON: Final = json.JSONEncoder(ensure_ascii=False)


def to_yaml(document: Mapping[str, object]) -> str:
    """The text of a document, ending in a line end; keys keep their order.

    Values are mappings with string keys, sequences, strings, integers, finite floats, booleans and None. Anything else
    is a ``TypeError``; a number or a string that YAML has no way to write is a ``ValueError``.
    """
    out: list[str] = []
    _emit_mapping(out, document, "\n")
    out.append("\n")
    return "".join(out)[1:]


def scalar(text: str) -> str:
    """A string on one line, quoted where it must be."""
    return _VALUES[text][1:] or _double_quoted(text)


def _emit_mapping(out: list[str], mapping: Mapping[str, object], line: str) -> None:
    """Write a mapping after what introduces it; ``line`` is a line end and the indentation of its keys."""
    if not mapping:
        out.append(" {}")
    for key, value in mapping.items():
        out.append(line + (_KEYS[key] or f"? {_double_quoted(key)}{line}:"))
        if type(value) is str:  # the exact types first: they are nearly all there is
            out.append(_VALUES[value] or _block(value, line + "  "))
        elif type(value) is dict:
            _emit_mapping(out, value, line + "  ")
        elif type(value) is list:
            _emit_sequence(out, value, line)
        else:
            _emit_other(out, value, line + "  ", line)


def _emit_sequence(out: list[str], sequence: Sequence[object], line: str) -> None:
    """Write a sequence after what introduces it; ``line`` is a line end and the indentation of its dashes."""
    if not sequence:
        out.append(" []")
    for item in sequence:
        out.append(line + "-")
        first = len(out)
        if type(item) is str:
            out.append(_VALUES[item] or _block(item, line + "  "))
        elif type(item) is dict:
            _emit_mapping(out, item, line + "  ")
        else:
            _emit_other(out, item, line + "  ", line + "  ")
        if out[first][0] == "\n":  # a collection starts on the line of its dash
            out[first] = " " + out[first][len(line) + 2 :]


def _emit_other(out: list[str], value: object, line: str, dashes: str) -> None:
    """Write a value of any type; ``dashes`` is the line end and indentation if it is a sequence."""
    if isinstance(value, str):
        out.append(_VALUES[value] or _block(value, line))
    elif isinstance(value, Mapping):
        _emit_mapping(out, value, line)
    elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        _emit_sequence(out, value, dashes)
    else:
        out.append(" " + _constant(value))


def _constant(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"Kubernetes has no number {value!r}")
        mantissa, exponent, power = repr(float(value)).partition("e")
        if exponent and "." not in mantissa:
            mantissa += ".0"  # YAML 1.1 reads 1e+16 as a string
        return mantissa + exponent + power
    raise TypeError(f"YAML text of a {type(value).__name__}: {value!r}")


@lru_cache(maxsize=4096)
def _block(text: str, line: str) -> str:
    """Text of several lines as a literal block where that is exact; ``line`` is the line end and indentation in it."""
    if _INEXACT_IN_BLOCK.search(text) or not (body := text.rstrip("\n")):
        return " " + _double_quoted(text)
    ends = len(text) - len(body)
    chomping = "-" if ends == 0 else "" if ends == 1 else "+"
    indentation = "2" if body.lstrip("\n")[0] == " " else ""  # else the first line would set it
    lines = (line + part if part else "\n" for part in body.split("\n"))
    return f" |{indentation}{chomping}{''.join(lines)}" + "\n" * (ends - 1)


def _double_quoted(text: str) -> str:
    quoted = _JSON.encode(text)
    if not text.isascii() or "\x7f" in text:
        quoted = _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)
        quoted.encode()  # half of a surrogate pair is not text: a UnicodeEncodeError, which is a ValueError
    return quoted


class _Memo(dict[str, str]):
    """Texts by string. Manifests repeat most of their keys and many of their values."""

    __slots__ = ()
    _MOST: Final = 1 << 16

    def _written(self, text: str) -> str:
        """A string as it stands on one line, quoted where it must be."""
        if len(self) >= self._MOST:
            self.clear()
        is_plain = _WORDS.fullmatch(text) is not None and text.lower() not in _NOT_WORDS
        return text if is_plain else _double_quoted(text)


class _Values(_Memo):
    """The text after a colon or a dash for a string of one line. It is empty for a string of several lines."""

    __slots__ = ()

    def __missing__(self, text: str) -> str:
        if "\n" in text:
            return ""
        self[text] = written = f" {self._written(text)}"
        return written


class _Keys(_Memo):
    """The text of a key up to its colon. It is empty for a key that is too long for the line of its colon."""

    __slots__ = ()

    def __missing__(self, key: object) -> str:
        if not isinstance(key, str):
            raise TypeError(f"YAML text of a key that is not a string: {key!r}")
        written = self._written(key)
        self[key] = introduced = f"{written}:" if len(written) < _LONGEST_KEY else ""
        return introduced


_VALUES: Final = _Values()
_KEYS: Final = _Keys()
