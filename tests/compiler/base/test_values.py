"""Values behave as frozen dataclasses do, for less."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, asdict, field, replace
from functools import cached_property

import pytest

from gpuplan.compiler.base.values import NamedTuple, Value


class Board(Value):
    """A board as tests need one."""

    product: str
    slots: tuple[int, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    source: str = field(default="", compare=False)
    maker: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "product", self.product.upper())

    @cached_property
    def width(self) -> int:
        return len(self.slots)


class Card(Value):
    """Has the fields of `Pair`."""

    name: str


class Pair(Value):
    """Has the fields of `Card`."""

    name: str


class Nothing(Value):
    """Has no fields."""


class Machine(Value, eq=False):
    """Something of which there may be several alike."""

    name: str


def test_fields_are_given_by_order_or_by_name() -> None:
    assert Board("a100", slots=(1, 2)).slots == (1, 2)


def test_a_field_may_be_given_by_name_alone() -> None:
    assert Board("a100", maker="somebody").maker == "somebody"
    with pytest.raises(TypeError, match="takes from 2 to 5 positional arguments"):
        Board("a100", (), {}, "", "somebody")  # type: ignore[call-arg] # what is tested


def test_a_field_without_a_default_is_needed() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'product'"):
        Board()  # type: ignore[call-arg] # what is tested


def test_a_class_may_have_no_fields() -> None:
    assert Nothing() == Nothing()


def test_each_value_has_a_default_of_its_own_where_one_is_made() -> None:
    assert Board("a100").labels is not Board("a100").labels


def test_a_value_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError, match="cannot change `name`"):
        Card("a").name = "b"  # type: ignore[misc] # what is tested
    with pytest.raises(FrozenInstanceError, match="cannot delete `name`"):
        del Card("a").name


def test_a_value_has_no_other_fields() -> None:
    with pytest.raises(FrozenInstanceError):
        Card("a").colour = "red"


def test_values_of_one_class_are_equal_when_their_fields_are() -> None:
    assert Board("a100", source="here") == Board("A100", source="there")
    assert Board("a100") != Board("h100")
    assert len({Card("a"), Card("a"), Card("b")}) == 2


def test_values_of_different_classes_are_not_equal() -> None:
    assert Card("a") != Pair("a")


def test_without_equality_a_value_equals_itself_alone() -> None:
    machine = Machine("a")

    assert machine == machine
    assert machine != Machine("a")


def test_what_is_costly_is_computed_once() -> None:
    board = Board("a100", (1, 2))

    assert board.width == 2
    assert vars(board) == {"width": 2}


def test_a_value_shows_what_it_is_made_of() -> None:
    assert repr(Board("a100", source="hidden")) == "Board(product='A100', slots=(), labels={}, maker='')"


def test_dataclasses_take_a_value_for_one_of_theirs() -> None:
    assert replace(Board("a100"), slots=(3,)) == Board("a100", (3,))
    assert asdict(Card("a")) == {"name": "a"}


def test_a_value_can_be_copied_and_kept() -> None:
    board = Board("a100", (1,), {"a": "b"})

    assert copy.deepcopy(board) == board
    assert pickle.loads(pickle.dumps(board)) == board


def test_patterns_match_fields() -> None:
    match Card("a"):
        case Card(name):
            assert name == "a"


# --- Named tuples ------------------------------------------------------------------------------------------------


class Slot(NamedTuple):
    """A slot as tests need one."""

    number: int
    lanes: int = 16

    @property
    def title(self) -> str:
        return f"slot {self.number}"


def test_a_named_tuple_is_what_the_standard_library_makes() -> None:
    slot = Slot(1)
    assert (slot, slot.title, slot._replace(lanes=8)) == ((1, 16), "slot 1", Slot(1, 8))
    assert repr(slot) == "Slot(number=1, lanes=16)"
    assert (Slot.__doc__, Slot.__module__, Slot.__qualname__) == ("A slot as tests need one.", __name__, "Slot")


def test_a_named_tuple_can_be_pickled() -> None:
    assert type(pickle.loads(pickle.dumps(Slot(1)))) is Slot


def test_a_named_tuple_takes_no_field_twice() -> None:
    with pytest.raises(TypeError, match="number"):
        Slot(1, number=2)  # type: ignore[misc] # what is tested
