"""The ValidatingAdmissionPolicy object, from variables and rules in CEL.

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
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import dedent
from typing import Any, TypeAlias

from gpuplan.values import Value

Match: TypeAlias = Mapping[tuple[str, str], Mapping[str, Sequence[str]]]
"""What a policy judges: by group and version of an API, the operations by resource."""


class AdmissionRule(Value):
    """What must be true of an object, and what its author reads when it is not.

    ``details`` is an expression for a message with names in it; ``message`` is what remains when that fails.
    """

    expression: str
    message: str
    details: str = ""

    def to_validation(self) -> dict[str, str]:
        body = {"expression": _block(self.expression), "message": self.message}
        if self.details:
            body["messageExpression"] = _block(self.details)
        return body | {"reason": "Forbidden"}


def admission_policy(
    name: str,
    match: Match,
    variables: Mapping[str, str],
    rules: Sequence[AdmissionRule],
    *,
    has_parameters: bool,
) -> dict[str, Any]:
    """A policy; its parameters, if it has any, are a ConfigMap that a binding names."""
    spec: dict[str, Any] = {"failurePolicy": "Fail"}
    if has_parameters:
        spec["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
    spec["matchConstraints"] = {
        "resourceRules": [_resource_rule(api, *item) for api, resources in match.items() for item in resources.items()]
    }
    spec["variables"] = [
        {"name": variable, "expression": _block(expression)} for variable, expression in variables.items()
    ]
    spec["validations"] = [rule.to_validation() for rule in rules]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }


def _resource_rule(api: tuple[str, str], resource: str, operations: Sequence[str]) -> dict[str, list[str]]:
    group, version = api
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": [resource],
    }


def _block(expression: str) -> str:
    """Text that ends in a line end is written as a block, in which nothing needs escapes."""
    return dedent(expression).strip("\n") + "\n"
