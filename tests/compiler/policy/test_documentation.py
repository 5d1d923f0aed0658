"""Fields are described by the text below them."""

from __future__ import annotations

from pydantic import Field

from gpuplan.compiler.policy.fields import document
from gpuplan.compiler.policy.models import Model


class Shelf(Model):
    """A thing with parts."""

    boards: int = 1
    """How many boards
    it has.
    """
    depth: int = Field(default=1, description="Said in the declaration.")
    """Not this."""
    colour: str = ""


class Bookcase(Shelf):
    """A thing with more of them."""

    doors: int = 0
    """How many doors."""


def test_text_below_a_field_is_its_description() -> None:
    document(Shelf)
    assert Shelf.model_fields["boards"].description == "How many boards it has."


def test_description_in_the_declaration_holds() -> None:
    document(Shelf)
    assert Shelf.model_fields["depth"].description == "Said in the declaration."


def test_field_without_a_text_has_no_description() -> None:
    document(Shelf)
    assert Shelf.model_fields["colour"].description is None


def test_inherited_field_has_the_text_of_where_it_is_declared() -> None:
    document(Bookcase)
    fields = Bookcase.model_fields
    assert (fields["boards"].description, fields["doors"].description) == ("How many boards it has.", "How many doors.")
