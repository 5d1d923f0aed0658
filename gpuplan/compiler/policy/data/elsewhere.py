"""The way in which policies say what other programs have fields for, and advice on wrong fields and values."""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.policy.elsewhere import Said

PATCH = "docs/how-to/patch-what-gpuplan-writes.md"
WORKLOAD = "docs/how-to/configure-a-workload.md"

_BY_PATCH = Said("by a patch of what is written, in a kustomize Component", PATCH)
_BY_POD_PATCH = Said("in `podPatch`, such as `{spec: {serviceAccountName: reader}}`", WORKLOAD)
_BY_KIND = Said("by the kind of work: a `training` ends, an `inference` service goes on", WORKLOAD)
_BY_CLUSTER = Said("by `scheduler.kind` of the Cluster", "docs/schedulers.md")
_BY_REACH = Said("in `inference.service`, such as `{type: NodePort, nodePort: 30080}`", WORKLOAD)
_BY_PROBE = Said("in `inference`, by `probe`, `startup` and `liveness`", WORKLOAD)
_BY_ROUTE = Said("in `inference.route`, such as `{hosts: [chat.example.com]}`", WORKLOAD)
_BY_CANARY = Said("in `inference.canary`, such as `{weight: 10, image: <image>}`", WORKLOAD)
_BY_LOAD = Said(
    "in `autoscaling`, by `requestsPerSecond`, `waitingRequests`, `cpuPercent`, `gpuPercent` or `query`", WORKLOAD
)
_BY_ENV = Said("in `env`, such as `TOKEN: {secretKeyRef: {name: api, key: token}}`", WORKLOAD)
_BY_UNITS = Said("by `cpu`, `memory`, and the units of its pool", "docs/how-to/run-a-workload.md")
_BY_TRAINING = Said(
    "in `training`, by `kind`, `pods`, `trials`, `gang`, `peers`, `elastic`, `topology` or `deadline`", WORKLOAD
)
_BY_BATCH = Said("by `batch`, such as `{pods: 2, deadline: 1h}`", WORKLOAD)
_BY_CHECKPOINT = Said("in `training`, by `checkpoint`, such as `{size: 500Gi}`", WORKLOAD)
_BY_FRACTION = Said("by `fraction`, such as `{memory: 10Gi}`", WORKLOAD)
_BY_WORKSPACE = Said("by `workspace`, such as `{port: 8888, idle: 2h, runTime: 12h}`", "docs/how-to/run-a-notebook.md")
_BY_NODES = Said("by `nodes`: names, a pattern, labels or the board", "docs/how-to/add-a-pool.md")
_BY_POOL = Said("by the pool: its nodes, labels and taints follow it", "docs/how-to/add-a-pool.md")
_BY_VALUES = Said("in `gpuOperator.values`, as the chart has it", "docs/how-to/adopt-an-existing-cluster.md")
_BY_WINDOWS = Said(
    'by `disruption` of the Pool, such as `{windows: [{schedule: "0 22 * * 0", duration: 4h}]}`',
    "docs/how-to/change-how-a-pool-is-shared.md",
)
_BY_MEMBERS = Said("by `members`", "docs/how-to/add-a-tenant.md")
_BY_QUOTA = Said("by `cpu`, `memory` and `pods` of a quota", "docs/how-to/give-cpu-and-memory.md")
_BY_LABEL = Said("by `labelledNamespaces` and the label `gpuplan.dev/tenant`", "docs/how-to/add-a-tenant.md")
_BY_CLASSES = Said("by `classLimits` of a quota", "docs/how-to/add-a-tenant.md")
_BY_CONTAINERS = Said("by `containers`", "docs/how-to/give-cpu-and-memory.md")

# A name stands for what Kubernetes, a chart of NVIDIA's or a guide calls so, anywhere in a document of the kind.
FIELDS = {
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
        _BY_MEMBERS: "admins subjects users",
        _BY_LABEL: "matchExpressions matchLabels namePattern namespacePrefix namespaceSelector",
        _BY_CLASSES: "byClass classes limitByClass perClass priorityClassLimits scopeSelector scopes",
        _BY_CONTAINERS: "defaultRequest defaultRequests defaults limitRange limitRanges maxLimitRequestRatio",
        _BY_QUOTA: "cpuQuota hard limits memoryQuota requests",
    },
    "Pool": {
        _BY_PATCH: "annotations",
        _BY_POOL: "labels tolerations",
        _BY_WINDOWS: "maintenanceWindow maintenanceWindows syncWindow syncWindows",
        _BY_NODES: "instanceType machineSet nodeGroup nodePool",
    },
    "Cluster": {
        _BY_VALUES: "cdi daemonsets dcgm dcgmExporter devicePlugin gfd migManager toolkit validator",
        _BY_WINDOWS: "maintenanceWindow maintenanceWindows syncWindow syncWindows",
    },
}

_ALL_ALIKE = (
    "remove `devices`: the device plugin ignores it, and shares all GPUs of a node alike; "
    "GPUs in partitions may differ, by `mig.devices`"
)
"""(`disableResoureRenaming` in `api/config/v1/replicas.go` of NVIDIA/k8s-device-plugin, up to v0.20.0.)"""

_EQUAL_PARTS = (
    "remove it: the device plugin gives each share an equal part of memory and threads; a workload may take less, by "
    "`env: {CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: ..., CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: ...}`"
)
"""(`perDevicePinnedDeviceMemoryLimits` and `activeThreadPercentage` in `cmd/mps-control-daemon/mps` there.)"""

REMEDIES: Mapping[Path, str] = {
    ("$patch",): "write it beside the name: `metadata: {name: ..., $patch: delete}`",
    ("mig", "mps"): "remove `mps`, which does not work on MIG devices; `timeSlicing` does",
    ("timeSlicing", "devices"): _ALL_ALIKE,
    ("mps", "devices"): _ALL_ALIKE,
    ("mps", "memory"): _EQUAL_PARTS,
    ("mps", "memoryLimit"): _EQUAL_PARTS,
    ("mps", "pinnedDeviceMemoryLimit"): _EQUAL_PARTS,
    ("mps", "defaultPinnedDeviceMemoryLimit"): _EQUAL_PARTS,
    ("mps", "threads"): _EQUAL_PARTS,
    ("mps", "activeThreadPercentage"): _EQUAL_PARTS,
    ("mps", "defaultActiveThreadPercentage"): _EQUAL_PARTS,
}
"""Advice on fields that are wrong for a reason, by the end of their path. NVIDIA's driver for DRA, whose MPS is alpha,
does not help with the limits of MPS.
"""
