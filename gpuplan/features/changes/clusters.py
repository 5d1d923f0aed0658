"""The effects of changes of a cluster: its scheduler, the labels of its nodes, its synchronization, its monitoring."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpuplan.compiler.admission.policies import left_out
from gpuplan.compiler.base.disturbance import ChangeClass, worst
from gpuplan.compiler.planning.grants import grace_seconds, has_admission_policies
from gpuplan.compiler.planning.kueue import frameworks
from gpuplan.compiler.planning.plan import Argocd, Flux, Mig, Plan, Stage
from gpuplan.compiler.policy.models import NodeLabels
from gpuplan.features.changes import enforcing
from gpuplan.features.changes.fields import changes_by_row
from gpuplan.features.changes.model import NOTHING_RUNS, OTHER_WAY_ROUND, REVERT, Change, from_to, listed, nodes_of, of
from gpuplan.features.changes.nodes import all_pods, capacities, impact_of_all
from gpuplan.features.changes.pools import Passage
from gpuplan.features.changes.step import Step, means_same

_ALL: Final = (*Stage, "argocd", "flux")


def added(plan: Plan) -> Change:
    """Its nodes may run something already: nothing here knows what they were before."""
    partitioned = impact_of_all([part for part in plan.parts if isinstance(part.sharing, Mig)])
    effect = "the operator is set up"
    if partitioned:
        effect += f", and mig-manager partitions the GPUs of {nodes_of(partitioned)}: nothing may run on them"
    return Change(
        *of(plan, plan.cluster),
        worst((ChangeClass.PLUGIN_RESTART, *(Passage(None, pool).change_class for pool in plan.pools))),
        "cluster is added",
        effect,
        "reverting takes the cluster out of the policy again, which is destructive",
        stages=_ALL,
        nodes=impact_of_all(plan.pools),
        capacity=tuple(change for pool in plan.pools for change in capacities(None, pool)),
        needs_drain=partitioned is not None,
        needs_reboot=partitioned is not None and plan.cluster.gpu_operator.spec.reboot_on_mig_change,
    )


def removed(plan: Plan) -> Change:
    return Change(
        *of(plan, plan.cluster),
        ChangeClass.DESTRUCTIVE,
        "cluster is removed",
        "its folders are gone: the tool that syncs them removes the objects, or leaves them without an owner",
        "reverting applies everything again; pods and partitions that are lost do not come back",
        stages=_ALL,
        nodes=impact_of_all(plan.pools),
        capacity=tuple(change for pool in plan.pools for change in capacities(pool, None)),
        pods=all_pods(plan),
        needs_drain=True,
    )


def cluster_changes(step: Step) -> Iterator[Change]:
    old, new = step.before.cluster, step.after.cluster
    yield from changes_by_row(step, old, new)
    yield from changes_by_row(step, old.scheduler, new.scheduler)
    for judge in (enforcing.of_cluster, _left_out, _grace_period, _scheduler, _frameworks, _node_labels, _delivery):
        yield from judge(step)
    place = new.monitoring or old.monitoring
    if place is not None and not means_same(old.monitoring, new.monitoring):
        stays = old.monitoring is not None and new.monitoring is not None
        yield Change(
            *of(step.after, new, place.at),
            ChangeClass.METADATA,
            "monitoring changes" if stays else "monitoring is added" if new.monitoring else "monitoring is removed",
            f"alerts and dashboards differ; {NOTHING_RUNS}",
            stages=(Stage.MONITORING, Stage.GPU_OPERATOR, *(() if stays else (Stage.SCHEDULING,))),
        )


# --- Kubernetes and the scheduler --------------------------------------------------------------------------------


def _left_out(step: Step) -> Iterator[Change]:
    """Optional rules of admission that come or go by name; those of another scheduler come and go with it."""
    before, after = step.before, step.after
    if before.scheduler is not after.scheduler:
        return
    old, new = ({rule.name: rule for rule in left_out(plan)} for plan in (before, after))
    place = of(after, after.cluster, after.cluster.at / "admission" / "without")
    for name in sorted(new.keys() - old.keys()):
        effect = f"{new[name].optional}; what runs goes on"
        what = f"admission leaves out the rule `{name}`"
        yield Change(*place, ChangeClass.ADMISSION, what, effect, stages=(Stage.SCHEDULING,))
    for name in sorted(old.keys() - new.keys()):
        what = f"admission no longer leaves out the rule `{name}`"
        effect = f"new work is judged by it, and what runs goes on; it says: {old[name].message}"
        yield Change(*place, ChangeClass.ADMISSION, what, effect, stages=(Stage.SCHEDULING,))


def _grace_period(step: Step) -> Iterator[Change]:
    cluster = step.after.cluster
    old, new = grace_seconds(step.before.cluster), grace_seconds(cluster)
    if old == new or not has_admission_policies(cluster):
        return
    is_longer = new is None or (old is not None and new > old)
    period = cluster.spec.admission.grace_period
    yield Change(
        *of(step.after, cluster, cluster.at / "admission" / "gracePeriod"),
        ChangeClass.ADMISSION,
        f"pods with GPUs may ask for {'any time' if new is None else f'{period} at most'} to end",
        "a team may wait that long for its guaranteed GPUs when others have borrowed them"
        if is_longer
        else "new pods that ask for more are refused, and none is deleted with more; those that run keep theirs",
        stages=(Stage.SCHEDULING,),
    )


def _frameworks(step: Step) -> Iterator[Change]:
    """Yield the change of the kinds of work that Kueue knows. Another scheduler is a change of its own."""
    if not step.before.scheduler.suspends_jobs or not step.after.scheduler.suspends_jobs:
        return
    old, new = ({found.kind for found in frameworks(plan.cluster)} for plan in (step.before, step.after))
    gone, come = sorted(old - new), sorted(new - old)
    if gone or come:
        told = "work of these kinds waits in queues once Kueue's own Configuration names them"
        untold = "pods with GPUs of unknown kinds are refused; running pods continue"
        yield Change(
            *of(step.after, step.after.cluster, step.after.cluster.scheduler.at / "kueue" / "frameworks"),
            ChangeClass.ADMISSION,
            "; ".join((*listed(("Kueue knows", come)), *listed(("Kueue no longer knows", gone)))),
            "; ".join((*([told] if come else ()), *([untold] if gone else ()))),
            stages=(Stage.SCHEDULING,),
        )


def _scheduler(step: Step) -> Iterator[Change]:
    old, new = step.before.cluster.scheduler, step.after.cluster.scheduler
    place = of(step.after, step.after.cluster, new.at)
    if old.kind is not new.kind:
        is_held, holds_work = old.traits.has_queues, old.traits.queues_hold_work
        effect = "new pods go through another scheduler; those that run stay where they are"
        if is_held:
            fate = "queues and flavors stay while work is in them" if holds_work else "queues go, what runs goes on"
            effect = f"{fate}, and what is queued is let go by nobody"
        left = "reverting leaves queues and flavors behind while work is in them"
        yield Change(
            *place,
            ChangeClass.TWO_STEP if is_held else ChangeClass.ADMISSION,
            f"the scheduler changes {from_to(old.kind, new.kind)}",
            effect,
            left if new.traits.queues_hold_work else REVERT,
            stages=tuple(stage for stage in Stage if stage not in (Stage.GPU_OPERATOR, Stage.MONITORING)),
            pods=all_pods(step.before) if is_held else 0,
        )


# --- Who labels nodes --------------------------------------------------------------------------------------------

_LABELLERS: Final = {
    NodeLabels.NFD: "Node Feature Discovery",
    NodeLabels.NODE: "Node objects",
    NodeLabels.EXTERNAL: "whoever makes the nodes",
}


def _node_labels(step: Step) -> Iterator[Change]:
    """A label that goes before its successor comes is one that the operator replaces by `all-disabled`."""
    old, cluster = step.before.cluster.spec.node_labels, step.after.cluster
    if old is not cluster.spec.node_labels:
        yield Change(
            *of(step.after, cluster, cluster.at / "nodeLabels"),
            ChangeClass.DESTRUCTIVE,
            f"labels and taints of nodes are put there by {_LABELLERS[cluster.spec.node_labels]}, not by "
            f"{_LABELLERS[old]}",
            "nodes lose their labels with what put them there; where that is before the others come, the operator "
            "labels them `all-disabled`, which dissolves their partitions",
            OTHER_WAY_ROUND,
            stages=(Stage.PARTITIONS, Stage.GPU_OPERATOR),
            nodes=impact_of_all(step.after.pools),
            pods=all_pods(step.before),
            needs_drain=True,
            needs_reboot=cluster.gpu_operator.spec.reboot_on_mig_change,
        )


# --- Who syncs and who watches -----------------------------------------------------------------------------------


def syncers(step: Step) -> Iterator[tuple[str, str, Argocd | Flux | None, Argocd | Flux | None]]:
    """Yield each tool that may sync the cluster: its name, its field, and its settings before and after."""
    before, after = step.before.cluster, step.after.cluster
    yield "Argo CD", "argocd", before.argocd, after.argocd
    yield "Flux", "flux", before.flux, after.flux


def home(tool: Argocd | Flux) -> tuple[object, ...]:
    """Where the tool's objects are, and where they lead."""
    if isinstance(tool, Argocd):
        return tool.namespace, tool.spec.destination.server, tool.spec.destination.name
    return tool.spec.namespace, tool.spec.kube_config_secret


def _delivery(step: Step) -> Iterator[Change]:
    for tool, key, old, new in syncers(step):
        place = new or old
        if place is not None and not means_same(old, new):
            change_class, what, effect, undo = _synced(old, new)
            stages = (key,) if old is not None and new is not None else (key, *Stage)
            whose = of(step.after, step.after.cluster, place.at)
            yield Change(*whose, change_class, f"{tool} {what}", effect, undo, stages=stages)


def _synced(old: Argocd | Flux | None, new: Argocd | Flux | None) -> tuple[ChangeClass, str, str, str]:
    """Return the class, the words, the effect and the undo of a tool that comes, goes or syncs in another way."""
    if new is None:
        effect = "the sync is removed; finalizers remove all that was synced, unless a person prevents it"
        undo = "reverting syncs everything again, partitions included"
        return ChangeClass.DESTRUCTIVE, "no longer syncs the cluster", effect, undo
    if old is None:
        effect = f"it applies what is in the folders; {NOTHING_RUNS}"
        undo = "reverting takes it away again, which is destructive"
        return ChangeClass.METADATA, "syncs the cluster", effect, undo
    if home(old) == home(new):
        if _has_root(new) and not _has_root(old):
            return ChangeClass.TWO_STEP, *_ROOT_COMES
        if _has_root(old) and not _has_root(new):
            return ChangeClass.METADATA, *_ROOT_GOES
        before, after = _source(old), _source(new)
        where = ", ".join(value for value, earlier in zip(after, before, strict=True) if value != earlier)
        effect = f"it reads `out/` elsewhere from then on: {where}" if where else "the same folders are synced"
        return ChangeClass.METADATA, "syncs in another way", effect, REVERT
    effect = (
        "its objects are recreated elsewhere; finalizers on the old ones take what they wrote along, unless a person "
        "says no"
    )
    return ChangeClass.DESTRUCTIVE, "syncs another cluster, or from another namespace", effect, OTHER_WAY_ROUND


def _source(tool: Argocd | Flux) -> tuple[str, ...]:
    """Where the tool reads `out/`, in words."""
    if isinstance(tool, Argocd):
        return f"repository `{tool.spec.repo_url}`", f"revision `{tool.spec.revision}`", f"path `{tool.path}`"
    source = tool.spec.source
    return (
        f"{source.kind} `{source.name}`",
        f"namespace `{source.namespace or tool.spec.namespace}`",
        f"path `{tool.path}`",
    )


def _has_root(tool: Argocd | Flux) -> bool:
    return isinstance(tool, Argocd) and tool.spec.root


_ROOT_COMES: Final = (
    "syncs through a root",
    "apply the root where you applied the Applications; it takes them over. Switch pruning off there first",
    "reverting lets each of them sync by itself again; a person deletes the root",
)
_ROOT_GOES: Final = (
    "no longer syncs through a root",
    "each Application syncs by itself again, in any order; what applied the root applies them, and a person deletes it",
    REVERT,
)
