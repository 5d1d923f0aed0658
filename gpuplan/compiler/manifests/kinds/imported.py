"""The kinds that an import reads, and the commands of kubectl that collect them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from gpuplan.compiler.base.values import NamedTuple


class Collected(NamedTuple):
    """Kinds that one command collects: by their group, with blanks between them.

    ``where`` says on which clusters there are such kinds; it is empty where all have them. Objects of the ``namespace``
    alone, which a command may find, are collected, or of all namespaces, and those alone that have the ``label``, where
    there is one. Who owns which field comes along, for `gpuplan drift`. What grows with the cluster is collected as
    JSON, which may be larger than YAML.
    """

    file: str
    kinds: Mapping[str, str]
    where: str = ""
    namespace: str = ""
    label: str = ""

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """The kinds one by one, each with its group."""
        return ((group, kind) for group, kinds in self.kinds.items() for kind in kinds.split())

    @property
    def command(self) -> str:
        resources = ",".join(f"{_plural(kind)}.{group}".rstrip(".") for group, kind in self.pairs)
        scope = f"-n {self.namespace}" if self.namespace else "-A"
        scope += f" -l {self.label}" if self.label else ""
        form = self.file.rpartition(".")[2]
        return f"kubectl get {resources} {scope} --show-managed-fields -o {form} > {self.file}"


def _plural(kind: str) -> str:
    """Return the name by which kubectl knows objects of a kind."""
    name = kind.lower()
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}es" if name.endswith("s") else f"{name}s"


_OF_OPERATOR: Final = "\"$(kubectl get clusterpolicies.nvidia.com -o jsonpath='{.items[0].status.namespace}')\""
_OF_PLUGIN: Final = (
    '"$(kubectl get daemonsets -A -l app.kubernetes.io/name=nvidia-device-plugin'
    " -o jsonpath='{.items[0].metadata.namespace}')\""
)
"""The namespace of the GPU Operator, which its ClusterPolicy shows, and that of the device plugin's own chart."""

COLLECTED: Final = (
    Collected(
        "cluster.json",
        {
            "": "Node Namespace ResourceQuota LimitRange",
            "scheduling.k8s.io": "PriorityClass",
            "rbac.authorization.k8s.io": "RoleBinding",
        },
    ),
    Collected(
        "admission.yaml",
        {"admissionregistration.k8s.io": "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding"},
        "Kubernetes 1.30 or newer",
    ),
    Collected(
        "work.json",
        {
            "apps": "Deployment StatefulSet DaemonSet",
            "batch": "CronJob Job",
            "": "Service PersistentVolumeClaim",
            "autoscaling": "HorizontalPodAutoscaler",
            "policy": "PodDisruptionBudget",
            "networking.k8s.io": "Ingress NetworkPolicy",
        },
    ),
    Collected("work-files.yaml", {"": "ConfigMap"}, "gpuplan", label="gpuplan.dev/workload"),
    Collected("job-sets.yaml", {"jobset.x-k8s.io": "JobSet"}, "JobSet"),
    Collected("leader-worker-sets.yaml", {"leaderworkerset.x-k8s.io": "LeaderWorkerSet"}, "LeaderWorkerSet"),
    Collected("train-jobs.yaml", {"trainer.kubeflow.org": "TrainingRuntime TrainJob"}, "Kubeflow Trainer"),
    Collected("kserve.yaml", {"serving.kserve.io": "InferenceService"}, "KServe"),
    Collected("routes.yaml", {"gateway.networking.k8s.io": "HTTPRoute"}, "Gateway API"),
    Collected("keda.yaml", {"keda.sh": "ScaledObject"}, "KEDA"),
    Collected("ray.yaml", {"ray.io": "RayCluster RayJob RayService"}, "KubeRay"),
    Collected("training-jobs.yaml", {"kubeflow.org": "MPIJob PyTorchJob"}, "Kubeflow's training operator"),
    Collected("definitions.json", {"apiextensions.k8s.io": "CustomResourceDefinition"}, "any of what follows"),
    Collected("operator.yaml", {"nvidia.com": "ClusterPolicy"}, "the GPU Operator"),
    Collected("drivers.yaml", {"nvidia.com": "NVIDIADriver"}, "the GPU Operator with NVIDIADrivers"),
    Collected("operator-files.yaml", {"": "ConfigMap"}, "the GPU Operator", _OF_OPERATOR),
    Collected("plugin-files.yaml", {"": "ConfigMap"}, "the device plugin's own chart", _OF_PLUGIN),
    Collected("kube-system-files.yaml", {"": "ConfigMap"}, "a device plugin in kube-system", "kube-system"),
    Collected("dashboards.yaml", {"": "ConfigMap"}, "Grafana", "monitoring"),
    Collected("gpuplan-files.yaml", {"": "ConfigMap"}, "gpuplan", "gpuplan-system"),
    Collected("nfd.json", {"nfd.k8s-sigs.io": "NodeFeatureRule NodeFeature"}, "Node Feature Discovery"),
    Collected(
        "kueue.yaml",
        {"kueue.x-k8s.io": "ResourceFlavor Topology Cohort ClusterQueue LocalQueue WorkloadPriorityClass"},
        "Kueue",
    ),
    Collected("kueue-files.yaml", {"": "ConfigMap"}, "Kueue", "kueue-system"),
    Collected("kai-queues.yaml", {"scheduling.run.ai": "Queue PodGroup"}, "KAI-Scheduler"),
    Collected("kai-resources.yaml", {"kai.resources": "Project Department NodePool"}, "Run:ai 3.0"),
    Collected("kai.yaml", {"kai.scheduler": "SchedulingShard Topology Config"}, "KAI-Scheduler"),
    Collected("argocd.yaml", {"argoproj.io": "AppProject Application ApplicationSet"}, "Argo CD"),
    Collected("flux.yaml", {"kustomize.toolkit.fluxcd.io": "Kustomization"}, "Flux"),
    Collected("helm-repositories.yaml", {"source.toolkit.fluxcd.io": "HelmRepository"}, "Flux"),
    Collected("helm.yaml", {"helm.toolkit.fluxcd.io": "HelmRelease"}, "Flux"),
    Collected("olm.yaml", {"operators.coreos.com": "Subscription OperatorGroup ClusterServiceVersion"}, "OLM"),
    Collected("openshift-quotas.yaml", {"quota.openshift.io": "ClusterResourceQuota"}, "OpenShift"),
    Collected("openshift.yaml", {"config.openshift.io": "ClusterVersion"}, "OpenShift"),
    Collected(
        "monitoring.yaml",
        {"monitoring.coreos.com": "PrometheusRule ServiceMonitor PodMonitor"},
        "the Prometheus operator",
    ),
    Collected("dra.yaml", {"resource.k8s.io": "DeviceClass"}, "Kubernetes 1.34 or newer, for DRA"),
)
"""The kinds to collect, each in a file of its own. kubectl fails as a whole if one kind is not known."""

FROM_FILES: Final = (
    ("config.kueue.x-k8s.io", "Configuration"),
    ("run.ai", "Project"),
    ("run.ai", "Department"),
    ("run.ai", "NodePool"),
    ("nfd.openshift.io", "NodeFeatureDiscovery"),
    ("nfd.openshift.io", "NodeFeatureRule"),
)
"""Further kinds that are read if a dump holds them: files from Git do, and so do clusters that have such kinds."""

READ: Final = frozenset((*FROM_FILES, *(pair for collected in COLLECTED for pair in collected.pairs)))
