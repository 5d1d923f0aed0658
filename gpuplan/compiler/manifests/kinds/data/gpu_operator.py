"""Kinds of the NVIDIA GPU Operator, and of what it needs: Node Feature Discovery, and OLM where that installs both."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests.kinds.model import Care, Immutable, Judgement, Kind, Removal

KINDS: Final = (
    # Without a ClusterPolicy the operator removes the driver from every node. The driver is loaded again, other
    # operands restart; how a driver is upgraded one day, and how operands are found, restarts none. The chart's values
    # are judged in the same way: NFD's master, which they have beside the operands, does not run on nodes with GPUs.
    Kind(
        group="nvidia.com",
        kind="ClusterPolicy",
        why="the GPU Operator runs what a ClusterPolicy says; see docs/explanation/what-is-written.md",
        source="NVIDIA/gpu-operator: api/nvidia/v1/clusterpolicy_types.go; controllers/object_controls.go",
        is_namespaced=False,
        is_custom=True,
        care=Care(prune=Removal.NEVER, delete=Removal.CONFIRM, is_applied_by_server=True),
        added=Judgement.BY_FOLDER,
        changed=ChangeClass.METADATA,
        removed=Judgement.BY_FOLDER,
        fields={
            "spec": ChangeClass.PLUGIN_RESTART,
            "spec.driver": ChangeClass.REPARTITION,
            "spec.driver.upgradePolicy": ChangeClass.METADATA,
            # No controller reads it, from v24.6.2 to v26.7.0.
            "spec.operator.defaultRuntime": ChangeClass.METADATA,
            "spec.dcgmExporter.serviceMonitor": ChangeClass.METADATA,
            "spec.nodeStatusExporter.serviceMonitor": ChangeClass.METADATA,
            "spec.node-feature-discovery.master": ChangeClass.METADATA,
            # A job that runs when the release is deleted.
            "spec.node-feature-discovery.postDeleteCleanup": ChangeClass.METADATA,
        },
        immutable=(),
        outlives_policy=False,
    ),
    Kind(
        group="nvidia.com",
        kind="NVIDIADriver",
        why="nodes run more than one driver; see docs/how-to/run-two-drivers.md",
        source="NVIDIA/gpu-operator: api/nvidia/v1alpha1/nvidiadriver_types.go",
        is_namespaced=False,
        is_custom=True,
        added=Judgement.BY_FOLDER,
        changed=Judgement.BY_FOLDER,
        removed=Judgement.BY_FOLDER,
        fields={"spec.upgradePolicy": ChangeClass.METADATA},
        immutable=(Immutable("spec.driverType", default="gpu"), Immutable("spec.usePrecompiled", may_go=True)),
        outlives_policy=False,
    ),
    # Without the label `nvidia.com/mig.config` the operator writes `all-disabled`, and the partitions are gone. So a
    # rule that takes another's place, as after an upgrade of OpenShift, is there before the other goes.
    Kind(
        group="nfd.k8s-sigs.io",
        kind="NodeFeatureRule",
        why="it labels a pool's nodes, and labels partition GPUs; see docs/explanation/split-applications.md",
        source="kubernetes-sigs/node-feature-discovery: api/nfd/v1alpha1/types.go",
        is_namespaced=False,
        is_custom=True,
        care=Care(wave=10, prune=Removal.CONFIRM, delete=Removal.CONFIRM, is_pruned_last=True),
        added=Judgement.NODE_RULES,
        changed=Judgement.NODE_RULES,
        removed=Judgement.BY_FOLDER,
        immutable=(),
        outlives_policy=False,
    ),
    # Without the labels of Node Feature Discovery the operator takes its operands off the nodes. Its workers on nodes
    # do not depend on which labels and taints its master sets.
    Kind(
        group="nfd.openshift.io",
        kind="NodeFeatureDiscovery",
        source="openshift/cluster-nfd-operator: api/v1/nodefeaturediscovery_types.go",
        is_namespaced=True,
        is_custom=True,
        care=Care(wave=-5, prune=Removal.CONFIRM, delete=Removal.CONFIRM),
        added=Judgement.BY_FOLDER,
        changed=ChangeClass.METADATA,
        removed=Judgement.BY_FOLDER,
        fields={
            "spec": ChangeClass.PLUGIN_RESTART,
            "spec.extraLabelNs": ChangeClass.METADATA,
            "spec.enableTaints": ChangeClass.METADATA,
        },
        immutable=(),
        outlives_policy=False,
    ),
    # The rules of OpenShift's NFD do what those of NFD do.
    Kind(
        group="nfd.openshift.io",
        kind="NodeFeatureRule",
        why="it labels a pool's nodes, and labels partition GPUs; see docs/explanation/split-applications.md",
        source="openshift/cluster-nfd-operator: api/v1alpha1/nodefeaturerule_types.go",
        is_namespaced=False,
        is_custom=True,
        care=Care(wave=10, prune=Removal.CONFIRM, delete=Removal.CONFIRM, is_pruned_last=True),
        added=Judgement.NODE_RULES,
        changed=Judgement.NODE_RULES,
        removed=Judgement.BY_FOLDER,
        immutable=(),
        outlives_policy=False,
    ),
    Kind(
        group="operators.coreos.com",
        kind="OperatorGroup",
        why="OLM needs it to install an operator; see docs/explanation/what-is-written.md",
        source="operator-framework/api: pkg/operators/v1/operatorgroup_types.go",
        is_namespaced=True,
        is_custom=True,
        care=Care(wave=-18, prune=Removal.CONFIRM, delete=Removal.CONFIRM),
        added=Judgement.BY_FOLDER,
        changed=Judgement.BY_FOLDER,
        removed=Judgement.BY_FOLDER,
        immutable=(),
        outlives_policy=False,
    ),
    Kind(
        group="operators.coreos.com",
        kind="Subscription",
        why="OLM installs the operator that it names; see docs/explanation/what-is-written.md",
        source="operator-framework/api: pkg/operators/v1alpha1/subscription_types.go",
        is_namespaced=True,
        is_custom=True,
        care=Care(wave=-18, prune=Removal.CONFIRM, delete=Removal.CONFIRM),
        added=Judgement.BY_FOLDER,
        changed=Judgement.BY_FOLDER,
        removed=Judgement.BY_FOLDER,
        immutable=(),
        outlives_policy=False,
    ),
)
