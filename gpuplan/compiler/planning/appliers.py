"""Who applies a folder: the object of Argo CD or of Flux that syncs it, who starts a sync, and when."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.plan import Plan, Pool, Stage
from gpuplan.compiler.planning.sync_names import folder_name, root_name, sync_name
from gpuplan.compiler.policy.models import Approval, Install, NodeLabels, Window

APPLICATION: Final = "Application"
APPLICATION_SET: Final = "ApplicationSet"
KUSTOMIZATION: Final = "Kustomization"
HELM_RELEASE: Final = "HelmRelease"
"""The kind that a person resumes if the operator waits for one: without a release ConfigMaps have no effect."""

SETS: Final = (Stage.NAMESPACES, Stage.WORKLOADS)
"""The stages whose Applications an ApplicationSet makes."""

OWNERS_PATCH_FILE: Final = "merge-into-cluster-policy.yaml"
"""The file that the owner of a ClusterPolicy merges into it."""


class Applier(NamedTuple):
    """The object that syncs a folder; a ``name`` that ends in ``*`` stands for several.

    ``approval`` says whether a person starts a sync. ``merged`` is the file that somebody merges after it, before it
    has any effect. ``pool`` is the pool that the folder is for, if it is for one; ``windows`` are that pool's, if its
    nodes are changed. ``root`` is the Application that starts its syncs, one after the other: those of the GPU
    Operator, and of pools after it.
    """

    kind: str
    name: str
    folder: str
    approval: Approval
    windows: tuple[Window, ...]
    pool: Pool | None = None
    root: str = ""
    merged: str = ""

    @property
    def is_automatic(self) -> bool:
        return self.approval is Approval.AUTOMATIC

    @property
    def is_flux(self) -> bool:
        return self.kind in (KUSTOMIZATION, HELM_RELEASE)

    @property
    def keeps_windows(self) -> bool:
        """Flux knows no windows."""
        return not self.is_flux

    @property
    def runs_hooks(self) -> bool:
        """Whether Jobs run before and after a sync. Flux has no hooks."""
        return not self.is_flux


def find_applier(plan: Plan, folder: str) -> Applier | None:
    """Return what syncs a folder of the cluster, or all folders of a stage that has some.

    None if nothing syncs the folder, or if nobody applies its content.
    """
    cluster, (stage, _, part) = plan.cluster, folder.partition("/")
    is_synced = cluster.argocd is not None or cluster.flux is not None
    is_external = stage == Stage.PARTITIONS and cluster.spec.node_labels is NodeLabels.EXTERNAL
    if not is_synced or stage not in _STAGES or is_external:
        return None
    path = f"{stage}/{ANY_PART}" if Stage(stage).has_parts and not part else folder
    is_merged = folder == Stage.GPU_OPERATOR and cluster.gpu_operator.is_merged_by_owner
    return get_applier(plan, path)._replace(folder=folder, merged=OWNERS_PATCH_FILE if is_merged else "")


_STAGES: Final = frozenset(stage.value for stage in Stage)
ANY_PART: Final = "*"


def find_applier_to_nodes(plan: Plan, pool: Pool) -> Applier | None:
    """Return what applies changes of a pool's nodes. None if no tool does it, or if others label the nodes."""
    return find_applier(plan, f"{Stage.PARTITIONS}/{pool.name}")


def get_applier(plan: Plan, folder: str) -> Applier:
    """Return what syncs a folder of a cluster that a tool syncs. `ANY_PART` stands for all parts of a stage."""
    name, _, part = folder.partition("/")
    cluster, stage = plan.cluster, Stage(name)
    pool = plan.find_pool(part) if stage.is_by_pool else None
    windows = pool.windows if pool and stage is Stage.PARTITIONS else ()
    if cluster.flux is not None:
        approval = _approval(stage, pool, cluster.flux.operator_approval)
        is_release = stage is Stage.GPU_OPERATOR and has_chart(plan)
        kind = HELM_RELEASE if is_release and approval is Approval.MANUAL else KUSTOMIZATION
        named = sync_name if part == ANY_PART else folder_name
        return Applier(kind, named(cluster.name, folder), folder, approval, windows, pool)
    operator = cluster.argocd.operator_approval if cluster.argocd is not None else Approval.MANUAL
    approval = _approval(stage, pool, operator)
    if part == ANY_PART and stage in SETS:
        return Applier(APPLICATION_SET, sync_name(cluster.name, stage), folder, approval, windows, pool)
    root = root_name(cluster.name) if _is_ordered(plan, stage, pool) else ""
    return Applier(APPLICATION, sync_name(cluster.name, folder), folder, approval, windows, pool, root)


def is_pruned(folder: str) -> bool:
    """Whether Argo CD removes by itself what leaves the folder.

    It removes nothing of a chart, whose objects have no annotations that would make Argo CD ask. NFD's definitions go
    with one value, and every rule that labels nodes with them. With a scheduler's definitions goes every queue.
    """
    return folder.partition("/")[0] not in (Stage.GPU_OPERATOR, Stage.SCHEDULER)


def is_applied_by_client(plan: Plan, folder: str) -> bool:
    """Whether the client applies the folder, since the server would refuse to apply it or to compare it (ADR 42)."""
    return folder == Stage.GPU_OPERATOR and has_chart(plan)


def has_chart(plan: Plan) -> bool:
    """Whether the GPU Operator is installed from its chart."""
    return plan.cluster.gpu_operator.spec.install is Install.HELM


def _approval(stage: Stage, pool: Pool | None, operator: Approval) -> Approval:
    """Return who starts a change. The pool says it for its nodes; a person starts those of an unknown pool."""
    if stage is Stage.PARTITIONS:
        return pool.spec.disruption.approval if pool else Approval.MANUAL
    return operator if stage is Stage.GPU_OPERATOR else Approval.AUTOMATIC


def _is_ordered(plan: Plan, stage: Stage, pool: Pool | None) -> bool:
    argocd = plan.cluster.argocd
    if argocd is None or stage not in (Stage.GPU_OPERATOR, Stage.PARTITIONS):
        return False
    if stage is Stage.PARTITIONS:
        return pool is not None and argocd.orders(pool)
    return argocd.spec.root and argocd.operator_approval is Approval.AUTOMATIC
