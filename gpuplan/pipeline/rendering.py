"""Render plans: every back end's objects, checked against their schemas, as the bytes of a tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from gpuplan import delivery
from gpuplan.backends import BACKENDS
from gpuplan.checks.handwritten.reading import entries, mapping, read, text
from gpuplan.delivery.annotations import annotate
from gpuplan.diagnostics import Diagnostic, Finding
from gpuplan.manifests import File, Identity, Manifest, SchemaCheck, Tree, render_index, render_tree
from gpuplan.pipeline.loading import COMPONENT_KIND
from gpuplan.pipeline.rules import INVALID_OBJECT
from gpuplan.planning.plan import Component, Plan, Stage

Components = Mapping[str, tuple[str, ...]]
"""The folders of hand-written Components by the folder of the cluster that includes them."""


class RenderedCluster(NamedTuple):
    """A cluster, rendered; ``files`` are its own, by path below the output folder.

    ``artifacts`` are all that is written of it, each with the tool that it is for, empty for the cluster's own.
    """

    plan: Plan
    components: Components
    files: Mapping[str, bytes]
    artifacts: Sequence[tuple[str, Manifest | File]]

    @property
    def manifests(self) -> Iterator[Manifest]:
        return _manifests(artifact for tool, artifact in self.artifacts if not tool)


@dataclass(slots=True)
class Rendered:
    """The files of all clusters, by path below the output folder.

    ``objects`` are the paths of the clusters' own objects; those of Argo CD and Flux are not among them. ``clusters``
    are those whose artifacts were to be kept.
    """

    tree: dict[str, bytes] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    objects: list[str] = field(default_factory=list)
    unchecked_kinds: set[str] = field(default_factory=set)
    clusters: list[RenderedCluster] = field(default_factory=list)


def render(
    plans: Sequence[Plan], root: Path, out: str, crds: Path | None, *, is_whole: bool, keeps_all: bool = True
) -> Rendered:
    """Render the plans; ``is_whole`` says that they are all there are, so that a list of clusters can be written.

    The artifacts of clusters with Components are kept; those of others take more memory than all the rest, and are gone
    as soon as their texts are made, unless it ``keeps_all``.
    """
    rendered = Rendered()
    delivered: defaultdict[str, list[str]] = defaultdict(list)
    for plan in plans:
        name = plan.cluster.name
        kept = list(_artifacts(plan)) if keeps_all or plan.components else []
        components = _components(plan, kept)
        tree = _write(rendered, plan, name, kept or _artifacts(plan), components, crds, out, root)
        rendered.objects += tree.objects
        objects = ((path[len(name) + 1 :].rpartition("/")[0], found) for path, found in tree.objects.items())
        tool, delivering = _delivering(plan, objects, components, out)
        if tool:
            delivering = list(delivering)
            _write(rendered, plan, f"{tool}/{name}", delivering, {}, crds, out, root)
            delivered[tool].append(name)
        if kept:
            written = [*(("", artifact) for artifact in kept), *((tool, artifact) for artifact in delivering)]
            rendered.clusters.append(RenderedCluster(plan, components, tree.files, written))
    if is_whole:
        rendered.tree.update(
            (f"{tool}/{path}", data) for tool in delivered for path, data in render_index(delivered[tool]).items()
        )
    return rendered


def artifacts(plan: Plan, out: str = "out") -> Iterator[tuple[str, Manifest | File]]:
    """All that is written of a cluster, each with the tool that it is for, whatever is wrong with it."""
    own = list(_artifacts(plan))
    yield from (("", artifact) for artifact in own)
    objects = ((manifest.folder, manifest.identity) for manifest in _manifests(own))
    tool, delivering = _delivering(plan, objects, _components(plan, own), out)
    yield from ((tool, artifact) for artifact in delivering)


def scope(clusters: Iterable[str]) -> tuple[str, ...]:
    """The folders below the output folder that hold what is written for the clusters."""
    return tuple(folder for name in clusters for folder in (name, *(f"{tool}/{name}" for tool in delivery.TOOLS)))


def _artifacts(plan: Plan) -> Iterator[Manifest | File]:
    for backend in BACKENDS:
        for artifact in backend.render(plan):
            yield annotate(artifact, plan.cluster) if isinstance(artifact, Manifest) else artifact


def _manifests(artifacts: Iterable[Manifest | File]) -> Iterator[Manifest]:
    return (artifact for artifact in artifacts if isinstance(artifact, Manifest))


def _write(
    rendered: Rendered,
    plan: Plan,
    folder: str,
    artifacts: Iterable[Manifest | File],
    components: Components,
    crds: Path | None,
    out: str,
    root: Path,
) -> Tree:
    """Check artifacts and make their texts, one by one."""
    schemas = SchemaCheck(plan.cluster.spec.kubernetes, crds)
    tree = render_tree(folder, _checked(artifacts, schemas), components, out, str(root))
    rendered.tree.update(tree.files)
    rendered.diagnostics += (_invalid(plan, problem.manifest, problem.text) for problem in schemas.problems)
    rendered.diagnostics += tree.diagnostics
    rendered.unchecked_kinds.update(schemas.unchecked_kinds)
    return tree


def _checked(artifacts: Iterable[Manifest | File], schemas: SchemaCheck) -> Iterator[Manifest | File]:
    for artifact in artifacts:
        if isinstance(artifact, Manifest):
            schemas.check(artifact)
        yield artifact


def _invalid(plan: Plan, manifest: Manifest, text: str) -> Diagnostic:
    finding = Finding(plan.cluster.at, f"{manifest.identity} does not fit its schema: {text}")
    return Diagnostic(INVALID_OBJECT, finding, clusters=(plan.cluster.name,))


# --- Hand-written Components -------------------------------------------------------------------------------------


def _components(plan: Plan, artifacts: Sequence[Manifest | File]) -> Components:
    """The hand-written Components by the folder that includes them.

    A Component for all namespaces or pools is included by the folder of each, since that is what is synced; where a
    stage has no such folders, by the stage's own.
    """
    found: dict[str, tuple[str, ...]] = {}
    if not plan.components:
        return found
    folders = sorted({manifest.folder for manifest in _manifests(artifacts)})
    for component in plan.components:
        if component.kind == COMPONENT_KIND:
            for folder in _included_by(component, folders):
                found[folder] = (*found.get(folder, ()), component.folder)
    return found


def _included_by(component: Component, folders: Sequence[str]) -> Sequence[str]:
    if component.part is not None:
        return [f"{component.stage}/{component.part}"]
    has_parts = any(stage.value == component.stage and stage.has_parts for stage in Stage)
    parts = [folder for folder in folders if has_parts and folder.startswith(f"{component.stage}/")]
    return parts or [component.stage]


def _delivering(
    plan: Plan, objects: Iterable[tuple[str, Identity]], components: Components, out: str
) -> tuple[str, Iterable[Manifest | File]]:
    """The tool that syncs the cluster, and what makes it do so."""
    if plan.cluster.argocd is None and plan.cluster.flux is None:
        return "", ()
    return delivery.render(plan, _folders(plan, objects, components), out)


def _folders(
    plan: Plan, objects: Iterable[tuple[str, Identity]], components: Components
) -> tuple[delivery.Folder, ...]:
    """The folders that apply objects, with all of them; ``objects`` are the cluster's own, with their folders."""
    found: defaultdict[str, set[Identity]] = defaultdict(set)
    for folder, identity in objects:
        found[folder].add(identity)
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
            for _, entry in entries(kustomization, key):
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
