"""Changes drawn on clusters drawn: drift names each by its object, its field and whoever made it, and nothing else."""

from __future__ import annotations

import copy
import os
import random
from functools import cache

import pytest

from gpuplan.compiler.base.diagnostics import Severity
from gpuplan.compiler.documents.filetree import Written
from gpuplan.compiler.pipeline import report_on
from gpuplan.compiler.pipeline.loading import load_tree
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.live.drifting import Comparison, compare_with
from tests.features.live.cluster_mutations import CHANGES, ME, Named, NotHereError, World
from tests.features.live.dumps import dump_of, example, running
from tests.features.live.platforms import CLUSTER, platforms

PLATFORMS = 400 if os.environ.get("GPUPLAN_TEST_PROOF") else 40
DRAWS = 30 if os.environ.get("GPUPLAN_TEST_PROOF") else 3
"""Draws of each change, on as many platforms."""


@cache
def plans() -> tuple[tuple[str, Plan], ...]:
    """Clusters of the example, and platforms with each scheduler and each way of installing the operator."""
    found = [(name, example(name)) for name in ("dev", "openshift", "prod")]
    for drawn in platforms(PLATFORMS):
        files = {path: text.encode() for path, text in drawn.files.items()}
        report = report_on(load_tree(Written(None, files), (CLUSTER,), (CLUSTER,)))
        found += [(drawn.name, plan) for plan in report.plans if report.is_valid]
    return tuple(found)


def test_after_a_sync_nothing_is_told() -> None:
    told = {}
    for name, plan in plans():
        found = compare_with(plan, dump_of(running(plan)))
        told[name] = [*(drift.title for drift in found.drifts), *(item.finding.message for item in found.opponents)]

    assert len(told) > 35
    assert {name: lines for name, lines in told.items() if lines} == {}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_named(name: str) -> None:
    made = 0
    for number in range(DRAWS):
        rng = random.Random(f"{name} {number}")
        for title, plan in rng.sample(plans(), len(plans())):
            world = World(plan, running(plan), rng)
            before = copy.deepcopy(world.bodies)
            try:
                named = CHANGES[name](world)
            except NotHereError:
                continue
            assert world.bodies != before
            found = compare_with(plan, dump_of(world.bodies))
            assert is_told(named, found), (title, named, told(found))
            made += 1
            break

    assert made == DRAWS


def test_there_are_changes_enough() -> None:
    assert len(CHANGES) >= 70
    assert len(CHANGES) * DRAWS >= 200


def is_told(named: Named, found: Comparison) -> bool:
    if named.against:
        return any(
            item.finding.message.startswith(named.title)
            and named.field in item.finding.message
            and (item.severity is Severity.ERROR) == (named.against == "error")
            for item in found.opponents
        )
    return any(
        drift.title == named.title
        and named.field in drift.path
        and (named.live is None or drift.live == named.live)
        and (not named.is_mine or (drift.owner is not None and drift.owner.manager == ME))
        for drift in found.drifts
    )


def told(found: Comparison) -> list[object]:
    drifts = [(drift.title, drift.path, drift.live, drift.owner and drift.owner.manager) for drift in found.drifts]
    return [*drifts, *((item.severity, item.finding.message) for item in found.opponents)]
