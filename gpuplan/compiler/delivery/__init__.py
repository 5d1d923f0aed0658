"""Delivery: the objects that make Argo CD or Flux sync a cluster's folders, for the cluster where those run.

Back ends know what is applied and not who applies it; delivery knows which folders there are and what is in them.
"""

from __future__ import annotations

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.delivery.reasons import Why, why
from gpuplan.compiler.manifests import Identity

__all__ = ["TOOLS", "Folder", "Why", "why"]

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
