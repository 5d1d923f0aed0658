"""Kinds of LeaderWorkerSet.

Where a template changes, its controller replaces the replicas of a set one after the other, each with all of its pods.
With a set that goes its pods end.
"""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests.kinds.model import Care, Immutable, Judgement, Kind

KINDS: Final = (
    Kind(
        group="leaderworkerset.x-k8s.io",
        kind="LeaderWorkerSet",
        source="kubernetes-sigs/lws: pkg/webhooks/leaderworkerset_webhook.go (ValidateUpdate)",
        is_namespaced=True,
        is_custom=True,
        care=Care(),
        added=ChangeClass.QUOTA,
        changed=ChangeClass.QUOTA,
        removed=Judgement.BY_FOLDER,
        fields={
            "spec": ChangeClass.RECREATE,
            "spec.replicas": Judgement.NUMBER_OF_PODS,
            "spec.rolloutStrategy": ChangeClass.QUOTA,
            "spec.startupPolicy": ChangeClass.QUOTA,
        },
        immutable=(Immutable("spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"),),
        outlives_policy=True,
    ),
)
