"""The ValidatingAdmissionPolicy object, from the variables and rules in CEL of a data file.

What holds for every expression:

- It is evaluated after the API server's own validation (`BeforeCreate` comes first in `pkg/registry/generic/registry/
  store.go` of kubernetes/apiserver), so it sees objects that are valid and defaulted.
- A field that may be absent is asked for with `has()`. An expression that fails refuses the object: `failurePolicy:
  Fail`.
- Variables are evaluated when first used. One may name only those before it: the API server refuses the whole policy
  otherwise (`Variables` in `admissionregistration/v1/types.go` of kubernetes/api).
- All messages are evaluated for every object, refused or not; one that fails is replaced by the constant ``message``
  (`pkg/admission/plugin/policy/validating/validator.go` of kubernetes/apiserver).
- Functions are those of Kubernetes 1.30: CEL's own, strings and quantities, no comprehensions of two variables.
- Of several refusals the API server reports the first, so the rule that says most comes first.

A row of `variables` has a `name` and what it `is`; a row of `rules` says what `must` be true of an object, the
`message` that its author reads when it is not, and in `details` an expression for a message with names in it. The
`message` is what remains when that one fails.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from gpuplan.manifests.bodies import given, new_object
from gpuplan.manifests.templates import Row, filled, rows_for

_API: Final = "admissionregistration.k8s.io/v1"


def admission_policy(name: str, policy: Row, facts: Collection[str], values: Mapping[str, str]) -> dict[str, Any]:
    """A policy where some facts hold; its parameters, if it has any, are a ConfigMap that a binding names."""
    spec: dict[str, Any] = {"failurePolicy": "Fail"}
    if policy["parameters"]:
        spec["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
    spec["matchConstraints"] = {
        "resourceRules": [
            _resource_rule(api, resource, operations)
            for api, resources in policy["match"].items()
            for resource, operations in resources.items()
        ]
    }
    spec["variables"] = [
        {"name": row["name"], "expression": filled(row["is"], values)} for row in rows_for(facts, policy["variables"])
    ]
    spec["validations"] = [_validation(row, values) for row in rows_for(facts, policy["rules"])]
    return new_object(_API, "ValidatingAdmissionPolicy", name, spec=spec)


def admission_binding(
    name: str, policy: str, namespaces: Mapping[str, Any], parameters: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A policy in the namespaces that a selector chooses. While its parameters are missing all is refused."""
    reference = {**parameters, "parameterNotFoundAction": "Deny"} if parameters else None
    spec = given(
        policyName=policy,
        paramRef=reference,
        matchResources={"namespaceSelector": namespaces},
        validationActions=["Deny", "Audit"],
    )
    return new_object(_API, "ValidatingAdmissionPolicyBinding", name, spec=spec)


def _resource_rule(api: str, resource: str, operations: list[str]) -> dict[str, list[str]]:
    group, _, version = api.rpartition("/")
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": [resource],
    }


def _validation(row: Row, values: Mapping[str, str]) -> dict[str, str]:
    names = {"must": "expression", "message": "message", "details": "messageExpression"}
    body = {field: filled(row[key], values) for key, field in names.items() if key in row}
    return body | {"reason": "Forbidden"}
