"""What a tenant may not do is refused by a rule that is there for it, and what it may do by none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache

import pytest

from gpuplan.compiler.admission.policies import known_rules
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from tests.cluster.attacks import KAI, KUEUE
from tests.laws.tenancy.boundaries import ALL_PLATFORMS
from tests.laws.tenancy.judging import refusals
from tests.laws.tenancy.requests import LATER, OTHERS, Case, escapes, legitimate

ENOUGH = 120

SAY_MORE = {
    "gpu-resource-is-granted": "units-per-container",
    "gpu-resource-is-granted-in-pool": "units-per-container",
    "claimed-device-is-granted": "claimed-device-is-granted-in-pool",
}
"""Rules that refuse nothing which another would let through; what they say helps more."""

OF_NEWER = {"proc-is-masked-of-host-users"}
"""Rules of a newer API server than the platforms'."""


_BEFORE = {*OTHERS} - {"API"}


@cache
def verdicts(platform: str) -> Mapping[str, tuple[Case, Mapping[str, str]]]:
    """Each escape that no role, level or quota stops, with the rules that refuse it.

    What the API server refuses by itself is among them: a rule says the same where other rules rely on it.
    """
    cases = [case for case in escapes() if case.platform == platform and case.outcome not in _BEFORE]
    return {case.name: (case, refusals(case)) for case in cases}


def all_verdicts() -> Iterator[Mapping[str, str]]:
    for platform in ALL_PLATFORMS:
        yield from (found for _, found in verdicts(platform).values())


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_there_are_enough_of_both(scheduler: str) -> None:
    tried, needed = (sum(case.platform == scheduler for case in cases()) for cases in (escapes, legitimate))

    assert tried >= ENOUGH
    assert needed >= ENOUGH


def test_each_has_a_name_of_its_own() -> None:
    found = Counter(case.label for case in (*escapes(), *legitimate()))

    assert [label for label, count in found.items() if count > 1] == []


@pytest.mark.parametrize("platform", ALL_PLATFORMS)
def test_escapes_are_refused_by_the_rule_that_is_there_for_them(platform: str) -> None:
    """Those that the scheduler makes harmless are let in, and so are those that nothing refuses yet."""
    wrong = {
        name: (case.outcome, [*found])
        for name, (case, found) in verdicts(platform).items()
        if case.outcome != "API" and not (case.outcome in found or (case.outcome not in known_rules() and not found))
    }
    assert wrong == {}


@pytest.mark.parametrize("platform", ALL_PLATFORMS)
def test_what_is_legitimate_is_refused_by_no_rule(platform: str) -> None:
    """But for what is marked, which is refused; what is let in meanwhile has no mark."""
    cases = [case for case in legitimate() if case.platform == platform]
    wrong = {case.name: [*found] for case in cases if bool(found := refusals(case)) is not case.comes_later}
    assert wrong == {}


@pytest.mark.parametrize("rule", sorted(known_rules().keys() - OF_NEWER))
def test_without_a_rule_something_gets_through(rule: str) -> None:
    """A policy refuses what any of its rules refuses: what one rule alone refuses gets through without it."""
    if rule in SAY_MORE:
        assert [found for found in all_verdicts() if {rule, SAY_MORE[rule]} <= found.keys()]
        assert [found for found in all_verdicts() if [*found] == [rule]] == []
    else:
        assert [found for found in all_verdicts() if [*found] == [rule]]


def test_what_is_harmless_is_shown_to_be() -> None:
    played = {attack.__name__ for attack in (*KUEUE, *KAI)}

    assert {case.harmless for case in escapes() if case.harmless} <= played


def test_only_rules_are_expected_to_refuse() -> None:
    outcomes = {case.outcome for case in escapes() if not (case.ends or case.harmless)}

    assert outcomes <= {*known_rules(), *OTHERS, LATER}
