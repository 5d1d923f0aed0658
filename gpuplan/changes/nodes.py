"""Which nodes a change touches, and where nodes go that leave a pool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from gpuplan.changes.model import NodeImpact
from gpuplan.changes.step import Step
from gpuplan.planning.node_patterns import NodePattern, find_common_name, find_other_name, parse
from gpuplan.planning.plan import Nodes, Plan, Pool
from gpuplan.planning.pools import ROLLOUT_SUFFIX


def impact(nodes: Nodes) -> NodeImpact:
    return NodeImpact(nodes.count, tuple(sorted(nodes.names)), None if nodes.names else nodes.name_pattern)


def impact_of_all(pools: Iterable[Pool]) -> NodeImpact | None:
    """The nodes of several pools; a pattern only where there is but one."""
    found = [impact(pool.nodes) for pool in pools]
    if not found:
        return None
    names = tuple(sorted(name for item in found for name in item.names))
    return NodeImpact(sum(item.count for item in found), names, found[0].pattern if len(found) == 1 else None)


class Transition(NamedTuple):
    """Nodes of a part of a pool that are in a part of its successor: ``count`` at most, ``names`` where given."""

    before: Pool
    after: Pool
    nodes: NodeImpact


def transitions(before: Pool, after: Pool) -> Iterator[Transition]:
    """The nodes of a pool that stay in it, by how they were shared and how they are to be."""
    for old, new in product(before.parts, after.parts):
        if (found := _common(old.nodes, new.nodes)).count:
            yield Transition(old, new, found)


def _common(old: Nodes, new: Nodes) -> NodeImpact:
    if old.names or new.names:
        return _named(name for name in {*old.names, *new.names} if has_node(old, name) and has_node(new, name))
    return NodeImpact(min(old.count, new.count), (), old.name_pattern)


def _named(names: Iterable[str]) -> NodeImpact:
    found = tuple(sorted(names))
    return NodeImpact(len(found), found, None)


def has_node(nodes: Nodes, name: str) -> bool:
    """Whether a node belongs to a pool, or a part of one, by its name."""
    if nodes.names:
        return name in nodes.names
    pattern = find_pattern(nodes.name_pattern)
    return pattern is not None and name not in nodes.moved and pattern.matches(name)


def find_pattern(text: str | None) -> NodePattern | None:
    """The pattern that a text spells; None of what is none that we can read."""
    found = parse(text) if text else None
    return found if isinstance(found, NodePattern) else None


def count_by_rule(plan: Plan) -> dict[str, int]:
    """How many nodes each rule of a plan is for, by the rule's name."""
    return {
        f"{pool.name}{ROLLOUT_SUFFIX}" if pool.rollout and part is pool.rollout.moved else pool.name: part.nodes.count
        for pool in plan.pools
        for part in pool.parts
    }


class Arrival(NamedTuple):
    """Nodes that come to a pool, or to a part of one: from a pool that is removed, or from none that is known."""

    to: Pool
    nodes: NodeImpact
    was: Pool | None


def arrivals(step: Step, old: Pool, new: Pool) -> Iterator[Arrival]:
    """The nodes of a pool that it did not have before, those apart that come from pools that stay.

    Of the rest nothing is known unless one of the pools that are removed had them.
    """
    stay = (old, *(pool for pool, _ in step.kept_pools if pool is not old))
    removed = [pool for pool, successor in step.pools if pool is not None and successor is None]
    return (found for part in new.parts for found in _arrivals(part, stay, removed) if found.nodes.count)


def _arrivals(part: Pool, stay: Sequence[Pool], removed: Sequence[Pool]) -> Iterator[Arrival]:
    if part.nodes.names:
        came: dict[str | None, tuple[Pool | None, list[str]]] = {}
        for name in part.nodes.names:
            if not any(has_node(pool.nodes, name) for pool in stay):
                was = next((each for pool in removed for each in pool.parts if has_node(each.nodes, name)), None)
                came.setdefault(was.name if was else None, (was, []))[1].append(name)
        yield from (Arrival(part, _named(names), was) for was, names in came.values())
        return
    pattern = find_pattern(part.nodes.name_pattern)
    known = tuple(theirs for pool in stay if (theirs := find_pattern(pool.nodes.name_pattern)))
    if pattern is not None and find_other_name(pattern, known) is not None:
        named = sum(pattern.matches(name) for pool in stay for name in pool.nodes.names)
        yield Arrival(part, NodeImpact(max(0, part.nodes.count - named), (), part.nodes.name_pattern), None)


class Departure(NamedTuple):
    """Nodes that leave a pool, for the pool ``to`` or for none."""

    to: Pool | None
    nodes: NodeImpact


def moves(pool: Pool, leaving: Departure) -> Iterator[Transition]:
    """The nodes that leave a pool for another one, by how they were shared and how they are to be."""
    for old, new in product(pool.parts, leaving.to.parts if leaving.to is not None else ()):
        if leaving.nodes.names:
            names = (name for name in leaving.nodes.names if has_node(old.nodes, name) and has_node(new.nodes, name))
            found = _named(names)
        else:
            found = replace(leaving.nodes, count=min(leaving.nodes.count, old.nodes.count, new.nodes.count))
        if found.count:
            yield Transition(old, new, found)


def departures(step: Step, pool: Pool, successor: Pool | None) -> tuple[Departure, ...]:
    """Where the nodes of a pool go, those apart that stay in its successor.

    By names where they are given. A pattern's nodes are known by their number alone, so each way that a name of it may
    go is one for all of them.
    """
    if pool.nodes.names:
        return _departures_by_name(pool, successor, step.after)
    if successor is not None and pool.nodes.name_pattern is None:
        return ()  # nothing was said to nodes of no name
    if successor is not None and successor.nodes.names:
        stay = sum(has_node(pool.nodes, name) for name in successor.nodes.names)
        leave = pool.nodes.count - stay
        return (Departure(None, NodeImpact(leave, (), pool.nodes.name_pattern)),) if leave > 0 else ()
    return _departures_by_pattern(pool, successor, step.before, step.after)


def _departures_by_name(pool: Pool, successor: Pool | None, after: Plan) -> tuple[Departure, ...]:
    found: dict[str | None, tuple[Pool | None, list[str]]] = {}
    for name in _all_names(pool):
        if successor is not None and any(has_node(part.nodes, name) for part in successor.parts):
            continue
        to = next((other for other in after.pools if any(has_node(part.nodes, name) for part in other.parts)), None)
        found.setdefault(to.name if to else None, (to, []))[1].append(name)
    return tuple(Departure(to, _named(names)) for to, names in found.values())


def _all_names(pool: Pool) -> Sequence[str]:
    return sorted({name for part in pool.parts for name in part.nodes.names})


def _departures_by_pattern(pool: Pool, successor: Pool | None, before: Plan, after: Plan) -> tuple[Departure, ...]:
    pattern = find_pattern(pool.nodes.name_pattern)
    if pattern is None:
        return () if successor is not None else (Departure(None, impact(pool.nodes)),)
    kept = find_pattern(successor.nodes.name_pattern) if successor is not None else None
    if kept is not None and find_other_name(pattern, (kept,)) is None:
        return ()
    takers = [other for other in after.pools if other is not successor and _takes(other, pattern, before)]
    found = [Departure(other, _taken(other, pool.nodes)) for other in takers]
    patterns = tuple(
        theirs for other in (successor, *takers) if other and (theirs := find_pattern(other.nodes.name_pattern))
    )
    if find_other_name(pattern, patterns) is not None:
        found.append(Departure(None, impact(pool.nodes)))
    return tuple(found)


def _takes(other: Pool, pattern: NodePattern, before: Plan) -> bool:
    """Whether a pool has nodes that the pattern matches, and did not have them before."""
    earlier = before.find_pool(other.name)
    if other.nodes.names:
        had = set(_all_names(earlier)) if earlier is not None else set()
        return any(pattern.matches(name) for name in other.nodes.names if name not in had)
    theirs = find_pattern(other.nodes.name_pattern)
    had_pattern = find_pattern(earlier.nodes.name_pattern) if earlier is not None else None
    return theirs is not None and theirs is not had_pattern and find_common_name(pattern, theirs) is not None


def _taken(other: Pool, nodes: Nodes) -> NodeImpact:
    pattern = find_pattern(nodes.name_pattern)
    if other.nodes.names and pattern is not None:
        return _named(name for name in other.nodes.names if pattern.matches(name))
    return NodeImpact(min(nodes.count, other.nodes.count), (), nodes.name_pattern)
