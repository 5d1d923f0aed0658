"""Every folder of a tree is one that kustomize builds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from gpuplan.compiler.manifests import File, Manifest, render_tree
from gpuplan.compiler.manifests.kustomization import component_paths, kustomization_text, list_folders
from tests.kustomizing import kustomize
from tests.subjects import A_CLUSTER


def test_each_folder_lists_its_files_and_the_folders_right_below_it() -> None:
    assert list_folders(["a/x.yaml", "a/b/c/y.yaml", "z.yaml", "a/b.yaml"]) == {
        "": ["a", "z.yaml"],
        "a": ["b", "b.yaml", "x.yaml"],
        "a/b": ["c"],
        "a/b/c": ["y.yaml"],
    }


def test_a_folder_with_nothing_to_apply_is_listed_too() -> None:
    assert list_folders([], ["a/b"]) == {"": ["a"], "a": ["b"], "a/b": []}


def test_the_top_folder_is_always_there() -> None:
    assert list_folders([]) == {"": []}


def test_text() -> None:
    assert kustomization_text(["123", "a.yaml"], ["../c"]) == (
        "apiVersion: kustomize.config.k8s.io/v1beta1\n"
        "kind: Kustomization\n"
        "resources:\n"
        '- "123"\n'
        "- a.yaml\n"
        "components:\n"
        '- "../c"\n'
    )


def test_text_of_a_folder_with_nothing_to_apply_is_not_empty_to_kustomize() -> None:
    assert kustomization_text([]).endswith("\nresources: []\n")


def test_components_are_named_from_the_folder_that_includes_them() -> None:
    assert component_paths("out/dev/namespaces/a", ["overlays/dev/kustomize/namespaces"]) == (
        "../../../../overlays/dev/kustomize/namespaces",
    )
    assert component_paths("x/y/dev", ["overlays/a", "x/b"]) == ("../../../overlays/a", "../../b")


def test_the_way_to_a_component_from_outside_of_the_repository_names_its_root() -> None:
    assert component_paths("../abs/dev", ["overlays/a"], "/srv/fleet") == ("../../fleet/overlays/a",)
    assert component_paths("out/dev", ["overlays/a"], "/srv/fleet") == ("../../overlays/a",)


def a_namespace(name: str) -> Manifest:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    return Manifest(f"namespaces/{name}", body, about=A_CLUSTER, trace=None)


def a_config_map(folder: str, name: str, **data: str) -> Manifest:
    metadata = {"name": name, "namespace": "gpu-operator"}
    return Manifest(
        folder,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data},
        about=A_CLUSTER,
        trace=None,
    )


def built(folder: Path) -> list[str]:
    """What kustomize makes of a folder, as kinds and names."""
    objects = [found for found in yaml.safe_load_all(kustomize(folder)) if found]
    return [f"{found['kind']}/{found['metadata']['name']}" for found in objects]


def write(root: Path, tree: Mapping[str, bytes]) -> None:
    for path, data in tree.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)


def test_kustomize_builds_every_folder(tmp_path: Path) -> None:
    manifests = [a_namespace("on"), a_namespace("123"), a_config_map("scheduling", "a:b"), a_config_map("", "top")]
    files = [
        File("gpu-operator/values.yaml", b"a: 1\n", about=A_CLUSTER, trace=None),
        File("tables/deep/table.md", b"| a |\n", about=A_CLUSTER, trace=None),
    ]
    tree = render_tree("dev", manifests, files, {}).files
    write(tmp_path / "out", tree)
    folders = {path.parent for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert {str(folder.relative_to(tmp_path / "out/dev")): sorted(built(folder)) for folder in folders} == {
        ".": ["ConfigMap/a:b", "ConfigMap/top", "Namespace/123", "Namespace/on"],
        "gpu-operator": [],
        "namespaces": ["Namespace/123", "Namespace/on"],
        "namespaces/123": ["Namespace/123"],
        "namespaces/on": ["Namespace/on"],
        "scheduling": ["ConfigMap/a:b"],
        "tables": [],
        "tables/deep": [],
    }


COMPONENT = b"""\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
resources: [more.yaml]
patches:
- target: {kind: ConfigMap, name: a}
  patch: '[{"op": "add", "path": "/data/b", "value": "2"}]'
"""
MORE = b"{apiVersion: v1, kind: ConfigMap, metadata: {name: more}}"


def test_a_component_holds_whichever_folder_is_built(tmp_path: Path) -> None:
    component = "overlays/dev/kustomize/gpu-operator"
    write(tmp_path / component, {"kustomization.yaml": COMPONENT, "more.yaml": MORE})
    tree = render_tree("dev", [a_config_map("gpu-operator", "a", a="1")], [], {"gpu-operator": (component,)}).files
    write(tmp_path / "out", tree)
    for folder in ("out/dev", "out/dev/gpu-operator"):
        found = {body["metadata"]["name"]: body for body in yaml.safe_load_all(kustomize(tmp_path / folder))}
        assert found.keys() == {"a", "more"}
        assert found["a"]["data"] == {"a": "1", "b": "2"}


def test_a_folder_may_have_a_component_and_nothing_else(tmp_path: Path) -> None:
    component = "overlays/dev/kustomize/monitoring"
    write(tmp_path / component, {"kustomization.yaml": COMPONENT, "more.yaml": MORE})
    write(tmp_path / "out", render_tree("dev", [], [], {"monitoring": (component,)}).files)
    assert built(tmp_path / "out/dev") == built(tmp_path / "out/dev/monitoring") == ["ConfigMap/more"]


def test_kustomize_leaves_strings_what_they_are(tmp_path: Path) -> None:
    data = {"pci": "1e30", "answer": "y", "octal": "0o7", "lines": "a: 1\nb: y\n", "empty": "", "version": "1.10"}
    tree = render_tree("dev", [a_config_map("a", "x", **data)], [], {}).files
    write(tmp_path, tree)
    assert yaml.safe_load(kustomize(tmp_path / "dev"))["data"] == data
