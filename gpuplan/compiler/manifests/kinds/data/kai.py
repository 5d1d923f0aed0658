"""Kinds of KAI-Scheduler.

Without its shard nothing is placed on a pool's nodes, and without its queue no new work of a tenant starts.
"""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests.kinds.model import Care, Immutable, Judgement, Kind, Removal

KINDS: Final = (
    Kind(
        group="kai.scheduler",
        kind="SchedulingShard",
        why="KAI-Scheduler schedules each pool by itself; see docs/how-to/share-with-kai.md",
        source="NVIDIA/KAI-Scheduler: pkg/apis/kai/v1/schedulingshard_types.go",
        is_namespaced=False,
        is_custom=True,
        care=Care(wave=-8, prune=Removal.CONFIRM, delete=Removal.CONFIRM),
        added=ChangeClass.QUOTA,
        changed=ChangeClass.ADMISSION,
        removed=ChangeClass.ADMISSION,
        immutable=(),
        outlives_policy=True,
    ),
    Kind(
        group="kai.scheduler",
        kind="Topology",
        why="KAI-Scheduler keeps work together by it; see docs/how-to/share-with-kai.md",
        source="NVIDIA/KAI-Scheduler: pkg/apis/kai/v1alpha1/topology_types.go",
        is_namespaced=False,
        is_custom=True,
        care=Care(wave=-9, prune=Removal.CONFIRM, delete=Removal.CONFIRM),
        added=ChangeClass.QUOTA,
        changed=ChangeClass.METADATA,
        removed=Judgement.BY_FOLDER,
        # Since 0.17 the aliases of levels may be changed, which no policy writes.
        immutable=(Immutable("spec.levels"),),
        outlives_policy=True,
    ),
    # A queue with others below it cannot be deleted.
    Kind(
        group="scheduling.run.ai",
        kind="Queue",
        why="KAI-Scheduler counts a tenant's units by it; see docs/how-to/share-with-kai.md",
        source="NVIDIA/KAI-Scheduler: pkg/apis/scheduling/v2",
        is_namespaced=False,
        is_custom=True,
        care=Care(wave=-7, prune=Removal.CONFIRM, delete=Removal.CONFIRM),
        added=ChangeClass.QUOTA,
        changed=ChangeClass.QUOTA,
        removed=ChangeClass.TWO_STEP,
        fields={
            "spec": ChangeClass.PREEMPTION_ORDER,
            "spec.displayName": ChangeClass.QUOTA,
            "spec.resources": ChangeClass.QUOTA,
            "spec.resources.gpu.overQuotaWeight": ChangeClass.PREEMPTION_ORDER,
        },
        immutable=(),
        outlives_policy=True,
    ),
)
