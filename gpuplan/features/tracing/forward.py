"""From what is written to where it comes from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path as DiskPath

from gpuplan.compiler.base import handles
from gpuplan.compiler.base.confidential import Confidential, confidential_in
from gpuplan.compiler.base.diagnostics import GpuplanError, Origin, Path
from gpuplan.compiler.base.wording import closest, count, listing
from gpuplan.compiler.catalog.places import CatalogFile
from gpuplan.compiler.delivery import TOOLS
from gpuplan.compiler.manifests import HEADER, File, Identity, Manifest, to_yaml
from gpuplan.compiler.manifests.provenance import How, Link
from gpuplan.compiler.outtree.disk import STATE
from gpuplan.compiler.pipeline.loading import OUT
from gpuplan.compiler.pipeline.output import cluster_of
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.tracing.engine import Leaf, Traced, Written, indexes_of, trace_artifact, written_for
from gpuplan.features.tracing.lines import Lines
from gpuplan.features.tracing.model import Source, TracedValue
from gpuplan.features.tracing.pages import default_source, rule_source
from gpuplan.features.tracing.routes import leads_to, spelled
from gpuplan.features.tracing.targets import Target

_VALUES = frozenset((How.COPIED, How.SUM, How.PRODUCT, How.HASH, How.FACT))
"""What a leaf has its value from; the rest decides whether and where it is."""


class Places:
    """Says of links what their places are called; each is looked up once."""

    def __init__(self) -> None:
        self._known: dict[Origin, tuple[str, int, str, str, str]] = {}

    def source(self, link: Link, *, is_of_object: bool = False) -> Source:
        found = self._known.get(link.at)
        if found is None:
            found = self._known[link.at] = _place(link.at)
        file, line, path, title, citation = found
        return Source(link.how, file, line, path, title, citation=citation, is_of_object=is_of_object)


def _place(at: Origin) -> tuple[str, int, str, str, str]:
    location = at.locate()
    citation = at.source.citation(at.path) if isinstance(at.source, CatalogFile) else ""
    return location.file.path, location.span.start.line, spelled(at.path), at.source.title, citation


def text_of(artifact: Manifest | File) -> str:
    """What is written of it."""
    return HEADER + to_yaml(artifact.body) if isinstance(artifact, Manifest) else artifact.data.decode()


def confidential_of(artifact: Manifest | File) -> Confidential:
    """What of it nobody may be shown."""
    if isinstance(artifact, Manifest):
        return confidential_in("", artifact.body)
    return confidential_in(artifact.data.decode())


def title_of(artifact: Manifest | File) -> str:
    """What an object is called: ``ResourceQuota research/gpuplan``; empty for a file that holds none."""
    return str(artifact.identity._replace(group="")) if isinstance(artifact, Manifest) else ""


def values_of(traced: Traced, leaves: Iterable[tuple[Leaf, int]], places: Places) -> Iterator[TracedValue]:
    """What is said of leaves, each with its line."""
    cluster, title = cluster_of(traced.path), title_of(traced.artifact)
    hidden = confidential_of(traced.artifact)
    whole = [places.source(link, is_of_object=True) for link in traced.whole]
    for leaf, line in leaves:
        own = list(_own(traced, leaf, places))
        said = {(source.file, source.line, source.path) for source in own}
        rest = [source for source in whole if (source.file, source.line, source.path) not in said]
        path = spelled(leaf.path)
        yield TracedValue(
            cluster,
            title,
            f"{OUT}/{traced.path}",
            line,
            path,
            hidden.shown(leaf.value),
            tuple(dict.fromkeys((*own, *rest))),
        )


def _own(traced: Traced, leaf: Leaf, places: Places) -> Iterator[Source]:
    """Where a leaf comes from; a default where the policy leaves out what decides its value, else a rule.

    What says the value comes before what chooses it.
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


def trace_file(
    root: DiskPath, plans: Sequence[Plan], target: Target, path: str
) -> tuple[tuple[TracedValue, ...], tuple[str, ...]]:
    """The values of a file, or of one line or path in it, and what else is to be known."""
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
        for item in written_for(plan, OUT, str(root.resolve())):
            if item.path == wanted:
                return _values(root, plan, item, target.line, path)
            known.append(item.path)
    raise _no_file(root, target, [f"{OUT}/{path}" for path in known] if plans else [])


def _no_file(root: DiskPath, target: Target, known: Sequence[str]) -> GpuplanError:
    near = closest(target.file, known)
    if os.path.lexists(root / target.file):
        return GpuplanError(
            f"`{target.file}` is not written by gpuplan, as the policies are now",
            f"did you mean `{near}`?" if near else "`gpuplan build` says what becomes of it",
        )
    return GpuplanError(
        f"`{target.file}` is not written", f"did you mean `{near}`?" if near else "look in `out/` for its name"
    )


def _values(
    root: DiskPath, plan: Plan, item: Written, line: int, path: str
) -> tuple[tuple[TracedValue, ...], tuple[str, ...]]:
    traced = trace_artifact(plan, item.path, item.artifact)
    text = text_of(traced.artifact)
    lines = Lines(text)
    file = f"{OUT}/{traced.path}"
    notes = tuple(_staleness(root, file, text))
    if line > lines.count:
        raise GpuplanError(f"`{file}` has {count(lines.count, 'line')}, and no line {line}", "lines count from 1")
    leaves = [leaf for leaf in traced.leaves if not path or leads_to(path, leaf.path)]
    hand = () if line else tuple(_by_hand(plan, item, path))
    if path and not leaves and not hand:
        raise _no_path(path, file, traced)
    chosen = _on_line(leaves, lines, line) if line else leaves
    if line and not chosen:
        notes = (*notes, f"line {line} of `{file}` holds no value: {_what_else(lines, line)}")
    found = [(leaf, lines.find(leaf.path).first) for leaf in chosen]
    if line:
        found = [(leaf, line if lines.find(leaf.path).holds(line) else first) for leaf, first in found]
    return (*values_of(traced, found, Places()), *hand), notes


def _by_hand(plan: Plan, item: Written, path: str) -> Iterator[TracedValue]:
    """What Components make of an object when its folder is built: it is in their files, and in none of ours."""
    if isinstance(item.artifact, Manifest) and item.components:
        from gpuplan.features.tracing.by_hand import patches_of, traced

        for value in patches_of(plan, item.components, item.artifact):
            if not path or leads_to(path, value.route):
                yield traced(plan, title_of(item.artifact), value)


def _on_line(leaves: Sequence[Leaf], lines: Lines, line: int) -> list[Leaf]:
    """The leaves on a line, or those of the mapping or list that begins there."""
    if found := [leaf for leaf in leaves if lines.find(leaf.path).holds(line)]:
        return found
    starts: dict[Path, bool] = {}
    return [leaf for leaf in leaves if any(_starts(lines, leaf.path[:end], line, starts) for end in _ends(leaf))]


def _ends(leaf: Leaf) -> range:
    return range(1, len(leaf.path))


def _starts(lines: Lines, route: Path, line: int, known: dict[Path, bool]) -> bool:
    if route not in known:
        known[route] = lines.find(route).first == line
    return known[route]


def _what_else(lines: Lines, line: int) -> str:
    text = lines.text_at(line).strip()
    if line == 1 and text == HEADER.strip():
        return "gpuplan writes it at the top of each file"
    return "it is a comment" if text.startswith("#") else "it is empty" if not text else "it only ends what is above"


def _staleness(root: DiskPath, name: str, text: str) -> Iterator[str]:
    """Lines are those of what would be written now."""
    written = text.encode()
    try:
        data = handles.read(root, name.split("/"), len(written) + 1)
    except OSError:
        yield f"`{name}` is not there yet: run `gpuplan build`"
        return
    if data != written:
        yield f"`{name}` is not what the policies make now, which is what is traced: run `gpuplan build`"


def _no_path(path: str, where: str, traced: Traced) -> GpuplanError:
    known = [spelled(leaf.path[:end]) for leaf in traced.leaves for end in range(1, len(leaf.path) + 1)]
    near = closest(path, known)
    top = listing(sorted({str(leaf.path[0]) for leaf in traced.leaves}), None)
    return GpuplanError(f"`{where}` has no `{path}`", f"did you mean `{near}`?" if near else f"it has {top}")


# --- An object ---------------------------------------------------------------------------------------------------


def trace_object(
    root: DiskPath, plans: Sequence[Plan], target: Target, path: str
) -> tuple[tuple[TracedValue, ...], tuple[str, ...]]:
    """The values of an object in each cluster that has it, and the path in it."""
    values: list[TracedValue] = []
    notes: list[str] = []
    missing: list[GpuplanError] = []
    known: set[Identity] = set()
    for plan in plans:
        for item in written_for(plan):
            if isinstance(item.artifact, Manifest):
                known.add(item.artifact.identity)
                if is_meant(target, item.artifact.identity):
                    try:
                        found = _values(root, plan, item, 0, path)
                    except GpuplanError as error:
                        missing.append(error)
                    else:
                        values += found[0]
                        notes += found[1]
        values += _added(plan, target, path, known)
    if not values:
        raise missing[0] if missing else no_object(target, known, [plan.cluster.name for plan in plans])
    return tuple(values), tuple(notes)


def _added(plan: Plan, target: Target, path: str, known: set[Identity]) -> Iterator[TracedValue]:
    """The values of an object that Components add."""
    if plan.hand_written:
        from gpuplan.features.tracing.by_hand import objects_of, traced

        for identity, found in objects_of(plan):
            known.add(identity)
            if is_meant(target, identity):
                title = str(identity._replace(group=""))
                yield from (traced(plan, title, value) for value in found if not path or leads_to(path, value.route))


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
    names = {_typed(identity): identity for identity in sorted(known)}
    wanted = "/".join(filter(None, (target.kind, target.namespace, target.name)))
    same = [name for name, item in names.items() if item.kind.lower() == target.kind.partition(".")[0].lower()]
    named = [name for name in same if names[name].name == target.name]
    near = closest(wanted, named, likeness=0) or closest(wanted, same or names)
    where = f"in cluster {listing(clusters, None)}" if clusters else "anywhere"
    hint = f"did you mean `{near}`?" if near else f"there are {listing(same)}" if same else _kinds(names.values())
    return GpuplanError(f"no `{wanted}` is written {where}", hint)


def _kinds(known: Iterable[Identity]) -> str:
    kinds = sorted({identity.kind for identity in known})
    return f"the kinds that are written are {listing(kinds, None)}" if kinds else "`gpuplan show` says what there is"


def _typed(identity: Identity) -> str:
    return "/".join(filter(None, (identity.kind, identity.namespace, identity.name)))
