"""What OLM needs to install the operator on OpenShift, and Node Feature Discovery before it.

The GPU Operator takes a node for a GPU node by the labels that NFD makes from its PCI devices. With `nodeLabels: nfd`
the same NFD puts the pools' labels and taints on nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from gpuplan.backends.gpu_operator.settings import label_namespaces, missing_tolerations
from gpuplan.catalog.openshift import NFD_NAMESPACE, NFD_OPERATOR_TOLERATIONS, nfd_operator
from gpuplan.manifests import to_yaml
from gpuplan.manifests.bodies import given, new_object
from gpuplan.planning.plan import Plan
from gpuplan.policy.models import NodeLabels, Platform

_PACKAGE: Final = "gpu-operator-certified"

_WORKER: Final = {
    "sources": {
        "pci": {
            # Network and display controllers, by the first digits of their class. The vendor alone makes the labels
            # `feature.node.kubernetes.io/pci-10de.present` (NVIDIA) and `pci-15b3.present` (for GPUDirect RDMA).
            "deviceClassWhitelist": ["02", "03"],
            "deviceLabelFields": ["vendor"],
        }
    }
}


def privileged_namespace(name: str, platform: Platform) -> dict[str, Any]:
    """A namespace of pods that use the host. On OpenShift the cluster's own Prometheus scrapes them."""
    watched = {"openshift.io/cluster-monitoring": "true"} if platform is Platform.OPENSHIFT else {}
    return new_object("v1", "Namespace", name, labels={**watched, "pod-security.kubernetes.io/enforce": "privileged"})


def olm_objects(plan: Plan) -> Iterator[dict[str, Any]]:
    """The channel holds one line of releases: OLM starts at the policy's release and follows the line (GPU665)."""
    operator = plan.cluster.gpu_operator
    csv = f"{_PACKAGE}.{operator.version}"
    channel = operator.version.rpartition(".")[0]
    yield _operator_group(_PACKAGE, operator.namespace)
    yield _subscription(_PACKAGE, operator.namespace, channel, "certified-operators", csv)
    if operator.spec.nfd:
        yield privileged_namespace(NFD_NAMESPACE, Platform.OPENSHIFT)
        yield _operator_group(NFD_NAMESPACE, NFD_NAMESPACE)
        yield _subscription("nfd", NFD_NAMESPACE, "stable", "redhat-operators")
        yield _node_feature_discovery(plan)


def _operator_group(name: str, namespace: str) -> dict[str, Any]:
    """The operators of a namespace watch that namespace. With two groups in it OLM installs nothing there."""
    spec = {"targetNamespaces": [namespace]}
    return new_object("operators.coreos.com/v1", "OperatorGroup", name, namespace, spec=spec)


def _subscription(package: str, namespace: str, channel: str, source: str, starting_csv: str = "") -> dict[str, Any]:
    """A Subscription whose upgrades nobody has to approve.

    With `Manual`, the first installation waits for a person, and so does everything after it at each new release: Argo
    CD calls a Subscription with a pending InstallPlan `Progressing`, and no later wave begins
    (`resource_customizations/operators.coreos.com/Subscription/health.lua`).
    """
    spec = given(
        channel=channel,
        installPlanApproval="Automatic",
        name=package,
        source=source,
        sourceNamespace="openshift-marketplace",
        startingCSV=starting_csv,
    )
    return new_object("operators.coreos.com/v1alpha1", "Subscription", package, namespace, spec=spec)


def _node_feature_discovery(plan: Plan) -> dict[str, Any]:
    """The one instance. It prunes nothing when it is deleted: nodes would lose their partitions with their labels."""
    operator = nfd_operator(plan.cluster.spec.kubernetes)
    tolerations = missing_tolerations(plan, NFD_OPERATOR_TOLERATIONS) if operator.takes_tolerations else []
    labels_nodes = plan.cluster.spec.node_labels is NodeLabels.NFD
    has_taints = any(pool.spec.taints for pool in plan.pools)
    spec = given(
        operand=given(image=operator.image, workerTolerations=tolerations),
        extraLabelNs=label_namespaces(plan) if labels_nodes else None,
        enableTaints=(labels_nodes and operator.sets_taints and has_taints) or None,
        workerConfig={"configData": to_yaml(_WORKER)},
    )
    return new_object("nfd.openshift.io/v1", "NodeFeatureDiscovery", "nfd-instance", NFD_NAMESPACE, spec=spec)
