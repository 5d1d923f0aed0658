"""What a dashboard's panels ask, and what they are told of a small cluster."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import promql_parser
import pytest

from gpuplan.compiler.backends.gpu_operator.settings import metrics
from gpuplan.compiler.backends.monitoring import dashboards
from gpuplan.compiler.backends.monitoring.rules import NODE_LABELS, node_label
from gpuplan.compiler.manifests.templates import read_rows
from tests.compiler.backends.monitoring.boards import OPENSHIFT, Json, expressions, for_console, for_grafana, queries
from tests.compiler.backends.monitoring.promql import able, selectors
from tests.compiler.backends.monitoring.watched import (
    ALLOCATABLE,
    CLAIMS,
    FRACTIONS,
    KUEUE,
    NODES,
    a_cluster,
    a_pod,
    alerts,
    assert_samples,
    rules,
)
from tests.plans import a_plan

BOARD = for_grafana()
PLAIN_CLAIMS = CLAIMS.replace("  scheduler: {kind: kueue}\n", "")
EMPTY = a_cluster().partition("---\n")[0]
ON_OPENSHIFT = ("  monitoring", f"{OPENSHIFT}  monitoring")

PARTITIONED = "nvidia_com_mig_3g_40gb"
STATE = "label_nvidia_com_mig_config_state"


# --- Which series ------------------------------------------------------------------------------------------------

FROM_KUBE_STATE_METRICS = {"kube_node_labels", "kube_resourcequota"}
FROM_DCGM_EXPORTER = {
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_XID_ERRORS",
}
"""Of those that are on by default: `etc/default-counters.csv` in NVIDIA/dcgm-exporter."""


@pytest.mark.parametrize("board", [for_grafana(), for_console()], ids=["grafana", "console"])
def test_every_series_is_recorded_or_there_by_default(board: Json) -> None:
    recorded = {rule["record"] for rule in rules(a_plan(a_cluster())) if "record" in rule}
    variables = {variable["query"] for variable in board["templating"]["list"][-2:]}
    asked = {selector.name for _, expr in queries(board) for selector in selectors(expr)}
    asked |= {query.removeprefix("label_values(").partition(",")[0] for query in variables}

    assert asked - recorded == {"ALERTS"} | FROM_KUBE_STATE_METRICS | FROM_DCGM_EXPORTER


def test_kube_state_metrics_is_told_to_show_the_labels_of_nodes_that_are_asked() -> None:
    asked = {
        matcher.name
        for _, expr in queries(BOARD)
        for selector in selectors(expr)
        for matcher in selector.matchers.matchers
        if selector.name == "kube_node_labels"
    }

    assert asked
    assert asked <= set(map(node_label, NODE_LABELS))


def test_the_exporter_is_told_to_collect_what_is_asked() -> None:
    """Where the cluster is watched its list is gpuplan's, in place of the default."""
    (counters,) = metrics(a_plan(a_cluster())).values()

    assert {line.partition(",")[0] for line in counters.splitlines()} >= FROM_DCGM_EXPORTER


def test_no_series_is_one_that_mig_devices_lack() -> None:
    """NVIDIA/dcgm-exporter#216 and #430: of these the counters are absent or zero there."""
    lacking = ("GPU_UTIL", "MEM_COPY_UTIL", "ENC_UTIL", "DEC_UTIL")

    assert [expr for _, expr in queries(BOARD) if any(name in expr for name in lacking)] == []


def test_the_viewers_choice_is_a_pattern_wherever_it_stands() -> None:
    """More than one value is an alternation, which only `=~` understands."""
    chosen = {
        (matcher.name, matcher.value, str(matcher.op))
        for _, expr in queries(BOARD)
        for selector in selectors(expr)
        for matcher in selector.matchers.matchers
        if "$" in matcher.value
    }

    assert chosen == {("pool", "$pool", "MatchOp.Re"), ("tenant", "$tenant", "MatchOp.Re")}


def test_the_alerts_that_are_listed_are_those_that_are_written() -> None:
    (expr,) = expressions(BOARD, "Alerts that fire")

    assert 'alertname=~"Gpu.+"' in expr
    assert {name[:3] for name in alerts(a_plan(a_cluster()))} == {"Gpu"}


# --- What they are told ------------------------------------------------------------------------------------------

TAKEN = NODES | ALLOCATABLE | a_pod("search", "web", "mixed-1", PARTITIONED, 1)
STATES = {
    f'kube_node_labels{{node="mixed-1",label_gpuplan_dev_pool="mixed",{STATE}="success"}}': "1x200",
    f'kube_node_labels{{node="mixed-2",label_gpuplan_dev_pool="mixed",{STATE}="failed"}}': "1x200",
    f'kube_node_labels{{node="large-1",label_gpuplan_dev_pool="large",{STATE}="success"}}': "1x200",
}

QUOTA = 'resourcequota="gpuplan",resource="requests.nvidia.com/mig-3g.40gb"'
BANNED = 'resourcequota="gpuplan",resource="requests.nvidia.com/gpu"'
QUOTAS = {
    f'kube_resourcequota{{namespace="search",{QUOTA},type="hard"}}': "2x200",
    f'kube_resourcequota{{namespace="search",{QUOTA},type="used"}}': "1x200",
    f'kube_resourcequota{{namespace="search",{BANNED},type="hard"}}': "0+0x200",
    f'kube_resourcequota{{namespace="search",{BANNED},type="used"}}': "0+0x200",
    f'kube_resourcequota{{namespace="of-nobody",{QUOTA},type="hard"}}': "2x200",
    f'kube_resourcequota{{namespace="of-nobody",{QUOTA},type="used"}}': "2x200",
}


def a_device(metric: str, node: str, profile: str, value: str, pod: str = "", number: int = 1) -> dict[str, str]:
    """A series of the DCGM exporter for GPU 0, for a MIG device where there is a profile."""
    mig = f',GPU_I_ID="{number}",GPU_I_PROFILE="{profile}"' if profile else ""
    workload = f',exported_namespace="search",exported_pod="{pod}"' if pod else ""
    return {f'{metric}{{node="{node}",gpu="0"{mig}{workload}}}': f"{value}+0x200"}


def assert_shows(
    folder: Path,
    title: str,
    series: Mapping[str, str],
    *columns: Mapping[str, float],
    choosing: Mapping[str, str] | None = None,
) -> None:
    """A panel's expressions have these samples, one set for each."""
    exprs = expressions(BOARD, title, choosing)
    assert len(exprs) == len(columns)
    for expr, samples in zip(exprs, columns, strict=True):
        assert_samples(folder, a_cluster(), series, expr, samples)


def test_nodes_are_counted_by_plan_and_by_label(tmp_path: Path) -> None:
    three = {name: value for name, value in NODES.items() if "mixed-2" not in name}

    assert_shows(tmp_path, "Nodes planned", three, {"{}": 4})
    assert_shows(tmp_path, "Nodes found", three, {"{}": 3})
    assert_shows(tmp_path, "Nodes found", three, {"{}": 1}, choosing={"pool": "mixed"})
    assert_shows(tmp_path, "Nodes found", {}, {"{}": 0})


def test_units_of_a_pool_are_all_there_when_no_node_is(tmp_path: Path) -> None:
    units = ['{pool="large",unit="3g.40gb"}', '{pool="mixed",unit="2g.20gb"}', '{pool="mixed",unit="3g.40gb"}']
    planned = dict(zip([*units, '{pool="shared",unit="shared"}'], (2, 4, 2, 6), strict=True))
    nothing = dict.fromkeys(planned, 0)

    assert_shows(tmp_path, "Units", {}, planned, nothing, nothing, nothing)


def test_units_of_a_pool_are_what_its_nodes_publish_and_its_pods_have(tmp_path: Path) -> None:
    small, large = '{pool="mixed",unit="2g.20gb"}', '{pool="mixed",unit="3g.40gb"}'

    assert_shows(
        tmp_path,
        "Units",
        TAKEN,
        {small: 4, large: 2},
        {small: 4, large: 2},
        {small: 0, large: 1},
        {small: 4, large: 1},
        choosing={"pool": "mixed"},
    )


def test_use_of_units_is_a_part_of_the_plan(tmp_path: Path) -> None:
    title = "Units in use, of those planned"

    assert_shows(
        tmp_path,
        title,
        TAKEN,
        {'{pool="mixed",unit="2g.20gb"}': 0, '{pool="mixed",unit="3g.40gb"}': 0.5},
        choosing={"pool": "mixed"},
    )


def test_partitions_that_are_not_ready_are_counted_and_named(tmp_path: Path) -> None:
    assert_shows(tmp_path, "Nodes whose partitions are not ready", STATES, {"{}": 1})
    assert_shows(tmp_path, "Nodes whose partitions are not ready", NODES, {"{}": 0})
    assert_shows(
        tmp_path,
        "Partitions that are not ready, by node",
        STATES,
        {f'{{{STATE}="failed",node="mixed-2",pool="mixed"}}': 1},
    )
    assert_shows(
        tmp_path,
        "Nodes by the state of their partitions",
        STATES,
        {f'{{{STATE}="failed"}}': 1, f'{{{STATE}="success"}}': 2},
    )


def test_units_that_pods_wait_for_are_those_of_the_cluster(tmp_path: Path) -> None:
    waiting = TAKEN | a_pod("search", "later", "", PARTITIONED, 1, "Pending")

    assert_shows(tmp_path, "Units waited for", waiting, {"{}": 1}, choosing={"pool": "shared"})
    assert_shows(tmp_path, "Units waited for", TAKEN, {"{}": 0})


def test_use_of_a_pool_is_that_of_its_mig_devices(tmp_path: Path) -> None:
    engine = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    busy = NODES | a_device(engine, "mixed-1", "3g.40gb", "0.5") | a_device(engine, "mixed-2", "3g.40gb", "0")

    assert_shows(
        tmp_path,
        "Compute engines busy, by pool",
        busy,
        {'pool:gpuplan_engine_active:avg{pool="mixed",profile="3g.40gb"}': 0.25},
    )


def test_memory_in_use_is_a_part_of_what_is_used_or_free(tmp_path: Path) -> None:
    """Of all MIG devices of a GPU; one that is shared has a series for each pod on it, and counts once."""
    used, free = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
    series = (
        NODES
        | a_device(used, "mixed-1", "3g.40gb", "10", number=1)
        | a_device(free, "mixed-1", "3g.40gb", "30", number=1)
        | a_device(used, "mixed-1", "2g.20gb", "20", number=2)
        | a_device(free, "mixed-1", "2g.20gb", "20", number=2)
        | a_device(used, "shared-1", "", "5", pod="one")
        | a_device(used, "shared-1", "", "5", pod="other")
        | a_device(free, "shared-1", "", "5", pod="one")
        | a_device(free, "shared-1", "", "5", pod="other")
    )

    assert_shows(tmp_path, "Memory in use, of what there is", series, {'{pool="mixed"}': 0.375, '{pool="shared"}': 0.5})


def test_queues_show_who_waits_for_what_and_how_long(tmp_path: Path) -> None:
    created = 'kube_pod_created{namespace="search",pod="later",uid="later"}'
    waiting = TAKEN | a_pod("search", "later", "", PARTITIONED, 2, "Pending") | {created: "60+0x200"}
    tenant = 'tenant="search"'

    depth = {f'tenant:gpuplan_waiting:count{{{tenant},state="unschedulable"}}': 1}
    assert_shows(tmp_path, "Waiting, by tenant", waiting, depth)
    units = {f'tenant:gpuplan_waiting_units:sum{{{tenant},resource="{PARTITIONED}"}}': 2}
    assert_shows(tmp_path, "Units waited for, by tenant", waiting, units)
    longest = {f"tenant:gpuplan_longest_wait_seconds:max{{{tenant}}}": 540}
    assert_shows(tmp_path, "Longest wait now, by tenant", waiting, longest)
    assert_shows(tmp_path, "Waiting, by tenant", TAKEN, {})


@pytest.mark.parametrize("text", [a_cluster(), a_cluster(KUEUE), CLAIMS, PLAIN_CLAIMS, FRACTIONS, EMPTY])
def test_a_panel_is_left_out_if_it_would_be_empty_for_ever(text: str) -> None:
    """A column of a table may be: that nobody has a limit is worth seeing."""
    known = {rule["record"] for rule in rules(a_plan(text)) if "record" in rule}
    rows = read_rows(Path(dashboards.__file__).with_name("panels.yaml"))["rows"]
    panels = [panel for row in rows for panel in row["panels"]]
    asked = {panel["title"]: panel.get("queries") or {"": panel["query"]} for panel in panels}
    can = {
        title
        for title, queries_of in asked.items()
        if any(able(promql_parser.parse(query), known) for query in queries_of.values())
    }

    assert {title for title, _ in queries(for_grafana(text))} == can


def test_with_claims_there_is_no_row_of_what_nobody_knows() -> None:
    titles = [panel["title"] for panel in for_grafana(PLAIN_CLAIMS)["panels"]]

    assert "Compute engines busy, by tenant" not in titles
    assert "Units" not in titles
    assert [row["title"] for row in for_console(CLAIMS.replace(*ON_OPENSHIFT))["rows"]][-1] == "Alerts"


def test_a_tenants_units_are_its_grants_and_what_its_pods_have(tmp_path: Path) -> None:
    large, shared = '{tenant="search",pool="mixed",unit="3g.40gb"}', '{tenant="search",pool="shared",unit="shared"}'

    assert_shows(tmp_path, "Units of tenants", TAKEN, {large: 1, shared: 3}, {large: 2}, {large: 1, shared: 0})
    assert_shows(tmp_path, "Units of tenants", TAKEN, {}, {}, {}, choosing={"tenant": "another"})


def test_use_by_a_tenant_is_that_of_its_pods_devices(tmp_path: Path) -> None:
    metric = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    series = NODES | a_device(metric, "mixed-1", "3g.40gb", "0.5", "web") | a_device(metric, "mixed-2", "3g.40gb", "0")

    assert_shows(
        tmp_path,
        "Compute engines busy, by tenant",
        series,
        {'tenant:gpuplan_engine_active:avg{pool="mixed",profile="3g.40gb",tenant="search"}': 0.5},
    )


def test_quotas_are_those_of_tenants_that_grant_anything(tmp_path: Path) -> None:
    """A namespace's quota forbids, with zero, every GPU resource that it does not grant."""
    row = '{namespace="search",resource="requests.nvidia.com/mig-3g.40gb",tenant="search"}'

    assert_shows(tmp_path, "Quotas", QUOTAS, {row: 1}, {row: 2})
    assert_shows(tmp_path, "Quota in use", QUOTAS, {row: 0.5})


def test_gpus_with_errors_are_named_and_the_others_are_not(tmp_path: Path) -> None:
    series = (
        NODES
        | a_device("DCGM_FI_DEV_XID_ERRORS", "mixed-1", "3g.40gb", "79")
        | a_device("DCGM_FI_DEV_XID_ERRORS", "shared-1", "", "0")
        | a_device("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "mixed-1", "", "2")
        | a_device("DCGM_FI_DEV_ROW_REMAP_FAILURE", "shared-1", "", "1")
    )
    first, second = '{gpu="0",node="mixed-1",pool="mixed"}', '{gpu="0",node="shared-1",pool="shared"}'

    assert_shows(tmp_path, "GPUs with errors", series, {first: 79}, {first: 2}, {second: 1})


def test_heat_and_power_are_those_of_gpus(tmp_path: Path) -> None:
    series = (
        NODES
        | a_device("DCGM_FI_DEV_GPU_TEMP", "mixed-1", "3g.40gb", "60")
        | a_device("DCGM_FI_DEV_POWER_USAGE", "mixed-1", "3g.40gb", "300")
    )
    gpu = '{gpu="0",node="mixed-1",pool="mixed"}'

    assert_shows(tmp_path, "Temperature in °C", series, {gpu: 60})
    assert_shows(tmp_path, "Power in watts", series, {gpu: 300})


def test_alerts_that_fire_are_listed_with_what_they_are_about(tmp_path: Path) -> None:
    failing = NODES | a_device("DCGM_FI_DEV_ROW_REMAP_FAILURE", "shared-1", "", "1")

    assert_shows(
        tmp_path,
        "Alerts that fire",
        failing,
        {'{alertname="GpuRowRemapFailure",node="shared-1",severity="critical"}': 1},
    )
