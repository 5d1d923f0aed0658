"""The objects and files of the stage `monitoring`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gpuplan.compiler.backends import monitoring
from gpuplan.compiler.manifests import File, Manifest
from tests.compiler.backends import crds
from tests.compiler.backends.monitoring.watched import (
    ARGOCD,
    CLAIMS,
    FRACTIONS,
    GROUPS,
    KUEUE,
    a_cluster,
    alerts,
    objects,
    rules,
    write_rules,
)
from tests.plans import a_plan
from tests.promtool import promtool

OPENSHIFT = (
    a_cluster(monitoring="{labels: {release: kps}}")
    .replace("install: helm", "install: olm")
    .replace("spec:\n  kubernetes", "spec:\n  platform: openshift\n  kubernetes")
)
WITHOUT_QUEUES = {*GROUPS} - {"gpuplan-tenant-queues"}
CLUSTERS = {
    "plain": a_cluster(),
    "argocd": a_cluster(ARGOCD),
    "honoring": a_cluster(monitoring="{honorLabels: true}"),
    "openshift": OPENSHIFT,
    "kueue": a_cluster(KUEUE),
    "kueue-claims": CLAIMS,
    "kai": FRACTIONS,
    "empty": a_cluster().partition("---\n")[0],
}


def test_nothing_where_nobody_watches() -> None:
    assert list(monitoring.render(a_plan(a_cluster().replace("  monitoring: {}\n", "")))) == []


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_promtool_finds_no_fault(tmp_path: Path, cluster: str) -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", *write_rules(a_plan(CLUSTERS[cluster]), tmp_path))


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_objects_fit_their_definitions(cluster: str) -> None:
    artifacts = monitoring.render(a_plan(CLUSTERS[cluster]))
    custom = [item for item in artifacts if isinstance(item, Manifest) and item.kind != "ConfigMap"]
    assert crds.problems(custom) == []


def test_prometheus_finds_the_rules_by_the_policys_labels() -> None:
    found = objects(
        a_plan(a_cluster(monitoring="{namespace: observability, labels: {release: kps}}")), "PrometheusRule"
    )
    assert set(found) == WITHOUT_QUEUES
    assert found["gpuplan-alerts"]["metadata"] == {
        "name": "gpuplan-alerts",
        "namespace": "observability",
        "labels": {"release": "kps"},
    }


def test_openshift_finds_the_rules_in_the_operators_namespace() -> None:
    found = objects(a_plan(OPENSHIFT), "PrometheusRule")
    assert {body["metadata"]["namespace"] for body in found.values()} == {"nvidia-gpu-operator"}


def test_the_same_groups_are_files_for_a_prometheus_without_the_operator() -> None:
    plan = a_plan(a_cluster(ARGOCD))
    files = {item.path: item for item in monitoring.render(plan) if isinstance(item, File)}
    assert set(files) == {f"monitoring/rules/{name}.yaml" for name in WITHOUT_QUEUES}
    for name, body in objects(plan, "PrometheusRule").items():
        file = files[f"monitoring/rules/{name}.yaml"]
        assert yaml.safe_load(file.data) == body["spec"]
        assert b"--metric-labels-allowlist=nodes=[gpuplan.dev/pool,nvidia.com/mig.config," in file.data


@pytest.mark.parametrize(("cluster", "is_told"), [("plain", True), ("openshift", False)])
def test_who_cannot_change_kube_state_metrics_is_not_told_to(cluster: str, is_told: bool) -> None:
    alert = alerts(a_plan(CLUSTERS[cluster]))["GpuPoolLabelsAbsent"]
    assert ("--metric-labels-allowlist=nodes=[gpuplan.dev/pool," in alert["annotations"]["description"]) is is_told


def test_no_rule_reads_what_mig_devices_do_not_have() -> None:
    for rule in rules(a_plan(a_cluster(ARGOCD))):
        assert "DCGM_FI_DEV_GPU_UTIL" not in rule["expr"]
        assert "DCGM_FI_DEV_MEM_COPY_UTIL" not in rule["expr"]


def test_rules_of_many_tenants_are_divided_among_objects() -> None:
    tenant = "---\napiVersion: gpuplan.dev/v1\nkind: Tenant\nmetadata: {{name: t-{0}}}\nspec: {{namespaces: [n-{0}]}}\n"
    plan = a_plan(a_cluster() + "".join(tenant.format(number) for number in range(1000)))
    found = objects(plan, "PrometheusRule")
    sizes = [len(found[name]["spec"]["groups"][0]["rules"]) for name in ("gpuplan-tenants", "gpuplan-tenants-2")]
    assert sizes == [1000, 5]  # of `search`: two namespaces, two guarantees, one limit


def test_a_prometheus_that_selects_by_label_finds_the_status_exporter() -> None:
    found = objects(a_plan(a_cluster(monitoring="{labels: {release: kps}}")), "ServiceMonitor")
    body = found["gpuplan-node-status-exporter"]
    assert body["metadata"]["labels"] == {"release": "kps"}
    assert body["metadata"]["namespace"] == "gpu-operator"
    assert body["spec"]["selector"] == {"matchLabels": {"app": "nvidia-node-status-exporter"}}


@pytest.mark.parametrize("cluster", ["plain", "openshift"])
def test_the_operators_own_monitor_is_enough_elsewhere(cluster: str) -> None:
    assert objects(a_plan(CLUSTERS[cluster]), "ServiceMonitor") == {}
