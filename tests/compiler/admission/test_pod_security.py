"""Rules stand in for the level `baseline` of Pod Security, less IPC_LOCK: judged on the cases of Kubernetes itself."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.admission.judging import Request, refusals
from gpuplan.compiler.admission.policies import POD_SECURITY_POLICY, policy
from gpuplan.compiler.manifests.admission import AdmissionPolicy
from tests.compiler.backends.scheduling import cel as other
from tests.plans import a_cluster, a_plan

Pod = dict[str, Any]

CASES = yaml.safe_load(Path(__file__).with_name("pod-security-baseline.yaml").read_text(encoding="utf-8"))
MINORS = sorted({minor for case in CASES for minor in case["minors"]})
REFUSED = [case["pod"] for case in CASES if case["verdict"] == "fail" and 36 in case["minors"]]
ALLOWED = [case["pod"] for case in CASES if case["verdict"] == "pass" and 36 in case["minors"]]
_LISTS = ("containers", "initContainers", "ephemeralContainers")


@cache
def rules(minor: int) -> AdmissionPolicy:
    return policy(a_plan(a_cluster("kind: kubernetes").replace("1.34", f"1.{minor}")), POD_SECURITY_POLICY)


def refused_by(pod: Pod, minor: int = 36) -> list[str]:
    return [found.rule.name for found in refusals([rules(minor)], Request(pod))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['verdict']}-{case['name']}-{case['minors'][0]}")
def test_verdicts_are_those_of_kubernetes(case: dict[str, Any]) -> None:
    verdicts = {minor: bool(refused_by(case["pod"], minor)) for minor in case["minors"]}
    assert verdicts == dict.fromkeys(case["minors"], case["verdict"] == "fail")


RULES = {
    "apparmorprofile": "app-armor-stays-on",
    "capabilities_baseline": "capabilities-of-baseline",
    "hostnamespaces": "no-host-namespaces",
    "hostpathvolumes": "no-host-paths",
    "hostports": "no-host-ports",
    "hostprobesandhostlifecycle": "no-probes-of-other-hosts",
    "privileged": "no-privileged-containers",
    "procmount": "proc-is-masked-of-host-users",
    "seccompprofile_baseline": "seccomp-stays-on",
    "selinuxoptions": "selinux-types-of-containers",
    "sysctls": "safe-sysctls",
    "windowshostprocess": "no-windows-host-processes",
}
"""By check of Kubernetes."""


def test_each_check_of_kubernetes_has_a_rule_of_its_own() -> None:
    """Processes of a Windows host need its network too."""
    for case in CASES:
        if case["verdict"] == "fail" and 36 in case["minors"]:
            rule = RULES[case["name"].rstrip("0123456789")]
            further = ["no-host-namespaces"] if rule == "no-windows-host-processes" else []
            assert refused_by(case["pod"]) == [*further, rule]
    assert {*RULES.values()} == {rule.name for rule in rules(36).rules}


@pytest.mark.parametrize("verdict", ["pass", "fail"])
def test_another_evaluator_refuses_the_same(verdict: str) -> None:
    for case in CASES:
        if case["verdict"] == verdict and 36 in case["minors"]:
            told = [found.message for found in refusals([rules(36)], Request(case["pod"]))]
            assert other.refusals(rules(36).body, case["pod"], {}, old=None, subresource=None, user="jane") == told


def a_pod(**spec: Any) -> Pod:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}


def with_capability(pod: Pod, name: str) -> Pod:
    """In every container."""
    body = deepcopy(pod)
    for field in _LISTS:
        for container in body["spec"].get(field) or ():
            context = container.setdefault("securityContext", {})
            context.setdefault("capabilities", {}).setdefault("add", []).append(name)
    return body


@pytest.mark.parametrize("pod", ALLOWED)
def test_ipc_lock_may_be_added_to_all_that_is_allowed(pod: Pod) -> None:
    assert refused_by(with_capability(pod, "IPC_LOCK")) == []


@pytest.mark.parametrize("name", ["SYS_ADMIN", "NET_RAW", "SYS_RESOURCE", "CAP_IPC_LOCK", "ipc_lock", "ALL"])
def test_no_other_capability_may(name: str) -> None:
    assert refused_by(with_capability(ALLOWED[0], name)) == ["capabilities-of-baseline"]


@pytest.mark.parametrize("pod", REFUSED)
def test_ipc_lock_opens_nothing_else(pod: Pod) -> None:
    assert refused_by(with_capability(pod, "IPC_LOCK")) == refused_by(pod) != []


def test_debug_containers_are_judged() -> None:
    debug = {"name": "debug", "image": "a", "securityContext": {"privileged": True}}
    assert refused_by(a_pod(containers=[{"name": "a"}], ephemeralContainers=[debug])) == ["no-privileged-containers"]


def joined(one: Pod, other: Pod) -> Pod:
    """One pod with all that either has."""
    spec = {**one["spec"], **{key: value for key, value in other["spec"].items() if key != "securityContext"}}
    for field in _LISTS:
        if items := [*(one["spec"].get(field) or ()), *(other["spec"].get(field) or ())]:
            spec[field] = items
    spec["securityContext"] = {
        **(other["spec"].get("securityContext") or {}),
        **(one["spec"].get("securityContext") or {}),
    }
    annotations = [pod["metadata"].get("annotations") or {} for pod in (other, one)]
    return {**one, "metadata": {"name": "pod", "annotations": {**annotations[0], **annotations[1]}}, "spec": spec}


@settings(max_examples=60)
@given(refused=st.sampled_from(REFUSED), allowed=st.lists(st.sampled_from(ALLOWED), max_size=3))
def test_what_is_allowed_hides_nothing_that_is_refused(refused: Pod, allowed: list[Pod]) -> None:
    whole = refused
    for pod in allowed:
        whole = joined(whole, {**pod, "spec": {key: pod["spec"][key] for key in pod["spec"] if key != "hostUsers"}})
    assert set(refused_by(refused)) <= set(refused_by(whole))
