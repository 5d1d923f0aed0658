"""What `pack` makes of a demand: policies that are valid, and numbers that are theirs."""

from __future__ import annotations

import json
import random
from fractions import Fraction as Ratio
from pathlib import Path

import jsonschema
import pytest
import yaml

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.pipeline import build, validate
from gpuplan.compiler.planning.prices import Cost, costs
from gpuplan.features.packing.computing import Packing, pack, write_packing
from gpuplan.features.packing.views.packing import moves_of, packing_as_data, patch_text, shown_packing
from gpuplan.terminal.plan_json import plans_as_data
from gpuplan.terminal.schemas import schema
from gpuplan.terminal.text import PLAIN, Theme
from tests.laws.orders.platforms import CLUSTER, Platform, random_platform

REPOSITORY = Path(__file__).parents[3]

NO_QUESTION = ("has no pool whose GPUs could be cut", "nobody asks for GPUs of cluster")


@pytest.mark.parametrize("seed", range(10))
def test_what_is_written_is_valid_and_has_the_numbers_that_were_said(seed: int, tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    try:
        packing = _packed(random_platform(random.Random(seed)), after)
    except GpuplanError as error:
        if not any(reason in error.message for reason in NO_QUESTION):
            raise
        return
    random_platform(random.Random(seed)).write(before)
    assert packing.is_valid, [item.finding.headline for item in packing.variants[0].findings]
    data = packing_as_data(packing)
    jsonschema.validate(json.loads(json.dumps(data)), schema("pack"))
    answer = data["answers"][0]

    write_packing(packing, after)

    report = validate(after)
    assert [item.finding.headline for item in report.diagnostics if item.is_error] == []
    assert build(after).report.is_valid
    names = {pool["name"] for pool in answer["pools"]}
    shown = [pool for pool in plans_as_data(report.plans)["clusters"][0]["pools"] if pool["name"] in names]
    assert answer["pools"] == shown
    assert answer["gpus"] == sum(pool["gpu_count"] for pool in shown)
    assert answer["nodes"] == sum(pool["nodes"]["count"] for pool in shown)
    assert answer["gpus"] == packing.variants[0].answer.gpus


def _packed(platform: Platform, root: Path) -> Packing:
    root.mkdir()
    platform.write(root)
    return pack(root, cluster=CLUSTER, alternatives=False)


# --- One platform ------------------------------------------------------------------------------------------------

HALVES_AND_SEVENTHS = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: halves}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 1, names: [gpu-1, gpu-2]}
  sharing: {mig: {instances: {3g.40gb: 2}}}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: team}
spec:
  namespaces: [team]
  quotas:
    # What the team has.
    - {pool: halves, guaranteed: 2, limit: none}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    overlay = tmp_path / "overlays" / "test"
    overlay.mkdir(parents=True)
    (overlay / "cluster.yaml").write_text(
        "# The cluster.\napiVersion: gpuplan.dev/v1\nkind: Cluster\nmetadata: {name: test}\n"
        'spec: {kubernetes: "1.34", gpuOperator: {install: helm, version: v26.7.0}}\n',
        encoding="utf-8",
    )
    (overlay / "own.yaml").write_text(HALVES_AND_SEVENTHS, encoding="utf-8")
    return tmp_path


def test_a_node_that_is_not_needed_leaves_its_pool_and_the_rest_of_the_file_stays(root: Path) -> None:
    packing = pack(root)
    write_packing(packing, root)
    text = (root / "overlays/test/own.yaml").read_text(encoding="utf-8")
    assert "count: 1" in text
    assert text.partition("---\n")[2] == HALVES_AND_SEVENTHS.partition("---\n")[2]
    assert (packing.today.gpus, packing.variants[0].numbers.gpus) == (2, 1)
    assert [tuple(item.names) for item in packing.variants[0].assignment.departures] == [("gpu-2",)]


def test_what_is_packed_already_changes_nothing(root: Path) -> None:
    write_packing(pack(root), root)
    assert pack(root).variants[0].files == {}


def test_nothing_is_cut_that_is_kept(root: Path) -> None:
    packing = pack(root, keep=("halves",))
    assert packing.variants[0].files == {}
    assert packing.variants[0].fleet.kept == (("halves", "asked for"),)


def test_two_pools_that_are_cut_alike_are_both_kept_and_no_node_is_added(root: Path) -> None:
    own = root / "overlays" / "test" / "own.yaml"
    empty = HALVES_AND_SEVENTHS.partition("---\n")[0].replace("halves", "more").replace("gpu-", "another-")
    own.write_text(f"{empty}---\n{HALVES_AND_SEVENTHS}", encoding="utf-8")
    packing = pack(root, keep=("halves", "more"))
    assert packing.variants[0].numbers.nodes == packing.today.nodes == 4
    assert packing.variants[0].files == {}


def test_pools_that_are_cut_alike_stay_as_large_as_the_answer_has_them(root: Path) -> None:
    own = root / "overlays" / "test" / "own.yaml"
    small = HALVES_AND_SEVENTHS.partition("---\n")[0].replace("halves", "few").replace("gpu-", "another-")
    small = small.replace("count: 2", "count: 1").replace(", another-2", "")
    team = HALVES_AND_SEVENTHS.replace("guaranteed: 2", "guaranteed: 1")
    own.write_text(f"{small}---\n{team.replace('pool: halves', 'pool: few')}", encoding="utf-8")
    demand = {"teams.csv": b"team,pods,memory\nteam,6,30Gi\n"}
    variant = pack(root, demand, alternatives=False).variants[0]
    assert {pool.name: pool.nodes.count for pool in variant.pools} == {"few": 1, "halves": 2}


def test_a_document_that_clusters_share_stays_and_the_overlay_says_what_differs(root: Path) -> None:
    shared = root / "policies"
    shared.mkdir()
    (root / "overlays/test/own.yaml").rename(shared / "all.yaml")
    packing = pack(root)
    assert sorted(packing.variants[0].files) == ["overlays/test/packed.yaml"]
    assert "+    count: 1\n" in patch_text(packing.variants[0], packing.texts)


def test_of_two_pools_that_would_do_the_one_stays_whose_tenants_are_there(root: Path) -> None:
    own = root / "overlays" / "test" / "own.yaml"
    empty = HALVES_AND_SEVENTHS.partition("---\n")[0].replace("halves", "empty").replace("gpu-", "another-")
    own.write_text(f"{empty}---\n{HALVES_AND_SEVENTHS}", encoding="utf-8")
    variant = pack(root).variants[0]
    assert [pool.name for pool in variant.pools] == ["halves"]
    assert moves_of(variant) == []


def test_classes_may_use_what_a_quota_gains(root: Path) -> None:
    own = root / "overlays/test/own.yaml"
    limits = "guaranteed: 0, limit: 1, classLimits: {urgent: 0}"
    urgent = "---\napiVersion: gpuplan.dev/v1\nkind: PriorityClass\nmetadata: {name: urgent}\nspec: {value: 9}\n"
    text = HALVES_AND_SEVENTHS.replace("guaranteed: 2, limit: none", limits)
    own.write_text(f"{text}  priorityClasses: [urgent]\n{urgent}", encoding="utf-8")
    variant = pack(root, {"teams.csv": b"team,pods,memory\nteam,2,30Gi\n"}, alternatives=False).variants[0]
    assert [item.finding.headline for item in variant.findings if item.is_error] == []
    assert variant.plan is not None
    (quota,) = variant.plan.tenants[0].quotas
    assert (quota.guaranteed, dict(quota.spec.class_limits)) == (2, {"urgent": 2})


@pytest.mark.parametrize(("scheduler", "unit"), [("kueue", "1g.10gb+me"), ("kai", "7g.80gb")])
def test_profiles_that_the_scheduler_does_not_count_are_not_made(root: Path, scheduler: str, unit: str) -> None:
    """KAI-Scheduler reads a MIG device's size from its name, and knows none with an attribute."""
    cluster = root / "overlays/test/cluster.yaml"
    text = cluster.read_text(encoding="utf-8")
    cluster.write_text(
        text.replace("{kubernetes:", f"{{scheduler: {{kind: {scheduler}}}, kubernetes:"), encoding="utf-8"
    )
    demand = {"teams.csv": b"team,pods,memory,engines.jpeg\nteam,1,9Gi,1\n"}
    variant = pack(root, demand, alternatives=False, may_cut_guarantees=True).variants[0]
    assert variant.is_valid
    assert [grant.unit for grant in variant.answer.grants] == [unit]


SHARED = """\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: shared}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 1, names: [gpu-3]}
  sharing: {timeSlicing: {replicas: 2}}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: another-team}
spec:
  namespaces: [another-team]
  quotas: [{pool: shared, guaranteed: 2}]
"""


def test_a_pool_whose_gpus_are_not_partitioned_has_no_layout(root: Path) -> None:
    own = root / "overlays" / "test" / "own.yaml"
    own.write_text(HALVES_AND_SEVENTHS + SHARED, encoding="utf-8")
    packing = pack(root, most_layouts=1)
    assert (packing.today.layouts, packing.variants[0].numbers.layouts) == (1, 1)
    assert [variant.variation.value for variant in packing.alternatives] != ["one-layout"]


WORK = """\
---
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {name: tests}
spec: {tenant: team, pool: shared, training: {pods: 2}, image: "example.com/tests:1", cpu: "1", memory: 1Gi}
"""


def test_gpu831_work_that_a_demand_leaves_out_is_not_said_to_lose_its_unit(root: Path) -> None:
    own = root / "overlays" / "test" / "own.yaml"
    quotas = "quotas:\n    - {pool: shared, unit: shared, guaranteed: 2}\n"
    text = (HALVES_AND_SEVENTHS + SHARED.replace("replicas: 2", "replicas: 4") + WORK).replace("quotas:\n", quotas)
    own.write_text(text.replace(", limit: none", ""), encoding="utf-8")
    packing = pack(root, {"teams.csv": b"team,pods,memory\nteam,1,9Gi\n"}, keep=("shared",), may_cut_guarantees=True)
    (found,) = (item.finding for item in packing.variants[0].findings)
    assert found.message == ("workload `tests` runs on `shared` of pool `shared`, and tenant `team` would have too few")
    assert found.help == "ask for its pods in the demand of `team`, too; or let it have fewer pods"


def test_a_team_has_units_for_all_that_it_asks_for(root: Path) -> None:
    """Of what it asks for, its quota of today would hold a part."""
    demand = {"teams.csv": b"team,pods,memory\nteam,1,30Gi\nteam,3,60Gi\n"}
    packing = pack(root, demand, nodes_at_most={"A100-80GB": 9}, may_cut_guarantees=True)
    (plan,) = filter(None, (packing.variants[0].plan,))
    (tenant,) = plan.tenants
    assert sum(quota.guaranteed for quota in tenant.quotas) == 4


SERVICE = b"""\
apiVersion: gpuplan.dev/v1
kind: Demand
metadata: {name: q3}
spec:
  needs:
    - team: team
      service: {requestsPerSecond: 5000, throughput: [{size: 1, requestsPerSecond: 1, latency: 1ms}]}
"""


def test_gpu827_says_of_a_service_which_requests_are_asked_for(root: Path) -> None:
    (found,) = (item.finding for item in pack(root, {"q3.yaml": SERVICE}).variants[0].findings)
    assert found.label == "5,000 requests a second asked for"


def test_where_nothing_is_asked_for_no_pool_is_taken_away(root: Path) -> None:
    own = root / "overlays" / "test" / "own.yaml"
    own.write_text(HALVES_AND_SEVENTHS.replace("guaranteed: 2", "guaranteed: 0"), encoding="utf-8")
    with pytest.raises(GpuplanError, match="nobody asks for GPUs"):
        pack(root)


@pytest.mark.parametrize("path", ["overlays/test/own.yaml", "overlays/test/packed.yaml"])
def test_an_edit_that_was_made_meanwhile_is_not_lost(root: Path, path: str) -> None:
    packing = pack(root, {"teams.csv": b"team,pods,memory\nteam,7,9Gi\n"})
    assert path in packing.variants[0].files
    (root / path).write_text("# Mine.\n", encoding="utf-8")
    with pytest.raises(GpuplanError, match="has changed since it was read"):
        write_packing(packing, root)
    assert (root / path).read_text(encoding="utf-8") == "# Mine.\n"


def test_a_file_with_a_byte_order_mark_has_not_changed_for_it(root: Path) -> None:
    own = root / "overlays" / "test" / "own.yaml"
    own.write_text(HALVES_AND_SEVENTHS, encoding="utf-8-sig")
    assert write_packing(pack(root), root) == ("overlays/test/own.yaml",)


def test_another_demand_moves_a_tenants_quota(root: Path) -> None:
    demand = root / "teams.csv"
    demand.write_text("team,name,pods,memory\nteam,small,7,9Gi\n", encoding="utf-8")
    packing = pack(root, {"teams.csv": demand.read_bytes()}, may_cut_guarantees=True)
    if not packing.variants:
        pytest.fail(str([item.finding.headline for item in packing.diagnostics]))
    assert packing.variants[0].numbers.gpus == 1
    assert "1g.10gb" in shown_packing(packing, "table", PLAIN)


@pytest.mark.parametrize("format_", ["table", "markdown", "diff", "json"])
def test_an_answer_is_shown_in_every_format(root: Path, format_: str) -> None:
    assert "halves" in shown_packing(pack(root), format_, PLAIN)


def test_a_patch_keeps_what_a_terminal_would_obey(root: Path) -> None:
    own = root / "overlays" / "test" / "own.yaml"
    own.write_text(HALVES_AND_SEVENTHS.replace("spec:\n", "spec: # \u202elive\n"), encoding="utf-8")
    packing = pack(root)
    assert " spec: # \u202elive\n" in shown_packing(packing, "diff", PLAIN)
    assert "\u202e" not in shown_packing(packing, "diff", Theme(is_fitted=True))


def test_a_pool_that_is_not_there_is_trouble(root: Path) -> None:
    with pytest.raises(GpuplanError, match="there is no pool `halfs`"):
        pack(root, pools=("halfs",))


# --- Quotas ------------------------------------------------------------------------------------------------------


def _quotas(root: Path) -> dict[str, list[tuple[str, str, float]]]:
    (plan,) = validate(root).plans
    return {
        tenant.name: [(quota.pool.name, quota.unit.name, float(quota.guaranteed)) for quota in tenant.quotas]
        for tenant in plan.tenants
    }


def test_a_team_gets_what_it_asks_for_beyond_its_units_and_within_them(root: Path) -> None:
    demand = b"team,name,pods,memory\nteam,small,1,30Gi\nteam,large,1,70Gi\n"
    write_packing(pack(root, {"teams.csv": demand}, may_cut_guarantees=True), root)
    assert sorted(_quotas(root)["team"]) == [("halves", "3g.40gb", 1), ("halves-2", "7g.80gb", 1)]


@pytest.mark.parametrize(("gpus", "unmet"), [(6, 0), (7, 1)])
def test_a_limit_on_a_model_is_one_for_all_kinds_of_its_nodes(root: Path, gpus: int, unmet: int) -> None:
    kinds = "".join(
        f"---\napiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {{name: {name}}}\nspec:\n  gpu: A100-80GB\n"
        f'  nodes: {{count: 2, gpusPerNode: {each}, namePattern: "{name}-[0-9]+"}}\n  sharing: {{exclusive: {{}}}}\n'
        for name, each in (("ones", 1), ("twos", 2))
    )
    (root / "overlays/test/own.yaml").write_text(kinds, encoding="utf-8")
    demand = {"teams.csv": f"team,pods,gpus\nteam,{gpus},1\n".encode()}
    variant = pack(root, demand, nodes_at_most={"A100-80GB": 3}, alternatives=False).variants[0]
    assert sum(pods for _, pods in variant.answer.unmet) == unmet
    assert variant.is_valid is not bool(unmet)


def test_guarantees_are_listed_with_the_biggest_cut_first(root: Path) -> None:
    (root / "overlays/test/own.yaml").write_text(HALVES_AND_SEVENTHS + SHARED, encoding="utf-8")
    demand = b"team,pods,memory,isolation\nanother-team,1,9Gi,none\nteam,1,9Gi,\nmore,1,9Gi,\n"
    packing = pack(root, {"teams.csv": demand}, may_cut_guarantees=True, alternatives=False)
    changes = [(one.tenant, one.gpus_after - one.gpus_before) for one in packing.guarantees()]
    assert [change for _, change in changes] == sorted(change for _, change in changes)
    assert [name for name, change in changes if change < 0] == ["another-team", "team"]
    assert changes[-1][0] == "more"


@pytest.mark.parametrize("has_work", [True, False])
def test_what_is_asked_for_stands_for_a_guarantee_that_no_workload_uses(root: Path, has_work: bool) -> None:
    work = WORK.replace("pool: shared, training: {pods: 2}", "pool: halves, training: {pods: 2}") if has_work else ""
    (root / "overlays/test/own.yaml").write_text(HALVES_AND_SEVENTHS + work, encoding="utf-8")
    write_packing(pack(root, {"teams.csv": b"team,pods,memory\nteam,1,60Gi\n"}), root)
    assert sorted(
        unit for quotas in _quotas(root).values() for _, unit, number in quotas for _ in range(int(number))
    ) == [*["3g.40gb"] * (2 if has_work else 1), "7g.80gb"]


def test_a_quota_that_grows_may_have_as_many_more_pods(root: Path) -> None:
    own = root / "overlays/test/own.yaml"
    own.write_text(HALVES_AND_SEVENTHS.replace("limit: none", "limit: 3, pods: 3"), encoding="utf-8")
    write_packing(pack(root, {"teams.csv": b"team,pods,memory\nteam,4,30Gi\n"}), root)
    (plan,) = validate(root).plans
    (quota,) = plan.tenants[0].quotas
    assert (quota.guaranteed, quota.spec.pods) == (4, 5)


PARENT = (
    HALVES_AND_SEVENTHS.replace("guaranteed: 2, limit: none", "guaranteed: 2")
    + """\
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: child}
spec: {parent: team, namespaces: [child]}
"""
)


def test_a_parents_quota_has_room_for_what_its_child_asks_for(root: Path) -> None:
    (root / "overlays/test/own.yaml").write_text(PARENT, encoding="utf-8")
    demand = b"team,pods,memory\nteam,1,30Gi\nchild,2,30Gi\n"
    write_packing(pack(root, {"teams.csv": demand}, may_cut_guarantees=True), root)
    assert _quotas(root) == {"team": [("halves", "3g.40gb", 3)], "child": [("halves", "3g.40gb", 2)]}


def test_gpu823_a_tenant_without_namespaces_asks_for_what_nobody_could_use(root: Path) -> None:
    own = root / "overlays/test/own.yaml"
    own.write_text(PARENT.replace("  namespaces: [team]\n", ""), encoding="utf-8")
    packing = pack(root, {"teams.csv": b"team,pods,memory\nteam,1,30Gi\n"})
    (found,) = (item for item in packing.diagnostics if item.is_error)
    assert (found.code, found.finding.help) == ("GPU823", "write `child`, whose parent it is, or give it `namespaces`")
    assert pack(root, {"teams.csv": b"team,pods,memory\nchild,1,30Gi\n"}).is_valid


def test_a_file_in_flow_style_from_windows_keeps_its_marks_and_comments(root: Path) -> None:
    own = root / "overlays/test/own.yaml"
    pool, _, rest = HALVES_AND_SEVENTHS.partition("---\n")
    flow = f"# Ours.\n---\n{json.dumps(yaml.safe_load(pool))}\n# Theirs.\n---\n{rest}"
    own.write_bytes(b"\xef\xbb\xbf" + flow.replace("\n", "\r\n").encode())
    write_packing(pack(root), root)
    text = own.read_bytes().decode()
    assert text.startswith("\ufeff# Ours.\r\n---\r\napiVersion: gpuplan.dev/v1\r\n")
    assert "\r\n# Theirs.\r\n---\r\n" in text
    assert "\n" not in text.replace("\r\n", "")


# --- Money -------------------------------------------------------------------------------------------------------

PRICES = """\
apiVersion: gpuplan.dev/v1
kind: Prices
metadata: {name: list}
spec: {currency: EUR, %s}
"""


def _priced(root: Path, rates: str) -> None:
    (root / "overlays/test/prices.yaml").write_text(PRICES % rates, encoding="utf-8")


def test_an_answer_says_what_it_costs_and_what_that_saves(root: Path) -> None:
    _priced(root, "gpus: {A100-80GB: {perGpuHour: 2.50}}")
    packing = pack(root)
    page = shown_packing(packing, "table", PLAIN)
    assert page.startswith(
        "Cluster test: 1 GPU in 1 node with 1 MIG layout; 1 fewer than today's 2 in 2 nodes; "
        "1 node to drain and take away; 1,825.00 EUR a month, -1,825.00 against today\n"
    )
    assert "  2.5000 EUR an hour, 1,825.00 a month of 730 hours\n" in page
    answer = packing_as_data(packing)["answers"][0]
    assert answer["cost"] == {"currency": "EUR", "per_hour": 2.5, "per_month": 1825, "unpriced_pools": []}
    assert answer["change"]["costs"]["total"]["change"]["per_month"] == -1825


def test_the_bound_of_the_lowest_price_is_money(root: Path) -> None:
    _priced(root, "gpus: {A100-80GB: {perGpuHour: 2.50}}")
    page = shown_packing(pack(root, objective="price"), "table", PLAIN)
    assert "no answer takes less than 1,825.00 EUR a month" in page


def test_without_prices_nothing_is_said_of_money(root: Path) -> None:
    packing = pack(root)
    assert "month" not in shown_packing(packing, "table", PLAIN)
    assert packing_as_data(packing)["answers"][0]["cost"] is None


@pytest.mark.parametrize(
    ("rates", "message", "hint"),
    [
        ("gpus: {}", "`halves` has no price in `list`", "`gpus: {A100-80GB: {perGpuHour: ...}}`"),
        ("gpus: {A100-80GB: {perGpuHour: {spot: 1}}}", "`halves` has no price in `list`", "`onDemand` to its prices"),
        ("", "no `Prices` document says what nodes cost", "{A100-80GB: {perGpuHour: ...}}"),
    ],
)
def test_the_lowest_price_needs_a_price_of_every_pool(root: Path, rates: str, message: str, hint: str) -> None:
    if rates:
        _priced(root, rates)
    with pytest.raises(GpuplanError, match=message) as caught:
        pack(root, objective="price")
    assert hint in caught.value.hint


def test_a_new_pool_costs_what_the_one_does_that_it_is_made_like(root: Path) -> None:
    """Two teams need sevenths and halves of two nodes that one pool has."""
    _priced(root, "pools: {halves: {perNodeHour: 2.50}}")
    demand = b"team,name,pods,memory\nteam,large,2,30Gi\nother,small,7,9Gi\n"
    packing = pack(root, {"teams.csv": demand})
    write_packing(packing, root)
    (plan,) = validate(root).plans
    assert [pool.name for pool in plan.pools] == ["halves", "halves-2"]
    found = costs(plan)
    assert found
    assert [cost.total for cost in found.pools] == [Ratio(5, 2), Ratio(5, 2)]
    assert packing.variants[0].numbers.cost == Cost("EUR", Ratio(5), ())


def test_the_price_of_a_pool_that_goes_goes_with_it(root: Path) -> None:
    own = root / "overlays/test/own.yaml"
    own.write_text(own.read_text(encoding="utf-8") + EMPTY, encoding="utf-8")
    _priced(root, "pools: {halves: {perNodeHour: 2.50}, spare: {perNodeHour: 2.50}}")
    packing = pack(root)
    write_packing(packing, root)
    (plan,) = validate(root).plans
    assert [pool.name for pool in plan.pools] == ["halves"]
    assert packing.variants[0].numbers.cost == Cost("EUR", Ratio(5, 2), ())


EMPTY = """\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: spare}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 1, names: [gpu-3]}
  sharing: {exclusive: {}}
"""
