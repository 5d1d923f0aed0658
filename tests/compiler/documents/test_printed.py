"""What kubectl prints, whole or in pieces, comes out object by object."""

from __future__ import annotations

import json

import pytest

from gpuplan.compiler.documents.printed import objects_in, read_json, read_plain, read_printed
from gpuplan.compiler.documents.text import MAX_BYTES

NODE = {"kind": "Node", "metadata": {"name": "a"}}


def names(name: str, content: str) -> list[tuple[str, object]]:
    """The objects of a file, by their place and what they are."""
    documents, found = read_printed(name, content.encode())
    assert found == ()
    return [(str(item.at), item.data) for document in documents for item in objects_in(document)]


def test_items_of_lists_have_the_place_that_they_are_at() -> None:
    inner = {"kind": "List", "items": [{"kind": "Pod"}]}
    text = json.dumps({"kind": "List", "items": [NODE, inner]})

    assert names("a.yaml", f"{text}\n---\nkind: Pod\n") == [
        ("items[0]", NODE),
        ("items[1].items[0]", {"kind": "Pod"}),
        ("", {"kind": "Pod"}),
    ]


def test_what_the_api_server_gives_says_the_kind_once() -> None:
    text = json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}}, NODE]})

    assert [data for _, data in names("a.json", text)] == [{"apiVersion": "v1", **NODE}, {"apiVersion": "v1", **NODE}]


def test_a_list_that_holds_itself_ends() -> None:
    [document], _ = read_plain("", "&a\nkind: List\nitems: [{kind: Pod}]\n")
    document.data["items"].append(document.data)

    assert [item.data for item in objects_in(document)] == [{"kind": "Pod"}]


def test_lists_in_lists_go_as_deep_as_they_like() -> None:
    data: object = {"kind": "Pod"}
    for _ in range(5000):
        data = {"kind": "List", "items": [data]}
    [document], _ = read_plain("", "a: 1")

    assert [item.data for item in objects_in(document._replace(data=data))] == [{"kind": "Pod"}]


def test_json_that_is_larger_than_a_policy_is_read_without_lines() -> None:
    text = json.dumps({"kind": "List", "items": [NODE], "filler": "x" * MAX_BYTES})
    [document], found = read_printed("a.json", text.encode())

    assert (document.document, found) == (None, ())
    assert [item.data for item in objects_in(document)] == [NODE]


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("x" * (MAX_BYTES + 1), "GPU003", "YAML is larger than 8 MiB"),
        ('{"a": "' + "x" * MAX_BYTES, "GPU001", "the JSON cannot be read: Unterminated string starting at: line 1"),
        ("[" * (MAX_BYTES + 1), "GPU003", "values are nested more than 200 levels deep"),
    ],
    ids=["yaml", "json-cut-off", "json-that-nests"],
)
def test_other_text_of_that_size_is_a_finding(text: str, code: str, message: str) -> None:
    documents, [found] = read_printed("a.json", text.encode())
    assert (documents, found.code) == ((), code)
    assert found.finding.message.startswith(message)


def test_json_may_stand_behind_json() -> None:
    assert [item.data for item in read_json("", '\ufeff{"a": 1}\n [2]\n')] == [{"a": 1}, [2]]


@pytest.mark.parametrize(
    ("text", "why"),
    [("{", "Expecting"), ('{"a": 1} x', "Expecting value"), ("[" * 100_000, "nested"), ("9" * 5000, "4300 digits")],
)
def test_what_is_no_json_is_a_value_error(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_json("", text)


SECRET = {"apiVersion": "v1", "kind": "Secret", "data": {"password": "hunter2"}}


@pytest.mark.parametrize(
    "broken",
    ["  password: : hunter2\n", "  password: *hunter2\n", "- {password: hunter2\n", "password: hunter2\n- a\n"],
)
def test_nothing_is_cited_of_a_file_with_a_secret_that_is_no_yaml(broken: str) -> None:
    _, found = read_printed("a.yaml", f"kind: Secret\ndata:\n{broken}".encode())

    assert found
    shown = [(item.shown, item.shown.at.locate()) for item in found]
    texts = [(finding.message, finding.label, finding.notes, finding.help) for finding, _ in shown]
    assert "hunter2" not in repr((texts, [place.file.confidential.lines for _, place in shown]))
