"""An overlay's documents change the bases by RFC 7386, add to them, and take documents out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.documents import Document, merge, read_text
from tests.compiler.documents.reading import describe, place
from tests.compiler.documents.writing import DATA, write

POOLS = """\
kind: Pool
metadata: {name: a}
spec: {gpu: T4, nodes: {count: 2}, taints: [v, w]}
---
kind: Pool
metadata: {name: b}
---
kind: Tenant
metadata: {name: a}
"""


def documents(path: str, text: str) -> tuple[Document, ...]:
    read, diagnostics = read_text(path, text)
    assert describe(diagnostics) == []
    return read


def overlaid(bases: str, patches: str) -> tuple[list[dict[str, Any]], list[str]]:
    merged, diagnostics = laid_over(bases, patches)
    return [document.data for document in merged], describe(diagnostics)


def laid_over(bases: str, patches: str) -> tuple[tuple[Document, ...], tuple[Diagnostic, ...]]:
    return merge(documents("policies/all.yaml", bases), documents("overlays/prod/all.yaml", patches))


def test_mappings_merge_lists_and_scalars_replace_and_null_removes() -> None:
    (first, *_), findings = overlaid(
        POOLS, "kind: Pool\nmetadata: {name: a}\nspec: {gpu: null, nodes: {gpusPerNode: 8}, taints: [z]}\n"
    )
    assert first["spec"] == {"nodes": {"count": 2, "gpusPerNode": 8}, "taints": ["z"]}
    assert findings == []


def test_keys_keep_the_order_of_the_base_and_new_ones_follow() -> None:
    (merged,), _ = overlaid(
        "kind: Pool\nmetadata: {name: a}\nspec: {c: 1, a: 2}\n", "spec: {b: 3, a: 4}\nkind: Pool\nmetadata: {name: a}\n"
    )
    assert list(merged) == ["kind", "metadata", "spec"]
    assert list(merged["spec"].items()) == [("c", 1), ("a", 4), ("b", 3)]


def test_documents_keep_the_order_of_the_bases_and_new_ones_follow() -> None:
    merged, _ = laid_over(
        POOLS, "kind: Pool\nmetadata: {name: c}\n---\nkind: Tenant\nmetadata: {name: a}\nspec: {parent: b}\n"
    )
    names = [(document.kind, document.name) for document in merged]
    assert names == [("Pool", "a"), ("Pool", "b"), ("Tenant", "a"), ("Pool", "c")]


def test_untouched_documents_stay_the_same_objects() -> None:
    bases = documents("policies/all.yaml", POOLS)
    patches = documents("overlays/prod/all.yaml", "kind: Pool\nmetadata: {name: b}\nspec: {gpu: L4}\n")
    merged, _ = merge(bases, patches)
    assert [new is old for new, old in zip(merged, bases, strict=True)] == [True, False, True]
    assert [len(document.layers) for document in merged] == [1, 2, 1]


def test_untouched_data_is_shared_and_the_base_is_left_alone() -> None:
    bases = documents("policies/all.yaml", POOLS)
    patches = documents("overlays/prod/all.yaml", "kind: Pool\nmetadata: {name: a}\nspec: {gpu: L4}\n")
    (merged, *_), _ = merge(bases, patches)
    assert merged.data["spec"]["nodes"] is bases[0].data["spec"]["nodes"]
    assert bases[0].data["spec"]["gpu"] == "T4"


def test_a_new_document_keeps_its_nulls() -> None:
    merged, findings = overlaid("", "kind: Pool\nmetadata: {name: a}\nspec: {gpu: null}\n")
    assert merged == [{"kind": "Pool", "metadata": {"name": "a"}, "spec": {"gpu": None}}]
    assert findings == []


def test_a_deleted_document_is_gone() -> None:
    merged, diagnostics = laid_over(POOLS, "kind: Pool\nmetadata: {name: a, $patch: delete}\n")
    assert [(document.kind, document.name) for document in merged] == [("Pool", "b"), ("Tenant", "a")]
    assert diagnostics == ()


def test_deleting_what_is_not_there_is_found_with_the_nearest_name() -> None:
    base = "kind: Pool\nmetadata: {name: training}\n"
    merged, (diagnostic,) = laid_over(base, "kind: Pool\nmetadata: {name: trainin, $patch: delete}\n")
    assert merged == ()  # as was meant, so that nothing follows from the wrong name
    assert describe([diagnostic]) == ["2:18 GPU018 the bases have no Pool `trainin` to delete"]
    assert (diagnostic.finding.label, diagnostic.finding.help) == (
        "did you mean `training`",
        "write `name: training`, as the bases have it",
    )


def test_deleting_the_right_name_of_the_wrong_kind_names_the_right_kind() -> None:
    base = "kind: Pool\nmetadata: {name: training}\n"
    _, (diagnostic,) = laid_over(base, "kind: Tenant\nmetadata: {name: training, $patch: delete}\n")
    assert diagnostic.finding.notes == ("there is a `Pool` of this name",)


def test_a_document_to_delete_holds_nothing_else() -> None:
    patch = "apiVersion: v1\nkind: Pool\nmetadata: {name: a, $patch: delete}\nspec: {gpu: L4}\n"
    merged, findings = overlaid(POOLS, patch)
    assert len(merged) == 2
    assert findings == ["4:1 GPU017 Pool `a` is deleted, and yet sets `spec`"]


@pytest.mark.parametrize("value", ["replace", "merge", "null", "true", "[delete]"])
def test_other_directives_are_found_and_the_document_merges(value: str) -> None:
    merged, findings = overlaid(POOLS, f"kind: Pool\nmetadata: {{name: b, $patch: {value}}}\nspec: {{gpu: L4}}\n")
    assert merged[1] == {"kind": "Pool", "metadata": {"name": "b"}, "spec": {"gpu": "L4"}}
    assert findings == ["2:21 GPU017 `$patch` can only say `delete`"]


def test_a_directive_in_the_bases_is_found_and_deletes_nothing() -> None:
    merged, findings = overlaid("kind: Pool\nmetadata: {name: a, $patch: delete}\n", "")
    assert merged == [{"kind": "Pool", "metadata": {"name": "a"}}]
    assert findings == ["2:21 GPU017 Pool `a` is one of the bases, and only an overlay can delete"]


@pytest.mark.parametrize(("bases", "patches"), [(True, False), (False, True)])
def test_the_same_kind_and_name_twice_is_found_with_both_places(bases: bool, patches: bool) -> None:
    text = "kind: Pool\nmetadata: {name: a}\nspec: {gpu: T4}\n---\nkind: Pool\nmetadata: {name: a}\nspec: {gpu: L4}\n"
    merged, (diagnostic,) = laid_over(text * bases, text * patches)
    assert [document.data["spec"] for document in merged] == [{"gpu": "T4"}]
    assert describe([diagnostic]) == ["6:18 GPU016 Pool `a` is defined twice"]
    (label,) = diagnostic.finding.related
    assert (place(label.at), label.text) == ("2:18", "first defined here")


def test_documents_without_a_name_or_a_kind_are_nobodys_duplicates() -> None:
    text = "kind: Pool\n---\nkind: Pool\n---\nmetadata: {name: a}\n---\nmetadata: {name: a}\n"
    merged, findings = overlaid(text, text)
    assert len(merged) == 8
    assert findings == []


def test_deleting_without_a_name_is_found() -> None:
    _, findings = overlaid(POOLS, "kind: Pool\nmetadata: {$patch: delete}\n")
    assert findings == ["2:1 GPU018 the bases have no document without a name to delete"]


def test_a_null_that_removes_nothing_is_found_with_the_nearest_field() -> None:
    patch = "kind: Pool\nmetadata: {name: a}\nspec: {nodes: {cuont: null}, other: {new: null}}\n"
    merged, diagnostics = laid_over(POOLS, patch)
    assert merged[0].data["spec"]["other"] == {}
    assert describe(diagnostics) == [
        "3:16 GPU019 Pool `a` has no `cuont` to remove here",
        "3:38 GPU019 Pool `a` has no `new` to remove here",
    ]
    assert [diagnostic.finding.help for diagnostic in diagnostics] == ["write `count: null`", "leave it out"]


def test_three_layers_are_laid_one_over_the_other() -> None:
    def pool(spec: str) -> tuple[Document, ...]:
        return documents("pool.yaml", f"kind: Pool\nmetadata: {{name: a}}\nspec: {spec}\n")

    first, _ = merge(pool("{a: 1, b: 1, c: 1}"), pool("{b: 2, c: 2}"))
    (second,), _ = merge(first, pool("{c: 3}"))
    assert second.data["spec"] == {"a": 1, "b": 2, "c": 3}
    assert len(second.layers) == 3


@given(DATA, DATA)
@example({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}})
@example({"a": [{"b": "c"}]}, {"a": [1]})
@example({"e": None}, {"a": 1})
@example([1, 2], {"a": "b", "c": None})
@example({}, {"a": {"bb": {"ccc": None}}})
def test_merges_as_rfc_7386_says(target: Any, patch: Any) -> None:
    (merged,), _ = laid_over_specs(target, patch)
    assert merged.data.get("spec") == merge_patch({"spec": target}, {"spec": patch}).get("spec")


@given(DATA)
def test_an_empty_patch_changes_nothing(target: Any) -> None:
    (merged,), _ = laid_over_specs({"x": target}, {})
    assert merged.data["spec"] == {"x": target}


@given(DATA, DATA)
def test_a_patch_laid_over_twice_changes_nothing_more(target: Any, patch: Any) -> None:
    once, _ = laid_over_specs(target, patch)
    twice, _ = merge(once, read_text("overlay.yaml", pool_text(patch))[0])
    assert twice[0].data == once[0].data


def laid_over_specs(target: Any, patch: Any) -> tuple[tuple[Document, ...], tuple[Diagnostic, ...]]:
    return merge(read_text("base.yaml", pool_text(target))[0], read_text("overlay.yaml", pool_text(patch))[0])


def pool_text(spec: Any) -> str:
    return write({"kind": "Pool", "metadata": {"name": "a"}, "spec": spec})


def merge_patch(target: Any, patch: Any) -> Any:
    """The pseudo code of RFC 7386, section 2, word for word."""
    if isinstance(patch, dict):
        if not isinstance(target, dict):
            target = {}
        target = dict(target)
        for name, value in patch.items():
            if value is None:
                if name in target:
                    del target[name]
            else:
                target[name] = merge_patch(target.get(name), value)
        return target
    return patch
