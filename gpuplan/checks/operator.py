"""Checks on the GPU Operator's installation and its objects (GPU600-619)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.checks.handwritten.reading import Object, read
from gpuplan.checks.layouts import mig_pools
from gpuplan.checks.registry import check
from gpuplan.diagnostics import Finding, Label, Severity
from gpuplan.planning.plan import Plan
from gpuplan.policy.models import ClusterMigStrategy, Install, MigStrategy, Platform

# --- MIG strategy ------------------------------------------------------------------------------------------------


@check("GPU606", "overridden-mig-strategy")
def overridden_mig_strategy(plan: Plan) -> Iterator[Finding]:
    """The cluster's MIG strategy overrides a pool's own.

    ## Why
    `ClusterPolicy.spec.mig.strategy` becomes the environment variable MIG_STRATEGY of the device plugin, GPU feature
    discovery and the MPS daemon, and that wins over the strategy in a pool's configuration. The nodes then publish
    other resources than the plan counts: `nvidia.com/gpu` instead of `nvidia.com/mig-1g.10gb`, or the reverse. With
    `none`, partitioned GPUs are published whole, and pods on them fail.

    ## Instead
    Use `migStrategy: perPool`, or give all pools the cluster's strategy.
    """
    strategy = plan.cluster.gpu_operator.spec.mig_strategy
    for pool, mig in mig_pools(plan) if strategy is not ClusterMigStrategy.PER_POOL else ():
        own = mig.spec.strategy.value
        if own != strategy.value:
            yield Finding(
                plan.cluster.gpu_operator.at / "migStrategy",
                f"the cluster's MIG strategy `{strategy.value}` overrides `{own}` of pool `{pool.name}`",
                label="wins over the pools",
                related=(Label(mig.at / "strategy", f"`{own}` here"),),
                help="write `migStrategy: perPool`",
            )


@check("GPU607", "mig-strategy-left-to-owner", Severity.WARNING)
def mig_strategy_left_to_owner(plan: Plan) -> Iterator[Finding]:
    """Pools choose their MIG strategy, and somebody else's ClusterPolicy may override them.

    ## Why
    With `migStrategy: perPool` the field `spec.mig.strategy` of the ClusterPolicy must not be set. The operator's Helm
    chart sets it to `single` unless told otherwise, and with `install: external` the ClusterPolicy is not gpuplan's:
    applying a patch can set a field, not remove one that has another owner.

    ## Instead
    Where all pools agree, write their strategy as `migStrategy`. Else have the owner leave the strategy out (Helm:
    `mig.strategy: ""`), and suppress the finding with that as the reason.
    """
    operator = plan.cluster.gpu_operator
    if operator.spec.install is not Install.EXTERNAL or operator.spec.mig_strategy is not ClusterMigStrategy.PER_POOL:
        return
    mixed = [(pool, mig) for pool, mig in mig_pools(plan) if mig.spec.strategy is MigStrategy.MIXED]
    if not mixed:
        return
    strategies = {mig.spec.strategy for _, mig in mig_pools(plan)}
    agreed = f"write `migStrategy: {MigStrategy.MIXED.value}`: all pools agree"
    yield Finding(
        operator.at / "install",
        "the ClusterPolicy's owner must leave `spec.mig.strategy` unset",
        label="set by somebody else, to `single` by default",
        related=tuple(Label(mig.at.key, f"pool `{pool.name}` is `mixed`") for pool, mig in mixed[:1]),
        help=agreed if len(strategies) == 1 else 'have the owner set `mig.strategy: ""`',
    )


# --- Objects -----------------------------------------------------------------------------------------------------

_STOCK_CONFIG = "default-mig-parted-config"


@check("GPU615", "operator-object-by-hand")
def operator_object_by_hand(plan: Plan) -> Iterator[Finding]:
    """A hand-written object takes the place of one that the GPU Operator or gpuplan owns.

    ## Why
    A cluster has one ClusterPolicy: of two the operator obeys the older and sets the other's state to `ignored`. A
    GPUCluster is for Dynamic Resource Allocation and excludes a ClusterPolicy. The ConfigMap
    `default-mig-parted-config` is the operator's own, and it undoes every change.

    ## Instead
    Change the ClusterPolicy by a patch, and write layouts as MigLayout documents.
    """
    for found in read(plan).of_kind("ClusterPolicy", "GPUCluster", "ConfigMap"):
        if fault := _fault(found, plan.cluster.gpu_operator.spec.install):
            yield Finding(
                found.place("metadata", "name"),
                f"{found.title} {fault[0]}",
                label=fault[1],
                related=(Label(plan.cluster.gpu_operator.at.key, "the operator is set up here"),),
                help=fault[2],
            )


def _fault(found: Object, install: Install) -> tuple[str, str, str] | None:
    if found.kind == "ConfigMap":
        is_stock = found.name == _STOCK_CONFIG
        return ("is reset by the operator", "undone at once", "write a MigLayout instead") if is_stock else None
    if found.is_patch or found.group != "nvidia.com":
        return None
    if found.kind == "GPUCluster":
        return "excludes the ClusterPolicy", "the operator takes one of the two", "remove it"
    is_charts = install is Install.HELM
    remedy = (
        "write the chart's values under `gpuOperator.values`" if is_charts else "move it from `resources` to `patches`"
    )
    return "is a second one", "the operator obeys one ClusterPolicy", remedy


# --- Installation ------------------------------------------------------------------------------------------------


@check("GPU616", "install-does-not-fit-platform", Severity.WARNING)
def install_does_not_fit_platform(plan: Plan) -> Iterator[Finding]:
    """The operator is to come from OLM on a cluster that is not OpenShift.

    ## Why
    gpuplan subscribes to `gpu-operator-certified` of the catalog `certified-operators`, which OpenShift brings. On
    another distribution, OLM, if it is there at all, does not have that catalog, and the Subscription stays unresolved.

    ## Instead
    Write `platform: openshift` if it is one, else `install: helm`.
    """
    operator = plan.cluster.gpu_operator
    if operator.spec.install is Install.OLM and plan.cluster.spec.platform is not Platform.OPENSHIFT:
        yield Finding(
            operator.at / "install",
            "the catalog that OLM would install the GPU Operator from is OpenShift's",
            label="not without OpenShift",
            related=(Label(plan.cluster.at / "platform", f"this is `{plan.cluster.spec.platform.value}`"),),
            help="write `install: helm`, or `platform: openshift` beside it",
        )


_CHART_NAME = "cluster-policy"
_OPENSHIFT_NAME = "gpu-cluster-policy"


@check("GPU617", "cluster-policy-renamed")
def cluster_policy_renamed(plan: Plan) -> Iterator[Finding]:
    """A name is given to a ClusterPolicy that the Helm chart names itself.

    ## Why
    The chart gpu-operator calls its ClusterPolicy `cluster-policy`, whatever the values say. A name in the policy would
    have no effect, and whoever looks for it would find nothing.

    ## Instead
    Remove `clusterPolicy`. It is for `install: olm` and `external`.
    """
    operator = plan.cluster.gpu_operator
    default = {_CHART_NAME, _OPENSHIFT_NAME} if plan.cluster.spec.platform is Platform.OPENSHIFT else {_CHART_NAME}
    if operator.spec.install is Install.HELM and operator.cluster_policy not in default:
        yield Finding(
            operator.at / "clusterPolicy",
            f"the Helm chart does not name its ClusterPolicy `{operator.cluster_policy}`",
            label=f"it is `{_CHART_NAME}`",
            help="remove `clusterPolicy`",
        )
