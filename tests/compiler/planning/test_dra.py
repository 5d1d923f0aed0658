"""How much of a unit is certain where partitions are made on demand."""

from __future__ import annotations

from fractions import Fraction

from gpuplan.compiler.planning.amounts import part_of_node
from gpuplan.compiler.planning.dra import broken_promises, cap_in, certain_units, guarantee_of, static_instances
from gpuplan.compiler.planning.placement.blocking import Blockade
from gpuplan.compiler.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    MIG_MANAGER_LABEL,
    Isolation,
    Plan,
)
from gpuplan.features.changes.nodes import pods_on
from tests.platforms import a_platform, pool, tenant


def plan(*tenants: str, profiles: str = "1g.10gb, 3g.40gb", gpus: int = 4) -> Plan:
    sharing = f"dynamicMig: {{profiles: [{profiles}]}}"
    parts = pool("parts", sharing, "allocation: dra", gpu="H100-80GB", nodes=f"count: 1, gpusPerNode: {gpus}")
    return a_platform(parts, *tenants, kubernetes="1.36")


def test_units_are_profiles_in_the_order_of_the_catalog_and_the_most_of_each() -> None:
    units = plan(profiles="3g.40gb, 1g.10gb").pools[0].units
    assert [(unit.name, unit.per_gpu, unit.capacity, unit.isolation) for unit in units] == [
        ("1g.10gb", (7, 7, 7, 7), 28, Isolation.HARDWARE),
        ("3g.40gb", (2, 2, 2, 2), 8, Isolation.HARDWARE),
    ]
    assert [unit.asked_as for unit in units] == ["gpuplan-h100-80gb-1g.10gb", "gpuplan-h100-80gb-3g.40gb"]


def test_mig_manager_stays_away() -> None:
    labels = plan().pools[0].labels
    assert labels[MIG_MANAGER_LABEL] == "false"
    assert MIG_CONFIG_LABEL not in labels
    assert labels[DEVICE_PLUGIN_CONFIG_LABEL] == "parts"


def test_what_nobody_else_uses_is_certain() -> None:
    found = plan(tenant("a", "pool: parts, unit: 3g.40gb, guaranteed: 4"))
    assert certain_units(found, found.pools[0]) == {"1g.10gb": 12, "3g.40gb": 8}


def test_limits_of_others_take_certainty() -> None:
    """Six `1g.10gb` are two on each of three GPUs: on the last one there is room for two `3g.40gb`."""
    found = plan(
        tenant("a", "pool: parts, unit: 3g.40gb, guaranteed: 2"),
        tenant("b", "pool: parts, unit: 1g.10gb, guaranteed: 2, limit: 6"),
    )
    assert certain_units(found, found.pools[0])["3g.40gb"] == 2
    assert [*broken_promises(found, cap_in(found))] == []


def test_a_limit_that_breaks_a_guarantee_keeps_it_among_guarantees() -> None:
    found = plan(
        tenant("a", "pool: parts, unit: 3g.40gb, guaranteed: 2"),
        tenant("b", "pool: parts, unit: 1g.10gb, guaranteed: 2, limit: 7"),
    )
    assert [*broken_promises(found, guarantee_of)] == []
    (promise,) = broken_promises(found, cap_in(found))
    assert (promise.unit.name, promise.guaranteed, promise.certain) == ("3g.40gb", 2, 1)
    assert promise.blockades == (Blockade({"1g.10gb": 2}, 3), Blockade({"1g.10gb": 1, "3g.40gb": 1}, 1))


def test_what_others_have_of_the_same_unit_counts() -> None:
    """Where one has its guarantee and another all that its limit allows, none is left for the first one's last."""
    found = plan(
        tenant("a", "pool: parts, unit: 3g.40gb, guaranteed: 4"),
        tenant("b", "pool: parts, unit: 3g.40gb, guaranteed: 2, limit: 5"),
    )
    (promise,) = broken_promises(found, cap_in(found))
    assert (promise.guaranteed, promise.certain) == (6, 5)
    assert promise.blockades == (Blockade({"3g.40gb": 2}, 4),)


def test_a_unit_is_its_compute_slices_of_a_node() -> None:
    """Seven and six of them would be more than a GPU: what can be made adds up to more than can be at once."""
    found = plan().pools[0]
    assert [part_of_node(found, unit) for unit in found.units] == [Fraction(1, 28), Fraction(3, 28)]


def test_a_gpu_never_holds_more_pods_than_compute_slices() -> None:
    found = plan(
        tenant("a", "pool: parts, unit: 3g.40gb, guaranteed: 0, limit: none"),
        tenant("b", "pool: parts, unit: 1g.10gb, guaranteed: 0, limit: none"),
    )
    assert pods_on(found, found.pools[0], 1) == 28


def test_a_tenant_without_namespaces_uses_nothing() -> None:
    found = plan(
        tenant("a", "pool: parts, unit: 3g.40gb, guaranteed: 2"),
        tenant("b", "pool: parts, unit: 1g.10gb, guaranteed: 28", namespaces=""),
    )
    assert certain_units(found, found.pools[0])["3g.40gb"] == 8


def test_a_layout_that_keeps_the_guarantees_is_named_where_there_is_one() -> None:
    small = tenant("a", "pool: parts, unit: 3g.40gb, guaranteed: 4", "pool: parts, unit: 1g.10gb, guaranteed: 9")
    some, more = plan(small), plan(small.replace("guaranteed: 9", "guaranteed: 17"))
    assert static_instances(some, some.pools[0]) == {"1g.10gb": 3, "3g.40gb": 1}
    assert static_instances(more, more.pools[0]) == {}
