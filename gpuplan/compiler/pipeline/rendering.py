"""Render plans: every back end's objects, checked against their schemas, as the bytes of a tree."""

from __future__ import annotations

import json
import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path

from gpuplan.compiler import delivery
from gpuplan.compiler.backends import backends
from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Label
from gpuplan.compiler.base.plain import mapping, text
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.delivery import argocd, flux
from gpuplan.compiler.delivery.annotations import annotate
from gpuplan.compiler.delivery.indexes import indexes
from gpuplan.compiler.manifests import (
    File,
    Identity,
    Manifest,
    Problem,
    Releases,
    SchemaCheck,
    identity_of,
    object_path,
    render_index,
    render_tree,
    to_yaml,
)
from gpuplan.compiler.manifests.bodies import digest
from gpuplan.compiler.manifests.kustomization import Apart
from gpuplan.compiler.manifests.provenance import How
from gpuplan.compiler.pipeline.loading import COMPONENT_KIND, OUT
from gpuplan.compiler.pipeline.rules import INVALID_OBJECT
from gpuplan.compiler.planning.hand_files import HandFiles, read
from gpuplan.compiler.planning.linking import Linked, written
from gpuplan.compiler.planning.plan import Plan

Components = Mapping[str, tuple[str, ...]]
"""The folders of hand-written Components by the folder of the cluster that includes them."""


class Part(NamedTuple):
    """The objects and files of a cluster for its own folders, or for the ``tool`` that syncs them.

    Unless the cluster is kept, its own objects are made while somebody goes through them, ``files`` along with them.
    The folder ``apart`` is no part of the one that it is in.
    """

    tool: str
    manifests: Iterable[Manifest]
    files: Sequence[File]
    components: Components
    apart: Apart | None = None


class RenderedCluster(NamedTuple):
    """The parts that are written of a cluster: its own, and after it that of the tool which syncs it, if one does."""

    plan: Plan
    parts: tuple[Part, ...]

    @property
    def own(self) -> Part:
        return self.parts[0]

    @property
    def artifacts(self) -> Iterator[tuple[str, Manifest | File]]:
        """Yield each with the tool that it is for, empty for the cluster's own."""
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
    clusters: list[RenderedCluster] = field(default_factory=list)


def render(
    plans: Sequence[Plan], root: Path, out: str, crds: Path | None, *, is_whole: bool, keeps_all: bool = True
) -> Rendered:
    """Render the plans; ``is_whole`` says that they are all there are, so that a list of clusters can be written.

    Clusters with Components are kept. The objects of others would be half of a build's memory: each is gone as soon as
    its text is made, unless it ``keeps_all``.
    """
    rendered = Rendered()
    delivered: defaultdict[str, list[Plan]] = defaultdict(list)
    for plan in plans:
        parts = _parts(plan, out, is_kept=False)
        if keeps_all or plan.components:
            rendered.clusters.append(render_cluster(plan, out))
            parts = iter(rendered.clusters[-1].parts)
        for tool, manifests, files, components, apart in parts:
            schemas = SchemaCheck(plan.cluster.spec.kubernetes, crds, releases(plan))
            checked = schemas.passed_on(manifests)
            top = posixpath.join(tool, plan.cluster.name)
            tree = render_tree(top, checked, files, components, out, str(root), apart)
            rendered.diagnostics += (_invalid(plan, problem) for problem in schemas.problems)
            rendered.tree.update(tree.files)
            rendered.diagnostics += tree.diagnostics
            if tool:
                delivered[tool].append(plan)
            else:
                rendered.objects += tree.objects
    if is_whole:
        for index in (index for tool, synced in delivered.items() for index in indexes(tool, synced)):
            listed = render_index(index.resources, index.comment)
            rendered.tree.update((f"{index.folder}/{path}", data) for path, data in listed.items())
    return rendered


def artifacts(plan: Plan, out: str = OUT) -> Iterator[tuple[str, Manifest | File]]:
    """Yield all that is written of a cluster, each with the tool that it is for, whatever is wrong with it."""
    return render_cluster(plan, out).artifacts


def scope(clusters: Iterable[str]) -> tuple[str, ...]:
    """Return the folders below the output folder that hold what is written for the clusters."""
    return tuple(folder for name in clusters for folder in (name, *(f"{tool}/{name}" for tool in delivery.TOOLS)))


def render_cluster(plan: Plan, out: str = OUT) -> RenderedCluster:
    """Render everything of one cluster, and keep it; nothing of it is checked."""
    return RenderedCluster(plan, tuple(_parts(plan, out, is_kept=True)))


def _parts(plan: Plan, out: str, *, is_kept: bool) -> Iterator[Part]:
    """Yield the cluster's own part; and when somebody has gone through that, the one of the tool that syncs it."""
    applied: defaultdict[str, set[Identity]] = defaultdict(set)
    contents = Contents() if plan.cluster.argocd and plan.cluster.argocd.spec.root else None
    files: list[File] = []
    manifests: Iterable[Manifest] = _own_manifests(plan, applied, files, contents)
    if is_kept:
        manifests = list(manifests)
    components = _components(plan, applied.keys())
    yield Part("", manifests, files, components)
    folders = _folders(plan, applied, components)
    if contents is not None:
        contents.add_files(files)
        contents.add_components(plan, components)
        folders = tuple(folder._replace(digest=contents.digest(folder.path)) for folder in folders)
    syncing: Iterator[Manifest | File]
    if plan.cluster.argocd is not None:
        tool, syncing = "argocd", argocd.render(plan, folders, out, partial(_whys, plan))
    elif plan.cluster.flux is not None:
        tool, syncing = "flux", flux.render(plan, folders, partial(_whys, plan))
    else:
        return
    artifacts = list(syncing)
    manifests = [artifact for artifact in artifacts if isinstance(artifact, Manifest)]
    others = [artifact for artifact in artifacts if isinstance(artifact, File)]
    yield Part(tool, manifests, others, {}, argocd.apart(plan, folders))


def _own_manifests(
    plan: Plan, applied: defaultdict[str, set[Identity]], files: list[File], contents: Contents | None
) -> Iterator[Manifest]:
    """Yield the objects of back ends, annotated; plain files and what each folder applies are noted by the way."""
    is_asked_for = plan.components or plan.cluster.argocd or plan.cluster.flux
    for backend in backends():
        for artifact in backend.render(plan):
            if isinstance(artifact, File):
                files.append(artifact)
                continue
            if is_asked_for:
                applied[artifact.folder].add(identity_of(artifact.body))
            manifest = annotate(artifact, plan.cluster)
            if contents is not None:
                contents.add(manifest)
            yield manifest


def _whys(plan: Plan) -> Iterator[delivery.Why]:
    """Yield the reasons why all that back ends write is there: it is made once more, for it is not kept."""
    for backend in backends():
        yield from map(delivery.why, backend.render(plan))


def releases(plan: Plan) -> Releases:
    """Return the releases of the projects that define custom kinds, as far as the policy names them."""
    scheduler = plan.cluster.spec.scheduler
    named: dict[str, str | None] = {"gpu-operator": plan.cluster.gpu_operator.spec.version}
    if scheduler.version:
        named[scheduler.kind] = scheduler.version
    return named | dict.fromkeys(plan.scheduler.own_kinds_in)


def _invalid(plan: Plan, problem: Problem) -> Diagnostic:
    """Return a finding that names the places in the policy which the value is copied from, if there are any."""
    links = written(Linked(problem.manifest.trace).of(problem.path)) if problem.path else ()
    places = dict.fromkeys(link.at for link in links if link.how is How.COPIED)
    finding = Finding(
        plan.cluster.at,
        f"{problem.manifest.identity} does not fit its schema: {problem.text}",
        related=tuple(Label(at, "the value is from here") for at in places),
    )
    return Diagnostic(INVALID_OBJECT, finding, clusters=(plan.cluster.name,))


# --- Hand-written Components -------------------------------------------------------------------------------------


def _components(plan: Plan, folders: AbstractSet[str]) -> Components:
    """Return the hand-written Components by the folder that includes them.

    A Component for all namespaces or pools is included by the folder of each, since that is what is synced; where a
    stage has no such folders, by the stage's own.
    """
    including: dict[str, tuple[str, ...]] = {}
    for component in plan.components:
        if component.kind == COMPONENT_KIND:
            within = sorted(path for path in folders if path.startswith(f"{component.stage}/"))
            own_folder = f"{component.stage}/{component.part}"
            for folder in (within or [component.stage]) if component.part is None else [own_folder]:
                including[folder] = (*including.get(folder, ()), component.folder)
    return including


def _folders(
    plan: Plan, applied: defaultdict[str, set[Identity]], components: Components
) -> tuple[delivery.Folder, ...]:
    """Return the folders that apply objects, with all of them."""
    written = {component.folder: set[Identity]() for component in plan.components}
    for path, identity in _added(read(plan)) if components else ():
        # A Component adds the objects of the files whose innermost folder of a Component is its own.
        owner = max((folder for folder in written if path.startswith(f"{folder}/")), key=len, default=None)
        if owner is not None:
            written[owner].add(identity)
    for folder, included in components.items():
        for component in included:
            applied[folder].update(written.get(component, ()))
    return tuple(delivery.Folder(path, tuple(sorted(held))) for path, held in sorted(applied.items()) if held)


def _added(files: HandFiles) -> Iterator[tuple[str, Identity]]:
    """Yield the objects that hand-written files add, each with the file that it is in, or its folder."""
    for added in files.objects:
        if not added.is_patch and added.name:
            yield added.path, Identity(added.group, added.kind, text(added.metadata.get("namespace")), added.name)
    for kustomization in files.kustomizations:
        for kind, key in (("ConfigMap", "configMapGenerator"), ("Secret", "secretGenerator")):
            for entry in (mapping(entry) for _, entry in kustomization.entries(key)):
                if entry.get("behavior", "create") == "create":
                    identity = Identity("", kind, text(entry.get("namespace")), text(entry.get("name")))
                    yield f"{kustomization.folder}/", identity


# --- Digests of what folders hold --------------------------------------------------------------------------------


class Contents:
    """The texts that each folder holds so far, as digests by what they are called there."""

    def __init__(self) -> None:
        self._digests: defaultdict[str, dict[str, str]] = defaultdict(dict)

    def add(self, manifest: Manifest) -> None:
        self._add(manifest.folder, object_path(manifest), to_yaml(manifest.body))

    def add_files(self, files: Iterable[File]) -> None:
        """Add plain files: nothing applies them, but a chart reads its values."""
        for file in files:
            self._add(posixpath.dirname(file.path), file.path, file.data.decode())

    def add_components(self, plan: Plan, components: Mapping[str, Sequence[str]]) -> None:
        """Add what is hand-written, as data: comments and the order of keys say nothing. Only YAML is read."""
        documents: defaultdict[str, list[str]] = defaultdict(list)
        for document in plan.hand_written if components else ():
            content = json.dumps(_plain(document.body), sort_keys=True, default=str)
            documents[document.at.locate().file.path].append(content)
        for folder, included in components.items():
            for path, texts in documents.items():
                if any(path.startswith(f"{component}/") for component in included):
                    self._add(folder, path, "\n".join(texts))

    def digest(self, folder: str) -> str:
        """Return a digest of all that is in a folder: it changes when that does, and only then."""
        return digest(self._digests[folder])

    def _add(self, folder: str, name: str, content: str) -> None:
        self._digests[folder][name] = sha256(content.encode()).hexdigest()


def _plain(body: object) -> object:
    """Return the same with texts for keys: a document that people wrote may have any."""
    if isinstance(body, Mapping):
        return {str(key): _plain(value) for key, value in body.items()}
    if isinstance(body, list | tuple):
        return [_plain(value) for value in body]
    return body
