"""The platform that the requests of tenants are judged on: one set of policies, one cluster for each scheduler."""

from __future__ import annotations

from functools import cache
from typing import Final

from gpuplan.compiler.planning.plan import Plan
from tests.plans import a_plan
from tests.platforms import document, pool, priority_class, tenant

PLATFORMS: Final = ("kubernetes", "kueue", "kai", "runai", "claims")
"""Four schedulers; and kube-scheduler once more, where GPUs are claimed."""
ALL_PLATFORMS: Final = (*PLATFORMS, "rdma")
"""And where a tenant may use RDMA: requests about that name the platform, and no others are made there."""

NETWORK: Final = "rdma/hca_shared_devices_a"

_TAINT: Final = "taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]"


FRAMEWORKS: Final = ("JobSet", "LeaderWorkerSet", "MPIJob", "PyTorchJob", "RayJob", "RayService")
"""What Kueue is told of; of TFJobs and TrainJobs it is not."""


def cluster(platform: str) -> str:
    scheduler = "kubernetes" if platform in ("claims", "rdma") else platform
    more = f", kueue: {{frameworks: [{', '.join(FRAMEWORKS)}]}}" if platform == "kueue" else ""
    return document(
        "Cluster",
        platform,
        'kubernetes: "1.34"',
        "gpuOperator: {install: helm, version: v26.7.0}",
        f"scheduler: {{kind: {scheduler}{more}}}",
        f"argocd: {{repoURL: https://git.example.com/platform/gpu.git, destination: {{name: {platform}}}}}",
    )


def policies(platform: str) -> str:
    """What mallory is granted: two of eight GPUs of `whole`, up to eight if nobody else needs them, and some parts.

    The pool `prod` is another tenant's alone. On the platform `rdma` there is
    `fabric`, which may use RDMA.
    """
    how = "allocation: dra" if platform == "claims" else ""
    parts = "fraction: {}" if platform in ("kai", "runai") else "timeSlicing: {replicas: 4}"
    has_parts = platform != "claims"
    members = "members: [{group: mallory}, {group: mallory-admins, role: admin}, {group: mallory-viewers, role: view}]"
    classes = "priorityClasses: [research, batch], allow: {unitsPerContainer: 4}"
    of_parts = ("pool: parts, guaranteed: 2",) if has_parts else ()
    return "".join(
        (
            _pool("whole", "exclusive: {}", how),
            _pool("prod", "exclusive: {}", how),
            _pool("split", "mig: {instances: {3g.40gb: 2}}", how),
            _pool("parts", parts) if has_parts else "",
            priority_class("research", 20),
            priority_class("batch", 50),
            priority_class("production", 90),
            document("Tenant", "everybody"),
            tenant(
                "mallory",
                "pool: whole, guaranteed: 2, limit: 8",
                "pool: split, unit: 3g.40gb, guaranteed: 4, cpu: 16",
                *of_parts,
                more=f"parent: everybody, {members}, {classes}",
            ),
            tenant(
                "alice",
                "pool: whole, guaranteed: 6",
                more="parent: everybody, members: [{group: alice}], priorityClasses: [research]",
            ),
            tenant(
                "serving",
                "pool: prod, guaranteed: 8",
                more="parent: everybody, members: [{group: serving}], priorityClasses: [production]",
            ),
            _FABRIC if platform == "rdma" else "",
            tenant("web", more="parent: everybody, members: [{group: web}]"),
        )
    )


_FABRIC: Final = tenant(
    "fabric",
    "pool: split, unit: 3g.40gb, guaranteed: 2",
    more=f"parent: everybody, members: [{{group: fabric}}], priorityClasses: [research], allow: {{rdma: [{NETWORK}]}}",
)


def _pool(name: str, sharing: str, *more: str) -> str:
    return pool(name, sharing, *more, _TAINT, gpu="H100-80GB", nodes=f"count: 1, gpusPerNode: 8, names: [gpu-{name}]")


@cache
def plan_of(platform: str) -> Plan:
    return a_plan(cluster(platform) + policies(platform))
