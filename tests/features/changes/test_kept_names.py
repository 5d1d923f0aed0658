"""From names that a cluster had to gpuplan's own: what nodes name stays defined at each step."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.pipeline import build
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.changes.edits import write
from gpuplan.features.changes.retaining import keepers, leftovers
from gpuplan.features.changes.rollouts import Wish, propose
from gpuplan.features.changes.states import ClusterState, compare
from tests.plans import CLUSTER, a_plan

POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: a}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8, names: [a-1, a-2]}
  sharing: {SHARING}
  names: {NAMES}
"""
SLICES = "mig: {instances: {1g.10gb: 7}}"
NAMED = "mig: {instances: {1g.10gb: 7}, configName: all-1g.10gb}"
HALVES = """\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: halves}
spec: {gpu: A100-80GB, instances: {3g.40gb: 2}}
"""


def plan_of(sharing: str, names: str = "", *more: str) -> Plan:
    pool = POOL.replace("SHARING", sharing).replace("NAMES", names)
    return a_plan("---\n".join((CLUSTER, pool, *more)))


def changes(old: Plan, new: Plan) -> list[tuple[ChangeClass, str, bool]]:
    """The class of each change of the pool, what it is, and whether nodes must be drained."""
    found = compare((ClusterState.of(old, artifacts(old)),), (ClusterState.of(new, artifacts(new)),))
    return [
        (change.change_class, change.what, change.needs_drain)
        for change in found.changes
        if change.subject.kind == "Pool"
    ]


def change_class(old: Plan, new: Plan) -> ChangeClass:
    """Of all that is written."""
    return compare((ClusterState.of(old, artifacts(old)),), (ClusterState.of(new, artifacts(new)),)).worst


def retained(old: Plan, new: Plan, sharing: str, names: str = "") -> Plan:
    return plan_of(sharing, names, *(keeper.text for keeper in keepers(old, new)))


def test_an_entry_that_gets_gpuplans_name_is_kept_under_its_old_one() -> None:
    old, new = plan_of(NAMED), plan_of(SLICES)

    kept = retained(old, new, SLICES)

    assert [item.spec.config_name for item in kept.retained_layouts] == ["all-1g.10gb"]
    what = "the entry of layout `a` is called `a-2d7d978e`"
    assert changes(old, new) == [(ChangeClass.TWO_STEP, what, False)]
    assert changes(old, kept) == [(ChangeClass.PLUGIN_RESTART, what, False)]
    assert [*keepers(old, kept)] == []
    assert [item.title for item in leftovers(kept, kept)] == ["`nvidia.com/mig.config: all-1g.10gb`"]
    assert change_class(old, kept) is ChangeClass.PLUGIN_RESTART


def test_an_entry_that_changes_under_its_name_repartitions_all_nodes_at_once() -> None:
    old, new = plan_of(NAMED), plan_of(NAMED.replace("1g.10gb: 7", "3g.40gb: 2"))

    what = "layout `a` is edited: from 7x 1g.10gb to 2x 3g.40gb"
    assert (ChangeClass.REPARTITION, what, True) in changes(old, new)


def test_a_key_that_gets_the_pools_name_is_kept() -> None:
    sharing = "timeSlicing: {replicas: 4}"
    old, new = plan_of(sharing, "devicePluginConfig: tesla-shared"), plan_of(sharing)

    kept = retained(old, new, sharing)

    assert [item.spec.key for item in kept.retained_plugin_configs] == ["tesla-shared"]
    what = "the device plugin's configuration of its nodes has another name"
    assert changes(old, new) == [(ChangeClass.TWO_STEP, what, False)]
    assert changes(old, kept) == [(ChangeClass.PLUGIN_RESTART, what, False)]
    assert [item.title for item in leftovers(kept, kept)] == ["`nvidia.com/device-plugin.config: tesla-shared`"]


def test_a_key_with_another_meaning_is_kept_and_the_pool_gets_one_of_its_own() -> None:
    names = "devicePluginConfig: tesla-shared"
    old, new = plan_of("timeSlicing: {replicas: 4}", names), plan_of("timeSlicing: {replicas: 8}", names)

    kept = retained(old, new, "timeSlicing: {replicas: 8}", names)

    assert [part.labels["nvidia.com/device-plugin.config"] for part in kept.parts] == ["a.48ff669"]
    assert [item.spec.key for item in kept.retained_plugin_configs] == ["tesla-shared"]
    assert [*leftovers(kept, kept)] == [], "without the document the key would mean something else"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    pool = POOL.replace("SHARING", NAMED).replace("NAMES", "devicePluginConfig: tesla-mig")
    (tmp_path / "overlays/test").mkdir(parents=True)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/all.yaml").write_text("---\n".join((pool, HALVES)))
    (tmp_path / "overlays/test/cluster.yaml").write_text(CLUSTER)
    return tmp_path


def labels(root: Path, to: str, label: str) -> list[list[str]]:
    """The label of each node after each step to another sharing; each step is valid, and defines what nodes name."""
    seen: list[list[str]] = []
    for _ in range(9):
        _, proposal = propose(root, ("test",), Wish("a", to))
        assert proposal is not None
        if not proposal.edits:
            return seen
        write(root, proposal.edits[0])
        built = build(root, ("test",))
        assert [item.code for item in built.report.diagnostics if item.severity != "note"] == []
        [plan] = built.report.plans
        files = b"".join(data for path, data in built.tree.items() if "gpu-operator/configmap" in path).decode()
        by_node = {name: part.labels for part in plan.parts for name in part.nodes.names}
        assert all(f" {found[key]}:" in files for found in by_node.values() for key in found if key.endswith("config"))
        seen.append([by_node[name][label] for name in ("a-1", "a-2")])
    raise AssertionError("no end")


def test_a_rollout_leads_on_from_an_entry_that_kept_its_name(root: Path) -> None:
    own, kept = "halves-d9c2814c", "all-1g.10gb"

    assert labels(root, "halves", "nvidia.com/mig.config") == [[own, kept], [own, own], [own, own]]


def test_a_rollout_leads_on_from_a_key_that_was_kept(root: Path) -> None:
    """Nothing ends with another label: the policy names the key that the nodes have."""
    own, kept = "a.d2b901a", "tesla-mig"

    found = labels(root, "time-slicing=4", "nvidia.com/device-plugin.config")

    assert found == [[kept, kept], [own, kept], [own, own], [own, own]]
