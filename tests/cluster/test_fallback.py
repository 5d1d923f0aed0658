"""Work goes to its pool's fallback when the pool is full: kube-scheduler sends it there, and Kueue by its flavors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.api import Api
from tests.cluster.example import Beside, ExampleCluster
from tests.cluster.kueue_controller import kueue_controller
from tests.cluster.lending import CLUSTER, EVERYBODY, write_policy
from tests.cluster.outcomes import in_the_end
from tests.cluster.programs import need_go
from tests.platforms import document, pool, tenant

Record = Callable[[str, object, object], None]

LAB, ROOM, PODS = "lab", 2, 5
FIRST, SECOND = "gpu-first", "gpu-second"


def _taint(name: str) -> str:
    return f"taints: [{{key: nvidia.com/gpu, value: {name}, effect: NoSchedule}}]"


DOCUMENTS = (
    pool(
        "first",
        "exclusive: {}",
        _taint("first"),
        "fallback: second",
        nodes=f"count: 1, gpusPerNode: {ROOM}, names: [{FIRST}]",
    ),
    pool("second", "exclusive: {}", _taint("second"), nodes=f"count: 1, gpusPerNode: 8, names: [{SECOND}]"),
    # The fallback comes first, so that the order of the policy is not the one that is looked for.
    tenant(
        LAB,
        "pool: second, guaranteed: 0, limit: 4",
        f"pool: first, guaranteed: {ROOM}",
        more=f"parent: {EVERYBODY}, members: [{{group: {LAB}}}]",
    ),
    document(
        "Workload",
        "answers",
        f"tenant: {LAB}",
        "pool: first",
        f"inference: {{replicas: {PODS}}}",
        "image: registry.example.com/lab/answers:1",
    ),
)


@pytest.mark.parametrize("scheduler", ["kubernetes", "kueue"])
def test_a_service_fills_its_pool_and_goes_on_in_the_fallback(tmp_path: Path, scheduler: str, record: Record) -> None:
    """As many pods as its pool has GPUs are there, the others where its tenant may borrow."""
    need_go()
    write_policy(tmp_path, f"kind: {scheduler}", DOCUMENTS)
    configuration = tmp_path / "out" / CLUSTER / "scheduling" / "kueue-configuration.yaml"
    beside: Mapping[str, Beside] = {"kueue": partial(kueue_controller, configuration=configuration)}
    with ExampleCluster.start(CLUSTER, tmp_path, beside.get(scheduler)) as cluster:
        planned = {FIRST: ROOM, SECOND: PODS - ROOM}
        observed = in_the_end(planned, _pods_by_node, cluster.api)
        record(f"{scheduler}: pods of a service in its pool, and in the fallback", planned, observed)


def _pods_by_node(api: Api) -> dict[str, int]:
    pods = api.list(f"/api/v1/namespaces/{LAB}/pods")
    return dict(Counter(pod["spec"]["nodeName"] for pod in pods if pod["status"].get("phase") == "Running"))
