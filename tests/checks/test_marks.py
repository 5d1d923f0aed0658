"""What a mark states of a finding is compared, and what it leaves out is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.compiler.base.diagnostics import (
    Diagnostic,
    Family,
    Finding,
    Label,
    Origin,
    Rule,
    RulePage,
    Severity,
    SourceFile,
    WholeFile,
)
from tests.checks.marks import Mark, Text, computed, marks_of, read_marks, shape, with_marks

PLACE = Origin(WholeFile(SourceFile("a.yaml", "a: 1\n")))
OTHER = Origin(WholeFile(SourceFile("b.yaml", "b: 1\n")))
RULE = Rule("GPU001", RulePage("a-rule", Severity.ERROR, Family.PLAN, ""))


def found(message: str = "7 is too much", **texts: object) -> Diagnostic:
    return Diagnostic(RULE, Finding(PLACE, message, **texts))  # type: ignore[arg-type] # texts of any kind


def only_mark(line: str) -> Mark:
    [mark] = marks_of(line, "a.yaml:1", is_list=False)
    return mark


def test_a_mark_states_a_part_of_the_message() -> None:
    mark = only_mark("a: 1 # error: GPU001 too much")

    assert mark.matches(found())
    assert not mark.matches(found("7 is too little"))


@pytest.mark.parametrize("stated", ["label: at most 6", "note: a first", "note: a second", "help: write 6"])
def test_a_text_that_is_stated_is_the_whole_one(stated: str) -> None:
    item = found(label="at most 6", notes=("a first", "a second"), help="write 6")

    assert only_mark(f"a: 1 # error: GPU001 | {stated}").states_truth(item)
    assert not only_mark(f"a: 1 # error: GPU001 | {stated[:-1]}").states_truth(item)
    assert not only_mark(f"a: 1 # error: GPU001 | {stated}").states_truth(found())


def test_a_related_mark_states_a_second_place_and_its_words() -> None:
    item = found(related=(Label(OTHER, "6 here"),))
    [mark] = marks_of("b: 1 # related: GPU001 6 here", "b.yaml:1", is_list=False)

    assert mark.matches(item)
    assert mark._replace(part="").matches(item)
    assert not mark._replace(part="7 here").matches(item)
    assert not mark._replace(place="b.yaml:2").matches(item)


def test_texts_of_several_marks_on_one_line_belong_to_the_mark_before_them() -> None:
    first, second = marks_of(
        "a: 1 # error: GPU001 one; two | help: x; note: GPU002 | label: y", "a.yaml:1", is_list=False
    )

    assert first == Mark("a.yaml:1", "error", "GPU001", "one; two", (Text("help", "x"),))
    assert second == Mark("a.yaml:1", "note", "GPU002", "", (Text("label", "y"),))


def test_lines_below_go_on_with_the_last_mark(tmp_path: Path) -> None:
    file = tmp_path / "case.yaml"
    file.write_text("a: 1 # error: GPU001 one\n  # | label: x | y\n  # | help: z\nb: 2 # error: GPU002\n")

    assert read_marks(file, "a.yaml") == [
        Mark("a.yaml:1", "error", "GPU001", "one", (Text("label", "x | y"), Text("help", "z"))),
        Mark("a.yaml:4", "error", "GPU002", ""),
    ]


def test_a_list_of_findings_states_the_same(tmp_path: Path) -> None:
    file = tmp_path / "expected"
    file.write_text("a.yaml:1:1 error GPU001 one\n  | help: x\nb.yaml:2 related GPU001 there\n")

    assert read_marks(file, "") == [
        Mark("a.yaml:1:1", "error", "GPU001", "one", (Text("help", "x"),)),
        Mark("b.yaml:2", "related", "GPU001", "there"),
    ]


def test_a_text_of_another_name_is_refused() -> None:
    with pytest.raises(AssertionError, match="a mark states label, note, help, and not helf"):
        only_mark("a: 1 # error: GPU001 | helf: x")


def test_texts_are_put_below_and_where_that_cannot_be_behind() -> None:
    def state(mark: Mark) -> Mark:
        return mark._replace(texts=(Text("label", mark.code),))

    text = "- a: 1 # error: GPU001 one; note: GPU002\n  # | label: old\n- b\n"

    below = "- a: 1 # error: GPU001 one | label: GPU001; note: GPU002\n# | label: GPU002\n- b\n"
    assert with_marks(text, "a.yaml", state, inline=False) == below
    behind = "- a: 1 # error: GPU001 one | label: GPU001; note: GPU002 | label: GPU002\n- b\n"
    assert with_marks(text, "a.yaml", state, inline=True) == behind


def test_texts_with_the_same_words_have_one_shape() -> None:
    assert shape(Text("help", "write `a` or 1.5 of `b`")) == shape(Text("help", "write `c` or 20 of `d`"))
    assert shape(Text("note", "there are `a`, `b` and `c`")) == shape(Text("note", "there are `a` and `c`"))
    assert shape(Text("help", "write `a`")) != shape(Text("note", "write `a`"))


def test_names_and_numbers_have_to_be_stated_and_what_changes_from_run_to_run_cannot() -> None:
    item = found("7 is too much", label="too much", notes=("as in `/tmp/1/earlier`",), help="write `6`")

    assert computed(item.finding) == [Text("message", "7 is too much"), Text("help", "write `6`")]
