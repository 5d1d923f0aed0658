"""Delivery: the objects that make Argo CD or Flux sync a cluster's folders, for the cluster where those run.

Back ends know what is applied and not who applies it; delivery knows which folders there are and what is in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.delivery.reasons import FindWhys, Why, why
from gpuplan.compiler.manifests import File, Identity, Manifest
from gpuplan.compiler.manifests.kustomization import Apart
from gpuplan.compiler.planning.plan import Plan

__all__ = ["TOOLS", "Delivered", "Folder", "Why", "render", "why"]

TOOLS = ("argocd", "flux")
"""The tools that can sync; each has a folder of that name in the output, with one for each cluster in it."""


class Folder(NamedTuple):
    """A folder that applies objects: ``path`` is relative to the cluster's own folder, such as ``namespaces/research``.

    ``identities`` are all objects that its kustomization applies, sorted, those of hand-written Components included.
    ``digest`` is one of all that is in them, where something is to change with it.
    """

    path: str
    identities: tuple[Identity, ...]
    digest: str = ""


class Delivered(NamedTuple):
    """The tool that syncs a cluster, and its objects, relative to ``<tool>/<cluster>/``.

    The folder ``apart`` is synced by one of these objects.
    """

    tool: str
    artifacts: Iterator[Manifest | File]
    apart: Apart | None = None


def render(plan: Plan, folders: Sequence[Folder], out: str = "out", find_whys: FindWhys = tuple) -> Delivered | None:
    """What syncs the cluster; None where no tool does.

    ``out`` is the output folder relative to the root, as hand-written Components are. ``find_whys`` tells why each
    object of the folders is there, when somebody asks where the tool's objects come from.
    """
    if plan.cluster.argocd is not None:
        from gpuplan.compiler.delivery.argocd import apart, render as render_argocd

        return Delivered("argocd", render_argocd(plan, folders, out, find_whys), apart(plan, folders))
    if plan.cluster.flux is not None:
        from gpuplan.compiler.delivery.flux import render as render_flux

        return Delivered("flux", render_flux(plan, folders, find_whys))
    return None
