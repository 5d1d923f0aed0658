"""More comes than a tenant may use: a higher class at its limit, and two groups of pods that do not fit at once.

What then happens is what `show --preemption` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gpuplan.planning.kai import queue_name
from gpuplan.planning.preemption import Condition
from gpuplan.planning.schedulers.kai import NODE_POOL_LABEL, QUEUE_LABEL, SCHEDULER_NAME
from tests.cluster import proof
from tests.cluster.api import Object, Refused
from tests.cluster.attacks import COUNT, GROUP
from tests.cluster.example import Beside, ExampleCluster
from tests.cluster.gangs import BOTH, NEITHER
from tests.cluster.kai_scheduler import kai_controllers, kai_schedulers
from tests.cluster.kueue_controller import kueue_controller
from tests.cluster.kueue_jobs import QUEUE
from tests.cluster.lending import CLUSTER, EVERYBODY, Party, comes, own_place, write_policy
from tests.cluster.outcomes import in_the_end
from tests.cluster.processes import until
from tests.cluster.programs import need_go
from tests.platforms import pool, priority_class, tenant

Record = Callable[[str, object, object], None]

POOL, LAB, LIMIT = "whole", "lab", 4
HIGH, LOW = "high", "low"
GOES, REFUSED = "a lower one goes", "the new one is refused"
TAINT = "taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]"
DOCUMENTS = (
    pool(POOL, "exclusive: {}", TAINT, gpu="H100-80GB", nodes="count: 1, gpusPerNode: 8, names: [gpu-whole]"),
    # KAI-Scheduler evicts no work whose class has a value of 100 or more.
    priority_class(HIGH, 90),
    priority_class(LOW, 50),
    tenant(
        LAB,
        f"pool: {POOL}, guaranteed: {LIMIT}",
        more=f"parent: {EVERYBODY}, priorityClasses: [{HIGH}, {LOW}], members: [{{group: {LAB}}}]",
    ),
)

CLUSTERS = [
    ("kubernetes", "limit"),
    *(pytest.param(kind, cap, marks=proof.only_in_proof) for kind in ("kueue", "kai") for cap in ("limit", "queue")),
]


@pytest.mark.parametrize(("scheduler", "cap"), CLUSTERS)
def test_higher_class_at_the_limit(tmp_path: Path, scheduler: str, cap: str, record: Record) -> None:
    with _cluster(tmp_path, scheduler, cap) as cluster:
        lab = _lab(cluster, scheduler)
        for form, body in (("pod", lab.pod), ("Job", partial(lab.job, 1))):
            observed = _challenge(lab, body, planned := _planned(cluster, form))
            record(f"{scheduler}, cap: {cap}: a {form} of a higher class comes at the limit", planned, observed)
            lab.clear()


@proof.only_in_proof
@pytest.mark.parametrize(("cap", "planned"), [("limit", NEITHER), ("queue", BOTH)])
def test_two_groups_of_pods_at_once(tmp_path: Path, cap: str, planned: str, record: Record) -> None:
    """Each has as many pods as its tenant may have; the quota lets in a half of each."""
    with _cluster(tmp_path, "kueue", cap) as cluster:
        lab = _lab(cluster, "kueue")
        for number in range(2 * LIMIT):
            group = lab.pod(
                priorityClassName=LOW, annotations={COUNT: str(LIMIT)}, labels={GROUP: f"group-{number % 2}"}
            )
            with suppress(Refused):
                lab.api.create(group)
        record(f"kueue, cap: {cap}: two groups of pods come at once", planned, _one_after_the_other(lab))


def _one_after_the_other(lab: Party) -> str:
    """Whether a group runs, and the other once that has ended."""
    for _ in range(2):
        if not comes(lambda: lab.running() == LIMIT, 60):
            return NEITHER if not lab.running() else "one starts"
        for pod in filter(_runs, lab.pods()):
            lab.admin.patch(f"{lab.path(pod)}/status", {"status": {"phase": "Succeeded"}})
    return BOTH


def _planned(cluster: ExampleCluster, form: str) -> str:
    """What the plan says where the tenant's quota is used up and its queue is full, and the pool is not."""
    holds = {Condition.QUEUE_FULL, *([Condition.QUOTA_HAS_ROOM_OR_JOB] if form == "Job" else [])}
    lab_high, lab_low = ({"tenant": LAB, "priority_class": name} for name in (HIGH, LOW))
    evicts = any(
        lab_high in found["evictors"] and lab_low in found["victims"] and holds.issuperset(found["when"])
        for found in cluster.plan["evictions"]
    )
    return GOES if evicts else REFUSED


def _challenge(lab: Party, body: Callable[..., Object], planned: str) -> str:
    """What becomes of the higher one where lower ones have all that the tenant may have."""
    for _ in range(LIMIT):
        lab.api.create(body(priorityClassName=LOW))
    until(lambda: lab.running() == LIMIT, "it is at its limit", seconds=60)
    try:
        made = lab.api.create(body(priorityClassName=HIGH))
    except Refused as refused:
        return REFUSED if "exceeded quota" in refused.message else refused.message
    return in_the_end(planned, _outcome, lab, made)


def _outcome(lab: Party, made: Object) -> str:
    found = lab.pods()
    if sorted(pod["spec"]["priorityClassName"] for pod in found if _runs(pod)) == [HIGH, *[LOW] * (LIMIT - 1)]:
        return GOES
    query = f"fieldSelector=involvedObject.uid={made['metadata']['uid']}"
    events = lab.admin.list(f"/api/v1/namespaces/{lab.name}/events?{query}")
    return REFUSED if any("exceeded quota" in event["message"] for event in events) else "nothing"


def _runs(pod: Object) -> bool:
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


@contextmanager
def _cluster(repository: Path, scheduler: str, cap: str) -> Iterator[ExampleCluster]:
    need_go()
    write_policy(repository, f"kind: {scheduler}, cap: {cap}", DOCUMENTS)
    configuration = repository / "out" / CLUSTER / "scheduling" / "kueue-configuration.yaml"
    beside: dict[str, Beside] = {
        "kueue": partial(kueue_controller, configuration=configuration),
        "kai": kai_controllers,
    }
    with ExitStack() as running:
        cluster = running.enter_context(ExampleCluster.start(CLUSTER, repository, beside.get(scheduler)))
        running.enter_context(kai_schedulers(cluster.control_plane) if scheduler == "kai" else nullcontext())
        yield cluster


def _lab(cluster: ExampleCluster, scheduler: str) -> Party:
    """The tenant, whose work goes by itself to its pool where no queue brings it there."""
    kai = {QUEUE_LABEL: queue_name(LAB, POOL), NODE_POOL_LABEL: POOL}
    labels = {"kueue": {QUEUE: "default"}, "kai": kai, "kubernetes": {}}
    placed: dict[str, dict[str, Any]] = {
        "kueue": {},
        "kai": {"schedulerName": SCHEDULER_NAME, **own_place(POOL)},
        "kubernetes": own_place(POOL),
    }
    return Party(cluster.api, LAB, POOL, labels[scheduler], placed[scheduler])
