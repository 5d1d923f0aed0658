"""Hold what gpuplan says of a step against the oracle: what is unsafe and unsaid, and what is said too loudly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpuplan.compiler.base.disturbance import ChangeClass, worst
from tests.laws.orders.asking import Said, ask, build, written
from tests.laws.orders.edits import TEXT_ONLY, Edit
from tests.laws.orders.oracle import PLUGIN, UNSAFE, Judgement, Kind, Verdict, is_in_row, judge
from tests.laws.orders.platforms import Platform, gpus_of
from tests.laws.orders.trees import Body, Tree

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Examined:
    """A step, what the oracle finds and what gpuplan says of it."""

    judgement: Judgement
    said: Said
    seen: Said
    """The same beside a list of the nodes."""
    unsaid: tuple[Verdict, ...]
    """What is unsafe, and no error or class of two steps or worse names its node or pool."""
    alarms: tuple[str, ...]
    """What a safe step is called that it is not."""

    @property
    def is_safe(self) -> bool:
        return not self.judgement.of(*UNSAFE, Kind.UNCOVERED)


def examine(before: Platform, after: Platform, *edits: Edit) -> Examined | None:
    """None where one of the platforms is refused by itself."""
    with written(before, after) as roots:
        built = [build(root) for root in roots]
        if any(one.errors for one in built):
            return None
        trees = [one.tree for one in built]
        judgement = judge(trees, dict(gpus_of(before, after)))
        listed = {way.name: dict(way.ends[0].labels) for way in judgement.ways}
        said, seen = (ask(*roots, listed=nodes) for nodes in (None, listed))
    step = Step(trees[0], trees[1], judgement, before, after)
    possible = [found for found in judgement.of(*UNSAFE) if not (found.is_ahead and waits(before, after))]
    unsaid = {found for known in (said, seen) for found in possible if not _is_said(known, found)}
    alarms = () if judgement.of(*UNSAFE, Kind.UNCOVERED) else tuple(_alarms(step, seen))
    if edits and set(edits) <= set(TEXT_ONLY):
        is_same = built[0].files == built[1].files and said.worst is ChangeClass.NONE
        alarms = (*alarms, *(() if is_same else ("text only",)))
    return Examined(judgement, said, seen, tuple(sorted(unsaid, key=repr)), alarms)


def waits(*platforms: Platform) -> bool:
    """Flux applies a pool's labels when the GPU Operator is ready by its new files (`dependsOn`)."""
    return all("flux" in platform.cluster for platform in platforms)


def _is_said(said: Said, verdict: Verdict) -> bool:
    """With its node or one of its pools; what takes all labels away names none, for it means all nodes."""
    names = [*names_in(verdict)]
    is_ordered = verdict.is_ahead and said.orders(names)
    return is_ordered or said.warns_of([*names, "nodes lose their labels with what put"])


def _spec(body: Body) -> object:
    return body.get("spec", body.get("value"))


def names_in(verdict: Verdict) -> Iterator[str]:
    yield from (f"`{pool}`" for pool in verdict.pools)
    yield from (f"Pool/{pool}" for pool in verdict.pools)
    yield from (f"Pool {pool}" for pool in verdict.pools)
    if verdict.node:
        yield verdict.node


# --- How loud a safe step may be ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """Two trees of one cluster, and what is known of the way between them."""

    before: Tree
    after: Tree
    judgement: Judgement
    old: Platform
    new: Platform

    @property
    def changed(self) -> Iterator[tuple[Key, Body | None, Body | None]]:
        for key in sorted({*self.before.objects, *self.after.objects}):
            one, other = self.before.objects.get(key), self.after.objects.get(key)
            if one != other:
                yield key, one, other


def _alarms(step: Step, said: Said) -> Iterator[str]:
    most = worst(_classes(step))
    for found, text in said.changes:
        if found.rank > most.rank:
            yield f"{found} where {most} is meant: {text}"
    excused = {*_excused(step)}
    for error in said.errors:
        if error.split(" | ")[0] not in excused:
            yield f"error {error}"


_FIXED: Final = frozenset(
    {"ResourceFlavor", "Topology", "Job", "PersistentVolumeClaim", "PriorityClass", "ClusterQueue", "LocalQueue"}
)
_QUEUES: Final = frozenset({"ClusterQueue", "LocalQueue", "Queue", "Cohort", "ResourceFlavor"})
_READ: Final = frozenset(
    {
        "PrometheusRule",
        "ServiceMonitor",
        "AppProject",
        "Application",
        "ApplicationSet",
        "Kustomization",
        "HelmRepository",
    }
)
_REMOVED: Final[Mapping[str, ChangeClass]] = {
    "Namespace": ChangeClass.DESTRUCTIVE,
    "PersistentVolumeClaim": ChangeClass.DESTRUCTIVE,
    "Deployment": ChangeClass.DESTRUCTIVE,
    "Job": ChangeClass.DESTRUCTIVE,
    "PriorityClass": ChangeClass.TWO_STEP,
}


def _classes(step: Step) -> Iterator[ChangeClass]:
    """The worst that each object may be called, by what is applied alone."""
    if step.judgement.repartitioned or _is_driver_touched(step) or _is_mps_restarted(step):
        yield ChangeClass.REPARTITION
    for (kind, _, _), old, new in step.changed:
        if new is None:
            yield ChangeClass.TWO_STEP if kind in _QUEUES else _REMOVED.get(kind, ChangeClass.ADMISSION)
        elif old is not None and kind in _FIXED and _spec(old) != _spec(new):
            yield ChangeClass.RECREATE
        elif kind in _READ:
            yield ChangeClass.METADATA
        elif kind == "NodeFeatureRule" and _evicts(new):
            yield ChangeClass.REPARTITION
        else:
            yield ChangeClass.PREEMPTION_ORDER
    if _is_handed_over(step) or _leaves_table(step):
        yield ChangeClass.DESTRUCTIVE
    if _is_evicting(step):
        yield ChangeClass.DESTRUCTIVE


def _is_driver_touched(step: Step) -> bool:
    old, new = (platform.cluster["gpuOperator"]["version"] for platform in (step.old, step.new))
    return bool(old != new)


def _is_mps_restarted(step: Step) -> bool:
    """Each change of the plugin's file restarts the daemons where its ConfigMap has another name for it.

    Where the name stays, those restart whose node's label moves.
    """
    one, other = step.before.operator, step.after.operator
    mps = {
        key for found in (one, other) for key, config in found.configs.items() if "mps" in (config.get("sharing") or {})
    }
    moved = {
        key
        for way in step.judgement.ways
        for keys in [{dict(end.labels).get(PLUGIN, "") for end in way.ends}]
        if len(keys) > 1
        for key in keys
    }
    return bool(mps) and bool(one.config_name != other.config_name or mps & moved)


def _evicts(rule: Body) -> bool:
    return any(taint["effect"] == "NoExecute" for found in rule["spec"]["rules"] for taint in found.get("taints", ()))


def _is_evicting(step: Step) -> bool:
    return any(taint["effect"] == "NoExecute" for spec in step.new.pools.values() for taint in spec.get("taints", ()))


def _is_handed_over(step: Step) -> bool:
    """Whether somebody else delivers, labels nodes or schedules."""
    fields = ("argocd", "flux", "nodeLabels", "scheduler")
    return any(_present(step.old, name) != _present(step.new, name) for name in fields)


def _leaves_table(step: Step) -> bool:
    """Whether a node has no row any more in the table that others follow: they may take its labels away, or not."""
    rows = [
        [group for folder in tree.folders.values() for group in folder.groups] for tree in (step.before, step.after)
    ]
    is_followed = not any(folder.nodes for folder in step.before.folders.values())
    names = (way.name for way in step.judgement.ways)
    return is_followed and any(
        any(is_in_row(row, name) for row in rows[0]) and not any(is_in_row(row, name) for row in rows[1])
        for name in names
    )


def _present(platform: Platform, name: str) -> Any:
    value = platform.cluster.get(name)
    return value if name in ("nodeLabels", "scheduler") else value is not None


def _excused(step: Step) -> Iterator[str]:
    """The codes of errors that the trees themselves bear out."""
    removed = {key[0] for key, _, new in step.changed if new is None}
    if removed & _QUEUES:
        yield from ("GPU703", "GPU711")
    if any(key[0] in _FIXED and old is not None and new is not None for key, old, new in step.changed):
        yield "GPU705"
    if _is_handed_over(step):
        yield from ("GPU704", "GPU711", "GPU714", "GPU705", "GPU703", "GPU728")
    if _leaves_table(step):
        yield "GPU704"
    if any(count > _allowed(step, pool) for pool, count in _repartitioned(step).items()):
        yield "GPU708"


def _repartitioned(step: Step) -> dict[str, int]:
    found: dict[str, int] = {}
    for way in step.judgement.repartitioned:
        for pool in way.pools:
            found[pool] = found.get(pool, 0) + 1
    return found


def _allowed(step: Step, pool: str) -> int:
    found = [platform.pools[pool] for platform in (step.old, step.new) if pool in platform.pools]
    return min(int(spec.get("disruption", {}).get("maxUnavailable", 1)) for spec in found)
