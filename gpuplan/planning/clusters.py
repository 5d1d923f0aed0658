"""A cluster's settings, with defaults filled in."""

from __future__ import annotations

from collections.abc import Iterable
from posixpath import normpath

from gpuplan.diagnostics import Origin
from gpuplan.planning.plan import Argocd, Cluster, Dashboards, Flux, GpuOperator, Monitoring, Pool, Scheduler
from gpuplan.policy import models
from gpuplan.policy.models import Approval, Install, Platform


def resolve_cluster(at: Origin, cluster: models.Cluster, pools: Iterable[Pool]) -> Cluster:
    """The settings of a cluster; ``at`` is its `spec`."""
    spec, name = cluster.spec, cluster.metadata.name
    flux, release = spec.flux, (spec.scheduler.version or "").removeprefix("v")
    approval = _operator_approval(pools)
    operator = _gpu_operator(at / "gpuOperator", spec)
    return Cluster(
        at=at,
        name=name,
        spec=spec,
        gpu_operator=operator,
        scheduler=Scheduler(at / "scheduler", spec.scheduler, f"v{release}" if release else ""),
        argocd=_argocd(at / "argocd", name, spec.platform, spec.argocd, approval) if spec.argocd else None,
        flux=Flux(at / "flux", flux, normpath(flux.path), flux.operator_approval or approval) if flux else None,
        monitoring=_monitoring(at / "monitoring", spec.platform, operator, spec.monitoring)
        if spec.monitoring
        else None,
    )


def _gpu_operator(at: Origin, spec: models.ClusterSpec) -> GpuOperator:
    operator = spec.gpu_operator
    # NVIDIA's OpenShift documentation and bundle use these names; the Helm chart's CR is `cluster-policy`.
    is_openshift = spec.platform is Platform.OPENSHIFT or operator.install is Install.OLM
    return GpuOperator(
        at=at,
        spec=operator,
        version=f"v{operator.version.removeprefix('v')}",
        namespace=operator.namespace or ("nvidia-gpu-operator" if is_openshift else "gpu-operator"),
        cluster_policy=operator.cluster_policy or ("gpu-cluster-policy" if is_openshift else "cluster-policy"),
    )


def _operator_approval(pools: Iterable[Pool]) -> Approval:
    """Whether a person starts a sync of the GPU Operator, where the policy does not say it.

    With MPS it ends what runs. There is one ConfigMap for the device plugins of a cluster, its name changes with any
    pool's part of it, and stands in the pod template of the MPS control daemon (`TransformMPSControlDaemon` and
    `handleDevicePluginConfig` in `controllers/object_controls.go` of NVIDIA/gpu-operator). A daemon that is told to end
    quits the MPS server that all CUDA processes of its GPUs go through (`Stop` in
    `cmd/mps-control-daemon/mps/daemon.go` of NVIDIA/k8s-device-plugin).
    """
    return Approval.MANUAL if any(pool.runs_mps for pool in pools) else Approval.AUTOMATIC


def _argocd(at: Origin, cluster: str, platform: Platform, argocd: models.Argocd, approval: Approval) -> Argocd:
    # OpenShift GitOps runs its default instance in `openshift-gitops`.
    is_openshift = platform is Platform.OPENSHIFT
    return Argocd(
        at=at,
        spec=argocd,
        path=normpath(argocd.path),
        namespace=argocd.namespace or ("openshift-gitops" if is_openshift else "argocd"),
        project=argocd.project or f"gpuplan-{cluster}",
        operator_approval=argocd.operator_approval or approval,
    )


# OpenShift's console shows dashboards of this namespace with these labels; its Prometheus reads the rules of namespaces
# that have the label `openshift.io/cluster-monitoring`, as the GPU Operator's has.
_CONSOLE_NAMESPACE = "openshift-config-managed"
_CONSOLE_LABELS = {"console.openshift.io/dashboard": "true", "console.openshift.io/odc-dashboard": "true"}


def _monitoring(at: Origin, platform: Platform, operator: GpuOperator, monitoring: models.Monitoring) -> Monitoring:
    is_openshift = platform is Platform.OPENSHIFT
    namespace = monitoring.namespace or (operator.namespace if is_openshift else "monitoring")
    dashboards = monitoring.dashboards
    labels = _CONSOLE_LABELS if is_openshift else {"grafana_dashboard": "1"}
    return Monitoring(
        at=at,
        spec=monitoring,
        namespace=namespace,
        dashboards=Dashboards(
            at=at / "dashboards",
            spec=dashboards,
            namespace=dashboards.namespace or (_CONSOLE_NAMESPACE if is_openshift else namespace),
            labels=labels if dashboards.labels is None else dashboards.labels,
        ),
    )
