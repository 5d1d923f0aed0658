"""Tell of a difference which line of the policy it comes from, and what the next sync does about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import isfinite
from typing import Any, Final

from gpuplan.compiler.base.confidential import confidential_in
from gpuplan.compiler.base.diagnostics import Path as Route
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.plain import value_at
from gpuplan.compiler.manifests import Identity, gvk_of
from gpuplan.compiler.manifests.provenance import How, Link
from gpuplan.compiler.manifests.shapes import shape_of
from gpuplan.compiler.pipeline.loading import OUT
from gpuplan.compiler.planning.appliers import APPLICATION, KUSTOMIZATION, Applier, find_applier
from gpuplan.compiler.planning.linking import once, written
from gpuplan.compiler.planning.plan import Stage
from gpuplan.compiler.planning.sync_names import FLUX_PRUNE, SYNC_OPTIONS, folder_name, root_name, sync_name
from gpuplan.compiler.policy.models import NodeLabels
from gpuplan.features.changes import class_of_labels, compare_objects, locked_fields
from gpuplan.features.live.drifting.comparing import (
    ABSENT,
    Difference,
    Differing,
    Leftover,
    NodeDifference,
    as_found,
    find_owner,
    with_left,
)
from gpuplan.features.live.drifting.model import Differs, Drift, NextSync
from gpuplan.features.live.drifting.planned import Planned, Platform
from gpuplan.features.tracing import Leaf, Places, Source, Traced, spelled, trace_artifact, values_of


class Telling:
    """Tells of differences between what runs and what a cluster is to have."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.plan = platform.plan
        self._places = Places()

    @cached_property
    def folders(self) -> Mapping[str, str]:
        """The folders that something syncs, by the name of what does."""
        cluster, named = self.plan.cluster.name, folder_name if self.plan.cluster.flux else sync_name
        own = {one.folder for one in self.platform.objects.values() if not one.tool}
        stages = {stage.value for stage in Stage}
        return {named(cluster, folder): folder for folder in own | stages} | {root_name(cluster): ""}

    # --- Differences ---------------------------------------------------------------------------------------------

    def differing(self, item: Differing) -> Iterator[Drift]:
        """Each field of an object that is not as it is written."""
        one = self.platform.objects[item.identity]
        shape = shape_of(gvk_of(one.body), self.plan.cluster.spec.kubernetes)
        found = with_left(as_found(one.body, item.item.body, shape), item.differences)
        change_class = self._class_of(item.identity, found, one.body)
        locked = locked_fields(item.identity, found, one.body)
        applier = self._applier(one)
        written, live = (confidential_in("", body) for body in (one.body, item.item.body))
        for difference, sources in self._with_sources(item.identity, item.differences):
            is_fixed = any(_is_below(difference.route, route) for route in locked)
            is_left = self._is_left_alone(item.identity, one, difference.route)
            yield Drift(
                self.plan.cluster.name,
                Differs.FIELD,
                _title(item.identity),
                spelled(difference.route),
                difference.line,
                written.shown(live.shown(_plain(difference.written))),
                live.shown(written.shown(_plain(difference.live))),
                is_written=difference.written is not ABSENT,
                has_live=difference.live is not ABSENT,
                file=f"{OUT}/{one.path}",
                dump=item.item.file,
                sources=sources,
                owner=find_owner(item.item.body, difference.live_route),
                next_sync=NextSync.LEAVES if is_left else _synced(one, applier, is_fixed=is_fixed),
                applier=applier,
                change_class=change_class,
            )

    def missing(self, identity: Identity) -> Drift:
        """An object that the cluster does not have."""
        one = self.platform.objects[identity]
        applier = self._applier(one)
        return Drift(
            self.plan.cluster.name,
            Differs.MISSING,
            _title(identity),
            "",
            0,
            None,
            None,
            is_written=True,
            has_live=False,
            file=f"{OUT}/{one.path}",
            dump="",
            sources=self._sources_of(identity, one),
            owner=None,
            next_sync=NextSync.CREATES if applier or one.tool else NextSync.NOTHING,
            applier=applier,
            change_class=self._class_of(identity, None, one.body),
        )

    def left(self, item: Leftover) -> Drift:
        """An object that is written no more."""
        live, identity = item.item, item.item.identity
        folder = self.folders.get(item.applier, "")
        applier = find_applier(self.plan, folder) if folder else None
        return Drift(
            self.plan.cluster.name,
            Differs.LEFT,
            _title(identity),
            "",
            0,
            None,
            None,
            is_written=False,
            has_live=True,
            file="",
            dump=live.file,
            sources=(),
            owner=find_owner(live.body, ()),
            next_sync=_pruning(live.annotations, applier, is_kept=item.is_kept),
            applier=applier,
            change_class=self._class_of(identity, live.body, None, folder),
            note="it was left for what names it, and nothing does any more" if item.is_kept else "",
        )

    def node(self, item: NodeDifference) -> Drift:
        """What a node has otherwise than its pool says; or nodes of a pool that are not there."""
        sources = tuple(self._places.source(link) for link in once(written(item.links)))
        labels = self.plan.cluster.spec.node_labels
        return Drift(
            self.plan.cluster.name,
            Differs.NODE,
            f"Node {item.name}" if item.name else f"Pool {item.pool.name}" if item.pool else "",
            spelled(item.route),
            0,
            _plain(item.written),
            _plain(item.live),
            is_written=item.written is not ABSENT,
            has_live=item.live is not ABSENT,
            file="",
            dump=item.item.file if item.item else "",
            sources=sources,
            owner=find_owner(item.item.body, item.route) if item.item else None,
            next_sync=NextSync.RELABELS if item.is_labelled and labels is NodeLabels.NFD else NextSync.NOTHING,
            applier=None,
            change_class=_class_of_label(item) if item.is_labelled else ChangeClass.NONE,
            note=item.note,
        )

    def _class_of(
        self, identity: Identity, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, folder: str = ""
    ) -> ChangeClass:
        """What `diff` says of a change of this object alone."""
        name, one = self.plan.cluster.name, self.platform.objects.get(identity)
        key = (one.tool or one.folder) if one else folder, identity
        old, new = ({name: {key: body} if body is not None else {}} for body in (before, after))
        found = compare_objects(old, new)
        return found[0].change_class if found else ChangeClass.NONE

    # --- Where it comes from -------------------------------------------------------------------------------------

    def _with_sources(
        self, identity: Identity, found: Iterable[Difference]
    ) -> Iterator[tuple[Difference, tuple[Source, ...]]]:
        """Each with the lines that its field comes from: of a policy, or of a hand-written file."""
        one = self.platform.objects[identity]
        traced = trace_artifact(self.plan, one.path, one.artifact) if one.artifact is not None else None
        for difference in found:
            is_by_hand = one.by_hand is not None and not _is_generated(one, difference.route)
            if traced is None or is_by_hand:
                yield difference, self._by_hand(identity, one, difference.route)
            else:
                yield difference, self._traced(traced, difference.route)

    def _traced(self, traced: Traced, route: Route) -> tuple[Source, ...]:
        """Those of the leaves at a route, or of the nearest around it."""
        leaves = _leaves_at(traced.leaves, route)
        values = values_of(traced, [(leaf, 0) for leaf in leaves], self._places)
        found = dict.fromkeys(source for value in values for source in value.sources)
        return tuple(sorted(found, key=lambda source: source.is_of_object))

    def _by_hand(self, identity: Identity, one: Planned, route: Route) -> tuple[Source, ...]:
        assert one.by_hand is not None  # noqa: S101 - what gpuplan does not write, a Component adds
        return (self._places.source(Link(How.COPIED, self.platform.patched.place(one.by_hand, identity, *route))),)

    def _sources_of(self, identity: Identity, one: Planned) -> tuple[Source, ...]:
        """Why an object is to be there."""
        if one.artifact is None:
            return self._by_hand(identity, one, ())
        traced = trace_artifact(self.plan, one.path, one.artifact)
        return tuple(self._places.source(link, is_of_object=True) for link in traced.whole)

    # --- What comes next -----------------------------------------------------------------------------------------

    def _applier(self, one: Planned) -> Applier | None:
        return None if one.tool else find_applier(self.plan, one.folder)

    def _is_left_alone(self, identity: Identity, one: Planned, route: Route) -> bool:
        """Whether the Application that syncs an object of Argo CD is told to leave a field of it alone."""
        return bool(one.tool) and any(
            group == identity.group and kind in ("*", identity.kind) and _is_below(route, pointer)
            for group, kind, pointer in self._ignored
        )

    @cached_property
    def _ignored(self) -> Sequence[tuple[str, str, Route]]:
        objects = self.platform.objects.items()
        applications = (one.body for identity, one in objects if identity.kind == APPLICATION and one.tool)
        return [
            (rule["group"], rule["kind"], tuple(map(_unescaped, pointer.strip("/").split("/"))))
            for body in applications
            for rule in body["spec"].get("ignoreDifferences", ())
            for pointer in rule["jsonPointers"]
        ]


def _synced(one: Planned, applier: Applier | None, *, is_fixed: bool) -> NextSync:
    """What a sync does about a field; nothing where nobody syncs the folder."""
    if applier is None and not one.tool:
        return NextSync.NOTHING
    return NextSync.FAILS if is_fixed else NextSync.OVERWRITES


def _is_generated(one: Planned, route: Route) -> bool:
    """Whether Components leave a field, or the text that it is in, as gpuplan writes it."""
    made: object = one.body
    generated: object = one.artifact.body if one.artifact is not None else {}
    for part in route:
        if isinstance(made, str):
            break
        made, generated = value_at(made, (part,)), value_at(generated, (part,))
    return made == generated


def _unescaped(part: str) -> str:
    """A part of a JSON pointer (RFC 6901)."""
    return part.replace("~1", "/").replace("~0", "~")


def _class_of_label(item: NodeDifference) -> ChangeClass:
    """What it disturbs to set a label, or a taint, of a node to what its pool says."""
    if item.route[0] == "spec":
        return ChangeClass.TAINT
    key = str(item.route[-1])
    sides = ({} if value is ABSENT else {key: value} for value in (item.live, item.written))
    return class_of_labels(*sides)


def _title(identity: Identity) -> str:
    return str(identity._replace(group=""))


def _plain(value: object) -> object:
    """As JSON can say it: a text of YAML may hold dates, and keys that are no texts."""
    match value:
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case float() if not isfinite(value):
            return str(value)
        case None | bool() | int() | float() | str():
            return value
        case _:
            return None if value is ABSENT else str(value)


def _is_below(route: Route, above: Iterable[object]) -> bool:
    above = tuple(above)
    length = min(len(route), len(above))
    return route[:length] == above[:length]


def _leaves_at(leaves: Sequence[Leaf], route: Route) -> Sequence[Leaf]:
    """The leaves at a route: below it, or the one that it leads into, or else the nearest beside it."""
    for length in range(len(route), -1, -1):
        found = [leaf for leaf in leaves if _is_below(leaf.path, route[:length]) and len(leaf.path) >= length]
        found = found or [leaf for leaf in leaves if leaf.path == route[: len(leaf.path)] and leaf.path]
        if found:
            return found[:_MOST_LEAVES]
    return ()


_MOST_LEAVES: Final = 8


def _pruning(annotations: Mapping[str, str], applier: Applier | None, *, is_kept: bool) -> NextSync:
    """What becomes of an object that is written no more, by what it says itself."""
    if applier is None or is_kept:
        return NextSync.NOTHING
    if applier.kind == KUSTOMIZATION:
        return NextSync.NOTHING if annotations.get(FLUX_PRUNE) == "disabled" else NextSync.PRUNES
    told = dict(option.split("=", 1) for option in annotations.get(SYNC_OPTIONS, "").split(",") if "=" in option)
    if told.get("Prune") == "false" or applier.folder in _NEVER_PRUNED:
        return NextSync.NOTHING
    return NextSync.ASKS if told.get("Prune") == "confirm" else NextSync.PRUNES


_NEVER_PRUNED: Final = (Stage.GPU_OPERATOR, Stage.SCHEDULER)
"""What Argo CD leaves to a person there, among what their charts install (`gpuplan.compiler.delivery.argocd`)."""
