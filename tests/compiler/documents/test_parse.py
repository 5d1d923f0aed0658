"""Text becomes plain data; what a policy must not hold is a finding at its place."""

from __future__ import annotations

import pytest

from gpuplan.compiler.base.diagnostics import SourceFile
from gpuplan.compiler.documents import read_text
from gpuplan.compiler.documents.parse import parse
from tests.compiler.documents.reading import codes, describe, place, read, underlined


def test_reads_documents_in_their_order() -> None:
    assert read("kind: Pool\n---\nkind: Tenant\nspec: {limits: [1, none]}\n") == (
        [{"kind": "Pool"}, {"kind": "Tenant", "spec": {"limits": [1, "none"]}}],
        [],
    )


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "---\n---\n# nothing\n...\n", "null\n", "\ufeff"])
def test_empty_documents_are_no_documents(text: str) -> None:
    assert read(text) == ([], [])


@pytest.mark.parametrize("text", ["a: 1\r\nb:\r\n- x\r\n", "a: 1\rb:\r- x\r", "\ufeffa: 1\nb:\n- x"])
def test_line_ends_and_a_byte_order_mark_do_not_matter(text: str) -> None:
    assert read(text) == ([{"a": 1, "b": ["x"]}], [])


def test_columns_count_characters_in_files_of_any_line_end() -> None:
    documents, diagnostics = read_text("policy.yaml", "\ufeffé🐙: 1\r\nüü: {🐙: yes}\r\n")
    assert describe(diagnostics)[0].startswith("2:9 GPU015")
    assert underlined(documents[0].origin / "üü" / "🐙") == "yes"


def test_name_and_kind_are_empty_where_they_are_no_text() -> None:
    documents, _ = read_text("policy.yaml", "kind: [Pool]\nmetadata: {name: 12}\n---\nmetadata: Pool\n")
    assert [(document.kind, document.name) for document in documents] == [("", ""), ("", "")]


def test_quoted_text_is_text() -> None:
    data, findings = read("""{a: "012", b: 'yes', c: "1:30", "1": "~", 'on': ''}""")
    assert data == [{"a": "012", "b": "yes", "c": "1:30", "1": "~", "on": ""}]
    assert findings == []


def test_block_text_is_text() -> None:
    assert read("a: |\n  012\nb: >-\n  yes\n") == ([{"a": "012\n", "b": "yes"}], [])


def test_doubtful_scalars_are_found_as_values_items_and_keys() -> None:
    data, findings = read("a: 012\nb: [yes]\non: 1\n1:30: x\n")
    assert data == [{"a": 12, "b": ["yes"], "on": 1, "1:30": "x"}]
    assert [finding.split()[:2] for finding in findings] == [
        ["1:4", "GPU013"],
        ["2:5", "GPU015"],
        ["3:1", "GPU015"],
        ["4:1", "GPU015"],
    ]


def test_help_for_a_doubtful_key_is_to_quote_it() -> None:
    _, (diagnostic,) = read_text("policy.yaml", "y: 1\n")
    assert diagnostic.finding.help == 'quote the key: `"y"`'


def test_a_key_that_is_set_twice_keeps_its_first_value() -> None:
    documents, diagnostics = read_text("policy.yaml", "spec:\n  a: 1\n  b: 2\n  a: 3\n")
    assert documents[0].data == {"spec": {"a": 1, "b": 2}}
    assert describe(diagnostics) == ["4:3 GPU007 key `a` is set twice"]
    (label,) = diagnostics[0].finding.related
    assert (place(label.at), label.text) == ("2:3", "first set here")
    assert str(diagnostics[0].finding.at) == "spec.a"


def test_keys_are_compared_as_text() -> None:
    assert codes('a: 1\n"a": 2\n') == ["GPU007"]


def test_every_repetition_of_a_key_is_found() -> None:
    _, findings = read("x: {a: 1, a: 2, a: 3}\nx: 1\n")
    assert [finding.split()[:2] for finding in findings] == [["1:11", "GPU007"], ["1:17", "GPU007"], ["2:1", "GPU007"]]


@pytest.mark.parametrize(
    ("text", "data", "finding"),
    [
        ("1: a\n", {"1": "a"}, "1:1 GPU008 key `1` is a number, not text"),
        ("true: a\n", {"true": "a"}, "1:1 GPU008 key `true` is a boolean, not text"),
        ("~: a\n", {"~": "a"}, "1:1 GPU008 key `~` is null, not text"),
        ("? \n: a\n", {"": "a"}, "1:2 GPU008 key is null, not text"),
        ("? [a]\n: b\n", {}, "1:3 GPU008 key is a list, not text"),
        ("{a: 1}: b\n", {}, "1:1 GPU008 key is a mapping, not text"),
    ],
)
def test_keys_have_to_be_text(text: str, data: dict[str, object], finding: str) -> None:
    assert read(text) == ([data], [finding])


def test_findings_say_where_in_the_document_they_are() -> None:
    _, diagnostics = read_text("policy.yaml", "spec:\n  quotas:\n  - pool: a\n    limit: 012\n  - {1: x, on: y}\n")
    paths = [str(diagnostic.finding.at) for diagnostic in diagnostics]
    assert paths == ["spec.quotas[0].limit", "spec.quotas[1].1", "spec.quotas[1].on", "spec.quotas[1].on"]


@pytest.mark.parametrize(("text", "what"), [("- a\n- b\n", "a list"), ("a\n", "text"), ("12\n", "a number")])
def test_documents_have_to_be_mappings(text: str, what: str) -> None:
    assert read(f"kind: Pool\n---\n{text}---\nkind: Tenant\n") == (
        [{"kind": "Pool"}, {"kind": "Tenant"}],
        [f"3:1 GPU006 document is {what}, not a mapping"],
    )


def test_anchors_and_aliases_are_found_one_by_one_and_read_as_meant() -> None:
    data, findings = read("a: &one {x: 1}\nb: *one\nc: [*one, &two 2]\n")
    assert data == [{"a": {"x": 1}, "b": {"x": 1}, "c": [{"x": 1}, 2]}]
    assert findings == [
        "1:4 GPU009 anchor `&one` names a value to repeat elsewhere",
        "2:4 GPU009 alias `*one` repeats a value that is written elsewhere",
        "3:5 GPU009 alias `*one` repeats a value that is written elsewhere",
        "3:11 GPU009 anchor `&two` names a value to repeat elsewhere",
    ]


def test_an_anchor_is_underlined_alone() -> None:
    _, diagnostics = read_text("policy.yaml", "a: !!map &one\n  x: 1\n")
    assert [underlined(diagnostic.finding.at) for diagnostic in diagnostics] == ["!!map", "&one"]


def test_an_alias_without_an_anchor_before_it_in_its_document_is_taken_for_text() -> None:
    data, findings = read("a: *one\nb: &one 1\n---\nc: *one\n")
    assert data == [{"a": "*one", "b": 1}, {"c": "*one"}]
    assert [finding for finding in findings if "GPU001" in finding] == [
        "1:4 GPU001 alias `*one` has no anchor before it",
        "4:4 GPU001 alias `*one` has no anchor before it",
    ]


def test_an_alias_inside_its_own_anchor_is_no_cycle() -> None:
    data, findings = read("a: &one [*one]\n")
    assert data == [{"a": ["*one"]}]
    assert "1:10 GPU001 alias `*one` has no anchor before it" in findings


def test_an_alias_can_stand_for_a_key() -> None:
    data, findings = read("a: &one name\n*one : 1\n")
    assert data == [{"a": "name", "name": 1}]
    assert [finding.split()[1] for finding in findings] == ["GPU009", "GPU009"]


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("!!str 12", "12"),
        ('!!int "12"', 12),
        ("!!int 12", 12),
        ("!secret x", "x"),
        ("!secret 12", 12),
        ("!secret '12'", "12"),
        ("!!python/object/apply:os.system [ls]", ["ls"]),
        ("!!set {a}", {"a": None}),
        ("! 12", 12),
        ("!<tag:example.com,2026:x> a", "a"),
    ],
)
def test_tags_are_found_and_no_program_runs(value: str, meant: object) -> None:
    documents, (diagnostic,) = read_text("policy.yaml", f"a: {value}\n")
    tag = value.split(" ", maxsplit=1)[0]
    assert documents[0].data == {"a": meant}
    assert describe([diagnostic]) == [f"1:4 GPU010 tag `{tag}` is not obeyed"]
    assert underlined(diagnostic.finding.at) == tag


def test_merge_keys_are_found_and_read_as_meant() -> None:
    data, findings = read("a: {x: 1}\nb:\n  <<: {x: 3, z: 4}\n  x: 5\nc: {<<: [{p: 1}, {p: 2, q: 3}, 7]}\n")
    assert data == [{"a": {"x": 1}, "b": {"x": 5, "z": 4}, "c": {"p": 1, "q": 3}}]
    assert findings == [
        "3:3 GPU011 merge key `<<` takes in fields that are written elsewhere",
        "5:5 GPU011 merge key `<<` takes in fields that are written elsewhere",
    ]


def test_a_quoted_merge_key_is_a_key() -> None:
    assert read('"<<": {x: 1}\n') == ([{"<<": {"x": 1}}], [])


@pytest.mark.parametrize("directive", ["%YAML 1.1", "%TAG !e! tag:example.com,2026:"])
def test_directives_that_would_change_the_reading_are_found(directive: str) -> None:
    documents, (diagnostic,) = read_text("policy.yaml", f"{directive}\n---\na: yes\n".replace("yes", "1"))
    assert documents[0].data == {"a": 1}
    assert describe([diagnostic]) == ["1:1 GPU012 directive is not obeyed: policies are read as YAML 1.2"]
    assert underlined(diagnostic.finding.at) == directive


def test_the_directive_of_yaml_1_2_is_fine() -> None:
    assert read("%YAML 1.2\n---\na: 1\n") == ([{"a": 1}], [])


def test_findings_come_in_the_order_of_the_text() -> None:
    _, findings = read("# gpuplan: x\na: &x {b: 1, b: 2}\nc: 012\n")
    assert [finding.split()[1] for finding in findings] == ["GPU020", "GPU009", "GPU007", "GPU013"]


LOOSE = "a: &one {x: yes, x: 012}\nb: *one\nc: !secret d\n<<: {e: 1}\n1: 2\n--- [a list]\n---\n%x: 1\n"


def test_manifests_are_read_without_remarks_up_to_what_is_no_yaml() -> None:
    documents, diagnostics = parse(SourceFile("patch.yaml", LOOSE), strict=False)
    assert [document.data for document in documents] == [
        {"a": {"x": "yes"}, "b": {"x": "yes"}, "c": "d", "e": 1, "1": 2},
        ["a list"],
    ]
    assert [diagnostic.code for diagnostic in diagnostics] == ["GPU001"]
