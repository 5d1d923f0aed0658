"""What tenants may not do a real API server refuses, by the rule that is there for it; what they may do it lets in.

`make test-cluster` plays all requests and lets some of the pods run, `make proof` all of them, takes out each rule as
well, and writes a page for each into `docs/proof/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import pytest

from gpuplan.compiler.admission.policies import policies
from tests.cluster import proof
from tests.cluster.api import Object
from tests.cluster.example import ExampleCluster
from tests.cluster.outcomes import in_the_end
from tests.cluster.programs import need_go
from tests.cluster.tenants import Seen, can_run, play, playground
from tests.laws.tenancy.boundaries import ALL_PLATFORMS, plan_of
from tests.laws.tenancy.judging import refusals
from tests.laws.tenancy.proof import page, path
from tests.laws.tenancy.requests import ADMITTED, OTHERS, Case, escapes, legitimate

Record = Callable[[str, object, object], None]

PLAYED = ALL_PLATFORMS if proof.IS_ASKED_FOR else tuple(name for name in ALL_PLATFORMS if name != "claims")
SOME = 1 if proof.IS_ASKED_FOR else 5
"""Of so many pods that may run one does."""

INVALID: Final = (
    "a process of a Windows host, with RDMA",
    "a Job with a finalizer that asks for GPUs later",
    "a Job that calls itself part of a JobSet and asks for GPUs later",
)
"""What the API server's own validation refuses before any policy.

Such a process needs `hostNetwork`, and resources of a suspended Job may change since Kubernetes 1.36.
"""

_SEEN: dict[str, dict[str, dict[str, str]]] = {}
"""What has come of each request, by platform and kind, for the page."""


@pytest.fixture(scope="module", params=PLAYED)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleCluster]:
    need_go()
    with playground(request.param, tmp_path_factory.mktemp(request.param)) as started:
        _SEEN[started.name] = {"escapes": {}, "legitimate": {}, "holes": {}}
        yield started


def of(cluster: ExampleCluster, cases: tuple[Case, ...]) -> list[Case]:
    return [case for case in cases if case.platform == cluster.name]


def test_escapes_are_refused_or_harmless(cluster: ExampleCluster, record: Record) -> None:
    wrong, cases = [], of(cluster, escapes())
    for case in cases:
        seen = play(case, cluster)
        planned = (ADMITTED if case.comes_later or case.harmless else case.outcome, case.ends)
        if (seen.outcome, seen.ends) != planned and not _is_one_of_several(case, seen):
            wrong.append(f"{case.name}: planned {planned}, observed {seen}")
        _SEEN[cluster.name]["escapes"][case.name] = seen.ends or (case.harmless and "harmless") or seen.outcome
    record(f"{cluster.name}: escapes that are refused or harmless", f"{len(cases)}", told(cases, wrong))


def _is_one_of_several(case: Case, seen: Seen) -> bool:
    """Whether something else refuses as well, which the API server has asked first: it names one of them."""
    others = ("API",) if case.name in INVALID else ()
    return not case.ends and {case.outcome, seen.outcome} <= {*refusals(case), *others}


def test_what_is_legitimate_is_let_in(cluster: ExampleCluster, record: Record) -> None:
    """With kube-scheduler alone pods are bound as well."""
    wrong, cases = [], of(cluster, legitimate())
    for number, case in enumerate(cases):
        runs = cluster.name in ("kubernetes", "rdma") and can_run(case) and number % SOME == 0
        seen = play(case, cluster, runs=runs)
        ends = case.ends or ("runs" if runs else "")
        if (seen.outcome == ADMITTED) is case.comes_later or (runs and seen.ends != ends):
            wrong.append(f"{case.name}: planned {ends or ADMITTED}, observed {seen}")
        _SEEN[cluster.name]["legitimate"][case.name] = seen.ends or seen.outcome
    record(f"{cluster.name}: legitimate requests that are let in", f"{len(cases)}", told(cases, wrong))


def told(cases: list[Case], wrong: list[str]) -> str:
    return "\n".join([str(len(cases) - len(wrong)), *wrong])


@proof.only_in_proof
def test_without_a_rule_something_gets_through(cluster: ExampleCluster, record: Record) -> None:
    asked = [
        (case, [*refusals(case)])
        for case in of(cluster, escapes())
        if case.outcome not in OTHERS and case.name not in INVALID
    ]
    alone = {found[0]: case for case, found in reversed(asked) if len(found) == 1}
    several = {rule for _, found in asked for rule in found}
    for policy in policies(plan_of(cluster.name)):
        written = f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{policy.name}"
        for index, rule in enumerate(policy.rules):
            if rule.name in alone:
                observed = without(cluster, written, index, alone[rule.name])
                record(f"{cluster.name}: without {rule.name}", ADMITTED, observed)
                _SEEN[cluster.name]["holes"][rule.name] = alone[rule.name].name
            else:
                why = "others refuse the same" if rule.name in several else "no request here is about it"
                _SEEN[cluster.name]["holes"][rule.name] = why


def without(cluster: ExampleCluster, path: str, index: int, case: Case) -> str:
    """What comes of a request while a rule is taken out of its policy."""
    whole = cluster.api.get(path)["spec"]["validations"]
    less = [rule for number, rule in enumerate(whole) if number != index]
    put(cluster, path, less)
    seen = awaited(cluster, case, ADMITTED)
    put(cluster, path, whole)
    awaited(cluster, case, case.outcome)
    return seen


def put(cluster: ExampleCluster, path: str, validations: list[Object]) -> None:
    """A policy has one at least."""
    change = [{"op": "replace", "path": "/spec/validations", "value": validations or [{"expression": "true"}]}]
    cluster.api.patch(path, change, kind="json")


def awaited(cluster: ExampleCluster, case: Case, outcome: str) -> str:
    """What comes of it, when it is this or time is up: a policy takes some time to be in force."""
    return in_the_end(outcome, partial(outcome_of, cluster, case))


def outcome_of(cluster: ExampleCluster, case: Case) -> str:
    return play(case, cluster).outcome


@proof.only_in_proof
def test_the_page_is_written(cluster: ExampleCluster) -> None:
    found = path(cluster.name)
    found.parent.mkdir(exist_ok=True)
    found.write_text(page(cluster.name, **_SEEN[cluster.name]), encoding="utf-8")
