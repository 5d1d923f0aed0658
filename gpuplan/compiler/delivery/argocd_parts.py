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
RETRY_NEWEST: Final = {**RETRY, "refresh": True}
"""What has failed is tried again with the newest commit, which may be the one that mends it.

Without it Argo CD retries the commit that failed until it gives up, and may never sync the one that mends it, which it
has compared by then: so it was seen with v3.3.10. The field came with 3.2; `tests/cluster/test_argocd_syncs.py` has it.
"""


def automated(*, prunes: bool) -> dict[str, Any]:
    """Automated sync, without what is the default: Argo CD takes that away when it writes the Application itself.

    So `allowEmpty` is not written: it is false where it is left out, and a folder that is empty by mistake wipes out
    nothing.
    """
    return {"automated": {**({"prune": True} if prunes else {}), "selfHeal": True}}


def metadata(argocd: Argocd, name: str, annotations: Mapping[str, str]) -> dict[str, Any]:
    return {"name": name, "namespace": argocd.namespace, **labels(argocd), "annotations": annotations}


def labels(argocd: Argocd) -> dict[str, dict[str, str]]:
    return {"labels": dict(sorted(argocd.spec.labels.items()))} if argocd.spec.labels else {}


def folder_path(argocd: Argocd, *folders: str) -> str:
    """The path in the repository of a folder in the output."""
    return normpath("/".join((argocd.path, *folders)))


def git_source(argocd: Argocd, path: str) -> dict[str, Any]:
    return {"repoURL": argocd.spec.repo_url, "targetRevision": argocd.spec.revision, "path": path}
