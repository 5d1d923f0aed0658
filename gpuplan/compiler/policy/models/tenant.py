"""The fields of a Tenant, and of a PriorityClass."""

# No `from __future__ import annotations` here: pydantic would have to compile and evaluate each annotation again.

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from gpuplan.compiler.policy import names, texts
from gpuplan.compiler.policy.marks import ESSENTIAL, INDEPENDENT, MAIN, Judged, Keyed, Words
from gpuplan.compiler.policy.models.shared import Amount, Enforcement, Model, Positive, Rank, UnitName, exactly_one


class PriorityClassSpec(Model):
    """The urgency of a workload, and whether it may be evicted for another."""

    value: int
    """The priority; higher goes first. At most 1000000000."""
    preemptible: Annotated[bool, ESSENTIAL] = True
    """Whether pods of this class may be evicted for others."""
    preempts: Annotated[bool, ESSENTIAL] = True
    """Whether pods of this class may evict others (`preemptionPolicy`)."""
    default: Annotated[bool, ESSENTIAL] = False
    """The class of pods that name none (`globalDefault`); at most one."""
    description: texts.Lines = ""
    """The people who should use it, and the work that it is for."""


class Bounds(Model):
    """The part of CPU or memory that is a tenant's own, and the most that it may use."""

    guaranteed: texts.Quantity
    """The amount that is the tenant's own."""
    limit: texts.Quantity | Literal["none"] | None = None
    """The most that it may use. Absent: as much as `guaranteed`; `none`: no bound."""


def _bounds_from_quantity(value: object) -> object:
    return value if value is None or isinstance(value, dict) else {"guaranteed": value}


BoundsOrQuantity = Annotated[
    Bounds, BeforeValidator(_bounds_from_quantity, json_schema_input_type=Bounds | texts.Quantity)
]


class Quota(Model):
    """The share of one unit of one pool that a tenant may use. The numbers are units."""

    pool: names.PoolName
    """The pool."""
    unit: UnitName | None = None
    """The unit that the pool hands out: a MIG profile, `shared`, `gpu` or `fraction`. Not needed where there is only
    one.
    """
    guaranteed: Annotated[Amount, MAIN]
    """The number of units that are the tenant's own; the sum over tenants stays within capacity."""
    limit: Amount | Literal["none"] | None = None
    """The most units that it may use, with borrowed ones. Absent: as many as `guaranteed`; `none`: no bound."""
    lendable: Amount | None = None
    """The number of guaranteed units that others may use while they are idle. Absent: all."""
    split: Annotated[dict[str, Amount], Judged("GPU412")] = Field(default_factory=dict)
    """The division of the cap among the tenant's namespaces, where it has several: a ResourceQuota lives in one."""
    class_limits: Annotated[dict[str, Amount], Words("limits of priority classes"), Judged("GPU428")] = Field(
        default_factory=dict
    )
    """The most units that pods of a priority class may use, such as `{research: 4}`. Classes that are not named may use
    all. A ResourceQuota keeps it where one caps what tenants use (`scheduler.cap`); no queue does.
    """
    cpu: Annotated[BoundsOrQuantity | None, Words("CPU")] = None
    """The CPUs that its pods may ask for in the pool, such as `64`; `{guaranteed: 64, limit: 128}` where it may borrow.
    Absent, it is not bounded, unless the pool says `followUnits`.
    """
    memory: BoundsOrQuantity | None = None
    """The memory that its pods may ask for in the pool, such as `512Gi`, in the same forms."""
    pods: Positive | None = None
    """The number of pods that it may have in the pool at once. Absent: any number."""


class Surplus(Model):
    """A tenant's part in what nobody has a guarantee on."""

    weight: Annotated[Amount, MAIN] = 1
    """The share of the surplus relative to others."""
    rank: Rank = 0
    """Tenants of a higher rank are served before others get any surplus."""


class Protect(Model):
    """The time for which a running workload is safe from eviction."""

    preempt: texts.Duration | None = None
    """Minimum run time before a workload of the same tenant may evict it."""
    reclaim: texts.Duration | None = None
    """Minimum run time before another tenant may reclaim its GPUs."""


class Role(StrEnum):
    """A ClusterRole that Kubernetes provides for namespaces."""

    VIEW = "view"
    EDIT = "edit"
    ADMIN = "admin"


class Member(Model):
    """A group or a user, and what they may do in the tenant's namespaces."""

    group: Annotated[texts.Line | None, ESSENTIAL] = None
    """The group's name as the cluster's authentication gives it."""
    user: Annotated[texts.Line | None, ESSENTIAL] = None
    """A user's name, in place of a group's; a service account's is `system:serviceaccount:<namespace>:<name>`."""
    role: Annotated[Role, Field(strict=False), ESSENTIAL] = Role.EDIT
    """The ClusterRole of Kubernetes that they get."""
    cluster_role: Annotated[texts.ClusterRole | None, ESSENTIAL, Words("cluster role")] = None
    """Another ClusterRole, by its name, in place of `role`. It is yours: gpuplan does not write it."""

    _one_subject = exactly_one("group", "user", "a member")

    @model_validator(mode="after")
    def _one_role(self) -> "Member":
        """The message is that of `exactly_one`."""
        both = ["role", "clusterRole"]
        if self.cluster_role is not None and "role" in self.model_fields_set:
            context = {"what": "a role", "given": both, "fields": both}
            raise PydanticCustomError("exactly_one", "exactly one of the fields", context)
        return self


def _member_from_text(value: object) -> object:
    return {"group": value} if isinstance(value, str) else value


MemberOrGroup = Annotated[Member, BeforeValidator(_member_from_text, json_schema_input_type=Member | str)]


class PodSecurity(StrEnum):
    """A level of the Pod Security Standards, the loosest first; `external` where others decide it."""

    PRIVILEGED = "privileged"
    EXTERNAL = "external"
    BASELINE = "baseline"
    RESTRICTED = "restricted"


class Allow(Model):
    """Permissions of a tenant's pods beyond their quotas."""

    pod_security: Annotated[PodSecurity, Field(strict=False)] = PodSecurity.BASELINE
    """The Pod Security level of the tenant's namespaces. `privileged` pods reach every GPU of a node. With `external`
    gpuplan writes none: the labels that the namespaces have hold, or else the default of the API server.
    """
    rdma: Annotated[list[texts.NetworkResource], Words("network resources for RDMA")] = Field(default_factory=list)
    """Network resources that its pods may ask for, such as `rdma/hca_shared_devices_a` or `nvidia.com/hostdev`; other
    tenants then may not. Its pods may also have the capability IPC_LOCK, which InfiniBand and RoCE need and the level
    `baseline` refuses; admission policies hold them to all else of that level.
    """
    units_per_container: Positive | None = None
    """The number of units that one container may ask for."""
    grace_period: texts.Duration | None = None
    """The longest time that its pods with GPUs may ask for to end, in place of the cluster's."""


class TenantAdmission(Model):
    """The action of admission policies in a tenant's namespaces, where it is another one than the cluster's."""

    enforcement: Annotated[Enforcement | None, Field(strict=False), MAIN] = None
    """`deny` refuses requests that break a rule, and `warn` warns of them. Absent: the cluster's."""
    namespaces: Annotated[dict[str, Annotated[Enforcement, Field(strict=False)]], Judged("GPU424")] = Field(
        default_factory=dict
    )
    """The same for single namespaces of the tenant, such as `{notebooks: deny}`."""


class ContainerDefaults(Model):
    """The CPU or memory of a container that states none, and the bounds for a container that states some."""

    request: texts.Quantity | None = None
    """The amount that it asks for, such as `500m` or `1Gi`. Absent: as much as `limit`."""
    limit: texts.Quantity | None = None
    """The most that it may use. Containers that ask for more and state no limit of their own are refused then."""
    max_ratio: Annotated[float, Field(ge=1, le=1_000_000, allow_inf_nan=False), Words("largest ratio")] | None = None
    """The largest ratio of a container's limit to its request, such as `4`. Containers without both are refused."""


class Containers(Model):
    """The CPU and memory of containers in a tenant's namespaces that state none: a LimitRange in each namespace."""

    cpu: Annotated[ContainerDefaults | None, Words("CPU of containers")] = None
    """The CPU of containers."""
    memory: Annotated[ContainerDefaults | None, Words("memory of containers")] = None
    """The memory of containers."""


class WorkspaceTimes(Model):
    """The time that workspaces of Run:ai may take."""

    run: Annotated[texts.Duration | None, MAIN] = None
    """The time that a workspace may run, such as `12h`."""
    idle: texts.Duration | None = None
    """The time that the GPUs of a workspace that may not be evicted may be idle, such as `1h`."""
    preemptible_idle: texts.Duration | None = None
    """The same of one that may be evicted."""


class TrainingTimes(Model):
    """The time that trainings of Run:ai may take."""

    run: Annotated[texts.Duration | None, MAIN] = None
    """The time that a training may run, such as `72h`."""
    idle: texts.Duration | None = None
    """The time that its GPUs may be idle, such as `2h`."""


class TimeLimits(Model):
    """The time that work of a tenant may run, or hold idle GPUs, before Run:ai ends it."""

    workspaces: WorkspaceTimes = WorkspaceTimes.model_construct()
    """The limits of workspaces, in which people work."""
    trainings: TrainingTimes = TrainingTimes.model_construct()
    """The limits of trainings, which run by themselves."""


class TenantNames(Model):
    """Names that the queues of a tenant have on the cluster already, where gpuplan would give others."""

    cluster_queue: Annotated[names.ClusterQueue | None, Words("ClusterQueue")] = None
    """The tenant's ClusterQueue, with Kueue. A LocalQueue can never name another one, so that another name later is
    another queue. Absent: the tenant's name.
    """
    local_queue: Annotated[names.LocalQueue | None, Words("LocalQueue")] = None
    """The LocalQueue in each of its namespaces that work names already, with Kueue; Workloads name it, too. Beside it
    there is `default`, which takes work that names none, so that nothing gets past the queue. Absent: `default` alone.
    """
    queues: Annotated[dict[names.PoolName, names.Queue], Words("queues")] = Field(default_factory=dict)
    """The tenant's queues by pool, with KAI-Scheduler: `{a100: research}`. Absent: its name, a `-` and the pool's."""


class TenantSpec(Model):
    """A team and what it may use."""

    namespaces: Annotated[list[names.Namespace], ESSENTIAL] = Field(default_factory=list)
    """The tenant's namespaces; each belongs to one tenant."""
    labelled_namespaces: bool = False
    """Whether namespaces that nobody lists are the tenant's as well, if they have the label `gpuplan.dev/tenant` with
    its name: one for each user's notebooks, for instance. The creator of a namespace labels it; tenants cannot.
    """
    parent: names.TenantName | None = None
    """The tenant that this one is part of."""
    priority_classes: list[names.PriorityClassName] = Field(default_factory=list)
    """The priority classes that its pods may name."""
    workload_types: Annotated[list[texts.Line], Keyed(())] = Field(default_factory=list)
    """The types of work that it runs; some pool in its quotas must serve each."""
    quotas: Annotated[list[Quota], Keyed(("pool", "unit")), INDEPENDENT] = Field(default_factory=list)
    """The amounts that it may use, by pool and unit."""
    surplus: Surplus = Surplus.model_construct()
    """Its part in what nobody has a guarantee on."""
    protect: Protect = Protect.model_construct()
    """The time for which its workloads are safe from eviction."""
    members: Annotated[list[MemberOrGroup], Keyed(("group", "user")), INDEPENDENT] = Field(default_factory=list)
    """The groups and users that work in its namespaces."""
    allow: Annotated[Allow, Words("allowed")] = Allow.model_construct()
    """Permissions of its pods beyond its quotas."""
    admission: TenantAdmission = TenantAdmission.model_construct()
    """Whether admission policies refuse or only warn in its namespaces."""
    containers: Annotated[Containers, Words("defaults of containers")] = Containers.model_construct()
    """The CPU and memory of containers in its namespaces that state none."""
    time_limits: TimeLimits = TimeLimits.model_construct()
    """The time that its work may run, or hold idle GPUs, before Run:ai ends it. Work that was submitted before a change
    keeps the times that it had. Any scheduler keeps those of a Workload: `deadline`, and a workspace's `idle` and
    `runTime`.
    """
    names: Annotated[TenantNames, Words("names on the cluster")] = TenantNames.model_construct()
    """Names that its queues have on the cluster already."""
