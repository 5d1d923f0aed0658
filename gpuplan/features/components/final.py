"""Judge what kustomize makes of generated folders and the hand-written Components that they include."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from posixpath import normpath
from typing import Any

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Origin
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import grouped, inside, mapping, text
from gpuplan.compiler.base.wording import count, misspelling
from gpuplan.compiler.checks.registry import run_all
from gpuplan.compiler.documents import read_text
from gpuplan.compiler.manifests import Identity, Manifest, Subject, check_schemas, is_object
from gpuplan.compiler.pipeline.judges import Judged
from gpuplan.compiler.pipeline.rendering import Rendered, RenderedCluster, releases, render
from gpuplan.compiler.planning.hand_files import Object, found_in, merged, sync_options
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.components import kustomize
from gpuplan.features.components.checks import OBJECT_CHECKS, PATCHED_CHECKS
from gpuplan.features.components.checks.components import origin_of, remote_references, remote_resource
from gpuplan.features.components.checks.patched import Folder, Patched
from gpuplan.features.components.kustomize import Refusal, Scratch
from gpuplan.features.components.needs import Finder, Needs, all_sources
from gpuplan.features.components.rules import COMPONENT_DOES_NOT_BUILD, COMPONENTS_NOT_BUILT, PATCHED_OBJECT_INVALID


def judge(
    rendered: Rendered,
    earlier: Sequence[Diagnostic],
    *,
    root: Path,
    out: str,
    crds: Path | None = None,
    program: str = "",
) -> Judged:
    """Build each folder that includes Components, away from the repository, and judge what comes of it.

    ``earlier`` is what was found in the hand-written files themselves: it is not said again of the results. ``program``
    is the kustomize or kubectl to run, `off`, or empty for whichever is on the path. What needs a network is not built,
    and after a build that took too long no other cluster's are begun.
    """
    clusters = [cluster for cluster in rendered.clusters if cluster.own.components]
    if not clusters:
        return Judged()
    command = kustomize.find_program(program)
    judged = Judged(is_complete=command is not None)
    if command is None and program != kustomize.OFF:
        plan = clusters[0].plan
        finding = Finding(
            origin_of(next(component for component in plan.components if component.at)),
            "hand-written Components were not built: what they make of objects was not checked",
            label="and all other Components",
            notes=("there is neither `kustomize` nor `kubectl` on the path",),
            help="install one of them, name it with `--kustomize PATH`, or say `--kustomize off`",
        )
        judged.diagnostics.append(Diagnostic(COMPONENTS_NOT_BUILT, finding, clusters=(plan.cluster.name,)))
    for cluster in clusters:
        patched = Patched(cluster.plan, _folders(cluster))
        if program != kustomize.OFF:
            sound, obstacles = _sound_components(patched, root, is_built=command is not None)
            judged.diagnostics += obstacles
        if command is not None and judged.is_complete:
            patched, refusals, judged.is_complete = _build(patched, rendered, sound, root, out, command)
            found = [*refusals, *_judge_objects(patched, crds, earlier)]
            judged.diagnostics += _gather(found)
        judged.diagnostics += _misfits(patched.plan, _as_written(patched), crds, _AS_WRITTEN)
    return judged


def built(plan: Plan, root: Path, out: str, program: str = "") -> Patched:
    """The folders of a cluster with what comes of their Components; those that cannot be built stay as they are."""
    command = kustomize.find_program(program)
    rendered = render([plan], root.resolve(), out, None, is_whole=False)
    patched = Patched(plan, _folders(rendered.clusters[0]))
    if command is None:
        return patched
    sound, _ = _sound_components(patched, root.resolve(), is_built=True)
    patched, _, _ = _build(patched, rendered, sound, root.resolve(), out, command)
    return patched


def _folders(cluster: RenderedCluster) -> tuple[Folder, ...]:
    """Every folder of a cluster, not built yet."""
    manifests: dict[str, list[Manifest]] = {path: [] for path in cluster.own.components}
    for manifest in cluster.own.manifests:
        manifests.setdefault(manifest.folder, []).append(manifest)
    by_folder = {component.folder: component for component in cluster.plan.components}
    return tuple(
        Folder(path, tuple(by_folder[name] for name in cluster.own.components.get(path, ())), tuple(before))
        for path, before in sorted(manifests.items())
    )


# --- What Components need ----------------------------------------------------------------------------------------


def _sound_components(patched: Patched, root: Path, *, is_built: bool) -> tuple[dict[str, Needs], list[Diagnostic]]:
    """Return the needs of Components that can be built offline, by folder, and why others cannot."""
    finder = Finder(root, patched.files)
    files = patched.files
    said = {_place(finding) for item in files.kustomizations for finding in remote_references(item, files)}
    sound: dict[str, Needs] = {}
    diagnostics: dict[object, Diagnostic] = {}
    for component in patched.plan.components:
        needs = finder.find(component.folder, origin_of(component))
        remote = [remote_resource.rule.report(item) for item in needs.remote if _place(item) not in said]
        doubt = needs.doubt() if is_built and not needs.remote else ""
        if doubt:
            # Here kustomize might reach a network.
            finding = Finding(
                origin_of(component),
                f"Component `{component.folder}` was not built: what it makes of objects was not checked",
                label="may need a network",
                notes=(
                    f"`{' '.join(doubt.split())}` may name another place",
                    "this system has nothing that keeps kustomize from a network",
                ),
                help="run gpuplan on Linux with seccomp or on macOS, or say `--kustomize off`",
            )
            remote.append(Diagnostic(COMPONENTS_NOT_BUILT, finding))
        for item in (*needs.obstacles, *remote):
            found = replace(item, clusters=(patched.plan.cluster.name,))
            diagnostics.setdefault((item.code, _place(item.finding)), found)
        if not (needs.obstacles or needs.remote or doubt):
            sound[component.folder] = needs
    return sound, list(diagnostics.values())


def _place(finding: Finding) -> object:
    return finding.at.locate().sort_key, finding.message


# --- Building ----------------------------------------------------------------------------------------------------


def _build(
    patched: Patched, rendered: Rendered, sound: Mapping[str, Needs], root: Path, out: str, command: Sequence[str]
) -> tuple[Patched, list[Diagnostic], bool]:
    """Build the folders whose Components are all sound; what kustomize refuses stays unbuilt.

    The last of what it returns says that nothing took too long.
    """
    name = patched.plan.cluster.name
    folders = [item for item in patched.folders if item.components and all(c.folder in sound for c in item.components)]
    inside = tuple(f"{name}/{folder.path}/" for folder in folders)
    files = {f"{out}/{path}": data for path, data in rendered.tree.items() if path.startswith(inside)}
    built: dict[str, Folder] = {}
    refusals: list[Diagnostic] = []
    needed = all_sources([sound[component.folder] for folder in folders for component in folder.components])
    with kustomize.laid_out(root, files, needed) as scratch:
        results = _run(command, scratch, {item.path: scratch.path(f"{out}/{name}/{item.path}") for item in folders})
    for folder in folders:
        result = results.get(folder.path)
        if isinstance(result, Refusal):
            message = result.message.replace(f"{scratch.root}/", "").replace(f"{scratch.top}/", "/")
            finding = _refusal(patched, folder, replace(result, message=message))
            refusals.append(Diagnostic(COMPONENT_DOES_NOT_BUILD, finding, clusters=(name,)))
        elif result is not None:
            about = (Subject("Component", folder.path),)
            after = (Manifest(folder.path, body, is_foreign=True, about=about, trace=None) for body in result)
            built[folder.path] = replace(folder, after=tuple(after))
    is_timely = not any(isinstance(result, Refusal) and result.is_late for result in results.values())
    return Patched(patched.plan, tuple(built.get(item.path, item) for item in patched.folders)), refusals, is_timely


_Bodies = list[Mapping[str, Any]]


def _run(command: Sequence[str], scratch: Scratch, folders: Mapping[str, Path]) -> dict[str, _Bodies | Refusal]:
    """The objects of each folder, or why it was refused; some folders are left out beside one that was."""
    groups = _groups(folders)
    paths = [
        folders[group[0]]
        if len(group) == 1
        else kustomize.bundle(scratch.bundles / str(index), {name: folders[name] for name in group})
        for index, group in enumerate(groups)
    ]
    results: dict[str, _Bodies | Refusal] = {}
    refused: list[Sequence[str]] = []
    for group, built in zip(groups, kustomize.build(command, paths, scratch.home), strict=True):
        if built is None:
            continue
        bodies = read_objects(built)
        if len(group) == 1:
            results[group[0]] = bodies
        elif isinstance(bodies, Refusal) or not all(_mark(body) in group for body in bodies):
            refused.append(group)
        else:
            results |= _by_member(group, bodies)
    for group in refused:
        singly = kustomize.build(command, [folders[name] for name in group], scratch.home)
        found = {name: read_objects(one) for name, one in zip(group, singly, strict=True) if one is not None}
        results |= found
        if any(isinstance(one, Refusal) for one in found.values()):
            break
    return results


_LARGEST_BUNDLE = 16
"""Building takes quadratic time in the objects of one build."""


def _groups(folders: Iterable[str]) -> list[Sequence[str]]:
    """Folders to be built together: namespaces or pools, which do not refer to each other's objects."""
    stages = grouped((name.partition("/")[0], name) for name in folders)
    return [
        names[start : start + _LARGEST_BUNDLE]
        for names in stages.values()
        for start in range(0, len(names), _LARGEST_BUNDLE)
    ]


def read_objects(built: str | Refusal) -> list[Mapping[str, Any]] | Refusal:
    """The objects that came of a folder, or why there are none: another program may print anything."""
    if isinstance(built, Refusal):
        return built
    documents, unreadable = read_text("", built, strict=False)
    bodies = [document.data for document in documents]
    strange = next((body for body in bodies if not is_object(body)), None)
    if unreadable:
        return Refusal("what are no objects")
    if strange is not None:
        return Refusal(f"what is no object: `{json.dumps(strange, default=str)[:60]}`")
    return bodies


def _mark(body: Mapping[str, Any]) -> str:
    return text(mapping(body["metadata"].get("annotations")).get(kustomize.MARK))


def _by_member(group: Iterable[str], bodies: _Bodies) -> dict[str, _Bodies]:
    """The objects of a bundle by the members that they are marked with, without the marks."""
    found: dict[str, list[Mapping[str, Any]]] = {name: [] for name in group}
    for body in bodies:
        found[_mark(body)].append(body)
        annotations = body["metadata"]["annotations"]
        del annotations[kustomize.MARK]
        if not annotations:
            del body["metadata"]["annotations"]
    return found


_ID = regex(
    r"(?P<cause>no matches for Id|already registered id:) "
    r"(?P<kind>\w+)\.\S*?/(?P<name>\S+)\.(?P<namespace>\[noNs\]|[a-z0-9-]+)"
)
_WRAPPING = regex(r"(?:accumulating \w+: |accumulateDirectory: |[\\\"]+|recursed accumulation of path '[^']*': )+")
_ADDRESS = regex(r" &\{0x[0-9a-f]+ <nil>\}")  # of something in memory, another one at each run
_FILE = regex(r"[\w./-]+\.(?:ya?ml|json)")


def _refusal(patched: Patched, folder: Folder, refusal: Refusal) -> Finding:
    """Return a finding at what kustomize names: an object, a file, a Component, or else the last Component."""
    if named := _ID.search(refusal.message):
        return _refused_object(patched, folder, named)
    help_ = "repair what kustomize names"
    if refusal.is_late:
        help_ = "make the Component smaller, or look with `kustomize build` what takes so long"
    elif _NO_NETWORK.search(refusal.message):
        help_ = "copy what it would fetch into the folder, and name the copy"
    wrapping = _WRAPPING.match(refusal.message)
    inner = refusal.message[wrapping.end() :].rstrip('\\"') if wrapping else refusal.message
    message = _ADDRESS.sub("", inner).replace('\\"', '"')
    return Finding(
        _place_named(patched, folder, refusal.message),
        f"kustomize does not build `{folder.path}` with its Components",
        label="refused",
        notes=(f"kustomize says: {message}",),
        help=help_,
    )


def _refused_object(patched: Patched, folder: Folder, named: re.Match[str]) -> Finding:
    """Return a finding at a patch of an object that is missing, or at an object that is there twice."""
    identity = Identity("", named["kind"], named["namespace"].replace("[noNs]", ""), named["name"])
    at, notes = patched.place(folder, identity, "metadata", "name"), ("kustomize refuses the whole folder",)
    if not named["cause"].startswith("no matches"):
        help_, message = "make it a patch, or give it another name", f"{identity} is in `{folder.path}` twice"
        return Finding(at, message, label="is there already", notes=notes, help=help_)
    close = misspelling(identity.name, [item.name for item in folder.generated if item.kind == identity.kind])
    help_ = "correct the name, or remove the patch"
    if close:
        help_ = f"write `name: {close}`"
    elif "/" in folder.path and any(component.part is None for component in folder.components):
        help_ = f"give the patch a `target`, or move it to the Component `{folder.path}/`"
    message = f"{identity} is not in `{folder.path}`, for a patch to change it"
    return Finding(at, message, label=f"did you mean `{close}`" if close else "no such object", notes=notes, help=help_)


_NO_NETWORK = regex("(?:socket|connect): operation not permitted|transport '[^']*' not allowed")


def _place_named(patched: Patched, folder: Folder, message: str) -> Origin:
    component = max(folder.components, key=lambda component: message.rfind(f"{component.folder}'"))
    documents = {item.at.locate().file.path: item.at for item in reversed(patched.plan.hand_written)}
    for name in reversed(_FILE.findall(message)):
        for path in (normpath(f"{component.folder}/{name}"), normpath(name)):
            if path in documents:
                return documents[path]
    return origin_of(component)


# --- Judging -----------------------------------------------------------------------------------------------------


def _judge_objects(patched: Patched, crds: Path | None, earlier: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Judge built objects. A finding at a place of a file, ignored or not, is not repeated for its result."""
    yield from run_all(PATCHED_CHECKS, patched)
    results = list(patched.results())
    yield from _misfits(patched.plan, ((manifest, made) for _, manifest, made in results), crds, _BUILT)
    said = {_what_and_where(item) for item in earlier if set(item.clusters) & set(patched.cluster_names)}
    made = replace(patched.files, objects=tuple(found for _, _, found in results))
    yield from (item for item in run_all(OBJECT_CHECKS, made) if _what_and_where(item) not in said)


def _what_and_where(diagnostic: Diagnostic) -> object:
    return diagnostic.code, diagnostic.finding.at.locate().sort_key


def _gather(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """One finding for what a Component does alike in several folders."""
    alike: dict[object, list[Diagnostic]] = {}
    for item in diagnostics:
        finding = item.finding
        key = item.code, item.severity, finding.at.locate().sort_key, finding.label, finding.notes, finding.help
        alike.setdefault(key, []).append(item)
    for first, *others in alike.values():
        more = f"the same is found {count(len(others), 'time')} more"
        notes = (*first.finding.notes, more)
        yield replace(first, finding=replace(first.finding, notes=notes)) if others else first


# --- By the schemas of its kinds -------------------------------------------------------------------------------------


_BUILT = "the object is judged with all patches applied"
_AS_WRITTEN = "the object is judged as it is written, since it was not built"


def _misfits(
    plan: Plan, results: Iterable[tuple[Manifest, Object]], crds: Path | None, how: str
) -> Iterator[Diagnostic]:
    """Yield what does not fit a schema, at the place where it was written."""
    written = {id(manifest): (manifest, item) for manifest, item in results}
    manifests = (manifest for manifest, _ in written.values())
    for problem in check_schemas(manifests, plan.cluster.spec.kubernetes, crds, releases(plan)):
        finding = found_in(written[id(problem.manifest)][1], problem, how)
        yield Diagnostic(PATCHED_OBJECT_INVALID, finding, clusters=(plan.cluster.name,))


def _as_written(patched: Patched) -> Iterator[tuple[Manifest, Object]]:
    """The objects and patches of Components that were not built; of what is patched elsewhere some may be missing."""
    built = {item.folder for folder in patched.folders if folder.after is not None for item in folder.components}
    patches = {(item.kind, item.name) for item in patched.files.objects if item.is_patch}
    for item in patched.files.objects:
        body = merged(item.body)
        component = patched.component_of(item.at)
        if component and component not in built and is_object(body):
            options = sync_options(inside(body, "metadata", "annotations"))
            is_partial = item.is_patch or options.get("ServerSideApply") == "true"
            is_partial |= any(kind in (item.kind, "") and name in (item.name, "") for kind, name in patches)
            about = (Subject("Component", component),)
            yield Manifest("", body, is_partial=is_partial, is_foreign=True, about=about, trace=None), item
