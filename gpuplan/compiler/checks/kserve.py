"""Checks on services whose pods KServe makes (GPU529)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpuplan.compiler.base.diagnostics import Finding, Severity
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import name_of
from gpuplan.compiler.planning.apis import needed_api
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.planning.projects import seconds
from gpuplan.compiler.planning.serving import probe_of
from gpuplan.compiler.policy.models import Api, Inference


@check("GPU529", "not-kept-by-kserve")
def not_kept_by_kserve(plan: Plan) -> Iterator[Finding]:
    """A service that is an InferenceService asks for something that KServe does not keep.

    ## Why
    KServe makes the Deployment, and adds to it what it takes for granted. A container without a probe is asked at its
    first port or at 8080 (`setDefaultPodSpec` in
    `pkg/controller/v1beta1/inferenceservice/reconcilers/deployment/deployment_reconciler.go`), and one without CPU or
    memory gets one CPU and 2 GiB, as the ConfigMap `inferenceservice-config` says that comes with it
    (`setResourceRequirementDefaults` in `pkg/apis/serving/v1beta1/inference_service_defaults.go`). The variable
    `STORAGE_URI` has it download a model by itself. A container of one's own is one pod to a replica. The Deployment's
    name is a label of its pods, `isvc.<name>-predictor`, of at most 63 characters. A Deployment counts as failed after
    ten minutes without progress, however long a container may take to start.

    Labels and annotations of an InferenceService are those of its pods as well, but for five annotations
    (`buildObjectMeta` in `pkg/controller/v1beta1/inferenceservice/components/predictor.go`, v0.20.0): KServe recreates
    all pods when one changes, and `gpuplan diff` says so. Argo CD and Flux mark what they sync in the same way: where
    one of them takes over an InferenceService that is there, its pods are recreated once.

    ## Instead
    Write what the help names, or leave `kind` out: gpuplan's own Deployment keeps all of it.
    """
    for workload in plan.workloads:
        if needed_api(workload) is Api.INFERENCE_SERVICE and isinstance(workload.work, Inference):
            yield from _beyond_kserve(workload, workload.work)


_LONGEST: Final = 63 - len("isvc.-predictor")
_PATIENCE: Final = 600
_STORAGE: Final = "STORAGE_URI"


def _beyond_kserve(workload: Workload, work: Inference) -> Iterator[Finding]:
    at, name, spec = workload.work_at, workload.name, workload.spec
    other = "or leave `kind` out"
    refused = (
        (work.pods_per_replica > 1, at / "podsPerReplica", "has several pods to a replica", "leave one of the two out"),
        (
            probe_of(work) == "none",
            at / ("port" if work.probe is None else "probe"),
            "is asked nothing, and KServe would ask it at a port",
            f"add a probe, such as `probe: {{command: [cat, /tmp/ready]}}`, {other}",
        ),
        (
            len(name) > _LONGEST,
            name_of(workload.at),
            f"has a name of {len(name)} characters",
            f"write one of at most {_LONGEST}, {other}",
        ),
        (
            _STORAGE in spec.env,
            (workload.at / "env" / _STORAGE).key,
            "would have KServe download a model",
            "write `model`",
        ),
        (
            work.canary is not None,
            (at / "canary").key,
            "has a canary beside the pods that KServe makes",
            "leave one of the two out",
        ),
        (
            bool(workload.pod_patch),
            (workload.at / "podPatch").key,
            "patches pods that KServe makes",
            "leave one of the two out",
        ),
    )
    for is_so, place, what, instead in refused:
        if is_so:
            yield Finding(place, f"`{name}` {what}", label="not kept by KServe", help=instead)
    for field, text in (("cpu", spec.cpu), ("memory", spec.memory)):
        if not text:
            yield Finding(
                at / "kind",
                f"`{name}` says nothing of its {field.upper() if field == 'cpu' else field}, and KServe does",
                label="one CPU and 2 GiB, as KServe comes",
                help=f"add `{field}: {'4' if field == 'cpu' else '32Gi'}`, or as much as a pod needs",
                severity=Severity.WARNING,
            )
    if work.startup is not None and seconds(work.startup) > _PATIENCE:
        yield Finding(
            at / "startup",
            f"`{name}` may take {work.startup} to start, and counts as failed after 10m until it has",
            label="longer than a Deployment of KServe is waited for",
            help="leave it as it is, where nobody acts on that",
            severity=Severity.NOTE,
        )
