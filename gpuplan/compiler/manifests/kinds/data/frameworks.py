"""Kinds of JobSet, LeaderWorkerSet, Kubeflow Trainer and KServe."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests.kinds.model import QUEUE_OF_PODS, Immutable, Judgement, Kind

# Labels and annotations are its pods', too, but for five annotations (`buildObjectMeta` in
# `pkg/controller/v1beta1/inferenceservice/components/predictor.go`, `createRawDefaultDeployment` in
# `reconcilers/deployment/deployment_reconciler.go`, `ServiceAnnotationDisallowedList` in
# `pkg/constants/constants.go`, v0.20.0).

KINDS: Final = (
    Kind(
        group="jobset.x-k8s.io",
        kind="JobSet",
        source="kubernetes-sigs/jobset: api/jobset/v1alpha2/jobset_types.go; pkg/webhooks/jobset_webhook.go",
        is_namespaced=True,
        is_custom=True,
        added=ChangeClass.QUOTA,
        changed=Judgement.BY_FOLDER,
        removed=Judgement.BY_FOLDER,
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
    Kind(
        group="leaderworkerset.x-k8s.io",
        kind="LeaderWorkerSet",
        source="kubernetes-sigs/lws: pkg/webhooks/leaderworkerset_webhook.go (ValidateUpdate)",
        is_namespaced=True,
        is_custom=True,
        added=ChangeClass.QUOTA,
        changed=ChangeClass.QUOTA,
        removed=Judgement.BY_FOLDER,
        fields={
            "spec": ChangeClass.RECREATE,
            "spec.replicas": Judgement.NUMBER_OF_PODS,
            "spec.rolloutStrategy": ChangeClass.QUOTA,
            "spec.startupPolicy": ChangeClass.QUOTA,
        },
        immutable=(Immutable("spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"), QUEUE_OF_PODS),
        outlives_policy=True,
    ),
    Kind(
        group="trainer.kubeflow.org",
        kind="TrainJob",
        source="kubeflow/trainer: pkg/apis/trainer/v1alpha1/trainjob_types.go",
        is_namespaced=True,
        is_custom=True,
        added=ChangeClass.QUOTA,
        changed=Judgement.BY_FOLDER,
        removed=Judgement.BY_FOLDER,
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
        added=ChangeClass.QUOTA,
        changed=Judgement.BY_FOLDER,
        removed=Judgement.BY_FOLDER,
        immutable=(
            Immutable("spec.template.spec.network"),
            Immutable("spec.template.spec.successPolicy"),
            Immutable("spec.template.spec.failurePolicy"),
            Immutable("spec.template.spec.startupPolicy"),
            Immutable("spec.template.spec.volumeClaimPolicies"),
        ),
        outlives_policy=True,
    ),
    Kind(
        group="serving.kserve.io",
        kind="InferenceService",
        source="kserve/kserve: pkg/apis/serving/v1beta1/inference_service_validation.go (ValidateUpdate)",
        is_namespaced=True,
        is_custom=True,
        added=ChangeClass.QUOTA,
        changed=ChangeClass.QUOTA,
        removed=Judgement.BY_FOLDER,
        fields={
            "metadata.annotations": ChangeClass.RECREATE,
            "metadata.labels": ChangeClass.RECREATE,
            "spec": ChangeClass.RECREATE,
            "spec.predictor.deploymentStrategy": ChangeClass.QUOTA,
            "spec.predictor.maxReplicas": Judgement.NUMBER_OF_PODS,
            "spec.predictor.minReplicas": Judgement.NUMBER_OF_PODS,
        },
        immutable=(),
        outlives_policy=True,
    ),
)
