"""The script that counts lines of code."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
DATA_MODULES = sorted((REPOSITORY / "gpuplan").rglob("data/**/*.py"))

SAMPLE = '''\
"""The page of a module,
on two lines."""

import os  # a comment beside code

# A comment by itself.
SIZES = (
    1,

    # A comment inside of a value.
    2,
)
"""The page of a constant."""

TEXT = """\\
a value

on four lines"""


class Pool:
    """The page of a class."""

    def size(self) -> str:
        """The page of a method."""
        return f"""{os.sep}
        """


def ä(): "the page of a function on its line"
'''


@pytest.fixture(scope="module")
def count() -> ModuleType:
    spec = importlib.util.spec_from_file_location("count", REPOSITORY / "tools/count.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["count"] = module  # where `dataclass` looks for annotations
    spec.loader.exec_module(module)
    return module


def test_lines_of_code_hold_more_than_comments_and_docstrings(count: ModuleType) -> None:
    assert sorted(count.code_lines(SAMPLE)) == [4, 7, 8, 11, 12, 15, 16, 17, 18, 21, 24, 26, 27, 30]


@pytest.mark.parametrize(
    "source",
    [
        '"""The page."""',
        "from a import Kind\n\nKINDS: Final = (Kind(name='a', wave=-5, fields={'b': Change.QUOTA}),)",
        '# a comment\nSIZES = [1, 2]\n"""The page of a constant."""',
    ],
)
def test_a_module_of_data_holds_values(count: ModuleType, source: str) -> None:
    assert count.holds_values_only(source)


@pytest.mark.parametrize(
    "source",
    [
        "def kinds(): ...",
        "class Kind: ...",
        "KINDS = [kind for kind in NAMES]",
        "KINDS = dict(a=1)",
        "KIND = kinds.Kind()",
        "SIZE = lambda: 1",
        "SIZE = 1 + 1",
        "SIZE = 1 if LARGE else 2",
        "if LARGE:\n    SIZE = 2",
        "for size in SIZES:\n    print(size)",
        "NAME = f'{OTHER}'",
        "SIZES = (*OTHERS, 1)",
    ],
)
def test_a_module_of_data_holds_no_logic(count: ModuleType, source: str) -> None:
    assert not count.holds_values_only(source)


@pytest.mark.parametrize("module", DATA_MODULES, ids=lambda path: str(path.relative_to(REPOSITORY / "gpuplan")))
def test_modules_below_a_folder_of_data_hold_no_logic(count: ModuleType, module: Path) -> None:
    assert count.holds_values_only(module.read_text(encoding="utf-8"))


def test_a_module_of_data_is_counted_as_data(count: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/kinds.py").write_text("KINDS = (\n    'Pod',\n\n    'Node',\n)\n")
    (tmp_path / "data/rows.py").write_text("ROWS = [row for row in range(9)]\n")

    assert count.count_packages(tmp_path) == {"data": count.Count(modules=1, lines=1, code=1, data_files=1, data=4)}


def test_packages_are_counted_with_the_data_beside_them(
    count: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "views/data").mkdir(parents=True)
    (tmp_path / "views/__pycache__").mkdir()
    (tmp_path / "__init__.py").write_text('"""The whole."""\n\nVERSION = 1\n')
    (tmp_path / "py.typed").write_text("")
    (tmp_path / "views/text.py").write_text(SAMPLE)
    (tmp_path / "views/data/page.md").write_text("# A page\n\nwith a line\n")
    (tmp_path / "views/__pycache__/text.pyc").write_bytes(b"\xff")

    assert count.main([str(tmp_path), "--json"]) == 0

    assert json.loads(capsys.readouterr().out) == {
        "packages": {
            ".": {"modules": 1, "lines": 3, "code": 1, "data_files": 0, "data": 0},
            "views": {"modules": 1, "lines": 30, "code": 14, "data_files": 1, "data": 2},
        },
        "total": {"modules": 2, "lines": 33, "code": 15, "data_files": 1, "data": 2},
    }


def test_table_ends_with_the_total(count: ModuleType) -> None:
    counts = {"cli": count.Count(2, 60, 40), "views": count.Count(1, 30, 20, 3, 9)}

    assert [line.split() for line in count.as_table(counts).splitlines()] == [
        ["package", "modules", "lines", "code", "data", "files", "data", "lines"],
        ["cli", "2", "60", "40", "0", "0"],
        ["views", "1", "30", "20", "3", "9"],
        ["total", "3", "90", "60", "3", "9"],
    ]


# --- The budget --------------------------------------------------------------------------------------------------


def test_a_package_may_have_as_much_code_as_its_budget(count: ModuleType) -> None:
    counts = {"checks": count.Count(code=10)}

    assert [*count.over_budget(counts, {"checks": 10})] == []
    assert [*count.over_budget(counts, {"checks": 9})] == [
        "checks: 1 lines over its budget of 9: make that many needless, or say why not"
    ]


def test_each_package_has_a_number_and_each_number_a_package(count: ModuleType) -> None:
    assert [*count.over_budget({"new": count.Count(code=3)}, {"old": 5})] == [
        "new: 3 lines of code and no budget: add `'new' = 3`",
        "old: there is no such package: remove its line",
    ]


def test_the_script_fails_over_budget(count: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "code/checks").mkdir(parents=True)
    (tmp_path / "code/checks/a.py").write_text("a = 1\nb = 2\n")
    budget = tmp_path / "budget.toml"
    for allowed, code in ((2, 0), (1, 1)):
        budget.write_text(f"[code]\nchecks = {allowed}\n")
        assert count.main([str(tmp_path / "code"), "--budget", str(budget)]) == code
    assert "checks: 1 lines over its budget of 1" in capsys.readouterr().out
