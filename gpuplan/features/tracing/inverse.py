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
from gpuplan.features.tracing.engine import trace_plan, written_for
from gpuplan.features.tracing.forward import confidential_of, patches_of, source_of, text_of, title_of
from gpuplan.features.tracing.lines import Lines, leads_to, loosely, spelled
from gpuplan.features.tracing.model import Elsewhere, Places, TracedPlace, TracedValue, Use
from gpuplan.features.tracing.targets import Target, TargetKind


class Asked(Value, eq=False):
    """A value that a document says in a layer, and its line there."""

    kind: str
    name: str
    file: str
    line: int
    route: Path
    value: object


def trace_place(root: DiskPath, repository: Repository, target: Target, path: str) -> Places:
    """Return the values that depend on a line of a file, on a file, or on a document, and notes."""
    notes: tuple[str, ...] = ()
    if target.subject is TargetKind.DOCUMENT:
        asked = _of_document(repository, target, path)
    else:
        asked, notes = _of_file(root, repository, target, path)
    return tuple(_trace(repository, asked)), notes


# --- What is asked -----------------------------------------------------------------------------------------------


def _of_document(repository: Repository, target: Target, path: str) -> list[Asked]:
    """Return all values of a document, in bases and overlays."""
    layers: dict[tuple[str, int], tuple[Document, Layer]] = {}
    names: set[str] = set()
    for documents in repository.documents.values():
        for document in documents:
            if document.kind == target.kind:
                names.add(document.name)
                if document.name == target.name:
                    layers.update({(layer.file.path, layer.line): (document, layer) for layer in document.layers})
    if not layers:
        near = closest(target.name, sorted(names))
        all_ = f"there are {listing(sorted(names), None)}" if names else f"there is no {target.kind}"
        raise GpuplanError(f"no {target.kind} `{target.name}`", f"did you mean `{near}`?" if near else all_)
    asked = [value for document, layer in layers.values() for value in _values(document, layer)]
    return _at_path(asked, path, f"{target.kind} {target.name}")


def _at_path(asked: list[Asked], path: str, where: str) -> list[Asked]:
    chosen = [value for value in asked if not path or leads_to(path, value.route)]
    if not chosen:
        known = [spelled(value.route[:end]) for value in asked for end in range(1, len(value.route) + 1)]
        near = closest(path, known)
        field = f"`gpuplan explain {asked[0].kind}` lists what it may have" if asked else ""
        raise GpuplanError(f"{where} does not say `{path}`", f"did you mean `{near}`?" if near else field)
    return chosen


def _of_file(root: DiskPath, repository: Repository, target: Target, path: str) -> tuple[list[Asked], tuple[str, ...]]:
    known = {
        layer.file.path for documents in repository.documents.values() for one in documents for layer in one.layers
    }
    if not (root / target.file).is_file():
        near = closest(target.file, sorted(known))
        raise GpuplanError(
            f"there is no `{target.file}`",
            f"did you mean `{near}`?" if near else f"the policies are in {listing(sorted(known))}",
        )
    in_folder, _ = read_folder(DiskTree(root), dirname(target.file))
    documents = [document for document in in_folder if document.file.path == target.file]
    if not documents:
        hint = "policies are the `.yaml` files below `overlays/` and its bases"
        raise GpuplanError(f"`{target.file}` is no policy", hint)
    text = documents[0].file
    if target.line > len(text.lines):
        raise GpuplanError(
            f"`{target.file}` has {count(len(text.lines), 'line')}, and no line {target.line}",
            f"the last one is {len(text.lines)}; type `gpuplan trace {target.file}` for all lines",
        )
    asked = [value for document in documents for value in _values(document, document.layers[0])]
    if path:
        asked = _at_path(asked, path, f"`{target.file}`")
    if not target.line:
        return asked, ()
    on_line = [value for value in asked if value.line == target.line]
    if not on_line:
        inside = [document for document in documents if document.layers[0].line < target.line]
        on_line = _below(inside[-1:], target.line, asked)
    if on_line:
        return on_line, ()
    line = text.lines[target.line - 1].strip()
    reason = "it only separates documents" if line.startswith("---") else "it holds no value"
    reason = "it is a comment" if line.startswith("#") else reason
    return [], (f"line {target.line} of `{target.file}` says nothing: {reason}",)


def _values(document: Document, layer: Layer) -> Iterator[Asked]:
    """Yield every value of a layer, with its line."""
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
    """Return the values below the key of a mapping or list on a line, or else the text that goes on there."""
    for document in documents:
        layer = document.layers[0]
        keys = list(_keys(_tree(layer), (), line))
        mine = [value for value in asked if (value.kind, value.name) == (document.kind, document.name)]
        if keys:
            return [value for value in mine if any(value.route[: len(key)] == key for key in keys)]
        before = [value for value in mine if value.line < line and isinstance(value.value, str)]
        last = max(before, key=lambda value: value.line, default=None)
        if last is not None and line <= last.line + str(last.value).count("\n"):
            return [last]
    return []


def _keys(node: Node, route: Path, line: int) -> Iterator[Path]:
    """Yield the mappings and lists whose key is on a line."""
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
        for one in asked:
            document = known.get((one.kind, one.name))
            if other := _elsewhere(plan, document, one):
                elsewhere[one].append(other)
            if document is not None and _is_from(document, one):
                read[one] = True
                wanted[id(document)].append(one)
        if wanted:
            for one, use in _uses(plan, wanted):
                uses[one].append(use)
    for one in asked:
        title, others = f"{one.kind} {one.name}".strip(), tuple(elsewhere[one])
        note = "" if uses[one] else _note(one, others, is_read=read[one])
        path = spelled(one.route)
        yield TracedPlace(one.file, one.line, path, title, one.value, tuple(uses[one]), others, note)


_TITLE: Final[tuple[Path, ...]] = (("apiVersion",), ("kind",), ("metadata", "name"))
"""The fields that every layer of a document says alike."""


def _is_from(document: Document, asked: Asked) -> bool:
    """Whether the document has the value of this layer, and not of another one."""
    if asked.route in _TITLE:
        return any(layer.file.path == asked.file for layer in document.layers)
    layer = document.find_layer(asked.route)
    return layer is not None and layer.file.path == asked.file


def _elsewhere(plan: Plan, document: Document | None, asked: Asked) -> Elsewhere | None:
    """Return the line that says something else in a cluster that reads the file, or takes the document away."""
    is_removed = document is None
    if document is None:
        at = plan.removed.get((asked.kind, asked.name))
    else:
        is_read = any(layer.file.path == asked.file for layer in document.layers)
        at = Origin(document, asked.route) if is_read and not _is_from(document, asked) else None
    if at is None:
        return None
    location = at.locate()
    return Elsewhere(plan.cluster.name, location.file.path, location.span.start.line, is_removed)


def _uses(plan: Plan, wanted: Mapping[int, Sequence[Asked]]) -> Iterator[tuple[Asked, Use]]:
    """Yield the values of a cluster that depend on what is asked, each once, by the closest of its links."""
    matched: dict[Origin, tuple[Asked, ...]] = {}
    for traced in trace_plan(plan):
        whole = [(one, link) for link in traced.whole for one in _matching(link, wanted, matched)]
        of_leaves = [
            (leaf, one, link)
            for leaf in traced.leaves
            for link in sorted(leaf.own, key=lambda link: _CLOSEST.index(link.how))
            for one in _matching(link, wanted, matched)
        ]
        if not whole and not of_leaves:
            continue
        cluster, title, file = cluster_of(traced.path), title_of(traced.artifact), f"{OUT}/{traced.path}"
        hidden = confidential_of(traced.artifact)
        lines, applier = Lines(text_of(traced.artifact)), _applier(plan, traced.path, traced.artifact)
        seen: set[tuple[Path, Asked]] = set()
        everywhere = ((leaf, one, link) for one, link in whole for leaf in traced.leaves)
        for is_of_object, links in ((False, of_leaves), (True, everywhere)):
            for leaf, one, link in links:
                if (leaf.path, one) not in seen:
                    seen.add((leaf.path, one))
                    line = lines.find(leaf.path).first
                    value = TracedValue(cluster, title, file, line, spelled(leaf.path), hidden.shown(leaf.value), ())
                    yield one, Use(link.how, value, applier, is_of_object)


_CLOSEST: Final = (How.COPIED, How.SUM, How.PRODUCT, How.HASH, How.CHOSEN, How.ORDER, How.RULE, How.FACT)


def _applier(plan: Plan, path: str, artifact: Manifest | File) -> Applier | None:
    """Return the applier of an artifact, or None if nothing syncs it.

    Of files only the values of a chart are read, and the list of a folder that is synced as a whole.
    """
    first, _, rest = path.partition("/")
    folder, _, name = rest.rpartition("/")
    stage, _, part = folder.partition("/")
    is_list = name == FILE_NAME and any(stage == known and known.has_parts == bool(part) for known in Stage)
    if first in TOOLS or (isinstance(artifact, File) and name != VALUES_FILE and not is_list):
        return None
    return find_applier(plan, folder)


def _matching(
    link: Link, wanted: Mapping[int, Sequence[Asked]], known: dict[Origin, tuple[Asked, ...]]
) -> tuple[Asked, ...]:
    """Return the values that are asked for to which a link leads, to a part of them, or to what they are in."""
    if link.at not in known:
        route, asked = link.at.path, wanted.get(id(document_of(link.at)), ())
        known[link.at] = tuple(
            one for one in asked if all(mine == theirs for mine, theirs in zip(one.route, route, strict=False))
        )
    return known[link.at]


# --- Hand-written files ------------------------------------------------------------------------------------------


def trace_by_hand(root: DiskPath, repository: Repository, target: Target, path: str) -> Places:
    """Return the values of a hand-written file with the objects that they change, and its Component in lists."""
    known = {written.at.locate().file.path for plan in repository.plans for written in plan.hand_written}
    if target.file not in known:
        near = closest(target.file, sorted(known))
        raise GpuplanError(
            f"there is no hand-written `{target.file}`",
            f"did you mean `{near}`?" if near else "Components are below `overlays/<cluster>/kustomize/`",
        )
    places = [place for plan in repository.plans for place in _by_hand(plan, target.file)]
    line = _start((root / target.file).read_text(encoding="utf-8"), target.line)
    chosen = [
        place
        for place in places
        if (not line or place.line == line) and (not path or loosely(path) == loosely(place.path))
    ]
    where = f"line {target.line} of `{target.file}`" if target.line else f"`{target.file}`"
    return tuple(chosen), () if chosen else (f"nothing that is written is changed by {where}",)


def _start(text: str, line: int) -> int:
    """Return the line on which the value of a line begins: a patch that is a text goes on below its key."""
    lines = text.splitlines()
    for above in range(min(line, len(lines)) - 1, 0, -1):
        begun = _TEXT.match(lines[above - 1])
        if begun and all(
            not one.strip() or len(one) - len(one.lstrip(" ")) > len(begun[1]) for one in lines[above:line]
        ):
            return above
    return line


_TEXT: Final = regex(r"([ -]*)[^ #-].*: *[|>][-+0-9]{0,2} *(?:#.*)?$")


def _by_hand(plan: Plan, file: str) -> Iterator[TracedPlace]:
    """Yield the values of a file that change objects, then its Component in the lists of folders that include it.

    The place of a value in an object is its line if it is written, else that of the innermost thing it is added to.
    """
    uses: dict[tuple[int, str, str], list[Use]] = {}
    for written in written_for(plan):
        if not isinstance(written.artifact, Manifest) or not written.components:
            continue
        lines, title = Lines(text_of(written.artifact)), title_of(written.artifact)
        for hand in patches_of(plan, written.components, written.artifact):
            source = source_of(hand)
            if source.file == file:
                line, shown = lines.find_nearest(hand.route), hand.at.locate().file.confidential.shown(hand.value)
                path = spelled(hand.route)
                value = TracedValue(plan.cluster.name, title, f"{OUT}/{written.path}", line, path, shown, ())
                applier = _applier(plan, written.path, written.artifact)
                of_key = uses.setdefault((source.line, source.path, source.title), [])
                of_key.append(Use(source.how, value, applier, is_of_object=False))
    for (line, path, title), of_key in uses.items():
        yield TracedPlace(file, line, path, title, of_key[-1].value.value, tuple(of_key))
    yield from _included(plan, file)


def _included(plan: Plan, file: str) -> Iterator[TracedPlace]:
    """Yield the innermost Component that a file belongs to, with the lists that name it."""
    folders = [one.folder for one in plan.components if f"{dirname(file)}/".startswith(f"{one.folder}/")]
    owner = max(folders, key=len, default="")
    uses: list[Use] = []
    for written in written_for(plan):
        if not isinstance(written.artifact, File) or not written.path.endswith(f"/{FILE_NAME}"):
            continue
        list_, text = f"{OUT}/{written.path}", text_of(written.artifact)
        for index, entry in enumerate(read_data(text).get("components", ())):
            if normpath(f"{dirname(list_)}/{entry}") == owner:
                route = ("components", index)
                line = Lines(text).find(route).first
                value = TracedValue(plan.cluster.name, "", list_, line, spelled(route), entry, ())
                applier = _applier(plan, written.path, written.artifact)
                uses.append(Use(How.CHOSEN, value, applier, is_of_object=False))
    if owner and uses:
        yield TracedPlace(file, 1, "", f"Component {owner}", owner, tuple(uses))


# --- Where nothing does ------------------------------------------------------------------------------------------


def _note(asked: Asked, elsewhere: Sequence[Elsewhere], *, is_read: bool) -> str:
    """Return why nothing depends on a value."""
    if asked.route in _TITLE[:2]:
        return "it says what the document is"
    if not is_read:
        return "" if elsewhere else "no cluster that was asked about reads it"
    if asked.value is None:
        return "it takes away what the bases say: a default holds, or what else is said beside it"
    field = find_field(".".join((asked.kind, *(part for part in asked.route if isinstance(part, str)))))
    about = f": {field.description[0].lower()}{field.description[1:]}" if field and field.description else ""
    if asked.value == {}:
        return f"it decides by being there, and which values follow is not traced{about}".rstrip(".")
    return f"nothing that is written comes of it; checks and plans read it{about}".rstrip(".")
