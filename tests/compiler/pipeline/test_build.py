"""A build is a function of the policies: nothing else shows in its bytes, and nothing is built beside an error."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.pipeline import build, validate
from gpuplan.features.components.printing import print_stream

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    """A copy of the example platform."""
    for folder in ("policies", "overlays"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    return tmp_path


def test_same_input_gives_the_same_bytes(platform: Path) -> None:
    assert build(platform).tree == build(platform).tree


def test_names_of_files_and_order_of_documents_do_not_show(platform: Path) -> None:
    expected = build(platform).tree
    texts = [file.read_text() for file in sorted((platform / "policies").rglob("*.yaml"))]
    documents = [document for text in texts for document in text.split("\n---\n")]
    random.Random(0).shuffle(documents)
    shutil.rmtree(platform / "policies")
    (platform / "policies").mkdir()
    for index, document in enumerate(documents):
        (platform / "policies" / f"{index:02}.yml").write_text(document + "\n")
    assert build(platform).tree == expected


def test_output_does_not_depend_on_earlier_output(platform: Path) -> None:
    expected = build(platform).tree
    (platform / "out").mkdir()
    (platform / "out" / "dev").write_text("not a folder")
    assert build(platform).tree == expected


def test_one_cluster_is_built_as_it_is_among_all(platform: Path) -> None:
    whole = build(platform).tree
    own = ("dev/", "argocd/dev/", "flux/dev/")
    assert build(platform, ["dev"]).tree == {path: data for path, data in whole.items() if path.startswith(own)}


def test_error_in_one_cluster_builds_none(platform: Path) -> None:
    cluster = platform / "overlays" / "dev" / "cluster.yaml"
    cluster.write_text(cluster.read_text().replace("install: helm", "install: hellm"))
    built = build(platform)
    assert not built.report.is_valid
    assert built.tree == {}


def test_unknown_cluster_is_trouble_that_names_the_others(platform: Path) -> None:
    with pytest.raises(GpuplanError) as raised:
        validate(platform, ["stage"])
    assert raised.value.message == "no cluster `stage`: overlays/stage/ does not exist"
    assert raised.value.hint == "the clusters are `dev`, `openshift` and `prod`"


def test_repository_without_overlays_is_trouble(tmp_path: Path) -> None:
    with pytest.raises(GpuplanError, match="no cluster found"):
        validate(tmp_path)


def test_finding_of_several_clusters_is_said_once(platform: Path) -> None:
    file = platform / "policies" / "layouts.yaml"
    file.write_text(file.read_text().replace("3g.40gb: 2", "3g.40gb: 3"))
    report = validate(platform)
    errors = [(found.code, found.clusters) for found in report.diagnostics if found.is_error]
    assert ("GPU208", ("dev", "openshift", "prod")) in errors
    assert len([code for code, _ in errors if code == "GPU208"]) == 1


def test_stream_holds_every_object_and_nothing_else(platform: Path) -> None:
    built = build(platform, ["dev"])
    stream = print_stream(built).decode()
    assert stream.count("\n---\n") + 1 == len(built.objects)
    assert stream.count("\nkind: ") == len(built.objects)
    assert "kind: Kustomization" not in stream


def _nodes_rules(crds: Path, rules: str) -> Path:
    """A folder with a definition of NodeFeatureRule, of which ``rules`` is the schema of `spec.rules`."""
    crds.mkdir()
    (crds / "nodefeaturerules.yaml").write_text(
        f"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: nodefeaturerules.nfd.k8s-sigs.io}}
spec:
  group: nfd.k8s-sigs.io
  names: {{kind: NodeFeatureRule, plural: nodefeaturerules}}
  scope: Cluster
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {{type: object, properties: {{rules: {rules}}}}}
"""
    )
    return crds


def test_object_that_does_not_fit_a_given_definition_is_an_error(platform: Path, tmp_path: Path) -> None:
    built = build(platform, ["dev"], crds=_nodes_rules(tmp_path / "crds", "{type: string}"))
    (found,) = {(found.code, found.severity) for found in built.report.diagnostics}
    assert found == ("GPU690", "error")
    assert built.tree == {}


def test_what_does_not_fit_is_related_to_the_line_that_says_it(platform: Path, tmp_path: Path) -> None:
    label = '{"gpuplan.dev/pool": {type: string, maxLength: 10}}'
    fields = "name: {type: string}, labels: {type: object, additionalProperties: {type: string}, properties: %s}"
    rule = f"{{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {{{fields % label}}}}}"
    crds = _nodes_rules(tmp_path / "crds", f"{{type: array, items: {rule}}}")
    found = [item.finding for item in build(platform, ["dev"], crds=crds).report.diagnostics if item.code == "GPU690"]
    related = {(label.at.source.title, str(label.at)) for item in found for label in item.related}
    assert related == {("Pool a100-shared", "metadata.name")}


def test_a_definition_that_is_none_is_a_finding_and_nothing_is_built(platform: Path, tmp_path: Path) -> None:
    crds = tmp_path / "crds"
    crds.mkdir()
    (crds / "nodefeaturerules.yaml").write_text(
        "kind: CustomResourceDefinition\n"
        "spec: {group: nfd.k8s-sigs.io, names: {kind: NodeFeatureRule}, versions: [{name: v1alpha1, schema: 1}]}\n"
    )
    built = build(platform, ["dev"], crds=crds)
    assert [(item.code, item.finding.at.locate().file.path) for item in built.report.diagnostics if item.is_error] == [
        ("GPU913", os.path.relpath(crds / "nodefeaturerules.yaml", platform))
    ]
    assert built.tree == {}


def test_components_join_the_folders_that_they_are_for(platform: Path) -> None:
    kustomize = platform / "overlays/dev/kustomize"
    write_component(kustomize / "namespaces/research")
    write_component(kustomize / "namespaces")
    write_component(kustomize / "scheduling")

    tree = build(platform, ["dev"]).tree

    all_namespaces, research, scheduling = (
        f"overlays/dev/kustomize/{folder}" for folder in ("namespaces", "namespaces/research", "scheduling")
    )
    assert components(tree, "namespaces/research") == [f"../../../../{all_namespaces}", f"../../../../{research}"]
    assert components(tree, "namespaces/development") == [f"../../../../{all_namespaces}"]
    assert components(tree, "scheduling") == [f"../../../{scheduling}"]
    assert components(tree, "partitions") == []


def write_component(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kustomization.yaml").write_text("""\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {kind: Namespace}
  patch: '[{"op": "add", "path": "/metadata/labels/example.com~1team", "value": "a"}]'
""")


def components(tree: Mapping[str, bytes], folder: str) -> list[str]:
    found: list[str] = yaml.safe_load(tree[f"dev/{folder}/kustomization.yaml"]).get("components", [])
    return found
