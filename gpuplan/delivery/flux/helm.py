"""The HelmRelease that installs the GPU Operator from its chart, and the repository of the chart."""

from __future__ import annotations

from typing import Any, Final

from gpuplan.backends.gpu_operator import helm_values
from gpuplan.delivery.appliers import get_applier
from gpuplan.delivery.flux import naming
from gpuplan.planning.plan import Flux, Plan, Stage
from gpuplan.planning.sync_names import FLUX_PRUNE, folder_name

RELEASE: Final = "gpu-operator"
CLUSTER_POLICY: Final = "cluster-policy"
"""What the chart calls its ClusterPolicy, whatever the values say."""

_CHART: Final = "gpu-operator"
_OCI: Final = "oci://"

_STAYS: Final = {FLUX_PRUNE: "disabled"}
"""Whoever deletes a HelmRelease uninstalls the release, and with it every driver. That is not for a sync to do."""


def repository(plan: Plan, flux: Flux) -> dict[str, Any]:
    url = plan.cluster.gpu_operator.spec.chart_repo_url
    return {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "HelmRepository",
        "metadata": _metadata(plan, flux),
        "spec": {
            **({"type": "oci"} if url.startswith(_OCI) else {}),
            "interval": flux.spec.interval,
            "url": url,
        },
    }


def release(plan: Plan, flux: Flux) -> dict[str, Any]:
    """The release, with the same values as the file for Helm.

    It does not wait for the ConfigMaps that the values name, since a HelmRelease depends on HelmReleases only: a pod
    whose ConfigMap is missing starts as soon as it is there. What waits for the release waits for the Kustomization of
    the folder `gpu-operator`, which is healthy when the ClusterPolicy is.
    """
    operator = plan.cluster.gpu_operator
    return {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": _metadata(plan, flux),
        "spec": {
            **({} if get_applier(plan, Stage.GPU_OPERATOR).is_automatic else {"suspend": True}),
            "interval": flux.spec.interval,
            **naming.access(flux),
            "releaseName": RELEASE,
            "targetNamespace": operator.namespace,
            "storageNamespace": operator.namespace,
            "chart": {
                "spec": {
                    "chart": _CHART,
                    "version": operator.version,
                    "sourceRef": {"kind": "HelmRepository", "name": _name(plan)},
                }
            },
            "install": {"createNamespace": True, **_action()},
            "upgrade": _action(),
            "driftDetection": {"mode": "enabled"},
            "values": helm_values(plan),
        },
    }


def _action() -> dict[str, Any]:
    """No waiting and no rollback.

    helm-controller would wait until the ClusterPolicy is ready, five minutes, and then roll back. A new driver takes
    every node more than that, and a rollback would change them all a second time. What failed is tried again instead
    (`RetryOnFailure`, in helm-controller since 1.4). Helm itself would leave the chart's definitions as they were when
    first installed.
    """
    return {
        "crds": "CreateReplace",
        "disableWait": True,
        "strategy": {"name": "RetryOnFailure", "retryInterval": naming.RETRY_INTERVAL},
    }


def _metadata(plan: Plan, flux: Flux) -> dict[str, Any]:
    return {**naming.metadata(flux, _name(plan)), "annotations": _STAYS}


def _name(plan: Plan) -> str:
    return folder_name(plan.cluster.name, Stage.GPU_OPERATOR)
