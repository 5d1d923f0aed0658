"""Judge what people wrote by hand by the schemas of its kinds, as it is written or as kustomize built it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from gpuplan.checks.handwritten.patched import Patched
from gpuplan.checks.handwritten.reading import Object, inside, sync_options
from gpuplan.diagnostics import Diagnostic, Finding
from gpuplan.manifests import Manifest, Problem, Subject, check_schemas, is_object
from gpuplan.patterns import regex
from gpuplan.pipeline.definitions import releases
from gpuplan.pipeline.rules import PATCHED_OBJECT_INVALID
from gpuplan.planning.plan import Plan

BUILT = "the object is judged with all patches applied"
AS_WRITTEN = "the object is judged as it is written, since it was not built"

_UNKNOWN_FIELD = regex("unknown field `([^`]+)`")


def misfits(
    plan: Plan, results: Iterable[tuple[Manifest, Object]], crds: Path | None, how: str
) -> Iterator[Diagnostic]:
    """What does not fit, where it was written."""
    written = {id(manifest): (manifest, item) for manifest, item in results}
    manifests = (manifest for manifest, _ in written.values())
    for problem in check_schemas(manifests, plan.cluster.spec.kubernetes, crds, releases(plan)):
        finding = found_in(written[id(problem.manifest)][1], problem, how)
        yield Diagnostic(PATCHED_OBJECT_INVALID, finding, clusters=(plan.cluster.name,))


def found_in(item: Object, problem: Problem, how: str) -> Finding:
    """What a schema says of an object, where it was written."""
    unknown = _UNKNOWN_FIELD.fullmatch(problem.message)
    at = item.place(*problem.path, *(unknown.groups() if unknown else ()))
    return Finding(
        at.key if unknown else at,
        f"{problem.manifest.identity} does not fit its schema: {problem.text}",
        label=problem.message,
        notes=(f"{problem.source}; {how}",),
        help="correct the field",
    )


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


def merged(value: object) -> Mapping[str, object]:
    """A patch without what tells kustomize how to merge it."""
    found = _without_directives(value)
    return found if isinstance(found, Mapping) else {}


def _without_directives(value: object) -> object:
    if isinstance(value, Mapping):
        return {
            key: _without_directives(part)
            for key, part in value.items()
            if part is not None and not (isinstance(key, str) and key.startswith("$"))
        }
    if isinstance(value, list):
        return [_without_directives(part) for part in value]
    return value
