"""Work that ends: a Job."""

from __future__ import annotations

from typing import Any, Final

from gpuplan.backends.workloads.naming import job_name, metadata
from gpuplan.backends.workloads.pods import pod_template
from gpuplan.backends.workloads.schedulers import terms
from gpuplan.planning.plan import Plan, Workload
from gpuplan.policy.models import Training

_EVICTED: Final = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
"""A pod that has to make way, for another or for a node's maintenance, has not failed."""


def job(plan: Plan, workload: Workload, training: Training) -> dict[str, Any]:
    """All pods at once, each with a number of its own (`JOB_COMPLETION_INDEX`) and once to its end.

    It stays when it has ended: were it deleted after a time, it would be missed and run again. Kueue takes no Job in
    that runs already (`ValidateJobOnUpdate` in `pkg/controller/jobframework/validation.go` there), so that the labels
    are part of what the Job is.
    """
    asked = terms(plan, workload)
    annotations = dict(asked.annotations)
    spec = {
        "parallelism": training.pods,
        "completions": training.pods,
        "completionMode": "Indexed",
        "backoffLimit": training.backoff_limit,
        "podFailurePolicy": {"rules": [_EVICTED]},
        "template": pod_template(workload, asked, {"restartPolicy": "Never"}, {}),
    }
    name = job_name(workload.name, {"labels": asked.labels, "spec": spec}, training.pods)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            **metadata(workload, name, asked.labels),
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": spec,
    }
