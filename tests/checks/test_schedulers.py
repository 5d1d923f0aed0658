"""What schedulers cannot keep is said once for the cluster, with the places where it was asked for."""

from __future__ import annotations

import pytest

from gpuplan.compiler.base.diagnostics import Finding, Severity
from gpuplan.compiler.catalog.schedulers import capability
from gpuplan.compiler.checks import schedulers
from gpuplan.compiler.checks.registry import Check
from gpuplan.compiler.planning.plan import Plan
from tests.checks.found import only
from tests.plans import a_cluster, a_plan

POOL = """\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: a100}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 4}
  sharing: {timeSlicing: {replicas: 2}}
"""


def a_tenant(name: str, more: str, quota: str = "guaranteed: 1") -> str:
    return f"""\
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {{name: {name}}}
spec: {{namespaces: [{name}], quotas: [{{pool: a100, {quota}}}]{more}}}
"""


RIVAL = """\
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: rival}
spec: {namespaces: [rival], quotas: [{pool: a100, guaranteed: 0, limit: none}]}
"""


def find(check: Check[Plan], scheduler: str, *tenants: str) -> list[Finding]:
    return list(check.find(a_plan(a_cluster(scheduler) + POOL + "".join(tenants))))


def test_a_fleet_gets_one_finding_with_three_places_and_a_count() -> None:
    tenants = [a_tenant(f"t{index}", ", surplus: {weight: 2}", "guaranteed: 1, limit: 4") for index in range(7)]
    finding = only(find(schedulers.surplus_not_divided, "kind: kubernetes", *tenants))
    assert [label.text for label in finding.related] == [f"`t{index}` has weight 2" for index in range(3)]
    assert finding.label == "asked for in 7 places"
    assert finding.notes == (capability("surplus-weight", "kubernetes").loss, "4 more like these")


LOSSES = {
    "kubernetes": {"weight", "rank", "minimum run time"},
    "kueue": {"rank", "minimum run time"},
    "kai": set(),
    "runai": {"minimum run time"},
}


@pytest.mark.parametrize("kind", LOSSES)
def test_each_scheduler_loses_what_it_has_no_word_for(kind: str) -> None:
    more = ", surplus: {weight: 2, rank: 1}, protect: {reclaim: 10m}"
    tenant = a_tenant("research", more, "guaranteed: 1, limit: 9")
    found = find(schedulers.surplus_not_divided, f"kind: {kind}", tenant, RIVAL)
    found += find(schedulers.protection_not_kept, f"kind: {kind}", tenant, RIVAL)
    lost = {name for name in ("weight", "rank", "minimum run time") for item in found if name in item.message}
    assert lost == LOSSES[kind]


@pytest.mark.parametrize(("on_loss", "severity"), [("report", Severity.NOTE), ("refuse", Severity.ERROR)])
def test_the_cluster_says_how_bad_a_loss_is(on_loss: str, severity: Severity) -> None:
    tenant = a_tenant("research", ", protect: {reclaim: 1h}")
    found = find(schedulers.protection_not_kept, f"kind: kubernetes, onLoss: {on_loss}", tenant, RIVAL)
    assert only(found).severity is severity


def test_a_parent_with_unbounded_children_bounds_nothing() -> None:
    top = a_tenant("top", "", "guaranteed: 4").replace("namespaces: [top], ", "")
    child = a_tenant("child", ", parent: top", "guaranteed: 1, limit: none")
    finding = only(find(schedulers.parent_does_not_bound, "kind: kubernetes", top, child))
    assert finding.related[0].text == "`top` has 4 `shared`, its children no bound"


def test_a_parent_is_exceeded_by_limits_even_where_guarantees_fill_it() -> None:
    top = a_tenant("top", "", "guaranteed: 8").replace("namespaces: [top], ", "")
    children = [a_tenant(name, ", parent: top", "guaranteed: 4, limit: 5") for name in ("a", "b")]
    finding = only(find(schedulers.parent_does_not_bound, "kind: kubernetes", top, *children))
    assert finding.related[0].text == "`top` has 8 `shared`, its children 10"


def test_a_bound_on_lending_matters_only_where_somebody_can_borrow() -> None:
    lender = a_tenant("research", "", "guaranteed: 8, lendable: 0")
    fits, exceeds = (a_tenant("training", "", f"guaranteed: 0, limit: {limit}") for limit in (8, 9))
    assert find(schedulers.lendable_not_kept, "kind: kubernetes", lender, fits) == []
    assert len(find(schedulers.lendable_not_kept, "kind: kubernetes", lender, exceeds)) == 1


def test_a_setting_is_a_note_however_losses_are_judged() -> None:
    tenant = a_tenant("research", ", surplus: {weight: 2}")
    finding = only(find(schedulers.scheduler_needs_configuration, "kind: kueue, onLoss: refuse", tenant))
    assert finding.severity is None
    assert finding.help == "set `fairSharing` of its Configuration, as in `scheduling/kueue-configuration.yaml`"


def test_an_old_cluster_is_told_what_only_admission_policies_keep() -> None:
    text = a_cluster("kind: kubernetes").replace("1.34", "1.29")
    classes = """\
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: patient}
spec: {value: 10}
"""
    plan = a_plan(text + POOL + classes + a_tenant("research", ", priorityClasses: [patient]"))
    finding = only(schedulers.no_admission_policies.find(plan))
    assert finding.notes[1] == ("plain Kubernetes keeps by admission policies alone: which classes a tenant may name")
