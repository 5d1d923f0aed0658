"""Checks on what cannot be changed where it is: and on what is retained (GPU705, 712-714, 739, 749)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from gpuplan.compiler.backends import backends
from gpuplan.compiler.backends.gpu_operator import device_plugin, mig_parted
from gpuplan.compiler.base.diagnostics import Family, Finding, Origin, Severity
from gpuplan.compiler.base.plain import Body, value_of
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import name_of
from gpuplan.compiler.manifests import Identity, Manifest, identity_of
from gpuplan.compiler.manifests.kinds import QUEUE_OF_PODS, Route, assume_kind
from gpuplan.compiler.planning.plan import (
    MIG_CONFIG_LABEL,
    WORKLOAD_LABEL,
    Plan,
    Retained,
    RetainedNodes,
    RetainedObject,
)
from gpuplan.compiler.planning.pods import volumes_of
from gpuplan.compiler.policy.models import Install, NodeLabels
from gpuplan.features.changes.checks.nodes import earlier, name_of_cluster
from gpuplan.features.changes.clusters import home, syncers
from gpuplan.features.changes.evidence import named_by
from gpuplan.features.changes.kinds import locked_fields
from gpuplan.features.changes.model import deletion, who_names
from gpuplan.features.changes.step import Step

# --- What is retained --------------------------------------------------------------------------------------------


@check("GPU739", "retained-dropped-unseen", Severity.WARNING, family=Family.STEP)
def retained_dropped_unseen(step: Step) -> Iterator[Finding]:
    """A retained document is removed, and nobody has shown that the cluster does not need it.

    ## Why
    A document of the kind Retained is there for what nodes and queues of the cluster still need, and policies do not
    say when they have done with it: labels move as late as somebody approves it. A node whose label names an entry or
    a file that is gone fails as soon as its MIG manager, or its device plugin, restarts.

    ## Instead
    Pass the cluster's nodes: `kubectl get nodes -o json | gpuplan validate --against HEAD --nodes -`. Where no node
    needs it there is no finding; where some do it is an error that says which, and the document has to stay.
    Kubernetes objects are not seen in nodes: look at what the document names under `until`, and say so in a comment.
    `gpuplan retain --prune --nodes FILE` says which documents may go.
    """
    kept = {_key(item) for item in step.after.retained}
    for item in step.before.retained:
        needing = step.needing(item)
        # Nodes show no objects.
        listed = "" if isinstance(item.what, RetainedObject) else "pass `--nodes FILE`; or "
        look = f"{listed}look, and say so: `# gpuplan: ignore[GPU739] REASON`"
        if _key(item) not in kept and needing != () and not _is_made(item, step.after):
            yield Finding(
                name_of_cluster(step),
                f"{_title(item)} is no longer retained, and "
                + (who_names(needing) if needing else "nobody has shown that nothing needs it"),
                label=f"`{item.name}` is gone",
                notes=(earlier(item.at, f"`{item.name}`"), f"it may go once {item.spec.until}"),
                help=f"bring `{item.name}` back until no node needs it" if needing else look,
                severity=Severity.ERROR if needing else None,
            )


def _key(retained: Retained) -> tuple[str, object]:
    return ("nodes", retained.name) if isinstance(retained.what, RetainedNodes) else named_by(retained.what)


def _title(retained: Retained) -> str:
    if isinstance(retained.what, RetainedNodes):
        return f"the set of labels that nodes of pool `{retained.what.spec.pool}` keep"
    label, name = named_by(retained.what)
    if isinstance(name, Identity):
        return f"{name.kind} `{name.name}`"
    return f"the {'entry' if label == MIG_CONFIG_LABEL else 'configuration'} `{name}`"


def _is_made(retained: Retained, after: Plan) -> bool:
    """Whether the policies make it themselves, or nothing applies it."""
    if isinstance(retained.what, RetainedNodes):
        return after.cluster.spec.node_labels is not NodeLabels.NFD
    label, name = named_by(retained.what)
    if isinstance(name, Identity):
        made = (artifact for backend in backends() for artifact in backend.render(after))
        return any(isinstance(artifact, Manifest) and artifact.identity == name for artifact in made)
    is_entry = label == MIG_CONFIG_LABEL
    return name in (mig_parted.configuration(after)["mig-configs"] if is_entry else device_plugin.configurations(after))


# --- Lists -------------------------------------------------------------------------------------------------------


@check("GPU749", "nodes-not-listed", Severity.NOTE, family=Family.STEP)
def nodes_not_listed(step: Step) -> Iterator[Finding]:
    """The list of nodes lacks some that the policies count, or is of another cluster, or of one never labelled.

    ## Why
    What no node of the list names may be named by one that is not in it: `kubectl get nodes` with a selector lists a
    part, and another context lists another cluster, whose nodes the same patterns may match. So such a list is no proof
    that something may go, and patterns of a pool that lacks nodes are judged by what they may match. What the nodes
    that are there do name is a fact all the same.

    ## Instead
    List all nodes: `kubectl get nodes -o json`. Where nodes are gone for good, correct `nodes.count` or `nodes.names`.
    """
    if step.evidence is None:
        return
    if step.evidence.is_foreign:
        yield Finding(
            name_of_cluster(step),
            step.evidence.doubts[0],
            label="nothing of it is taken for proof",
            help="list the nodes of this cluster; before its first sync leave `--nodes` out",
        )
        return
    for stranger in step.evidence.strangers:
        yield Finding(
            name_of_cluster(step),
            stranger,
            label="the list does not prove that no node names it",
            help="list the nodes of this cluster; or remove the label where the pool was removed long ago",
        )
    for lack in step.evidence.lacks:
        pool = step.after.find_pool(lack.pool.name)
        yield Finding(
            pool.at / "nodes" / "count" if pool is not None else name_of_cluster(step),
            str(lack),
            label="nodes that are not in the list may name it",
            help="list all nodes; or correct what the pool counts",
        )


@check("GPU712", "operator-moves", family=Family.STEP)
def operator_moves(step: Step) -> Iterator[Finding]:
    """The GPU Operator is installed in another way, or in another namespace, over the one that is there.

    ## Why
    There may be one GPU Operator in a cluster. The new one finds the objects of the old one in its way, which only the
    old installer may remove, and both set up drivers and device plugins on the same nodes. With the old one go driver
    and device plugin of every node, so that pods which hold GPUs must end first.

    ## Instead
    Leave it where it is. If it must move: drain the nodes, uninstall the old one, and let the change be synced then.
    """
    old, new = step.before.cluster.gpu_operator, step.after.cluster.gpu_operator
    fields = (("install", old.spec.install, new.spec.install), ("namespace", old.namespace, new.namespace))
    for field, one, other in [found for found in fields if found[1] != found[2]][:1]:
        yield Finding(
            new.at / field,
            f"the GPU Operator moves from `{one}` to `{other}`, over the one that is there",
            label=f"it was `{one}`",
            help=f"write `{field}: {one}`; or drain the nodes, uninstall it first, and say so: "
            "`# gpuplan: ignore[GPU712] REASON`",
        )


@check("GPU713", "second-cluster-policy", family=Family.STEP)
def second_cluster_policy(step: Step) -> Iterator[Finding]:
    """The ClusterPolicy gets another name while the old one is there.

    ## Why
    The operator works by one ClusterPolicy, the oldest since 26.7 and before that the one that it saw first, and does
    not look at any other (`controllers/clusterpolicy_controller.go` of NVIDIA/gpu-operator): nothing that changes from
    then on has an effect.
    The old one is not removed unasked, since with it go drivers and device plugins of all nodes.

    ## Instead
    Write the name that it has. If it must change: drain the nodes, delete the old one, and let the change be synced
    then.
    """
    old, new = step.before.cluster.gpu_operator, step.after.cluster.gpu_operator
    is_same_operator = old.spec.install is new.spec.install and old.namespace == new.namespace
    if is_same_operator and new.spec.install is not Install.HELM and old.cluster_policy != new.cluster_policy:
        yield Finding(
            new.at / "clusterPolicy",
            f"the operator ignores ClusterPolicy `{new.cluster_policy}` while `{old.cluster_policy}` is there",
            label=f"it was `{old.cluster_policy}`",
            help=f"write `clusterPolicy: {old.cluster_policy}`; or drain the nodes, and run `kubectl delete "
            f"clusterpolicies.nvidia.com {old.cluster_policy}` before the change is synced",
        )


@check("GPU714", "sync-taken-away", Severity.WARNING, family=Family.STEP)
def sync_taken_away(step: Step) -> Iterator[Finding]:
    """The objects that sync the cluster are removed, or sync from another place.

    ## Why
    The objects of Argo CD or Flux for this cluster are removed where they are. Finalizers on those of pools delete what
    they applied when a person says yes, Kustomizations of Flux delete what they may prune, and everything else stays as
    it is, with nobody to see to it. New ones in another namespace find objects that the old ones own.

    ## Instead
    Take the old ones away first so that what they applied stays: `argocd app delete APP --cascade=false`, or `flux
    suspend kustomization NAME`. Then make the change, and say so in a comment. The Application of a GPU Operator from
    v26.7 on goes when a Job of its chart has ended ([remove a cluster](../how-to/remove-a-cluster.md)).
    """
    name = step.after.cluster.name
    for tool, field, old, new in syncers(step):
        away = "`argocd app delete APP --cascade=false`" if field == "argocd" else "`flux suspend kustomization NAME`"
        if old is not None and new is None:
            yield Finding(
                name_of_cluster(step),
                f"{tool} no longer syncs cluster `{name}`",
                label=f"it had `{field}`",
                help=f"take its objects away first so that what they applied stays: {away}",
            )
        elif old is not None and new is not None and home(old) != home(new):
            yield Finding(
                new.at.key,
                f"{tool} syncs cluster `{name}` from another namespace, or syncs another one",
                label="its objects are recreated",
                help=f"take the old objects away first so that what they applied stays: {away}",
            )


@check("GPU705", "immutable-field-changes", family=Family.STEP)
def immutable_field_changes(step: Step) -> Iterator[Finding]:
    """A field of a Kubernetes object changes that cannot be changed.

    ## Why
    The API server refuses the object, and with it what Argo CD and Flux change in its folder. Argo CD cannot compare
    the Application, which is `Unknown` and begins no sync. At a later look it goes by what it compared before: what the
    commit adds or removes there may then be applied, what it changes is not, and the Application may call itself
    `Synced`. The sync options `Replace` and `Force` do not help: Argo CD reads them after it has compared. That of the
    operator's chart is compared without the server, and its sync fails at this object. Flux applies classes, Namespaces
    and definitions before it comes to others. `gpuplan diff` names the Application under `waits`.
    [Fields that cannot be changed](../fixed-fields.md) lists the fields.

    ## Instead
    Give what is new another name, and remove the old one when nothing uses it any more. Or delete the object in the
    cluster, and say so in a comment. Delete it when Argo CD or Flux has read the commit: before that, they create the
    old one again, Argo CD at once, or within minutes where it has done so before. What is created afterwards is as Git
    has it.

    Pods that run keep their priority when their PriorityClass is deleted, and meanwhile no pod can be created with it.
    With Kueue a class never evicts by itself: a move there, or back, changes classes that `preempts` whatever their
    name. Kueue lets nobody change the queue of a Deployment or a LeaderWorkerSet while a pod of it is ready. Deleting
    it ends all of its pods at once, and the next sync makes new ones ([GPU758](GPU758.md)).
    A LocalQueue that is deleted leaves what runs alone. With the claim of a volume goes all that is in it, once no pod
    uses it; its size may grow where its StorageClass has `allowVolumeExpansion`. Kueue keeps a ResourceFlavor while a
    ClusterQueue names it, and a Topology while a ResourceFlavor names it. Remove the pool's quotas in an earlier
    commit, and add them again in a later commit.
    """
    earlier = _objects(step.before)
    is_moved = step.before.scheduler is not step.after.scheduler
    for identity, (body, at) in _objects(step.after).items():
        if identity in earlier and (found := locked_fields(identity, earlier[identity][0], body)):
            fields = joined([f"`{'.'.join(route)}`" for route in found])
            locked = assume_kind(identity.group, identity.kind).immutable
            may_grow = {item.route for item in locked if item.may_grow}
            verb = "made smaller" if may_grow.issuperset(found) else "changed"
            # Policies give the object its name, and can give it another.
            is_named = at is not None or identity.kind == "PriorityClass"
            instead = "add one with another name and leave this; or" if is_named else "take it back, or"
            if is_moved and at is None and _BY_SCHEDULER.issuperset(found):
                instead = "the scheduler decides it, whatever the name:"
            by = next((item.by for item in locked if item.by and item.route in found), "")
            hold = assume_kind(identity.group, identity.kind).held_by
            delete = f"run {deletion(identity)} once Argo CD or Flux has read the commit"
            if identity.kind == "PersistentVolumeClaim":
                delete += ": all that is in the volume goes with it, once no pod uses it"
            elif hold is not None and hold.kind:
                delete += f": it goes when no {hold.kind} names it"
            yield Finding(
                at if at is not None else _place(step.after, identity, body, found[0]),
                f"{fields} of {identity.kind} `{identity.name}` cannot be {verb}",
                label=f"refused by {by}" if by else "the API server refuses it",
                notes=(f"in namespace `{identity.namespace}`",) if identity.namespace else (),
                help=f"{instead} say so, `# gpuplan: ignore[GPU705] REASON`, and {delete}",
            )


_BY_SCHEDULER: Final = frozenset((("preemptionPolicy",), QUEUE_OF_PODS.route))
"""The fixed fields that are otherwise with another scheduler."""


# --- Objects and where they come from ----------------------------------------------------------------------------


def _objects(plan: Plan) -> dict[Identity, tuple[Body, Origin | None]]:
    """All objects but hooks, which are recreated each time; the place only of those that are written as such."""
    found: dict[Identity, tuple[Body, Origin | None]] = {}
    for backend in backends():
        for artifact in backend.render(plan):
            if isinstance(artifact, Manifest) and artifact.hook is None:
                found[artifact.identity] = artifact.body, None
    for item in plan.retained:
        if isinstance(item.what, RetainedObject):
            found[identity_of(item.what.spec.manifest)] = item.what.spec.manifest, item.what.at
    for document in plan.hand_written:
        identity = identity_of(document.body)
        if identity.kind and identity.name and isinstance(document.body, Mapping) and identity not in found:
            found[identity] = document.body, document.at
    return found


_FIELDS: Final[Mapping[Route, str]] = {
    ("spec", "resources", "requests", "storage"): "size",
    ("spec", "storageClassName"): "storageClass",
    ("spec", "accessModes"): "accessMode",
}
"""The fields of the policies, by the field of a claim."""


def _place(plan: Plan, identity: Identity, body: Body, route: Route) -> Origin:
    """Where the policies say what an object is made of."""
    found: Iterator[Origin]
    if identity.kind == "PriorityClass":
        field = "value" if route == ("value",) else "preempts"
        found = (item.at / field for item in plan.priority_classes if item.name == identity.name)
    elif identity.kind in ("Topology", "ResourceFlavor"):
        found = ((pool.at / "topology").key for pool in plan.pools if pool.name == identity.name)
    elif workload := value_of(body, ("metadata", "labels", WORKLOAD_LABEL)):
        key = identity.namespace, workload
        owners = [item for item in plan.workloads if (item.namespace, item.name) == key]
        volumes = (volume for item in owners for volume in volumes_of(item) if volume.claim(item) == identity.name)
        found = chain(
            (volume.at / _FIELDS[route] for volume in volumes if route in _FIELDS), (item.at for item in owners)
        )
    else:
        tenants = (tenant for tenant in plan.tenants if identity.namespace in tenant.spec.namespaces)
        found = (tenant.at / "namespaces" for tenant in tenants)
    return next(found, name_of(plan.cluster.at))
