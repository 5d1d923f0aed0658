"""No policy that gpuplan writes for a platform refuses the work that it writes for the same platform."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.admission import known_rules, policies, rules_of
from gpuplan.compiler.admission.arriving import arrivals
from gpuplan.compiler.admission.judging import concerns
from gpuplan.compiler.admission.verdicts import refused
from gpuplan.compiler.backends import workloads
from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.checks.generated import ASKED
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.planning.grants import parameters
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from tests.compiler.backends.scheduling.cel import refusals
from tests.laws.properties.policies import Grant, Team, policies as platforms
from tests.plans import a_plan
from tests.platforms import a_platform, document, pool, priority_class, tenant

pytestmark = pytest.mark.no_cover

CLUSTERS: Final = (
    "",
    "  taintPools: true\n",
    "  admission: {gracePeriod: 10s}\n",
    "  admission: {gracePeriod: none, without: [tolerations-within-pools]}\n",
)
KINDS: Final = (
    "inference: {replicas: 2}",
    "inference: {autoscaling: {maxReplicas: 4, requestsPerSecond: 10}}",
    "training: {pods: 4, gang: 2}",
    "inference: {port: none, probe: {command: [ready]}, startup: 5m}",
    "inference: {probe: {http: /health}, service: {type: NodePort, port: 80}}",
    "training: {pods: 4, gang: 4, peers: {}}",
    "training: {kind: JobSet, pods: 4, gang: 4, peers: {}}",
    "training: {kind: TrainJob, pods: 4, peers: {}}",
    "training: {pods: 2, trials: 9, backoffLimitPerIndex: 1, fatalExitCodes: [2]}",
    "batch: {pods: 3, deadline: 2h}",
    "workspace: {idle: 2h, runTime: 12h, storage: {size: 1Gi, group: 100}}",
)
MORE: Final = (
    "",
    "env: {LOG_LEVEL: debug}, cpu: '1', memory: 1Gi",
    "model: {size: 1Gi, download: {image: 'registry.example.com/fetch:1'}}",
    "env: {TOKEN: {secretKeyRef: {name: api, key: token}}}, imagePullSecrets: [registry]",
)


def _granted(teams: tuple[Team, ...]) -> Iterator[tuple[Team, str, Grant]]:
    """Each namespace that may use a unit, with its grant."""
    for team in teams:
        for grant in team.grants:
            for index, namespace in enumerate(team.namespaces):
                amount = grant.split[index] if grant.split else grant.limit
                if amount != 0:
                    yield team, namespace, grant


@st.composite
def plans(draw: st.DrawFn, scheduler: str) -> Plan:
    """A valid platform with work in each namespace that may have any, and a default class or none."""
    policy = draw(platforms(scheduler))
    kinds, mores = st.sampled_from(KINDS), st.sampled_from(MORE)
    work = [
        document(
            "Workload",
            f"work-{number}",
            f"tenant: {team.name}, namespace: {namespace}, pool: {grant.pool}, image: 'example.com/app:1'",
            "fraction: 0.5" if grant.unit == "fraction" else f"unit: {grant.unit}",
            draw(kinds),
            draw(mores),
        )
        for number, (team, namespace, grant) in enumerate(_granted(policy.teams))
    ]
    classes = priority_class("usual", 100, "default: true") if draw(st.booleans()) else ""
    cluster, rest = policy.text.split("---\n", 1)
    return a_plan(f"{cluster}{draw(st.sampled_from(CLUSTERS))}---\n{rest}{classes}{''.join(work)}")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("classes", ["", "priorityClasses: [research]"])
@pytest.mark.parametrize("kind", KINDS)
def test_nor_where_cpu_is_counted(kind: str, classes: str, scheduler: str) -> None:
    text = (
        pool("whole", nodes="count: 2, gpusPerNode: 8, cpu: '64', memory: 512Gi"),
        priority_class("research", 200),
        tenant("lab", "pool: whole, guaranteed: 8, cpu: '32', memory: 64Gi", more=classes),
        document("Workload", "a", "tenant: lab, pool: whole, image: 'example.com/app:1'", kind, f"cpu: '1', {MORE[2]}"),
    )
    assert refusals_of(a_platform(*text, scheduler=scheduler)) == []


def refusals_of(plan: Plan) -> list[tuple[str, str, Path]]:
    return [
        (manifest.name, item.refusal.rule.name, item.route)
        for workload, manifest in work_of(plan)
        for item in refused(plan, rules_of(plan), manifest.body, workload.tenant, workload.namespace)
    ]


def work_of(plan: Plan) -> Iterator[tuple[Workload, Manifest]]:
    by_name = {workload.name: workload for workload in plan.workloads}
    return ((by_name[manifest.about[0].name], manifest) for manifest in workloads.render(plan))


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@settings(max_examples=15)
@given(data=st.data())
def test_no_rule_refuses_what_is_written(scheduler: str, data: st.DataObject) -> None:
    assert refusals_of(data.draw(plans(scheduler))) == []


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@settings(max_examples=2)
@given(data=st.data())
def test_another_evaluator_refuses_none_of_it_either(scheduler: str, data: st.DataObject) -> None:
    plan = data.draw(plans(scheduler))
    for workload, manifest in list(work_of(plan))[:3]:
        given = parameters(workload.tenant, workload.namespace, plan.scheduler)
        for arrival in arrivals(plan, manifest.body, {}):
            for policy in policies(plan):
                if concerns(policy, arrival.body):
                    user = "system:serviceaccount:kube-system:job-controller"
                    assert refusals(policy.body, _named(arrival.body), given, user=user) == []


def _named(body: Any) -> dict[str, Any]:
    return {**body, "metadata": {"namespace": "lab", **body["metadata"]}}


def test_what_fields_of_workloads_decide_are_rules() -> None:
    assert known_rules().keys() >= ASKED
