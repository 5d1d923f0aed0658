"""What a cluster's objects and files become on the disk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.manifests import HEADER, RULES, File, Gvk, Identity, Manifest, object_path, render_tree
from gpuplan.compiler.manifests.tree import file_name
from tests.subjects import A_CLUSTER


def an_object(
    kind: str = "ConfigMap", name: str = "a", api: str = "v1", folder: str = "x", **metadata: Any
) -> Manifest:
    body = {"apiVersion": api, "kind": kind, "metadata": {"name": name, **metadata}}
    return Manifest(folder, body, is_foreign=True, about=A_CLUSTER, trace=None)


def render(*manifests: Manifest, files: tuple[File, ...] = ()) -> tuple[Mapping[str, bytes], tuple[Diagnostic, ...]]:
    tree = render_tree("dev", manifests, files, {})
    return tree.files, tree.diagnostics


def test_an_object_knows_what_it_is() -> None:
    role = an_object("Role", "edit", "rbac.authorization.k8s.io/v1", namespace="research")
    assert role.gvk == Gvk("rbac.authorization.k8s.io", "v1", "Role")
    assert role.identity == Identity("rbac.authorization.k8s.io", "Role", "research", "edit")
    assert str(role.identity) == "Role.rbac.authorization.k8s.io research/edit"
    assert str(an_object("Namespace", "a").identity) == "Namespace a"
    assert (role.kind, role.namespace, role.name) == ("Role", "research", "edit")


def test_an_object_that_no_policy_asks_for_says_why_it_is_there() -> None:
    body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "a"}}

    def second_line(**more: Any) -> str:
        return Manifest("", body, about=A_CLUSTER, trace=None, **more).text.splitlines()[1]

    usual = "# Why: Argo CD applies what a project allows, and nothing else; see docs/explanation/what-is-written.md"
    assert second_line() == f"{usual} of gpuplan"
    assert second_line(why="it is first; see docs/a.md") == "# Why: it is first; see docs/a.md of gpuplan"
    assert second_line(is_foreign=True) == "apiVersion: argoproj.io/v1alpha1"


def test_every_object_is_a_file_and_every_folder_has_a_kustomization() -> None:
    tree, diagnostics = render(an_object("ResourceQuota", "gpu", folder="namespaces/research"))
    assert diagnostics == ()
    assert {path: data.decode() for path, data in tree.items()} == {
        "dev/namespaces/research/resourcequota-gpu.yaml": HEADER
        + "apiVersion: v1\nkind: ResourceQuota\nmetadata:\n  name: gpu\n",
        "dev/kustomization.yaml": HEADER
        + "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- namespaces\n",
        "dev/namespaces/kustomization.yaml": HEADER
        + "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- research\n",
        "dev/namespaces/research/kustomization.yaml": HEADER
        + "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- resourcequota-gpu.yaml\n",
    }


def test_a_file_is_written_as_it_is_and_not_applied() -> None:
    tree, _ = render(files=(File("g/values.yaml", b"\xff", about=A_CLUSTER, trace=None),))
    assert tree["dev/g/values.yaml"] == b"\xff"
    assert yaml.safe_load(tree["dev/g/kustomization.yaml"])["resources"] == []


def test_what_is_applied_is_listed_in_the_order_in_which_it_came() -> None:
    files = (File("g/values.yaml", b"", about=A_CLUSTER, trace=None),)
    tree = render_tree("dev", [an_object(name="b"), an_object(name="a")], files, {})
    assert tree.objects == ("dev/x/configmap-b.yaml", "dev/x/configmap-a.yaml")


def test_no_kustomization_sets_a_namespace() -> None:
    """It would do so for cluster-wide custom resources too."""
    tree, _ = render(an_object(namespace="a"))
    assert all(
        "namespace" not in yaml.safe_load(data) for path, data in tree.items() if path.endswith("kustomization.yaml")
    )


def test_order_of_objects_does_not_matter() -> None:
    objects = [
        an_object(name=f"{name}{n}", folder=folder) for name in "abc" for n, folder in enumerate(["x", "y/z", ""])
    ]
    assert sorted(render(*objects)[0].items()) == sorted(render(*reversed(objects))[0].items())


def test_an_object_that_comes_twice_is_a_finding_that_names_it() -> None:
    tree, diagnostics = render(an_object(labels={"is": "first"}), an_object(labels={"is": "second"}))
    assert [(found.code, found.finding.message) for found in diagnostics] == [
        ("GPU911", "ConfigMap a is written twice")
    ]
    assert diagnostics[0].clusters == ("dev",)
    assert diagnostics[0].finding.at.locate().file.path == "out/dev/x/configmap-a.yaml"
    assert b"is: first" in tree["dev/x/configmap-a.yaml"]


def test_an_object_that_comes_twice_in_different_folders_is_a_finding_that_names_both() -> None:
    _, diagnostics = render(an_object(folder="x"), an_object(folder="y"))
    related = [label.at.locate().file.path for label in diagnostics[0].finding.related]
    assert related == ["out/dev/y/configmap-a.yaml"]


def test_another_version_of_a_group_is_the_same_object() -> None:
    _, diagnostics = render(an_object(api="g.io/v1"), an_object(api="g.io/v2"))
    assert [found.code for found in diagnostics] == ["GPU911"]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (an_object(namespace="b"), "ConfigMap a and ConfigMap b/a claim one file"),
        (an_object(api="example.com/v1"), "ConfigMap a and ConfigMap.example.com a claim one file"),
    ],
)
def test_two_objects_for_one_file_are_a_finding_that_names_both(other: Manifest, message: str) -> None:
    tree, diagnostics = render(an_object(), other)
    assert [(found.code, found.finding.message) for found in diagnostics] == [("GPU912", message)]
    assert b"namespace" not in tree["dev/x/configmap-a.yaml"]


@pytest.mark.parametrize("path", ["x/configmap-a.yaml", "x/kustomization.yaml", "kustomization.yaml"])
def test_a_plain_file_does_not_take_the_name_of_another(path: str) -> None:
    tree, diagnostics = render(an_object(), files=(File(path, b"mine", about=A_CLUSTER, trace=None),))
    assert [found.code for found in diagnostics] == ["GPU912"]
    assert len(tree) == 3


def test_the_same_name_in_two_namespaces_is_two_files_in_two_folders() -> None:
    _, diagnostics = render(an_object(namespace="a", folder="a"), an_object(namespace="b", folder="b"))
    assert diagnostics == ()


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("ConfigMap", "gpu-config", "configmap-gpu-config.yaml"),
        ("Role", "a.b-c", "role-a.b-c.yaml"),
        ("ClusterRole", "gpuplan:view", "clusterrole-gpuplan-view-06129927.yaml"),
        ("ClusterRole", "gpuplan-view", "clusterrole-gpuplan-view.yaml"),
        ("Role", "Admin", "role-admin-c1c224b0.yaml"),
        ("Role", "a/../../b", "role-a-b-feddf167.yaml"),
    ],
)
def test_file_names_are_kind_and_name_where_that_is_portable(kind: str, name: str, expected: str) -> None:
    assert file_name(kind, name) == expected


names = st.text() | st.text("aA:.-/", min_size=1) | st.text("a", min_size=100, max_size=253)


@given(names, names)
def test_file_names_are_portable_and_differ_when_names_do(one: str, other: str) -> None:
    portable = re.compile(r"[a-z0-9][a-z0-9.-]{0,136}\.yaml")
    assert portable.fullmatch(file_name("ValidatingAdmissionPolicyBinding", one))
    assert (file_name("Role", one) == file_name("Role", other)) is (one == other)


def test_the_path_of_an_object_is_where_its_file_is() -> None:
    manifest = an_object(folder="namespaces/a")
    assert f"dev/{object_path(manifest)}" in render(manifest)[0]
    assert object_path(an_object(folder="")) == "configmap-a.yaml"


def test_rules_have_a_page() -> None:
    assert [rule.code for rule in RULES] == ["GPU911", "GPU912", "GPU913"]
    assert all("## Why\n" in rule.docs and "## Instead\n" in rule.docs for rule in RULES)
