"""The nodes that a change touches, the pools that they go to, and the rules that label them."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from math import ceil
from typing import Final

from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.planning.node_patterns import (
    NodePattern,
    find_common_name,
    find_name,
    find_other_name,
    find_pattern,
    has_node,
)
from gpuplan.compiler.planning.plan import Amount, DynamicMig, Fraction, Nodes, Plan, Pool, Quota, Stage, Tenant, Unit
from gpuplan.compiler.planning.pools import ROLLOUT_SUFFIX
from gpuplan.compiler.policy.models import NodeLabels
from gpuplan.features.changes.model import CapacityChange, GrantChange, NodeImpact
from gpuplan.features.changes.step import Step


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
        return _named(name for name in {*old.names, *new.names} if _may_have(old, name) and _may_have(new, name))
    return NodeImpact(min(old.count, new.count), (), old.name_pattern)


def _named(names: Iterable[str]) -> NodeImpact:
    found = tuple(sorted(names))
    return NodeImpact(len(found), found, None)


def _may_have(nodes: Nodes, name: str) -> bool:
    """Whether a node of a pool is in this part of it: by its name, or whatever its name where boards say it."""
    return name not in nodes.moved if nodes.are_by_board else has_node(nodes, name)


def count_by_rule(plan: Plan) -> dict[str, int]:
    """Return the number of nodes of each rule of a plan, by the rule's name."""
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


def arrivals(step: Step, old: Pool | None, new: Pool) -> Iterator[Arrival]:
    """The nodes of a pool that it did not have before, those apart that come from pools that stay.

    Of the rest nothing is known unless one of the pools that are removed had them. A pool that is new had none.
    """
    if old is not None and old.nodes.are_by_board and not _boards(new).isdisjoint(old.nodes.boards):
        return iter(())  # whatever has a board of the model was in the pool
    stay = [*([old] if old is not None else []), *(pool for pool, _ in step.kept_pools if pool is not old)]
    removed = [pool for pool, successor in step.pools if pool is not None and successor is None]
    return (found for part in new.parts for found in _arrivals(part, stay, removed) if found.nodes.count)


def _arrivals(part: Pool, stay: Sequence[Pool], removed: Sequence[Pool]) -> Iterator[Arrival]:
    if part.nodes.names:
        come = [name for name in part.nodes.names if not any(has_node(pool.nodes, name) for pool in stay)]
        parts = [each for pool in removed for each in pool.parts]
        yield from (Arrival(part, nodes, was) for was, nodes in _by_pool(come, parts))
        return
    if part.nodes.are_by_board:
        yield Arrival(part, impact(part.nodes), None)  # which nodes have the board, nobody has said
        return
    pattern = find_pattern(part.nodes.name_pattern)
    if pattern is not None and find_other_name(pattern, patterns_of(stay)) is not None:
        named = sum(pattern.matches(name) for pool in stay for name in pool.nodes.names)
        yield Arrival(part, NodeImpact(max(0, part.nodes.count - named), (), part.nodes.name_pattern), None)


def _by_pool(names: Iterable[str], pools: Sequence[Pool]) -> Iterator[tuple[Pool | None, NodeImpact]]:
    """The names by the first of these pools, or parts of pools, that has each; None for those that none has."""
    found: dict[str | None, tuple[Pool | None, list[str]]] = {}
    for name in names:
        pool = next((item for item in pools if any(has_node(part.nodes, name) for part in item.parts)), None)
        found.setdefault(pool.name if pool else None, (pool, []))[1].append(name)
    return ((pool, _named(known)) for pool, known in found.values())


def patterns_of(pools: Iterable[Pool | None]) -> tuple[NodePattern, ...]:
    found = (find_pattern(pool.nodes.name_pattern) for pool in pools if pool is not None)
    return tuple(pattern for pattern in found if pattern is not None)


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
    if successor is not None and successor.nodes.are_by_board and not _boards(pool).isdisjoint(successor.nodes.boards):
        return ()  # a board of the model is all that a node needs
    if pool.nodes.names:
        stay = [*successor.parts] if successor is not None else []
        leave = [name for name in sorted(pool.nodes.names) if not any(has_node(part.nodes, name) for part in stay)]
        return tuple(Departure(to, nodes) for to, nodes in _by_pool(leave, step.after.pools))
    if successor is not None and pool.nodes.are_by_board:
        if successor.nodes.are_by_board:
            return ()  # what other boards do is told of with them
        stay_by_name = successor.nodes.count if successor.nodes.names else 0
        left = NodeImpact(max(0, pool.nodes.count - stay_by_name), (), None)
        return (Departure(None, left),) if left.count else ()
    if successor is not None and pool.nodes.name_pattern is None:
        return ()  # nothing was said to nodes of no name
    return tuple(_departures_by_pattern(step, pool, successor))


def _boards(pool: Pool) -> frozenset[str]:
    return frozenset(device.spelt for device in pool.gpu.pci)


def _departures_by_pattern(step: Step, pool: Pool, successor: Pool | None) -> Iterator[Departure]:
    """To other pools, and for none: as many as there are if any may, and of those with names what is left."""
    pattern, kept = find_pattern(pool.nodes.name_pattern), patterns_of([successor])
    if pattern is None:
        yield from [Departure(None, impact(pool.nodes))] if successor is None else []
        return
    if kept and find_other_name(pattern, kept) is None:
        return
    takers = [other for other in step.after.pools if other is not successor and _takes(other, pattern, step.before)]
    left = pool.nodes.count
    for other in takers:
        names = [name for name in other.nodes.names if pattern.matches(name)]
        by_number = NodeImpact(min(pool.nodes.count, other.nodes.count), (), pool.nodes.name_pattern)
        leaving = Departure(other, _named(names) if other.nodes.names else by_number)
        left -= leaving.nodes.count
        yield leaving
    if successor is not None and successor.nodes.names:
        left -= sum(has_node(pool.nodes, name) for name in successor.nodes.names)
        yield from [Departure(None, NodeImpact(left, (), pool.nodes.name_pattern))] if left > 0 else []
    elif find_other_name(pattern, patterns_of([successor, *takers])) is not None:
        yield Departure(None, impact(pool.nodes))


def _takes(other: Pool, pattern: NodePattern, before: Plan) -> bool:
    """Whether a pool has nodes that the pattern matches, and did not have them before."""
    earlier = before.find_pool(other.name)
    if other.nodes.names:
        had = {name for part in (earlier.parts if earlier is not None else ()) for name in part.nodes.names}
        return any(pattern.matches(name) for name in other.nodes.names if name not in had)
    theirs = find_pattern(other.nodes.name_pattern)
    is_new = earlier is None or earlier.nodes.name_pattern != other.nodes.name_pattern
    return theirs is not None and is_new and find_common_name(pattern, theirs) is not None


def capacities(before: Pool | None, after: Pool | None, nodes: int | None = None) -> tuple[CapacityChange, ...]:
    """The units whose number differs; of ``nodes`` nodes, or of the pools' own."""
    present = [pool for pool in (before, after) if pool is not None]
    units = dict.fromkeys(unit.name for pool in present for unit in pool.units)
    found = ((unit, _capacity(before, unit, nodes), _capacity(after, unit, nodes)) for unit in units)
    return tuple(CapacityChange(present[-1].name, unit, old, new) for unit, old, new in found if old != new)


def _capacity(pool: Pool | None, unit: str, nodes: int | None) -> int:
    found = pool.find_unit(unit) if pool is not None else None
    if found is None:
        return 0
    return found.capacity if nodes is None else found.per_node * nodes


Held = tuple[str, str]
"""A pool and a unit of it, by name."""


def quotas(tenant: Tenant | None, renamed: Mapping[str, str]) -> dict[Held, Quota]:
    """A tenant's quotas, in the order of the policy; ``renamed`` are pools by the name that they had."""
    found = tenant.quotas if tenant is not None else ()
    return {(renamed.get(quota.pool.name, quota.pool.name), quota.unit.name): quota for quota in found}


def grants(before: Tenant | None, after: Tenant | None, renamed: Mapping[str, str]) -> tuple[GrantChange, ...]:
    """The grants that differ, in the order of the policy."""
    old, new = quotas(before, renamed), quotas(after, {})
    name = next(tenant.name for tenant in (after, before) if tenant is not None)
    found = ((key, _numbers(old.get(key)), _numbers(new.get(key))) for key in dict.fromkeys((*old, *new)))
    return tuple(
        GrantChange(name, *key, one[0], other[0], one[1], other[1]) for key, one, other in found if one != other
    )


def _numbers(quota: Quota | None) -> tuple[Amount, Amount | None]:
    return (quota.guaranteed, quota.limit) if quota is not None else (0, 0)


_HUNDREDTHS: Final = 100
"""Pods that one GPU may have at once where a scheduler divides it: it counts in hundredths."""


def pods_on(plan: Plan, pool: Pool, nodes: int) -> int:
    """Return the number of pods that may hold units on so many nodes of a pool or of a part of a pool."""
    limits = {total.unit.name: total.limit for total in plan.totals if total.pool.name == pool.name}
    found = 0
    for unit in pool.units:
        there, limit = unit.per_node * nodes, limits.get(unit.name)
        found += ceil((there if limit is None else min(there, limit)) * _pods_per_unit(pool, unit))
    if isinstance(pool.sharing, DynamicMig):  # of which a GPU has no more at once than compute slices
        return min(found, pool.gpu.compute_slices * pool.nodes.gpus_per_node * nodes)
    return found


def all_pods(plan: Plan) -> int:
    return sum(pods_on(plan, part, part.nodes.count) for part in plan.parts)


def pods_of(tenant: Tenant) -> int:
    """Return the number of pods with units that a tenant may have, one for each unit."""
    return sum(
        ceil((quota.unit.capacity if quota.limit is None else quota.limit) * _pods_per_unit(quota.pool, quota.unit))
        for quota in tenant.quotas
    )


def _pods_per_unit(pool: Pool, unit: Unit) -> int:
    return _HUNDREDTHS if isinstance(pool.part_with(unit).sharing, Fraction) else 1


class LabelRule(NamedTuple):
    """A rule that gives nodes their labels, and the folder that the rule is synced with.

    Rules are gone through by ``order``, the name of their object, and of two values of a label the later one holds.
    ``part`` is the part of a pool that the rule is for; None where it keeps what a pool gave.
    """

    folder: str
    order: str
    nodes: Nodes
    labels: Mapping[str, str]
    part: Pool | None

    @property
    def key(self) -> tuple[object, ...]:
        """All that a node sees of it."""
        nodes = self.nodes
        chosen = nodes.names, None if nodes.names else nodes.name_pattern, nodes.moved, nodes.boards
        return self.folder, self.order, chosen, tuple(sorted(self.labels.items()))

    @property
    def pattern(self) -> NodePattern | None:
        return None if self.nodes.names else find_pattern(self.nodes.name_pattern)


def rules_of(plan: Plan) -> tuple[LabelRule, ...]:
    """The rules of a plan, in their order. Whoever labels nodes by a table does so at once."""
    way = plan.cluster.spec.node_labels
    found = [
        LabelRule(
            Stage.PARTITIONS.value if way is NodeLabels.EXTERNAL else f"{Stage.PARTITIONS}/{pool.name}",
            f"pool-{pool.name}",
            part.nodes,
            part.labels,
            part,
        )
        for pool in plan.pools
        for part in pool.parts
        if way is not NodeLabels.NODE or not part.nodes.name_pattern
    ]
    kept = (
        LabelRule(what.folder, f"kept-{item.name}", what.nodes, what.spec.labels, None)
        for item, what in plan.retained_nodes
    )
    return tuple(sorted((*found, *kept), key=lambda rule: rule.order))


class NodeClass(NamedTuple):
    """Nodes that the same rules are for, before and after.

    ``names`` are those that policies or a list of nodes say; where they only have a pattern, there is an ``example``.
    """

    names: tuple[str, ...]
    example: str
    before: tuple[LabelRule, ...]
    after: tuple[LabelRule, ...]

    @property
    def was(self) -> Pool | None:
        """The part of a pool that they were in."""
        return _part(self.before)

    @property
    def to(self) -> Pool | None:
        """The part of a pool that they are in afterwards."""
        return _part(self.after)

    @property
    def impact(self) -> NodeImpact:
        """The number of nodes. Without names the number is the most that both parts may have."""
        if self.names:
            return NodeImpact(len(self.names), self.names, None)
        parts = [part for part in (self.was, self.to) if part is not None]
        pattern = next((part.nodes.name_pattern for part in parts), None)
        return NodeImpact(min((part.nodes.count for part in parts), default=0), (), pattern)


def _part(rules: Iterable[LabelRule]) -> Pool | None:
    return next((rule.part for rule in reversed([*rules]) if rule.part is not None), None)


def classes(step: Step, is_meant: Callable[[LabelRule], bool] = lambda _: False) -> Iterator[NodeClass]:
    """The nodes that a rule is for which differs, or which is meant in any case.

    A pattern stands for one node in each way that a name of it may go. Nodes of which nothing is said but how many
    there are stay in their pool.
    """
    before, after = rules_of(step.before), rules_of(step.after)
    known, wanted = ({rule.key for rule in rules} for rules in (before, after))
    gone = [rule for rule in before if rule.key not in wanted]
    come = [rule for rule in after if rule.key not in known or is_meant(rule)]
    old, new = _Index.of(before), _Index.of(after)
    names = dict.fromkeys(name for rule in (*gone, *come) for name in (*rule.nodes.names, *rule.nodes.moved))
    examples = dict.fromkeys(name for name in _examples(gone, come, old, new) if name not in names)
    yield from _by_rules(old, new, names, are_examples=False)
    yield from _by_rules(old, new, examples, are_examples=True)
    nameless = {rule.order: rule for rule in gone if _is_nameless(rule)}
    yield from (
        NodeClass((), "", (nameless[rule.order],), (rule,))
        for rule in come
        if _is_nameless(rule) and rule.order in nameless
    )


def _is_nameless(rule: LabelRule) -> bool:
    return not rule.nodes.names and not rule.nodes.name_pattern


def _by_rules(old: _Index, new: _Index, names: Iterable[str], *, are_examples: bool) -> Iterator[NodeClass]:
    for (before, after), alike in grouped(((old.matching(name), new.matching(name)), name) for name in names).items():
        rules = tuple(old.rules[at] for at in before), tuple(new.rules[at] for at in after)
        if before or after:
            yield NodeClass(() if are_examples else tuple(sorted(alike)), min(alike), *rules)


def _examples(gone: Iterable[LabelRule], come: Iterable[LabelRule], old: _Index, new: _Index) -> Iterator[str]:
    """Yield names for each pattern that differs: one in common with each of the other side, and one in none."""
    for rules, others in ((gone, new), (come, old)):
        for rule in rules:
            pattern = rule.pattern
            if pattern is None or (rule.part is not None and not rule.nodes.count):
                continue
            near = [other for other in others.near(pattern) if other.part is None or other.nodes.count]
            found = [_common_name(rule, pattern, other) for other in near]
            alone = tuple(dict.fromkeys(known for other in near if (known := other.pattern) is not None))
            found.append(None if pattern in alone else find_other_name(pattern, alone))
            yield from filter(None, found)


def _common_name(rule: LabelRule, pattern: NodePattern, other: LabelRule) -> str | None:
    theirs = other.pattern
    if theirs is None:
        return None
    name = find_name(pattern) if pattern is theirs else find_common_name(pattern, theirs)
    moved = {*rule.nodes.moved, *other.nodes.moved}
    if name not in moved:
        return name
    exceptions = (find_pattern(known.replace(".", r"\.")) for known in sorted(moved))
    return find_other_name(pattern, tuple(filter(None, exceptions)))


# --- Finding rules -----------------------------------------------------------------------------------------------


class _Index(Value):
    """Rules by the names that they have, and by what the names begin with that their patterns match."""

    rules: tuple[LabelRule, ...]
    by_name: Mapping[str, list[int]]
    by_prefix: Mapping[str, list[int]]
    prefixes: tuple[str, ...]
    lengths: tuple[int, ...]

    @classmethod
    def of(cls, rules: tuple[LabelRule, ...]) -> _Index:
        by_name: defaultdict[str, list[int]] = defaultdict(list)
        by_prefix: defaultdict[str, list[int]] = defaultdict(list)
        for at, rule in enumerate(rules):
            for name in rule.nodes.names:
                by_name[name].append(at)
            if (pattern := rule.pattern) is not None:
                by_prefix[pattern.prefix].append(at)
        return cls(rules, by_name, by_prefix, tuple(sorted(by_prefix)), tuple(sorted({*map(len, by_prefix)})))

    def matching(self, name: str) -> tuple[int, ...]:
        """The rules that are for a node, in their order."""
        begun = (self.by_prefix.get(name[:length], ()) for length in self.lengths if length <= len(name))
        by_pattern = (at for at in chain.from_iterable(begun) if has_node(self.rules[at].nodes, name))
        return tuple(sorted({*self.by_name.get(name, ()), *by_pattern}))

    def near(self, pattern: NodePattern) -> Iterator[LabelRule]:
        """The rules whose patterns may have a name in common with this one."""
        prefix = pattern.prefix
        shorter = (self.by_prefix.get(prefix[:length], ()) for length in self.lengths if length < len(prefix))
        yield from (self.rules[at] for at in chain.from_iterable(shorter))
        for known in self.prefixes[bisect_left(self.prefixes, prefix) :]:
            if not known.startswith(prefix):
                return
            yield from (self.rules[at] for at in self.by_prefix[known])
