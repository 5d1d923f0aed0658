"""Random platforms whose clusters set many fields, of every scheduler and distribution."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from gpuplan.compiler.planning.schedulers import SCHEDULERS as TRAITS
from tests.laws.orders.platforms import Platform, Spec, random_platform

SCHEDULERS: Final = tuple(TRAITS)


def random_rich_platform(rng: random.Random, scheduler: str = "") -> Platform:
    platform = random_platform(rng, scheduler=scheduler or rng.choice(SCHEDULERS))
    cluster = platform.cluster
    if cluster["scheduler"]["kind"] == "runai":
        _maybe(rng, cluster["scheduler"], runai=lambda: {"clusterId": "c-1"})
    for change in (_platform, _operator, _scheduler, _delivery, _monitoring, _admission, _beside):
        change(rng, cluster)
    return platform


def _maybe(rng: random.Random, spec: Spec, **values: Callable[[], Any]) -> None:
    for key, value in values.items():
        if rng.random() < 0.4:
            spec[key] = value()


def _platform(rng: random.Random, cluster: Spec) -> None:
    cluster["kubernetes"] = rng.choice(("1.31", "1.33", "1.34"))
    if rng.random() < 0.25:
        cluster["platform"] = "openshift"


def _operator(rng: random.Random, cluster: Spec) -> None:
    operator = cluster["gpuOperator"]
    operator["install"] = rng.choice(("helm", "helm", "helm", "olm", "external"))
    operator["version"] = rng.choice(("v26.7.0", "v25.10.1", "v25.3.4"))
    _maybe(
        rng,
        operator,
        namespace=lambda: "nvidia",
        clusterPolicy=lambda: "gpus",
        migStrategy=lambda: "mixed",
        rebootOnMigChange=lambda: True,
    )
    if operator["install"] == "helm":
        operator.pop("clusterPolicy", None)
        _maybe(
            rng,
            operator,
            registry=lambda: "registry.example.com/nvcr",
            chartRepoURL=lambda: rng.choice(("https://charts.example.com/nvidia", "oci://registry.example.com/charts")),
        )
        if cluster.get("argocd") is None and cluster.get("flux") is None:
            operator.pop("chartRepoURL", None)
    if operator["install"] == "external":
        operator.pop("devicePluginConfig", None)
        operator["version"] = "v26.7.0"
        if rng.random() < 0.5:
            operator["clusterPolicyPatch"] = "snippet"
        return
    _maybe(
        rng,
        operator,
        driver=lambda: rng.choice(({"enabled": False}, {"version": "580.95.05"})),
        env=lambda: {"toolkit": {"CONTAINERD_SOCKET": "/run/k3s/containerd/containerd.sock"}},
        imagePullSecrets=lambda: ["mirror"],
        nfd=lambda: False,
    )
    if rng.random() < 0.3 and cluster["scheduler"]["kind"] in ("kubernetes", "kueue"):
        operator["closeVisibleDevices"] = True
    if operator["install"] == "helm":
        _maybe(rng, operator, values=lambda: _values(rng, operator["version"], has_nfd=operator.get("nfd", True)))
    if operator["install"] == "olm":
        _maybe(rng, operator, olm=lambda: {"catalog": "mirror", "channel": "stable"})


def _values(rng: random.Random, version: str, *, has_nfd: bool) -> Spec:
    found: Spec = {}
    _maybe(
        rng,
        found,
        daemonsets=lambda: {"tolerations": [{"operator": "Exists"}], "labels": {"team": "gpu"}},
        migManager=lambda: {"env": [{"name": "LOG_LEVEL", "value": "debug"}]},
        operator=lambda: {"runtimeClass": "nvidia", "upgradeCRD": True},
        dcgmExporter=lambda: {"serviceMonitor": {"interval": "30s"}},
        gfd=lambda: {"enabled": True},
    )
    if version == "v26.7.0":
        _maybe(rng, found, extraObjects=lambda: [_EXTRA])
    if has_nfd:
        found["node-feature-discovery"] = {"master": {"config": {"extraLabelNs": ["example.com"]}}}
    return found


_EXTRA: Final = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own", "namespace": "own"}}


_CAPS: Final = {"kueue": ("limit", "guaranteed", "queue"), "kai": ("limit", "queue")}


def _scheduler(rng: random.Random, cluster: Spec) -> None:
    scheduler = cluster["scheduler"]
    if scheduler["kind"] in _CAPS:  # what is guaranteed shows in queues alone, and where those are unlike limits
        _maybe(rng, scheduler, cap=lambda: rng.choice(_CAPS[scheduler["kind"]]))
    if scheduler["kind"] == "kueue":
        kueue: Spec = {}
        _maybe(
            rng,
            kueue,
            frameworks=lambda: rng.sample(["JobSet", "PyTorchJob", "RayCluster", "LeaderWorkerSet"], 2),
            configuration=lambda: {
                "resources": {"excludeResourcePrefixes": ["rdma/"]},
                "waitForPodsReady": {"timeout": "5m"},
            },
        )
        if kueue:
            scheduler["kueue"] = kueue
        if rng.random() < 0.3:
            scheduler |= {"install": "helm", "version": "v0.19.2"}
    elif scheduler["kind"] == "kai" and rng.random() < 0.4:
        scheduler |= {"install": "helm", "version": "v0.17.0"}
    if scheduler.get("install") == "helm":
        _maybe(rng, scheduler, values=lambda: {"global": {"nodeSelector": {"role": "system"}}})
        if "argocd" in cluster or "flux" in cluster:
            _maybe(rng, scheduler, chartRepoURL=lambda: "oci://registry.example.com/charts")


def _delivery(rng: random.Random, cluster: Spec) -> None:
    if argocd := cluster.get("argocd"):
        _maybe(
            rng,
            argocd,
            revision=lambda: "v1",
            path=lambda: rng.choice((".", "deploy/out")),
            namespace=lambda: "gitops",
            project=lambda: "gpus",
            destination=lambda: rng.choice(({"name": "far"}, {"server": "https://api.example.com:6443"})),
            labels=lambda: {"team": "gpu", "app": "gpus"},
            root=lambda: True,
            operatorApproval=lambda: rng.choice(("manual", "automatic")),
        )
    if (flux := cluster.get("flux")) is not None:
        _maybe(
            rng,
            flux,
            source=lambda: rng.choice(({"name": "own"}, {"kind": "OCIRepository", "name": "own", "namespace": "src"})),
            path=lambda: rng.choice((".", "deploy/out")),
            namespace=lambda: "gitops",
            interval=lambda: "1h",
            serviceAccountName=lambda: "applier",
            kubeConfigSecret=lambda: "far",
            labels=lambda: {"team": "gpu"},
            operatorApproval=lambda: rng.choice(("manual", "automatic")),
        )


def _monitoring(rng: random.Random, cluster: Spec) -> None:
    if (monitoring := cluster.get("monitoring")) is None:
        return
    _maybe(
        rng,
        monitoring,
        namespace=lambda: "watching",
        labels=lambda: {"release": "prometheus"},
        honorLabels=lambda: True,
        alertLabels=lambda: {"team": "gpu"},
        disabledAlerts=lambda: rng.sample(["GpuTooHot", "GpuMissing", "GpuMigConfigStuck", "GpuQuotaSaturated"], 2),
        runbookUrl=lambda: "https://runbooks.example.com/gpu",
        collect=lambda: "basic",
        dashboards=lambda: rng.choice(({"namespace": "grafana"}, {"labels": {"dash": "1"}, "folder": "GPUs"})),
    )


def _admission(rng: random.Random, cluster: Spec) -> None:
    found: Spec = {}
    _maybe(
        rng,
        found,
        enforcement=lambda: rng.choice(("deny", "warn")),
        gracePeriod=lambda: rng.choice(("none", "5m", "45s")),
        without=lambda: rng.sample(["tolerations-within-pools", "cordoned-nodes-stay-empty", "no-nri-annotations"], 2),
    )
    if found:
        cluster["admission"] = found


def _beside(rng: random.Random, cluster: Spec) -> None:
    _maybe(
        rng,
        cluster,
        apis=lambda: rng.sample(["HTTPRoute", "InferenceService", "JobSet", "ScaledObject", "TrainJob"], 2),
        taintPools=lambda: True,
        matchBoards=lambda: True,
    )
