"""The program that counts what makes code hard to read."""

from pathlib import Path
from textwrap import dedent

import pytest
from words import count_packages, offences, over_ceilings


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "gpuplan"
    folder.mkdir()
    return folder


def _written(package: Path, text: str) -> list[tuple[str, int, str]]:
    module = package / "module.py"
    module.write_text(dedent(text), encoding="utf-8")
    return sorted((offence.kind, offence.line, offence.text) for offence in offences(module))


def test_docstrings_that_begin_with_such_a_word_count_wherever_they_stand(package: Path) -> None:
    assert _written(
        package,
        '''
        """What a module is for."""

        LIMIT = 3
        """Which limit holds."""

        class Pool:
            """Of pools."""

            size: int
            """How many nodes."""

            def grow(self) -> None:
                """By one node."""
        ''',
    ) == [
        ("openings", 2, "What a module is for."),
        ("openings", 5, "Which limit holds."),
        ("openings", 8, "Of pools."),
        ("openings", 11, "How many nodes."),
        ("openings", 14, "By one node."),
    ]


def test_a_verb_an_article_and_a_string_that_is_no_docstring_do_not_count(package: Path) -> None:
    assert not _written(
        package,
        '''
        """The pools of a cluster."""

        def grow() -> str:
            """Return what a node adds."""
            print("What else?")
            "What stands here documents nothing."
            return "What"
        ''',
    )


def test_vague_names_of_functions_parameters_and_fields_count_and_those_of_locals_do_not(package: Path) -> None:
    assert _written(
        package,
        """
        class Pool:
            left: int
            nodes: int

        def _found(item, *, pool):
            there = item
            return _found(there, pool=lambda told: told)
        """,
    ) == [
        ("names", 3, "left"),
        ("names", 6, "_found"),
        ("names", 6, "item"),
        ("names", 8, "told"),
        ("once", 6, "_found"),
    ]


def test_a_private_function_that_is_used_twice_does_not_count(package: Path) -> None:
    once = "def _size(): ...\ndef total(): return _size()\n"
    assert _written(package, once) == [("once", 1, "_size")]
    assert not _written(package, once + "def half(): return _size()\n")


def test_imports_count_within_functions_alone(package: Path) -> None:
    text = "import os\ndef load():\n    def inner():\n        import json\n"
    assert _written(package, text) == [("imports", 4, "import json")]


def test_a_function_of_eighty_lines_is_not_too_long(package: Path) -> None:
    assert not _written(package, "def load():\n" + "    pass\n" * 79)
    assert _written(package, "def load():\n" + "    pass\n" * 80) == [("long", 1, "load: 81 lines")]


def test_a_package_at_its_ceilings_passes_and_one_above_is_named_with_the_command_that_lists_the_places(
    package: Path,
) -> None:
    _written(package, "def _size(): ...\ndef total(): return _size()\n")
    counts = count_packages([package / "module.py"], package)
    assert not [*over_ceilings(counts, {".": {"once": 50}})]
    assert [*over_ceilings(counts, {".": {"once": 49}})] == [
        ".: once 50.0 %, above the ceiling of 49 %: see `python tools/words.py --list once gpuplan/`"
    ]


def test_a_ceiling_of_a_package_that_is_gone_is_named() -> None:
    assert [*over_ceilings({}, {"plans": {}})] == ["plans: there is no such package: remove its table"]
