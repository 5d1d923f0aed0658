"""Pair what is written on two sides: what differs, and how far that disturbs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from operator import itemgetter
from typing import Final

from gpuplan.compiler.backends import runai
from gpuplan.compiler.backends.gpu_operator import device_plugin, mig_parted
from gpuplan.compiler.backends.gpu_operator.settings import OWNERS_VALUES_FILE
from gpuplan.compiler.backends.partitions import is_kept
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import Body, mappings, section, value_of, without
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.catalog.operands import HELM, Setup
from gpuplan.compiler.documents import read_text
from gpuplan.compiler.manifests import Identity, Subject
from gpuplan.compiler.manifests.provenance import Trace
from gpuplan.compiler.planning.appliers import OWNERS_PATCH_FILE
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, Stage
from gpuplan.compiler.planning.sync_names import FLUX_SSA, SYNC_OPTIONS
from gpuplan.features.changes import kinds
from gpuplan.features.changes.model import ObjectChange

Key = tuple[str, Identity]
"""The folder and the object."""

Objects = Mapping[Key, Body]
"""The objects of a cluster by the folder that applies them.

What syncs the cluster is in the folder `argocd` or `flux`. A file that holds no object stands for itself: an identity
of the kind `FILE` with its name, and a body with its text under `data`.
"""

FILE: Final = "File"


class Written(Value, eq=False):
    """The objects and files of a cluster on one side.

    As far as it is known: the documents of the policy that each object is ``about``, the nodes of each rule by number
    and by name, and the trace of each object. Of a side that holds what differs, ``whole`` is all there is.
    """

    objects: Objects
    about: Mapping[Key, Sequence[Subject]] = field(default_factory=dict)
    counts: kinds.Counts = field(default_factory=dict)
    traces: Mapping[Key, Trace] = field(default_factory=dict)
    names: kinds.Names = field(default_factory=dict)
    whole: Written | None = None

    def rules(self, body: Body | None) -> tuple[kinds.Rule, ...]:
        return self.with_divisions(kinds.rules_of(body, self.counts, self.names))

    def with_divisions(self, rules: Iterable[kinds.Rule]) -> tuple[kinds.Rule, ...]:
        return tuple(rule._replace(division=self.division(rule.labels)) for rule in rules)

    def division(self, labels: Body) -> object:
        """Return the content of the entry that a node's labels name, or None without an entry or a known file."""
        name = labels.get(MIG_CONFIG_LABEL)
        return None if name is None else (self.whole or self)._divisions.get(str(name))

    @cached_property
    def _divisions(self) -> Body:
        """The entries of mig-manager's file, by name."""
        found: dict[str, object] = {}
        for (_, identity), body in self.objects.items():
            text = section(body, "data").get(mig_parted.FILE_NAME) if identity.name.startswith(_MIG_PARTED) else None
            content = _content({"data": text}) if text else None
            found |= section(content, "mig-configs") if isinstance(content, Mapping) else {}
        return found

    @cached_property
    def all_rules(self) -> list[kinds.Rule]:
        """In the order in which Node Feature Discovery goes through them: of two that match, the later one holds."""
        bodies = [(identity.name, body) for (_, identity), body in self.objects.items() if identity.kind == _RULE]
        return [rule for _, body in sorted(bodies, key=itemgetter(0)) for rule in self.rules(body)]

    @cached_property
    def has_mps(self) -> bool:
        """Whether GPUs are shared by MPS, as the device plugin's files have it."""
        maps = (kinds.Pair(*key, body, None) for key, body in self.objects.items() if key[1].kind == "ConfigMap")
        return any(map(kinds.runs_mps, maps))

    @property
    def has_nodes(self) -> bool:
        """Whether nodes are labelled by parts of Node objects."""
        return any(identity.kind == "Node" for _, identity in self.objects)


def compare_objects(before: Mapping[str, Objects], after: Mapping[str, Objects]) -> tuple[ObjectChange, ...]:
    """The objects of each cluster that differ, by cluster, worst first: where there are no plans to tell of them."""
    sides = ((cluster, before.get(cluster, {}), after.get(cluster, {})) for cluster in {*before, *after})
    return in_order(item for cluster, old, new in sides for item in differing(cluster, Written(old), Written(new)))


def in_order(changes: Iterable[ObjectChange]) -> tuple[ObjectChange, ...]:
    return tuple(
        sorted(changes, key=lambda change: (change.cluster, -change.change_class.rank, change.folder, change.identity))
    )


Labels = frozenset[tuple[str, str]]
"""Labels of nodes that name an entry or a file of the operator, each with the name."""


def differing(
    cluster: str, all_before: Written, all_after: Written, labels: Labels | None = None
) -> Iterator[ObjectChange]:
    """Every object that differs; one whose name changed with its content is one that changed.

    ``labels`` are all that nodes have, None where that is what the earlier rules say.
    """
    old, new = _but_same(all_before.objects, all_after.objects), _but_same(all_after.objects, all_before.objects)
    before, after = replace(all_before, objects=old, whole=all_before), replace(all_after, objects=new, whole=all_after)
    named = labels
    if named is None:
        named = frozenset(label for key, body in old.items() for label in _labels_of_nodes(key, body, all_before))
    new_folders = {folder for folder, _ in after.objects} - {folder for folder, _ in all_before.objects}
    gone = {key[0] for key in before.objects if key not in after.objects}
    parents = {_parent(body) for body in before.objects.values()} - {_parent(body) for body in after.objects.values()}
    has_nodes = all_before.has_nodes and all_after.has_nodes
    for was, pair in _pairs(before.objects, after.objects):
        found = _class_of(pair, before, after, has_nodes=has_nodes, has_mps=all_before.has_mps)
        if pair.identity.kind == _RULE and pair.after is None:
            rules = all_before.rules(pair.before)
            if is_kept(pair.identity.name) or not rules:
                found = kinds.class_of_kept_rules(rules, all_after.all_rules)
        # Argo CD and Flux are told to delete no part of a ClusterPolicy.
        annotations = section(pair.before, "metadata", "annotations") if pair.after is None else {}
        is_part = "Validate=false" in str(annotations.get(SYNC_OPTIONS, "")).split(",")
        is_left = pair.identity.kind == _POLICY and (is_part or annotations.get(FLUX_SSA) == "merge")
        is_table = pair.identity.kind == FILE and pair.folder == Stage.PARTITIONS
        side = all_before if pair.after is None else all_after
        if (is_table and None in (pair.before, pair.after) and side.has_nodes) or is_left:
            found = ChangeClass.METADATA
        if _vanishing(pair) & named:
            found = ChangeClass.TWO_STEP
        if pair.after is None and pair.identity.kind == "Queue" and pair.identity.name in parents:
            # Only what is part of it held it, and is part of another one now.
            found = ChangeClass.PREEMPTION_ORDER
        if pair.before is None and pair.folder in new_folders and pair.folder.startswith(f"{Stage.NAMESPACES}/"):
            # What is there holds nobody back that was there before.
            found = min(found, ChangeClass.QUOTA, key=lambda one: one.rank)
        if pair.after is None and pair.before is not None and _leads_to(pair.before) & gone:
            # What it applied is gone as well, and says what that means.
            found = ChangeClass.METADATA
        if found is not ChangeClass.NONE:
            verb = "added" if pair.before is None else "removed" if pair.after is None else "changed"
            was_about = before.about.get(was, ()) if was else ()
            about = frozenset((*was_about, *after.about.get((pair.folder, pair.identity), ())))
            was_in = was[0] if was else ""
            item = ObjectChange(cluster, found, pair.folder, pair.identity, verb, about, was_in)
            yield item._replace(is_of_number=found is ChangeClass.RECREATE and kinds.is_of_number(pair))


def _but_same(objects: Objects, others: Objects) -> Objects:
    return {key: body for key, body in objects.items() if others.get(key) != body}


# --- Configurations that nodes name ------------------------------------------------------------------------------

_MIG_PARTED: Final = "gpuplan-mig-parted-"
_CONFIGS: Final = {_MIG_PARTED: MIG_CONFIG_LABEL, device_plugin.CONFIG_MAP: DEVICE_PLUGIN_CONFIG_LABEL}
"""The label of nodes that names an entry, by how the name of the ConfigMap with all entries begins."""


def _labels_of_nodes(key: Key, body: Body, side: Written) -> Iterator[tuple[str, str]]:
    """The configurations that nodes name: of mig-manager, and of the device plugin. A rule for no node names none."""
    folder, identity = key
    if identity.kind == FILE and folder == Stage.PARTITIONS:
        found = [rule.labels for rule in _rules_of_table(_content(body), side.names)]
    elif identity.kind == "Node":
        found = [section(body, "metadata", "labels")]
    else:
        rules = side.rules(body) if identity.kind == _RULE else ()
        found = [rule.labels for rule in rules if rule.size != 0]
    for labels in found:
        yield from ((label, str(labels[label])) for label in _CONFIGS.values() if label in labels)


def _vanishing(pair: kinds.Pair) -> set[tuple[str, str]]:
    """The entries that a ConfigMap of mig-manager or the device plugin had and has no more."""
    for prefix, label in _CONFIGS.items():
        if pair.identity.kind == "ConfigMap" and pair.identity.name.startswith(prefix) and pair.before and pair.after:
            old, new = map(_entries, pair.both("data"))
            return {(label, name) for name in old - new}
    return set()


def _entries(data: Body) -> set[str]:
    """The names of mig-manager's entries, which are in one file, or of the device plugin's files."""
    if mig_parted.FILE_NAME not in data:
        return set(data)
    content = _content({"data": data[mig_parted.FILE_NAME]})
    return set(section(content, "mig-configs")) if isinstance(content, Mapping) else set()


# --- Pairs -------------------------------------------------------------------------------------------------------


def _leads_to(body: Body) -> set[str]:
    """The folders, in the cluster's, that an object of Argo CD or Flux may apply: one for each end of its path."""
    paths = (value_of(body, route) for route in (("spec", "path"), ("spec", "source", "path")))
    parts = [path.split("/") for path in paths if isinstance(path, str)]
    return {"/".join(part[start:]) for part in parts for start in range(len(part))}


def _parent(body: Body) -> object:
    """The queue of KAI-Scheduler that one is part of."""
    return value_of(body, ("spec", "parentQueue"))


def _pairs(before: Objects, after: Objects) -> Iterator[tuple[Key | None, kinds.Pair]]:
    """Each pair, with the key that its object had, where there was one."""
    gone = {key: body for key, body in before.items() if key not in after}
    known: dict[object, Key] = {}
    for key, body in gone.items():
        known.setdefault(_kept(key, body), key)
    for key, body in after.items():
        was = key if key in before else known.pop(_kept(key, body), None)
        yield was, kinds.Pair(*key, before[was] if was else None, body)
        if was:
            gone.pop(was, None)
    yield from ((key, kinds.Pair(*key, body, None)) for key, body in gone.items())


_HASHED: Final = regex(r"-[0-9a-f]{8}$")
_RULE: Final = "NodeFeatureRule"


def _kept(key: Key, body: Body) -> object:
    """Return a key that an object keeps when its name changes."""
    folder, identity = key
    match identity.group, identity.kind:
        case "nvidia.com", "ClusterPolicy":  # there is one
            return folder, identity.kind
        case "", "Node":  # in whichever pool
            return identity
        case _, kind if kind == _RULE:  # that of the same nodes
            return identity.kind, str([rule.chosen for rule in kinds.rules_of(body)])
        case "", "ConfigMap":  # with a hash in its name, or now without
            return folder, identity._replace(name=_HASHED.sub("", identity.name))
        case _:
            return folder, identity._replace(name=_HASHED.sub("-", identity.name))


# --- Classes -----------------------------------------------------------------------------------------------------


def _class_of(pair: kinds.Pair, before: Written, after: Written, *, has_nodes: bool, has_mps: bool) -> ChangeClass:
    if pair.identity.kind == FILE and not pair.identity.group:
        return _class_of_file(pair, before, after, has_nodes=has_nodes, has_mps=has_mps)
    if pair.identity.kind == _RULE and pair.before != pair.after and pair.after is not None:
        # What an object does to nodes, which may go from one object to another.
        rules = before.rules(pair.before), after.rules(pair.after)
        return kinds.class_of_rules(*rules, before.all_rules, after.all_rules)
    labels = pair.both("metadata", "labels")
    divisions = [side.division(found) for side, found in zip((before, after), labels, strict=True)]
    if pair.identity.kind == "Node" and divisions[0] is not None and divisions[0] == divisions[1]:
        return kinds.class_of_labels(*labels, is_divided_alike=True)
    names = [metadata.get("name") for metadata in pair.both("metadata")]
    if pair.before is not None and pair.after is not None and names[0] != names[1]:
        if pair.identity.kind == _POLICY:
            return ChangeClass.RECREATE
        if kinds.runs_mps(pair):
            return ChangeClass.REPARTITION
        is_watched = kinds.class_of(pair._replace(before=None)) is ChangeClass.METADATA
        return ChangeClass.METADATA if is_watched else kinds.class_of_stage(pair.folder)
    if pair.identity.kind == _POLICY and pair.before is not None and pair.after is not None:
        was, spec = (Setup(found, _BY_OTHERS) for found in pair.both("spec"))
        return kinds.class_of_settings(was, spec, "", has_mps=has_mps)
    return kinds.class_of(pair)


_POLICY: Final = "ClusterPolicy"
_BY_OTHERS: Final = "external"
"""A ClusterPolicy that no chart writes holds all that the operator reads."""


def _class_of_file(pair: kinds.Pair, before: Written, after: Written, *, has_nodes: bool, has_mps: bool) -> ChangeClass:
    """Nobody applies a file, but people and Helm read it. Where Node objects have the labels, a table is for taints."""
    old, new = (_content(body) for body in (pair.before, pair.after))
    if old == new:
        return ChangeClass.NONE
    stage = kinds.stage_of(pair.folder)
    if not pair.identity.name.endswith((".yaml", ".yml", ".json")):
        return ChangeClass.METADATA
    if pair.identity.name in (OWNERS_PATCH_FILE, OWNERS_VALUES_FILE) and None in (old, new):
        return ChangeClass.METADATA  # its owner still has what it has
    if stage == Stage.GPU_OPERATOR and isinstance(old, Mapping) and isinstance(new, Mapping):
        is_policy = pair.identity.name == OWNERS_PATCH_FILE
        sides = (section(side, "spec") if is_policy else side for side in (old, new))
        was, values = (Setup(side, _BY_OTHERS if is_policy else HELM) for side in sides)
        found = _VALUES_FOR.search(str((pair.after or {}).get("data", "")))
        return kinds.class_of_settings(was, values, (found[1] if found else ""), has_mps=has_mps)
    if stage == Stage.PARTITIONS:
        rules = before.with_divisions(_rules_of_table(old, before.names))
        next_rules = after.with_divisions(_rules_of_table(new, after.names))
        if has_nodes:
            rules, next_rules = (tuple(rule._replace(labels={}) for rule in side) for side in (rules, next_rules))
        return kinds.class_of_rules(rules, next_rules)
    if pair.folder.startswith(f"{runai.FOLDER}/"):
        return _class_of_request(old, new)
    configurations = [without(side, "metrics") for side in (old, new) if isinstance(side, Mapping)]
    if stage == Stage.SCHEDULING and len(configurations) > 1 and configurations[0] == configurations[1]:
        return ChangeClass.METADATA  # what Kueue shows to Prometheus decides nothing
    return kinds.class_of_stage(pair.folder)


_VALUES_FOR: Final = regex(r"(?m)^# Values for the chart gpu-operator, (v[0-9.]+[0-9])\.$")


def _content(body: Body | None) -> object:
    """Return the data of a file with one YAML mapping, or else its text."""
    if body is None:
        return None
    text = str(body.get("data", ""))
    documents, _ = read_text("file.yaml", text, strict=False)
    return documents[0].data if len(documents) == 1 and isinstance(documents[0].data, dict) else text


def _rules_of_table(table: object, names: kinds.Names) -> tuple[kinds.Rule, ...]:
    """The rows of the table of node groups, as the rules that they stand for."""
    rows = mappings(table.get("nodeGroups")) if isinstance(table, Mapping) else ()
    return tuple(kinds.rule_of_group(row, names) for row in rows)


def _class_of_request(old: object, new: object) -> ChangeClass:
    """Return the class of a request to Run:ai: numbers of node pools are a quota, their order among tenants is more."""
    if old is None:
        return ChangeClass.QUOTA
    if not isinstance(old, Mapping) or not isinstance(new, Mapping) or not ("resources" in old and "resources" in new):
        return ChangeClass.ADMISSION
    before, after = (
        {
            str(item.get("nodePool")): (section(item, "gpu").get("overQuotaWeight"), item.get("rank"))
            for item in mappings(request["resources"])
        }
        for request in (old, new)
    )
    is_same = all(after[pool] == order for pool, order in before.items() if pool in after)
    return ChangeClass.QUOTA if is_same else ChangeClass.PREEMPTION_ORDER
