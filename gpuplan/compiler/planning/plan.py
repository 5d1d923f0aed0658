"""The plan of one cluster: names resolved, defaults filled in, capacity counted, every part with its origin.

Its parts are named tuples, never used as tuples: a dataclass takes four times as long to declare, and there are enough
of them for that to show in every start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, fields, replace
from decimal import ROUND_UP, Decimal
from enum import StrEnum
from fractions import Fraction as Ratio
from functools import cached_property
from typing import Any, TypeVar

from pydantic import BaseModel

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.planning.placement.placing import Placed, Refusal
from gpuplan.compiler.planning.schedulers import SchedulerTraits, chosen_cap, traits_of
from gpuplan.compiler.planning.tree import Tree
from gpuplan.compiler.policy import models
from gpuplan.compiler.policy.models import (
    KINDS_OF_WORK,
    Approval,
    Batch,
    Cap,
    Effect,
    Inference,
    SchedulerKind,
    Training,
    Window,
    Workspace,
)

T = TypeVar("T")

Amount = int | Decimal
"""A number of units. Whole, except for the unit `fraction`, which is counted in GPUs."""

UnitKey = tuple[str, str]
"""The names of a pool and of a unit that it hands out."""

POOL_LABEL = "gpuplan.dev/pool"
TENANT_LABEL = "gpuplan.dev/tenant"
WORKLOAD_LABEL = "gpuplan.dev/workload"
MIG_CONFIG_LABEL = "nvidia.com/mig.config"
MIG_MANAGER_LABEL = "nvidia.com/gpu.deploy.mig-manager"
"""`false` keeps mig-manager off a node: the operator sets this label where it is absent, and leaves what it finds.

(`addGPUStateLabels` in `controllers/state_manager.go` of NVIDIA/gpu-operator; the DaemonSet selects `true`.)
"""
DEVICE_PLUGIN_CONFIG_LABEL = "nvidia.com/device-plugin.config"
MAIN_CONTAINER = "main"
"""The name of the container that a Workload describes. Annotations may have the name in their keys."""


class Stage(StrEnum):
    """A folder of a cluster's output; a hand-written Component may be put beside each.

    `PARTITIONS` and `QUEUES` have a folder for each pool, `NAMESPACES` and `WORKLOADS` one for each namespace; these
    are delivered one by one.
    """

    GPU_OPERATOR = "gpu-operator"
    SCHEDULER = "scheduler"
    PARTITIONS = "partitions"
    SCHEDULING = "scheduling"
    QUEUES = "queues"
    NAMESPACES = "namespaces"
    MONITORING = "monitoring"
    WORKLOADS = "workloads"

    @property
    def has_parts(self) -> bool:
        return self.is_by_pool or self in (Stage.NAMESPACES, Stage.WORKLOADS)

    @property
    def is_by_pool(self) -> bool:
        return self in (Stage.PARTITIONS, Stage.QUEUES)


# --- Cluster -----------------------------------------------------------------------------------------------------


class GpuOperator(NamedTuple):
    """The GPU Operator's installation. ``version`` begins with `v`; names are those that hold where none is given."""

    at: Origin
    spec: models.GpuOperator
    version: str
    namespace: str
    cluster_policy: str

    @property
    def is_merged_by_owner(self) -> bool:
        """Whether nobody but the owner of the ClusterPolicy writes gpuplan's fields into it."""
        is_snippet = self.spec.cluster_policy_patch is models.ClusterPolicyPatch.SNIPPET
        return is_snippet and self.spec.install is models.Install.EXTERNAL

    @property
    def keeps_plugin_file(self) -> bool:
        """Whether the ConfigMap of the device plugin keeps its name, whatever is in it."""
        return self.spec.device_plugin_config is models.DevicePluginConfig.FIXED


class Scheduler(NamedTuple):
    """The scheduler that divides the GPUs; ``version`` begins with `v`, or is empty."""

    at: Origin
    spec: models.Scheduler
    version: str

    @property
    def kind(self) -> SchedulerKind:
        return self.spec.kind

    @property
    def runai_cluster_id(self) -> str | None:
        return self.spec.runai.cluster_id if self.spec.runai else None

    @property
    def traits(self) -> SchedulerTraits:
        return traits_of(self.kind)


class Argocd(NamedTuple):
    """The settings of Argo CD on the cluster. ``path`` is the normalized path of `out/`.

    ``operator_approval`` is the policy's own, or what follows from the pools.
    """

    at: Origin
    spec: models.Argocd
    path: str
    namespace: str
    project: str
    operator_approval: Approval

    def orders(self, pool: Pool) -> bool:
        """Whether a root starts the pool's syncs, when the GPU Operator's files are there.

        Not what a person starts, nor what waits for a window: it would hold up the rest for days.
        """
        is_automatic = Approval.AUTOMATIC is self.operator_approval is pool.spec.disruption.approval
        return self.spec.root and is_automatic and not pool.windows


class Flux(NamedTuple):
    """The settings of Flux on the cluster. ``path`` is the normalized path of `out/`.

    ``operator_approval`` is the policy's own, or what follows from the pools.
    """

    at: Origin
    spec: models.Flux
    path: str
    operator_approval: Approval


class Dashboards(NamedTuple):
    """The namespace and labels by which dashboards are discovered."""

    at: Origin
    spec: models.Dashboards
    namespace: str
    labels: Mapping[str, str]


class Monitoring(NamedTuple):
    """The settings of the cluster's monitoring."""

    at: Origin
    spec: models.Monitoring
    namespace: str
    dashboards: Dashboards


class Cluster(NamedTuple):
    """A cluster."""

    at: Origin
    name: str
    spec: models.ClusterSpec
    gpu_operator: GpuOperator
    scheduler: Scheduler
    argocd: Argocd | None
    flux: Flux | None
    monitoring: Monitoring | None

    @property
    def cap(self) -> Cap:
        """The way in which its tenants are capped."""
        return chosen_cap(self.scheduler.spec, self.spec.kubernetes)


# --- Pools -------------------------------------------------------------------------------------------------------


class Exclusive(NamedTuple):
    """Whole GPUs."""

    at: Origin


class Shares(NamedTuple):
    """Into how many shares a device is divided, and where the policy says so.

    ``profile`` is the MIG profile that it says so of; empty where it is all devices.
    """

    at: Origin
    number: int
    profile: str = ""


class TimeSlicing(NamedTuple):
    """Shares of a GPU that take turns."""

    at: Origin
    spec: models.TimeSlicing

    @property
    def stated(self) -> tuple[Shares, ...]:
        return (Shares(self.at / "replicas", self.spec.replicas),)


class MigTimeSlicing(NamedTuple):
    """Shares of MIG devices that take turns."""

    at: Origin
    spec: models.MigTimeSlicing

    @property
    def stated(self) -> tuple[Shares, ...]:
        """One for all profiles, or one for each that is divided."""
        at, replicas = self.at / "replicas", self.spec.replicas
        if isinstance(replicas, int):
            return (Shares(at, replicas),)
        return tuple(Shares(at / profile, count, profile) for profile, count in replicas.items())

    def find(self, profile: str) -> Shares | None:
        return next((shares for shares in self.stated if shares.profile in ("", profile)), None)


class Mps(NamedTuple):
    """Shares of a GPU under CUDA MPS."""

    at: Origin
    spec: models.Mps

    @property
    def stated(self) -> tuple[Shares, ...]:
        return (Shares(self.at / "replicas", self.spec.replicas),)


class LayoutEntry(NamedTuple):
    """The division of some GPUs of a node. ``gpus`` is None for all of them.

    ``instances`` are as written, zero and unknown profiles included; it is empty where MIG is off.
    ``placed`` is a proof that they fit (or do not); None where MIG is off or the model's data is incomplete.
    """

    at: Origin
    gpus: tuple[int, ...] | None
    mig_enabled: bool
    instances: Mapping[str, int]
    placed: Placed | Refusal | None


class OwnGpu(NamedTuple):
    """A model that the platform describes; ``faults`` say what cannot be so of its MIG profiles: then it has none."""

    at: Origin
    name: str
    spec: models.GpuSpec
    gpu: Gpu
    faults: tuple[str, ...] = ()


class Layout(NamedTuple):
    """A MIG layout. ``config_name`` is its entry in the mig-parted file and the value of `nvidia.com/mig.config`.

    ``is_inline`` says that it stands in a pool, whose name it then has. ``keeps_name`` says that the policy writes the
    entry's name, at `configName`: then the name says nothing of the content.
    """

    at: Origin
    name: str
    gpu: Gpu
    entries: tuple[LayoutEntry, ...]
    config_name: str
    is_inline: bool = False
    keeps_name: bool = False


class Mig(NamedTuple):
    """GPUs partitioned by MIG. ``layout_at`` is where the pool names or writes its layout."""

    at: Origin
    spec: models.Mig
    layout: Layout
    layout_at: Origin
    time_slicing: MigTimeSlicing | None


class DynamicMig(NamedTuple):
    """GPUs partitioned by MIG as pods claim partitions: no layout says how.

    ``profiles`` are those of the model that pods may claim, each once, in the order of the catalog; what else is
    written is a finding of its own.
    """

    at: Origin
    spec: models.DynamicMig
    profiles: tuple[str, ...]


class Fraction(NamedTuple):
    """Fractions that the scheduler hands out."""

    at: Origin


Sharing = Exclusive | TimeSlicing | Mps | Mig | DynamicMig | Fraction


class Isolation(StrEnum):
    """The isolation of two pods on one GPU, strongest first."""

    WHOLE_GPU = "whole GPU"
    HARDWARE = "MIG partition"
    MPS = "MPS memory limit"
    NONE = "none"


class Unit(NamedTuple):
    """A kind of thing that a pool hands out: GPUs, partitions, shares or fractions.

    ``resource`` is the extended resource after strategy, sharing and rename, or None where there is none: for
    `fraction`, and where devices are claimed. Then ``device_class`` is the DeviceClass, else None.
    ``per_gpu`` holds one count for each GPU index of a node; ``capacity`` is the pool's total. Where partitions are
    made on demand they are the most of this unit alone, beside no other (`gpuplan.compiler.planning.dra`).
    ``gpu_weight`` is what one unit costs where GPUs are the currency (KAI-Scheduler, Run:ai): a MIG device costs its
    compute slices, or one where it is published as `nvidia.com/gpu`; a share one over the replicas, a GPU one.
    ``memory_mib`` is the memory one unit can count on: usable, not the name's; an even part where sharing is by
    turns; None where it is not known.
    """

    name: str
    resource: str | None
    device_class: str | None
    per_gpu: tuple[int, ...]
    per_node: int
    capacity: int
    gpu_weight: Ratio
    memory_mib: int | None
    isolation: Isolation

    @property
    def asked_as(self) -> str | None:
        """The name by which pods ask for it and quotas count it, or None for `fraction`."""
        return self.resource or self.device_class


class Nodes(Value):
    """A pool's nodes: by ``names``, by ``name_pattern`` (to be matched whole), or by neither.

    ``selector`` are labels that others give them; it chooses among them as well, and so do ``boards``, the PCI ids of
    which each node has one where the pool asks for it.

    ``moved`` are the names that the pattern matches and that are not meant: a rollout has moved these nodes.

    ``millicores`` and ``memory_bytes`` are what each node has for pods of tenants: what the policy says, less the
    reserve, and never less than nothing; None where it does not say it.
    """

    at: Origin
    count: int
    gpus_per_node: int
    names: tuple[str, ...]
    name_pattern: str | None
    moved: tuple[str, ...] = ()
    millicores: int | None = None
    memory_bytes: int | None = None
    selector: Mapping[str, str] = field(default_factory=dict)
    boards: tuple[str, ...] = ()

    @property
    def are_by_board(self) -> bool:
        """Whether a node is one of them by its board alone, whatever it is called."""
        return bool(self.boards) and not self.names and self.name_pattern is None and not self.selector


class PluginKeys(NamedTuple):
    """The facts behind the key of a pool's file for the device plugin (`gpuplan.compiler.planning.plugin_configs`).

    ``own`` is the pool's own key: its name, or the one that it keeps. ``meaning`` is what a `Retained` says that it
    means; None where none does. Where files are ``by_content``, no pool has its own key but one that keeps its name.
    """

    strategy: models.ClusterMigStrategy
    own: str
    meaning: Mapping[str, object] | None = None
    by_content: bool = False


class Taint(NamedTuple):
    """A taint of a pool's nodes: one that the pool has written, or the one that the cluster gives its pools."""

    at: Origin
    key: str
    value: str
    effect: Effect

    @property
    def is_default(self) -> bool:
        """Whether no pool says so, but the cluster."""
        return self.at.path[-1] == "taintPools"

    @property
    def keeps_pods_off(self) -> bool:
        """`PreferNoSchedule` lets pods come where there is no other room."""
        return self.effect is not Effect.PREFER_NO_SCHEDULE

    def place(self, field: str) -> Origin:
        """Where one of its fields is from."""
        return self.at if self.is_default else self.at / field


class Pool(NamedTuple):
    """A set of equal nodes.

    ``labels`` are all that the nodes get: the policy's own, gpuplan's, and the GPU Operator's switches; ``taints`` the
    policy's own and, where none of them keeps pods off, the cluster's.

    While a ``rollout`` is under way, ``sharing`` and ``labels`` are those of the nodes that it has not reached, and
    ``units`` those of all nodes: what is said of one node is then the most that any has.
    """

    at: Origin
    name: str
    spec: models.PoolSpec
    gpu: Gpu
    nodes: Nodes
    sharing: Sharing
    units: tuple[Unit, ...]
    labels: Mapping[str, str]
    keys: PluginKeys
    taints: tuple[Taint, ...] = ()
    rollout: Rollout | None = None

    @property
    def parts(self) -> tuple[Pool, ...]:
        """The pool's nodes by how they are shared: the pool itself, or as a rollout has divided it."""
        return (self.rollout.left, self.rollout.moved) if self.rollout else (self,)

    def part_with(self, unit: Unit) -> Pool:
        """The part that hands out the unit: the first, where both do, for it is one and the same unit there."""
        return next((part for part in self.parts if part.find_unit(unit.name)), self)

    @property
    def shares(self) -> TimeSlicing | MigTimeSlicing | Mps | None:
        """The division of devices into shares, or None."""
        found = self.sharing.time_slicing if isinstance(self.sharing, Mig) else self.sharing
        return found if isinstance(found, TimeSlicing | MigTimeSlicing | Mps) else None

    def shares_of(self, unit: Unit) -> Shares | None:
        """Into how many shares the devices are divided that a unit is a share of; None where it is one undivided."""
        if unit.isolation is Isolation.WHOLE_GPU or self.shares is None:
            return None
        return self.shares.find(unit.name) if isinstance(self.shares, MigTimeSlicing) else self.shares.stated[0]

    @property
    def runs_mps(self) -> bool:
        """Whether an MPS control daemon runs on nodes of at least one part of the pool."""
        return any(isinstance(part.sharing, Mps) and part.nodes.count for part in self.parts)

    @property
    def windows(self) -> tuple[Window, ...]:
        """The times in which its nodes may be disturbed."""
        return tuple(self.spec.disruption.windows)

    @property
    def tolerations(self) -> list[dict[str, str]]:
        """One for each taint, of exactly that taint. Whoever writes one again for the same pods writes the same."""
        return [
            {"key": taint.key}
            | ({"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"})
            | {"effect": taint.effect.value}
            for taint in self.taints
        ]

    @property
    def barrier(self) -> tuple[Taint, ...]:
        """The taints that keep pods off its nodes."""
        return tuple(taint for taint in self.taints if taint.keeps_pods_off)

    @property
    def gpu_count(self) -> int:
        return self.nodes.count * self.nodes.gpus_per_node

    def find_unit(self, name: str) -> Unit | None:
        return next((unit for unit in self.units if unit.name == name), None)


class Rollout(NamedTuple):
    """A pool on its way to another way of sharing: the nodes ``left`` to move and those ``moved``, each as a pool.

    Each has its own nodes, sharing, units and labels, and all else of the pool; either may have no nodes. ``nodes`` are
    the names of those moved, as they are written.
    """

    at: Origin
    nodes: tuple[str, ...]
    left: Pool
    moved: Pool


# --- Tenants -----------------------------------------------------------------------------------------------------


class PriorityClass(NamedTuple):
    """A priority class."""

    at: Origin
    name: str
    spec: models.PriorityClassSpec


class Counted(StrEnum):
    """Resources of a pool's nodes that are counted beside its units, by their names in Kubernetes."""

    CPU = "cpu"
    MEMORY = "memory"
    PODS = "pods"


class Compute(NamedTuple):
    """CPU, memory or pods of a quota: millicores, bytes or pods. ``limit`` is None where unbounded.

    ``at`` is where the policy says it: a field of the quota, or the `followUnits` of the pool where ``is_derived``.
    ``lendable`` is the part of the guarantee that the quota lends of its units; pods are not lent. ``caps`` are for
    each namespace, as those of the quota.
    """

    at: Origin
    counted: Counted
    guaranteed: int
    limit: int | None
    lendable: int
    caps: Mapping[str, int | None]
    is_derived: bool = False


class Quota(NamedTuple):
    """A tenant's grant on one unit of one pool, in units. ``limit`` is None where unbounded.

    ``split`` divides the cap among namespaces as the policy writes it; ``caps`` is the result for every namespace of
    the tenant: what a plain ResourceQuota there allows, None where it does not bound it. ``class_limits`` are by
    priority class. ``labelled_cap`` is that of namespaces that are the tenant's by their label, where no ResourceQuota
    is written: None, or 0 where they are granted nothing. ``compute`` is what is counted beside the units.
    """

    at: Origin
    spec: models.Quota
    pool: Pool
    unit: Unit
    guaranteed: Amount
    limit: Amount | None
    lendable: Amount
    split: Mapping[str, Amount]
    caps: Mapping[str, Amount | None]
    class_limits: Mapping[str, Amount] = {}
    labelled_cap: Amount | None = 0
    compute: tuple[Compute, ...] = ()

    @property
    def key(self) -> UnitKey:
        return self.pool.name, self.unit.name

    def find_compute(self, counted: Counted) -> Compute | None:
        return next((found for found in self.compute if found.counted is counted), None)

    @property
    def is_granted(self) -> bool:
        """Whether pods of any namespace may use it."""
        return self.labelled_cap != 0 or any(cap != 0 for cap in self.caps.values())

    @property
    def may_borrow(self) -> bool:
        """Whether the tenant may use more than its guarantee."""
        return self.limit is None or self.limit > self.guaranteed


class Tenant(NamedTuple):
    """A team. ``priority_classes`` and ``quotas`` hold what could be resolved; a tree that is too deep is cut."""

    at: Origin
    name: str
    spec: models.TenantSpec
    parent: str | None
    priority_classes: tuple[PriorityClass, ...]
    quotas: tuple[Quota, ...]
    surplus_weight: Amount

    @property
    def has_work(self) -> bool:
        """Whether it has namespaces, by name or by label: one that is a parent alone runs nothing itself."""
        return bool(self.spec.namespaces) or self.spec.labelled_namespaces


class Total(NamedTuple):
    """The sum of all tenants' quotas on one unit of one pool. ``limit`` is None if some tenant has no bound.

    Children count within their parent where the parent states a quota of its own for the unit.
    """

    pool: Pool
    unit: Unit
    guaranteed: Amount
    limit: Amount | None
    quotas: tuple[tuple[Tenant, Quota], ...]

    @property
    def key(self) -> UnitKey:
        return self.pool.name, self.unit.name

    @property
    def free(self) -> Amount:
        """Units that nobody has a guarantee on; negative where more is promised than there is."""
        return self.unit.capacity - self.guaranteed


# --- Workloads ---------------------------------------------------------------------------------------------------


class FractionRequest(NamedTuple):
    """A part of a GPU: what a pod takes of a quota, and what it may use while the GPU is idle.

    ``memory_mib`` is what it asks for where it asks for memory. The GPU has ``gpu_mib`` of it to divide, and ``least``
    is then the part in whole hundredths, rounded up: so much counts KAI-Scheduler (`getGpuMemoryFractionalOnNode` in
    `pkg/scheduler/api/node_info/gpu_sharing_node_info.go` there).
    """

    at: Origin
    least: Decimal
    most: Decimal
    memory_mib: int | None
    gpu_mib: int

    @property
    def per_gpu(self) -> int:
        """The number of such pods that fit onto one GPU."""
        return int(1 / self.least) if self.memory_mib is None else self.gpu_mib // max(self.memory_mib, 1)

    @property
    def portion(self) -> Decimal:
        """The part of its GPU that a pod takes, to the fourth digit.

        It is less than that of the quota if that is rounded up.
        """
        if self.memory_mib is None:
            return self.least
        return (Decimal(self.memory_mib) / self.gpu_mib).quantize(Decimal("0.0001"), ROUND_UP)


class Closeness(NamedTuple):
    """The level of a topology that a job's pods share, and where the policy says so."""

    at: Origin
    level: str
    is_required: bool


class Workload(NamedTuple):
    """Work of a team. ``fraction`` stands for the count of units on pools of fractions.

    ``namespace`` and ``unit`` are those that are meant where none is named. ``priority_class`` is None where its
    tenant may name none.
    """

    at: Origin
    name: str
    spec: models.WorkloadSpec
    tenant: Tenant
    namespace: str
    pool: Pool
    unit: Unit
    fraction: FractionRequest | None
    priority_class: PriorityClass | None

    @property
    def kind(self) -> str:
        """The field that says what it is."""
        return next((kind for kind in KINDS_OF_WORK if getattr(self.spec, kind) is not None), KINDS_OF_WORK[0])

    @property
    def work(self) -> Inference | Batch | Workspace:
        spec = self.spec
        return spec.training or spec.batch or spec.workspace or spec.inference or Inference()

    @property
    def work_at(self) -> Origin:
        return self.at / self.kind

    @property
    def ends(self) -> bool:
        """Whether it ends by itself, so that others of its tenant may take turns with it."""
        return isinstance(self.work, Batch)

    @property
    def training_kind(self) -> models.TrainingKind:
        """The kind of object of work that ends."""
        return self.work.kind if isinstance(self.work, Training) else models.TrainingKind.JOB

    @property
    def is_job(self) -> bool:
        """Whether a Job runs it, or what makes Jobs, which can never be changed."""
        return isinstance(self.work, Batch | Workspace)

    @property
    def idle(self) -> str | None:
        """The time that it may be idle, or None without a bound."""
        return self.work.idle if isinstance(self.work, Workspace) else None

    @property
    def storage(self) -> models.Storage | None:
        """A volume of its own."""
        return self.work.storage if isinstance(self.work, Workspace) else None

    @property
    def time_limit(self) -> tuple[Origin, str] | None:
        """The time that it may take and the place of the setting, or None without a bound."""
        match self.work:
            case Batch(deadline=str(time)):
                return self.work_at / "deadline", time
            case Workspace(run_time=str(time)):
                return self.work_at / "runTime", time
            case _:
                return None

    @property
    def gang(self) -> int | None:
        """The number of pods that start together or not at all, or None.

        For services these are the pods of a replica.
        """
        if isinstance(self.work, Training):
            return self.work.gang or (self.work.elastic.min_pods if self.work.elastic else None)
        return self.pods_per_replica if self.is_grouped else None

    @property
    def gang_at(self) -> Origin:
        if self.elastic and isinstance(self.work, Training) and self.work.gang is None:
            return self.work_at / "elastic" / "minPods"
        return self.work_at / ("gang" if self.ends else "podsPerReplica")

    @property
    def elastic(self) -> models.Elastic | None:
        """The setting of work that goes on with fewer pods than all, or None."""
        return self.work.elastic if isinstance(self.work, Training) else None

    @property
    def pods_per_replica(self) -> int:
        """The number of pods of one replica."""
        return self.work.pods_per_replica if isinstance(self.work, Inference) else 1

    @property
    def is_grouped(self) -> bool:
        """Whether each replica is a leader and its workers."""
        return self.pods_per_replica > 1

    @property
    def canary(self) -> models.Canary | None:
        """The setting of a canary, which is a few more pods that run something else, or None."""
        return self.work.canary if isinstance(self.work, Inference) else None

    @property
    def peers(self) -> models.Peers | None:
        """The setting by which its pods find one another, or None."""
        return self.work.peers if isinstance(self.work, Training) else None

    @property
    def pods_at(self) -> Origin:
        """The place of the number of its pods, or the nearest written place if the number is left out."""
        work, at = self.work, self.work_at
        if isinstance(work, Batch):
            return at / "pods"
        if isinstance(work, Workspace):
            return at.key
        is_scaled = work.autoscaling and work.autoscaling.max_replicas >= work.replicas
        return at / "autoscaling" / "maxReplicas" if is_scaled else at / "replicas"

    @property
    def pod_patch(self) -> Mapping[str, Any]:
        """The metadata and spec that are laid over the template of its pods. Empty parts are left out."""
        found = self.spec.pod_patch
        both = {"metadata": found.metadata, "spec": found.spec} if found else {}
        return {name: part for name, part in both.items() if part}

    @property
    def patch_at(self) -> Origin:
        return self.at / "podPatch"

    def without_patch(self) -> Workload:
        """Return the workload without its patch of pods."""
        return self._replace(spec=self.spec.model_copy(update={"pod_patch": None}))

    @property
    def key(self) -> UnitKey:
        return self.pool.name, self.unit.name

    @property
    def topology(self) -> models.Closeness | None:
        """The closeness of its pods that the policy asks for, or None."""
        return self.work.topology if isinstance(self.work, Inference | Training) else None

    @property
    def closeness(self) -> Closeness | None:
        """The level of the pool's topology that its pods share.

        A gang without a setting prefers the narrowest level.
        """
        levels = self.pool.spec.topology
        if not levels or not (self.is_grouped or isinstance(self.work, Training)):
            return None
        at = self.work_at / "topology"
        match self.topology:
            case models.Closeness(required=str(level)):
                return Closeness(at / "required", level, is_required=True)
            case models.Closeness(preferred=str(level)):
                return Closeness(at / "preferred", level, is_required=False)
            case _:
                at = self.pool.at / "topology" / (len(levels) - 1)
                return Closeness(at, levels[-1], is_required=False) if self.gang else None

    @property
    def most_pods(self) -> int:
        """The largest number of its pods."""
        work = self.work
        if isinstance(work, Batch):
            return work.pods
        if isinstance(work, Workspace):
            return 1
        replicas = max(work.replicas, work.autoscaling.max_replicas) if work.autoscaling else work.replicas
        return replicas * work.pods_per_replica + (work.canary.replicas if work.canary else 0)

    @property
    def fewest_pods(self) -> int:
        """The smallest number of its pods, if the number follows the load."""
        work = self.work
        if not isinstance(work, Inference) or work.autoscaling is None:
            return self.most_pods
        return work.autoscaling.min_replicas * work.pods_per_replica + (work.canary.replicas if work.canary else 0)

    @property
    def amount_per_pod(self) -> Amount:
        """The amount that each pod takes of its tenant's quota, in units of the quota."""
        return self.fraction.least if self.fraction else self.spec.count


# --- Retained ----------------------------------------------------------------------------------------------------


class RetainedLayout(NamedTuple):
    """An entry of the mig-parted file that nodes may still name.

    Its spec's `config_name` is what the document calls it; that of ``layout`` is what its content makes it.
    """

    at: Origin
    spec: models.RetainedLayout
    layout: Layout


class RetainedDevicePluginConfig(NamedTuple):
    """A file of the device plugin that nodes may still name; ``config`` is what it says, as plain data."""

    at: Origin
    spec: models.RetainedDevicePluginConfig
    config: Mapping[str, object]


class RetainedObject(NamedTuple):
    """A Kubernetes object, of any shape, and the folder that it is applied with."""

    at: Origin
    spec: models.RetainedObject
    folder: str


class RetainedNodes(NamedTuple):
    """Nodes that a pool has let go, and what they keep; ``folder`` is that of the pool's own rule."""

    at: Origin
    spec: models.RetainedNodes
    nodes: Nodes
    folder: str


class Retained(NamedTuple):
    """A thing that no policy defines any more and the cluster still needs."""

    at: Origin
    name: str
    spec: models.RetainedSpec
    what: RetainedLayout | RetainedDevicePluginConfig | RetainedNodes | RetainedObject


# --- Prices ------------------------------------------------------------------------------------------------------


class Prices(NamedTuple):
    """The policy's prices of nodes (`planning.prices`). All that has a price exists if it ``is_whole``."""

    at: Origin
    name: str
    spec: models.PricesSpec
    is_whole: bool = True


# --- The plan ----------------------------------------------------------------------------------------------------


class HandWritten(NamedTuple):
    """A document of a hand-written kustomize folder, as data; it may have any shape."""

    stage: str
    at: Origin
    body: object


class Component(NamedTuple):
    """A hand-written kustomize Component: ``folder`` is relative to the repository's root.

    ``part`` is set for a Component of one folder of its stage: a namespace's, or a pool's. ``kind`` is what its
    kustomization.yaml says it is, empty when there is none.
    """

    stage: str
    part: str | None
    folder: str
    kind: str
    at: Origin | None


UNREAD = "?"


class Broken(Value):
    """Names of documents that exist but could not be resolved: what refers to them is not wrong for it.

    `UNREAD` among them stands for documents that could not even be read. ``incomplete_tenants`` are in the plan,
    without some of their quotas or priority classes.
    """

    pools: frozenset[str] = frozenset()
    gpus: frozenset[str] = frozenset()
    layouts: frozenset[str] = frozenset()
    priority_classes: frozenset[str] = frozenset()
    tenants: frozenset[str] = frozenset()
    workloads: frozenset[str] = frozenset()
    price_lists: frozenset[str] = frozenset()
    incomplete_tenants: frozenset[str] = frozenset()


class Plan(Value, eq=False):
    """All of one cluster. Sequences are sorted by name; ``layouts`` holds the named ones, used or not.

    ``removed`` says by kind and name where the overlay takes a document of the bases away.
    """

    cluster: Cluster
    pools: tuple[Pool, ...]
    layouts: tuple[Layout, ...]
    priority_classes: tuple[PriorityClass, ...]
    tenants: tuple[Tenant, ...]
    totals: tuple[Total, ...]
    workloads: tuple[Workload, ...] = ()
    hand_written: tuple[HandWritten, ...] = ()
    components: tuple[Component, ...] = ()
    broken: Broken = field(default_factory=Broken)
    retained: tuple[Retained, ...] = ()
    removed: Mapping[tuple[str, str], Origin] = field(default_factory=dict)
    gpus: tuple[OwnGpu, ...] = ()
    price_lists: tuple[Prices, ...] = ()

    @property
    def prices(self) -> Prices | None:
        """The list of prices that is counted with: there may be only one, and a second one is reported."""
        return self.price_lists[0] if self.price_lists else None

    @property
    def cluster_names(self) -> tuple[str, ...]:
        return (self.cluster.name,)

    def may_be_divided_by(self, layout: Layout) -> bool:
        """Whether nodes may name the layout, used or not: they do so for a while after their pool has left it."""
        return any(pool.gpu.id == layout.gpu.id for pool in self.pools)

    @property
    def scheduler(self) -> SchedulerTraits:
        return self.cluster.scheduler.traits

    def under(self, scheduler: SchedulerTraits) -> Plan:
        """The plan with another scheduler, of a release that nobody knows."""
        spec = self.cluster.scheduler.spec.model_copy(update={"kind": scheduler.kind})
        settings = self.cluster.scheduler._replace(spec=spec, version="")
        return replace(self, cluster=self.cluster._replace(scheduler=settings))

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.tenants)

    @cached_property
    def compute_trees(self) -> Mapping[Counted, Tree]:
        """The trees of tenants by what some quota counts beside units, with these numbers in place of units.

        Whose guarantee lies within whose is the same question for each.
        """
        found = ((counted, Tree(tuple(_counting(self.tenants, counted)))) for counted in Counted)
        return {counted: tree for counted, tree in found if any(tenant.quotas for tenant in tree.tenants)}

    def find_pool(self, name: str) -> Pool | None:
        return next((pool for pool in self.pools if pool.name == name), None)

    def work_of(self, kind: type[T]) -> Iterator[tuple[Workload, T]]:
        """Return the workloads that do one kind of work, with what they say of it."""
        return ((workload, workload.work) for workload in self.workloads if isinstance(workload.work, kind))

    @cached_property
    def owners(self) -> Mapping[str, Tenant]:
        """The tenants by the namespaces that are listed for them."""
        return {namespace: tenant for tenant in self.tenants for namespace in tenant.spec.namespaces}

    @property
    def parts(self) -> tuple[Pool, ...]:
        """The pools, those that a rollout divides in their parts: what is shared alike."""
        return tuple(part for pool in self.pools for part in pool.parts)

    @property
    def mig_layouts(self) -> tuple[Layout, ...]:
        """Every layout of the cluster, those written inside pools included, by `config_name` and model."""
        found = {(layout.config_name, layout.gpu.id): layout for layout in self.layouts}
        for pool in self.parts:
            if isinstance(pool.sharing, Mig):
                layout = pool.sharing.layout
                found.setdefault((layout.config_name, layout.gpu.id), layout)
        return tuple(found[key] for key in sorted(found))

    @property
    def retained_layouts(self) -> tuple[RetainedLayout, ...]:
        """Entries of the mig-parted file beside those of `mig_layouts`, by name."""
        defined = {layout.config_name for layout in self.mig_layouts}
        found = [item.what for item in self.retained if isinstance(item.what, RetainedLayout)]
        gone = [item for item in found if item.spec.config_name not in defined]
        return tuple(sorted(gone, key=lambda layout: layout.spec.config_name))

    @property
    def retained_plugin_configs(self) -> tuple[RetainedDevicePluginConfig, ...]:
        """Files of the device plugin beside those of pools, by key."""
        defined = {part.labels[DEVICE_PLUGIN_CONFIG_LABEL] for part in self.parts}
        found = [item.what for item in self.retained if isinstance(item.what, RetainedDevicePluginConfig)]
        gone = [item for item in found if item.spec.key not in defined]
        return tuple(sorted(gone, key=lambda config: config.spec.key))

    @property
    def retained_nodes(self) -> tuple[tuple[Retained, RetainedNodes], ...]:
        """Nodes that pools have let go and that keep what they had, where rules label nodes; by the document's name.

        A pool's name is part of a path: what is no name (GPU120) leads nowhere.
        """
        if self.cluster.spec.node_labels is not models.NodeLabels.NFD:
            return ()
        return tuple(
            (item, item.what) for item in self.retained if isinstance(item.what, RetainedNodes) and item.what.folder
        )


def _counting(tenants: Iterable[Tenant], counted: Counted) -> Iterator[Tenant]:
    for tenant in tenants:
        held = ((quota, found) for quota in tenant.quotas if (found := quota.find_compute(counted)))
        quotas = (
            quota._replace(
                guaranteed=part.guaranteed, limit=part.limit, lendable=part.lendable, caps=part.caps, compute=(part,)
            )
            for quota, part in held
        )
        yield tenant._replace(quotas=tuple(quotas))


def with_places(at: Origin, items: Iterable[T]) -> Iterator[tuple[Origin, T]]:
    """The items of a list that is written at a place, each with its own."""
    return ((Origin(at.source, (*at.path, index)), item) for index, item in enumerate(items))


def values_of(part: object) -> Iterator[tuple[str, object]]:
    """Yield the values of a part of the plan by name, without places: its spec's fields, and resolved or computed ones.

    What is resolved stands for the spec's field of the same name: a default that depends on other things is in the one
    and not in the other.
    """
    if isinstance(part, BaseModel):
        yield from part
        return
    names: tuple[str, ...] = getattr(part, "_fields", ()) or tuple(item.name for item in fields(part))  # type: ignore[arg-type]
    spec = getattr(part, "spec", None)
    if isinstance(spec, BaseModel):
        yield from (item for item in spec if item[0] not in names)
    resolved = ((name, getattr(part, name)) for name in names if name != "spec")
    yield from (item for item in resolved if not isinstance(item[1], Origin))
