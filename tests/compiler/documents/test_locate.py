"""Every value knows where it was written, through the merge with an overlay."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from gpuplan.compiler.base.diagnostics import Origin, Path
from gpuplan.compiler.documents import Document, file_of, merge, read_text
from tests.compiler.documents.reading import place, read_one, underlined
from tests.compiler.documents.writing import DATA, MAPPINGS, STYLES, TEXTS, walk, write

POOL = """\
# a comment first
apiVersion: gpuplan.dev/v1
kind: Pool
metadata:
  name: training
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8}
  taints:
  - key: gpu
    value: "yes"
  - {key: other}
  description: |
    Two lines
    of text.
  fallback:
"""


def test_values_are_located_as_written() -> None:
    pool = read_one(POOL)
    assert underlined(at(pool, "spec", "gpu")) == "A100-80GB"
    assert underlined(at(pool, "spec", "nodes")) == "{count: 2, gpusPerNode: 8}"
    assert underlined(at(pool, "spec", "nodes", "count")) == "2"
    assert underlined(at(pool, "spec", "taints", 0, "value")) == '"yes"'
    assert underlined(at(pool, "spec", "taints", 1)) == "{key: other}"


def test_keys_are_located_as_written() -> None:
    pool = read_one(POOL)
    assert underlined(at(pool, "spec", "gpu").key) == "gpu"
    assert place(at(pool, "spec", "taints", 0, "value").key) == "11:5"


def test_an_item_is_its_own_key() -> None:
    pool = read_one(POOL)
    assert underlined(at(pool, "spec", "taints", 1).key) == "{key: other}"


def test_what_goes_over_lines_in_block_style_is_shown_by_its_key() -> None:
    pool = read_one(POOL)
    assert underlined(at(pool, "spec")) == "spec"
    assert underlined(at(pool, "spec", "taints")) == "taints"
    assert underlined(at(pool, "spec", "description")) == "description"


def test_a_block_item_is_shown_by_its_first_line() -> None:
    assert place(at(read_one(POOL), "spec", "taints", 0)) == "10:5"
    assert underlined(at(read_one(POOL), "spec", "taints", 0)) == "key"


def test_an_empty_value_is_shown_by_its_key() -> None:
    assert underlined(at(read_one(POOL), "spec", "fallback")) == "fallback"


def test_what_is_missing_is_shown_by_the_key_of_its_nearest_parent() -> None:
    pool = read_one(POOL)
    assert underlined(at(pool, "spec", "sharing", "mig")) == "spec"
    assert underlined(at(pool, "spec", "nodes", "names")) == "nodes"
    assert underlined(at(pool, "spec", "taints", 7, "key")) == "taints"
    assert underlined(at(pool, "spec", "gpu", 0)) == "gpu"


def test_the_whole_document_is_shown_by_its_name() -> None:
    pool = read_one(POOL)
    assert underlined(pool.origin) == "training"
    assert underlined(at(pool, "status")) == "training"


def test_a_document_without_a_name_is_shown_by_its_kind_or_its_first_key() -> None:
    assert underlined(read_one("apiVersion: v1\nkind: Pool\n").origin) == "Pool"
    assert underlined(read_one("apiVersion: v1\nspec: {}\n").origin) == "apiVersion"
    assert underlined(read_one("{}\n").origin) == "{}"


def test_later_documents_of_a_file_are_located_in_the_file() -> None:
    documents, _ = read_text("policy.yaml", "a: 1\n---\n# comment\nb: 2\n--- {c: 3}\n...\n%YAML 1.2\n---\n  d: 4\n")
    places = [place(document.origin / key) for document, key in zip(documents, "abcd", strict=True)]
    assert places == ["1:4", "4:4", "5:9", "9:6"]


def test_an_indented_document_is_located_in_the_file() -> None:
    document = read_one("# comment\n  a: 1\n  b: {c: 2}\n")
    assert place(at(document, "a")) == "2:6"
    assert place(at(document, "b", "c")) == "3:10"


def test_a_value_from_an_alias_is_shown_at_the_alias_and_its_parts_at_the_anchor() -> None:
    (document,), _ = read_text("policy.yaml", "a: &one {x: 1}\nb: *one\n")
    assert place(at(document, "b")) == "2:4"
    assert place(at(document, "b", "x")) == "1:13"


def test_of_a_repeated_key_the_first_is_located() -> None:
    (document,), _ = read_text("policy.yaml", "a: 1\na: 2\n")
    assert place(at(document, "a")) == "1:4"


BASE = "kind: Pool\nmetadata: {name: a}\nspec:\n  gpu: T4\n  nodes: {count: 2}\n  taints: [x, y]\n"
PATCH = "kind: Pool\nmetadata: {name: a}\nspec:\n  nodes: {count: 3, names: null}\n  taints: [z]\n  gpu: null\n"


def patched(base: str = BASE, patch: str = PATCH) -> Document:
    bases, _ = read_text("policies/pool.yaml", base)
    patches, _ = read_text("overlays/prod/pool.yaml", patch)
    (document,), _ = merge(bases, patches)
    return document


def test_each_value_of_a_patched_document_is_located_where_it_was_set_last() -> None:
    pool = patched()
    assert located(pool, "spec", "nodes", "count") == "overlays/prod/pool.yaml 4:18"
    assert located(pool, "spec", "taints", 0) == "overlays/prod/pool.yaml 5:12"
    pool = patched(patch="kind: Pool\nmetadata: {name: a}\nspec: {nodes: {names: [b]}}\n")
    assert located(pool, "spec", "nodes", "count") == "policies/pool.yaml 5:18"
    assert located(pool, "spec", "nodes", "names", 0) == "overlays/prod/pool.yaml 3:24"


def test_a_list_that_an_overlay_replaced_is_not_located_in_the_base() -> None:
    assert located(patched(), "spec", "taints", 1) == "overlays/prod/pool.yaml 5:3"


def test_a_field_that_an_overlay_removed_is_located_at_the_null() -> None:
    assert located(patched(), "spec", "gpu") == "overlays/prod/pool.yaml 6:8"


def test_a_patched_document_as_a_whole_is_located_in_the_base() -> None:
    assert located(patched()) == "policies/pool.yaml 2:18"


@given(MAPPINGS)
def test_json_is_read_as_what_it_says(data: dict[str, Any]) -> None:
    documents, _ = read_text("policy.yaml", json.dumps(data, ensure_ascii=False))
    assert documents[0].data == data


@given(MAPPINGS, STYLES)
def test_yaml_of_every_style_is_read_as_what_it_says(data: dict[str, Any], style: dict[str, Any]) -> None:
    documents, _ = read_text("policy.yaml", write(data, **style))
    assert documents[0].data == data


@given(MAPPINGS, STYLES)
def test_every_path_is_located_at_text_that_says_its_value(data: dict[str, Any], style: dict[str, Any]) -> None:
    (document,), _ = read_text("policy.yaml", "# comment\n---\n" + write(data, **style))
    for path, value in walk(data):
        key = path[-1] if isinstance(path[-1], str) else None
        said = meaning(underlined(Origin(document, path)))
        assert said in (value, *headings(key, value)), path
        if key is not None:
            assert meaning(underlined(Origin(document, path, on_key=True))) == key


@given(DATA, DATA)
def test_a_value_is_located_in_the_overlay_exactly_when_the_overlay_sets_it(base: Any, patch: Any) -> None:
    document = patched(as_pool(base), as_pool(patch))
    for path, _ in walk(document.data):
        file = Origin(document, path).locate().file.path
        assert file == ("overlays/prod/pool.yaml" if has(as_pool_data(patch), path) else "policies/pool.yaml"), path


@given(MAPPINGS, st.lists(TEXTS | st.integers(-3, 3), max_size=5))
def test_every_path_is_located_somewhere_in_the_file(data: dict[str, Any], path: list[str | int]) -> None:
    (document,), _ = read_text("policy.yaml", write(data))
    location = document.locate(tuple(path))
    assert 1 <= location.span.start.line <= len(location.file.lines)


def at(document: Document, *path: str | int) -> Origin:
    return Origin(document, path)


def located(document: Document, *path: str | int) -> str:
    origin = Origin(document, path)
    return f"{origin.locate().file.path} {place(origin)}"


def meaning(text: str) -> Any:
    documents, _ = read_text("value.yaml", f"value: {text}\n")
    return documents[0].data["value"]


def headings(key: str | None, value: Any) -> list[Any]:
    """What may stand first of a value that is written over several lines."""
    if key is not None:
        return [key]
    if isinstance(value, dict) and value:
        return [next(iter(value))]
    if isinstance(value, list) and value:
        return [value[0], *headings(None, value[0])]
    return []


def as_pool_data(spec: Any) -> dict[str, Any]:
    return {"kind": "Pool", "metadata": {"name": "a"}, "spec": spec}


def as_pool(spec: Any) -> str:
    return write(as_pool_data(spec))


def has(data: Any, path: Path) -> bool:
    return any(path == found for found, _ in walk(data))


def test_to_ask_for_a_file_reads_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    (document,), _ = read_text("policy.yaml", "kind: Pool\nmetadata: {name: a}\n")
    asked: list[str] = []
    monkeypatch.setattr("gpuplan.compiler.documents.document.read_tree", lambda text, _: asked.append(text))

    assert file_of(document.origin / "metadata" / "name").path == "policy.yaml"
    assert asked == []


def test_the_file_of_a_value_that_an_overlay_sets_is_the_overlays() -> None:
    (base,), _ = read_text("a.yaml", "kind: Pool\nmetadata: {name: a}\nspec: {x: 1, y: 1}\n")
    (over,), _ = read_text("b.yaml", "kind: Pool\nmetadata: {name: a}\nspec: {x: 2}\n")
    (merged,), _ = merge([base], [over])

    assert [file_of(merged.origin / "spec" / part).path for part in ("x", "y")] == ["b.yaml", "a.yaml"]
