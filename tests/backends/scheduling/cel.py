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


def as_number(quantity: str) -> int:
    digits = quantity.rstrip("kMGT")
    return int(digits) * SUFFIXES[quantity[len(digits) :]]


CONTROLLERS = frozenset(
    f"system:serviceaccount:{name}"
    for name in (
        "kai-scheduler:binder",
        "kai-scheduler:pod-grouper",
        "kube-system:cronjob-controller",
        "kube-system:job-controller",
        "kube-system:replicaset-controller",
        "kueue-system:kueue-controller-manager",
    )
)
"""Who may change pods and Jobs in all namespaces."""

ALLOWED = frozenset(
    f"{user} may, of group {question}" for user in CONTROLLERS for question in ("core, pods patch", "batch, jobs patch")
)

KUBERNETES_FUNCTIONS: dict[str, Any] = {
    "split": lambda text, separator: celtypes.ListType(map(celtypes.StringType, text.split(separator))),
    "join": lambda items, separator: celtypes.StringType(separator.join(items)),
    "quantity": as_number,
    "isGreaterThan": lambda one, other: celtypes.BoolType(one > other),
    # The authorizer is the name of the user, and becomes a question word by word.
    "group": lambda user, group: celtypes.StringType(f"{user} may, of group {group or 'core'},"),
    "resource": lambda asked, resource: celtypes.StringType(f"{asked} {resource}"),
    "check": lambda asked, verb: celtypes.StringType(f"{asked} {verb}"),
    "allowed": lambda asked: celtypes.BoolType(asked in ALLOWED),
}
"""Functions of Kubernetes' CEL libraries (strings, quantity, authorizer) that cel-python lacks."""

VARIABLE = re.compile(r"\bvariables\.(\w+)")

STANDARD_FUNCTIONS = frozenset(("all", "endsWith", "exists", "filter", "has", "map", "size", "startsWith"))


def refusals(
    policy: Mapping[str, Any],
    pod: Mapping[str, Any],
    parameters: Mapping[str, str] | None = None,
    *,
    old: Mapping[str, Any] | None = None,
    subresource: str | None = None,
    user: str = "jane",
) -> list[str]:
    """The messages of the rules that refuse a pod, in order; an expression that fails refuses with its error.

    A pod without an ``old`` one is created, else it is updated.
    """
    request: dict[str, Any] = {"operation": "CREATE" if old is None else "UPDATE", "userInfo": {"username": user}}
    request |= {"kind": {"kind": pod.get("kind", "")}}
    request |= {"subResource": subresource} if subresource else {}
    bindings: dict[str, Any] = {"object": pod, "oldObject": old, "request": request, "authorizer": user}
    if parameters is not None:
        bindings["params"] = {"data": dict(parameters)}
    context = {name: json_to_cel(value) for name, value in bindings.items()}
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
    program = _compiled(expression)
    return StrictEvaluator(ast=program.ast, activation=program.new_activation()).evaluate(context)


def functions_of(expression: str) -> set[str]:
    """Every function and macro that an expression calls."""
    tree = _compiled(expression).ast
    methods = {str(node.children[1]) for node in tree.find_data("member_dot_arg")}
    return methods | {str(node.children[0]) for node in tree.find_data("ident_arg")}


@cache
def _compiled(expression: str) -> Any:
    environment = celpy.Environment()
    return environment.program(environment.compile(expression), functions=KUBERNETES_FUNCTIONS)


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
