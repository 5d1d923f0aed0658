"""The capability matrix says of every concept and scheduler how well it is kept, and of every loss what is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gpuplan.compiler import catalog
from gpuplan.compiler.catalog.schedulers import Concept, Needs, Support, capability, concepts
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from gpuplan.compiler.policy.fields import find_field
from gpuplan.compiler.policy.models import SchedulerKind
from tests.every import every

every_concept = every(concepts(), lambda concept: concept.id)


@every_concept
def test_every_scheduler_of_the_policy_language_has_a_column(concept: Concept) -> None:
    assert list(concept.capabilities) == [kind.value for kind in SchedulerKind]


def test_ids_are_unique() -> None:
    ids = [concept.id for concept in concepts()]
    assert sorted(set(ids)) == sorted(ids)


@every_concept
def test_a_concept_is_a_field_of_the_policy_language(concept: Concept) -> None:
    assert find_field(concept.field) is not None


@every_concept
def test_every_scheduler_keeps_it_in_some_way_or_says_what_is_lost(concept: Concept) -> None:
    for name, found in concept.capabilities.items():
        assert bool(found.loss) == (found.support is not Support.EXACT), name
        assert bool(found.how) == (found.support is not Support.IMPOSSIBLE), name


@every_concept
def test_a_setting_is_what_configuration_needs(concept: Concept) -> None:
    for name, found in concept.capabilities.items():
        assert bool(found.setting) == (found.needs is Needs.CONFIGURATION), name


def test_no_comma_cuts_a_text_in_two() -> None:
    file = Path(catalog.__file__).parent / "scheduler_data" / "capabilities.yaml"
    matrix = yaml.safe_load(file.read_text())
    keys = {key for row in matrix["concepts"] for name in SCHEDULERS for key in row[name]}
    assert keys == {"support", "how", "loss", "lost", "needs", "setting", "source", "is_uncertain"}


def test_a_source_is_an_address_of_the_release_that_was_read() -> None:
    assert capability("lendable", "kueue").source == (
        "https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/apis/kueue/v1beta2/clusterqueue_types.go"
    )


@pytest.mark.parametrize(
    ("concept", "scheduler", "support"),
    [
        ("lendable", "kueue", Support.EXACT),
        ("lendable", "kai", Support.IMPOSSIBLE),
        ("guaranteed", "kubernetes", Support.LOSSY),
        ("shares", "kai", Support.IMPOSSIBLE),
        ("fraction-range", "runai", Support.EXACT),
        ("protect", "kueue", Support.IMPOSSIBLE),
    ],
)
def test_some_of_what_it_says(concept: str, scheduler: str, support: Support) -> None:
    assert capability(concept, scheduler).support is support


def test_weights_of_kueue_need_its_configuration() -> None:
    assert capability("surplus-weight", "kueue").needs is Needs.CONFIGURATION
