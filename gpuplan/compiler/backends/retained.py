"""The back end of retained objects: each as its document has it, in the folder that it was in."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gpuplan.compiler.manifests import Manifest, is_object
from gpuplan.compiler.manifests.provenance import Routes, as_written, chosen
from gpuplan.compiler.planning.plan import Plan, RetainedObject, Stage
from gpuplan.compiler.planning.sources import namespace_of
from gpuplan.compiler.planning.subjects import about


def render(plan: Plan) -> Iterator[Manifest]:
    """Yield the objects that the policies do not make; entries of ConfigMaps that are retained are the GPU Operator's.

    What is no object, which GPU725 says, is none here: plans with errors are compared as well.
    """
    for retained in plan.retained:
        if isinstance(retained.what, RetainedObject) and is_object(retained.what.spec.manifest):
            body, trace = retained.what.spec.manifest, partial(_trace, plan, retained.what)
            yield Manifest(retained.what.folder, body, is_foreign=True, about=about(retained), trace=trace)


# --- Where it comes from -----------------------------------------------------------------------------------------


def _trace(plan: Plan, retained: RetainedObject) -> Routes:
    """Each leaf is written as it is; the kind of object decides which object it is.

    Without a folder of its own, an object of a tenant's namespace is in that of the namespace.
    """
    manifest = retained.at / "manifest"
    yield (), chosen(retained.at / "folder", manifest / "apiVersion", manifest / "kind")
    for tenant in plan.tenants if retained.spec.folder is None else ():
        for namespace in tenant.spec.namespaces:
            if retained.folder == f"{Stage.NAMESPACES}/{namespace}":
                yield (), chosen(namespace_of(tenant, namespace))
    yield from as_written(manifest, retained.spec.manifest)
