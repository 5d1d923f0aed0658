"""What kustomize makes of hand-written Components is judged, and decides nothing of what is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.backends.workloads import pods
from gpuplan.compiler.base.diagnostics import Diagnostic, GpuplanError
from gpuplan.compiler.pipeline import Report, build, validate
from gpuplan.features.components.kustomize import MARK, bundle as make_bundle
from tests.kustomizing import kustomize, need

CLUSTER = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: dev}
spec: # gpuplan: ignore[GPU425] all pods there are tenants'
  kubernetes: "1.34"
  gpuOperator: {install: helm, version: v26.7.0}
  nodeLabels: node
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: shared}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8, names: [gpu-1, gpu-2]}
  sharing: {timeSlicing: {replicas: 2}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: whole}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8, names: [gpu-3]}
  sharing: {exclusive: {}}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: research}
spec: {value: 100}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: science}
spec:
  namespaces: [research, training]
  priorityClasses: [research]
  quotas:
    - {pool: shared, guaranteed: 16, split: {research: 8, training: 8}}
    - {pool: whole, guaranteed: 8, split: {research: 4, training: 4}}
"""
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
NOTES = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes, namespace: monitoring}\ndata: {a: b}\n"
QUOTA = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: gpuplan, namespace: training}\nspec: {hard: {}}\n"
MORE_PODS = """\
patches:
  - target: {kind: ResourceQuota}
    patch: |
      - {op: add, path: /spec/hard/pods, value: "50"}
"""
FEWER_GPUS = """\
patches:
  - target: {kind: ResourceQuota}
    patch: |
      - {op: add, path: /spec/hard/requests.nvidia.com~1gpu, value: "1"}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "overlays/dev/cluster.yaml", CLUSTER)
    return tmp_path


@pytest.fixture
def _needs_kustomize() -> None:
    need()


needs_kustomize = pytest.mark.usefixtures("_needs_kustomize")


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def component(root: Path, folder: str, rest: str, **files: str) -> None:
    home = root / "overlays/dev/kustomize" / folder
    write(home / "kustomization.yaml", COMPONENT + rest)
    for name, text in files.items():
        write(home / f"{name}.yaml", text)


def program(folder: Path, name: str, script: str) -> str:
    write(folder / name, f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return str(folder / name)


def codes(report: Report) -> list[str]:
    return [item.code for item in report.diagnostics if item.severity != "note"]


def only(report: Report, code: str) -> Diagnostic:
    [found] = [item for item in report.diagnostics if item.code == code]
    return found


def text_of(found: Diagnostic) -> str:
    return " ".join((found.finding.message, found.finding.label, *found.finding.notes, found.finding.help))


# --- Every stage -------------------------------------------------------------------------------------------------


@needs_kustomize
@pytest.mark.parametrize(
    ("component_folder", "folders"),
    [
        ("gpu-operator", ["gpu-operator"]),
        ("partitions", ["partitions/shared", "partitions/whole"]),
        ("partitions/whole", ["partitions/whole"]),
        ("scheduling", ["scheduling"]),
        ("namespaces", ["namespaces/research", "namespaces/training"]),
        ("namespaces/research", ["namespaces/research"]),
    ],
)
def test_a_component_changes_the_objects_of_its_folders(root: Path, component_folder: str, folders: list[str]) -> None:
    component(root, component_folder, "labels:\n  - pairs: {example.com/team: science}\n")

    built = build(root)

    assert codes(built.report) == []
    for path, data in built.tree.items():
        write(root / "out" / path, data.decode())
    including = sorted(
        path.parent.relative_to(root / "out/dev").as_posix()
        for path in (root / "out").rglob("kustomization.yaml")
        if "components" in yaml.safe_load(path.read_text())
    )
    assert including == folders
    assert {label for folder in folders for label in teams(root / "out/dev" / folder)} == {"science"}


@needs_kustomize
@pytest.mark.parametrize("folder", ["monitoring", "workloads"])
def test_a_component_of_a_stage_without_objects_brings_its_own(root: Path, folder: str) -> None:
    component(root, folder, "resources: [notes.yaml]\nlabels:\n  - pairs: {example.com/team: science}\n", notes=NOTES)

    built = build(root)

    assert codes(built.report) == []
    for path, data in built.tree.items():
        write(root / "out" / path, data.decode())
    assert teams(root / "out/dev" / folder) == ["science"]


def teams(folder: Path) -> list[Any]:
    bodies = [body for body in yaml.safe_load_all(kustomize(folder)) if body]
    return [body["metadata"].get("labels", {}).get("example.com/team") for body in bodies]


@needs_kustomize
@pytest.mark.parametrize(
    "folder", ["gpu-operator", "partitions", "partitions/whole", "scheduling", "namespaces", "namespaces/research"]
)
def test_what_a_component_makes_of_objects_is_checked_in_every_stage(root: Path, folder: str) -> None:
    component(
        root,
        folder,
        "patches:\n  - target: {kind: Namespace|Node}\n"
        "    patch: |\n      - {op: add, path: /metadata/labels/example.com~1level, value: 1}\n",
    )
    found = only(validate(root), "GPU683")
    assert found.finding.label == '1 is not of types "null", "string"'
    assert found.finding.at.locate().file.path == f"overlays/dev/kustomize/{folder}/kustomization.yaml"


@needs_kustomize
def test_what_a_component_adds_is_checked(root: Path) -> None:
    component(root, "monitoring", "resources: [notes.yaml]\n", notes=NOTES.replace("a: b", "a: 1"))
    found = only(validate(root), "GPU683")
    assert found.finding.message.endswith('does not fit its schema: `data.a`: 1 is not of types "null", "string"')
    location = found.finding.at.locate()
    assert (location.file.path, location.span.start.line) == ("overlays/dev/kustomize/monitoring/notes.yaml", 4)


@needs_kustomize
def test_custom_resources_are_checked_against_the_definitions_given(root: Path) -> None:
    folder = root / "definitions"
    write(
        folder / "rule.yaml",
        """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: notes.example.com}
spec:
  group: example.com
  names: {kind: Note, plural: notes}
  scope: Cluster
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}
""",
    )
    note = "apiVersion: example.com/v1\nkind: Note\nmetadata: {name: a}\nspec: text\n"
    component(root, "workloads", "resources: [note.yaml]\n", note=note)
    assert codes(build(root).report) == []
    assert codes(build(root, crds=folder).report) == ["GPU683"]


# --- Findings of the result and of the files themselves ----------------------------------------------------------


@needs_kustomize
def test_what_is_alike_in_several_folders_is_said_once(root: Path) -> None:
    component(root, "namespaces", FEWER_GPUS)
    found = only(validate(root), "GPU687")
    assert found.finding.message == ("generated ResourceQuota research/gpuplan gets another `requests.nvidia.com/gpu`")
    assert found.finding.notes[-1] == "the same is found 1 time more"


@needs_kustomize
def test_what_was_said_of_a_patch_is_not_said_of_its_result(root: Path) -> None:
    component(root, "namespaces", MORE_PODS.replace("pods", "limits.nvidia.com~1gpu").replace("50", "1"))
    assert codes(validate(root)) == ["GPU620"]


@needs_kustomize
def test_neither_is_what_a_comment_ignores(root: Path) -> None:
    quota = MORE_PODS.replace("pods", "limits.nvidia.com~1gpu")
    comment = "# gpuplan: ignore[GPU620] counted by another scheduler"
    component(root, "namespaces", quota.replace("    patch:", f"    {comment}\n    patch:"))
    assert codes(validate(root)) == []


@needs_kustomize
def test_a_check_on_objects_finds_what_only_the_result_shows(root: Path) -> None:
    """JSON is not read as a hand-written file."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "more", "namespace": "other"},
        "spec": {"hard": {"limits.nvidia.com/gpu": "1"}},
    }
    component(root, "workloads", "resources: [quota.json]\n")
    write(root / "overlays/dev/kustomize/workloads/quota.json", json.dumps(quota))
    found = only(validate(root), "GPU620")
    assert found.finding.message == "`limits.nvidia.com/gpu` in ResourceQuota `more` caps nothing"


@needs_kustomize
def test_a_comment_in_a_component_says_that_a_change_is_meant(root: Path) -> None:
    ignored = FEWER_GPUS.replace("  - target", "  # gpuplan: ignore[GPU687] agreed with the team\n  - target")
    component(root, "namespaces", ignored)
    assert codes(validate(root)) == []


@needs_kustomize
def test_a_comment_that_nothing_needs_is_found_where_results_are_known(root: Path) -> None:
    component(root, "namespaces", "# gpuplan: ignore[GPU687] agreed with the team\n" + MORE_PODS)
    assert codes(validate(root)) == ["GPU112"]
    assert codes(validate(root, kustomize="off")) == []


@needs_kustomize
def test_what_follows_from_what_a_comment_ignores_is_not_said_of_the_result(root: Path) -> None:
    ignoring = "# gpuplan: ignore[GPU642] agreed\nnamePrefix: x-\nresources: [notes.yaml]\n"
    component(root, "workloads", ignoring, notes=NOTES)
    assert codes(validate(root)) == []


@needs_kustomize
def test_an_ignored_prefix_renames_what_it_says_it_does(root: Path) -> None:
    component(root, "namespaces/research", "# gpuplan: ignore[GPU642] agreed\nnamePrefix: x-\n")
    assert codes(validate(root)) == []


@needs_kustomize
def test_a_file_of_a_generator_is_judged_in_the_file(root: Path) -> None:
    config = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n      - {name: nvidia.com/gpu, replicas: 1}\n"
    comment = "      # gpuplan: ignore[GPU630] switched off\n      - {name"
    unread = "  # gpuplan: ignore[GPU638] another repository's device plugin reads it\n"
    generator = f"configMapGenerator:\n{unread}  - {{name: shares, files: [any=shares.yaml]}}\n"
    component(root, "gpu-operator", generator, shares=config)
    found = only(validate(root), "GPU630").finding.at.locate()
    assert (found.file.path.rpartition("/")[2], found.span.start.line) == ("shares.yaml", 5)
    component(root, "gpu-operator", generator, shares=config.replace("      - {name", comment))
    assert codes(validate(root)) == []


@needs_kustomize
def test_a_container_that_a_patch_adds_is_judged_once(root: Path) -> None:
    """It comes to stand behind the others."""
    head = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: other}\nspec:\n  containers:\n"
    pod = f"{head}    - {{name: a, image: a:1}}\n"
    limits = "{nvidia.com/other: 1, nvidia.com/mig-9g.1gb: 1}"
    patch = f"{head}    - {{name: b, image: b:1, resources: {{limits: {limits}}}}}\n"
    component(root, "workloads", "resources: [pod.yaml]\npatches: [{path: patch.yaml}]\n", pod=pod, patch=patch)
    assert codes(validate(root)) == ["GPU635"]


ON_A_NODE = """\
patches:
  - target: {kind: Deployment}
    patch: |
      - {op: add, path: /spec/template/spec/nodeName, value: gpu-1}
"""
WORK = """\
---
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {name: chat}
spec:
  tenant: science
  namespace: research
  pool: whole
  image: example.com/app:1
  inference: {replicas: 2}
"""


@needs_kustomize
@pytest.mark.parametrize(
    ("rest", "rule"), [("commonAnnotations: {cdi.k8s.io/a: b}\n", "no-cdi-annotations"), (ON_A_NODE, "no-node-name")]
)
def test_admission_judges_what_a_component_makes_of_a_workload(root: Path, rest: str, rule: str) -> None:
    write(root / "overlays/dev/work.yaml", WORK)
    component(root, "workloads/research", rest)
    assert rule in text_of(only(validate(root), "GPU422"))


def test_a_rule_that_no_field_of_a_workload_decides_is_asked_before_anything_is_written(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None refuses what is written today: the pods are made wrong here."""
    write(root / "overlays/dev/work.yaml", WORK)
    monkeypatch.setattr(pods, "_placement", lambda *_: {"nodeSelector": {"gpuplan.dev/pool": "elsewhere"}})
    assert codes(validate(root)) == []

    made = build(root)
    found = only(made.report, "GPU423")
    assert "rule `pool-is-granted`" in text_of(found)
    assert found.finding.at.locate().file.path == "overlays/dev/work.yaml"
    assert not made.tree


# --- What a build needs ------------------------------------------------------------------------------------------


@needs_kustomize
def test_kustomizations_of_the_whole_repository_can_be_included(root: Path) -> None:
    component(root, "workloads", "resources: [../../../../shared]\n")
    write(root / "shared/kustomization.yaml", "resources: [notes.yaml]\n")
    write(root / "shared/notes.yaml", NOTES.replace("a: b", "a: 1"))
    assert codes(validate(root)) == ["GPU683"]


def test_what_is_missing_far_from_the_component_is_found_there(root: Path) -> None:
    component(root, "workloads", "resources: [../../../../shared]\n")
    write(root / "shared/kustomization.yaml", "resources:\n  - notes.yaml\n")
    location = only(validate(root), "GPU681").finding.at.locate()
    assert (location.file.path, location.span.start.line) == ("shared/kustomization.yaml", 2)


def test_what_needs_a_network_is_not_built(root: Path, tmp_path: Path) -> None:
    failing = program(tmp_path / "bin", "kustomize", "exit 1")
    component(root, "workloads", "resources: [../../../../shared]\n")
    write(root / "shared/kustomization.yaml", "resources:\n  - https://example.com/notes.yaml\n")
    report = validate(root, kustomize=failing)
    assert codes(report) == ["GPU644"]
    assert only(report, "GPU644").finding.at.locate().file.path == "shared/kustomization.yaml"


@needs_kustomize
def test_output_folder_may_lie_outside_of_the_repository(root: Path) -> None:
    component(root, "namespaces", MORE_PODS)
    assert codes(build(root, out="../elsewhere/out").report) == []


# --- Many folders ------------------------------------------------------------------------------------------------


@needs_kustomize
def test_namespaces_built_together_come_out_as_they_do_alone(root: Path, tmp_path: Path) -> None:
    for path, data in build(root).tree.items():
        write(root / "out" / path, data.decode())
    folders = {name: root / "out/dev/namespaces" / name for name in ("research", "training")}
    together: dict[str, list[Any]] = {name: [] for name in folders}
    for body in yaml.safe_load_all(kustomize(make_bundle(tmp_path / "bundle", folders))):
        together[body["metadata"]["annotations"].pop(MARK)].append(body)
    assert together == {name: list(yaml.safe_load_all(kustomize(folder))) for name, folder in folders.items()}


@needs_kustomize
def test_of_folders_built_together_only_the_one_at_fault_is_refused(root: Path) -> None:
    component(root, "namespaces", MORE_PODS)
    component(root, "namespaces/training", "resources: [quota.yaml]\n", quota=QUOTA)
    found = only(validate(root), "GPU681")
    assert found.finding.message == "ResourceQuota training/gpuplan is in `namespaces/training` twice"


@needs_kustomize
def test_one_object_in_two_of_them_is_found(root: Path) -> None:
    component(root, "namespaces/research", "resources: [notes.yaml]\n", notes=NOTES)
    component(root, "namespaces/training", "resources: [notes.yaml]\n", notes=NOTES)
    found = only(validate(root), "GPU682")
    assert found.finding.label == "in `namespaces/research` and `namespaces/training`"


# --- The program -------------------------------------------------------------------------------------------------


def test_without_a_program_one_warning_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    component(root, "namespaces", FEWER_GPUS)
    component(root, "scheduling", "labels:\n  - pairs: {example.com/team: science}\n")
    expected = build(root, kustomize="off").tree
    monkeypatch.setenv("PATH", "")
    built = build(root)
    assert codes(built.report) == ["GPU680"]
    assert built.tree == expected


def test_without_components_there_is_nothing_to_warn_of(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert codes(build(root).report) == []


def test_a_program_that_does_not_exist_is_trouble(root: Path) -> None:
    component(root, "namespaces", MORE_PODS)
    with pytest.raises(GpuplanError) as raised:
        validate(root, kustomize="kustomise")
    assert raised.value.message == "cannot run `kustomise`: there is no such program"


@pytest.mark.parametrize(("name", "verb"), [("kustomize", "build"), ("kubectl", "kustomize")])
def test_each_program_has_its_own_verb(root: Path, tmp_path: Path, name: str, verb: str) -> None:
    path = program(tmp_path / "bin", name, 'echo "Error: asked to $1" >&2; exit 1')
    component(root, "scheduling", "labels:\n  - pairs: {example.com/team: science}\n")
    found = only(validate(root, kustomize=path), "GPU681")
    assert found.finding.notes == (f"kustomize says: asked to {verb}",)


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ("Error: accumulating components: accumulateDirectory: \"recursed accumulation of path '$F/x': no\"", "no"),
        (
            'E1121 05:46:12.1 4103 run.go:72] "command failed" err="invalid Kustomization: \\"foo\\""',
            'invalid Kustomization: "foo"',
        ),
        ("panic: nil pointer\ngoroutine 1 [running]:\nmain.main()", "panic: nil pointer"),
        ("merging from generator &{0xc000b55c70 <nil>}: no", "merging from generator: no"),
        ("", "nothing, and ends with 1"),
    ],
)
def test_of_what_it_says_the_reason_is_shown(root: Path, tmp_path: Path, said: str, note: str) -> None:
    write(tmp_path / "said", said)
    path = program(tmp_path / "bin", "kustomize", f"cat '{tmp_path / 'said'}' >&2; exit 1")
    component(root, "scheduling", "labels:\n  - pairs: {example.com/team: science}\n")
    assert only(validate(root, kustomize=path), "GPU681").finding.notes == (f"kustomize says: {note}",)


@pytest.mark.parametrize(
    ("printed", "note"),
    [
        ("hello world: [", "what are no objects"),
        ("- a", 'what is no object: `["a"]`'),
        ("apiVersion: v1\nkind: List", 'what is no object: `{"apiVersion": "v1", "kind": "List"}`'),
        (
            "apiVersion: v1\nkind: Node\nmetadata: 3",
            'what is no object: `{"apiVersion": "v1", "kind": "Node", "metadata": 3}`',
        ),
    ],
)
def test_what_it_prints_must_be_objects(root: Path, tmp_path: Path, printed: str, note: str) -> None:
    write(tmp_path / "printed", printed)
    path = program(tmp_path / "bin", "kustomize", f"cat '{tmp_path / 'printed'}'")
    component(root, "scheduling", "labels:\n  - pairs: {example.com/team: science}\n")
    component(root, "namespaces", MORE_PODS)
    found = validate(root, kustomize=path).diagnostics
    assert {item.code for item in found} == {"GPU681"}
    assert {item.finding.notes[0] for item in found} == {f"kustomize says: {note}"}


def test_objects_that_belong_to_no_folder_are_no_crash(root: Path, tmp_path: Path) -> None:
    write(tmp_path / "printed", NOTES)
    path = program(tmp_path / "bin", "kustomize", f"cat '{tmp_path / 'printed'}'")
    component(root, "namespaces", MORE_PODS)
    assert "GPU684" in {item.code for item in validate(root, kustomize=path).diagnostics}


@needs_kustomize
def test_paths_of_the_temporary_copy_are_not_shown(root: Path) -> None:
    component(root, "scheduling", "resources: [notes.yaml]\n", notes="a: b\n")
    found = only(validate(root), "GPU681")
    assert found.finding.at.locate().file.path == "overlays/dev/kustomize/scheduling/notes.yaml"
    assert "gpuplan-" not in text_of(found)
    assert str(root) not in text_of(found)


@needs_kustomize
def test_same_input_gives_the_same_findings(root: Path) -> None:
    component(root, "gpu-operator", "configMapGenerator:\n  - {name: none, behavior: merge, literals: [a=b]}\n")
    assert [text_of(item) for item in validate(root).diagnostics] == [
        text_of(item) for item in validate(root).diagnostics
    ]
