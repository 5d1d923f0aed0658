"""The policy language `gpuplan.dev/v1`: what a platform team writes, mirrored field by field."""

# No `from __future__ import annotations` here: pydantic would have to compile and evaluate each annotation again.

from enum import StrEnum
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from gpuplan.compiler.policy import names, texts
from gpuplan.compiler.policy.marks import ESSENTIAL, INDEPENDENT, AlsoCalled, AnyText, Judged, Keyed, Words

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


def exactly_one(*names_and_what: str) -> Any:  # noqa: ANN401 - pydantic's own
    """Holds a model to exactly one of some fields; what they are together comes last.

    The message is `gpuplan.compiler.policy.problems`' business.
    """
    *fields, what = names_and_what

    def check(model: Model) -> Model:
        given = [to_camel(name) for name in fields if getattr(model, name) is not None]
        if len(given) != 1:
            known = [to_camel(name) for name in fields]
            context = {"what": what, "given": given, "fields": known}
            raise PydanticCustomError("exactly_one", "exactly one of the fields", context)
        return model

    return model_validator(mode="after")(check)


# --- Shared pieces -----------------------------------------------------------------------------------------------

Positive = Annotated[int, Field(ge=1, le=1_000_000)]
GpusPerNode = Annotated[int, Field(ge=1, le=1024)]
Rank = Annotated[int, Field(ge=-1_000_000, le=1_000_000)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Vocabulary(StrEnum):
    """The kind of words that a field takes and the catalog lists; a schema has it as `format`."""

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

    name: Annotated[str, AnyText("the rule stands on the `metadata` of each kind")]
    """The document's name: lower-case letters, digits and `-`, unique among its kind."""


class Effect(StrEnum):
    """The effect of a taint on pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Taint(Model):
    """A taint on every node of a pool."""

    key: Annotated[str, Judged("GPU152")]
    """The taint's key, such as `nvidia.com/gpu`."""
    value: Annotated[str, Judged("GPU152")] = ""
    """The taint's value; tolerations with `operator: Exists` ignore it."""
    effect: Annotated[Effect, Field(strict=False)]
    """The effect on pods that do not tolerate the taint."""


# --- Cluster -----------------------------------------------------------------------------------------------------


class Platform(StrEnum):
    """The distribution a cluster runs."""

    KUBERNETES = "kubernetes"
    OPENSHIFT = "openshift"


class Install(StrEnum):
    """The installer of the NVIDIA GPU Operator, which owns the ClusterPolicy."""

    HELM = "helm"
    OLM = "olm"
    EXTERNAL = "external"


class ClusterPolicyPatch(StrEnum):
    """The way in which gpuplan's fields get into a ClusterPolicy that somebody else owns."""

    APPLIED = "applied"
    SNIPPET = "snippet"


class MigStrategy(StrEnum):
    """The names that the device plugin gives MIG devices."""

    SINGLE = "single"
    MIXED = "mixed"


class ClusterMigStrategy(StrEnum):
    """The source of a node's MIG strategy."""

    PER_POOL = "perPool"
    NONE = "none"
    SINGLE = "single"
    MIXED = "mixed"


class DevicePluginConfig(StrEnum):
    """The name of the device plugin's ConfigMap, which decides which pods restart with a change."""

    PER_CONTENT = "perContent"
    FIXED = "fixed"


class NodeLabels(StrEnum):
    """The program or person that puts labels and taints on the nodes."""

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
    """The reaction when the scheduler cannot keep a part of the policy."""

    REPORT = "report"
    REFUSE = "refuse"


class Cap(StrEnum):
    """The cap on a tenant: one of a quota's numbers in a plain ResourceQuota, or its queue."""

    LIMIT = "limit"
    GUARANTEED = "guaranteed"
    QUEUE = "queue"


_CAP = (
    "What caps what a tenant uses. `limit` and `guaranteed`: a ResourceQuota in each namespace, at that number of its "
    "quotas. `queue`: the scheduler's queues alone, so that work beyond the limit waits and is not refused; "
    "ResourceQuotas then refuse what is not granted, and hold a `split` and, with Kueue, claimed devices. Default "
    "`queue` with `kind: kueue` and `kind: kai` from Kubernetes 1.30 on, else `limit`."
)


class Driver(Model):
    """The NVIDIA driver as the GPU Operator manages it."""

    enabled: bool = True
    """Whether the operator installs the driver; `false` where the node image has it."""
    version: texts.DriverVersion | None = None
    """The driver's version, such as `580.95.05`. Some facts depend on it (MIG profile names, known bugs); absent means
    the operator release's default.
    """


class KernelModules(StrEnum):
    """The kernel modules that the driver's container builds or brings."""

    AUTO = "auto"
    OPEN = "open"
    PROPRIETARY = "proprietary"


class PoolDriver(Model):
    """The NVIDIA driver of a pool's nodes, where it is another one than the cluster's."""

    version: Annotated[texts.DriverVersion | None, ESSENTIAL] = None
    """The driver's version, such as `570.195.03`. Absent: the cluster's."""
    kernel_modules: Annotated[KernelModules | None, Field(strict=False), Words("kernel modules")] = None
    """`open`, which Grace and Blackwell need, and GPUDirect Storage; `proprietary`, which Volta and older need; `auto`
    leaves it to the driver. Absent: the cluster's, `driver.kernelModuleType` of `gpuOperator.values`, else `auto`.
    """


class OperandEnvironment(Model):
    """Environment variables of pods that the GPU Operator runs on nodes."""

    toolkit: Annotated[dict[str, str], Judged("GPU478")] = Field(default_factory=dict)
    """Those of NVIDIA's container toolkit. Where containerd's files lie elsewhere it must be told, as on K3s:
    `CONTAINERD_CONFIG: /var/lib/rancher/k3s/agent/etc/containerd/config.toml` and
    `CONTAINERD_SOCKET: /run/k3s/containerd/containerd.sock`.
    """
    device_plugin: Annotated[dict[str, str], Judged("GPU478"), Words("device plugin")] = Field(default_factory=dict)
    """Those of the device plugin."""


class Olm(Model):
    """Where OLM has the GPU Operator from."""

    catalog: names.CatalogSource = "certified-operators"
    """The CatalogSource in `openshift-marketplace` that has the package `gpu-operator-certified`: a mirror's, or one of
    releases that are not yet in the certified catalog.
    """
    channel: texts.Line | None = None
    """The channel. Default the line of `version`, such as `v26.7`."""


class GpuOperator(Model):
    """The installation of the NVIDIA GPU Operator on this cluster."""

    install: Annotated[Install, Field(strict=False)]
    """`helm`: gpuplan writes a values file for the chart. `olm`: gpuplan writes the OperatorGroup, the Subscription and
    the ClusterPolicy. `external`: something else owns the ClusterPolicy; gpuplan writes a patch for the fields it must
    own.
    """
    version: texts.OperatorVersion
    """The operator's release, such as `v26.7.0`. Picks the values and fields that it knows."""
    namespace: names.Namespace | None = None
    """The operator's namespace; its ConfigMaps must live there. Default `gpu-operator`, on OpenShift
    `nvidia-gpu-operator`.
    """
    cluster_policy: Annotated[names.ClusterPolicy | None, Words("ClusterPolicy")] = None
    """The ClusterPolicy's name. Default `cluster-policy` with `helm` and `external`, `gpu-cluster-policy` on OpenShift.
    """
    cluster_policy_patch: Annotated[ClusterPolicyPatch, Field(strict=False), Words("patch of the ClusterPolicy")] = (
        ClusterPolicyPatch.APPLIED
    )
    """With `external`, how gpuplan's fields get into the ClusterPolicy. `applied`: the folder `gpu-operator` holds
    them, for server-side apply. `snippet`: nothing applies them; the owner merges a file that is written beside the
    ConfigMaps, as a patch and as Helm values. Where an Application of Argo CD owns the ClusterPolicy it must be
    `snippet`.
    """
    mig_strategy: Annotated[ClusterMigStrategy, Field(strict=False), Words("MIG strategy")] = (
        ClusterMigStrategy.PER_POOL
    )
    """`perPool` leaves `ClusterPolicy.spec.mig.strategy` unset, so that each pool's own strategy holds. Any other value
    is written there and overrides every pool on the cluster.
    """
    device_plugin_config: Annotated[
        DevicePluginConfig, Field(strict=False), Words("ConfigMap of the device plugin")
    ] = DevicePluginConfig.PER_CONTENT
    """`perContent` names the device plugin's ConfigMap after its content: each change of any pool's sharing restarts
    the device plugin, GPU Feature Discovery and MPS daemons on all nodes. With `fixed` it keeps its name, and each
    pool's key ends in a hash of its content: only nodes whose label changes are touched.
    """
    close_visible_devices: Annotated[bool, Words("closed visible devices")] = False
    """Whether NVIDIA's container toolkit ignores the variable `NVIDIA_VISIBLE_DEVICES` of containers that are not
    privileged, so that no image chooses GPUs by it. Where the device plugin relied on the variable it uses mounts then.
    A change restarts the toolkit and the device plugin on all nodes. Not with `external`, nor with fractions.
    """
    driver: Driver = Driver.model_construct()
    """The NVIDIA driver."""
    reboot_on_mig_change: Annotated[bool, Words("reboot on a change of MIG")] = False
    """Let the MIG manager reboot a node when a GPU cannot be reset (`WITH_REBOOT`); most cloud providers need it."""
    env: Annotated[OperandEnvironment, Words("environment")] = OperandEnvironment.model_construct()
    """Environment variables of the container toolkit and of the device plugin, with `helm` and with `olm`. A change
    restarts them on all nodes.
    """
    olm: Annotated[Olm, Words("OLM")] = Olm.model_construct()
    """Where OLM has the operator from (`install: olm`)."""
    nfd: Annotated[bool, Words("Node Feature Discovery")] = True
    """Whether Node Feature Discovery is installed along with the operator: by the chart with `helm`, by its own
    Subscription with `olm`. `false` where the cluster has it already, since the operator needs its labels.
    """
    registry: texts.RegistryMirror | None = None
    """A registry that mirrors `nvcr.io`, such as `registry.example.com/nvcr`: images of all operands come from there,
    by the paths that they have at `nvcr.io` (`install: helm`).
    """
    image_pull_secrets: Annotated[list[names.Secret], Words("pull secrets")] = Field(default_factory=list)
    """Secrets in the operator's namespace by which nodes pull the images of all operands, with `helm` and with `olm`.
    A change restarts them.
    """
    chart_repo_url: Annotated[texts.ChartRepository, Words("chart repository")] = Field(
        default=NVIDIA_CHARTS, alias="chartRepoURL"
    )
    """The Helm repository that has the chart `gpu-operator`, or a mirror of it (`install: helm` with `argocd` or
    `flux`).
    """
    values: Annotated[dict[str, Any], Words("Helm values"), Judged("GPU600")] = Field(default_factory=dict)
    """More Helm values for the chart (`install: helm`), merged under the ones that gpuplan writes. Keys that this chart
    version does not know are reported: the chart itself ignores them silently.
    """


class SchedulerInstall(StrEnum):
    """The installer of the scheduler."""

    HELM = "helm"
    EXTERNAL = "external"


class Runai(Model):
    """The facts about a cluster that Run:ai's API needs."""

    cluster_id: Annotated[texts.Line | None, Words("cluster id")] = None
    """The cluster's id in Run:ai, which projects and node pools name; absent, whoever sends the requests adds it."""


class Framework(StrEnum):
    """A kind of work that Kueue can admit as a whole."""

    JAX_JOB = "JAXJob"
    JOB_SET = "JobSet"
    LEADER_WORKER_SET = "LeaderWorkerSet"
    MPI_JOB = "MPIJob"
    PADDLE_JOB = "PaddleJob"
    PYTORCH_JOB = "PyTorchJob"
    RAY_CLUSTER = "RayCluster"
    RAY_JOB = "RayJob"
    RAY_SERVICE = "RayService"
    STATEFUL_SET = "StatefulSet"
    TF_JOB = "TFJob"
    TRAIN_JOB = "TrainJob"
    XGBOOST_JOB = "XGBoostJob"


class Kueue(Model):
    """The settings of Kueue that depend on the work on a cluster."""

    frameworks: list[Annotated[Framework, Field(strict=False), Words("framework")]] = Field(default_factory=list)
    """Kinds that Kueue admits as a whole, beside Jobs, Deployments and pods. Their controllers run on the cluster. It
    is told of them in its own Configuration, which gpuplan writes for people to merge; admission lets their pods in.
    """
    configuration: Annotated[dict[str, Any], Judged("GPU475")] = Field(default_factory=dict)
    """More of Kueue's own Configuration, beside what gpuplan writes there. Lists hold both: what else pods ask for and
    nothing counts is `resources: {excludeResourcePrefixes: [rdma/]}`.
    """
    cohort: names.Cohort | None = None
    """The Cohort that all tenants are in, and what is nobody's. Absent: `gpuplan`."""


class Scheduler(Model):
    """The scheduler that divides the GPUs, and the reaction to a policy that it cannot express."""

    kind: Annotated[SchedulerKind, Field(strict=False), ESSENTIAL] = SchedulerKind.KUBERNETES
    """The scheduler back end."""
    on_loss: Annotated[OnLoss, Field(strict=False)] = OnLoss.REPORT
    """`report` lists what the scheduler cannot keep, `refuse` makes each of them an error."""
    cap: Annotated[Cap, Field(strict=False), Words("cap")] | None = Field(description=_CAP, default=None)
    version: texts.SchedulerVersion | None = None
    """The release of the scheduler, such as `v0.19.2` of Kueue; picks what it knows. Absent means the newest one that
    gpuplan knows.
    """
    runai: Annotated[Runai | None, Words("Run:ai")] = None
    """The facts about the cluster that Run:ai's API needs (`kind: runai`)."""
    kueue: Annotated[Kueue | None, Words("Kueue")] = None
    """The settings of Kueue that depend on the work on the cluster (`kind: kueue`)."""
    install: Annotated[SchedulerInstall, Field(strict=False)] = SchedulerInstall.EXTERNAL
    """`helm`: gpuplan writes values for the chart of Kueue or KAI-Scheduler, whose release `version` says, and Argo CD
    or Flux installs it. `external`: somebody else does.
    """
    chart_repo_url: Annotated[texts.ChartRepository | None, Words("chart repository")] = Field(
        default=None, alias="chartRepoURL"
    )
    """A mirror of the Helm repository that has the scheduler's chart (`install: helm`). Default its project's own."""
    values: Annotated[dict[str, Any], Words("Helm values"), Judged("GPU474")] = Field(default_factory=dict)
    """More Helm values for the scheduler's chart (`install: helm`), merged under the ones that gpuplan writes."""


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

    server: texts.Line | None = None
    """The address of the cluster's API server. `https://kubernetes.default.svc` is the cluster Argo CD runs in."""
    name: texts.Line | None = None
    """The cluster's name in Argo CD, in place of its address."""

    _one_way = exactly_one("server", "name", "a destination")


class Argocd(Model):
    """Argo CD syncs this cluster: gpuplan writes its AppProject, Applications and ApplicationSet to `out/argocd/`."""

    repo_url: Annotated[texts.Line, Words("repository")] = Field(alias="repoURL", min_length=1)
    """The address of the repository that holds `out/`, as Argo CD knows it."""
    revision: texts.GitReference = Field(default="main", min_length=1)
    """The branch or tag that Argo CD follows."""
    path: texts.Line = Field(default="out", min_length=1)
    """Where `out/` lies in the repository."""
    namespace: names.Namespace | None = None
    """Argo CD's own namespace. Default `argocd`, on OpenShift `openshift-gitops`."""
    project: names.AppProject | None = None
    """The name of the AppProject that gpuplan writes. Default `gpuplan-<cluster>`."""
    destination: Destination = Destination.model_construct(server="https://kubernetes.default.svc")
    """The cluster that the Applications sync to. Default: the one that Argo CD runs in."""
    labels: Annotated[dict[str, str], Judged("GPU656")] = Field(default_factory=dict)
    """Labels for every Argo CD object."""
    root: bool = False
    """Write a root Application, which syncs the others in order: labels of nodes change when the GPU Operator has its
    files and is healthy. It holds for what is synced by itself and keeps no windows; a person who starts a sync chooses
    the order.
    """
    operator_approval: Annotated[Approval, Field(strict=False)] | None = Field(
        description=_OPERATOR_APPROVAL, default=None
    )


class FluxSourceKind(StrEnum):
    """A kind of source that Flux reads files from."""

    GIT_REPOSITORY = "GitRepository"
    OCI_REPOSITORY = "OCIRepository"
    BUCKET = "Bucket"


class FluxSource(Model):
    """The source object that holds `out/`; it exists already, made by `flux bootstrap` or by hand."""

    kind: Annotated[FluxSourceKind, Field(strict=False)] = FluxSourceKind.GIT_REPOSITORY
    """The source's kind."""
    name: names.FluxSourceName = "flux-system"
    """The source's name."""
    namespace: names.Namespace | None = None
    """The source's namespace, where it is not that of the Kustomizations."""


class Flux(Model):
    """Flux syncs this cluster: gpuplan writes its Kustomizations and HelmRelease to `out/flux/`."""

    source: FluxSource = FluxSource.model_construct()
    """The source that holds `out/`."""
    path: texts.Line = Field(default="out", min_length=1)
    """Where `out/` lies in the source."""
    namespace: names.Namespace = "flux-system"
    """The namespace of the Flux objects."""
    interval: texts.Duration = "10m"
    """The time between two comparisons of the cluster with the source by Flux."""
    service_account_name: Annotated[names.ServiceAccount | None, Words("service account")] = None
    """The ServiceAccount that Flux acts as, which bounds what it may do."""
    kube_config_secret: Annotated[names.Secret | None, Words("kubeconfig secret")] = None
    """The Secret with a kubeconfig for the cluster, where Flux runs in another one."""
    labels: Annotated[dict[str, str], Judged("GPU664")] = Field(default_factory=dict)
    """Labels for every Flux object."""
    operator_approval: Annotated[Approval, Field(strict=False)] | None = Field(
        description=_OPERATOR_APPROVAL, default=None
    )


class Dashboards(Model):
    """The place and the labels by which dashboards are found."""

    namespace: names.Namespace | None = None
    """The namespace of the dashboards. Default that of the rules, on OpenShift `openshift-config-managed`."""
    labels: Annotated[dict[str, str] | None, Judged("GPU672")] = None
    """The labels that dashboards are found by. Default `grafana_dashboard: "1"`, on OpenShift those of the console."""
    folder: texts.Line | None = None
    """The Grafana folder, as the annotation `grafana_folder`."""


class Collect(StrEnum):
    """The range of metrics that the DCGM exporter collects."""

    HEALTH = "health"
    BASIC = "basic"


class Monitoring(Model):
    """Prometheus and Grafana watch this cluster: gpuplan writes alerts, recording rules and a dashboard."""

    namespace: names.Namespace | None = None
    """The namespace of the PrometheusRules. Default `monitoring`, on OpenShift the GPU Operator's."""
    labels: Annotated[dict[str, str], Judged("GPU672")] = Field(default_factory=dict)
    """Labels by which Prometheus selects rules and monitors, such as `release: kube-prometheus-stack`."""
    honor_labels: bool = False
    """Whether the DCGM exporter's own labels win: workloads are then in `namespace`, else in `exported_namespace`."""
    alert_labels: Annotated[dict[str, texts.Line], Judged("GPU671")] = Field(default_factory=dict)
    """More labels on every alert, for instance to route them."""
    disabled_alerts: list[texts.Line] = Field(default_factory=list)
    """Alerts to leave out, by name."""
    runbook_url: Annotated[texts.PageUrl | None, Words("address of the runbook")] = None
    """Where people read `docs/how-to/monitor-pools.md`, or a page of yours with a heading for each alert: the alert's
    `runbook_url` is this, `#` and its name in small letters. Absent, alerts have none.
    """
    collect: Annotated[Collect, Field(strict=False)] = Collect.HEALTH
    """The metrics that the DCGM exporter collects. `health`: all that alerts read, and pods on shared GPUs. `basic`: as
    before there was a choice; alerts that read more are left out.
    """
    dashboards: Dashboards = Dashboards.model_construct()
    """The place and the labels by which dashboards are found."""


class Admission(Model):
    """Exceptions to the rules that the cluster's admission policies enforce for gpuplan."""

    grace_period: texts.Duration | Literal["none"] = "30s"
    """The longest time that pods with GPUs may ask for to end (`terminationGracePeriodSeconds`): so long may whoever is
    guaranteed GPUs wait for those who borrowed them. `none` does not bound it.
    """
    without: list[texts.Line] = Field(default_factory=list)
    """Names of optional rules to leave out, so that tenants may do what these refuse."""


class Dra(Model):
    """The facts about the cluster that pools with `dynamicMig` need, beyond Dynamic Resource Allocation."""

    partitionable_devices: bool = False
    """The API server, its scheduler and controllers run with the feature gate `DRAPartitionableDevices`, which is off
    by default before Kubernetes 1.36.
    """
    driver_version: Annotated[texts.DraDriverVersion | None, Words("version of the DRA driver")] = None
    """The release of NVIDIA's driver for DRA, such as `v0.4.1`; absent, it is taken to be new enough."""


class Api(StrEnum):
    """A kind of object that Kubernetes itself has not."""

    HTTP_ROUTE = "HTTPRoute"
    INFERENCE_SERVICE = "InferenceService"
    JOB_SET = "JobSet"
    LEADER_WORKER_SET = "LeaderWorkerSet"
    SCALED_OBJECT = "ScaledObject"
    TRAIN_JOB = "TrainJob"


class Gateway(Model):
    """A Gateway, which brings requests from outside to services (Gateway API)."""

    name: names.Gateway
    """The Gateway's name."""
    namespace: names.Namespace
    """The Gateway's namespace. Its listeners have to take routes of tenants' namespaces (`allowedRoutes`)."""
    listener: names.Listener | None = None
    """The listener's name (`sectionName`). Absent: all listeners that take the host."""


class Ingress(Model):
    """A controller of Ingresses, which brings requests from outside to services."""

    class_name: Annotated[names.IngressClass, Words("IngressClass")]
    """The IngressClass of Ingresses, such as `nginx`."""


class Prometheus(Model):
    """The Prometheus that KEDA asks."""

    url: Annotated[texts.ServerUrl, Words("address")]
    """Its address within the cluster, such as `http://prometheus-operated.monitoring:9090`."""
    authentication: names.TriggerAuthentication | None = None
    """The ClusterTriggerAuthentication with the token that it asks for, as OpenShift's does."""


class ClusterSpec(Model):
    """A cluster that gpuplan writes a folder for."""

    kubernetes: Annotated[texts.KubernetesVersion, Words("Kubernetes version")]
    """The Kubernetes minor version, quoted, such as `"1.34"`; it picks API versions and schemas."""
    platform: Annotated[Platform, Field(strict=False), ESSENTIAL] = Platform.KUBERNETES
    """The distribution."""
    gpu_operator: Annotated[GpuOperator, Words("GPU Operator")]
    """The installation of the NVIDIA GPU Operator."""
    node_labels: Annotated[NodeLabels, Field(strict=False), ESSENTIAL] = NodeLabels.NFD
    """The source of the pools' labels and taints on nodes. `nfd`: NodeFeatureRules. `node`: partial Node objects for
    server-side apply. `external`: node groups outside the cluster, from a table that gpuplan writes.
    """
    scheduler: Scheduler = Scheduler.model_construct()
    """The scheduler that divides the GPUs."""
    dra: Annotated[Dra | None, Words("DRA")] = None
    """The facts about the cluster that pools with `dynamicMig` need."""
    apis: list[Annotated[Api, Field(strict=False), Words("kind of object")]] = Field(default_factory=list)
    """Further kinds of objects whose controllers the cluster has."""
    argocd: Annotated[Argocd | None, Words("Argo CD")] = None
    """Argo CD syncs this cluster; not together with `flux`. With neither gpuplan writes what is to be applied, and who
    applies it is up to you.
    """
    flux: Annotated[Flux | None, Words("Flux")] = None
    """Flux syncs this cluster; not together with `argocd`."""
    monitoring: Monitoring | None = None
    """Prometheus and Grafana watch this cluster; absent, no alerts, rules or dashboards are written."""
    admission: Admission = Admission.model_construct()
    """The limits that the API server sets for tenants' pods and Jobs."""
    prometheus: Prometheus | None = None
    """The Prometheus that autoscalers of the kind `ScaledObject` ask."""
    gateway: Gateway | None = None
    """The Gateway that services with a `route` are reached by; `apis` has `HTTPRoute`."""
    ingress: Ingress | None = None
    """The controller that serves the Ingresses of services with a `route`."""
    taint_pools: bool = False
    """Whether each pool without a taint that keeps pods off gets one: `nvidia.com/gpu=present:NoSchedule`, which the
    GPU Operator's own pods tolerate. Without a taint any pod may come to a pool's nodes.
    """
    match_boards: bool = False
    """Whether NodeFeatureRules label only nodes with a board of the pool's model, by its PCI ids (`nodeLabels: nfd`).
    Else a node with another board and a name of the pool gets the pool's labels, its MIG layout among them.
    """
    bases: list[texts.Line] = Field(default_factory=lambda: ["policies"])
    """Folders of policies that this cluster starts from."""


# --- Pool --------------------------------------------------------------------------------------------------------


class Reserve(Model):
    """The part of each node that is for pods of no tenant, such as those of DaemonSets."""

    cpu: Annotated[texts.Quantity, Words("reserved CPU")] = "0"
    """CPUs, such as `2`."""
    memory: Annotated[texts.Quantity, Words("reserved memory")] = "0"
    """Memory, such as `16Gi`."""


class Nodes(Model):
    """The nodes of a pool: alike in GPU model, GPU count and sharing."""

    count: Positive
    """The number of nodes in the pool, by which capacity is counted."""
    gpus_per_node: Annotated[GpusPerNode, Words("GPUs per node")]
    """The number of GPUs in each node."""
    names: Annotated[list[str] | None, ESSENTIAL, Judged("GPU147")] = None
    """The nodes' names, where they are fixed."""
    name_pattern: Annotated[str | None, ESSENTIAL, Judged("GPU141")] = None
    """A regular expression (RE2) that the whole node name must match, where nodes come and go. Two pools' patterns must
    not match the same name.
    """
    selector: Annotated[dict[str, str], Judged("GPU167")] = Field(default_factory=dict)
    """Labels that nodes have from whoever makes them, such as `node.kubernetes.io/instance-type` or
    `cloud.google.com/gke-nodepool`: nodes with all of them are the pool's. Only with `nodeLabels: external`: no rule of
    Node Feature Discovery sees labels.
    """
    match_boards: Annotated[bool, ESSENTIAL] = False
    """Whether the pool's nodes are those that have a board of its model, by its PCI ids (`nodeLabels: nfd`): all of
    them where nothing else says which nodes these are, else those of `names` or `namePattern`.
    """
    cpu: Annotated[texts.Quantity | None, Words("CPU")] = None
    """The number of CPUs that each node has for pods, such as `192`: `kubectl describe node` calls it allocatable."""
    memory: texts.Quantity | None = None
    """The memory that each node has for pods, such as `1900Gi`; allocatable as well."""
    reserve: Reserve = Reserve.model_construct()
    """The part of CPU and memory that is for pods of no tenant."""


class Exclusive(Model):
    """One pod has one whole GPU."""


class TimeSlicing(Model):
    """Several pods take turns on one GPU, without isolation of memory or of faults."""

    replicas: Annotated[int, Words("shares")]
    """Into how many shares each GPU is divided; at least 2."""
    rename: Annotated[bool, AlsoCalled(("renameByDefault",))] = True
    """Publish the shares as `<resource>.shared` (`renameByDefault`), so that nobody mistakes a share for a GPU and
    quotas can tell them apart.
    """
    fail_requests_greater_than_one: bool = True
    """Refuse containers that ask for two or more shares: more shares are not more GPU time, and may be of one GPU."""


class Mps(Model):
    """Several pods run on one GPU at once through CUDA MPS, each with an equal share of memory and threads."""

    replicas: Annotated[int, Words("shares")]
    """Into how many shares each GPU is divided: 2 to 48, to 16 below compute capability 7.5."""
    rename: Annotated[bool, AlsoCalled(("renameByDefault",))] = True
    """Publish the shares as `<resource>.shared` (`renameByDefault`)."""


Replicas = Annotated[
    dict[str, int],
    Field(json_schema_extra={"propertyNames": {"format": Vocabulary.MIG_PROFILE.value}}, min_length=1),
    Judged("GPU309"),
]
"""Shares by MIG profile."""


class MigTimeSlicing(Model):
    """Several pods take turns on one MIG device, without isolation of its memory or of faults."""

    replicas: Annotated[int | Replicas, Words("shares")]
    """Into how many shares each MIG device is divided; at least 2. By profile, such as `{1g.10gb: 4, 2g.20gb: 2}`,
    devices of other profiles stay undivided.
    """
    rename: Annotated[bool, AlsoCalled(("renameByDefault",))] = True
    """Publish the shares as `<resource>.shared` (`renameByDefault`), so that nobody takes a share for a MIG device."""
    fail_requests_greater_than_one: bool = True
    """Refuse containers that ask for two or more shares: they may be of one device."""


class Devices(Model):
    """The division of some GPUs of a node."""

    gpus: Annotated[Literal["all"] | list[Annotated[int, Field(ge=0)]], Words("GPUs")]
    """The GPUs' indexes as NVML counts them, from 0, or `all`."""
    instances: Instances | None = None
    """The number of GPU instances of each MIG profile."""
    enabled: Annotated[bool, AlsoCalled(("mig-enabled",))] = True
    """`false` leaves these GPUs whole, with MIG switched off."""


class Mig(Model):
    """GPUs divided by Multi-Instance GPU: partitions with their own memory, caches and compute."""

    layout: names.LayoutName | None = None
    """The MigLayout to use."""
    instances: Annotated[Instances | None, ESSENTIAL] = None
    """The number of GPU instances of each MIG profile on every GPU, written here instead of in a MigLayout."""
    devices: Annotated[list[Devices] | None, ESSENTIAL] = None
    """Instances by GPU index, written here instead of in a MigLayout."""
    config_name: Annotated[str | None, Judged("GPU723"), Words("entry"), ESSENTIAL] = None
    """The name that the division has on nodes already, beside `instances` or `devices`: as in a MigLayout."""
    strategy: Annotated[MigStrategy, Field(strict=False), ESSENTIAL] = MigStrategy.MIXED
    """`mixed` publishes each profile as its own resource (`nvidia.com/mig-1g.10gb`). `single` publishes all as
    `nvidia.com/gpu` and needs equal instances on every GPU of the node.
    """
    time_slicing: MigTimeSlicing | None = None
    """Divide MIG devices further by time-slicing, all of them or some profiles."""

    _one_source = exactly_one("layout", "instances", "devices", "a MIG layout")


class DynamicMig(Model):
    """MIG partitions that NVIDIA's driver for DRA makes when a pod claims one, and removes when it ends: no layout says
    what a GPU is divided into. Needs `allocation: dra` in all pools and the driver's alpha feature gate `DynamicMIG`.
    """

    profiles: Annotated[
        list[Annotated[str, Field(json_schema_extra={"format": Vocabulary.MIG_PROFILE.value})]],
        Field(min_length=1),
        Judged("GPU494"),
        Words("profiles on demand"),
        ESSENTIAL,
    ]
    """The MIG profiles that pods may claim, such as `1g.10gb`; each is a unit of the pool."""


class Fraction(Model):
    """Pods ask the scheduler for a fraction of a GPU; only KAI-Scheduler and Run:ai know how."""


class Sharing(Model):
    """The way in which the GPUs of a pool are shared; exactly one kind."""

    exclusive: Exclusive | None = None
    """One pod has one whole GPU."""
    time_slicing: TimeSlicing | None = None
    """Pods take turns on a GPU."""
    mps: Annotated[Mps | None, Words("MPS")] = None
    """Pods share a GPU through CUDA MPS."""
    mig: Annotated[Mig | None, Words("MIG")] = None
    """GPUs are partitioned by MIG."""
    dynamic_mig: Annotated[DynamicMig | None, Words("dynamic MIG")] = None
    """GPUs are partitioned by MIG on demand, as pods claim partitions."""
    fraction: Fraction | None = None
    """The scheduler hands out fractions of a GPU."""

    _one_kind = exactly_one("exclusive", "time_slicing", "mps", "mig", "dynamic_mig", "fraction", "a sharing kind")


class Window(Model):
    """A time in which a pool's nodes may be disturbed."""

    schedule: Annotated[str, Judged("GPU162")]
    """When the window opens, as a cron expression of five fields."""
    duration: texts.Duration
    """The time that the window stays open, such as `4h`."""
    time_zone: Annotated[str, Judged("GPU163")] = "UTC"
    """The time zone of the schedule, such as `Europe/Berlin`."""


class Guard(Model):
    """Jobs that Argo CD runs with each sync of a pool's nodes: before, and after it has changed their labels."""

    image: texts.Image
    """The image of both Jobs, with `python3` of Python 3.9 or newer; nothing else is needed."""
    timeout: texts.Duration = "30m"
    """The time that nodes may take to be repartitioned."""


class Disruption(Model):
    """When and how far a change may disturb a pool's nodes."""

    approval: Annotated[Approval, Field(strict=False)] = Approval.MANUAL
    """`manual`: a person starts the sync of a disruptive change."""
    windows: Annotated[list[Window], INDEPENDENT] = Field(default_factory=list)
    """The times in which nodes may be disturbed; none means any time."""
    max_unavailable: Positive = 1
    """The number of nodes that may be disturbed at once."""
    guard: Guard | None = None
    """With Argo CD: do not sync while pods hold GPUs of nodes that would be repartitioned, and wait until they were."""


class Rollout(Model):
    """A pool on its way from one way of sharing to another, some nodes after the others."""

    sharing: Sharing
    """The way in which the GPUs of these nodes are shared; in the end it becomes the pool's `sharing`."""
    nodes: Annotated[list[str], Judged("GPU730")]
    """The names of the nodes that have been moved to it; none while it is only made known."""


class Allocation(StrEnum):
    """The mechanism that hands a pool's devices to pods."""

    DEVICE_PLUGIN = "devicePlugin"
    DRA = "dra"


class Placement(StrEnum):
    """Where a scheduler puts pods first."""

    BINPACK = "binpack"
    SPREAD = "spread"


class Term(StrEnum):
    """The way in which nodes are paid for."""

    ON_DEMAND = "onDemand"
    RESERVED_1_YEAR = "reserved1Year"
    RESERVED_3_YEARS = "reserved3Years"
    SPOT = "spot"
    OWNED = "owned"


class Billing(Model):
    """The facts about a pool's nodes that decide their price."""

    node_type: texts.Line | None = None
    """Their type, by which `Prices` may have a price for them, such as `p4d.24xlarge`. Absent: the value of
    `node.kubernetes.io/instance-type` in `nodes.selector`, where that says one.
    """
    term: Annotated[Term, Field(strict=False)] = Term.ON_DEMAND
    """The way in which they are paid for: `onDemand`, `reserved1Year`, `reserved3Years`, `spot`, or `owned` for nodes
    that are your own, whose price is what depreciation and power come to in an hour. Of a list of prices the one for
    this term holds.
    """


class PoolNames(Model):
    """Names that things of a pool have on the cluster already, where gpuplan would give others."""

    device_plugin_config: Annotated[str | None, Judged("GPU723"), Words("configuration of the device plugin")] = None
    """The key of the pool's file for the device plugin, and the value of the node label
    `nvidia.com/device-plugin.config`, such as `tesla-t4`. Several pools may have one, where their files say the same.
    Where a `Retained` says that the key means something else, the pool has a key of its own. Absent: the pool's name.
    """
    resource_flavor: Annotated[names.ResourceFlavor | None, Words("ResourceFlavor")] = None
    """The pool's ResourceFlavor, with Kueue. Absent: the pool's name."""


class PoolSpec(Model):
    """A set of equal nodes that share their GPUs in one way."""

    gpu: Annotated[GpuModel, Words("GPU model")]
    """The GPU model as `gpuplan catalog` lists it, such as `A100-80GB`, or the name of a `Gpu` document."""
    nodes: Nodes
    """The pool's nodes."""
    sharing: Sharing
    """The way in which the GPUs are shared: exactly one kind."""
    node_labels: Annotated[dict[str, str], Judged("GPU148")] = Field(default_factory=dict)
    """More labels for the pool's nodes."""
    workload_types: list[texts.Line] = Field(default_factory=list)
    """The types of work that the pool is meant for; tenants name them in `workloadTypes`."""
    taints: Annotated[list[Taint], Keyed(("key", "effect")), INDEPENDENT] = Field(default_factory=list)
    """Taints for the pool's nodes."""
    allocation: Annotated[Allocation, Field(strict=False)] = Allocation.DEVICE_PLUGIN
    """`devicePlugin`: pods ask for extended resources such as `nvidia.com/gpu`. `dra`: pods claim devices of a
    DeviceClass, by Dynamic Resource Allocation and NVIDIA's driver for it; Kubernetes 1.34 or newer.
    """
    placement: Annotated[Placement, Field(strict=False)] | None = None
    """`binpack` fills nodes one after the other, `spread` prefers empty ones. Absent: as the scheduler does."""
    topology: list[texts.Line] = Field(default_factory=list)
    """Node labels that say where a node is, widest first, such as a block's and a rack's; the node itself may be last,
    as `kubernetes.io/hostname`. Schedulers that know topology place gangs close together.
    """
    fallback: names.PoolName | None = None
    """The pool that Workloads go to when this one is full, if it hands out what they ask for and their tenant has a
    quota there; after that its own fallback. It must not isolate them less. Pods that are written by hand name the
    pools themselves, by a required node affinity.
    """
    follow_units: Annotated[bool, Words("CPU and memory by units")] = False
    """Whether a quota that says nothing of CPU or memory has as much of the nodes as its units are of them, less the
    reserve; rounded down to thousandths of a CPU and to whole MiB. A unit is the part of a node that its compute slices
    are of those that the node hands out.
    """
    driver: PoolDriver | None = None
    """The driver of the pool's nodes, where it is not the cluster's: then an NVIDIADriver for each such pool says what
    the GPU Operator installs there, from v26.7 on. The first of them on a cluster takes the ClusterPolicy's driver away
    from all nodes.
    """
    memory_per_unit: Annotated[int, Field(ge=1)] | None = Field(default=None, alias="memoryPerUnitMiB")
    """The GPU memory in MiB that one unit must offer to be of use here; replicas that leave less are reported."""
    disruption: Disruption = Disruption.model_construct()
    """When and how far a change may disturb the nodes."""
    rollout: Rollout | None = None
    """Another way of sharing, which some of the nodes have already; `gpuplan rollout` writes its steps."""
    names: Annotated[PoolNames, Words("names on the cluster")] = PoolNames.model_construct()
    """Names that things of the pool have on the cluster already."""
    billing: Billing = Billing.model_construct()
    """The facts about its nodes by which a `Prices` document sets their price."""


# --- Gpu ---------------------------------------------------------------------------------------------------------


class MigListing(Model):
    """The GPU instances of a board, as its driver lists them on a node where MIG is on."""

    lgip: Annotated[texts.Lines, Words("list of profiles")]
    """The output of `nvidia-smi mig -lgip`: the profiles, by id."""
    lgipp: Annotated[texts.Lines, Words("list of placements")]
    """The output of `nvidia-smi mig -lgipp`: the places where the instances of each profile may start."""


class GpuSpec(Model):
    """A GPU model that the catalog lacks: what a node that has one says of it."""

    memory_mib: Annotated[Positive, Words("GPU memory"), ESSENTIAL] = Field(alias="memoryMiB")
    """The memory in MiB, as `nvidia-smi` prints it and the node label `nvidia.com/gpu.memory` has it."""
    compute_capability: Annotated[texts.ComputeCapability, ESSENTIAL]
    """The compute capability in quotes, such as `"8.9"`: the labels `nvidia.com/gpu.compute.major` and `.minor`."""
    products: Annotated[list[texts.ProductLabel], Field(min_length=1), ESSENTIAL]
    """Values of the label `nvidia.com/gpu.product` on nodes with whole GPUs, such as `NVIDIA-GeForce-RTX-4090`."""
    pci: Annotated[list[texts.PciId], Field(min_length=1), Words("PCI ids"), ESSENTIAL]
    """The ids that `lspci -nn -d 10de:` prints in brackets, such as `10de:2684`. Where several boards have one id, the
    subsystem follows, as `lspci -nnv` prints it: `10de:25b6/10de:14a9`.
    """
    mig: Annotated[MigListing | None, Words("MIG"), ESSENTIAL] = None
    """Its GPU instances, for a board that is to be partitioned. Absent: it is used whole, time-sliced, or through MPS.
    """


# --- MigLayout ---------------------------------------------------------------------------------------------------


class MigLayoutSpec(Model):
    """A named division of a GPU model into MIG instances."""

    gpu: Annotated[GpuModel, Words("GPU model")]
    """The GPU model as `gpuplan catalog` lists it, or a `Gpu` document's name; profiles mean nothing without it."""
    instances: Annotated[Instances | None, ESSENTIAL] = None
    """The number of GPU instances of each profile on every GPU."""
    devices: Annotated[list[Devices] | None, ESSENTIAL] = None
    """Instances by GPU index; together they must cover every GPU."""
    config_name: Annotated[str | None, Judged("GPU723"), Words("entry"), ESSENTIAL] = None
    """The name that the division has on nodes already, such as `all-1g.10gb`: that of its entry in the MIG manager's
    file, and the value of the label `nvidia.com/mig.config`. It stands for one division for good, since an entry that
    changes under its name divides all nodes at once. Absent: the layout's name and a hash of what it says.
    """

    _one_source = exactly_one("instances", "devices", "a MIG layout")


# --- PriorityClass -----------------------------------------------------------------------------------------------


class PriorityClassSpec(Model):
    """The urgency of a workload, and whether it may be evicted for another."""

    value: int
    """The priority; higher goes first. At most 1000000000."""
    preemptible: Annotated[bool, ESSENTIAL] = True
    """Whether pods of this class may be evicted for others."""
    preempts: Annotated[bool, ESSENTIAL, AlsoCalled(("preemptionPolicy",))] = True
    """Whether pods of this class may evict others (`preemptionPolicy`)."""
    default: Annotated[bool, ESSENTIAL, AlsoCalled(("globalDefault",))] = False
    """The class of pods that name none (`globalDefault`); at most one."""
    description: texts.Lines = ""
    """The people who should use it, and the work that it is for."""


# --- Tenant ------------------------------------------------------------------------------------------------------


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
    guaranteed: Amount
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

    weight: Amount = 1
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
    """A level of the Pod Security Standards."""

    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"


class Allow(Model):
    """Permissions of a tenant's pods beyond their quotas."""

    pod_security: Annotated[PodSecurity, Field(strict=False)] = PodSecurity.BASELINE
    """The Pod Security level of the tenant's namespaces. `privileged` pods reach every GPU of a node."""
    rdma: Annotated[list[texts.NetworkResource], Words("network resources for RDMA")] = Field(default_factory=list)
    """Network resources that its pods may ask for, such as `rdma/hca_shared_devices_a` or `nvidia.com/hostdev`; other
    tenants then may not. Its pods may also have the capability IPC_LOCK, which InfiniBand and RoCE need and the level
    `baseline` refuses; admission policies hold them to all else of that level.
    """
    units_per_container: Positive | None = None
    """The number of units that one container may ask for."""
    grace_period: texts.Duration | None = None
    """The longest time that its pods with GPUs may ask for to end, in place of the cluster's."""


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

    run: texts.Duration | None = None
    """The time that a workspace may run, such as `12h`."""
    idle: texts.Duration | None = None
    """The time that the GPUs of a workspace that may not be evicted may be idle, such as `1h`."""
    preemptible_idle: texts.Duration | None = None
    """The same of one that may be evicted."""


class TrainingTimes(Model):
    """The time that trainings of Run:ai may take."""

    run: texts.Duration | None = None
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
    its name: one for each user's notebooks, for instance. Whoever makes them labels them; tenants cannot.
    """
    parent: names.TenantName | None = None
    """The tenant that this one is part of."""
    priority_classes: list[names.PriorityClassName] = Field(default_factory=list)
    """The priority classes that its pods may name."""
    workload_types: list[texts.Line] = Field(default_factory=list)
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
    containers: Annotated[Containers, Words("defaults of containers")] = Containers.model_construct()
    """The CPU and memory of containers in its namespaces that state none."""
    time_limits: TimeLimits = TimeLimits.model_construct()
    """The time that its work may run, or hold idle GPUs, before Run:ai ends it. Work that was submitted before a change
    keeps the times that it had. Any scheduler keeps those of a Workload: `deadline`, and a workspace's `idle` and
    `runTime`.
    """
    names: Annotated[TenantNames, Words("names on the cluster")] = TenantNames.model_construct()
    """Names that its queues have on the cluster already."""


# --- Workload ----------------------------------------------------------------------------------------------------

Percentage = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]


class PartOfGpu(Model):
    """A fraction of a GPU: one that may grow while the GPU is idle, or one by memory."""

    min: Percentage | None = None
    """The part of a GPU that the pod always has, such as `0.25`."""
    max: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = None
    """The part that it may use while nobody else does, such as `0.75`. Absent: as much as `min`."""
    memory: texts.Quantity | None = None
    """The GPU memory that the pod has, such as `10Gi`, in place of a part; rounded up to whole MiB."""

    _one_measure = exactly_one("min", "memory", "a fraction")

    @model_validator(mode="after")
    def _memory_alone(self) -> "PartOfGpu":
        """The message is that of `exactly_one`."""
        if self.memory is not None and self.max is not None:
            both = ["max", "memory"]
            raise PydanticCustomError(
                "exactly_one", "exactly one of the fields", {"what": "a fraction", "given": both, "fields": both}
            )
        return self


class SecretKey(Model):
    """A value that a Secret holds in the workload's namespace. Policies name it, and never say it."""

    name: names.Secret
    """The Secret, which somebody else puts there."""
    key: texts.KeyOfData
    """The value's key in it."""


class ConfigMapKey(Model):
    """A value that a ConfigMap holds in the workload's namespace."""

    name: names.ConfigMap
    """The ConfigMap, which somebody else puts there."""
    key: texts.KeyOfData
    """The value's key in it."""


class ValueFrom(Model):
    """A value that stands elsewhere, and that the container has when it starts."""

    secret_key_ref: Annotated[SecretKey | None, Words("secret")] = None
    """In a Secret, such as `{name: hugging-face, key: token}`."""
    config_map_key_ref: Annotated[ConfigMapKey | None, Words("key of a ConfigMap")] = None
    """In a ConfigMap."""

    _one_source = exactly_one("secret_key_ref", "config_map_key_ref", "a value from elsewhere")


Environment = Annotated[dict[str, str | ValueFrom], Words("environment"), Judged("GPU588")]


class Download(Model):
    """A Job that fills the model's volume once."""

    image: texts.Image
    """The image of the Job, with a tag or digest."""
    command: Annotated[list[str], OF_PROGRAM] = Field(default_factory=list)
    """The command that the Job runs; the volume is mounted at `mountPath`."""
    args: Annotated[list[str], Words("arguments"), OF_PROGRAM] = Field(default_factory=list)
    """The command's arguments."""
    env: Environment = Field(default_factory=dict)
    """Environment variables, such as `HF_TOKEN: {secretKeyRef: {name: hugging-face, key: token}}`."""


class ModelVolume(Model):
    """A volume that holds the model, shared by all pods of the workload."""

    size: texts.Line
    """The volume's size, such as `100Gi`."""
    storage_class: names.StorageClass | None = None
    """The StorageClass; absent means the cluster's default."""
    mount_path: texts.Line = "/models"
    """Where pods see it."""
    access_mode: Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"] = "ReadWriteMany"
    """The number of nodes that may mount it; pods on several nodes need `ReadWriteMany` or `ReadOnlyMany`."""
    download: Download | None = None
    """A Job that fills the volume before the pods need it."""


class AutoscalerKind(StrEnum):
    """The kind of object that lets the number of pods follow the load."""

    HORIZONTAL_POD_AUTOSCALER = "HorizontalPodAutoscaler"
    SCALED_OBJECT = "ScaledObject"


class Query(Model):
    """A number that Prometheus knows, and that the number of pods follows."""

    promql: Annotated[texts.Line, Field(min_length=1), Words("query")]
    """The query of Prometheus: one number, such as `sum(rate(requests_total{service="chat"}[2m]))`. A service that may
    have no pods needs one that is there without them.
    """
    per_pod: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """The part of that number that each pod can serve."""
    idle: Annotated[float, Field(ge=0, allow_inf_nan=False), Words("idle up to")] = 0
    """Up to what number the service has nothing to do, and needs no pods (`minReplicas: 0`)."""


class Autoscaling(Model):
    """The number of pods by their load: requests per second, requests that wait, the use of CPU or GPU, or what
    Prometheus says.
    """

    min_replicas: Annotated[int, Field(ge=0, le=1_000_000), Words("fewest pods")] = 1
    """The fewest pods. With 0 the last one goes when there is nothing to do: only by a ScaledObject and a `query`."""
    max_replicas: Annotated[Positive, Words("most pods")]
    """The most pods; all of them must fit into the quota."""
    requests_per_second: Positive | None = None
    """The requests per second that one pod can serve."""
    waiting_requests: Positive | None = None
    """The number of requests that may wait for one pod, the length of its queue."""
    cpu_percent: Annotated[Positive | None, Words("use of CPU")] = None
    """The average percentage of the CPU that pods ask for which they use, such as `70`."""
    gpu_percent: Annotated[int | None, Field(ge=1, le=100), Words("use of GPUs")] = None
    """The average percentage of time in which pods use their GPU, such as `80`: the metric
    `DCGM_FI_PROF_GR_ENGINE_ACTIVE` of each pod.
    """
    query: Query | None = None
    """A query of Prometheus, such as the requests that a gateway counts."""
    metric: texts.Metric | None = None
    """The name of the metric of requests by pod. Absent: `http_requests_per_second` in the cluster's custom metrics
    API, or the counter `http_requests_total` in Prometheus; and `vllm:num_requests_waiting` for those that wait.
    """
    kind: Annotated[AutoscalerKind, Field(strict=False), ESSENTIAL] | None = None
    """A `HorizontalPodAutoscaler`, or KEDA's `ScaledObject`, which asks the cluster's `prometheus` and no adapter.
    Absent: a ScaledObject only where nothing else can do what is asked.
    """
    cooldown: texts.PositiveDuration | None = None
    """The time without load before the last pod is removed, such as `30m`. Absent: five minutes."""

    _one_measure = exactly_one(
        "requests_per_second", "waiting_requests", "cpu_percent", "gpu_percent", "query", "what an autoscaler follows"
    )


class Probe(Model):
    """A test that a container must pass before requests reach it."""

    http: Annotated[texts.HttpPath | None, Words("path of the probe")] = None
    """A GET of this path answers with a status from 200 to 399, such as `/health`."""
    grpc: Annotated[texts.GrpcService | None, Words("service of the probe")] = None
    """The server says by gRPC's health protocol that this service of it is well. For the whole server write
    `probe: grpc`.
    """
    command: Annotated[list[str] | None, OF_PROGRAM, Field(min_length=1)] = None
    """This command in the container ends with 0, such as `[cat, /tmp/ready]`."""
    port: Annotated[str | None, Judged("GPU598")] = None
    """The name of the port among `ports` that is asked. Absent: `port`."""
    timeout: texts.PositiveDuration | None = None
    """The time that the answer may take. Absent: one second."""

    _one_action = exactly_one("http", "grpc", "command", "a probe")


class ServiceType(StrEnum):
    """Where a Service is reached from."""

    CLUSTER_IP = "ClusterIP"
    NODE_PORT = "NodePort"
    LOAD_BALANCER = "LoadBalancer"


class Reach(Model):
    """The Service by which a service is reached."""

    type: Annotated[ServiceType, Field(strict=False)] = ServiceType.CLUSTER_IP
    """From within the cluster, at a port of every node, or at an address of the cloud's load balancer."""
    port: Annotated[int | None, Field(ge=1, le=65535)] = None
    """The port of the Service, such as `80`. Absent: that of the container."""
    node_port: Annotated[int | None, Field(ge=1, le=65535)] = None
    """The port of the nodes, such as `30080`. Absent: Kubernetes chooses one."""


class RouteKind(StrEnum):
    """The kind of object that leads from outside to a service."""

    HTTP_ROUTE = "HTTPRoute"
    INGRESS = "Ingress"


class Route(Model):
    """The way of requests from outside of the cluster to a service."""

    hosts: Annotated[list[texts.HostName], Field(min_length=1, max_length=16)]
    """The hosts that it answers for, such as `chat.example.com` or `*.example.com`."""
    path: texts.RoutePath = "/"
    """The beginning of the paths of its requests, such as `/v1`."""
    port: Annotated[str | None, Judged("GPU564")] = None
    """The name of the port among `ports` that requests come to. Absent: `port`."""
    tls_secret: Annotated[names.Secret | None, Words("TLS secret")] = None
    """The Secret with an Ingress's certificate, in the workload's namespace. A Gateway's certificates are those of its
    listeners.
    """
    grpc: Annotated[bool, Words("gRPC")] = False
    """Whether the server speaks gRPC, which is HTTP/2 without TLS: the Service's port says so to the Gateway."""
    kind: Annotated[RouteKind, Field(strict=False), ESSENTIAL] | None = None
    """An `HTTPRoute` of the cluster's `gateway`, or an `Ingress`. Absent: an Ingress where the cluster has one."""


class Closeness(Model):
    """The distance between the pods of a training or of a replica, by a level of their pool's `topology`."""

    required: Annotated[texts.Line | None, Judged("GPU593")] = None
    """The level within which all pods are, such as `example.com/rack`, or they do not start."""
    preferred: Annotated[texts.Line | None, Judged("GPU593")] = None
    """The level within which all pods are if it can be had."""

    _one_level = exactly_one("required", "preferred", "a level")


class Worker(Model):
    """The program of the pods of a replica that no request reaches: all but its first, the leader."""

    command: Annotated[list[str], OF_PROGRAM] = Field(default_factory=list)
    """The command that they run in place of the image's own entry point."""
    args: Annotated[list[str], Words("arguments"), OF_PROGRAM] = Field(default_factory=list)
    """The arguments."""


class ServingKind(StrEnum):
    """The kind of object that runs a service."""

    DEPLOYMENT = "Deployment"
    INFERENCE_SERVICE = "InferenceService"


class Canary(Model):
    """A few pods that run something else, and get a part of a service's requests by its HTTPRoute.

    What it leaves out is as in the workload.
    """

    weight: Annotated[int, Field(ge=0, le=100)]
    """The number of requests among a hundred that it gets, such as `10`."""
    replicas: Annotated[Positive, Words("pods of the canary")] = 1
    """The number of its pods, beside those of the service."""
    image: texts.Image | None = None
    """The image to try, with a tag or digest."""
    command: Annotated[list[str] | None, OF_PROGRAM] = None
    """The command that its container runs."""
    args: Annotated[list[str] | None, Words("arguments"), OF_PROGRAM] = None
    """The arguments."""
    env: Environment = Field(default_factory=dict)
    """Environment variables that have other values, or that the service's own pods do not have."""


class Inference(Model):
    """A service that runs all the time: a Deployment and a Service, or a LeaderWorkerSet in place of the Deployment."""

    kind: Annotated[ServingKind, Field(strict=False), ESSENTIAL] = ServingKind.DEPLOYMENT
    """The object that makes its pods. `InferenceService`: KServe makes the Deployment, in its mode without Knative, and
    what leads to the pods stays as it is. It takes KServe v0.14, v0.15.1 or newer: others set a service to one pod when
    it changes, or hold it at `minReplicas`. The cluster's `apis` say that it has KServe.
    """
    replicas: Annotated[Positive, Words("pods")] = 1
    """The number of pods, or with `podsPerReplica` of groups of pods; with `autoscaling` the load decides."""
    pods_per_replica: Annotated[Positive, Words("pods of each replica")] = 1
    """The number of pods that serve together a model that one node cannot hold: a leader, which requests reach, and
    workers. A LeaderWorkerSet makes them, which the cluster must have (`apis`). Each finds the leader in
    `LWS_LEADER_ADDRESS`, how many they are in `LWS_GROUP_SIZE` and which one it is in `LWS_WORKER_INDEX`, where 0 is
    the leader. It takes LeaderWorkerSet v0.6.0 or newer.
    """
    worker: Worker | None = None
    """The program of the workers of a replica. Absent, they run what the leader does."""
    topology: Annotated[Closeness | None, ESSENTIAL] = None
    """The distance between the pods of a replica, in a pool with a `topology`. Absent: they prefer the narrowest level.
    """
    port: Annotated[int, Field(ge=1, le=65535)] | Literal["none"] = 8000
    """The port that the container listens on. With `none` it has no Service, and its pods are ready when they run."""
    ports: Annotated[dict[str, Annotated[int, Field(ge=1, le=65535)]], Judged("GPU598")] = Field(default_factory=dict)
    """Further ports by name, such as `{grpc: 8001, metrics: 8002}`; the Service has them too."""
    probe: Probe | Literal["tcp", "grpc", "none"] | None = None
    """The test before requests reach a pod: `tcp` whether it listens, `grpc` whether it is well, `none` nothing;
    `{http: /health}` and others below. Absent: `tcp`.
    """
    startup: Annotated[texts.PositiveDuration | None, Words("time to start")] = None
    """The time that a container may take until its probe is answered for the first time, such as `15m`; then it is
    started again. Absent, it may take any time.
    """
    liveness: Probe | Literal["tcp", "grpc", "none"] = "none"
    """The test of a container that runs: three times without an answer, and it is started again, which loads the model
    once more. It is written as `probe` is. Absent, nothing is asked: a server with much to do answers late.
    """
    service: Reach = Reach.model_construct()
    """The Service by which it is reached."""
    route: Annotated[Route | None, ESSENTIAL] = None
    """The way of requests from outside of the cluster, by the cluster's `gateway` or `ingress`."""
    canary: Annotated[Canary | None, ESSENTIAL] = None
    """Let a few pods run something else and get a part of the requests that come by its `route`: a Deployment and a
    Service called `<name>-canary`. To promote it, write what it runs into the workload and leave it out.
    """
    autoscaling: Autoscaling | None = None
    """Let the number of pods follow the load."""


class Peers(Model):
    """Where the pods of a training meet, as torchrun and other programs of PyTorch read it."""

    port: Annotated[int, Field(ge=1, le=65535)] = 29500
    """The port on which the first pod waits for the others."""


class Elastic(Model):
    """A training that goes on with fewer pods than it has at most."""

    min_pods: Annotated[Positive, Words("fewest pods")]
    """With how many pods it starts and goes on."""


class Checkpoint(Model):
    """A volume in which a training keeps how far it has come; it stays when the training becomes another one."""

    size: texts.Line
    """The volume's size, such as `500Gi`."""
    storage_class: names.StorageClass | None = None
    """The StorageClass; absent means the cluster's default."""
    mount_path: texts.Line = "/checkpoints"
    """Where pods see it. What they write there is there for those of the next try, and of the next training."""
    access_mode: Literal["ReadWriteOnce", "ReadWriteMany"] = "ReadWriteMany"
    """The number of nodes that may mount it; pods on several nodes need `ReadWriteMany`."""


class TrainingKind(StrEnum):
    """The kind of object that runs a training."""

    JOB = "Job"
    JOB_SET = "JobSet"
    TRAIN_JOB = "TrainJob"


class Batch(Model):
    """Work that ends: a Job, whose pods need nothing of one another."""

    pods: Positive = 1
    """The number of pods that run at once, each once to its end."""
    trials: Positive | None = None
    """The number of pods in all, `pods` of them at once, as for a search of hyperparameters: each finds its number,
    from 0 on, in `JOB_COMPLETION_INDEX`. Absent, it is `pods`.
    """
    backoff_limit: Annotated[int, Field(ge=0, le=1_000_000)] = 3
    """The number of times that failed pods are tried again, all together. With `backoffLimitPerIndex` no number is the
    default.
    """
    backoff_limit_per_index: Annotated[int | None, Field(ge=0, le=1_000_000), Words("tries of each pod")] = None
    """The number of times that each pod is tried again, so that one that fails takes no tries from the others."""
    max_failed_indexes: Annotated[int | None, Field(ge=0, le=100_000), Words("failed pods that it goes on with")] = None
    """The number of pods that may have used up `backoffLimitPerIndex` before the job has failed and the others end.
    Absent, all of them; with `peers` none, since the others would wait for it.
    """
    fatal_exit_codes: Annotated[list[Annotated[int, Field(ge=1, le=255)]], INDEPENDENT] = Field(default_factory=list)
    """Exit codes after which nothing is tried again: the job has failed, or of a job with `trials` and
    `backoffLimitPerIndex` that trial.
    """
    deadline: texts.PositiveDuration | None = None
    """The time that the job may take, all tries included, such as `12h`: then its pods are ended and it has failed.
    Absent, it may take any time.
    """

    @property
    def completions(self) -> int:
        """Return the number of pods in all."""
        return self.trials or self.pods


class PodPatch(Model):
    """A patch of the template of a workload's pods, as `kubectl patch` applies it."""

    metadata: Annotated[dict[str, Any], Judged("GPU440")] = Field(default_factory=dict)
    """Labels and annotations of the pods."""
    spec: Annotated[dict[str, Any], Judged("GPU440")] = Field(default_factory=dict)
    """The pods themselves, such as `{serviceAccountName: reader}`. Containers, volumes, variables and mounts are merged
    by name or path, other lists are replaced, and `null` removes a field.
    """


class Training(Batch):
    """Work that ends, and whose pods may work together."""

    kind: Annotated[TrainingKind, Field(strict=False), ESSENTIAL] = TrainingKind.JOB
    """The object that it is. `Job`: each pod is tried again by itself. `JobSet`: when one has failed, all start again
    together, `backoffLimit` times, and each time has the whole `deadline`. `TrainJob` of Kubeflow Trainer, with a
    TrainingRuntime of its own: the same, by Trainer. The cluster's `apis` say that it has the last two. Kueue v0.17 and
    newer start TrainJobs of Trainer v2.2 and newer alone, v0.14.5 to v0.16 those of v2.1.
    """
    gang: Positive | None = None
    """The number of pods that must be able to start together; fewer do not start at all."""
    topology: Annotated[Closeness | None, ESSENTIAL] = None
    """The distance between its pods, in a pool with a `topology`. Absent: a gang prefers the narrowest level."""
    peers: Peers | None = None
    """Let its pods find one another: a headless Service gives each a name, and variables say where the first one is,
    how many there are, and which of them a pod is. `{}` is enough. Absent, pods have no names.
    """
    elastic: Elastic | None = None
    """Let it start with fewer pods than `pods`, and go on when some leave or come, as torchrun does. It needs `peers`.
    `minPods` of them are its gang, and it has succeeded when the first one has. Absent, it needs all of them.
    """
    checkpoint: Checkpoint | None = None
    """A volume in which it keeps how far it has come, such as `{size: 500Gi}`."""


class Storage(Model):
    """A volume that outlives what runs in a workspace."""

    size: texts.Line
    """The volume's size, such as `50Gi`."""
    storage_class: names.StorageClass | None = None
    """The StorageClass; absent means the cluster's default."""
    mount_path: texts.Line = "/work"
    """Where the program sees it."""
    access_mode: Literal["ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"] = "ReadWriteOnce"
    """The number of nodes or pods that may mount it; the workspace itself has one pod."""
    group: Annotated[int | None, Field(ge=1, le=2**31 - 1)] = None
    """The number of the group that may write to it, such as `100` for Jupyter's own images, which do not run as root.
    Absent: as the storage makes it, or as OpenShift has it for the namespace.
    """


class Workspace(Model):
    """Work in which a person sits, such as a Jupyter server: a Job of one pod, and a Service."""

    port: Annotated[int, Field(ge=1, le=65535)] = 8888
    """The port that the program listens on."""
    idle: texts.PositiveDuration | None = None
    """The time that Jupyter Server (JupyterLab 3, Notebook 7 or newer) may be idle, such as `2h`: then it ends its
    kernels and itself. A terminal is idle when nothing is typed or written there, whatever runs in it. Other programs
    do not read it. Absent, it may be idle for any time.
    """
    run_time: texts.PositiveDuration | None = None
    """The time that it may run, such as `12h`: then it is ended, whatever it does. Absent, for any time."""
    storage: Storage | None = None
    """A volume of its own, which stays when the program ends."""


KINDS_OF_WORK = ("inference", "training", "batch", "workspace")
"""The fields of a workload of which one says what it is."""


class WorkloadSpec(Model):
    """A team's work of one kind, and the units that its pods ask for."""

    tenant: names.TenantName
    """The team whose quota it uses."""
    namespace: Annotated[names.NamespaceOfTenant | None, ESSENTIAL] = None
    """Where it runs; not needed where the tenant has one namespace."""
    inference: Annotated[Inference | None, ESSENTIAL] = None
    """A service that runs all the time."""
    training: Annotated[Training | None, ESSENTIAL] = None
    """A job that ends, and whose pods may work together."""
    batch: Annotated[Batch | None, ESSENTIAL] = None
    """A job that ends, and whose pods need nothing of one another."""
    workspace: Annotated[Workspace | None, ESSENTIAL] = None
    """A program in which a person works, such as a Jupyter server."""
    pool: names.PoolName
    """The pool that it runs on."""
    unit: Annotated[UnitName | None, ESSENTIAL] = None
    """The unit that each pod asks for; not needed where the pool hands out one."""
    count: Annotated[Positive, Words("units of each pod"), ESSENTIAL] = 1
    """The number of units that each pod asks for."""
    fraction: Annotated[Percentage | PartOfGpu | None, ESSENTIAL] = None
    """The part of a GPU that each pod asks for, on a pool of fractions: a number such as `0.33`, a range, or GPU memory
    as `{memory: 10Gi}`.
    """
    priority_class: Annotated[names.PriorityClassName | None, ESSENTIAL] = None
    """The priority class of its pods; not needed where the tenant may name one."""
    image: texts.Image
    """The container's image, with a tag or digest."""
    image_pull_secrets: list[names.Secret] = Field(default_factory=list)
    """The Secrets in its namespace that its images are pulled with, that of the download included."""
    command: Annotated[list[str], OF_PROGRAM] = Field(default_factory=list)
    """The command that the container runs in place of the image's own entry point."""
    args: Annotated[list[str], Words("arguments"), OF_PROGRAM] = Field(default_factory=list)
    """The arguments."""
    env: Environment = Field(default_factory=dict)
    """Environment variables: values, or where a value stands, as
    `{secretKeyRef: {name: api, key: token}}` or `{configMapKeyRef: {name: model, key: id}}`.
    """
    config: Annotated[dict[str, str], Words("configuration"), Judged("GPU587")] = Field(default_factory=dict)
    """Files for the container, by name, mounted at `/etc/workload` from a ConfigMap."""
    cpu: Annotated[texts.Line | None, Words("CPU")] = None
    """The CPU that each pod asks for, such as `4`."""
    memory: texts.Line | None = None
    """The memory that each pod asks for, such as `32Gi`."""
    model: ModelVolume | None = None
    """A volume that holds the model."""
    pod_patch: Annotated[PodPatch | None, Words("patch of its pods")] = None
    """A strategic merge patch of its pods: further containers, volumes, a service account, security contexts. It cannot
    change what other fields say.
    """

    _one_kind = exactly_one(*KINDS_OF_WORK, "a workload")


# --- Retained ----------------------------------------------------------------------------------------------------


class RetainedLayout(Model):
    """An entry of the MIG manager's file as it was, which nodes may still name."""

    config_name: Annotated[str, Judged("GPU723"), Words("entry")]
    """The entry's name as nodes have it in the label `nvidia.com/mig.config`: a layout's name and a hash of what it
    says; or any name that was in the file before gpuplan wrote it, such as `all-1g.10gb`.
    """
    gpu: Annotated[GpuModel, Words("GPU model")]
    """The GPU model as `gpuplan catalog` lists it."""
    instances: Instances | None = None
    """The number of GPU instances of each profile that every GPU had."""
    devices: list[Devices] | None = None
    """Instances by GPU index."""
    gpus_per_node: Annotated[GpusPerNode | None, Words("GPUs per node")] = None
    """The number of GPUs in the nodes, where `devices` does not name all of them: the others stayed whole."""

    _one_source = exactly_one("instances", "devices", "a MIG layout")


class PluginFlags(Model):
    """The names that the device plugin gives its resources."""

    mig_strategy: Annotated[MigStrategy, Field(strict=False), Words("MIG strategy")]
    """The names that it gives MIG devices."""


class PluginResource(Model):
    """A resource that the device plugin divides."""

    name: Annotated[str, Judged("GPU724")]
    """The resource, such as `nvidia.com/gpu`, by the name that it has before it is renamed."""
    replicas: Annotated[int, Words("shares")]
    """Into how many shares each device is divided; at least 2."""


class PluginTimeSlicing(Model):
    """Shares that take turns, as the device plugin reads them."""

    rename_by_default: bool = False
    """Whether the shares are published as `<resource>.shared`."""
    fail_requests_greater_than_one: bool = False
    """Whether containers that ask for several shares are refused."""
    resources: list[PluginResource]
    """The resources that are divided."""


class PluginMps(Model):
    """Shares under CUDA MPS, as the device plugin reads them."""

    rename_by_default: bool = False
    """Whether the shares are published as `<resource>.shared`."""
    resources: list[PluginResource]
    """The resources that are divided."""


class PluginSharing(Model):
    """The way in which the device plugin divides devices; exactly one kind."""

    time_slicing: PluginTimeSlicing | None = None
    """Shares that take turns."""
    mps: Annotated[PluginMps | None, Words("MPS")] = None
    """Shares under CUDA MPS."""

    _one_kind = exactly_one("time_slicing", "mps", "a sharing kind")


class PluginConfig(Model):
    """The content of a file of the device plugin, as far as gpuplan writes such files."""

    version: Literal["v1"]
    """Always `v1`."""
    flags: PluginFlags | None = None
    """The names that it gives its resources."""
    sharing: PluginSharing | None = None
    """The way in which it divides devices; absent where it does not."""


class RetainedDevicePluginConfig(Model):
    """A file of the device plugin as it was, which nodes may still name."""

    key: Annotated[str, Judged("GPU723")]
    """The file's key as nodes have it in the label `nvidia.com/device-plugin.config`."""
    config: Annotated[PluginConfig, Words("configuration")]
    """The content of the file, as the device plugin reads it."""


class RetainedObject(Model):
    """A Kubernetes object as it was, or taken out of use."""

    folder: Annotated[str | None, Judged("GPU726")] = None
    """The folder of the cluster's output that it is applied with, such as `queues/a100-mixed`. Absent: that of its
    namespace for an object in a tenant's namespace, else `scheduling`.
    """
    manifest: Annotated[dict[str, Any], Judged("GPU725")]
    """The object, such as a ClusterQueue with `stopPolicy: Hold`."""


class RetainedNodes(Model):
    """Nodes that a pool has let go: they keep the labels of its rule, until the rule of another pool says more."""

    pool: Annotated[str, names.POOL]
    """The pool that had the nodes; what they keep is applied with its folder."""
    names: Annotated[list[str] | None, ESSENTIAL, Judged("GPU147"), Field(min_length=1)] = None
    """The nodes' names, where they were fixed."""
    name_pattern: Annotated[str | None, ESSENTIAL, Judged("GPU141")] = None
    """The regular expression (RE2) that the whole node name matched."""
    except_names: Annotated[list[str], Judged("GPU147")] = Field(default_factory=list)
    """Names that the pattern matches and that are not meant."""
    labels: Annotated[dict[str, str], Judged("GPU148")]
    """The labels that the pool's rule gave its nodes. Its taints are not kept."""

    _one_choice = exactly_one("names", "name_pattern", "which nodes are meant")


class RetainedSpec(Model):
    """A thing that no policy defines any more, but that nodes or controllers still need; exactly one."""

    mig_layout: Annotated[RetainedLayout | None, Words("MIG layout"), ESSENTIAL] = None
    """An entry of the MIG manager's file."""
    device_plugin_config: Annotated[
        RetainedDevicePluginConfig | None, ESSENTIAL, Words("configuration of the device plugin")
    ] = None
    """A file of the device plugin."""
    nodes: Annotated[RetainedNodes | None, ESSENTIAL] = None
    """Nodes that a pool has let go, with what they keep."""
    object: Annotated[RetainedObject | None, ESSENTIAL] = None
    """A Kubernetes object."""
    until: texts.Lines = Field(min_length=1)
    """When this document may be deleted, as a command to type and what it must print."""

    _one_thing = exactly_one("mig_layout", "device_plugin_config", "nodes", "object", "what is retained")


# --- Prices ------------------------------------------------------------------------------------------------------


class Terms(Model):
    """Prices by how nodes are paid for. One for a pool's own `billing.term` comes before `any`."""

    any: Annotated[texts.Price | None, Words("price of any term")] = None
    """The price for every term that has none of its own; a single number in place of this mapping says the same."""
    on_demand: texts.Price | None = None
    """The price of nodes that are paid by the hour."""
    reserved_1_year: Annotated[texts.Price | None, Words("price when reserved for a year")] = None
    """The price of nodes that are reserved for a year."""
    reserved_3_years: Annotated[texts.Price | None, Words("price when reserved for three years")] = None
    """The price of nodes that are reserved for three years."""
    spot: Annotated[texts.Price | None, Words("spot price")] = None
    """The price of nodes that may be taken away at any time: the one that you count with."""
    owned: Annotated[texts.Price | None, Words("price of nodes of your own")] = None
    """The price of nodes of your own: their depreciation and power in an hour, a number of yours."""


class Rate(Model):
    """The price of nodes for an hour: by GPU or by node."""

    per_gpu_hour: Annotated[texts.Price | Terms | None, Words("price per GPU and hour"), ESSENTIAL] = None
    """The price of one GPU of a node for an hour, the rest of the node included, such as `2.50`; or prices by term."""
    per_node_hour: Annotated[texts.Price | Terms | None, Words("price per node and hour"), ESSENTIAL] = None
    """The price of a whole node for an hour, such as `20.00`; or prices by term."""

    _one_rate = exactly_one("per_gpu_hour", "per_node_hour", "a price")


class PricesSpec(Model):
    """The prices of nodes with GPUs; at most one such document for a cluster. All numbers are yours: gpuplan has none.

    The most specific price holds for a pool: the one under its own name, else the one for its node type, else the one
    for its GPU model. What says nothing of the pool's term is passed over.
    """

    currency: texts.Currency
    """The currency of all prices, by the three letters of ISO 4217, such as `EUR`."""
    gpus: Annotated[dict[str, Rate], Words("GPU models"), Judged("GPU102")] = Field(default_factory=dict)
    """Prices by GPU model, as pools name it: they hold where neither the pool nor its node type has one."""
    node_types: Annotated[dict[str, Rate], AnyText("whoever sells nodes names their types")] = Field(
        default_factory=dict
    )
    """Prices by node type, such as `p4d.24xlarge`: for pools that have it in `billing.nodeType`, or choose nodes by it
    with `node.kubernetes.io/instance-type` in `nodes.selector`. They come before those of the model.
    """
    pools: Annotated[dict[str, Rate], Judged("GPU101")] = Field(default_factory=dict)
    """Prices by pool: they come before all others."""


# --- Documents ---------------------------------------------------------------------------------------------------


class Document(Model):
    """A document in a file of policies, which may hold several."""

    api_version: Annotated[Literal["gpuplan.dev/v1"], Words("apiVersion")]
    """Always `gpuplan.dev/v1`."""


class Cluster(Document):
    """A cluster: its versions, who installs the GPU Operator, who labels nodes, which scheduler divides the GPUs."""

    kind: Literal["Cluster"]
    """Always `Cluster`."""
    metadata: Annotated[Metadata, names.Titled(names.CLUSTER)]
    """The cluster's name; its overlay folder has the same."""
    spec: ClusterSpec
    """The cluster."""


class Pool(Document):
    """A set of equal nodes that share their GPUs in one way."""

    kind: Literal["Pool"]
    """Always `Pool`."""
    metadata: Annotated[Metadata, names.Titled(names.POOL)]
    """The pool's name; nodes carry it as the label `gpuplan.dev/pool`."""
    spec: PoolSpec
    """The pool."""


class Gpu(Document):
    """A GPU model that the catalog lacks, as its board, its driver and its node describe it."""

    kind: Literal["Gpu"]
    """Always `Gpu`."""
    metadata: Annotated[Metadata, names.Titled(names.GPU)]
    """The model's name, which pools and layouts give as `gpu`."""
    spec: GpuSpec
    """The model."""


class MigLayout(Document):
    """A named division of a GPU model into MIG instances, which pools refer to."""

    kind: Literal["MigLayout"]
    """Always `MigLayout`."""
    metadata: Annotated[Metadata, names.Titled(names.LAYOUT)]
    """The layout's name."""
    spec: MigLayoutSpec
    """The layout."""


class PriorityClass(Document):
    """The urgency of a workload, and whether it may be evicted for another."""

    kind: Literal["PriorityClass"]
    """Always `PriorityClass`."""
    metadata: Annotated[Metadata, names.Titled(names.PRIORITY_CLASS)]
    """The class's name, which pods give as `priorityClassName`."""
    spec: PriorityClassSpec
    """The class."""


class Tenant(Document):
    """A team: its namespaces, members, priority classes and quotas."""

    kind: Literal["Tenant"]
    """Always `Tenant`."""
    metadata: Annotated[Metadata, names.Titled(names.TENANT)]
    """The tenant's name."""
    spec: TenantSpec
    """The tenant."""


class Workload(Document):
    """A team's work: a service, a training, another job that ends, or a workspace."""

    kind: Literal["Workload"]
    """Always `Workload`."""
    metadata: Annotated[Metadata, names.Titled(names.WORKLOAD)]
    """The workload's name, which its objects have too."""
    spec: WorkloadSpec
    """The workload."""


class Retained(Document):
    """A thing that must be kept after a change of the policies, until nothing in the cluster names it any more."""

    kind: Literal["Retained"]
    """Always `Retained`."""
    metadata: Annotated[Metadata, names.Titled(names.RETAINED)]
    """The document's name, which nothing refers to."""
    spec: RetainedSpec
    """The thing that is retained, and until when."""


class Prices(Document):
    """The prices of nodes with GPUs, by which the costs of pools, units, tenants and workloads are counted."""

    kind: Literal["Prices"]
    """Always `Prices`."""
    metadata: Annotated[Metadata, names.Titled(names.PRICES)]
    """The document's name, which nothing refers to."""
    spec: PricesSpec
    """The prices."""


Policy = Cluster | Pool | Gpu | MigLayout | PriorityClass | Tenant | Workload | Retained | Prices

KINDS: dict[str, type[Policy]] = {kind.__name__: kind for kind in get_args(Policy)}


def parts_of_language(model: type[Model] = Model) -> tuple[type[Model], ...]:
    """Every model of the language, those that others are made of first."""
    return tuple(part for child in model.__subclasses__() for part in (child, *parts_of_language(child)))
