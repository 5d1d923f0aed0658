"""The fields of a Cluster."""

# No `from __future__ import annotations` here: pydantic would have to compile and evaluate each annotation again.

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from gpuplan.compiler.policy import names, texts
from gpuplan.compiler.policy.marks import ESSENTIAL, MAIN, Judged, Words
from gpuplan.compiler.policy.models.shared import NVIDIA_CHARTS, Enforcement, Model, exactly_one


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
    "The object that limits a tenant. `limit` and `guaranteed`: a ResourceQuota in each namespace, at that number "
    "of its quotas. `queue`: the scheduler's queues, where work beyond the limit waits. ResourceQuotas then refuse "
    "only resources that are not granted, and limit a `split` and, with Kueue, claimed devices. Default "
    "`queue` with `kind: kueue` and `kind: kai` from Kubernetes 1.30 on, else `limit`."
)


class Driver(Model):
    """The NVIDIA driver as the GPU Operator manages it."""

    enabled: bool = True
    """Whether the operator installs the driver; `false` where the node image has it."""
    version: Annotated[texts.DriverVersion | None, MAIN] = None
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

    version: Annotated[texts.DriverVersion | None, ESSENTIAL, MAIN] = None
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
    channel: Annotated[texts.Line | None, MAIN] = None
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
    default_device_plugin_config: Annotated[
        str | None, Judged("GPU723"), Words("default configuration of the device plugin")
    ] = None
    """The key in the device plugin's ConfigMap for nodes without the label `nvidia.com/device-plugin.config`, such as
    `any`. A pool keeps the key (`names.devicePluginConfig`), or a `Retained` defines it. Absent: such a node publishes
    whole GPUs.
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

    cluster_id: Annotated[texts.Line | None, Words("cluster id"), MAIN] = None
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
    name: Annotated[texts.Line | None, MAIN] = None
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
    name: Annotated[names.FluxSourceName, MAIN] = "flux-system"
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

    enforcement: Annotated[Enforcement, Field(strict=False)] = Enforcement.DENY
    """`deny`: the API server refuses requests of tenants that break a rule. `warn`: it accepts them, warns whoever
    sends them, and writes the rule into its audit log; levels of Pod Security warn, too. It is for clusters with work
    that no rule has judged yet. A Tenant may have its own.
    """
    grace_period: Annotated[texts.Duration | Literal["none"], MAIN] = "30s"
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
    driver_version: Annotated[texts.DraDriverVersion | None, Words("version of the DRA driver"), MAIN] = None
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

    name: Annotated[names.Gateway, MAIN]
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
