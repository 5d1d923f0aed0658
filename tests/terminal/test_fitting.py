"""Tables and lines that fit a width."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from gpuplan.terminal.fitting import Table, folded, folded_commands, wrapped
from gpuplan.terminal.text import PLAIN, Style, Theme, cells

POOLS = Table(
    ("POOL", "NODES", "SHARED AS", "RESOURCE"),
    [
        ("training", "12", "time-slicing, 3 shares", "nvidia.com/gpu.shared"),
        ("small-inference", "1", "MIG", "nvidia.com/mig-1g.10gb"),
    ],
    right=(1,),
    extra=(3,),
)


def at(width: int, *, color: bool = False) -> Theme:
    return Theme(color=color, width=width, is_fitted=True)


def test_columns_line_up_under_wide_characters() -> None:
    assert Table(("NAME", "GPUS"), [("日本", "8"), ("research", "16")], right=(1,)).shown() == (
        "NAME      GPUS\n"
        "日本         8\n"
        "research    16\n"
    )  # fmt: skip


def test_a_cell_stays_on_its_line() -> None:
    assert Table(("A",), [("x\ny",)]).shown() == "A\nx␊y\n"


def test_a_table_without_rows_is_nothing() -> None:
    assert Table(("A",), []).shown() == ""


def test_without_a_width_to_fit_a_table_has_all_columns() -> None:
    assert POOLS.shown(replace(PLAIN, width=40)) == (
        "POOL             NODES  SHARED AS               RESOURCE\n"
        "training            12  time-slicing, 3 shares  nvidia.com/gpu.shared\n"
        "small-inference      1  MIG                     nvidia.com/mig-1g.10gb\n"
    )


def test_a_column_goes_before_rows_become_tall_and_is_named() -> None:
    assert POOLS.shown(at(60)) == (
        "POOL             NODES  SHARED AS\n"
        "training            12  time-slicing, 3 shares\n"
        "small-inference      1  MIG\n"
        "-o wide adds RESOURCE\n"
    )


def test_a_column_that_may_go_goes_if_it_has_nothing_in_any_row() -> None:
    rows = [("training", "-", "-", "-"), ("small-inference", "1", "-", "")]
    table = Table(("POOL", "NODES", "FALLBACK", "NOTE"), rows, right=(1, 3), extra=(3, 1))

    assert table.shown() == (
        "POOL             NODES  FALLBACK\n"
        "training             -  -\n"
        "small-inference      1  -\n"
    )  # fmt: skip


def test_a_sign_at_the_start_of_cells_is_explained_where_its_column_is_shown() -> None:
    table = Table(POOLS.headings, [(*row[:3], f"~{row[3]}") for row in POOLS.rows], extra=(3,))

    assert table.shown().endswith("\n~ = an even part of a GPU, which nothing enforces\n")
    assert table.shown(at(60)).endswith("\n-o wide adds RESOURCE\n")


def test_headings_are_parted_before_cells() -> None:
    table = Table(("POOL", "PER NODE", "GUARANTEED IN ALL"), [("research-and-development", "8", "16")], right=(1, 2))

    assert table.shown(at(44)) == (
        "                           PER  GUARANTEED\n"
        "POOL                      NODE      IN ALL\n"
        "research-and-development     8          16\n"
    )


def test_cells_go_on_below_themselves() -> None:
    table = Table(("POOL", "FOR"), [("shared", "research training development batch-inference"), ("b", "agents")])

    assert table.shown(at(40)) == (
        "POOL    FOR\n"
        "shared  research training development\n"
        "        batch-inference\n"
        "b       agents\n"
    )  # fmt: skip


def test_what_no_longer_reads_across_is_a_block_for_each_row() -> None:
    table = Table(
        ("TENANT", "NAMESPACES", "POOL", "UNIT", "GUARANTEED", "LIMIT", "OF"),
        [
            ("model-services", "model-services", "a100-mixed", "3g.40gb", "16", "16", "16"),
            ("", "", "a100-mixed", "2g.20gb", "32", "none", "32"),
        ],
        right=(4, 5, 6),
        extra=(1,),
    )

    assert table.shown(at(40)) == (
        "TENANT model-services\n"
        "  NAMESPACES model-services\n"
        "  POOL a100-mixed  UNIT 3g.40gb\n"
        "  GUARANTEED 16  LIMIT 16  OF 16\n"
        "\n"
        "TENANT model-services\n"
        "  POOL a100-mixed  UNIT 2g.20gb\n"
        "  GUARANTEED 32  LIMIT none  OF 32\n"
    )


def test_a_terminal_narrower_than_the_narrowest_counts_as_that() -> None:
    assert POOLS.shown(at(5)) == POOLS.shown(at(40))
    assert POOLS.shown(at(30).indented(20)) == POOLS.shown(at(40).indented(20))


NAMES = st.text(st.sampled_from("abc-/日 é"), min_size=1, max_size=30).map(lambda text: text.strip() or "x")


@given(
    st.integers(1, 6).flatmap(
        lambda columns: st.tuples(
            st.lists(NAMES, min_size=columns, max_size=columns),
            st.lists(st.lists(NAMES, min_size=columns, max_size=columns), min_size=1, max_size=4),
        )
    ),
    st.integers(40, 120),
)
def test_no_line_is_wider_and_nothing_is_lost(given_table: tuple[list[str], list[list[str]]], width: int) -> None:
    headings, rows = given_table

    shown = Table(headings, rows).shown(at(width))

    assert max(map(cells, shown.splitlines())) <= width
    letters = re.sub(r"\s", "", shown)
    for cell in (*headings, *(cell for row in rows for cell in row)):
        assert not set(re.sub(r"\s", "", cell)) - set(letters)
    wanted = re.sub(r"\s", "", "".join(("".join(headings), *("".join(row) for row in rows))))
    assert len(letters) >= len(wanted)


@given(st.text(st.sampled_from("ab-/日 ")), st.integers(4, 40), st.integers(4, 40))
def test_a_parted_line_has_all_its_letters_in_order(text: str, room: int, later: int) -> None:
    parts = wrapped(text, room, later)

    assert "".join(parts).replace(" ", "") == text.replace(" ", "")
    assert cells(parts[0]) <= room
    assert all(cells(part) <= later for part in parts[1:])


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", [""]),
        ("  two words", ["  two", "words"]),
        ("nvidia.com/mig.config", ["nvidia.com/", "mig.config"]),
        ("averylongwordwithoutsigns", ["averylongword", "withoutsigns"]),
        ("a  b", ["a  b"]),
    ],
)
def test_words_are_kept_where_that_can_be(text: str, parts: list[str]) -> None:
    assert wrapped(text, 13 if "a" in text else 6) == parts


def test_a_line_goes_on_indented() -> None:
    assert folded("  one two three four five six seven eight\n", at(40).indented(10)) == (
        "  one two three four five six\n    seven eight\n"
    )


def test_paint_ends_with_its_line_and_goes_on_in_the_next() -> None:
    theme = at(40, color=True).indented(20)

    shown = folded(f"{theme.paint('all of this is strong', Style.STRONG)} and not this\n", theme)

    assert shown == "\x1b[1mall of this is\x1b[0m\n  \x1b[1mstrong\x1b[0m and not\n  this\n"


def test_lines_stay_as_they_are_where_there_is_no_width_to_fit() -> None:
    assert folded("a line of some words\n", replace(PLAIN, width=4)) == "a line of some words\n"


def test_a_command_goes_on_after_a_backslash_and_never_within_quotes() -> None:
    command = "kubectl wait --for='jsonpath of a b c d e f' node/a node/b   # until it is so\n"

    assert folded_commands(command, at(40)) == (
        "# until it is so\n"
        "kubectl wait \\\n"
        "  --for='jsonpath of a b c d e f' \\\n"
        "  node/a node/b\n"
    )  # fmt: skip
    assert folded_commands(command, replace(PLAIN, width=40)) == command


def test_a_number_stays_in_one_piece() -> None:
    assert wrapped("cost,11,680.00", 10) == ["cost,", "11,680.00"]
    assert wrapped("0,1,2,3", 5) == ["0,1,", "2,3"]
