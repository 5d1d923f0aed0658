"""The dashboard as an object of a cluster, and in the two forms that it is read in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from syrupy.assertion import SnapshotAssertion

from gpuplan.compiler.backends.monitoring import dashboards
from gpuplan.compiler.manifests import check_schemas, to_yaml
from tests.compiler.backends.monitoring.boards import (
    OPENSHIFT,
    Json,
    for_console,
    for_grafana,
    manifest,
    metadata,
    queries,
    text_of,
)
from tests.compiler.backends.monitoring.watched import POOLS, a_cluster
from tests.plans import CLUSTER, a_plan

CONSOLE_LABELS = {"console.openshift.io/dashboard": "true", "console.openshift.io/odc-dashboard": "true"}


# --- The ConfigMap -----------------------------------------------------------------------------------------------


def test_grafanas_sidecar_finds_the_dashboard_by_its_label() -> None:
    found = manifest(a_cluster())

    assert found.folder == "monitoring"
    assert found.body["metadata"] == {
        "name": "gpuplan-prod",
        "namespace": "monitoring",
        "labels": {"grafana_dashboard": "1"},
    }
    assert list(found.body["data"]) == ["gpuplan-prod.json"]


def test_openshifts_console_finds_it_by_its_own_labels_in_the_only_namespace_where_it_looks() -> None:
    assert metadata(a_cluster(OPENSHIFT)) == {
        "name": "gpuplan-prod",
        "namespace": "openshift-config-managed",
        "labels": CONSOLE_LABELS,
    }


def test_namespace_labels_and_folder_are_the_policys() -> None:
    text = a_cluster(monitoring="{dashboards: {namespace: grafana, labels: {team: gpu, board: grafana}, folder: GPUs}}")

    assert metadata(text) == {
        "name": "gpuplan-prod",
        "namespace": "grafana",
        "labels": {"board": "grafana", "team": "gpu"},
        "annotations": {"grafana_folder": "GPUs"},
    }


def test_without_labels_there_is_no_field_for_them() -> None:
    assert metadata(a_cluster(monitoring="{dashboards: {labels: {}}}")) == {
        "name": "gpuplan-prod",
        "namespace": "monitoring",
    }


def test_the_console_knows_no_folders() -> None:
    assert "annotations" not in metadata(a_cluster(OPENSHIFT, "{dashboards: {folder: GPUs}}"))


def test_the_labels_decide_on_the_form() -> None:
    """A Grafana on OpenShift reads Grafana's form."""
    board = for_grafana(a_cluster(OPENSHIFT, "{dashboards: {namespace: grafana, labels: {grafana_dashboard: '1'}}}"))

    assert "panels" in board
    assert "rows" not in board


def test_a_cluster_that_nobody_watches_has_none() -> None:
    assert list(dashboards.render(a_plan(f"{CLUSTER}---\n{POOLS}"), (), "")) == []


@pytest.mark.parametrize("text", [a_cluster(), a_cluster(OPENSHIFT)], ids=["grafana", "console"])
def test_kubernetes_takes_the_object(text: str) -> None:
    assert check_schemas([manifest(text)], "1.34") == ()


@pytest.mark.parametrize("text", [a_cluster(), a_cluster(OPENSHIFT)], ids=["grafana", "console"])
def test_the_same_plan_gives_the_same_readable_bytes(text: str) -> None:
    first, second = text_of(text), text_of(text)

    assert first == second
    assert first == json.dumps(json.loads(first), indent=2, ensure_ascii=False) + "\n"
    assert ".json: |\n    {\n" in to_yaml(manifest(text).body)


def a_fleet(pools: int, tenants: int) -> str:
    cluster = a_cluster().partition("---\n")[0]
    return "---\n".join([cluster, *map(a_pool, range(pools)), *map(a_tenant, range(tenants))])


def a_pool(number: int) -> str:
    return (
        "apiVersion: gpuplan.dev/v1\n"
        "kind: Pool\n"
        f"metadata: {{name: pool-{number}}}\n"
        "spec:\n"
        "  gpu: L4-24GB\n"
        f"  nodes: {{count: 1, gpusPerNode: 2, names: [node-{number}]}}\n"
        "  sharing: {exclusive: {}}\n"
    )


def a_tenant(number: int) -> str:
    return (
        "apiVersion: gpuplan.dev/v1\n"
        "kind: Tenant\n"
        f"metadata: {{name: team-{number}}}\n"
        f"spec: {{namespaces: [team-{number}], quotas: [{{pool: pool-0, guaranteed: 0, limit: 1}}]}}\n"
    )


def test_a_fleets_dashboard_is_as_small_as_any() -> None:
    """A ConfigMap may have 1 MiB, and 256 KiB where it is applied with `kubectl apply` from the client."""
    assert text_of(a_fleet(300, 1000)) == text_of(a_fleet(1, 1))
    assert len(text_of(a_fleet(1, 1))) < 64 * 1024


# --- Grafana -----------------------------------------------------------------------------------------------------


def test_its_address_is_the_clusters_name_for_ever() -> None:
    assert for_grafana()["uid"] == "gpuplan-prod"


@pytest.mark.parametrize(
    ("name", "uid"),
    [
        ("a" * 32, "gpuplan-" + "a" * 32),
        ("a" * 33, "gpuplan-aaaaaaaaaaaaaaaaaaaaaaa-e79d2036"),
        ("a" * 33 + "b", "gpuplan-aaaaaaaaaaaaaaaaaaaaaaa-bdca72f0"),
    ],
)
def test_a_long_name_is_cut_and_told_apart_by_a_hash(name: str, uid: str) -> None:
    """Grafana takes 40 characters."""
    found = for_grafana(a_cluster().replace("{name: prod}", f"{{name: {name}}}"))["uid"]

    assert found == uid
    assert len(found) <= 40


def test_nothing_in_it_is_for_grafanas_database_to_count() -> None:
    assert {"id", "version", "iteration"} & set(for_grafana()) == set()


def lost(before: Any, after: Any, route: str = "") -> Iterator[str]:
    """What is in one value and not, or otherwise, in the other."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            yield from lost(value, after[key], f"{route}.{key}") if key in after else [f"{route}.{key}"]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from lost(one, other, f"{route}[{index}]")
    elif before != after:
        yield f"{route}: {before} became {after}"


def test_grafanas_own_model_knows_every_field() -> None:
    """Whatever it does not know it leaves out: options and field settings of each panel type included."""
    register_default_plugins()
    board = for_grafana()

    read = json.loads(json.dumps(Dashboard.from_json(board), cls=JSONEncoder))

    assert list(lost(board, read)) == []


def test_panels_are_numbered_and_do_not_overlap() -> None:
    panels = for_grafana()["panels"]

    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    assert [(one["title"], other["title"]) for one, other in combinations(panels, 2) if overlap(one, other)] == []
    assert {panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels} == {True}


def overlap(one: Json, other: Json) -> bool:
    a, b = one["gridPos"], other["gridPos"]
    return bool(
        a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"]
    )


def test_every_query_goes_to_the_data_source_that_the_viewer_chose() -> None:
    board = for_grafana()
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    asked = [panel for panel in board["panels"] if panel["type"] != "row"]

    assert [variable["name"] for variable in board["templating"]["list"]] == ["datasource", "pool", "tenant"]
    assert {json.dumps(panel["datasource"]) for panel in asked} == {json.dumps(chosen)}
    assert {json.dumps(target["datasource"]) for panel in asked for target in panel["targets"]} == {json.dumps(chosen)}


def test_all_is_a_pattern_and_not_a_list_of_a_thousand_names() -> None:
    pool, tenant = for_grafana()["templating"]["list"][1:]

    assert pool["query"] == "label_values(pool:gpuplan_planned_nodes:sum, pool)"
    assert tenant["query"] == "label_values(namespace:gpuplan_tenant:info, tenant)"
    assert (pool["includeAll"], pool["allValue"], pool["current"]["value"]) == (True, ".+", ["$__all"])


def test_a_table_shows_its_numbers_under_names_and_no_time() -> None:
    (units,) = (panel for panel in for_grafana()["panels"] if panel["title"] == "Units")

    assert [target["refId"] for target in units["targets"]] == ["A", "B", "C", "D"]
    assert {(target["format"], target["instant"]) for target in units["targets"]} == {("table", True)}
    assert units["transformations"] == [
        {"id": "merge", "options": {}},
        {
            "id": "organize",
            "options": {
                "excludeByName": {"Time": True},
                "indexByName": {"pool": 0, "unit": 1, "Value #A": 2, "Value #B": 3, "Value #C": 4, "Value #D": 5},
                "renameByName": {
                    "pool": "Pool",
                    "unit": "Unit",
                    "Value #A": "Planned",
                    "Value #B": "Allocatable",
                    "Value #C": "Requested",
                    "Value #D": "Free",
                },
            },
        },
    ]


def test_a_number_that_only_says_that_there_is_a_row_is_hidden() -> None:
    (nodes,) = (
        panel for panel in for_grafana()["panels"] if panel["title"] == "Partitions that are not ready, by node"
    )

    assert nodes["transformations"][1]["options"] == {
        "excludeByName": {"Time": True, "Value": True},
        "indexByName": {"pool": 0, "node": 1, "label_nvidia_com_mig_config_state": 2},
        "renameByName": {"pool": "Pool", "node": "Node", "label_nvidia_com_mig_config_state": "State"},
    }


def custom(title: str) -> Json:
    (panel,) = (panel for panel in for_grafana()["panels"] if panel["title"] == title)
    found: Json = panel["fieldConfig"]["defaults"]["custom"]
    return found


def test_axes_show_the_whole_and_whatever_is_beyond() -> None:
    """More nodes than planned hand out more units than planned, and a node that fails has pods without units."""
    assert custom("Units in use, of those planned") == {"axisSoftMin": 0, "axisSoftMax": 1}
    assert custom("Units free") == {"axisSoftMin": 0}
    assert custom("Nodes by the state of their partitions")["stacking"] == {"group": "A", "mode": "normal"}


# --- The console -------------------------------------------------------------------------------------------------


def panels_of_console() -> list[Json]:
    return [panel for row in for_console()["rows"] for panel in row["panels"]]


def test_the_console_is_given_panels_that_it_shows() -> None:
    """The list in `web/src/components/dashboards/legacy/legacy-dashboard.tsx` of openshift/monitoring-plugin."""
    shown = {"gauge", "grafana-piechart-panel", "graph", "singlestat", "table"}

    assert {panel["type"] for panel in panels_of_console()} <= shown
    assert {1 <= panel["span"] <= 12 for panel in panels_of_console()} == {True}
    assert len({panel["id"] for panel in panels_of_console()}) == len(panels_of_console())


def test_the_console_turns_the_variables_into_queries() -> None:
    """Those of other types, and those that are hidden, it leaves out; it looks for a comma and one blank."""
    variables = for_console()["templating"]["list"]

    assert [variable["name"] for variable in variables] == ["pool", "tenant"]
    assert {(variable["type"], variable["hide"], variable["includeAll"]) for variable in variables} == {
        ("query", 0, True)
    }
    assert [
        re.sub(r"label_values\((.*), (.*)\)", r"count(\1) by (\2)", variable["query"]) for variable in variables
    ] == ["count(pool:gpuplan_planned_nodes:sum) by (pool)", "count(namespace:gpuplan_tenant:info) by (tenant)"]


def test_no_variables_name_is_the_start_of_another() -> None:
    """Older consoles replace `$pool` in `$pools` as well (`evaluateVariableTemplate`)."""
    names = [variable["name"] for variable in for_grafana()["templating"]["list"]]

    assert [pair for pair in combinations(names, 2) if pair[0].startswith(pair[1]) or pair[1].startswith(pair[0])] == []


def test_the_consoles_tables_say_what_their_columns_are() -> None:
    (units,) = (panel for panel in panels_of_console() if panel["title"] == "Units")

    assert [(style["pattern"], style["alias"]) for style in units["styles"]] == [
        ("pool", "Pool"),
        ("unit", "Unit"),
        ("Value #A", "Planned"),
        ("Value #B", "Allocatable"),
        ("Value #C", "Requested"),
        ("Value #D", "Free"),
    ]
    assert [target["refId"] for target in units["targets"]] == ["A", "B", "C", "D"]


def test_the_consoles_colours_turn_above_what_is_well() -> None:
    """It takes the last threshold that is below the number."""
    (waiting,) = (panel for panel in panels_of_console() if panel["title"] == "Units waited for")

    assert waiting["options"]["fieldOptions"]["thresholds"] == [
        {"color": "green", "value": -1},
        {"color": "red", "value": 0},
    ]


def test_both_forms_ask_the_same() -> None:
    assert list(queries(for_console())) == list(queries(for_grafana()))


def test_both_forms_name_and_measure_series_alike() -> None:
    """The console knows two of Grafana's units; it shows plain numbers for the others."""
    grafana = [panel for panel in for_grafana()["panels"] if panel["type"] == "timeseries"]
    console = [panel for panel in panels_of_console() if panel["type"] == "graph"]

    assert [panel["targets"][0]["legendFormat"] for panel in console] == [
        panel["targets"][0]["legendFormat"] for panel in grafana
    ]
    units = [panel["fieldConfig"]["defaults"]["unit"] for panel in grafana]
    assert [panel["yaxes"][0]["format"] for panel in console] == [
        unit if unit in ("percentunit", "bytes") else "short" for unit in units
    ]


def test_both_forms_name_the_columns_of_tables_alike() -> None:
    grafana = [panel for panel in for_grafana()["panels"] if panel["type"] == "table"]
    console = [panel for panel in panels_of_console() if panel["type"] == "table"]

    assert [[style["alias"] for style in panel["styles"] if style["alias"]] for panel in console] == [
        list(panel["transformations"][-1]["options"]["renameByName"].values()) for panel in grafana
    ]


# --- As a whole --------------------------------------------------------------------------------------------------


def outline_of_grafana(board: Json) -> Iterator[str]:
    for panel in board["panels"]:
        place = panel["gridPos"]
        yield f"{place['x']:2},{place['y']:<3} {place['w']:2}x{place['h']}  {panel['type']}: {panel['title']}"


def outline_of_console(board: Json) -> Iterator[str]:
    for row in board["rows"]:
        yield row["title"]
        for panel in row["panels"]:
            yield f"  {panel['span']:2} {panel['type']}: {panel['title']}"


def settings(value: object, *route: str) -> Iterator[tuple[str, object]]:
    """Each value of a panel by its route, the routes of lists without their indexes."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from settings(part, *route, key)
    elif isinstance(value, list):
        for part in value:
            yield from settings(part, *route)
    else:
        yield ".".join(route), value


def settings_of(panels: list[Json], *besides: str) -> list[str]:
    """How panels of each type are shown: all but what is in them."""
    found: dict[tuple[str, str], set[str]] = {}
    for panel in panels:
        shown = {key: part for key, part in panel.items() if key not in ("type", "title", "targets", "id", *besides)}
        for route, value in settings(shown):
            found.setdefault((panel["type"], route), set()).add(json.dumps(value))
    return [f"{kind} {route}: {', '.join(sorted(values))}" for (kind, route), values in sorted(found.items())]


def test_how_grafana_shows_panels_of_each_type(snapshot: SnapshotAssertion) -> None:
    board = for_grafana()

    assert {key: value for key, value in board.items() if key not in ("title", "uid", "panels", "templating")} == {
        "tags": ["gpuplan", "gpu"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "",
        "annotations": {"list": []},
    }
    assert settings_of(board["panels"], "description", "gridPos", "transformations") == snapshot


def test_how_the_console_shows_panels_of_each_type(snapshot: SnapshotAssertion) -> None:
    assert settings_of(panels_of_console(), "span") == snapshot


def test_whole_dashboard_in_grafana(snapshot: SnapshotAssertion) -> None:
    assert "\n".join(outline_of_grafana(for_grafana())) == snapshot


def test_whole_dashboard_in_the_console(snapshot: SnapshotAssertion) -> None:
    assert "\n".join(outline_of_console(for_console())) == snapshot
