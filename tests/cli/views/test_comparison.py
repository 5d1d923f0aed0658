"""A comparison of schedulers as people read it."""

from __future__ import annotations

import jsonschema

from gpuplan.cli.views.comparison import comparison_page, comparisons_as_data
from gpuplan.compiler.checks.comparison import compare
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from gpuplan.terminal.schemas import schema
from gpuplan.terminal.text import PLAIN
from tests.checks.test_comparison import a_gang, a_policy
from tests.checks.test_uses import a_pool, a_tenant
from tests.plans import a_cluster, a_plan
from tests.terminal.test_plan import strictly


def test_a_page_says_what_is_gained_and_lost_and_where() -> None:
    assert (
        comparison_page(compare(a_policy(), SCHEDULERS["kai"]), PLAIN)
        == """\
Cluster test: from Kueue to KAI-Scheduler

Gained
  a rank in the surplus  Tenant.spec.surplus.rank
    by the queue's `priority`
    overlays/test/case.yaml:23  `research` has rank 1
  a minimum run time before eviction  Tenant.spec.protect
    by `preemptMinRuntime` and `reclaimMinRuntime`
    overlays/test/case.yaml:24  `research`: 1h

Lost
  a bound on what is lent  Tenant.spec.quotas.lendable
    everything idle is lent and reclaimed later
    overlays/test/case.yaml:22  `research` lends 2 of 4

Kept by both
  a guarantee
  a limit above the guarantee
  a weight in the surplus
  whole GPUs
"""
    )


def test_a_page_says_what_each_workload_feels() -> None:
    page = comparison_page(compare(a_gang(), SCHEDULERS["kai"]), PLAIN)

    assert (
        """
Workloads
  run
    is refused: GPU516
    loses: shares of the device plugin (time-slicing, MPS)
"""
        in page
    )
    assert "Workloads" not in comparison_page(compare(a_gang(), SCHEDULERS["kueue"]), PLAIN)


def test_where_nothing_changes_the_page_says_so() -> None:
    plan = a_plan(a_cluster("kind: kueue") + a_pool("sharing: {exclusive: {}}"))
    page = comparison_page(compare(plan, SCHEDULERS["kai"]), PLAIN)
    assert page.startswith("Cluster test: from Kueue to KAI-Scheduler\n\nGained\n  nothing\n\nLost\n  nothing\n")


def test_only_a_few_places_are_named() -> None:
    tenants = [
        a_tenant(f"namespaces: [t{index}]\n  quotas: [{{pool: a100, guaranteed: 1, limit: none}}]", f"t{index}")
        for index in range(5)
    ]
    plan = a_plan(a_cluster("kind: kueue") + a_pool() + "".join(tenants))
    page = comparison_page(compare(plan, SCHEDULERS["kubernetes"]), PLAIN)
    assert "`t2` is guaranteed 1 `shared` of `a100`\n    2 more like these\n" in page


def test_the_contract_is_what_its_schema_says() -> None:
    jsonschema.Draft7Validator.check_schema(schema("comparison"))
    refused = a_plan(a_cluster("kind: kueue") + a_pool())
    comparisons = [compare(a_policy("kind: kubernetes"), SCHEDULERS["kueue"]), compare(refused, SCHEDULERS["kai"])]

    data = comparisons_as_data(comparisons)

    jsonschema.validate(data, strictly(schema("comparison")))
    assert [error["code"] for error in data["clusters"][1]["errors"]] == ["GPU516"]
    assert data["clusters"][0]["needs_configuration"][0]["to"]["setting"].startswith("`fairSharing` of")
