"""An API server takes what platforms are built into, each object as its Application applies it; nothing is null.

The GPU Operator's chart is that of v25.3.4, which comes with its module, or of each line where `GPUPLAN_SOURCES` names
mirrors. `make proof` has 200 drawn platforms.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import pytest

from gpuplan.compiler.planning.plan import Stage
from tests.cluster.charts import MIRRORS, of_the_module
from tests.cluster.definitions import has_definitions
from tests.cluster.gpu_operator import RELEASE
from tests.cluster.kueue_controller import kueue_release
from tests.cluster.proof import IS_ASKED_FOR
from tests.cluster.strictly import Item, Server, Written, drawn, example, nulls, write
from tests.cluster.test_charts import a_kueue, render
from tests.laws.operands.tables import RELEASES
from tests.platforms import pool

Record = Callable[[str, object, object], None]

CLUSTERS: Final = ("dev", "openshift", "prod")
DRAWN: Final = 200 if IS_ASKED_FOR else 20
LINES: Final = RELEASES if MIRRORS else (RELEASE,)
each_line = pytest.mark.parametrize("release", LINES)


@cache
def platforms(release: str) -> dict[str, Written]:
    """The example's clusters and drawn ones with a release, by name."""
    found = {name: write(name, name, example(name), release) for name in CLUSTERS} | drawn(DRAWN, release)
    written = {name: platform for name, platform in found.items() if platform}
    assert len(written) == len(CLUSTERS) + DRAWN
    return written


@each_line
def test_nothing_that_is_written_is_null(release: str, record: Record) -> None:
    items = [item for found in platforms(release).values() for item in found.items]
    record(f"GPU Operator {release}: null in {len(items)} objects", [], nulls(items))


@each_line
def test_nothing_that_is_written_is_refused(release: str, servers: Callable[[str], Server], record: Record) -> None:
    server = servers(release)
    items = [item for found in platforms(release).values() for item in found.items]
    record(f"GPU Operator {release}: refused of {len(items)} objects", [], server.refusals(items))
    if has_definitions():
        planned = [*([] if MIRRORS else ["helm.toolkit.fluxcd.io"]), "nfd.openshift.io"]
        observed = sorted({kind.partition("/")[0] for kind in server.undefined})
        record(f"GPU Operator {release}: groups of kinds applied without a schema", planned, observed)


@each_line
def test_nothing_that_the_operators_chart_makes_of_the_values_is_refused(
    release: str, servers: Callable[[str], Server], record: Record
) -> None:
    server = servers(release)
    installed = [(name, found.operator) for name, found in platforms(release).items() if found.operator]
    items = server.render(installed)
    title = f"GPU Operator {release}: refused of {len(items)} objects of its chart, by {len(installed)} platforms"
    record(title, [], server.refusals(items))


# --- A strategy for each pool ------------------------------------------------------------------------------------

_CLUSTER: Final = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: test}}
spec:
  kubernetes: "1.34"
  gpuOperator: {{install: helm, version: v25.3.4{strategy}}}
  argocd: {{repoURL: "https://git.example.com/platform/gpu.git"}}
"""
_MIXED: Final = "mig: {instances: {3g.40gb: 1, 2g.20gb: 2}}"
_SINGLE: Final = "mig: {strategy: single, instances: {1g.10gb: 7}}"
_MIXES: Final = {
    "all mixed": (_MIXED, "mig: {instances: {1g.10gb: 7}}"),
    "all single": (_SINGLE, "mig: {strategy: single, instances: {3g.40gb: 2}}"),
    "both": (_MIXED, _SINGLE),
    "none": ("exclusive: {}", "timeSlicing: {replicas: 2}"),
}


@each_line
@pytest.mark.parametrize("mix", _MIXES)
def test_a_strategy_is_left_to_pools_whatever_they_have(
    mix: str, release: str, servers: Callable[[str], Server], record: Record
) -> None:
    """The ClusterPolicy that is there has the strategy of the cluster, and loses it when the policy leaves it out."""
    server = servers(release)
    files = a_platform(*_MIXES[mix])
    if mix == "all mixed":
        apply_policy(server, a_platform(*_MIXES[mix], strategy=", migStrategy: mixed"))
        assert strategy_of(server) == "mixed"
    apply_policy(server, files)
    record(f"GPU Operator {release}: its strategy where pools are {mix}", "", strategy_of(server))


def a_platform(*sharings: str, strategy: str = "") -> dict[str, str]:
    nodes = "count: 1, gpusPerNode: 8, names: [gpu-{}]"
    pools = [pool(f"pool{index}", sharing, nodes=nodes.format(index)) for index, sharing in enumerate(sharings)]
    return {"overlays/test/all.yaml": "".join([_CLUSTER.format(strategy=strategy), *pools])}


def apply_policy(server: Server, files: dict[str, str]) -> None:
    """Apply the ClusterPolicy that the chart makes, as the Application does."""
    written = write("test", "test", files, server.release)
    assert written is not None
    assert written.operator is not None
    [policy] = [item for item in server.render([("test", written.operator)]) if item.body["kind"] == "ClusterPolicy"]
    server.apply(policy)


def strategy_of(server: Server) -> str:
    """The strategy in the ClusterPolicy that is there, empty if it has none."""
    policy = server.plane.api.get("/apis/nvidia.com/v1/clusterpolicies/cluster-policy")
    return str(policy["spec"].get("mig", {}).get("strategy", ""))


# --- Kueue's chart -----------------------------------------------------------------------------------------------


def test_nothing_that_kueues_chart_makes_is_refused(servers: Callable[[str], Server], record: Record) -> None:
    plan = a_kueue(kueue_release())
    objects = render(plan, Stage.SCHEDULER, of_the_module())
    items = [Item("kueue", body, on_server=True) for body in objects]
    record(
        f"Kueue {kueue_release()}: refused of {len(items)} objects of its chart", [], servers(RELEASE).refusals(items)
    )
