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
_BY_SHARING = Said("by `sharing` of the Pools, of which gpuplan writes that file", "docs/how-to/add-a-pool.md")
_BY_PREEMPTION = Said(
    "by `preempts` of a PriorityClass and `protect: {preempt: 1h, reclaim: 1h}` here", "docs/how-to/add-a-tenant.md"
)
_BY_PARENT = Said(
    "by `parent`, the Tenant that both belong to, such as `parent: science`", "docs/how-to/add-a-tenant.md"
)
_BY_COMMENT = Said("in a comment of YAML, `# ...`: gpuplan has no field for it", "docs/how-to/add-a-tenant.md")
_BY_POOLS = Said(
    "by the pools that its quotas name: pods go to their nodes by themselves", "docs/how-to/run-a-workload.md"
)
_BY_QUOTAS = Said("by the `quotas` of Tenants: a pool is for those that have one on it", "docs/how-to/add-a-tenant.md")
_BY_AWAY = Said("by `gpuplan show --away NODE` and `kubectl cordon NODE`, for a node at a time", "docs/cli.md")
_BY_COUNT = Said("by `nodes.count`, one number: gpuplan adds no nodes and takes none away", "docs/how-to/add-a-pool.md")
_BY_ROLLOUT = Said(
    "by `disruption.maxUnavailable`; `gpuplan rollout` writes `rollout`", "docs/how-to/change-how-a-pool-is-shared.md"
)
_BY_SYNC = Said(
    "by `operatorApproval` here and `disruption.approval` of a Pool: `automatic` or `manual`",
    "docs/how-to/change-how-a-pool-is-shared.md",
)
_BY_MONITORS = Said(
    "by `monitoring: {}`, which writes the monitors that its alerts need", "docs/how-to/monitor-pools.md"
)
_BY_CRON = Said("by a CronJob of your own, in overlays/<cluster>/kustomize/: gpuplan writes none", WORKLOAD)
_BY_CLAIM = Said("in `podPatch`, by `volumes` and `volumeMounts`, in place of the field that makes a claim", WORKLOAD)
_BY_MODEL = Said("by `model`, with `size` and `download: {image: ..., args: [...]}`", WORKLOAD)
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
        _BY_CRON: "cron cronSchedule schedule suspend",
        _BY_CLAIM: "claimName existingClaim pvcName volumeClaim",
        _BY_MODEL: "modelUri storageUri",
        _BY_COMMENT: "contact costCenter description displayName notes owner",
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
        _BY_PREEMPTION: "flavorFungibility preemption queueingStrategy reclaimWithinCohort withinClusterQueue",
        _BY_PARENT: "cohort cohortName department parentQueue",
        _BY_COMMENT: "contact costCenter description displayName email notes owner",
        _BY_POOLS: "affinity nodeAffinity nodePools nodeSelector tolerations",
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
        _BY_QUOTAS: "allowedNamespaces allowedTenants namespaces owners teams tenant tenants users",
        _BY_AWAY: "cordon cordoned drain drained maintenance unschedulable",
        _BY_COUNT: "autoscale autoscaling maxCount maxNodes maxSize minCount minNodes minSize",
        _BY_ROLLOUT: "drainTimeout maxParallelUpgrades maxSurge rollingUpdate type updateStrategy upgradePolicy",
        _BY_COMMENT: "contact costCenter description displayName notes owner",
    },
    "Cluster": {
        _BY_VALUES: "cdi daemonsets dcgm dcgmExporter gfd operator toolkit validator vgpuManager",
        _BY_SHARING: "devicePlugin migManager migParted",
        _BY_SYNC: "automated prune selfHeal syncOptions syncPolicy",
        _BY_MONITORS: "podMonitor serviceMonitor serviceMonitors",
        _BY_COMMENT: "description displayName environment notes owner region",
        _BY_WINDOWS: "maintenanceWindow maintenanceWindows syncWindow syncWindows",
    },
}

_OF_VOLUMES = {"size": "capacity", "storageClass": "storageClassName", "mountPath": "dir directory mount path"}
CALLED = {
    "ClusterSpec": {"kubernetes": "k8sVersion kubernetesVersion", "gpuOperator": "operator", "bases": "base resources"},
    "GpuOperator": {
        "install": "installer method",
        "version": "chartVersion release tag",
        "imagePullSecrets": "pullSecrets",
        "chartRepoURL": "helmRepository repoURL repository",
        "registry": "imageRegistry mirror",
        "nfd": "nodeFeatureDiscovery",
    },
    "Olm": {"catalog": "catalogSource source", "channel": "updateChannel"},
    "Scheduler": {"kind": "name type", "chartRepoURL": "repoURL repository"},
    "Argocd": {
        "repoURL": "repo repository url",
        "revision": "branch ref tag targetRevision",
        "path": "dir directory folder",
        "destination": "cluster",
        "root": "appOfApps",
    },
    "Destination": {"server": "address url"},
    "Flux": {
        "source": "repository sourceRef",
        "serviceAccountName": "serviceAccount",
        "kubeConfigSecret": "kubeConfig",
    },
    "Monitoring": {"labels": "ruleLabels", "disabledAlerts": "excludedAlerts ignoredAlerts silenced"},
    "Prometheus": {"url": "address endpoint server"},
    "Gateway": {"listener": "sectionName"},
    "Ingress": {"className": "class ingressClass ingressClassName"},
    "PoolSpec": {
        "gpu": "accelerator acceleratorType gpuModel gpuProduct gpuType model product",
        "nodeLabels": "labels",
        "taints": "tolerations",
        "billing": "cost price pricing",
    },
    "Nodes": {
        "count": "desiredCapacity desiredSize machines nodeCount number replicas size",
        "gpusPerNode": "acceleratorCount accelerators gpuCount gpus",
        "names": "hostnames hosts nodeNames",
        "namePattern": "match nameRegex pattern regex",
        "selector": "labelSelector labels matchLabels nodeSelector",
    },
    "Sharing": {"exclusive": "dedicated false none null off whole"},
    "TimeSlicing": {"replicas": "count shares slices", "rename": "renameByDefault"},
    "Mps": {"replicas": "clients count shares", "rename": "renameByDefault"},
    "MigTimeSlicing": {"replicas": "count shares slices", "rename": "renameByDefault"},
    "Mig": {
        "layout": "config profile",
        "instances": "mig-devices migDevices partitions profiles",
        "strategy": "migStrategy",
    },
    "Devices": {
        "gpus": "indexes indices",
        "instances": "mig-devices migDevices partitions profiles",
        "enabled": "mig-enabled migEnabled",
    },
    "MigLayoutSpec": {"gpu": "gpuModel model product", "instances": "mig-devices migDevices partitions profiles"},
    "Disruption": {"windows": "maintenanceWindow maintenanceWindows", "maxUnavailable": "maxParallel parallelism"},
    "Window": {"schedule": "cron", "duration": "length", "timeZone": "location tz zone"},
    "Billing": {"nodeType": "instanceType machineType sku vmSize", "term": "model plan purchase type"},
    "GpuSpec": {
        "memoryMiB": "memory vram",
        "computeCapability": "arch cc smVersion",
        "products": "productName",
        "pci": "deviceIds pciIds",
    },
    "PriorityClassSpec": {"value": "priority", "preempts": "preemptionPolicy", "default": "globalDefault isDefault"},
    "TenantSpec": {
        "namespaces": "projects",
        "priorityClasses": "allowedPriorityClasses priorities",
        "quotas": "gpuQuotas quota",
        "members": "groups",
        "timeLimits": "timeouts",
    },
    "Quota": {
        "pool": "flavor nodePool poolName resourceFlavor",
        "unit": "migProfile partition profile resource resourceName size slice",
        "guaranteed": "amount count deserved min minimum nominalQuota quota request requested requests reserved",
        "limit": "cap ceiling hard max maximum",
        "lendable": "lendingLimit",
    },
    "Bounds": {"guaranteed": "min request requests reserved", "limit": "cap limits max"},
    "ContainerDefaults": {
        "request": "defaultRequest requests",
        "limit": "default limits",
        "maxRatio": "maxLimitRequestRatio",
    },
    "Member": {"group": "groupName name team", "user": "email username", "clusterRole": "roleRef"},
    "Surplus": {"weight": "fairShareWeight overQuotaWeight share", "rank": "priority"},
    "Protect": {"preempt": "minRuntime preemptMinRuntime", "reclaim": "reclaimMinRuntime"},
    "Allow": {"gracePeriod": "terminationGracePeriod", "podSecurity": "podSecurityLevel podSecurityStandard psa"},
    "TimeLimits": {"workspaces": "interactive notebooks", "trainings": "batch jobs training"},
    "WorkspaceTimes": {"run": "maxRuntime timeout", "idle": "idleTimeout"},
    "TrainingTimes": {"run": "maxRuntime timeout", "idle": "idleTimeout"},
    "WorkloadSpec": {
        "tenant": "project queue team",
        "pool": "flavor nodePool",
        "unit": "gpuProfile layout mig migProfile partition profile slice",
        "count": "gpu gpuCount gpus nprocPerNode numGpus",
        "priorityClass": "priority priorityClassName",
        "image": "containerImage",
        "command": "cmd entrypoint",
        "args": "arguments",
        "env": "envVars environment variables",
        "config": "configFiles configMap files",
        "workspace": "notebook",
    },
    "Inference": {
        "replicas": "count instances pods",
        "port": "containerPort targetPort",
        "probe": "healthCheck readiness",
        "startup": "startupTimeout",
        "route": "httpRoute",
        "autoscaling": "autoscaler hpa scaling",
    },
    "Reach": {"port": "servicePort", "type": "serviceType"},
    "Route": {
        "hosts": "domain domains fqdn host hostname hostnames",
        "path": "pathPrefix prefix",
        "tlsSecret": "secretName tlsSecretName",
    },
    "Canary": {"weight": "percent percentage traffic trafficPercent"},
    "Autoscaling": {
        "minReplicas": "min minReplicaCount",
        "maxReplicas": "max maxReplicaCount",
        "cpuPercent": "cpu cpuUtilization targetCPUUtilizationPercentage",
        "requestsPerSecond": "qps rps",
        "waitingRequests": "queueDepth queueLength",
        "cooldown": "cooldownPeriod stabilizationWindow",
    },
    "Training": {
        "pods": "nnodes numNodes numWorkers parallelism replicas workers worldSize",
        "trials": "completions runs",
        "backoffLimit": "attempts maxRestarts restartLimit retries",
        "deadline": "activeDeadline maxRuntime timeout",
        "gang": "minAvailable minMember",
        "kind": "framework",
    },
    "Batch": {
        "pods": "parallelism replicas workers",
        "trials": "completions runs",
        "backoffLimit": "attempts maxRestarts restartLimit retries",
        "deadline": "activeDeadline maxRuntime timeout",
    },
    "Elastic": {"minPods": "min minNodes minReplicas"},
    "Checkpoint": _OF_VOLUMES,
    "ModelVolume": _OF_VOLUMES,
    "Storage": _OF_VOLUMES,
    "Workspace": {
        "runTime": "deadline maxRuntime timeout",
        "idle": "cullIdleTime idleTimeout",
        "storage": "home volume",
    },
    "PricesSpec": {"gpus": "models prices", "nodeTypes": "instanceTypes machines"},
    "Rate": {"perGpuHour": "hourly perGpu perHour price pricePerHour", "perNodeHour": "perNode"},
    "DemandedWork": {
        "team": "department owner project queue",
        "pods": "count instances parallelism replicas users",
        "memory": "gpuMemory vram",
        "gpus": "gpuCount",
        "models": "gpu gpuModel gpuModels model",
    },
    "DemandedService": {"requestsPerSecond": "qps rps", "latency": "latencyTarget p95 p99 sla slo"},
    "MeasuredThroughput": {"size": "instance mig partition profile", "requestsPerSecond": "qps rps throughput"},
}
"""Names of fields in Kubernetes, charts and people's words, by the model of the mapping and the field."""

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

_BY_METADATA = (
    "leave it out of `metadata`, which has a `name` alone: objects that gpuplan writes get it by a patch in "
    "overlays/<cluster>/kustomize/: docs/how-to/patch-what-gpuplan-writes.md"
)
REMEDIES: Mapping[Path, str] = {
    ("[]", "$patch"): "leave the item out: the list of an overlay replaces that of the base",
    ("$patch",): "to delete the document, write `metadata: {name: ..., $patch: delete}`; a list is always replaced",
    ("spec", "enabled"): "to leave it out of a cluster, write `metadata: {name: ..., $patch: delete}` in its overlay",
    ("metadata", "labels"): _BY_METADATA,
    ("metadata", "annotations"): _BY_METADATA,
    ("metadata", "namespace"): "leave it out: documents of gpuplan are in no namespace",
    ("destination", "namespace"): "leave it out: each Application has the namespace of its objects",
    ("windows", "kind"): "leave it out: windows allow, and nothing else syncs while there is one",
    ("windows", "manualSync"): "say it by `approval: manual` of `disruption`: a person then starts each sync",
    ("quotas", "gpu"): "write `pool:` with the name of a pool: `gpuplan show` lists the pools and their GPU models",
    (
        "quotas",
        "gpuModel",
    ): "write `pool:` with the name of a pool: `gpuplan show` lists the pools and their GPU models",
    ("taints", "operator"): "leave it out: a taint has none, as `kubectl taint` writes it",
    ("disruption", "minAvailable"): "write `maxUnavailable`: the nodes of the pool less this number",
    ("mig", "profiles"): "write `lgip:` and `lgipp:`, what `nvidia-smi mig -lgip` and `nvidia-smi mig -lgipp` print",
    ("needs", "profile"): "write what a pod uses: `memory: 20Gi` for `2g.20gb`, and `compute: 25%` if it needs that",
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
