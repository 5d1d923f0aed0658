"""Compare two platforms: what the step from one to the other changes, whom it disturbs and what applies it."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from posixpath import basename, dirname
from typing import TYPE_CHECKING, Any, Final

from gpuplan.compiler.base.diagnostics import (
    Diagnostic,
    Finding,
    GpuplanError,
    Origin,
    Severity,
    SourceFile,
    WholeFile,
    has_errors,
)
from gpuplan.compiler.base.disturbance import ChangeClass, worst
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import listing, renaming
from gpuplan.compiler.checks.wording import name_of
from gpuplan.compiler.delivery import TOOLS
from gpuplan.compiler.delivery.indexes import runs_in
from gpuplan.compiler.documents import Ignore, find_folders, read_text
from gpuplan.compiler.manifests import Identity, identity_of, is_object
from gpuplan.compiler.manifests.kustomization import FILE_NAME
from gpuplan.compiler.outtree.comparing import compare as compare_files
from gpuplan.compiler.outtree.inventory import INVENTORY
from gpuplan.compiler.pipeline.loading import OUT, OVERLAYS, Repository, load
from gpuplan.compiler.pipeline.output import Staleness, cluster_of, compare_committed, compare_written
from gpuplan.compiler.pipeline.rendering import Rendered, artifacts, render, scope
from gpuplan.compiler.planning.appliers import Applier, find_applier
from gpuplan.compiler.planning.plan import UNREAD, Plan
from gpuplan.features.changes import checks as step_checks, revisions
from gpuplan.features.changes.costs import CostChange, cost_change
from gpuplan.features.changes.evidence import Listed
from gpuplan.features.changes.model import Change, ObjectChange, Wait
from gpuplan.features.changes.objects import compare_objects, in_order
from gpuplan.features.changes.orders import BadOrder, bad_orders, concerns_nodes
from gpuplan.features.changes.rules import CLUSTER_REMOVED, NOT_JUDGED
from gpuplan.features.changes.states import ClusterState, compare as compare_states
from gpuplan.features.changes.step import Step, is_of

if TYPE_CHECKING:
    from gpuplan.compiler.pipeline import Report
    from gpuplan.features.changes.pods import Holder, Outsider, Pod

    Pods = Sequence[Pod] | None

HEAD: Final = "HEAD"
WORK_TREE: Final = "the working tree"


class SideKind(StrEnum):
    """The source of a platform."""

    WORK_TREE = "work-tree"
    REVISION = "revision"
    FOLDER = "folder"
    OUTPUT = "output"
    """A tree that `build` wrote: objects, without the policies that they were made of."""
    PROPOSAL = "proposal"
    """The files as they lie there with changes that nobody has written; ``folder`` is that of the files."""


class Side(NamedTuple):
    """One of two platforms that are compared; ``name`` is what the user calls it, ``folder`` where it is read."""

    kind: SideKind
    name: str
    folder: Path
    revision: revisions.Revision | None = None

    @classmethod
    def work_tree(cls, root: Path) -> Side:
        """The files as they lie there."""
        return cls(SideKind.WORK_TREE, WORK_TREE, root)


class Platform(NamedTuple):
    """A platform on one side: the chosen clusters that the side has, and a report unless the side is output.

    ``ignores`` are the comments in its files that excuse findings. ``staleness`` is how what was built differs from
    what its policies make, None where nothing was built.
    """

    side: Side
    clusters: tuple[str, ...]
    report: Report | None
    ignores: tuple[Ignore, ...] = ()
    staleness: Staleness | None = None

    @classmethod
    def of(cls, side: Side, repository: Repository) -> Platform:
        """Return the platform of a side with its report."""
        from gpuplan.compiler.pipeline import report_on

        report = report_on(repository)
        return cls(side, report.clusters, report, (*repository.ignores, *repository.hand_ignores))

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(item for item in self.report.diagnostics if item.is_error) if self.report else ()

    @property
    def plans(self) -> Mapping[str, Plan]:
        return {plan.cluster.name: plan for plan in self.report.plans} if self.report else {}


class Impact(NamedTuple):
    """A change, and what is known of it beside what the plans say.

    ``is_earlier`` says that its place is in the earlier policies. ``blocked`` are the names of those ``appliers`` that
    change nothing until somebody deletes an object, and ``gone`` the folders that are there no more. ``holders`` are
    the pods that hold what it takes away, ``outsiders`` what does not tolerate a taint that it brings; None where
    nobody said which pods there are.
    """

    change: Change
    is_earlier: bool
    appliers: tuple[Applier, ...]
    holders: tuple[Holder, ...] | None
    outsiders: tuple[Outsider, ...] | None = None
    blocked: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()


class Diff(Value):
    """All that differs between two platforms, sorted by cluster, worst first.

    ``skipped`` are the clusters that were not compared: they have errors on a side, and no plan. ``findings`` are about
    the step itself. ``orders`` are the orders of syncs in which something is wrong with nodes, of each cluster that was
    judged. ``costs`` are those of the clusters that cost something else, and ``waits`` the Applications that wait for
    somebody, where neither side has errors.
    """

    earlier: Platform
    later: Platform
    impacts: tuple[Impact, ...]
    objects: tuple[ObjectChange, ...]
    skipped: tuple[str, ...] = ()
    findings: tuple[Diagnostic, ...] = ()
    orders: Mapping[str, tuple[BadOrder, ...]] = field(default_factory=dict)
    costs: Mapping[str, CostChange] = field(default_factory=dict)
    waits: tuple[Wait, ...] = ()

    @property
    def worst(self) -> ChangeClass:
        return worst(self.worst_of(cluster) for cluster in self.clusters)

    @property
    def clusters(self) -> tuple[str, ...]:
        """The clusters in which something differs, if it is what they cost alone."""
        return tuple(sorted({*self.changed_clusters, *self.costs}))

    @property
    def changed_clusters(self) -> frozenset[str]:
        """Those in which something differs that is applied."""
        changed = (item.change.cluster for item in self.impacts)
        return frozenset((*changed, *(item.cluster for item in self.objects)))

    @property
    def is_comparable(self) -> bool:
        """Whether the earlier side could be planned at all."""
        earlier = self.earlier
        return earlier.report is None or not earlier.clusters or bool(earlier.report.plans)

    @property
    def nodes(self) -> int:
        """The number of nodes that changes touch at most. A node of several changes counts once."""
        return sum(self.nodes_of(cluster) for cluster in self.clusters)

    @property
    def pods(self) -> int:
        """The number of pods that changes disturb: exact with a list of pods, an upper bound without."""
        return sum(self.pods_of(cluster) for cluster in self.clusters)

    @property
    def knows_pods(self) -> bool:
        return any(impact.holders is not None for impact in self.impacts)

    def worst_of(self, cluster: str) -> ChangeClass:
        changes = [impact.change.change_class for impact in self.of(cluster)]
        return worst((*changes, *(item.change_class for item in self.objects if item.cluster == cluster)))

    @property
    def nodes_to_drain(self) -> int:
        """The number of nodes at most that have to be empty before a change."""
        return sum(self.nodes_to_drain_of(cluster) for cluster in self.clusters)

    def nodes_to_drain_of(self, cluster: str) -> int:
        return self._count_nodes(cluster, [impact for impact in self.of(cluster) if impact.change.needs_drain])

    def nodes_of(self, cluster: str) -> int:
        """Return the number of nodes that changes touch at most. Each node counts once."""
        return self._count_nodes(cluster, self.of(cluster))

    def _count_nodes(self, cluster: str, impacts: Sequence[Impact]) -> int:
        plans = [plan for side in (self.earlier, self.later) if (plan := side.plans.get(cluster))]
        pools = (pool.nodes for plan in plans for pool in plan.pools)
        there = _most((nodes.name_pattern or nodes.names, nodes.count) for nodes in pools)
        changes = [impact.change.nodes for impact in impacts if impact.change.nodes is not None]
        touched = _most((nodes.pattern or nodes.names, nodes.count) for nodes in changes)
        if changes and all(len(nodes.names) == nodes.count for nodes in changes):
            return len({name for nodes in changes for name in nodes.names})
        return min(touched, there or touched)

    def pods_of(self, cluster: str) -> int:
        """Return the number of pods that changes disturb: the known ones, or an upper bound."""
        impacts = self.of(cluster)
        known = {(pod.namespace, pod.name) for impact in impacts for pod in impact.holders or ()}
        unknown = (impact.change for impact in impacts if impact.holders is None)
        most = _most(
            ((change.nodes.pattern or change.nodes.names) if change.nodes else change.subject, change.pods)
            for change in unknown
        )
        return len(known) + most

    def has_orders(self, cluster: str) -> bool:
        """Whether several folders that nodes depend on are synced by themselves, and their order was judged."""
        changed = {folder for impact in self.of(cluster) for folder in impact.change.folders}
        changed |= {item.folder for item in self.objects if item.cluster == cluster}
        return cluster in self.orders and sum(map(concerns_nodes, changed)) > 1

    def of(self, cluster: str) -> tuple[Impact, ...]:
        return tuple(impact for impact in self.impacts if impact.change.cluster == cluster)


def choose_sides(root: Path, span: str = "", against: str = "") -> tuple[Side, Side]:
    """The earlier and the later side: of ``A..B`` or ``A...B``, or the working tree against something, or `HEAD`."""
    if span:
        parts = _SPAN.fullmatch(span)
        if parts is None:
            if not os.path.exists(span) and revisions.find_revision(root, span) is None:  # noqa: PTH110 - as typed
                near = revisions.find_near(root, span)
                if near and not revisions.way_to_fetch(root, span):
                    hint = f"type `gpuplan diff --against {near}`, or `gpuplan diff {near}..HEAD`"
                    raise GpuplanError(f"there is no revision `{span}` here", hint)
                revisions.get_revision(root, span)
            raise GpuplanError(
                f"`{span}` is no range of revisions",
                f"write `gpuplan diff {span}..HEAD`, or `gpuplan diff --against {span}` for the working tree",
            )
        first, dots, second = parts[1] or HEAD, parts[2], parts[3] or HEAD
        earlier = (
            revisions.get_merge_base(root, first, second) if dots == "..." else revisions.get_revision(root, first)
        )
        return _at(root, earlier), _at(root, revisions.get_revision(root, second))
    return (_side(root, against) if against else _at(root, revisions.get_revision(root, HEAD))), Side.work_tree(root)


def compare(
    root: Path,
    clusters: Sequence[str] = (),
    *,
    span: str = "",
    against: str = "",
    pods: Pods = None,
    nodes: Listed = None,
) -> Diff:
    """Return the differences between the platform and an earlier state, in the clusters named or in all.

    ``span`` is ``A..B`` or ``A...B`` as git reads them; ``against`` is a revision or a folder, which the files are
    compared with as they lie there. With neither they are compared with `HEAD`. ``pods`` and ``nodes`` are those of the
    one cluster.
    """
    return compare_sides(*choose_sides(root, span, against), clusters, pods, nodes)


def compare_sides(
    earlier: Side, later: Side, clusters: Sequence[str] = (), pods: Pods = None, nodes: Listed = None
) -> Diff:
    """Return the differences between two sides, in the clusters named or in all.

    ``pods`` and ``nodes`` are those of the one cluster that is compared.
    """
    before, after = read_side(earlier, clusters), read_side(later, clusters)
    _know(clusters, before, after)
    both = sorted({*before.clusters, *after.clusters})
    if pods is not None:
        refuse_several(both, "pods")
    if nodes is not None:
        refuse_several(both, "nodes")
    if earlier.kind is SideKind.OUTPUT:
        if nodes is not None:
            raise GpuplanError(
                f"`{earlier.name}` holds what `gpuplan build` wrote, and nodes are looked up in policies",
                "leave `--nodes` out, or compare with a revision or with a folder of policies",
            )
        return _compare_with_output(before, after, clusters)
    return compare_platforms(before, after, pods, nodes)


def compare_platforms(before: Platform, after: Platform, pods: Pods = None, nodes: Listed = None) -> Diff:
    """Return the differences between two platforms with policies."""
    from gpuplan.compiler.pipeline.findings import tidy

    skipped = _unplanned(before) | _unplanned(after)
    old, new = ({name: plan for name, plan in side.plans.items() if name not in skipped} for side in (before, after))
    diff = Diff(before, after, (), (), tuple(sorted(skipped)))
    if not diff.is_comparable:
        return diff
    is_broken = bool(before.errors or after.errors)
    if is_broken:
        states = [[ClusterState.of(plan, artifacts(plan)) for plan in side.values()] for side in (old, new)]
    else:
        rendered = _rendered(before), _rendered(after)
        before, after = _with_staleness(before, rendered[0].tree), _with_staleness(after, rendered[1].tree)
        states = [[ClusterState.of(item.plan, item.artifacts) for item in side.clusters] for side in rendered]
    found = compare_states(*states, nodes=nodes)
    changes = [change for change in found.changes if _is_whole(change, old) and _is_whole(change, new)]
    objects = () if is_broken else found.objects
    waiting = () if is_broken else found.waits
    impacts = tuple(_impact(change, old, new, pods, waiting) for change in changes)
    steps = _steps(before.report, after.report, pods, nodes)
    orders = {step.after.cluster.name: bad_orders(step) for step in steps}
    costs = ((name, cost_change(old.get(name), new.get(name))) for name in sorted({*old, *new}) if not is_broken)
    priced = {name: change for name, change in costs if change is not None}
    judged: tuple[Diagnostic, ...] = ()
    if before.report is not None and after.report is not None:
        judged = tidy(_judge_steps(before.report, after.report, before.side.name, steps), after.ignores)
    return Diff(before, after, impacts, tuple(objects), diff.skipped, judged, orders, priced, waiting)


def refuse_several(clusters: Sequence[str], things: str) -> None:
    """Trouble where things of one cluster are listed, and several clusters are meant."""
    if len(clusters) > 1:
        raise GpuplanError(
            f"{things} are those of one cluster, and {len(clusters)} are compared",
            f"choose with `--cluster` among {listing(clusters)}",
        )


def judge_step_from(
    root: Path, against: str, clusters: Sequence[str], later: Report, nodes: Listed = None
) -> Iterator[Diagnostic]:
    """Yield findings on the step from a revision, or from a folder with a platform, to the files of the work tree."""
    side, _ = choose_sides(root, against=against)
    if side.kind is SideKind.OUTPUT:
        raise GpuplanError(
            f"`{against}` holds what `gpuplan build` wrote, and a step is judged between policies",
            f"name a revision, or run `gpuplan diff --against {against}`",
        )
    if nodes is not None:
        refuse_several(later.clusters, "nodes")
    earlier = read_side(side, clusters).report
    if earlier is not None:
        yield from judge_step(earlier, later, against, nodes=nodes)
        if not earlier.clusters:
            yield from (is_new(plan, against) for plan in later.plans)


def _most(numbers: Iterable[tuple[object, int]]) -> int:
    """The sum of the greatest numbers that are found of each thing."""
    most: dict[object, int] = {}
    for thing, number in numbers:
        most[thing] = max(most.get(thing, 0), number)
    return sum(most.values())


# --- The step ----------------------------------------------------------------------------------------------------


def judge_step(
    earlier: Report, later: Report, name: str, pods: Pods = None, nodes: Listed = None
) -> Iterator[Diagnostic]:
    """Yield findings on the step. ``name`` is that of the earlier side.

    Clusters with errors are left out: what could not be read looks as if it were removed.
    """
    return _judge_steps(earlier, later, name, _steps(earlier, later, pods, nodes))


def _steps(earlier: Report | None, later: Report | None, pods: Pods, nodes: Listed) -> tuple[Step, ...]:
    """The steps of the clusters that both sides have, without errors."""
    if earlier is None or later is None:
        return ()
    before = {plan.cluster.name: plan for plan in earlier.plans}
    return tuple(
        Step.of(before[cluster], plan, pods, nodes)
        for plan in later.plans
        if (cluster := plan.cluster.name) in before and not any(_has_errors(side, cluster) for side in (earlier, later))
    )


def _judge_steps(earlier: Report, later: Report, name: str, steps: Sequence[Step]) -> Iterator[Diagnostic]:
    known = {step.after.cluster.name: step for step in steps}
    for plan in later.plans:
        cluster = plan.cluster.name
        if not _has_errors(later, cluster) and _has_errors(earlier, cluster):
            message = f"nobody knows what changes in cluster `{cluster}`: its policies at `{name}` have errors"
            yield _unjudged(plan, message, "compare with the last revision that was built")
        elif cluster in known:
            yield from step_checks.run(known[cluster])
    for cluster in earlier.clusters:
        if cluster not in later.clusters:
            at = Origin(WholeFile(SourceFile(f"{OVERLAYS}/{cluster}", "")))
            help_ = f"drain its nodes first, or bring {OVERLAYS}/{cluster}/ back"
            finding = Finding(at, f"cluster `{cluster}` is removed", help=help_)
            yield Diagnostic(CLUSTER_REMOVED, finding, clusters=(cluster,))


def _has_errors(report: Report, cluster: str) -> bool:
    """Whether a cluster has errors; those that name none are in files, and may be everybody's."""
    found: Iterable[Diagnostic] = (item for item in report.diagnostics if not item.clusters or cluster in item.clusters)
    return has_errors(found)


def is_new(plan: Plan, name: str) -> Diagnostic:
    """Said where all is new: a platform that has moved to another folder looks like that, too."""
    message = f"cluster `{plan.cluster.name}` is new: `{name}` does not have it"
    return _unjudged(plan, message, "if the platform has moved, compare with a folder: `--against DIR`", Severity.NOTE)


def _unjudged(plan: Plan, message: str, help_: str, severity: Severity | None = None) -> Diagnostic:
    at, label = name_of(plan.cluster.at), "not judged as a step"
    finding = Finding(at, message, label=label, help=help_, severity=severity)
    return Diagnostic(NOT_JUDGED, finding, clusters=(plan.cluster.name,))


# --- Which platforms ---------------------------------------------------------------------------------------------

_SPAN: Final = regex(r"(.*?)(\.{2,3})(.*)", re.DOTALL)


def _at(root: Path, revision: revisions.Revision) -> Side:
    return Side(SideKind.REVISION, revision.name, root, revision)


def _side(root: Path, name: str) -> Side:
    """A revision, or a folder; what could be either has to be said more clearly."""
    if name in (".", "..") or name.startswith(("./", "../", "/")) or name.endswith("/"):
        return _folder(name)
    revision = revisions.find_revision(root, name) if not name.startswith("-") and _has_git(root, name) else None
    if revision is not None and Path(name).is_dir():
        raise GpuplanError(
            f"`{name}` is both a revision and a folder", f"write `./{name}` for the folder, `{name}^0` for the revision"
        )
    if revision is not None:
        return _at(root, revision)
    return _folder(name) if Path(name).is_dir() else _at(root, revisions.get_revision(root, name))


def _has_git(root: Path, name: str) -> bool:
    """Whether to ask git at all: a folder can be compared without it."""
    try:
        return revisions.is_in_git(root)
    except GpuplanError:
        if Path(name).is_dir():
            return False
        raise


def _folder(name: str) -> Side:
    folder = Path(name)
    if not folder.is_dir():
        raise GpuplanError(f"folder `{name}` does not exist", "name one that holds `overlays/`, or a revision")
    if find_folders(folder, OVERLAYS):
        return Side(SideKind.FOLDER, name, folder)
    if (folder / INVENTORY).is_file():
        return Side(SideKind.OUTPUT, name, folder)
    raise GpuplanError(
        f"folder `{name}` is neither a platform nor what `gpuplan build` wrote",
        f"name the folder that holds `{OVERLAYS}/`, or the one that holds `{INVENTORY}`",
    )


def read_side(side: Side, clusters: Sequence[str]) -> Platform:
    """Return the platform of a side, with the clusters named or all. A side may have no platform at all."""
    if side.kind is SideKind.OUTPUT:
        built = (name for name in find_folders(side.folder, ".") if name not in TOOLS)
        return Platform(side, tuple(name for name in built if not clusters or name in clusters), None)
    if side.revision is not None:
        return Platform.of(side, revisions.read_revision(side.folder, side.revision, clusters))
    known = find_folders(side.folder, OVERLAYS)
    chosen = [name for name in clusters if name in known]
    if not known or (clusters and not chosen):
        return Platform(side, (), None)
    return Platform.of(side, load(side.folder, chosen))


def _know(clusters: Sequence[str], *sides: Platform) -> None:
    """Trouble for a cluster that neither side has, and where there is none at all."""
    known = {name for side in sides for name in side.clusters}
    read = [side.side.folder for side in sides if side.side.kind in (SideKind.WORK_TREE, SideKind.FOLDER)]
    folders = known.union(*(find_folders(folder, OVERLAYS) for folder in read))
    if not folders and not clusters:
        raise GpuplanError(
            f"no cluster found: neither side has a folder below `{OVERLAYS}/`",
            f"name the folder that holds `{OVERLAYS}/` with `--directory`",
        )
    for name in clusters:
        if name not in known:
            near = renaming(name, sorted(folders), shortest=3)
            there = f"the clusters are {listing(sorted(folders))}" if folders else f"look for its name in `{OVERLAYS}/`"
            hint = f"did you mean `{near}`?" if near else there
            raise GpuplanError(f"no cluster `{name}`: neither side has {OVERLAYS}/{name}/", hint)


def _unplanned(platform: Platform) -> set[str]:
    return set(platform.clusters) - platform.plans.keys() if platform.report else set()


# --- Plans -------------------------------------------------------------------------------------------------------

_BROKEN: Final = {
    "Pool": ("pools",),
    "Gpu": ("gpus",),
    "MigLayout": ("layouts",),
    "PriorityClass": ("priority_classes",),
    "Tenant": ("tenants", "incomplete_tenants"),
    "Workload": ("workloads",),
    "Prices": ("price_lists",),
}


def _is_whole(change: Change, plans: Mapping[str, Plan]) -> bool:
    """Whether the change is none of a plan that lacks what has errors: that would look as if it were removed."""
    plan = plans.get(change.cluster)
    if plan is None:
        return True
    broken = {name for field in _BROKEN.get(change.subject.kind, ()) for name in getattr(plan.broken, field)}
    return change.subject.name not in broken and UNREAD not in broken


def _impact(
    change: Change, before: Mapping[str, Plan], after: Mapping[str, Plan], pods: Pods, waits: Sequence[Wait]
) -> Impact:
    """A folder that is gone has no applier. ``waits`` are those of all clusters."""
    old, new = before.get(change.cluster), after.get(change.cluster)
    waiting = [wait for wait in waits if wait.cluster == change.cluster]
    gone = {wait.folder for wait in waiting if wait.left}
    synced = [folder for folder in change.folders if folder not in gone]
    appliers = tuple(found for folder in synced if new and (found := find_applier(new, folder)))
    blocked = frozenset(wait.application for wait in waiting if wait.refused)
    is_earlier = old is not None and is_of(old, change.at) and not (new and is_of(new, change.at))
    holders, outsiders = None, None
    if pods is not None:
        from gpuplan.features.changes.pods import find_holders, find_outsiders

        holders = find_holders(change, old, pods) if old is not None else ()
        outsiders = find_outsiders(change, old, pods) if old is not None else ()
    return Impact(change, is_earlier, appliers, holders, outsiders, blocked, frozenset(gone if new else change.folders))


# --- Objects -----------------------------------------------------------------------------------------------------

_Body = Mapping[str, Any]
_Objects = dict[str, dict[tuple[str, Identity], _Body]]
"""Objects by cluster, and by the folder in it that applies them."""


def _rendered(platform: Platform, *, is_whole: bool = False) -> Rendered:
    plans = platform.report.plans if platform.report else ()
    return render(plans, platform.side.folder.resolve(), OUT, None, is_whole=is_whole)


def _with_staleness(platform: Platform, tree: Mapping[str, bytes]) -> Platform:
    """Look at what was built on a side, which is what is applied."""
    side = platform.side
    if side.kind is SideKind.PROPOSAL:
        return platform
    if side.revision is None:
        return platform._replace(staleness=compare_written(side.folder, OUT, tree, scope(platform.clusters)))
    blobs = revisions.find_written(side.folder, side.revision, OUT)
    return platform if blobs is None else platform._replace(staleness=compare_committed(blobs, tree))


def _compare_with_output(before: Platform, after: Platform, clusters: Sequence[str]) -> Diff:
    if after.errors:
        return Diff(before, after, (), (), tuple(sorted({*before.clusters, *after.clusters})))
    rendered = _rendered(after, is_whole=not clusters)
    found = compare_files(before.side.folder, rendered.tree, scope=scope(clusters) or None)
    later = {item.path: found.desired[item.path] for item in found.changes if item.path in found.desired}
    differing = [path for path in sorted({*found.found, *later}) if found.found.get(path) != later.get(path)]
    objects = compare_objects(_objects(found.found, differing), _objects(later, differing))
    plans = after.report.plans if after.report else ()
    return Diff(before, after, (), in_order((*objects, *_left_out(found.found, rendered.tree, plans))))


def _left_out(before: Mapping[str, bytes], after: Mapping[str, bytes], plans: Iterable[Plan]) -> Iterator[ObjectChange]:
    """The clusters that a list of several leaves out though they are there: who applies it applies them no more.

    A cluster whose own Argo CD syncs it was in the list of another one for nothing: no Argo CD could apply both.
    """
    for path in before:
        folder, name = dirname(path), basename(path)
        if name != FILE_NAME or cluster_of(path) or folder.partition("/")[0] not in TOOLS:
            continue
        gone = {*_listed(before[path])} - {*_listed(after.get(path, b""))}
        for plan in plans:
            if plan.cluster.name in gone:
                found = ChangeClass.METADATA if runs_in(plan) else ChangeClass.DESTRUCTIVE
                yield ObjectChange(plan.cluster.name, found, folder, Identity("", "File", "", name), "changed")


def _listed(data: bytes) -> Iterator[str]:
    """The folders that a kustomization applies, by their own names."""
    for document in read_text(FILE_NAME, data.decode(errors="replace"), strict=False)[0]:
        resources = document.data.get("resources") if isinstance(document.data, dict) else None
        yield from (basename(str(item)) for item in resources or ())


def _objects(tree: Mapping[str, bytes], paths: Iterable[str]) -> _Objects:
    """The objects in these files of a tree; lists of what a folder applies say nothing that those do not."""
    found: _Objects = defaultdict(dict)
    for path in paths:
        if path in tree and basename(path) != FILE_NAME:
            first, _, rest = path.partition("/")
            folder = first if first in TOOLS else dirname(rest)
            for identity, body in _bodies(path, tree[path]):
                found[cluster_of(path)][folder, identity] = body
    return found


def _bodies(path: str, data: bytes) -> Iterator[tuple[Identity, _Body]]:
    """The objects of a file; one that holds none, such as Helm values, stands for itself."""
    text = data.decode(errors="replace")
    documents = read_text(path, text, strict=False)[0] if path.endswith((".yaml", ".yml")) else ()
    bodies = [document.data for document in documents if isinstance(document.data, dict)]
    if not bodies or not all(map(is_object, bodies)):
        yield Identity("", "File", "", basename(path)), {"data": text}
        return
    yield from ((identity_of(body), body) for body in bodies)
