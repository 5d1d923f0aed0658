"""Labels may lag by any number of commits: with `retain` in each, what they name is there, and means what it meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.backends.gpu_operator import device_plugin, mig_parted
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, Plan, Pool
from gpuplan.features.changes.meanwhile import published
from gpuplan.features.changes.retaining import judge_retained, keepers
from tests.plans import CLUSTER, a_plan

pytestmark = pytest.mark.no_cover

LAYOUTS = ("one", "two")
POOLS = ("large", "small", "spare")
DIVISIONS = (
    "instances: {3g.40gb: 2}",
    "instances: {1g.10gb: 7}",
    "devices: [{gpus: [0, 1, 2, 3], instances: {2g.20gb: 3}}, {gpus: [4, 5, 6, 7], enabled: false}]",
)
SHARINGS = (
    "exclusive: {}",
    "timeSlicing: {replicas: 2}",
    "timeSlicing: {replicas: 3}",
    "mps: {replicas: 2}",
    "mig: {layout: one}",
    "mig: {layout: two}",
    "mig: {instances: {1g.10gb: 7}}",
    "mig: {instances: {1g.10gb: 7}, timeSlicing: {replicas: 2}}",
)


class Platform(NamedTuple):
    """Pools by how they are shared, layouts by how they divide, and what is retained."""

    pools: Mapping[str, str]
    layouts: Mapping[str, str]
    kept: tuple[str, ...] = ()

    def plan(self) -> Plan:
        layouts = (
            f"apiVersion: gpuplan.dev/v1\nkind: MigLayout\nmetadata: {{name: {name}}}\n"
            f"spec:\n  gpu: A100-80GB\n  {division}\n"
            for name, division in self.layouts.items()
        )
        pools = (
            f"apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {{name: {name}}}\nspec:\n  gpu: A100-80GB\n"
            f"  nodes: {{count: 1, gpusPerNode: 8, names: [{name}]}}\n  sharing: {{{sharing}}}\n"
            for name, sharing in self.pools.items()
        )
        return a_plan("---\n".join((CLUSTER, *layouts, *pools, *self.kept)))

    @property
    def is_whole(self) -> bool:
        named = {name for name in LAYOUTS for sharing in self.pools.values() if f"layout: {name}" in sharing}
        return named <= self.layouts.keys()


@st.composite
def chains(draw: st.DrawFn) -> list[Platform]:
    """Commits, in each of which some pools and layouts come, go and are edited."""
    pools = st.dictionaries(st.sampled_from(POOLS), st.sampled_from(SHARINGS))
    layouts = st.dictionaries(st.sampled_from(LAYOUTS), st.sampled_from(DIVISIONS))
    states = st.builds(Platform, pools, layouts)
    return [state for state in draw(st.lists(states, min_size=2, max_size=6)) if state.is_whole]


def given_by(plan: Plan, pool: Pool) -> tuple[tuple[str, str], ...]:
    return tuple((label, pool.labels[label]) for label in (DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL))


def meaning(plan: Plan, label: str, value: str) -> object:
    if label == MIG_CONFIG_LABEL:
        return mig_parted.configuration(plan)["mig-configs"].get(value)
    return device_plugin.configurations(plan).get(value)


@settings(deadline=None)
@given(chains())
def test_what_a_label_names_is_there_and_means_what_it_meant(chain: list[Platform]) -> None:
    seen: dict[tuple[str, str], object] = {}
    named: dict[str, tuple[Pool, object]] = {}
    kept: tuple[str, ...] = ()
    before: Plan | None = None
    for state in chain:
        plan = state._replace(kept=kept).plan()
        if before is not None:
            kept += tuple(keeper.text for keeper in keepers(before, plan))
            plan = state._replace(kept=kept).plan()
            assert tuple(keepers(before, plan)) == ()
        assert not [item for item in judge_retained(plan) if item.is_error]
        for pool in plan.pools:
            for label, value in given_by(plan, pool):
                seen.setdefault((label, value), meaning(plan, label, value))
            named.setdefault(pool.labels[DEVICE_PLUGIN_CONFIG_LABEL], (pool, published(plan, pool, pool)))
        assert {label: meaning(plan, *label) for label in seen} == seen
        assert {key: published(plan, pool, pool) for key, (pool, _) in named.items()} == {
            key: units for key, (_, units) in named.items()
        }
        before = plan
