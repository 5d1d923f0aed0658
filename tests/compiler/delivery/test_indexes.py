"""Each Argo CD has one folder to apply: that of its clusters, or of the one that it runs in."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gpuplan.compiler.delivery.indexes import indexes
from gpuplan.compiler.planning.plan import Plan
from tests.plans import a_plan

CLUSTER = """
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: {name}}}
spec:
  kubernetes: "1.34"
  gpuOperator: {{install: helm, version: v26.7.0}}
  argocd:
    repoURL: https://git.example.com/platform/gpu.git
    {more}
"""

REMOTE = "destination: {name: other}"
HERE = ""
ALSO_HERE = "destination: {name: in-cluster}"


def a_cluster(name: str, more: str) -> Plan:
    return a_plan(CLUSTER.format(name=name, more=more))


def listed(clusters: Mapping[str, str]) -> dict[str, list[str]]:
    plans = [a_cluster(name, more) for name, more in clusters.items()]
    return {index.folder: index.resources for index in indexes("argocd", plans)}


@pytest.mark.parametrize(
    "clusters",
    [{"dev": REMOTE, "prod": REMOTE}, {"dev": REMOTE, "prod": HERE}, {"dev": REMOTE, "prod": ALSO_HERE}],
    ids=["a hub", "a hub that is one of them", "a hub by its name"],
)
def test_one_argo_cd_applies_all_clusters(clusters: dict[str, str]) -> None:
    assert listed(clusters) == {"argocd": ["dev", "prod"]}
    assert [index.comment for index in indexes("argocd", [a_cluster(*item) for item in clusters.items()])] == [""]


def test_an_argo_cd_of_one_cluster_applies_it_from_the_top() -> None:
    assert listed({"dev": HERE}) == {"argocd": ["dev"]}


def test_the_hub_does_not_apply_a_cluster_that_has_an_argo_cd_of_its_own() -> None:
    """The hub has no such namespace; or it has, and takes its own cluster for that one."""
    clusters = {"dev": REMOTE, "edge": "namespace: openshift-gitops", "prod": REMOTE}
    assert listed(clusters) == {"argocd": ["dev", "prod"]}
    (index,) = indexes("argocd", [a_cluster(*item) for item in clusters.items()])
    assert index.comment == (
        "# For the Argo CD in the namespace argocd. Others apply folders of their own: `argocd/edge`.\n"
    )


def test_two_clusters_that_argo_cd_runs_in_have_two_argo_cds() -> None:
    """Both are `https://kubernetes.default.svc`, and one Argo CD knows one such cluster."""
    assert listed({"dev": HERE, "prod": HERE}) == {"argocd": []}
    assert listed({"dev": HERE, "lab": REMOTE, "prod": HERE}) == {"argocd": ["lab"]}


def test_two_hubs_have_a_folder_each() -> None:
    clusters = {"a": REMOTE, "b": REMOTE, "c": f"{REMOTE}\n    namespace: team", "d": f"{REMOTE}\n    namespace: team"}
    assert listed(clusters) == {
        "argocd": [],
        "argocd/root.argocd": ["../a", "../b"],
        "argocd/root.team": ["../c", "../d"],
    }
    assert listed({**clusters, "d": HERE}) == {"argocd": [], "argocd/root.argocd": ["../a", "../b", "../d"]}


def test_flux_has_one_list() -> None:
    assert [index.resources for index in indexes("flux", [a_cluster("dev", HERE), a_cluster("prod", HERE)])] == [
        ["dev", "prod"]
    ]
