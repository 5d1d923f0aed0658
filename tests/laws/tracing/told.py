"""What the trace of one artifact tells, in the words of a test: ``copied Pool/p spec.nodes.count``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.manifests import File, Manifest
from gpuplan.compiler.manifests.provenance import Links
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.policy.parse import document_of
from gpuplan.features.tracing.engine import trace_artifact
from gpuplan.features.tracing.lines import spelled


def find(artifacts: Iterable[Manifest | File], kind: str) -> Manifest:
    """The only object of a kind."""
    (found,) = (item for item in artifacts if isinstance(item, Manifest) and item.kind == kind)
    return found


def told(plan: Plan, artifact: Manifest | File) -> Mapping[str, list[str]]:
    """By the path of each leaf what it has of which values, but for what all leaves of the artifact have."""
    return {spelled(leaf.path): _sources(leaf.own) for leaf in trace_artifact(plan, "test/it.yaml", artifact).leaves}


def told_of_all(plan: Plan, artifact: Manifest | File) -> list[str]:
    """Why the artifact is there, and is called as it is."""
    return _sources(trace_artifact(plan, "test/it.yaml", artifact).whole)


def _sources(links: Links) -> list[str]:
    return sorted({f"{link.how} {_place(link.at)}" for link in links})


def _place(at: Origin) -> str:
    document = document_of(at)
    title = f"{document.kind}/{document.name}" if document else at.locate().file.path
    return f"{title} {spelled(at.path)}"
