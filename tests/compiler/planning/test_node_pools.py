"""What clouds call nodes of a node pool: names that their own tools printed, and their documentation."""

from __future__ import annotations

import pytest

from gpuplan.compiler.planning.node_patterns import NodePattern, parse
from gpuplan.compiler.planning.node_pools import find_names, is_in_node_pool

GKE, EKS, AKS = "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/agentpool"


def matches(label: str, node_pool: str, node: str) -> bool:
    names = find_names({label: node_pool})
    assert names is not None
    pattern = parse(names.pattern)
    assert isinstance(pattern, NodePattern)
    return pattern.matches(node)


@pytest.mark.parametrize(
    ("label", "node_pool", "node"),
    [
        (GKE, "default-pool", "gke-kubia-default-pool-db274c5a-mjnf"),
        (GKE, "infra-pool", "gke-cluster-1-infra-pool-e11f6aff-bj1r"),
        (GKE, "a-name-of-very-many-letters", "gke-cluster-a-name-of-very-ma-e11f6aff-bj1r"),
        (GKE, "a-name-of-very-many-letters", "gke-cluster-a-name-of-very-many-letters-e11f6aff-bj1r"),
        (AKS, "nodepool1", "aks-nodepool1-12345678-vmss000000"),
        (AKS, "nodepool1", "aks-nodepool1-12345678-vmss00000a"),
        (AKS, "agentpool", "aks-agentpool-24979463-vms1"),
    ],
)
def test_a_node_has_a_name_of_its_node_pool(label: str, node_pool: str, node: str) -> None:
    assert matches(label, node_pool, node)


@pytest.mark.parametrize(
    ("label", "node_pool", "node"),
    [
        (GKE, "a100", "gke-cluster-a100-big-e11f6aff-bj1r"),
        (GKE, "pool", "gke-cluster-pool-1-e11f6aff-bj1r"),
        (AKS, "gpu", "aks-gpus-12345678-vmss000000"),
        (AKS, "gpu", "aks-gpu-m8hcb"),  # of a node pool of Karpenter's, which has another label
    ],
)
def test_a_node_of_another_node_pool_has_not(label: str, node_pool: str, node: str) -> None:
    assert not matches(label, node_pool, node)


def test_a_name_on_gke_does_not_tell_where_the_cluster_s_ends() -> None:
    names = find_names({GKE: "a100"})

    assert names is not None
    assert names.others == "a node pool whose name ends in `-a100` has such names as well"
    assert matches(GKE, "a100", "gke-cluster-big-a100-e11f6aff-bj1r")


def test_nodes_on_eks_are_called_after_their_address() -> None:
    assert find_names({EKS: "gpus"}) is None


@pytest.mark.parametrize("label", ["node.kubernetes.io/instance-type", "agentpool", "karpenter.sh/nodepool"])
def test_other_labels_name_no_node_pool(label: str) -> None:
    assert find_names({label: "gpus"}) is None
    assert not is_in_node_pool({label: "gpus"})
