"""Checks on who labels and taints the nodes, and on the operator's own pods there (GPU608, GPU610, GPU611)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.catalog.operators import OPERAND_TOLERATIONS, is_tolerated
from gpuplan.checks.registry import check
from gpuplan.diagnostics import Finding, Label, Origin, Severity
from gpuplan.planning.node_features import writes_nfd
from gpuplan.planning.plan import Plan, Pool, with_places
from gpuplan.policy.models import Install, NodeLabels, Taint


@check("GPU608", "taint-not-tolerated", Severity.WARNING)
def taint_not_tolerated(plan: Plan) -> Iterator[Finding]:
    """A pool has a taint that the GPU Operator's own pods do not tolerate.

    ## Why
    The driver, the device plugin, mig-manager and NFD's worker run on every GPU node. They tolerate `nvidia.com/gpu`
    with the effect `NoSchedule`; under any other taint they do not start, and the node publishes no GPUs. Where gpuplan
    writes the Helm values or the whole ClusterPolicy it adds the toleration. With `install: external` it cannot: a list
    of tolerations belongs to one owner as a whole, and gpuplan's would replace the owner's.

    ## Instead
    Add the toleration that the finding names to `daemonsets.tolerations` of the ClusterPolicy and to NFD's worker, and
    suppress the finding with that as the reason. Or use a taint with the key `nvidia.com/gpu`.
    """
    if plan.cluster.gpu_operator.spec.install is not Install.EXTERNAL:
        return
    for pool, at, taint in _taints(plan):
        if not is_tolerated(OPERAND_TOLERATIONS, taint.key, taint.value, taint.effect):
            yield Finding(
                at,
                f"the GPU Operator's pods do not tolerate `{taint.key}:{taint.effect.value}` of pool `{pool.name}`",
                label="no GPUs under this taint",
                related=(Label(plan.cluster.gpu_operator.at / "install", "not gpuplan's to change"),),
                notes=("they tolerate `nvidia.com/gpu:NoSchedule`",),
                help=(
                    "add `{key: "
                    f"{taint.key}, operator: Exists, effect: {taint.effect.value}"
                    "}` to `daemonsets.tolerations` of the ClusterPolicy and to NFD's worker"
                ),
            )


@check("GPU610", "nodes-cannot-be-selected")
def nodes_cannot_be_selected(plan: Plan) -> Iterator[Finding]:
    """Nothing says which nodes a pool's labels are for.

    ## Why
    With `nodeLabels: nfd` a rule selects a pool's nodes by name or by a pattern of names: NFD knows a node's features,
    not what group it is in, and without a name the rule would match every node with an NVIDIA GPU. With
    `nodeLabels: node` there is an object for each node, so the names are needed. Only `external` needs neither, since
    node groups label their own nodes.

    ## Instead
    Add `nodes.namePattern` or `nodes.names`, or have the node groups set the labels with `nodeLabels: external`.
    """
    mode = plan.cluster.spec.node_labels
    for pool in plan.pools:
        nodes = pool.nodes
        # A pattern that matches nothing, such as an empty one, is reported for itself.
        if mode is NodeLabels.EXTERNAL or nodes.names or (mode is NodeLabels.NFD and nodes.name_pattern is not None):
            continue
        is_nfd = mode is NodeLabels.NFD
        yield Finding(
            nodes.at.key,
            f"nothing says which nodes get the labels of pool `{pool.name}`",
            label="neither `names` nor `namePattern`" if is_nfd else "no `names`",
            related=(Label(plan.cluster.at / "nodeLabels", f"`{mode.value}` needs them"),),
            help="add `namePattern` or `names`" if is_nfd else "add `names`, one for each node",
        )


@check("GPU611", "taints-not-applied", Severity.WARNING)
def taints_not_applied(plan: Plan) -> Iterator[Finding]:
    """A pool has taints that nothing of gpuplan's puts on its nodes.

    ## Why
    A Node's taints are one list with one owner. With `nodeLabels: node` gpuplan writes labels only: applying the list
    would remove the taints that Kubernetes itself sets on nodes in trouble. With `nodeLabels: nfd` NFD sets taints, if
    its master is started with `enableTaints`, which is off by default; gpuplan switches it on in the NFD that it
    configures, and cannot where NFD comes from elsewhere. Untainted nodes take any pod.

    ## Instead
    With `node`, have the nodes register with the taints that `partitions/node-groups.yaml` lists. With `nfd`, set
    `enableTaints` where NFD is configured, and let its worker tolerate the taints. Then suppress the finding with that
    as the reason.
    """
    cause = _cause(plan)
    for pool in plan.pools if cause else ():
        if pool.spec.taints:
            yield Finding(
                pool.at / "taints",
                f"nothing puts the taints of pool `{pool.name}` on its nodes",
                label=cause,
                related=(
                    Label(plan.cluster.at / "nodeLabels", f"labels come by `{plan.cluster.spec.node_labels.value}`"),
                ),
                help=_REMEDIES[plan.cluster.spec.node_labels],
            )


_REMEDIES = {
    NodeLabels.NFD: "set `enableTaints: true` in the configuration of NFD's master",
    NodeLabels.NODE: "have the nodes register with them; `partitions/node-groups.yaml` lists them",
}


def _cause(plan: Plan) -> str:
    """Why taints stay off; empty where something sets them, or somebody is told to."""
    match plan.cluster.spec.node_labels:
        case NodeLabels.EXTERNAL:
            return ""
        case NodeLabels.NODE:
            return "`nodeLabels: node` sets labels only"
        case NodeLabels.NFD:
            return "" if writes_nfd(plan.cluster) else "NFD ignores taints by default"


def _taints(plan: Plan) -> Iterator[tuple[Pool, Origin, Taint]]:
    for pool in plan.pools:
        for at, taint in with_places(pool.at / "taints", pool.spec.taints):
            yield pool, at, taint
