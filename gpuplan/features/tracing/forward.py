"""From what is written to where it comes from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path as DiskPath
from typing import Final

from gpuplan.compiler.base import handles
from gpuplan.compiler.base.confidential import Confidential, confidential_in
from gpuplan.compiler.base.diagnostics import GpuplanError, Origin, Path
from gpuplan.compiler.base.plain import text
from gpuplan.compiler.base.trees import leaves
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import closest, count, listing
from gpuplan.compiler.catalog.places import CatalogFile
from gpuplan.compiler.delivery import TOOLS
from gpuplan.compiler.manifests import HEADER, File, Identity, Manifest
from gpuplan.compiler.manifests.kustomization import FILE_NAME
from gpuplan.compiler.manifests.provenance import How, Link
from gpuplan.compiler.outtree.disk import STATE
from gpuplan.compiler.pipeline.loading import OUT
from gpuplan.compiler.pipeline.output import cluster_of
from gpuplan.compiler.planning.hand_files import Object
from gpuplan.compiler.planning.plan import Component, Plan
from gpuplan.compiler.policy.parse import document_of
from gpuplan.features.components import Folder, Patched
from gpuplan.features.tracing.engine import Leaf, Traced, Written, indexes_of, trace_artifact, written_for
from gpuplan.features.tracing.lines import Lines, leads_to, spelled
from gpuplan.features.tracing.model import Source, TracedValue, Values
from gpuplan.features.tracing.targets import Target

_VALUES = frozenset((How.COPIED, How.SUM, How.PRODUCT, How.HASH, How.FACT))
"""The links that give a leaf its value; others decide whether and where it is."""


class Places:
    """Says of links what their places are called; each is looked up once."""

    def __init__(self) -> None:
        self._known: dict[Origin, tuple[str, int, str, str, str]] = {}

    def source(self, link: Link, *, is_of_object: bool = False) -> Source:
        at = link.at
        if at not in self._known:
            location = at.locate()
            citation = at.source.citation(at.path) if isinstance(at.source, CatalogFile) else ""
            place = location.file.path, location.span.start.line, spelled(at.path), at.source.title, citation
            self._known[at] = place
        file, line, path, title, citation = self._known[at]
        return Source(link.how, file, line, path, title, citation=citation, is_of_object=is_of_object)


def text_of(artifact: Manifest | File) -> str:
    """Return the text that is written of an artifact."""
    return artifact.text if isinstance(artifact, Manifest) else artifact.data.decode()


def confidential_of(artifact: Manifest | File) -> Confidential:
    """Return the values of an artifact that nobody may be shown."""
    if isinstance(artifact, Manifest):
        return confidential_in("", artifact.body)
    return confidential_in(artifact.data.decode())


def title_of(artifact: Manifest | File) -> str:
    """Return the title of an object, such as ``ResourceQuota research/gpuplan``, or nothing for another file."""
    return str(artifact.identity._replace(group="")) if isinstance(artifact, Manifest) else ""


def values_of(traced: Traced, leaves: Iterable[tuple[Leaf, int]], places: Places) -> Iterator[TracedValue]:
    """Yield leaves with their lines and sources."""
    cluster, title = cluster_of(traced.path), title_of(traced.artifact)
    hidden = confidential_of(traced.artifact)
    whole = [places.source(link, is_of_object=True) for link in traced.whole]
    for leaf, line in leaves:
        sources = list(_sources_of(traced, leaf, places))
        known = {(source.file, source.line, source.path) for source in sources}
        rest = [source for source in whole if (source.file, source.line, source.path) not in known]
        unique = tuple(dict.fromkeys((*sources, *rest)))
        shown = hidden.shown(leaf.value)
        yield TracedValue(cluster, title, f"{OUT}/{traced.path}", line, spelled(leaf.path), shown, unique)


def _sources_of(traced: Traced, leaf: Leaf, places: Places) -> Iterator[Source]:
    """Yield the sources of a leaf, those of its value first.

    If the policy leaves out the field that decides the value, its default is a source. A leaf without any source
    follows a rule of gpuplan.
    """
    yield from (places.source(link) for link in sorted(leaf.own, key=lambda link: link.how not in _VALUES))
    if any(link.how in _VALUES for link in leaf.own):
        return
    left_out = [link for link in leaf.defaults if link.how in _VALUES]
    defaults = list(dict.fromkeys(filter(None, map(default_source, left_out))))
    yield from defaults
    if not leaf.own and not defaults:
        yield rule_source(traced.path)


# --- A file ------------------------------------------------------------------------------------------------------


def trace_file(root: DiskPath, plans: Sequence[Plan], target: Target, path: str) -> Values:
    """Return the values of a file, or of one line or path in it, and notes."""
    wanted = target.file.removeprefix(f"{OUT}/")
    if wanted.startswith(f"{STATE}/"):
        raise GpuplanError(
            f"`{target.file}` is gpuplan's own record of what it wrote, and nothing applies it", "name another file"
        )
    for index in (index for tool in TOOLS if wanted.startswith(f"{tool}/") for index in indexes_of(plans, tool)):
        if index.path == wanted:
            return _values(root, plans[0], index, target.line, path)
    for plan in plans:
        known: list[str] = []
        for written in written_for(plan, OUT, str(root.resolve())):
            if written.path == wanted:
                return _values(root, plan, written, target.line, path)
            known.append(written.path)
    near = closest(target.file, [f"{OUT}/{path}" for path in known] if plans else [])
    is_there = os.path.lexists(root / target.file)
    by_policies = " by gpuplan, as the policies are now" if is_there else ""
    hint = "`gpuplan build` says what becomes of it" if is_there else "look in `out/` for its name"
    raise GpuplanError(f"`{target.file}` is not written{by_policies}", f"did you mean `{near}`?" if near else hint)


def _values(root: DiskPath, plan: Plan, written: Written, line: int, path: str) -> Values:
    traced = trace_artifact(plan, written.path, written.artifact)
    text = text_of(traced.artifact)
    lines = Lines(text)
    file = f"{OUT}/{traced.path}"
    notes = tuple(_staleness(root, file, text))
    if line > lines.count:
        raise GpuplanError(
            f"`{file}` has {count(lines.count, 'line')}, and no line {line}",
            f"the last one is {lines.count}; type `gpuplan trace {file}` for all lines",
        )
    leaves = [leaf for leaf in traced.leaves if not path or leads_to(path, leaf.path)]
    hand = () if line else tuple(_by_hand(plan, written, path))
    if path and not leaves and not hand:
        known = [spelled(leaf.path[:end]) for leaf in traced.leaves for end in range(1, len(leaf.path) + 1)]
        near = closest(path, known)
        top = listing(sorted({str(leaf.path[0]) for leaf in traced.leaves}), None)
        raise GpuplanError(f"`{file}` has no `{path}`", f"did you mean `{near}`?" if near else f"it has {top}")
    chosen = _on_line(leaves, lines, line) if line else leaves
    if line and not chosen:
        notes = (*notes, f"line {line} of `{file}` holds no value: {_what_else(lines, line)}")
    stretches = [(leaf, lines.find(leaf.path)) for leaf in chosen]
    at_lines = [(leaf, line if line and stretch.holds(line) else stretch.first) for leaf, stretch in stretches]
    return (*values_of(traced, at_lines, Places()), *hand), notes


def _by_hand(plan: Plan, written: Written, path: str) -> Iterator[TracedValue]:
    """Yield the values that Components give an object when its folder is built: no file of the output has them."""
    if isinstance(written.artifact, Manifest) and written.components:
        for value in patches_of(plan, written.components, written.artifact):
            if not path or leads_to(path, value.route):
                yield traced_by_hand(plan, title_of(written.artifact), value)


def _on_line(leaves: Sequence[Leaf], lines: Lines, line: int) -> list[Leaf]:
    """Return the leaves on a line, or those of the mapping or list that begins there."""
    if on_line := [leaf for leaf in leaves if lines.find(leaf.path).holds(line)]:
        return on_line
    outer = {leaf.path[:end] for leaf in leaves for end in range(1, len(leaf.path))}
    begun = {route for route in outer if lines.find(route).first == line}
    return [leaf for leaf in leaves if any(leaf.path[:end] in begun for end in range(1, len(leaf.path)))]


def _what_else(lines: Lines, line: int) -> str:
    text = lines.text_at(line).strip()
    if line == 1 and text == HEADER.strip():
        return "gpuplan writes it at the top of each file"
    return "it is a comment" if text.startswith("#") else "it is empty" if not text else "it only ends what is above"


def _staleness(root: DiskPath, name: str, text: str) -> Iterator[str]:
    """Yield a note if the file is not as it would be written now: lines are traced of that."""
    written = text.encode()
    try:
        data = handles.read(root, name.split("/"), len(written) + 1)
    except OSError:
        yield f"`{name}` is not there yet: run `gpuplan build`"
        return
    if data != written:
        yield f"`{name}` is not what the policies make now, which is what is traced: run `gpuplan build`"


# --- An object ---------------------------------------------------------------------------------------------------


def trace_object(root: DiskPath, plans: Sequence[Plan], target: Target, path: str) -> Values:
    """Return the values of an object in each cluster that has it, and notes."""
    values: list[TracedValue] = []
    notes: list[str] = []
    missing: list[GpuplanError] = []
    known: set[Identity] = set()
    for plan in plans:
        for written in written_for(plan):
            if isinstance(written.artifact, Manifest):
                known.add(written.artifact.identity)
                if is_meant(target, written.artifact.identity):
                    try:
                        more, remarks = _values(root, plan, written, 0, path)
                    except GpuplanError as error:
                        missing.append(error)
                    else:
                        values += more
                        notes += remarks
        values += _added(plan, target, path, known)
    if not values:
        raise missing[0] if missing else no_object(target, known, [plan.cluster.name for plan in plans])
    return tuple(values), tuple(notes)


def _added(plan: Plan, target: Target, path: str, known: set[Identity]) -> Iterator[TracedValue]:
    """Yield the values of an object that Components add."""
    if plan.hand_written:
        for identity, mine in objects_of(plan):
            known.add(identity)
            if is_meant(target, identity):
                title = str(identity._replace(group=""))
                yield from (
                    traced_by_hand(plan, title, value) for value in mine if not path or leads_to(path, value.route)
                )


def is_meant(target: Target, identity: Identity) -> bool:
    """Whether an object has these names; an object of the cluster has no namespace, and its kind needs no group."""
    kind, _, group = target.kind.partition(".")
    return (
        kind.lower() == identity.kind.lower()
        and (not group or group == identity.group)
        and target.namespace == identity.namespace
        and target.name == identity.name
    )


def no_object(target: Target, known: Iterable[Identity], clusters: Sequence[str]) -> GpuplanError:
    names = {"/".join(filter(None, (one.kind, one.namespace, one.name))): one for one in sorted(known)}
    wanted = "/".join(filter(None, (target.kind, target.namespace, target.name)))
    same = [name for name, one in names.items() if one.kind.lower() == target.kind.partition(".")[0].lower()]
    named = [name for name in same if names[name].name == target.name]
    near = closest(wanted, named, likeness=0) or closest(wanted, same or names)
    where = f"in cluster {listing(clusters, None)}" if clusters else "anywhere"
    kinds = sorted({identity.kind for identity in names.values()})
    all_ = f"the kinds that are written are {listing(kinds, None)}" if kinds else "`gpuplan show` says what there is"
    hint = f"did you mean `{near}`?" if near else f"there are {listing(same)}" if same else all_
    return GpuplanError(f"no `{wanted}` is written {where}", hint)


# --- Pages of the documentation --------------------------------------------------------------------------------------

DOCS: Final = "docs"
"""The folder of the pages in gpuplan's own repository; the site has them without it."""
RULES: Final = f"{DOCS}/explanation/what-is-written.md"

SECTIONS: Final = {
    "gpu-operator": "the-gpu-operator",
    "scheduler": "the-scheduler",
    "partitions": "partitions",
    "scheduling": "scheduling",
    "queues": "queues",
    "namespaces": "namespaces",
    "workloads": "workloads",
    "monitoring": "monitoring",
    "runai": "runai",
    "argocd": "argo-cd",
    "flux": "flux",
    FILE_NAME: "kustomizationyaml",
}
"""The part of the page on rules for each folder of a cluster, for each tool that syncs it, and for lists of files."""


def rule_source(path: str) -> Source:
    """Return the rule for values of an artifact that nothing else says; ``path`` is below the output folder."""
    first, _, rest = path.partition("/")
    stage = rest.partition("/")[0]
    name = path.rpartition("/")[2]
    key = next((key for key in (name, first, stage) if key in SECTIONS), "")
    section = SECTIONS.get(key, "")
    return Source(How.RULE, RULES, 1, section, page=f"{RULES}#{section}" if section else RULES)


def default_source(link: Link) -> Source | None:
    """Return the default of a field that the policy leaves out."""
    document = document_of(link.at)
    if document is None or not document.kind:
        return None
    route = tuple(part for part in link.at.path if isinstance(part, str))
    path = ".".join((document.kind, *route))
    section = "".join((document.kind, *route[:-1])).lower()
    file = f"{DOCS}/fields/{document.kind}.md"
    return Source(How.RULE, file, 1, path, title=document.title, page=f"{file}#{section}")


# --- Hand-written Components -----------------------------------------------------------------------------------------


_NAMES: tuple[Path, ...] = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))


class HandValue(NamedTuple):
    """A value that a hand-written file gives an object, and where it says so."""

    route: Path
    value: object
    at: Origin


def patches_of(plan: Plan, components: Sequence[Component], manifest: Manifest) -> tuple[HandValue, ...]:
    """Return the values that patches of the Components of an object's folder give it, as far as they say so alone."""
    if not components:
        return ()
    folder = Folder(manifest.folder, tuple(components), (manifest,))
    parts = Patched(plan, (folder,)).parts(folder, manifest.identity)
    return tuple(value for part in parts for value in _values_in(part) if value.route not in _NAMES)


def objects_of(plan: Plan) -> Iterator[tuple[Identity, tuple[HandValue, ...]]]:
    """Yield the objects that Components add, with their values."""
    for added in Patched(plan, ()).files.objects:
        if not added.is_patch and added.name:
            identity = Identity(added.group, added.kind, text(added.metadata.get("namespace")), added.name)
            yield identity, tuple(_values_in(added))


def _values_in(written: Object) -> Iterator[HandValue]:
    """Yield values in the order of the file. A kind that a patch does not say is empty, and no value."""
    values = [HandValue(route, value, written.place(*route)) for route, value in leaves(written.body)]
    values.sort(key=lambda value: value.at.locate().span.start.line)
    yield from (value for value in values if value.value or value.route != ("kind",))


def traced_by_hand(plan: Plan, title: str, hand: HandValue) -> TracedValue:
    """Return a value of a Component, as one that comes from its file."""
    source = source_of(hand)
    cluster, value = plan.cluster.name, hand.at.locate().file.confidential.shown(hand.value)
    return TracedValue(cluster, title, source.file, source.line, spelled(hand.route), value, (source,), is_by_hand=True)


def source_of(hand: HandValue) -> Source:
    location, title = hand.at.locate(), hand.at.source.title
    return Source(How.COPIED, location.file.path, location.span.start.line, spelled(hand.at.path), title)
