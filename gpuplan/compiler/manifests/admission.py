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

A row of `variables` has a `name` and what it `is`; where there are rows of `when`, all must be true for an object to be
judged at all, and they know no variables. A row of `rules` has a `name` of its own among all rules, and says
what `must` be true of an object, the `message` that its author reads when it is not, and in `details` an expression for
a message with names in it. The `message` is what remains when that one fails. A cluster's policy may leave a rule out
that has `optional`: a part of a sentence that says what is possible without it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.manifests.bodies import given, new_object
from gpuplan.compiler.manifests.templates import Row, filled, rows_for

_API: Final = "admissionregistration.k8s.io/v1"


class AdmissionRule(Value):
    """A rule on an object. ``details`` is an expression for a message, and empty if ``message`` says all."""

    name: str
    must: str
    message: str
    details: str
    optional: str

    @property
    def body(self) -> dict[str, str]:
        details = {"messageExpression": self.details} if self.details else {}
        return {"expression": self.must, "message": self.message, **details, "reason": "Forbidden"}


class AdmissionPolicy(Value):
    """A policy. ``match`` has the operations by version and resource, ``variables`` are in the order of their use.

    An object is judged where all ``conditions`` are true. Parameters, if it ``has_parameters``, are a ConfigMap that a
    binding names. ``why`` is the reason why gpuplan writes it, as in `Manifest`.
    """

    name: str
    why: str
    has_parameters: bool
    match: Mapping[str, Mapping[str, Sequence[str]]]
    conditions: Mapping[str, str]
    variables: Mapping[str, str]
    rules: tuple[AdmissionRule, ...]

    def only(self, names: Collection[str]) -> AdmissionPolicy:
        """The policy with some of its rules."""
        return replace(self, rules=tuple(rule for rule in self.rules if rule.name in names))

    @property
    def body(self) -> dict[str, Any]:
        """The ValidatingAdmissionPolicy."""
        spec: dict[str, Any] = {"failurePolicy": "Fail"}
        if self.has_parameters:
            spec["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
        spec["matchConstraints"] = {
            "resourceRules": [
                _resource_rule(api, resource, operations)
                for api, resources in self.match.items()
                for resource, operations in resources.items()
            ]
        }
        if self.conditions:
            spec["matchConditions"] = _named(self.conditions)
        spec["variables"] = _named(self.variables)
        spec["validations"] = [rule.body for rule in self.rules]
        return new_object(_API, "ValidatingAdmissionPolicy", self.name, spec=spec)


def policy_of(
    name: str, rows: Row, facts: Collection[str], values: Mapping[str, str], without: Collection[str] = ()
) -> AdmissionPolicy:
    """A policy where some facts hold, less the rules of some names."""
    return AdmissionPolicy(
        name=name,
        why=rows.get("why", ""),
        has_parameters=rows["parameters"],
        match=rows["match"],
        conditions=_texts(rows.get("when", ()), facts, values),
        variables=_texts(rows["variables"], facts, values),
        rules=tuple(_rule(row, values) for row in rows_for(facts, rows["rules"]) if row["name"] not in without),
    )


def _texts(rows: Iterable[Row], facts: Collection[str], values: Mapping[str, str]) -> Mapping[str, str]:
    return {row["name"]: filled(row["is"], values) for row in rows_for(facts, rows)}


def _named(texts: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "expression": text} for name, text in texts.items()]


def _rule(row: Row, values: Mapping[str, str]) -> AdmissionRule:
    texts = {key: filled(row[key], values) if key in row else "" for key in ("must", "message", "details")}
    return AdmissionRule(name=row["name"], optional=row.get("optional", ""), **texts)


def admission_binding(
    name: str,
    policy: str,
    namespaces: Mapping[str, Any],
    parameters: Mapping[str, str] | None = None,
    *,
    warns: bool = False,
) -> dict[str, Any]:
    """A policy in the namespaces that a selector chooses. While its parameters are missing all is refused.

    One that ``warns`` accepts all then: missing parameters are an error of configuration, which the API server refuses
    whatever the actions of the binding are (`addConfigError` in `pkg/admission/plugin/policy/validating/dispatcher.go`
    of kubernetes/apiserver). `Deny` and `Warn` exclude each other (`validateValidationActions` in
    `pkg/apis/admissionregistration/validation/validation.go` of kubernetes/kubernetes).
    """
    reference = {**parameters, "parameterNotFoundAction": "Allow" if warns else "Deny"} if parameters else None
    spec = given(
        policyName=policy,
        paramRef=reference,
        matchResources={"namespaceSelector": namespaces},
        validationActions=["Warn" if warns else "Deny", "Audit"],
    )
    return new_object(_API, "ValidatingAdmissionPolicyBinding", name, spec=spec)


def _resource_rule(api: str, resource: str, operations: Sequence[str]) -> dict[str, list[str]]:
    group, _, version = api.rpartition("/")
    return {"apiGroups": [group], "apiVersions": [version], "operations": list(operations), "resources": [resource]}
