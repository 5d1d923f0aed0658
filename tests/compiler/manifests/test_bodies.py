"""Objects as back ends make them."""

from __future__ import annotations

from gpuplan.compiler.manifests.bodies import config_map, digest, given, new_object


def test_an_object_begins_with_what_all_objects_have() -> None:
    body = new_object("v1", "Service", "web", "shop", labels={"a": "b"}, annotations={"c": "d"}, spec={"ports": []})
    assert list(body) == ["apiVersion", "kind", "metadata", "spec"]
    assert body["metadata"] == {"name": "web", "namespace": "shop", "labels": {"a": "b"}, "annotations": {"c": "d"}}
    assert list(body["metadata"]) == ["name", "namespace", "labels", "annotations"]


def test_an_object_of_the_cluster_has_no_namespace_and_none_has_empty_labels() -> None:
    assert new_object("v1", "Namespace", "shop", labels={}) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "shop"},
    }


def test_what_its_kind_has_is_written_also_where_it_is_empty() -> None:
    assert new_object("v1", "Cohort", "all", spec={})["spec"] == {}


def test_nothing_and_what_is_empty_is_left_out_and_zero_and_no_are_not() -> None:
    fields = given(nothing=None, text="", items=[], pair=(), fields={}, number=0, share=0.0, flag=False)
    assert fields == {"number": 0, "share": 0.0, "flag": False}


def test_a_config_maps_name_changes_with_its_content_alone() -> None:
    names = [config_map("a", "ns", data)["metadata"]["name"] for data in ({"x": "1", "y": "2"}, {"y": "2", "x": "1"})]
    assert names == [f"a-{digest({'x': '1', 'y': '2'})}"] * 2
    assert config_map("a", "ns", {"x": "1", "y": "3"})["metadata"]["name"] not in names
    assert config_map("a", "ns", {})["immutable"] is True
