"""Each field of the policy language says what it is called, and what its text may be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import pytest
from pydantic import AfterValidator
from pydantic.fields import FieldInfo

import gpuplan
from gpuplan.compiler.pipeline import rules
from gpuplan.compiler.policy.fields import document
from gpuplan.compiler.policy.marks import AnyText, Essential, Judged, Keyed, Words, find_mark, words_of
from gpuplan.compiler.policy.models import KINDS, Model, PoolSpec, TenantSpec, WorkloadSpec
from gpuplan.compiler.policy.names import Naming, Reference
from gpuplan.compiler.policy.texts import FORMS
from gpuplan.compiler.policy.walking import naming_of
from tests.every import every_row

ABBREVIATIONS = frozenset(
    ("api", "args", "config", "cpu", "env", "gpu", "gpus", "id", "mib", "mig", "mps", "nfd", "repo", "runai", "url")
)
"""What no sentence has: a field whose name holds one says its words itself."""


def models(model: type[Model] = Model) -> Iterator[type[Model]]:
    for child in model.__subclasses__():
        if child.__module__.startswith(("gpuplan.compiler.policy.models", "gpuplan.features.packing.document")):
            yield child
            yield from models(child)


FIELDS = [(model, name, field) for model in models() for name, field in model.model_fields.items()]
every_field = every_row(FIELDS, lambda model, name, _: f"{model.__name__}.{name}")


def has_rule(marks: tuple[Any, ...]) -> bool:
    """Whether one of the marks on a text says what it may be."""
    return any(
        isinstance(mark, Naming | Reference | Judged | AnyText | AfterValidator)
        or (isinstance(mark, FieldInfo) and has_rule(tuple(mark.metadata)))
        or getattr(mark, "pattern", None) in FORMS
        for mark in marks
    )


def free_texts(annotation: Any, marks: tuple[Any, ...]) -> Iterator[str]:
    """The texts within a type that nothing is said of; the marks are those around it."""
    if has_rule(marks):
        return
    if get_origin(annotation) is Annotated:
        yield from free_texts(get_args(annotation)[0], annotation.__metadata__)
    elif annotation is str:
        yield "text"
    elif get_origin(annotation) is not None:
        for part in get_args(annotation):
            yield from free_texts(part, ())


@every_field
def test_text_has_a_form_or_a_naming_rule_or_says_that_anything_goes(
    model: type[Model], name: str, field: FieldInfo
) -> None:
    assert [*free_texts(field.annotation, tuple(field.metadata))] == [], (
        f"give `{model.__name__}.{name}` a type of `policy/texts.py` or `policy/names.py`, `Judged` or `AnyText`"
    )


@every_field
def test_field_has_words_that_stand_in_a_sentence(model: type[Model], name: str, field: FieldInfo) -> None:
    words = words_of(name, field)
    assert re.fullmatch(r"[A-Za-z][A-Za-z: ]*", words)
    is_given = find_mark(field, Words) is not None
    assert is_given or ABBREVIATIONS.isdisjoint(words.split()), f"give `{model.__name__}.{name}` a mark `Words`"


@every_field
def test_field_has_a_text_that_says_what_it_means(model: type[Model], name: str, field: FieldInfo) -> None:
    document(model)
    assert field.description, f"write what `{model.__name__}.{name}` means below it"


def test_every_field_is_read_by_something() -> None:
    package = Path(gpuplan.__file__).parent
    trees = [
        ast.parse(file.read_text(encoding="utf-8")) for file in package.rglob("*.py") if "policy" not in file.parts
    ]
    read = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    # Files of the device plugin are written as they are, and `apiVersion` has one value, to which its type holds it.
    unread = {name for model, name, _ in FIELDS if not model.__name__.startswith("Plugin")} - read - {"api_version"}
    assert unread == set(), "these have no effect: read them where they are to have one, most often in a back end"


def test_what_holds_a_text_to_its_form_is_a_rule() -> None:
    known = {rule.code for rule in rules()}
    judged = {mark.code for *_, field in FIELDS if (mark := find_mark(field, Judged))}
    assert judged - known == set()


def test_key_of_a_list_is_made_of_fields_of_its_items() -> None:
    keyed = [(field, mark) for *_, field in FIELDS if (mark := find_mark(field, Keyed))]
    items = {key: {*mark.fields} for field, mark in keyed for key in [str(field.annotation)]}
    assert items == {
        str(TenantSpec.model_fields["quotas"].annotation): {"pool", "unit"},
        str(TenantSpec.model_fields["members"].annotation): {"group", "user"},
        str(PoolSpec.model_fields["taints"].annotation): {"key", "effect"},
        str(PoolSpec.model_fields["workload_types"].annotation): set(),  # which are their own names
    }


def test_words_are_those_of_the_name_unless_given() -> None:
    fields = WorkloadSpec.model_fields
    assert words_of("priority_class", fields["priority_class"]) == "priority class"
    assert (find_mark(fields["env"], Words), words_of("env", fields["env"])) == (Words("environment"), "environment")


def test_mark_of_what_a_field_may_hold_is_the_field_s() -> None:
    namespaces, namespace = TenantSpec.model_fields["namespaces"], WorkloadSpec.model_fields["namespace"]
    assert find_mark(namespaces, Naming) == Naming("namespace", "the Namespace is called so")
    assert (find_mark(namespace, Naming), find_mark(namespace, Essential)) == (None, Essential())


@pytest.mark.parametrize("kind", KINDS)
def test_documents_of_each_kind_have_a_rule_for_their_names(kind: str) -> None:
    assert naming_of(kind).carrier
