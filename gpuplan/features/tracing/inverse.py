"""From a line of a policy to what depends on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as DiskPath
from posixpath import dirname, normpath
from typing import Final

import yaml

from gpuplan.compiler.backends.gpu_operator.settings import VALUES_FILE
from gpuplan.compiler.base.diagnostics import GpuplanError, Origin, Path
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import closest, count, listing
from gpuplan.compiler.delivery import TOOLS
from gpuplan.compiler.documents import DiskTree, Document, Layer, read_data, read_folder
from gpuplan.compiler.documents.tree import Node
from gpuplan.compiler.manifests import File, Manifest
from gpuplan.compiler.manifests.kustomization import FILE_NAME
from gpuplan.compiler.manifests.provenance import How, Link
from gpuplan.compiler.pipeline.loading import OUT, Repository
from gpuplan.compiler.pipeline.output import cluster_of
from gpuplan.compiler.planning.appliers import Applier, find_applier
from gpuplan.compiler.planning.plan import Plan, Stage
from gpuplan.compiler.policy.fields import find_field
from gpuplan.compiler.policy.parse import document_of
from gpuplan.features.tracing.by_hand import HandValue, patches_of, source_of
from gpuplan.features.tracing.engine import Written, trace_plan, written_for
from gpuplan.features.tracing.forward import confidential_of, text_of, title_of
from gpuplan.features.tracing.lines import Lines
from gpuplan.features.tracing.model import Elsewhere, TracedPlace, TracedValue, Use
from gpuplan.features.tracing.routes import leads_to, loosely, spelled
from gpuplan.features.tracing.targets import Target, TargetKind


class Asked(Value, eq=False):
    """A value that a document says in a layer, and its line there."""

    kind: str
    name: str
    file: str
    line: int
    route: Path
    value: object


def trace_place(
    root: DiskPath, repository: Repository, target: Target, path: str
) -> tuple[tuple[TracedPlace, ...], tuple[str, ...]]:
    """What depends on a line of a file, on a file, or on a document, and what else is to be known."""
    notes: tuple[str, ...] = ()
    if target.what is TargetKind.DOCUMENT:
        asked = _of_document(repository, target, path)
    else:
        asked, notes = _of_file(root, repository, target, path)
    return tuple(_trace(repository, asked)), notes


# --- What is asked -----------------------------------------------------------------------------------------------


def _of_document(repository: Repository, target: Target, path: str) -> list[Asked]:
    """All that is said of it, in bases and overlays."""
    layers: dict[tuple[str, int], tuple[Document, Layer]] = {}
    names: set[str] = set()
    for documents in repository.documents.values():
        for document in documents:
            if document.kind == target.kind:
                names.add(document.name)
                if document.name == target.name:
                    layers.update({(layer.file.path, layer.line): (document, layer) for layer in document.layers})
    if not layers:
        raise _no_document(target, sorted(names))
    asked = [item for document, layer in layers.values() for item in _said(document, layer)]
    return _at_path(asked, path, f"{target.kind} {target.name}")


def _no_document(target: Target, names: Sequence[str]) -> GpuplanError:
    near = closest(target.name, names)
    there = f"there are {listing(names, None)}" if names else f"there is no {target.kind}"
    return GpuplanError(f"no {target.kind} `{target.name}`", f"did you mean `{near}`?" if near else there)


def _at_path(asked: list[Asked], path: str, where: str) -> list[Asked]:
    found = [item for item in asked if not path or leads_to(path, item.route)]
    if not found:
        known = [spelled(item.route[:end]) for item in asked for end in range(1, len(item.route) + 1)]
        near = closest(path, known)
        field = f"`gpuplan explain {asked[0].kind}` lists what it may have" if asked else ""
        raise GpuplanError(f"{where} does not say `{path}`", f"did you mean `{near}`?" if near else field)
    return found


def _of_file(root: DiskPath, repository: Repository, target: Target, path: str) -> tuple[list[Asked], tuple[str, ...]]:
    documents = _read(root, repository, target.file)
    text = documents[0].file
    if target.line > len(text.lines):
        raise GpuplanError(
            f"`{target.file}` has {count(len(text.lines), 'line')}, and no line {target.line}", "lines count from 1"
        )
    asked = [item for document in documents for item in _said(document, document.layers[0])]
    if path:
        asked = _at_path(asked, path, f"`{target.file}`")
    if not target.line:
        return asked, ()
    found = [item for item in asked if item.line == target.line]
    if not found:
        inside = [document for document in documents if document.layers[0].line < target.line]
        found = _below(inside[-1:], target.line, asked)
    if found:
        return found, ()
    return [], (f"line {target.line} of `{target.file}` says nothing: {_what_else(text.lines[target.line - 1])}",)


def _what_else(line: str) -> str:
    text = line.strip()
    if text.startswith("#"):
        return "it is a comment"
    return "it only separates documents" if text.startswith("---") else "it holds no value"


def _read(root: DiskPath, repository: Repository, file: str) -> Sequence[Document]:
    """The documents of a file of the policies, as they are written there."""
    known = {
        layer.file.path for documents in repository.documents.values() for item in documents for layer in item.layers
    }
    if not (root / file).is_file():
        near = closest(file, sorted(known))
        raise GpuplanError(
            f"there is no `{file}`",
            f"did you mean `{near}`?" if near else f"the policies are in {listing(sorted(known))}",
        )
    documents, _ = read_folder(DiskTree(root), dirname(file))
    found = [document for document in documents if document.file.path == file]
    if not found:
        raise GpuplanError(f"`{file}` is no policy", "policies are the `.yaml` files below `overlays/` and its bases")
    return found


def _said(document: Document, layer: Layer) -> Iterator[Asked]:
    """Every value that a layer says, with its line."""
    for route, line in _scalars(_tree(layer), ()):
        _, value = layer.find(route)
        yield Asked(document.kind, document.name, layer.file.path, line, route, layer.file.confidential.shown(value))


def _tree(layer: Layer) -> Node:
    try:
        return layer.tree
    except yaml.YAMLError:
        raise GpuplanError(
            f"`{layer.file.path}` cannot be read as YAML", "`gpuplan validate` shows what is wrong with it"
        ) from None


def _scalars(node: Node, route: Path) -> Iterator[tuple[Path, int]]:
    children = node.children
    if not children:
        yield route, node.shown.start.line
    elif isinstance(children, dict):
        for key, child in children.items():
            yield from _scalars(child, (*route, key))
    else:
        for index, child in enumerate(children):
            yield from _scalars(child, (*route, index))


def _below(documents: Sequence[Document], line: int, asked: Sequence[Asked]) -> list[Asked]:
    """What is below the key of a mapping or list on a line, or else the text that goes on there."""
    for document in documents:
        layer = document.layers[0]
        keys = list(_keys(_tree(layer), (), line))
        mine = [item for item in asked if (item.kind, item.name) == (document.kind, document.name)]
        if keys:
            return [item for item in mine if any(item.route[: len(key)] == key for key in keys)]
        before = [item for item in mine if item.line < line and isinstance(item.value, str)]
        last = max(before, key=lambda item: item.line, default=None)
        if last is not None and line <= last.line + str(last.value).count("\n"):
            return [last]
    return []


def _keys(node: Node, route: Path, line: int) -> Iterator[Path]:
    """The mappings and lists whose key is on a line."""
    children = node.children
    if children and route and node.key.start.line == line:
        yield route
    parts = children.items() if isinstance(children, dict) else enumerate(children or ())
    for key, child in parts:
        yield from _keys(child, (*route, key), line)


# --- What depends on it ------------------------------------------------------------------------------------------


def _trace(repository: Repository, asked: Sequence[Asked]) -> Iterator[TracedPlace]:
    uses: defaultdict[Asked, list[Use]] = defaultdict(list)
    elsewhere: defaultdict[Asked, list[Elsewhere]] = defaultdict(list)
    read = dict.fromkeys(asked, False)
    for plan in repository.plans:
        documents = repository.documents[plan.cluster.name]
        known = {(document.kind, document.name): document for document in documents}
        wanted: defaultdict[int, list[Asked]] = defaultdict(list)
        for item in asked:
            document = known.get((item.kind, item.name))
            if other := _elsewhere(plan, document, item):
                elsewhere[item].append(other)
            if document is not None and _is_said(document, item):
                read[item] = True
                wanted[id(document)].append(item)
        if wanted:
            for item, use in _uses(plan, wanted):
                uses[item].append(use)
    for item in asked:
        title = f"{item.kind} {item.name}".strip()
        found = tuple(uses[item])
        note = "" if found else _note(item, elsewhere[item], is_read=read[item])
        yield TracedPlace(
            item.file, item.line, spelled(item.route), title, item.value, found, tuple(elsewhere[item]), note
        )


_TITLE: Final[tuple[Path, ...]] = (("apiVersion",), ("kind",), ("metadata", "name"))
"""What every layer of a document says alike."""


def _is_said(document: Document, item: Asked) -> bool:
    """Whether it is this layer that says what the document has there."""
    if item.route in _TITLE:
        return any(layer.file.path == item.file for layer in document.layers)
    layer = document.find_layer(item.route)
    return layer is not None and layer.file.path == item.file


def _elsewhere(plan: Plan, document: Document | None, item: Asked) -> Elsewhere | None:
    """What says something else in a cluster that reads the line."""
    cluster = plan.cluster.name
    if document is None:
        at = plan.removed.get((item.kind, item.name))
        is_removed = at is not None
    else:
        is_other = any(layer.file.path == item.file for layer in document.layers) and not _is_said(document, item)
        at, is_removed = (Origin(document, item.route) if is_other else None), False
    if at is None:
        return None
    location = at.locate()
    return Elsewhere(cluster, location.file.path, location.span.start.line, is_removed)


def _uses(plan: Plan, wanted: Mapping[int, Sequence[Asked]]) -> Iterator[tuple[Asked, Use]]:
    """The values of a cluster that depend on what is asked, each once, by the closest of its links."""
    matched: dict[Origin, tuple[Asked, ...]] = {}
    for traced in trace_plan(plan):
        whole = [(item, link) for link in traced.whole for item in _matching(link, wanted, matched)]
        own = [
            (leaf, item, link)
            for leaf in traced.leaves
            for link in sorted(leaf.own, key=_distance)
            for item in _matching(link, wanted, matched)
        ]
        if not whole and not own:
            continue
        cluster, title, file = cluster_of(traced.path), title_of(traced.artifact), f"{OUT}/{traced.path}"
        hidden = confidential_of(traced.artifact)
        lines, applier = Lines(text_of(traced.artifact)), _applier(plan, traced.path, traced.artifact)
        seen: set[tuple[Path, Asked]] = set()
        everywhere = ((leaf, item, link) for item, link in whole for leaf in traced.leaves)
        for is_of_object, found in ((False, own), (True, everywhere)):
            for leaf, item, link in found:
                if (leaf.path, item) not in seen:
                    seen.add((leaf.path, item))
                    line = lines.find(leaf.path).first
                    value = TracedValue(cluster, title, file, line, spelled(leaf.path), hidden.shown(leaf.value), ())
                    yield item, Use(link.how, value, applier, is_of_object)


_CLOSEST: Final = (How.COPIED, How.SUM, How.PRODUCT, How.HASH, How.CHOSEN, How.ORDER, How.RULE, How.FACT)


def _distance(link: Link) -> int:
    return _CLOSEST.index(link.how)


def _applier(plan: Plan, path: str, artifact: Manifest | File) -> Applier | None:
    """What syncs an object; of files only the values of a chart, and the list of a folder that is synced, are read."""
    first, _, rest = path.partition("/")
    folder, _, name = rest.rpartition("/")
    if first in TOOLS or (isinstance(artifact, File) and name != VALUES_FILE and not _is_synced(folder, name)):
        return None
    return find_applier(plan, folder)


def _is_synced(folder: str, name: str) -> bool:
    """Whether a file lists what a folder has that is synced, and not parts that are synced one by one."""
    stage, _, part = folder.partition("/")
    return name == FILE_NAME and any(stage == known and known.has_parts == bool(part) for known in Stage)


def _matching(
    link: Link, wanted: Mapping[int, Sequence[Asked]], known: dict[Origin, tuple[Asked, ...]]
) -> tuple[Asked, ...]:
    """What is asked that a link leads to: to itself, to what it is in, or to a part of it."""
    if link.at not in known:
        document, route = document_of(link.at), link.at.path
        known[link.at] = tuple(item for item in wanted.get(id(document), ()) if _is_along(item.route, route))
    return known[link.at]


def _is_along(one: Path, other: Path) -> bool:
    return all(mine == theirs for mine, theirs in zip(one, other, strict=False))


# --- Hand-written files ------------------------------------------------------------------------------------------


def trace_by_hand(
    root: DiskPath, repository: Repository, target: Target, path: str
) -> tuple[tuple[TracedPlace, ...], tuple[str, ...]]:
    """What becomes of what a hand-written file says: the objects that it changes, and the folders that include it."""
    known = {written.at.locate().file.path for plan in repository.plans for written in plan.hand_written}
    if target.file not in known:
        near = closest(target.file, sorted(known))
        raise GpuplanError(
            f"there is no hand-written `{target.file}`",
            f"did you mean `{near}`?" if near else "Components are below `overlays/<cluster>/kustomize/`",
        )
    places = [place for plan in repository.plans for place in _by_hand(plan, target.file)]
    line = _start((root / target.file).read_text(encoding="utf-8"), target.line)
    found = [
        place
        for place in places
        if (not line or place.line == line) and (not path or loosely(path) == loosely(place.path))
    ]
    where = f"line {target.line} of `{target.file}`" if target.line else f"`{target.file}`"
    return tuple(found), () if found else (f"nothing that is written is changed by {where}",)


def _start(text: str, line: int) -> int:
    """The line on which a value begins, of one in it: a patch that is a text goes on below its key."""
    lines = text.splitlines()
    for above in range(min(line, len(lines)) - 1, 0, -1):
        begun = _TEXT.match(lines[above - 1])
        if begun and all(not item.strip() or _depth(item) > len(begun[1]) for item in lines[above:line]):
            return above
    return line


_TEXT: Final = regex(r"([ -]*)[^ #-].*: *[|>][-+0-9]{0,2} *(?:#.*)?$")


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _by_hand(plan: Plan, file: str) -> Iterator[TracedPlace]:
    """The values of a file that change objects, then its Component in the lists of the folders that include it."""
    uses: dict[tuple[int, str, str], list[Use]] = {}
    values: dict[tuple[int, str, str], object] = {}
    for item in written_for(plan):
        if isinstance(item.artifact, Manifest) and item.components:
            lines = Lines(text_of(item.artifact))
            for found in patches_of(plan, item.components, item.artifact):
                source = source_of(found)
                if source.file == file:
                    key = source.line, source.path, source.title
                    value = _patched(plan, item, found, lines)
                    use = Use(source.how, value, _applier(plan, item.path, item.artifact), is_of_object=False)
                    values[key] = value.value
                    uses.setdefault(key, []).append(use)
    for key, of_key in uses.items():
        line, path, title = key
        yield TracedPlace(file, line, path, title, values[key], tuple(of_key))
    yield from _included(plan, file)


def _patched(plan: Plan, item: Written, found: HandValue, lines: Lines) -> TracedValue:
    """The place in an object that a patch changes: its line where it is written, else that of what it is added to."""
    line = lines.find_nearest(found.route)
    title = title_of(item.artifact)
    value = found.at.locate().file.confidential.shown(found.value)
    return TracedValue(plan.cluster.name, title, f"{OUT}/{item.path}", line, spelled(found.route), value, ())


def _included(plan: Plan, file: str) -> Iterator[TracedPlace]:
    """The lists that name the innermost Component which a file belongs to."""
    folders = [item.folder for item in plan.components if f"{dirname(file)}/".startswith(f"{item.folder}/")]
    owner = max(folders, key=len, default="")
    uses = [
        Use(How.CHOSEN, value, _applier(plan, item.path, item.artifact), is_of_object=False)
        for item in written_for(plan)
        if isinstance(item.artifact, File) and item.path.endswith(f"/{FILE_NAME}")
        for value in _listed(plan, item, owner)
    ]
    if owner and uses:
        yield TracedPlace(file, 1, "", f"Component {owner}", owner, tuple(uses))


def _listed(plan: Plan, item: Written, component: str) -> Iterator[TracedValue]:
    file, text = f"{OUT}/{item.path}", text_of(item.artifact)
    for index, value in enumerate(read_data(text).get("components", ())):
        if normpath(f"{dirname(file)}/{value}") == component:
            route = ("components", index)
            line = Lines(text).find(route).first
            yield TracedValue(plan.cluster.name, "", file, line, spelled(route), value, ())


# --- Where nothing does ------------------------------------------------------------------------------------------


def _note(item: Asked, elsewhere: Sequence[Elsewhere], *, is_read: bool) -> str:
    """Why nothing depends on a value."""
    if item.route in _TITLE[:2]:
        return "it says what the document is"
    if not is_read:
        return "" if elsewhere else "no cluster that was asked about reads it"
    if item.value is None:
        return "it takes away what the bases say: a default holds, or what else is said beside it"
    field = find_field(".".join((item.kind, *(part for part in item.route if isinstance(part, str)))))
    told = f": {field.description[0].lower()}{field.description[1:]}" if field and field.description else ""
    if item.value == {}:
        return f"it decides by being there, and which values follow is not traced{told}".rstrip(".")
    return f"nothing that is written comes of it; checks and plans read it{told}".rstrip(".")
