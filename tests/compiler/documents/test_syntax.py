"""What is no YAML is reported where it has to be changed, and what stands before it is read."""

from __future__ import annotations

import pytest

from gpuplan.compiler.documents import read_text
from tests.compiler.documents.reading import describe, place, read


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("a:\n\tb: 1\n", "2:1", "a tab cannot indent YAML"),
        ("a:\n  b: 1\n\tc: 2\n", "3:1", "a tab cannot indent YAML"),
        ("a: b: c\n", "1:5", "`: ` cannot stand here"),
        ("a: 1\n b: 2\n", "2:2", "indentation fits nothing that is open"),
        ("a: 1\nfoo\nb: 2\n", "2:1", "line is neither `key: value` nor `- item`"),
        ("a: 'x\nb: 3\n", "1:4", "text in quotes is not closed"),
        ('a: "x\n---\nb: 3\n', "1:4", "text in quotes is not closed"),
        ('a: "\\q"\n', "1:5", "a backslash in double quotes begins no escape that YAML knows"),
        ("a: @x\n", "1:4", "`@` cannot begin a value"),
        ("a: `x`\n", "1:4", "a backtick cannot begin a value"),
        ("a: *\n", "1:4", "`*` and `&` begin an alias or an anchor, and no name follows"),
        ("a: - b\n", "1:4", "`- ` cannot begin a list here"),
        ("a: }\n", "1:4", "a value is expected here"),
        ("a:\n  - b\n c: 1\n", "3:2", "indentation fits nothing that is open"),
        ("a:\n     b: 1\n  c: 1\n", "3:3", "indentation or text fits no mapping that is open"),
        ("- a\nb: 1\n", "2:1", "indentation fits no list that is open"),
        ("a: [1, 2\nb: 3\n", "1:4", "`[` is not closed"),
        ("a: {b: 1\nc: 3\n", "1:4", "`{` is not closed"),
        ("a: {b: 1}}\n", "1:10", "`}` closes nothing"),
        ("a: [1,\n  2\nb: 3\n", "3:2", "list in brackets goes on without `,` or `]`"),
        ("a: {b: 1,\n  c: 2\nd: 3\n", "3:2", "mapping in braces goes on without `,` or `}`"),
        ("a: 1\n--\nb: 2\n", "2:1", "this line separates no documents"),
        ("a: “b: c”\n", "1:4", "curly quotes are letters to YAML"),
        ("a:b\nc: 1\n", "1:2", "`:` has no space behind it"),
        ("a: |x\n", "1:5", "nothing but `+`, `-` or a digit can follow `|` or `>` on its line"),
        ("a: !e!x y\n", "1:4", "a tag has a prefix that no `%TAG` declares"),
        ("'a' b\n", "1:5", "text follows a document that has ended"),
        ("%YAML 3.0\n---\na: 1\n", "1:1", "directive asks for a version of YAML that does not exist here"),
        ("%FOO\n---\na: 1\n", "1:5", "a line that begins with `%` is a directive, and this is none"),
    ],
)
def test_points_at_the_mistake(text: str, at: str, message: str) -> None:
    _, findings = read(text)
    assert findings[-1] == f"{at} GPU001 {message}"


@pytest.mark.parametrize("text", ["[", "{a", "a: [", 'a: "', "a: 'x", "a: &", "a: !", "? ", "a: |\n x\n ["])
def test_an_end_that_comes_too_early_is_reported_inside_the_file(text: str) -> None:
    documents, diagnostics = read_text("policy.yaml", text)
    for diagnostic in diagnostics:
        start = diagnostic.finding.at.locate().span.start
        lines = diagnostic.finding.at.locate().file.lines
        assert 1 <= start.line <= len(lines)
        assert 1 <= start.column <= len(lines[start.line - 1]) + 1
    assert bool(documents) or bool(diagnostics)


def test_the_other_end_of_an_open_list_is_labelled() -> None:
    _, (diagnostic,) = read_text("policy.yaml", "a: [1,\n  2\nb: 3\n")
    assert [(place(label.at), label.text) for label in diagnostic.finding.related] == [("1:4", "opens here")]


def test_documents_before_and_after_a_mistake_are_read() -> None:
    data, findings = read("a: 1\n---\nb: 2\n---\nc: [\n---\nd: 4\n--- # more\ne: }\n---\nf: 012\n")
    assert data == [{"a": 1}, {"b": 2}, {"d": 4}, {"f": 12}]
    assert [" ".join(finding.split()[:2]) for finding in findings] == ["5:4 GPU001", "9:4 GPU001", "11:4 GPU013"]


def test_what_has_no_words_of_its_own_is_said_in_the_parsers() -> None:
    _, (diagnostic,) = read_text("policy.yaml", "%YAML 1.1\n%YAML 1.1\n---\na: 1\n")
    assert describe([diagnostic]) == ["2:1 GPU001 found duplicate %YAML directive"]


@pytest.mark.parametrize(
    ("text", "at", "help_"),
    [
        ("a:\n<<<<<<< HEAD\n  b: 1\n=======\n  b: 2\n>>>>>>> more\n", "2:1", "keep the lines of one side"),
        (
            "<<<<<<< A\na: 1\n||||||| B\na: 2\n=======\na: 3\n>>>>>>> C\n",
            "1:1",
            "keep the lines of one side, and delete all else from the line `<<<<<<<`",
        ),
        ("c: 3\n---\na: 1\n<<<<<<< HEAD\nb: 1\n=======\nb: 2\n>>>>>>> more\n", "4:1", "keep the lines of one side"),
        ("a: */30 * * * 6 # every half hour\n", "1:4", 'write `a: "*/30 * * * 6" # every half hour`'),
        ("a: {b: */30 * * * 6, c: 4h}\n", "1:8", 'quote the text: `"*/30 * * * 6"`'),
        ('x:\n- {a: "0 2 * * 6, b: 4h, c: UTC}\n- {d: "e"}\n', "2:7", 'write `- {a: "0 2 * * 6", b: 4h, c: UTC}`'),
    ],
)
def test_help_is_made_of_what_is_written(text: str, at: str, help_: str) -> None:
    _, (diagnostic,) = read_text("policy.yaml", text)
    assert place(diagnostic.finding.at) == at
    assert diagnostic.finding.help.startswith(help_)


@pytest.mark.parametrize(
    ("patch", "help_"),
    [
        ("{op: replace, path: /spec/nodes/count, value: 3}", "with `spec: {nodes: {count: 3}}`"),
        ("{op: remove, path: /spec/nodeLabels/example.com~1a}", "with `spec: {nodeLabels: {example.com/a: null}}`"),
        ("{op: add, path: /spec/quotas/-, value: {pool: a}}", "with the fields that differ"),
        ("{op: replace, path: /spec/quotas/0/pool, value: a}", "with the fields that differ"),
        ("{name: a}", "separate documents with `---`"),
    ],
)
def test_a_json_patch_is_told_the_document_that_changes_as_much(patch: str, help_: str) -> None:
    _, (diagnostic,) = read_text("policy.yaml", f"- {patch}\n")
    assert diagnostic.finding.help.endswith(help_)


@pytest.mark.parametrize(
    ("line", "help_"),
    [
        ("a: [a-z]+-h100-[0-9]+", 'write `a: "[a-z]+-h100-[0-9]+"`'),
        ("a: [gpu-{1..3}]", "write gpu-1, gpu-2, gpu-3"),
        ("a: [gpu-{08..10}.example]", "write gpu-08.example, gpu-09.example, gpu-10.example"),
    ],
)
def test_text_that_yaml_takes_for_a_list_is_shown_as_it_should_be(line: str, help_: str) -> None:
    _, (found,) = read_text("a.yaml", f"{line}\nb: 1\n")
    assert found.finding.help == help_
    assert not read_text("a.yaml", 'a: ["[a-z]+", "gpu-{1..3}"]\nb: 1\n')[1]
