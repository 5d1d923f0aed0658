"""Ask for the links of one leaf, as a test spells them: ``chosen by Pool/a spec.disruption.approval``."""

from __future__ import annotations

import posixpath

from gpuplan.compiler.manifests import Manifest, object_path
from gpuplan.compiler.manifests.provenance import Link
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.tracing.engine import Traced, trace_artifact


def traced(plan: Plan, path: str) -> Traced:
    """The artifact at a path below the output folder."""
    for tool, artifact in artifacts(plan):
        name = object_path(artifact) if isinstance(artifact, Manifest) else artifact.path
        if posixpath.join(tool, plan.cluster.name, name) == path:
            return trace_artifact(plan, path, artifact)
    raise LookupError(path)


def own(artifact: Traced, *route: str | int) -> set[str]:
    """The links of one leaf, those of its whole object aside."""
    (leaf,) = (leaf for leaf in artifact.leaves if leaf.path == route)
    return set(map(spelt, leaf.own))


def whole(artifact: Traced) -> set[str]:
    return set(map(spelt, artifact.whole))


def spelt(link: Link) -> str:
    return f"{link.how} {link.at.source.title.replace(' ', '/')} {'.'.join(map(str, link.at.path))}"
