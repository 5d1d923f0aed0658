"""The traits of schedulers, which all other code asks for instead of the scheduler's name."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.catalog.schedulers import Capability, Support, capability
from gpuplan.compiler.policy.models import SchedulerKind


class Evicts(StrEnum):
    """The rule by which a scheduler evicts pods for others.

    `gpuplan.compiler.planning.preemption` has it pod by pod.
    """

    BY_PRIORITY = "by-priority"
    """Pods of a lower priority class, of any tenant."""

    BY_QUEUE = "by-queue"
    """Pods of the same tenant by priority if its queue evicts at all, and pods on borrowed units."""

    BY_SHARE = "by-share"
    """Preemptible pods of the same tenant by priority, and preemptible pods on borrowed units."""


class Protects(StrEnum):
    """The scope in which a scheduler protects pods for a time before it evicts them."""

    NOBODY = "nobody"
    EACH_TENANT = "each-tenant"
    EACH_POOL = "each-pool"


class SchedulerTraits(Value):
    """One scheduler; every field must be given. What it keeps of a policy is data (`catalog.schedulers`).

    ``title`` is what people call it. ``pod_schedulers`` are what pods may name as `schedulerName`, ``namespaces`` its
    own. ``node_pool_label`` is what it knows the nodes of a pool by, and ``class_label`` that by which workloads name a
    priority class; a namespace with ``project_label`` is a project of its own. Each is empty where there is none.
    ``own_classes`` are priority classes that come with it, and their values. ``most_levels`` bounds the tree of
    tenants.
    """

    kind: SchedulerKind
    title: str
    pod_schedulers: tuple[str, ...]
    namespaces: tuple[str, ...]
    node_pool_label: str
    class_label: str
    project_label: str
    own_classes: Mapping[str, int]

    # --- What it counts

    counts_tenants: bool
    """Whether it counts what tenants use. Without, a ResourceQuota counts each namespace by itself."""

    most_levels: int | None
    own_kinds_in: tuple[str, ...]
    """The projects in whose API groups it has kinds of its own, which their definitions do not describe."""

    # --- What work goes through

    has_queues: bool
    """Whether work waits in queues that are objects of the cluster."""

    queues_hold_work: bool
    """Whether a queue that is removed stays until its work is gone, and admits nothing meanwhile."""

    has_queues_by_pool: bool
    """Whether a tenant has a queue of its own in each pool."""

    caps_in_queues: bool
    """Whether its queues alone cap what tenants use, where the policy does not say it.

    A ResourceQuota refuses pods one by one. Where pods are there before they are let in, it refuses a part of a gang,
    whose other pods then wait for ever, and work of a high class before anything makes way for it.
    """

    caps_claims_in_queues: bool
    """Whether its queues cap devices that are claimed, too: it counts claims, and not the templates that pods name.

    A tenant may make a template once more, with more devices, before a claim is made of it.
    """

    queue_series: str
    """The series that it exports for each queue, which shows that queues are watched. Empty if there is none."""

    suspends_jobs: bool
    """Whether it holds Jobs back by their field `suspend`, which nobody else may then clear."""

    # --- What it hands out

    reads_sizes_from_names: bool
    """Whether a MIG device costs what the name of its resource says, and nothing where that cannot be read."""

    uses_whole_gpus_beside_mig: bool
    """Whether pods get the GPUs that a layout leaves whole on a node with MIG devices."""

    # --- Where pods go

    finds_pools: bool
    """Whether it sends pods to a pool by itself; others name theirs."""

    crosses_pools: bool
    """Whether one pod may wait for any of several pools."""

    reservation_namespace: str
    """Where pods of its own hold the GPUs that it hands out fractions of; empty where there are none."""

    has_topologies: bool
    """Whether a pool's topology is an object, whose levels can never be changed."""

    # --- Who must go

    evicts: Evicts
    protects: Protects

    preemptible_below: int | None
    """Work of a priority class below this is preemptible to it, other work is not, unless a label says which.

    None where a class says which.
    """

    preemptibility_label: str
    """The label by which work is preemptible or not, whatever its class. Empty if only the class decides."""

    def capability(self, concept: str) -> Capability:
        """Return how the scheduler supports a concept of the capability matrix."""
        return capability(concept, self.kind.value)

    def supports(self, concept: str) -> bool:
        """Whether the scheduler supports a concept of the capability matrix at least in part."""
        return self.capability(concept).support is not Support.IMPOSSIBLE

    @property
    def has_queues_for_all_pools(self) -> bool:
        """Whether a tenant has one queue, whichever pools its quotas are on."""
        return self.has_queues and not self.has_queues_by_pool

    @property
    def has_projects(self) -> bool:
        """Whether each namespace of a tenant is a project, with a quota of its own."""
        return bool(self.project_label)

    @property
    def reclaims(self) -> bool:
        """Whether it takes back what is guaranteed to others."""
        return self.evicts is not Evicts.BY_PRIORITY

    @property
    def leaves_preemption_to_queues(self) -> bool:
        """Whether a queue evicts for all of its classes or for none, so that no class preempts by itself."""
        return self.evicts is Evicts.BY_QUEUE

    @property
    def evicts_preemptible_alone(self) -> bool:
        """Whether what is not preemptible is safe; it then gets nothing beyond the guarantee."""
        return self.evicts is Evicts.BY_SHARE
