"""Which rules the admission policies of a plan have, and what decides it."""

from __future__ import annotations

import pytest

from gpuplan.compiler.admission.judging import Request, refusals
from gpuplan.compiler.admission.policies import known_rules, left_out, policies, policy, trace_policy
from gpuplan.compiler.planning.grants import GRANTS_POLICY, QUEUES_POLICY, parameters
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from tests.plans import a_cluster, a_plan
from tests.platforms import a_platform, pool, tenant

OPTIONAL = "no-fraction-annotations"


def a_plan_without(rule: str, scheduler: str = "kubernetes", kubernetes: str = "1.34") -> Plan:
    cluster = a_cluster(f"kind: {scheduler}").replace("1.34", kubernetes)
    return a_plan(cluster.replace("spec:\n", f"spec:\n  admission: {{without: [{rule}]}}\n", 1))


def rules_of(plan: Plan) -> dict[str, list[str]]:
    return {policy.name: [rule.name for rule in policy.rules] for policy in policies(plan)}


@pytest.mark.parametrize(
    ("scheduler", "names"),
    [
        ("kubernetes", ["grants", "devices", "grace", "node-features", "pod-security"]),
        ("kueue", ["grants", "devices", "grace", "node-features", "pod-security", "jobs", "running", "queues"]),
        ("kai", ["grants", "devices", "grace", "node-features", "pod-security", "running", "queues"]),
        ("runai", ["grants", "devices", "grace", "node-features", "pod-security", "projects", "running"]),
    ],
)
def test_a_scheduler_that_counts_has_more_policies(scheduler: str, names: list[str]) -> None:
    assert [policy.name for policy in policies(a_platform(scheduler=scheduler))] == [
        f"gpuplan-{name}" for name in names
    ]


def test_templates_have_a_policy_where_gpus_are_claimed() -> None:
    plan = a_platform(pool("whole", "exclusive: {}", "allocation: dra"))
    assert rules_of(plan)["gpuplan-claims"] == ["templates-stay", "claims-of-pods-by-controller"]
    assert "gpuplan-claims" not in rules_of(a_platform(pool("whole")))


def test_a_policy_that_nothing_is_left_of_goes() -> None:
    cluster = a_cluster("kind: kubernetes").replace("spec:\n", "spec:\n  admission: {gracePeriod: none}\n", 1)
    assert "gpuplan-grace" not in [policy.name for policy in policies(a_plan(cluster))]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_what_only_warns_is_judged_by_the_same_rules(scheduler: str) -> None:
    """A binding says what comes of a refusal, and its policy what is refused."""
    cluster = a_cluster(f"kind: {scheduler}")
    warning = cluster.replace("spec:\n", "spec:\n  admission: {enforcement: warn}\n", 1)
    assert policies(a_plan(warning)) == policies(a_plan(cluster))


def test_a_cluster_that_is_too_old_has_none() -> None:
    assert policies(a_platform(kubernetes="1.29")) == ()


def test_every_rule_is_on_the_clusters_of_some_scheduler() -> None:
    plans = [a_platform(scheduler=name) for name in SCHEDULERS]
    claimed = a_plan(a_cluster("kind: kubernetes") + DRA_POOL)
    told = a_plan(a_cluster("kind: kueue, kueue: {frameworks: [JobSet]}"))
    newer = a_platform(kubernetes="1.35")
    counting = [
        a_platform(pool("a"), tenant("lab", "pool: a, guaranteed: 1, cpu: 8"), scheduler=name) for name in SCHEDULERS
    ]
    every = (*plans, claimed, told, newer, *counting)
    found = {name for plan in every for names in rules_of(plan).values() for name in names}

    assert found == {*known_rules()}


DRA_POOL = (
    "---\napiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {name: a}\nspec: {gpu: A100-80GB, allocation: dra, "
    "nodes: {count: 2, gpusPerNode: 8}, sharing: {exclusive: {}}}\n"
)


def test_a_rule_that_is_left_out_is_the_only_one_that_goes() -> None:
    every, fewer = rules_of(a_platform()), rules_of(a_plan_without(OPTIONAL))

    assert OPTIONAL in every["gpuplan-devices"]
    every["gpuplan-devices"].remove(OPTIONAL)
    assert fewer == every


def test_a_rule_that_is_not_optional_stays() -> None:
    assert rules_of(a_plan_without("no-node-name")) == rules_of(a_platform())


def test_only_what_the_cluster_would_have_is_left_out() -> None:
    assert [rule.name for rule in left_out(a_plan_without(OPTIONAL))] == [OPTIONAL]
    assert left_out(a_plan_without(OPTIONAL, scheduler="kai")) == ()
    assert left_out(a_plan_without(OPTIONAL, kubernetes="1.29")) == ()


def test_what_would_be_written_otherwise_with_the_rule_comes_from_its_name() -> None:
    plan = a_plan_without(OPTIONAL)
    at = plan.cluster.at / "admission" / "without" / 0
    routes = [route for route, links in trace_policy(plan, "gpuplan-devices") if any(link.at == at for link in links)]

    assert routes
    assert {route[:2] for route in routes} == {("spec", "validations")}
    assert not [links for _, links in trace_policy(plan, GRANTS_POLICY) if any(link.at == at for link in links)]


def test_what_kueue_is_told_of_is_where_more_is_written() -> None:
    plan = a_plan(a_cluster("kind: kueue, kueue: {frameworks: [JobSet]}"))
    at = plan.cluster.scheduler.at / "kueue"
    found = {
        policy.name: [route for route, links in trace_policy(plan, policy.name) if any(link.at == at for link in links)]
        for policy in policies(plan)
    }

    assert found["gpuplan-frameworks"] == [()]
    assert found["gpuplan-grants"]
    assert found["gpuplan-jobs"]
    assert not found["gpuplan-devices"]
    assert not found["gpuplan-queues"]


def test_a_policy_that_only_one_scheduler_has_says_so_once() -> None:
    plan = a_platform(scheduler="kueue")
    sources = [link.at for _, links in trace_policy(plan, QUEUES_POLICY) for link in links]

    assert sources.count(plan.cluster.scheduler.at / "kind") == 1


@pytest.mark.parametrize("scheduler", ["kueue", "kai", "runai"])
def test_what_counts_cpu_of_a_pool_holds_its_pods_without_gpus(scheduler: str) -> None:
    plan = a_platform(pool("a"), tenant("lab", "pool: a, guaranteed: 1, cpu: 8"), scheduler=scheduler)
    at = plan.tenants[0].quotas[0].at / "cpu"

    assert [route for route, links in trace_policy(plan, GRANTS_POLICY) if any(link.at == at for link in links)]
    assert [rule for rule in rules_of(plan)[GRANTS_POLICY] if rule.startswith("counted-pods")]


@pytest.mark.parametrize("name", ["here", "elsewhere"])
def test_a_pod_that_comes_to_a_counted_pool_by_affinity_waits_too(name: str) -> None:
    plan = a_platform(
        pool("here"), pool("elsewhere"), tenant("lab", "pool: here, guaranteed: 1, cpu: 8"), scheduler="kueue"
    )
    term = {"matchExpressions": [{"key": "gpuplan.dev/pool", "operator": "In", "values": [name]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "lab"}}
    body["spec"] = {"affinity": affinity, "containers": [{"name": "main"}]}
    request = Request(object=body, parameters=dict(parameters(plan.tenants[0], "lab", plan.scheduler)), may=_nothing)
    found = [refusal.rule.name for refusal in refusals([policy(plan, GRANTS_POLICY)], request)]

    assert ("counted-pods-wait-for-kueue" in found) is (name == "here")


def _nothing(_group: str, _resource: str, _verb: str) -> bool:
    return False


def test_where_nothing_but_units_is_counted_pods_without_gpus_are_free() -> None:
    plan = a_platform(pool("a"), tenant("lab", "pool: a, guaranteed: 1"), scheduler="kueue")

    assert not [rule for rule in rules_of(plan)[GRANTS_POLICY] if rule.startswith("counted-pods")]
