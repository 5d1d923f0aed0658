"""Evaluates a ValidatingAdmissionPolicy on a pod as the API server does: variables when first used, errors refuse."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import celpy
import lark
from celpy import celtypes
from celpy.adapter import json_to_cel
from celpy.evaluation import CELEvalError, Evaluator

SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
SUFFIXES |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def as_number(quantity: str) -> int:
    digits = quantity.rstrip("kKMGTi")
    return int(digits) * SUFFIXES[quantity[len(digits) :]]


CONTROLLERS = frozenset(
    f"system:serviceaccount:{name}"
    for name in (
        "kai-scheduler:binder",
        "kai-scheduler:pod-grouper",
        "kube-system:cronjob-controller",
        "kube-system:daemon-set-controller",
        "kube-system:job-controller",
        "kube-system:replicaset-controller",
        "kube-system:statefulset-controller",
        "kueue-system:kueue-controller-manager",
    )
)
"""Who may change pods and Jobs in all namespaces."""

OPERATORS = {
    "system:serviceaccount:jobset-system:jobset-controller-manager": (
        "core, pods patch",
        "batch, jobs patch",
        "batch, jobs update",
        "jobset.x-k8s.io, jobsets patch",
    ),
    "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager": (
        "jobset.x-k8s.io, jobsets patch",
        "trainer.kubeflow.org, trainjobs patch",
    ),
    "system:serviceaccount:kuberay:kuberay-operator": (
        "core, pods patch",
        "batch, jobs patch",
        "batch, jobs update",
        "ray.io, rayclusters patch",
        "ray.io, rayjobs patch",
    ),
    "system:serviceaccount:mpi-operator:mpi-operator": (
        "core, pods patch",
        "batch, jobs update",
        "kubeflow.org, mpijobs patch",
    ),
}
"""What operators may change in all namespaces, by their own roles in their releases of 2026."""

ALLOWED = frozenset(
    f"{user} may, of group {question}" for user, questions in OPERATORS.items() for question in questions
)

DELETING = frozenset(
    (
        "system:node:gpu-n1",
        "system:serviceaccount:kube-system:namespace-controller",
        "system:serviceaccount:kube-system:node-controller",
        "system:kube-scheduler",
    )
)
"""Who may do no more than delete pods in all namespaces."""


def _may(asked: str) -> bool:
    """Whether a user may do something everywhere; controllers may all that anybody asks about."""
    user, _, what = asked.partition(" may, of group ")
    return user in CONTROLLERS or (user in DELETING and what.endswith(" delete")) or asked in ALLOWED


KUBERNETES_FUNCTIONS: dict[str, Any] = {
    "split": lambda text, separator: celtypes.ListType(map(celtypes.StringType, text.split(separator))),
    "join": lambda items, separator: celtypes.StringType(separator.join(items)),
    "quantity": as_number,
    "isGreaterThan": lambda one, other: celtypes.BoolType(one > other),
    # The authorizer is the name of the user, and becomes a question word by word.
    "group": lambda user, group: celtypes.StringType(f"{user} may, of group {group or 'core'},"),
    "resource": lambda asked, resource: celtypes.StringType(f"{asked} {resource}"),
    "check": lambda asked, verb: celtypes.StringType(f"{asked} {verb}"),
    "subresource": lambda asked, resource: celtypes.StringType(f"{asked}/{resource}"),
    "allowed": lambda asked: celtypes.BoolType(_may(asked)),
}
"""Functions of Kubernetes' CEL libraries (strings, quantity, authorizer) that cel-python lacks."""

VARIABLE = re.compile(r"\bvariables\.(\w+)")

STANDARD_FUNCTIONS = frozenset(
    ("all", "contains", "endsWith", "exists", "filter", "has", "int", "map", "size", "startsWith")
)


def refusals(
    policy: Mapping[str, Any],
    pod: Mapping[str, Any] | None,
    parameters: Mapping[str, str] | None = None,
    *,
    old: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    subresource: str | None = None,
    user: str = "jane",
) -> list[str]:
    """The messages of the rules that refuse a pod, in order; an expression that fails refuses with its error.

    A pod without an ``old`` one is created, else it is updated; None is deleted, with these options.
    """
    operation = "CREATE" if old is None else "UPDATE" if pod is not None else "DELETE"
    request: dict[str, Any] = {"operation": operation, "userInfo": {"username": user}, "options": options}
    of = pod if pod is not None else old or {}
    kind, group = of.get("kind", ""), of.get("apiVersion", "v1").rpartition("/")[0]
    request |= {"kind": {"group": group, "kind": kind}, "resource": {"group": group, "resource": f"{kind.lower()}s"}}
    request["namespace"] = of.get("metadata", {}).get("namespace", "")
    request |= {"subResource": subresource} if subresource else {}
    bindings: dict[str, Any] = {"object": pod, "oldObject": old, "request": request, "authorizer": user}
    if parameters is not None:
        bindings["params"] = {"data": dict(parameters)}
    context = {name: json_to_cel(value) for name, value in bindings.items()}
    if not all(evaluate(when["expression"], context) for when in policy["spec"].get("matchConditions", ())):
        return []
    context["variables"] = Variables(policy["spec"]["variables"], context)
    return [found for rule in policy["spec"]["validations"] if (found := _refusal(rule, context))]


def _refusal(rule: Mapping[str, str], context: dict[str, Any]) -> str:
    try:
        is_allowed = evaluate(rule["expression"], context)
    except CELEvalError as error:
        return f"error: {error.args[0]}"
    return "" if is_allowed is True or is_allowed == celtypes.BoolType(True) else _message(rule, context)


def _message(rule: Mapping[str, str], context: dict[str, Any]) -> str:
    """The API server falls back to the constant message where the expression fails, is long, or has line breaks."""
    if "messageExpression" in rule:
        try:
            text = str(evaluate(rule["messageExpression"], context)).strip()
        except CELEvalError:
            return rule["message"]
        if len(text.encode()) <= 5 * 1024 and "\n" not in text:
            return text
    return rule["message"]


class Variables(celtypes.MapType):
    """The policy's variables: each is evaluated once, when something asks for it, and may name earlier ones alone."""

    def __init__(self, variables: list[dict[str, str]], context: dict[str, Any]) -> None:
        super().__init__()
        self.expressions: dict[str, str] = {}
        for variable in variables:
            known = VARIABLE.findall(variable["expression"])
            assert self.expressions.keys() >= set(known), f"{variable['name']} names a later variable"
            self.expressions[variable["name"]] = variable["expression"]
        self.context = context

    def __contains__(self, name: object) -> bool:
        return name in self.expressions

    def __getitem__(self, name: Any) -> Any:
        if not super().__contains__(name):
            self[name] = self._evaluate(str(name))
        return super().__getitem__(name)

    def _evaluate(self, name: str) -> Any:
        try:
            return evaluate(self.expressions[name], self.context)
        except CELEvalError as error:
            return error


def evaluate(expression: str, context: dict[str, Any]) -> Any:
    """What an expression comes to; where celpy fails to print why it has no value, it has none either."""
    program = _compiled(expression)
    try:
        return StrictEvaluator(ast=program.ast, activation=program.new_activation()).evaluate(context)
    except IndexError as error:
        raise CELEvalError("no such overload") from error


def functions_of(expression: str) -> set[str]:
    """Every function and macro that an expression calls."""
    tree = _compiled(expression).ast
    methods = {str(node.children[1]) for node in tree.find_data("member_dot_arg")}
    return methods | {str(node.children[0]) for node in tree.find_data("ident_arg")}


ENVIRONMENT = celpy.Environment()
"""It raises the limit of recursion, which must not happen while hypothesis runs a test."""


@cache
def _compiled(expression: str) -> Any:
    return ENVIRONMENT.program(ENVIRONMENT.compile(expression), functions=KUBERNETES_FUNCTIONS)


class StrictEvaluator(Evaluator):
    """`has(a.b.c)` fails when `a.b` is missing, as in Kubernetes; cel-python alone would answer false."""

    def sub_evaluator(self, ast: lark.Tree[Any]) -> Evaluator:
        return StrictEvaluator(ast, activation=self.activation)

    def macro_has_eval(self, exprlist: lark.Tree[Any]) -> Any:
        selection = exprlist
        while selection.data != "member_dot":
            (selection,) = selection.children
        owner_tree, field = selection.children
        assert isinstance(field, lark.Token)
        assert isinstance(field, lark.Token)
        owner = self.visit(owner_tree)
        if owner is None:  # no old object where one is made
            return CELEvalError("no such overload")
        return owner if isinstance(owner, CELEvalError) else celtypes.BoolType(field.value in owner)
