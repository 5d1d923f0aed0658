"""The documentation of fields: the text below each, read when somebody asks."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache

from pydantic import BaseModel


def document(model: type[BaseModel]) -> None:
    """Give the fields of a model the descriptions that stand below them, in its class or in one that it is made of.

    Most runs need none, and pydantic's own way reads the source of each class whenever it is declared.
    """
    texts: dict[str, str] = {}
    for base in reversed(model.__mro__):
        texts |= _texts(base.__module__).get(base.__name__, {})
    for name, field in model.model_fields.items():
        field.description = field.description or texts.get(name)


@cache
def _texts(module: str) -> dict[str, dict[str, str]]:
    """The texts below the fields of each class of a module."""
    if module.partition(".")[0] in ("builtins", "pydantic"):
        return {}
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: dict(_texts_in(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _texts_in(declared: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in zip(declared.body, declared.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                yield name, " ".join(said.split())
            case _:
                pass
