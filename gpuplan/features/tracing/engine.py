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
from gpuplan.compiler.pipeline.rendering import render_cluster
from gpuplan.compiler.planning.linking import Linked, find_written, once, written
from gpuplan.compiler.planning.plan import Component, Plan, Stage
from gpuplan.compiler.planning.sources import because_of, name_of

_NAMES: tuple[Path, ...] = (("metadata", "name"), ("metadata", "namespace"))
"""The fields that decide which object it is, and so where each of its leaves is."""


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
    """Yield everything that is written of a cluster, with its links."""
    for one in written_for(plan, out):
        yield trace_artifact(plan, one.path, one.artifact)


def written_for(plan: Plan, out: str = OUT, root: str = "/") -> Iterator[Written]:
    """Yield everything that is written of a cluster; files that list others come last."""
    by_folder = {component.folder: component for component in plan.components}
    for part in render_cluster(plan, out).parts:
        top = posixpath.join(part.tool, plan.cluster.name)
        manifests = {object_path(manifest): manifest for manifest in part.manifests}
        artifacts: _Artifacts = {**manifests, **{file.path: file for file in part.files}}
        for path, artifact in artifacts.items():
            included = part.components.get(artifact.folder, ()) if isinstance(artifact, Manifest) else ()
            yield Written(f"{top}/{path}", artifact, tuple(by_folder[folder] for folder in included))
        about, reasons = (Subject("Cluster", plan.cluster.name),), _Reasons(plan, artifacts)
        folders = {posixpath.dirname(file.path) for file in part.files}
        for path, data in render_kustomizations(top, manifests, folders, part.components, out, root, part.apart):
            folder = posixpath.dirname(path)
            trace = partial(_listed, reasons, folder, data, part.components.get(folder, ()))
            yield Written(f"{top}/{path}", File(path, data, about=about, trace=trace), ())


def indexes_of(plans: Sequence[Plan], tool: str) -> Iterator[Written]:
    """Yield the lists of the clusters that a tool syncs."""
    synced = [plan for plan in plans if tool in {part.tool for part in render_cluster(plan).parts}]
    for index in indexes(tool, synced) if synced else ():
        data = render_index(index.resources, index.comment)[FILE_NAME]
        about = tuple(Subject("Cluster", plan.cluster.name) for plan in synced)
        file = File(FILE_NAME, data, about=about, trace=partial(_indexed, index, synced))
        yield Written(f"{index.folder}/{FILE_NAME}", file, ())


def _indexed(index: Index, synced: Sequence[Plan]) -> Routes:
    """Yield links of a list: the Argo CD that a cluster has, and those of others, decide in which list it is."""
    if index.comment or "/" in index.folder:
        places = [plan.cluster.at / "argocd" for plan in synced]
        yield (), tuple(link for at in places for link in chosen(at / "namespace", at / "destination"))
    named = sorted(index.clusters, key=lambda plan: plan.cluster.name)
    for position, cluster in enumerate(plan.cluster for plan in named):
        yield ("resources", position), (*copied(name_of(cluster)), *chosen(cluster.at / "argocd", cluster.at / "flux"))


# --- Lists of what a folder applies ------------------------------------------------------------------------------

_Artifacts = Mapping[str, Manifest | File]


class _Reasons:
    """The links of a cluster's artifacts as wholes: each is computed once, and only if a list is asked for."""

    def __init__(self, plan: Plan, artifacts: _Artifacts) -> None:
        self.plan = plan
        self.artifacts = artifacts
        self._known: dict[str, Links] = {}

    def of(self, path: str) -> Links:
        if path not in self._known:
            artifact = self.artifacts[path]
            self._known[path] = _whole(self.plan, artifact, Linked(artifact.trace))
        return self._known[path]

    def below(self, folder: str) -> list[Links]:
        """Return the links of everything in a folder, and in folders in it."""
        return [self.of(path) for path in self._below[folder]]

    @cached_property
    def _below(self) -> Mapping[str, Sequence[str]]:
        below: defaultdict[str, list[str]] = defaultdict(list)
        for path in self.artifacts:
            folder = path
            while folder:
                folder = posixpath.dirname(folder)
                below[folder].append(path)
        return below


def _listed(reasons: _Reasons, folder: str, data: bytes, included: Sequence[str]) -> Routes:
    """Yield links of a list: a file is listed as long as it exists, a folder as long as anything in it does."""
    yield (), _reason(reasons, folder)
    listed = read_data(data.decode())
    for index, entry in enumerate(listed.get("replacements", ())):
        yield ("replacements", index, "path"), choosing(reasons.of(posixpath.join(folder, entry["path"])))
    for index, name in enumerate(listed["resources"]):
        path = posixpath.join(folder, name)
        yield ("resources", index), choosing(reasons.of(path)) if path in reasons.artifacts else _reason(reasons, path)
    places = {component.folder: component.at for component in reasons.plan.components}
    for index, component in enumerate(included):
        at = places.get(component) or Origin(WholeFile(SourceFile(component, "")))
        yield ("components", index), copied(at)


_BY_POOL: Final = tuple(stage.value for stage in Stage if stage.is_by_pool)


def _reason(reasons: _Reasons, folder: str) -> Links:
    """Return the links that all artifacts of a folder share, and those to the name of the pool that it is for.

    Some objects of a pool's folder do not depend on that name. The content of objects decides their names, but not that
    their folder exists.
    """
    stage, _, part = folder.partition("/")
    pools = [pool for pool in reasons.plan.pools if stage in _BY_POOL and pool.name == part]
    wholes = reasons.below(folder)
    places = set.intersection(*({link.at for link in whole} for whole in wholes)) if wholes else set()
    places.discard(name_of(reasons.plan.cluster))  # all of it is in that cluster
    shared = [link for link in wholes[0] if link.at in places] if wholes else []
    return once((*because_of(*pools), *choosing(link for link in shared if link.how is not How.HASH)))


# --- One artifact ------------------------------------------------------------------------------------------------


def trace_artifact(plan: Plan, path: str, artifact: Manifest | File) -> Traced:
    """Return one artifact with its links."""
    known = Linked(artifact.trace)
    body: object = artifact.body if isinstance(artifact, Manifest) else parsed(artifact.data.decode())
    leaves = []
    for route, value in _leaves(body, (), known):
        links = known.below_top(route)
        left_out = tuple(link for link in links if find_written(link) is None)
        leaves.append(Leaf(route, value, tuple(written(links)), left_out))
    whole = _whole(plan, artifact, known) if cluster_of(path) else ()
    return Traced(path, artifact, whole, tuple(leaves))


def _whole(plan: Plan, artifact: Manifest | File, known: Linked) -> Links:
    named = (link for route in _NAMES for link in known.of(route)) if isinstance(artifact, Manifest) else ()
    return once(written((*known.of(()), *choosing(named), *chosen(name_of(plan.cluster)))))


def _leaves(value: object, route: Path, known: Linked) -> Iterator[tuple[Path, object]]:
    if isinstance(value, str) and known.leads_below(route):
        value = parsed(value)
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*route, key), known)
    elif isinstance(value, Sequence) and value and not isinstance(value, str | bytes):
        for index, inner in enumerate(value):
            yield from _leaves(inner, (*route, index), known)
    else:
        yield route, value
