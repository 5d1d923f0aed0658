"""Code frames: what is underlined, and that it stays under it."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import example, given, strategies as st
from syrupy.assertion import SnapshotAssertion
from wcwidth import wcswidth

from gpuplan.compiler.base.diagnostics import Label
from gpuplan.compiler.pipeline import Report
from gpuplan.terminal.full import frame, full
from gpuplan.terminal.text import PLAIN, Theme
from tests.terminal.builders import FIT, GPU, LAYOUT, MIXED, ODD_NAME, SHORT_LIMIT, a_diagnostic, a_report, at, whole


def shown(text: str) -> str:
    return dedent(text).lstrip("\n")


def test_the_mark_is_under_what_is_meant() -> None:
    diagnostic = a_diagnostic(at(LAYOUT), label="no free placement left")

    assert frame(diagnostic, PLAIN) == shown("""
        error[GPU203]: layout does not fit on H100
         --> policies/team.yaml:4:27
          |
        4 |   instances: {3g.40gb: 2, 1g.10gb: 2}
          |                           ^^^^^^^ no free placement left
    """)


def test_related_places_of_one_file_share_its_frame_in_the_order_of_lines() -> None:
    diagnostic = a_diagnostic(
        at(LAYOUT), label="no room", related=(Label(at(GPU), "8 memory slices"),), notes=("a fact",), help="use less"
    )

    assert frame(diagnostic, PLAIN) == shown("""
        error[GPU203]: layout does not fit on H100
         --> policies/team.yaml:4:27
          |
        3 |   gpu: H100-80GB
          |        --------- 8 memory slices
        4 |   instances: {3g.40gb: 2, 1g.10gb: 2}
          |                           ^^^^^^^ no room
          |
          = note: a fact
          = help: use less
    """)


def test_a_related_place_in_another_file_has_a_frame_of_its_own() -> None:
    other = at(
        "kind: Pool\n# ten\n# lines\n# on\n# and\n# on\n# and\n# on\n# and\n«a»: b\n", file="policies/pools.yaml"
    )

    assert frame(a_diagnostic(at("a: «b»\n"), related=(Label(other, "here"),)), PLAIN) == shown("""
        error[GPU203]: layout does not fit on H100
          --> policies/team.yaml:1:4
           |
         1 | a: b
           |    ^
          ::: policies/pools.yaml:10:1
           |
        10 | a: b
           | - here
    """).replace("\n 1 |", "\n1  |")


def test_two_marks_on_one_line_show_it_once() -> None:
    diagnostic = a_diagnostic(
        at("q: {guaranteed: 8, limit: «4»}\n"),
        label="too low",
        related=(Label(at("q: {guaranteed: «8», limit: 4}\n"), "8"),),
    )

    assert frame(diagnostic, PLAIN) == shown("""
        error[GPU203]: layout does not fit on H100
         --> policies/team.yaml:1:27
          |
        1 | q: {guaranteed: 8, limit: 4}
          |                 - 8
          |                           ^ too low
    """)


@pytest.mark.parametrize(("lines_between", "shown_between"), [(0, []), (1, ["2 | #"]), (2, ["..."])])
def test_lines_between_marks_are_left_out_unless_it_is_one(lines_between: int, shown_between: list[str]) -> None:
    filler = "#\n" * lines_between
    diagnostic = a_diagnostic(at(f"«a»: 1\n{filler}b: 2\n"), related=(Label(at(f"a: 1\n{filler}«b»: 2\n"), "here"),))

    lines = frame(diagnostic, PLAIN).splitlines()

    first, last = lines.index("  | ^"), next(index for index, line in enumerate(lines) if line.endswith("| b: 2"))
    assert lines[first + 1 : last] == shown_between


def test_carets_stay_under_wide_characters() -> None:
    assert frame(a_diagnostic(at("name: 日本 «中文x» # 。\n")), PLAIN).splitlines()[3:] == [
        "1 | name: 日本 中文x # 。",
        "  |            ^^^^^",
    ]


def test_carets_stay_under_tabs() -> None:
    assert frame(a_diagnostic(at("a:\t\t«b»\n")), PLAIN).splitlines()[3:] == ["1 | a:        b", "  |           ^"]


def test_combining_characters_take_no_room() -> None:
    assert frame(a_diagnostic(at("e\u0301e\u0301: «x»\n")), PLAIN).splitlines()[3:] == [
        "1 | e\u0301e\u0301: x",
        "  |     ^",
    ]


def test_carets_stay_under_what_a_ci_server_would_obey() -> None:
    assert frame(a_diagnostic(at("::«a»:\n")), PLAIN).splitlines()[3:] == ["1 | \ua789:a:", "  |   ^"]


_ANY = st.text(st.characters(exclude_characters="«»\r\n", exclude_categories=["Cs"]), max_size=200)
_WIDE = st.text("日本xy: ", max_size=200)


@example(before="::", marked="a", after=":", width=30)
@given(
    before=_ANY | _WIDE,
    marked=st.text("ab日é\t", min_size=1, max_size=200),
    after=_ANY | _WIDE,
    width=st.integers(30, 120),
)
def test_any_line_fits_the_terminal_and_its_carets_stand_under_what_is_marked(
    before: str, marked: str, after: str, width: int
) -> None:
    source, carets = frame(a_diagnostic(at(f"{before}«{marked}»{after}\n")), Theme(width=width)).splitlines()[3:5]

    start, end = carets.index("^"), carets.rindex("^") + 1
    assert wcswidth(source) <= width
    assert end <= width
    assert set(_cells(source)[start:end]) <= set("ab日é .")


def _cells(line: str) -> list[str]:
    """What is in each cell of a terminal line."""
    found: list[str] = []
    for index, char in enumerate(line):
        found += [char] * (wcswidth(line[: index + 1]) - wcswidth(line[:index]))
    return found


def test_a_long_line_is_cropped_around_the_mark() -> None:
    diagnostic = a_diagnostic(at(f"x: {'a' * 10_000}«here»{'b' * 10_000}\n"), label="this")

    assert frame(diagnostic, Theme(width=44)).splitlines()[3:] == [
        f"1 | ...{'a' * 15}here{'b' * 15}...",
        f"  |    {' ' * 15}^^^^ this",
    ]


def test_a_long_line_shows_its_start_without_an_ellipsis() -> None:
    source, carets = frame(a_diagnostic(at(f"«key»: {'b' * 10_000}\n")), Theme(width=44)).splitlines()[3:]

    assert source == f"1 | key: {'b' * 29}..."
    assert carets == "  | ^^^"


def test_a_value_of_several_lines_is_marked_at_its_side() -> None:
    diagnostic = a_diagnostic(at("spec:\n  instances: «{\n    3g.40gb: 2,\n  }»\nmore: 1\n"), label="these")

    assert frame(diagnostic, PLAIN) == shown("""
        error[GPU203]: layout does not fit on H100
         --> policies/team.yaml:2:14
          |
        2 | /   instances: {
        3 | |     3g.40gb: 2,
        4 | |   }
          | |___^ these
    """)


def test_the_middle_of_a_long_value_is_left_out() -> None:
    text = "a: «|\n" + "".join(f"  line {number}\n" for number in range(2, 12)) + "»b: 1\n"

    assert frame(a_diagnostic(at(text)), PLAIN).splitlines()[3:] == [
        "1  | / a: |",
        "2  | |   line 2",
        "3  | |   line 3",
        "...",
        "11 | |   line 11",
        "   | |_________^",
    ]


def test_a_finding_about_a_file_names_the_file_alone() -> None:
    assert frame(a_diagnostic(whole("policies/a.yaml"), "not UTF-8", help="save it as UTF-8"), PLAIN) == shown("""
        error[GPU203]: not UTF-8
         --> policies/a.yaml
          = help: save it as UTF-8
    """)


def test_a_place_past_the_end_of_the_file_is_shown_all_the_same() -> None:
    assert frame(a_diagnostic(at("a: 1\n«»")), PLAIN).splitlines()[1:] == [
        " --> policies/team.yaml:2:1",
        "  |",
        "2 |",
        "  | ^",
    ]


def test_what_the_policy_says_never_reaches_the_terminal_as_control() -> None:
    hostile = "\x1b[2J\x07\x9b\u202e\ud800"
    diagnostic = a_diagnostic(
        at(f"«{hostile}»: 1\n", file=f"policies/{hostile}.yaml"),
        f"unknown field `{hostile}`",
        label=hostile,
        notes=(hostile,),
        help=hostile,
    )

    text = frame(diagnostic, PLAIN)

    assert not set(hostile) - set("[2J") & set(text)
    assert "␛[2J␇���" in text


def test_notes_of_several_lines_are_indented_under_the_first() -> None:
    assert frame(a_diagnostic(at("«a»\n"), notes=("one\ntwo",)), PLAIN).splitlines()[-2:] == [
        "  = note: one",
        "          two",
    ]


@pytest.mark.parametrize(
    ("met_in", "said"),
    [((), False), (("dev", "prod"), False), (("prod",), True)],
    ids=["about a file", "in all clusters", "in one of two"],
)
def test_clusters_are_named_where_a_finding_is_not_of_all(met_in: tuple[str, ...], said: bool) -> None:
    report = a_report(a_diagnostic(at("«a»\n"), clusters=met_in), clusters=("dev", "prod"))

    assert ("= in: prod" in full(report, PLAIN)) is said


def notes(number: int) -> Report:
    found = [a_diagnostic(at("#\n" * index + "«a»\n"), rule=ODD_NAME) for index in range(number)]
    return a_report(*found, a_diagnostic(at("«a»\n")))


def test_many_notes_of_one_rule_are_counted_instead() -> None:
    text = full(notes(5), PLAIN)

    assert text.count("note[GPU120]: layout") == 3
    assert text.endswith("\n\nnote[GPU120]: 2 more notes like these; `--output-format concise` lists all\n\n")


def test_a_thousand_errors_of_one_rule_are_shown_and_the_rest_counted() -> None:
    text = full(a_report(*[a_diagnostic(at("«a»\n"))] * 1002), PLAIN)

    assert text.count(" --> ") == 1000
    assert text.endswith("\n\nerror[GPU203]: 2 more errors like these; `--output-format concise` lists all\n\n")


def test_a_few_notes_are_all_shown() -> None:
    text = full(notes(3), PLAIN)

    assert text.count("note[GPU120]: layout") == 3
    assert "like these" not in text


def test_errors_are_all_shown() -> None:
    errors = a_report(*(a_diagnostic(at("«a»\n")) for _ in range(5)))

    assert full(errors, PLAIN).count("error[GPU203]: layout") == 5


def test_paths_are_what_the_reader_can_open() -> None:
    assert " --> platform/policies/team.yaml:1:1" in frame(a_diagnostic(at("«a»\n")), Theme(root="platform/"))


def test_colours_are_used_only_when_asked_for() -> None:
    diagnostic = a_diagnostic(at("«a»\n"), rule=SHORT_LIMIT, label="this")

    assert "\x1b" not in frame(diagnostic, PLAIN)
    assert "\x1b[1;33m^ this\x1b[0m" in frame(diagnostic, Theme(color=True))


def test_a_whole_screen(snapshot: SnapshotAssertion) -> None:
    assert full(MIXED, PLAIN) == snapshot


def test_a_whole_screen_in_colour(snapshot: SnapshotAssertion) -> None:
    assert frame(FIT, Theme(color=True)).replace("\x1b", "ESC") == snapshot
