"""Where the rules, monitors and dashboards come from."""

from __future__ import annotations

from gpuplan.features.tracing.engine import Traced
from tests.compiler.backends.monitoring.watched import ARGOCD, a_cluster
from tests.laws.tracing.asking import own, traced, whole
from tests.plans import a_plan

LABELS = "{labels: {release: main}, namespace: watching, honorLabels: true, alertLabels: {team: gpu}}"


def a_group(name: str, cluster: str) -> Traced:
    return traced(a_plan(cluster), f"prod/monitoring/prometheusrule-{name}.yaml")


def rule(group: Traced, **labels: str) -> int:
    """The index of the first rule with these labels, or of this name."""
    rules = group.artifact.body["spec"]["groups"][0]["rules"]  # type: ignore[union-attr]
    wanted = labels.items()
    return next(index for index, item in enumerate(rules) if wanted <= ({**item, **item.get("labels", {})}).items())


def test_planned_units_are_a_product() -> None:
    group = a_group("gpuplan-planned", a_cluster())
    index = rule(group, pool="shared", record="pool:gpuplan_planned_units:sum")

    links = own(group, "spec", "groups", 0, "rules", index, "expr")

    assert {link for link in links if link.startswith("product of")} == {
        "product of Pool/shared spec.nodes.count",
        "product of Pool/shared spec.nodes.gpusPerNode",
        "product of Pool/shared spec.sharing.timeSlicing.replicas",
    }


def test_nodes_do_not_count_in_what_each_of_them_has_to_publish() -> None:
    group = a_group("gpuplan-pools", a_cluster())
    index = rule(group, pool="mixed", unit="2g.20gb")

    links = own(group, "spec", "groups", 0, "rules", index, "expr")

    assert "copied Pool/mixed metadata.name" in links
    assert "product of Pool/mixed spec.sharing.mig.instances.2g.20gb" in links
    assert "product of Pool/mixed spec.nodes.count" not in links


def test_rules_stand_in_the_order_of_their_pools_names() -> None:
    group = a_group("gpuplan-planned", a_cluster())
    index = rule(group, pool="shared", record="pool:gpuplan_planned_nodes:sum")

    ordering = {link for link in own(group, "spec", "groups", 0, "rules", index, "expr") if link.startswith("order of")}

    assert ordering == {f"order of Pool/{name} metadata.name" for name in ("large", "mixed", "shared")}


def test_limit_that_is_not_said_is_what_is_guaranteed() -> None:
    group = a_group("gpuplan-tenants", a_cluster().replace("guaranteed: 1, limit: 2", "guaranteed: 1"))
    index = rule(group, record="tenant:gpuplan_limit_units:sum", unit="3g.40gb")

    assert "copied Tenant/search spec.quotas.0.guaranteed" in own(group, "spec", "groups", 0, "rules", index, "expr")


def test_labels_of_the_exporter_are_chosen_by_who_wins() -> None:
    group = a_group("gpuplan-alerts", a_cluster(monitoring=LABELS))
    idle = ("spec", "groups", 0, "rules", rule(group, alert="GpuAllocatedIdle"))

    assert own(group, *idle, "labels", "team") == {"copied Cluster/prod spec.monitoring.alertLabels.team"}
    assert "chosen by Cluster/prod spec.monitoring.honorLabels" in own(group, *idle, "annotations", "summary")
    assert own(group, *idle, "for") == set()


def test_alert_on_syncs_names_all_applications() -> None:
    group = a_group("gpuplan-alerts", a_cluster(ARGOCD))
    index = rule(group, alert="GpuPlanOutOfSync")

    links = own(group, "spec", "groups", 0, "rules", index, "expr")

    assert {"copied Pool/large metadata.name", "copied Tenant/search spec.namespaces.1"} <= links


def test_rules_are_in_the_namespace_that_is_said() -> None:
    group = a_group("gpuplan-alerts", a_cluster(monitoring=LABELS))

    assert "chosen by Cluster/prod spec.monitoring.namespace" in whole(group)


def test_plain_file_of_rules_has_the_links_of_the_object() -> None:
    plan = a_plan(a_cluster())
    group = traced(plan, "prod/monitoring/prometheusrule-gpuplan-planned.yaml")
    file = traced(plan, "prod/monitoring/rules/gpuplan-planned.yaml")

    assert own(file, "groups", 0, "rules", 0, "expr") == own(group, "spec", "groups", 0, "rules", 0, "expr")


def test_dashboard_has_the_clusters_name_in_its_title_and_address() -> None:
    found = traced(a_plan(a_cluster()), "prod/monitoring/configmap-gpuplan-prod.yaml")
    board = ("data", "gpuplan-prod.json")

    assert own(found, *board, "title") == {"copied Cluster/prod metadata.name"}
    assert own(found, *board, "uid") == {"copied Cluster/prod metadata.name"}
    assert own(found, *board, "schemaVersion") == set()


def test_labels_of_the_console_choose_the_form_of_the_dashboard() -> None:
    labels = '{dashboards: {labels: {console.openshift.io/dashboard: "true"}}}'
    found = traced(a_plan(a_cluster(monitoring=labels)), "prod/monitoring/configmap-gpuplan-prod.yaml")

    links = own(found, "data", "gpuplan-prod.json", "title")

    place = "Cluster/prod spec.monitoring.dashboards.labels.console.openshift.io/dashboard"
    assert links == {f"chosen by {place}", "copied Cluster/prod metadata.name"}
