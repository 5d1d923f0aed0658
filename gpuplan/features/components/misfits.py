"""Judge what people wrote by hand by the schemas of its kinds, as it is written or as kustomize built it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.base.plain import inside
from gpuplan.compiler.manifests import Manifest, Subject, check_schemas, is_object
from gpuplan.compiler.pipeline.rendering import releases
from gpuplan.compiler.planning.hand_files import Object, found_in, merged, sync_options
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.components.checks.patched import Patched
from gpuplan.features.components.rules import PATCHED_OBJECT_INVALID

BUILT = "the object is judged with all patches applied"
AS_WRITTEN = "the object is judged as it is written, since it was not built"


def misfits(
    plan: Plan, results: Iterable[tuple[Manifest, Object]], crds: Path | None, how: str
) -> Iterator[Diagnostic]:
    """What does not fit, where it was written."""
    written = {id(manifest): (manifest, item) for manifest, item in results}
    manifests = (manifest for manifest, _ in written.values())
    for problem in check_schemas(manifests, plan.cluster.spec.kubernetes, crds, releases(plan)):
        finding = found_in(written[id(problem.manifest)][1], problem, how)
        yield Diagnostic(PATCHED_OBJECT_INVALID, finding, clusters=(plan.cluster.name,))


def as_written(patched: Patched) -> Iterator[tuple[Manifest, Object]]:
    """The objects and patches of Components that were not built; of what is patched elsewhere some may be missing."""
    built = {item.folder for folder in patched.folders if folder.after is not None for item in folder.components}
    for item in patched.files.objects:
        body = merged(item.body)
        component = patched.component_of(item.at)
        if component and component not in built and is_object(body):
            options = sync_options(inside(body, "metadata", "annotations"))
            is_partial = item.is_patch or options.get("ServerSideApply") == "true" or _is_patched(patched, item)
            about = (Subject("Component", component),)
            yield Manifest("", body, is_partial=is_partial, is_foreign=True, about=about, trace=None), item


def _is_patched(patched: Patched, item: Object) -> bool:
    return any(
        other.is_patch and other.kind in (item.kind, "") and other.name in (item.name, "")
        for other in patched.files.objects
    )
