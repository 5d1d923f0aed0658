"""What Prometheus records of costs, and what the dashboards show of them."""

from __future__ import annotations

from pathlib import Path

from gpuplan.compiler.backends.monitoring.costs import GROUP, POOL_IDLE_COST, POOL_UNIT_COST, PRICES, TENANT_COST
from gpuplan.compiler.manifests import Manifest, Subject
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.prices import HOURS_PER_MONTH
from tests.compiler.backends.monitoring.boards import OPENSHIFT, Json, expressions, for_console, for_grafana, queries
from tests.compiler.backends.monitoring.promql import selectors
from tests.compiler.backends.monitoring.test_queues import PLAIN_CLAIMS, ROLE, counted_of_claims
from tests.compiler.backends.monitoring.test_recordings import LARGE, SHARE, SMALL, THERE, samples
from tests.compiler.backends.monitoring.watched import (
    CLAIMS,
    FRACTIONS,
    a_cluster,
    a_pod,
    assert_all_samples,
    objects,
    rules,
)
from tests.laws.tracing.asking import own, traced
from tests.plans import a_plan
from tests.platforms import document, tenant

LIST = document("Prices", "list", "currency: EUR", "gpus: {A100-80GB: {perGpuHour: 11.20}, L4-24GB: {perGpuHour: 0.9}}")
PRICED = a_cluster() + LIST
EUR = 'currency="EUR"'


def assert_recorded(folder: Path, series: dict[str, str], expected: dict[str, dict[str, float]], text: str) -> None:
    assert_all_samples(folder, text, series, expected)


def test_costs_of_the_plan_are_recorded_by_pool_unit_and_tenant(tmp_path: Path) -> None:
    """Of an A100 a `3g.40gb` is 13/28 and a `2g.20gb` 15/56: one of the one and two of the other are all of it."""
    expected = {
        PRICES: samples(PRICES, (f'prices="list",{EUR}', 1)),
        "pool:gpuplan_planned_cost:hourly": samples(
            "pool:gpuplan_planned_cost:hourly",
            (f'pool="mixed",{EUR}', 22.4),
            (f'pool="large",{EUR}', 11.2),
            (f'pool="shared",{EUR}', 1.8),
        ),
        POOL_UNIT_COST: samples(
            POOL_UNIT_COST,
            (f'pool="mixed",{LARGE},{EUR}', 5.2),
            (f'pool="mixed",{SMALL},{EUR}', 3),
            (f'pool="large",{LARGE},{EUR}', 5.2),
            (f'pool="shared",{SHARE},{EUR}', 0.3),
        ),
        f'{POOL_IDLE_COST}{{pool="large"}}': samples(
            POOL_IDLE_COST, (f'pool="large",idle="free",{EUR}', 10.4), (f'pool="large",idle="not-cut",{EUR}', 0.8)
        ),
        f'{POOL_IDLE_COST}{{pool="mixed"}}': samples(
            POOL_IDLE_COST, (f'pool="mixed",idle="free",{EUR}', 17.2), (f'pool="mixed",idle="not-cut",{EUR}', 0)
        ),
        TENANT_COST: samples(
            TENANT_COST, (f'tenant="search",pool="mixed",{EUR}', 5.2), (f'tenant="search",pool="shared",{EUR}', 0.9)
        ),
    }
    assert_recorded(tmp_path, {}, expected, PRICED)


def test_what_pods_have_costs_what_their_units_do(tmp_path: Path) -> None:
    series = (
        THERE
        | a_pod("search", "a", "mixed-1", "nvidia_com_mig_3g_40gb", 1)
        | a_pod("search-dev", "b", "shared-1", "nvidia_com_gpu_shared", 2)
        | a_pod("other", "c", "mixed-2", "nvidia_com_mig_2g_20gb", 1)
    )
    by_tenant, by_pool = "tenant:gpuplan_requested_cost:hourly", "pool:gpuplan_requested_cost:hourly"
    expected = {
        by_tenant: samples(
            by_tenant, (f'tenant="search",pool="mixed",{EUR}', 5.2), (f'tenant="search",pool="shared",{EUR}', 0.6)
        ),
        by_pool: samples(by_pool, (f'pool="mixed",{EUR}', 8.2), (f'pool="shared",{EUR}', 0.6)),
    }
    assert_recorded(tmp_path, series, expected, PRICED)


def test_fractions_cost_their_part_of_a_gpu(tmp_path: Path) -> None:
    unit = 'unit="fraction",resource="nvidia_com_gpu"'
    expected = {
        f'{POOL_UNIT_COST}{{unit="fraction"}}': samples(POOL_UNIT_COST, (f'pool="fractions",{unit},{EUR}', 0.9)),
        f'{TENANT_COST}{{pool="fractions"}}': samples(TENANT_COST, (f'tenant="search",pool="fractions",{EUR}', 0.45)),
    }
    assert_recorded(tmp_path, {}, expected, FRACTIONS + LIST)


def test_claimed_devices_cost_what_kueue_says_that_tenants_have(tmp_path: Path) -> None:
    counted = counted_of_claims()
    usage = f'cohort="gpuplan",cluster_queue="search",flavor="claimed",resource="{counted}",{ROLE}'
    record = "tenant:gpuplan_requested_cost:hourly"
    expected = {record: samples(record, (f'tenant="search",pool="claimed",{EUR}', 22.4))}
    assert_recorded(tmp_path, {f"kueue_cluster_queue_resource_usage{{{usage}}}": "2x200"}, expected, CLAIMS + LIST)


def test_where_nobody_says_who_has_claimed_devices_it_is_not_recorded_what_those_cost() -> None:
    found = {rule["record"]: rule for rule in rules(a_plan(PLAIN_CLAIMS + LIST)) if "hourly" in rule.get("record", "")}

    assert found[POOL_UNIT_COST]["labels"] == {"pool": "claimed", "unit": "gpu", "currency": "EUR"}
    assert "tenant:gpuplan_requested_cost:hourly" not in found


def test_without_prices_nothing_is_recorded_of_costs() -> None:
    assert GROUP not in objects(a_plan(a_cluster()), "PrometheusRule")


def test_rules_of_a_thousand_tenants_are_two_objects() -> None:
    """A Prometheus' rules are in a ConfigMap, which may have 1 MiB."""
    teams = "".join(tenant(f"t{number}", "pool: large, guaranteed: 0, limit: 1") for number in range(1000))
    found = objects(a_plan(PRICED + teams), "PrometheusRule")
    sizes = [len(found[name]["spec"]["groups"][0]["rules"]) for name in (GROUP, f"{GROUP}-2")]
    assert (sizes[0], f"{GROUP}-3" in found) == (1000, False)
    assert sizes[1] == 18


def test_a_number_has_nine_digits_and_no_exponent() -> None:
    tiny = document("Prices", "list", "currency: EUR", "gpus: {A100-80GB: {perGpuHour: 0.000001}}")
    found = [rule["expr"] for rule in rules(a_plan(a_cluster() + tiny)) if rule.get("record") == POOL_UNIT_COST]
    assert found == ["vector(0.000000464)", "vector(0.000000268)", "vector(0.000000464)"]


# --- The dashboards ------------------------------------------------------------------------------------------------

PANELS = [
    "Costs of pools a month",
    "Cost of guarantees a month, by tenant",
    "Cost of units in use a month, by tenant",
    "Cost of what is not in use a month, by pool",
]


def titles(board: Json) -> list[str]:
    return [panel["title"] for panel in board["panels"]]


def test_panels_of_costs_are_there_where_there_are_prices() -> None:
    assert "Costs" not in titles(for_grafana())
    found = titles(for_grafana(PRICED))
    assert found[found.index("Costs") : found.index("Queues")] == ["Costs", *PANELS]


def test_the_console_shows_the_same_of_costs() -> None:
    console = for_console(a_cluster(OPENSHIFT) + LIST)
    assert list(queries(console)) == list(queries(for_grafana(PRICED)))
    assert "Costs" not in [row["title"] for row in for_console()["rows"]]


def test_panels_of_costs_ask_what_is_recorded_and_count_months_alike() -> None:
    recorded = {rule["record"] for rule in rules(a_plan(PRICED)) if "record" in rule}
    asked = [expr for title, expr in queries(for_grafana(PRICED)) if title in PANELS]

    assert {selector.name for expr in asked for selector in selectors(expr)} <= recorded
    assert [expr for expr in asked if not expr.rstrip(")").endswith(f" * {HOURS_PER_MONTH}")] == []


def test_what_is_not_in_use_costs_the_rest(tmp_path: Path) -> None:
    series = THERE | a_pod("search", "a", "mixed-1", "nvidia_com_mig_3g_40gb", 1)
    (expr,) = expressions(for_grafana(PRICED), PANELS[3])
    month = {"mixed": 17.2, "large": 11.2, "shared": 1.8}
    expected = {f'{{pool="{pool}",{EUR}}}': round(amount * 730, 6) for pool, amount in month.items()}
    rounded = f"round({expr}, 0.000001)"
    assert_all_samples(tmp_path, PRICED, series, {rounded: expected})


# --- Where it comes from -------------------------------------------------------------------------------------------


def links_of(record: str, **labels: str) -> set[str]:
    group = traced(a_plan(PRICED), f"prod/monitoring/prometheusrule-{GROUP}.yaml")
    written = group.artifact.body["spec"]["groups"][0]["rules"]  # type: ignore[union-attr]
    wanted = {"record": record, **labels}.items()
    index = next(index for index, rule in enumerate(written) if wanted <= ({**rule, **rule.get("labels", {})}).items())
    return set(own(group, "spec", "groups", 0, "rules", index, "expr"))


def test_a_cost_comes_of_the_price_and_of_how_many_nodes_there_are() -> None:
    links = links_of("pool:gpuplan_planned_cost:hourly", pool="mixed")
    assert links >= {
        "product of Prices/list spec.gpus.A100-80GB.perGpuHour",
        "product of Pool/mixed spec.nodes.count",
        "product of Pool/mixed spec.nodes.gpusPerNode",
        "chosen by Pool/mixed spec.gpu",
    }


def test_what_a_tenant_costs_comes_of_what_it_is_guaranteed() -> None:
    links = links_of(TENANT_COST, pool="mixed")
    assert "sum of Tenant/search spec.quotas.0.guaranteed" in links


def test_rules_of_costs_are_about_the_prices_and_all_pools() -> None:
    (found,) = (
        artifact
        for _, artifact in artifacts(a_plan(PRICED))
        if isinstance(artifact, Manifest) and artifact.name == GROUP
    )
    assert set(found.about) == {Subject("Cluster", "prod"), Subject("Prices", "list"), Subject("Pool", "")}
