"""Compare rendered objects: what differs in the output though no change of meaning explains it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from gpuplan.backends.gpu_operator import mig_parted
from gpuplan.changes.kinds import Body, class_of, class_of_settings, class_of_stage
from gpuplan.changes.model import Change, ChangeClass, ObjectChange, worst
from gpuplan.documents import read_text
from gpuplan.manifests import Identity
from gpuplan.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, Stage

Objects = Mapping[tuple[str, Identity], Body]
"""The objects of a cluster by the folder that applies them.

What syncs the cluster is in the folder `argocd` or `flux`. A file that holds no object stands for itself: an identity
of the kind `FILE` with its name, and a body with its text under `data`.
"""

FILE: Final = "File"


def compare_objects(
    before: Mapping[str, Objects], after: Mapping[str, Objects], changes: Iterable[Change] = ()
) -> tuple[ObjectChange, ...]:
    """The objects of each cluster that differ, by cluster, worst first, those apart that ``changes`` explain.

    A change explains what is in its folders, up to its own class: what disturbs more has another cause. One that
    follows nodes explains all that their rules say, and what these name.
    """
    known: dict[str, list[Change]] = {}
    for change in changes:
        known.setdefault(change.cluster, []).append(change)
    found = [
        item
        for cluster in sorted({*before, *after})
        for item in differing(cluster, before.get(cluster, {}), after.get(cluster, {}))
        if not _is_explained(item, known.get(cluster, ()))
    ]
    return tuple(sorted(found, key=_order))


def differing(cluster: str, before: Objects, after: Objects) -> Iterator[ObjectChange]:
    """Every object that differs; one whose name changed with its content is one that changed."""
    new_folders = {folder for folder, _ in after} - {folder for folder, _ in before}
    gone = {folder for folder, identity in before if (folder, identity) not in after}
    named = {label for key, body in before.items() for label in _labels_of_nodes(key, body)}
    parents = {_parent(body) for body in before.values()} - {_parent(body) for body in after.values()}
    for pair in _pairs(before, after):
        found = _class_of(pair)
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
            yield ObjectChange(cluster, found, pair.folder, pair.identity, verb)


def _labels_of_nodes(key: _Key, body: Body) -> Iterator[tuple[str, str]]:
    """The configurations that nodes name: of mig-manager, and of the device plugin."""
    folder, identity = key
    if identity.kind == FILE and folder == Stage.PARTITIONS:
        bodies = list(_rows(_content(body)).values())
    else:
        bodies = [body] if identity.kind in ("NodeFeatureRule", "Node") else []
    for found in bodies:
        rules = found.get("spec", {}).get("rules", ()) if identity.kind != "Node" else [found["metadata"]]
        for rule in rules:
            labels = rule.get("labels") or {}
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
    folder: str
    identity: Identity
    before: Body | None
    after: Body | None


def _pairs(before: Objects, after: Objects) -> Iterator[_Pair]:
    gone = {key: body for key, body in before.items() if key not in after}
    come = {key: body for key, body in after.items() if key not in before}
    known: dict[object, _Key] = {}
    for key, body in gone.items():
        known.setdefault(_kept(key, body), key)
    for key, body in come.items():
        old = known.pop(_kept(key, body), None)
        yield _Pair(*key, gone.pop(old) if old is not None else None, body)
    yield from (_Pair(*key, body, None) for key, body in gone.items())
    yield from (_Pair(*key, body, after[key]) for key, body in before.items() if key in after)


_HASHED: Final = re.compile(r"-[0-9a-f]{8}$")


def _parent(body: Body) -> str | None:
    """The queue of KAI-Scheduler that one is part of."""
    spec = body.get("spec")
    found = spec.get("parentQueue") if isinstance(spec, Mapping) else None
    return found if isinstance(found, str) else None


_Key = tuple[str, Identity]


def _kept(key: _Key, body: Body) -> object:
    """What an object keeps when it changes its name, equal for what it was and what it is."""
    folder, identity = key
    match identity.group, identity.kind:
        case "nvidia.com", "ClusterPolicy":  # there is one
            return folder, identity.kind
        case "", "Node":  # in whichever pool
            return identity
        case _, "NodeFeatureRule":  # that of the same nodes
            rules = body.get("spec", {}).get("rules", [])
            return identity.kind, str([rule.get("matchFeatures") for rule in rules if isinstance(rule, Mapping)])
        case _:
            return folder, identity._replace(name=_HASHED.sub("-", identity.name))


# --- Classes -----------------------------------------------------------------------------------------------------


def _class_of(pair: _Pair) -> ChangeClass:
    if pair.identity.kind == FILE and not pair.identity.group:
        return _class_of_file(pair)
    if pair.before is not None and pair.after is not None and _names_differ(pair.before, pair.after):
        return _class_of_renamed(pair)
    return class_of(*pair)


def _class_of_renamed(pair: _Pair) -> ChangeClass:
    """One that changes its name with its content is another object; rules say of the same nodes what they say."""
    match pair.identity.kind:
        case "NodeFeatureRule":
            return class_of(*pair)
        case "ClusterPolicy":
            return ChangeClass.RECREATE
        case _:
            is_watched = class_of(pair.folder, pair.identity, None, pair.after) is ChangeClass.METADATA
            return ChangeClass.METADATA if is_watched else class_of_stage(pair.folder)


def _names_differ(before: Body, after: Body) -> bool:
    return bool(before.get("metadata", {}).get("name") != after.get("metadata", {}).get("name"))


def _class_of_file(pair: _Pair) -> ChangeClass:
    """Nobody applies a file, but people and Helm go by it."""
    old, new = (_content(body) for body in (pair.before, pair.after))
    if old == new:
        return ChangeClass.NONE
    name, stage = pair.identity.name, pair.folder.partition("/")[0]
    if not name.endswith((".yaml", ".yml", ".json")):
        return ChangeClass.METADATA
    if stage == Stage.GPU_OPERATOR and isinstance(old, Mapping) and isinstance(new, Mapping):
        return class_of_settings(old, new)
    if stage == Stage.PARTITIONS:
        return _class_of_table(pair.folder, old, new)
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


_GROUPS: Final = "nodeGroups"


def _class_of_table(folder: str, old: object, new: object) -> ChangeClass:
    """The rows of the table of node groups, as the rules that they stand for."""
    before, after = _rows(old), _rows(new)
    moved = {_nodes_of(body): name for name, body in before.items() if name not in after}
    for name in [name for name in after if name not in before]:
        if (was := moved.get(_nodes_of(after[name]))) is not None:
            before[name] = before.pop(was)
    rule = Identity("nfd.k8s-sigs.io", "NodeFeatureRule", "", _GROUPS)
    return worst(
        (
            ChangeClass.METADATA,
            *(class_of(folder, rule, before.get(name), after.get(name)) for name in sorted({*before, *after})),
        )
    )


def _rows(table: object) -> dict[str, Body]:
    groups = table.get(_GROUPS) if isinstance(table, Mapping) else None
    rows = [row for row in groups if isinstance(row, Mapping)] if isinstance(groups, list) else []
    return {str(row.get("pool")): {"spec": {"rules": [_as_rule(row)]}} for row in rows}


def _nodes_of(row: Body) -> str:
    """What a row, as a rule, keeps when its pool is renamed."""
    return str(row["spec"]["rules"][0]["matchFeatures"])


def _as_rule(row: Mapping[str, Any]) -> dict[str, Any]:
    pattern = row.get("namePattern")
    chosen = {"op": "InRegexp", "value": [pattern]} if pattern else {"op": "In", "value": row.get("names")}
    counted = {key: row.get(key) for key in ("gpu", "nodes", "gpusPerNode")}
    return {
        "name": row.get("pool"),
        "labels": row.get("labels"),
        "taints": row.get("taints"),
        "matchFeatures": [{"feature": "system.name", "matchExpressions": {"nodename": chosen}}, counted],
    }


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


# --- Explanations ------------------------------------------------------------------------------------------------

_FOLLOW: Final = frozenset((Stage.MONITORING.value, "argocd", "flux"))
"""What is there tells of everything else: whatever changes, changes it."""


def _is_explained(item: ObjectChange, changes: Sequence[Change]) -> bool:
    rank = item.change_class.rank
    follows = item.folder.partition("/")[0] in _FOLLOW
    of_nodes = _is_of_nodes(item)
    return any(
        (rank <= change.change_class.rank or (of_nodes and change.follows_nodes))
        and (follows or any(_covers(folder, item) for folder in change.folders))
        for change in changes
    )


def _is_of_nodes(item: ObjectChange) -> bool:
    """Whether it labels nodes, or says what their labels name."""
    is_named = item.identity.kind == "ConfigMap" and item.identity.name.startswith(tuple(_CONFIGS))
    return is_named or item.folder.partition("/")[0] == Stage.PARTITIONS


def _covers(folder: str, item: ObjectChange) -> bool:
    """A file of a stage tells of all of its folders, as the table of node groups does."""
    tells = item.identity.kind == FILE and folder.startswith(f"{item.folder}/")
    return tells or f"{item.folder}/".startswith(f"{folder}/")


def _order(item: ObjectChange) -> tuple[str, int, str, Identity]:
    return item.cluster, -item.change_class.rank, item.folder, item.identity
