"""What is written for Argo CD, against Argo CD's own definitions."""

from __future__ import annotations

import pytest

from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.crds import problems
from tests.compiler.delivery.argocd.rendered import a_cluster, a_pool, folder, manifests

PATHS = ("gpu-operator", "partitions/a", "scheduling", "namespaces/x", "monitoring", "workloads", "workloads/x")
FOLDERS = [folder(path) for path in PATHS]
WINDOW = "windows: [{schedule: 0 2 * * 6, duration: 4h}]"


@pytest.mark.parametrize(
    "plan",
    [
        a_cluster(a_pool("a", WINDOW), more="labels: {team: gpu}, destination: {name: prod}"),
        a_cluster(a_pool("a", "approval: automatic"), more="operatorApproval: manual"),
        a_cluster(a_pool(), operator="install: olm, version: v26.7.0", spec="platform: openshift"),
        a_cluster(a_pool(), operator="install: external, version: v26.7.0"),
    ],
    ids=["windows", "approvals", "olm", "external"],
)
def test_objects_fit_their_definitions(plan: Plan) -> None:
    assert problems(manifests(plan, *FOLDERS)) == []
