"""A field of the policy language, as its model documents it."""

from __future__ import annotations

from textwrap import fill

from gpuplan.policy.fields import FieldDoc
from gpuplan.views.rules import marked_up
from gpuplan.views.theme import Style, Theme

WIDEST = 100
"""Prose in longer lines is hard to read."""


def field_page(field: FieldDoc, theme: Theme) -> str:
    """What a field means, what it may hold, and the fields in it."""
    parts = [f"{theme.paint(field.path, Style.STRONG)}  {holds(field)}\n", f"{_prose(meaning(field), theme)}\n"]
    if len(field.values) > 1:
        parts.append(f"One of {', '.join(field.values)}.\n")
    if field.children:
        parts.append(
            theme.paint("Fields", Style.STRONG) + "\n" + "".join(_child(item, theme) for item in field.children)
        )
    return "\n".join(parts)


def holds(field: FieldDoc) -> str:
    """The type of a field, whether it must be written, and what holds if it is not."""
    if field.required:
        return f"{field.type}, required" if "." in field.path else field.type
    return f"{field.type}, default {field.default}" if field.default else f"{field.type}, optional"


def meaning(field: FieldDoc) -> str:
    """What a field is for, and what a text or a number must be."""
    return f"{field.description} {field.form}".rstrip()


def name(field: FieldDoc) -> str:
    return field.path.rpartition(".")[2]


def _child(field: FieldDoc, theme: Theme) -> str:
    return f"  {theme.paint(name(field), Style.NOTE)}  {holds(field)}\n{_prose(meaning(field), theme, '    ')}\n"


def _prose(text: str, theme: Theme, indentation: str = "") -> str:
    width = min(theme.width, WIDEST)
    wrapped = fill(text, width, initial_indent=indentation, subsequent_indent=indentation, break_on_hyphens=False)
    return marked_up(wrapped, theme)
