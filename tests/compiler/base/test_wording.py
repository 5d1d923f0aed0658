"""Turns of phrase."""

from __future__ import annotations

import html
import re

import pytest

from gpuplan.compiler.base.wording import closest, count, count_kinds, joined, listing, markdown_code, misspelling


def test_words_are_joined_as_people_do() -> None:
    assert [joined(words) for words in ((), ("a",), ("a", "b"), ("a", "b", "c"))] == ["", "a", "a and b", "a, b and c"]
    assert joined(("a", "b"), "or") == "a or b"


def test_a_number_has_its_noun() -> None:
    assert [count(number, "file") for number in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
    assert count(2, "policy", "policies") == "2 policies"


def test_a_long_list_of_names_ends_in_a_count() -> None:
    assert listing(("a", "b", "c", "d")) == "`a`, `b`, `c` and `d`"
    assert listing(("a", "b", "c", "d", "e")) == "`a`, `b`, `c`, `d` and 1 more"
    assert listing(("a", "b", "c"), 1, "or") == "`a` or 2 more"
    assert listing(tuple("abcdef"), None) == "`a`, `b`, `c`, `d`, `e` and `f`"
    assert listing(()) == ""


def test_a_misspelt_name_is_guessed_whatever_its_case() -> None:
    assert closest("TIMESLICING", ("timeSlicing", "mig")) == "timeSlicing"
    assert closest("a100-mxied", ("a100-mixed", "h100-whole")) == "a100-mixed"


def test_what_is_like_nothing_known_is_not_guessed() -> None:
    assert closest("zebra", ("timeSlicing", "mig")) is None
    assert closest("mig", ()) is None
    assert closest("migs", ("mig",), likeness=0.9) is None


@pytest.mark.parametrize(
    "text",
    [
        *("a`b", "a` <img src=x>", "|", "a|b", "<b>", "&lt;", "a\n# b", "a\n\n    b", "[a](http://b)", "\\"),
        *("$", "@all", "~~a~~", " a ", "", "\x1b[1m", "größe"),
    ],
)
def test_nothing_ends_code_in_markdown(text: str) -> None:
    code = markdown_code(text)
    assert code.startswith("<code>")
    assert code.endswith("</code>")
    inner = re.sub(r"&#[0-9]+;", "", code.removeprefix("<code>").removesuffix("</code>"))
    assert not re.search(r"[^\w \t./():;=-]|://|www\.|_", inner.replace("\ufffd", ""))
    shown = html.unescape(code.removeprefix("<code>").removesuffix("</code>"))
    assert shown == "".join(char if char.isprintable() else "\ufffd" for char in text)


def test_a_plain_name_is_code_in_backticks() -> None:
    assert [markdown_code(text) for text in ("example.com/rack", "POST /api/v1/{id}")] == [
        "`example.com/rack`",
        "`POST /api/v1/{id}`",
    ]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("h100-trainin", "h100-training"),
        ("h100_training", "h100-training"),
        ("H100Training", "h100-training"),
        ("reserach", "research"),
        ("baech", "bach"),
        ("cht", "chat"),
        ("namespaces/researh", "namespaces/research"),
        ("1g10gb", "1g.10gb"),
    ],
)
def test_a_typo_in_a_name_is_guessed(written: str, meant: str) -> None:
    assert misspelling(written, (meant, "other")) == meant


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("a100", "h100"),
        ("a100", "a1000"),
        ("a100-mig", "h100-mig"),
        ("pool-1", "pool-2"),
        ("pool-11", "pool-1-1"),
        ("1g.10gb", "2g.20gb"),
        ("3g.40gb", "3g.20gb"),
        ("team-a", "team-b"),
        ("team-a-prod", "team-a-dev"),
        ("eu-train", "us-train"),
        ("cold", "gold"),
        ("train", "train-large"),
        ("serving", "training"),
    ],
)
def test_one_name_is_no_misspelling_of_another(name: str, other: str) -> None:
    assert misspelling(name, (other,)) is None
    assert misspelling(other, (name,)) is None


def test_a_typo_of_two_names_is_guessed_as_neither() -> None:
    assert misspelling("serving-x", ("servings-x", "servingz-x")) is None
    assert misspelling("Serving", ("servings", "serving")) == "serving"


def test_kinds_are_counted_by_name() -> None:
    kinds = ["PriorityClass", "Namespace", "PriorityClass", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicy"]
    assert count_kinds(kinds) == "1 Namespace, 2 PriorityClasses and 2 ValidatingAdmissionPolicies"
