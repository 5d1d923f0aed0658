"""Which Node Feature Discovery serves a cluster."""

from __future__ import annotations

from gpuplan.compiler.catalog.openshift import UPSTREAM_RULES, nfd_operator
from gpuplan.compiler.planning.plan import Cluster, Plan, Pool
from gpuplan.compiler.policy.models import Install, NodeLabels, Platform


def writes_nfd(cluster: Cluster) -> bool:
    """Whether gpuplan configures NFD: in the chart's values, or by OLM."""
    return cluster.gpu_operator.spec.nfd and cluster.gpu_operator.spec.install is not Install.EXTERNAL


def has_openshifts_nfd(cluster: Cluster) -> bool:
    """Whether NFD is that of OpenShift's operator: on OpenShift, unless the GPU Operator's chart brings its own."""
    is_charts = cluster.gpu_operator.spec.install is Install.HELM and cluster.gpu_operator.spec.nfd
    return cluster.spec.platform is Platform.OPENSHIFT and not is_charts


def matches_boards(cluster: Cluster, pool: Pool) -> bool:
    """Whether the pool's rules label nodes with a board of its model alone."""
    return (cluster.spec.match_boards or bool(pool.nodes.boards)) and cluster.spec.node_labels is NodeLabels.NFD


def boards_of(plan: Plan, pool: Pool) -> frozenset[str]:
    """The PCI ids of which a node of the pool has one, where rules ask for it; none where any board will do."""
    return frozenset(device.spelt for device in pool.gpu.pci if matches_boards(plan.cluster, pool))


def rules_group(cluster: Cluster) -> str:
    """The API group of the NodeFeatureRules that the cluster's NFD reads."""
    return nfd_operator(cluster.spec.kubernetes).rules_group if has_openshifts_nfd(cluster) else UPSTREAM_RULES
