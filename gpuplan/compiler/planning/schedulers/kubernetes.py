"""Plain Kubernetes: kube-scheduler, ResourceQuotas, and nothing that knows tenants."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.planning.schedulers.traits import Evicts, Protects, SchedulerTraits
from gpuplan.compiler.policy.models import SchedulerKind

DEFAULT_SCHEDULER: Final = "default-scheduler"

KUBERNETES: Final = SchedulerTraits(
    kind=SchedulerKind.KUBERNETES,
    title="plain Kubernetes",
    pod_schedulers=(DEFAULT_SCHEDULER,),
    namespaces=(),
    node_pool_label="",
    class_label="",
    project_label="",
    own_classes={},
    counts_tenants=False,
    most_levels=None,
    own_kinds_in=(),
    has_queues=False,
    queues_hold_work=False,
    has_queues_by_pool=False,
    caps_in_queues=False,
    caps_claims_in_queues=False,
    queue_series="",
    suspends_jobs=False,
    reads_sizes_from_names=False,
    uses_whole_gpus_beside_mig=True,
    finds_pools=False,
    crosses_pools=True,
    reservation_namespace="",
    has_topologies=False,
    evicts=Evicts.BY_PRIORITY,
    protects=Protects.NOBODY,
    preemptible_below=None,
    preemptibility_label="",
)
