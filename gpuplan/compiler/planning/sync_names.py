"""Names that Argo CD and Flux read: of the objects that sync a cluster's folders, and of annotations."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from gpuplan.compiler.planning.plan import Stage

SYNC_OPTIONS: Final = "argocd.argoproj.io/sync-options"
COMPARE_OPTIONS: Final = "argocd.argoproj.io/compare-options"
FLUX_PRUNE: Final = "kustomize.toolkit.fluxcd.io/prune"
FLUX_SSA: Final = "kustomize.toolkit.fluxcd.io/ssa"
FLUX_SUBSTITUTE: Final = "kustomize.toolkit.fluxcd.io/substitute"

CONTENT: Final = "gpuplan.dev/content"
"""On an Application that a root syncs: a digest of all that its folder applies, so that a change there changes it."""
REVISION: Final = "gpuplan.dev/revision"
"""On an Application that a root syncs: the commit that it is to be at. Argo CD writes it when it builds the root."""

_PREFIXES = {
    Stage.GPU_OPERATOR: "gpu-operator",
    Stage.SCHEDULER: "gpu-scheduler",
    Stage.PARTITIONS: "gpu-partitions",
    Stage.SCHEDULING: "gpu-tenancy",
    Stage.QUEUES: "gpu-queues",
    Stage.NAMESPACES: "gpu-namespaces",
    Stage.MONITORING: "gpu-monitoring",
    Stage.WORKLOADS: "gpu-workloads",
}


def sync_name(cluster: str, folder: str) -> str:
    """The name of what syncs a folder: ``gpu-partitions-prod-a100-mixed`` for ``partitions/a100-mixed``."""
    stage, _, part = folder.partition("/")
    if stage == Stage.NAMESPACES and part:
        return namespace_name(cluster, part)
    name = f"{_PREFIXES[Stage(stage)]}-{cluster}"
    return f"{name}-{part.replace('/', '-')}" if part else name


def namespace_name(cluster: str, namespace: str) -> str:
    """The name of what syncs one namespace's folder; Argo CD's ApplicationSet makes it from the folder's name."""
    return f"gpu-namespace-{cluster}-{namespace}"


def root_name(cluster: str) -> str:
    """The name of the Application that syncs the others of a cluster, and of its project."""
    return f"gpu-root-{cluster}"


# --- Flux --------------------------------------------------------------------------------------------------------

_LONGEST: Final = 63


def folder_name(cluster: str, path: str) -> str:
    """The name of the Kustomization of a folder: `gpu-partitions-prod-a100` for `partitions/a100` of `prod`."""
    return fit(sync_name(cluster, path))


def fit(name: str, longest: int = _LONGEST) -> str:
    """The name, or one that ends in a digest of it where a label has no room for the whole.

    Flux writes it on every object that it applies: `kustomize.toolkit.fluxcd.io/name`, `helm.toolkit.fluxcd.io/name`.
    The GPU Operator writes the name of an NVIDIADriver on nodes.
    """
    if len(name) <= longest:
        return name
    return f"{name[: longest - 9].rstrip('-')}-{sha256(name.encode()).hexdigest()[:8]}"
