"""Kinds of KServe.

Without Knative its controller makes a Deployment of an InferenceService, and owns it: pods are recreated where they
change, and go with it (`pkg/controller/v1beta1/inferenceservice/reconcilers/deployment` there).
"""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests.kinds.model import Care, Judgement, Kind

# Labels and annotations are its pods', too, but for five annotations (`buildObjectMeta` in
# `pkg/controller/v1beta1/inferenceservice/components/predictor.go`, `createRawDefaultDeployment` in
# `reconcilers/deployment/deployment_reconciler.go`, `ServiceAnnotationDisallowedList` in
# `pkg/constants/constants.go`, v0.20.0).
KINDS: Final = (
    Kind(
        group="serving.kserve.io",
        kind="InferenceService",
        source="kserve/kserve: pkg/apis/serving/v1beta1/inference_service_validation.go (ValidateUpdate)",
        is_namespaced=True,
        is_custom=True,
        care=Care(),
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
