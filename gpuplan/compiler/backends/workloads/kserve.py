"""Services whose pods KServe makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gpuplan.compiler.backends.workloads.bodies import MAIN, NOTHING, PORTION_LIMIT, terms_of, workload_object
from gpuplan.compiler.backends.workloads.pods import pod_template
from gpuplan.compiler.backends.workloads.tracing import Several, Traces
from gpuplan.compiler.manifests.provenance import Routes, chosen, copied
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.planning.sources import named
from gpuplan.compiler.policy.models import Inference

API: Final = "serving.kserve.io/v1beta1"
KIND: Final = "InferenceService"

CONTAINER: Final = "kserve-container"
"""KServe's name of the container of a predictor, also if it is the only one (`Default` in
`pkg/apis/serving/v1beta1/predictor_custom.go` of kserve/kserve)."""

_MODE: Final = {"serving.kserve.io/deploymentMode": "RawDeployment"}
"""A Deployment and no Knative. It is called `Standard` since v0.16, which takes this name, too: releases before it know
no other (`DeploymentModeType` in `pkg/constants/constants.go`)."""

_SCALED_BY_OTHERS: Final = {"serving.kserve.io/autoscalerClass": "external"}

_INTERNAL: Final = {"networking.kserve.io/visibility": "cluster-local"}
"""KServe makes an Ingress or an HTTPRoute of everything else, which nobody has asked for, and whose name is that of the
workload's own (`pkg/controller/v1beta1/inferenceservice/reconcilers/ingress`)."""

_STRATEGY: Final = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
"""As a Deployment has it: KServe's own adds a quarter more pods (`setDefaultDeploymentSpec` in its
`reconcilers/deployment/deployment_reconciler.go`). Releases before v0.13 do not know the field, and those before v0.14,
and v0.15.0, write `replicas: 1` into the Deployment with each change of it (`checkDeploymentExist`, `Reconcile`
there)."""

_PREDICTOR: Final = ("spec", "predictor")


def deployment_of(workload: Workload) -> Mapping[str, Any]:
    """Return the Deployment that KServe makes (`PredictorServiceName` in `pkg/constants/constants.go`)."""
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": f"{workload.name}-predictor"}}


def inference_service(plan: Plan, workload: Workload, work: Inference, container: Mapping[str, Any]) -> dict[str, Any]:
    """Return a predictor with a container of its own; ``container`` is what only containers have that listen.

    KServe makes a Deployment of it, and hands on labels and annotations to it and to its pods, but for a few of
    Knative's and of its own (`ServiceAnnotationDisallowedList` in `pkg/constants/constants.go`): so the Service, the
    route and the autoscaler that lead to a workload's pods lead to these. Where a number is fixed, KServe's own
    autoscaler keeps it, since the Deployment has none.
    """
    asked = terms_of(plan, workload)
    template = pod_template(plan, workload, asked, {}, container, dict(asked.env))
    metadata, spec = template["metadata"], template["spec"]
    spec["containers"] = [{**item, "name": CONTAINER} if item["name"] == MAIN else item for item in spec["containers"]]
    annotations = {_renamed(key): text for key, text in metadata.get("annotations", {}).items()}
    scaling = work.autoscaling
    predictor = {
        "minReplicas": scaling.min_replicas if scaling else work.replicas,
        "maxReplicas": scaling.max_replicas if scaling else work.replicas,
        "deploymentStrategy": _STRATEGY,
        "labels": metadata["labels"],
        **({"annotations": annotations} if annotations else {}),
        **spec,
    }
    own = {**asked.annotations, **_MODE, **(_SCALED_BY_OTHERS if scaling else NOTHING)}
    labels = {**asked.labels, **_INTERNAL}
    return workload_object(API, KIND, workload.name, workload, labels, own, spec={"predictor": predictor})


def _renamed(annotation: str) -> str:
    """Return the annotation with the container's name, if it is about a container."""
    return annotation.replace(f"/container.{MAIN}.", f"/container.{CONTAINER}.")


# --- Where it comes from -------------------------------------------------------------------------------------------


def kserve_routes(of: Traces, work: Inference, listening: Several) -> Routes:
    """``listening`` is about what only containers have that listen."""
    at, asked = of.workload.work_at, terms_of(of.plan, of.workload)
    yield (), chosen(at / "kind")
    yield from of.metadata(named(of.workload))
    yield from of.asked(asked.labels, asked.annotations)
    scaling = at / "autoscaling"
    yield ("metadata", "annotations", *_SCALED_BY_OTHERS), chosen(scaling)
    for field in ("minReplicas", "maxReplicas"):
        yield (*_PREDICTOR, field), copied(scaling / field if work.autoscaling else at / "replicas")
    for route, links in of.pod(listening):
        is_limit = route == ("metadata", "annotations", PORTION_LIMIT)
        yield (*_PREDICTOR, *(("annotations", _renamed(PORTION_LIMIT)) if is_limit else route[1:])), links
