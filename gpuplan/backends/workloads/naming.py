"""Names and labels of a workload's objects.

A Job's pods cannot be changed, and pods do not look at a ConfigMap again after they have started. Both have names that
change with their content, so that a change is a new object: Argo CD's other way, `Replace=true,Force=true`, deletes and
creates again, and makes no difference to what runs (`docs/user-guide/sync-options.md` there).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from gpuplan.planning.plan import TENANT_LABEL, WORKLOAD_LABEL, Workload

_LONGEST: Final = 63
_DIGITS: Final = 8


def metadata(workload: Workload, name: str, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {"name": name, "namespace": workload.namespace, "labels": {**labels_of(workload), **(labels or {})}}


def labels_of(workload: Workload) -> dict[str, str]:
    return {TENANT_LABEL: workload.tenant.name, WORKLOAD_LABEL: workload.name}


def claim_name(workload: Workload) -> str:
    return f"{workload.name}-model"


def config_name(workload: Workload) -> str:
    return f"{workload.name}-{_digest(workload.spec.config)}"


def job_name(name: str, content: Mapping[str, Any], pods: int = 1) -> str:
    """The name, cut where need be, and a digest of what the Job is.

    A pod's host name is that of its Job and its index, in at most 63 characters: the API server refuses a Job whose
    last pod would have a longer one (`ValidateJob` in `pkg/apis/batch/validation/validation.go` of
    kubernetes/kubernetes).
    """
    room = _LONGEST - _DIGITS - 1 - len(f"-{max(pods - 1, 0)}")
    return f"{name[:room].rstrip('-')}-{_digest(content)}"


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:_DIGITS]
