"""The fields of a Workload."""

# No `from __future__ import annotations` here: pydantic would have to compile and evaluate each annotation again.

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from gpuplan.compiler.policy import names, texts
from gpuplan.compiler.policy.marks import ESSENTIAL, INDEPENDENT, MAIN, Judged, Words
from gpuplan.compiler.policy.models.shared import OF_PROGRAM, Model, Positive, UnitName, exactly_one

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

    http: Annotated[texts.HttpPath | None, Words("path of the probe"), MAIN] = None
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
    port: Annotated[int | None, Field(ge=1, le=65535), MAIN] = None
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
    """The hosts that it answers for."""
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

    command: Annotated[list[str], OF_PROGRAM, MAIN] = Field(default_factory=list)
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
    Services and routes stay as they are. It needs KServe v0.14, v0.15.1 or newer: other releases reduce a changed
    service to one pod, or hold it at `minReplicas`. The cluster's `apis` must name KServe.
    """
    replicas: Annotated[Positive, Words("pods"), MAIN] = 1
    """The number of replicas; each has `podsPerReplica` pods. With `autoscaling` the load decides."""
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

    port: Annotated[int, Field(ge=1, le=65535), MAIN] = 29500
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
    """The path in pods. Files there stay for the pods of the next try, and of the next training."""
    access_mode: Literal["ReadWriteOnce", "ReadWriteMany"] = "ReadWriteMany"
    """The number of nodes that may mount it; pods on several nodes need `ReadWriteMany`."""


class TrainingKind(StrEnum):
    """The kind of object that runs a training."""

    JOB = "Job"
    JOB_SET = "JobSet"
    TRAIN_JOB = "TrainJob"


class Batch(Model):
    """Work that ends: a Job, whose pods need nothing of one another."""

    pods: Annotated[Positive, MAIN] = 1
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
    """The number of retries of each pod; a failing pod does not use up the retries of other pods."""
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
    """Let its pods find one another: a headless Service names each pod, and variables give the address of the first
    pod, the number of pods, and the pod's own number. `{}` is enough. Absent, pods have no names.
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

    port: Annotated[int, Field(ge=1, le=65535), MAIN] = 8888
    """The port that the program listens on."""
    idle: texts.PositiveDuration | None = None
    """The time that Jupyter Server (JupyterLab 3, Notebook 7 or newer) may be idle, such as `2h`: then it ends its
    kernels and itself. A terminal is idle when nothing is typed or written there, whatever runs in it. Other programs
    do not read it. Absent, it may be idle for any time.
    """
    run_time: texts.PositiveDuration | None = None
    """The longest run time, such as `12h`, after which the workspace ends even if it is busy. Absent, for any time."""
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
