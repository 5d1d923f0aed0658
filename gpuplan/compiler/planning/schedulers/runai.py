"""Run:ai: node pools, departments and projects that its own control plane keeps."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.planning.schedulers.kai import FRACTION_ANNOTATIONS as KAI_ANNOTATIONS, PREEMPTIBLE_BELOW
from gpuplan.compiler.planning.schedulers.kubernetes import DEFAULT_SCHEDULER
from gpuplan.compiler.planning.schedulers.traits import Evicts, Protects, SchedulerTraits
from gpuplan.compiler.policy.models import SchedulerKind

SCHEDULER_NAME: Final = "runai-scheduler"
NODE_POOL_LABEL: Final = "runai/node-pool"
"""The label by which pods name their node pool. Run:ai selects a node pool's nodes by the pool's own label."""

NODE_POOLS_ANNOTATIONS: Final = ("kai.scheduler/node-pools", "runai-nodepools")
"""Annotations that rank above that label: names of node pools with a space between them.

(`GetRequestedNodePools` in `converter.go` of kai-scheduler/kai-resource-management, which 3.0 is made of. The first is
its default, the second what Run:ai has told it, by the test beside it; the chart of 3.0 may name either.)
"""

PROJECT_LABEL: Final = "runai/queue"
"""The label that makes an existing namespace that of a project
(https://docs.run.ai/v2.20/admin/runai-setup/self-hosted/k8s/project-management)."""

FRACTION_ANNOTATIONS: Final = (*KAI_ANNOTATIONS, "gpu-fraction-limit")
"""The last is how older releases call the most that a pod may have of a GPU while nobody else wants it."""

DEFAULT_DEPARTMENT: Final = "default"
"""Run:ai makes it with each cluster, for projects that name none."""

_OTHER_QUEUES: Final = ("kai",)
"""Its queues are of a kind of their own, in a group that KAI-Scheduler took from it."""

RUNAI: Final = SchedulerTraits(
    kind=SchedulerKind.RUNAI,
    title="Run:ai",
    pod_schedulers=(DEFAULT_SCHEDULER, SCHEDULER_NAME),
    namespaces=("runai", "runai-backend"),
    node_pool_label="",
    class_label="",
    project_label=PROJECT_LABEL,
    own_classes={},
    counts_tenants=True,
    most_levels=2,
    own_kinds_in=_OTHER_QUEUES,
    has_queues=False,
    queues_hold_work=False,
    has_queues_by_pool=False,
    caps_in_queues=False,
    caps_claims_in_queues=False,
    queue_series="",
    suspends_jobs=False,
    reads_sizes_from_names=False,
    uses_whole_gpus_beside_mig=True,
    finds_pools=True,
    crosses_pools=False,
    reservation_namespace="runai-reservation",
    has_topologies=False,
    evicts=Evicts.BY_SHARE,
    protects=Protects.EACH_POOL,
    preemptible_below=PREEMPTIBLE_BELOW,
    preemptibility_label="",
)
