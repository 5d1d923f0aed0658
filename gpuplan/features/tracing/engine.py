"""Link each value that is written to the values of the policy that decide it."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Final

from gpuplan.compiler.base.diagnostics import Origin, Path, SourceFile, WholeFile
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.delivery.indexes import Index, indexes
from gpuplan.compiler.documents import read_data
from gpuplan.compiler.manifests import File, Manifest, Subject, object_path, render_index, render_kustomizations
from gpuplan.compiler.manifests.kustomization import FILE_NAME
from gpuplan.compiler.manifests.merging.applied import parsed
from gpuplan.compiler.manifests.provenance import How, Links, Routes, choosing, chosen, copied
from gpuplan.compiler.pipeline.loading import OUT
from gpuplan.compiler.pipeline.output import cluster_of
from gpuplan.compiler.pipeline.rendering import Part, render_cluster
from gpuplan.compiler.planning.linking import Linked, find_written, once, written
from gpuplan.compiler.planning.plan import Component, Plan, Stage
from gpuplan.compiler.planning.sources import because_of, name_of

_NAMES: tuple[Path, ...] = (("metadata", "name"), ("metadata", "namespace"))
"""What decides which object it is, and so where each of its leaves is."""


class Leaf(NamedTuple):
    """A value that is no mapping and no list, or an empty one, by its route in the object.

    A route leads on into a text that is YAML or JSON itself, where links are known there, and by the number of a line
    into any other text. ``own`` are the links of this leaf, and not those of all leaves of the object. ``defaults``
    are those of its links that lead to what the policy leaves out.
    """

    path: Path
    value: object
    own: Links
    defaults: Links = ()


class Traced(Value):
    """One artifact of a cluster: ``path`` is its file's, below the output folder.

    ``whole`` are the links that hold for all of its leaves: why it is there, and is called what it is called.
    """

    plan: Plan
    path: str
    artifact: Manifest | File
    whole: Links
    leaves: tuple[Leaf, ...]


class Written(NamedTuple):
    """Something that is written of a cluster, and the hand-written Components that its folder includes."""

    path: str
    artifact: Manifest | File
    components: tuple[Component, ...]


def trace_plan(plan: Plan, out: str = OUT) -> Iterator[Traced]:
    """Everything that is written of a cluster, with its links."""
    for item in written_for(plan, out):
        yield trace_artifact(plan, item.path, item.artifact)


def written_for(plan: Plan, out: str = OUT, root: str = "/") -> Iterator[Written]:
    """Everything that is written of a cluster, by path below the output folder: what lists others comes last."""
    by_folder = {component.folder: component for component in plan.components}
    for part in render_cluster(plan, out).parts:
        top = posixpath.join(part.tool, plan.cluster.name)
        found = {object_path(item): item for item in part.manifests} | {item.path: item for item in part.files}
        for path, artifact in found.items():
            included = part.components.get(artifact.folder, ()) if isinstance(artifact, Manifest) else ()
            yield Written(f"{top}/{path}", artifact, tuple(by_folder[folder] for folder in included))
        for path, file in _kustomizations(part, plan, top, found, out, root):
            yield Written(f"{top}/{path}", file, ())


def indexes_of(plans: Sequence[Plan], tool: str) -> Iterator[Written]:
    """The lists of the clusters that a tool syncs; none where it syncs none."""
    synced = [plan for plan in plans if tool in {part.tool for part in render_cluster(plan).parts}]
    for index in indexes(tool, synced) if synced else ():
        data = render_index(index.resources, index.comment)[FILE_NAME]
        about = tuple(Subject("Cluster", plan.cluster.name) for plan in synced)
        file = File(FILE_NAME, data, about=about, trace=partial(_indexed, index, synced))
        yield Written(f"{index.folder}/{FILE_NAME}", file, ())


def _indexed(index: Index, synced: Sequence[Plan]) -> Routes:
    """Which list a cluster is in follows from where its Argo CD runs, and where those of others do."""
    if index.comment or "/" in index.folder:
        yield (), tuple(link for plan in synced for link in _installation(plan))
    named = sorted(index.clusters, key=lambda plan: plan.cluster.name)
    for position, cluster in enumerate(plan.cluster for plan in named):
        yield ("resources", position), (*copied(name_of(cluster)), *chosen(cluster.at / "argocd", cluster.at / "flux"))


def _installation(plan: Plan) -> Links:
    at = plan.cluster.at / "argocd"
    return chosen(at / "namespace", at / "destination")


# --- Lists of what a folder applies ------------------------------------------------------------------------------

_Artifacts = Mapping[str, Manifest | File]


class _Reasons:
    """Why the artifacts of a cluster are there: each is asked once, and only if a list is, however many lead to it."""

    def __init__(self, plan: Plan, found: _Artifacts) -> None:
        self.plan = plan
        self.found = found
        self._known: dict[str, Links] = {}

    def of(self, path: str) -> Links:
        if path not in self._known:
            self._known[path] = why(self.plan, self.found[path])
        return self._known[path]

    def below(self, folder: str) -> list[Links]:
        """Of everything in a folder, and in those in it."""
        return [self.of(path) for path in self._below[folder]]

    @cached_property
    def _below(self) -> Mapping[str, Sequence[str]]:
        below: defaultdict[str, list[str]] = defaultdict(list)
        for path in self.found:
            folder = path
            while folder:
                folder = posixpath.dirname(folder)
                below[folder].append(path)
        return below


def _kustomizations(
    part: Part, plan: Plan, top: str, found: _Artifacts, out: str, root: str
) -> Iterator[tuple[str, File]]:
    applied = {path: item for path, item in found.items() if isinstance(item, Manifest)}
    folders = {posixpath.dirname(path) for path in found.keys() - applied.keys()}
    about, reasons = (Subject("Cluster", plan.cluster.name),), _Reasons(plan, found)
    for path, data in render_kustomizations(top, applied, folders, part.components, out, root, part.apart):
        folder = posixpath.dirname(path)
        trace = partial(_listed, reasons, folder, data, part.components.get(folder, ()))
        yield path, File(path, data, about=about, trace=trace)


def _listed(reasons: _Reasons, folder: str, data: bytes, included: Sequence[str]) -> Routes:
    """A file is listed as long as it is there, a folder as long as anything in it is."""
    yield (), _reason(reasons, folder)
    listed = read_data(data.decode())
    for index, entry in enumerate(listed.get("replacements", ())):
        yield ("replacements", index, "path"), choosing(reasons.of(posixpath.join(folder, entry["path"])))
    for index, name in enumerate(listed["resources"]):
        path = posixpath.join(folder, name)
        yield ("resources", index), choosing(reasons.of(path)) if path in reasons.found else _reason(reasons, path)
    places = {component.folder: component.at for component in reasons.plan.components}
    for index, component in enumerate(included):
        at = places.get(component) or Origin(WholeFile(SourceFile(component, "")))
        yield ("components", index), copied(at)


_BY_POOL: Final = tuple(stage.value for stage in Stage if stage.is_by_pool)


def _reason(reasons: _Reasons, folder: str) -> Links:
    """What all in a folder needs, and the name of the pool that the folder is for: not all objects in it have that.

    What objects say is no reason for their folder, though it may be for their names.
    """
    stage, _, part = folder.partition("/")
    pools = [pool for pool in reasons.plan.pools if stage in _BY_POOL and pool.name == part]
    shared = _shared(reasons.plan, reasons.below(folder))
    return once((*because_of(*pools), *choosing(link for link in shared if link.how is not How.HASH)))


def _shared(plan: Plan, wholes: Sequence[Links]) -> Links:
    """What all of these have in common."""
    places = set.intersection(*({link.at for link in whole} for whole in wholes)) if wholes else set()
    places.discard(name_of(plan.cluster))  # which is where all of it is
    return tuple(link for link in wholes[0] if link.at in places) if wholes else ()


# --- One artifact ------------------------------------------------------------------------------------------------


def trace_artifact(plan: Plan, path: str, artifact: Manifest | File) -> Traced:
    """One artifact with its links."""
    known = Linked(artifact.trace)
    body: object = artifact.body if isinstance(artifact, Manifest) else parsed(artifact.data.decode())
    leaves = tuple(_leaf(route, value, known) for route, value in _leaves(body, (), known))
    whole = _whole(plan, artifact, known) if cluster_of(path) else ()
    return Traced(plan, path, artifact, whole, leaves)


def why(plan: Plan, artifact: Manifest | File) -> Links:
    """The links of an artifact as a whole."""
    return _whole(plan, artifact, Linked(artifact.trace))


def _whole(plan: Plan, artifact: Manifest | File, known: Linked) -> Links:
    named = (link for route in _NAMES for link in known.of(route)) if isinstance(artifact, Manifest) else ()
    return once(written((*known.of(()), *choosing(named), *chosen(name_of(plan.cluster)))))


def _leaf(route: Path, value: object, known: Linked) -> Leaf:
    links = known.below_top(route)
    own = tuple(written(links))
    return Leaf(route, value, own, tuple(link for link in links if find_written(link) is None))


def _leaves(value: object, route: Path, known: Linked) -> Iterator[tuple[Path, object]]:
    if isinstance(value, str) and known.leads_below(route):
        value = parsed(value)
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, (*route, key), known)
    elif isinstance(value, Sequence) and value and not isinstance(value, str | bytes):
        for index, item in enumerate(value):
            yield from _leaves(item, (*route, index), known)
    else:
        yield route, value
