"""Hold objects among files against the schemas of their kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.base.plain import inside
from gpuplan.compiler.manifests import Manifest, SchemaCheck, Subject, is_object, unusable_definitions
from gpuplan.compiler.planning.hand_files import HandFiles, Object, found_in, merged, sync_options
from gpuplan.features.components import PATCHED_OBJECT_INVALID


def hold_to_schemas(files: HandFiles, version: str, crds: Path | None) -> tuple[list[Diagnostic], set[int]]:
    """Return what does not fit the schema of its kind, and the objects that have one.

    Patches and values are no objects. One of which a file has the head alone, or in a file of patches, is a part.
    """
    written: dict[int, tuple[Manifest, Object]] = {}
    for item in files.objects:
        body = merged(item.body)
        is_applied = (item.group, item.kind) not in _NOT_APPLIED and item.body.get("apiVersion") not in (None, _OF_TOOL)
        is_applied &= body.keys() - _HEAD != {"status"}
        if not item.is_patch and is_object(body) and is_applied:
            is_partial = sync_options(inside(body, "metadata", "annotations")).get("ServerSideApply") == "true"
            is_partial |= body.keys() <= _HEAD or any(word in item.path.lower() for word in _PARTS)
            about = (Subject("File", item.path),)
            manifest = Manifest("", body, is_partial=is_partial, is_foreign=True, about=about, trace=None)
            written[id(manifest)] = manifest, item
    check = SchemaCheck(version, crds)
    passed = check.passed_on(manifest for manifest, _ in written.values())
    judged = {id(written[id(manifest)][1]) for manifest in passed if check.knows(manifest)}
    how = f"judged by Kubernetes {version}, and by every release of other projects that gpuplan knows"
    misfits: list[Diagnostic] = []
    for problem in check.problems:
        finding = found_in(written[id(problem.manifest)][1], problem, how)
        location = finding.at.locate()
        lines = location.file.lines[location.span.start.line - 1 : location.span.start.line]
        # Another program writes such a value before the object is applied.
        if not any("${" in line or "{{" in line for line in lines):
            misfits.append(PATCHED_OBJECT_INVALID.report(finding))
    return [*misfits, *unusable_definitions(crds, Path.cwd())], judged


_HEAD: Final = frozenset(("apiVersion", "kind", "metadata"))
_PARTS: Final = ("assert", "patch")
"""Words in paths of files that hold parts of objects: patches, and what tests of kuttl and chainsaw wait for.

Those mostly state a `status` alone.
"""
_OF_TOOL: Final = "builtin"
"""The version of kinds that kustomize runs itself, such as PatchTransformer."""
_NOT_APPLIED: Final = frozenset((("operators.coreos.com", "ClusterServiceVersion"),))
"""Kinds that are packed, and applied by a program which fills them in: OLM, from a bundle."""
