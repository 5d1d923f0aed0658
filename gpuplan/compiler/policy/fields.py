"""Walk the policy models by field path: what `explain` shows and what a misspelt field is compared with."""

from __future__ import annotations

import ast
import inspect
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import cache

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gpuplan import handed_in
from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.faces import imported
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.policy.marks import Judged, marks_of, models_in, types_in
from gpuplan.compiler.policy.models import KINDS, Document, Model
from gpuplan.compiler.policy.names import Naming, Reference, Titled
from gpuplan.compiler.policy.texts import GENERAL, Form, form_of

_INDEX = regex(r"\[[0-9]*\]")


@cache
def beside_platforms() -> Mapping[str, type[Document]]:
    """Return the model of each kind of documents that lie in no platform and are given to a command, by its name."""
    return {kind.__name__: kind for kind in imported(handed_in.DOCUMENTS)}


def document_models() -> Mapping[str, type[Model]]:
    """Return the model of each kind of documents, by its name."""
    return {**KINDS, **beside_platforms()}


class FieldDoc(Value):
    """The documentation of a field. ``path`` starts with the kind: `Pool.spec.sharing`."""

    path: str
    type: str
    required: bool
    default: str = ""
    description: str = ""
    form: str = ""
    values: tuple[str, ...] = ()
    children: tuple[FieldDoc, ...] = ()


def find_field(path: str) -> FieldDoc | None:
    """The documentation of a kind or of a field, such as `Pool.spec.sharing`; None when there is no such field.

    An item's place in its list may be given, as findings do: `Tenant.spec.quotas[0].unit`.
    """
    kind, *parts = _INDEX.sub("", path).split(".")
    model = next((model for known, model in document_models().items() if known.lower() == kind.lower()), None)
    doc = _document_kind(model) if model else None
    for part in parts:
        doc = next((child for child in doc.children if child.path.rsplit(".", 1)[-1] == part), None) if doc else None
    return doc


def field_paths() -> Iterator[str]:
    """Every path that `find_field` knows, kinds first."""
    for model in document_models().values():
        yield from _paths(_document_kind(model))


def nested_model(model: type[BaseModel], path: Path) -> type[BaseModel] | None:
    """The model of the mapping at a document path, or None when it is a plain mapping or does not exist."""
    steps = [*_along(model, path)]
    if len(steps) < sum(isinstance(part, str) for part in path):
        return None
    return steps[-1][1] if steps else model


def fields_along(model: type[BaseModel], path: Path) -> Iterator[FieldInfo]:
    """The fields that a document path leads through, as far as there are any: one of a mapping for its keys, too."""
    return (field for field, _ in _along(model, path))


def _along(model: type[BaseModel], path: Path) -> Iterator[tuple[FieldInfo, type[BaseModel] | None]]:
    """The same, each with the model of what stands there, if it is one."""
    here: type[BaseModel] | None = model
    mapping: FieldInfo | None = None
    for part in path:
        if isinstance(part, str):
            known = here.model_fields.values() if here else ()
            field = mapping or next((field for field in known if field.alias == part), None)
            if field is None:
                return
            is_mapping = mapping is None and any(
                typing.get_origin(found) is dict for found in types_in(field.annotation)
            )
            here = None if is_mapping else next(models_in(field.annotation), None)
            mapping = field if is_mapping else None
            yield field, here


def _document_kind(model: type[Model]) -> FieldDoc:
    # Until then, pydantic before 2.14 neither knows the names that fields have in a file nor can write a default.
    model.model_rebuild()
    name = model.__name__
    return FieldDoc(name, "document", required=True, description=_summary(model), children=_children(model, name))


def _children(model: type[BaseModel], path: str) -> tuple[FieldDoc, ...]:
    document(model)
    return tuple(_document_field(field, f"{path}.{field.alias or name}") for name, field in model.model_fields.items())


def _document_field(field: FieldInfo, path: str) -> FieldDoc:
    nested = next(models_in(field.annotation), None)
    form = _words_of_form(field)
    is_list = any(typing.get_origin(part) is list for part in (field.annotation, *typing.get_args(field.annotation)))
    values: list[str] = []
    for member in types_in(field.annotation):
        if isinstance(member, type) and issubclass(member, Enum):
            values += [str(item.value) for item in member]
        elif typing.get_origin(member) is typing.Literal:
            values += [str(item) for item in typing.get_args(member)]
    return FieldDoc(
        path=path,
        type=_type_text(field.annotation),
        required=field.is_required(),
        default=_default_text(field),
        description=field.description or "",
        form=f"Each {form}." if form and is_list else f"{form[:1].upper()}{form[1:]}." if form else "",
        values=tuple(values),
        children=_children(nested, path) if nested else (),
    )


def _paths(doc: FieldDoc) -> Iterator[str]:
    yield doc.path
    for child in doc.children:
        yield from _paths(child)


def _summary(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").strip().split("\n\n", 1)[0].replace("\n", " ")


def _type_text(annotation: object) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type_text(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_type_text(item) for item in arguments if item is not type(None)))
    if origin is list:
        return f"list of {_type_text(arguments[0])}"
    if origin is dict:
        return f"mapping of {_type_text(arguments[0])} to {_type_text(arguments[1])}"
    if origin is typing.Literal:
        return " or ".join(f"`{item}`" for item in arguments)
    is_enum = isinstance(annotation, type) and issubclass(annotation, Enum)
    return "text" if is_enum else _PLAIN_TYPES.get(annotation, "mapping")


_PLAIN_TYPES: dict[object, str] = {
    bool: "`true` or `false`",
    float: "number",
    int: "whole number",
    str: "text",
    typing.Any: "any value",
}


def _words_of_form(field: FieldInfo) -> str:
    marks = tuple(marks_of(field))
    patterns = (str(pattern) for mark in marks if (pattern := getattr(mark, "pattern", None)))
    for mark in marks:
        match mark:
            case Naming() | Reference(naming=_) | Titled(naming=_):
                naming = mark if isinstance(mark, Naming) else mark.naming
                what = f"a {naming.form} of at most {naming.longest} characters: {naming.carrier}"
                return f"the name is {what}" if isinstance(mark, Titled) else what
            case Judged():
                return f"checked by {mark.code}"
            case Form():
                return mark.words
            case _:
                continue
    return next((form_of(pattern).words for pattern in patterns if pattern not in GENERAL), "") or _bounds(marks)


def _bounds(marks: Iterable[object]) -> str:
    words = (("ge", "at least"), ("gt", "above"), ("le", "at most"), ("lt", "below"))
    found = ((word, getattr(mark, name, None)) for name, word in words for mark in marks)
    return " and ".join(f"{word} {bound}" for word, bound in found if bound is not None)


def _default_text(field: FieldInfo) -> str:
    if field.is_required():
        return ""
    default = field.get_default(call_default_factory=True, validated_data={})
    if default is None:
        return ""
    if isinstance(default, Enum):
        return str(default.value)
    if isinstance(default, bool):
        return "true" if default else "false"
    if isinstance(default, BaseModel):
        return ""
    if isinstance(default, list):
        return f"[{', '.join(map(str, default))}]"
    return "{}" if default == {} else '""' if default == "" else str(default)


# --- Texts -----------------------------------------------------------------------------------------------------------


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


# --- Kinds of documents outside platforms ----------------------------------------------------------------------------


def command_for(kind: str) -> str | None:
    """Return the command that a document of such a kind is given to; None for any other kind."""
    return dict(zip(beside_platforms(), handed_in.DOCUMENTS.values(), strict=True)).get(kind)
