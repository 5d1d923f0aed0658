"""What the objects of workloads have in common: their names and labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gpuplan.compiler.manifests.bodies import digest, new_object
from gpuplan.compiler.manifests.provenance import Trace
from gpuplan.compiler.planning.plan import MAIN_CONTAINER, TENANT_LABEL, WORKLOAD_LABEL, Workload
from gpuplan.compiler.planning.workspaces import files_of

NOTHING: Final[Mapping[str, str]] = {}

MAIN: Final = MAIN_CONTAINER

TEMPLATE: Final = ("spec", "template")
"""Where most kinds have their pods."""

BEFORE, AFTER = 0, 1
"""What pods need, and what runs them. Whoever waits until what comes first is healthy waits for downloads and for no
service or training. A volume without a download may wait for its first pod, so it comes with the pods."""

Written = tuple[int, dict[str, Any], Trace]
"""Which of the two, an object, and where it comes from."""

_LONGEST: Final = 63


def workload_object(
    api_version: str,
    kind: str,
    name: str,
    workload: Workload,
    labels: Mapping[str, str] = NOTHING,
    annotations: Mapping[str, str] = NOTHING,
    **body: object,
) -> dict[str, Any]:
    """An object of a workload, with what its scheduler reads there."""
    all_labels = {**labels_of(workload), **labels}
    return new_object(
        api_version, kind, name, workload.namespace, labels=all_labels, annotations=dict(annotations), **body
    )


def labels_of(workload: Workload) -> dict[str, str]:
    return {TENANT_LABEL: workload.tenant.name, WORKLOAD_LABEL: workload.name}


def selector_of(workload: Workload) -> dict[str, str]:
    """It can never be changed, so it is what never changes; no other pods of the namespace have the label."""
    return {WORKLOAD_LABEL: workload.name}


def config_name(workload: Workload) -> str:
    return f"{workload.name}-{digest(files_of(workload))}"


def job_name(name: str, content: Mapping[str, Any], pods: int = 1, around: str = "") -> str:
    """The name, cut where need be, and a digest of what the Job is.

    A Job's pods cannot be changed, and pods do not look at a ConfigMap again after they have started. Both have names
    that change with their content, so that a change is a new object: Argo CD's other way, `Replace=true,Force=true`,
    deletes and creates again, and makes no difference to what runs (`docs/user-guide/sync-options.md` there).

    A pod's host name is that of its Job and its index, in at most 63 characters: the API server refuses a Job whose
    last pod would have a longer one (`ValidateJob` in `pkg/apis/batch/validation/validation.go` of
    kubernetes/kubernetes). ``around`` is what else the longest name has that somebody makes of this one.
    """
    room = _LONGEST - len("-12345678") - len(f"-{max(pods - 1, 0)}{around}")
    return f"{name[:room].rstrip('-')}-{digest(content)}"
