"""Pair what is written on two sides: what differs, and how far that disturbs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from gpuplan.backends.gpu_operator import mig_parted
from gpuplan.changes.bodies import Body, items, section
from gpuplan.changes.kinds import class_of, class_of_settings, class_of_stage, runs_mps
from gpuplan.changes.model import ChangeClass, ObjectChange
from gpuplan.changes.node_rules import Counts, Rule, class_of_rules, rule_of_group, rules_of
from gpuplan.documents import read_text
from gpuplan.manifests import Identity, Subject
from gpuplan.patterns import regex
from gpuplan.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, Stage
from gpuplan.values import NamedTuple

Key = tuple[str, Identity]
"""The folder and the object."""

Objects = Mapping[Key, Body]
"""The objects of a cluster by the folder that applies them.

What syncs the cluster is in the folder `argocd` or `flux`. A file that holds no object stands for itself: an identity
of the kind `FILE` with its name, and a body with its text under `data`.
"""

About = Mapping[Key, Sequence[Subject]]
"""The documents of the policy that each object is about."""

FILE: Final = "File"


def compare_objects(before: Mapping[str, Objects], after: Mapping[str, Objects]) -> tuple[ObjectChange, ...]:
    """The objects of each cluster that differ, by cluster, worst first: where there are no plans to tell of them."""
    found = (
        item
        for cluster in sorted({*before, *after})
        for item in differing(cluster, before.get(cluster, {}), after.get(cluster, {}))
    )
    return tuple(sorted(found, key=order_of))


def differing(
    cluster: str,
    before: Objects,
    after: Objects,
    counts: tuple[Counts, Counts] = ({}, {}),
    about: tuple[About, About] = ({}, {}),
) -> Iterator[ObjectChange]:
    """Every object that differs; one whose name changed with its content is one that changed.

    ``counts`` are the nodes of each rule before and after, and ``about`` the documents that each object is about, as
    far as they are known.
    """
    old, new = _but_same(before, after), _but_same(after, before)
    new_folders = {folder for folder, _ in new} - {folder for folder, _ in before}
    if old or new:
        yield from _differing(cluster, old, new, counts, about, new_folders)


def _but_same(objects: Objects, others: Objects) -> Objects:
    return {key: body for key, body in objects.items() if others.get(key) != body}


def _differing(
    cluster: str,
    before: Objects,
    after: Objects,
    counts: tuple[Counts, Counts],
    about: tuple[About, About],
    new_folders: AbstractSet[str],
) -> Iterator[ObjectChange]:
    rules = _NodeRules.of(before, after, counts)
    gone = {folder for folder, identity in before if (folder, identity) not in after}
    named = {label for key, body in before.items() for label in _labels_of_nodes(key, body, counts[0])}
    parents = {_parent(body) for body in before.values()} - {_parent(body) for body in after.values()}
    for pair in _pairs(before, after):
        found = _class_of(pair, rules)
        if _vanishing(pair) & named:
            found = ChangeClass.TWO_STEP
        if pair.after is None and pair.identity.kind == "Queue" and pair.identity.name in parents:
            # Only what is part of it held it, and is part of another one now.
            found = ChangeClass.PREEMPTION_ORDER
        if pair.before is None and pair.folder in new_folders and pair.folder.startswith(_NAMESPACES):
            # What is there holds nobody back that was there before.
            found = min(found, ChangeClass.QUOTA, key=lambda item: item.rank)
        if pair.after is None and pair.before is not None and _leads_to(pair.before) & gone:
            # What it applied is gone as well, and says what that means.
            found = ChangeClass.METADATA
        if found is not ChangeClass.NONE:
            verb = "added" if pair.before is None else "removed" if pair.after is None else "changed"
            yield ObjectChange(
                cluster, found, pair.folder, pair.identity, verb, pair.subjects(about), pair.was[0] if pair.was else ""
            )


def _labels_of_nodes(key: Key, body: Body, counts: Counts) -> Iterator[tuple[str, str]]:
    """The configurations that nodes name: of mig-manager, and of the device plugin. A rule for no node names none."""
    folder, identity = key
    if identity.kind == FILE and folder == Stage.PARTITIONS:
        found = [rule.labels for rule in map(rule_of_group, _rows(_content(body)))]
    elif identity.kind == "Node":
        found = [section(section(body, "metadata"), "labels")]
    else:
        rules = rules_of(body, counts) if identity.kind == _RULE else ()
        found = [rule.labels for rule in rules if rule.size != 0]
    for labels in found:
        yield from ((label, str(labels[label])) for label in _CONFIGS.values() if label in labels)


_CONFIGS: Final = {
    "gpuplan-mig-parted-": MIG_CONFIG_LABEL,
    "gpuplan-device-plugin-": DEVICE_PLUGIN_CONFIG_LABEL,
}
"""The label of nodes that names an entry, by how the name of the ConfigMap with all entries begins."""


def _vanishing(pair: _Pair) -> set[tuple[str, str]]:
    """The entries that a ConfigMap of mig-manager or the device plugin had and has no more."""
    for prefix, label in _CONFIGS.items():
        if pair.identity.kind == "ConfigMap" and pair.identity.name.startswith(prefix) and pair.before and pair.after:
            old, new = (_entries(body.get("data", {})) for body in (pair.before, pair.after))
            return {(label, name) for name in old - new}
    return set()


def _entries(data: Mapping[str, Any]) -> set[str]:
    """The names of mig-manager's entries, which are in one file, or of the device plugin's files."""
    if mig_parted.FILE_NAME not in data:
        return set(data)
    content = _content({"data": data[mig_parted.FILE_NAME]})
    found = content.get("mig-configs") if isinstance(content, Mapping) else None
    return set(found) if isinstance(found, Mapping) else set()


_NAMESPACES: Final = f"{Stage.NAMESPACES}/"


def _leads_to(body: Body) -> set[str]:
    """The folders, in the cluster's, that an object of Argo CD or Flux may apply: one for each end of its path."""
    spec = body.get("spec")
    source = spec.get("source") if isinstance(spec, Mapping) else None
    paths = [found.get("path") for found in (spec, source) if isinstance(found, Mapping)]
    parts = [path.split("/") for path in paths if isinstance(path, str)]
    return {"/".join(part[start:]) for part in parts for start in range(len(part))}


class _Pair(NamedTuple):
    """``was`` is the key of the earlier object, where there is one."""

    folder: str
    identity: Identity
    before: Body | None
    after: Body | None
    was: Key | None

    def subjects(self, about: tuple[About, About]) -> frozenset[Subject]:
        """The documents that it is about, or was."""
        old = about[0].get(self.was, ()) if self.was else ()
        return frozenset((*old, *about[1].get((self.folder, self.identity), ())))


def _pairs(before: Objects, after: Objects) -> Iterator[_Pair]:
    gone = {key: body for key, body in before.items() if key not in after}
    come = {key: body for key, body in after.items() if key not in before}
    known: dict[object, Key] = {}
    for key, body in gone.items():
        known.setdefault(_kept(key, body), key)
    for key, body in come.items():
        old = known.pop(_kept(key, body), None)
        yield _Pair(*key, gone.pop(old) if old is not None else None, body, old)
    yield from (_Pair(*key, body, None, key) for key, body in gone.items())
    yield from (_Pair(*key, body, after[key], key) for key, body in before.items() if key in after)


_HASHED: Final = regex(r"-[0-9a-f]{8}$")


def _parent(body: Body) -> str | None:
    """The queue of KAI-Scheduler that one is part of."""
    spec = body.get("spec")
    found = spec.get("parentQueue") if isinstance(spec, Mapping) else None
    return found if isinstance(found, str) else None


def _kept(key: Key, body: Body) -> object:
    """What an object keeps when it changes its name, equal for what it was and what it is."""
    folder, identity = key
    match identity.group, identity.kind:
        case "nvidia.com", "ClusterPolicy":  # there is one
            return folder, identity.kind
        case "", "Node":  # in whichever pool
            return identity
        case _, kind if kind == _RULE:  # that of the same nodes
            return identity.kind, str([rule.chosen for rule in rules_of(body)])
        case _:
            return folder, identity._replace(name=_HASHED.sub("-", identity.name))


# --- Classes -----------------------------------------------------------------------------------------------------


def _class_of(pair: _Pair, rules: _NodeRules) -> ChangeClass:
    if pair.identity.kind == FILE and not pair.identity.group:
        return _class_of_file(pair)
    if pair.identity.kind == _RULE and pair.before != pair.after and pair.after is not None:
        return rules.class_of(pair)
    if pair.before is not None and pair.after is not None and _names_differ(pair.before, pair.after):
        return _class_of_renamed(pair)
    return class_of(pair.folder, pair.identity, pair.before, pair.after)


def _class_of_renamed(pair: _Pair) -> ChangeClass:
    """One that changes its name with its content is another object."""
    match pair.identity.kind:
        case "ClusterPolicy":
            return ChangeClass.RECREATE
        case _:
            if runs_mps(pair.before or {}) or runs_mps(pair.after or {}):
                return ChangeClass.REPARTITION
            is_watched = class_of(pair.folder, pair.identity, None, pair.after) is ChangeClass.METADATA
            return ChangeClass.METADATA if is_watched else class_of_stage(pair.folder)


def _names_differ(before: Body, after: Body) -> bool:
    return bool(before.get("metadata", {}).get("name") != after.get("metadata", {}).get("name"))


def _class_of_file(pair: _Pair) -> ChangeClass:
    """Nobody applies a file, but people and Helm read it."""
    old, new = (_content(body) for body in (pair.before, pair.after))
    if old == new:
        return ChangeClass.NONE
    name, stage = pair.identity.name, pair.folder.partition("/")[0]
    if not name.endswith((".yaml", ".yml", ".json")):
        return ChangeClass.METADATA
    if stage == Stage.GPU_OPERATOR and isinstance(old, Mapping) and isinstance(new, Mapping):
        return class_of_settings(old, new)
    if stage == Stage.PARTITIONS:
        return _class_of_table(old, new)
    if pair.folder.startswith(_RUNAI):
        return _class_of_request(old, new)
    return class_of_stage(pair.folder)


def _content(body: Body | None) -> object:
    """What a file says: its text, or the data that it spells."""
    if body is None:
        return None
    text = str(body.get("data", ""))
    documents, _ = read_text("file.yaml", text, strict=False)
    return documents[0].data if len(documents) == 1 and isinstance(documents[0].data, dict) else text


_RULE: Final = "NodeFeatureRule"


class _NodeRules(NamedTuple):
    """The rules of a cluster that label its nodes, of all objects that differ, and how many nodes each is for."""

    before: tuple[Rule, ...]
    after: tuple[Rule, ...]
    counts: tuple[Counts, Counts]

    @classmethod
    def of(cls, before: Objects, after: Objects, counts: tuple[Counts, Counts]) -> _NodeRules:
        return cls(_node_rules(before, counts[0]), _node_rules(after, counts[1]), counts)

    def class_of(self, pair: _Pair) -> ChangeClass:
        """What an object does to nodes, which may go from one object to another."""
        old, new = (
            rules_of(body or {}, known) for body, known in zip((pair.before, pair.after), self.counts, strict=True)
        )
        return class_of_rules(old, new, self.before, self.after)


def _node_rules(objects: Objects, counts: Counts) -> tuple[Rule, ...]:
    found = (rules_of(body, counts) for (_, identity), body in objects.items() if identity.kind == _RULE)
    return tuple(rule for rules in found for rule in rules)


_GROUPS: Final = "nodeGroups"


def _class_of_table(old: object, new: object) -> ChangeClass:
    """The rows of the table of node groups, as the rules that they stand for."""
    before, after = (tuple(map(rule_of_group, _rows(table))) for table in (old, new))
    return class_of_rules(before, after)


def _rows(table: object) -> list[Body]:
    groups = items(table.get(_GROUPS)) if isinstance(table, Mapping) else []
    return [row for row in groups if isinstance(row, Mapping)]


_RUNAI: Final = f"{Stage.SCHEDULING}/runai/"


def _class_of_request(old: object, new: object) -> ChangeClass:
    """Of a request to Run:ai: numbers of each node pool, apart from what decides who gets the surplus."""
    if old is None:
        return ChangeClass.QUOTA
    if not isinstance(old, Mapping) or not isinstance(new, Mapping) or not ("resources" in old and "resources" in new):
        return ChangeClass.ADMISSION
    before, after = _orders(old), _orders(new)
    is_same = all(after[pool] == order for pool, order in before.items() if pool in after)
    return ChangeClass.QUOTA if is_same else ChangeClass.PREEMPTION_ORDER


def _orders(request: Mapping[str, Any]) -> dict[str, object]:
    """The weight and the rank in the surplus, by node pool."""
    return {
        str(item.get("nodePool")): (item.get("gpu", {}).get("overQuotaWeight"), item.get("rank"))
        for item in request["resources"]
        if isinstance(item, Mapping)
    }


def order_of(item: ObjectChange) -> tuple[str, int, str, Identity]:
    return item.cluster, -item.change_class.rank, item.folder, item.identity
