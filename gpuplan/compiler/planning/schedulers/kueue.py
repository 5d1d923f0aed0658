"""Kueue: queues in a tree of cohorts, in front of kube-scheduler."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.planning.schedulers.kubernetes import DEFAULT_SCHEDULER
from gpuplan.compiler.planning.schedulers.traits import Evicts, Protects, SchedulerTraits
from gpuplan.compiler.policy.models import SchedulerKind

# https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/controller/constants/constants.go
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"

KUEUE: Final = SchedulerTraits(
    kind=SchedulerKind.KUEUE,
    title="Kueue",
    pod_schedulers=(DEFAULT_SCHEDULER,),
    namespaces=("kueue-system",),
    node_pool_label="",
    class_label=PRIORITY_LABEL,
    project_label="",
    own_classes={},
    counts_tenants=True,
    most_levels=None,
    own_kinds_in=(),
    has_queues=True,
    queues_hold_work=True,
    has_queues_by_pool=False,
    caps_in_queues=True,
    caps_claims_in_queues=False,
    queue_series="kueue_pending_workloads",
    suspends_jobs=True,
    reads_sizes_from_names=False,
    uses_whole_gpus_beside_mig=True,
    finds_pools=True,
    crosses_pools=True,
    reservation_namespace="",
    has_topologies=True,
    evicts=Evicts.BY_QUEUE,
    protects=Protects.NOBODY,
    preemptible_below=None,
    preemptibility_label="",
)
