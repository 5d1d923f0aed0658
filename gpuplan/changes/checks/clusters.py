"""Checks on what whole clusters stand on, and that changes hands in a step (GPU712-714)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.changes.checks.places import name_of_cluster
from gpuplan.changes.clusters import home
from gpuplan.changes.step import Step
from gpuplan.checks.registry import check
from gpuplan.diagnostics import Family, Finding, Severity
from gpuplan.policy.models import Install


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
    for field, one, other in (
        ("install", str(old.spec.install), str(new.spec.install)),
        ("namespace", old.namespace, new.namespace),
    ):
        if one != other:
            yield Finding(
                new.at / field,
                f"the GPU Operator moves from `{one}` to `{other}`, over the one that is there",
                label=f"it was `{one}`",
                help=f"write `{field}: {one}`; or drain the nodes, uninstall it first, and say so: "
                "`# gpuplan: ignore[GPU712] REASON`",
            )
            return


@check("GPU713", "second-cluster-policy", family=Family.STEP)
def second_cluster_policy(step: Step) -> Iterator[Finding]:
    """The ClusterPolicy gets another name while the old one is there.

    ## Why
    The operator works by the ClusterPolicy that it saw first and calls any other `ignored`
    (`controllers/clusterpolicy_controller.go` of NVIDIA/gpu-operator): nothing that changes from then on has an effect.
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
    """What syncs the cluster goes, or leads elsewhere.

    ## Why
    The objects of Argo CD or Flux for this cluster are removed where they are. Finalizers on those of pools delete what
    they applied when a person says yes, Kustomizations of Flux delete what they may prune, and everything else stays as
    it is, with nobody to see to it. New ones in another namespace find objects that the old ones own.

    ## Instead
    Take the old ones away first so that what they applied stays: `argocd app delete APP --cascade=false`, or `flux
    suspend kustomization NAME`. Then make the change, and say so in a comment.
    """
    before, after = step.before.cluster, step.after.cluster
    for old, new, tool, field in (
        (before.argocd, after.argocd, "Argo CD", "argocd"),
        (before.flux, after.flux, "Flux", "flux"),
    ):
        if old is None:
            continue
        away = "`argocd app delete APP --cascade=false`" if field == "argocd" else "`flux suspend kustomization NAME`"
        if new is None:
            yield Finding(
                name_of_cluster(step),
                f"{tool} no longer syncs cluster `{after.name}`",
                label=f"it had `{field}`",
                help=f"take its objects away first so that what they applied stays: {away}",
            )
        elif home(old) != home(new):
            yield Finding(
                new.at.key,
                f"{tool} syncs cluster `{after.name}` from another namespace, or syncs another one",
                label="its objects are recreated",
                help=f"take the old objects away first so that what they applied stays: {away}",
            )
