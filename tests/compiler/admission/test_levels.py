"""What a tenant's level of Pod Security asks of pods: judged on the cases of Kubernetes itself."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.admission.judging import Request, refusals
from gpuplan.compiler.admission.policies import known_rules, level_of
from gpuplan.compiler.manifests.admission import AdmissionPolicy
from tests.platforms import a_platform, pool, tenant

CASES = yaml.safe_load(Path(__file__).with_name("pod-security-restricted.yaml").read_text(encoding="utf-8"))


@cache
def level(minor: int, allow: str = "podSecurity: restricted") -> tuple[AdmissionPolicy, ...]:
    team = tenant("lab", "pool: a, guaranteed: 1", more=f"allow: {{{allow}}}")
    plan = a_platform(pool("a"), team, kubernetes=f"1.{minor}")
    return level_of(plan, plan.tenants[0])


def refused_by(pod: dict[str, Any], minor: int = 36, allow: str = "podSecurity: restricted") -> list[str]:
    return [found.rule.name for found in refusals(level(minor, allow), Request(pod))]


@pytest.mark.parametrize("verdict", ["pass", "fail"])
def test_verdicts_are_those_of_kubernetes(verdict: str) -> None:
    judged = {
        (case["name"], minor): bool(refused_by(case["pod"], minor))
        for case in CASES
        if case["verdict"] == verdict
        for minor in case["minors"]
    }

    assert len(judged) > 10
    assert judged == dict.fromkeys(judged, verdict == "fail")


def test_each_rule_of_the_level_refuses_something() -> None:
    refused = {rule for case in CASES for rule in refused_by(case["pod"])}

    assert {rule.name for rule in level(36)[1].rules} <= refused


def test_nothing_of_the_level_is_written() -> None:
    assert {rule.name for rule in level(36)[1].rules}.isdisjoint(known_rules())


def test_only_rdma_brings_its_capability() -> None:
    context = {"capabilities": {"add": ["IPC_LOCK"]}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"containers": [{"securityContext": context}]}}

    assert refused_by(pod, allow="podSecurity: baseline") == ["capabilities-of-baseline"]
    assert level(36, "rdma: [example.com/roce]") == ()
    assert level(36, "podSecurity: privileged") == ()
