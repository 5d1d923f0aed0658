"""A text that nests too deep is told apart before anything recursive reads it, whatever hides its depth."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from gpuplan.compiler.base.depth import MAX_TEXT_DEPTH, is_deep, is_deep_json

FAR = 100_000
DEEP = {
    "brackets": "[" * FAR,
    "closed-brackets": "[" * FAR + "]" * FAR,
    "braces": "{a: " * FAR,
    "keys-without-blanks": '{"a":' * FAR,
    "behind-anchors": "[&a " * FAR,
    "behind-tags": "[!t " * FAR,
    "behind-texts-that-close": '["]",' * FAR,
    "on-lines-of-their-own": "[\n" * FAR,
    "dashes": "- " * FAR,
    "questions": "? " * FAR,
    "dashes-behind-a-colon": "? a\n: " + "- " * FAR,
    "indentation": "\n".join(" " * level + "a:" for level in range(1000)),
    "lists-at-the-column-of-their-keys": "".join(f"{' ' * level}a:\n{' ' * level}-\n" for level in range(500)),
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
def test_deep_yaml_is_told(text: str) -> None:
    assert is_deep(text)


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("judge", [is_deep, is_deep_json])
def test_the_greatest_depth_is_not_deep(judge: object) -> None:
    assert callable(judge)
    assert not judge(nested(MAX_TEXT_DEPTH))
    assert judge(nested(MAX_TEXT_DEPTH + 1))


@pytest.mark.parametrize(
    "text",
    [
        "[1], " * 1000,
        "a: " + "x[y]{z}" * 1000,
        "a: [" + "{b: 1}, " * 1000 + "]",
        "a: '" + "[ " * 1000 + "'",
        "a: |\n  " + "- " * 1000,
        "a: b: c" + "\n- [" * 1000,
        "a:\n" + " " * 1000 + "b: 1",
    ],
    ids=["beside", "in-words", "in-a-list", "in-quotes", "in-a-block", "behind-an-error", "far-to-the-right"],
)
def test_many_brackets_and_dashes_are_not_deep(text: str) -> None:
    assert not is_deep(text)


JSON = {
    "open": "[" * FAR,
    "closed": nested(FAR),
    "objects": '{"a": ' * FAR,
    "behind-texts-that-close": '["]",' * FAR,
    "behind-quotes-in-texts": '["\\"]",' * FAR,
    "beside-what-is-flat": "[" + "[1,2]," * FAR + nested(MAX_TEXT_DEPTH) + "]",
}


@pytest.mark.parametrize("text", JSON.values(), ids=JSON.keys())
def test_deep_json_is_told(text: str) -> None:
    assert is_deep_json(text)


LEAVES = st.sampled_from([1, "", "[", "]}", '"', "\\", '\\"[', "{{{", "é"])


def depth_of(value: object) -> int:
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if parts is None else 1 + max(map(depth_of, parts), default=0)


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner)))
def test_depth_of_json_is_that_of_its_values(value: object) -> None:
    around = MAX_TEXT_DEPTH - depth_of(value)
    text = json.dumps(value)
    assert not is_deep_json("[" * around + text + "]" * around)
    assert is_deep_json("[" * (around + 1) + text + "]" * (around + 1))
