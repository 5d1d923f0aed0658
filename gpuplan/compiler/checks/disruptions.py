"""Checks on when and how a pool's nodes are changed: windows, rollouts, guards (GPU161-163, 657, 660, 730-749)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity
from gpuplan.compiler.base.wording import misspelling
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import name_of
from gpuplan.compiler.planning.appliers import find_applier_to_nodes
from gpuplan.compiler.planning.node_patterns import NodePattern, parse
from gpuplan.compiler.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    DynamicMig,
    Plan,
    Pool,
    Rollout,
    Unit,
    with_places,
)
from gpuplan.compiler.planning.pools import LONGEST_ROLLOUT_NAME, clashes, is_alike
from gpuplan.compiler.planning.projects import seconds
from gpuplan.compiler.policy.models import Guard, NodeLabels, Window
from gpuplan.compiler.policy.schedules import Fault, find_schedule_fault

# --- Durations ---------------------------------------------------------------------------------------------------


def find_duration_fault(duration: str) -> Fault | None:
    """Return why no window has this duration, or None."""
    return None if seconds(duration) else Fault("the window never opens", "write hours, such as `4h`")


# --- Time zones --------------------------------------------------------------------------------------------------


@cache
def _zones() -> frozenset[str]:
    """Return the names of the IANA time zone database, release 2026f: the same on any machine."""
    return frozenset(Path(__file__).with_name("formats").joinpath("time-zones.txt").read_text("ascii").split())


def is_time_zone(name: str) -> bool:
    """Whether a name is that of a time zone."""
    return name in _zones()


def find_time_zone(name: str) -> str | None:
    """Return the time zone that a misspelt name may stand for, or None: `+02:00` may be many."""
    bare = re.sub(r"[^a-z/]+", "", name.lower())
    same = [zone for zone in _zones() if re.sub(r"[^a-z/]+", "", zone.lower()) == bare]
    known = _CITIES.get(bare.rpartition("/")[2])
    in_area = [zone for zone in _zones() if zone.lower().endswith(f"/{bare.rpartition('/')[2]}")]
    found = same or ([known] if known else sorted(in_area))
    return (
        found[0]
        if found and bare and (len(found) == 1 or same)
        else misspelling(name, _zones())
        if "/" in name
        else None
    )


_CITIES: Final = {
    **dict.fromkeys(("munich", "frankfurt", "hamburg", "cologne", "stuttgart", "dresden"), "Europe/Berlin"),
    **dict.fromkeys(("zuerich", "geneva", "basel", "bern"), "Europe/Zurich"),
    **dict.fromkeys(("barcelona", "milan", "lyon"), "Europe/Paris"),
    **dict.fromkeys(("mumbai", "bangalore", "bengaluru", "delhi", "newdelhi", "hyderabad"), "Asia/Kolkata"),
    **dict.fromkeys(("sanfrancisco", "seattle", "paloalto", "portland", "sanjose"), "America/Los_Angeles"),
    **dict.fromkeys(("boston", "washington", "atlanta", "miami", "ashburn"), "America/New_York"),
    **dict.fromkeys(("austin", "dallas", "houston"), "America/Chicago"),
    **dict.fromkeys(("beijing", "shenzhen", "hangzhou"), "Asia/Shanghai"),
    **dict.fromkeys(("osaka", "kyoto"), "Asia/Tokyo"),
    **dict.fromkeys(("canberra",), "Australia/Sydney"),
}
"""The zones of cities that have none of their own."""


@check("GPU161", "max-unavailable-over-count", Severity.WARNING)
def max_unavailable_over_count(plan: Plan) -> Iterator[Finding]:
    """A pool may have more nodes disturbed at once than it has.

    ## Why
    `maxUnavailable` keeps a part of the pool at work while a change goes through. A number above `count` keeps nothing,
    and most likely it was written for a larger pool.

    ## Instead
    Write how many nodes may be missing at once, at most `count`.
    """
    for pool in plan.pools:
        if pool.spec.disruption.max_unavailable > pool.nodes.count:
            yield Finding(
                pool.at / "disruption" / "maxUnavailable",
                f"more nodes of pool `{pool.name}` may be disturbed than it has",
                label=f"more than {pool.nodes.count}",
                related=(Label(pool.nodes.at / "count", "nodes of the pool"),),
                help=f"write a number from 1 to {pool.nodes.count}" if pool.nodes.count > 1 else "write 1",
            )


@check("GPU162", "invalid-window-schedule")
def invalid_window_schedule(plan: Plan) -> Iterator[Finding]:
    """A maintenance window's schedule is not a cron expression, or the window never opens.

    ## Why
    Argo CD refuses a project with a schedule that it cannot parse. A window that never opens, on 31 February or for no
    time at all, keeps every disruptive change waiting. Its parser takes five fields, counts Sunday as 0 and never as 7,
    and lets no range run over the end: Friday to Monday is `5-6,0-1`.

    ## Instead
    Write minute, hour, day of month, month and day of week: `0 2 * * 6` is Saturday at 02:00.
    """
    for pool, at, window in _windows(plan):
        schedule, duration = find_schedule_fault(window.schedule), find_duration_fault(window.duration)
        for field, fault in (("schedule", schedule), ("duration", duration)):
            if fault is not None:
                yield Finding(
                    at / field,
                    f"window of pool `{pool.name}` has no valid {field}: {fault.reason}",
                    label=f"not a {field}",
                    help=fault.instead,
                )


@check("GPU163", "unknown-time-zone")
def unknown_time_zone(plan: Plan) -> Iterator[Finding]:
    """A maintenance window's time zone is not a name of the IANA time zone database.

    ## Why
    Argo CD takes UTC instead of a time zone that it does not know, and says so only in its log: nodes would be
    disturbed hours before or after the window. Abbreviations such as `CEST`,
    offsets such as `+02:00` and most cities, such as Munich, are not names.

    ## Instead
    Write an area and a city, such as `Europe/Berlin`, or `UTC`.
    """
    for _, at, window in _windows(plan):
        if not is_time_zone(window.time_zone):
            zone = find_time_zone(window.time_zone)
            yield Finding(
                at / "timeZone",
                f"`{window.time_zone}` is not a time zone",
                label="not in the IANA database",
                notes=("Argo CD would take UTC instead and only log it",),
                help=f"write `{zone}`" if zone else "write an area and a city: `Europe/Berlin`; or `UTC`",
            )


def _windows(plan: Plan) -> Iterator[tuple[Pool, Origin, Window]]:
    for pool in plan.pools:
        yield from ((pool, *place) for place in with_places(pool.at / "disruption" / "windows", pool.windows))


@check("GPU730", "moved-node-not-in-pool")
def moved_node_not_in_pool(plan: Plan) -> Iterator[Finding]:
    """A rollout names a node that is not one of its pool's.

    ## Why
    The node would get labels of the pool, and be repartitioned, though it belongs to another pool or to none. And the
    node that was meant keeps the old sharing, while its units are counted as moved.

    ## Instead
    Use a name that the pool lists, or that its pattern matches.
    """
    for pool, rollout in _rollouts(plan):
        pattern = None if pool.nodes.name_pattern is None else parse(pool.nodes.name_pattern)
        for index, name in enumerate(rollout.nodes):
            is_listed = name in pool.nodes.names
            is_matched = not pool.nodes.names and (not isinstance(pattern, NodePattern) or pattern.matches(name))
            if not is_listed and not is_matched:
                close = misspelling(name, pool.nodes.names)
                yield Finding(
                    rollout.at / "nodes" / index,
                    f"node `{name}` is none of pool `{pool.name}`",
                    label=f"did you mean `{close}`" if close else "not a node of the pool",
                    related=(
                        Label((pool.nodes.at / "names").key, "its nodes")
                        if pool.nodes.names
                        else Label(pool.nodes.at / "namePattern", "does not match it"),
                    ),
                    help=f"write `{close}`" if close else "name a node of the pool",
                )


@check("GPU731", "more-nodes-moved-than-counted")
def more_nodes_moved_than_counted(plan: Plan) -> Iterator[Finding]:
    """A rollout names more nodes than its pool counts.

    ## Why
    Capacity is counted with `nodes.count`: units of the other nodes would be promised although there are none left.

    ## Instead
    Correct `nodes.count`, or the names.
    """
    for pool, rollout in _rollouts(plan):
        moved = len(rollout.moved.nodes.names)
        if moved > pool.nodes.count:
            yield Finding(
                (rollout.at / "nodes").key,
                f"the rollout of pool `{pool.name}` names {moved} nodes, and the pool counts {pool.nodes.count}",
                label=f"{moved} named",
                related=(Label(pool.nodes.at / "count", f"{pool.nodes.count} counted"),),
                help=f"write `count: {moved}`, or correct the names",
            )


@check("GPU732", "rollout-mixes-units", ignorable=False)
def rollout_mixes_units(plan: Plan) -> Iterator[Finding]:
    """A pool would hand out different units under one name while a rollout is under way.

    ## Why
    Pods and quotas know units by their resource. While some nodes publish whole GPUs as `nvidia.com/gpu` and others
    shares or, under the strategy `single`, MIG devices, a pod that asks for one gets either, and a quota counts both as
    one. So it is with shares of two sizes, which are all `nvidia.com/gpu.shared`.

    ## Instead
    Go to units with names of their own: strategy `mixed`, shares with `rename: true`. What cannot have one, such as
    another number of `replicas`, is no matter of nodes: change `sharing` itself, once pods that hold shares may end. Or
    make a second pool, and move nodes from one to the other.
    """
    for pool, rollout in _rollouts(plan):
        for left, moved in clashes(rollout.left.units, rollout.moved.units):
            name = moved.asked_as or moved.name
            yield Finding(
                rollout.moved.sharing.at.key,
                f"`{name}` of pool `{pool.name}` would be two things while the rollout is under way",
                label=unit_text(moved),
                related=(Label(pool.sharing.at.key, unit_text(left)),),
                notes=("pods ask for it, and quotas count it, by that name alone",),
                help="publish units by names of their own (`strategy: mixed`, `rename: true`), or make a second pool",
            )
            break


def unit_text(unit: Unit) -> str:
    """Return a unit in words, with what tells it from another unit of its name."""
    return f"`{unit.name}`" if unit.memory_mib is None else f"`{unit.name}` of {unit.memory_mib} MiB"


@check("GPU733", "rollout-changes-nothing", Severity.WARNING)
def rollout_changes_nothing(plan: Plan) -> Iterator[Finding]:
    """A rollout leads to the sharing that the pool has already.

    ## Why
    No node would change. Most likely `sharing` was changed before the last node had been moved, which moves all that
    are left at once, or `rollout` was forgotten when it had come to its end.

    ## Instead
    Remove `rollout` when all nodes have been moved; until then leave `sharing` as it was.
    """
    for pool, rollout in _rollouts(plan):
        if is_alike(pool.sharing, rollout.moved.sharing):
            yield Finding(
                (rollout.at / "sharing").key,
                f"the rollout of pool `{pool.name}` leads to what the pool has",
                label="the same sharing",
                related=(Label(pool.sharing.at.key, "shared like this already"),),
                help="remove `rollout`, or write the sharing that it leads to",
            )


@check("GPU734", "pool-name-too-long-for-key")
def pool_name_too_long_for_key(plan: Plan) -> Iterator[Finding]:
    """A pool's name leaves no room for the key that its nodes name.

    ## Why
    Nodes that are shared otherwise than the pool's own name says have a key of their own in the device plugin's file:
    the name, a dot and seven hex digits, or `.rollout`. So it is during a rollout, and afterwards as long as a
    `Retained` says what the name meant before; with `devicePluginConfig: fixed` all nodes have such a key. Nodes have
    the key as the value of the label `nvidia.com/device-plugin.config`, which has at most 63 characters.

    ## Instead
    Give the pool a shorter name before its sharing changes. That is a change of labels on all of its nodes, and of its
    queues.
    """
    for pool in plan.pools:
        keys = [part.labels[DEVICE_PLUGIN_CONFIG_LABEL] for part in pool.parts]
        own = pool.name, pool.keys.own
        long = next((key for key in keys if key not in own and len(pool.name) > LONGEST_ROLLOUT_NAME), None)
        if long is not None:
            yield Finding(
                name_of(pool.at),
                f"the name of pool `{pool.name}` is too long to "
                + ("have its content's hash in a label" if pool.keys.by_content else "share its GPUs in two ways"),
                label=f"{len(pool.name)} characters",
                notes=(
                    f"with `{long.removeprefix(pool.name)}` at its end it must be a label's value, of 63 characters",
                ),
                help=f"choose a name of at most {LONGEST_ROLLOUT_NAME} characters",
            )


@check("GPU735", "node-moved-twice", Severity.WARNING)
def node_moved_twice(plan: Plan) -> Iterator[Finding]:
    """A rollout names a node twice.

    ## Why
    It is one node and counts once. Most likely another name was meant, whose node stays as it was.

    ## Instead
    Remove the name, or write the one that was meant.
    """
    for pool, rollout in _rollouts(plan):
        first: dict[str, int] = {}
        for index, name in enumerate(rollout.nodes):
            if first.setdefault(name, index) != index:
                yield Finding(
                    rollout.at / "nodes" / index,
                    f"the rollout of pool `{pool.name}` names node `{name}` twice",
                    label="named before",
                    related=(Label(rollout.at / "nodes" / first[name], "the first time"),),
                    help="remove it, or write the name that was meant",
                )


def _rollouts(plan: Plan) -> Iterator[tuple[Pool, Rollout]]:
    return ((pool, pool.rollout) for pool in plan.pools if pool.rollout)


def _others_label_nodes(plan: Plan) -> tuple[Label, ...]:
    """Return the place that says that others label the nodes, if they do."""
    cluster = plan.cluster
    is_external = cluster.spec.node_labels is NodeLabels.EXTERNAL
    return (Label(cluster.at / "nodeLabels", "`external`"),) if is_external else ()


@check("GPU657", "windows-nobody-keeps", Severity.WARNING)
def windows_nobody_keeps(plan: Plan) -> Iterator[Finding]:
    """A pool has windows for disruptions, and no tool applies changes of its nodes.

    ## Why
    With `argocd` the windows become sync windows of the pool's Application. Without a tool gpuplan writes folders, and
    whoever applies them changes the nodes' labels at that very moment; nodes are repartitioned at once. With
    `nodeLabels: external` gpuplan writes a table, and whoever labels the nodes chooses the time.

    ## Instead
    Remove the windows in the cluster's overlay with `disruption: {windows: []}`, and keep them by hand. If no tool
    syncs the cluster, say who does: `argocd` in its `Cluster` document. If others label its nodes, write
    `nodeLabels: nfd` or `node`.
    """
    others = _others_label_nodes(plan)
    for pool, at in _windowed(plan):
        if find_applier_to_nodes(plan, pool) is None:
            yield Finding(
                at,
                f"nothing keeps the windows of pool `{pool.name}`",
                label="others label its nodes" if others else "no tool syncs the cluster",
                related=others,
                help="write `windows: []` in the cluster's overlay, and label the nodes within them by hand"
                if others
                else "add `argocd: {repoURL: ...}` to the cluster, or apply the pool's folder within them by hand",
            )


@check("GPU660", "windows-beyond-flux", Severity.WARNING)
def windows_beyond_flux(plan: Plan) -> Iterator[Finding]:
    """A pool's windows are not kept: Flux knows none.

    ## Why
    Argo CD has sync windows, Flux applies a change as soon as it sees it. A pool with `approval: automatic` would be
    repartitioned at any time of the day, with pods on its nodes. With `approval: manual` nothing changes until a person
    resumes the pool's Kustomization, and it is for that person to look at the clock; the finding is then a note.

    ## Instead
    Write `approval: manual`, and resume the Kustomization within the window. Where a change must come by itself, have
    something else resume and suspend it at these times, such as a CronJob, and ignore the finding.
    """
    for pool, at in _windowed(plan):
        applier = find_applier_to_nodes(plan, pool)
        if plan.cluster.flux is not None and applier is not None and not applier.keeps_windows:
            yield Finding(
                at,
                f"Flux does not keep the windows of pool `{pool.name}`"
                + (": a change is applied at any time" if applier.is_automatic else ""),
                label="changes come at any time" if applier.is_automatic else "for whoever resumes the Kustomization",
                related=(Label(plan.cluster.flux.at.key, "Flux syncs the cluster"),),
                help="write `approval: manual`" if applier.is_automatic else "resume it within the window",
                severity=None if applier.is_automatic else Severity.NOTE,
            )


def _windowed(plan: Plan) -> Iterator[tuple[Pool, Origin]]:
    """Yield the pools that have windows, with the place of these."""
    return ((pool, (pool.at / "disruption" / "windows").key) for pool in plan.pools if pool.windows)


@check("GPU740", "guard-never-runs", Severity.WARNING)
def guard_never_runs(plan: Plan) -> Iterator[Finding]:
    """A pool has a guard where nothing would run it.

    ## Why
    The guard's Jobs are hooks: Argo CD runs them before and after it syncs the pool's folder. Flux has no hooks, and
    whoever applies folders by hand runs none. With `nodeLabels: external` the folder does not change nodes at all, for
    others do. The Jobs are not written then, and nothing keeps GPUs that pods hold from being repartitioned.

    ## Instead
    Remove the guard in this cluster's overlay with `disruption: {guard: null}`, and drain nodes before a change. Or
    have Argo CD sync the cluster, and write `nodeLabels: nfd` or `node`.
    """
    flux, others = plan.cluster.flux, _others_label_nodes(plan)
    cause = "others label its nodes" if others else "only Argo CD runs Jobs before and after a sync"
    by_flux = (Label(flux.at.key, "synced by Flux"),) if flux else ()
    for pool, at, _ in _guards(plan):
        applier = find_applier_to_nodes(plan, pool)
        if applier is None or not applier.runs_hooks:
            yield Finding(
                at.key,
                f"nothing runs the guard of pool `{pool.name}`: {cause}",
                label="never runs",
                related=others or by_flux,
                help="write `guard: null` in the cluster's overlay, and drain nodes before their labels change",
            )


@check("GPU741", "guard-has-nothing-to-guard", Severity.WARNING)
def guard_has_nothing_to_guard(plan: Plan) -> Iterator[Finding]:
    """A pool has a guard, and no change of it repartitions GPUs.

    ## Why
    The guard reads the label `nvidia.com/mig.config`. Nodes whose GPU model has no MIG do not have it: a change of
    how they are shared restarts the device plugin, and pods that hold GPUs go on. Under MPS they do not, but the
    daemons restart with the GPU Operator's files, which a guard of the pool's nodes does not see. Where partitions are
    made on demand, nodes do not have the label either.

    ## Instead
    Remove `disruption.guard`.
    """
    for pool, at, _ in _guards(plan):
        if not any(MIG_CONFIG_LABEL in part.labels for part in pool.parts):
            is_dynamic = isinstance(pool.sharing, DynamicMig)
            why = "its partitions are made on demand" if is_dynamic else f"{pool.gpu.id} has no MIG"
            yield Finding(
                at.key,
                f"there is nothing to guard in pool `{pool.name}`: {why}",
                label="never repartitioned",
                related=(
                    Label(pool.sharing.at.key, "on demand") if is_dynamic else Label(pool.at / "gpu", "has no MIG"),
                ),
                help="remove `guard`",
            )


_LEAST_SECONDS = 300


@check("GPU742", "guard-gives-up-early", Severity.WARNING)
def guard_gives_up_early(plan: Plan) -> Iterator[Finding]:
    """A guard waits less long for nodes than they may well need.

    ## Why
    Before mig-manager touches a GPU it waits until the operator's own pods have left the node, up to five minutes for
    each kind of them (`waitForPodsToBeDeleted` in `pkg/mig/reconfigure/reconfigure.go` of NVIDIA/mig-parted). Then
    it partitions one GPU after the other, and may have to reboot the node. A guard that gives up before that fails
    syncs that went well.

    ## Instead
    Write how long the slowest node may take, such as `timeout: 30m`; more where nodes reboot.
    """
    for pool, at, guard in _guards(plan):
        if seconds(guard.timeout) < _LEAST_SECONDS:
            yield Finding(
                at / "timeout",
                f"the guard of pool `{pool.name}` gives up after {seconds(guard.timeout)} seconds",
                label="too soon for a node to be partitioned",
                notes=("mig-manager waits up to 5 minutes for each kind of the operator's pods to leave a node",),
                help="write `timeout: 30m`",
            )


@check("GPU743", "guard-reads-pattern-otherwise")
def guard_reads_pattern_otherwise(plan: Plan) -> Iterator[Finding]:
    """A guard cannot read the pool's pattern as Node Feature Discovery does.

    ## Why
    Node Feature Discovery matches names with RE2, and the guard with Python. Almost all that gpuplan takes means the
    same to both. Named classes such as `[[:digit:]]` and groups such as `(?<name>...)` do not: the guard would look at
    other nodes than those that are about to change.

    ## Instead
    Write the characters of a named class, such as `[0-9]`, and `(?:...)` for a group.
    """
    for pool, at, _ in _guards(plan):
        pattern = pool.nodes.name_pattern
        if pattern is not None and isinstance(parse(pattern), NodePattern) and not _is_python(pattern):
            yield Finding(
                pool.nodes.at / "namePattern",
                f"the guard of pool `{pool.name}` cannot read `{pattern}` as Node Feature Discovery does",
                label="means something else to Python",
                related=(Label(at.key, "read by this guard"),),
                help="write `[0-9]` for a class such as `[[:digit:]]`, and `(?:...)` for a group with a name",
            )


@check("GPU744", "guard-finds-no-node")
def guard_finds_no_node(plan: Plan) -> Iterator[Finding]:
    """A guard is to watch the nodes of a pool that nothing names.

    ## Why
    The guard finds nodes in the API server, by their names, before their labels change. What board a node has it does
    not see there, so that it would let every change pass.

    ## Instead
    Say the nodes' names by `namePattern` or `names` besides `matchBoards`, or leave the guard out.
    """
    for pool, at, _ in _guards(plan):
        if pool.nodes.are_by_board:
            yield Finding(
                at.key,
                f"the guard of pool `{pool.name}` cannot tell which nodes are the pool's",
                label="finds nodes by name",
                related=(Label(pool.nodes.at / "matchBoards", "chosen by their boards"),),
                help="add `namePattern` or `names` to `nodes`, or remove the guard",
            )


def _is_python(pattern: str) -> bool:
    """Whether Python takes the pattern without a warning, such as that of a class inside a class."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            re.compile(pattern, re.ASCII)
        except (re.error, Warning):
            return False
    return True


def _guards(plan: Plan) -> Iterator[tuple[Pool, Origin, Guard]]:
    guards = ((pool, pool.spec.disruption.guard) for pool in plan.pools)
    return ((pool, pool.at / "disruption" / "guard", guard) for pool, guard in guards if guard is not None)
