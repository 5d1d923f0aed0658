"""What objects for Argo CD have alike."""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import normpath
from typing import Any, Final

from gpuplan.compiler.planning.plan import Argocd

RESOURCES_FINALIZER: Final = "resources-finalizer.argocd.argoproj.io"
"""On a project it keeps it until no Application names it; on an Application it removes its objects with it."""

RETRY: Final = {"limit": 5, "backoff": {"duration": "30s", "factor": 2, "maxDuration": "10m"}}
"""Argo CD does not sync one commit twice unless it is told to, and on a new cluster definitions come one by one."""


def metadata(argocd: Argocd, name: str, annotations: Mapping[str, str]) -> dict[str, Any]:
    return {"name": name, "namespace": argocd.namespace, **labels(argocd), "annotations": annotations}


def labels(argocd: Argocd) -> dict[str, dict[str, str]]:
    return {"labels": dict(sorted(argocd.spec.labels.items()))} if argocd.spec.labels else {}


def folder_path(argocd: Argocd, *folders: str) -> str:
    """The path in the repository of a folder in the output."""
    return normpath("/".join((argocd.path, *folders)))


def git_source(argocd: Argocd, path: str) -> dict[str, Any]:
    return {"repoURL": argocd.spec.repo_url, "targetRevision": argocd.spec.revision, "path": path}
