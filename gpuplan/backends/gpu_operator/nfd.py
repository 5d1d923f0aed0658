"""Node Feature Discovery on OpenShift: its operator by OLM, and the instance that finds GPUs and labels nodes.

The GPU Operator takes a node for a GPU node by the labels that NFD makes from its PCI devices. With `nodeLabels: nfd`
the same NFD puts the pools' labels and taints on nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuplan.backends.gpu_operator import olm, tolerations
from gpuplan.catalog.openshift import NFD_NAMESPACE, NFD_OPERATOR_TOLERATIONS, NfdOperator, nfd_operator
from gpuplan.manifests import to_yaml
from gpuplan.planning.plan import Plan
from gpuplan.policy.models import NodeLabels

_PACKAGE = "nfd"

_WORKER = {
    "sources": {
        "pci": {
            # Network and display controllers, by the first digits of their class. The vendor alone makes the labels
            # `feature.node.kubernetes.io/pci-10de.present` (NVIDIA) and `pci-15b3.present` (for GPUDirect RDMA).
            "deviceClassWhitelist": ["02", "03"],
            "deviceLabelFields": ["vendor"],
        }
    }
}


def objects(plan: Plan) -> Iterator[dict[str, Any]]:
    yield _namespace()
    yield olm.operator_group(NFD_NAMESPACE, NFD_NAMESPACE)
    yield olm.subscription(_PACKAGE, NFD_NAMESPACE, channel="stable", source="redhat-operators")
    yield _instance(plan, nfd_operator(plan.cluster.spec.kubernetes))


def _namespace() -> dict[str, Any]:
    """The workers read the host's devices by `hostPath`. The cluster's own Prometheus scrapes the operator."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": NFD_NAMESPACE,
            "labels": {
                "openshift.io/cluster-monitoring": "true",
                "pod-security.kubernetes.io/enforce": "privileged",
            },
        },
    }


def _instance(plan: Plan, operator: NfdOperator) -> dict[str, Any]:
    """The one instance. It prunes nothing when it is deleted: nodes would lose their partitions with their labels."""
    spec: dict[str, Any] = {}
    if operand := _operand(plan, operator):
        spec["operand"] = operand
    if plan.cluster.spec.node_labels is NodeLabels.NFD:
        spec["extraLabelNs"] = label_namespaces(plan)
        if operator.sets_taints and any(pool.spec.taints for pool in plan.pools):
            spec["enableTaints"] = True
    spec["workerConfig"] = {"configData": to_yaml(_WORKER)}
    return {
        "apiVersion": "nfd.openshift.io/v1",
        "kind": "NodeFeatureDiscovery",
        "metadata": {"name": "nfd-instance", "namespace": NFD_NAMESPACE},
        "spec": spec,
    }


def _operand(plan: Plan, operator: NfdOperator) -> dict[str, Any]:
    needed = tolerations.missing(plan, NFD_OPERATOR_TOLERATIONS) if operator.takes_tolerations else []
    return {
        **({"image": operator.image} if operator.image else {}),
        **({"workerTolerations": needed} if needed else {}),
    }


def label_namespaces(plan: Plan, *more: str) -> list[str]:
    """Namespaces of the labels that NFD puts on nodes, and more.

    It takes any by default but kubernetes.io and its subdomains, and none that `denyLabelNs` names, unless they are
    listed (`filterFeatureLabel` in NFD's `pkg/nfd-master/nfd-master.go`). The operator's own are under nvidia.com.
    """
    keys = {key for pool in plan.parts for key in pool.labels}
    return sorted({*more, *(key.partition("/")[0] for key in keys if "/" in key), "nvidia.com"})
