"""A node that is set up by the generated files publishes what the plan counts."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, strategies as st

from gpuplan.compiler.planning.plan import MIG_CONFIG_LABEL, Plan, Pool
from gpuplan.compiler.policy.models import ClusterMigStrategy
from tests.compiler.backends.gpu_operator import device_plugin, mig_parted
from tests.compiler.backends.gpu_operator.rendered import a_cluster, a_pool, device_plugin_texts, mig_parted_text


def published(plan: Plan, pool: Pool) -> Counter[str]:
    """What a node of the pool publishes, found out from the generated files and the pool's labels alone."""
    configs = mig_parted.parse(mig_parted_text(plan))
    node = mig_parted.apply(configs[pool.labels[MIG_CONFIG_LABEL]], pool.nodes.gpus_per_node)
    config = device_plugin.parse(device_plugin_texts(plan)[pool.labels["nvidia.com/device-plugin.config"]])
    strategy = plan.cluster.gpu_operator.spec.mig_strategy
    overridden = None if strategy is ClusterMigStrategy.PER_POOL else strategy.value
    return device_plugin.publish(config, node, overridden)


def planned(pool: Pool) -> Counter[str]:
    counts: Counter[str] = Counter()
    for unit in pool.units:
        counts[unit.resource or "nvidia.com/gpu"] += unit.per_node
    return counts


LAYOUTS = (
    "instances: {1g.10gb: 7}",
    "instances: {3g.40gb: 1, 2g.20gb: 2}",
    "instances: {4g.40gb: 1, 2g.20gb: 1, 1g.10gb+me: 1}",
    "devices: [{gpus: [0], instances: {7g.80gb: 1}}, {gpus: [1], enabled: false}]",
)
slicings = st.builds(
    "{{replicas: {}, rename: {}, failRequestsGreaterThanOne: {}}}".format,
    st.integers(2, 9),
    st.sampled_from(["true", "false"]),
    st.sampled_from(["true", "false"]),
)
migs = st.builds("{{mig: {{{}, strategy: mixed}}}}".format, st.sampled_from(LAYOUTS))
shared_migs = st.builds("{{mig: {{{}, timeSlicing: {}}}}}".format, st.sampled_from(LAYOUTS), slicings)
singles = st.builds("{{mig: {{instances: {{1g.10gb: {}}}, strategy: single}}}}".format, st.integers(1, 7))
shared_singles = st.builds(
    "{{mig: {{instances: {{2g.20gb: {}}}, strategy: single, timeSlicing: {}}}}}".format, st.integers(1, 3), slicings
)
whole = st.sampled_from(["{exclusive: {}}", "{mps: {replicas: 4}}", "{mps: {replicas: 2, rename: false}}"])
sliced = st.builds("{{timeSlicing: {}}}".format, slicings)
sharings = st.one_of(whole, sliced, migs, shared_migs, singles, shared_singles)


@given(st.lists(sharings, min_size=1, max_size=4))
def test_every_pool_publishes_its_units(found: list[str]) -> None:
    plan = a_cluster(*(a_pool(f"pool-{index}", sharing, gpus=2) for index, sharing in enumerate(found)))
    assert [published(plan, pool) for pool in plan.pools] == [planned(pool) for pool in plan.pools]


@pytest.mark.parametrize("strategy", ["mixed", "single"])
def test_the_clusters_strategy_is_enough_without_flags(strategy: str) -> None:
    plan = a_cluster(
        a_pool(sharing=f"{{mig: {{instances: {{1g.10gb: 7}}, strategy: {strategy}, timeSlicing: {{replicas: 2}}}}}}"),
        more=f"migStrategy: {strategy}",
    )
    assert published(plan, plan.pools[0]) == planned(plan.pools[0])
    assert "flags" not in device_plugin.parse(device_plugin_texts(plan)["a"])


def test_gpus_that_stay_whole_are_not_shared_with_the_slices() -> None:
    devices = "[{gpus: [0], instances: {1g.10gb: 7}}, {gpus: [1], enabled: false}]"
    plan = a_cluster(a_pool(sharing=f"{{mig: {{devices: {devices}, timeSlicing: {{replicas: 3}}}}}}", gpus=2))
    assert published(plan, plan.pools[0]) == {"nvidia.com/mig-1g.10gb.shared": 21, "nvidia.com/gpu": 1}
