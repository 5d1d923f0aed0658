"""Compare what runs with what the policies build: where each difference comes from, and what the next sync does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Final

from gpuplan.adoption import Dump, name_of, read_dump
from gpuplan.adoption.drift import (
    ABSENT,
    Difference,
    Differing,
    Leftover,
    NodeDifference,
    Owner,
    Unjudged,
    as_found,
    compare,
    compare_nodes,
    find_owner,
    leftovers,
    opponents,
)
from gpuplan.changes.kinds import locked_fields
from gpuplan.changes.node_rules import class_of_labels
from gpuplan.changes.objects import Objects, compare_objects
from gpuplan.delivery import TOOLS
from gpuplan.delivery.appliers import Applier, find_applier
from gpuplan.diagnostics import Diagnostic, GpuplanError
from gpuplan.diagnostics import Path as Route
from gpuplan.disturbance import ChangeClass
from gpuplan.documents import find_folders
from gpuplan.manifests import Gvk, Identity, Manifest
from gpuplan.manifests.shapes import shape_of
from gpuplan.pipeline import Report, report_on
from gpuplan.pipeline.findings import tidy
from gpuplan.pipeline.loading import OUT, OVERLAYS, load
from gpuplan.pipeline.tracing.engine import Leaf, Traced, Written, trace_artifact, written_for
from gpuplan.pipeline.tracing.forward import Places, values_of
from gpuplan.pipeline.tracing.model import Source
from gpuplan.pipeline.tracing.routes import spelled
from gpuplan.planning.linking import once, written
from gpuplan.planning.plan import Plan, Stage
from gpuplan.planning.sync_names import SYNC_OPTIONS, folder_name, root_name, sync_name
from gpuplan.policy.models import NodeLabels
from gpuplan.values import NamedTuple, Value


class Differs(StrEnum):
    """In which way what runs is not what is written."""

    FIELD = "differs"
    """A field has another value, or none."""
    MISSING = "missing"
    """The cluster does not have the object."""
    LEFT = "left"
    """The cluster has an object that is written no more."""
    NODE = "node"
    """A node is not as its pool says."""


class NextSync(StrEnum):
    """What the next sync does about it."""

    OVERWRITES = "overwrites"
    CREATES = "creates"
    FAILS = "fails"
    """The field cannot be changed: somebody has to delete the object, so that it is created again."""
    PRUNES = "prunes"
    ASKS = "asks"
    """It prunes the object when a person has agreed."""
    RELABELS = "relabels"
    """What labels the nodes sets it again, without a sync."""
    LEAVES = "leaves"
    """It leaves it alone, because it is told to."""
    NOTHING = "nothing"
    """Nothing syncs it."""


class Drift(NamedTuple):
    """One thing that runs otherwise than the policies say.

    ``path`` is that of the field, empty where it is the whole object, and ``line`` the first that differs in a text of
    several lines. A value is None where there is none; ``has_live`` and ``is_written`` tell that from a null. ``file``
    is the one below `out/` that says it, ``sources`` are the lines of the policies that it comes from, and ``dump`` is
    the file in which the cluster shows it. ``change_class`` is that of a change from what runs to what is written.
    """

    cluster: str
    differs: Differs
    title: str
    path: str
    line: int
    written: object
    live: object
    is_written: bool
    has_live: bool
    file: str
    dump: str
    sources: tuple[Source, ...]
    owner: Owner | None
    next_sync: NextSync
    applier: Applier | None
    change_class: ChangeClass
    note: str = ""


class Drifting(Value):
    """What runs beside what the policies build: ``drifts``, worst first.

    ``left_alone`` are those that whoever syncs is told to leave, and ``unjudged`` what the dump does not show. Where
    the policies have errors nothing was compared. ``found`` are findings on the dump.
    """

    report: Report
    cluster: str
    drifts: tuple[Drift, ...] = ()
    left_alone: tuple[Drift, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()
    compared: int = 0
    """How many objects of the dump were compared."""

    @property
    def is_comparable(self) -> bool:
        return self.report.is_valid


def drift(dumps: Mapping[str, bytes], root: str | PathLike[str] = ".", cluster: str = "") -> Drifting:
    """What runs, as dumps show it, contents by name, beside what the policies at ``root`` build for a cluster.

    Without a ``cluster`` it is the only one, or the one that the dumps say.
    """
    root = Path(root)
    dump, found = read_dump(dumps)
    name = _cluster(root, cluster, dump)
    repository = load(root, (name,))
    report = report_on(repository)
    if not report.is_valid or not report.plans:
        return Drifting(report, name)
    [plan] = report.plans
    compared = compare_with(plan, dump)
    report = Report(tidy((*found, *compared.opponents), (), needed=()), report.plans, (name,), len(dumps))
    return Drifting(report, name, compared.drifts, compared.left_alone, compared.unjudged, compared.number)


def _cluster(root: Path, wish: str, dump: Dump) -> str:
    known = find_folders(root, OVERLAYS)
    name = wish or (known[0] if len(known) == 1 else name_of(dump))
    if not name:
        raise GpuplanError("the dump does not say which cluster it is of", "name it: `gpuplan drift -c NAME`")
    return name


class Comparison(NamedTuple):
    """What a dump shows of a cluster beside its plan; ``number`` is how many objects were compared.

    ``opponents`` are objects of others that act against the policies.
    """

    drifts: tuple[Drift, ...]
    left_alone: tuple[Drift, ...]
    unjudged: tuple[Unjudged, ...]
    opponents: tuple[Diagnostic, ...]
    number: int


def compare_with(plan: Plan, dump: Dump) -> Comparison:
    """What runs of a plan that was made in memory."""
    cluster = _Cluster(plan)
    compared = compare(cluster.judged(dump), dump, plan.cluster.spec.kubernetes)
    ours = {*cluster.bodies, *cluster.hooks}
    found = [drift for item in compared.differing for drift in cluster.differing(item)]
    found += map(cluster.missing, compared.missing)
    found += map(cluster.left, leftovers(dump, ours, cluster.folders, cluster.kinds))
    found += map(cluster.node, compare_nodes(plan, dump))
    found.sort(key=lambda drift: (-drift.change_class.rank, drift.title, drift.path))
    is_left = [drift.next_sync is NextSync.LEAVES for drift in found]
    told, left = (tuple(d for d, left in zip(found, is_left, strict=True) if left is side) for side in (False, True))
    foreign = tuple(opponents(plan, dump, ours))
    return Comparison(told, left, compared.unjudged, foreign, len(compared.found))


class _Cluster:
    """What is written of a cluster, with where it comes from and who applies it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._places = Places()
        self._written: dict[Identity, Written] = {}
        self.hooks: set[Identity] = set()
        for item in written_for(plan):
            if isinstance(item.artifact, Manifest):
                identity = item.artifact.identity
                if item.artifact.hook is None:
                    self._written.setdefault(identity, item)
                else:
                    self.hooks.add(identity)

    @cached_property
    def bodies(self) -> Mapping[Identity, Mapping[str, Any]]:
        return {identity: self._manifest(identity).body for identity in self._written}

    def _manifest(self, identity: Identity) -> Manifest:
        artifact = self._written[identity].artifact
        assert isinstance(artifact, Manifest)  # noqa: S101 - no other is kept
        return artifact

    def judged(self, dump: Dump) -> Mapping[Identity, Mapping[str, Any]]:
        """What the dump can tell of: what syncs a cluster may be in another one."""
        is_synced_here = any(item.identity in self._written for item in dump.objects if _is_of_tool(item.identity))
        return {
            identity: body for identity, body in self.bodies.items() if is_synced_here or not self._tool_of(identity)
        }

    def _tool_of(self, identity: Identity) -> str:
        first = self._written[identity].path.partition("/")[0]
        return first if first in TOOLS else ""

    @cached_property
    def kinds(self) -> frozenset[tuple[str, str]]:
        """The kinds of what is written for the cluster itself."""
        return frozenset((identity.group, identity.kind) for identity in self._written if not self._tool_of(identity))

    @cached_property
    def folders(self) -> Mapping[str, str]:
        """The folders that something syncs, by the name of what does."""
        cluster, named = self.plan.cluster.name, folder_name if self.plan.cluster.flux else sync_name
        own = {self._manifest(identity).folder for identity in self._written if not self._tool_of(identity)}
        stages = {stage.value for stage in Stage}
        return {named(cluster, folder): folder for folder in own | stages} | {root_name(cluster): ""}

    # --- Differences ---------------------------------------------------------------------------------------------

    def differing(self, item: Differing) -> Iterator[Drift]:
        """Each field of an object that is not as it is written."""
        manifest = self._manifest(item.identity)
        found = as_found(manifest.body, item.item.body, shape_of(_gvk(manifest), self.plan.cluster.spec.kubernetes))
        change_class = self._class_of(item.identity, found, manifest.body)
        locked = locked_fields(item.identity, found, manifest.body)
        traced = trace_artifact(self.plan, self._written[item.identity].path, manifest)
        for one in item.differences:
            is_fixed = any(_is_below(one.route, route) for route in locked)
            next_sync = NextSync.FAILS if is_fixed else NextSync.OVERWRITES
            yield Drift(
                self.plan.cluster.name,
                Differs.FIELD,
                _title(item.identity),
                spelled(one.route),
                one.line,
                _plain(one.written),
                _plain(one.live),
                one.written is not ABSENT,
                one.live is not ABSENT,
                f"{OUT}/{traced.path}",
                item.item.file,
                self._sources(traced, one.route),
                find_owner(item.item.body, one.live_route),
                self._next(item.identity, next_sync, one),
                self._applier(item.identity),
                change_class,
            )

    def missing(self, identity: Identity) -> Drift:
        """An object that the cluster does not have."""
        manifest = self._manifest(identity)
        traced = trace_artifact(self.plan, self._written[identity].path, manifest)
        sources = tuple(self._places.source(link, is_of_object=True) for link in traced.whole)
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
            file=f"{OUT}/{traced.path}",
            dump="",
            sources=sources,
            owner=None,
            next_sync=self._next(identity, NextSync.CREATES, None),
            applier=self._applier(identity),
            change_class=self._class_of(identity, None, manifest.body),
        )

    def left(self, item: Leftover) -> Drift:
        """An object that is written no more."""
        live, identity = item.item, item.item.identity
        folder = self.folders.get(item.applier, "")
        applier = find_applier(self.plan, folder) if folder else None
        note = "it was left for what names it, and nothing does any more" if item.is_kept else ""
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
            next_sync=_pruning(live.annotations.get(SYNC_OPTIONS, ""), applier, is_kept=item.is_kept),
            applier=applier,
            change_class=self._class_of(identity, live.body, None, folder),
            note=note,
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
        name = self.plan.cluster.name
        if identity in self._written:
            folder = self._tool_of(identity) or self._manifest(identity).folder
        sides: list[Mapping[str, Objects]] = [
            {name: {(folder, identity): body}} if body is not None else {name: {}} for body in (before, after)
        ]
        found = compare_objects(*sides)
        return found[0].change_class if found else ChangeClass.NONE

    # --- Where it comes from -------------------------------------------------------------------------------------

    def _sources(self, traced: Traced, route: Route) -> tuple[Source, ...]:
        """The lines that a field comes from: those of its leaves, or of the nearest around it."""
        leaves = _leaves_at(traced.leaves, route)
        values = values_of(traced, [(leaf, 0) for leaf in leaves], self._places)
        found = dict.fromkeys(source for value in values for source in value.sources)
        return tuple(sorted(found, key=lambda source: source.is_of_object))

    # --- What comes next -----------------------------------------------------------------------------------------

    def _applier(self, identity: Identity) -> Applier | None:
        return None if self._tool_of(identity) else find_applier(self.plan, self._manifest(identity).folder)

    def _next(self, identity: Identity, otherwise: NextSync, one: Difference | None) -> NextSync:
        """What a sync does; nothing where nobody syncs the folder."""
        if one is not None and self._is_ignored(identity, one.route):
            return NextSync.LEAVES
        if self._tool_of(identity):
            return otherwise
        return otherwise if self._applier(identity) else NextSync.NOTHING

    def _is_ignored(self, identity: Identity, route: Route) -> bool:
        """Whether the Application that syncs an object of Argo CD is told to leave a field of it alone."""
        if not self._tool_of(identity):
            return False
        return any(
            group == identity.group and kind in ("*", identity.kind) and _is_below(route, pointer)
            for group, kind, pointer in self._ignored
        )

    @cached_property
    def _ignored(self) -> Sequence[tuple[str, str, Route]]:
        applications = (body for identity, body in self.bodies.items() if identity.kind == "Application")
        return [
            (rule["group"], rule["kind"], tuple(map(_unescaped, pointer.strip("/").split("/"))))
            for body in applications
            for rule in body["spec"].get("ignoreDifferences", ())
            for pointer in rule["jsonPointers"]
        ]


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


_SYNCING: Final = ("argoproj.io", "kustomize.toolkit.fluxcd.io")


def _is_of_tool(identity: Identity) -> bool:
    return identity.group in _SYNCING


def _gvk(manifest: Manifest) -> Gvk:
    return manifest.gvk


def _title(identity: Identity) -> str:
    return str(identity._replace(group=""))


def _plain(value: object) -> object:
    return None if value is ABSENT else value


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


def _pruning(options: str, applier: Applier | None, *, is_kept: bool) -> NextSync:
    """What becomes of an object that is written no more, by what it says itself."""
    told = dict(option.split("=", 1) for option in options.split(",") if "=" in option)
    if applier is None:
        return NextSync.NOTHING
    if is_kept or told.get("Prune") == "false" or applier.folder in _NEVER_PRUNED:
        return NextSync.NOTHING
    return NextSync.ASKS if told.get("Prune") == "confirm" else NextSync.PRUNES


_NEVER_PRUNED: Final = (Stage.GPU_OPERATOR, Stage.SCHEDULER)
"""What Argo CD leaves to a person there, among what their charts install (`gpuplan.delivery.argocd`)."""
