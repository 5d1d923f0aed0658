"""The definitions that come with gpuplan: which kinds they are of, and that each can be used."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.manifests import Manifest, check_schemas
from gpuplan.compiler.manifests.builtin_schemas import builtin_schemas
from gpuplan.compiler.manifests.crds import fixed_fields, groups, kinds, served, serving
from gpuplan.compiler.manifests.kinds import assume_kind, known_kinds
from tests.every import every_row
from tests.subjects import A_CLUSTER

KINDS = [(group, kind) for group in groups() for kind in kinds(group)]


def test_every_custom_kind_that_we_write_is_known_and_no_other_is_called_so() -> None:
    written = {(kind.group, kind.kind): kind.is_custom for kind in known_kinds().values()}
    assert {name for name, is_custom in written.items() if is_custom} == written.keys() & set(KINDS)


@every_row(KINDS, lambda group, kind: f"{kind}.{group}")
def test_every_schema_can_be_compiled(group: str, kind: str) -> None:
    for item in served(group, kind):
        for version in item.versions:
            validator = builtin_schemas("1.34").compile_kept(item, version)
            assert not validator.is_valid({"apiVersion": f"{group}/{version}", "kind": kind, "unknown": 1})


def test_releases_of_one_minor_are_alike() -> None:
    (item,) = serving("kueue.x-k8s.io", "ClusterQueue", {"kueue": "0.19.0"})
    assert item.releases[0] == "v0.19.2"


FAIR_SHARING = {
    "apiVersion": "kueue.x-k8s.io/v1beta1",
    "kind": "ClusterQueue",
    "metadata": {"name": "team"},
    "spec": {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}},
}
"""With a field that ClusterQueues have since Kueue 0.12."""


@pytest.mark.parametrize(
    ("releases", "said"),
    [
        ({"kueue": "v0.13.1"}, []),
        ({"kueue": "v0.11.0"}, ["`spec`: unknown field `admissionScope`"]),
        ({"kueue": "v0.99.0"}, []),  # one that is not known
        ({}, []),  # any may run
    ],
)
def test_the_release_decides_which_fields_there_are(releases: dict[str, str], said: list[str]) -> None:
    manifest = Manifest("", FAIR_SHARING, about=A_CLUSTER, trace=None)
    assert [problem.text for problem in check_schemas([manifest], "1.34", releases=releases)] == said


def test_a_version_that_no_release_serves_is_a_problem() -> None:
    manifest = Manifest("", {**FAIR_SHARING, "apiVersion": "kueue.x-k8s.io/v1"}, about=A_CLUSTER, trace=None)
    (problem,) = check_schemas([manifest], "1.34")
    assert problem.text == "there is no ClusterQueue in kueue.x-k8s.io/v1: its definition serves v1beta1, v1beta2"


def test_a_release_that_is_not_known_says_nothing() -> None:
    assert serving("kueue.x-k8s.io", "ClusterQueue", {"kueue": "v0.99.0"}) == []
    assert serving("kueue.x-k8s.io", "ClusterQueue", {"kueue": None}) == []


@pytest.mark.parametrize("group", ["example.com", "../kinds", "shared", ""])
def test_nothing_is_known_of_other_groups(group: str) -> None:
    assert list(served(group, "ClusterQueue")) == []


def test_a_known_kind_names_what_its_definition_lets_nobody_change() -> None:
    unnamed = {
        (kind.kind, field)
        for kind in known_kinds().values()
        for field in set(fixed_fields(kind.group, kind.kind)) - {item.field for item in kind.immutable}
    }
    assert unnamed == set()


def test_what_cannot_change_of_other_kinds_is_taken_from_their_definitions() -> None:
    fields = {item.field for item in assume_kind("jobset.x-k8s.io", "JobSet").immutable}
    assert {"spec.network", "spec.successPolicy"} <= fields
    assert assume_kind("example.com", "JobSet").immutable == ()


def _said(body: dict[str, Any]) -> list[str]:
    manifest = Manifest("", {"metadata": {"name": "a"}, **body}, is_foreign=True, about=A_CLUSTER, trace=None)
    return [problem.text for problem in check_schemas([manifest], "1.34")]


@pytest.mark.parametrize(
    ("kind", "spec", "said"),
    [
        ("ResourceFlavor", None, []),
        ("LocalQueue", {"clusterQueue": None}, []),
        ("LocalQueue", {"queue": None}, ["`spec`: unknown field `queue`"]),
        ("ResourceFlavor", {"tolerations": [None]}, ['`spec.tolerations[0]`: null is not of type "object"']),
        ("Cohort", {"parentName": None, "resourceGroups": None}, []),
        ("AdmissionCheck", {"controllerName": None}, ["`spec`: missing field `controllerName`"]),
    ],
)
def test_a_field_that_is_null_is_none(kind: str, spec: object, said: list[str]) -> None:
    assert _said({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "spec": spec}) == said


def test_a_kind_may_be_of_two_projects() -> None:
    def job(version: str) -> dict[str, Any]:
        return {"apiVersion": f"kubeflow.org/{version}", "kind": "MPIJob", "spec": {"mpiReplicaSpecs": {}}}

    assert _said(job("v2beta1")) == []
    assert _said(job("v1")) == []
    assert _said(job("v3")) == ["there is no MPIJob in kubeflow.org/v3: its definition serves v1, v2beta1"]
