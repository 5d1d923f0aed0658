"""Compare rendered objects: what differs in the output though no change of meaning explains it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from gpuplan.changes.kinds import Body, class_of, class_of_settings, class_of_stage
from gpuplan.changes.model import Change, ChangeClass, ObjectChange, worst
from gpuplan.documents import read_text
from gpuplan.manifests import Identity
from gpuplan.planning.plan import Stage

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

    A change explains what is in its folders, up to its own class: what disturbs more has another cause.
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
    for pair in _pairs(before, after):
        found = _class_of(pair)
        if found is not ChangeClass.NONE:
            verb = "added" if pair.before is None else "removed" if pair.after is None else "changed"
            yield ObjectChange(cluster, found, pair.folder, pair.identity, verb)


class _Pair(NamedTuple):
    folder: str
    identity: Identity
    before: Body | None
    after: Body | None


def _pairs(before: Objects, after: Objects) -> Iterator[_Pair]:
    gone = {key: body for key, body in before.items() if key not in after}
    come = {key: body for key, body in after.items() if key not in before}
    hashed: dict[tuple[str, Identity], tuple[str, Identity]] = {}
    for key in gone:
        hashed.setdefault(_stem(key), key)
    for key, body in come.items():
        old = hashed.pop(_stem(key), None) if _HASHED.search(key[1].name) else None
        yield _Pair(*key, gone.pop(old) if old is not None else None, body)
    yield from (_Pair(*key, body, None) for key, body in gone.items())
    yield from (_Pair(*key, body, after[key]) for key, body in before.items() if key in after)


_HASHED: Final = re.compile(r"-[0-9a-f]{8}$")


def _stem(key: tuple[str, Identity]) -> tuple[str, Identity]:
    folder, identity = key
    return folder, identity._replace(name=_HASHED.sub("-", identity.name))


# --- Classes -----------------------------------------------------------------------------------------------------


def _class_of(pair: _Pair) -> ChangeClass:
    if pair.identity.kind == FILE and not pair.identity.group:
        return _class_of_file(pair)
    if pair.before is not None and pair.after is not None and _names_differ(pair.before, pair.after):
        # One that changes its name with its content is made anew.
        return class_of_stage(pair.folder)
    return class_of(*pair)


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


def _as_rule(row: Mapping[str, Any]) -> dict[str, Any]:
    nodes = {key: value for key, value in row.items() if key not in ("labels", "taints", "machineSet")}
    return {
        "name": row.get("pool"),
        "labels": row.get("labels"),
        "taints": row.get("taints"),
        "matchFeatures": [nodes],
    }


# --- Explanations ------------------------------------------------------------------------------------------------

_FOLLOW: Final = frozenset((Stage.MONITORING.value, "argocd", "flux"))
"""What is there tells of everything else: whatever changes, changes it."""


def _is_explained(item: ObjectChange, changes: Sequence[Change]) -> bool:
    rank = item.change_class.rank
    follows = item.folder.partition("/")[0] in _FOLLOW
    return any(
        rank <= change.change_class.rank
        and (follows or any(f"{item.folder}/".startswith(f"{folder}/") for folder in change.folders))
        for change in changes
    )


def _order(item: ObjectChange) -> tuple[str, int, str, Identity]:
    return item.cluster, -item.change_class.rank, item.folder, item.identity
