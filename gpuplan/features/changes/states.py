"""Compare two states of a platform: what differs in what is written, told in the words of the policy.

There is one truth of what differs: the objects and files themselves, paired by what they are. The class of each pair is
that of its kind and fields (`objects`). What is said of it follows from the documents that it is about:
rules for each kind of document say what a change of it is, and what it does that no object shows. A rule that has
nothing written to tell of says nothing, and what no rule tells of is shown as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from posixpath import basename, dirname
from typing import Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import Body, grouped, section
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.delivery.annotations import HOOK, SYNC_WAVE
from gpuplan.compiler.documents import Difference, differences
from gpuplan.compiler.manifests import File, Identity, Manifest, Subject, identity_of
from gpuplan.compiler.manifests.provenance import Routes, Trace, below
from gpuplan.compiler.planning import appliers
from gpuplan.compiler.planning.linking import Linked
from gpuplan.compiler.planning.plan import Plan, Stage
from gpuplan.compiler.planning.sync_names import SYNC_OPTIONS
from gpuplan.features.changes import clusters, hand_written
from gpuplan.features.changes.costs import price_changes
from gpuplan.features.changes.evidence import Evidence, Listed, names_by_pattern, resolved
from gpuplan.features.changes.kinds import locked_fields, stage_of
from gpuplan.features.changes.model import Change, Comparison, ObjectChange, Wait
from gpuplan.features.changes.nodes import count_by_rule
from gpuplan.features.changes.objects import FILE, Key, Objects, Written, differing, in_order
from gpuplan.features.changes.operator import operator_changes
from gpuplan.features.changes.pools import pool_changes
from gpuplan.features.changes.step import Edits, Step, is_of
from gpuplan.features.changes.tenants import priority_changes, tenant_changes, workload_changes


class ClusterState(NamedTuple):
    """A cluster on one side: its plan, and what is written of it."""

    plan: Plan
    written: Written

    @classmethod
    def of(cls, plan: Plan, artifacts: Iterable[tuple[str, Manifest | File]]) -> ClusterState:
        """Each artifact comes with the tool whose folder it is in; empty where it is in the cluster's own."""
        objects: dict[Key, Body] = {}
        about: dict[Key, tuple[Subject, ...]] = {}
        traces: dict[Key, Trace] = {}
        for tool, artifact in artifacts:
            if isinstance(artifact, Manifest):
                key, body = (tool or artifact.folder, identity_of(artifact.body)), artifact.body
                trace = artifact.trace
            else:
                key = tool or dirname(artifact.path), Identity("", FILE, "", basename(artifact.path))
                body = {_TEXT: artifact.data.decode(errors="replace")}
                trace = partial(_trace_of_text, artifact.trace) if artifact.trace else None
            objects.setdefault(key, body)
            about.setdefault(key, artifact.about)
            if trace is not None:
                traces.setdefault(key, trace)
        return cls(plan, Written(objects, about, count_by_rule(plan), traces))


_TEXT: Final = "data"
"""The only field of what stands for a file here."""


def _trace_of_text(trace: Trace) -> Routes:
    """A file's own trace has routes in its text."""
    return below((_TEXT,), trace())


def compare(before: Iterable[ClusterState], after: Iterable[ClusterState], *, nodes: Listed = None) -> Comparison:
    """Return the differences in all clusters, by cluster name and worst first.

    ``nodes`` are those of the only cluster.
    """
    old, new = ({state.plan.cluster.name: state for state in side} for side in (before, after))
    names = (name for name in {*old, *new} if old.get(name) is not new.get(name))
    found = [_compare(name, *_known(old.get(name), new.get(name), nodes), nodes) for name in names]
    changes = sorted((change for item in found for change in item.changes), key=_order)
    waiting = sorted(wait for item in found for wait in item.waits)
    return Comparison(tuple(changes), in_order(item for one in found for item in one.objects), tuple(waiting))


def _known(
    before: ClusterState | None, after: ClusterState | None, nodes: Listed
) -> tuple[ClusterState | None, ClusterState | None]:
    """Both states, with the nodes that the rules of each are for."""
    if before is None or after is None or nodes is None:
        return before, after
    plans = resolved(before.plan, after.plan, nodes)

    def known(state: ClusterState, plan: Plan) -> ClusterState:
        written = replace(state.written, counts=count_by_rule(plan), names=names_by_pattern(plan, nodes))
        return ClusterState(plan, written)

    return known(before, plans[0]), known(after, plans[1])


def _compare(cluster: str, before: ClusterState | None, after: ClusterState | None, nodes: Listed) -> Comparison:
    old, new = (state.written if state else Written({}) for state in (before, after))
    evidence = Evidence(before.plan, nodes, (after or before).plan) if before and nodes is not None else None
    proof = evidence.named if evidence is not None and evidence.is_whole else None
    found = tuple(differing(cluster, old, new, proof))
    parts = _parts(old.objects, new.objects)
    placed = [
        change for told in _changes(before, after, found, nodes) if (change := _placed(told, found, parts)).folders
    ]
    explained, left = list[ObjectChange](), list[ObjectChange]()
    for item in found:
        # A change explains what is about it up to its own class: what disturbs more has another cause.
        follows, rank = stage_of(item.folder) in _FOLLOW, item.change_class.rank
        whole = (change for change in placed if rank <= change.change_class.rank)
        (explained if any(follows or _is_about(change, item) for change in whole) else left).append(item)
    changes = _with_what_follows(sorted(placed, key=_order), explained)
    if before is None or after is None:
        return Comparison(tuple(changes), tuple(left))
    edits = Edits(before.plan, after.plan)

    def cause(change: Change) -> Change:
        about = (item for item in found if _is_about(change, item))
        return change._replace(at=edits.cause(change.at, partial(_sources, about, old, new)))

    def located(obj: ObjectChange) -> ObjectChange:
        at = edits.find(_sources((obj,), old, new))
        return obj._replace(at=at, is_earlier=at is not None and not is_of(after.plan, at))

    waiting = tuple(waits(after.plan, old.objects, new.objects))
    return Comparison(tuple(map(cause, changes)), tuple(map(located, left)), waiting)


def _changes(
    before: ClusterState | None, after: ClusterState | None, objects: Sequence[ObjectChange], nodes: Listed
) -> Iterator[Change]:
    """Yield the changes of all rules, whether or not an object shows them."""
    if before is None or after is None:
        yield from [clusters.added(after.plan)] if after else []
        yield from [clusters.removed(before.plan)] if before else []
        return
    step = Step(before.plan, after.plan, nodes=nodes)
    for rule in (
        clusters.cluster_changes,
        operator_changes,
        pool_changes,
        hand_written.layout_changes,
        hand_written.gpu_changes,
        price_changes,
        priority_changes,
        tenant_changes,
        hand_written.hand_written_changes,
        hand_written.retained_changes,
    ):
        yield from rule(step)
    yield from workload_changes(step, objects)


def _order(change: Change) -> tuple[str, int, str, str, str]:
    return change.cluster, -change.change_class.rank, *change.subject, change.what


# --- Where it comes from -----------------------------------------------------------------------------------------


def _sources(changes: Iterable[ObjectChange], old: Written, new: Written) -> Iterator[Origin]:
    """The places that decide what differs in objects."""
    for item in changes:
        key = item.folder, item.identity
        bodies = [side.objects.get(key) for side in (old, new)]
        linked = [Linked(side.traces.get(key)) for side in (old, new)]
        for difference in differences(*bodies) if all(bodies) else (Difference((), ()),):
            sides = zip(difference, linked, strict=True)
            yield from (link.at for route, side in sides if route is not None for link in side.about(route))


# --- Folders -----------------------------------------------------------------------------------------------------


def _placed(change: Change, objects: Sequence[ObjectChange], parts: Mapping[str, frozenset[str]]) -> Change:
    """The change with the folders that apply it: those of all that differs and is about it.

    All folders of a stage are said as the stage. What is hand-written is read as it lies, and knows its folder.
    """
    if change.folders:
        return change
    about = [item for item in objects if _is_about(change, item)]
    names = {_synced(folder) for item in about for folder in (item.folder, item.was_in) if folder}
    for stage, known in parts.items():
        if known <= names and (len(known) > 1 or stage in change.stages):
            names = names - known | {stage}
    ranks = {stage: rank for rank, stage in enumerate(change.stages)}
    return change._replace(folders=tuple(sorted(names, key=lambda name: (ranks.get(stage_of(name), 0), name))))


def _with_what_follows(changes: Sequence[Change], explained: Iterable[ObjectChange]) -> list[Change]:
    """The changes, worst first: folders in which what differs is explained are the first one's, where none has them."""
    said = {folder for change in changes for folder in change.folders}
    folders = {_synced(item.folder) for item in explained}
    left = {folder for folder in folders if folder not in said and stage_of(folder) not in said}
    return [change._replace(folders=(*change.folders, *sorted(left))) for change in changes[:1]] + [*changes[1:]]


def _parts(*sides: Objects) -> dict[str, frozenset[str]]:
    """The folders of each stage that has several."""
    synced = {_synced(folder) for objects in sides for folder, _ in objects}
    found = grouped((stage_of(folder), folder) for folder in synced if "/" in folder)
    return {stage: frozenset(folders) for stage, folders in found.items()}


def _synced(folder: str) -> str:
    """The folder that is synced: a stage's files may lie deeper."""
    stage, _, rest = folder.partition("/")
    return f"{stage}/{rest.partition('/')[0]}" if rest and stage in _HAS_PARTS else stage


_HAS_PARTS = frozenset(stage.value for stage in Stage if stage.has_parts)


# --- Explanations ------------------------------------------------------------------------------------------------


_FOLLOW = frozenset((Stage.MONITORING.value, "argocd", "flux"))
"""The folders that sum up the cluster, so that every change changes them."""


def _is_about(change: Change, obj: ObjectChange) -> bool:
    subjects = (change.subject, *change.also, change.subject._replace(name=""))
    is_named = not obj.about.isdisjoint(subjects) and change.subject.kind != "Cluster"
    return is_named or stage_of(obj.folder) in change.stages


def waits(plan: Plan, before: Objects, after: Objects) -> Iterator[Wait]:
    """Yield the waits of a cluster by folder, by its later plan (cases: `tests/cluster/test_argocd_syncs.py`).

    What a person syncs is pruned as they say.

    A sync has no end of its own, and no two of an Application run at once. It asks before it prunes an object that
    says so. What it applied must be healthy before a later wave is applied, and a Job is that when it has ended;
    after the last wave it waits for nothing (`Sync` in
    https://github.com/argoproj/argo-cd/blob/v3.5.3/gitops-engine/pkg/sync/sync_context.go).

    No sync begins where Argo CD cannot compare. It asks the API server what an apply would change, object by
    object, and one refusal fails the comparison of all (`serverSideDiff` in `gitops-engine/pkg/diff/diff.go` and
    `CompareAppState` in `controller/state.go` there). The next look takes what was compared before for known, and
    changes nothing; only objects that come or go are seen (`useDiffCache` there). The options `Replace` and `Force`
    are read after that, in a sync.

    An ApplicationSet with `create-update` deletes no Application, and the parent of the others prunes none.
    """
    kept = {hand_written.folder_of(component) for component in plan.components}
    for folder, keys in groupby(sorted({*before, *after}), key=lambda key: key[0]):
        applier = appliers.find_applier(plan, folder)
        if applier is None or applier.kind not in (appliers.APPLICATION, appliers.APPLICATION_SET):
            continue
        identities = [identity for _, identity in keys]
        old, new = (
            {name: side[folder, name] for name in identities if (folder, name) in side} for side in (before, after)
        )
        gone = {name: body for name, body in old.items() if name not in new} if appliers.is_pruned(folder) else {}
        pruned = [
            name
            for name, body in gone.items()
            if applier.is_automatic and (_CONFIRM in str(_annotations(body).get(SYNC_OPTIONS, "")).split(","))
        ]
        last = max(map(_step, (*new.values(), *gone.values())), default=None)
        ended = [
            name
            for name, body in new.items()
            if ((name.group, name.kind) == ("batch", "Job") and HOOK not in _annotations(body) and _step(body) != last)
            and old.get(name) != body
        ]
        stay = () if appliers.is_applied_by_client(plan, folder) else new.keys() & old.keys()
        refused = sorted(
            name for name in stay if HOOK not in _annotations(new[name]) and locked_fields(name, old[name], new[name])
        )
        wait = Wait(plan.cluster.name, applier.name, folder)
        if new and (pruned or ended or refused):
            yield wait._replace(pruned=tuple(pruned), ended=tuple(ended), refused=tuple(refused))
        elif not new and folder not in kept and (left := tuple(name for name in old if name.kind != FILE)):
            yield wait._replace(left=left)


_CONFIRM: Final = "Prune=confirm"

_Step = tuple[int, int]
"""The phase, by its place among all, and the wave."""
_PHASES: Final = ("PreSync", "Sync", "PostSync")
_WAVE: Final = regex(r"[+-]?[0-9]{1,9}")


def _step(body: Body) -> _Step:
    """When it comes. What is no hook is in the phase `Sync`, and a wave that is no number is 0."""
    found = _annotations(body)
    phase, wave = str(found.get(HOOK, "Sync")), str(found.get(SYNC_WAVE))
    return _PHASES.index(phase) if phase in _PHASES else 0, int(wave) if _WAVE.fullmatch(wave) else 0


def _annotations(body: Body) -> Body:
    return section(body, "metadata", "annotations")
