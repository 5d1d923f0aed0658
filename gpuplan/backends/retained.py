"""The back end of retained objects: each as its document has it, in the folder that it was in."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.manifests import Manifest
from gpuplan.planning.plan import Plan, RetainedObject
from gpuplan.planning.subjects import about


def render(plan: Plan) -> Iterator[Manifest]:
    """The objects that the policies do not make; entries of ConfigMaps that are retained are the GPU Operator's."""
    for retained in plan.retained:
        if isinstance(retained.what, RetainedObject):
            yield Manifest(retained.what.folder, retained.what.spec.manifest, is_foreign=True, about=about(retained))
