"""Of which kinds Kueue counts work that grows while it runs, by its release and its feature gates."""

from __future__ import annotations

import pytest

from gpuplan.compiler.admission.policies import policies
from gpuplan.compiler.planning.kueue import elastic_kinds
from gpuplan.compiler.planning.plan import Plan
from tests.plans import a_cluster, a_plan

GATE = "ElasticJobsViaWorkloadSlices"
ALL = ("Job", "RayCluster", "RayJob", "RayService")


def plan_with(version: str = "", configuration: str = "", values: str = "") -> Plan:
    release = f"version: {version}, " if version else ""
    told = f"frameworks: [RayJob, RayService, JobSet], configuration: {{{configuration}}}"
    return a_plan(a_cluster(f"kind: kueue, install: helm, {release}values: {{{values}}}, kueue: {{{told}}}"))


@pytest.mark.parametrize(
    ("version", "kinds"),
    [("v0.12.0", ()), ("v0.13.0", ()), ("v0.17.8", ()), ("v0.18.0", ALL), ("v0.19.2", ALL), ("", ALL)],
)
def test_the_gate_is_on_by_default_from_a_release_on(version: str, kinds: tuple[str, ...]) -> None:
    assert elastic_kinds(plan_with(version)) == kinds


@pytest.mark.parametrize(
    ("version", "kinds"),
    [
        ("v0.12.0", ()),
        ("v0.13.0", ("Job",)),
        ("v0.14.0", ("Job", "RayCluster")),
        ("v0.16.0", ("Job", "RayCluster", "RayJob")),
        ("v0.17.0", ALL),
    ],
)
@pytest.mark.parametrize("name", [GATE, "AllAlpha"])
def test_who_turns_it_on_has_the_kinds_of_the_release(version: str, kinds: tuple[str, ...], name: str) -> None:
    assert elastic_kinds(plan_with(version, f"featureGates: {{{name}: true}}")) == kinds


@pytest.mark.parametrize("name", [GATE, "AllBeta"])
def test_it_is_turned_off_by_the_configuration_or_the_chart(name: str) -> None:
    assert elastic_kinds(plan_with(configuration=f"featureGates: {{{name}: false}}")) == ()
    values = f"controllerManager: {{featureGates: [{{name: {name}, enabled: false}}]}}"
    assert elastic_kinds(plan_with(values=values)) == ()


def test_a_gate_that_is_named_stays_as_it_is() -> None:
    assert elastic_kinds(plan_with(configuration=f"featureGates: {{AllBeta: false, {GATE}: true}}")) == ALL
    assert elastic_kinds(plan_with(configuration="featureGates: {AllAlpha: false}")) == ALL


def test_other_schedulers_have_none() -> None:
    assert elastic_kinds(a_plan(a_cluster("kind: kai"))) == ()


def test_only_where_the_gate_is_on_may_elastic_work_grow() -> None:
    on, off = (
        "\n".join(str(found.body) for found in policies(plan))
        for plan in (plan_with(), plan_with(configuration=f"featureGates: {{{GATE}: false}}"))
    )
    assert "kueue.x-k8s.io/elastic-job" in on
    assert "kueue.x-k8s.io/elastic-job" not in off
