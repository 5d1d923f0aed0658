"""Words for values of a wrong type, and advice on some of them."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType

from gpuplan.compiler.base.diagnostics import Path

EXPECTED_TYPES = {
    "bool_type": "`true` or `false`",
    "dict_type": "a mapping",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_attributes_type": "a mapping",
    "model_type": "a mapping",
    "string_type": "text",
}

TYPE_NAMES = {
    NoneType: "nothing",
    bool: "`true` or `false`",
    int: "a number",
    float: "a number with a decimal point",
    str: "text",
    list: "a list",
}

TEXT_REMEDIES: Mapping[Path, str] = {
    ("nodes", "count"): "write one number, the largest of a range: gpuplan adds no nodes and takes none away",
    ("spec", "nodes"): "write `nodes: {count: ..., gpusPerNode: ...}`, with the largest number of a range as `count`",
    ("inference", "replicas"): "write one number; for a range, `autoscaling` beside it, such as "
    "`{minReplicas: 2, maxReplicas: 8, cpuPercent: 70}`",
    (
        "sharing",
        "mig",
    ): "write `mig: {layout: NAME}` with the name of a MigLayout, or `mig: {instances: {1g.10gb: 7}}`; "
    "`mixed` is their `strategy` without a word",
    ("spec", "fraction"): "write a number below 1 without quotes, or GPU memory as `{memory: 10Gi}`",
}
"""Advice on texts that are most likely meant as something else, by the end of the path."""

WRONG_VALUES: Mapping[tuple[str, type], str] = {
    ("nodeLabels", dict): "write one of `nfd`, `node` and `external`: labels of nodes are `nodeLabels` of a Pool",
    ("install", bool): "write `helm`; or `olm` on OpenShift, or `external` if something else installs it",
    ("count", float): "write whole units, such as `1`; a part of a GPU is `fraction: 0.5`, on a pool of fractions",
    ("gpus", float): "write whole GPUs, or in their place the part that a pod needs, such as `compute: 50%`",
    ("gpu", list): "write one model, and a document of its own for each of the others",
    ("split", list): "write each with its namespace: `split: {NAMESPACE: 12, OTHER: 24}`",
    ("matchLabels", dict): "write its entries in its place: the labels of a selector stand right below it",
    ("value", str): "write a whole number, such as `500`: pods of a higher one go first, and `gpuplan show` lists "
    "those of the other classes",
    ("gang", bool): "write the number of pods that start together, or leave it out for all",
    ("model", str): "write `model: {size: 100Gi, download: {image: ..., args: [...]}}`: a container copies the model",
}
"""Advice on values of a type that says what was most likely meant, by the name of the field."""

UNLIMITED = (-1, "-1", "unlimited", "infinite")
"""Words of KAI-Scheduler, Run:ai and people for "no bound"."""

WORDS: Mapping[tuple[str, str], str] = {
    ("platform", "kubernetes"): "k8s eks gke aks rke2 k3s rancher vanilla upstream kubeadm tanzu",
    ("platform", "openshift"): "ocp okd rosa aro",
    ("placement", "binpack"): "mostallocated pack packed consolidate bestfit",
    ("placement", "spread"): "leastallocated balanced spreading",
    ("install", "helm"): "operator chart gpuoperator argocd flux kustomize",
    ("install", "olm"): "subscription operatorhub certified",
    ("install", "external"): "none manual preinstalled self",
    ("strategy", "mixed"): "none",
    ("role", "admin"): "clusteradmin owner",
    ("role", "edit"): "editor developer write writer",
    ("role", "view"): "viewer read reader readonly",
    ("kind", "kubernetes"): "default defaultscheduler kubescheduler none native",
    ("kind", "Deployment"): "statefulset daemonset replicaset service",
    ("kind", "InferenceService"): "kserve knative",
    ("kind", "TrainJob"): "pytorchjob mpijob tfjob trainer kubeflow xgboostjob jaxjob",
    ("kind", "Job"): "cronjob batch",
    ("isolation", "hardware"): "mig partition",
    ("isolation", "wholeGpu"): "exclusive full gpu whole dedicated",
    ("isolation", "none"): "timeslicing shared",
    ("term", "spot"): "preemptible interruptible",
    ("term", "onDemand"): "payg standard",
}
"""Words of people and of other programs for those of a field, in small letters, by the field and its word."""

NOT_SUPPORTED: Mapping[tuple[str, str], str] = {
    ("scheduler", "volcano"): "write `kai`, which has queues and gangs as Volcano has, or `kubernetes`, which has none",
    (
        "scheduler",
        "yunikorn",
    ): "write `kai`, which has queues and gangs as YuniKorn has, or `kubernetes`, which has none",
    ("scheduler", "slurm"): "write `kai` or `kueue`, which have queues as Slurm has, or `kubernetes`, which has none",
}
"""Advice on words for what gpuplan does not support, by the mapping and the word in small letters."""

KINDS_OF_POLICIES: Mapping[str, str] = {
    "ClusterPolicy": "the `gpuOperator` of the Cluster",
    "ClusterQueue": "the `quotas` of a Tenant",
    "CronJob": "a Workload with `batch`",
    "Deployment": "a Workload with `inference`",
    "Job": "a Workload with `batch` or `training`",
    "LocalQueue": "the `quotas` of a Tenant",
    "BestEffort": "a PriorityClass",
    "Cohort": "a Tenant that is the `parent` of others",
    "DaemonSet": "a Workload with `inference`",
    "DeviceClass": "the `sharing` of a Pool with `allocation: dra`",
    "Department": "a Tenant that is the `parent` of others",
    "Group": "the `members` of a Tenant",
    "InferenceService": "a Workload with `inference` and `kind: InferenceService`",
    "JobSet": "a Workload with `training` and `kind: JobSet`",
    "LimitRange": "the `containers` of a Tenant",
    "MigConfig": "a MigLayout",
    "MigProfile": "a MigLayout",
    "Namespace": "`{name}` into the `namespaces` of a Tenant",
    "NodeGroup": "a Pool",
    "NodeGroupPolicy": "a Pool",
    "NodePool": "a Pool",
    "Notebook": "a Workload with `workspace`",
    "NVIDIADriver": "the `driver` of a Pool",
    "PodGroup": "a Workload with `training` and `gang`",
    "Project": "a Tenant",
    "PyTorchJob": "a Workload with `training` and `kind: TrainJob`",
    "Queue": "the `quotas` of a Tenant",
    "Quota": "the `quotas` of a Tenant",
    "ReplicaSet": "a Workload with `inference`",
    "Role": "the `members` of a Tenant",
    "Team": "a Tenant",
    "TimeSlicing": "the `sharing` of a Pool",
    "TrainJob": "a Workload with `training` and `kind: TrainJob`",
    "User": "the `members` of a Tenant",
    "WorkloadPriorityClass": "a PriorityClass",
    "ResourceFlavor": "a Pool",
    "ResourceQuota": "the `quotas` of a Tenant",
    "RoleBinding": "the `members` of a Tenant",
    "Service": "a Workload with `inference`",
    "StatefulSet": "a Workload with `inference`",
}
"""The policies of which gpuplan makes objects of other kinds."""

NO_NUMBER: Mapping[str, str] = {
    "limit": "write `none`, for no bound",
    "classLimits": "leave the class out: it may then use all",
    "lendable": "leave it out: others may then use all that is idle",
    "guaranteed": "write how much is the tenant's own, `0` if nothing is, and `limit: none` for no bound on its use",
}
"""Advice for each field: there is no guarantee without a bound, for a pool has so many units and no more."""

BOUNDS = {
    "greater_than_equal": ("of at least", "ge"),
    "less_than_equal": ("of at most", "le"),
    "greater_than": ("above", "gt"),
    "less_than": ("below", "lt"),
}
LIMITS = {
    "string_too_short": "some text",
    "too_short": "a list with something in it",
    "finite_number": "a finite number",
    "int_parsing_size": "a smaller number",
}
