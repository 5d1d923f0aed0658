"""Where leaves of what the back end wrote come from, in words."""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.backends import gpu_operator
from gpuplan.diagnostics import Path
from gpuplan.manifests import File, Manifest
from gpuplan.manifests.provenance import Link
from gpuplan.pipeline.tracing import Traced, trace_artifact
from gpuplan.planning.plan import Plan


def traced(plan: Plan, start: str) -> Traced:
    """The artifact whose kind and name, or whose path, begins so."""
    found = {_title(artifact): artifact for artifact in gpu_operator.render(plan)}
    (title,) = [title for title in found if title.startswith(start)]
    return trace_artifact(plan, title, found[title])


def own(plan: Plan, start: str, *route: str | int) -> list[str]:
    """What a leaf itself comes from."""
    return words(links(traced(plan, start), route))


def links(artifact: Traced, route: Path) -> tuple[Link, ...]:
    (leaf,) = [leaf for leaf in artifact.leaves if leaf.path == route]
    return leaf.own


def words(links: Iterable[Link]) -> list[str]:
    return [f"{link.how} {link.at.source.title} {link.at}" for link in links]


def _title(artifact: Manifest | File) -> str:
    return f"{artifact.kind} {artifact.name}" if isinstance(artifact, Manifest) else artifact.path
