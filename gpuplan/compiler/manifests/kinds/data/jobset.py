"""Kinds of JobSet."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests.kinds.model import Care, Immutable, Judgement, Kind

KINDS: Final = (
    Kind(
        group="jobset.x-k8s.io",
        kind="JobSet",
        source="kubernetes-sigs/jobset: api/jobset/v1alpha2/jobset_types.go; pkg/webhooks/jobset_webhook.go",
        is_namespaced=True,
        is_custom=True,
        care=Care(),
        added=ChangeClass.QUOTA,
        changed=Judgement.BY_FOLDER,
        removed=Judgement.BY_FOLDER,
        fields={},
        immutable=(
            Immutable("spec.replicatedJobs"),
            Immutable("spec.network"),
            Immutable("spec.successPolicy"),
            Immutable("spec.failurePolicy"),
            Immutable("spec.startupPolicy"),
            Immutable("spec.volumeClaimPolicies"),
            Immutable("spec.managedBy"),
        ),
        outlives_policy=True,
    ),
)
