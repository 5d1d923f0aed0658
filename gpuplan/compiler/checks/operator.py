"""Checks on the GPU Operator: its installation, its releases (GPU757 on MPS, too) and its own pods (GPU600-619)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.diagnostics import Finding, Label, Severity
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.catalog import parse_profile
from gpuplan.compiler.catalog.operators import (
    CHARTS_POLICY,
    OPERAND_TOLERATIONS,
    DriverEffect,
    default_driver,
    driver_defects,
    find_line,
    is_tolerated,
    lines,
    nearest_line,
    parse_version,
    runs_nfd_hook,
)
from gpuplan.compiler.checks.mig import mig_pools, unmet_by_pools
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.gpu_operator import stated_driver, writes_nfd
from gpuplan.compiler.planning.hand_files import Object, read
from gpuplan.compiler.planning.plan import Plan, Stage
from gpuplan.compiler.planning.sync_names import sync_name
from gpuplan.compiler.policy.models import Allocation, ClusterMigStrategy, Install, MigStrategy, NodeLabels, Platform

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
    applying a patch can set a field, not remove one that has another owner. What the owner merges with
    `clusterPolicyPatch: snippet` removes it.

    ## Instead
    Where all pools agree, write their strategy as `migStrategy`. Else have the owner leave the strategy out (Helm:
    `mig.strategy: ""`), and suppress the finding with that as the reason. The chart then renders `mig: null`, which the
    API server refuses of a server-side apply: an Application of Argo CD has to do without `ServerSideApply=true`, and
    Helm 4 needs `--server-side=false`.
    """
    operator = plan.cluster.gpu_operator
    mixed = [(pool, mig) for pool, mig in mig_pools(plan) if mig.spec.strategy is MigStrategy.MIXED]
    is_applied = operator.spec.install is Install.EXTERNAL and not operator.is_merged_by_owner
    is_open = is_applied and operator.spec.mig_strategy is ClusterMigStrategy.PER_POOL
    if is_open and mixed:
        pool, mig = mixed[0]
        agreed = f"write `migStrategy: {MigStrategy.MIXED.value}`: all pools agree"
        yield Finding(
            operator.at / "install",
            "the ClusterPolicy's owner must leave `spec.mig.strategy` unset",
            label="set by somebody else, to `single` by default",
            related=(Label(mig.at.key, f"pool `{pool.name}` is `mixed`"),),
            help=agreed if len(mixed) == len(list(mig_pools(plan))) else 'have the owner set `mig.strategy: ""`',
        )


# --- Objects -----------------------------------------------------------------------------------------------------

_STOCK_CONFIG = "default-mig-parted-config"


@check("GPU615", "operator-object-by-hand")
def operator_object_by_hand(plan: Plan) -> Iterator[Finding]:
    """A hand-written object takes the place of one that the GPU Operator or gpuplan owns.

    ## Why
    A cluster has one ClusterPolicy: of two the operator obeys the older and does not look at the other. A GPUCluster
    is for Dynamic Resource Allocation and excludes a ClusterPolicy. The ConfigMap
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


def _fault(written: Object, install: Install) -> tuple[str, str, str] | None:
    if written.kind == "ConfigMap":
        is_stock = written.name == _STOCK_CONFIG
        return ("is reset by the operator", "undone at once", "write a MigLayout instead") if is_stock else None
    if written.is_patch or written.group != "nvidia.com":
        return None
    if written.kind == "GPUCluster":
        return "excludes the ClusterPolicy", "the operator takes one of the two", "remove it"
    values = "write the chart's values under `gpuOperator.values`"
    remedy = values if install is Install.HELM else "move it from `resources` to `patches`"
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
    defaults = (CHARTS_POLICY, *(("gpu-cluster-policy",) if plan.cluster.spec.platform is Platform.OPENSHIFT else ()))
    if operator.spec.install is Install.HELM and operator.cluster_policy not in defaults:
        yield Finding(
            operator.at / "clusterPolicy",
            f"the Helm chart does not name its ClusterPolicy `{operator.cluster_policy}`",
            label=f"it is `{CHARTS_POLICY}`",
            help="remove `clusterPolicy`",
        )


@check("GPU618", "labels-go-with-the-release", Severity.WARNING)
def labels_go_with_the_release(plan: Plan) -> Iterator[Finding]:
    """Deleting the operator's release or its Application dissolves all partitions of the cluster.

    ## Why
    The chart brings Node Feature Discovery with a job that runs after its release is deleted, and takes all of NFD's
    labels and taints off all nodes, `nvidia.com/mig.config` among them. A GPU Operator that still runs then labels the
    nodes `all-disabled`. Argo CD runs the job too when the Application is deleted, even where it leaves all objects
    (`finalizeApplicationDeletion` in its `controller/appcontroller.go`). From v25.10 on gpuplan switches the job off;
    charts before it run it whatever the values say (`post-delete-job.yaml` of NFD 0.16 and 0.17).

    ## Instead
    Use the operator from v25.10 on. Or install NFD from a chart of its own, 0.18 or later with `postDeleteCleanup:
    false`, and write `nfd: false`. Until then nobody may delete the release or the Application; suppress the finding
    with what keeps them from it as the reason.
    """
    operator = plan.cluster.gpu_operator
    if operator.spec.install is Install.HELM and operator.spec.nfd and runs_nfd_hook(operator.version):
        what = f"the Application `{sync_name(plan.cluster.name, Stage.GPU_OPERATOR)}`" if plan.cluster.argocd else ""
        yield Finding(
            operator.at / "version",
            f"deleting {what or 'the release `gpu-operator`'} takes the labels of all pools off their nodes",
            label="its chart cannot switch NFD's clean-up off",
            help="use v25.10 or later, or write `nfd: false` and install NFD from a chart of its own",
        )


@check("GPU619", "patch-without-effect")
def patch_without_effect(plan: Plan) -> Iterator[Finding]:
    """A cluster says how a ClusterPolicy is patched that gpuplan or the chart writes whole.

    ## Why
    `clusterPolicyPatch` is about a ClusterPolicy that somebody else owns, which `install: external` says. With `helm`
    the chart makes it of gpuplan's values, and with `olm` gpuplan writes all of it.

    ## Instead
    Remove `clusterPolicyPatch`, or write `install: external`.
    """
    operator = plan.cluster.gpu_operator
    if operator.spec.install is not Install.EXTERNAL and "cluster_policy_patch" in operator.spec.model_fields_set:
        yield Finding(
            (operator.at / "clusterPolicyPatch").key,
            f"`clusterPolicyPatch` has no effect with `install: {operator.spec.install.value}`",
            label="nothing is patched",
            related=(Label(operator.at / "install", "the ClusterPolicy is written whole"),),
            help="remove it, or write `install: external`",
        )


_PLUGIN_THAT_TELLS_SUFFIXES_APART = (0, 20)


# --- The release -------------------------------------------------------------------------------------------------


@check("GPU602", "unknown-operator-release", Severity.NOTE)
def unknown_operator_release(plan: Plan) -> Iterator[Finding]:
    """gpuplan knows nothing of this line of GPU Operator releases.

    ## Why
    Helm values, the ClusterPolicy's fields and known defects differ between lines. For one that gpuplan does not know
    it uses the nearest older one, which may be wrong in details.

    ## Instead
    Use a line that gpuplan knows, or compare the generated files with the release's own documentation.
    """
    version = plan.cluster.gpu_operator.version
    if parse_version(version) is not None and find_line(version) is None:
        yield Finding(
            plan.cluster.gpu_operator.at / "version",
            f"GPU Operator {version} is of a line that gpuplan does not know",
            label=f"read as {nearest_line(version).name}",
            notes=(f"known lines: {listing([line.name for line in lines()], shown=len(lines()))}",),
        )


@check("GPU605", "unsupported-kubernetes", Severity.WARNING)
def unsupported_kubernetes(plan: Plan) -> Iterator[Finding]:
    """The GPU Operator's release does not support the cluster's Kubernetes version.

    ## Why
    NVIDIA tests each line of releases on a range of Kubernetes versions (page "Platform Support" of the operator's
    documentation). Outside of it the operator may still run, but its problems are the cluster's own.

    ## Instead
    Upgrade the operator before Kubernetes, one line at a time.
    """
    line = find_line(plan.cluster.gpu_operator.version)
    kubernetes = parse_version(plan.cluster.spec.kubernetes)
    if line is None or kubernetes is None:
        return
    oldest, newest = parse_version(line.oldest_kubernetes), parse_version(line.newest_kubernetes)
    if (oldest and kubernetes < oldest) or (newest and kubernetes > newest):
        yield Finding(
            plan.cluster.at / "kubernetes",
            f"GPU Operator {line.name} does not support Kubernetes {plan.cluster.spec.kubernetes}",
            label=f"it supports {line.oldest_kubernetes or 'versions up'} to {line.newest_kubernetes}",
            related=(Label(plan.cluster.gpu_operator.at / "version", "this release"),),
            help="use another line of the operator",
        )


# --- What the release brings -------------------------------------------------------------------------------------


@check("GPU612", "suffix-profile-needs-newer-plugin", Severity.WARNING)
def suffix_profile_needs_newer_plugin(plan: Plan) -> Iterator[Finding]:
    """A pool publishes profiles such as `1g.10gb+me` with a device plugin that takes them for others.

    ## Why
    Under the strategy `mixed` the device plugin finds a device's resource by a pattern of its profile. Before v0.20,
    which comes with the operator v26.7, the pattern of a plain profile also matches the same profile with a suffix, so
    that a device may be published under the wrong name (NVIDIA/k8s-device-plugin#1807).

    ## Instead
    Use the operator from v26.7 on, or profiles without `+` and `-`.
    """
    line = find_line(plan.cluster.gpu_operator.version)
    if line is None or line.device_plugin >= _PLUGIN_THAT_TELLS_SUFFIXES_APART:
        return
    for pool, mig in mig_pools(plan):
        parsed = {name: parse_profile(name) for entry in mig.layout.entries for name in entry.instances}
        names = sorted(name for name, profile in parsed.items() if profile is not None and not profile.is_plain)
        if names and mig.spec.strategy is MigStrategy.MIXED:
            yield Finding(
                mig.layout_at,
                f"pool `{pool.name}` has {listing(names)}, which the device plugin of {line.name} may misname",
                label="may be published as the plain profile",
                related=(Label(plan.cluster.gpu_operator.at / "version", "this release"),),
                help="use the operator from v26.7 on, or plain profiles",
            )


@check("GPU757", "mps-daemon-starts-empty", Severity.WARNING)
def mps_daemon_starts_empty(plan: Plan) -> Iterator[Finding]:
    """A pool shares GPUs by MPS with an operator whose MPS daemons most often start without a configuration.

    ## Why
    From the operator v26.3 on, what reads the node's label for a pod of the MPS control daemon does so before the API
    server has answered, and takes it for empty (`Get` in `cmd/config-manager/main.go` of NVIDIA/k8s-device-plugin,
    from v0.18.2 on). It sees the right one a moment later, and cannot tell the daemon: it looks for a process whose
    command is `/usr/bin/mps-control-daemon`, which the operator starts as `mps-control-daemon` (`PROCESS_TO_SIGNAL`
    and `command` in `assets/state-mps-control-daemon/0400_daemonset.yaml` of NVIDIA/gpu-operator, the same in
    v26.7.0). The daemon waits for ever, the device plugin for the daemon, and the node hands out no shares.

    ## Instead
    Use the operator v25.10, or share by time-slicing.
    """
    operator = plan.cluster.gpu_operator
    line = find_line(operator.version)
    for pool in plan.pools if line is not None and line.reads_label_late else ():
        if pool.runs_mps and pool.spec.allocation is Allocation.DEVICE_PLUGIN:
            yield Finding(
                pool.at / "sharing",
                f"the MPS daemons of pool `{pool.name}` most often start without their configuration",
                label="no shares are handed out",
                related=(Label(operator.at / "version", "this release"),),
                help="use the operator v25.10, or share by time-slicing",
            )


@check("GPU613", "default-driver-breaks-mig")
def default_driver_breaks_mig(plan: Plan) -> Iterator[Finding]:
    """The driver that this release installs by default does not work with a pool's boards, or with MIG as it uses it.

    ## Why
    A policy that names no driver gets the release's own. Some have defects: with 570.148.08, the default of v25.3.1,
    pods stay Pending on a node that has both partitioned and whole GPUs (NVIDIA/gpu-operator#1361). Others are older
    than the boards: v24.9.2 installs 550.144.03, which does not know a B200, and its nodes publish no GPUs.

    ## Instead
    Name a driver in `gpuOperator.driver.version`, or use another release.
    """
    operator = plan.cluster.gpu_operator
    if operator.spec.driver.version or not operator.spec.driver.enabled or operator.spec.install is Install.EXTERNAL:
        return
    driver = default_driver(operator.version)
    for pool, mig in mig_pools(plan):
        known = [defect for defect in driver_defects() if defect.effect in _FAULTS and defect.has(driver)]
        if pool.find_unit("gpu") is None:
            known = [defect for defect in known if defect.effect is DriverEffect.NO_MIG]
        for defect in known if stated_driver(plan, pool)[0] is None else ():
            yield Finding(
                operator.at / "version",
                f"GPU Operator {operator.version} installs driver {driver}, {_FAULTS[defect.effect]}",
                label="its default driver",
                related=(Label(mig.layout_at, f"pool `{pool.name}` needs it"),),
                notes=(defect.source,),
                help="name another driver in `gpuOperator.driver.version`",
            )
            return
    for found in unmet_by_pools(plan, lambda pool: (None if stated_driver(plan, pool)[0] else driver, operator.at)):
        yield Finding(
            operator.at / "version",
            f"GPU Operator {operator.version} installs driver {driver}, which is too old for {found.needing}",
            label="its default driver",
            related=found.labels,
            help=f"name a driver from {found.least} on in `gpuOperator.driver.version`",
        )


_FAULTS = {
    DriverEffect.NO_MIG: "which does not support MIG",
    DriverEffect.NO_MIG_BESIDE_WHOLE_GPUS: "which does not work with MIG beside whole GPUs",
}


@check("GPU614", "cdmm-excludes-mig", Severity.WARNING)
def cdmm_excludes_mig(plan: Plan) -> Iterator[Finding]:
    """A pool partitions GPUs of a Grace system, where the driver's memory mode may exclude MIG.

    ## Why
    From driver 580.65.06 on, Grace systems run under Kubernetes in the mode CDMM, in which the driver and not the
    operating system manages the GPU's memory. MIG cannot be enabled in that mode, so that mig-manager fails on every
    node. Where the driver or the board is not known exactly, this is a note.

    ## Instead
    Switch CDMM off on these nodes, by the kernel module parameter `NVreg_CoherentGPUMemoryMode=numa`, or share the GPUs
    by time-slicing.
    """
    operator = plan.cluster.gpu_operator
    cdmm = next(defect for defect in driver_defects() if defect.effect is DriverEffect.CDMM)
    for pool, mig in mig_pools(plan):
        stated, named = stated_driver(plan, pool)
        driver = stated or default_driver(operator.version)
        if driver and not cdmm.has(driver):
            continue
        hit = [cdmm.hits(product.label) for product in pool.gpu.products]
        if any(hit):
            yield Finding(
                mig.at.key,
                f"pool `{pool.name}` partitions {pool.gpu.id}, which CDMM does not allow",
                label="fails while CDMM is on",
                related=(Label(named, "this driver"),) if stated else (),
                notes=(f"on Grace systems CDMM is on by default from driver {cdmm.since} on: {cdmm.source}",),
                help="load the driver with `NVreg_CoherentGPUMemoryMode=numa` on these nodes",
                severity=None if driver and all(hit) else Severity.NOTE,
            )


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
    for pool in plan.pools:
        for taint in pool.taints:
            if not is_tolerated(OPERAND_TOLERATIONS, taint.key, taint.value, taint.effect):
                toleration = f"{{key: {taint.key}, operator: Exists, effect: {taint.effect.value}}}"
                yield Finding(
                    taint.at,
                    f"the GPU Operator's pods do not tolerate `{taint.key}:{taint.effect.value}` of pool `{pool.name}`",
                    label="no GPUs under this taint",
                    related=(Label(plan.cluster.gpu_operator.at / "install", "not gpuplan's to change"),),
                    notes=("they tolerate `nvidia.com/gpu:NoSchedule`",),
                    help=f"add `{toleration}` to `daemonsets.tolerations` of the ClusterPolicy and to NFD's worker",
                )


@check("GPU610", "nodes-cannot-be-selected")
def nodes_cannot_be_selected(plan: Plan) -> Iterator[Finding]:
    """Nothing says which nodes a pool's labels are for.

    ## Why
    With `nodeLabels: nfd` a rule selects a pool's nodes by name, by a pattern of names, or by their boards: NFD's rules
    see what its worker finds on a node, and not the labels that say which group it is in. A rule with none of these
    would match every node that has an NVIDIA GPU. With `nodeLabels: node` there is an object for each node, so the
    names are needed. Only `external` needs neither, since node groups label their own nodes, which `nodes.selector`
    can name.

    ## Instead
    Add `nodes.namePattern` or `nodes.names`. Where the pool has all nodes with its board, `nodes.matchBoards: true` is
    enough. Or have the node groups set the labels with `nodeLabels: external`.
    """
    mode = plan.cluster.spec.node_labels
    is_nfd = mode is NodeLabels.NFD
    for pool in plan.pools if mode is not NodeLabels.EXTERNAL else ():
        nodes = pool.nodes
        # A pattern that matches nothing, such as an empty one, is reported for itself.
        is_chosen = is_nfd and (nodes.name_pattern is not None or bool(nodes.boards))
        if not nodes.names and not nodes.selector and not is_chosen:
            yield Finding(
                nodes.at.key,
                f"nothing says which nodes get the labels of pool `{pool.name}`",
                label="neither `names` nor `namePattern`" if is_nfd else "no `names`",
                related=(Label(plan.cluster.at / "nodeLabels", f"`{mode.value}` needs them"),),
                help="add `namePattern` or `names`, or `matchBoards: true` if the pool has all nodes with its board"
                if is_nfd
                else "add `names`, one for each node",
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
    mode = plan.cluster.spec.node_labels
    if mode is NodeLabels.EXTERNAL or (mode is NodeLabels.NFD and writes_nfd(plan.cluster)):
        return
    cause, remedy = _UNTAINTED[mode]
    for pool in plan.pools:
        if pool.taints:
            yield Finding(
                pool.at / "taints" if pool.spec.taints else pool.taints[0].at,
                f"nothing puts the taints of pool `{pool.name}` on its nodes",
                label=cause,
                related=(Label(plan.cluster.at / "nodeLabels", f"labels come by `{mode.value}`"),),
                help=remedy,
            )


_UNTAINTED = {
    NodeLabels.NFD: ("NFD ignores taints by default", "set `enableTaints: true` in the configuration of NFD's master"),
    NodeLabels.NODE: (
        "`nodeLabels: node` sets labels only",
        "have the nodes register with them; `partitions/node-groups.yaml` lists them",
    ),
}
