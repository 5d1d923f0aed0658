"""Render plans: every back end's objects, checked against their schemas, as the bytes of a tree."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from gpuplan import delivery
from gpuplan.backends import BACKENDS
from gpuplan.checks.handwritten.reading import HandFiles, mapping, read, text
from gpuplan.delivery.annotations import annotate
from gpuplan.diagnostics import Diagnostic, Finding
from gpuplan.manifests import File, Identity, Manifest, check_schemas, identity_of, render_index, render_tree
from gpuplan.pipeline.loading import COMPONENT_KIND
from gpuplan.pipeline.rules import INVALID_OBJECT
from gpuplan.planning.plan import Component, Plan

Components = Mapping[str, tuple[str, ...]]
"""The folders of hand-written Components by the folder of the cluster that includes them."""


class Part(NamedTuple):
    """What is written of a cluster for its own folders, or for the ``tool`` that syncs them, which has a name then."""

    tool: str
    manifests: list[Manifest]
    files: Sequence[File]
    components: Components


class RenderedCluster(NamedTuple):
    """All that is written of a cluster: its own part, and after it that of the tool which syncs it, if one does."""

    plan: Plan
    parts: tuple[Part, ...]

    @property
    def own(self) -> Part:
        return self.parts[0]

    @property
    def artifacts(self) -> Iterator[tuple[str, Manifest | File]]:
        """Each with the tool that it is for, empty for the cluster's own."""
        for part in self.parts:
            yield from ((part.tool, manifest) for manifest in part.manifests)
            yield from ((part.tool, file) for file in part.files)


@dataclass(slots=True)
class Rendered:
    """The files of all clusters, by path below the output folder.

    ``objects`` are the paths of the clusters' own objects; those of Argo CD and Flux are not among them. ``clusters``
    are those that were to be kept.
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

    Clusters with Components are kept. The objects of others are half of a build's memory, and each is gone as soon as
    its text is made, unless it ``keeps_all``.
    """
    rendered = Rendered()
    delivered: defaultdict[str, list[str]] = defaultdict(list)
    for plan in plans:
        cluster = _cluster(plan, out)
        if is_kept := keeps_all or bool(cluster.own.components):
            rendered.clusters.append(cluster)
        for tool, manifests, files, components in cluster.parts:
            checked = check_schemas(manifests, plan.cluster.spec.kubernetes, crds)
            rendered.diagnostics += (_invalid(plan, problem.manifest, problem.text) for problem in checked.problems)
            rendered.unchecked_kinds.update(checked.unchecked_kinds)
            objects = manifests if is_kept else _let_go(manifests)
            tree = render_tree(posixpath.join(tool, plan.cluster.name), objects, files, components, out, str(root))
            rendered.tree.update(tree.files)
            rendered.diagnostics += tree.diagnostics
            if tool:
                delivered[tool].append(plan.cluster.name)
            else:
                rendered.objects += tree.objects
    if is_whole:
        rendered.tree.update(
            (f"{tool}/{path}", data) for tool in delivered for path, data in render_index(delivered[tool]).items()
        )
    return rendered


def _let_go(manifests: list[Manifest]) -> Iterator[Manifest]:
    manifests.reverse()
    while manifests:
        yield manifests.pop()


def artifacts(plan: Plan, out: str = "out") -> Iterator[tuple[str, Manifest | File]]:
    """All that is written of a cluster, each with the tool that it is for, whatever is wrong with it."""
    return _cluster(plan, out).artifacts


def scope(clusters: Iterable[str]) -> tuple[str, ...]:
    """The folders below the output folder that hold what is written for the clusters."""
    return tuple(folder for name in clusters for folder in (name, *(f"{tool}/{name}" for tool in delivery.TOOLS)))


def _cluster(plan: Plan, out: str) -> RenderedCluster:
    own = own_part(plan)
    is_delivered = plan.cluster.argocd is not None or plan.cluster.flux is not None
    if is_delivered and (found := delivery.render(plan, folders(plan, own), out)):
        tool, delivering = found
        return RenderedCluster(plan, (own, Part(tool, *_sort_out(delivering), {})))
    return RenderedCluster(plan, (own,))


def own_part(plan: Plan) -> Part:
    """What is written of a cluster for its own folders."""
    manifests, files = _sort_out(
        annotate(artifact, plan.cluster) if isinstance(artifact, Manifest) else artifact
        for backend in BACKENDS
        for artifact in backend.render(plan)
    )
    return Part("", manifests, files, _components(plan, manifests))


def _sort_out(artifacts: Iterable[Manifest | File]) -> tuple[list[Manifest], list[File]]:
    written = list(artifacts)
    manifests = [artifact for artifact in written if isinstance(artifact, Manifest)]
    return manifests, [artifact for artifact in written if isinstance(artifact, File)]


def _invalid(plan: Plan, manifest: Manifest, text: str) -> Diagnostic:
    finding = Finding(plan.cluster.at, f"{manifest.identity} does not fit its schema: {text}")
    return Diagnostic(INVALID_OBJECT, finding, clusters=(plan.cluster.name,))


# --- Hand-written Components -------------------------------------------------------------------------------------


def _components(plan: Plan, manifests: Sequence[Manifest]) -> Components:
    """The hand-written Components by the folder that includes them.

    A Component for all namespaces or pools is included by the folder of each, since that is what is synced; where a
    stage has no such folders, by the stage's own.
    """
    paths = {manifest.folder for manifest in manifests} if plan.components else set()
    found: dict[str, tuple[str, ...]] = {}
    for component in plan.components:
        if component.kind == COMPONENT_KIND:
            for folder in _included_by(component, paths):
                found[folder] = (*found.get(folder, ()), component.folder)
    return found


def _included_by(component: Component, folders: AbstractSet[str]) -> Sequence[str]:
    if component.part is not None:
        return [f"{component.stage}/{component.part}"]
    return sorted(path for path in folders if path.startswith(f"{component.stage}/")) or [component.stage]


def folders(plan: Plan, own: Part) -> tuple[delivery.Folder, ...]:
    """The folders that apply objects, with all of them."""
    found: defaultdict[str, set[Identity]] = defaultdict(set)
    for manifest in own.manifests:
        found[manifest.folder].add(identity_of(manifest.body))
    if own.components:
        written = _hand_written(plan)
        for folder, included in own.components.items():
            for component in included:
                found[folder].update(written.get(component, ()))
    return tuple(delivery.Folder(path, tuple(sorted(found[path]))) for path in sorted(found) if found[path])


def _hand_written(plan: Plan) -> dict[str, set[Identity]]:
    """The objects that each Component adds, by its folder: the innermost one that their file is in."""
    found: dict[str, set[Identity]] = {component.folder: set() for component in plan.components}
    for path, identity in _added(read(plan)):
        owner = max((folder for folder in found if path.startswith(f"{folder}/")), key=len, default=None)
        if owner is not None:
            found[owner].add(identity)
    return found


def _added(files: HandFiles) -> Iterator[tuple[str, Identity]]:
    """What hand-written files add, each with the file that it is in, or its folder."""
    for item in files.objects:
        if not item.is_patch and item.name:
            yield item.path, Identity(item.group, item.kind, text(item.metadata.get("namespace")), item.name)
    for kustomization in files.kustomizations:
        for kind, key in (("ConfigMap", "configMapGenerator"), ("Secret", "secretGenerator")):
            for entry in (mapping(entry) for _, entry in kustomization.entries(key)):
                if entry.get("behavior", "create") == "create":
                    identity = Identity("", kind, text(entry.get("namespace")), text(entry.get("name")))
                    yield f"{kustomization.folder}/", identity
