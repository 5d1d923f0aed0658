"""What pods must show on clusters with Kueue: that they wait for it, or that a Job made them which did.

Kueue holds pods back by a scheduling gate, which its webhook adds before policies look, and a Job by `suspend`. It
passes over whatever names an owner that it manages already (`FindAncestorJobManagedByKueue` in
`pkg/controller/jobframework/reconciler.go` of Kueue), and anybody may write an owner: a pod that calls itself part of
a small Job would run on no quota. So what is not gated must have been made by a controller, and a Job, which may call
itself part of another as well, starts when Kueue or another controller starts it.
"""

from __future__ import annotations

from typing import Any, Final

from gpuplan.backends.scheduling.controllers import IS_CONTROLLER
from gpuplan.manifests import AdmissionRule, admission_policy
from gpuplan.planning.kueue import ADMISSION_GATE

JOBS_POLICY: Final = "gpuplan-jobs"
"""The ValidatingAdmissionPolicy that leaves it to Kueue when Jobs with GPUs start; it needs no parameters."""

KUEUE_VARIABLES = {
    "isGated": f"""
        has(object.spec.schedulingGates) && object.spec.schedulingGates.exists(g, g.name == '{ADMISSION_GATE}')
        """,
    "otherOwners": r"has(params.data.otherOwners) ? params.data.otherOwners.split('\n') : []",
    # The pods of these kinds are never gated: Kueue holds back the owner. Deployments are not among them.
    "isOfJob": """
        has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o,
          has(o.controller) && o.controller &&
          (o.apiVersion + ' ' + o.kind == 'batch/v1 Job' ||
            o.apiVersion + ' ' + o.kind in variables.otherOwners))
        """,
    **IS_CONTROLLER,
}

_WAITS_FOR_KUEUE = AdmissionRule(
    "!variables.usesGpus || variables.isGated || (variables.isOfJob && variables.isController)",
    f"pods that ask for GPUs must wait for Kueue: its webhook adds the scheduling gate {ADMISSION_GATE} to pods that "
    "name no owner",
)

KUEUE_RULES = (_WAITS_FOR_KUEUE,)
"""Of `gpuplan-grants`, for new pods."""

GATE_STAYS = AdmissionRule(
    f"""
    variables.isNew || !has(oldObject.spec.schedulingGates) ||
    !oldObject.spec.schedulingGates.exists(g, g.name == '{ADMISSION_GATE}') ||
    (has(object.spec.schedulingGates) && object.spec.schedulingGates.exists(g, g.name == '{ADMISSION_GATE}')) ||
    variables.isController
    """,
    f"the scheduling gate {ADMISSION_GATE} is for Kueue to take away, when it admits the pod",
)
"""Of `gpuplan-devices`, for pods that exist."""


def jobs_policy() -> dict[str, Any]:
    """Kueue's webhook has suspended new Jobs before policies look. A Job that runs may be changed."""
    match = {("batch", "v1"): {"jobs": ["CREATE", "UPDATE"]}}
    return admission_policy(JOBS_POLICY, match, _JOB_VARIABLES, (_STARTED_BY_KUEUE,), has_parameters=False)


_JOB_VARIABLES = {
    "pod": "object.spec.template.spec",
    "containers": "variables.pod.containers + (has(variables.pod.initContainers) ? variables.pod.initContainers : [])",
    "usesGpus": """
        has(variables.pod.resourceClaims) ||
        variables.containers.exists(c, has(c.resources) && has(c.resources.limits) &&
          c.resources.limits.exists(r, r.startsWith('nvidia.com/') && c.resources.limits[r] != '0'))
        """,
    "isHeld": "has(object.spec.suspend) && object.spec.suspend",
    "wasHeld": "request.operation == 'CREATE' || (has(oldObject.spec.suspend) && oldObject.spec.suspend)",
    "isController": "authorizer.group('batch').resource('jobs').check('patch').allowed()",
}

_STARTED_BY_KUEUE = AdmissionRule(
    "variables.isHeld || !variables.wasHeld || !variables.usesGpus || variables.isController",
    "Jobs that ask for GPUs must be suspended until Kueue starts them; its webhook suspends those that name no owner",
)
