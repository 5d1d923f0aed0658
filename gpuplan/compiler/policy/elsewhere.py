"""Help for fields of other programs: the way in which policies say them, and the page about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpuplan.compiler.base.values import NamedTuple

PATCH: Final = "docs/how-to/patch-what-gpuplan-writes.md"
WORKLOAD: Final = "docs/how-to/configure-a-workload.md"


class Said(NamedTuple):
    """A way to say something: words that follow "say it", and the page that has more."""

    how: str
    page: str


_BY_PATCH: Final = Said("by a patch of what is written, in a kustomize Component", PATCH)
_BY_POD_PATCH: Final = Said("in `podPatch`, such as `{spec: {serviceAccountName: reader}}`", WORKLOAD)
_BY_KIND: Final = Said("by the kind of work: a `training` ends, an `inference` service goes on", WORKLOAD)
_BY_CLUSTER: Final = Said("by `scheduler.kind` of the Cluster", "docs/schedulers.md")
_BY_REACH: Final = Said("in `inference.service`, such as `{type: NodePort, nodePort: 30080}`", WORKLOAD)
_BY_PROBE: Final = Said("in `inference`, by `probe`, `startup` and `liveness`", WORKLOAD)
_BY_ROUTE: Final = Said("in `inference.route`, such as `{hosts: [chat.example.com]}`", WORKLOAD)
_BY_CANARY: Final = Said("in `inference.canary`, such as `{weight: 10, image: <image>}`", WORKLOAD)
_BY_LOAD: Final = Said(
    "in `autoscaling`, by `requestsPerSecond`, `waitingRequests`, `cpuPercent`, `gpuPercent` or `query`", WORKLOAD
)
_BY_ENV: Final = Said("in `env`, such as `TOKEN: {secretKeyRef: {name: api, key: token}}`", WORKLOAD)
_BY_UNITS: Final = Said("by `cpu`, `memory`, and the units of its pool", "docs/how-to/run-a-workload.md")
_BY_TRAINING: Final = Said(
    "in `training`, by `kind`, `pods`, `trials`, `gang`, `peers`, `elastic`, `topology` or `deadline`", WORKLOAD
)
_BY_BATCH: Final = Said("by `batch`, such as `{pods: 2, deadline: 1h}`", WORKLOAD)
_BY_CHECKPOINT: Final = Said("in `training`, by `checkpoint`, such as `{size: 500Gi}`", WORKLOAD)
_BY_FRACTION: Final = Said("by `fraction`, such as `{memory: 10Gi}`", WORKLOAD)
_BY_WORKSPACE: Final = Said(
    "by `workspace`, such as `{port: 8888, idle: 2h, runTime: 12h}`", "docs/how-to/run-a-notebook.md"
)
_BY_NODES: Final = Said("by `nodes`: names, a pattern, labels or the board", "docs/how-to/add-a-pool.md")
_BY_POOL: Final = Said("by the pool: its nodes, labels and taints follow it", "docs/how-to/add-a-pool.md")
_BY_VALUES: Final = Said("in `gpuOperator.values`, as the chart has it", "docs/how-to/adopt-an-existing-cluster.md")
_BY_MEMBERS: Final = Said("by `members`", "docs/how-to/add-a-tenant.md")
_BY_QUOTA: Final = Said("by `cpu`, `memory` and `pods` of a quota", "docs/how-to/give-cpu-and-memory.md")
_BY_LABEL: Final = Said("by `labelledNamespaces` and the label `gpuplan.dev/tenant`", "docs/how-to/add-a-tenant.md")
_BY_CLASSES: Final = Said("by `classLimits` of a quota", "docs/how-to/add-a-tenant.md")
_BY_CONTAINERS: Final = Said("by `containers`", "docs/how-to/give-cpu-and-memory.md")

# A name stands for what Kubernetes, a chart of NVIDIA's or a guide calls so, anywhere in a document of the kind.
_FIELDS: Final[Mapping[str, Mapping[Said, str]]] = {
    "Workload": {
        _BY_POD_PATCH: """
            affinity annotations automountServiceAccountToken containers dnsConfig dnsPolicy emptyDir envFrom
            ephemeralVolume fsGroup hostAliases hostIPC hostNetwork hostPID imagePullPolicy initContainers labels
            lifecycle nodeAffinity persistentVolumeClaim podAffinity podAntiAffinity podPatches podSpec
            podTemplate runAsUser runtimeClassName securityContext serviceAccount serviceAccountName
            shareProcessNamespace shm shmSize sidecar sidecars template terminationGracePeriodSeconds tolerations
            topologySpreadConstraints volumeMounts volumes
            """,
        _BY_PATCH: "strategy ttlSecondsAfterFinished updateStrategy",
        _BY_KIND: "restartPolicy",
        _BY_CLUSTER: "schedulerName",
        _BY_REACH: "nodePort serviceType type",
        _BY_PROBE: "healthCheck httpGet livenessProbe readinessProbe startupProbe",
        _BY_ROUTE: "domain gateway host hostname hostnames httpRoute ingress ingressClassName parentRefs tls url",
        _BY_CANARY: "blueGreen rollout traffic trafficPercent trafficSplit",
        _BY_LOAD: """
            averageUtilization hpa keda maxReplicaCount metrics minReplicaCount queueLength scaleTarget scaledObject
            targetCPUUtilizationPercentage threshold triggers utilization
            """,
        _BY_ENV: "environment secret secretRef secrets valueFrom",
        _BY_UNITS: "gpu gpus limits requests resources",
        _BY_POOL: "nodeName nodePool nodeSelector",
        _BY_TRAINING: """
            activeDeadlineSeconds completions deadline elasticPolicy failurePolicy gang hyperparameters jobSet
            masterPort maxRestarts numNodes numProcPerNode parallelism peers podFailurePolicy rendezvous
            replicatedJobs retries runtimeRef subdomain sweep topology trainJob trials workers
            """,
        _BY_BATCH: "job jobs task tasks",
        _BY_CHECKPOINT: "checkpointDir checkpointVolume checkpoints outputDir",
        _BY_FRACTION: "gpuFraction gpuMemory gpuMemoryLimit",
        _BY_WORKSPACE: "codeServer ide interactive jupyter notebook notebooks workspaces",
    },
    "Tenant": {
        _BY_PATCH: "annotations labels networkPolicies networkPolicy resourceQuota roleBindings roles",
        _BY_MEMBERS: "admins groups subjects users",
        _BY_LABEL: "matchExpressions matchLabels namePattern namespacePrefix namespaceSelector",
        _BY_CLASSES: "byClass classes limitByClass perClass priorityClassLimits scopeSelector scopes",
        _BY_CONTAINERS: "defaultRequest defaultRequests defaults limitRange limitRanges maxLimitRequestRatio",
        _BY_QUOTA: "cpuQuota hard limits memoryQuota requests",
    },
    "Pool": {
        _BY_PATCH: "annotations",
        _BY_POOL: "labels nodeSelector tolerations",
        _BY_NODES: "instanceType machineSet nodeGroup nodePool",
    },
    "Cluster": {_BY_VALUES: "cdi daemonsets dcgm dcgmExporter devicePlugin gfd migManager toolkit validator"},
}


def find_said(kind: str, field: str) -> Said | None:
    """Return the way in which a document of a kind says a field of this name, or None if it is not known."""
    for said, names in _FIELDS.get(kind, {}).items():
        if field in names.split():
            return said
    return None
