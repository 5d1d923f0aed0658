"""KAI-Scheduler on a small cluster: how far its queues let tenants go, who gives way, and how a GPU is shared.

Its release is v0.12.0, the newest that the proxy of Go modules has under its path; gpuplan writes for v0.13 and later
(GPU551). What came later is not shown here: queues that have no parent or more than one, and a shard's `plugins`.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuplan.compiler.planning.kai import queue_name
from gpuplan.compiler.planning.plan import POOL_LABEL
from gpuplan.compiler.planning.schedulers.kai import NODE_POOL_LABEL, QUEUE_LABEL, SCHEDULER_NAME
from tests.cli.runs import run
from tests.cluster.api import Api, Refused
from tests.cluster.example import REPOSITORY, ExampleCluster
from tests.cluster.kai_scheduler import kai_controllers, kai_schedulers, reserved_gpus
from tests.cluster.outcomes import in_the_end
from tests.cluster.processes import until
from tests.cluster.programs import need_go

Record = Callable[[str, object, object], None]

OVERLAY = Path(__file__).with_name("kai_overlay.yaml")
HALF = "0.5"


@pytest.fixture(scope="module")
def kai(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleCluster]:
    """The example platform as the overlay changes it, with its schedulers."""
    need_go()
    repository = tmp_path_factory.mktemp("kai")
    shutil.copytree(REPOSITORY / "policies", repository / "policies")
    (repository / "overlays" / "dev").mkdir(parents=True)
    shutil.copy(OVERLAY, repository / "overlays" / "dev" / "cluster.yaml")
    built = run("build", cwd=repository)
    assert built.code == 0, built.err
    with ExampleCluster.start("dev", repository, kai_controllers) as cluster, kai_schedulers(cluster.control_plane):
        yield cluster


@pytest.fixture(autouse=True)
def reservations(kai: ExampleCluster) -> Iterator[None]:
    """Wait until no GPU is held any more for the fractions of a test."""
    yield
    until(lambda: not reserved_gpus(kai.api), "reservations are gone")


@dataclass(frozen=True, slots=True)
class Pods:
    """Pods of a tenant in one pool that are alike; `share` is their fraction of a GPU, or the resource they ask for."""

    api: Api
    tenant: Mapping[str, Any]
    pool: str
    share: str
    priority_class: str
    names: list[str]

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.tenant['namespaces'][0]}/pods"

    @contextmanager
    def running(self, count: int) -> Iterator[Pods]:
        """So many of them, gone at the end."""
        try:
            self.add(count)
            yield self
        finally:
            for name in self._found():
                self.api.delete(f"{self.path}/{name}")
            until(lambda: not self._found(), "pods are gone")

    def add(self, count: int) -> None:
        for _ in range(count):
            self.names.append(self.api.create(self.body())["metadata"]["name"])

    def count(self) -> int:
        """How many of them run."""
        return sum(pod["status"].get("phase") == "Running" for pod in self._found().values())

    def count_and_why(self) -> tuple[int, set[str]]:
        """How many of them run, and why the others do not."""
        conditions = [found for pod in self._found().values() for found in pod["status"].get("conditions", ())]
        return self.count(), {
            found["message"].partition(":")[0] for found in conditions if found.get("reason") == "Unschedulable"
        }

    def _found(self) -> dict[str, dict[str, Any]]:
        pods = {pod["metadata"]["name"]: pod for pod in self.api.list(self.path)}
        return {name: pods[name] for name in self.names if name in pods}

    def body(self) -> dict[str, Any]:
        """Much as our own workloads. One with a fraction needs a name: the webhook makes others of it."""
        labels = {QUEUE_LABEL: queue_name(self.tenant["name"], self.pool), NODE_POOL_LABEL: self.pool}
        is_fraction = "/" not in self.share
        taint = {"key": "nvidia.com/gpu", "operator": "Equal", "value": self.pool, "effect": "NoSchedule"}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"test-{secrets.token_hex(4)}",
                "namespace": self.tenant["namespaces"][0],
                "labels": labels,
                "annotations": {"gpu-fraction": self.share} if is_fraction else {},
            },
            "spec": {
                "schedulerName": SCHEDULER_NAME,
                "priorityClassName": self.priority_class,
                "restartPolicy": "Never",
                "nodeSelector": {POOL_LABEL: self.pool},
                "tolerations": [taint],
                "containers": [
                    {
                        "name": "main",
                        "image": "registry.example.com/test:1",
                        "resources": {} if is_fraction else {"limits": {self.share: "1"}},
                    }
                ],
            },
        }


def test_webhook_tells_queues_apart(kai: ExampleCluster, record: Record) -> None:
    """A queue that says nothing of resources may use none."""
    written = [body for folder in kai.folders for body in folder.objects if body["kind"] == "Queue"]
    bare = {**written[0], "metadata": {"name": "bare"}, "spec": {"displayName": "bare"}}
    record("kai: queues that its webhook takes", len(written), sum(_is_taken(kai.api, body) for body in written))
    record("kai: a queue without resources is taken", False, _is_taken(kai.api, bare))


@pytest.mark.parametrize("unit", ["3g.40gb", "2g.20gb"])
def test_partitions_run_up_to_the_guarantee(kai: ExampleCluster, unit: str, record: Record) -> None:
    tenant, quota = _quota(kai, "model-services", unit)
    with _pods(kai, tenant, quota, quota["resource"]).running(quota["guaranteed"] + 1) as pods:
        observed = in_the_end(quota["guaranteed"], pods.count)
    record(
        f"kai: model-services, {unit}: pods that run of one more than the queue lets run", quota["guaranteed"], observed
    )


def test_fractions_share_gpus(kai: ExampleCluster, record: Record) -> None:
    tenant, quota = _quota(kai, "development", "fraction")
    with _pods(kai, tenant, quota, HALF).running(3) as pods:
        observed = in_the_end((3, 2), lambda: (pods.count(), reserved_gpus(kai.api)))
    record("kai: halves of a GPU that run, GPUs that they are on", (3, 2), observed)


def test_surplus_is_used_up_to_the_limit(kai: ExampleCluster, record: Record) -> None:
    tenant, quota = _quota(kai, "research", "fraction")
    planned = 2 * quota["limit"], {"OverLimit"}
    with _pods(kai, tenant, quota, HALF).running(planned[0] + 1) as pods:
        observed = in_the_end(planned, pods.count_and_why)
    record("kai: research: halves that run, why others do not", planned, observed)


def test_what_is_not_preemptible_stays_within_the_guarantee(kai: ExampleCluster, record: Record) -> None:
    tenant, quota = _quota(kai, "research", "fraction")
    planned = 2 * quota["guaranteed"], {"NonPreemptibleOverQuota"}
    with _pods(kai, tenant, quota, HALF, "steady").running(planned[0] + 1) as pods:
        observed = in_the_end(planned, pods.count_and_why)
    record("kai: research, class steady: halves that run, why others do not", planned, observed)


def test_guarantee_is_taken_back(kai: ExampleCluster, record: Record) -> None:
    """The borrower keeps what is left when the other has all that is its own."""
    borrower, borrowed = _quota(kai, "research", "fraction")
    lender, own = _quota(kai, "development", "fraction")
    [unit] = [unit for pool in kai.plan["pools"] for unit in pool["units"] if pool["name"] == own["pool"]]
    planned = 2 * own["guaranteed"], 2 * (unit["capacity"] - own["guaranteed"])
    with _pods(kai, borrower, borrowed, HALF).running(2 * borrowed["limit"]) as borrowing:
        until(lambda: borrowing.count() == 2 * borrowed["limit"], "research has all that it may", seconds=60)
        with _pods(kai, lender, own, HALF).running(planned[0]) as coming:
            observed = in_the_end(planned, lambda: (coming.count(), borrowing.count()))
    record("kai: halves of development and of research when development comes", planned, observed)


def test_class_evicts_within_its_queue(kai: ExampleCluster, record: Record) -> None:
    """KAI-Scheduler goes by the value of a class alone, as the plan says: `steady` says that it does not preempt."""
    tenant, quota = _quota(kai, "research", "fraction")
    comer, runner = ({"tenant": "research", "priority_class": name} for name in ("steady", "research"))
    evicts = any(
        found["within_tenants"] and comer in found["evictors"] and runner in found["victims"]
        for found in kai.plan["evictions"]
        if found["pool"] == quota["pool"]
    )
    full = 2 * quota["limit"]
    planned = (1, full - 1) if evicts else (0, full)
    with _pods(kai, tenant, quota, HALF, "research").running(full) as running:
        until(lambda: running.count() == full, "research has all that it may", seconds=60)
        with _pods(kai, tenant, quota, HALF, "steady").running(1) as coming:
            observed = in_the_end(planned, lambda: (coming.count(), running.count()))
    record("kai: halves of class steady, of class research when steady comes", planned, observed)


def test_queue_of_another_tenant_is_refused(kai: ExampleCluster, record: Record) -> None:
    """By name of a pod's label, and of a pod group that a tenant makes itself."""
    tenant, quota = _quota(kai, "development", "fraction")
    namespace = tenant["namespaces"][0]
    foreign = queue_name("research", quota["pool"])
    pod = _pods(kai, tenant, quota, HALF).body()
    pod["metadata"]["labels"][QUEUE_LABEL] = foreign
    spec = {"minMember": 1, "priorityClassName": "research"}
    group = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"namespace": namespace, "labels": {NODE_POOL_LABEL: quota["pool"]}},
        "spec": {**spec, "queue": foreign},
    }
    own = {**group, "spec": {**spec, "queue": queue_name("development", quota["pool"])}}
    record("kai: development's pod in a queue of research is taken", False, _is_taken(kai.api, pod))
    record("kai: development's pod group in a queue of research is taken", False, _is_taken(kai.api, group))
    record("kai: development's pod group in its own queue is taken", True, _is_taken(kai.api, own))


def _quota(cluster: ExampleCluster, name: str, unit: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A tenant, and its quota on a unit."""
    [tenant] = [tenant for tenant in cluster.plan["tenants"] if tenant["name"] == name]
    [quota] = [quota for quota in tenant["quotas"] if quota["unit"] == unit]
    return tenant, quota


def _pods(
    cluster: ExampleCluster,
    tenant: Mapping[str, Any],
    quota: Mapping[str, Any],
    share: str,
    priority_class: str | None = None,
) -> Pods:
    return Pods(cluster.api, tenant, quota["pool"], share, priority_class or tenant["priority_classes"][0], [])


def _is_taken(api: Api, body: Mapping[str, Any]) -> bool:
    """Whether the object would be created; one that is there already is taken for a new one."""
    fresh = {**body, "metadata": {**body["metadata"], "name": "fresh"}}
    try:
        api.create(fresh, dry_run=True)
    except Refused as refused:
        if refused.reason not in {"Forbidden", "Invalid"}:
            raise
        return False
    return True
