"""Names that a cluster has already: nodes carry them, and the files that they name have them."""

from __future__ import annotations

from gpuplan.compiler.backends.gpu_operator import device_plugin, mig_parted
from gpuplan.compiler.planning.plan import Plan
from tests.plans import CLUSTER, a_plan

KEY, ENTRY = "nvidia.com/device-plugin.config", "nvidia.com/mig.config"
POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: NAME}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8, names: [NAME-1]}
  sharing: {SHARING}
"""
RETAINED = """\
apiVersion: gpuplan.dev/v1
kind: Retained
metadata: {name: shared}
spec:
  devicePluginConfig: {key: tesla-shared, config: {version: v1}}
  until: no node names it
"""
FIXED = CLUSTER.replace("version: v26.7.0", "version: v26.7.0, devicePluginConfig: fixed")


def a_pool(name: str, sharing: str, key: str = "") -> str:
    text = POOL.replace("NAME", name).replace("SHARING", sharing)
    return text + f"  names: {{devicePluginConfig: {key}}}\n" if key else text


def plan_of(*documents: str) -> Plan:
    return a_plan("---\n".join(documents))


def labels(plan: Plan, label: str) -> list[str]:
    return [part.labels[label] for part in plan.parts]


def test_an_entry_that_keeps_its_name_is_what_nodes_name() -> None:
    plan = plan_of(a_pool("a", "mig: {instances: {1g.10gb: 7}, configName: all-1g.10gb}"))

    assert labels(plan, ENTRY) == ["all-1g.10gb"]
    assert mig_parted.configuration(plan)["mig-configs"] == {
        "all-disabled": [{"devices": "all", "mig-enabled": False}],
        "all-1g.10gb": [{"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 7}}],
    }


def test_layouts_that_divide_alike_have_one_entry() -> None:
    layout = """\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: LAYOUT}
spec: {gpu: A100-80GB, instances: {1g.10gb: 7}, configName: all-1g.10gb}
"""
    plan = plan_of(
        layout.replace("LAYOUT", "slices"),
        layout.replace("LAYOUT", "sevenths"),
        a_pool("a", "mig: {layout: slices}"),
        a_pool("b", "mig: {layout: sevenths}"),
    )

    assert labels(plan, ENTRY) == ["all-1g.10gb", "all-1g.10gb"]
    assert list(mig_parted.configuration(plan)["mig-configs"]) == ["all-disabled", "all-1g.10gb"]


def test_pools_that_are_shared_alike_have_one_key() -> None:
    slices = "timeSlicing: {replicas: 4}"
    plan = plan_of(a_pool("a", slices, "tesla-shared"), a_pool("b", slices, "tesla-shared"), a_pool("c", slices))

    assert labels(plan, KEY) == ["tesla-shared", "tesla-shared", "c"]
    assert sorted(device_plugin.configurations(plan)) == ["c", "tesla-shared"]


def test_a_key_that_means_something_else_gives_way_to_one_of_the_pool() -> None:
    """The same as with the pool's own name: a key means one thing for as long as something may name it."""
    plan = plan_of(a_pool("a", "timeSlicing: {replicas: 4}", "tesla-shared"), RETAINED)

    assert labels(plan, KEY) == ["a.d2b901a"]
    assert device_plugin.configurations(plan)["tesla-shared"] == {"version": "v1"}
    assert labels(plan_of(a_pool("a", "exclusive: {}", "tesla-shared"), RETAINED), KEY) == ["tesla-shared"]


def test_a_key_is_kept_where_others_say_what_is_in_their_files() -> None:
    sharing = "timeSlicing: {replicas: 4}"
    plan = plan_of(FIXED, a_pool("a", sharing, "tesla-shared"), a_pool("b", sharing))

    assert labels(plan, KEY) == ["tesla-shared", "b.d2b901a"]
    changed = plan_of(FIXED, a_pool("a", sharing, "tesla-shared"), RETAINED)
    assert labels(changed, KEY) == ["a.d2b901a"]
