"""Where values come from, and what depends on lines, as Python programs ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import gpuplan
from gpuplan.compiler.manifests.provenance import How
from gpuplan.features.tracing.lines import Lines, leads_to, spelled
from gpuplan.features.tracing.model import TracedPlace, TracedValue, Tracing
from tests.cli.platforms import a_platform, write

QUOTA = "out/dev/namespaces/research/resourcequota-gpuplan.yaml"
SHARED = 'spec.hard["requests.nvidia.com/gpu.shared"]'
OVERLAY = """\
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: research}
spec:
  quotas:
  - {pool: research, guaranteed: 3}
"""
LAYOUT = """\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: halves}
spec:
  gpu: A100-80GB
  instances:
    2g.20gb: 2
    3g.40gb: 1
"""
INLINE = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target:
    kind: ResourceQuota
  patch: |
    - op: add
      path: /spec/hard/pods
      value: "50"
"""


def value_at(tracing: Tracing, path: str) -> TracedValue:
    return next(value for value in tracing.values if value.path == path)


def place_at(tracing: Tracing, path: str) -> TracedPlace:
    return next(place for place in tracing.places if place.path == path)


def sources(value: TracedValue) -> list[tuple[str, str, int, str]]:
    """How, where and by which field a value comes to be, but for what decides that the object is there."""
    return [(item.how, item.file, item.line, item.path) for item in value.sources if not item.is_of_object]


# --- What is written ---------------------------------------------------------------------------------------------


def test_each_value_of_a_file_is_told_with_its_line(tmp_path: Path) -> None:
    found = gpuplan.trace(a_platform(tmp_path), QUOTA)
    text = gpuplan.build(tmp_path).tree[QUOTA.removeprefix("out/")].decode().splitlines()

    assert len(found.values) == len({value.path for value in found.values})
    assert [value.path for value in found.values if str(value.value) not in text[value.line - 1]] == []


def test_what_decides_that_an_object_is_there_is_in_each_of_its_values(tmp_path: Path) -> None:
    found = gpuplan.trace(a_platform(tmp_path), QUOTA)

    for value in found.values:
        whole = [(item.file, item.path) for item in value.sources if item.is_of_object]
        named = [item.path for item in value.sources if item.path == "spec.namespaces[0]"]
        assert ("overlays/dev/cluster.yaml", "metadata.name") in whole
        assert len(named) == 1


def test_no_value_is_without_a_source(tmp_path: Path) -> None:
    root = a_platform(tmp_path)

    for path in gpuplan.build(root).tree:
        for value in gpuplan.trace(root, f"out/{path}").values:
            assert sources(value), (path, value.path)


def test_a_rule_of_its_own_names_the_page_on_the_folder(tmp_path: Path) -> None:
    found = gpuplan.trace(a_platform(tmp_path), QUOTA, "kind")

    (source,) = (item for item in found.values[0].sources if not item.is_of_object)
    assert (source.how, source.page) == (How.RULE, "docs/explanation/what-is-written.md#namespaces")


def test_a_default_names_the_field_that_is_left_out(tmp_path: Path) -> None:
    found = gpuplan.trace(a_platform(tmp_path), "Namespace/research", "metadata.labels")

    (source,) = (
        item
        for item in value_at(found, 'metadata.labels["pod-security.kubernetes.io/warn"]').sources
        if not item.is_of_object
    )
    assert (source.how, source.path) == (How.RULE, "Tenant.spec.allow.podSecurity")
    assert source.page == "docs/fields/Tenant.md#tenantspecallow"


def test_a_line_that_opens_a_mapping_stands_for_all_in_it(tmp_path: Path) -> None:
    root = a_platform(tmp_path)
    line = next(value.line for value in gpuplan.trace(root, QUOTA).values if value.path == SHARED)

    alone = gpuplan.trace(root, f"{QUOTA}:{line}")
    opened = gpuplan.trace(root, QUOTA, "spec")

    assert [value.path for value in alone.values] == [SHARED]
    assert gpuplan.trace(root, f"{QUOTA}:{opened.values[0].line - 1}").values == opened.values


@pytest.mark.parametrize("line", [1])
def test_a_line_without_a_value_says_what_it_is(tmp_path: Path, line: int) -> None:
    found = gpuplan.trace(a_platform(tmp_path), f"{QUOTA}:{line}")

    assert found.values == ()
    assert f"line {line} of `{QUOTA}` holds no value: gpuplan writes it at the top of each file" in found.notes


def test_a_list_of_files_is_traced_to_why_each_is_there(tmp_path: Path) -> None:
    found = gpuplan.trace(a_platform(tmp_path), "out/dev/namespaces/kustomization.yaml", "resources[0]")

    assert found.values[0].value == "research"
    assert ("chosen by", "policies/tenant.yaml", 6, "spec.namespaces[0]") in sources(found.values[0])


# --- Lines and paths ---------------------------------------------------------------------------------------------


def test_a_text_inside_of_a_text_has_lines_of_its_own() -> None:
    lines = Lines("# head\ndata:\n  a: |\n    b:\n    - c\n    d: 1\n  e: 2\n")

    assert [lines.find(("data", "a", *route)).first for route in ((), ("b", 0), ("d",))] == [3, 5, 6]
    assert lines.find(("data", "a")) == (3, 6)
    assert lines.find(("data", "e")) == (7, 7)


def test_a_text_that_is_no_document_has_numbered_lines() -> None:
    assert Lines("data:\n  a: |\n    one: two: three\n    four\n").find(("data", "a", 1)).first == 4
    assert Lines("one\ntwo\n").find((1,)).first == 2


def test_a_text_in_quotes_is_in_one_line() -> None:
    assert Lines('a: "{\\"b\\": 1}"\nc: 2\n').find(("a", "b")) == (1, 1)


@pytest.mark.parametrize(
    "path",
    [
        'spec.hard["requests.nvidia.com/gpu"]',
        "spec.hard['requests.nvidia.com/gpu']",
        "spec.hard.requests.nvidia.com/gpu",
        "{.spec.hard.requests\\.nvidia\\.com/gpu}",
        ".spec.hard",
        "spec",
    ],
)
def test_a_path_may_be_spelled_in_many_ways(path: str) -> None:
    assert leads_to(path, ("spec", "hard", "requests.nvidia.com/gpu"))


@pytest.mark.parametrize("path", ["spec.har", "hard", "spec.hard.requests.nvidia.com/gpus"])
def test_another_path_leads_elsewhere(path: str) -> None:
    assert not leads_to(path, ("spec", "hard", "requests.nvidia.com/gpu"))


def test_a_path_is_spelled_so_that_it_can_be_read_back() -> None:
    assert spelled(("spec", "hard", "requests.nvidia.com/gpu", 0)) == 'spec.hard["requests.nvidia.com/gpu"][0]'


# --- Policies ----------------------------------------------------------------------------------------------------


def test_a_line_leads_to_what_depends_on_it_and_who_applies_that(tmp_path: Path) -> None:
    root = a_platform(tmp_path)
    cluster = (root / "overlays/dev/cluster.yaml").read_text()
    argocd = '  argocd: {repoURL: "https://git.example/platform.git", revision: main}\n'
    write(root / "overlays/dev/cluster.yaml", cluster + argocd)

    found = gpuplan.trace(root, "policies/tenant.yaml:10")

    (use,) = (use for use in place_at(found, "spec.quotas[0].guaranteed").uses if use.value.file == QUOTA)
    assert (use.value.path, use.value.value) == (SHARED, "16")
    assert use.applier is not None
    assert (use.applier.kind, use.applier.name) == ("Application", "gpu-namespace-dev-research")


def test_a_number_is_told_by_what_it_makes_before_where_that_stands(tmp_path: Path) -> None:
    root = a_platform(tmp_path)
    cluster = (root / "overlays/dev/cluster.yaml").read_text()
    write(root / "overlays/dev/cluster.yaml", f"{cluster}  monitoring: {{}}\n")
    pool = (root / "policies/pool.yaml").read_text().replace("timeSlicing: {replicas: 3}", "mig: {layout: halves}")
    write(root / "policies/pool.yaml", pool)
    write(root / "policies/layout.yaml", LAYOUT)

    place = place_at(gpuplan.trace(root, "policies/layout.yaml:7"), 'spec.instances["2g.20gb"]')

    rules = [use for use in place.uses if use.value.file.endswith("rules/gpuplan-planned.yaml")]
    assert ("product of", "vector(32)") in [(use.how, use.value.value) for use in rules]


def test_a_file_that_no_application_has_is_applied_by_nothing(tmp_path: Path) -> None:
    root = a_platform(tmp_path)
    cluster = (root / "overlays/dev/cluster.yaml").read_text()
    more = '  argocd: {repoURL: "https://git.example/platform.git"}\n  monitoring: {}\n'
    write(root / "overlays/dev/cluster.yaml", cluster + more)

    name = place_at(gpuplan.trace(root, "Cluster/dev"), "metadata.name")
    applied = {use.value.file.removeprefix("out/dev/"): use.applier and use.applier.name for use in name.uses}

    assert applied["monitoring/prometheusrule-gpuplan-pools.yaml"] == "gpu-monitoring-dev"
    assert applied["monitoring/kustomization.yaml"] == "gpu-monitoring-dev"
    assert applied["gpu-operator/values.yaml"] == "gpu-operator-dev"
    assert applied["namespaces/research/kustomization.yaml"] == "gpu-namespace-dev-research"
    assert applied["monitoring/rules/gpuplan-pools.yaml"] is None
    assert applied["monitoring/rules/kustomization.yaml"] is None
    assert applied["namespaces/kustomization.yaml"] is None


def test_where_an_overlay_says_it_instead_that_line_is_named(tmp_path: Path) -> None:
    root = a_platform(tmp_path, "dev", "prod")
    write(root / "overlays/dev/tenant.yaml", OVERLAY)

    place = place_at(gpuplan.trace(root, "policies/tenant.yaml:10"), "spec.quotas[0].guaranteed")

    assert {use.value.cluster for use in place.uses} == {"prod"}
    assert place.elsewhere == (("dev", "overlays/dev/tenant.yaml", 6, False),)
    assert {use.value.cluster for use in gpuplan.trace(root, "overlays/dev/tenant.yaml:6").places[1].uses} == {"dev"}


def test_where_an_overlay_takes_the_document_away_that_line_is_named(tmp_path: Path) -> None:
    root = a_platform(tmp_path, "dev", "prod")
    write(
        root / "overlays/dev/tenant.yaml",
        "apiVersion: gpuplan.dev/v1\nkind: Tenant\nmetadata: {name: research, $patch: delete}\n",
    )

    place = place_at(gpuplan.trace(root, "policies/tenant.yaml:10"), "spec.quotas[0].guaranteed")

    assert [(item.cluster, item.file, item.is_removed) for item in place.elsewhere] == [
        ("dev", "overlays/dev/tenant.yaml", True)
    ]


def test_what_nothing_depends_on_says_why(tmp_path: Path) -> None:
    root = a_platform(tmp_path)

    (place,) = gpuplan.trace(root, "Tenant/research", "spec.workloadTypes").places

    assert (place.uses, place.note.split(":")[0]) == (
        (),
        "nothing that is written comes of it; checks and plans read it",
    )
    assert place_at(gpuplan.trace(root, "Tenant/research"), "kind").note == "it says what the document is"


def test_what_decides_by_being_there_is_not_said_to_decide_nothing(tmp_path: Path) -> None:
    root = a_platform(tmp_path)
    pool = (root / "policies/pool.yaml").read_text().replace("timeSlicing: {replicas: 3}", "exclusive: {}")
    write(root / "policies/pool.yaml", pool)

    (place,) = gpuplan.trace(root, "Pool/research", "spec.sharing").places

    assert place.note.startswith("it decides by being there, and which values follow is not traced: ")


# --- By hand -----------------------------------------------------------------------------------------------------

COMPONENT = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
resources: [limits.yaml]
patches:
- path: quota.yaml
"""
PATCH = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpuplan, namespace: research}
spec:
  hard:
    pods: "100"
"""
LIMITS = """\
apiVersion: v1
kind: LimitRange
metadata: {name: limits, namespace: research}
spec:
  limits: [{type: Pod}]
"""
BY_HAND = "overlays/dev/kustomize/namespaces/research"


def by_hand(root: Path) -> Path:
    a_platform(root)
    for name, text in (("kustomization", COMPONENT), ("quota", PATCH), ("limits", LIMITS)):
        write(root / BY_HAND / f"{name}.yaml", text)
    return root


@pytest.mark.parametrize("target", [QUOTA, "ResourceQuota/research/gpuplan"])
def test_what_a_component_patches_comes_from_its_file(tmp_path: Path, target: str) -> None:
    value = value_at(gpuplan.trace(by_hand(tmp_path), target), "spec.hard.pods")

    assert (value.file, value.line, value.is_by_hand) == (f"{BY_HAND}/quota.yaml", 6, True)
    assert sources(value) == [("copied", f"{BY_HAND}/quota.yaml", 6, "spec.hard.pods")]


def test_an_object_of_a_component_comes_from_its_file(tmp_path: Path) -> None:
    value = value_at(gpuplan.trace(by_hand(tmp_path), "LimitRange/research/limits"), "spec.limits[0].type")

    assert sources(value) == [("copied", f"{BY_HAND}/limits.yaml", 5, "spec.limits[0].type")]


def test_a_list_names_the_component_that_it_includes(tmp_path: Path) -> None:
    found = gpuplan.trace(by_hand(tmp_path), "out/dev/namespaces/research/kustomization.yaml", "components")

    assert [source[:2] for source in sources(found.values[0])] == [("copied", f"{BY_HAND}/kustomization.yaml")]


def test_a_line_by_hand_leads_to_what_it_patches(tmp_path: Path) -> None:
    (place,) = gpuplan.trace(by_hand(tmp_path), f"{BY_HAND}/quota.yaml:6").places

    assert [(use.value.object_title, use.value.path) for use in place.uses] == [
        ("ResourceQuota research/gpuplan", "spec.hard.pods")
    ]


@pytest.mark.parametrize("line", [6, 9])
def test_a_line_within_a_patch_stands_for_the_patch(tmp_path: Path, line: int) -> None:
    root = by_hand(tmp_path)
    write(root / BY_HAND / "kustomization.yaml", INLINE)

    (place,) = gpuplan.trace(root, f"{BY_HAND}/kustomization.yaml:{line}").places

    assert (place.line, [use.value.path for use in place.uses]) == (6, ["spec.hard.pods"])


# --- Objects of a cluster ----------------------------------------------------------------------------------------


def live(root: Path, path: str = QUOTA) -> dict[str, Any]:
    """What kubectl would print of a file that was applied."""
    body: dict[str, Any] = yaml.safe_load(gpuplan.build(root).tree[path.removeprefix("out/")])
    body["metadata"] |= {"uid": "0", "managedFields": [{"manager": "argocd"}]}
    return {**body, "status": {"used": {}}}


def test_a_live_value_is_traced_as_what_is_written(tmp_path: Path) -> None:
    root = a_platform(tmp_path)

    found = gpuplan.trace(root, "-", objects=json.dumps(live(root)))

    value = value_at(found, SHARED)
    assert ("copied", "policies/tenant.yaml", 10, "spec.quotas[0].guaranteed") in sources(value)
    assert [item.path for item in found.values if item.differs] == []
    assert [(item.what, item.paths) for item in found.unwritten] == [
        ("set by the API server", ("metadata.uid",)),
        ("managedFields", ("metadata.managedFields[0].manager",)),
        ("status", ("status.used",)),
    ]


def test_a_live_value_that_differs_is_told_beside_what_is_written(tmp_path: Path) -> None:
    root = a_platform(tmp_path)
    body = live(root)
    body["spec"]["hard"]["requests.nvidia.com/gpu.shared"] = "99"

    found = gpuplan.trace(root, "-", objects=yaml.safe_dump({"kind": "List", "items": [body]}))

    value = value_at(found, SHARED)
    assert (value.value, value.live, value.differs) == ("16", "99", True)


def test_a_live_value_of_a_component_names_its_file(tmp_path: Path) -> None:
    root = by_hand(tmp_path)
    body = live(root)
    body["spec"]["hard"]["pods"] = "100"

    value = value_at(gpuplan.trace(root, "-", objects=json.dumps(body)), "spec.hard.pods")

    assert (value.differs, sources(value)) == (False, [("copied", f"{BY_HAND}/quota.yaml", 6, "spec.hard.pods")])


def test_the_cluster_is_the_one_that_is_most_alike(tmp_path: Path) -> None:
    root = a_platform(tmp_path, "dev", "prod")
    write(root / "overlays/dev/tenant.yaml", OVERLAY)
    body = live(root, QUOTA.replace("/dev/", "/prod/"))

    assert {value.cluster for value in gpuplan.trace(root, "-", objects=json.dumps(body)).values} == {"prod"}


def test_what_gpuplan_does_not_write_is_said(tmp_path: Path) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "x"}}

    found = gpuplan.trace(a_platform(tmp_path), "-", objects=json.dumps(pod))

    assert [(item.object_title, item.what) for item in found.unwritten] == [
        ("Pod x/p", "gpuplan does not write this object")
    ]
