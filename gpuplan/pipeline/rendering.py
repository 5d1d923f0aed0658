"""Render plans: every back end's objects, checked against their schemas, as the bytes of a tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from gpuplan import delivery
from gpuplan.backends import BACKENDS
from gpuplan.checks.handwritten.reading import mapping, read, text
from gpuplan.delivery.annotations import annotate
from gpuplan.diagnostics import Diagnostic, Finding
from gpuplan.manifests import File, Identity, Manifest, check_schemas, identity_of, render_index, render_tree
from gpuplan.pipeline.loading import COMPONENT_KIND
from gpuplan.pipeline.rules import INVALID_OBJECT
from gpuplan.planning.plan import Component, Plan, Stage

Components = Mapping[str, tuple[str, ...]]
"""The folders of hand-written Components by the folder of the cluster that includes them."""


class RenderedCluster(NamedTuple):
    """A cluster's own objects, where they lie; ``files`` are by path below the output folder.

    ``artifacts`` are all that is written of it, each with the tool that it is for, empty for the cluster's own.
    """

    plan: Plan
    manifests: Sequence[Manifest]
    components: Components
    files: Mapping[str, bytes]
    artifacts: Sequence[tuple[str, Manifest | File]]


@dataclass(slots=True)
class Rendered:
    """The files of all clusters, by path below the output folder.

    ``objects`` are the paths of the clusters' own objects; those of Argo CD and Flux are not among them.
    """

    tree: dict[str, bytes] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    objects: list[str] = field(default_factory=list)
    unchecked_kinds: set[str] = field(default_factory=set)
    clusters: list[RenderedCluster] = field(default_factory=list)


def render(plans: Sequence[Plan], root: Path, out: str, crds: Path | None, *, is_whole: bool) -> Rendered:
    """Render the plans; ``is_whole`` says that they are all there are, so that a list of clusters can be written."""
    rendered = Rendered()
    delivered: defaultdict[str, list[str]] = defaultdict(list)
    for plan in plans:
        name = plan.cluster.name
        manifests, files = _artifacts(plan)
        _check(rendered, plan, manifests, crds)
        components = _components(plan, manifests)
        tree = render_tree(name, manifests, files, components, out, str(root))
        rendered.tree.update(tree.files)
        rendered.diagnostics += tree.diagnostics
        rendered.objects += tree.objects
        written = _of("", manifests, files)
        rendered.clusters.append(RenderedCluster(plan, manifests, components, tree.files, written))
        if found := delivery.render(plan, _folders(plan, manifests, components), out):
            tool, delivering = found
            manifests, files = _sort_out(delivering)
            written += _of(tool, manifests, files)
            _check(rendered, plan, manifests, crds)
            tree = render_tree(f"{tool}/{name}", manifests, files, {}, out, str(root))
            rendered.tree.update(tree.files)
            rendered.diagnostics += tree.diagnostics
            delivered[tool].append(name)
    if is_whole:
        rendered.tree.update(
            (f"{tool}/{path}", data) for tool in delivered for path, data in render_index(delivered[tool]).items()
        )
    return rendered


def _of(tool: str, manifests: Sequence[Manifest], files: Sequence[File]) -> list[tuple[str, Manifest | File]]:
    return [*((tool, manifest) for manifest in manifests), *((tool, file) for file in files)]


def artifacts(plan: Plan, out: str = "out") -> Iterator[tuple[str, Manifest | File]]:
    """All that is written of a cluster, each with the tool that it is for, whatever is wrong with it."""
    manifests, files = _artifacts(plan)
    yield from _of("", manifests, files)
    if found := delivery.render(plan, _folders(plan, manifests, _components(plan, manifests)), out):
        tool, delivering = found
        yield from ((tool, artifact) for artifact in delivering)


def scope(clusters: Iterable[str]) -> tuple[str, ...]:
    """The folders below the output folder that hold what is written for the clusters."""
    return tuple(folder for name in clusters for folder in (name, *(f"{tool}/{name}" for tool in delivery.TOOLS)))


def _artifacts(plan: Plan) -> tuple[list[Manifest], list[File]]:
    manifests, files = _sort_out(artifact for backend in BACKENDS for artifact in backend.render(plan))
    return [annotate(manifest, plan.cluster) for manifest in manifests], files


def _sort_out(artifacts: Iterable[Manifest | File]) -> tuple[list[Manifest], list[File]]:
    manifests: list[Manifest] = []
    files: list[File] = []
    for artifact in artifacts:
        if isinstance(artifact, Manifest):
            manifests.append(artifact)
        else:
            files.append(artifact)
    return manifests, files


def _check(rendered: Rendered, plan: Plan, manifests: Sequence[Manifest], crds: Path | None) -> None:
    checked = check_schemas(manifests, plan.cluster.spec.kubernetes, crds)
    rendered.diagnostics += (_invalid(plan, problem.manifest, problem.text) for problem in checked.problems)
    rendered.unchecked_kinds.update(checked.unchecked_kinds)


def _invalid(plan: Plan, manifest: Manifest, text: str) -> Diagnostic:
    finding = Finding(plan.cluster.at, f"{manifest.identity} does not fit its schema: {text}")
    return Diagnostic(INVALID_OBJECT, finding, clusters=(plan.cluster.name,))


# --- Hand-written Components -------------------------------------------------------------------------------------


def _components(plan: Plan, manifests: Sequence[Manifest]) -> Components:
    """The hand-written Components by the folder that includes them.

    A Component for all namespaces or pools is included by the folder of each, since that is what is synced; where a
    stage has no such folders, by the stage's own.
    """
    parts = {stage.value: _parts(stage, manifests) for stage in Stage if stage.has_parts}
    found: dict[str, tuple[str, ...]] = {}
    for component in plan.components:
        if component.kind == COMPONENT_KIND:
            for folder in _included_by(component, parts):
                found[folder] = (*found.get(folder, ()), component.folder)
    return found


def _parts(stage: Stage, manifests: Sequence[Manifest]) -> list[str]:
    return sorted({manifest.folder for manifest in manifests if manifest.folder.startswith(f"{stage}/")})


def _included_by(component: Component, parts: Mapping[str, Sequence[str]]) -> Sequence[str]:
    if component.part is not None:
        return [f"{component.stage}/{component.part}"]
    return parts.get(component.stage) or [component.stage]


def _folders(plan: Plan, manifests: Iterable[Manifest], components: Components) -> tuple[delivery.Folder, ...]:
    """The folders that apply objects, with all of them."""
    found: defaultdict[str, set[Identity]] = defaultdict(set)
    for manifest in manifests:
        found[manifest.folder].add(identity_of(manifest.body))
    if components:
        written = _hand_written(plan)
        for folder, included in components.items():
            for component in included:
                found[folder].update(written.get(component, ()))
    return tuple(delivery.Folder(path, tuple(sorted(found[path]))) for path in sorted(found) if found[path])


def _hand_written(plan: Plan) -> dict[str, set[Identity]]:
    """The objects that each Component adds, by its folder."""
    files = read(plan)
    found: dict[str, set[Identity]] = {component.folder: set() for component in plan.components}
    for item in files.objects:
        if not item.is_patch and item.name:
            _add(found, item.path, Identity(item.group, item.kind, text(item.metadata.get("namespace")), item.name))
    for kustomization in files.kustomizations:
        for kind, key in (("ConfigMap", "configMapGenerator"), ("Secret", "secretGenerator")):
            for _, entry in kustomization.entries(key):
                generator = mapping(entry)
                if generator.get("behavior", "create") == "create":
                    namespace, name = text(generator.get("namespace")), text(generator.get("name"))
                    _add(found, f"{kustomization.folder}/", Identity("", kind, namespace, name))
    return found


def _add(found: Mapping[str, set[Identity]], path: str, identity: Identity) -> None:
    """To the innermost Component that the file is in."""
    owner = max((folder for folder in found if path.startswith(f"{folder}/")), key=len, default=None)
    if owner is not None:
        found[owner].add(identity)
