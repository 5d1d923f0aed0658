"""Text for terminals."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from gpuplan.terminal.text import cells, pad, printable


@given(st.text())
def test_printable_text_has_one_line_and_steers_nothing(text: str) -> None:
    shown = printable(text)

    assert len(shown.splitlines()) <= 1
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cs", "Zl", "Zp"}


TOKEN = "hf_" + "aB3" * 12


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"  HF_TOKEN: {TOKEN}  # mine", f"  HF_TOKEN: {'*' * len(TOKEN)}  # mine"),
        ("https://bot:secret@git.example.com/a", "https://**********@git.example.com/a"),
        ("aB3/" * 16, "*" * 64),
    ],
)
def test_what_looks_like_a_credential_is_not_shown_and_nothing_moves(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "hf_home: /models",
        "ssh://git@git.example.com/a",
        "git@git.example.com:platform/gpu.git",
        "image: example.com/app@sha256:" + "0a" * 32,
        "a word of sixty letters: " + "a" * 60,
    ],
)
def test_what_only_resembles_one_is_shown(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, 日本 and é", "plain, 日本 and é"),
        ("a\tb", "a    b"),
        ("a\nb\r", "a␊b␍"),
        ("\x1b[31m", "␛[31m"),
        ("\x7f", "␡"),
        ("a\u202eb", "a\ufffdb"),
        ("\ud800", "\ufffd"),
    ],
)
def test_what_cannot_be_printed_becomes_a_picture(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a ##[set-output name=x]y", "a #\u266f[set-output name=x]y"),
        ("##[error]x", "#\u266f[error]x"),
        ("##vso[task.setvariable variable=x]y", "#\u266fvso[task.setvariable variable=x]y"),
        ("####[error]", "###\u266f[error]"),
        ("::error::x", "\ua789:error::x"),
        ("  ::set-output name=x::y", "  \ua789:set-output name=x::y"),
        ("\u3000::stop-commands::x", "\u3000\ua789:stop-commands::x"),
        ("\x1b::error::x", "␛::error::x"),
    ],
)
def test_a_command_to_a_ci_server_is_none_any_more(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize("text", ["## a [link]", "a::b::c", "fe80::1", "# [x]", "::: policies/a.yaml", "::1"])
def test_what_only_looks_like_one_stays(text: str) -> None:
    assert printable(text) == text


def test_wide_characters_take_two_cells_and_combining_ones_none() -> None:
    assert cells("ab") == 2
    assert cells("日本") == 4
    assert cells("e\u0301") == 1
    assert pad("日", 4) == "日  "
    assert pad("日", 4, right=True) == "  日"
