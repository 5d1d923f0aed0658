"""Kinds of the Gateway API and of KEDA."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests.kinds.model import Judgement, Kind

KINDS: Final = (
    # While it is there, whoever calls its host comes to the service.
    Kind(
        group="gateway.networking.k8s.io",
        kind="HTTPRoute",
        source="kubernetes-sigs/gateway-api: apis/v1/httproute_types.go",
        is_namespaced=True,
        is_custom=True,
        added=Judgement.BY_FOLDER,
        changed=ChangeClass.ADMISSION,
        removed=ChangeClass.ADMISSION,
        immutable=(),
        outlives_policy=True,
    ),
    # Its HorizontalPodAutoscaler goes with it, and the number of pods stays as it was.
    Kind(
        group="keda.sh",
        kind="ScaledObject",
        source="kedacore/keda: apis/keda/v1alpha1/scaledobject_types.go; apis/keda/v1alpha1/scaledobject_webhook.go",
        is_namespaced=True,
        is_custom=True,
        added=Judgement.BY_FOLDER,
        changed=ChangeClass.QUOTA,
        removed=ChangeClass.QUOTA,
        fields={"spec.minReplicaCount": Judgement.NUMBER_OF_PODS, "spec.maxReplicaCount": Judgement.NUMBER_OF_PODS},
        immutable=(),
        outlives_policy=True,
    ),
)
