"""Answer what somebody asks of a repository."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.manifests.provenance import How
from gpuplan.compiler.pipeline import report_on
from gpuplan.compiler.pipeline.loading import load
from gpuplan.features.tracing.forward import trace_file, trace_object
from gpuplan.features.tracing.inverse import trace_by_hand, trace_place
from gpuplan.features.tracing.live import trace_live
from gpuplan.features.tracing.model import Tracing
from gpuplan.features.tracing.targets import TargetKind, read_target

STDIN: Final = "-"
_OBJECTS: Final = {"PriorityClass": "scheduling.k8s.io"}
"""Kinds of the policy that are kinds of Kubernetes as well, with the group that tells them apart."""


def trace(
    root: str | PathLike[str], target: str, path: str = "", clusters: Sequence[str] = (), *, objects: str = ""
) -> Tracing:
    """Return where written values come from, or which values depend on a policy, in the clusters named, or in all.

    ``target`` is a file below `out/` or of the policies, with a line or without; an object as `Kind/namespace/name`, or
    a document as `Kind/name`; or `-` for ``objects``, a text as kubectl prints it. ``path`` is that of a field in it.
    """
    root = Path(root)
    if target == STDIN:
        repository = load(root, clusters)
        values, unwritten, notes = trace_live(repository.plans, objects, path)
        return Tracing(report_on(repository), values, unwritten=unwritten, notes=notes)
    meant = read_target(root, target)
    if meant.subject is TargetKind.OUTPUT and meant.cluster and clusters and meant.cluster not in clusters:
        raise GpuplanError(
            f"`{meant.file}` is of cluster `{meant.cluster}`, which `--cluster` does not name",
            "leave that option out: the path says which cluster it is",
        )
    repository = load(root, clusters or ((meant.cluster,) if meant.cluster else ()))
    report = report_on(repository)
    if meant.subject is TargetKind.HAND_WRITTEN:
        places, notes = trace_by_hand(root, repository, meant, path)
        return Tracing(report, places=places, notes=notes, is_of_policy=True)
    if meant.subject in (TargetKind.OUTPUT, TargetKind.OBJECT):
        ask = trace_file if meant.subject is TargetKind.OUTPUT else trace_object
        values, notes = ask(root, repository.plans, meant, path)
        return Tracing(report, values, notes=notes)
    places, notes = trace_place(root, repository, meant, path)
    if group := _OBJECTS.get(meant.kind):
        notes = (*notes, f"this is the document; the object of that name is `{meant.kind}.{group}/{meant.name}`")
    return Tracing(report, places=places, notes=notes, is_of_policy=True)


_SAYING: Final = (How.COPIED, How.SUM, How.PRODUCT)
_FEW: Final = 3


def sources_of(root: Path, place: str) -> str:
    """Return the lines of the policies that give a line of `out/` its value; empty if there are none, or many."""
    try:
        values = trace(root, place).values
    except GpuplanError:
        return ""
    found = (source for value in values for source in value.sources if not source.is_of_object)
    places = dict.fromkeys(f"{source.file}:{source.line}" for source in found if source.how in _SAYING)
    return listing([*places], None) if len(places) <= _FEW else ""
