"""KAI-Scheduler: a scheduler of its own, with a shard for each pool and a tree of queues in each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpuplan.compiler.planning.schedulers.kubernetes import DEFAULT_SCHEDULER
from gpuplan.compiler.planning.schedulers.traits import Evicts, Protects, SchedulerTraits
from gpuplan.compiler.policy.models import SchedulerKind

# https://github.com/kai-scheduler/KAI-Scheduler/blob/main/pkg/common/constants/constants.go
SCHEDULER_NAME: Final = "kai-scheduler"
QUEUE_LABEL: Final = "kai.scheduler/queue"
NODE_POOL_LABEL: Final = "kai.scheduler/node-pool"
PREEMPTIBILITY_LABEL: Final = "kai.scheduler/preemptibility"

PREEMPTIBLE_BELOW: Final = 100
"""Work of a priority class below this is preemptible, other work is not, unless a label says which.

(`CalculatePreemptibility` in `pkg/common/podgroup/preemptible.go` of KAI-Scheduler.)
"""

FRACTION_ANNOTATIONS: Final = (
    "gpu-fraction",
    "gpu-fraction-container-name",
    "gpu-fraction-num-devices",
    "gpu-fraction.limit",
    "gpu-memory",
    "gpu-memory.limit",
    "received-resource-type",
)
"""Annotations by which pods ask for parts of GPUs, and by which the binder says what they have.

Queues report usage by the last one (`pkg/podgroupcontroller/controllers/resources/received.go` of v0.17.0), and shares
over time follow from that (`pkg/scheduler/cache/usagedb/prometheus/prometheus.go`). The limits are on its branch `main`
(`pkg/common/constants/constants.go`), and not in v0.17.0.
"""

CONTAINER_ANNOTATIONS: Final = ("kai.scheduler/container.", "nvidia.com/container.")
"""The beginnings of such annotations of one container, on the branch `main`. The container's name and key follow."""

CLASS_LABEL: Final = "priorityClassName"
"""The label by which pods may name their class. It ranks above the field `priorityClassName`."""

OWN_CLASSES: Final[Mapping[str, int]] = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
"""The priority classes that its chart creates (`docs/priority/README.md` there); work that names none gets one."""

KAI: Final = SchedulerTraits(
    kind=SchedulerKind.KAI,
    title="KAI-Scheduler",
    pod_schedulers=(DEFAULT_SCHEDULER, SCHEDULER_NAME),
    namespaces=("kai-scheduler",),
    node_pool_label=NODE_POOL_LABEL,
    class_label="",
    project_label="",
    own_classes=OWN_CLASSES,
    counts_tenants=True,
    most_levels=None,
    own_kinds_in=(),
    has_queues=True,
    queues_hold_work=False,
    has_queues_by_pool=True,
    caps_in_queues=True,
    caps_claims_in_queues=True,
    queue_series="kai_queue_info",
    suspends_jobs=False,
    reads_sizes_from_names=True,
    uses_whole_gpus_beside_mig=False,
    finds_pools=False,
    crosses_pools=False,
    reservation_namespace="kai-resource-reservation",
    has_topologies=True,
    evicts=Evicts.BY_SHARE,
    protects=Protects.EACH_TENANT,
    preemptible_below=PREEMPTIBLE_BELOW,
    preemptibility_label=PREEMPTIBILITY_LABEL,
)
