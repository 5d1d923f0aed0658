"""Jobs in Kueue's queues, one unit to a pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.cluster.api import Api
from tests.cluster.example import ExampleCluster
from tests.cluster.kueue_controller import API_VERSION
from tests.cluster.processes import until

QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"


@dataclass(frozen=True, slots=True)
class Queue:
    """A tenant's queue, as far as it counts one unit of one pool; `tenant` and `quota` are parts of the plan."""

    api: Api
    tenant: Mapping[str, Any]
    quota: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.tenant['name']}, {self.quota['unit']} of {self.quota['pool']}"

    @property
    def namespace(self) -> str:
        found: str = self.tenant["namespaces"][0]
        return found

    def used(self) -> int:
        """How many units the work holds that has been admitted."""
        queue = self.api.get(f"/apis/{API_VERSION}/clusterqueues/{self.tenant['name']}")
        [amount] = [
            resource["total"]
            for flavor in queue["status"]["flavorsReservation"]
            for resource in flavor["resources"]
            if (flavor["name"], resource["name"]) == (self.quota["pool"], self.quota["resource"])
        ]
        return int(amount)

    @contextmanager
    def running(
        self, *sizes: int, priority_class: str | None = None, local_queue: str = "default", is_labelled: bool = True
    ) -> Iterator[list[Job]]:
        """A Job of each size, submitted in this order, and gone at the end; its pods alone name the class or it too."""
        named = priority_class or self.tenant["priority_classes"][0]
        labels = {QUEUE: local_queue, **({PRIORITY_CLASS: named} if is_labelled else {})}
        jobs = []
        try:
            for size in sizes:
                jobs.append(self._submit(size, named, labels))
            yield jobs
        finally:
            for job in jobs:
                self.api.delete(job.path)
            for job in jobs:
                until(job.is_gone, f"{job.path} is gone", seconds=60)

    def _submit(self, size: int, priority_class: str, labels: Mapping[str, str]) -> Job:
        """It says neither where nor from when on it runs, and tolerates nothing."""
        container = {
            "name": "main",
            "image": "registry.example.com/test:1",
            "resources": {"limits": {self.quota["resource"]: "1"}},
        }
        spec = {"restartPolicy": "Never", "priorityClassName": priority_class, "containers": [container]}
        made = self.api.create(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"generateName": "test-", "namespace": self.namespace, "labels": labels},
                "spec": {"parallelism": size, "completions": size, "template": {"spec": spec}},
            }
        )
        return Job(self.api, self.namespace, made["metadata"]["name"], made["metadata"]["uid"], size)


@dataclass(frozen=True, slots=True)
class Job:
    """A Job, and what Kueue and the cluster have made of it."""

    api: Api
    namespace: str
    name: str
    uid: str
    size: int

    @property
    def path(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{self.name}"

    def workload(self) -> dict[str, Any] | None:
        return next(iter(self._owned(f"/apis/{API_VERSION}/namespaces/{self.namespace}/workloads")), None)

    def pods(self) -> list[dict[str, Any]]:
        return self._owned(f"/api/v1/namespaces/{self.namespace}/pods")

    def nodes(self) -> list[str]:
        """Where its pods run."""
        return [pod["spec"]["nodeName"] for pod in self.pods() if pod["status"].get("phase") == "Running"]

    def events(self) -> list[str]:
        query = f"fieldSelector=involvedObject.uid={self.uid}"
        return [event["message"] for event in self.api.list(f"/api/v1/namespaces/{self.namespace}/events?{query}")]

    def is_gone(self) -> bool:
        return self.workload() is None and not self.pods()

    def state(self) -> str:
        """Where Kueue has put it, in a word; empty while it has not looked at it."""
        conditions = (self.workload() or {}).get("status", {}).get("conditions", ())
        found = {condition["type"]: condition["status"] == "True" for condition in conditions}
        if found.get("Evicted"):
            return "evicted"
        if found.get("Admitted"):
            return "admitted"
        return "waiting" if "QuotaReserved" in found else ""

    def why_it_waits(self) -> str:
        """What Kueue says of it in the status of its Workload."""
        conditions = (self.workload() or {}).get("status", {}).get("conditions", ())
        return next((found["message"] for found in conditions if found["type"] == "QuotaReserved"), "")

    @property
    def is_suspended(self) -> bool:
        return bool(self.api.get(self.path)["spec"]["suspend"])

    def _owned(self, path: str) -> list[dict[str, Any]]:
        return [
            body
            for body in self.api.list(path)
            if self.uid in (owner["uid"] for owner in body["metadata"].get("ownerReferences", ()))
        ]


def queues(cluster: ExampleCluster) -> tuple[Queue, ...]:
    """All of them, by tenant."""
    return tuple(
        Queue(cluster.api, tenant, quota)
        for tenant in cluster.plan["tenants"]
        for quota in tenant["quotas"]
        if tenant["namespaces"]
    )
