"""Judge the links of every leaf by what other values of the policies really change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.manifests.provenance import How
from tests.laws.tracing.mutations import Mutation, Mutations, Scalar
from tests.laws.tracing.policies import Place, Policies
from tests.laws.tracing.rendered import Change, Invalid, Key, Rendered, Source, render

MOST_SOURCES = 12
MANY = (How.SUM, How.HASH)


class LinkedLeaf(NamedTuple):
    """One link of one leaf."""

    object: Key
    path: Path
    place: Place
    how: How
    but: Mutation | None = None
    """A change of the place that leaves the leaf as it was."""


@dataclass
class Judgement:
    """What mutations showed."""

    untraced: dict[Scalar, list[tuple[Mutation, Change]]] = field(default_factory=dict)
    """Leaves that a scalar changes without a link to it."""
    late: dict[Scalar, list[tuple[Mutation, Change]]] = field(default_factory=dict)
    """Leaves that a scalar changes, and that have a link to it only when they are changed."""
    fixed: list[Scalar] = field(default_factory=list)
    """Scalars without another valid value."""
    changed: dict[Place, list[tuple[Mutation, frozenset[tuple[Key, Path]]]]] = field(default_factory=dict)
    """The leaves that each valid mutation of a place changed."""
    crashed: list[tuple[Mutation, Exception]] = field(default_factory=list)


def judge(
    policies: Policies,
    old: Rendered,
    scalars: Iterable[Scalar],
    *,
    most: int = 4,
    is_asked: Callable[[Change], bool] = lambda _: True,
) -> Judgement:
    """Try so many other values of each scalar."""
    judgement = Judgement()
    mutations = Mutations(policies)
    for scalar in scalars:
        found = 0
        for mutation in mutations.of(scalar):
            try:
                is_valid = judge_mutation(policies, old, scalar, mutation, judgement, is_asked)
            except Exception as error:  # noqa: BLE001 - a bug that a mutation shows is told, and is not the end
                judgement.crashed.append((mutation, error))
                continue
            found += is_valid
            if found == most:
                break
        if not found:
            judgement.fixed.append(scalar)
    return judgement


def judge_mutation(
    policies: Policies,
    old: Rendered,
    scalar: Scalar,
    mutation: Mutation,
    judgement: Judgement,
    is_asked: Callable[[Change], bool] = lambda _: True,
) -> bool:
    """Try one other value of a scalar, and return whether it is valid."""
    clusters = frozenset() if mutation.folder else mutation.clusters
    try:
        new = render(mutation.apply(policies), clusters)
    except Invalid:
        return False
    before = Rendered(tuple(plan for plan in old.plans if not clusters or plan.cluster.name in clusters))
    before.__dict__["objects"] = {
        key: item for key, item in old.objects.items() if not clusters or key[0].split("/")[-1].rstrip("+") in clusters
    }
    changed: set[tuple[Key, Path]] = set()
    for change in before.changes_to(new):
        changed.add((change.object.key, change.leaf.path))
        if not is_asked(change) or _is_traced(change, mutation):
            continue
        found = judgement.late if _is_traced_late(change, mutation, new) else judgement.untraced
        found.setdefault(scalar, []).append((mutation, change))
    if not scalar.is_key:
        for place in _meant(mutation):
            judgement.changed.setdefault(place, []).append((mutation, frozenset(changed)))
    return True


def _meant(mutation: Mutation) -> Iterator[Place]:
    """The place that has another value, and not what only refers to it: every layer of a document says its name."""
    yield from (place for place in mutation.before if place == mutation.place or place.path == ("metadata", "name"))


def _is_traced(change: Change, mutation: Mutation) -> bool:
    """Whether the leaf has a link to what is changed, as it was, or where it is new, as it is."""
    places = mutation.after if change.is_new else mutation.before
    sources = {source.place for source in change.object.sources(change.leaf)}
    return not sources.isdisjoint(places) or (change.is_new and _is_below(sources, mutation))


def _is_traced_late(change: Change, mutation: Mutation, new: Rendered) -> bool:
    """Whether the leaf has the link once it is changed, as a cap has to a quota that is on another pool until then."""
    item = new.objects.get(change.object.key)
    leaf = item.leaves.get(change.leaf.path) if item else None
    if change.is_new or item is None or leaf is None:
        return False
    sources = {source.place for source in item.sources(leaf)}
    return not sources.isdisjoint(mutation.after) or _is_below(sources, mutation)


def _is_below(sources: Iterable[Place], mutation: Mutation) -> bool:
    """Whether one is in what was put in the place of a null."""
    mappings = [edit.becomes for edit in mutation.edits if isinstance(edit.value, dict)]
    return any(
        place[:2] == source[:2] and source.path[: len(place.path)] == place.path
        for place in mappings
        for source in sources
    )


class Precision(NamedTuple):
    """The links of some leaves: how many were tried, and those that did not hold."""

    copied: int
    wrong: tuple[LinkedLeaf, ...]
    others: int
    idle: tuple[LinkedLeaf, ...]
    untried: int


def precision(old: Rendered, judgement: Judgement, *, is_asked: Callable[[Key], bool] = lambda _: True) -> Precision:
    """`copied` must change its leaf in every mutation, any other link in one."""
    copied = others = untried = 0
    wrong: list[LinkedLeaf] = []
    idle: list[LinkedLeaf] = []
    for link in links_of(old, is_asked):
        tries = judgement.changed.get(link.place)
        if not tries:
            untried += 1
        elif link.how is How.COPIED:
            copied += 1
            idle_ones = (mutation for mutation, changed in tries if (link.object, link.path) not in changed)
            if mutation := next(idle_ones, None):
                wrong.append(link._replace(but=mutation))
        else:
            others += 1
            if not any((link.object, link.path) in changed for _, changed in tries):
                idle.append(link)
    return Precision(copied, tuple(wrong), others, tuple(idle), untried)


def links_of(old: Rendered, is_asked: Callable[[Key], bool]) -> Iterator[LinkedLeaf]:
    for key, item in old.objects.items():
        if is_asked(key):
            for leaf in item.leaves.values():
                for source in item.sources(leaf):
                    yield LinkedLeaf(key, leaf.path, source.place, source.how)


def crowded(sources: Iterable[Source]) -> bool:
    """Whether a leaf names more sources than anybody reads; sums and digests may."""
    found = [*sources]
    return len({source.place for source in found}) > MOST_SOURCES and not any(source.how in MANY for source in found)
