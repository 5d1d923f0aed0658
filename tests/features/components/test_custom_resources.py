"""Hand-written custom resources are judged by the definitions of the releases that run, built or as written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.pipeline import validate
from gpuplan.features.components.kustomize import find_program

CLUSTER = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: dev}
spec:
  kubernetes: "1.32"
  gpuOperator: {install: helm, version: %(operator)s}
  nodeLabels: node
  scheduler: {%(scheduler)s}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: whole}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8, names: [gpu-3]}
  sharing: {exclusive: {}}
"""
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
FILE = "overlays/dev/kustomize/workloads/object.yaml"

CLUSTER_QUEUE = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team}
spec:
  namespaceSelector: {}
  resourceGroup: []
"""
QUEUE = """\
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: team}
spec:
  resources:
    gpu: {quota: 8}
    memory: {quota: "800Gi"}
"""
DRIVER = """\
apiVersion: nvidia.com/v1alpha1
kind: NVIDIADriver
metadata: {name: default}
spec:
  driverType: gpu
  image: driver
  versionx: 1
"""
KIND_THAT_NOBODY_DEFINES = "apiVersion: example.com/v1\nkind: ClusterQueue\nmetadata: {name: a}\nspec: {whatever: 1}\n"


def judged(root: Path, text: str, program: str, *, operator: str = "v26.7.0", scheduler: str = "") -> list[Diagnostic]:
    """What is found of an object in a Component, with kustomize or without."""
    kustomization = f"{COMPONENT}resources: [object.yaml]\n"
    write(root, {"object.yaml": text, "kustomization.yaml": kustomization}, operator=operator, scheduler=scheduler)
    return misfits(root, program)


def write(root: Path, files: Mapping[str, str], *, operator: str = "v26.7.0", scheduler: str = "") -> None:
    """A platform with the files of a Component."""
    folder = (root / FILE).parent
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    (root / "overlays/dev/cluster.yaml").write_text(CLUSTER % {"operator": operator, "scheduler": scheduler})


def misfits(root: Path, program: str, crds: Path | None = None) -> list[Diagnostic]:
    return [item for item in validate(root, kustomize=program, crds=crds).diagnostics if item.code == "GPU683"]


def said(found: list[Diagnostic]) -> list[tuple[str, int, str]]:
    """Where it was found, and what."""
    places = [item.finding.at.locate() for item in found]
    return [
        (place.file.path, place.span.start.line, item.finding.label) for item, place in zip(found, places, strict=True)
    ]


@pytest.fixture(params=["", "off"], ids=["built", "as-written"])
def program(request: pytest.FixtureRequest) -> str:
    if not request.param and find_program("") is None:
        pytest.skip("neither kustomize nor kubectl is on the path")
    return str(request.param)


def test_a_misspelt_field_of_a_cluster_queue_is_found(tmp_path: Path, program: str) -> None:
    assert said(judged(tmp_path, CLUSTER_QUEUE, program)) == [(FILE, 6, "unknown field `resourceGroup`")]


def test_memory_as_text_in_a_queue_of_kai_is_found(tmp_path: Path, program: str) -> None:
    assert said(judged(tmp_path, QUEUE, program)) == [(FILE, 7, '"800Gi" is not of type "number"')]


QUOTA = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [nvidia.com/gpu]
      flavors:
        - name: spot
          resources:
            - name: nvidia.com/gpu
              nominalQuota: %s
"""


@pytest.mark.parametrize("number", ["1e99999999", "9" * 5_000, "-" + "9" * 5_000, ".inf", ".nan"])
def test_a_quota_that_is_no_finite_number_is_found(tmp_path: Path, number: str) -> None:
    assert said(judged(tmp_path, QUOTA % number, "off")) == [(FILE, 12, "the number is too large or none")]


def test_an_unknown_field_of_a_driver_is_found(tmp_path: Path, program: str) -> None:
    assert said(judged(tmp_path, DRIVER, program)) == [(FILE, 7, "unknown field `versionx`")]


def test_nothing_is_said_of_a_kind_that_is_not_known(tmp_path: Path, program: str) -> None:
    assert judged(tmp_path, KIND_THAT_NOBODY_DEFINES, program) == []


def test_queues_of_run_ai_are_its_own(tmp_path: Path, program: str) -> None:
    assert judged(tmp_path, QUEUE, program, scheduler="kind: runai") == []


# --- Releases ---------------------------------------------------------------------------------------------------------

SECRET_ENV = DRIVER.replace("versionx: 1", "secretEnv: proxy")
"""A field that NVIDIADrivers have since v25.10."""


@pytest.mark.parametrize(("operator", "labels"), [("v25.3.1", ["unknown field `secretEnv`"]), ("v25.10.0", [])])
def test_the_release_of_the_operator_decides_which_fields_there_are(
    tmp_path: Path, operator: str, labels: list[str]
) -> None:
    found = judged(tmp_path, SECRET_ENV, "off", operator=operator)
    assert [item.finding.label for item in found] == labels


def test_a_finding_names_the_release_that_it_judged_by(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, DRIVER, "off", operator="v26.3.1")
    assert found.finding.notes == (
        "GPU Operator v26.3.3; the object is judged as it is written, since it was not built",
    )


# --- Patches, where nothing is built ----------------------------------------------------------------------------------


def test_a_patch_is_judged_by_what_it_sets(tmp_path: Path) -> None:
    write(tmp_path, {"patch.yaml": CLUSTER_QUEUE, "kustomization.yaml": f"{COMPONENT}patches: [path: patch.yaml]\n"})
    assert [item.finding.label for item in misfits(tmp_path, "off")] == ["unknown field `resourceGroup`"]


def test_what_a_patch_may_add_is_not_missing(tmp_path: Path) -> None:
    incomplete = DRIVER.replace("  driverType: gpu\n", "").replace("  versionx: 1\n", "")
    patch = "- {op: add, path: /spec/driverType, value: gpu}\n"
    target = "patches: [{target: {kind: NVIDIADriver}, path: patch.yaml}]\n"
    kustomization = f"{COMPONENT}resources: [driver.yaml]\n{target}"
    write(tmp_path, {"driver.yaml": incomplete, "patch.yaml": patch, "kustomization.yaml": kustomization})
    assert misfits(tmp_path, "off") == []


# --- Definitions that are given ---------------------------------------------------------------------------------------


def test_definitions_that_are_given_go_first(tmp_path: Path) -> None:
    definitions = tmp_path / "definitions"
    definitions.mkdir()
    schema = "{type: object, properties: {spec: {type: object, properties: {versionx: {type: integer}}}}}"
    (definitions / "nvidiadrivers.yaml").write_text(
        "kind: CustomResourceDefinition\n"
        "spec:\n  group: nvidia.com\n  names: {kind: NVIDIADriver}\n"
        f"  versions: [{{name: v1alpha1, served: true, schema: {{openAPIV3Schema: {schema}}}}}]\n"
    )
    text = "apiVersion: nvidia.com/v1alpha1\nkind: NVIDIADriver\nmetadata: {name: a}\nspec: {versionx: %s}\n"
    write(tmp_path, {"object.yaml": text % "1", "kustomization.yaml": f"{COMPONENT}resources: [object.yaml]\n"})
    assert misfits(tmp_path, "off", definitions) == []
    (tmp_path / FILE).write_text(text % "a")
    (found,) = misfits(tmp_path, "off", definitions)
    assert found.finding.label == '"a" is not of type "integer"'
