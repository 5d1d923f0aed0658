from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

from gpuplan.features.live.clusters import name_of, read
from gpuplan.features.live.clusters.kubernetes import newest_kubernetes
from gpuplan.features.live.clusters.operators import newest_release
from gpuplan.features.live.dump import Dump, read_dump
from tests.features.live.cluster_swaps import swapped
from tests.features.live.rich_clusters import random_rich_platform
from tests.features.live.round_trip import is_dumped
from tests.laws.orders.platforms import CLUSTER, Platform

ROOT = Path(__file__).parents[3]
NODE = """
apiVersion: v1
kind: Node
metadata: {name: a}
status: {nodeInfo: {kubeletVersion: v1.34.2}}
"""


def a_dump(text: str) -> Dump:
    dump, unread = read_dump({"dump.yaml": dedent(text).encode()})
    assert not unread
    return dump


def a_spec(text: str, cluster: str = "prod") -> Mapping[str, Any]:
    (draft,) = read(a_dump(text), cluster).drafts
    return draft.spec


def of_example(cluster: str, kubernetes: str) -> Dump:
    """What lies in the example's output for a cluster, with a node of it."""
    files = {
        str(path.relative_to(ROOT)): path.read_bytes()
        for folder in (f"out/{cluster}", f"out/argocd/{cluster}")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and is_dumped(str(path))
    }
    return read_dump(files | {"nodes.yaml": NODE.replace("1.34", kubernetes).encode()})[0]


# --- What gpuplan wrote ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cluster", "kubernetes"), [("dev", "1.34"), ("prod", "1.34"), ("openshift", "1.33")])
def test_the_examples_clusters_are_read_as_they_are_written(cluster: str, kubernetes: str) -> None:
    dump = of_example(cluster, kubernetes)
    written = yaml.safe_load((ROOT / f"overlays/{cluster}/cluster.yaml").read_text())["spec"]

    (draft,) = read(dump, cluster).drafts

    assert draft.spec == written
    assert name_of(dump) == cluster


@pytest.mark.parametrize("seed", [1, 11, 28])
def test_a_cluster_that_is_read_builds_what_it_was_read_of(tmp_path: Path, seed: int) -> None:
    random_rich_platform(random.Random(seed)).write(tmp_path)

    assert swapped(tmp_path, CLUSTER).differing == ()


@pytest.mark.parametrize("seed", [5, 9])
def test_a_cluster_that_runs_tells_what_is_applied_to_it(tmp_path: Path, seed: int) -> None:
    random_rich_platform(random.Random(seed)).write(tmp_path)

    assert swapped(tmp_path, CLUSTER, is_live=True).differing == ()


# --- Field by field ----------------------------------------------------------------------------------------------

HELM: dict[str, Any] = {"install": "helm", "version": "v26.7.0"}
SYNCED: dict[str, Any] = {"repoURL": "https://git.example.com/gpu.git"}
FAR: dict[str, Any] = {
    "revision": "v1",
    "path": "deploy/out",
    "namespace": "gitops",
    "project": "gpus",
    "destination": {"server": "https://api.example.com:6443"},
    "labels": {"team": "gpu"},
}
WATCHED: dict[str, Any] = {
    "namespace": "watching",
    "labels": {"release": "prometheus"},
    "honorLabels": True,
    "alertLabels": {"team": "gpu"},
    "disabledAlerts": ["GpuMigConfigStuck", "GpuMissing", "GpuXidError"],
    "runbookUrl": "https://runbooks.example.com/gpu",
    "dashboards": {"namespace": "grafana", "labels": {"dash": "1"}, "folder": "GPUs"},
}
TOLD: dict[str, Any] = {
    **HELM,
    "namespace": "nvidia",
    "migStrategy": "mixed",
    "devicePluginConfig": "fixed",
    "closeVisibleDevices": True,
    "driver": {"version": "580.95.05"},
    "rebootOnMigChange": True,
    "env": {"toolkit": {"CONTAINERD_SOCKET": "/run/k3s.sock"}, "devicePlugin": {"PASS_DEVICE_SPECS": "true"}},
    "registry": "registry.example.com/nvcr",
    "imagePullSecrets": ["mirror"],
    "values": {
        "daemonsets": {"tolerations": [{"operator": "Exists"}]},
        "migManager": {"env": [{"name": "LOG_LEVEL", "value": "debug"}]},
        "node-feature-discovery": {"master": {"config": {"extraLabelNs": ["example.com"]}}},
        "operator": {"upgradeCRD": True},
    },
}
QUOTA = {"pool": "gpus", "unit": "1g.10gb", "guaranteed": 7, "limit": 14}
PARTS: dict[tuple[str, str], dict[str, Any]] = {
    ("Pool", "gpus"): {
        "gpu": "A100-80GB",
        "nodes": {"count": 1, "gpusPerNode": 8, "names": ["a"]},
        "sharing": {"mig": {"instances": {"1g.10gb": 7}}},
    },
    ("Tenant", "team"): {"namespaces": ["team"], "quotas": [QUOTA]},
    ("Tenant", "other"): {"namespaces": ["other"], "quotas": [{**QUOTA, "limit": "none"}]},
}
BY_OLM: dict[str, Any] = {"install": "olm", "version": "v26.7.0"}
BY_OWNER: dict[str, Any] = {"install": "external", "version": "v26.7.0"}


@pytest.mark.parametrize(
    "spec",
    [
        {"gpuOperator": HELM},
        {"gpuOperator": TOLD},
        {"gpuOperator": {**HELM, "driver": {"enabled": False}, "nfd": False}},
        {"gpuOperator": {**HELM, "chartRepoURL": "oci://charts.example.com/nvidia"}, "argocd": SYNCED},
        {"gpuOperator": {**HELM, "chartRepoURL": "https://charts.example.com/nvidia"}, "flux": {}},
        {"gpuOperator": BY_OLM},
        {"gpuOperator": {**BY_OLM, "namespace": "gpus", "clusterPolicy": "all", "nfd": False}},
        {"gpuOperator": {**BY_OLM, "closeVisibleDevices": True, "olm": {"catalog": "mirror", "channel": "stable"}}},
        {"platform": "openshift", "gpuOperator": {**BY_OLM, "imagePullSecrets": ["mirror"]}, "monitoring": {}},
        {"gpuOperator": {**BY_OWNER, "clusterPolicy": "gpus", "migStrategy": "mixed"}},
        {"gpuOperator": {**BY_OWNER, "clusterPolicyPatch": "snippet", "rebootOnMigChange": True}},
        {"gpuOperator": HELM, "nodeLabels": "node"},
        {"gpuOperator": HELM, "nodeLabels": "external", "taintPools": True},
        {"gpuOperator": HELM, "taintPools": True, "matchBoards": True},
        {"gpuOperator": HELM, "scheduler": {"kind": "kai"}},
        {"gpuOperator": HELM, "scheduler": {"kind": "kueue", "cap": "limit"}},
        {"gpuOperator": HELM, "scheduler": {"kind": "kueue", "cap": "guaranteed"}, "monitoring": {}},
        {
            "gpuOperator": HELM,
            "scheduler": {
                "kind": "kueue",
                "version": "v0.19.2",
                "kueue": {
                    "frameworks": ["JobSet", "LeaderWorkerSet"],
                    "configuration": {"resources": {"excludeResourcePrefixes": ["rdma/"]}},
                },
                "install": "helm",
                "chartRepoURL": "oci://registry.example.com/charts",
                "values": {"enableKueueViz": True},
            },
            "argocd": SYNCED,
        },
        {
            "gpuOperator": HELM,
            "scheduler": {
                "kind": "kai",
                "version": "v0.17.0",
                "install": "helm",
                "values": {"global": {"nodeSelector": {"role": "system"}}},
            },
            "flux": {},
        },
        {"gpuOperator": HELM, "scheduler": {"kind": "runai", "runai": {"clusterId": "c-1"}}},
        {"gpuOperator": HELM, "apis": ["HTTPRoute", "JobSet"], "argocd": {**SYNCED, **FAR}},
        {"gpuOperator": HELM, "argocd": {**SYNCED, "path": ".", "root": True}},
        {"gpuOperator": HELM, "argocd": {**SYNCED, "root": True, "operatorApproval": "manual"}},
        {
            "gpuOperator": HELM,
            "flux": {
                "source": {"kind": "OCIRepository", "name": "gpus", "namespace": "sources"},
                "path": "deploy/out",
                "namespace": "gitops",
                "interval": "1h",
                "serviceAccountName": "applier",
                "kubeConfigSecret": "far",
                "labels": {"team": "gpu"},
                "operatorApproval": "manual",
            },
        },
        {"gpuOperator": HELM, "monitoring": WATCHED},
        {"gpuOperator": HELM, "monitoring": {"collect": "basic"}},
        {"gpuOperator": HELM, "admission": {"gracePeriod": "5m", "without": ["cordoned-nodes-stay-empty"]}},
        {"gpuOperator": HELM, "admission": {"gracePeriod": "none"}},
        {"gpuOperator": HELM, "admission": {"enforcement": "warn"}},
    ],
    ids=lambda spec: ",".join(f"{key}" for key in spec),
)
def test_what_a_cluster_says_is_read_of_what_it_builds(tmp_path: Path, spec: dict[str, Any]) -> None:
    Platform({"kubernetes": "1.34", **spec}, PARTS).write(tmp_path)

    swap = swapped(tmp_path, CLUSTER)

    assert swap.differing == ()
    assert swap.spec == {"kubernetes": "1.34", **spec}


@pytest.mark.parametrize(
    ("spec", "service"),
    [
        (
            {"apis": ["HTTPRoute"], "gateway": {"name": "public", "namespace": "gateways", "listener": "https"}},
            {"replicas": 2, "route": {"hosts": ["chat.example.com"]}},
        ),
        ({"ingress": {"className": "nginx"}}, {"replicas": 2, "route": {"hosts": ["chat.example.com"]}}),
        (
            {
                "apis": ["ScaledObject"],
                "prometheus": {"url": "http://prometheus.example:9090", "authentication": "thanos"},
            },
            {"autoscaling": {"maxReplicas": 2, "requestsPerSecond": 10, "kind": "ScaledObject"}},
        ),
    ],
    ids=["gateway", "ingress", "prometheus"],
)
def test_what_services_use_is_read_of_their_objects(
    tmp_path: Path, spec: dict[str, Any], service: dict[str, Any]
) -> None:
    work = {"tenant": "team", "pool": "gpus", "unit": "1g.10gb", "image": "example.com/app:1.4", "inference": service}
    cluster = {"kubernetes": "1.34", "gpuOperator": HELM, **spec}
    Platform(cluster, {**PARTS, ("Workload", "chat"): work}).write(tmp_path)

    swap = swapped(tmp_path, CLUSTER)

    assert swap.differing == ()
    assert swap.spec == cluster


# --- What others installed ---------------------------------------------------------------------------------------

POLICY = """
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata:
  name: cluster-policy
  labels: {app.kubernetes.io/managed-by: Helm, helm.sh/chart: gpu-operator-v25.10.0}
spec:
  mig: {strategy: single}
  driver: {enabled: true, version: 570.195.03}
  migManager:
    config: {name: custom-mig-config}
    env: [{name: WITH_REBOOT, value: "true"}]
status: {namespace: nvidia, state: ready}
"""


def test_the_operator_of_others_stays_theirs_and_keeps_its_settings() -> None:
    assert a_spec(f"{NODE}---{POLICY}") == {
        "kubernetes": "1.34",
        "gpuOperator": {
            "install": "external",
            "version": "v25.10.0",
            "namespace": "nvidia",
            "migStrategy": "single",
            "driver": {"version": "570.195.03"},
            "rebootOnMigChange": True,
        },
        "admission": {"enforcement": "warn"},
    }


def test_a_driver_of_the_nodes_image_is_the_one_that_runs() -> None:
    node = NODE.replace("{name: a}", "{name: a, labels: {nvidia.com/cuda.driver-version.full: 580.95.05}}")
    policy = POLICY.replace("{enabled: true, version: 570.195.03}", "{enabled: false}")

    spec = a_spec(f"{node}---{policy}")

    assert spec["gpuOperator"]["driver"] == {"enabled": False, "version": "580.95.05"}


@pytest.mark.parametrize(
    "said",
    [
        (
            "{kind: Deployment, apiVersion: apps/v1, metadata: {name: gpu-operator, namespace: nvidia, "
            "labels: {helm.sh/chart: gpu-operator-v25.3.4}}}"
        ),
        (
            "{kind: Deployment, apiVersion: apps/v1, metadata: {name: gpu-operator, namespace: nvidia}, spec: "
            "{template: {spec: {containers: [{name: a, image: 'nvcr.io/nvidia/gpu-operator:v25.3.4'}]}}}}"
        ),
        (
            "{kind: Subscription, apiVersion: operators.coreos.com/v1alpha1, metadata: {name: gpu-operator-certified, "
            "namespace: nvidia}, spec: {name: gpu-operator-certified}, "
            "status: {installedCSV: gpu-operator-certified.v25.3.4}}"
        ),
        (
            "{kind: HelmRelease, apiVersion: helm.toolkit.fluxcd.io/v2, metadata: {name: gpu, namespace: flux}, spec: "
            "{targetNamespace: nvidia, chart: {spec: {chart: gpu-operator, version: 25.3.4}}}}"
        ),
    ],
)
def test_the_release_is_said_by_whoever_installs_it(said: str) -> None:
    operator = a_spec(f"{NODE}---\n{said}")["gpuOperator"]

    assert operator == {"install": "external", "version": "v25.3.4", "namespace": "nvidia"}


def test_the_owner_merges_the_patch_where_argo_cd_has_the_cluster_policy() -> None:
    application = """
    apiVersion: argoproj.io/v1alpha1
    kind: Application
    metadata: {name: gpu-operator, namespace: argocd}
    spec:
      source:
        repoURL: https://helm.ngc.nvidia.com/nvidia
        chart: gpu-operator
        targetRevision: v25.10.1
        helm: {valuesObject: {mig: {strategy: mixed}, migManager: {config: {name: custom}}}}
      destination: {namespace: gpu, name: in-cluster}
    """

    assert a_spec(f"{NODE}---{dedent(application)}")["gpuOperator"] == {
        "install": "external",
        "version": "v25.10.1",
        "namespace": "gpu",
        "clusterPolicyPatch": "snippet",
        "migStrategy": "mixed",
    }


def test_values_of_a_chart_alone_say_what_the_operator_is_told() -> None:
    values = "mig: {strategy: mixed}\ndriver: {enabled: false}\n"

    assert a_spec(f"{NODE}---\n{values}")["gpuOperator"] == {
        "install": "external",
        "version": newest_release(),
        "migStrategy": "mixed",
        "driver": {"enabled": False},
    }


@pytest.mark.parametrize(("version", "admission"), [("v1.30.2", {"enforcement": "warn"}), ("v1.29.9", None)])
def test_work_that_no_rule_has_judged_is_warned_of_at_first(version: str, admission: object) -> None:
    """Before 1.30 there are no policies that could warn."""
    node = NODE.replace("v1.34", version.rpartition(".")[0])

    assert a_spec(f"{node}---{POLICY}").get("admission") == admission


def test_what_the_dump_does_not_tell_is_assumed_and_said() -> None:
    found = read(a_dump("{apiVersion: v1, kind: Namespace, metadata: {name: a}}"), "prod")

    assert [(item.code, item.finding.message) for item in found.diagnostics] == [
        ("GPU806", "the dump does not say which version of Kubernetes runs"),
        ("GPU806", "the dump does not say which release of the GPU Operator runs"),
    ]
    (draft,) = found.drafts
    assert draft.spec == {
        "kubernetes": newest_kubernetes(),
        "gpuOperator": {"install": "external", "version": newest_release()},
        "admission": {"enforcement": "warn"},
    }
    assert draft.remarks == (
        f"which version of Kubernetes runs is not in the dump; {newest_kubernetes()} is assumed",
        f"which release of the GPU Operator runs is not in the dump; {newest_release()} is assumed",
    )


@pytest.mark.parametrize(
    ("said", "version"),
    [
        (NODE, "1.34"),
        ("serverVersion: {gitVersion: v1.33.7-eks-1, major: '1', minor: 33+}", "1.33"),
        (f"{NODE}---\nserverVersion: {{gitVersion: v1.35.0}}", "1.35"),
        (
            (
                "{apiVersion: config.openshift.io/v1, kind: ClusterVersion, metadata: {name: version}, status: "
                "{desired: {version: 4.20.3}}}"
            ),
            "1.33",
        ),
        (NODE + "---" + NODE.replace("{name: a}", "{name: b}").replace("v1.34", "v1.33"), "1.34"),
    ],
)
def test_the_version_is_that_of_the_server_or_of_its_newest_kubelet(said: str, version: str) -> None:
    assert a_spec(said)["kubernetes"] == version


@pytest.mark.parametrize(
    "sign",
    [
        "{apiVersion: config.openshift.io/v1, kind: ClusterVersion, metadata: {name: version}}",
        "{apiVersion: nfd.openshift.io/v1alpha1, kind: NodeFeatureRule, metadata: {name: a}}",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: openshift-config-managed}}",
        "{apiVersion: v1, kind: Node, metadata: {name: b, labels: {node.openshift.io/os_id: rhcos}}, status: {a: b}}",
        (
            "{apiVersion: nvidia.com/v1, kind: ClusterPolicy, metadata: {name: gpu-cluster-policy}, spec: {operator: "
            "{use_ocp_driver_toolkit: true}}}"
        ),
    ],
)
def test_openshift_is_known_by_what_it_has_alone(sign: str) -> None:
    assert a_spec(f"{NODE}---\n{sign}")["platform"] == "openshift"
    assert "platform" not in a_spec(NODE)


@pytest.mark.parametrize(
    ("label", "who"),
    [
        ("cloud.google.com/gke-nodepool", "external"),
        ("eks.amazonaws.com/nodegroup", "external"),
        ("kubernetes.azure.com/agentpool", "external"),
        ("feature.node.kubernetes.io/pci-10de.present", None),
    ],
)
def test_node_groups_of_a_cloud_label_nodes_and_else_node_feature_discovery(label: str, who: str | None) -> None:
    assert a_spec(NODE.replace("{name: a}", f"{{name: a, labels: {{{label}: gpus}}}}")).get("nodeLabels") == who


@pytest.mark.parametrize(
    ("objects", "scheduler"),
    [
        ("{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: a}}", {"kind": "kueue"}),
        ("{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: a}}", {"kind": "kai"}),
        (
            (
                "{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: a}}\n---\n"
                "{apiVersion: run.ai/v2, kind: Project, metadata: {name: a}}"
            ),
            {"kind": "runai"},
        ),
        ("{apiVersion: v1, kind: ResourceQuota, metadata: {name: a, namespace: a}}", None),
    ],
)
def test_the_scheduler_is_known_by_its_objects(objects: str, scheduler: dict[str, str] | None) -> None:
    assert a_spec(f"{NODE}---\n{objects}").get("scheduler") == scheduler


def test_kueue_says_its_release_and_what_it_is_told_of() -> None:
    spec = a_spec(
        f"""{NODE}---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: a}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: kueue-controller-manager, namespace: kueue-system}}
spec: {{template: {{spec: {{containers: [{{name: manager, image: 'registry.k8s.io/kueue/kueue:v0.18.1'}}]}}}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: kueue-manager-config, namespace: kueue-system}}
data:
  controller_manager_config.yaml: |
    apiVersion: config.kueue.x-k8s.io/v1beta2
    kind: Configuration
    leaderElection: {{leaderElect: true}}
    integrations: {{frameworks: [batch/job, jobset.x-k8s.io/jobset, ray.io/rayjob, example.com/own]}}
    resources: {{excludeResourcePrefixes: [cpu, networking.example.com/]}}
"""
    )

    assert spec["scheduler"] == {
        "kind": "kueue",
        "version": "v0.18.1",
        "kueue": {
            "frameworks": ["JobSet", "RayJob"],
            "configuration": {
                "integrations": {"frameworks": ["example.com/own"]},
                "resources": {"excludeResourcePrefixes": ["networking.example.com/"]},
            },
        },
    }


def test_the_cluster_has_kinds_that_objects_or_definitions_show_and_one_gateway() -> None:
    spec = a_spec(
        f"""{NODE}---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: a, namespace: a}}
spec: {{parentRefs: [{{name: public, namespace: gateways, sectionName: https}}]}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: jobsets.jobset.x-k8s.io}}
spec: {{group: jobset.x-k8s.io, names: {{kind: JobSet}}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: a, namespace: a}}
spec: {{ingressClassName: nginx}}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {{name: a, namespace: a}}
spec: {{triggers: [{{type: prometheus, metadata: {{serverAddress: 'http://prometheus:9090'}}}}]}}
"""
    )

    assert spec["apis"] == ["HTTPRoute", "JobSet", "ScaledObject"]
    assert spec["gateway"] == {"name": "public", "namespace": "gateways", "listener": "https"}
    assert spec["ingress"] == {"className": "nginx"}
    assert spec["prometheus"] == {"url": "http://prometheus:9090"}


# --- What is not said --------------------------------------------------------------------------------------------

TOKEN = "ghp_" + "a" * 36
VALUES = f"""
# Values for the chart gpu-operator, v26.7.0.
migManager: {{config: {{name: gpuplan-mig-parted-0123abcd}}, env: [{{name: HTTPS_PROXY, value: 'http://me:{TOKEN}@proxy'}}]}}
driver: {{licensingConfig: {{token: {TOKEN}}}, rdma: {{enabled: true}}}}
"""


def test_no_credential_is_written_into_a_policy() -> None:
    found = read(a_dump(f"{NODE}---{VALUES}"), "prod")

    (draft,) = found.drafts
    assert draft.spec["gpuOperator"]["values"]["driver"] == {"licensingConfig": {}, "rdma": {"enabled": True}}
    assert TOKEN not in str(draft)
    assert [
        (item.code, item.finding.message, item.finding.at.locate().span.start.line) for item in found.diagnostics
    ] == [
        ("GPU807", "the value `migManager.env[0].value`, which holds a credential, is not said", 8),
        ("GPU807", "the value `driver.licensingConfig.token`, which holds a credential, is not said", 9),
    ]


PROJECT = """
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: gpuplan-prod, namespace: argocd}
spec:
  description: GPU configuration of the cluster prod
  sourceRepos: ["https://git.example.com/gpu.git"]
"""


def test_the_repositorys_password_is_left_out() -> None:
    found = read(a_dump(f"{NODE}---{PROJECT.replace('https://', 'https://me:secret@')}"), "prod")

    (draft,) = found.drafts
    assert draft.spec["argocd"]["repoURL"] == "https://git.example.com/gpu.git"
    assert "the password in the repository's address is not said" in [
        item.finding.message for item in found.diagnostics
    ]


def test_the_second_tool_and_the_second_scheduler_are_told() -> None:
    kustomization = """
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: gpu-operator-prod, namespace: flux-system}
spec: {path: ./out/prod/gpu-operator, sourceRef: {kind: GitRepository, name: flux-system}, interval: 10m0s}
"""
    queues = """
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: a}}
---
{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: b}}
"""

    found = read(a_dump("---".join((NODE, PROJECT, kustomization, queues))), "prod")

    assert [item.finding.message for item in found.diagnostics if item.code == "GPU807"] == [
        "what KAI-Scheduler shares out, such as Queue `b`, is not said",
        "that Flux syncs the cluster as well is not said",
    ]
    assert a_spec("---".join((NODE, kustomization)))["flux"] == {}


def test_the_name_is_the_one_of_the_objects_that_are_about_one_cluster() -> None:
    assert name_of(a_dump(PROJECT)) == "prod"
    assert (
        name_of(a_dump(f"{PROJECT}---{PROJECT.replace('gpuplan-prod', 'b').replace('cluster prod', 'cluster b')}"))
        == ""
    )
    assert name_of(a_dump(NODE)) == ""


# --- A cluster that gpuplan's output was applied to ----------------------------------------------------------------

LIVE = """
apiVersion: v1
kind: Namespace
metadata: {name: gpu-operator, annotations: {argocd.argoproj.io/sync-options: "Prune=confirm,Delete=confirm"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: gpuplan-mig-parted-0123abcd, namespace: gpu-operator}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: gpuplan-device-plugin, namespace: gpu-operator}
---
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy, labels: {helm.sh/chart: gpu-operator-v26.7.0}}
spec:
  driver: {version: 595.91.07}
  migManager: {config: {name: gpuplan-mig-parted-0123abcd}, env: [{name: WITH_REBOOT, value: "true"}]}
"""


def test_a_chart_without_its_values_is_read_of_what_it_made() -> None:
    found = read(a_dump(f"{NODE}---{LIVE}"), "prod")

    (draft,) = found.drafts
    told = {"install": "helm", "version": "v26.7.0", "devicePluginConfig": "fixed", "rebootOnMigChange": True}
    assert {key: value for key, value in draft.spec["gpuOperator"].items() if key != "driver"} == told
    assert [(item.code, item.finding.message) for item in found.diagnostics] == [
        ("GPU806", "the values of the chart gpu-operator are not in the dump")
    ]


def test_a_patch_of_somebody_elses_cluster_policy_is_no_installation() -> None:
    patched = LIVE.replace(', annotations: {argocd.argoproj.io/sync-options: "Prune=confirm,Delete=confirm"}', "")

    assert a_spec(f"{NODE}---{patched}")["gpuOperator"]["install"] == "external"


@pytest.mark.parametrize(("annotations", "install"), [("{}", "external"), ("SYNC", "olm")])
def test_a_subscription_is_gpuplans_where_it_wrote_it(annotations: str, install: str) -> None:
    sync = '{argocd.argoproj.io/sync-options: "Prune=confirm,Delete=confirm"}'
    subscription = f"""
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {{name: gpu-operator-certified, namespace: gpu-operator, annotations: {annotations.replace("SYNC", sync)}}}
spec:
  name: gpu-operator-certified
  source: certified-operators
  channel: v26.7
  startingCSV: gpu-operator-certified.v26.7.0
"""
    whole = LIVE.partition("---")[2].replace("spec:\n", "spec:\n  daemonsets: {tolerations: []}\n")

    operator = a_spec(f"{NODE}---{whole}---{subscription}")["gpuOperator"]

    assert (operator["install"], operator["version"]) == (install, "v26.7.0")


def test_partitions_on_demand_say_that_the_gate_is_on_and_which_driver_runs() -> None:
    values = "featureGates: {DynamicMIG: true}\n"
    labels = "{helm.sh/chart: dra-driver-nvidia-gpu-0.4.1}"
    driver = f"{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: a, labels: {labels}}}}}"

    spec = a_spec(f"{NODE}---\n{values}---\n{driver}")

    assert spec["dra"] == {"partitionableDevices": True, "driverVersion": "v0.4.1"}


def test_without_nodes_the_version_is_the_newest_that_refuses_what_the_cluster_does() -> None:
    dump = of_example("dev", "1.34")

    (draft,) = read(Dump(tuple(item for item in dump.objects if item.kind != "Node")), "dev").drafts

    assert draft.spec["kubernetes"] == "1.34"


def test_who_will_sync_is_asked_where_a_tool_runs_that_does_not_yet() -> None:
    application = (
        "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: web, namespace: argocd}, spec: {}}"
    )
    found = read(a_dump(f"{NODE}---\n{application}"), "prod")

    assert [(item.severity.value, item.finding.message) for item in found.diagnostics][-1] == (
        "note",
        "the dump does not say which repository Argo CD will have the policies' output from",
    )


@pytest.mark.parametrize(
    ("ignored", "obeyed"),
    [
        ("metadata: {name: a}", "metadata: {name: b}\nstatus: {state: ready}"),
        ("metadata: {name: a}\nstatus: {state: ignored}", "metadata: {name: b}\nstatus: {state: notReady}"),
        (
            "metadata: {name: a, creationTimestamp: '2026-02-02T00:00:00Z'}",
            "metadata: {name: b, creationTimestamp: '2026-01-01T00:00:00Z'}",
        ),
    ],
    ids=["one has a state", "one says so", "the oldest"],
)
def test_of_two_cluster_policies_that_is_read_which_the_operator_obeys(ignored: str, obeyed: str) -> None:
    policies = "".join(f"---\napiVersion: nvidia.com/v1\nkind: ClusterPolicy\n{body}\n" for body in (ignored, obeyed))

    found = [item for item in read(a_dump(NODE + policies), "prod").diagnostics if item.code == "GPU807"]

    assert [item.finding.message for item in found] == ["what the second ClusterPolicy `a` wants is not said"]


def test_values_of_another_shape_stay_as_they_are() -> None:
    odd = [{"example.com": None}, ["a"], 7]
    values = {
        "migManager": {"config": {"name": "gpuplan-mig-parted-0123abcd"}},
        "node-feature-discovery": {"master": {"config": {"extraLabelNs": [*odd, "nvidia.com"]}}},
    }

    spec = a_spec(f"---\n{yaml.safe_dump(values)}---{NODE}")

    kept = spec["gpuOperator"]["values"]["node-feature-discovery"]["master"]["config"]["extraLabelNs"]
    assert kept == odd
