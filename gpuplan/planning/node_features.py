"""Which Node Feature Discovery serves a cluster."""

from __future__ import annotations

from gpuplan.catalog.openshift import UPSTREAM_RULES, nfd_operator
from gpuplan.planning.plan import Cluster
from gpuplan.policy.models import Install, Platform


def writes_nfd(cluster: Cluster) -> bool:
    """Whether gpuplan configures NFD: in the chart's values, or by OLM."""
    return cluster.gpu_operator.spec.nfd and cluster.gpu_operator.spec.install is not Install.EXTERNAL


def has_openshifts_nfd(cluster: Cluster) -> bool:
    """Whether NFD is that of OpenShift's operator: on OpenShift, unless the GPU Operator's chart brings its own."""
    is_charts = cluster.gpu_operator.spec.install is Install.HELM and cluster.gpu_operator.spec.nfd
    return cluster.spec.platform is Platform.OPENSHIFT and not is_charts


def rules_group(cluster: Cluster) -> str:
    """The API group of the NodeFeatureRules that the cluster's NFD reads."""
    return nfd_operator(cluster.spec.kubernetes).rules_group if has_openshifts_nfd(cluster) else UPSTREAM_RULES
