"""Where leaves of what the back end wrote come from, in words."""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.compiler.backends import gpu_operator
from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.manifests import File, Manifest
from gpuplan.compiler.manifests.provenance import Link
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.tracing.engine import Traced, trace_artifact


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
