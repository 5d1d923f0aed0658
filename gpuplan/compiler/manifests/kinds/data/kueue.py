"""Kinds of Kueue.

A queue is inactive until all that it names is there. Kueue holds on to flavors, and to queues until their workloads
have ended (its finalizer `resource-in-use`), so that a person takes them out of use first: a ClusterQueue goes when
nothing in it holds quota, a ResourceFlavor and an AdmissionCheck when no ClusterQueue names it, a Topology when no
ResourceFlavor does (`pkg/controller/core` and `pkg/controller/tas`). A LocalQueue and a Cohort have no finalizer.
Immutable fields are rules of the definitions about `oldSelf`; `concurrentAdmissionPolicy` is one of the webhook
(`ValidateClusterQueueUpdate` in `pkg/webhooks/clusterqueue_webhook.go`).
"""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests.kinds.model import Care, Hold, Immutable, Judgement, Kind, Removal

KINDS: Final = (
    Kind(
        group="kueue.x-k8s.io",
        kind="AdmissionCheck",
        source="kubernetes-sigs/kueue: apis/kueue/v1beta2/admissioncheck_types.go",
        is_namespaced=False,
        is_custom=True,
        added=Judgement.BY_FOLDER,
        changed=Judgement.BY_FOLDER,
        removed=Judgement.BY_FOLDER,
        immutable=(Immutable("spec.controllerName"),),
        outlives_policy=True,
        held_by=Hold("spec.admissionChecksStrategy.admissionChecks[*].name", "ClusterQueue"),
    ),
    Kind(
        group="kueue.x-k8s.io",
        kind="ClusterQueue",
        why="Kueue counts a tenant's units by it; see docs/how-to/queue-with-kueue.md",
        source="kubernetes-sigs/kueue: pkg/webhooks/clusterqueue_webhook.go (ValidateClusterQueueUpdate)",
        is_namespaced=False,
        is_custom=True,
        care=Care(wave=-5, prune=Removal.CONFIRM, delete=Removal.CONFIRM),
        added=ChangeClass.QUOTA,
        changed=ChangeClass.QUOTA,
        removed=ChangeClass.TWO_STEP,
        fields={
            "spec": ChangeClass.PREEMPTION_ORDER,
            "spec.resourceGroups": ChangeClass.QUOTA,
            "spec.namespaceSelector": Judgement.SELECTED_NAMESPACES,
            "spec.stopPolicy": Judgement.STOPPED_WORK,
        },
        immutable=(Immutable("spec.concurrentAdmissionPolicy"),),
        outlives_policy=True,
        takes_work=True,
        held_by=Hold("status.reservingWorkloads"),
    ),
    Kind(
        group="kueue.x-k8s.io",
        kind="Cohort",
        why="Kueue lends units between the queues below it; see docs/how-to/queue-with-kueue.md",
        source="kubernetes-sigs/kueue: apis/kueue/v1beta2/cohort_types.go",
        is_namespaced=False,
        is_custom=True,
        care=Care(wave=-7),
        added=ChangeClass.QUOTA,
        changed=ChangeClass.QUOTA,
        removed=ChangeClass.PREEMPTION_ORDER,
        fields={"spec": ChangeClass.PREEMPTION_ORDER, "spec.resourceGroups": ChangeClass.QUOTA},
        immutable=(),
        outlives_policy=True,
    ),
    # Last, so that workloads wait for nothing but their turn. Without it what runs goes on, counted by its
    # ClusterQueue, and what waits is not admitted (`reconcileOnLocalQueueActiveState` in `workload_controller.go`).
    Kind(
        group="kueue.x-k8s.io",
        kind="LocalQueue",
        why="work of a namespace names its queue by it; see docs/how-to/queue-with-kueue.md",
        source="kubernetes-sigs/kueue: apis/kueue/v1beta2/localqueue_types.go",
        is_namespaced=True,
        is_custom=True,
        care=Care(wave=25),
        added=ChangeClass.QUOTA,
        changed=ChangeClass.QUOTA,
        removed=ChangeClass.TWO_STEP,
        fields={"spec": ChangeClass.PREEMPTION_ORDER, "spec.stopPolicy": Judgement.STOPPED_WORK},
        immutable=(Immutable("spec.clusterQueue"),),
        outlives_policy=True,
        takes_work=True,
        held_by=Hold("status.reservingWorkloads"),
    ),
    Kind(
        group="kueue.x-k8s.io",
        kind="ResourceFlavor",
        why="Kueue knows a pool by it; see docs/how-to/queue-with-kueue.md",
        source="kubernetes-sigs/kueue: apis/kueue/v1beta2/resourceflavor_types.go",
        is_namespaced=False,
        is_custom=True,
        care=Care(wave=-8, prune=Removal.CONFIRM, delete=Removal.CONFIRM),
        added=ChangeClass.QUOTA,
        changed=ChangeClass.ADMISSION,
        removed=ChangeClass.TWO_STEP,
        # Its `nodeTaints` may be changed since 0.17.
        immutable=(
            Immutable("spec.nodeLabels", where="spec.topologyName"),
            Immutable("spec.tolerations", where="spec.topologyName"),
            Immutable("spec.topologyName", where="spec.topologyName"),
        ),
        outlives_policy=True,
        held_by=Hold("spec.resourceGroups[*].flavors[*].name", "ClusterQueue"),
    ),
    Kind(
        group="kueue.x-k8s.io",
        kind="Topology",
        why="Kueue keeps work together by it; see docs/how-to/queue-with-kueue.md",
        source="kubernetes-sigs/kueue: apis/kueue/v1beta2/topology_types.go",
        is_namespaced=False,
        is_custom=True,
        care=Care(wave=-9, prune=Removal.CONFIRM, delete=Removal.CONFIRM),
        added=ChangeClass.QUOTA,
        changed=ChangeClass.METADATA,
        removed=ChangeClass.TWO_STEP,
        immutable=(Immutable("spec.levels"),),
        outlives_policy=True,
        held_by=Hold("spec.topologyName", "ResourceFlavor"),
    ),
    Kind(
        group="kueue.x-k8s.io",
        kind="WorkloadPriorityClass",
        why="Kueue orders what waits by it; see docs/how-to/queue-with-kueue.md",
        source="kubernetes-sigs/kueue: apis/kueue/v1beta2/workloadpriorityclass_types.go",
        is_namespaced=False,
        is_custom=True,
        care=Care(wave=-15, prune=Removal.CONFIRM, delete=Removal.CONFIRM),
        added=Judgement.BY_FOLDER,
        changed=ChangeClass.PREEMPTION_ORDER,
        removed=ChangeClass.ADMISSION,
        immutable=(),
        outlives_policy=True,
    ),
)
