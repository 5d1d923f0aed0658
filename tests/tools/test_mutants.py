"""The tool that breaks the code: what it changes, and what it leaves alone."""

from __future__ import annotations

import ast
import importlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.no_cover
TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture(scope="module")
def mutations() -> Iterator[ModuleType]:
    sys.path.insert(0, str(TOOLS))
    yield importlib.import_module("mutations")
    sys.path.remove(str(TOOLS))


@pytest.fixture(scope="module")
def mutants(mutations: ModuleType) -> ModuleType:
    return importlib.import_module("mutants")


@pytest.fixture(scope="module")
def recording(mutations: ModuleType) -> ModuleType:
    return importlib.import_module("recording")


@pytest.fixture(scope="module")
def covering(mutations: ModuleType) -> ModuleType:
    return importlib.import_module("covering")


@pytest.fixture(scope="module")
def warm(mutations: ModuleType) -> ModuleType:
    return importlib.import_module("warm")


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


def test_annotations_are_evaluated_where_the_module_says_so(mutations: ModuleType, source: Path) -> None:
    """The tool's own modules put that off."""
    source.write_text("class A:\n    b: int = 1\n")
    (change, *_) = changes(mutations)
    found: dict[str, Any] = {}

    exec(mutations.mutated(change), found)

    assert found["A"].__annotations__ == {"b": int}


def test_what_runs_on_import_is_known_by_the_names_that_it_binds(mutations: ModuleType) -> None:
    tree = ast.parse("A = 1\n\ndef f(x=2):\n    return 3\n\nclass C:\n    y = 4\n    def g(self):\n        return 5\n")

    names = [site.names and set(site.names) for site in mutations.sites(tree)]

    assert names == [{"A"}, {"f"}, None, {"C"}, None]


def test_the_same_seed_takes_the_same_sample(mutants: ModuleType) -> None:
    chosen = mutants.sample(["compiler/planning"], seed=1, count=5)

    assert chosen == mutants.sample(["compiler/planning"], seed=1, count=5)
    assert chosen != mutants.sample(["compiler/planning"], seed=2, count=5)
    assert all(mutation.file.startswith("compiler/planning/") for mutation in chosen)


def test_changes_that_are_called_equivalent_exist_and_are_few(mutants: ModuleType, mutations: ModuleType) -> None:
    equivalents = mutants.equivalents()
    files = {file for file, _, _ in equivalents}
    told = {mutations.mutation(*change).key for file in files for change in mutations.changes_of(file)}

    assert equivalents <= told
    assert len(equivalents) < 0.03 * len(mutants.changes(mutants.PACKAGES))


FUNCTION = """\
def f(x):
    "A page."
    if x:
        return 1
    for y in x:
        y()
    return 2

class C:
    def g(self):
        return 3
"""


def test_a_block_ends_where_the_code_may_go_elsewhere(recording: ModuleType) -> None:
    found = [
        (block.name, [ast.unparse(part).partition("\n")[0] for part in block.body[block.first : block.end]])
        for block in recording.blocks(ast.parse(FUNCTION))
    ]

    assert found == [
        ("f#0", ["'A page.'", "if x:"]),
        ("f#1", ["for y in x:", "return 2"]),
        ("f#2", ["return 1"]),
        ("f#3", ["y()"]),
        ("C.g#0", ["return 3"]),
    ]


def test_code_notes_the_blocks_that_it_runs(recording: ModuleType) -> None:
    tree = ast.parse(FUNCTION)
    names = recording.instrumented(tree)
    run = bytearray(len(names))
    found: dict[str, Any] = {recording.RUN: run}
    exec(compile(tree, "module.py", "exec"), found)

    found["f"]([])

    assert found["f"].__doc__ == "A page."
    assert [name for name, is_run in zip(names, run, strict=True) if is_run] == ["f#0", "f#1"]


def test_what_is_recorded_evaluates_annotations_where_the_module_says_so(
    recording: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "SOURCES", tmp_path)
    path = tmp_path / "module.py"
    path.write_text("class A:\n    b: int = 1\n")
    module = ModuleType("module")

    recording._Loader("module", str(path), recording._Finder()).exec_module(module)

    assert module.A.__annotations__ == {"b": int}


def test_what_was_recorded_is_read_as_it_was_written(recording: ModuleType) -> None:
    ran = {"test_a.py::test_a": {"a.py": frozenset(("f#0", "f#1"))}, "test_a.py::test_b": {"a.py": frozenset(("f#0",))}}
    recorded = recording.Recorded(ran, {"test_a.py::test_a": 0.5}, {"a.py": "1"}, {"test_a.py": "2"})

    assert recording.Recorded.read(recorded.text()) == recorded


def test_processes_record_together(recording: ModuleType) -> None:
    one = recording.Recorded({"test_a.py": {"a.py": frozenset(("f#0",))}}, {"test_a.py::test_a": 1.0}, {}, {})
    other = recording.Recorded({"test_a.py": {"a.py": frozenset(("f#1",))}}, {"test_a.py::test_b": 2.0}, {}, {})

    whole = recording.merged([one, other])

    assert whole.ran == {"test_a.py": {"a.py": frozenset(("f#0", "f#1"))}}
    assert whole.seconds == {"test_a.py::test_a": 1.0, "test_a.py::test_b": 2.0}


def ran(**tests: str) -> dict[str, dict[str, frozenset[str]]]:
    """What tests ran before: one block each, as ``a="module f#0"``; those of one first letter are in one module."""
    found = {f"{name[0]}.py{f'::{name[1:]}' * bool(name[1:])}": block.split() for name, block in tests.items()}
    return {name: {f"{block[0]}.py": frozenset(block[1:])} if block else {} for name, block in found.items()}


UNCHANGED, CHANGED = "", "another hash"


@pytest.mark.parametrize(
    ("was", "known", "found"),
    [
        (UNCHANGED, ran(t1="module f#0", u2="module g#0"), ["t.py::1"]),
        (UNCHANGED, ran(t1="module f#0", t2=""), ["t.py::1", "t.py::2"]),
        (UNCHANGED, ran(t="module f#0", t2=""), ["t.py::2"]),
        (UNCHANGED, ran(t1="module g#0"), []),
        (CHANGED, ran(t1="module g#0", u2="module f#0"), ["u.py::2", "t.py::1"]),
        (CHANGED, ran(t1="module g#0", u2="module f#7"), ["u.py::2", "t.py::1"]),
        (CHANGED, ran(t1="other f#0", u2="other g#0"), ["t.py::1"]),
    ],
    ids=["runs it", "beside", "read with it", "none", "whole module", "whole function", "moved"],
)
def test_tests_of_a_change_are_those_that_ran_it_or_may_run_it_now(
    covering: ModuleType,
    recording: ModuleType,
    mutations: ModuleType,
    source: Path,
    was: str,
    known: dict[str, Any],
    found: list[str],
) -> None:
    source.write_text("def f(x):\n    return x + 1\n")
    recorded = recording.Recorded(known, dict.fromkeys(known, 0.0), {"module.py": was}, {})
    site = mutations.find_site(changes(mutations)[0])

    assert covering.Coverage(recorded).covering("module.py", site) == found


def test_a_function_that_was_read_gets_the_changed_code(warm: ModuleType, mutations: ModuleType, source: Path) -> None:
    source.write_text("def f(x):\n    return [y + 1 for y in x]\n\ndef g():\n    return 2\n")
    found: dict[str, Any] = {}
    exec(compile(source.read_text(), str(source), "exec"), found)
    [change] = [item for item in changes(mutations) if item.change == "y + 1 -> y - 1"]

    warm.put(change, {"module.py": [found["f"], found["g"]]})

    assert (found["f"]([5]), found["g"]()) == ([4], 2)


def test_two_functions_of_one_line_are_left_to_a_new_process(
    warm: ModuleType, mutations: ModuleType, source: Path
) -> None:
    source.write_text("f, g = (lambda: 1), (lambda: 2)\n")
    found: dict[str, Any] = {}
    exec(compile(source.read_text(), str(source), "exec"), found)
    [change] = [item for item in changes(mutations) if item.change == "1 -> 0"]

    warm.put(change, {"module.py": [found["f"], found["g"]]})

    assert (found["f"](), found["g"]()) == (1, 2)


def test_nobody_answers_where_no_process_is(warm: ModuleType, tmp_path: Path) -> None:
    assert warm.ask(str(tmp_path / "socket"), None, ["test_a.py::test_a"]) is None


def test_tests_that_were_read_are_run_when_they_are_asked_for(warm: ModuleType, tmp_path: Path) -> None:
    tests = tmp_path / "test_two.py"
    tests.write_text("def test_good():\n    pass\n\ndef test_bad():\n    assert False\n")
    address = str(tmp_path / "socket")
    pid = warm.serve(tmp_path, [str(tests)], address)
    try:
        good = warm.ask(address, None, ["test_two.py::test_good"])
        both = warm.ask(address, None, ["test_two.py::test_good", "test_two.py::test_bad"])
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    assert good == (False, "", 1)
    assert both == (True, "test_two.py::test_bad", 2)
