"""What makes Argo CD sync a cluster's folders: an AppProject, an Application for each folder, health checks.

What a change may disturb decides where one Application ends and the next begins (docs/adr/0007): each pool's partitions
have one of their own, with that pool's approval and windows, and each namespace has one, so that no build is large.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpuplan.delivery.argocd import applications, health, project
from gpuplan.manifests import File, Manifest
from gpuplan.planning.plan import Plan
from gpuplan.planning.subjects import about
from gpuplan.policy.models import Platform

if TYPE_CHECKING:
    from gpuplan.delivery import Folder

_TOP = ""


def render(plan: Plan, folders: Sequence[Folder], out: str = "out") -> Iterator[Manifest | File]:
    """The objects for Argo CD's own cluster, and what somebody must merge into Argo CD's configuration.

    A folder that applies nothing has no Application: Argo CD would call it empty and refuse to sync it.
    """
    argocd = plan.cluster.argocd
    if argocd is None:
        return
    cluster = about(plan.cluster)
    whole = about(plan.cluster, *(pool for pool in plan.pools if pool.windows))
    yield Manifest(_TOP, project.app_project(plan, argocd, folders), about=whole)
    for applier, body in applications.applications(plan, argocd, folders, out):
        yield Manifest(_TOP, body, about=about(applier.pool) if applier.pool else cluster)
    yield File(health.CONFIG_MAP_FILE, health.config_map_patch(argocd), about=cluster)
    if plan.cluster.spec.platform is Platform.OPENSHIFT:
        yield File(health.OPERATOR_FILE, health.operator_patch(), about=cluster)
