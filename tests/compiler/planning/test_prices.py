"""What units cost: which price holds, how it is divided, and that nothing is lost or counted twice."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction as Ratio
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st

from gpuplan.compiler.catalog import load
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.prices import Costs, TenantCost, costs, node_price, part_of_gpu, per_month, saved
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from tests.every import every
from tests.laws.properties.policies import KINDS, Policy, policies
from tests.plans import a_plan
from tests.platforms import a_platform, document, pool, tenant

KNOWN = yaml.safe_load((Path(__file__).parents[1] / "catalog" / "known_good_layouts.yaml").read_text(encoding="utf-8"))


def prices(*fields: str, currency: str = "EUR") -> str:
    return document("Prices", "list", f"currency: {currency}", *fields)


def costs_of(*documents: str) -> Costs:
    found = costs(a_platform(*documents))
    assert found is not None
    return found


def amounts(*numbers: int) -> tuple[Ratio, ...]:
    return tuple(map(Ratio, numbers))


def price_of(plan: Plan) -> Decimal | None:
    """The price of a node of the only pool."""
    found = node_price(plan, plan.pools[0])
    return found.per_node_hour if found else None


# --- Which price holds ---------------------------------------------------------------------------------------------

EIGHT = "count: 2, gpusPerNode: 8"


def test_without_prices_nothing_has_a_price() -> None:
    plan = a_platform(pool("a"))
    assert (costs(plan), node_price(plan, plan.pools[0])) == (None, None)


def test_price_by_gpu_is_that_of_all_gpus_of_a_node() -> None:
    assert price_of(a_platform(pool("a"), prices("gpus: {A100-80GB: {perGpuHour: 2.50}}"))) == Decimal("20.00")


def test_price_of_the_pool_comes_before_that_of_its_node_type_and_that_before_the_model_s() -> None:
    model = "gpus: {A100-80GB: {perNodeHour: 3}}"
    typed = "nodeTypes: {p4de.24xlarge: {perNodeHour: 2}}"
    own = "pools: {a: {perNodeHour: 1}}"
    a = pool("a", "exclusive: {}", "billing: {nodeType: p4de.24xlarge}")

    assert price_of(a_platform(a, prices(model))) == 3
    assert price_of(a_platform(a, prices(model, typed))) == 2
    assert price_of(a_platform(a, prices(model, typed, own))) == 1


def test_node_type_is_the_label_that_the_pool_chooses_nodes_by_unless_it_says_one() -> None:
    nodes = f"{EIGHT}, selector: {{node.kubernetes.io/instance-type: p4de.24xlarge}}"
    typed = prices("nodeTypes: {p4de.24xlarge: {perNodeHour: 40}, own: {perNodeHour: 7}}")

    assert price_of(a_platform(pool("a", nodes=nodes), typed)) == 40
    assert price_of(a_platform(pool("a", "exclusive: {}", "billing: {nodeType: own}", nodes=nodes), typed)) == 7


@pytest.mark.parametrize(
    ("term", "per_node"), [("onDemand", 32), ("reserved1Year", 24), ("reserved3Years", 16), ("spot", 8), ("owned", 4)]
)
def test_price_is_that_of_the_pool_s_term(term: str, per_node: int) -> None:
    terms = "{any: 9, onDemand: 4, reserved1Year: 3, reserved3Years: 2, spot: 1, owned: 0.5}"
    a = pool("a", "exclusive: {}", f"billing: {{term: {term}}}")
    assert price_of(a_platform(a, prices(f"gpus: {{A100-80GB: {{perGpuHour: {terms}}}}}"))) == per_node


def test_nodes_are_on_demand_unless_the_pool_says_another_term() -> None:
    assert price_of(a_platform(pool("a"), prices("gpus: {A100-80GB: {perNodeHour: {spot: 1, onDemand: 3}}}"))) == 3


def test_price_for_any_term_holds_where_the_term_has_none() -> None:
    assert price_of(a_platform(pool("a"), prices("gpus: {A100-80GB: {perNodeHour: {spot: 1, any: 2}}}"))) == 2


def test_price_that_says_nothing_of_the_term_is_passed_over() -> None:
    listed = prices("pools: {a: {perNodeHour: {spot: 1}}}", "gpus: {A100-80GB: {perNodeHour: 5}}")
    assert price_of(a_platform(pool("a"), listed)) == 5


def test_pool_without_a_price_is_in_no_sum_and_is_named() -> None:
    found = costs_of(pool("a"), pool("b", gpu="L4-24GB"), prices("gpus: {A100-80GB: {perNodeHour: 5}}"))
    assert found.total == 10
    assert found.unpriced == ("b",)


@pytest.mark.parametrize("written", ["0.1", '"0.1"', "0.100000"])
def test_a_price_is_what_is_written_and_not_the_nearest_fraction_of_two(written: str) -> None:
    assert price_of(a_platform(pool("a"), prices(f"gpus: {{A100-80GB: {{perGpuHour: {written}}}}}"))) == Decimal("0.8")


def test_the_longest_price_keeps_each_digit() -> None:
    listed = prices("gpus: {A100-80GB: {perNodeHour: 1234567.654321}}")
    assert price_of(a_platform(pool("a"), listed)) == Decimal("1234567.654321")


# --- How it is divided ---------------------------------------------------------------------------------------------

FREE = "gpus: {A100-80GB: {perGpuHour: 112}}"


def parts(sharing: str, **options: str) -> dict[str, Ratio]:
    (found,) = a_platform(pool("a", sharing, **options)).pools
    return {unit.name: part_of_gpu(found, unit) for unit in found.units}


def test_a_partition_is_half_its_part_of_the_memory_and_half_its_part_of_the_compute() -> None:
    found = parts("mig: {instances: {3g.40gb: 1, 4g.40gb: 1}}")
    assert found == {"3g.40gb": (Ratio(4, 8) + Ratio(3, 7)) / 2, "4g.40gb": (Ratio(4, 8) + Ratio(4, 7)) / 2}
    assert sum(found.values()) == 1


def test_of_equal_compute_the_one_with_more_memory_is_more() -> None:
    found = parts("mig: {instances: {1g.10gb: 1, 1g.20gb: 1}}")
    assert found["1g.20gb"] - found["1g.10gb"] == Ratio(1, 16)


def test_a_share_is_an_even_part_of_its_device() -> None:
    assert parts("timeSlicing: {replicas: 3}") == {"shared": Ratio(1, 3)}
    assert parts("mps: {replicas: 4}") == {"shared": Ratio(1, 4)}
    assert parts("mig: {instances: {3g.40gb: 2}, timeSlicing: {replicas: 2}}") == {"3g.40gb": Ratio(13, 56)}


def test_single_strategy_changes_no_price() -> None:
    assert parts("mig: {instances: {3g.40gb: 2}, strategy: single}") == parts("mig: {instances: {3g.40gb: 2}}")


def test_the_unit_of_fractions_is_a_gpu() -> None:
    assert parts("fraction: {}") == {"fraction": 1}


def test_slices_that_no_unit_holds_are_not_cut() -> None:
    """The eighth memory slice of seven instances of one: a sixteenth of the GPU."""
    found = costs_of(pool("a", "mig: {instances: {1g.10gb: 7}}"), prices(FREE))
    assert (found.total, found.not_cut, found.free) == amounts(16 * 112, 16 * 7, 16 * 105)


@every(KNOWN["published"], lambda row: f"{row['instances']}")
def test_partitions_of_a_gpu_are_never_more_than_the_gpu(row: dict[str, Any]) -> None:
    for model in row.get("gpus") or row["legacy_gpus"]:
        gpu = load().get(model)
        instances = ", ".join(f"{gpu.current_name(name)}: {count}" for name, count in row["instances"].items())
        (found,) = a_platform(pool("a", f"mig: {{instances: {{{instances}}}}}", gpu=model)).pools
        assert 0 < sum(part_of_gpu(found, unit) * unit.per_gpu[0] for unit in found.units) <= 1


def test_a_gpu_that_is_full_in_memory_and_compute_costs_all_of_its_price() -> None:
    found = costs_of(pool("a", "mig: {instances: {7g.80gb: 1}}"), pool("b", "exclusive: {}"), prices(FREE))
    assert found.not_cut == 0


# --- Who pays for it -----------------------------------------------------------------------------------------------


def by_name(found: Costs) -> dict[str, TenantCost]:
    return {cost.tenant.name: cost for cost in found.tenants}


def test_a_tenant_costs_what_it_is_guaranteed_and_at_most_what_it_may_use() -> None:
    lab = tenant("lab", "pool: a, guaranteed: 4, limit: 6")
    open_ = tenant("open", "pool: a, guaranteed: 1, limit: none")
    found = by_name(costs_of(pool("a"), lab, open_, prices("gpus: {A100-80GB: {perGpuHour: 2}}")))

    assert [(cost.guaranteed, cost.own, cost.most) for cost in found.values()] == [amounts(8, 8, 12), amounts(2, 2, 32)]


def test_what_a_child_has_is_its_parent_s_and_not_its_parent_s_own() -> None:
    above = tenant("above", "pool: a, guaranteed: 10", namespaces="")
    below = tenant("below", "pool: a, guaranteed: 4", more="parent: above")
    found = by_name(costs_of(pool("a"), above, below, prices("gpus: {A100-80GB: {perGpuHour: 2}}")))

    assert (found["above"].guaranteed, found["above"].own) == amounts(20, 12)
    assert (found["below"].guaranteed, found["below"].own) == amounts(8, 8)


def test_a_parent_without_a_quota_costs_what_its_parts_do() -> None:
    above = document("Tenant", "above", "quotas: []")
    below = tenant("below", "pool: a, guaranteed: 4", more="parent: above")
    found = by_name(costs_of(pool("a"), above, below, prices("gpus: {A100-80GB: {perGpuHour: 2}}")))
    assert (found["above"].guaranteed, found["above"].own) == amounts(8, 0)


def test_nobody_can_use_more_of_a_unit_than_there_is() -> None:
    lab = tenant("lab", "pool: a, unit: 1g.10gb, guaranteed: 0, limit: 500")
    found = costs_of(pool("a", "mig: {instances: {3g.40gb: 1, 1g.10gb: 4}}"), lab, prices(FREE))
    assert found.tenants[0].most == 16 * 4 * 15


def test_a_tenant_of_partitions_on_demand_cannot_use_more_than_the_pool() -> None:
    a = pool("a", "dynamicMig: {profiles: [1g.10gb, 7g.80gb]}", "allocation: dra")
    quotas = (
        "pool: a, unit: 1g.10gb, guaranteed: 7, limit: none",
        "pool: a, unit: 7g.80gb, guaranteed: 1, limit: none",
    )
    found = costs_of(a, tenant("lab", *quotas), prices(FREE))

    assert found.tenants[0].most == found.total == 16 * 112
    assert (found.guaranteed, found.not_cut) == amounts(7 * 15 + 112, 0)


def test_during_a_rollout_each_part_costs_what_it_hands_out() -> None:
    moved = "rollout: {sharing: {mig: {instances: {3g.40gb: 2}}}, nodes: [a-1]}"
    nodes = "count: 2, gpusPerNode: 8, names: [a-1, a-2]"
    found = costs_of(pool("a", "mig: {instances: {1g.10gb: 7}}", moved, nodes=nodes), prices(FREE))

    assert found.not_cut == 8 * Ratio(1, 16) * 112 + 8 * (1 - Ratio(13, 14)) * 112


def drawn_prices(draw: st.DrawFn) -> str:
    """A price for each pool that a policy may have, some for the node and some for the GPU."""
    amount = st.decimals(0, 9_999_999, places=6, allow_nan=False)
    fields = (f"{name}: {{{draw(st.sampled_from(['perGpuHour', 'perNodeHour']))}: {draw(amount):f}}}" for name in KINDS)
    return ", ".join(fields)


@st.composite
def priced(draw: st.DrawFn) -> Plan:
    policy: Policy = draw(policies(draw(st.sampled_from(list(SCHEDULERS)))))
    there = [name for name in KINDS if f"metadata: {{name: {name}}}" in policy.text]
    listed = dict(part.split(": ", 1) for part in drawn_prices(draw).split(", "))
    own = ", ".join(f"{name}: {listed[name]}" for name in there)
    return a_plan(f"{policy.text}---\n{prices(f'pools: {{{own}}}').removeprefix('---')}")


@given(priced())
def test_pools_cost_what_tenants_have_and_what_is_idle_to_the_last_digit(plan: Plan) -> None:
    found = costs(plan)
    assert found is not None
    assert found.total == sum(Ratio(cost.price.per_node_hour) * cost.pool.nodes.count for cost in found.pools)
    assert found.total == sum((cost.own for cost in found.tenants), Ratio(0)) + found.free + found.not_cut
    assert all(cost.free >= 0 <= cost.not_cut for cost in found.pools)
    assert all(cost.own <= cost.guaranteed <= cost.most for cost in found.tenants)


@given(priced())
def test_units_of_a_pool_cost_what_is_not_idle_of_it(plan: Plan) -> None:
    found = costs(plan)
    assert found is not None
    for cost in found.pools:
        assert sum(unit.each * unit.unit.capacity for unit in cost.units) + cost.not_cut == cost.total


# --- What sharing saves --------------------------------------------------------------------------------------------


def test_three_pods_on_a_gpu_cost_a_third_of_three_gpus() -> None:
    """The figure of public guides, 67 %, of a platform: `docs/explanation/what-sharing-saves.md`."""
    work = document("Workload", "chat", "tenant: lab, pool: a, image: x, inference: {replicas: 3}")
    lab = tenant("lab", "pool: a, guaranteed: 3")
    one = "count: 1, gpusPerNode: 1"
    found = costs_of(pool("a", "timeSlicing: {replicas: 3}", nodes=one), lab, work, prices(FREE))

    (cost,) = found.workloads
    assert (cost.most, cost.whole_gpus) == amounts(112, 336)
    assert saved(cost.most, cost.whole_gpus) == Ratio(2, 3)
    assert saved(found.pools[0].total, found.pools[0].whole_gpus) == Ratio(2, 3)


def test_the_layout_that_a_public_guide_recommends_is_all_of_a_gpu() -> None:
    """And a third by time-slicing is dearer than its smaller instances: `docs/explanation/what-sharing-saves.md`."""
    plan = a_platform(
        pool("a", "mig: {instances: {3g.40gb: 1, 2g.20gb: 2}}"), pool("b", "mig: {instances: {1g.10gb: 7}}")
    )
    parts = {unit.name: part_of_gpu(at, unit) for at in plan.pools for unit in at.units}
    assert {name: round(float(part), 3) for name, part in parts.items()} == {
        "1g.10gb": 0.134,
        "2g.20gb": 0.268,
        "3g.40gb": 0.464,
    }
    assert parts["3g.40gb"] + 2 * parts["2g.20gb"] == 1


def test_whole_gpus_save_nothing_and_what_is_free_costs_all_the_same() -> None:
    found = costs_of(pool("a"), prices(FREE))
    assert saved(found.pools[0].total, found.pools[0].whole_gpus) == 0
    assert found.free == found.total


def test_pods_that_have_several_gpus_would_have_as_many() -> None:
    work = document("Workload", "train", "tenant: lab, pool: a, image: x, count: 4, training: {pods: 2}")
    found = costs_of(pool("a"), tenant("lab", "pool: a, guaranteed: 8"), work, prices(FREE))
    assert (found.workloads[0].most, found.workloads[0].whole_gpus) == amounts(8 * 112, 8 * 112)


def test_a_pod_with_a_fraction_would_have_a_gpu() -> None:
    work = document("Workload", "chat", "tenant: lab, pool: a, image: x, fraction: 0.25, inference: {replicas: 4}")
    plan = a_platform(
        pool("a", "fraction: {}"), tenant("lab", "pool: a, guaranteed: 2"), work, prices(FREE), scheduler="kai"
    )
    found = costs(plan)
    assert found is not None
    assert (found.workloads[0].most, found.workloads[0].whole_gpus) == amounts(112, 448)
    assert found.pools[0].whole_gpus is None


def test_pods_that_come_and_go_cost_between_the_fewest_and_the_most() -> None:
    scaling = "inference: {replicas: 2, autoscaling: {minReplicas: 1, maxReplicas: 5, requestsPerSecond: 3}}"
    work = document("Workload", "chat", f"tenant: lab, pool: a, image: x, {scaling}")
    found = costs_of(pool("a"), tenant("lab", "pool: a, guaranteed: 8"), work, prices(FREE))
    assert (found.workloads[0].fewest, found.workloads[0].most) == amounts(112, 560)


def test_a_month_has_730_hours() -> None:
    assert per_month(Ratio(1, 3)) == Ratio(730, 3)
