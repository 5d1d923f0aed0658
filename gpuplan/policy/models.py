"""The policy language `gpuplan.dev/v1`: what a platform team writes, mirrored field by field."""

# No `from __future__ import annotations` here: pydantic would have to compile and evaluate each annotation again.

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from gpuplan.policy import names
from gpuplan.policy.marks import ESSENTIAL, INDEPENDENT, AlsoCalled, AnyText, Judged, Keyed, Words
from gpuplan.policy.names import (
    AppProject,
    ClusterPolicy,
    FluxSourceName,
    LayoutName,
    Namespace,
    NamespaceOfTenant,
    PoolName,
    PriorityClassName,
    Secret,
    ServiceAccount,
    StorageClass,
    TenantName,
)
from gpuplan.policy.texts import (
    Duration,
    GitReference,
    Image,
    KubernetesVersion,
    Line,
    Lines,
    Metric,
    OperatorVersion,
    SchedulerVersion,
)

API_VERSION = "gpuplan.dev/v1"
NVIDIA_CHARTS = "https://helm.ngc.nvidia.com/nvidia"


class Model(BaseModel):
    """A part of a policy: read strictly, never changed, no field that gpuplan does not know.

    `defer_build` leaves it to the kind that is really read to build its validators, once, nested parts included.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        defer_build=True,
        hide_input_in_errors=True,
    )


def described(text: str, **extra: Any) -> Any:  # noqa: ANN401 - pydantic's own signature for field defaults
    """A field with its documentation: the text that `gpuplan explain` and the JSON Schema show."""
    return Field(description=text, **extra)


def _needs_exactly_one(model: Model, names: tuple[str, ...], what: str) -> None:
    """Raise unless exactly one of the fields is set; the message is `gpuplan.policy.problems`' business."""
    given = [name for name in names if getattr(model, name) is not None]
    if len(given) != 1:
        raise PydanticCustomError(
            "exactly_one",
            "exactly one of the fields",
            {"what": what, "given": [to_camel(name) for name in given], "fields": [to_camel(name) for name in names]},
        )


# --- Shared pieces -----------------------------------------------------------------------------------------------

Positive = Annotated[int, Field(ge=1, le=1_000_000)]
GpusPerNode = Annotated[int, Field(ge=1, le=1024)]
Rank = Annotated[int, Field(ge=-1_000_000, le=1_000_000)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Vocabulary(StrEnum):
    """What the words are that a field takes and the catalog lists; a schema has it as `format`."""

    GPU_MODEL = "gpu-model"
    MIG_PROFILE = "mig-profile"
    UNIT = "unit"


GpuModel = Annotated[str, Field(json_schema_extra={"format": Vocabulary.GPU_MODEL.value}), Judged("GPU102")]
UnitName = Annotated[str, Field(json_schema_extra={"format": Vocabulary.UNIT.value}), Judged("GPU103")]
Instances = Annotated[
    dict[str, int],
    Field(json_schema_extra={"propertyNames": {"format": Vocabulary.MIG_PROFILE.value}}),
    Judged("GPU205"),
    AlsoCalled(("mig-devices", "migDevices", "profiles")),
]
"""Counts by MIG profile."""


OF_PROGRAM = AnyText("what a program takes is its own business")


class Metadata(Model):
    """The name of a document; an overlay's document with the same kind and name changes this one."""

    name: Annotated[str, AnyText("the rule stands on the `metadata` of each kind")] = described(
        "The document's name: lower-case letters, digits and `-`, unique among its kind."
    )


class Effect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Taint(Model):
    """A taint on every node of a pool."""

    key: Annotated[str, Judged("GPU152")] = described("The taint's key, such as `nvidia.com/gpu`.")
    value: Annotated[str, Judged("GPU152")] = described(
        "The taint's value; tolerations with `operator: Exists` ignore it.", default=""
    )
    effect: Annotated[Effect, Field(strict=False)] = described("What happens to pods that do not tolerate the taint.")


# --- Cluster -----------------------------------------------------------------------------------------------------


class Platform(StrEnum):
    """The distribution a cluster runs."""

    KUBERNETES = "kubernetes"
    OPENSHIFT = "openshift"


class Install(StrEnum):
    """Who installs the NVIDIA GPU Operator and owns its ClusterPolicy."""

    HELM = "helm"
    OLM = "olm"
    EXTERNAL = "external"


class MigStrategy(StrEnum):
    """How the device plugin names MIG devices."""

    SINGLE = "single"
    MIXED = "mixed"


class ClusterMigStrategy(StrEnum):
    """Who decides the MIG strategy of a node."""

    PER_POOL = "perPool"
    NONE = "none"
    SINGLE = "single"
    MIXED = "mixed"


class NodeLabels(StrEnum):
    """Who puts labels and taints on the nodes."""

    NFD = "nfd"
    NODE = "node"
    EXTERNAL = "external"


class SchedulerKind(StrEnum):
    """The scheduler that divides GPUs among tenants."""

    KUBERNETES = "kubernetes"
    KUEUE = "kueue"
    KAI = "kai"
    RUNAI = "runai"


class OnLoss(StrEnum):
    """What to do when the scheduler cannot keep a part of the policy."""

    REPORT = "report"
    REFUSE = "refuse"


class Cap(StrEnum):
    """Which of a quota's numbers a plain ResourceQuota caps."""

    LIMIT = "limit"
    GUARANTEED = "guaranteed"


class Driver(Model):
    """The NVIDIA driver as the GPU Operator manages it."""

    enabled: bool = described(
        "Whether the operator installs the driver; `false` where the node image has it.", default=True
    )
    version: Line | None = described(
        "The driver's version, such as `580.95.05`. Some facts depend on it (MIG profile names, known bugs); "
        "absent means the operator release's default.",
        default=None,
    )


class GpuOperator(Model):
    """How the NVIDIA GPU Operator is installed on this cluster."""

    install: Annotated[Install, Field(strict=False)] = described(
        "`helm`: gpuplan writes a values file for the chart. `olm`: gpuplan writes the OperatorGroup, the Subscription "
        "and the ClusterPolicy. `external`: something else owns the ClusterPolicy; gpuplan writes a patch for the "
        "fields it must own."
    )
    version: OperatorVersion = described(
        "The operator's release, such as `v26.7.0`. Picks the values and fields that it knows."
    )
    namespace: Namespace | None = described(
        "The operator's namespace; its ConfigMaps must live there. Default `gpu-operator`, on OpenShift "
        "`nvidia-gpu-operator`.",
        default=None,
    )
    cluster_policy: Annotated[ClusterPolicy | None, Words("ClusterPolicy")] = described(
        "The ClusterPolicy's name. Default `cluster-policy` with `helm` and `external`, `gpu-cluster-policy` on "
        "OpenShift.",
        default=None,
    )
    mig_strategy: Annotated[ClusterMigStrategy, Field(strict=False), Words("MIG strategy")] = described(
        "`perPool` leaves `ClusterPolicy.spec.mig.strategy` unset, so that each pool's own strategy holds. Any other "
        "value is written there and overrides every pool on the cluster.",
        default=ClusterMigStrategy.PER_POOL,
    )
    driver: Driver = described("The NVIDIA driver.", default=Driver.model_construct())
    reboot_on_mig_change: Annotated[bool, Words("reboot on a change of MIG")] = described(
        "Let the MIG manager reboot a node when a GPU cannot be reset (`WITH_REBOOT`); most cloud providers need it.",
        default=False,
    )
    nfd: Annotated[bool, Words("Node Feature Discovery")] = described(
        "Whether Node Feature Discovery is installed along with the operator: by the chart with `helm`, by its own "
        "Subscription with `olm`. `false` where the cluster has it already, since the operator needs its labels.",
        default=True,
    )
    chart_repo_url: Annotated[Line, Words("chart repository")] = described(
        "The Helm repository that has the chart `gpu-operator`, or a mirror of it (`install: helm` with `argocd` or "
        "`flux`).",
        default=NVIDIA_CHARTS,
        alias="chartRepoURL",
    )
    values: Annotated[dict[str, Any], Words("Helm values"), Judged("GPU600")] = described(
        "More Helm values for the chart (`install: helm`), merged under the ones that gpuplan writes. Keys that this "
        "chart version does not know are reported: the chart itself ignores them silently.",
        default_factory=dict,
    )


class Runai(Model):
    """What Run:ai's API must be told of a cluster."""

    cluster_id: Annotated[Line | None, Words("cluster id")] = described(
        "The cluster's id in Run:ai, which projects and node pools name; absent, whoever sends the requests adds it.",
        default=None,
    )


class Scheduler(Model):
    """Which scheduler divides the GPUs, and what to do about what it cannot express."""

    kind: Annotated[SchedulerKind, Field(strict=False), ESSENTIAL] = described(
        "The scheduler back end.", default=SchedulerKind.KUBERNETES
    )
    on_loss: Annotated[OnLoss, Field(strict=False)] = described(
        "`report` lists what the scheduler cannot keep, `refuse` makes each of them an error.", default=OnLoss.REPORT
    )
    cap: Annotated[Cap, Field(strict=False), Words("capped number")] = described(
        "The number that a plain ResourceQuota caps: a quota's `limit` or its `guaranteed`.", default=Cap.LIMIT
    )
    version: SchedulerVersion | None = described(
        "The release of the scheduler, such as `v0.19.2` of Kueue; picks what it knows. Absent means the newest one "
        "that gpuplan knows.",
        default=None,
    )
    runai: Annotated[Runai | None, Words("Run:ai")] = described(
        "What Run:ai's API must be told (`kind: runai`).", default=None
    )


class Approval(StrEnum):
    """Whether a disruptive change waits for a person."""

    MANUAL = "manual"
    AUTOMATIC = "automatic"


_OPERATOR_APPROVAL = (
    "`manual`: a person starts each sync of the GPU Operator, which can restart drivers. With `automatic` new "
    "ConfigMaps are there before a person lets a pool use them. Default `automatic`; `manual` where a pool is shared "
    "by MPS, since each change of the device plugin's file ends every CUDA process there."
)


class Destination(Model):
    """The cluster as Argo CD knows it: by its server's address or by its name."""

    server: Line | None = described(
        "The address of the cluster's API server. `https://kubernetes.default.svc` is the cluster Argo CD runs in.",
        default=None,
    )
    name: Line | None = described("The cluster's name in Argo CD, in place of its address.", default=None)

    @model_validator(mode="after")
    def _one_way(self) -> "Destination":
        _needs_exactly_one(self, ("server", "name"), "a destination")
        return self


class Argocd(Model):
    """Argo CD syncs this cluster: gpuplan writes its AppProject, Applications and ApplicationSet to `out/argocd/`."""

    repo_url: Annotated[Line, Words("repository")] = described(
        "The address of the repository that holds `out/`, as Argo CD knows it.", alias="repoURL", min_length=1
    )
    revision: GitReference = described("The branch or tag that Argo CD follows.", default="main", min_length=1)
    path: Line = described("Where `out/` lies in the repository.", default="out", min_length=1)
    namespace: Namespace | None = described(
        "Argo CD's own namespace. Default `argocd`, on OpenShift `openshift-gitops`.", default=None
    )
    project: AppProject | None = described(
        "The name of the AppProject that gpuplan writes. Default `gpuplan-<cluster>`.", default=None
    )
    destination: Destination = described(
        "The cluster that the Applications sync to. Default: the one that Argo CD runs in.",
        default=Destination.model_construct(server="https://kubernetes.default.svc"),
    )
    labels: Annotated[dict[str, str], Judged("GPU656")] = described(
        "Labels for every Argo CD object.", default_factory=dict
    )
    operator_approval: Annotated[Approval, Field(strict=False)] | None = described(_OPERATOR_APPROVAL, default=None)


class FluxSourceKind(StrEnum):
    """A kind of source that Flux reads files from."""

    GIT_REPOSITORY = "GitRepository"
    OCI_REPOSITORY = "OCIRepository"
    BUCKET = "Bucket"


class FluxSource(Model):
    """The source object that holds `out/`; it exists already, made by `flux bootstrap` or by hand."""

    kind: Annotated[FluxSourceKind, Field(strict=False)] = described(
        "The source's kind.", default=FluxSourceKind.GIT_REPOSITORY
    )
    name: FluxSourceName = described("The source's name.", default="flux-system")
    namespace: Namespace | None = described(
        "The source's namespace, where it is not that of the Kustomizations.", default=None
    )


class Flux(Model):
    """Flux syncs this cluster: gpuplan writes its Kustomizations and HelmRelease to `out/flux/`."""

    source: FluxSource = described(
        "The source that holds `out/`.",
        default=FluxSource.model_construct(),
    )
    path: Line = described("Where `out/` lies in the source.", default="out", min_length=1)
    namespace: Namespace = described("The namespace of the Flux objects.", default="flux-system")
    interval: Duration = described("How often Flux compares the cluster with the source.", default="10m")
    service_account_name: Annotated[ServiceAccount | None, Words("service account")] = described(
        "The ServiceAccount that Flux acts as, which bounds what it may do.", default=None
    )
    kube_config_secret: Annotated[Secret | None, Words("kubeconfig secret")] = described(
        "The Secret with a kubeconfig for the cluster, where Flux runs in another one.", default=None
    )
    labels: Annotated[dict[str, str], Judged("GPU664")] = described(
        "Labels for every Flux object.", default_factory=dict
    )
    operator_approval: Annotated[Approval, Field(strict=False)] | None = described(_OPERATOR_APPROVAL, default=None)


class Dashboards(Model):
    """How dashboards are found."""

    namespace: Namespace | None = described(
        "The namespace of the dashboards. Default that of the rules, on OpenShift `openshift-config-managed`.",
        default=None,
    )
    labels: Annotated[dict[str, str] | None, Judged("GPU672")] = described(
        'The labels that dashboards are found by. Default `grafana_dashboard: "1"`, on OpenShift those of the console.',
        default=None,
    )
    folder: Line | None = described("The Grafana folder, as the annotation `grafana_folder`.", default=None)


class Monitoring(Model):
    """Prometheus and Grafana watch this cluster: gpuplan writes alerts, recording rules and a dashboard."""

    namespace: Namespace | None = described(
        "The namespace of the PrometheusRules. Default `monitoring`, on OpenShift the GPU Operator's.", default=None
    )
    labels: Annotated[dict[str, str], Judged("GPU672")] = described(
        "Labels by which Prometheus selects rules and monitors, such as `release: kube-prometheus-stack`.",
        default_factory=dict,
    )
    honor_labels: bool = described(
        "Whether the DCGM exporter's own labels win: workloads are then in `namespace`, else in `exported_namespace`.",
        default=False,
    )
    alert_labels: Annotated[dict[str, Line], Judged("GPU671")] = described(
        "More labels on every alert, for instance to route them.", default_factory=dict
    )
    disabled_alerts: list[Line] = described("Alerts to leave out, by name.", default_factory=list)
    dashboards: Dashboards = described(
        "How dashboards are found.",
        default=Dashboards.model_construct(),
    )


class ClusterSpec(Model):
    """A cluster that gpuplan writes a folder for."""

    kubernetes: Annotated[KubernetesVersion, Words("Kubernetes version")] = described(
        'The Kubernetes minor version, quoted, such as `"1.34"`; it picks API versions and schemas.'
    )
    platform: Annotated[Platform, Field(strict=False), ESSENTIAL] = described(
        "The distribution.", default=Platform.KUBERNETES
    )
    gpu_operator: Annotated[GpuOperator, Words("GPU Operator")] = described("How the NVIDIA GPU Operator is installed.")
    node_labels: Annotated[NodeLabels, Field(strict=False), ESSENTIAL] = described(
        "Who puts the pools' labels and taints on nodes. `nfd`: NodeFeatureRules. `node`: partial Node objects for "
        "server-side apply. `external`: node groups outside the cluster, from a table that gpuplan writes.",
        default=NodeLabels.NFD,
    )
    scheduler: Scheduler = described(
        "The scheduler that divides the GPUs.",
        default=Scheduler.model_construct(),
    )
    argocd: Annotated[Argocd | None, Words("Argo CD")] = described(
        "Argo CD syncs this cluster; not together with `flux`. With neither gpuplan writes what is to be applied, and "
        "who applies it is up to you.",
        default=None,
    )
    flux: Annotated[Flux | None, Words("Flux")] = described(
        "Flux syncs this cluster; not together with `argocd`.", default=None
    )
    monitoring: Monitoring | None = described(
        "Prometheus and Grafana watch this cluster; absent, no alerts, rules or dashboards are written.", default=None
    )
    bases: list[Line] = described(
        "Folders of policies that this cluster starts from.", default_factory=lambda: ["policies"]
    )


# --- Pool --------------------------------------------------------------------------------------------------------


class Nodes(Model):
    """The nodes of a pool: alike in GPU model, GPU count and sharing."""

    count: Positive = described("How many nodes the pool has; capacity is counted with it.")
    gpus_per_node: Annotated[GpusPerNode, Words("GPUs per node")] = described("How many GPUs each node has.")
    names: Annotated[list[str] | None, ESSENTIAL, Judged("GPU147")] = described(
        "The nodes' names, where they are fixed.", default=None
    )
    name_pattern: Annotated[str | None, ESSENTIAL, Judged("GPU141")] = described(
        "A regular expression (RE2) that the whole node name must match, where nodes come and go. "
        "Two pools' patterns must not match the same name.",
        default=None,
    )


class Exclusive(Model):
    """One pod has one whole GPU."""


class TimeSlicing(Model):
    """Several pods take turns on one GPU, without isolation of memory or of faults."""

    replicas: Annotated[int, Words("shares")] = described("Into how many shares each GPU is divided; at least 2.")
    rename: Annotated[bool, AlsoCalled(("renameByDefault",))] = described(
        "Publish the shares as `<resource>.shared` (`renameByDefault`), so that nobody mistakes a share for a GPU and "
        "quotas can tell them apart.",
        default=True,
    )
    fail_requests_greater_than_one: bool = described(
        "Refuse containers that ask for two or more shares: more shares are not more GPU time, and may be of one GPU.",
        default=True,
    )


class Mps(Model):
    """Several pods run on one GPU at once through CUDA MPS, each with an equal share of memory and threads."""

    replicas: Annotated[int, Words("shares")] = described(
        "Into how many shares each GPU is divided: 2 to 48, to 16 below compute capability 7.5."
    )
    rename: Annotated[bool, AlsoCalled(("renameByDefault",))] = described(
        "Publish the shares as `<resource>.shared` (`renameByDefault`).", default=True
    )


class Devices(Model):
    """What some GPUs of a node are divided into."""

    gpus: Annotated[Literal["all"] | list[Annotated[int, Field(ge=0)]], Words("GPUs")] = described(
        "The GPUs' indexes as NVML counts them, from 0, or `all`."
    )
    instances: Instances | None = described("How many GPU instances of each MIG profile.", default=None)
    enabled: Annotated[bool, AlsoCalled(("mig-enabled",))] = described(
        "`false` leaves these GPUs whole, with MIG switched off.", default=True
    )


class Mig(Model):
    """GPUs divided by Multi-Instance GPU: partitions with their own memory, caches and compute."""

    layout: LayoutName | None = described("The MigLayout to use.", default=None)
    instances: Annotated[Instances | None, ESSENTIAL] = described(
        "How many GPU instances of each MIG profile every GPU gets, written here instead of in a MigLayout.",
        default=None,
    )
    devices: Annotated[list[Devices] | None, ESSENTIAL] = described(
        "Instances by GPU index, written here instead of in a MigLayout.", default=None
    )
    strategy: Annotated[MigStrategy, Field(strict=False), ESSENTIAL] = described(
        "`mixed` publishes each profile as its own resource (`nvidia.com/mig-1g.10gb`). `single` publishes all as "
        "`nvidia.com/gpu` and needs equal instances on every GPU of the node.",
        default=MigStrategy.MIXED,
    )
    time_slicing: TimeSlicing | None = described("Divide each MIG device further by time-slicing.", default=None)

    @model_validator(mode="after")
    def _one_source(self) -> "Mig":
        _needs_exactly_one(self, ("layout", "instances", "devices"), "a MIG layout")
        return self


class Fraction(Model):
    """Pods ask the scheduler for a fraction of a GPU; only KAI-Scheduler and Run:ai know how."""


class Sharing(Model):
    """How the GPUs of a pool are shared; exactly one kind."""

    exclusive: Exclusive | None = described("One pod has one whole GPU.", default=None)
    time_slicing: TimeSlicing | None = described("Pods take turns on a GPU.", default=None)
    mps: Annotated[Mps | None, Words("MPS")] = described("Pods share a GPU through CUDA MPS.", default=None)
    mig: Annotated[Mig | None, Words("MIG")] = described("GPUs are partitioned by MIG.", default=None)
    fraction: Fraction | None = described("The scheduler hands out fractions of a GPU.", default=None)

    @model_validator(mode="after")
    def _one_kind(self) -> "Sharing":
        _needs_exactly_one(self, ("exclusive", "time_slicing", "mps", "mig", "fraction"), "a sharing kind")
        return self


class Window(Model):
    """A time in which a pool's nodes may be disturbed."""

    schedule: Annotated[str, Judged("GPU162")] = described(
        "When the window opens, as a cron expression of five fields."
    )
    duration: Duration = described("How long it stays open, such as `4h`.")
    time_zone: Annotated[str, Judged("GPU163")] = described(
        "The time zone of the schedule, such as `Europe/Berlin`.", default="UTC"
    )


class Guard(Model):
    """Jobs that Argo CD runs with each sync of a pool's nodes: before, and after it has changed their labels."""

    image: Image = described("The image of both Jobs, with `python3` of Python 3.9 or newer; nothing else is needed.")
    timeout: Duration = described("How long nodes may take to be partitioned anew.", default="30m")


class Disruption(Model):
    """When and how far a change may disturb a pool's nodes."""

    approval: Annotated[Approval, Field(strict=False)] = described(
        "`manual`: a person starts the sync of a disruptive change.", default=Approval.MANUAL
    )
    windows: Annotated[list[Window], INDEPENDENT] = described(
        "The times in which nodes may be disturbed; none means any time.", default_factory=list
    )
    max_unavailable: Positive = described("How many nodes may be disturbed at once.", default=1)
    guard: Guard | None = described(
        "With Argo CD: do not sync while pods hold GPUs of nodes that would be partitioned anew, and wait until they "
        "have been.",
        default=None,
    )


class Rollout(Model):
    """A pool on its way from one way of sharing to another, some nodes after the others."""

    sharing: Sharing = described("How the GPUs of these nodes are shared; in the end it becomes the pool's `sharing`.")
    nodes: Annotated[list[str], Judged("GPU730")] = described(
        "The names of the nodes that have been moved to it; none while it is only made known."
    )


class Allocation(StrEnum):
    """Who hands a pool's devices to pods."""

    DEVICE_PLUGIN = "devicePlugin"
    DRA = "dra"


class Placement(StrEnum):
    """Where a scheduler puts pods first."""

    BINPACK = "binpack"
    SPREAD = "spread"


class PoolSpec(Model):
    """A set of equal nodes that share their GPUs in one way."""

    gpu: Annotated[GpuModel, Words("GPU model")] = described(
        "The GPU model as `gpuplan catalog` lists it, such as `A100-80GB`."
    )
    nodes: Nodes = described("The pool's nodes.")
    sharing: Sharing = described("How the GPUs are shared: exactly one kind.")
    node_labels: Annotated[dict[str, str], Judged("GPU148")] = described(
        "More labels for the pool's nodes.", default_factory=dict
    )
    workload_types: list[Line] = described(
        "What the pool is meant for; tenants name them in `workloadTypes`.", default_factory=list
    )
    taints: Annotated[list[Taint], Keyed(("key", "effect")), INDEPENDENT] = described(
        "Taints for the pool's nodes.", default_factory=list
    )
    allocation: Annotated[Allocation, Field(strict=False)] = described(
        "`devicePlugin`: pods ask for extended resources such as `nvidia.com/gpu`. `dra`: pods claim devices of a "
        "DeviceClass, by Dynamic Resource Allocation and NVIDIA's driver for it; Kubernetes 1.34 or newer.",
        default=Allocation.DEVICE_PLUGIN,
    )
    placement: Annotated[Placement, Field(strict=False)] | None = described(
        "`binpack` fills nodes one after the other, `spread` prefers empty ones. Absent: as the scheduler does.",
        default=None,
    )
    topology: list[Line] = described(
        "Node labels that say where a node is, widest first, such as a block's and a rack's; the node itself may be "
        "last, as `kubernetes.io/hostname`. Schedulers that know topology place gangs close together.",
        default_factory=list,
    )
    fallback: PoolName | None = described(
        "The pool that workloads may go to when this one is full. It must not isolate them less.", default=None
    )
    memory_per_unit: Annotated[int, Field(ge=1)] | None = described(
        "The GPU memory in MiB that one unit must offer to be of use here; replicas that leave less are reported.",
        default=None,
        alias="memoryPerUnitMiB",
    )
    disruption: Disruption = described(
        "When and how far a change may disturb the nodes.",
        default=Disruption.model_construct(),
    )
    rollout: Rollout | None = described(
        "Another way of sharing, which some of the nodes have already; `gpuplan rollout` writes its steps.",
        default=None,
    )


# --- MigLayout ---------------------------------------------------------------------------------------------------


class MigLayoutSpec(Model):
    """A named division of a GPU model into MIG instances."""

    gpu: Annotated[GpuModel, Words("GPU model")] = described(
        "The GPU model as `gpuplan catalog` lists it; profiles mean nothing without it."
    )
    instances: Annotated[Instances | None, ESSENTIAL] = described(
        "How many GPU instances of each profile every GPU gets.", default=None
    )
    devices: Annotated[list[Devices] | None, ESSENTIAL] = described(
        "Instances by GPU index; together they must cover every GPU.", default=None
    )

    @model_validator(mode="after")
    def _one_source(self) -> "MigLayoutSpec":
        _needs_exactly_one(self, ("instances", "devices"), "a MIG layout")
        return self


# --- PriorityClass -----------------------------------------------------------------------------------------------


class PriorityClassSpec(Model):
    """How urgent a workload is, and whether it may be evicted for another."""

    value: int = described("The priority; higher goes first. At most 1000000000.")
    preemptible: Annotated[bool, ESSENTIAL] = described(
        "Whether pods of this class may be evicted for others.", default=True
    )
    preempts: Annotated[bool, ESSENTIAL, AlsoCalled(("preemptionPolicy",))] = described(
        "Whether pods of this class may evict others (`preemptionPolicy`).", default=True
    )
    default: Annotated[bool, ESSENTIAL, AlsoCalled(("globalDefault",))] = described(
        "The class of pods that name none (`globalDefault`); at most one.", default=False
    )
    description: Lines = described("Who should use it and for what.", default="")


# --- Tenant ------------------------------------------------------------------------------------------------------


class Quota(Model):
    """What a tenant may use of one unit of one pool. The numbers are units."""

    pool: PoolName = described("The pool.")
    unit: UnitName | None = described(
        "What the pool hands out: a MIG profile, `shared`, `gpu` or `fraction`. Not needed where it is the only one.",
        default=None,
    )
    guaranteed: Amount = described("How many are the tenant's own; the sum over tenants stays within capacity.")
    limit: Amount | Literal["none"] | None = described(
        "How many it may use at most, borrowed ones included. Absent: as many as `guaranteed`; `none`: no bound.",
        default=None,
    )
    lendable: Amount | None = described(
        "How many of the guaranteed ones others may use while they are idle. Absent: all.", default=None
    )
    split: Annotated[dict[str, Amount], Judged("GPU412")] = described(
        "How the cap is divided among the tenant's namespaces, where it has several: a ResourceQuota lives in one.",
        default_factory=dict,
    )


class Surplus(Model):
    """A tenant's part in what nobody has a guarantee on."""

    weight: Amount = described("The share of the surplus relative to others.", default=1)
    rank: Rank = described("Tenants of a higher rank are served before others get any surplus.", default=0)


class Protect(Model):
    """How long a running workload is safe from eviction."""

    preempt: Duration | None = described(
        "Minimum run time before a workload of the same tenant may evict it.", default=None
    )
    reclaim: Duration | None = described("Minimum run time before another tenant may reclaim its GPUs.", default=None)


class Role(StrEnum):
    """A ClusterRole that Kubernetes provides for namespaces."""

    VIEW = "view"
    EDIT = "edit"
    ADMIN = "admin"


class Member(Model):
    """A group of people and what they may do in the tenant's namespaces."""

    group: Line = described("The group's name as the cluster's authentication gives it.")
    role: Annotated[Role, Field(strict=False)] = described("The ClusterRole they get.", default=Role.EDIT)


def _member_from_text(value: object) -> object:
    return {"group": value} if isinstance(value, str) else value


MemberOrGroup = Annotated[Member, BeforeValidator(_member_from_text, json_schema_input_type=Member | str)]


class PodSecurity(StrEnum):
    """A level of the Pod Security Standards."""

    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"


class Allow(Model):
    """What a tenant's pods may do beyond their quotas."""

    pod_security: Annotated[PodSecurity, Field(strict=False)] = described(
        "The Pod Security level of the tenant's namespaces. `privileged` pods reach every GPU of a node.",
        default=PodSecurity.BASELINE,
    )
    units_per_container: Positive | None = described("How many units one container may ask for.", default=None)


class TenantSpec(Model):
    """A team and what it may use."""

    namespaces: Annotated[list[Namespace], ESSENTIAL] = described(
        "The tenant's namespaces; each belongs to one tenant.", default_factory=list
    )
    parent: TenantName | None = described("The tenant that this one is part of.", default=None)
    priority_classes: list[PriorityClassName] = described(
        "The priority classes that its pods may name.", default_factory=list
    )
    workload_types: list[Line] = described(
        "What it runs; some pool in its quotas must serve each.", default_factory=list
    )
    quotas: Annotated[list[Quota], Keyed(("pool", "unit")), INDEPENDENT] = described(
        "What it may use, by pool and unit.", default_factory=list
    )
    surplus: Surplus = described("Its part in what nobody has a guarantee on.", default=Surplus.model_construct())
    protect: Protect = described("How long its workloads are safe from eviction.", default=Protect.model_construct())
    members: Annotated[list[MemberOrGroup], Keyed(("group",)), INDEPENDENT] = described(
        "The groups that work in its namespaces.", default_factory=list
    )
    allow: Annotated[Allow, Words("allowed")] = described(
        "What its pods may do.",
        default=Allow.model_construct(),
    )


# --- Workload ----------------------------------------------------------------------------------------------------

Percentage = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]


class FractionRange(Model):
    """A fraction of a GPU that may grow while the GPU is idle."""

    min: Percentage = described("What the pod always has, as a part of a GPU, such as `0.25`.")
    max: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = described(
        "What it may use while nobody else does, such as `0.75`."
    )


class Download(Model):
    """A Job that fills the model's volume once."""

    image: Image = described("The image of the Job, with a tag or digest.")
    command: Annotated[list[str], OF_PROGRAM] = described(
        "What it runs; the volume is mounted at `mountPath`.", default_factory=list
    )
    args: Annotated[list[str], Words("arguments"), OF_PROGRAM] = described(
        "The command's arguments.", default_factory=list
    )


class ModelVolume(Model):
    """A volume that holds the model, shared by all pods of the workload."""

    size: Line = described("The volume's size, such as `100Gi`.")
    storage_class: StorageClass | None = described(
        "The StorageClass; absent means the cluster's default.", default=None
    )
    mount_path: Line = described("Where pods see it.", default="/models")
    access_mode: Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"] = described(
        "How many nodes may mount it; pods on several nodes need `ReadWriteMany` or `ReadOnlyMany`.",
        default="ReadWriteMany",
    )
    download: Download | None = described("A Job that fills the volume before the pods need it.", default=None)


class Autoscaling(Model):
    """A HorizontalPodAutoscaler on requests per second."""

    min_replicas: Annotated[Positive, Words("fewest pods")] = described("The fewest pods.", default=1)
    max_replicas: Annotated[Positive, Words("most pods")] = described(
        "The most pods; all of them must fit into the quota."
    )
    requests_per_second: Positive = described("The requests per second that one pod can serve.")
    metric: Metric = described(
        "The metric of each pod, as the cluster's custom metrics API has it.", default="http_requests_per_second"
    )


class Inference(Model):
    """A service that runs all the time: a Deployment and a Service."""

    replicas: Annotated[Positive, Words("pods")] = described(
        "How many pods; with `autoscaling` the load decides.", default=1
    )
    port: Annotated[int, Field(ge=1, le=65535)] = described("The port that the container listens on.", default=8000)
    autoscaling: Autoscaling | None = described("Let the number of pods follow the load.", default=None)


class Training(Model):
    """Work that ends: a Job."""

    pods: Positive = described("How many pods run at once, each once to its end.", default=1)
    gang: Positive | None = described(
        "How many of them must be able to start together; fewer do not start at all.", default=None
    )
    backoff_limit: Annotated[int, Field(ge=0, le=1_000_000)] = described(
        "How often failed pods are tried again.", default=3
    )


class WorkloadSpec(Model):
    """What a team runs: an inference service or a training job, and the units that its pods ask for."""

    tenant: TenantName = described("The team whose quota it uses.")
    namespace: Annotated[NamespaceOfTenant | None, ESSENTIAL] = described(
        "Where it runs; not needed where the tenant has one namespace.", default=None
    )
    inference: Annotated[Inference | None, ESSENTIAL] = described("A service that runs all the time.", default=None)
    training: Annotated[Training | None, ESSENTIAL] = described("A job that ends.", default=None)
    pool: PoolName = described("The pool that it runs on.")
    unit: Annotated[UnitName | None, ESSENTIAL] = described(
        "The unit that each pod asks for; not needed where the pool hands out one.", default=None
    )
    count: Annotated[Positive, Words("units of each pod"), ESSENTIAL] = described(
        "How many units each pod asks for.", default=1
    )
    fraction: Annotated[Percentage | FractionRange | None, ESSENTIAL] = described(
        "The part of a GPU that each pod asks for, on a pool of fractions: a number such as `0.33`, or a range.",
        default=None,
    )
    priority_class: Annotated[PriorityClassName | None, ESSENTIAL] = described(
        "The priority class of its pods; not needed where the tenant may name one.", default=None
    )
    image: Image = described("The container's image, with a tag or digest.")
    command: Annotated[list[str], OF_PROGRAM] = described(
        "What the container runs in place of the image's own entry point.", default_factory=list
    )
    args: Annotated[list[str], Words("arguments"), OF_PROGRAM] = described("The arguments.", default_factory=list)
    env: Annotated[dict[str, str], Words("environment"), Judged("GPU588")] = described(
        "Environment variables.", default_factory=dict
    )
    config: Annotated[dict[str, str], Words("configuration"), Judged("GPU587")] = described(
        "Files for the container, by name, mounted at `/etc/workload` from a ConfigMap.", default_factory=dict
    )
    cpu: Annotated[Line | None, Words("CPU")] = described("The CPU that each pod asks for, such as `4`.", default=None)
    memory: Line | None = described("The memory that each pod asks for, such as `32Gi`.", default=None)
    model: ModelVolume | None = described("A volume that holds the model.", default=None)

    @model_validator(mode="after")
    def _one_kind(self) -> "WorkloadSpec":
        _needs_exactly_one(self, ("inference", "training"), "a workload")
        return self


# --- Retained ----------------------------------------------------------------------------------------------------


class RetainedLayout(Model):
    """An entry of the MIG manager's file as it was, which nodes may still name."""

    config_name: Annotated[str, Judged("GPU723"), Words("entry")] = described(
        "The entry's name as nodes have it in the label `nvidia.com/mig.config`: a layout's name and a hash of what it "
        "says."
    )
    gpu: Annotated[GpuModel, Words("GPU model")] = described("The GPU model as `gpuplan catalog` lists it.")
    instances: Instances | None = described("How many GPU instances of each profile every GPU had.", default=None)
    devices: list[Devices] | None = described("Instances by GPU index.", default=None)
    gpus_per_node: Annotated[GpusPerNode | None, Words("GPUs per node")] = described(
        "How many GPUs the nodes had, where `devices` does not name all of them: the others stayed whole.",
        default=None,
    )

    @model_validator(mode="after")
    def _one_source(self) -> "RetainedLayout":
        _needs_exactly_one(self, ("instances", "devices"), "a MIG layout")
        return self


class PluginFlags(Model):
    """How the device plugin names what it finds."""

    mig_strategy: Annotated[MigStrategy, Field(strict=False), Words("MIG strategy")] = described(
        "How it names MIG devices."
    )


class PluginResource(Model):
    """A resource that the device plugin divides."""

    name: Annotated[str, Judged("GPU724")] = described(
        "The resource, such as `nvidia.com/gpu`, by the name that it has before it is renamed."
    )
    replicas: Annotated[int, Words("shares")] = described("Into how many shares each device is divided; at least 2.")


class PluginTimeSlicing(Model):
    """Shares that take turns, as the device plugin reads them."""

    rename_by_default: bool = described("Whether the shares are published as `<resource>.shared`.")
    fail_requests_greater_than_one: bool = described("Whether containers that ask for several shares are refused.")
    resources: list[PluginResource] = described("What is divided.")


class PluginMps(Model):
    """Shares under CUDA MPS, as the device plugin reads them."""

    rename_by_default: bool = described("Whether the shares are published as `<resource>.shared`.")
    resources: list[PluginResource] = described("What is divided.")


class PluginSharing(Model):
    """How the device plugin divides devices; exactly one kind."""

    time_slicing: PluginTimeSlicing | None = described("Shares that take turns.", default=None)
    mps: Annotated[PluginMps | None, Words("MPS")] = described("Shares under CUDA MPS.", default=None)

    @model_validator(mode="after")
    def _one_kind(self) -> "PluginSharing":
        _needs_exactly_one(self, ("time_slicing", "mps"), "a sharing kind")
        return self


class PluginConfig(Model):
    """What a file of the device plugin says, as far as gpuplan writes such files."""

    version: Literal["v1"] = described("Always `v1`.")
    flags: PluginFlags | None = described("How it names what it finds.", default=None)
    sharing: PluginSharing | None = described("How it divides devices; absent where it does not.", default=None)


class RetainedDevicePluginConfig(Model):
    """A file of the device plugin as it was, which nodes may still name."""

    key: Annotated[str, Judged("GPU723")] = described(
        "The file's key as nodes have it in the label `nvidia.com/device-plugin.config`."
    )
    config: Annotated[PluginConfig, Words("configuration")] = described(
        "What the file says, as the device plugin reads it."
    )


class RetainedObject(Model):
    """A Kubernetes object as it was, or taken out of use."""

    folder: Annotated[str | None, Judged("GPU726")] = described(
        "The folder of the cluster's output that it is applied with, such as `queues/a100-mixed`. Absent: that of its "
        "namespace for an object in a tenant's namespace, else `scheduling`.",
        default=None,
    )
    manifest: Annotated[dict[str, Any], Judged("GPU725")] = described(
        "The object, such as a ClusterQueue with `stopPolicy: Hold`."
    )


class RetainedSpec(Model):
    """What the policies say no more, but what nodes, or controllers, still hold on to; exactly one thing."""

    mig_layout: Annotated[RetainedLayout | None, Words("MIG layout"), ESSENTIAL] = described(
        "An entry of the MIG manager's file.", default=None
    )
    device_plugin_config: Annotated[
        RetainedDevicePluginConfig | None, ESSENTIAL, Words("configuration of the device plugin")
    ] = described("A file of the device plugin.", default=None)
    object: Annotated[RetainedObject | None, ESSENTIAL] = described("A Kubernetes object.", default=None)
    until: Lines = described(
        "When this document may be deleted, as a command to type and what it must print.", min_length=1
    )

    @model_validator(mode="after")
    def _one_thing(self) -> "RetainedSpec":
        _needs_exactly_one(self, ("mig_layout", "device_plugin_config", "object"), "what is retained")
        return self


# --- Documents ---------------------------------------------------------------------------------------------------


class Cluster(Model):
    """A cluster: its versions, who installs the GPU Operator, who labels nodes, which scheduler divides the GPUs."""

    api_version: Annotated[Literal["gpuplan.dev/v1"], Words("apiVersion")] = described("Always `gpuplan.dev/v1`.")
    kind: Literal["Cluster"] = described("Always `Cluster`.")
    metadata: Annotated[Metadata, names.CLUSTER] = described("The cluster's name; its overlay folder has the same.")
    spec: ClusterSpec = described("The cluster.")


class Pool(Model):
    """A set of equal nodes that share their GPUs in one way."""

    api_version: Annotated[Literal["gpuplan.dev/v1"], Words("apiVersion")] = described("Always `gpuplan.dev/v1`.")
    kind: Literal["Pool"] = described("Always `Pool`.")
    metadata: Annotated[Metadata, names.POOL] = described(
        "The pool's name; nodes carry it as the label `gpuplan.dev/pool`."
    )
    spec: PoolSpec = described("The pool.")


class MigLayout(Model):
    """A named division of a GPU model into MIG instances, which pools refer to."""

    api_version: Annotated[Literal["gpuplan.dev/v1"], Words("apiVersion")] = described("Always `gpuplan.dev/v1`.")
    kind: Literal["MigLayout"] = described("Always `MigLayout`.")
    metadata: Annotated[Metadata, names.LAYOUT] = described("The layout's name.")
    spec: MigLayoutSpec = described("The layout.")


class PriorityClass(Model):
    """How urgent a workload is, and whether it may be evicted for another."""

    api_version: Annotated[Literal["gpuplan.dev/v1"], Words("apiVersion")] = described("Always `gpuplan.dev/v1`.")
    kind: Literal["PriorityClass"] = described("Always `PriorityClass`.")
    metadata: Annotated[Metadata, names.PRIORITY_CLASS] = described(
        "The class's name, which pods give as `priorityClassName`."
    )
    spec: PriorityClassSpec = described("The class.")


class Tenant(Model):
    """A team: its namespaces, members, priority classes and quotas."""

    api_version: Annotated[Literal["gpuplan.dev/v1"], Words("apiVersion")] = described("Always `gpuplan.dev/v1`.")
    kind: Literal["Tenant"] = described("Always `Tenant`.")
    metadata: Annotated[Metadata, names.TENANT] = described("The tenant's name.")
    spec: TenantSpec = described("The tenant.")


class Workload(Model):
    """What a team runs: an inference service or a training job."""

    api_version: Annotated[Literal["gpuplan.dev/v1"], Words("apiVersion")] = described("Always `gpuplan.dev/v1`.")
    kind: Literal["Workload"] = described("Always `Workload`.")
    metadata: Annotated[Metadata, names.WORKLOAD] = described("The workload's name, which its objects have too.")
    spec: WorkloadSpec = described("The workload.")


class Retained(Model):
    """What must outlive a change of the policies, until nothing in the cluster names it any more."""

    api_version: Annotated[Literal["gpuplan.dev/v1"], Words("apiVersion")] = described("Always `gpuplan.dev/v1`.")
    kind: Literal["Retained"] = described("Always `Retained`.")
    metadata: Annotated[Metadata, names.RETAINED] = described("The document's name, which nothing refers to.")
    spec: RetainedSpec = described("What is retained, and until when.")


Policy = Cluster | Pool | MigLayout | PriorityClass | Tenant | Workload | Retained

KINDS: dict[str, type[Cluster | Pool | MigLayout | PriorityClass | Tenant | Workload | Retained]] = {
    "Cluster": Cluster,
    "Pool": Pool,
    "MigLayout": MigLayout,
    "PriorityClass": PriorityClass,
    "Tenant": Tenant,
    "Workload": Workload,
    "Retained": Retained,
}


def complete(*parts: type[Model]) -> None:
    """Build what `defer_build` puts off, of these or of all parts of the language.

    Until then, pydantic before 2.14 neither knows the names that fields have in a file nor can write a default.
    """
    for part in parts or _parts(Model):
        part.model_rebuild()


def _parts(model: type[Model]) -> tuple[type[Model], ...]:
    return tuple(part for child in model.__subclasses__() for part in (child, *_parts(child)))
