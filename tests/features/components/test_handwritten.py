"""Hand-written files may have any shape: what is meant is found, and nothing makes a check fail."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.base.diagnostics import Finding, Origin, SourceFile, WholeFile
from gpuplan.compiler.checks.registry import run_all
from gpuplan.compiler.planning.hand_files import read
from gpuplan.compiler.planning.plan import Component, HandWritten, Plan
from gpuplan.features.components import checks as handwritten
from gpuplan.features.components.checks import components, objects
from tests.plans import a_plan

FOLDER = "overlays/test/kustomize"
EMPTY = a_plan("---\n")


PLATFORM = """
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: test}
spec:
  kubernetes: "1.34"
  gpuOperator: {install: helm, version: v26.7.0, migStrategy: single}
  scheduler: {kind: kueue}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: slices}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8, namePattern: "gpu-[0-9]+"}
  sharing: {mig: {instances: {1g.10gb: 7}, strategy: single}}
"""
FULL = a_plan(PLATFORM)


def with_files(**files: object) -> Plan:
    """A plan with documents in the files of the stage `workloads`; `kustomization` is one of their names."""
    written = [
        HandWritten("workloads", Origin(WholeFile(SourceFile(f"{FOLDER}/workloads/{name}.yaml", ""))), body)
        for name, body in files.items()
    ]
    return replace(EMPTY, hand_written=tuple(written))


def a_patch(path: str, value: object = "4") -> Plan:
    operation = {"op": "add", "path": path, "value": value}
    return with_files(patch=[operation], kustomization={"kind": "Component", "patches": [{"path": "patch.yaml"}]})


def keys(findings: list[Finding]) -> list[str]:
    return [finding.message.split("`")[1] for finding in findings]


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        ("/spec/hard/limits.nvidia.com~1gpu", "4", ["limits.nvidia.com/gpu"]),
        ("/spec/hard", {"nvidia.com/gpu": "4", "requests.nvidia.com/gpu": "4"}, ["nvidia.com/gpu"]),
        ("/spec/hard/requests.nvidia.com~1gpu", "4", []),
        ("/spec/hard/limits.cpu", "4", []),
        ("spec/hard/limits.nvidia.com~1gpu", "4", []),
    ],
)
def test_a_json_patch_in_a_file_is_judged_by_what_it_sets(path: str, value: object, found: list[str]) -> None:
    assert keys(list(objects.inert_quota_key.find(read(a_patch(path, value))))) == found


def test_a_finding_on_a_json_patch_stands_at_the_operation() -> None:
    [finding] = objects.inert_quota_key.find(read(a_patch("/spec/hard/limits.nvidia.com~1gpu")))
    assert str(finding.at) == "[0].path"


def test_items_of_a_list_are_objects_too() -> None:
    quota = {"kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"nvidia.com/gpu": 1}}}
    [finding] = objects.inert_quota_key.find(read(with_files(all={"kind": "List", "items": [quota]})))
    assert str(finding.at) == "items[0].spec.hard.nvidia.com/gpu"


def test_a_strategic_merge_patch_may_stand_in_the_kustomization() -> None:
    text = "kind: ResourceQuota\nspec: {hard: {limits.nvidia.com/gpu: 1}}\n"
    plan = with_files(kustomization={"kind": "Component", "patchesStrategicMerge": [text]})
    [finding] = objects.inert_quota_key.find(read(plan))
    assert str(finding.at) == "patchesStrategicMerge[0]"


def test_a_strategic_merge_patch_may_stand_in_a_file() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1"}}
    listed = with_files(node=node, kustomization={"kind": "Component", "resources": ["node.yaml"]})
    patched = with_files(node=node, kustomization={"kind": "Component", "patchesStrategicMerge": ["node.yaml"]})
    assert len(list(objects.unprotected_node.find(read(listed)))) == 1
    assert list(objects.unprotected_node.find(read(patched))) == []


def test_a_removed_key_is_not_a_set_key() -> None:
    operation = {"op": "remove", "path": "/spec/hard/limits.nvidia.com~1gpu"}
    plan = with_files(patch=[operation], kustomization={"patches": [{"path": "patch.yaml"}]})
    assert list(objects.inert_quota_key.find(read(plan))) == []


@pytest.mark.parametrize("value", ["https://example.com/x.yaml", "git@example.com:x/y", "ssh://x", "x.git//y?ref=1"])
def test_places_on_the_network_are_recognised(value: str) -> None:
    assert len(list(components.remote_resource.find(with_files(kustomization={"resources": [value]})))) == 1


@pytest.mark.parametrize("value", ["x.yaml", "../base", "./a/b", "github/x.yaml", "dot.github.yaml", "a//b.yaml"])
def test_paths_in_the_repository_are_not(value: str) -> None:
    assert list(components.remote_resource.find(with_files(kustomization={"resources": [value]}))) == []


@pytest.mark.parametrize(
    "text", ["{", "a: *b", "when: 2024-99-99", "[" * 5000, "\x00"], ids=["open", "alias", "date", "deep", "zero"]
)
def test_a_text_that_is_no_yaml_holds_no_patch(text: str) -> None:
    plan = with_files(kustomization={"kind": "Component", "patches": [{"patch": text}]})
    assert read(plan).objects == ()


def test_what_one_check_has_read_the_next_one_takes() -> None:
    plan = a_patch("/spec/hard/limits.cpu")
    assert read(plan) is read(plan)
    assert read(plan).plan is plan
    assert read(replace(plan)) is not read(plan)


NAMES = st.sampled_from(
    """
    kind apiVersion metadata name annotations spec hard limits max data patches patch path target resources op value
    config.yaml mig-configs all-disabled sharing timeSlicing mps replicas flags devices mig-enabled mig-devices items
    device-filter configMapGenerator behavior options files globalDefault openapi helmCharts namespace labels template
    nodeSelector affinity nodeAffinity requiredDuringSchedulingIgnoredDuringExecution nodeSelectorTerms matchExpressions
    key operator values nodeLabels gpuplan.dev/pool nvidia.com/mig.config nvidia.com/gpu.product resourceGroups flavors
    coveredResources nominalQuota lendingLimit borrowingLimit cohortName namespaceSelector clusterQueue parentQueue
    """.split()  # noqa: SIM905 - a list of words
)
KINDS = ["ResourceQuota", "LimitRange", "Node", "Namespace", "PriorityClass", "ConfigMap", "ClusterPolicy", "List"]
KINDS += ["ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "Queue", "NVIDIADriver", "NodeFeatureRule"]
GROUPS = ["kueue.x-k8s.io/v1beta2", "scheduling.run.ai/v2", "nvidia.com/v1alpha1"]
TEXTS = [
    "all",
    "nvidia.com/gpu",
    "limits.nvidia.com/gpu",
    "/spec/hard/x",
    "merge",
    "sharing: {mps: 1}",
    "mig-configs: 3",
]
VALUES = st.sampled_from([*KINDS, *GROUPS, *TEXTS, "Component", "In", "4"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | VALUES | st.text(max_size=5)
BODIES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5), max_leaves=25
)


@settings(max_examples=200)
@given(st.lists(BODIES, min_size=1, max_size=3), BODIES)
def test_no_shape_makes_a_check_fail(bodies: list[object], kustomization: object) -> None:
    plan = with_files(kustomization=kustomization, **{f"f{index}": body for index, body in enumerate(bodies)})
    component = Component("workloads", None, f"{FOLDER}/workloads", "Component", plan.hand_written[0].at)
    for known in (plan, replace(FULL, hand_written=plan.hand_written)):
        whole = replace(known, components=(component,))
        found = (*run_all(handwritten.FILE_CHECKS, whole), *run_all(handwritten.OBJECT_CHECKS, read(whole)))
        assert all(item.finding.message for item in found)


POD = {"nodeSelector": {"nvidia.com/mig.config": "all-1g.10gb"}, "containers": [{"name": "main"}]}


@pytest.mark.parametrize(
    ("kind", "route"),
    [
        ("Pod", ("spec",)),
        ("StatefulSet", ("spec", "template", "spec")),
        ("DaemonSet", ("spec", "template", "spec")),
        ("Job", ("spec", "template", "spec")),
        ("CronJob", ("spec", "jobTemplate", "spec", "template", "spec")),
        ("JobSet", ("spec", "replicatedJobs", 0, "template", "spec", "template", "spec")),
        ("LeaderWorkerSet", ("spec", "leaderWorkerTemplate", "workerTemplate", "spec")),
        ("RayJob", ("spec", "rayClusterSpec", "workerGroupSpecs", 0, "template", "spec")),
        ("PyTorchJob", ("spec", "pytorchReplicaSpecs", "Worker", "template", "spec")),
        ("TrainJob", ("spec", "podTemplateOverrides", 0, "spec")),
        ("InferenceService", ("spec", "predictor")),
        ("Rollout", ("spec", "template", "spec")),
    ],
)
def test_pods_are_found_wherever_a_kind_has_them(kind: str, route: tuple[str | int, ...]) -> None:
    spec: object = {**POD, "containers": [{"resources": {"requests": {"nvidia.com/mig-1g.10gb": 1}}}]}
    for step in reversed(route):
        spec = [spec] if isinstance(step, int) else {step: spec}
    assert isinstance(spec, dict)
    written = with_files(file={"kind": kind, "metadata": {"name": "a"}, **spec}).hand_written
    found = run_all(handwritten.OBJECT_CHECKS, read(replace(FULL, hand_written=written)))
    labels = (*route, "nodeSelector", "nvidia.com/mig.config")
    assert {item.code: item.finding.at.path for item in found} == {
        "GPU634": (*route, "containers", 0, "resources", "requests", "nvidia.com/mig-1g.10gb"),
        "GPU636": labels,
    }


def found_in_patch(text: str) -> list[str]:
    plan = with_files(kustomization={"kind": "Component", "patches": [{"patch": text}]})
    files = read(replace(FULL, hand_written=plan.hand_written))
    return [item.code for item in run_all(handwritten.OBJECT_CHECKS, files)]


def test_a_part_that_aliases_repeat_is_read_once() -> None:
    part = "{nodeSelector: {gpuplan.dev/pool: b}}"
    assert found_in_patch(f"kind: Deployment\nspec:\n  one: &a {part}\n  two: *a\n  three: *a\n") == ["GPU636"]


def test_an_object_that_holds_itself_is_not_followed() -> None:
    """kustomize does not take it either."""
    assert found_in_patch("kind: Deployment\nspec: &a\n  one: *a\n  nodeSelector: {gpuplan.dev/pool: b}\n") == []


@settings(max_examples=50)
@given(BODIES, BODIES)
def test_no_shape_makes_a_check_fail_without_a_plan(body: object, kustomization: object) -> None:
    files = replace(read(with_files(file=body, kustomization=kustomization)), plan=None)
    assert all(item.finding.message for item in run_all(handwritten.OBJECT_CHECKS, files))


def test_objects_can_be_judged_without_a_plan() -> None:
    files = replace(read(a_patch("/spec/hard/limits.nvidia.com~1gpu")), plan=None)
    [found] = run_all(handwritten.OBJECT_CHECKS, files)
    assert (found.code, found.clusters) == ("GPU620", ())
