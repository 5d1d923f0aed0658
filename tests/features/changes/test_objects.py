"""The class of an object that differs, by its kind and fields: what is known where there are no plans."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.manifests.kinds import Judgement
from gpuplan.features.changes import tenants
from gpuplan.features.changes.kinds import JUDGES
from gpuplan.features.changes.model import ObjectChange
from gpuplan.features.changes.objects import compare_objects
from tests.features.changes import edits
from tests.features.changes.platform import Edit, Platform, between, between_trees, original, state

Body = dict[str, Any]


def identity(body: Body) -> Identity:
    metadata = body["metadata"]
    group = body["apiVersion"].rpartition("/")[0]
    return Identity(group, body["kind"], metadata.get("namespace", ""), metadata["name"])


def differences(folder: str, before: str, after: str) -> tuple[ObjectChange, ...]:
    old, new = (
        {(folder, identity(body)): body for body in yaml.safe_load_all(text) if body} for text in (before, after)
    )
    return compare_objects({"prod": old}, {"prod": new})


PRIORITY = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: x}, %s}"
RULE = (
    "{apiVersion: nfd.k8s-sigs.io/v1alpha1, kind: NodeFeatureRule, metadata: {name: x}, spec: {rules: [{name: x, %s,"
    " matchFeatures: [{feature: system.name, matchExpressions: {nodename: {op: In, value: [%s]}}}]}]}}"
)
BOARDS = (
    "{apiVersion: nfd.k8s-sigs.io/v1alpha1, kind: NodeFeatureRule, metadata: {name: x}, spec: {rules: [{name: x,"
    " labels: {%s}, matchFeatures: [{feature: system.name, matchExpressions: {nodename: {op: In, value: [n]}}},"
    " {feature: pci.device, matchExpressions: {vendor: {op: In, value: ['10de']}%s}}]}]}}"
)
ONE_BOARD, TWO_BOARDS = (f", device: {{op: In, value: [{ids}]}}" for ids in ("'20b2'", "'20b2', '20b5'"))
QUEUE = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: x}, spec: {%s}}"
POLICY = "{apiVersion: nvidia.com/v1, kind: ClusterPolicy, metadata: {name: x}, spec: {%s}}"
PLUGIN = '{apiVersion: v1, kind: ConfigMap, metadata: {name: gpuplan-device-plugin-0000000%s}, data: {a: "%s"}}'
MPS = "sharing:\\n  mps: {}"
NAMESPACE = "{apiVersion: v1, kind: Namespace, metadata: {name: x, labels: {%s}}}"
DEPLOYMENT = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, namespace: x}, spec: {%s}}"
LEADER_WORKER_SET = (
    "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: x, namespace: x}, spec: {%s}}"
)
LOCAL_QUEUE = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: x}, spec: {clusterQueue: %s}}"
FLAVOR = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: x}, spec: {%s}}"
RESOURCE_QUOTA = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: x, namespace: x}, spec: {hard: {a: '%s'}}}"
SCOPED_QUOTA = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: x, namespace: x}, spec: {scopes: [%s]}}"
SETTINGS = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: x}, immutable: %s, data: {a: %s}}"
ROLE = (
    "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x, namespace: x},"
    " roleRef: {name: %s}}"
)
ROUTE = (
    "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: x, namespace: x},"
    " spec: {hostnames: [%s]}}"
)
SCALED = "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: x, namespace: x}, spec: {a: %d}}"
INGRESS = (
    "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x, namespace: x}, spec: {rules: [{host: %s}]}}"
)
JOB = "{apiVersion: batch/v1, kind: Job, metadata: {name: x, namespace: x}, spec: {%s}}"
JOB_SET = "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: x, namespace: x}, spec: {%s}}"
TRAIN_JOB = "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: x, namespace: x}, spec: {%s}}"
RUNTIME = (
    "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {name: x, namespace: x}, spec: {%s}}"
)
SECRET = "{apiVersion: v1, kind: Secret, metadata: {name: x, namespace: x}, %s}"
GRANTS = '{apiVersion: v1, kind: ConfigMap, metadata: {name: grants-x, namespace: s}, data: {grants: "%s"}}'
SIZE = "resources: {requests: {storage: %s}}"
SCALER = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: x, namespace: x}, spec: {%s}}"
CLAIM = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, namespace: x}, spec: {%s}}"
NODE = "{apiVersion: v1, kind: Node, metadata: {name: n, labels: {%s}}}"
KAI_QUEUE = "{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: x}, spec: {resources: {gpu: {%s}}}}"
APPLICATION = "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: x%s}, spec: {%s}}"
CHART = "sources: [{chart: gpu-operator, targetRevision: %s, helm: {a: %s}}]"
KUSTOMIZATION = "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: x%s}, spec: {%s}}"
FINALIZER = ", finalizers: [resources-finalizer.argocd.argoproj.io]"
OWN_NAMESPACE = "{apiVersion: v1, kind: Namespace, metadata: {name: gpuplan-system}}"
SELECTED = "namespaceSelector: {matchExpressions: [{key: a, operator: In, values: [%s]}]}"
ANY = "{apiVersion: example.com/v1, kind: Other, metadata: {name: x}, spec: {%s}}"
METRICS = "{apiVersion: v1, kind: ConfigMap, metadata: {name: gpuplan-dcgm-metrics-0}, data: {a: %s}}"
GUARD = "{apiVersion: v1, kind: ConfigMap, metadata: {name: gpuplan-guard-x}, data: {a: %s}}"
FILES = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: %s}}"
MIG = "nvidia.com/mig.config"
KEY = "nvidia.com/device-plugin.config"


@pytest.mark.parametrize(
    ("folder", "before", "after", "change_class"),
    [
        ("scheduling", PRIORITY % "value: 1", PRIORITY % "value: 2", "recreate"),
        ("scheduling", PRIORITY % "preemptionPolicy: Never", PRIORITY % "value: 2", "recreate"),
        ("scheduling", PRIORITY % "value: 1", PRIORITY % "value: 1, globalDefault: true", "preemption-order"),
        ("scheduling", PRIORITY % "description: a", PRIORITY % "description: b", "metadata"),
        ("scheduling", "", PRIORITY % "value: 1", "preemption-order"),
        ("scheduling", PRIORITY % "value: 1", "", "admission"),
        ("partitions/x", RULE % (f"labels: {{{MIG}: a}}", "n"), RULE % (f"labels: {{{MIG}: b}}", "n"), "repartition"),
        ("partitions/x", RULE % (f"labels: {{{MIG}: a}}", "n"), RULE % ("labels: {}", "n"), "destructive"),
        ("partitions/x", RULE % ("labels: {a: b}", "n"), RULE % ("labels: {a: b, c: d}", "n"), "metadata"),
        ("partitions/x", RULE % ("labels: {a: b}", "n"), RULE % ("labels: {a: c}", "n"), "admission"),
        ("partitions/x", RULE % ("labels: {a: b}", "n"), RULE % ("labels: {a: b}", "n, m"), "plugin-restart"),
        (
            "partitions/x",
            RULE % (f"labels: {{{MIG}: a}}", "n"),
            RULE % (f"labels: {{{MIG}: a}}", "n, m"),
            "repartition",
        ),
        (
            "partitions/x",
            RULE % (f"labels: {{{KEY}: a}}", "n"),
            RULE % (f"labels: {{{KEY}: b}}", "n"),
            "plugin-restart",
        ),
        ("partitions/x", RULE % ("labels: {a: b}", "n, m"), RULE % ("labels: {a: b}", "n"), "admission"),
        (
            "partitions/x",
            RULE % (f"labels: {{{MIG}: a}}", "n, m"),
            RULE % (f"labels: {{{MIG}: a}}", "n"),
            "destructive",
        ),
        ("partitions/x", RULE % ("taints: []", "n"), RULE % ("taints: [{effect: NoSchedule}]", "n"), "taint"),
        ("partitions/x", BOARDS % ("a: b", ""), BOARDS % ("a: b", ONE_BOARD), "admission"),
        ("partitions/x", BOARDS % (f"{MIG}: a", ""), BOARDS % (f"{MIG}: a", ONE_BOARD), "destructive"),
        ("partitions/x", BOARDS % (f"{MIG}: a", ONE_BOARD), BOARDS % (f"{MIG}: a", ""), "repartition"),
        ("partitions/x", BOARDS % (f"{MIG}: a", ONE_BOARD), BOARDS % (f"{MIG}: a", TWO_BOARDS), "repartition"),
        ("partitions/x", BOARDS % (f"{MIG}: a", TWO_BOARDS), BOARDS % (f"{MIG}: a", ONE_BOARD), "destructive"),
        ("partitions/x", RULE % ("taints: []", "n"), RULE % ("taints: [{effect: NoExecute}]", "n"), "destructive"),
        ("partitions/x", RULE % ("labels: {}", "n"), "", "destructive"),
        ("partitions/x", "", RULE % (f"labels: {{{MIG}: a}}", "n"), "repartition"),
        ("partitions/x", "", RULE % (f"labels: {{{MIG}: all-disabled}}", "n"), "plugin-restart"),
        ("partitions/x", NODE % f"{MIG}: a", NODE % f"{MIG}: b", "repartition"),
        ("partitions/x", NODE % f"{MIG}: a", "", "admission"),
        ("gpu-operator", POLICY % "driver: {version: a}", POLICY % "driver: {version: b}", "repartition"),
        ("gpu-operator", POLICY % "gfd: {enabled: true}", POLICY % "gfd: {enabled: false}", "plugin-restart"),
        ("gpu-operator", POLICY % "dcgmExporter: {env: 1}", POLICY % "dcgmExporter: {env: 2}", "plugin-restart"),
        ("gpu-operator", POLICY % "daemonsets: {tolerations: 1}", POLICY % "daemonsets: {}", "repartition"),
        ("gpu-operator", POLICY % "heardOf: {nowhere: 1}", POLICY % "heardOf: {nowhere: 2}", "plugin-restart"),
        ("gpu-operator", POLICY % "dcgmExporter: {}", POLICY % "dcgmExporter: {serviceMonitor: {a: 2}}", "metadata"),
        ("gpu-operator", PLUGIN % ("0", MPS), PLUGIN % ("1", "version: v1"), "repartition"),
        ("gpu-operator", PLUGIN % ("0", "version: v1"), PLUGIN % ("1", MPS), "repartition"),
        ("gpu-operator", PLUGIN % ("0", "version: v1"), PLUGIN % ("1", "version: v2"), "plugin-restart"),
        ("gpu-operator", POLICY % "gfd: {enabled: true}", "", "destructive"),
        ("scheduling", QUEUE % "resourceGroups: [1]", QUEUE % "resourceGroups: [2]", "quota"),
        ("scheduling", QUEUE % "cohortName: a", QUEUE % "cohortName: b", "preemption-order"),
        ("scheduling", QUEUE % "stopPolicy: None", QUEUE % "stopPolicy: Hold", "admission"),
        ("scheduling", QUEUE % "stopPolicy: Hold", QUEUE % "stopPolicy: HoldAndDrain", "recreate"),
        ("scheduling", QUEUE % "stopPolicy: HoldAndDrain", QUEUE % "stopPolicy: None", "admission"),
        ("scheduling", QUEUE % "cohortName: a", "", "two-step"),
        ("scheduling", FLAVOR % "a: b", FLAVOR % "a: c", "admission"),
        ("scheduling", FLAVOR % "topologyName: x, nodeLabels: {a: b}", FLAVOR % "topologyName: x", "recreate"),
        ("scheduling", FLAVOR % "topologyName: x", FLAVOR % "topologyName: x, nodeTaints: [a]", "admission"),
        ("scheduling", FLAVOR % "a: b", "", "two-step"),
        ("namespaces/x", LOCAL_QUEUE % "a", LOCAL_QUEUE % "b", "recreate"),
        ("namespaces/x", LOCAL_QUEUE % "a", LOCAL_QUEUE % "a, stopPolicy: Hold", "admission"),
        ("namespaces/x", LOCAL_QUEUE % "a", LOCAL_QUEUE % "a, stopPolicy: HoldAndDrain", "recreate"),
        ("namespaces/x", LOCAL_QUEUE % "a", LOCAL_QUEUE % "a, fairSharing: {weight: 2}", "preemption-order"),
        ("scheduling", QUEUE % "a: b", QUEUE % "a: b, concurrentAdmissionPolicy: {a: b}", "recreate"),
        ("namespaces/x", JOB % "suspend: true", JOB % "suspend: false", "admission"),
        ("namespaces/x", JOB % "suspend: true", JOB % "suspend: true, managedBy: example.com/a", "recreate"),
        ("namespaces/x", JOB % "backoffLimitPerIndex: 1", JOB % "backoffLimitPerIndex: 2", "recreate"),
        ("namespaces/x", JOB % "successPolicy: {a: b}", JOB % "successPolicy: {a: c}", "recreate"),
        ("workloads/x", "", JOB_SET % "suspend: true", "quota"),
        ("namespaces/x", JOB_SET % "suspend: true", JOB_SET % "suspend: false", "admission"),
        ("namespaces/x", JOB_SET % "network: {a: b}", JOB_SET % "network: {a: c}", "recreate"),
        ("namespaces/x", JOB_SET % "failurePolicy: {a: b}", JOB_SET % "failurePolicy: {a: c}", "recreate"),
        ("workloads/x", "", TRAIN_JOB % "suspend: true", "quota"),
        ("namespaces/x", TRAIN_JOB % "trainer: {a: b}", TRAIN_JOB % "trainer: {a: c}", "recreate"),
        ("namespaces/x", RUNTIME % "mlPolicy: {a: b}", RUNTIME % "mlPolicy: {a: c}", "admission"),
        ("namespaces/x", JOB % "podFailurePolicy: {a: b}", JOB % "podFailurePolicy: {a: c}", "recreate"),
        ("namespaces/x", SECRET % "data: {a: b}", SECRET % "type: Opaque, data: {a: c}", "admission"),
        ("namespaces/x", SECRET % "data: {a: b}", SECRET % "type: example.com/a, data: {a: b}", "recreate"),
        ("queues/x", KAI_QUEUE % "quota: 1", KAI_QUEUE % "quota: 2", "quota"),
        ("queues/x", KAI_QUEUE % "overQuotaWeight: 1", KAI_QUEUE % "overQuotaWeight: 2", "preemption-order"),
        ("namespaces/x", RESOURCE_QUOTA % "1", RESOURCE_QUOTA % "2", "quota"),
        ("namespaces/x", RESOURCE_QUOTA % "1", SCOPED_QUOTA % "BestEffort", "recreate"),
        ("namespaces/x", RESOURCE_QUOTA % "1", "", "admission"),
        ("namespaces/x", SETTINGS % (False, "a"), SETTINGS % (False, "b"), "admission"),
        ("namespaces/x", SETTINGS % (True, "a"), SETTINGS % (True, "b"), "recreate"),
        ("namespaces/x", ROLE % "a", ROLE % "b", "recreate"),
        ("namespaces/x", GRANTS % "a\\nb", GRANTS % "a", "admission"),
        ("namespaces/x", GRANTS % "a", GRANTS % "a\\nb", "quota"),
        ("namespaces/x", NAMESPACE % "a: b", NAMESPACE % "a: c", "metadata"),
        (
            "namespaces/x",
            NAMESPACE % "pod-security.kubernetes.io/enforce: a",
            NAMESPACE % "pod-security.kubernetes.io/enforce: b",
            "admission",
        ),
        ("namespaces/x", NAMESPACE % "a: b", "", "destructive"),
        ("workloads/x", DEPLOYMENT % "replicas: 1", DEPLOYMENT % "replicas: 2", "quota"),
        ("workloads/x", DEPLOYMENT % "replicas: 2", DEPLOYMENT % "replicas: 1", "recreate"),
        ("workloads/x", DEPLOYMENT % "replicas: 2", DEPLOYMENT % "", "recreate"),
        ("workloads/x", DEPLOYMENT % "replicas: 1", DEPLOYMENT % "", "quota"),
        ("workloads/x", SCALER % "maxReplicas: 4", SCALER % "maxReplicas: 5", "quota"),
        ("workloads/x", SCALER % "maxReplicas: 4", SCALER % "maxReplicas: 3", "recreate"),
        ("workloads/x", DEPLOYMENT % "template: a", DEPLOYMENT % "template: b", "recreate"),
        ("workloads/x", DEPLOYMENT % "template: a", "", "destructive"),
        ("workloads/x", "", ROUTE % "a.example.com", "quota"),
        ("workloads/x", ROUTE % "a.example.com", ROUTE % "b.example.com", "admission"),
        ("workloads/x", ROUTE % "a.example.com", "", "admission"),
        ("workloads/x", INGRESS % "a.example.com", INGRESS % "b.example.com", "admission"),
        ("workloads/x", INGRESS % "a.example.com", "", "admission"),
        ("workloads/x", SCALED % 1, SCALED % 2, "quota"),
        ("workloads/x", SCALED % 1, "", "quota"),
        ("workloads/x", LEADER_WORKER_SET % "replicas: 1", LEADER_WORKER_SET % "replicas: 2", "quota"),
        ("workloads/x", LEADER_WORKER_SET % "startupPolicy: a", LEADER_WORKER_SET % "startupPolicy: b", "quota"),
        (
            "workloads/x",
            LEADER_WORKER_SET % "leaderWorkerTemplate: a",
            LEADER_WORKER_SET % "leaderWorkerTemplate: b",
            "recreate",
        ),
        ("workloads/x", LEADER_WORKER_SET % "replicas: 1", "", "destructive"),
        ("workloads/x", CLAIM % "resources: 1", CLAIM % "resources: 2", "quota"),
        ("workloads/x", CLAIM % (SIZE % "1Gi"), CLAIM % (SIZE % "1025Mi"), "quota"),
        ("workloads/x", CLAIM % (SIZE % "1Gi"), CLAIM % (SIZE % "1023Mi"), "recreate"),
        ("workloads/x", CLAIM % "storageClassName: a", CLAIM % "storageClassName: b", "recreate"),
        ("argocd", APPLICATION % ("", CHART % ("v1", "b")), APPLICATION % ("", CHART % ("v2", "b")), "plugin-restart"),
        ("argocd", APPLICATION % ("", CHART % ("v1", "b")), APPLICATION % ("", CHART % ("v1", "c")), "metadata"),
        ("argocd", APPLICATION % ("", "sources: [{path: a}]"), APPLICATION % ("", "sources: [{path: b}]"), "metadata"),
        ("argocd", APPLICATION % ("", "destination: a"), APPLICATION % ("", "destination: b"), "destructive"),
        ("argocd", APPLICATION % ("", "a: b"), APPLICATION % ("", "a: c"), "metadata"),
        ("argocd", APPLICATION % ("", "a: b"), "", "metadata"),
        ("argocd", APPLICATION % (FINALIZER, "a: b"), "", "destructive"),
        ("flux", KUSTOMIZATION % ("", "prune: false"), "", "metadata"),
        ("flux", KUSTOMIZATION % ("", "prune: true"), "", "destructive"),
        ("flux", "", KUSTOMIZATION % ("", "prune: true"), "metadata"),
        ("scheduling", OWN_NAMESPACE, "", "admission"),
        ("scheduling", QUEUE % (SELECTED % "a"), QUEUE % (SELECTED % "a, b"), "quota"),
        ("scheduling", QUEUE % (SELECTED % "a, b"), QUEUE % (SELECTED % "a"), "admission"),
        ("scheduling", QUEUE % (SELECTED % "a"), QUEUE % (SELECTED % "b"), "admission"),
        ("namespaces/x", NAMESPACE % "gpuplan.dev/tenant: a", NAMESPACE % "gpuplan.dev/tenant: b", "admission"),
        ("namespaces/x", GRANTS % "a", GRANTS % "b", "admission"),
        ("namespaces/x", GRANTS % "a", GRANTS.replace("grants:", "pools:") % "a", "admission"),
        ("gpu-operator", METRICS % "b", METRICS % "c", "metadata"),
        ("gpu-operator", METRICS % "b", "", "metadata"),
        ("gpu-operator", FILES % "b", FILES % "c", "plugin-restart"),
        ("partitions/x", GUARD % "b", GUARD % "c", "metadata"),
        ("partitions/x", FILES % "b", FILES % "c", "repartition"),
        ("scheduling", FILES % "b", FILES % "c", "admission"),
        ("gpu-operator", ANY % "a: b", ANY % "a: c", "plugin-restart"),
        ("partitions/x", ANY % "a: b", ANY % "a: c", "repartition"),
        ("scheduling", ANY % "a: b", ANY % "a: c", "admission"),
        ("queues/x", ANY % "a: b", ANY % "a: c", "preemption-order"),
        ("namespaces/x", ANY % "a: b", ANY % "a: c", "admission"),
        ("monitoring", ANY % "a: b", ANY % "a: c", "metadata"),
        ("workloads/x", ANY % "a: b", ANY % "a: c", "recreate"),
        ("flux", ANY % "a: b", ANY % "a: c", "metadata"),
        ("workloads/x", "", ANY % "a: b", "quota"),
        ("monitoring", "", ANY % "a: b", "metadata"),
        ("queues/x", "", ANY % "a: b", "admission"),
        ("partitions/x", "", ANY % "a: b", "admission"),
        ("monitoring", ANY % "a: b", "", "metadata"),
        ("namespaces/x", ANY % "a: b", "", "destructive"),
    ],
)
def test_class_of_an_object(folder: str, before: str, after: str, change_class: str) -> None:
    (found,) = differences(folder, before, after)
    assert found.change_class == change_class


def test_each_judgement_has_its_function() -> None:
    assert set(JUDGES) == set(Judgement)


def test_annotations_alone_are_metadata() -> None:
    head = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: x, namespace: x, annotations: {a: %s}}, spec: {}}"
    (found,) = differences("namespaces/x", head % "b", head % "c")
    assert (found.change_class, found.verb) == (ChangeClass.METADATA, "changed")


def test_what_guards_a_sync_disturbs_nothing() -> None:
    head = "{apiVersion: batch/v1, kind: Job, metadata: {name: x, namespace: x, annotations: {%s: PreSync}}, spec: %s}"
    hook = "argocd.argoproj.io/hook"
    (found,) = differences("partitions/x", head % (hook, "a"), head % (hook, "b"))
    assert found.change_class is ChangeClass.METADATA


def test_an_object_whose_name_has_a_hash_is_one_that_changed() -> None:
    head = "{apiVersion: v1, kind: ConfigMap, metadata: {name: gpuplan-device-plugin-%s, namespace: x}, data: {a: b}}"
    (found,) = differences("gpu-operator", head % "01234567", head % "89abcdef")
    assert (found.verb, found.change_class) == ("changed", ChangeClass.PLUGIN_RESTART)


def test_what_disturbs_more_than_its_explanation_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The description of a class is told of, and its value is not: the object is shown as it is."""
    monkeypatch.setattr(tenants, "_fixed", lambda *_: [])

    def edit(platform: Platform) -> None:
        edits.change_a_description(platform)
        edits.change_the_value_of_a_class(platform)

    found = between(state(original), state(edit))
    assert {change.change_class for change in found.changes} == {ChangeClass.METADATA}
    shown = [(item.change_class, item.identity.kind) for item in found.objects if item.cluster == "dev"]
    assert shown == [(ChangeClass.RECREATE, "PriorityClass")]


@pytest.mark.parametrize(
    ("before", "edit", "change_class"),
    [
        (original, edits.edit_a_layout, "two-step"),
        (original, edits.rename_a_pool, "two-step"),
        (original, edits.swap_a_layout, "repartition"),
        (original, edits.change_the_driver, "repartition"),
        (original, edits.change_replicas_of_a_pool, "plugin-restart"),
        (original, edits.cut_a_quota_under_use, "quota"),
        (original, edits.change_the_value_of_a_class, "recreate"),
        (original, edits.leave_kueue, "two-step"),
        (original, edits.remove_a_tenant, "destructive"),
        (original, edits.remove_a_cluster, "destructive"),
        (original, edits.reformat, "none"),
        (edits.add_an_unused_layout, edits.remove_an_unused_layout, "plugin-restart"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_committed_output_has_the_class_that_plans_have(before: Edit, edit: Edit, change_class: str) -> None:
    found = between_trees(state(before).tree, state(before, edit).tree)
    assert max((item.change_class for item in found), key=lambda c: c.rank, default="none") == change_class


def _kai(platform: Platform) -> None:
    platform.cluster("prod")["scheduler"] = {"kind": "kai"}


def _runai(platform: Platform) -> None:
    platform.cluster("prod")["scheduler"] = {"kind": "runai"}


def _flux(platform: Platform) -> None:
    edits.go_from_argocd_to_flux(platform)


def _olm(platform: Platform) -> None:
    platform.cluster("prod")["platform"] = "openshift"
    platform.cluster("prod")["gpuOperator"]["install"] = "olm"


@pytest.mark.parametrize("before", [_kai, _runai, _flux, _olm], ids=lambda edit: edit.__name__.strip("_"))
@pytest.mark.parametrize(
    "edit",
    [
        edits.edit_a_layout,
        edits.rename_a_pool,
        edits.change_replicas_of_a_pool,
        edits.cut_a_quota_under_use,
        edits.change_a_weight,
        edits.change_the_value_of_a_class,
        edits.add_a_tenant,
        edits.remove_a_tenant,
        edits.add_a_node_label,
        edits.change_a_taint,
        edits.change_an_approval,
        edits.change_a_training,
    ],
    ids=lambda edit: edit.__name__,
)
def test_all_that_differs_is_explained_with_other_back_ends(before: Edit, edit: Edit) -> None:
    old, new = state(before), state(before, edit)
    found, back = between(old, new), between(new, old)
    assert (found.objects, back.objects) == ((), ())
    assert (found.worst is ChangeClass.NONE) == (old.tree == new.tree)


CONFIGURATION = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, %s}"


@pytest.mark.parametrize(
    ("before", "after", "change_class"),
    [
        ("resources: {a: 1}", "resources: {a: 1}, metrics: {enableClusterQueueResources: true}", ChangeClass.METADATA),
        ("resources: {a: 1}", "resources: {a: 2}, metrics: {enableClusterQueueResources: true}", ChangeClass.ADMISSION),
    ],
)
def test_what_kueue_shows_to_prometheus_decides_nothing(before: str, after: str, change_class: ChangeClass) -> None:
    name = Identity("", "File", "", "kueue-configuration.yaml")
    old, new = ({("scheduling", name): {"data": CONFIGURATION % text}} for text in (before, after))

    (found,) = compare_objects({"prod": old}, {"prod": new})

    assert found.change_class is change_class
