"""The tool that breaks the code: what it changes, and what it leaves alone."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from types import ModuleType
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture(scope="module")
def mutations() -> Iterator[ModuleType]:
    sys.path.insert(0, str(TOOLS))
    yield importlib.import_module("mutations")
    sys.path.remove(str(TOOLS))


@pytest.fixture(scope="module")
def mutants(mutations: ModuleType) -> ModuleType:
    return importlib.import_module("mutants")


@pytest.fixture
def source(mutations: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module, in place of gpuplan."""
    monkeypatch.setattr(mutations, "SOURCES", tmp_path)
    forget(mutations)
    yield tmp_path / "module.py"
    forget(mutations)


def forget(mutations: ModuleType) -> None:
    for read in (mutations.parsed, mutations._sites, mutations._lines):
        read.cache_clear()


def changes(mutations: ModuleType) -> list[Any]:
    return [mutations.mutation(*change) for change in mutations.changes_of("module.py")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("f(a < b <= c)", ["a < b <= c -> a <= b <= c", "a < b <= c -> a < b < c"]),
        ("f(a is not b)", ["a is not b -> a is b"]),
        ("f(a and b)", ["a and b -> a or b"]),
        ("f(not a)", ["not a -> not not a"]),
        ("f(a - b)", ["a - b -> a + b"]),
        ("f(any(a))", ["any(a) -> all(a)"]),
        ("f(True, 'text', None)", ["True -> False"]),
        ("f(2)", ["2 -> 3", "2 -> 1"]),
        ("f(0)", ["0 -> 1"]),
        ("if a:\n    b = c", ["a -> not a"]),
        ("f(a for a in b if a)", ["for a in b if a -> for a in b if not a"]),
    ],
)
def test_each_operator_and_number_has_its_changes(
    mutations: ModuleType, source: Path, text: str, told: list[str]
) -> None:
    source.write_text(f"def g():\n{indent(text, '    ')}\n")

    assert [mutation.change for mutation in changes(mutations)] == told


@pytest.mark.parametrize(
    "text",
    [
        '"""A page of 2 words."""',
        "from a import b",
        "x: Annotated[int, Field(ge=1)]",
        "def f(x: Literal[1]) -> Literal[2]: ...",
        "__all__ = [a[0]]",
        "if TYPE_CHECKING:\n    x = 1",
        'if __name__ == "__main__":\n    main(1)',
        "match x:\n    case A():\n        pass\n    case _:\n        assert_never(x[0])",
        "@dataclass(frozen=True, slots=True)\nclass A:\n    pass",
        'x = "a" + b',
        'f"{x:>3}"',
        "x = 1  # pragma: no cover",
    ],
)
def test_texts_and_types_are_left_alone(mutations: ModuleType, source: Path, text: str) -> None:
    source.write_text(text)

    assert changes(mutations) == []


def test_one_change_is_made(mutations: ModuleType, source: Path) -> None:
    source.write_text("a = 1\nb = 1 < 2\n")
    [change] = [item for item in changes(mutations) if item.change == "1 < 2 -> 1 <= 2"]
    found: dict[str, object] = {}

    exec(mutations.mutated(change), found)

    assert (change.line, change.text) == (2, "b = 1 < 2")
    assert (found["a"], found["b"]) == (1, True)


def test_what_runs_on_import_is_known_by_the_names_that_it_binds(mutations: ModuleType) -> None:
    tree = ast.parse("A = 1\n\ndef f(x=2):\n    return 3\n\nclass C:\n    y = 4\n    def g(self):\n        return 5\n")

    names = [site.names and set(site.names) for site in mutations.sites(tree)]

    assert names == [{"A"}, {"f"}, None, {"C"}, None]


def test_the_same_seed_takes_the_same_sample(mutants: ModuleType) -> None:
    chosen = mutants.sample(["planning"], seed=1, count=5)

    assert chosen == mutants.sample(["planning"], seed=1, count=5)
    assert chosen != mutants.sample(["planning"], seed=2, count=5)
    assert {mutation.file.partition("/")[0] for mutation in chosen} == {"planning"}


def test_changes_that_are_called_equivalent_exist_and_are_few(mutants: ModuleType, mutations: ModuleType) -> None:
    equivalents = mutants.equivalents()
    files = {file for file, _, _ in equivalents}
    told = {mutations.mutation(*change).key for file in files for change in mutations.changes_of(file)}

    assert equivalents <= told
    assert len(equivalents) < 0.03 * len(mutants.changes(mutants.PACKAGES))
