"""The folders over those of clusters: one for each Argo CD, since each applies what it syncs itself.

An Argo CD is known by its namespace and by the cluster that it runs in. It syncs that one by the address of its own API
server, so of two clusters with that address each has an Argo CD of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.planning.plan import Plan

OWN_CLUSTER: Final = "https://kubernetes.default.svc"
"""The address of the cluster that Argo CD runs in, where its Applications are."""
_OWN_NAME: Final = "in-cluster"

_ROOT: Final = "root."
"""The beginning of a folder's name before a namespace: no cluster has a dot in its name."""


class Index(NamedTuple):
    """The clusters that a folder below the output folder lists, and a comment on them."""

    folder: str
    clusters: tuple[Plan, ...]
    comment: str = ""

    @property
    def resources(self) -> list[str]:
        above = "../" if "/" in self.folder else ""
        return [f"{above}{plan.cluster.name}" for plan in self.clusters]


def indexes(tool: str, plans: Sequence[Plan]) -> Iterator[Index]:
    """Yield the tool's own folder, and one for each Argo CD if several sync more than the cluster that they run in."""
    ordered = sorted(plans, key=lambda plan: plan.cluster.name)
    installations = group(ordered) if tool == "argocd" else [tuple(ordered)]
    shared = installations if len(installations) == 1 else syncing_others(installations)
    shown = shared[0] if len(shared) == 1 else ()
    others = [root_folder(clusters) for clusters in installations if clusters is not shown]
    folders = listing([f"argocd/{folder}" for folder in sorted(others)], None)
    argocd = shown[0].cluster.argocd if shown else None
    comment = f"# For no Argo CD: there are several, and each applies a folder of its own, {folders}.\n"
    if argocd:
        comment = (
            f"# For the Argo CD in the namespace {argocd.namespace}. Others apply folders of their own: {folders}.\n"
        )
    yield Index(tool, shown, comment if len(installations) > 1 else "")
    for clusters in shared:
        if clusters is not shown and len(clusters) > 1:
            yield Index(f"{tool}/{root_folder(clusters)}", clusters)


def group(plans: Sequence[Plan]) -> list[tuple[Plan, ...]]:
    """Return the clusters that each Argo CD syncs, those that it does not run in first."""
    by_namespace = grouped((plan.cluster.argocd.namespace, plan) for plan in plans if plan.cluster.argocd is not None)
    groups: list[tuple[Plan, ...]] = []
    for same in by_namespace.values():
        # An Argo CD may sync its own cluster beside others, and no other's.
        own, remote = [plan for plan in same if runs_in(plan)], [plan for plan in same if not runs_in(plan)]
        if len(own) == 1 and remote:
            groups.append((*remote, *own))
        else:
            groups += [*([tuple(remote)] if remote else []), *((plan,) for plan in own)]
    return groups


def syncing_others(installations: Sequence[tuple[Plan, ...]]) -> list[tuple[Plan, ...]]:
    """Return what is synced by an Argo CD that syncs more than the cluster that it runs in."""
    return [clusters for clusters in installations if not runs_in(clusters[0])]


def runs_in(plan: Plan) -> bool:
    """Whether the Argo CD that syncs the cluster runs in it."""
    if plan.cluster.argocd is None:
        return False
    destination = plan.cluster.argocd.spec.destination
    return destination.server == OWN_CLUSTER or destination.name == _OWN_NAME


def root_folder(clusters: Sequence[Plan]) -> str:
    """Return the folder that an Argo CD applies: with one cluster that is the cluster's folder."""
    argocd = clusters[0].cluster.argocd
    if len(clusters) == 1 or argocd is None:
        return clusters[0].cluster.name
    return f"{_ROOT}{argocd.namespace}"
