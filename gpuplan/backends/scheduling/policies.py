"""The admission policies that keep tenants apart: what they refuse, and why, is said in `policies.yaml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from gpuplan.manifests import admission_policy
from gpuplan.manifests.templates import read_rows
from gpuplan.planning.dra import uses_claims
from gpuplan.planning.grants import DEVICE_VARIABLES, FRACTION, GRANTS_POLICY, SYSTEM_NAMESPACE
from gpuplan.planning.kueue import ADMISSION_GATE
from gpuplan.planning.plan import POOL_LABEL, TENANT_LABEL, Plan
from gpuplan.planning.schedulers.kai import NODE_POOL_LABEL, QUEUE_LABEL, SCHEDULER_NAME

_FILE: Final = Path(__file__).with_name("policies.yaml")
_NAMES: Final = {"grants": GRANTS_POLICY, "devices": "gpuplan-devices", "jobs": "gpuplan-jobs"}
"""Names of objects by those in the file."""


def pod_policies(plan: Plan) -> Iterator[dict[str, Any]]:
    """The policies that judge what tenants' pods ask for, and how they get it."""
    yield _policy(plan, "grants")
    yield _policy(plan, "devices")


def fixed_objects(plan: Plan) -> Iterator[dict[str, Any]]:
    """The bindings of both, and the further policies of a scheduler with theirs: no quota and no class changes them."""
    yield _grants_binding()
    yield _tenants_binding(_NAMES["devices"])
    for name in read_rows(_FILE)["further"][plan.scheduler.kind.value]:
        yield _policy(plan, name)
        yield _tenants_binding(_NAMES[name])


def _policy(plan: Plan, name: str) -> dict[str, Any]:
    facts = {
        "claims": uses_claims(plan),
        "finds-pools": plan.scheduler.finds_pools,
        "fractions": plan.scheduler.has_fractions,
        plan.scheduler.kind.value: True,
    }
    holding = {fact for fact, is_so in facts.items() if is_so}
    return admission_policy(_NAMES[name], read_rows(_FILE)[name], holding, _values(plan, holding))


def _values(plan: Plan, facts: set[str]) -> Mapping[str, str]:
    """What stands in the places of the file's texts."""
    uses = {"claims": "size(variables.claims) > 0 || ", "fractions": "variables.asksFraction || "}
    schedulers = plan.scheduler.pod_schedulers
    default = max((priority.spec.value for priority in plan.priority_classes if priority.spec.default), default=0)
    return {
        "default_priority": str(default),
        "device_variables": str(list(DEVICE_VARIABLES)),
        "fraction": FRACTION,
        "gate": ADMISSION_GATE,
        "kai_scheduler": SCHEDULER_NAME,
        "node_pool_label": NODE_POOL_LABEL,
        "pool_label": POOL_LABEL,
        "queue_label": QUEUE_LABEL,
        "schedulers": str(list(schedulers)),
        "schedulers_listed": " or ".join(schedulers),
        "uses_otherwise": "".join(text for fact, text in uses.items() if fact in facts),
    }


def _grants_binding() -> dict[str, Any]:
    """A binding in no namespace, so that there is one while no tenant has a namespace.

    An API server that finds no binding with parameters of a kind stops to read that kind, for good: parameters that
    come later do not exist for it, and those that it has seen stay in force until it is started again
    (https://github.com/kubernetes/kubernetes/issues/130887). The kind is ConfigMap for all policies of gpuplan.
    """
    parameters = {"name": "grants", "namespace": SYSTEM_NAMESPACE, "parameterNotFoundAction": "Deny"}
    return _binding(GRANTS_POLICY, {"paramRef": parameters}, "kubernetes.io/metadata.name", "DoesNotExist")


def _tenants_binding(policy: str) -> dict[str, Any]:
    """A policy without parameters, in all namespaces of tenants at once."""
    return _binding(policy, {}, TENANT_LABEL, "Exists")


def _binding(policy: str, parameters: dict[str, Any], label: str, operator: str) -> dict[str, Any]:
    selector = {"matchExpressions": [{"key": label, "operator": operator}]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": policy},
        "spec": {
            "policyName": policy,
            **parameters,
            "matchResources": {"namespaceSelector": selector},
            "validationActions": ["Deny", "Audit"],
        },
    }
