"""Checks on OpenShift's ways: OLM, its Node Feature Discovery and its console (GPU665-669)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.diagnostics import Finding, Label, Severity
from gpuplan.compiler.base.plain import mapping, text, value_at
from gpuplan.compiler.catalog.openshift import (
    CONSOLE_NAMESPACE,
    DASHBOARD_LABEL,
    NFD_NAMESPACE,
    NFD_OPERATOR_TOLERATIONS,
    UPSTREAM_RULES,
    nfd_operator,
)
from gpuplan.compiler.catalog.operators import OPERATORS_PACKAGE, is_tolerated
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.gpu_operator import has_openshifts_nfd, rules_group, writes_nfd
from gpuplan.compiler.planning.hand_files import read
from gpuplan.compiler.planning.plan import Plan, Stage
from gpuplan.compiler.policy.models import Install, NodeLabels, Platform

# --- OLM ---------------------------------------------------------------------------------------------------------


@check("GPU665", "driver-follows-olm", Severity.NOTE)
def driver_follows_olm(plan: Plan) -> Iterator[Finding]:
    """OLM goes on from the operator's release that the policy names to newer ones, which may bring another driver.

    ## Why
    `version: v26.7.0` becomes the channel `v26.7` and `startingCSV: gpu-operator-certified.v26.7.0`. OLM looks at
    `startingCSV` only while nothing is installed; after that it takes whatever in the channel replaces the installed
    release (`SolveOperators` in operator-lifecycle-manager's `pkg/controller/registry/resolver`). So a patch release
    arrives when the catalog has it, and no earlier release is ever gone back to. Where the policy names no driver, the
    driver is the release's: another one replaces it on node after node, at the cost of the pods that use GPUs there and
    whatever the pools' `disruption` says. Another line comes with a change of `version` alone.

    gpuplan does not write `installPlanApproval: Manual`. With it every release that waits for approval would delay all
    later syncs: Argo CD calls the Subscription `Progressing` and does not begin the next wave.

    ## Instead
    Name the driver's version: then a patch release replaces the operator's own pods and no driver. Where even that must
    wait for a person, set `installPlanApproval: Manual` by a patch in `overlays/<cluster>/kustomize/gpu-operator/`.
    """
    operator = plan.cluster.gpu_operator
    keeps_driver = bool(operator.spec.driver.version) or not operator.spec.driver.enabled
    if operator.spec.install is not Install.OLM or keeps_driver:
        return
    # A JSON patch does not say which Subscription it is for.
    patches = (patch for patch in read(plan).of_kind("Subscription", "") if patch.stage == Stage.GPU_OPERATOR)
    approvals = [
        value_at(patch.body, ("spec", "installPlanApproval"))
        for patch in patches
        if patch.name in ("", OPERATORS_PACKAGE)
    ]
    if "Manual" not in approvals:
        yield Finding(
            operator.at / "version",
            f"OLM goes on from {operator.version} to newer releases of its line, and to their drivers",
            label="where OLM starts, not where it stays",
            notes=("without `driver.version` the driver is the one that the installed release brings",),
            help="write `driver: {version: ...}`",
        )


@check("GPU668", "second-operator-group")
def second_operator_group(plan: Plan) -> Iterator[Finding]:
    """A namespace gets a second OperatorGroup.

    ## Why
    An OperatorGroup says which namespaces the operators beside it watch, and a namespace may have one. With two, OLM
    installs nothing in that namespace: every ClusterServiceVersion fails with `TooManyOperatorGroups`. gpuplan writes
    one for the GPU Operator and one for Node Feature Discovery. `openshift-operators` has one that comes with the
    cluster, and it is for operators of all namespaces, which the GPU Operator is not.

    ## Instead
    Leave `namespace` out: `nvidia-gpu-operator` is the GPU Operator's own. Remove OperatorGroups that were written by
    hand for either.
    """
    operator = plan.cluster.gpu_operator
    if operator.spec.install is not Install.OLM:
        return
    taken = {"openshift-operators": "has the cluster's own"}
    if operator.spec.nfd:
        taken[NFD_NAMESPACE] = "has that of Node Feature Discovery"
    if operator.namespace in taken:
        yield Finding(
            operator.at / "namespace",
            f"namespace `{operator.namespace}` gets a second OperatorGroup",
            label=taken[operator.namespace],
            help="leave it out: the GPU Operator's own is `nvidia-gpu-operator`",
        )
    written = {operator.namespace, NFD_NAMESPACE} if operator.spec.nfd else {operator.namespace}
    for found in read(plan).of_kind("OperatorGroup"):
        namespace = text(found.metadata.get("namespace"))
        if not found.is_patch and namespace in written:
            yield Finding(
                found.place("metadata", "namespace"),
                f"{found.title} is a second one in namespace `{namespace}`",
                label="OLM then installs nothing here",
                help="remove it, or patch the one that gpuplan writes",
            )


# --- Node Feature Discovery --------------------------------------------------------------------------------------


@check("GPU666", "taint-beyond-nfd-operator", Severity.WARNING)
def taint_beyond_nfd_operator(plan: Plan) -> Iterator[Finding]:
    """A pool has a taint that this release of OpenShift's NFD operator cannot set, or does not survive.

    ## Why
    With `nodeLabels: nfd`, NFD puts taints on nodes. OpenShift's operator can be told to since 4.17 (Kubernetes 1.30).
    Its workers tolerate every taint with the effect `NoSchedule`; other tolerations can be added since 4.20
    (Kubernetes 1.33). Before that, a taint with the effect `NoExecute` drives the worker off the very node that it has
    labelled, and NFD may forget the node: its labels go, and with `nvidia.com/mig.config` its partitions.

    ## Instead
    Use the effect `NoSchedule`. Before 4.17, have the node groups set taints with `nodeLabels: external`.
    """
    cluster, operator = plan.cluster, nfd_operator(plan.cluster.spec.kubernetes)
    is_olms = has_openshifts_nfd(cluster) and writes_nfd(cluster)
    for pool in plan.pools if cluster.spec.node_labels is NodeLabels.NFD and is_olms else ():
        for taint in pool.taints:
            is_tolerated_there = is_tolerated(NFD_OPERATOR_TOLERATIONS, taint.key, taint.value, taint.effect)
            if not operator.sets_taints:
                lack, label = "NFD does not set taint", "not before OpenShift 4.17"
            elif not operator.takes_tolerations and not is_tolerated_there:
                lack, label = "NFD's own worker does not tolerate", "drives it off the node"
            else:
                continue
            yield Finding(
                taint.at,
                f"{lack} `{taint.key}:{taint.effect.value}` of pool `{pool.name}`",
                label=label,
                related=(Label(cluster.at / "kubernetes", f"OpenShift with Kubernetes {cluster.spec.kubernetes}"),),
                help="write `effect: NoSchedule`" if operator.sets_taints else "write `nodeLabels: external`",
            )


@check("GPU667", "rule-that-nobody-reads")
def rule_that_nobody_reads(plan: Plan) -> Iterator[Finding]:
    """A hand-written NodeFeatureRule is of an API group that the cluster's NFD does not read.

    ## Why
    Node Feature Discovery reads rules of the group `nfd.k8s-sigs.io`. OpenShift's operator had a group of its own,
    `nfd.openshift.io`, and reads no other before 4.20 (Kubernetes 1.33); from then on it copies those rules to the
    other group. Elsewhere that group does not exist. A rule of the wrong group is refused, because its definition is
    missing, or, where another NFD has brought that, stored and never looked at: no node gets its labels.

    ## Instead
    Write the group that the finding names.
    """
    group = rules_group(plan.cluster)
    is_openshifts = has_openshifts_nfd(plan.cluster)
    for found in read(plan).of_kind("NodeFeatureRule"):
        # Newer releases of OpenShift's operator copy rules of its own group.
        if found.is_patch or not found.group or found.group == group or (is_openshifts and group == UPSTREAM_RULES):
            continue
        yield Finding(
            found.place("apiVersion"),
            f"no NFD of this cluster reads {found.title} of group `{found.group}`",
            label="labels nothing",
            related=(Label(plan.cluster.at / "kubernetes", "OpenShift before 4.20"),) if is_openshifts else (),
            help=f"write `apiVersion: {group}/v1alpha1`",
        )


# --- The console -------------------------------------------------------------------------------------------------


@check("GPU669", "dashboard-out-of-sight", Severity.WARNING)
def dashboard_out_of_sight(plan: Plan) -> Iterator[Finding]:
    """A hand-written dashboard lies where the console of OpenShift does not look.

    ## Why
    The console shows dashboards from ConfigMaps with the label `console.openshift.io/dashboard` in the namespace
    `openshift-config-managed`, and in no other. A `namespace` in a kustomization, meant for the operator's objects,
    moves a dashboard out of sight as well.

    ## Instead
    Write `namespace: openshift-config-managed`. Or leave dashboards to gpuplan: `monitoring` in the Cluster.
    """
    if plan.cluster.spec.platform is not Platform.OPENSHIFT:
        return
    for found in read(plan).of_kind("ConfigMap"):
        is_dashboard = text(mapping(found.metadata.get("labels")).get(DASHBOARD_LABEL)) == "true"
        namespace = text(found.metadata.get("namespace"))
        if is_dashboard and not found.is_patch and namespace != CONSOLE_NAMESPACE:
            where = ("metadata", "namespace") if namespace else ("metadata", "name")
            yield Finding(
                found.place(*where),
                f"the console does not show {found.title} in namespace `{namespace}`"
                if namespace
                else f"{found.title} has no namespace, and the console shows those of `{CONSOLE_NAMESPACE}`",
                label="not where the console looks",
                help=f"write `namespace: {CONSOLE_NAMESPACE}`",
            )
