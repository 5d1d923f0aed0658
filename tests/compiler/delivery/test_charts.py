"""A scheduler's chart is synced before what it is to schedule, and by those who may write what it renders."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.delivery.argocd import checks
from tests.compiler.delivery.argocd import rendered as argocd
from tests.compiler.delivery.argocd.health import judged
from tests.compiler.delivery.flux import rendered as flux
from tests.plans import a_plan

KUEUE = "scheduler: {kind: kueue, version: v0.19.2, install: helm}"
KAI = "scheduler: {kind: kai, version: v0.17.0, install: helm}"
CHARTS = {
    KUEUE: ("registry.k8s.io/kueue/charts", "kueue", "0.19.2", "kueue-system"),
    KAI: ("ghcr.io/kai-scheduler/kai-scheduler", "kai-scheduler", "v0.17.0", "kai-scheduler"),
}


# --- Argo CD -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", CHARTS)
def test_an_application_has_the_chart_and_its_values(scheduler: str) -> None:
    repository, chart, version, namespace = CHARTS[scheduler]
    body = argocd.an_application(argocd.a_cluster(spec=scheduler), "scheduler", "gpu-scheduler-test")
    found, values = body["spec"]["sources"]
    assert found == {
        "repoURL": repository,
        "chart": chart,
        "targetRevision": version,
        "helm": {"releaseName": chart, "valueFiles": ["$values/out/test/scheduler/values.yaml"]},
    }
    assert (values["path"], values["ref"]) == ("out/test/scheduler", "values")
    assert body["spec"]["destination"]["namespace"] == namespace


def test_it_is_healthy_before_queues_are_there_and_prunes_nothing() -> None:
    plan = argocd.a_cluster(spec=KUEUE)
    waves = {
        path: int(argocd.an_application(plan, path, name)["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"])
        for path, name in (("scheduler", "gpu-scheduler-test"), ("scheduling", "gpu-tenancy-test"))
    }
    assert waves["scheduler"] < waves["scheduling"]
    policy = argocd.an_application(plan, "scheduler", "gpu-scheduler-test")["spec"]["syncPolicy"]
    assert policy["automated"] == {"selfHeal": True}


def kinds(project: dict[str, Any], scope: str) -> set[tuple[str, str]]:
    return {(item["group"], item["kind"]) for item in project["spec"][f"{scope}ResourceWhitelist"]}


def test_a_project_allows_what_the_chart_renders() -> None:
    project = argocd.the_project(argocd.a_cluster(spec=KUEUE), argocd.folder("scheduler"))
    spaces = {item["namespace"] for item in project["spec"]["destinations"]}
    assert {"kueue-system", "kube-system"} <= spaces
    assert project["spec"]["sourceRepos"][-1] == "registry.k8s.io/kueue/charts"
    assert ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") in kinds(project, "cluster")
    assert ("", "Secret") in kinds(project, "namespace")


def test_a_project_allows_namespaces_that_the_chart_makes() -> None:
    project = argocd.the_project(argocd.a_cluster(spec=KAI), argocd.folder("scheduler"))
    named = {item.get("name") for item in project["spec"]["clusterResourceWhitelist"]}
    assert {"kai-resource-reservation", "kai-scale-adjust"} <= named


def test_nothing_is_allowed_where_somebody_else_installs_it() -> None:
    plan = argocd.a_cluster(spec=KUEUE.replace("helm", "external"))
    project = argocd.the_project(plan, argocd.folder("scheduling"))
    assert ("", "Secret") not in kinds(project, "namespace")
    assert "kube-system" not in {item["namespace"] for item in project["spec"]["destinations"]}


# --- When it is ready --------------------------------------------------------------------------------------------


def a_config(**states: str) -> dict[str, Any]:
    conditions = [{"type": kind, "status": state, "observedGeneration": 2} for kind, state in states.items()]
    return {"metadata": {"generation": 2}, "status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (a_config(Deployed="True", Available="True", DependenciesFulfilled="True"), "Healthy"),
        (a_config(Deployed="True", Available="False", DependenciesFulfilled="True"), "Progressing"),
        (a_config(Deployed="True", DependenciesFulfilled="False"), "Degraded"),
        ({"metadata": {"generation": 1}}, "Progressing"),
        (
            {
                **a_config(Deployed="True", Available="True", DependenciesFulfilled="True"),
                "metadata": {"generation": 3},
            },
            "Progressing",
        ),
    ],
)
def test_kai_is_healthy_when_all_its_components_are(body: dict[str, Any], expected: str) -> None:
    check = checks(installed="kai-scheduler")["kai.scheduler_Config"]
    assert judged(check, body)[0] == expected


@pytest.mark.parametrize(("scheduler", "has_check"), [(KAI, True), (KUEUE, False)])
def test_argo_cd_is_told_of_kinds_that_are_installed(scheduler: str, has_check: bool) -> None:
    text = argocd.files(argocd.a_cluster(spec=scheduler))["argocd-cm.yaml"]
    assert ("kai.scheduler_Config" in text) is has_check


# --- Flux --------------------------------------------------------------------------------------------------------


def a_flux_cluster(scheduler: str) -> Any:
    text = flux.CLUSTER.format(name="prod", platform="kubernetes", install="helm", operator="", flux="")
    return a_plan(f"{text}  {scheduler}\n")


@pytest.mark.parametrize("scheduler", CHARTS)
def test_a_release_has_the_chart_and_its_values(scheduler: str) -> None:
    repository, chart, version, namespace = CHARTS[scheduler]
    found = flux.objects(a_flux_cluster(scheduler), flux.folder("scheduler"))
    assert found["HelmRepository/gpu-scheduler-prod"]["spec"] == {
        "type": "oci",
        "interval": "10m",
        "url": f"oci://{repository}",
    }
    spec = found["HelmRelease/gpu-scheduler-prod"]["spec"]
    assert (spec["releaseName"], spec["targetNamespace"]) == (chart, namespace)
    assert spec["chart"]["spec"]["version"] == version
    assert spec["values"]


def test_queues_wait_until_the_scheduler_is_ready() -> None:
    plan = a_flux_cluster(KUEUE)
    found = flux.objects(plan, flux.folder("scheduler"), flux.folder("scheduling"))
    assert found["Kustomization/gpu-tenancy-prod"]["spec"]["dependsOn"] == [{"name": "gpu-scheduler-prod"}]
    assert found["Kustomization/gpu-scheduler-prod"]["spec"]["healthChecks"] == [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "kueue-controller-manager", "namespace": "kueue-system"}
    ]


def test_flux_is_told_when_a_config_of_kai_is_ready() -> None:
    spec = flux.objects(a_flux_cluster(KAI), flux.folder("scheduler"))["Kustomization/gpu-scheduler-prod"]["spec"]
    assert spec["healthChecks"] == [{"apiVersion": "kai.scheduler/v1", "kind": "Config", "name": "kai-config"}]
    [expression] = spec["healthCheckExprs"]
    assert "DependenciesFulfilled" in expression["current"]
