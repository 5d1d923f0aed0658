"""Judge a request by admission policies, as the API server does, on the very text that is written for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache
from typing import Any, Final

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.manifests.admission import AdmissionPolicy, AdmissionRule
from gpuplan.compiler.manifests.cel import Authorizer, CelError, Scope, Term, UnjudgedError, evaluate, read_rule

Body = Mapping[str, Any]

NAMES: Final = ("object", "oldObject", "request", "params", "namespaceObject", "variables", "authorizer")
"""The names that an expression may use."""


def anything(_group: str, _resource: str, _verb: str) -> bool:
    """Whether controllers, and whoever applies what is in Git, may do something: they may do anything."""
    return True


class Request(Value):
    """A request to the API server. ``may`` says what else whoever asks has a right to, by group, resource, verb.

    ``old`` is the object before an update or a deletion; what is deleted has no ``object``.
    """

    object: Body | None
    old: Body | None = None
    operation: str = "CREATE"
    namespace: str = ""
    subresource: str = ""
    options: Body = field(default_factory=dict)
    parameters: Mapping[str, str] | None = None
    may: Callable[[str, str, str], bool] = anything

    @property
    def scope(self) -> Scope:
        body = self.object or self.old or {}
        group, _, version = body.get("apiVersion", "").rpartition("/")
        kind = body.get("kind", "")
        request = {
            "operation": self.operation,
            "namespace": self.namespace,
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": _resource(kind)},
            "options": self.options,
            **({"subResource": self.subresource} if self.subresource else {}),
        }
        return {
            "object": self.object,
            "oldObject": self.old,
            "request": request,
            "params": None if self.parameters is None else {"data": self.parameters},
            "authorizer": Authorizer(self.may),
        }


def _resource(kind: object) -> str:
    """Return what the API server calls the objects of a kind, for all kinds that policies look at."""
    return f"{str(kind).lower()}s"


class Refusal(Value):
    """A rule that does not let a request pass, and what whoever asks is told.

    A rule that ``has_failed`` had no value: the API server refuses then, too.
    """

    policy: AdmissionPolicy
    rule: AdmissionRule
    message: str
    has_failed: bool = False


def refusals(policies: Iterable[AdmissionPolicy], request: Request) -> Iterator[Refusal]:
    """Yield all refusals that can be found out, in the order of the rules."""
    for policy in policies:
        scope = dict(request.scope)
        # A condition that is false lets everything pass, and one that fails nothing (`Match` in
        # `pkg/admission/plugin/webhook/matchconditions/matcher.go` of kubernetes/apiserver).
        conditions = (
            AdmissionRule(name, must=text, message=f"the condition `{name}` has no value", details="", optional="")
            for name, text in policy.conditions.items()
        )
        failed = [refusal for rule in conditions if (refusal := _refusal(policy, rule, scope))]
        if any(not refusal.has_failed for refusal in failed):
            continue
        yield from failed[:1]
        scope["variables"] = _Variables(policy.variables, scope)
        for rule in () if failed else policy.rules:
            if (refusal := _refusal(policy, rule, scope)) is not None:
                yield refusal


def concerns(policy: AdmissionPolicy, body: Body) -> bool:
    """Whether a policy looks at an object of this kind when it is made, in whichever version."""
    group = body.get("apiVersion", "").rpartition("/")[0]
    resource = _resource(body.get("kind", ""))
    return any(
        api.rpartition("/")[0] == group and "CREATE" in resources.get(resource, ())
        for api, resources in policy.match.items()
    )


def _refusal(policy: AdmissionPolicy, rule: AdmissionRule, scope: Scope) -> Refusal | None:
    try:
        is_let_in = evaluate(compiled(rule.must), scope) is True
    except CelError:
        return Refusal(policy, rule, rule.message, has_failed=True)
    except UnjudgedError:
        return None
    return None if is_let_in else Refusal(policy, rule, _message(rule, scope))


_LONGEST: Final = 5 * 1024


def _message(rule: AdmissionRule, scope: Scope) -> str:
    """Return a rule's message: the constant one if the expression fails, or its text is empty, too long or has lines.

    (`pkg/admission/plugin/policy/validating/validator.go` of kubernetes/apiserver.)
    """
    if not rule.details:
        return rule.message
    try:
        told = evaluate(compiled(rule.details), scope)
    except (CelError, UnjudgedError):
        return rule.message
    text = told.strip() if isinstance(told, str) else ""
    return text if text and len(told.encode()) <= _LONGEST and "\n" not in text else rule.message


@cache
def compiled(text: str) -> Term:
    """Return an expression, ready for as many requests as there are."""
    return read_rule(text, NAMES)


class _Variables(Mapping[str, Any]):
    """A policy's variables: each is evaluated when a rule first asks for it, and fails whoever asks if it does."""

    def __init__(self, expressions: Mapping[str, str], scope: Scope) -> None:
        self._expressions = expressions
        self._scope = {**scope, "variables": self}
        self._known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - of any type
        if name not in self._known:
            try:
                self._known[name] = evaluate(compiled(self._expressions[name]), self._scope)
            except CelError as error:
                self._known[name] = error
        value = self._known[name]
        if isinstance(value, CelError):
            raise value
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._expressions

    def __iter__(self) -> Iterator[str]:
        return iter(self._expressions)

    def __len__(self) -> int:
        return len(self._expressions)
