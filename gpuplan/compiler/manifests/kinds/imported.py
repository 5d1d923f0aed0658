"""The kinds that an import reads, and the commands of kubectl that collect them."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.values import NamedTuple


class Collected(NamedTuple):
    """Kinds that one command collects: by their group, their name and their plural name.

    ``where`` says on which clusters there are such kinds; it is empty where all have them. Objects of the ``namespace``
    alone are collected, or of all namespaces, and those alone that have the ``label``, where there is one. Who owns
    which field comes along, for `gpuplan drift`. What grows with the cluster is collected as JSON, which may be larger
    than YAML.
    """

    file: str
    kinds: tuple[tuple[str, str, str], ...]
    where: str = ""
    namespace: str = ""
    label: str = ""

    @property
    def command(self) -> str:
        resources = ",".join(f"{plural}.{group}" if group else plural for group, _, plural in self.kinds)
        scope = f"-n {self.namespace}" if self.namespace else "-A"
        scope += f" -l {self.label}" if self.label else ""
        form = self.file.rpartition(".")[2]
        return f"kubectl get {resources} {scope} --show-managed-fields -o {form} > {self.file}"


_ADMISSION: Final = "admissionregistration.k8s.io"
_KUEUE: Final = "kueue.x-k8s.io"
_NVIDIA: Final = "nvidia.com"
_RBAC: Final = "rbac.authorization.k8s.io"

COLLECTED: Final = (
    Collected(
        "cluster.json",
        (
            ("", "Node", "nodes"),
            ("", "Namespace", "namespaces"),
            ("", "ResourceQuota", "resourcequotas"),
            ("", "LimitRange", "limitranges"),
            ("scheduling.k8s.io", "PriorityClass", "priorityclasses"),
            (_RBAC, "RoleBinding", "rolebindings"),
        ),
    ),
    Collected(
        "admission.yaml",
        (
            (_ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
            (_ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
        ),
        "Kubernetes 1.30 or newer",
    ),
    Collected(
        "work.json",
        (
            ("apps", "Deployment", "deployments"),
            ("apps", "StatefulSet", "statefulsets"),
            ("apps", "DaemonSet", "daemonsets"),
            ("batch", "CronJob", "cronjobs"),
            ("batch", "Job", "jobs"),
            ("", "Service", "services"),
            ("", "PersistentVolumeClaim", "persistentvolumeclaims"),
            ("autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
            ("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
            ("networking.k8s.io", "Ingress", "ingresses"),
            ("networking.k8s.io", "NetworkPolicy", "networkpolicies"),
        ),
    ),
    Collected("work-files.yaml", (("", "ConfigMap", "configmaps"),), "gpuplan", label="gpuplan.dev/workload"),
    Collected("job-sets.yaml", (("jobset.x-k8s.io", "JobSet", "jobsets"),), "JobSet"),
    Collected(
        "leader-worker-sets.yaml",
        (("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "leaderworkersets"),),
        "LeaderWorkerSet",
    ),
    Collected(
        "train-jobs.yaml",
        (
            ("trainer.kubeflow.org", "TrainingRuntime", "trainingruntimes"),
            ("trainer.kubeflow.org", "TrainJob", "trainjobs"),
        ),
        "Kubeflow Trainer",
    ),
    Collected("kserve.yaml", (("serving.kserve.io", "InferenceService", "inferenceservices"),), "KServe"),
    Collected("routes.yaml", (("gateway.networking.k8s.io", "HTTPRoute", "httproutes"),), "Gateway API"),
    Collected("keda.yaml", (("keda.sh", "ScaledObject", "scaledobjects"),), "KEDA"),
    Collected(
        "ray.yaml",
        (
            ("ray.io", "RayCluster", "rayclusters"),
            ("ray.io", "RayJob", "rayjobs"),
            ("ray.io", "RayService", "rayservices"),
        ),
        "KubeRay",
    ),
    Collected(
        "training-jobs.yaml",
        (("kubeflow.org", "MPIJob", "mpijobs"), ("kubeflow.org", "PyTorchJob", "pytorchjobs")),
        "Kubeflow's training operator",
    ),
    Collected(
        "definitions.json",
        (("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions"),),
        "any of what follows",
    ),
    Collected("operator.yaml", ((_NVIDIA, "ClusterPolicy", "clusterpolicies"),), "the GPU Operator"),
    Collected("drivers.yaml", ((_NVIDIA, "NVIDIADriver", "nvidiadrivers"),), "the GPU Operator with NVIDIADrivers"),
    Collected("operator-files.yaml", (("", "ConfigMap", "configmaps"),), "the GPU Operator", "gpu-operator"),
    Collected("openshift-files.yaml", (("", "ConfigMap", "configmaps"),), "OpenShift", "nvidia-gpu-operator"),
    Collected("dashboards.yaml", (("", "ConfigMap", "configmaps"),), "Grafana", "monitoring"),
    Collected("gpuplan-files.yaml", (("", "ConfigMap", "configmaps"),), "gpuplan", "gpuplan-system"),
    Collected(
        "nfd.json",
        (
            ("nfd.k8s-sigs.io", "NodeFeatureRule", "nodefeaturerules"),
            ("nfd.k8s-sigs.io", "NodeFeature", "nodefeatures"),
        ),
        "Node Feature Discovery",
    ),
    Collected(
        "kueue.yaml",
        (
            (_KUEUE, "ResourceFlavor", "resourceflavors"),
            (_KUEUE, "Topology", "topologies"),
            (_KUEUE, "Cohort", "cohorts"),
            (_KUEUE, "ClusterQueue", "clusterqueues"),
            (_KUEUE, "LocalQueue", "localqueues"),
            (_KUEUE, "WorkloadPriorityClass", "workloadpriorityclasses"),
        ),
        "Kueue",
    ),
    Collected("kueue-files.yaml", (("", "ConfigMap", "configmaps"),), "Kueue", "kueue-system"),
    Collected(
        "kai-queues.yaml",
        (("scheduling.run.ai", "Queue", "queues"), ("scheduling.run.ai", "PodGroup", "podgroups")),
        "KAI-Scheduler",
    ),
    Collected(
        "kai.yaml",
        (
            ("kai.scheduler", "SchedulingShard", "schedulingshards"),
            ("kai.scheduler", "Topology", "topologies"),
            ("kai.scheduler", "Config", "configs"),
        ),
        "KAI-Scheduler",
    ),
    Collected(
        "argocd.yaml",
        (
            ("argoproj.io", "AppProject", "appprojects"),
            ("argoproj.io", "Application", "applications"),
            ("argoproj.io", "ApplicationSet", "applicationsets"),
        ),
        "Argo CD",
    ),
    Collected("flux.yaml", (("kustomize.toolkit.fluxcd.io", "Kustomization", "kustomizations"),), "Flux"),
    Collected("helm-repositories.yaml", (("source.toolkit.fluxcd.io", "HelmRepository", "helmrepositories"),), "Flux"),
    Collected("helm.yaml", (("helm.toolkit.fluxcd.io", "HelmRelease", "helmreleases"),), "Flux"),
    Collected(
        "olm.yaml",
        (
            ("operators.coreos.com", "Subscription", "subscriptions"),
            ("operators.coreos.com", "OperatorGroup", "operatorgroups"),
            ("operators.coreos.com", "ClusterServiceVersion", "clusterserviceversions"),
        ),
        "OLM",
    ),
    Collected(
        "openshift-quotas.yaml", (("quota.openshift.io", "ClusterResourceQuota", "clusterresourcequotas"),), "OpenShift"
    ),
    Collected("openshift.yaml", (("config.openshift.io", "ClusterVersion", "clusterversions"),), "OpenShift"),
    Collected(
        "monitoring.yaml",
        (
            ("monitoring.coreos.com", "PrometheusRule", "prometheusrules"),
            ("monitoring.coreos.com", "ServiceMonitor", "servicemonitors"),
            ("monitoring.coreos.com", "PodMonitor", "podmonitors"),
        ),
        "the Prometheus operator",
    ),
    Collected("dra.yaml", (("resource.k8s.io", "DeviceClass", "deviceclasses"),), "Kubernetes 1.34 or newer, for DRA"),
)
"""The kinds to collect, each in a file of its own. kubectl fails as a whole if one kind is not known."""

FROM_FILES: Final = (
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apps", "DaemonSet"),
    ("config.kueue.x-k8s.io", "Configuration"),
    ("gateway.networking.k8s.io", "HTTPRoute"),
    ("keda.sh", "ScaledObject"),
    ("nfd.openshift.io", "NodeFeatureDiscovery"),
    ("nfd.openshift.io", "NodeFeatureRule"),
)
"""Further kinds that are read if a dump holds them: files from Git do, and so do clusters that have such kinds."""

READ: Final = frozenset((*FROM_FILES, *((group, kind) for found in COLLECTED for group, kind, _ in found.kinds)))
