"""Labels, taints and resources that programs other than gpuplan write on nodes, by who writes them."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.catalog import resource_suffix

# --- The device plugin -------------------------------------------------------------------------------------------

GPU_RESOURCE: Final = "nvidia.com/gpu"
MIG_RESOURCES: Final = "nvidia.com/mig-"
"""The beginning of resources that are MIG devices of one profile."""


def mig_resource(profile: str) -> str:
    """Return the resource that a partition is published as if each profile has a resource of its own.

    (`NewResourceName` in `api/config/v1/resources.go` of NVIDIA/k8s-device-plugin.)
    """
    return f"{MIG_RESOURCES}{resource_suffix(profile)}"


# --- GPU Feature Discovery (`internal/lm` of NVIDIA/k8s-device-plugin) ---------------------------------------------

PRODUCT_LABEL: Final = "nvidia.com/gpu.product"
COUNT_LABEL: Final = "nvidia.com/gpu.count"
"""The number of GPUs of a node, or of its MIG devices if they are published as GPUs."""

MEMORY_LABEL: Final = "nvidia.com/gpu.memory"
COMPUTE_MAJOR_LABEL: Final = "nvidia.com/gpu.compute.major"
COMPUTE_MINOR_LABEL: Final = "nvidia.com/gpu.compute.minor"
MIG_STRATEGY_LABEL: Final = "nvidia.com/mig.strategy"
SHARING_LABEL: Final = "nvidia.com/gpu.sharing-strategy"
REPLICAS_LABEL: Final = "nvidia.com/gpu.replicas"
"""The number of shares of each device; 1 if devices are not shared."""

DRIVER_LABEL: Final = "nvidia.com/cuda.driver-version.full"

_SHARED: Final = "-SHARED"
_MIG: Final = "-MIG-"


def shown_product(product: str, *, profile: str = "", is_shared: bool = False) -> str:
    """Return the product label of nodes that publish MIG devices of ``profile`` as GPUs, or that share GPUs unrenamed.

    A name of a profile loses what no label may have. (`productLabel` in `internal/lm/resource.go`.)
    """
    return f"{product}{_MIG if profile else ''}{profile.replace('+', '')}{_SHARED if is_shared else ''}"


def bare_product(label: str) -> str:
    """Return the product of whole GPUs that a value of the product label is about."""
    return label.removesuffix(_SHARED).partition(_MIG)[0]


def unshared_product(label: str) -> str:
    """Return a value of the product label as it is without sharing. It still names a profile."""
    return label.removesuffix(_SHARED)


def is_of_mig_devices(label: str) -> bool:
    """Whether a product label is that of MIG devices, so that the other labels describe these."""
    return _MIG in label


PRODUCT_ENDING: Final = regex(r"-(SHARED|MIG-[0-9]+g\.[0-9]+gb.*)$")
"""The ending of a product label if GPUs are shared or divided. `-MIG-INVALID` is none: such a node has no GPUs."""

# --- The GPU Operator, its MIG manager, and feature discovery together ---------------------------------------------

GPU_PRESENT_LABEL: Final = "nvidia.com/gpu.present"
MIG_STATE_LABEL: Final = "nvidia.com/mig.config.state"
"""The MIG manager's word on its last attempt: pending, rebooting, success or failed."""

DISCOVERED_LABELS: Final = regex(
    r"nvidia\.com/(gpu\.(product|family|memory|count|replicas|compute\.(major|minor)|machine|mode|sharing-strategy|clique)"
    r"|mig-.+|mig\.(capable|strategy|config\.state)|mps\.capable|(cuda|gfd|vgpu)\..+|gpu\.present)"
)
"""The labels that GPU Feature Discovery, the MIG manager and the operator write on nodes."""


def is_of_discovery(label: str) -> bool:
    """Whether GPU Feature Discovery alone writes a label."""
    return label not in (GPU_PRESENT_LABEL, MIG_STATE_LABEL) and DISCOVERED_LABELS.fullmatch(label) is not None


PAUSING_LABELS: Final = regex(r"nvidia\.com/gpu\.deploy\.(device-plugin|gpu-feature-discovery|dcgm|dcgm-exporter|nvsm)")
"""The labels that the MIG manager sets to `paused-for-mig-change` and back.

(`pkg/mig/reconfigure` in NVIDIA/mig-parted.)
"""

# --- The kubelet, clouds and autoscalers -------------------------------------------------------------------------

HOST_LABEL: Final = "kubernetes.io/hostname"
INSTANCE_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
"""The type of a node as its cloud calls it (https://kubernetes.io/docs/reference/labels-annotations-taints/)."""

GKE_NODE_POOL_LABEL: Final = "cloud.google.com/gke-nodepool"
EKS_NODE_POOL_LABEL: Final = "eks.amazonaws.com/nodegroup"
AKS_NODE_POOL_LABEL: Final = "kubernetes.azure.com/agentpool"
NODE_POOL_LABELS: Final = (GKE_NODE_POOL_LABEL, EKS_NODE_POOL_LABEL, AKS_NODE_POOL_LABEL, "karpenter.sh/nodepool")
"""The labels by which whoever makes nodes marks those of one node pool. The last is Karpenter's."""

GKE_BOARD_LABEL: Final = "cloud.google.com/gke-accelerator"
GKE_SHARING_LABELS: Final = (
    "cloud.google.com/gke-gpu-partition-size",
    "cloud.google.com/gke-gpu-sharing-strategy",
    "cloud.google.com/gke-max-shared-clients-per-gpu",
)
"""https://cloud.google.com/kubernetes-engine/docs/how-to/gpus-multi, .../concepts/timesharing-gpus"""

PASSING_TAINTS: Final = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "node.cilium.io/",
    "karpenter.sh/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "cloud.google.com/gke-quick-remove",
    "cloud.google.com/impending-node-termination",
)
"""The beginnings of keys of taints that come and go by themselves."""
