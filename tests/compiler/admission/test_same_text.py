"""Python judges by the text that the API server gets, and says of it what another evaluator of CEL says."""

from __future__ import annotations

import os

import pytest
from celpy.evaluation import CELEvalError
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.admission.judging import NAMES, Request, refusals
from gpuplan.compiler.admission.policies import policies
from gpuplan.compiler.manifests.admission import AdmissionPolicy
from gpuplan.compiler.manifests.cel import evaluate, read_rule
from tests.compiler.admission.objects import Strategy, shapes, sometimes_odd, whole_pods
from tests.compiler.admission.platforms import SETTINGS, grants_of, platform
from tests.compiler.backends.scheduling import cel as other

EXAMPLES = int(os.environ.get("GPUPLAN_CEL_EXAMPLES", "20"))


def texts(policy: AdmissionPolicy) -> list[str]:
    """All that is evaluated of a policy."""
    texts = [*policy.conditions.values(), *policy.variables.values()]
    return [*texts, *(text for rule in policy.rules for text in (rule.must, rule.details) if text)]


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_expression_of_every_policy_can_be_evaluated(setting: str) -> None:
    found = [text for policy in policies(platform(setting)) for text in texts(policy)]

    assert len(found) > 20
    assert all(read_rule(text, NAMES) for text in found)


def judged(policy: AdmissionPolicy, request: Request) -> list[str]:
    return ["error" if found.has_failed else found.message for found in refusals([policy], request)]


def judged_by_celpy(policy: AdmissionPolicy, request: Request, user: str) -> list[str]:
    """A condition that fails refuses, like a rule."""
    try:
        found = other.refusals(
            policy.body,
            request.object or {},
            request.parameters,
            old=request.old,
            subresource=request.subresource or None,
            user=user,
        )
    except CELEvalError:
        return ["error"]
    return ["error" if message.startswith("error") else message for message in found]


CONTROLLER = "system:serviceaccount:kube-system:job-controller"
USERS = {"jane": lambda *_: False, CONTROLLER: lambda *_: True}


@st.composite
def requests(draw: st.DrawFn, setting: str, kinds: tuple[Strategy, ...]) -> tuple[Request, str]:
    """What somebody asks for in a tenant's namespace, most often a pod."""
    pod = kinds[0]
    shape = draw(st.sampled_from([pod, pod, pod, *kinds]))
    user = draw(st.sampled_from(sorted(USERS)))
    old = draw(st.none() | shape)
    tenants = [tenant.name for tenant in platform(setting).tenants]
    request = Request(
        object=draw(shape),
        old=old,
        operation="CREATE" if old is None else "UPDATE",
        subresource=draw(st.sampled_from(["", "", "ephemeralcontainers"])),
        parameters=grants_of(setting, draw(st.sampled_from(tenants))),
        may=USERS[user],
    )
    return request, user


@pytest.mark.parametrize("setting", SETTINGS)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_another_evaluator_refuses_the_same_with_the_same_words(setting: str, data: st.DataObject) -> None:
    request, user = data.draw(requests(setting, (whole_pods(), *shapes())))
    for policy in policies(platform(setting)):
        ours, theirs = judged(policy, request), judged_by_celpy(policy, request, user)
        # celpy fails as a whole where CEL drops an error beside what decides: `false && [{}].map(g, g.name) == []`.
        assert ours == theirs or (theirs == ["error"] and len(ours) <= 1)


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("false && [{}].map(g, g.name) == []", False),
        ("[{}].map(g, g.name) == [] && false", False),
        ("true || [{}].map(g, g.name) == []", True),
    ],
)
def test_an_error_beside_what_decides_is_dropped(rule: str, value: bool) -> None:
    """It is in CEL (https://github.com/google/cel-spec/blob/master/doc/langdef.md#logical-operators)."""
    assert evaluate(read_rule(rule, NAMES), {}) is value


@settings(max_examples=EXAMPLES)
@given(data=st.data(), setting=st.sampled_from(SETTINGS))
def test_what_has_no_shape_of_an_object_has_a_verdict(setting: str, data: st.DataObject) -> None:
    """celpy fails on some of these itself; the API server never has them."""
    request, _ = data.draw(requests(setting, shapes(sometimes_odd)))
    found = [*refusals(policies(platform(setting)), request)]
    assert all(refusal.message for refusal in found)
