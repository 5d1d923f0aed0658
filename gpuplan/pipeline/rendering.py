"""Render plans: every back end's objects, checked against their schemas, as the bytes of a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuplan.backends import BACKENDS
from gpuplan.diagnostics import Diagnostic, Finding
from gpuplan.manifests import File, Manifest, check_schemas, render_tree
from gpuplan.pipeline.rules import INVALID_OBJECT
from gpuplan.planning.plan import Plan, Stage

COMPONENT_KIND = "Component"


@dataclass(frozen=True, slots=True)
class Rendered:
    """The files of all clusters, by path below the output folder; ``objects`` are the paths of Kubernetes objects."""

    tree: Mapping[str, bytes]
    diagnostics: tuple[Diagnostic, ...]
    objects: tuple[str, ...]
    unchecked_kinds: tuple[str, ...]


def render(plans: Sequence[Plan], root: Path, out: str, crds: Path | None) -> Rendered:
    tree: dict[str, bytes] = {}
    diagnostics: list[Diagnostic] = []
    unchecked: set[str] = set()
    objects: list[str] = []
    for plan in plans:
        manifests, files = _artifacts(plan)
        checked = check_schemas(manifests, plan.cluster.kubernetes, crds)
        diagnostics += (_invalid(plan, problem.manifest, problem.text) for problem in checked.problems)
        unchecked.update(checked.unchecked_kinds)
        rendered = render_tree(plan.cluster.name, manifests, files, _components(plan, manifests), out, str(root))
        diagnostics += rendered.diagnostics
        tree.update(rendered.files)
        objects += rendered.objects
    return Rendered(tree, tuple(diagnostics), tuple(objects), tuple(sorted(unchecked)))


def _artifacts(plan: Plan) -> tuple[list[Manifest], list[File]]:
    manifests: list[Manifest] = []
    files: list[File] = []
    for backend in BACKENDS:
        for artifact in backend.render(plan):
            if isinstance(artifact, Manifest):
                manifests.append(artifact)
            else:
                files.append(artifact)
    return manifests, files


def _components(plan: Plan, manifests: Sequence[Manifest]) -> dict[str, tuple[str, ...]]:
    """The hand-written Components by the folder that includes them.

    A Component for all namespaces is included by the folder of each, since that is what an Application points to.
    """
    namespaces = sorted({m.folder for m in manifests if m.folder.startswith(f"{Stage.NAMESPACES}/")})
    found: dict[str, tuple[str, ...]] = {}
    for component in plan.components:
        if component.kind != COMPONENT_KIND:
            continue
        if component.namespace is not None:
            folders = [f"{Stage.NAMESPACES}/{component.namespace}"]
        else:
            folders = namespaces if component.stage == Stage.NAMESPACES else [component.stage]
        for folder in folders:
            found[folder] = (*found.get(folder, ()), component.folder)
    return found


def _invalid(plan: Plan, manifest: Manifest, text: str) -> Diagnostic:
    finding = Finding(plan.cluster.at, f"{manifest.identity} does not fit its schema: {text}")
    return Diagnostic(INVALID_OBJECT, finding, clusters=(plan.cluster.name,))
