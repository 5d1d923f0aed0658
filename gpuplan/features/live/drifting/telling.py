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
from gpuplan.compiler.base.trees import ABSENT
from gpuplan.compiler.delivery.charts import chart_of
from gpuplan.compiler.manifests import Identity, gvk_of
from gpuplan.compiler.manifests.merging.applied import Difference, as_found, with_left
from gpuplan.compiler.manifests.provenance import How, Link
from gpuplan.compiler.manifests.shapes import shape_of
from gpuplan.compiler.pipeline.loading import OUT
from gpuplan.compiler.planning.appliers import APPLICATION, KUSTOMIZATION, Applier, find_applier
from gpuplan.compiler.planning.linking import once, written
from gpuplan.compiler.planning.plan import Stage
from gpuplan.compiler.planning.sync_names import FLUX_PRUNE, SYNC_OPTIONS, folder_name, root_name, sync_name
from gpuplan.compiler.policy.models import NodeLabels
from gpuplan.features.changes import class_of_labels, compare_objects, locked_fields
from gpuplan.features.live.drifting.model import Differs, Drift, NextSync, Planned, Platform
from gpuplan.features.live.drifting.objects import Differing, Leftover, Observed, find_owner
from gpuplan.features.live.drifting.operator import lists_none
from gpuplan.features.tracing import Leaf, Places, Source, spelled, trace_artifact, values_of


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

    def differing(self, differing: Differing) -> Iterator[Drift]:
        """Report each field of an object that differs from what is written."""
        one = self.platform.objects[differing.identity]
        shape = shape_of(gvk_of(one.body), self.plan.cluster.spec.kubernetes)
        found = with_left(as_found(one.body, differing.live.body, shape), differing.differences)
        change_class = self._class_of(differing.identity, found, one.body)
        locked = locked_fields(differing.identity, found, one.body)
        applier = self._applier(one)
        written, live = (confidential_in("", body) for body in (one.body, differing.live.body))
        for difference, sources in self._with_sources(differing.identity, differing.differences):
            is_fixed = any(_is_below(difference.route, route) for route in locked)
            is_left = bool(one.tool) and any(
                group == differing.identity.group
                and kind in ("*", differing.identity.kind)
                and _is_below(difference.route, pointer)
                for group, kind, pointer in self._ignored
            )
            next_sync = NextSync.FAILS if is_fixed else NextSync.OVERWRITES
            if is_left:
                next_sync = NextSync.LEAVES
            elif applier is None and not one.tool and not is_fixed:  # nobody syncs the folder
                next_sync = NextSync.NOTHING
            yield Drift(
                self.plan.cluster.name,
                Differs.FIELD,
                _title(differing.identity),
                path=spelled(difference.route),
                line=difference.line,
                written=written.shown(live.shown(_plain(difference.written))),
                live=live.shown(written.shown(_plain(difference.live))),
                is_written=difference.written is not ABSENT,
                has_live=difference.live is not ABSENT,
                file=f"{OUT}/{one.path}",
                dump=differing.live.file,
                sources=sources,
                owner=find_owner(differing.live.body, difference.live_route),
                next_sync=next_sync,
                applier=applier,
                change_class=change_class,
            )

    def missing(self, identity: Identity, file: str = "") -> Drift:
        """Report an object that the cluster does not have, as a ``file`` with nothing of its kind shows."""
        one = self.platform.objects[identity]
        applier = self._applier(one)
        if one.artifact is None:
            sources = self._by_hand(identity, one, ())
        else:
            links = trace_artifact(self.plan, one.path, one.artifact).whole
            sources = tuple(self._places.source(link, is_of_object=True) for link in links)
        return Drift(
            self.plan.cluster.name,
            Differs.MISSING,
            _title(identity),
            is_written=True,
            file=f"{OUT}/{one.path}",
            sources=sources,
            next_sync=NextSync.CREATES if applier or one.tool else NextSync.NOTHING,
            applier=applier,
            change_class=self._class_of(identity, None, one.body),
            note=lists_none(file),
        )

    def leftover(self, leftover: Leftover) -> Drift:
        """Report an object that is written no more."""
        live, identity = leftover.live, leftover.live.identity
        folder = self.folders.get(leftover.applier, "")
        applier = find_applier(self.plan, folder) if folder else None
        return Drift(
            self.plan.cluster.name,
            Differs.LEFT,
            _title(identity),
            has_live=True,
            dump=live.file,
            owner=find_owner(live.body, ()),
            next_sync=_pruning(live.annotations, applier, is_kept=leftover.is_kept),
            applier=applier,
            change_class=self._class_of(identity, live.body, None, folder),
            note="it was left for what names it, and nothing does any more" if leftover.is_kept else "",
        )

    def observed(self, differs: Differs, seen: Observed, identity: Identity | None = None) -> Drift:
        """Report something that differs beyond the fields that are written: of an object of ours, or of others."""
        one = self.platform.objects.get(identity) if identity else None
        labels = self.plan.cluster.spec.node_labels
        change_class, links = ChangeClass.NONE, once(written(seen.links))
        if seen.is_labelled and seen.route[0] == "spec":
            change_class = ChangeClass.TAINT
        elif seen.is_labelled:
            key, values = str(seen.route[-1]), (seen.live, seen.written)
            change_class = class_of_labels(*({} if value is ABSENT else {key: value} for value in values))
        elif one and identity:
            added = Difference(seen.route, seen.route, ABSENT, seen.live)
            change_class = self._class_of(identity, with_left(one.body, [added]), one.body)
            links = once(trace_artifact(self.plan, one.path, one.artifact).whole) if one.artifact else ()
        elif seen.subject and isinstance(seen.live, bool):  # an operand is on or off
            base = {key: seen.subject.body.get(key) for key in ("apiVersion", "kind", "metadata")}
            routes = (Difference(seen.route, seen.route, ABSENT, value) for value in (seen.live, seen.written))
            before, after = (with_left(base, [route]) for route in routes)
            change_class = self._class_of(seen.subject.identity, before, after, seen.folder)
        applier, next_sync = None, NextSync.NOTHING
        if seen.is_labelled and labels is NodeLabels.NFD:
            next_sync = NextSync.RELABELS
        elif seen.is_whole and one:
            applier = self._applier(one)
        elif seen.folder and chart_of(self.plan, seen.folder):
            applier = find_applier(self.plan, seen.folder)
        if applier:
            next_sync = NextSync.CREATES if differs is Differs.MISSING else NextSync.OVERWRITES
        return Drift(
            self.plan.cluster.name,
            differs,
            seen.title,
            path=spelled(seen.route),
            written=_plain(seen.written),
            live=_plain(seen.live),
            is_written=seen.written is not ABSENT,
            has_live=seen.live is not ABSENT,
            dump=seen.subject.file if seen.subject else "",
            sources=tuple(self._places.source(link, is_of_object=one is not None) for link in links),
            owner=find_owner(seen.subject.body, seen.route) if seen.subject else None,
            next_sync=next_sync,
            applier=applier,
            change_class=change_class,
            note=seen.note,
        )

    def _class_of(
        self, identity: Identity, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, folder: str = ""
    ) -> ChangeClass:
        """Return the class that `diff` gives a change of this object alone."""
        name, one = self.plan.cluster.name, self.platform.objects.get(identity)
        key = (one.tool or one.folder) if one else folder, identity
        old, new = ({name: {key: body} if body is not None else {}} for body in (before, after))
        found = compare_objects(old, new)
        return found[0].change_class if found else ChangeClass.NONE

    # --- Where it comes from -------------------------------------------------------------------------------------

    def _with_sources(
        self, identity: Identity, differences: Iterable[Difference]
    ) -> Iterator[tuple[Difference, tuple[Source, ...]]]:
        """Yield each with the lines that its field comes from: of a policy, or of a hand-written file."""
        one = self.platform.objects[identity]
        traced = trace_artifact(self.plan, one.path, one.artifact) if one.artifact is not None else None
        for difference in differences:
            is_by_hand = one.by_hand is not None and not _is_generated(one, difference.route)
            if traced is None or is_by_hand:
                yield difference, self._by_hand(identity, one, difference.route)
            else:
                # Those of the leaves at the route, or of the nearest around it.
                leaves = [(leaf, 0) for leaf in _leaves_at(traced.leaves, difference.route)]
                values = values_of(traced, leaves, self._places)
                found = dict.fromkeys(source for value in values for source in value.sources)
                yield difference, tuple(sorted(found, key=lambda source: source.is_of_object))

    def _by_hand(self, identity: Identity, one: Planned, route: Route) -> tuple[Source, ...]:
        assert one.by_hand is not None  # noqa: S101 - what gpuplan does not write, a Component adds
        return (self._places.source(Link(How.COPIED, self.platform.patched.place(one.by_hand, identity, *route))),)

    # --- What comes next -----------------------------------------------------------------------------------------

    def _applier(self, one: Planned) -> Applier | None:
        return None if one.tool else find_applier(self.plan, one.folder)

    @cached_property
    def _ignored(self) -> Sequence[tuple[str, str, Route]]:
        objects = self.platform.objects.items()
        applications = (one.body for identity, one in objects if identity.kind == APPLICATION and one.tool)
        return [
            (
                rule["group"],
                rule["kind"],
                tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.strip("/").split("/")),  # RFC 6901
            )
            for body in applications
            for rule in body["spec"].get("ignoreDifferences", ())
            for pointer in rule["jsonPointers"]
        ]


def _is_generated(one: Planned, route: Route) -> bool:
    """Whether Components leave a field, or the text that it is in, as gpuplan writes it."""
    made: object = one.body
    generated: object = one.artifact.body if one.artifact is not None else {}
    for part in route:
        if isinstance(made, str):
            break
        made, generated = value_at(made, (part,)), value_at(generated, (part,))
    return made == generated


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
    """Return the leaves at a route: below it, or the one that it leads into, or else the nearest beside it."""
    for length in range(len(route), -1, -1):
        found = [leaf for leaf in leaves if _is_below(leaf.path, route[:length]) and len(leaf.path) >= length]
        found = found or [leaf for leaf in leaves if leaf.path == route[: len(leaf.path)] and leaf.path]
        if found:
            return found[:_MOST_LEAVES]
    return ()


_MOST_LEAVES: Final = 8


def _pruning(annotations: Mapping[str, str], applier: Applier | None, *, is_kept: bool) -> NextSync:
    """Return the effect of a sync on an object that is written no more, by its annotations."""
    if applier is None or is_kept:
        return NextSync.NOTHING
    if applier.kind == KUSTOMIZATION:
        return NextSync.NOTHING if annotations.get(FLUX_PRUNE) == "disabled" else NextSync.PRUNES
    told = dict(option.split("=", 1) for option in annotations.get(SYNC_OPTIONS, "").split(",") if "=" in option)
    if told.get("Prune") == "false" or applier.folder in _NEVER_PRUNED:
        return NextSync.NOTHING
    return NextSync.ASKS if told.get("Prune") == "confirm" else NextSync.PRUNES


_NEVER_PRUNED: Final = (Stage.GPU_OPERATOR, Stage.SCHEDULER)
"""Folders in which Argo CD leaves objects to a person, since charts install more there
(`gpuplan.compiler.delivery.argocd`)."""
