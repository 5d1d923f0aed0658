"""Pages on what schedulers keep."""

from __future__ import annotations

import pytest

from gpuplan.cli.views.explain import explain, facts_of, scheduler_page
from gpuplan.cli.views.reference import schedulers_document
from gpuplan.compiler.catalog.schedulers import capability, concepts
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from gpuplan.terminal.text import PLAIN, Theme


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_page_has_every_concept_once(name: str) -> None:
    lines = scheduler_page(name, PLAIN).splitlines()
    for concept in concepts():
        assert lines.count(f"  {concept.title}  {concept.field}") == 1


def test_what_is_kept_in_part_says_by_what_what_it_takes_and_what_is_lost() -> None:
    assert list(facts_of(capability("gang", "kueue"))) == [
        "by admission of a workload as a whole",
        "needs `waitForPodsReady` of its Configuration, as in `scheduling/kueue-configuration.yaml`",
        "lost: quota is granted for all pods or none, whatever the gang's size",
    ]


def test_what_is_not_kept_says_what_happens_instead() -> None:
    assert list(facts_of(capability("surplus-rank", "kueue"))) == ["there is no order among tenants"]


def test_what_is_not_certain_says_so() -> None:
    assert list(facts_of(capability("protect", "runai")))[-1] == "not certain"


def test_a_page_fits_the_terminal() -> None:
    facts = [line for line in scheduler_page("kai", Theme(width=60)).splitlines() if line.startswith("    ")]
    assert max(map(len, facts)) <= 60


def test_letter_case_does_not_matter() -> None:
    assert explain("SCHEDULER/KAI", PLAIN) == scheduler_page("kai", PLAIN)


def test_the_document_has_an_overview_and_a_section_for_each() -> None:
    text = schedulers_document()
    schedulers, _, _ = text.partition("## Kinds of work")
    assert schedulers.count("\n| ") == (len(concepts()) + 1) * (1 + len(SCHEDULERS)) + (1 + len(SCHEDULERS))
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        *(f"## {found.title}" for found in SCHEDULERS.values()),
        "## Kinds of work with Kueue",
    ]
    row = "| a bound on what is lent | [`Tenant.spec.quotas.lendable`](fields/Tenant.md) | no | **yes** | no | no |"
    assert row in text
