"""What `diff` says of settings of admission: a sentence on tenants' pods for each, and no object left unexplained."""

from __future__ import annotations

import pytest

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from gpuplan.features.changes.model import Change, Comparison
from gpuplan.features.changes.states import ClusterState, compare
from tests.plans import a_cluster, a_plan
from tests.platforms import pool, tenant

WITHOUT = "admission: {without: [tolerations-within-pools]}"
ANY_TIME, LONG = "admission: {gracePeriod: none}", "admission: {gracePeriod: 5m}"


def step(before: str, after: str, scheduler: str = "kubernetes", settings: tuple[str, str] = ("", "")) -> Comparison:
    """From one line of the cluster to another; ``settings`` are of its scheduler."""
    states = []
    for line, setting in zip((before, after), settings, strict=True):
        cluster = a_cluster(f"kind: {scheduler}{setting}")
        plan = a_plan(f"{cluster}  {line or 'admission: {}'}\n{pool('a')}{tenant('t', 'pool: a, guaranteed: 2')}")
        states.append([ClusterState.of(plan, artifacts(plan))])
    return compare(*states)


def only(comparison: Comparison) -> Change:
    assert comparison.objects == ()
    (change,) = comparison.changes
    assert change.change_class is ChangeClass.ADMISSION
    return change


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_rule_that_is_left_out_says_what_tenants_may_do(scheduler: str) -> None:
    change = only(step("", WITHOUT, scheduler))

    assert change.what == "admission leaves out the rule `tolerations-within-pools`"
    assert change.effect.startswith("pods without the selector of a pool may tolerate its taints")
    assert change.at.path[-1] == "without"


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_rule_that_comes_back_says_what_it_refuses(scheduler: str) -> None:
    change = only(step(WITHOUT, "", scheduler))

    assert change.what == "admission no longer leaves out the rule `tolerations-within-pools`"
    assert "it says: tolerations of taints of pools" in change.effect


@pytest.mark.parametrize(
    ("before", "after", "what", "effect"),
    [
        ("", LONG, "5m at most", "a team may wait that long for its guaranteed GPUs"),
        ("", ANY_TIME, "any time", "a team may wait that long for its guaranteed GPUs"),
        (LONG, "", "30s at most", "new pods that ask for more are refused"),
        (ANY_TIME, LONG, "5m at most", "new pods that ask for more are refused"),
    ],
)
def test_the_grace_period_is_somebody_elses_wait(before: str, after: str, what: str, effect: str) -> None:
    change = only(step(before, after))

    assert change.what == f"pods with GPUs may ask for {what} to end"
    assert change.effect.startswith(effect)


def test_kinds_that_kueue_is_told_of() -> None:
    told = ", kueue: {frameworks: [RayJob]}"
    come, gone = (only(step("", "", "kueue", settings)) for settings in (("", told), (told, "")))

    assert come.what == "Kueue knows `RayCluster` and `RayJob`"
    assert come.effect == "work of these kinds waits in queues once Kueue's own Configuration names them"
    assert gone.what == "Kueue no longer knows `RayCluster` and `RayJob`"
    assert gone.effect.startswith("pods with GPUs of unknown kinds are refused")


# --- Refusing and warning ----------------------------------------------------------------------------------------

WARN, DENY = "admission: {enforcement: warn}", "admission: {enforcement: deny}"
REFUSED = "new pods there that break a rule are refused; those that run go on"
WARNED = "no rule keeps new pods there to their tenant's pools, priority classes and GPUs; those that run go on"


def enforced(before: tuple[str, ...], after: tuple[str, ...], scheduler: str = "kubernetes") -> Comparison:
    """From one state of a cluster, its line and its tenants, to another."""
    states = []
    for line, *tenants in (before, after):
        plan = a_plan(f"{a_cluster(f'kind: {scheduler}')}  {line}\n{''.join(tenants)}")
        states.append([ClusterState.of(plan, artifacts(plan))])
    return compare(*states)


def a_tenant(name: str, more: str = "", namespaces: str = "") -> str:
    return tenant(name, namespaces=namespaces or name, more=more)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize(
    ("before", "after", "what", "effect"),
    [
        (WARN, DENY, "admission refuses in the namespaces `a`, `b` and `c`, and no longer only warns", REFUSED),
        (DENY, WARN, "admission only warns in the namespaces `a`, `b` and `c`, and no longer refuses", WARNED),
    ],
)
def test_a_cluster_that_turns_names_the_namespaces(
    scheduler: str, before: str, after: str, what: str, effect: str
) -> None:
    tenants = (a_tenant("one", namespaces="a, b"), a_tenant("c"), a_tenant("d", DENY), a_tenant("e", WARN))
    change = only(enforced((before, *tenants), (after, *tenants), scheduler))

    assert (change.what, change.effect) == (what, effect)
    assert (change.subject.kind, change.at.path[-1]) == ("Cluster", "enforcement")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_tenant_that_turns_is_a_change_of_that_tenant(scheduler: str) -> None:
    before, after = (WARN, a_tenant("a"), a_tenant("b")), (WARN, a_tenant("a"), a_tenant("b", DENY))
    change = only(enforced(before, after, scheduler))

    assert (change.what, change.effect) == (
        "admission refuses in the namespaces `b`, and no longer only warns",
        REFUSED,
    )
    assert (change.subject.kind, change.subject.name) == ("Tenant", "b")


def test_a_namespace_turns_alone() -> None:
    before = (WARN, a_tenant("a", namespaces="n1, n2"))
    after = (WARN, a_tenant("a", "admission: {namespaces: {n2: deny}}", namespaces="n1, n2"))

    assert "in the namespaces `n2`," in only(enforced(before, after)).what


def test_namespaces_by_label_turn_with_their_tenant() -> None:
    labelled = "labelledNamespaces: true"
    change = only(enforced((WARN, a_tenant("a", labelled)), (WARN, a_tenant("a", f"{labelled}, {DENY}"))))

    assert "in the namespaces `a` and `gpuplan.dev/tenant=a`," in change.what


def test_what_is_said_in_another_place_changes_nothing() -> None:
    comparison = enforced((WARN, a_tenant("a")), (DENY, a_tenant("a", WARN)))

    assert (comparison.changes, comparison.objects) == ((), ())
