"""Kinds of Kubeflow Trainer."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests.kinds.model import Care, Immutable, Judgement, Kind

KINDS: Final = (
    Kind(
        group="trainer.kubeflow.org",
        kind="TrainJob",
        source="kubeflow/trainer: pkg/apis/trainer/v1alpha1/trainjob_types.go",
        is_namespaced=True,
        is_custom=True,
        care=Care(),
        added=ChangeClass.QUOTA,
        changed=Judgement.BY_FOLDER,
        removed=Judgement.BY_FOLDER,
        fields={},
        immutable=(
            Immutable("spec.runtimeRef"),
            Immutable("spec.initializer"),
            Immutable("spec.trainer"),
            Immutable("spec.activeDeadlineSeconds"),
            Immutable("spec.managedBy"),
        ),
        outlives_policy=True,
    ),
    # Trainer reads it when it makes the JobSet and, up to v2.2, again when the TrainJob has been suspended (`Build` in
    # `pkg/runtime/framework/plugins/jobset/jobset.go`). v2.3 keeps what it has read first (`NewObjects` in
    # `pkg/runtime/core/trainingruntime.go`, `getRuntimeSnapshot`).
    Kind(
        group="trainer.kubeflow.org",
        kind="TrainingRuntime",
        source="kubeflow/trainer: manifests/base/crds/trainer.kubeflow.org_trainingruntimes.yaml",
        is_namespaced=True,
        is_custom=True,
        care=Care(),
        added=ChangeClass.QUOTA,
        changed=Judgement.BY_FOLDER,
        removed=Judgement.BY_FOLDER,
        fields={},
        immutable=(
            Immutable("spec.template.spec.network"),
            Immutable("spec.template.spec.successPolicy"),
            Immutable("spec.template.spec.failurePolicy"),
            Immutable("spec.template.spec.startupPolicy"),
            Immutable("spec.template.spec.volumeClaimPolicies"),
        ),
        outlives_policy=True,
    ),
)
