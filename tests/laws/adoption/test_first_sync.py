"""The first sync of clusters as people have them harms nobody, or the import says whom and how.

`GPUPLAN_TEST_PROOF=1` draws more of them. `python -m tests.laws.adoption.probe --seeds 12` shows one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from benchmarks.published import find_folder
from tests.every import Laws
from tests.laws.adoption.clusters import draw
from tests.laws.adoption.comparer import Kind
from tests.laws.adoption.syncing import First, first_sync, sync_dump

pytestmark = pytest.mark.no_cover
COUNT: Final = 400 if os.environ.get("GPUPLAN_TEST_PROOF") else 48
PART: Final = 8
"""So many clusters are in one test."""

FOLDER: Final = find_folder()

Tried = Mapping[object, First]
law: Final = Laws[Tried]()

REFUSALS: Final = frozenset({Kind.REFUSED, Kind.NO_NODE, Kind.FORBIDDEN})
CHANGES: Final = frozenset({Kind.PUBLISHES, Kind.LABEL, Kind.LOCAL_QUEUE, Kind.COHORT, Kind.FLAVOR_NODES})


@law
def an_import_ends_as_it_should(tried: Tried) -> None:
    assert {name: done.imported.err for name, done in tried.items() if done.imported.code not in (0, 1)} == {}


@law
def no_import_ends_in_an_error_that_its_own_output_caused(tried: Tried) -> None:
    assert {name: done.errors for name, done in tried.items() if done.errors} == {}


@law
def what_is_written_can_be_built(tried: Tried) -> None:
    """An error that the import names at its place in the dump, with a way out, may prevent it."""
    assert sum(done.is_built for done in tried.values()) > len(tried) / 2


@law
def no_loss_is_untold(tried: Tried) -> None:
    assert _untold(tried, frozenset(Kind) - REFUSALS - CHANGES) == {}


@law
def no_refusal_is_untold(tried: Tried) -> None:
    assert _untold(tried, REFUSALS) == {}


@law
def resource_names_labels_and_queues_change_only_where_the_report_says_so(tried: Tried) -> None:
    assert _untold(tried, CHANGES) == {}


def _untold(tried: Tried, kinds: frozenset[Kind]) -> dict[object, list[str]]:
    """Of each cluster the first few."""
    found = {
        name: [
            f"{loss.kind}: {loss.subject}, {loss.what}: {loss.before} -> {loss.after}"
            for loss in done.untold
            if loss.kind in kinds
        ]
        for name, done in tried.items()
    }
    return {name: listed[:5] for name, listed in found.items() if listed}


@pytest.mark.parametrize("first", range(0, COUNT, PART))
def test_the_first_sync_harms_nobody_untold(first: int, tmp_path: Path) -> None:
    law.assert_each({seed: first_sync(draw(seed), tmp_path / str(seed)) for seed in range(first, first + PART)})


@pytest.mark.skipif(FOLDER is None, reason="GPUPLAN_DATA names no folder of dumps")
def test_the_first_sync_of_small_dumps_harms_nobody_untold(tmp_path: Path) -> None:
    assert FOLDER is not None
    law.assert_each(
        {
            path.name: sync_dump(path, tmp_path / path.name / "repository")
            for path in sorted((FOLDER / "dumps").iterdir())
        }
    )
