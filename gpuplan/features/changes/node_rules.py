"""The classes of changes of nodes' labels and taints, by the rules that set them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass, worst
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import Body, items, mappings, section, without
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.node_patterns import NodePattern, find_common_name, find_other_name, find_pattern
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL
from gpuplan.compiler.planning.pools import ALL_DISABLED

Counts = Mapping[str, int]
"""The number of a rule's nodes, by the rule's name, as far as it is known."""

Names = Mapping[str, frozenset[str]]
"""The nodes that a pattern matches, by its text, where anybody knows them."""

_UNKNOWN: Final[Counts] = {}
_UNNAMED: Final[Names] = {}


class Rule(NamedTuple):
    """A rule for nodes that have one of these ``names``, or whose name matches the ``pattern`` and is no exception.

    One with neither chooses nodes in a way that is not known here. ``size`` is how many nodes there are, and
    ``division`` what the entry says that the labels name, if known.
    """

    names: frozenset[str]
    pattern: str
    exceptions: frozenset[str]
    size: int | None
    labels: Body
    taints: tuple[object, ...]
    chosen: object
    """The terms that choose nodes, as they are written."""
    boards: frozenset[str] = frozenset()
    """The PCI ids of which the nodes have one; none where any board of NVIDIA's will do."""
    division: object = None

    @property
    def key(self) -> object:
        """The nodes that are chosen; None where that is not known."""
        if self.names or self.pattern:
            return self.names, self.pattern, self.exceptions
        return (self.boards, self.exceptions) if self.boards else None

    @property
    def are_by_board(self) -> bool:
        return bool(self.boards) and not self.names and not self.pattern

    def is_for_nodes_of(self, other: Rule) -> bool:
        """Whether both are known to choose the very same nodes."""
        return self.key is not None and self.key == other.key

    @property
    def parsed(self) -> NodePattern | None:
        """None of what may match anything."""
        return find_pattern(self.pattern)

    def has(self, name: str) -> bool:
        if self.names:
            return name in self.names
        pattern = self.parsed
        return name not in self.exceptions and (pattern is None or pattern.matches(name))


def rules_of(body: Body | None, counts: Counts = _UNKNOWN, names: Names = _UNNAMED) -> tuple[Rule, ...]:
    """The rules of a NodeFeatureRule, with the nodes by name, as the back end writes it."""
    found = mappings(section(body, "spec").get("rules"))
    return tuple(_named(_rule(rule, counts.get(str(rule.get("name")))), names) for rule in found)


def _named(rule: Rule, known: Names) -> Rule:
    """The rule for the nodes that its pattern matches, where these are known."""
    names = known.get(rule.pattern, frozenset()) - rule.exceptions
    if not names:
        return rule._replace(size=0) if rule.pattern in known else rule
    return rule._replace(names=names, pattern="", exceptions=frozenset(), size=len(names))


def _rule(rule: Body, count: int | None) -> Rule:
    chosen: dict[str, list[str]] = {}
    for feature in mappings(rule.get("matchFeatures")):
        if feature.get("feature") == "system.name":
            found = section(feature, "matchExpressions", "nodename")
            chosen.setdefault(str(found.get("op")), []).extend(map(str, items(found.get("value"))))
    patterns = chosen.get("InRegexp", [])
    return Rule(
        frozenset(chosen.get("In", ())),
        # Without what ties it to both ends of a name.
        patterns[0].removeprefix("^(?:").removesuffix(")$") if len(patterns) == 1 else "",
        frozenset(chosen.get("NotIn", ())),
        count,
        section(rule, "labels"),
        tuple(items(rule.get("taints"))),
        (rule.get("matchFeatures"), rule.get("matchAny")),
        frozenset(_boards(rule)),
    )


def _boards(rule: Body) -> Iterator[str]:
    """Ids of devices, with those of the subsystem where a rule says them."""
    terms = [term for any_of in mappings(rule.get("matchAny")) for term in mappings(any_of.get("matchFeatures"))]
    for feature in (*mappings(rule.get("matchFeatures")), *terms):
        values = (items(section(feature, "matchExpressions", name).get("value")) for name in _OF_BOARDS)
        ids, *subsystem = ([str(value) for value in found] for found in values)
        yield from (":".join((device, *(part for found in subsystem for part in found))) for device in ids)


_OF_BOARDS: Final = ("device", "subsystem_vendor", "subsystem_device")


def rule_of_group(row: Body, known: Names = _UNNAMED) -> Rule:
    """A row of the table of node groups, as the rule that it stands for."""
    names, exceptions = (frozenset(map(str, items(row.get(key)))) for key in ("names", "exceptNames"))
    count = row.get("nodes")
    fields = "names", "namePattern", "selector", "exceptNames", "gpu", "nodes", "gpusPerNode"
    rule = Rule(
        names,
        "" if names else str(row.get("namePattern") or ""),
        exceptions,
        count if isinstance(count, int) else None,
        section(row, "labels"),
        tuple(items(row.get("taints"))),
        {key: row.get(key) for key in fields},
    )
    return _named(rule, known)


# --- Classes -----------------------------------------------------------------------------------------------------


def class_of_rules(
    before: Sequence[Rule],
    after: Sequence[Rule],
    all_before: Sequence[Rule] | None = None,
    all_after: Sequence[Rule] | None = None,
) -> ChangeClass:
    """Return the class of a change of rules, node by node.

    Nodes that one rule leaves to another get what that one says. ``all_before`` and ``all_after`` are the rules of all
    objects, where more than these are known, in their order: of two for a node, the later one holds.
    """
    everywhere = before if all_before is None else all_before, after if all_after is None else all_after
    return worst((ChangeClass.METADATA, *_classes(before, after, *everywhere)))


def class_of_kept_rules(gone: Sequence[Rule], after: Sequence[Rule]) -> ChangeClass:
    """Return the class of retained rules that go. Nodes lose the labels that no other rule gives them."""
    lost = (ChangeClass.ADMISSION if _are_covered(rule, after) else class_of_departure(rule.labels) for rule in gone)
    return worst((ChangeClass.METADATA, *lost))


def _classes(
    before: Sequence[Rule], after: Sequence[Rule], all_before: Sequence[Rule], all_after: Sequence[Rule]
) -> Iterator[ChangeClass]:
    if [rule.chosen for rule in before] != [rule.chosen for rule in after]:
        yield ChangeClass.QUOTA
    gone, come = _but(before, all_after), _but(after, all_before)
    all_gone, all_come = _but(all_before, all_after), _but(all_after, all_before)
    pairs = {(id(old), id(new)): (old, new) for old in gone for new in _meeting(old, all_come)}
    pairs |= {(id(old), id(new)): (old, new) for new in come for old in _meeting(new, all_gone)}
    for old, new in pairs.values():
        is_alike = old.division is not None and old.division == new.division
        yield class_of_labels(old.labels, new.labels, is_divided_alike=is_alike)
        yield class_of_boards(old.boards, new.boards, old.labels, new.labels)
        yield class_of_taints(old.taints, new.taints)
    yield from (class_of_departure(old.labels) for old in gone if not _are_covered(old, all_come))
    arriving = [new for new in come if not _are_covered(new, all_gone)]
    for new in arriving:  # a rule for nodes that had none already changes the pods that may come
        of_taints = class_of_taints((), new.taints)
        of_taints = ChangeClass.ADMISSION if of_taints is ChangeClass.TAINT else of_taints
        yield worst((class_of_arrival(new.labels), of_taints))


def _but(rules: Sequence[Rule], others: Sequence[Rule]) -> list[Rule]:
    """The rules that say something else to their nodes, or to other nodes, than the others."""
    known = {rule.key: (rule.labels, rule.taints, rule.boards) for rule in others if rule.key is not None}
    return [rule for rule in rules if known.get(rule.key) != (rule.labels, rule.taints, rule.boards)]


def class_of_labels(old: Body, new: Body, *, is_divided_alike: bool = False) -> ChangeClass:
    """Return the class for nodes whose labels change. Partitions are dissolved without `nvidia.com/mig.config`.

    Where the entries of both say the same, mig-parted finds it applied and leaves the GPUs alone. What obeys that
    label, and the one of the device plugin's configuration, is the GPU Operator; pods choose nodes by the others.
    """
    one, other = old.get(MIG_CONFIG_LABEL), new.get(MIG_CONFIG_LABEL)
    if one != other and other is None and one != ALL_DISABLED:
        return ChangeClass.DESTRUCTIVE
    if one != other and any(value not in (None, ALL_DISABLED) for value in (one, other)):
        hashes = [match[1] for name in (one, other) if (match := _HASH.fullmatch(str(name)))]
        is_alike = is_divided_alike or (len(hashes) == 2 and hashes[0] == hashes[1])
        return ChangeClass.PLUGIN_RESTART if is_alike else ChangeClass.REPARTITION
    known, next_known = (without(labels, *_OF_THE_OPERATOR) for labels in (old, new))
    if any(next_known.get(key) != value for key, value in known.items()):
        return ChangeClass.ADMISSION
    if old.get(DEVICE_PLUGIN_CONFIG_LABEL) != new.get(DEVICE_PLUGIN_CONFIG_LABEL):
        return ChangeClass.PLUGIN_RESTART
    return ChangeClass.NONE if old == new else ChangeClass.METADATA


def class_of_boards(old: frozenset[str], new: frozenset[str], labels: Body, next_labels: Body) -> ChangeClass:
    """Return the class for nodes that are chosen by their boards: some may leave, and others may come."""
    leave = bool(new) and not (old and old <= new)
    come = bool(old) and not (new and new <= old)
    return worst(
        (
            class_of_departure(labels) if leave else ChangeClass.NONE,
            class_of_arrival(next_labels) if come else ChangeClass.NONE,
        )
    )


_HASH: Final = regex(r".+-([0-9a-f]{8})")
"""The name of an entry, which ends in a hash of its content."""

_OF_THE_OPERATOR: Final = (MIG_CONFIG_LABEL, DEVICE_PLUGIN_CONFIG_LABEL)


def class_of_taints(old: Sequence[object], new: Sequence[object]) -> ChangeClass:
    if old == new:
        return ChangeClass.NONE
    come = [taint for taint in new if taint not in old]
    evicts = any(isinstance(taint, Mapping) and taint.get("effect") == "NoExecute" for taint in come)
    if evicts:
        return ChangeClass.DESTRUCTIVE
    return ChangeClass.TAINT if _keep_off(new) and not _keep_off(old) else ChangeClass.ADMISSION


def _keep_off(taints: Sequence[object]) -> bool:
    return any(isinstance(taint, Mapping) and taint.get("effect") != "PreferNoSchedule" for taint in taints)


def class_of_arrival(labels: Body) -> ChangeClass:
    """Return the class for nodes that had no pool: at least their device plugin restarts."""
    return ChangeClass.REPARTITION if _partitions(labels) else ChangeClass.PLUGIN_RESTART


def class_of_departure(labels: Body) -> ChangeClass:
    """Return the class for nodes that leave for no pool."""
    return ChangeClass.DESTRUCTIVE if _partitions(labels) else ChangeClass.ADMISSION


def _partitions(labels: Body) -> bool:
    return labels.get(MIG_CONFIG_LABEL) not in (None, ALL_DISABLED)


# --- Nodes -------------------------------------------------------------------------------------------------------


def _meeting(rule: Rule, others: Sequence[Rule]) -> list[Rule]:
    """The others that have nodes of a rule. One for the very same nodes is the only one, since a node is in one."""
    same = [other for other in others if other.is_for_nodes_of(rule)]
    return [other for other in same or others if _share_nodes(rule, other)]


def _share_nodes(old: Rule, new: Rule) -> bool:
    """Whether nodes may be in both; in one that is known to have none, there are none."""
    if old.size == 0 or new.size == 0:
        return False
    if (old.are_by_board or new.are_by_board) and _are_other_boards(old.boards, new.boards):
        return False
    if old.names or new.names:
        return any(old.has(name) and new.has(name) for name in old.names | new.names)
    one, other = old.parsed, new.parsed
    return one is None or other is None or find_common_name(one, other) is not None


def _have_its_boards(rule: Rule, others: Sequence[Rule]) -> bool:
    """Whether nodes that are chosen by their boards are in another rule so, or all that are counted by their names."""
    takers = [other for other in others if not other.boards or rule.boards <= other.boards]
    if any(other.are_by_board and _has_but(other, rule, takers) for other in takers):
        return True
    return rule.size is not None and sum(other.size or 0 for other in takers if other.key) >= rule.size


def _has_but(other: Rule, rule: Rule, takers: Sequence[Rule]) -> bool:
    """Whether what it leaves out is in one of the others."""
    return all(any(taker.has(name) for taker in takers) for name in other.exceptions - rule.exceptions)


def _are_other_boards(old: frozenset[str], new: frozenset[str]) -> bool:
    """Whether no board has an id of both; only ids of devices are compared, without their subsystems."""
    one, other = ({board.partition(":")[0] for board in boards} for boards in (old, new))
    return bool(one and other) and one.isdisjoint(other)


def _are_covered(rule: Rule, others: Sequence[Rule]) -> bool:
    """Whether all nodes of a rule are in one of the others."""
    if rule.size == 0 or any(other.is_for_nodes_of(rule) for other in others):
        return True
    if rule.names:
        return all(any(other.has(name) for other in others) for name in rule.names)
    if rule.are_by_board and _have_its_boards(rule, others):
        return True
    pattern = rule.parsed
    if pattern is None:
        return any(other.chosen == rule.chosen for other in others)
    named = {name for other in others for name in other.names if rule.has(name)}
    if rule.size is not None and len(named) >= rule.size:
        return True
    patterns = tuple(found for other in others if (found := other.parsed) is not None)
    left_out = {name for other in others for name in other.exceptions if rule.has(name)}
    return find_other_name(pattern, patterns) is None and all(
        any(other.has(name) for other in others) for name in left_out
    )
