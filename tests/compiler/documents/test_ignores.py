"""Comments silence findings by code and with a reason, where they are comments."""

from __future__ import annotations

import pytest

from gpuplan.compiler.base.diagnostics import SourceFile
from gpuplan.compiler.documents import Ignore, find_ignores
from tests.compiler.documents.reading import read, underlined


def ignores(text: str) -> list[tuple[int, tuple[str, ...], str]]:
    return [(found.line, found.codes, found.reason) for found in find_ignores(SourceFile("policy.yaml", text))]


def only(text: str) -> Ignore:
    (found,) = find_ignores(SourceFile("policy.yaml", text))
    return found


def test_at_the_end_of_a_line_it_is_about_that_line() -> None:
    assert ignores("a: 1\nb: 2  # gpuplan: ignore[GPU203] known\n") == [(2, ("GPU203",), "known")]


def test_alone_it_is_about_the_next_line_that_is_no_comment() -> None:
    text = "a:\n  # gpuplan: ignore[GPU203] known\n  # more words\n\n  b: 2\n"
    assert ignores(text) == [(5, ("GPU203",), "known")]


def test_alone_at_the_end_it_is_about_the_last_line() -> None:
    assert ignores("a: 1\n# gpuplan: ignore[GPU203] known") == [(2, ("GPU203",), "known")]


def test_several_codes_share_a_reason() -> None:
    assert ignores("a: 1 # gpuplan: ignore[GPU203, GPU301]: two words \n") == [(1, ("GPU203", "GPU301"), "two words")]


def test_it_may_follow_other_words_in_a_comment() -> None:
    assert ignores("a: 1 # as agreed # gpuplan: ignore[GPU203] known\n") == [(1, ("GPU203",), "known")]


@pytest.mark.parametrize(
    "text",
    [
        "a: '# gpuplan: ignore[GPU203] known'\n",
        'a: "x\n  # gpuplan: ignore[GPU203] known"\n',
        "a: |\n  # gpuplan: ignore[GPU203] known\n",
        "a: >\n  x\n\n  # gpuplan: ignore[GPU203] known\nb: 1\n",
        "a: x#gpuplan: ignore[GPU203] known\n",
        "a: [x, y # gpuplan : ignore[GPU203] known\n]\n",
    ],
)
def test_inside_text_it_is_text(text: str) -> None:
    assert ignores(text) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: | # gpuplan: ignore[GPU203] known\n  text\n", 1),
        ("a: |\n  text\n# gpuplan: ignore[GPU203] known\nb: 1\n", 4),
        ("a: [x, # gpuplan: ignore[GPU203] known\n  y]\n", 1),
        ("a: '#' # gpuplan: ignore[GPU203] known\n", 1),
        ("--- # gpuplan: ignore[GPU203] known\na: 1\n", 1),
        ("a: 1\r\nb: 1 # gpuplan: ignore[GPU203] known\r\n", 2),
    ],
)
def test_outside_of_text_it_is_found(text: str, line: int) -> None:
    assert ignores(text) == [(line, ("GPU203",), "known")]


def test_it_knows_its_own_place() -> None:
    assert underlined(only("é: 1  # gpuplan: ignore[GPU203] known  \n").origin) == "# gpuplan: ignore[GPU203] known"


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("ignore[GPU203]", "ignore gives no reason"),
        ("ignore[GPU203]:", "ignore gives no reason"),
        ("ignore[] known", "ignore names no rule"),
        ("ignore known", "ignore names no rule"),
        ("ignore[gpu203] known", "`gpu203` is not the code of a rule"),
        ("ignore[GPU203,] known", "`` is not the code of a rule"),
        ("ignore[GPU2030] known", "`GPU2030` is not the code of a rule"),
        ("ingore[GPU203] known", "comment `gpuplan: ingore[GPU203] known` is no instruction"),
        ("", "comment `gpuplan: ` is no instruction"),
    ],
)
def test_a_malformed_comment_is_found_and_silences_nothing(comment: str, message: str) -> None:
    text = f"a: 1 # gpuplan: {comment}\n"
    assert read(text) == ([{"a": 1}], [f"1:6 GPU020 {message}"])
    assert ignores(text) == []


def test_comments_before_a_syntax_error_count() -> None:
    assert ignores("a: 1 # gpuplan: ignore[GPU203] known\n---\n'\n# gpuplan: ignore[GPU203] late\n") == [
        (1, ("GPU203",), "known")
    ]


def test_a_file_that_is_no_text_has_none() -> None:
    assert ignores("# gpuplan: ignore[GPU203] known\n\x00") == []
