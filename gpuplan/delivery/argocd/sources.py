"""Where Argo CD reads a cluster's folders, and where it writes."""

from __future__ import annotations

from posixpath import normpath
from typing import Any

from gpuplan.planning.plan import Argocd, Plan

_OCI = "oci://"


def folder_path(plan: Plan, argocd: Argocd, folder: str) -> str:
    """A folder's path in the repository."""
    return normpath(f"{argocd.path}/{plan.cluster.name}/{folder}")


def git_source(argocd: Argocd, path: str) -> dict[str, Any]:
    return {"repoURL": argocd.spec.repo_url, "targetRevision": argocd.spec.revision, "path": path}


def destination(argocd: Argocd, namespace: str) -> dict[str, str]:
    """A namespace of the cluster, which is known by its server's address or by its name."""
    name, server = argocd.spec.destination.name, argocd.spec.destination.server
    return {**({"name": name} if name else {"server": server or ""}), "namespace": namespace}


def chart_repo(plan: Plan) -> str:
    """The chart's repository. Argo CD names a registry without its scheme, which stands for another kind of source."""
    return plan.cluster.gpu_operator.spec.chart_repo_url.removeprefix(_OCI)
