"""Values of the page, each with the way to it in what `gpuplan show`, `validate` and `diff` print as JSON.

A way is one or more terms, divided by blanks, that are added up: ``/clusters/0/pools/*/gpu_count``. A term is a JSON
pointer in which ``*`` is every item and ``[gpu=H100-80GB]`` every item with that field. ``#`` before it counts what it
leads to, ``-`` takes it off, and a number stands for itself. ``findings:``, ``diff:`` and ``earlier:`` are other
documents than the plans: what `validate -o json` and `diff -o json` print, and `show -o json` of the earlier side. So
whoever doubts a number of the page can look it up, and a test does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from markupsafe import Markup

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import Value
from gpuplan.terminal.svg import text_of
from gpuplan.terminal.text import printable

PLANS: Final = ""
FINDINGS: Final = "findings"
DIFF: Final = "diff"
EARLIER: Final = "earlier"

_CODE: Final = regex(r"`([^`]*)`")


class Published(Value, eq=False):
    """Documents by their names, as JSON has them."""

    documents: Mapping[str, Any]

    def find(self, way: str) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Return the value of one pointer, or the sum of the values of several terms."""
        if " " not in way and way[0] not in "-#" and "*" not in way and "[" not in way:
            name, _, route = way.partition("/")
            value = self.documents[name.removesuffix(":")]
            for step in route.split("/"):
                value = _below(value, step)
            return value
        return sum(self._term(term) for term in way.split(" "))

    def _term(self, term: str) -> Any:  # noqa: ANN401 - a number
        is_less, term = term.startswith("-"), term.removeprefix("-")
        found = self._values(term.removeprefix("#")) if not term.isdigit() else iter((int(term),))
        amount = sum(1 for _ in found) if term.startswith("#") else sum(found)
        return -amount if is_less else amount

    def _values(self, pointer: str) -> Iterator[Any]:
        name, _, route = pointer.partition("/")
        values: Iterator[Any] = iter((self.documents[name.removesuffix(":")],))
        for step in route.split("/"):
            values = _stepped(values, step)
        return values

    def at(self, way: str, digits: int | None = None, scale: int = 1) -> Markup:
        """A value as the page shows it: a number in ``scale``, with so many digits where it is no whole one."""
        scaled = f' data-scale="{scale}"' if scale != 1 else ""
        text = shown(self.find(way), digits, scale)
        # There are tens of thousands: to format each by `Markup` takes a fifth of the page's time.
        return Markup(f'<span data-path="{text_of(way)}"{scaled}>{text_of(text)}</span>')  # noqa: S704 - escaped

    def prose(self, way: str) -> Markup:
        """One of our sentences, in which names stand between backticks: here they are code."""
        parts = _CODE.split(shown(self.find(way)))
        marked = "".join(
            f"<code>{text_of(part)}</code>" if index % 2 else text_of(part) for index, part in enumerate(parts)
        )
        return Markup(f'<span data-path="{text_of(way)}">{marked}</span>')  # noqa: S704 - escaped

    def share(self, part: str, whole: str) -> Markup:
        """One amount as a part of another, in percent."""
        text = f"{round(100 * self.find(part) / (self.find(whole) or 1))}%"
        return Markup('<span data-share="{}|{}">{}</span>').format(printable(part), printable(whole), text)

    def percent_at(self, way: str) -> Markup:
        """A part that is a number already, in percent."""
        return Markup('<span data-share="{}|1">{}%</span>').format(printable(way), round(100 * self.find(way)))


def _stepped(values: Iterator[Any], step: str) -> Iterator[Any]:
    if step == "*":
        return (item for value in values for item in value)
    if step.startswith("["):
        field, _, wanted = _key(step[1:-1]).partition("=")
        return (item for value in values for item in value if item[field] == wanted)
    return (_below(value, step) for value in values)


def _below(value: Any, step: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    return value[int(step)] if isinstance(value, list | tuple) else value[_key(step)]


def _key(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def shown(value: object, digits: int | None = None, scale: int = 1) -> str:
    """A value of JSON in words."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return _number(value / scale if scale != 1 else value, digits)
        case list() | tuple():
            return ", ".join(shown(item) for item in value) or "none"
        case _:
            return str(value)


def _number(value: float, digits: int | None) -> str:
    if digits is not None:
        return f"{value:,.{digits}f}"
    return str(int(value)) if value == int(value) else f"{value:.4f}".rstrip("0").rstrip(".")
