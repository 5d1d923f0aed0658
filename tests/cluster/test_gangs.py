"""Two gangs that come at once, on the real Job controller and KAI-Scheduler v0.12.0: a quota parts them.

All interleavings, in a model: `tests/laws/tenancy/test_gangs.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuplan.compiler.planning.kai import queue_name
from gpuplan.compiler.planning.schedulers.kai import NODE_POOL_LABEL, QUEUE_LABEL, SCHEDULER_NAME
from tests.cluster import proof
from tests.cluster.api import Api
from tests.cluster.definitions import define
from tests.cluster.delivery import deliveries
from tests.cluster.example import ExampleCluster, apply_all, settle
from tests.cluster.gangs import BOTH, NEITHER, ROOM, clear, come, owner_of, parted, stays_parted, what_runs
from tests.cluster.kai_scheduler import kai_controllers, kai_schedulers
from tests.cluster.lending import CLUSTER, EVERYBODY, Party, comes, own_place, write_policy
from tests.cluster.programs import need_go
from tests.platforms import pool, tenant

Record = Callable[[str, object, object], None]

pytestmark = proof.only_in_proof

POOL = "gangs"
SEEDS = range(50)
AT_ONCE = 4
"""Tenants, each with gangs of its own."""
WHILE = 10
"""Seconds in which KAI-Scheduler looks at parted gangs ten times."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """A cluster with what a policy gave before the queue was the cap, and what it gives now."""

    cluster: ExampleCluster
    new: Path

    def upgrade(self) -> None:
        apply_all(self.cluster.api, tuple(deliveries(self.cluster.control_plane, self.new, CLUSTER)))
        settle(self.cluster.api)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outputs]:
    need_go()
    old, new = tmp_path_factory.mktemp("old"), tmp_path_factory.mktemp("new")
    for repository, cap in ((old, "limit"), (new, "queue")):
        write_policy(repository, f"kind: kai, cap: {cap}", _documents())
    with ExampleCluster.start(CLUSTER, old, kai_controllers) as cluster, kai_schedulers(cluster.control_plane):
        define(cluster.api, [owner_of("any", "any", 1)])
        yield Outputs(cluster, new)


def test_a_quota_parts_gangs_and_a_queue_does_not(outputs: Outputs, record: Record) -> None:
    before = _played(outputs.cluster.api, _are_parted)
    print(f"cap: limit: {Counter(before)}")
    record("kai, cap: limit: of pairs of gangs that come at once, some never start", True, NEITHER in before)
    record("kai, cap: limit: what comes of the other pairs", BOTH, " ".join({*before, BOTH} - {NEITHER}))
    outputs.upgrade()
    after = _played(outputs.cluster.api, lambda party, seed: what_runs(come(party, seed)))
    record(f"kai, cap: queue: what comes of {len(SEEDS)} pairs of gangs", {BOTH}, set(after))


def _are_parted(party: Party, seed: int) -> str:
    gangs = come(party, seed)
    if comes(lambda: parted(gangs), 5):
        assert stays_parted(gangs, WHILE)
        return NEITHER
    return what_runs(gangs)


def _played(api: Api, outcome: Callable[[Party, int], str]) -> list[str]:
    """What has come of the gangs of each seed; each tenant has those of several, one after the other."""

    def of_tenant(number: int) -> list[str]:
        party, found = _party(api, number), []
        for seed in SEEDS[number::AT_ONCE]:
            found.append(outcome(party, seed))
            clear(party)
        return found

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return [found for part in threads.map(of_tenant, range(AT_ONCE)) for found in part]


def _party(api: Api, number: int) -> Party:
    name = f"t{number}"
    labels = {QUEUE_LABEL: queue_name(name, POOL), NODE_POOL_LABEL: POOL}
    return Party(api, name, POOL, labels, {"schedulerName": SCHEDULER_NAME, **own_place(POOL)})


def _documents() -> Iterator[str]:
    taint = "taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]"
    names = ", ".join(f"gpu-{number}" for number in range(AT_ONCE))
    nodes = f"count: {AT_ONCE}, gpusPerNode: 8, names: [{names}]"
    yield pool(POOL, "exclusive: {}", taint, gpu="H100-80GB", nodes=nodes)
    for number in range(AT_ONCE):
        yield tenant(f"t{number}", f"pool: {POOL}, guaranteed: {ROOM}", more=f"parent: {EVERYBODY}")
