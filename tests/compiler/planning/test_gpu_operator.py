from __future__ import annotations

import pytest

from gpuplan.compiler.planning.gpu_operator import has_openshifts_nfd, rules_group, writes_nfd
from gpuplan.compiler.planning.plan import Cluster
from tests.plans import a_plan

UPSTREAM, OPENSHIFT = "nfd.k8s-sigs.io", "nfd.openshift.io"


def a_cluster(platform: str, install: str, nfd: str = "true", kubernetes: str = "1.32") -> Cluster:
    return a_plan(f"""
    apiVersion: gpuplan.dev/v1
    kind: Cluster
    metadata: {{name: test}}
    spec:
      kubernetes: "{kubernetes}"
      platform: {platform}
      gpuOperator: {{install: {install}, version: v26.3.1, nfd: {nfd}}}
    """).cluster


@pytest.mark.parametrize(
    ("cluster", "group"),
    [
        (a_cluster("kubernetes", "helm"), UPSTREAM),
        (a_cluster("kubernetes", "external"), UPSTREAM),
        (a_cluster("openshift", "olm"), OPENSHIFT),
        (a_cluster("openshift", "olm", nfd="false"), OPENSHIFT),
        (a_cluster("openshift", "external"), OPENSHIFT),
        (a_cluster("openshift", "helm", nfd="false"), OPENSHIFT),
        (a_cluster("openshift", "helm"), UPSTREAM),
        (a_cluster("openshift", "olm", kubernetes="1.33"), UPSTREAM),
    ],
)
def test_rules_are_in_the_group_that_the_clusters_nfd_reads(cluster: Cluster, group: str) -> None:
    assert rules_group(cluster) == group


def test_the_chart_on_openshift_brings_its_own_nfd() -> None:
    assert not has_openshifts_nfd(a_cluster("openshift", "helm"))
    assert has_openshifts_nfd(a_cluster("openshift", "helm", nfd="false"))


def test_gpuplan_configures_the_nfd_that_comes_with_the_operator() -> None:
    assert writes_nfd(a_cluster("openshift", "olm"))
    assert not writes_nfd(a_cluster("openshift", "olm", nfd="false"))
    assert not writes_nfd(a_cluster("kubernetes", "external"))
