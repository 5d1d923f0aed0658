"""What an API server and other programs make of what is written, and what is a difference all the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from gpuplan.compiler.base.trees import ABSENT
from gpuplan.compiler.manifests import Gvk
from gpuplan.compiler.manifests.merging.applied import Difference, as_found, differences
from gpuplan.compiler.manifests.merging.shape import Shape
from gpuplan.compiler.manifests.shapes import shape_of
from gpuplan.features.live.drifting.comparing.owners import find_owner, left_fields

POD = shape_of(Gvk("apps", "v1", "Deployment"), "1.34").field("spec").field("template").field("spec")
QUEUE = shape_of(Gvk("kueue.x-k8s.io", "v1beta2", "ClusterQueue"), "1.34").field("spec")
POLICY = shape_of(Gvk("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"), "1.34").field("spec")
QUOTA = shape_of(Gvk("", "v1", "ResourceQuota"), "1.34").field("spec")
FILES = shape_of(Gvk("", "v1", "ConfigMap"), "1.34")
METADATA = shape_of(Gvk("", "v1", "Namespace"), "1.34").field("metadata")
SELECTOR = {"matchLabels": {"a": "b"}}

SAME: Sequence[tuple[str, Shape, Mapping[str, Any], Mapping[str, Any]]] = [
    ("fields of others", POD, {"hostname": "a"}, {"hostname": "a", "dnsPolicy": "ClusterFirst"}),
    ("quantities", QUOTA, {"hard": {"a": "1", "b": "1k", "c": 1}}, {"hard": {"a": "1000m", "b": "1000", "c": "1"}}),
    ("quantities of custom kinds", QUEUE.field("fairSharing"), {"weight": "1"}, {"weight": 1}),
    ("what is empty", POD, {"tolerations": [], "nodeSelector": {}, "hostname": ""}, {}),
    (
        "containers in another order, and more",
        POD,
        {"containers": [{"name": "a", "image": "x"}]},
        {"containers": [{"name": "sidecar"}, {"name": "a", "image": "x", "imagePullPolicy": "Always"}]},
    ),
    (
        "ports without a protocol",
        POD,
        {"containers": [{"name": "a", "ports": [{"containerPort": 1}]}]},
        {"containers": [{"name": "a", "ports": [{"containerPort": 1, "protocol": "TCP"}]}]},
    ),
    (
        "defaults in what is applied as a whole",
        POLICY,
        {"matchConstraints": {"resourceRules": [{"resources": ["pods"]}]}},
        {
            "matchConstraints": {
                "resourceRules": [{"resources": ["pods"], "scope": "*"}],
                "matchPolicy": "Equivalent",
                "objectSelector": {},
            }
        },
    ),
    ("finalizers of others", METADATA, {"finalizers": ["a"]}, {"finalizers": ["b", "a"]}),
]


@pytest.mark.parametrize(("name", "shape", "written", "live"), SAME, ids=[case[0] for case in SAME])
def test_it_is_the_same(name: str, shape: Shape, written: Mapping[str, Any], live: Mapping[str, Any]) -> None:
    assert list(differences(written, live, shape)) == []
    assert as_found(written, live, shape) == written


OTHER: Sequence[tuple[str, Shape, Mapping[str, Any], Mapping[str, Any], tuple[str | int, ...]]] = [
    ("a quantity", QUOTA, {"hard": {"a": "1"}}, {"hard": {"a": "1001m"}}, ("hard", "a")),
    ("a text that is a number elsewhere", METADATA, {"labels": {"a": "1"}}, {"labels": {"a": "1.0"}}, ("labels", "a")),
    ("a truth", POD, {"hostNetwork": True}, {"hostNetwork": False}, ("hostNetwork",)),
    ("one for a truth", POD, {"priority": 1}, {"priority": True}, ("priority",)),
    ("a value that is gone", POD, {"hostname": "a"}, {}, ("hostname",)),
    (
        "a container that is gone",
        POD,
        {"containers": [{"name": "a"}, {"name": "b"}]},
        {"containers": [{"name": "a"}]},
        ("containers", 1),
    ),
    (
        "a port of another protocol",
        POD,
        {"containers": [{"name": "a", "ports": [{"containerPort": 1}]}]},
        {"containers": [{"name": "a", "ports": [{"containerPort": 1, "protocol": "UDP"}]}]},
        ("containers", 0, "ports", 0),
    ),
    (
        "one toleration more",
        POD,
        {"tolerations": [{"key": "a"}]},
        {"tolerations": [{"key": "a"}, {"key": "b"}]},
        ("tolerations",),
    ),
    (
        "more in a toleration",
        POD,
        {"tolerations": [{"key": "a"}]},
        {"tolerations": [{"key": "a", "effect": "NoExecute"}]},
        ("tolerations", 0, "effect"),
    ),
    (
        "more in a selector",
        QUEUE,
        {"namespaceSelector": SELECTOR},
        {"namespaceSelector": {**SELECTOR, "matchExpressions": [{"key": "c", "operator": "Exists"}]}},
        ("namespaceSelector", "matchExpressions"),
    ),
    (
        "more in a selector of nodes",
        POD,
        {"nodeSelector": {"a": "b"}},
        {"nodeSelector": {"a": "b", "c": "d"}},
        ("nodeSelector", "c"),
    ),
    ("a finalizer that is gone", METADATA, {"finalizers": ["a"]}, {"finalizers": ["b"]}, ("finalizers", 0)),
    (
        "a value in a text",
        FILES,
        {"data": {"f": "a:\n  b: 1\n"}},
        {"data": {"f": "a:\n  b: 2\n"}},
        ("data", "f", "a", "b"),
    ),
    ("a comment in a text", FILES, {"data": {"f": "a: 1\n"}}, {"data": {"f": "# x\na: 1\n"}}, ("data", "f")),
]


@pytest.mark.parametrize(("name", "shape", "written", "live", "route"), OTHER, ids=[case[0] for case in OTHER])
def test_it_differs(
    name: str, shape: Shape, written: Mapping[str, Any], live: Mapping[str, Any], route: tuple[str | int, ...]
) -> None:
    assert [found.route for found in differences(written, live, shape)] == [route]
    assert json.dumps(as_found(written, live, shape)) != json.dumps(written)


def test_a_text_is_told_by_its_line() -> None:
    written, live = ({"data": {"f": text}} for text in ("a: 1\nb: 2\n# c\n", "a: 1\nb: 2\n# d\n"))

    assert list(differences(written, live, FILES)) == [Difference(("data", "f"), ("data", "f"), "# c", "# d", 3)]


def test_an_item_has_its_place_on_both_sides() -> None:
    written = {"containers": [{"name": "a", "image": "x"}]}
    live = {"containers": [{"name": "sidecar"}, {"name": "a", "image": "y"}]}

    [found] = differences(written, live, POD)

    assert (found.route, found.live_route) == (("containers", 0, "image"), ("containers", 1, "image"))


def test_durations_of_custom_kinds_are_compared_by_value() -> None:
    shape = Shape({"properties": {"after": {"type": "string"}}}, {})

    assert list(differences({"after": "10m"}, {"after": "10m0s"}, shape)) == []
    assert list(differences({"after": "10m"}, {"after": "11m0s"}, shape)) != []


# --- Owners --------------------------------------------------------------------------------------------------------


def owned(manager: str, operation: str, fields: Mapping[str, Any], time: str = "2026-11-24T01:00:00Z") -> Any:
    return {"manager": manager, "operation": operation, "time": time, "fieldsV1": fields}


ARGOCD = owned(
    "argocd-controller",
    "Apply",
    {
        "f:metadata": {"f:annotations": {"f:argocd.argoproj.io/tracking-id": {}, "f:note": {}}},
        "f:spec": {"f:hard": {"f:a": {}, "f:b": {}}},
    },
)
LIVE = {
    "metadata": {
        "annotations": {"argocd.argoproj.io/tracking-id": "x", "note": "y"},
        "managedFields": [ARGOCD, owned("kubectl-edit", "Update", {"f:spec": {"f:hard": {"f:a": {}}}})],
    },
    "spec": {"hard": {"a": "1", "b": "2"}},
}


def test_who_changed_a_field_comes_before_who_applied_it() -> None:
    found = find_owner(LIVE, ("spec", "hard", "a"))

    assert found is not None
    assert (found.manager, found.is_last) == ("kubectl-edit", False)


def test_of_a_field_that_nobody_owns_the_last_to_write_is_told() -> None:
    found = find_owner(LIVE, ("spec", "hard", "c"))

    assert found is not None
    assert (found.manager, found.is_last) == ("kubectl-edit", True)


def test_without_managed_fields_nobody_is_told() -> None:
    assert find_owner({"metadata": {}, "spec": {"hard": {"a": "1"}}}, ("spec", "hard", "a")) is None


def test_what_was_applied_and_is_written_no_more_is_a_difference() -> None:
    written = {"metadata": {"annotations": {}}, "spec": {"hard": {"a": "1"}}}
    shape = shape_of(Gvk("", "v1", "ResourceQuota"), "1.34")

    found = list(left_fields(written, LIVE, shape))

    assert [(one.route, one.written, one.live) for one in found] == [
        (("metadata", "annotations", "note"), ABSENT, "y"),
        (("spec", "hard", "b"), ABSENT, "2"),
    ]


def test_a_container_that_was_applied_and_is_written_no_more() -> None:
    fields: dict[str, Any] = {
        "f:containers": {'k:{"name":"a"}': {".": {}, "f:name": {}}, 'k:{"name":"b"}': {".": {}, "f:name": {}}}
    }
    live = {
        "containers": [{"name": "a"}, {"name": "b"}],
        "metadata": {"managedFields": [owned("argocd-controller", "Apply", fields)]},
    }

    [found] = left_fields({"containers": [{"name": "a"}]}, live, POD)

    assert (found.live_route, found.live) == (("containers", 1), {"name": "b"})


def test_what_flux_applies_beside_what_is_written_is_no_difference() -> None:
    port: dict[str, Any] = {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:protocol": {}}}
    fields = {"f:spec": {"f:ports": port}}
    live = {
        "metadata": {"managedFields": [owned("kustomize-controller", "Apply", fields)]},
        "spec": {"ports": [{"port": 80, "protocol": "TCP"}]},
    }
    assert (
        list(left_fields({"spec": {"ports": [{"port": 80}]}}, live, shape_of(Gvk("", "v1", "Service"), "1.34"))) == []
    )

    space = {
        "metadata": {"managedFields": [owned("kustomize-controller", "Apply", {"f:spec": {}})]},
        "spec": {"finalizers": ["kubernetes"]},
    }
    assert list(left_fields({}, space, shape_of(Gvk("", "v1", "Namespace"), "1.34"))) == []


def test_a_selector_of_nodes_that_was_applied_and_is_written_no_more() -> None:
    live = {
        "metadata": {"managedFields": [owned("kustomize-controller", "Apply", {"f:nodeSelector": {}})]},
        "nodeSelector": {"a": "b"},
    }

    [found] = left_fields({}, live, POD)

    assert (found.route, found.live) == (("nodeSelector",), {"a": "b"})


def test_a_key_of_a_field_that_nests_without_end_names_no_item() -> None:
    fields: dict[str, Any] = {"f:containers": {"k:" + "[" * 100_000: {"f:name": {}}}}
    live = {
        "containers": [{"name": "a"}, {"name": "b"}],
        "metadata": {"managedFields": [owned("argocd-controller", "Apply", fields)]},
    }

    assert list(left_fields({"containers": [{"name": "a"}]}, live, POD)) == []
