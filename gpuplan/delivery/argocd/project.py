"""The AppProject of a cluster: what its Applications may read, where they may write, and when.

Its lists are derived from what is rendered, so a new kind in a hand-written Component needs no other change, and
nothing is allowed that is not there. `name` on an entry of the whitelist is in the definition of Argo CD v3.5; an older
one does not have it, and then the entry allows every Namespace, or the API server refuses the field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from gpuplan.catalog.operators import KindName, chart_kinds
from gpuplan.delivery.appliers import get_applier
from gpuplan.delivery.argocd.sources import chart_repo, destination
from gpuplan.manifests import Identity, identity_of
from gpuplan.manifests.kinds import find_kind, known_kinds
from gpuplan.planning.node_features import rules_group
from gpuplan.planning.plan import Argocd, Plan, Pool, Stage
from gpuplan.policy.models import Install

if TYPE_CHECKING:
    from gpuplan.delivery import Folder

_NAMESPACE: KindName = ("", "Namespace")

RESOURCES_FINALIZER = "resources-finalizer.argocd.argoproj.io"
"""On a project it keeps it until no Application names it; on an Application it removes its objects with it."""

_WAVE = "-10"


def app_project(plan: Plan, argocd: Argocd, folders: Sequence[Folder]) -> dict[str, Any]:
    """The project. Orphaned resources are not watched: tenants' own workloads would all be some."""
    cluster = plan.cluster
    written = _written(plan, folders)
    spec: dict[str, Any] = {
        "description": f"GPU configuration of the cluster {cluster.name}",
        "sourceRepos": [argocd.spec.repo_url, *([chart_repo(plan)] if _has_chart(plan) else [])],
        "destinations": [destination(argocd, namespace) for namespace in _namespaces(plan, written)],
        "clusterResourceWhitelist": _cluster_kinds(plan, written),
        "namespaceResourceWhitelist": _namespaced_kinds(plan, written),
    }
    if windows := list(_sync_windows(plan, folders)):
        spec["syncWindows"] = windows
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {
            "name": argocd.project,
            "namespace": argocd.namespace,
            **({"labels": dict(sorted(argocd.spec.labels.items()))} if argocd.spec.labels else {}),
            "annotations": {"argocd.argoproj.io/sync-wave": _WAVE},
            # Without the project no Application could be removed in order any more.
            "finalizers": [RESOURCES_FINALIZER],
        },
        "spec": spec,
    }


def _has_chart(plan: Plan) -> bool:
    return plan.cluster.gpu_operator.spec.install is Install.HELM


def _written(plan: Plan, folders: Sequence[Folder]) -> set[Identity]:
    """All objects that are known one by one: those of folders, and those that the policy has the chart add."""
    written = {identity for folder in folders for identity in folder.identities}
    extra = plan.cluster.gpu_operator.spec.values.get("extraObjects") if _has_chart(plan) else None
    if isinstance(extra, list | tuple):
        written.update(identity_of(body) for body in extra if isinstance(body, Mapping))
    return written


def _namespaces(plan: Plan, written: AbstractSet[Identity]) -> list[str]:
    """Every namespace that is written to, and the operator's, which the Applications name as their own."""
    return sorted({plan.cluster.gpu_operator.namespace, *(item.namespace for item in written)} - {""})


def _cluster_kinds(plan: Plan, written: AbstractSet[Identity]) -> list[dict[str, str]]:
    """Kinds without a namespace; Namespaces one by one."""
    found = {item for item in written if not _is_namespaced(item)}
    kinds = {(item.group, item.kind) for item in found} - {_NAMESPACE}
    kinds |= {*_left_over(is_namespaced=False), (rules_group(plan.cluster), "NodeFeatureRule")}
    if _has_chart(plan):
        kinds |= chart_kinds().cluster
    names = sorted(item.name for item in found if (item.group, item.kind) == _NAMESPACE)
    return [*({"group": "", "kind": "Namespace", "name": name} for name in names), *_entries(kinds)]


def _namespaced_kinds(plan: Plan, written: AbstractSet[Identity]) -> list[dict[str, str]]:
    kinds = {(item.group, item.kind) for item in written if _is_namespaced(item)} | _left_over(is_namespaced=True)
    return _entries(kinds | chart_kinds().namespaced if _has_chart(plan) else kinds)


def _left_over(*, is_namespaced: bool) -> set[KindName]:
    """Kinds that stay allowed when the last object of theirs is gone from the policy."""
    kinds = known_kinds().items()
    return {name for name, kind in kinds if kind.outlives_policy and kind.is_namespaced is is_namespaced}


def _is_namespaced(item: Identity) -> bool:
    """Objects that name no namespace are applied in that of their Application."""
    found = find_kind(item.group, item.kind)
    is_namespaced = found.is_namespaced if found else (item.group, item.kind) in chart_kinds().namespaced
    return bool(item.namespace) or is_namespaced


def _entries(kinds: AbstractSet[KindName]) -> list[dict[str, str]]:
    return [{"group": group, "kind": kind} for group, kind in sorted(kinds)]


def _sync_windows(plan: Plan, folders: Sequence[Folder]) -> Iterator[dict[str, Any]]:
    """Each pool's windows, for its own Application alone.

    They hold for persons too: the policy says when nodes may be disturbed, not who may do it.
    """
    paths = {folder.path for folder in folders}
    for pool in plan.pools:
        if f"{Stage.PARTITIONS}/{pool.name}" in paths:
            yield from _pool_windows(plan, pool)


def _pool_windows(plan: Plan, pool: Pool) -> Iterator[dict[str, Any]]:
    for window in pool.spec.disruption.windows:
        yield {
            "kind": "allow",
            "schedule": window.schedule,
            "duration": window.duration,
            "timeZone": window.time_zone,
            "applications": [get_applier(plan, f"{Stage.PARTITIONS}/{pool.name}").name],
            "manualSync": False,
        }
