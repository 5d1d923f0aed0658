"""More comes than fits: a higher class at its tenant's limit or on a full node, and two groups of pods at once.

What then happens is what `show --preemption` says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gpuplan.compiler.planning.kai import queue_name
from gpuplan.compiler.planning.preemption import Condition
from gpuplan.compiler.planning.schedulers.kai import NODE_POOL_LABEL, QUEUE_LABEL, SCHEDULER_NAME
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

POOL, LAB, OTHER, LIMIT = "whole", "lab", "other", 4
HIGH, LOW = "high", "low"
GOES, REFUSED, WAITS = "a lower one goes", "the new one is refused", "the new one waits"
ALL_CPU = 180
"""More than a node has beside four pods with GPUs."""
TAINT = "taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]"
DOCUMENTS = (
    pool(POOL, "exclusive: {}", TAINT, gpu="H100-80GB", nodes="count: 1, gpusPerNode: 8, names: [gpu-whole]"),
    # KAI-Scheduler evicts no work whose class has a value of 100 or more.
    priority_class(HIGH, 90),
    priority_class(LOW, 50),
    *(
        tenant(
            name,
            f"pool: {POOL}, guaranteed: {LIMIT}",
            more=f"parent: {EVERYBODY}, priorityClasses: [{HIGH}, {LOW}], members: [{{group: {name}}}]",
        )
        for name in (LAB, OTHER)
    ),
)

CLUSTERS = [
    ("kubernetes", "limit"),
    *(pytest.param(kind, cap, marks=proof.only_in_proof) for kind in ("kueue", "kai") for cap in ("limit", "queue")),
]


@pytest.mark.parametrize(("scheduler", "cap"), CLUSTERS)
def test_higher_class_at_the_limit(tmp_path: Path, scheduler: str, cap: str, record: Record) -> None:
    with _cluster(tmp_path, scheduler, cap) as cluster:
        lab = _party(cluster, scheduler, LAB)
        for form, body in (("pod", lab.pod), ("Job", partial(lab.job, 1))):
            observed = _challenge(lab, body, planned := _planned(cluster, form))
            record(f"{scheduler}, cap: {cap}: a {form} of a higher class comes at the limit", planned, observed)
            lab.clear()
        for by in ("kube-scheduler", *(["KAI-Scheduler"] if scheduler == "kai" else [])):
            for victim, rank in ((OTHER, HIGH), (LAB, HIGH), (OTHER, LOW)):
                planned = _planned_for_cpu(cluster, by, victim, rank)
                owner = _party(cluster, scheduler, victim)
                observed = _challenge_for_cpu(lab, owner, by, rank, planned)
                what = f"{by} places a pod of {LAB} ({rank}) that wants the CPUs of {victim}'s"
                record(f"{scheduler}, cap: {cap}: {what}", planned, observed)
                lab.clear()
                owner.clear()


def _planned_for_cpu(cluster: ExampleCluster, by: str, victim: str, rank: str) -> str:
    """What the plan says where the one node has no CPU left."""
    holds: set[Condition] = {Condition.QUEUE_FULL}
    if by == "kube-scheduler":
        holds = {Condition.POOL_FULL, Condition.NODE_FULL, Condition.BY_KUBE_SCHEDULER}
    return GOES if _evicts(cluster, "cpu", (LAB, rank), (victim, LOW), holds) else WAITS


def _challenge_for_cpu(lab: Party, owner: Party, by: str, rank: str, planned: str) -> str:
    for _ in range(LIMIT):
        owner.api.create(owner.pod(priorityClassName=LOW))
    until(lambda: owner.running() == LIMIT, "the others run", seconds=60)
    comer = replace(lab, labels={}, placed=own_place(POOL)) if by == "kube-scheduler" else lab
    made = comer.api.create(comer.pod(0, cpu=ALL_CPU, priorityClassName=rank))
    if planned == WAITS:
        time.sleep(10)  # nothing says that nothing will come any more
    return in_the_end(planned, _outcome_for_cpu, owner, made)


def _outcome_for_cpu(owner: Party, made: Object) -> str:
    new = owner.admin.get(f"/api/v1/namespaces/{made['metadata']['namespace']}/pods/{made['metadata']['name']}")
    if not _runs(new):
        return WAITS if owner.running() == LIMIT else "neither"
    return GOES if owner.running() < LIMIT else "all run"


@proof.only_in_proof
@pytest.mark.parametrize(("cap", "planned"), [("limit", NEITHER), ("queue", BOTH)])
def test_two_groups_of_pods_at_once(tmp_path: Path, cap: str, planned: str, record: Record) -> None:
    """Each has as many pods as its tenant may have; the quota lets in a half of each."""
    with _cluster(tmp_path, "kueue", cap) as cluster:
        lab = _party(cluster, "kueue", LAB)
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
    return GOES if _evicts(cluster, "gpu", (LAB, HIGH), (LAB, LOW), holds) else REFUSED


def _evicts(
    cluster: ExampleCluster, lacking: str, evictor: tuple[str, str], victim: tuple[str, str], holds: set[Condition]
) -> bool:
    """Whether the plan has a way for the one to evict the other where that, and nothing more, is so."""
    one, other = ({"tenant": name, "priority_class": rank} for name, rank in (evictor, victim))
    whose = "within_tenants" if evictor[0] == victim[0] else "across_tenants"
    return any(
        found["unit"] == lacking
        and found[whose]
        and one in found["evictors"]
        and other in found["victims"]
        and holds >= {*found["when"]}
        for found in cluster.plan["evictions"]
    )


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


def _party(cluster: ExampleCluster, scheduler: str, name: str) -> Party:
    """A tenant, whose work goes by itself to its pool where no queue brings it there."""
    kai = {QUEUE_LABEL: queue_name(name, POOL), NODE_POOL_LABEL: POOL}
    labels = {"kueue": {QUEUE: "default"}, "kai": kai, "kubernetes": {}}
    placed: dict[str, dict[str, Any]] = {
        "kueue": {},
        "kai": {"schedulerName": SCHEDULER_NAME, **own_place(POOL)},
        "kubernetes": own_place(POOL),
    }
    return Party(cluster.api, name, POOL, labels[scheduler], placed[scheduler])
