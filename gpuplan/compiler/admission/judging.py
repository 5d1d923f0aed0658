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
"""What an expression may name."""


def anything(_group: str, _resource: str, _verb: str) -> bool:
    """The rights of controllers, and of whoever applies what is in Git."""
    return True


class Request(Value):
    """What the API server is asked for. ``may`` says what else whoever asks has a right to, by group, resource, verb.

    ``old`` is the object before an update or a deletion; what is deleted has no ``object``.
    """

    object: Body | None
    old: Body | None = None
    operation: str = "CREATE"
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
    """What the API server calls the objects of a kind; so it is with all that policies look at."""
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
    """All refusals, in the order of the rules; nothing where that cannot be found out."""
    for policy in policies:
        scope = dict(request.scope)
        conditions = [_refusal(policy, _condition(*item), scope) for item in policy.conditions.items()]
        failed = [found for found in conditions if found]
        if any(not found.has_failed for found in failed):
            continue
        yield from failed[:1]
        scope["variables"] = _Variables(policy.variables, scope)
        for rule in () if failed else policy.rules:
            found = _refusal(policy, rule, scope)
            if found is not None:
                yield found


def refusals_by(refusal: Refusal, request: Request) -> Iterator[Refusal]:
    """What the same rule says of another request, if it refuses that."""
    return refusals([refusal.policy.only((refusal.rule.name,))], request)


def concerns(policy: AdmissionPolicy, body: Body) -> bool:
    """Whether a policy looks at an object of this kind when it is made, in whichever version."""
    group = body.get("apiVersion", "").rpartition("/")[0]
    resource = _resource(body.get("kind", ""))
    return any(
        api.rpartition("/")[0] == group and "CREATE" in resources.get(resource, ())
        for api, resources in policy.match.items()
    )


def _condition(name: str, text: str) -> AdmissionRule:
    """What must be true for a policy to judge at all; one that is false lets everything pass, one that fails nothing.

    (`Match` in `pkg/admission/plugin/webhook/matchconditions/matcher.go` of kubernetes/apiserver.)
    """
    return AdmissionRule(name, must=text, message=f"the condition `{name}` has no value", details="", optional="")


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
    """The constant one stands in where the expression fails, or what it says is empty, too long or has several lines.

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
    """An expression, ready for as many requests as there are."""
    return read_rule(text, NAMES)


class _Variables(Mapping[str, Any]):
    """A policy's variables: each is evaluated when a rule first asks for it, and fails whoever asks if it does."""

    def __init__(self, expressions: Mapping[str, str], scope: Scope) -> None:
        self._expressions = expressions
        self._scope = {**scope, "variables": self}
        self._known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - of any type
        if name not in self._known:
            self._known[name] = self._evaluate(self._expressions[name])
        found = self._known[name]
        if isinstance(found, CelError):
            raise found
        return found

    def _evaluate(self, expression: str) -> Any:  # noqa: ANN401 - of any type
        try:
            return evaluate(compiled(expression), self._scope)
        except CelError as error:
            return error

    def __contains__(self, name: object) -> bool:
        return name in self._expressions

    def __iter__(self) -> Iterator[str]:
        return iter(self._expressions)

    def __len__(self) -> int:
        return len(self._expressions)
