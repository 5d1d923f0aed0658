"""What changes of a cluster do: that it is there, who schedules, who labels its nodes, who syncs and who watches it."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.changes.capacity import all_pods, capacities
from gpuplan.changes.meaning import means_same
from gpuplan.changes.model import Change, ChangeClass, change_of, worst
from gpuplan.changes.nodes import impact_of_all
from gpuplan.changes.pools import class_of_arrival
from gpuplan.changes.wording import NOTHING_RUNS, REVERT, from_to, nodes_of
from gpuplan.diagnostics import Origin
from gpuplan.planning.grants import has_admission_policies
from gpuplan.planning.plan import Argocd, Flux, Mig, Plan, Stage
from gpuplan.policy.models import NodeLabels


def added(plan: Plan) -> Change:
    """Its nodes may run something already: nothing here knows what they were before."""
    partitioned = impact_of_all([part for part in plan.parts if isinstance(part.sharing, Mig)])
    return _change(
        plan,
        worst((ChangeClass.PLUGIN_RESTART, *(class_of_arrival(None, pool) for pool in plan.pools))),
        "cluster is added",
        "the operator is set up"
        + (
            f", and mig-manager partitions the GPUs of {nodes_of(partitioned)}: nothing may run on them"
            if partitioned
            else ""
        ),
        "reverting takes the cluster out of the policy again, which is destructive",
        plan.cluster.at,
    )._replace(
        stages=(*Stage, "argocd", "flux"),
        nodes=impact_of_all(plan.pools),
        capacity=tuple(change for pool in plan.pools for change in capacities(None, pool)),
        needs_drain=partitioned is not None,
        needs_reboot=partitioned is not None and plan.cluster.gpu_operator.spec.reboot_on_mig_change,
    )


def removed(plan: Plan) -> Change:
    return _change(
        plan,
        ChangeClass.DESTRUCTIVE,
        "cluster is removed",
        "whatever syncs its folders finds them gone: what it wrote is removed, or stays with nobody to see to it",
        "reverting applies everything again; pods and partitions that are lost do not come back",
        plan.cluster.at,
    )._replace(
        stages=(*Stage, "argocd", "flux"),
        nodes=impact_of_all(plan.pools),
        capacity=tuple(change for pool in plan.pools for change in capacities(pool, None)),
        pods=all_pods(plan),
        needs_drain=True,
    )


def cluster_changes(before: Plan, after: Plan) -> Iterator[Change]:
    yield from _kubernetes(before, after)
    yield from _scheduler(before, after)
    yield from _node_labels(before, after)
    yield from _delivery(before, after)
    yield from _monitoring(before, after)


# --- Kubernetes and the scheduler --------------------------------------------------------------------------------


def _kubernetes(before: Plan, after: Plan) -> Iterator[Change]:
    old, new = has_admission_policies(before.cluster), has_admission_policies(after.cluster)
    version = after.cluster.spec.kubernetes
    if old != new:
        yield _change(
            after,
            ChangeClass.ADMISSION,
            f"Kubernetes is {version}, which {'knows' if new else 'does not know'} admission policies",
            "new pods are held to their tenant's grants" if new else "only quotas hold tenants to their grants",
            REVERT,
            after.cluster.at / "kubernetes",
        )._replace(stages=(Stage.SCHEDULING, Stage.NAMESPACES))


def _scheduler(before: Plan, after: Plan) -> Iterator[Change]:
    old, new = before.cluster.scheduler, after.cluster.scheduler
    if old.kind is not new.kind:
        is_held = old.traits.has_queues
        yield _change(
            after,
            ChangeClass.TWO_STEP if is_held else ChangeClass.ADMISSION,
            f"the scheduler changes {from_to(old.kind, new.kind)}",
            "queues and flavors stay while work is in them, and what is queued is let go by nobody"
            if is_held
            else "new pods go through another scheduler; those that run stay where they are",
            "reverting leaves queues and flavors behind while work is in them" if new.traits.has_queues else REVERT,
            new.at,
        )._replace(
            stages=tuple(stage for stage in Stage if stage not in (Stage.GPU_OPERATOR, Stage.MONITORING)),
            pods=all_pods(before) if is_held else 0,
        )
    elif old.runai_cluster_id != new.runai_cluster_id:
        yield _change(
            after, ChangeClass.METADATA, "the cluster's id in Run:ai changes", NOTHING_RUNS, REVERT, new.at
        )._replace(stages=(Stage.SCHEDULING,))
    if old.spec.cap is not new.spec.cap and _caps(before) != _caps(after):
        yield _change(
            after,
            ChangeClass.ADMISSION,
            f"quotas cap what is {'guaranteed' if new.spec.cap == 'guaranteed' else 'the limit'}",
            "new pods are judged by other quotas; those that run go on",
            REVERT,
            new.at / "cap",
        )._replace(stages=(Stage.NAMESPACES,))


def _caps(plan: Plan) -> object:
    return [(tenant.name, quota.caps) for tenant in plan.tenants for quota in tenant.quotas]


# --- Who labels nodes --------------------------------------------------------------------------------------------


def _node_labels(before: Plan, after: Plan) -> Iterator[Change]:
    """A label that goes before its successor comes is one that the operator replaces by `all-disabled`."""
    old, new = before.cluster.spec.node_labels, after.cluster.spec.node_labels
    if old is new:
        return
    yield _change(
        after,
        ChangeClass.DESTRUCTIVE,
        f"labels and taints of nodes are put there by {_labeller(new)}, not by {_labeller(old)}",
        "nodes lose their labels with what put them there; where that is before the others come, the operator labels "
        "them `all-disabled`, which dissolves their partitions",
        "reverting is the same the other way round",
        after.cluster.at / "nodeLabels",
    )._replace(
        stages=(Stage.PARTITIONS, Stage.GPU_OPERATOR),
        nodes=impact_of_all(after.pools),
        pods=all_pods(before),
        needs_drain=True,
        needs_reboot=after.cluster.gpu_operator.spec.reboot_on_mig_change,
    )


def _labeller(owner: NodeLabels) -> str:
    match owner:
        case NodeLabels.NFD:
            return "Node Feature Discovery"
        case NodeLabels.NODE:
            return "Node objects"
        case NodeLabels.EXTERNAL:
            return "whoever makes the nodes"


# --- Who syncs and who watches -----------------------------------------------------------------------------------


def home(tool: Argocd | Flux) -> tuple[object, ...]:
    """Where the tool's objects are, and where they lead."""
    if isinstance(tool, Argocd):
        return tool.namespace, tool.spec.destination.server, tool.spec.destination.name
    return tool.spec.namespace, tool.spec.kube_config_secret


def _delivery(before: Plan, after: Plan) -> Iterator[Change]:
    for old, new, tool, key in (
        (before.cluster.argocd, after.cluster.argocd, "Argo CD", "argocd"),
        (before.cluster.flux, after.cluster.flux, "Flux", "flux"),
    ):
        if old is None and new is None:
            continue
        if new is None and old is not None:
            yield _change(
                after,
                ChangeClass.DESTRUCTIVE,
                f"{tool} no longer syncs the cluster",
                "what synced the folders goes; finalizers on it take what it wrote along, unless a person says no",
                "reverting syncs everything again, partitions included",
                old.at,
            )._replace(stages=(key, *Stage))
        elif old is None and new is not None:
            yield _change(
                after,
                ChangeClass.METADATA,
                f"{tool} syncs the cluster",
                f"it applies what is in the folders; {NOTHING_RUNS}",
                "reverting takes it away again, which is destructive",
                new.at,
            )._replace(stages=(key, *Stage))
        elif old is not None and new is not None and not means_same(old, new):
            yield _synced_otherwise(after, old, new, tool, key)


def _synced_otherwise(after: Plan, old: Argocd | Flux, new: Argocd | Flux, tool: str, key: str) -> Change:
    moved = home(old) != home(new)
    return _change(
        after,
        ChangeClass.DESTRUCTIVE if moved else ChangeClass.METADATA,
        f"{tool} syncs {'another cluster, or from another namespace' if moved else 'in another way'}",
        "its objects are recreated elsewhere; finalizers on the old ones take what they wrote along, unless a person "
        "says no"
        if moved
        else "the same folders are synced",
        "reverting is the same the other way round" if moved else REVERT,
        new.at,
    )._replace(stages=(key,))


def _monitoring(before: Plan, after: Plan) -> Iterator[Change]:
    old, new = before.cluster.monitoring, after.cluster.monitoring
    if means_same(old, new):
        return
    place = new or old
    what = "monitoring changes" if old and new else "monitoring is added" if new else "monitoring is removed"
    yield _change(
        after,
        ChangeClass.METADATA,
        what,
        f"alerts and dashboards differ; {NOTHING_RUNS}",
        REVERT,
        place.at if place is not None else after.cluster.at,
    )._replace(stages=(Stage.MONITORING, Stage.GPU_OPERATOR))


# --- Parts of all ------------------------------------------------------------------------------------------------


def _change(plan: Plan, change_class: ChangeClass, what: str, effect: str, undo: str, at: Origin) -> Change:
    found = change_of(plan, plan.cluster, change_class, what, effect, undo)
    return found._replace(at=at)
