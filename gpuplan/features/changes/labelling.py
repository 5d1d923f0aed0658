"""The rules that label nodes, and the nodes that a step labels otherwise: those that are alike together."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.planning.node_patterns import (
    NodePattern,
    find_common_name,
    find_name,
    find_other_name,
    find_pattern,
    has_node,
    parse,
)
from gpuplan.compiler.planning.plan import Nodes, Plan, Pool, Stage
from gpuplan.compiler.policy.models import NodeLabels
from gpuplan.features.changes.model import NodeImpact
from gpuplan.features.changes.step import Step


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
    found: defaultdict[tuple[tuple[int, ...], tuple[int, ...]], list[str]] = defaultdict(list)
    for name in names:
        found[old.matching(name), new.matching(name)].append(name)
    for (before, after), alike in found.items():
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
            found = [_common(rule, pattern, other) for other in near]
            alone = tuple(dict.fromkeys(known for other in near if (known := other.pattern) is not None))
            found.append(None if pattern in alone else find_other_name(pattern, alone))
            yield from filter(None, found)


def _common(rule: LabelRule, pattern: NodePattern, other: LabelRule) -> str | None:
    theirs = other.pattern
    if theirs is None:
        return None
    name = find_name(pattern) if pattern is theirs else find_common_name(pattern, theirs)
    moved = {*rule.nodes.moved, *other.nodes.moved}
    if name not in moved:
        return name
    exceptions = (parse(known.replace(".", r"\.")) for known in sorted(moved))
    return find_other_name(pattern, tuple(found for found in exceptions if isinstance(found, NodePattern)))


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
