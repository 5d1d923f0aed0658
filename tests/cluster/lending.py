"""A pool of eight GPUs for each attack: alice is guaranteed six of them, and mallory borrows what she leaves idle."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, TypeVar

import pytest
from _pytest.mark import ParameterSet

from gpuplan.compiler.planning.plan import POOL_LABEL
from tests.cli.runs import run
from tests.cluster.api import Api, Object, Refused
from tests.cluster.kubelet import STUBBORN
from tests.cluster.processes import NotReadyError, until
from tests.platforms import document, pool, tenant

T = TypeVar("T")

CLUSTER: Final = "test"
GPU: Final = "nvidia.com/gpu"
FRACTION: Final = "gpu-fraction"
GPUS: Final = 8
OWN: Final = 6
"""What alice is guaranteed; the rest is mallory's."""
GRACE: Final = 3
"""Seconds for which a pod of mallory's ignores that it must end, unless an attack says more."""
LONGEST: Final = 60
"""Seconds without a change of any pod that a machine may take which has much else to do."""
IN_ALL: Final = 600
"""Seconds for which a tenant's pods may come and go in place of those whose GPUs they have."""
ELSEWHERE: Final = "elsewhere"
"""The pool that any eve is granted, and no other."""

EVERYBODY: Final = "everybody"
"""The parent of all tenants."""

_TAINT: Final = {"key": GPU, "value": "present", "effect": "NoSchedule"}
_NUMBERS = count(1)


def write(
    repository: Path, scheduler: str, names: Iterable[str], sharing: str = "exclusive", others: Iterable[str] = ()
) -> None:
    """A repository with a pool, an alice and a mallory for each name, an eve with part of another pool, and others.

    All have one parent: KAI-Scheduler v0.12.0 passes over queues that have none.
    """
    more = "" if sharing == "fraction" else f"allow: {{unitsPerContainer: {GPUS}}}"
    documents = [*others, _pool(ELSEWHERE, "exclusive")]
    for name in names:
        documents += [
            _pool(name, sharing),
            _tenant(f"mallory-{name}", name, f"guaranteed: {GPUS - OWN}, limit: {GPUS}", more),
            _tenant(f"alice-{name}", name, f"guaranteed: {OWN}", more),
            _tenant(f"eve-{name}", ELSEWHERE, "guaranteed: 1"),
        ]
    write_policy(repository, scheduler, documents)


def write_policy(repository: Path, scheduler: str, documents: Iterable[str], *more: str) -> None:
    """A repository with these documents, a cluster that may have more fields, and the parent of all tenants; built."""
    cluster = document(
        "Cluster",
        CLUSTER,
        'kubernetes: "1.34"',
        "gpuOperator: {install: helm, version: v26.7.0}",
        f"scheduler: {{{scheduler}}}",
        f"argocd: {{repoURL: https://git.example.com/platform/gpu.git, destination: {{name: {CLUSTER}}}}}",
        *more,
    )
    folder = repository / "overlays" / CLUSTER
    folder.mkdir(parents=True, exist_ok=True)
    policy = "".join([cluster, tenant(EVERYBODY, namespaces=""), *documents])
    (folder / "policy.yaml").write_text(policy, encoding="utf-8")
    built = run("build", cwd=repository)
    if built.code:
        raise RuntimeError(built.out + built.err)


def _pool(name: str, sharing: str) -> str:
    taint = ", ".join(f"{key}: {value}" for key, value in _TAINT.items())
    nodes = f"count: 1, gpusPerNode: {GPUS}, names: [{node(name)}]"
    return pool(name, f"{sharing}: {{}}", f"taints: [{{{taint}}}]", gpu="H100-80GB", nodes=nodes)


def _tenant(name: str, of: str, quota: str, more: str = "") -> str:
    fields = f"parent: {EVERYBODY}, members: [{{group: {name}}}]"
    return tenant(name, f"pool: {of}, {quota}", more=f"{fields}, {more}" if more else fields)


def node(pool: str) -> str:
    return f"gpu-{pool}"


@dataclass(frozen=True, slots=True)
class Party:
    """A tenant, as one of its members sees the cluster; its namespace and their group have its name."""

    admin: Api
    name: str
    pool: str
    labels: Mapping[str, str]
    """What brings work into its queue."""
    placed: Mapping[str, Any] = field(default_factory=dict)
    """What a pod says of where it runs, where no queue says it."""
    fraction: float | None = None
    """The part of a GPU that each pod asks for, where GPUs are shared."""

    @property
    def api(self) -> Api:
        return self.admin.as_user(self.name, [self.name])

    @property
    def pods_path(self) -> str:
        return f"/api/v1/namespaces/{self.name}/pods"

    @property
    def jobs_path(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.name}/jobs"

    def job(self, gpus: int, *, completions: bool = True, metadata: Object | None = None, **pod: Any) -> dict[str, Any]:
        """One that wants so many GPUs at once, a pod for each of them or for each part."""
        size = gpus if self.fraction is None else int(gpus / self.fraction)
        spec = {"parallelism": size, **({"completions": size} if completions else {})}
        found = {"generateName": "job-", "namespace": self.name, "labels": self.labels, **(metadata or {})}
        template = self.pod(**pod)
        del template["metadata"]["name"], template["metadata"]["namespace"]
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": found,
            "spec": {
                **spec,
                "backoffLimit": 100,
                "template": {"metadata": template["metadata"], "spec": template["spec"]},
            },
        }

    def pod(
        self,
        gpus: int = 1,
        *,
        cpu: int = 8,
        grace: int | None = GRACE,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> dict[str, Any]:
        """One that goes on until the end of its grace period when it is deleted."""
        limits = {"cpu": str(cpu), **({GPU: str(gpus)} if gpus and self.fraction is None else {})}
        shares = {FRACTION: str(self.fraction)} if gpus and self.fraction else {}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"pod-{next(_NUMBERS)}",
                "namespace": self.name,
                "annotations": {STUBBORN: "true", **shares, **(annotations or {})},
                "labels": {**self.labels, **(labels or {})},
            },
            "spec": {
                "restartPolicy": "Never",
                **({} if grace is None else {"terminationGracePeriodSeconds": grace}),
                "containers": [
                    {"name": "main", "image": "registry.example.com/test:1", "resources": {"limits": limits}}
                ],
                **self.placed,
                **spec,
            },
        }

    def pods(self, of: Object | None = None) -> list[dict[str, Any]]:
        """Those that are there, or those of one Job."""
        uid = of["metadata"]["uid"] if of else None
        return [
            body
            for body in self.admin.list(self.pods_path)
            if uid is None or uid in (owner["uid"] for owner in body["metadata"].get("ownerReferences", ()))
        ]

    def path(self, pod: Object) -> str:
        return f"{self.pods_path}/{pod['metadata']['name']}"

    def job_path(self, job: Object) -> str:
        return f"{self.jobs_path}/{job['metadata']['name']}"

    def running(self) -> float:
        """How many GPUs its pods hold, those that are ending among them."""
        return sum(gpus(body) for body in self.pods() if body["status"].get("phase") == "Running")

    def clear(self) -> None:
        """Remove all that it has made, at once, as only the administrator may."""
        self.admin.delete(self.jobs_path)
        self.admin.delete(f"/apis/policy/v1/namespaces/{self.name}/poddisruptionbudgets")
        until(self._is_cleared, f"{self.name} is empty", seconds=60)

    def _is_cleared(self) -> bool:
        for pod in self.pods():
            with suppress(Refused):  # it has gone meanwhile
                self.admin.patch(self.path(pod), {"metadata": {"finalizers": None}})
                self.admin.delete(self.path(pod), grace_seconds=0)
        return not self.pods() and not self.admin.list(self.jobs_path)


def gpus(pod: Object) -> float:
    share = float(pod["metadata"].get("annotations", {}).get(FRACTION, 0))
    return share or sum(int(container["resources"]["limits"].get(GPU, 0)) for container in pod["spec"]["containers"])


@dataclass(frozen=True, slots=True)
class Stage:
    """Where an attack is played."""

    mallory: Party
    alice: Party
    eve: Party
    refusals: list[str] = field(default_factory=list)
    """What the attack was answered."""
    afterwards: list[Callable[[], None]] = field(default_factory=list)
    """What happens once alice has asked for what is hers; the pool is hers, and not mallory's, until then."""

    def attempt(self, act: Callable[[], T]) -> T | None:
        """What it comes to, or None where the API server does not do it."""
        try:
            return act()
        except Refused as refused:
            self.refusals.append(refused.message)
            return None

    def runs(self, party: Party, least: int, seconds: float = 15) -> bool:
        """Whether so many GPUs of it run some time."""
        return comes(lambda: party.running() >= least, seconds)

    def runs_on(self, node: str, seconds: float = 5) -> bool:
        """Whether a pod of eve's runs on a node some time."""
        return comes(lambda: node in (pod["spec"].get("nodeName") for pod in self.eve.pods()), seconds)

    def clear(self) -> None:
        """Make the stage as it was."""
        for party in (self.mallory, self.alice, self.eve):
            party.clear()
        self.refusals.clear()
        self.afterwards.clear()


def comes(condition: Callable[[], object], seconds: float) -> bool:
    try:
        until(condition, "it comes", seconds=seconds)
    except NotReadyError:
        return False
    return True


def own_place(pool: str) -> dict[str, Any]:
    """Where a pod runs that no queue brings there."""
    return {"nodeSelector": {POOL_LABEL: pool}, "tolerations": [{**_TAINT, "operator": "Equal"}]}


Attack = Callable[[Stage], None]


def in_words(attack: Attack) -> str:
    return attack.__name__.replace("_", " ")


def cases(attacks: Iterable[Attack], still_open: Collection[Attack]) -> list[ParameterSet]:
    """A case for each; those that are known to work are expected to."""
    mark = pytest.mark.xfail(reason="no rule of admission closes it yet", strict=False, raises=AssertionError)
    return [
        pytest.param(attack, id=in_words(attack), marks=[mark] if attack in still_open else []) for attack in attacks
    ]


def pools(count: int) -> list[str]:
    """The names of so many; those of queues are made of them, and may not be long."""
    return [f"p{number}" for number in range(count)]


@dataclass(frozen=True, slots=True)
class Outcome:
    observed: str
    borrowed: float
    """What mallory had when alice came, his own part among it."""
    refusals: tuple[str, ...]


def play_all(attacks: Sequence[Attack], stages: Iterable[Stage], *, idle: Collection[Attack]) -> dict[Attack, Outcome]:
    """What has come of each attack; as many are played at once as there are stages. The idle ones borrow nothing."""
    free: SimpleQueue[Stage] = SimpleQueue()
    for stage in stages:
        free.put(stage)

    def next_outcome(attack: Attack) -> Outcome:
        stage = free.get()
        outcome = play(attack, stage, borrows=attack not in idle)
        stage.clear()
        free.put(stage)
        return outcome

    with ThreadPoolExecutor(free.qsize()) as threads:
        return dict(zip(attacks, threads.map(next_outcome, attacks), strict=True))


def play(attack: Attack, stage: Stage, *, borrows: bool = True) -> Outcome:
    """How many of her GPUs alice has, some time after she asks for all of them.

    Before she does, mallory has the whole pool; or less, where what is left of the attack is in his own way.
    """
    attack(stage)
    if borrows and not stage.afterwards:
        if (idle := int(GPUS - stage.mallory.running())) > 0:
            stage.attempt(lambda: stage.mallory.api.create(stage.mallory.job(idle)))
        stage.runs(stage.mallory, GPUS, seconds=30)
    borrowed = stage.mallory.running()
    stage.alice.api.create(stage.alice.job(OWN))
    for act in stage.afterwards:
        act()
    deadline = time.monotonic() + IN_ALL
    while stage.alice.running() < OWN and time.monotonic() < deadline and _changes(stage):
        pass
    return Outcome(f"alice {stage.alice.running():g}/{OWN}", borrowed, tuple(stage.refusals))


def _changes(stage: Stage) -> bool:
    """Whether any pod comes, goes or starts within the longest that a busy machine takes for it."""
    before = _pods(stage)
    return comes(lambda: _pods(stage) != before, LONGEST)


def _pods(stage: Stage) -> set[tuple[str, str, bool]]:
    return {
        (pod["metadata"]["uid"], pod["status"].get("phase", ""), "deletionTimestamp" in pod["metadata"])
        for party in (stage.alice, stage.mallory)
        for pod in party.pods()
    }
